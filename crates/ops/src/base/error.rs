//! The one error that people see: what, where, what to do next, and the exit code.
//!
//! Every effect's own error becomes one of these here and nowhere else.

use std::fmt;

use tpu_core::model::job::Refused;
use tpu_core::model::login;
use tpu_core::model::settings::{Problem, SettingsError};
use tpu_core::model::words::words;
use tpu_engine::provider::{ProviderError, Trouble};
use tpu_engine::runner::RunError;
use tpu_system::store::StoreError;
use tpu_system::sys::proc::ProcError;
use tpu_system::tmux::TmuxError;

pub use tpu_core::text::did_you_mean;

/// What kind of failure it is. The table of exit codes and JSON codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The operation failed.
    Failed,
    /// The arguments cannot be understood.
    Usage,
    /// A user, job, slot, alias or target does not exist.
    NotFound,
    /// Busy, reserved, not the leaf, already running, not yours, final.
    Refused,
    /// Lock held too long, data.json unreadable, disk.
    State,
    /// tmux, cloud or ssh; safe to try again.
    Unreachable,
    /// The time given to a wait is over, and what was waited for is not so.
    TimeOver,
    /// The person interrupted it.
    Interrupted,
}

words! {
    /// The `code` of JSON errors.
    Kind {
        Failed: "failed",
        Usage: "usage",
        NotFound: "not-found",
        Refused: "refused",
        State: "state",
        Unreachable: "unreachable",
        TimeOver: "time-over",
        Interrupted: "interrupted",
    }
}

impl Kind {
    /// The exit code of the program.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::State => 5,
            Self::Unreachable => 6,
            Self::TimeOver => 7,
            Self::Interrupted => 130,
        }
    }

    /// What to do next where nobody has said it better.
    pub(crate) fn next_step(self) -> &'static str {
        match self {
            Self::Failed | Self::State => "`tpu doctor` looks for what is wrong",
            Self::Usage => "`tpu help COMMAND` explains a command",
            Self::NotFound => "`tpu check`, `tpu list-users` and `tpu -lta` list what there is",
            Self::Refused => "`tpu check` and `tpu find` show what stands in the way",
            Self::Unreachable => "nothing was changed; it is safe to try again",
            Self::TimeOver => "`tpu check` shows where they are; wait again, or longer",
            Self::Interrupted => "run it again where it can ask, or add -y",
        }
    }
}

/// A failure, in words for a person.
#[derive(Debug)]
pub struct Error {
    /// Decides the exit code.
    pub kind: Kind,
    /// What is wrong and where. Several problems found together are one line each.
    pub message: String,
    /// What to do next; a command that can be pasted where possible.
    pub hint: Option<String>,
    /// Where several problems were found together, each with its own advice; else empty.
    pub parts: Vec<Self>,
    /// Whether it ends by itself: others are in the way, who will be gone.
    pub passes: bool,
    /// Whether nobody knows who asks: it is the same until a person has logged in.
    pub needs_login: bool,
    /// Whether whoever asks may not have it, whatever else changes.
    pub is_forbidden: bool,
}

