//! Requests that were answered (`queue.answered` in data.json): whoever sends one again, because its answer was lost on the
//! way, submits nothing twice.

use serde_json::{Value, json};

use super::ids::JobId;
use super::read::{self, DataError, Fields, Json, Path};
use super::time::Timestamp;

/// A request with a key of its own that has become jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// Who sent it: the same key of somebody else is another.
    pub by: String,
    /// Its key.
    pub key: String,
    /// What it said, as a hash: the same key is for the same again, and for nothing else.
    pub said: String,
    /// When it was answered.
    pub at: Timestamp,
    /// The jobs and groups that it has become.
    pub jobs: Vec<JobId>,
}

impl AnsweredRequest {
    /// Whether it is this one of this sender.
    pub fn is(&self, by: &str, key: &str) -> bool {
        self.by == by && self.key == key
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let job = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, JobId::parse, "a job, as in alice/12")
        };
        let jobs = fields.with("jobs", |value, path| read::list(value, path, job))?;
        Ok(Self {
            by: fields.need("by", "who sent it", read::text)?,
            key: fields.need("key", "a key", read::text)?,
            said: fields.need("said", "a hash", read::text)?,
            at: fields.need("at", "a time", read::instant)?,
            jobs: jobs.unwrap_or_default(),
        })
    }

    pub(super) fn write(&self) -> Value {
        let jobs: Vec<String> = self.jobs.iter().map(ToString::to_string).collect();
        json!({
            "by": self.by, "key": self.key, "said": self.said, "at": self.at.to_rfc3339(), "jobs": jobs,
        })
    }
}
