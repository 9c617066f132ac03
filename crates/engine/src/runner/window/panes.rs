//! What the window of a job shows now, for whoever reads it over and over.

use crate::runner::{RunError, RunRef};
use tpu_core::classify;
use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::job::Job;
use tpu_system::effects::Effects;
use tpu_system::tmux::Capture;

use super::place::{self, Window};

/// Where a pane was found.
#[derive(Clone, Debug)]
pub struct Known {
    server_pid: u32,
    pane: PaneFact,
}

/// Reads the pane of a run: the screen and `lines` of history above it, or all of it. `None` if its window is
/// gone or lives where we cannot look. The pane of the last reading is asked for by itself, and only if it is
/// another by now are all looked through.
pub fn read_again(
    effects: &Effects,
    RunRef { job, session }: RunRef<'_>,
    (lines, colours): (Option<u32>, bool),
    known: &mut Option<Known>,
) -> Result<Option<Vec<u8>>, RunError> {
    let capture_of =
        |pane: &PaneFact| Capture { pane_id: pane.pane_id.clone(), history: lines, colours };
    // Without a mark of ours only a look can tell that a window has not been moved.
    let is_it = |known: &&Known| place::is_window_of(job, session, &known.pane);
    if let Some(Known { server_pid, pane }) = known.as_ref().filter(is_it) {
        // Where it is gone, or another by now, or tmux is in trouble, the look tells.
        if let Ok(text) = effects.tmux.capture_known(pane, *server_pid, &capture_of(pane)) {
            return Ok(Some(since_launch(job, &text).to_vec()));
        }
    }
    *known = None;
    let tmux = effects.tmux.look();
    if let TmuxFact::Unknown { reason } = &tmux {
        return Err(RunError::unreachable(
            format!("tmux cannot be asked: {reason}"),
            "what is shown is as old as the last answer",
        ));
    }
    let window = place::find(job, session, &tmux, &*effects.procs);
    let Window::Here(pane) = window else { return Ok(None) };
    let text = effects.tmux.capture(&[capture_of(pane)])?.into_iter().next().flatten();
    if let TmuxFact::Up { place, .. } = &tmux {
        *known = Some(Known { server_pid: place.server_pid, pane: pane.clone() });
    }
    Ok(text.map(|text| since_launch(job, &text).to_vec()))
}

/// The text that belongs to this launch of the job.
pub fn since_launch<'a>(job: &Job, text: &'a [u8]) -> &'a [u8] {
    match &job.launch {
        Some(launch) => classify::after_launch(text, launch.token.as_str()),
        None => text,
    }
}
