//! Records that were cleaned away. A record is appended here before it leaves the data file, so a crash
//! in between leaves it in both places, never in none.

use serde::Serialize;
use serde_json::Value;

use crate::model::ids::{JobId, LaunchToken, UserName};
use crate::model::job::{Job, StartTime};
use crate::model::time::Timestamp;

pub use crate::model::archived::Archived;

/// A line of the archive, as it is written.
#[derive(Serialize)]
pub(super) struct Line {
    /// When it was cleaned away.
    pub(super) at: Timestamp,
    /// By whom.
    pub(super) actor: String,
    /// Whose it was.
    pub(super) user: UserName,
    /// The record as it stood in the data file.
    pub(super) job: Value,
}

/// What tells one attempt from all others: numbers come again where somebody sets the next one, launches never.
#[derive(PartialEq, Eq, Hash)]
pub enum AttemptId {
    /// By the mark of its launch.
    Launch(LaunchToken),
    /// Of a record without one, by its number and its beginning.
    Number(JobId, String),
}

impl AttemptId {
    /// That of a record.
    pub fn of(job: &Job) -> Self {
        if let Some(launch) = &job.launch {
            return Self::Launch(launch.token.clone());
        }
        let began = match &job.start_time {
            StartTime::Unset => String::new(),
            StartTime::At(at) => at.to_rfc3339(),
            StartTime::Original(value) => value.to_string(),
        };
        Self::Number(job.id(), began)
    }
}
