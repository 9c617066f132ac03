//! Starts a daemon in a tmux session of its own, and ends the one that runs.

use std::time::Duration;

use tpu_core::model::facts::TmuxFact;
use tpu_engine::runner::window::HISTORY;
use tpu_system::sys::procs;

use crate::base::watch::{self, Note};
use crate::base::{environment, original};
use crate::observe::panes;
use crate::{Ctx, Error};

/// The session in which it runs.
pub const SESSION: &str = "tpu-daemon";

/// How long it may take to begin, and to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often we look.
const POLL: Duration = Duration::from_millis(20);

/// What a daemon is started with.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// The global flags that it is to have.
    pub flags: Vec<String>,
    /// The words by which it answers over HTTP as well, if it is to.
    pub serving: Option<Vec<String>>,
    /// Whether it acts also while the original's monitor does.
    pub beside_original: bool,
}

/// Starts the daemon in the background, and waits until it has turned once. Refused if one runs.
pub fn start(ctx: &Ctx, how: &How) -> Result<Note, Error> {
    ctx.data()?;
    // Of several who start one at once, each would open a window.
    ctx.store.starting_monitor(&watch::place(ctx), || start_alone(ctx, how))?
}

/// Refuses where a daemon runs at this place.
pub fn is_free(ctx: &Ctx) -> Result<(), Error> {
    match watch::running(ctx) {
        Some(note) => Err(Error::refused(format!("the daemon runs already: process {}", note.pid))
            .hint("`tpu daemon status` shows how it is, `tpu daemon stop` ends it")),
        None => Ok(()),
    }
}

/// Refuses where a daemon runs at this place, and where one that acts may not begin.
pub fn may_start(ctx: &Ctx, how: &How) -> Result<(), Error> {
    is_free(ctx)?;
    if how.beside_original || original::is_insisted(ctx) {
        return Ok(());
    }
    original::may_act_beside(ctx, &*ctx.data()?)
}

fn start_alone(ctx: &Ctx, how: &How) -> Result<Note, Error> {
    may_start(ctx, how)?;
    ctx.tmux.ensure_session(SESSION, HISTORY)?;
    let index = free_index(&ctx.tmux.look());
    panes::open_own(ctx, SESSION, index, argv(ctx, how)?)?;
    let deadline = ctx.clock.monotonic() + PATIENCE;
    while ctx.clock.monotonic() < deadline {
        if let Some(note) = watch::running(ctx) {
            return Ok(note);
        }
        ctx.clock.sleep(POLL);
    }
    let words = ["daemon".to_owned(), "run".to_owned()];
    let words: Vec<String> =
        words.into_iter().chain(how.serving.iter().flatten().cloned()).collect();
    let hint = format!("`tpu {}` shows what is wrong", words.join(" "));
    Err(Error::failed("the daemon did not begin").hint(hint))
}

/// The first window behind those that are there.
fn free_index(tmux: &TmuxFact) -> u32 {
    match tmux {
        TmuxFact::Up { panes, .. } => {
            let ours = panes.iter().filter(|pane| pane.session == SESSION);
            ours.map(|pane| pane.window_index).max().map_or(1, |index| index + 1)
        }
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => 1,
    }
}

/// `env NAME=VALUE… tpu FLAGS… daemon run`: a new window has the environment of the tmux server, which
/// may know nothing of what this `tpu` was started with.
fn argv(ctx: &Ctx, how: &How) -> Result<Vec<String>, Error> {
    const MORE: [&str; 7] =
        ["HOME", "TZ", "TMUX_TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "FAILPOINTS", "LANG"];
    let more = MORE.iter().filter_map(|name| {
        let value = ctx.env.var_os(name)?;
        Some(((*name).into(), value.to_owned()))
    });
    let mut argv = vec!["env".to_owned()];
    for (name, value) in environment::kept(ctx).into_iter().chain(more) {
        // What is no text cannot stand on tmux's command line; nothing that tpu reads is.
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
            argv.push(format!("{name}={value}"));
        }
    }
    let text = |path: &std::path::Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| {
            Error::state(format!("this path is no UTF-8: {}", path.display()))
                .hint("keep data.json in a directory with a plain name (--data FILE)")
        })
    };
    argv.push(text(&ctx.tpu)?);
    argv.extend(["--data".to_owned(), text(ctx.store.paths().data())?]);
    argv.extend(ctx.tmux_socket.iter().flat_map(|s| ["--tmux-socket".to_owned(), s.clone()]));
    argv.extend(how.flags.iter().cloned());
    argv.extend(["daemon".to_owned(), "run".to_owned()]);
    let insists = how.beside_original || original::is_insisted(ctx);
    argv.extend(insists.then(|| "--beside-original".to_owned()));
    argv.extend(how.serving.iter().flatten().cloned());
    Ok(argv)
}

/// Refuses where no daemon runs at this place.
pub fn may_stop(ctx: &Ctx) -> Result<(), Error> {
    if watch::running(ctx).is_some() { Ok(()) } else { Err(none_runs()) }
}

fn none_runs() -> Error {
    Error::refused("the daemon does not run").hint("`tpu daemon start` starts it")
}

/// Ends the daemon of this place, and waits until it has ended. Refused if none runs.
pub fn stop(ctx: &Ctx) -> Result<u32, Error> {
    let Some(process) = watch::ask_to_end(ctx)? else {
        return Err(none_runs());
    };
    let deadline = ctx.clock.monotonic() + PATIENCE;
    while procs::is_alive(process.pid, process.start) {
        if ctx.clock.monotonic() >= deadline {
            return Err(Error::failed(format!("process {} does not end", process.pid))
                .hint(format!("`kill -9 {}` does no harm: the next daemon goes on", process.pid)));
        }
        ctx.clock.sleep(POLL);
    }
    Ok(process.pid)
}
