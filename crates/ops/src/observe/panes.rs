//! What is shown of a job now, and windows of ours that belong to no job.

use tpu_core::model::ids::{JobId, JobNumber, LaunchToken, UserName};
use tpu_system::tmux::NewWindow;

use super::runners;
use crate::base::ctx::job_of;
use crate::{Ctx, Error};

pub use tpu_engine::runner::window::panes::Known;

/// Reads what is shown of a job, for whoever reads it over and over and keeps `known` in between: that and so many
/// lines above it, or all of it, with or without colours. `None` if nothing shows it, or where we cannot look.
pub fn read_again(
    ctx: &Ctx,
    id: &JobId,
    how: (Option<u32>, bool),
    known: &mut Option<Known>,
) -> Result<Option<Vec<u8>>, Error> {
    let data = ctx.data()?;
    runners::shown_again(ctx, &data, job_of(&data, id)?, how, known)
}

/// Opens a window for a program of ours that is no job, in a session that no user has. It carries the
/// marks of a window of ours all the same, so that nobody takes it for a person's. Returns the mark of its launch.
pub fn open_own(
    ctx: &Ctx,
    session: &str,
    index: u32,
    argv: Vec<String>,
) -> Result<LaunchToken, Error> {
    let launch = LaunchToken::new(ctx.random.hex(16));
    let window = NewWindow {
        session: session.to_owned(),
        index,
        name: session.to_owned(),
        cwd: ctx.store.paths().dir().to_owned(),
        argv,
        job: JobId::new(UserName::from(session), JobNumber(index)),
        launch: launch.clone(),
    };
    ctx.tmux.open_window(&window)?;
    Ok(launch)
}
