//! `unhold`: cuts a wait that an engine has ordered.

use crate::model::ids::JobId;

use super::ctx::job_of;
use super::{Ctx, Error, records, runners};

/// Lets a job begin that its engine holds back for a time.
pub fn unhold(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    runners::of(ctx, job).unhold(runners::run(&data, job)?)?;
    ctx.transact(|tx| {
        records::note(tx, id, "unhold", "its engine holds it back no longer");
        Ok(())
    })
}
