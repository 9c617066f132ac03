//! How far a copy is, beside the data file: so another process goes on where one was cut off. It holds only what the two
//! ends cannot say themselves; lost, it costs the part of one object.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Ctx, Error};
use tpu_core::model::objects::StoragePlace;
use tpu_system::store::atomic;

/// Mode of the files: whoever shares the data file shares them.
const MODE: u32 = 0o660;
const DIR_MODE: u32 = 0o770;

/// What is under way, by the path of the part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct UnderWay {
    /// Where a copy comes from.
    pub(super) from: String,
    /// Where it goes.
    pub(super) to: String,
    /// The sessions of uploads and the tokens of copies, each with the version of its source.
    pub(super) parts: BTreeMap<String, PartUnderWay>,
}

/// A part that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartUnderWay {
    /// The version of the source: of another one nothing is kept.
    pub(super) version: String,
    /// The session, or the token.
    pub(super) handle: String,
    /// How many bytes of it have arrived, as far as anybody has said.
    pub(super) written: u64,
}

/// The file of one copy.
pub(super) struct StateFile<'a> {
    ctx: &'a Ctx,
    path: PathBuf,
    pub(super) state: UnderWay,
}

fn path_of(ctx: &Ctx, to: &StoragePlace) -> PathBuf {
    let number = tpu_core::text::fnv1a(to.to_string().bytes());
    ctx.store.paths().state().join("copies").join(format!("{number:016x}.json"))
}

/// Does something about a copy to a place, of which there is one at a time.
pub(super) fn alone<T>(
    ctx: &Ctx,
    to: &StoragePlace,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let path = path_of(ctx, to).with_extension("lock");
    if let Some(dir) = path.parent() {
        // If it cannot be made, the lock says so with its path.
        drop(ctx.store.disk().make_dir(dir, DIR_MODE));
    }
    ctx.store.locking(&path, work)?
}

impl<'a> StateFile<'a> {
    /// What is known of a copy. A file that cannot be read, or is of another copy, is as none.
    pub(super) fn open(ctx: &'a Ctx, from: &StoragePlace, to: &StoragePlace) -> Self {
        let path = path_of(ctx, to);
        let (from, to) = (from.to_string(), to.to_string());
        let read = ctx.store.disk().read(&path).ok();
        let known = read.and_then(|read| serde_json::from_slice::<UnderWay>(&read.bytes).ok());
        let known = known.filter(|known| known.from == from && known.to == to);
        let state = known.unwrap_or_else(|| UnderWay { from, to, parts: BTreeMap::new() });
        Self { ctx, path, state }
    }

    /// What is known of a part, if its source is still the same.
    pub(super) fn part(&self, path: &str, version: &str) -> Option<PartUnderWay> {
        self.state.parts.get(path).filter(|part| part.version == version).cloned()
    }

    /// Keeps how far a part is, or that it is done.
    pub(super) fn keep(&mut self, path: &str, part: Option<PartUnderWay>) -> Result<(), Error> {
        match part {
            Some(part) => self.state.parts.insert(path.to_owned(), part),
            None => self.state.parts.remove(path),
        };
        let bytes = serde_json::to_vec(&self.state)
            .map_err(|e| Error::state(format!("how far the copy is cannot be written: {e}")))?;
        Ok(atomic::write_file(&**self.ctx.store.disk(), &self.path, &bytes, MODE)?)
    }

    /// Nothing of it is under way any more.
    pub(super) fn forget(self) {
        // One that stays is of no copy that is to come: its parts name versions.
        drop(self.ctx.store.disk().remove(&self.path));
    }
}
