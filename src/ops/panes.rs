//! What the window of a job shows now.

use crate::model::facts::{PaneFact, TmuxFact};
use crate::model::ids::{JobId, JobNumber, LaunchToken, UserName};
use crate::runner::window::place::{self, Window};
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
    read_again(ctx, id, (lines, colours), &mut None)
}

/// Where a pane was found.
#[derive(Clone, Debug)]
pub struct Known {
    server_pid: u32,
    pane: PaneFact,
}

/// Reads a job's pane as [`read`] does, for whoever reads it over and over: the pane of the last reading is
/// asked for by itself, and only if it is another by now are all looked through.
pub fn read_again(
    ctx: &Ctx,
    id: &JobId,
    (lines, colours): (Option<u32>, bool),
    known: &mut Option<Known>,
) -> Result<Option<Vec<u8>>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let session = &user_of(&data, &id.user)?.tmux_name;
    let capture_of =
        |pane: &PaneFact| Capture { pane_id: pane.pane_id.clone(), history: lines, colours };
    // Without a mark of ours only a look can tell that a window has not been moved.
    let is_it = |known: &&Known| place::is_window_of(job, session, &known.pane);
    if let Some(Known { server_pid, pane }) = known.as_ref().filter(is_it) {
        // Where it is gone, or another by now, or tmux is in trouble, the look tells.
        if let Ok(text) = ctx.tmux.capture_known(pane, *server_pid, &capture_of(pane)) {
            return Ok(Some(since_launch(job, &text).to_vec()));
        }
    }
    *known = None;
    let tmux = ctx.tmux.look();
    if let TmuxFact::Unknown { reason } = &tmux {
        return Err(Error::unreachable(format!("tmux cannot be asked: {reason}"))
            .hint("what is shown is as old as the last answer"));
    }
    let Window::Here(pane) = place::find(job, session, &tmux) else { return Ok(None) };
    let text = ctx.tmux.capture(&[capture_of(pane)])?.into_iter().next().flatten();
    if let TmuxFact::Up { place, .. } = &tmux {
        *known = Some(Known { server_pid: place.server_pid, pane: pane.clone() });
    }
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
        job: JobId::new(UserName::from(session), JobNumber(index)),
        launch: LaunchToken::new(ctx.random.hex(16)),
    };
    ctx.tmux.open_window(&window)?;
    Ok(())
}
