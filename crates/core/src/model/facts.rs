//! What can be observed about a job, with its source: panes, exit codes, targets, and what the text says.
//!
//! Effects produce these values and `plan` reads them; neither knows the other.

mod machine;
mod room;
mod run;
mod target;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use machine::{GpuFact, GpuProcess, MachineFact};
pub use room::Room;
pub use run::{
    COPYING, LOG_UNWRITTEN, RunFact, RunState, SETTING_UP, WINDOW_CLOSED, WITHOUT_WINDOW,
    WORKERS_UNASKED,
};
pub use target::{QueuedFact, QueuedState, TargetFact, TargetState, TargetStep};

use super::exit::Exit;
use super::ids::{JobId, LaunchToken};
use super::words::words;

/// Why a job failed, as stored in the `error` field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The target was taken away by its owner.
    Preempted,
    /// The distributed runtime lost a member.
    Grpc,
    /// Processes lost each other in a collective operation: NCCL, Gloo, torch.distributed, MPI.
    Network,
    /// Another process holds the accelerator.
    Locked,
    /// There was no capacity or quota to create the target.
    NoCapacity,
    /// The way to the worker broke.
    SshLost,
    /// Accelerator, host or container memory ran out.
    Oom,
    /// The program raised and did not catch.
    PythonError,
    /// A command that the job runs was not found: no program has its name.
    CommandNotFound,
    /// A file or mount that the job needs is missing or broken.
    FileError,
    /// A signal ended the process.
    KilledBySignal,
    /// The window could not be opened.
    Launch,
    /// The window, node or machine is gone for certain and no exit was recorded.
    Lost,
    /// A limit on its time that was set is over.
    Timeout,
    /// It has said nothing for as long as it was given (only where such a limit was set).
    Stalled,
    /// A step that sets its place up has failed: its own command never began.
    Setup,
    /// What it waited for can no longer come.
    Dependency,
    /// It failed and nothing says why.
    Unknown,
}

/// Who has to act on a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The machines or the way to them: worth another try.
    Infrastructure,
    /// The program: the same input fails again.
    Program,
    /// A person ended it.
    User,
    /// Nobody knows.
    Unknown,
}

words! {
    /// The spelling in JSON output.
    Origin {
        Infrastructure: "infrastructure",
        Program: "program",
        User: "user",
        Unknown: "unknown",
    }
}

words! {
    /// The spelling in data.json, rules and JSON output.
    ErrorKind {
        Preempted: "preempted",
        Grpc: "grpc",
        Network: "network",
        Locked: "locked",
        NoCapacity: "no-capacity",
        SshLost: "ssh-lost",
        Lost: "lost",
        Oom: "oom",
        PythonError: "python-error",
        CommandNotFound: "command-not-found",
        FileError: "file-error",
        KilledBySignal: "killed-by-signal",
        Timeout: "timeout",
        Stalled: "stalled",
        Setup: "setup",
        Dependency: "dependency",
        Launch: "launch",
        Unknown: "unknown",
    }
}

impl ErrorKind {
    /// What the original calls two of them, in its own table of pane texts: the first is [`Self::Grpc`], the second
    /// [`Self::KilledBySignal`].
    pub const OF_THE_ORIGINAL: [&str; 2] = ["deadline-exceeded", "invalid-pointer"];

    /// Reads a kind in any case and in the spellings of the original (`OOM`, `file error`, …).
    pub fn parse(text: &str) -> Option<Self> {
        let of_word = |word: &str| Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        of_word(text).or_else(|| {
            let text = text.trim().to_ascii_lowercase().replace([' ', '_'], "-");
            let [deadline, pointer] = Self::OF_THE_ORIGINAL;
            match text.as_str() {
                text if text == deadline => Some(Self::Grpc),
                text if text == pointer => Some(Self::KilledBySignal),
                text => of_word(text),
            }
        })
    }

    /// The kind that it was a part of in earlier versions. A rule for that one covers it, unless the rule names it.
    pub fn wider(self) -> Option<Self> {
        match self {
            Self::CommandNotFound => Some(Self::FileError),
            Self::Network => Some(Self::Grpc),
            Self::Preempted
            | Self::Grpc
            | Self::Locked
            | Self::NoCapacity
            | Self::SshLost
            | Self::Oom
            | Self::PythonError
            | Self::FileError
            | Self::KilledBySignal
            | Self::Launch
            | Self::Lost
            | Self::Timeout
            | Self::Stalled
            | Self::Setup
            | Self::Dependency
            | Self::Unknown => None,
        }
    }

