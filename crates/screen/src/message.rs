//! What can happen to the screen, and what the screen can ask for. Tests send these.

use std::collections::HashMap;

use super::keys::Key;
use super::pane::PaneText;
use tpu_core::model::curve::Curves;
use tpu_core::model::entry::Priority;
use tpu_core::model::ids::{JobId, QueueName, TargetName, UserName};
use tpu_core::model::sweep::Sweep;
use tpu_core::model::time::Zone;
use tpu_core::model::view::{Snapshot, Whose};
use tpu_core::model::words::words;
use tpu_core::plan::stats::By;
use tpu_ops::act::board::Board;
use tpu_ops::act::hosts::figures::Figures;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::front::precedent::Precedent;
use tpu_ops::observe::journal::Event;
use tpu_ops::observe::stats::StatsReport;
use tpu_ops::waiting::preview::Plan;
use tpu_ops::waiting::queue::WaitingOutlook;

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
    /// Of one user, of several, or of everybody.
    pub whose: Whose,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Message {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted: never read as commands.
    Paste(String),
    /// The mouse did something.
    Mouse(Mouse),
    /// The terminal has this many columns and rows now.
    Resize(u16, u16),
    /// Time went on.
    Tick,
    /// A look at the jobs succeeded.
    Looked(Box<Snapshot>),
    /// A look failed; what is shown is old from now on.
    LookFailed(Problem),
    /// What the line above the bottom line says, in fewer and fewer words, the longest version first; empty where it says
    /// nothing.
    Caption(Vec<String>),
    /// The end of a pane, as asked for by [`Effect::Pane`]. `None`: the window is gone.
    Pane(JobId, Result<Option<PaneText>, Problem>),
    /// The whole output, as asked for by [`Effect::Log`]. `None`: the window is gone.
    Log(JobId, Result<Option<PaneText>, Problem>),
    /// What an [`Effect::Ask`] was answered.
    Answer(Ask, Result<Box<Answer>, Problem>),
    /// An action is done.
    Done {
        /// Which one.
        ticket: Ticket,
        /// The result in words.
        toast: String,
        /// The job that it has begun or put into a queue, if it is one.
        began: Option<JobId>,
    },
    /// An action failed.
    Failed {
        /// Which one.
        ticket: Ticket,
        /// Why, and what to do.
        problem: Problem,
    },
}

/// What the mouse did, at a column and a row of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    /// Column, from 0.
    pub x: u16,
    /// Row, from 0.
    pub y: u16,
    /// What.
    pub what: MouseDid,
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseDid {
    /// The left button went down.
    Press,
    /// The mouse moved with the button down.
    Drag,
    /// The button went up.
    Release,
    /// The wheel turned by so many notches; down is positive.
    Wheel(i32),
}

/// Something to be read; the answer changes nothing but what is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// All targets.
    Targets,
    /// How much machines and the jobs on them have to do.
    Figures,
    /// Why each entry of the queue does not begin, and when it is expected to.
    Queue,
    /// What has happened.
    Events,
    /// What will happen by itself.
    Plan,
    /// What ran, counted.
    Usage(UsageQuestion),
    /// The loss of a job's lineage and what it measures beside, from its logs.
    Curves(JobId),
    /// What the form of a new run of this user may be filled with.
    Choices(UserName),
    /// What a job was started with, for a form.
    Precedent(JobId),
    /// What a file says of its job, for the form of this user.
    FileOfForm(UserName, String),
    /// The lines that were typed on this user's screen, in earlier sessions and in others.
    Remembered(Option<UserName>),
    /// Why a job has the status that it has.
    Explain(JobId),
    /// What an act of a key would do.
    Would(Box<Act>),
    /// What a typed command says that changes nothing: `kill 7 --dry-run`.
    Say(Vec<String>),
}

/// What was read.
#[derive(Clone, Debug)]
pub enum Answer {
    /// All targets.
    Targets(Board),
    /// What machines said last.
    Figures(Figures),
    /// Why each entry of the queue does not begin, and when it is expected to.
    Queue(HashMap<JobId, WaitingOutlook>),
    /// The newest events, oldest first.
    Events(Vec<Event>),
    /// What will happen by itself.
    Plan(Plan),
    /// What ran, counted.
    Usage(Box<StatsReport>),
    /// The loss of a lineage and what it measures beside.
    Curves(Curves),
    /// For the form.
    Choices(Choices),
    /// What a job was started with, or what a file says of one.
    Precedent(Box<Precedent>),
    /// Lines that were typed, oldest first.
    Remembered(Vec<String>),
    /// In words.
    Text(String),
}