impl Error {
    /// An error without advice yet.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let (message, parts) = (message.into(), Vec::new());
        let (passes, needs_login, is_forbidden) = (false, false, false);
        Self { kind, message, hint: None, parts, passes, needs_login, is_forbidden }
    }

    /// The same error with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error, which ends by itself: others are in the way.
    #[must_use]
    pub fn passing(self) -> Self {
        Self { passes: true, ..self }
    }

    /// The same once more, for several that it is about.
    #[must_use]
    pub fn again(&self) -> Self {
        let (hint, needs_login) = (self.hint.clone(), self.needs_login);
        Self { hint, needs_login, ..Self::new(self.kind, self.message.clone()) }
    }

    /// The same error: whoever asks may not have it.
    #[must_use]
    pub fn forbidden(self) -> Self {
        Self { is_forbidden: true, ..self }
    }

    /// The same error, which is the same until a person has logged in.
    #[must_use]
    pub fn for_want_of_login(self) -> Self {
        Self { needs_login: true, ..self }
    }

    /// Which login or key is missing, with what a person can do about it, on one line; `None` where that is not it. What
    /// ssh and gcloud say is known by their words, which say what to do already.
    pub fn login(&self) -> Option<String> {
        let first = self.message.lines().next().unwrap_or_default();
        if login::remedy(first).is_some() {
            return Some(first.to_owned());
        }
        self.needs_login.then(|| format!("{first}; {}", self.advice()))
    }

    /// `Kind::Failed`.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// `Kind::Usage`.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// `Kind::NotFound`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    /// `Kind::Refused`.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    /// `Kind::State`.
    pub fn state(message: impl Into<String>) -> Self {
        Self::new(Kind::State, message)
    }

    /// `Kind::Unreachable`.
    pub fn unreachable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unreachable, message)
    }

    /// Several problems as one error: all messages, all advice, the lowest exit code. `None` if there
    /// are none.
    pub fn all(problems: Vec<Self>) -> Option<Self> {
        let kind = problems.iter().map(|problem| problem.kind).min()?;
        let mut messages = Vec::new();
        let mut hints: Vec<&str> = Vec::new();
        for problem in &problems {
            messages.push(problem.message.as_str());
            hints.extend(problem.hint.as_deref().filter(|hint| !hints.contains(hint)));
        }
        let hint = (!hints.is_empty()).then(|| hints.join("\n"));
        let message = messages.join("\n");
        let passes = problems.iter().all(|problem| problem.passes);
        let needs_login = problems.iter().any(|problem| problem.needs_login);
        let is_forbidden = problems.iter().any(|problem| problem.is_forbidden);
        Some(Self { kind, message, hint, parts: problems, passes, needs_login, is_forbidden })
    }

    /// What speaks against some of several jobs, a line each, with the highest exit code. `None` if there is nothing.
    pub fn worst(problems: Vec<Self>) -> Option<Self> {
        let kind = problems.iter().map(|problem| problem.kind).max()?;
        Some(Self { kind, ..Self::all(problems)? })
    }

    /// The problems one by one, in the order in which they were found.
    pub fn each(&self) -> impl Iterator<Item = &Self> {
        let whole = self.parts.is_empty().then_some(self);
        whole.into_iter().chain(&self.parts)
    }

    /// Whether somebody else kept the lock of the data file for longer than anybody waits: nobody could write then.
    pub(crate) fn is_locked_out(&self) -> bool {
        self.kind == Kind::State && self.passes
    }

    /// What to do next, whether or not anybody has said it.
    pub fn advice(&self) -> &str {
        self.hint.as_deref().unwrap_or(self.kind.next_step())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let hint = format!("`tpu check {}` shows where it stands", refused.job.user);
        Self::refused(refused.to_string()).hint(hint)
    }
}

impl From<TmuxError> for Error {
    fn from(error: TmuxError) -> Self {
        let message = error.to_string();
        match error {
            TmuxError::Missing => Self::unreachable(message).hint(
                "install tmux 3.2 or later: sudo apt-get install tmux, or without root \
                 conda install -c conda-forge tmux",
            ),
            TmuxError::TooOld { .. } => Self::unreachable(message).hint(
                "install a newer one, which needs no root: conda install -c conda-forge tmux",
            ),
            TmuxError::NoServer { .. } => Self::unreachable(message)
                .hint("`tpu run` starts one; a job of another server is seen with --tmux-socket"),
            TmuxError::TimedOut { .. } => {
                Self::unreachable(message).hint("nothing was changed; try again")
            }
            TmuxError::Failed { .. } => Self::unreachable(message)
                .hint("`tmux ls` shows what the server sees; then try again"),
            TmuxError::BadName { .. } => {
                Self::usage(message).hint("change it: tpu data set users.NAME.tmux_name NEW")
            }
            TmuxError::Changed { .. } => {
                Self::refused(message).hint("`tpu check` shows what is there now")
            }
        }
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        let (kind, said) = match error {
            RunError::NotFound(said) => (Kind::NotFound, said),
            RunError::Refused(said) => (Kind::Refused, said),
            RunError::Usage(said) => (Kind::Usage, said),
            RunError::Unreachable(said) => (Kind::Unreachable, said),
            RunError::State(said) => (Kind::State, said),
            RunError::Failed(said) => (Kind::Failed, said),
            RunError::Login(said) => {
                let error = Self::unreachable(said.message).for_want_of_login();
                return Self { hint: said.hint, ..error };
            }
            RunError::Tmux(error) => return error.into(),
            RunError::Store(error) => return error.into(),
        };
        Self { hint: said.hint, ..Self::new(kind, said.message) }
    }
}