    /// The failure that a shell reports by its code alone: 127 where a command was not found, 126 where it could not be run.
    pub fn of_command(exit: Exit) -> Option<Self> {
        match exit.code() {
            127 => Some(Self::CommandNotFound),
            126 => Some(Self::FileError),
            _ => None,
        }
    }

    /// Whether a list of kinds names it or the kind that it was a part of.
    pub fn is_among(self, kinds: &[Self]) -> bool {
        kinds.contains(&self) || self.wider().is_some_and(|wider| kinds.contains(&wider))
    }

    /// Who has to act.
    pub fn origin(self) -> Origin {
        match self {
            Self::Preempted
            | Self::Grpc
            | Self::Network
            | Self::Locked
            | Self::NoCapacity
            | Self::SshLost
            | Self::Lost
            | Self::Setup => Origin::Infrastructure,
            Self::Oom
            | Self::PythonError
            | Self::CommandNotFound
            | Self::FileError
            | Self::Timeout
            | Self::Stalled => Origin::Program,
            Self::KilledBySignal | Self::Dependency => Origin::User,
            Self::Launch | Self::Unknown => Origin::Unknown,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What the classifier concludes from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Progress, set-up, or the harmless noise of a live run.
    Running,
    /// Signs of a good end. Text alone never proves it.
    Finished,
    /// A failure of this kind.
    Failed(ErrorKind),
    /// Nothing decides.
    None,
}

impl Class {
    /// The spelling in pattern files, corpora and JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed(kind) => kind.as_str(),
            Self::None => "none",
        }
    }

    /// Reads a class as written in pattern files and corpora.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "running" => Some(Self::Running),
            "finished" => Some(Self::Finished),
            "none" => Some(Self::None),
            _ => ErrorKind::ALL.into_iter().find(|kind| kind.as_str() == text).map(Self::Failed),
        }
    }

    /// The kind of failure, if it is one.
    pub fn failure(self) -> Option<ErrorKind> {
        match self {
            Self::Failed(kind) => Some(kind),
            Self::Running | Self::Finished | Self::None => None,
        }
    }
}

/// What a job is doing at the moment, shown beside its status and never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The code is being copied.
    Staging,
    /// What its file wants to have set up before its command is being looked at and brought about.
    SettingUp,
    /// Libraries, data and devices are being set up.
    Initializing,
    /// The compiler is at work.
    Compiling,
    /// Steps are being made.
    Running,
    /// Samples are being drawn.
    Sampling,
    /// An evaluation is running.
    Evaluating,
    /// A checkpoint is being written.
    Saving,
    /// The loss is no number any more.
    Diverged,
    /// No output for much longer than usual.
    Stalled,
    /// It was to go on from a checkpoint, and begins far below it.
    StartedOver,
    /// The job is over and the window shows a shell prompt.
    IdlePrompt,
}

words! {
    /// The word that people see.
    Phase {
        Staging: "staging",
        SettingUp: "setting-up",
        Initializing: "initializing",
        Compiling: "compiling",
        Running: "running",
        Sampling: "sampling",
        Evaluating: "evaluating",
        Saving: "saving",
        Diverged: "diverged",
        Stalled: "stalled",
        StartedOver: "started-over",
        IdlePrompt: "idle-prompt",
    }
}

impl Phase {
    /// Whether a person wants to know of it, although the job is at work.
    pub fn is_warning(self) -> bool {
        matches!(self, Self::Diverged | Self::Stalled | Self::StartedOver)
    }
}

/// The newest progress that the text shows. Absent fields were not printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Epoch, possibly fractional.
    pub epoch: Option<f64>,
    /// Epochs in all.
    pub epochs: Option<f64>,
    /// Optimiser steps done.
    pub step: Option<u64>,
    /// Steps in all.
    pub total: Option<u64>,
    /// Share done, 0 to 100.
    pub percent: Option<f64>,
    /// Training loss; NaN and infinities are kept out (see [`Phase::Diverged`]).
    pub loss: Option<f64>,
    /// Learning rate.
    pub lr: Option<f64>,
    /// Steps per second.
    pub steps_per_s: Option<f64>,
    /// Seconds to the end, as printed by the program.
    pub eta_s: Option<f64>,
}

