//! Opens a window again for a run whose command goes on on workers: its launcher finds it there, and starts nothing.

use std::io;
use std::path::{Path, PathBuf};

use tpu_core::model::facts::{Place, TmuxFact};
use tpu_system::effects::Effects;
use tpu_system::store::Disk;
use tpu_system::tmux::NewWindow;

use super::{HISTORY, beside, launcher};
use crate::runner::{RunError, RunRef};

/// The word by which a launcher knows that its job has begun before.
const AGAIN: &str = "again";

/// The ending of the log of the windows before.
const BEFORE: &str = "before";

/// A window that was opened again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reopened {
    /// On which server.
    pub place: Place,
    /// Whether the last one that was opened again ended before a worker was heard in it.
    pub was_unheard: bool,
}

/// Opens a window for the launch of a job: with its number, if nobody else has a window there.
pub fn reopen(
    effects: &Effects,
    RunRef { job, session }: RunRef<'_>,
    name: &str,
) -> Result<Reopened, RunError> {
    let (id, disk) = (job.id(), effects.store.disk());
    let dir = effects.store.paths().job(&id);
    let launch = job.launch.as_ref().filter(|launch| {
        // The directory may be that of a later job of this number.
        beside::is_of_launch(effects, &id, launch.token.as_str())
    });
    let script = dir.join(launcher::SCRIPT).into_os_string().into_string().ok();
    let (Some(launch), Some(script)) = (launch, script) else {
        let what = format!("nothing is left here of what was launched as {id}");
        return Err(RunError::refused(what, format!("tpu kill w={} {}", id.window, id.user)));
    };
    launcher::renew(effects, &dir)?;
    effects.tmux.ensure_session(session, HISTORY)?;
    let window = NewWindow {
        session: session.to_owned(),
        index: index(effects, session, id.window.0),
        name: name.to_owned(),
        cwd: dir,
        argv: vec!["/bin/bash".to_owned(), script, AGAIN.to_owned()],
        job: id.clone(),
        launch: launch.token.clone(),
    };
    // Its workers say everything again, from its beginning.
    let log = job.log_dir.as_ref().map(|dir| PathBuf::from(dir).join("output.log"));
    let moved = log.map(|log| (log.with_extension(BEFORE), log));
    if let Some((before, log)) = &moved {
        set_aside(&**disk, before, log)?;
    }
    beside::forget_closed(effects, &id);
    let was_unheard = beside::record_reopened(effects, &id)?;
    effects.tmux.open_window(&window).inspect_err(|_| {
        if let Some((before, log)) = &moved {
            drop(disk.rename(before, log));
        }
    })?;
    match effects.tmux.look() {
        TmuxFact::Up { place, .. } => Ok(Reopened { place, was_unheard }),
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => Err(RunError::unreachable(
            format!("the window of {id} was opened again, and tmux does not answer any more"),
            "look again: tpu check",
        )),
    }
}

/// The number of a job, or one behind all others where somebody has a window of that number.
fn index(effects: &Effects, session: &str, own: u32) -> u32 {
    let TmuxFact::Up { panes, .. } = effects.tmux.look() else { return own };
    let taken = || {
        let of_session = panes.iter().filter(|pane| pane.session == session);
        of_session.map(|pane| pane.window_index)
    };
    if taken().any(|index| index == own) { taken().max().map_or(own, |last| last + 1) } else { own }
}

/// Keeps the longer of a log and of what was kept of it before: the other one was heard of in part.
fn set_aside(disk: &dyn Disk, before: &Path, log: &Path) -> Result<(), RunError> {
    let size = |path: &Path| disk.stat(path).map_or(0, |stat| stat.size);
    let done = if size(before) > size(log) { disk.remove(log) } else { disk.rename(log, before) };
    match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RunError::state(
            format!("{} cannot be set aside: {error}", log.display()),
            "check free space and permissions there, then look again: tpu check",
        )),
        Ok(()) | Err(_) => Ok(()),
    }
}