impl From<ProcError> for Error {
    fn from(error: ProcError) -> Self {
        Self::failed(error.to_string()).hint("`tpu doctor` looks for what is missing")
    }
}

impl From<SettingsError> for Error {
    fn from(error: SettingsError) -> Self {
        let hint = match &error.problem {
            Problem::Unknown { nearest: Some(near), .. } => format!("did you mean '{near}'?"),
            Problem::Unknown { nearest: None, .. } => "`tpu get-settings` lists them".to_owned(),
            Problem::Value(_) => "`tpu get-settings` shows the current values".to_owned(),
            Problem::Syntax { .. } => {
                "correct the file, or move it away to use the defaults".to_owned()
            }
        };
        Self::usage(error.to_string()).hint(hint)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let hint = error.hint().unwrap_or_else(|| {
            "nothing was changed; check that path, `tpu doctor` looks for what is wrong".to_owned()
        });
        let is_held =
            matches!(error, StoreError::Locked { .. } | StoreError::OriginalAtWork { .. });
        Self { passes: is_held, ..Self::state(error.to_string()).hint(hint) }
    }
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Self {
        let kind = match error.trouble {
            Trouble::NoCapacity | Trouble::Quota => Kind::Failed,
            Trouble::Transient | Trouble::Auth => Kind::Unreachable,
            Trouble::NotFound => Kind::NotFound,
            Trouble::AlreadyExists | Trouble::Permission | Trouble::NoProvider | Trouble::User => {
                Kind::Refused
            }
            Trouble::State => Kind::State,
        };
        let hint = error
            .hint()
            .unwrap_or_else(|| "`tpu check-status TARGET` shows what is there".to_owned());
        let needs_login = error.trouble == Trouble::Auth;
        Self { needs_login, ..Self::new(kind, error.to_string()).hint(hint) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_and_json_codes_are_unique() {
        for (i, a) in Kind::ALL.iter().enumerate() {
            for b in Kind::ALL.iter().skip(i + 1) {
                assert_ne!(a.exit_code(), b.exit_code());
                assert_ne!(a.as_str(), b.as_str());
            }
        }
    }

    #[test]
    fn several_problems_keep_every_word_and_the_lowest_code() {
        let both = Error::all(vec![
            Error::refused("busy").hint("wait"),
            Error::not_found("no such user").hint("wait"),
        ])
        .unwrap();
        assert_eq!(both.kind, Kind::NotFound);
        assert_eq!(both.message, "busy\nno such user");
        assert_eq!(both.hint.as_deref(), Some("wait"));
        assert!(Error::all(vec![]).is_none());
    }

    #[test]
    fn several_jobs_end_with_the_worst_of_their_codes() {
        let both = vec![Error::unreachable("node 3 is silent"), Error::refused("it has ended")];
        let both = Error::worst(both).unwrap();
        assert_eq!(
            (both.kind, &*both.message),
            (Kind::Unreachable, "node 3 is silent\nit has ended")
        );
        assert!(Error::worst(vec![]).is_none());
    }

    #[test]
    fn near_names_are_offered_and_far_ones_are_not() {
        assert_eq!(
            did_you_mean("resmue", ["run", "resume"]).as_deref(),
            Some("did you mean 'resume'?")
        );
        assert_eq!(did_you_mean("rnu", ["rerun", "run"]).as_deref(), Some("did you mean 'run'?"));
        assert_eq!(did_you_mean("zzz", ["run", "resume"]), None);
    }
}
