//! The tmux server: sessions, windows, panes, and nothing about jobs.
//!
//! [`Tmux`] is the door; [`oneshot::OneShot`] is the real one: one `tmux` process per call, several
//! commands in one. Panes are addressed by the ids of one look (`%12`) and acted on only if the server
//! still agrees about whose they are: a target such as `=alice:42` may resolve to a window *named* `420run`
//! (seen on tmux 3.3a) and serves only to create.

mod commands;
mod formats;
pub mod oneshot;
mod quote;
mod reading;
mod version;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;

use bytes::Bytes;

use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::{JobId, LaunchToken};

/// What can go wrong with tmux.
#[derive(Debug, thiserror::Error)]
pub enum TmuxError {
    /// There is no `tmux` program in PATH.
    #[error("tmux is not installed (no `tmux` in PATH)")]
    Missing,
    /// The version is below [`MIN_VERSION`].
    #[error("{found} is too old: tmux 3.2 or later is needed")]
    TooOld {
        /// What `tmux -V` printed.
        found: String,
    },
    /// No server listens on the socket.
    #[error("no tmux server is running on {socket}")]
    NoServer {
        /// The socket's path or name.
        socket: String,
    },
    /// The server did not answer in time.
    #[error("tmux did not answer within {seconds} s ({command})")]
    TimedOut {
        /// What was asked.
        command: String,
        /// How long we waited.
        seconds: u64,
    },
    /// tmux refused the command.
    #[error("tmux {command}: {message}")]
    Failed {
        /// The first words of the command.
        command: String,
        /// What tmux said.
        message: String,
    },
    /// tmux cannot have a session of this name.
    #[error("'{name}' cannot be the name of a tmux session: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// What is wrong with it, and what to choose instead.
        reason: &'static str,
    },
    /// The pane is not what it was at the last look; nothing was done.
    #[error("pane {pane} is gone or belongs to something else now")]
    Changed {
        /// The pane.
        pane: String,
    },
}

/// The oldest tmux that is supported.
pub(crate) const MIN_VERSION: (u32, u32) = (3, 2);

/// What to read of one pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Pane id, `%12`.
    pub pane_id: String,
    /// How many lines before the visible ones: `Some(70)`, or the whole history if `None`.
    pub history: Option<u32>,
    /// Keep colours (`-e`).
    pub colours: bool,
}

/// What panes show, in the order in which they were asked for; `None` for a pane that is gone. Wrapped lines are
/// joined, blank lines at the end (the unused part of the screen) are left out, every line ends in a newline.
pub type Captured = Vec<Option<Bytes>>;

/// Reads panes after a look.
type ReadOn<'t> = dyn Fn(&[Capture]) -> Result<Captured, TmuxError> + Send + Sync + 't;

/// A look at everything, and whoever answered it: what has changed since is read there.
pub struct Look<'t> {
    /// What was seen.
    pub fact: TmuxFact,
    read: Box<ReadOn<'t>>,
}

impl Look<'_> {
    /// Reads panes that were seen, as [`Tmux::capture`] does.
    pub fn capture(&self, panes: &[Capture]) -> Result<Captured, TmuxError> {
        (self.read)(panes)
    }
}

/// Who is in a pane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupant {
    /// The program in its foreground.
    pub program: String,
    /// How many clients show its window now.
    pub watchers: u32,
}

/// A window to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWindow {
    /// Session, created before by [`Tmux::ensure_session`].
    pub session: String,
    /// Index. Opening fails if it is taken.
    pub index: u32,
    /// Window name.
    pub name: String,
    /// Where the program starts. Must exist: tmux itself would silently take the home directory instead.
    pub cwd: PathBuf,
    /// Program and arguments, run without a shell. Must not be empty.
    pub argv: Vec<String>,
    /// Value of the pane option `@tpu_job`.
    pub job: JobId,
    /// Value of the pane option `@tpu_launch`.
    pub launch: LaunchToken,
}

/// The door to one tmux server.
pub trait Tmux: Send + Sync {
    /// Says whether there is a tmux, and one that is new enough. Needs no server, and starts none.
    fn usable(&self) -> Result<(), TmuxError> {
        Ok(())
    }

    /// Looks at everything: one query, all panes of all sessions. Never an error: a server that is down
    /// and a question that failed are facts of their own.
    fn look(&self) -> TmuxFact;

