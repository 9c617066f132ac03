//! Records that were cleaned away. A record is appended here before it leaves the data file, so a crash
//! in between leaves it in both places, never in none.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::ids::UserName;
use crate::model::job::Job;
use crate::model::time::Timestamp;

/// A line of the archive.
#[derive(Serialize, Deserialize)]
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

/// A record that was cleaned away.
#[derive(Clone, Debug, PartialEq)]
pub struct Archived {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub actor: String,
    /// The record.
    pub job: Job,
}

impl Line {
    /// The record, typed; `None` if it cannot be understood.
    pub(super) fn typed(self) -> Option<Archived> {
        let job = Job::from_value(&self.job, &self.user).ok()?;
        Some(Archived { at: self.at, actor: self.actor, job })
    }
}
