//! What is known of one run, whatever runs it: a window with its workers, or a job of an engine such as Slurm.

use std::borrow::Cow;

use super::{ErrorKind, Evidence, Source};
use crate::model::exit::Exit;
use crate::model::time::Timestamp;

/// How a run is, by the word of what runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// An engine has it and has not started it yet.
    Pending,
    /// It is being started: its place is being made ready.
    Starting,
    /// It is there. What its program does, its output tells.
    Running,
    /// It is over.
    Ended,
    /// It is not there, for certain.
    Gone,
    /// It lives where we cannot look.
    Elsewhere,
    /// The question could not be answered.
    Unknown,
}

/// What one look says about one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFact {
    /// How it is.
    pub state: RunState,
    /// How its command has ended, if that was recorded.
    pub exit: Option<Exit>,
    /// Why it ended, in the runner's own judgement. A run that is gone without one is lost.
    pub cause: Option<ErrorKind>,
    /// Whether somebody has stopped it where it runs, as what runs it says; the reason says who.
    pub is_cancelled: bool,
    /// Why it is so, in words: why it waits, why it is gone, why nobody knows.
    pub reason: Option<Cow<'static, str>>,
    /// How often what runs it has begun it anew by itself. All else is said of the newest of its lives.
    pub restarts: u32,
    /// When it is expected to start.
    pub expected: Option<Timestamp>,
    /// When an engine began to carry it out, if it says so; while it waits it has not.
    pub began: Option<Timestamp>,
    /// The machines that it runs on, as far as its runner names them.
    pub nodes: Vec<String>,
    /// Whether what it prints says nothing yet of how it will end: it is coming to its end, which what runs it will
    /// name, or it has printed since this was said of it.
    pub text_waits: bool,
    /// When it was last heard, if its runner knows.
    pub last_output: Option<Timestamp>,
    /// The runner's own word for how it is; the `rule` of the evidence.
    pub raw: Cow<'static, str>,
    /// Whose word this is: [`Source::Exit`] for what our own launcher and its window show, [`Source::Engine`].
    pub source: Source,
}

/// The word of our own launcher for a run whose command has not begun, because something is set up for it; the reason says
/// how far that is.
pub const SETTING_UP: &str = "set-up";

/// The word of whoever copies the code of a run that has not begun; the reason says how far that is.
pub const COPYING: &str = "copying";

/// The word of our own launcher for a run whose window somebody has closed, and of which nothing is left.
pub const WINDOW_CLOSED: &str = "window-closed";

/// The word of our own launcher for a run whose window is gone, and whose workers have not been asked whether it goes on.
pub const WORKERS_UNASKED: &str = "workers-unasked";

/// The word of our own launcher for a run that goes on without its window; the reason says where.
pub const WITHOUT_WINDOW: &str = "without-window";

/// The word of our own launcher for a run at work whose log takes nothing more; the reason says why.
pub const LOG_UNWRITTEN: &str = "log-unwritten";

impl RunFact {
    /// A run of our own launcher, of which no more is known than its state and the word for it.
    pub fn new(state: RunState, raw: &'static str) -> Self {
        Self {
            state,
            exit: None,
            cause: None,
            is_cancelled: false,
            reason: None,
            restarts: 0,
            expected: None,
            began: None,
            nodes: Vec::new(),
            text_waits: false,
            last_output: None,
            raw: Cow::Borrowed(raw),
            source: Source::Exit,
        }
    }

    /// A run of an engine, with the engine's own word for how it is, and why.
    pub fn of_engine(state: RunState, raw: impl Into<String>, reason: Option<String>) -> Self {
        Self {
            reason: reason.map(Cow::Owned),
            source: Source::Engine,
            raw: Cow::Owned(raw.into()),
            ..Self::new(state, "")
        }
    }

    /// A run whose command is known to have ended in this way.
    pub fn ended(exit: Exit) -> Self {
        Self { exit: Some(exit), ..Self::new(RunState::Ended, "exit-code") }
    }

    /// Whether it is there, begun or not.
    pub fn is_there(&self) -> bool {
        matches!(self.state, RunState::Pending | RunState::Starting | RunState::Running)
    }

    /// Whether nothing of it is left where it ran, for certain. One of which nobody knows is not over.
    pub fn is_over(&self) -> bool {
        matches!(self.state, RunState::Ended | RunState::Gone)
    }

    /// The fact as evidence.
    pub fn evidence(&self) -> Evidence {
        Evidence::fact(self.source, self.raw.clone(), self.reason.clone().unwrap_or_default())
    }

    /// The reason, for sentences that need one.
    pub fn why(&self) -> &str {
        self.reason.as_deref().unwrap_or("nobody says why")
    }
}
