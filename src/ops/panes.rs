//! What the window of a job shows now.

use crate::model::facts::TmuxFact;
use crate::model::ids::JobId;
use crate::plan::place::{self, Window};
use crate::tmux::Capture;

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