/// `31 %`, rounded down so that only what is done says 100.
pub fn percent(fraction: f64) -> String {
    // What a division leaves beside a whole number (0.29 * 100 = 28.999…) is none of the share.
    format!("{:.0} %", (fraction * 100.0 + 1e-9).floor())
}

/// A number without needless digits.
fn trimmed(number: f64) -> String {
    if number == 0.0 || number.abs() >= 0.001 {
        let text = format!("{number:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{number:.3e}")
    }
}

impl Progress {
    /// Whether nothing was recognised.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes what this lacks from something older: the counters, the loss, the learning rate and the speed.
    /// A total belongs to its own counter (an epoch that was named before is the same), a percentage and an ETA
    /// to their own moment.
    pub fn fill_from(&mut self, older: &Self) {
        if self.step.is_none() {
            (self.step, self.total) = (older.step, older.total);
        }
        if self.epoch.is_none() {
            (self.epoch, self.epochs) = (older.epoch, older.epochs);
        } else if self.epoch == older.epoch {
            self.epochs = self.epochs.or(older.epochs);
        }
        self.loss = self.loss.or(older.loss);
        self.lr = self.lr.or(older.lr);
        self.steps_per_s = self.steps_per_s.or(older.steps_per_s);
    }

    /// The share in whole percent, as people are told it.
    pub fn percent_done(&self) -> Option<String> {
        self.fraction().map(percent)
    }

    /// The numbers that are known, in words.
    pub fn in_words(&self) -> Vec<String> {
        let of = |done: String, all: Option<String>| match all {
            Some(all) => format!("{done}/{all}"),
            None => done,
        };
        let mut parts = Vec::new();
        if let Some(epoch) = self.epoch {
            parts.push(format!("epoch {}", of(trimmed(epoch), self.epochs.map(trimmed))));
        }
        if let Some(step) = self.step {
            parts.push(format!("step {}", of(step.to_string(), self.total.map(|t| t.to_string()))));
        }
        parts.extend(self.percent_done());
        parts.extend(self.loss.map(|loss| format!("loss {}", trimmed(loss))));
        parts.extend(self.steps_per_s.map(|speed| format!("{} it/s", trimmed(speed))));
        parts
    }

    /// What of this outlasts the run: how far it came and its last numbers. What has ended has neither a speed nor
    /// an end to come, and what is no number cannot be kept as one.
    #[must_use]
    pub fn reached(&self) -> Self {
        let finite = |number: Option<f64>| number.filter(|number| number.is_finite());
        Self {
            epoch: finite(self.epoch),
            epochs: finite(self.epochs),
            step: self.step,
            total: self.total,
            percent: finite(self.percent),
            loss: finite(self.loss),
            lr: finite(self.lr),
            steps_per_s: None,
            eta_s: None,
        }
    }

    /// Forgets what was read of another counter than the one that is meant.
    pub(crate) fn leave_counters(&mut self) {
        let Self { step, total, percent, steps_per_s, eta_s, .. } = Self::default();
        *self = Self { step, total, percent, steps_per_s, eta_s, ..self.clone() };
    }

    /// The share done from 0 to 1, printed or computed from step and total or epoch and epochs.
    pub fn fraction(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a share for a progress bar")]
        let by_step = || match (self.step, self.total) {
            (Some(step), Some(total)) if total > 0 => Some(step as f64 / total as f64),
            _ => None,
        };
        let by_epoch = || match (self.epoch, self.epochs) {
            (Some(epoch), Some(epochs)) if epochs > 0.0 => Some(epoch / epochs),
            _ => None,
        };
        let share = self.percent.map(|p| p / 100.0).or_else(by_step).or_else(by_epoch)?;
        Some(share.clamp(0.0, 1.0))
    }
}

/// Which kind of fact a statement rests on, in rising order of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// What the classifier read.
    Text,
    /// An exit code or the state of a window.
    Exit,
    /// What the engine that runs it says (a Slurm job, …).
    Engine,
    /// What the target's control plane says.
    Api,
    /// What the record itself says.
    Record,
}

words! {
    /// The spelling in JSON.
    Source {
        Text: "text",
        Exit: "exit",
        Engine: "engine",
        Api: "api",
        Record: "record",
    }
}

