//! Whether a command begins again where it runs, as soon as it has ended: what its file says as `repeat:`. That is carried
//! out beside the command, and is one run of the job: its rules hear of no end that is answered so.

use std::fmt;

use serde_json::{Value, json};

use super::facts::ErrorKind;
use super::read::{self, DataError, Fields, Json, Path};
use super::words::words;

/// After which ends a command begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatWhen {
    /// Each.
    Always,
    /// Those by any exit code but 0.
    OnFailure,
}

words! {
    /// The spelling in files.
    RepeatWhen {
        Always: "always",
        OnFailure: "on-failure",
    }
}

impl RepeatWhen {
    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|when| when.as_str() == text)
    }
}

/// What begins a command again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// After which ends.
    pub when: RepeatWhen,
    /// Seconds between two runs.
    pub pause_s: u32,
}

impl Repeat {
    /// Seconds between two runs, where nobody says how many.
    pub const PAUSE_S: u32 = 60;

    /// Whether a failure is an end of the command by itself, after which it begins again and no rule hears of it.
    pub fn answers(kind: ErrorKind) -> bool {
        match kind {
            ErrorKind::Grpc
            | ErrorKind::Network
            | ErrorKind::Locked
            | ErrorKind::Oom
            | ErrorKind::PythonError
            | ErrorKind::CommandNotFound
            | ErrorKind::FileError
            | ErrorKind::KilledBySignal
            | ErrorKind::Unknown => true,
            ErrorKind::Preempted
            | ErrorKind::NoCapacity
            | ErrorKind::SshLost
            | ErrorKind::Lost
            | ErrorKind::Timeout
            | ErrorKind::Stalled
            | ErrorKind::Setup
            | ErrorKind::Dependency
            | ErrorKind::Launch => false,
        }
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let when = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, RepeatWhen::parse, "always or on-failure")
        };
        Ok(Self {
            when: fields.need("when", "always or on-failure", when)?,
            pause_s: fields.with_or("pause_s", Self::PAUSE_S, read::number)?,
        })
    }

    pub(super) fn to_value(self) -> Value {
        json!({ "when": self.when.as_str(), "pause_s": self.pause_s })
    }
}

impl fmt::Display for Repeat {
    /// In a line of a plan: `on-failure, 60 s after its end`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} s after its end", self.when.as_str(), self.pause_s)
    }
}
