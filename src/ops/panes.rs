//! What the window of a job shows now.

use crate::model::facts::TmuxFact;
use crate::model::ids::{JobId, LaunchToken, UserName, WindowId};
use crate::plan::place::{self, Window};
use crate::tmux::{Capture, NewWindow};

use super::ctx::{job_of, user_of};
use super::snapshot::since_launch;
use super::{Ctx, Error};

/// Reads a job's pane: the screen and `lines` of history above it, or all of it. `None` if its window is
/// gone or lives where we cannot look.
pub fn read(
    ctx: &Ctx,
    id: &JobId,
    lines: Option<u32>,
    colours: bool,
) -> Result<Option<Vec<u8>>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let session = &user_of(&data, &id.user)?.tmux_name;
    let tmux = ctx.tmux.look();
    if let TmuxFact::Unknown { reason } = &tmux {
        return Err(Error::unreachable(format!("tmux cannot be asked: {reason}"))
            .hint("what is shown is as old as the last answer"));
    }
    let Window::Here(pane) = place::find(job, session, &tmux) else { return Ok(None) };
    let capture = Capture { pane_id: pane.pane_id.clone(), history: lines, colours };
    let text = ctx.tmux.capture(&[capture])?.into_iter().next().flatten();
    Ok(text.map(|text| since_launch(job, &text).to_vec()))
}

/// Opens a window for a program of ours that is no job, in a session that no user has. It carries the
/// marks of a window of ours all the same, so that nobody takes it for a person's.
pub fn open_own(ctx: &Ctx, session: &str, index: u32, argv: Vec<String>) -> Result<(), Error> {
    let window = NewWindow {
        session: session.to_owned(),
        index,
        name: session.to_owned(),
        cwd: ctx.store.paths().dir().to_owned(),
        argv,
        job: JobId::new(UserName::from(session), WindowId(index)),
        launch: LaunchToken::new(ctx.random.hex(16)),
    };
    ctx.tmux.open_window(&window)?;
    Ok(())
}
