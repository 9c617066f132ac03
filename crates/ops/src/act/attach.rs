//! How to get to a job where it runs.

use tpu_core::model::ids::JobId;

use super::missed;
use crate::base::ctx::job_of;
use crate::observe::runners;
use crate::{Ctx, Error};

/// The command that opens a shell on a node of a job; to be run with the terminal.
pub fn shell(ctx: &Ctx, id: &JobId, node: Option<&str>) -> Result<Vec<String>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    Ok(runners::of(ctx, job).shell(runners::run(&data, job)?, node)?)
}

/// The command that shows a job; to be run with the terminal. Where its window is gone and it goes on on workers, one is
/// opened again.
pub fn argv(ctx: &Ctx, id: &JobId) -> Result<Vec<String>, Error> {
    missed::reattach(ctx, id)?;
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    Ok(runners::of(ctx, job).attach(runners::run(&data, job)?)?)
}
