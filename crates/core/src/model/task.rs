//! Tasks of a file that were submitted (`queue.tasks` in data.json): whoever submits the file again queues none of them twice.

use serde_json::{Value, json};

use super::ids::JobId;
use super::read::{self, DataError, Fields, Json, Path};

/// A task that has become a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedTask {
    /// The file, by its whole path.
    pub file: String,
    /// What the file calls it.
    pub id: String,
    /// The job or the group that it has become: what waits, or its newest attempt.
    pub job: JobId,
    /// What the file said of it then, as a job file: whether that has changed.
    pub said: String,
    /// Whether an attempt has ended well, however long ago and whatever has become of its record.
    pub is_done: bool,
}

impl SubmittedTask {
    /// Whether it is this task of this file.
    pub fn is(&self, file: &str, id: &str) -> bool {
        self.file == file && self.id == id
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let job = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, JobId::parse, "a job, as in alice/12")
        };
        Ok(Self {
            file: fields.need("file", "a file", read::text)?,
            id: fields.need("id", "text", read::text)?,
            job: fields.need("job", "a job", job)?,
            said: fields.with("said", read::text)?.unwrap_or_default(),
            is_done: fields.with("done", read::flag)?.unwrap_or_default(),
        })
    }

    pub(super) fn write(&self) -> Value {
        json!({
            "file": self.file, "id": self.id, "job": self.job.to_string(), "said": self.said, "done": self.is_done,
        })
    }
}
