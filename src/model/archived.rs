//! A record that was cleaned away, as a line of the archive keeps it.

use super::check::check;
use super::codec::read_job;
use super::ids::UserName;
use super::job::Job;
use super::read::{self, Fields, Json, Path};
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
    /// Reads a line; `None` if it cannot be understood. Years of a lab are many lines: what is not needed is skipped.
    pub fn read(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?.trim();
        check(line).ok()?;
        let path = Path::Root;
        let fields = Fields::new(Json::new(line), &path).ok()?;
        let at = fields.need("at", "an instant", read::instant).ok()?;
        let actor = fields.need("actor", "a text", read::text).ok()?;
        let user = UserName::new(fields.need("user", "a user", read::text).ok()?);
        let record = fields.get("job")?;
        let record_path = fields.below("job");
        let job = read_job(&Fields::new(record, &record_path).ok()?, &user).ok()?;
        Some(Self { at, actor, job: Job { raw: record.text().to_owned().into(), ..job } })
    }
}
