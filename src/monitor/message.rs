//! What can happen to the screen, and what the screen can ask for. Tests send these.

use super::keys::{Command, Key};
use super::pane::PaneText;
use crate::model::ids::{JobId, UserName};
use crate::model::view::Snapshot;

/// What went wrong, and what to do about it, in words for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What and where.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem with a remedy.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }
}

/// Whose jobs are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// One user, or everybody.
    pub user: Option<UserName>,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Message {
    /// A key was pressed.
    Key(Key),
    /// A person asked for something. Keys become this; tests send it directly.
    Do(Command),
    /// Text was pasted: never read as commands.
    Paste(String),
    /// The terminal has this many columns and rows now.
    Resize(u16, u16),
    /// Time went on.
    Tick,
    /// A look at the jobs succeeded.
    Looked(Box<Snapshot>),
    /// A look failed; what is shown is old from now on.
    LookFailed(Problem),
    /// The end of a pane, as asked for by [`Effect::Pane`]. `None`: the window is gone.
    Pane(JobId, Result<Option<PaneText>, Problem>),
    /// The whole output, as asked for by [`Effect::Log`]. `None`: the window is gone.
    Log(JobId, Result<Option<PaneText>, Problem>),
    /// An action is done.
    Done {
        /// Which one.
        ticket: Ticket,
        /// The result in words.
        toast: String,
    },
    /// An action failed.
    Failed {
        /// Which one.
        ticket: Ticket,
        /// Why, and what to do.
        problem: Problem,
    },
}

/// The number of an action under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Something to be done outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Look at the jobs now.
    Look,
    /// Read the last lines of a job's pane.
    Pane {
        /// Whose pane.
        job: JobId,
        /// How many lines.
        lines: u32,
    },
    /// Read all of a job's output.
    Log {
        /// Whose output.
        job: JobId,
    },
    /// Do something to jobs.
    Act {
        /// The number under which the answer comes back.
        ticket: Ticket,
        /// What.
        act: Act,
    },
    /// Leave the terminal to the job's tmux window for a while.
    Attach {
        /// The number under which the answer comes back.
        ticket: Ticket,
        /// Whose window.
        job: JobId,
    },
    /// Stop this program until it is continued (Ctrl-Z).
    Suspend,
    /// Draw every cell again.
    Redraw,
}

/// An action on jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Continue a job from its checkpoint.
    Resume(JobId),
    /// Start a job again from scratch.
    Rerun(JobId),
    /// Stop jobs.
    Kill(Vec<JobId>),
    /// Archive a user's ended jobs.
    Clean(UserName),
    /// Give a job a tag; an empty one takes it away.
    Tag(JobId, String),
}

impl Act {
    /// The action in words, while it is under way.
    pub fn progressive(&self) -> String {
        match self {
            Self::Resume(job) => format!("resuming {}", job.window),
            Self::Rerun(job) => format!("rerunning {}", job.window),
            Self::Kill(jobs) => {
                let windows: Vec<_> = jobs.iter().map(|job| job.window.to_string()).collect();
                format!("killing {}", windows.join(", "))
            }
            Self::Clean(user) => format!("cleaning {user}"),
            Self::Tag(job, _) => format!("tagging {}", job.window),
        }
    }
}
