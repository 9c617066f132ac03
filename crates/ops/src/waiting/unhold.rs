//! `unhold`: cuts a wait that an engine has ordered.

use tpu_core::model::ids::JobId;

use crate::base::ctx::job_of;
use crate::base::records;
use crate::observe::runners;
use crate::{Ctx, Error};

/// Refuses what does not wait at an engine, as far as the record says so: an engine is asked for nothing.
pub fn dry_run(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    if job.engine.is_some() && job.status.is_live() {
        return Ok(());
    }
    Err(Error::refused(format!("{id} is {}: nothing holds it back", job.status))
        .hint(format!("`tpu explain {} {}` says how it is", id.window, id.user)))
}

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
