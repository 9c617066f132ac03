//! What an attempt was in the queue, for as long as nobody knows whether it begins: it may go back there.

use serde_json::{Value, json};

use super::read::{self, DataError, Fields, Json, Path};

/// An entry of the queue whose attempt has been claimed and has not begun (`extra_msgs.waited`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waited {
    /// The process that claimed it, as an owner of leases.
    pub by: String,
    /// The entry, as [`super::entry::QueueEntry::to_kept`] writes it; of a group, with this member alone.
    pub entry: Value,
    /// The record of the attempt that it succeeds, as it was before.
    pub parent: Option<Value>,
}

/// Reads it as a record keeps it.
pub(super) fn read_waited(value: Json<'_>, path: &Path<'_>) -> Result<Waited, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Waited {
        by: fields.need("by", "text", read::text)?,
        entry: fields.need("entry", "a map", |value, _| Ok(value.to_value()))?,
        parent: fields.with("parent", |value, _| Ok(value.to_value()))?,
    })
}

/// For the file.
pub(super) fn write_waited(waited: &Waited) -> Value {
    json!({ "by": waited.by, "entry": waited.entry, "parent": waited.parent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::entry::QueueEntry;
    use crate::model::ids::UserName;
    use crate::model::job::{Event, Job};

    #[test]
    fn what_an_attempt_was_in_the_queue_reads_back_until_it_begins() {
        let owner = UserName::from("alice");
        let entry = json!({
            "user": "alice", "number": 7, "since": "2026-11-20T14:02:11Z", "place": "here",
            "target": "local", "command": ["a", {"b64": "Yf9i"}], "env": ["A=1", {"b64": "T0REPf4="}],
        });
        let read = QueueEntry::from_kept(&entry).unwrap();
        assert_eq!(read.env.len(), 2);
        assert_eq!(QueueEntry::from_kept(&read.to_kept()).unwrap(), read, "every byte of it");
        let record = json!({
            "windows_id": 7, "status": "starting", "extra_msgs": { "waited": {
                "by": "h:b:1:2", "entry": entry, "parent": { "windows_id": 6 },
            } },
        });
        let mut job = Job::from_value(&record, &owner).unwrap();
        assert_eq!(job.to_value(), Job::from_value(&job.to_value(), &owner).unwrap().to_value());
        assert_eq!(job.to_value()["extra_msgs"]["waited"]["parent"]["windows_id"], 6);
        job.apply(&Event::Started).unwrap();
        assert_eq!(job.to_value()["extra_msgs"], json!({}), "nothing of it stays");
    }
}
