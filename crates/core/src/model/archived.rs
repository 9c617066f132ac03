//! A record that was cleaned away, as a line of the archive keeps it.

use std::sync::Arc;

use serde::de::IgnoredAny;

use super::check::check;
use super::codec::read_job;
use super::ids::UserName;
use super::job::Job;
use super::read::{self, Fields, Json, Path};
use super::source::Raw;
use super::time::Timestamp;

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

impl Archived {
    /// Reads a line; `None` if it cannot be understood. Years of a lab are many lines: what is not needed is skipped, and
    /// the record shares the text of the line.
    pub fn read(line: Vec<u8>) -> Option<Self> {
        let line = Arc::new(String::from_utf8(line).ok()?);
        let text = line.trim();
        let IgnoredAny = serde_json::from_str(text).ok()?;
        let path = Path::Root;
        let fields = Fields::new(Json::new(text), &path).ok()?;
        let at = fields.need("at", "an instant", read::instant).ok()?;
        let actor = fields.need("actor", "a text", read::text).ok()?;
        let user = UserName::new(fields.need("user", "a user", read::text).ok()?);
        let record = fields.get("job")?;
        let record_path = fields.below("job");
        let job = read_job(&Fields::new(record, &record_path).ok()?, &user).ok()?;
        let from = record.text().as_ptr().addr() - line.as_ptr().addr();
        let raw = Raw::new(&line, from..from + record.text().len());
        Some(Self { at, actor, job: Job { raw, ..job } })
    }

    /// Whether also that can be read of the record which was skipped: only then it can be written again.
    pub fn is_whole(&self) -> bool {
        check(self.job.raw.text()).is_ok()
    }
}