    /// The same, for whoever reads on what has changed. A question is dear at a server with many windows, whatever it
    /// asks: this one is open until panes are read, once, or until it is dropped. A server that loses its last
    /// session meanwhile ends only then.
    fn look_to_read(&self) -> Look<'_> {
        Look { fact: self.look(), read: Box::new(|panes| self.capture(panes)) }
    }

    /// Makes sure that the session exists, with a home window 0 that is no job, and with the options
    /// that jobs rely on (`renumber-windows off`, `destroy-unattached off`, `history-limit` ≥ `history`,
    /// a wide default size). Starts a server if none runs, with those of the caller's variables that
    /// [are for one](tpu_core::model::variables::is_of_server). Never changes other sessions. The one thing it sets outside
    /// the session is the server's `exit-unattached off`: with it on, no server outlives its clients.
    fn ensure_session(&self, session: &str, history: u32) -> Result<(), TmuxError>;

    /// Opens a window with its pane options in the same tmux call; returns the pane as it then is.
    fn open_window(&self, window: &NewWindow) -> Result<PaneFact, TmuxError>;

    /// Reads panes in one call.
    fn capture(&self, panes: &[Capture]) -> Result<Captured, TmuxError>;

    /// Reads one pane as [`Tmux::capture`] does, if it is still what and where it was at a look: for one
    /// pane, another look at everything would be too dear. `Changed` if not.
    fn capture_known(
        &self,
        pane: &PaneFact,
        server_pid: u32,
        capture: &Capture,
    ) -> Result<Bytes, TmuxError> {
        let changed = || TmuxError::Changed { pane: pane.pane_id.clone() };
        let is_it = |seen: &PaneFact| {
            seen.pane_id == pane.pane_id
                && seen.launch == pane.launch
                && (&seen.session, seen.window_index) == (&pane.session, pane.window_index)
        };
        match self.look() {
            TmuxFact::Up { place, panes }
                if place.server_pid == server_pid && panes.iter().any(is_it) =>
            {
                let read = self.capture(std::slice::from_ref(capture))?;
                read.into_iter().next().flatten().ok_or_else(changed)
            }
            TmuxFact::Up { .. } | TmuxFact::Down { .. } => Err(changed()),
            TmuxFact::Unknown { reason } => {
                Err(TmuxError::Failed { command: "capture-pane".to_owned(), message: reason })
            }
        }
    }

    /// A number that changes when a window comes or goes, or when the job in one ends. Says less than
    /// [`Tmux::look`], and costs less.
    fn wake_mark(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match self.look() {
            TmuxFact::Up { place, panes } => {
                (place.server_pid, place.server_start).hash(&mut hasher);
                for pane in &panes {
                    (&pane.pane_id, pane.dead, pane.exit).hash(&mut hasher);
                }
            }
            TmuxFact::Down { .. } => 0_u8.hash(&mut hasher),
            TmuxFact::Unknown { reason } => (1_u8, reason).hash(&mut hasher),
        }
        hasher.finish()
    }

    /// Closes the pane, and with its last pane its window, if it is still the one: server and pane are those of `pane`,
    /// and so is `@tpu_launch`. A pane without a launch is known by its place, and must be there still. `Changed` if
    /// not: the server looks in the same command, so nobody can come between.
    fn close_pane(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError>;

    /// The process id of the pane's own program, if the pane is still the one as for [`Tmux::close_pane`]; `Changed`
    /// if not, and `None` if that program has ended.
    fn process(&self, pane: &PaneFact, server_pid: u32) -> Result<Option<u32>, TmuxError>;

    /// What runs in each pane and how many clients look at its window now, by the pane's id. For a person
    /// who decides about a window; nothing is concluded from it.
    fn occupants(&self) -> Result<BTreeMap<String, Occupant>, TmuxError>;

    /// Closes a pane as [`Tmux::close_pane`] does, if no client looks at its window: the server checks that
    /// in the same command.
    fn close_unwatched(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError>;

    /// Arguments that attach to the pane's window from outside tmux, or switch the client inside it
    /// (`inside` is the client's `$TMUX`); to be run with the terminal, by the caller.
    fn attach_argv(&self, pane: &PaneFact, inside: Option<&str>) -> Vec<String>;

    /// Shows a line to everybody who looks at the session of exactly this name, as it stands: nothing in it is expanded.
    /// Returns how many do. What has no terminals shows it to nobody.
    fn tell(&self, session: &str, line: &str) -> Result<usize, TmuxError> {
        let _ = (session, line);
        Ok(0)
    }

    /// Whether the server with this process id is there. Cheaper than a look.
    fn is_there(&self, server_pid: u32) -> bool {
        has_seen(&self.look(), server_pid)
    }

    /// Ends the server with everything in it, if its pid is still `server_pid`. Only for whoever started
    /// the server for itself alone, as the demo does.
    fn end_server(&self, server_pid: u32) -> Result<(), TmuxError>;
}

/// Whether the server with this process id has answered a look.
fn has_seen(fact: &TmuxFact, server_pid: u32) -> bool {
    matches!(fact, TmuxFact::Up { place, .. } if place.server_pid == server_pid)
}