/// How far back is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Seven days.
    Week,
    /// Thirty days.
    #[default]
    Month,
    /// Ninety days.
    Quarter,
    /// As far as anything is known.
    Everything,
}

words! {
    /// In words for the border.
    Reach {
        Week: "last 7 days",
        Month: "last 30 days",
        Quarter: "last 90 days",
        Everything: "all time",
    }
}

impl Reach {
    /// How many days; `None` for all.
    pub fn days(self) -> Option<i64> {
        match self {
            Self::Week => Some(7),
            Self::Month => Some(30),
            Self::Quarter => Some(90),
            Self::Everything => None,
        }
    }

    /// The next longer one; after the longest the shortest.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Week => Self::Month,
            Self::Month => Self::Quarter,
            Self::Quarter => Self::Everything,
            Self::Everything => Self::Week,
        }
    }

    /// The next shorter one; before the shortest the longest.
    #[must_use]
    pub fn before(self) -> Self {
        self.next().next().next()
    }
}

/// What is to be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageQuestion {
    /// Whose.
    pub whose: Whose,
    /// What rows stand for.
    pub by: By,
    /// How far back.
    pub reach: Reach,
    /// By whose clock hours, days and weeks are told.
    pub zone: Zone,
}

/// What a field of the form may be filled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The text for the field.
    pub value: String,
    /// What that is.
    pub note: String,
}

/// Everything that the proposals of the form are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Targets with how they are.
    pub targets: Vec<Proposal>,
    /// Slots with their paths.
    pub dirs: Vec<Proposal>,
    /// Config aliases with what they stand for.
    pub aliases: Vec<Proposal>,
    /// Rules with what they do.
    pub rules: Vec<Proposal>,
    /// Queues with what holds for them.
    pub queues: Vec<Proposal>,
    /// How several values become several jobs.
    pub sweeps: Vec<Proposal>,
}

/// What became of an act.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// In words.
    pub words: String,
    /// The job that it has begun or put into a queue, if it is one.
    pub began: Option<JobId>,
}

impl From<String> for Did {
    fn from(words: String) -> Self {
        Self { words, began: None }
    }
}

/// What takes the terminal for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Door {
    /// A job's tmux window.
    Window(JobId),
    /// A command of `tpu` that needs the terminal.
    Command(Vec<String>),
    /// The output of a job, in the person's pager.
    Pager(JobId),
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
    /// Do things to jobs side by side; each is answered under its own number.
    Act(Vec<(Ticket, Act)>),
    /// Read something.
    Ask(Ask),
    /// Leave the terminal to something else for a while.
    Leave {
        /// The number under which the answer comes back.
        ticket: Ticket,
        /// What takes it.
        door: Door,
    },
    /// Look at other people's jobs from now on.
    Scope(Scope),
    /// Take the mouse, or release it.
    Mouse(bool),
    /// Remember a line that was typed, for later sessions of this user's screen.
    Remember(Option<UserName>, String),
    /// Put a text where the person can paste it from.
    Copy(String),
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
    /// Take out of the queue what waits, then stop jobs.
    TakeOut {
        /// What waits: what has begun meanwhile is left alone.
        waiting: Vec<JobId>,
        /// The jobs.
        kill: Vec<JobId>,
    },
    /// Let what waits wait until somebody says otherwise.
    Hold(Vec<JobId>),
    /// Let it begin when its turn comes.
    Release(Vec<JobId>),
    /// Make it more or less urgent.
    SetPriority(JobId, Priority),
    /// Let it begin before all others of its priority.
    MoveFirst(Vec<JobId>),
    /// Archive a user's ended jobs.
    Clean(UserName),
    /// Give a job a tag; an empty one takes it away.
    Tag(JobId, String),
    /// Set what happens by itself when a job fails.
    SetRule(JobId, String),
    /// Withdraw the error that a job shows.
    IgnoreError(JobId),
    /// Delete a target and create it again.
    Reapply {
        /// The target.
        target: TargetName,
        /// The job to continue on it.
        then_resume: Option<JobId>,
    },
    /// Set a target right.
    Solve(TargetName),
    /// Let nothing new begin on a machine.
    Drain(TargetName),
    /// Let jobs begin there again.
    Undrain(TargetName),
    /// Start the daemon.
    StartDaemon,
    /// End the daemon.
    StopDaemon,
    /// Start a job.
    Run(Box<RunRequest>),
    /// Let a job wait in a queue for its turn.
    Submit {
        /// The job.
        request: Box<RunRequest>,
        /// The queue.
        queue: QueueName,
        /// How urgent it is.
        priority: Priority,
        /// What differs between its members, if it is a group.
        sweep: Option<Sweep>,
    },
    /// A typed command of `tpu`.
    Command(Vec<String>),
    /// The same after a person has said yes to it: it is run with `--yes`.
    Confirmed(Vec<String>),
}

