//! What cleaning does to copies of code: it removes old code, and copies whole where somebody asks for that.

use crate::front::old_code::{self, WholeCopies};
use crate::{Ctx, Error};
use tpu_core::model::ids::{JobId, UserName};

use super::{Cleaned, Extent, clean, clean_some, dry_run_clean, dry_run_clean_some};

/// A cleaning that removes copies with what their jobs wrote.
#[derive(Debug)]
pub struct WithResults<'a> {
    user: &'a UserName,
    jobs: &'a [JobId],
    extent: Extent,
    whole: WholeCopies,
    /// What it would do now.
    pub would: Cleaned,
}

/// Prepares one: of these jobs alone or, without any, of all that have ended and of those that are in the archive already.
pub fn with_results<'a>(
    ctx: &Ctx,
    user: &'a UserName,
    jobs: &'a [JobId],
    extent: Extent,
) -> Result<WithResults<'a>, Error> {
    let mut would = if jobs.is_empty() {
        dry_run_clean(ctx, user, extent)?
    } else {
        dry_run_clean_some(ctx, user, jobs, extent)?
    };
    let whole = old_code::whole(ctx, user, &would.archived, jobs.is_empty())?;
    would.whole = whole.size();
    Ok(WithResults { user, jobs, extent, whole, would })
}

impl WithResults<'_> {
    /// Cleans.
    pub fn run(self, ctx: &Ctx) -> Result<Cleaned, Error> {
        let mut cleaned = if self.jobs.is_empty() {
            clean(ctx, self.user, self.extent)?
        } else {
            clean_some(ctx, self.user, self.jobs, self.extent)?
        };
        // Of what could not be archived the copy is in use.
        cleaned.whole = old_code::remove_whole(ctx, self.whole);
        Ok(cleaned)
    }
}

impl Cleaned {
    /// Removes the code of jobs that were archived long ago. What cannot be removed now is removed the next time.
    pub fn remove_old_code(&mut self, ctx: &Ctx) {
        match old_code::remove_due(ctx) {
            Ok(gone) => self.code = gone,
            Err(error) => ctx.warn(Some(error.message)),
        }
    }
}