/// Why a statement about a job is made: which fact, which text, how old.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The kind of fact.
    pub source: Source,
    /// The pattern's id, or the name of the fact (`exit-code`, `window-gone`, …).
    pub rule: String,
    /// The text that matched, or the fact in words.
    pub line: String,
    /// Distance of that line from the end of the text; the last line is 1.
    pub line_no: Option<usize>,
    /// The worker whose output it was.
    pub worker: Option<String>,
    /// Age of the fact in seconds, filled in when it is shown.
    pub age_s: Option<u64>,
}

impl Evidence {
    /// Evidence that is no text: a fact by name, in words.
    pub fn fact(source: Source, rule: impl Into<String>, line: impl Into<String>) -> Self {
        Self {
            source,
            rule: rule.into(),
            line: line.into(),
            line_no: None,
            worker: None,
            age_s: None,
        }
    }

    /// Where in the text it stands, for people: `last line`, `line 14 from the end`.
    pub fn line_in_words(&self) -> Option<String> {
        match self.line_no? {
            1 => Some("last line".to_owned()),
            n => Some(format!("line {n} from the end")),
        }
    }
}

/// What the classifier says about one block of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The conclusion.
    pub class: Class,
    /// What the job seems to be doing.
    pub phase: Option<Phase>,
    /// The newest progress.
    pub progress: Progress,
    /// What the conclusion rests on; absent when nothing decides.
    pub evidence: Option<Evidence>,
}

/// Where a window lives. Facts about it count only at the same place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Host name.
    pub host: String,
    /// Boot id of that host (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// Unix user id of the tmux server's owner.
    pub uid: u32,
    /// Path of the tmux socket.
    pub socket: String,
    /// Process id of the tmux server.
    pub server_pid: u32,
    /// Start time of the tmux server, seconds since the epoch (`#{start_time}`).
    pub server_start: u64,
}

/// One tmux pane, from one `list-panes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneFact {
    /// Session name.
    pub session: String,
    /// Window index in that session. Both together are one window in one look; a window that is linked to several
    /// places is listed at each of them.
    pub window_index: u32,
    /// Pane id, `%34`. Unique while the server lives.
    pub pane_id: String,
    /// Whether the pane's own program has ended.
    pub dead: bool,
    /// When the window was last active, seconds since the epoch.
    pub activity: u64,
    /// Lines in the history. With activity and cursor this is the fingerprint of "has it changed?".
    pub history_size: u64,
    /// Row of the cursor.
    pub cursor_y: u32,
    /// Column of the cursor.
    pub cursor_x: u32,
    /// Pane option `@tpu_job`, set by the launch.
    pub job: Option<JobId>,
    /// Pane option `@tpu_launch`, set by the launch.
    pub launch: Option<LaunchToken>,
    /// Pane option `@tpu_exit`, set by the launcher when the job has ended.
    pub exit: Option<i32>,
}

/// What one look at the tmux server gave.
#[derive(Clone, Debug, PartialEq)]
pub enum TmuxFact {
    /// A server answered with all its panes.
    Up {
        /// Where it runs.
        place: Place,
        /// Every pane of every session.
        panes: Vec<PaneFact>,
    },
    /// No server listens on the socket. `place` has pid and start time 0.
    Down {
        /// Where it would run.
        place: Place,
    },
    /// The question failed: nothing follows from it.
    Unknown {
        /// What went wrong, for people.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_every_spelling_of_the_original() {
        for kind in ErrorKind::ALL {
            assert_eq!(ErrorKind::parse(kind.as_str()), Some(kind));
            assert_eq!(ErrorKind::parse(&kind.as_str().to_uppercase()), Some(kind));
        }
        assert_eq!(ErrorKind::parse("OOM"), Some(ErrorKind::Oom));
        assert_eq!(ErrorKind::parse("file error"), Some(ErrorKind::FileError));
        assert_eq!(ErrorKind::parse("deadline exceeded"), Some(ErrorKind::Grpc));
        assert_eq!(ErrorKind::parse("a word"), None);
    }

    #[test]
    fn the_share_done_comes_from_whatever_was_printed() {
        let by_step = Progress { step: Some(25), total: Some(100), ..Progress::default() };
        assert_eq!(by_step.fraction(), Some(0.25));
        let odd = Progress { step: Some(200), total: Some(100), ..Progress::default() };
        assert_eq!(odd.fraction(), Some(1.0));
        assert_eq!(
            Progress { total: Some(0), step: Some(1), ..Progress::default() }.fraction(),
            None
        );
    }
}
