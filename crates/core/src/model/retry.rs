//! How often a job begins again by itself, and after which failures: what its file says as `retry:`. It is carried out by
//! the job's rules and by `plan::budget`, as everything is that happens by itself.

use std::fmt;

use serde_json::{Value, json};

use super::facts::{ErrorKind, Origin};
use super::read::{self, DataError, Fields, Json, Path};

/// What brings a job back, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// How many times in all, until a person has it go on.
    pub max: u32,
    /// After which failures.
    pub on: Vec<ErrorKind>,
    /// Seconds before the first one; each further one waits twice as long. Without a word as for all jobs.
    pub backoff_s: Option<u32>,
}

impl Retry {
    /// The failures after which a job is retried where none are named. What takes its machine away does not count, unless
    /// somebody asks for that; what a person has ended stays so, and what has used up its time has had it.
    pub fn usual() -> Vec<ErrorKind> {
        let is_usual = |kind: &ErrorKind| match kind {
            ErrorKind::Preempted | ErrorKind::NoCapacity | ErrorKind::Timeout => false,
            ErrorKind::Grpc
            | ErrorKind::Network
            | ErrorKind::Locked
            | ErrorKind::SshLost
            | ErrorKind::Lost
            | ErrorKind::Oom
            | ErrorKind::PythonError
            | ErrorKind::CommandNotFound
            | ErrorKind::FileError
            | ErrorKind::KilledBySignal
            | ErrorKind::Stalled
            | ErrorKind::Setup
            | ErrorKind::Dependency
            | ErrorKind::Launch
            | ErrorKind::Unknown => kind.origin() != Origin::User,
        };
        // What is a part of another kind is covered by that.
        let is_whole = |kind: &ErrorKind| kind.wider().is_none();
        ErrorKind::ALL.into_iter().filter(is_whole).filter(is_usual).collect()
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let kind = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, ErrorKind::parse, "a kind of error")
        };
        Ok(Self {
            max: fields.need("max", "a number", read::number)?,
            on: fields.with("on", |value, path| read::list(value, path, kind))?.unwrap_or_default(),
            backoff_s: fields.with("backoff_s", read::number)?,
        })
    }

    pub(super) fn to_value(&self) -> Value {
        let on: Vec<&str> = self.on.iter().map(|kind| kind.as_str()).collect();
        json!({ "max": self.max, "on": on, "backoff_s": self.backoff_s })
    }
}

impl fmt::Display for Retry {
    /// In a line of a plan: `at most 3 times after oom, lost; the first one after 60 s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on: Vec<&str> = self.on.iter().map(|kind| kind.as_str()).collect();
        let times = crate::text::counted(self.max as usize, "time");
        write!(f, "at most {times} after {}", on.join(", "))?;
        self.backoff_s.map_or(Ok(()), |pause| write!(f, "; the first one after {pause} s"))
    }
}
