//! The way to buckets: the first provider that has a store of objects, asked persistently.

use std::sync::Arc;

use crate::{Ctx, Error};
use tpu_core::model::bucket::BucketPlace;
use tpu_core::model::objects::{ObjectAt, ObjectFact};
use tpu_engine::provider::storage::{ObjectQuery, ObjectStore};
use tpu_engine::provider::{Provider, ProviderError, Trouble, retry};

/// The buckets.
#[derive(Clone)]
pub struct Shelf {
    provider: Arc<dyn Provider>,
}

/// Buckets are found by the provider that the settings name; else by the first that some target has.
pub fn open(ctx: &Ctx) -> Result<Shelf, Error> {
    let data = ctx.data()?;
    let places = ctx.places();
    for at in places.all(&data) {
        let provider = ctx.provider(&at);
        if provider.storage().is_some() {
            return Ok(Shelf { provider });
        }
    }
    Err(Error::refused("nobody here knows buckets: no provider has a store of objects")
        .hint(SET_UP))
}

/// The error for who wants something of a bucket where there is no way to any.
pub(crate) fn none_for(at: &ObjectAt) -> Error {
    Error::refused(format!("{at}: no bucket is known here")).hint(SET_UP)
}

const SET_UP: &str =
    "tpu set-settings cloud google, tpu set-settings project NAME; to practise: tpu sim serve";

impl Shelf {
    /// The door itself, for one request at a time.
    pub fn door(&self) -> Result<&dyn ObjectStore, Error> {
        self.provider.storage().ok_or_else(|| Error::refused("it has no buckets any more"))
    }

    /// One question, asked a few times where no answer comes.
    pub fn ask<T>(
        &self,
        ctx: &Ctx,
        mut question: impl FnMut(&dyn ObjectStore) -> Result<T, ProviderError>,
    ) -> Result<T, Error> {
        let door = self.door()?;
        Ok(retry::persistently(&*ctx.clock, &*ctx.random, || question(door))?)
    }

    /// Every object whose name begins so; all pages, or an error.
    pub fn all(&self, ctx: &Ctx, bucket: &str, prefix: &str) -> Result<Vec<ObjectFact>, Error> {
        let (mut objects, mut page) = (Vec::new(), None::<String>);
        loop {
            let query = ObjectQuery { bucket, prefix, by_directory: false, page: page.clone() };
            let got = self.ask(ctx, |door| door.list_objects(&query))?;
            objects.extend(got.objects);
            match got.next {
                Some(next) if page.as_ref() != Some(&next) => page = Some(next),
                Some(_) => {
                    return Err(Error::unreachable(format!(
                        "the list of gs://{bucket} never ends"
                    ))
                    .hint("nothing was changed; try again"));
                }
                None => return Ok(objects),
            }
        }
    }

    /// One object; `None` if it is not there.
    pub fn object(&self, ctx: &Ctx, at: &ObjectAt) -> Result<Option<ObjectFact>, Error> {
        self.ask(ctx, |door| match door.object(at) {
            Ok(fact) => Ok(Some(fact)),
            Err(error) if error.trouble == Trouble::NotFound => Ok(None),
            Err(error) => Err(error),
        })
    }

    /// Where a bucket is.
    pub fn place(&self, ctx: &Ctx, bucket: &str) -> Result<BucketPlace, Error> {
        let ask = || self.provider.bucket_place(bucket);
        Ok(retry::persistently(&*ctx.clock, &*ctx.random, ask)?)
    }
}
