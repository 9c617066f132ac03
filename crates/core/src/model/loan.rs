//! Targets that jobs have only for as long as they need them (`queue.loans` in data.json).

use serde_json::{Value, json};

use super::ids::{JobId, TargetName};
use super::read::{self, DataError, Fields, Json, Path};

/// A target that goes with the job for which it was made (`tpu: {delete_after: done}`). It stands here from when the
/// job enters the queue on, until the target is gone, or is known to be somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loan {
    /// The target.
    pub target: TargetName,
    /// The newest attempt of the job, or the entry of the queue that it is still.
    pub job: JobId,
    /// Host, account and tmux server whose daemon gives it back.
    pub place: String,
    /// The mark of the request by which it was made for the job; without one it was not. What rules make anew for the
    /// job is made for it as well.
    pub made: Option<String>,
}

impl Loan {
    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let job = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, JobId::parse, "a job, as in alice/12")
        };
        Ok(Self {
            target: TargetName::new(fields.need("target", "a target", read::text)?),
            job: fields.need("for", "a job", job)?,
            place: fields.need("place", "a place", read::text)?,
            made: fields.with("made", read::text)?,
        })
    }

    pub(super) fn write(&self) -> Value {
        json!({
            "target": self.target,
            "for": self.job.to_string(),
            "place": self.place,
            "made": self.made,
        })
    }
}