impl Act {
    /// Whether it is carried out in a process of its own, which nothing that becomes of the screen reaches.
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self, Self::Command(_) | Self::Confirmed(_))
    }

    /// Whether it changes what waits, or makes room for it.
    pub(crate) fn changes_queue(&self) -> bool {
        matches!(
            self,
            Self::TakeOut { .. }
                | Self::Hold(_)
                | Self::Release(_)
                | Self::SetPriority(..)
                | Self::MoveFirst(_)
                | Self::Submit { .. }
        )
    }

    /// The command of `tpu` that does the same, by its name.
    pub fn verb(&self) -> &str {
        match self {
            Self::Resume(_) => "resume",
            Self::Rerun(_) => "rerun",
            Self::TakeOut { kill, .. } if kill.is_empty() => "dequeue",
            Self::Kill(_) | Self::TakeOut { .. } => "kill",
            Self::Hold(_) => "hold",
            Self::Release(_) => "unhold",
            Self::SetPriority(..) | Self::MoveFirst(_) => "priority",
            Self::Clean(_) => "clean",
            Self::Tag(..) => "add-tag",
            Self::SetRule(..) => "set-rule",
            Self::IgnoreError(_) => "ignore-error",
            Self::Reapply { .. } => "reapply",
            Self::Solve(_) => "solve",
            Self::Drain(_) | Self::Undrain(_) => "hosts",
            Self::StartDaemon | Self::StopDaemon => "daemon",
            Self::Run(_) => "run",
            Self::Submit { .. } => "submit",
            Self::Command(words) | Self::Confirmed(words) => {
                words.first().map_or("", String::as_str)
            }
        }
    }

    /// The action in words, while it is under way.
    pub fn progressive(&self) -> String {
        match self {
            Self::Resume(job) => format!("resuming {job}"),
            Self::Rerun(job) => format!("rerunning {job}"),
            Self::Kill(jobs) => format!("killing {}", ids(jobs)),
            Self::TakeOut { waiting, kill } if kill.is_empty() => {
                format!("taking {} out of the queue", ids(waiting))
            }
            Self::TakeOut { kill, .. } => format!("killing {}", ids(kill)),
            Self::Hold(waiting) => format!("holding {}", ids(waiting)),
            Self::Release(waiting) => format!("letting {} begin", ids(waiting)),
            Self::SetPriority(job, priority) => {
                format!("giving {job} priority {priority}")
            }
            Self::MoveFirst(waiting) => format!("moving {} to the front", ids(waiting)),
            Self::Clean(user) => format!("cleaning {user}"),
            Self::Tag(job, _) => format!("tagging {job}"),
            Self::SetRule(job, rule) => format!("giving {job} the rule {rule}"),
            Self::IgnoreError(job) => format!("withdrawing the error of {job}"),
            Self::Reapply { target, .. } => format!("making {target} anew"),
            Self::Solve(target) => format!("setting {target} right"),
            Self::Drain(target) => format!("draining {target}"),
            Self::Undrain(target) => format!("letting jobs begin on {target} again"),
            Self::StartDaemon => "starting the daemon".to_owned(),
            Self::StopDaemon => "ending the daemon".to_owned(),
            Self::Run(request) => format!("starting a run on {}", request.target()),
            Self::Submit { queue, .. } => format!("putting a run into {queue}"),
            Self::Command(words) | Self::Confirmed(words) => command_line(words),
        }
    }
}

/// Their names, for a sentence.
pub(super) fn ids(jobs: &[JobId]) -> String {
    jobs.iter().map(JobId::to_string).collect::<Vec<_>>().join(", ")
}

/// A command as somebody would type it.
pub fn command_line(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        shlex::try_quote(word).map_or_else(|_| word.clone(), std::borrow::Cow::into_owned)
    });
    let line: Vec<String> = std::iter::once("tpu".to_owned()).chain(quoted).collect();
    line.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_periods_go_round_both_ways() {
        let mut reach = Reach::default();
        for _ in 0..Reach::ALL.len() {
            assert_eq!(reach.next().before(), reach);
            reach = reach.next();
        }
        assert_eq!(reach, Reach::default());
    }
}
