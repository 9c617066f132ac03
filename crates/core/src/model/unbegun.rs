//! What is kept of something that waited and was taken out of the queue before it began: one record for the whole entry,
//! which is killed, and in which the entry stands as it was (`extra_msgs.queued`).

use serde_json::Value;

use super::entry::QueueEntry;
use super::ids::TargetName;
use super::job::{Job, Status};
use super::read::{Fields, Json, Path};
use super::spec::JobSpec;

/// Where in a record the entry stands that it was.
const KEY: &str = "queued";

/// What of an entry is about the process that submitted it, and about nothing that it was to do.
const LEFT_OUT: [&str; 3] = ["env", "keeper", "place"];

/// The record of an entry that is over, under its number. `args` are its arguments as its program would have got them.
pub fn record(entry: &QueueEntry, (target, dir): (TargetName, String), args: String) -> Job {
    let mut job = Job::new(&entry.id(), target, dir);
    job.keep_spec(&entry.spec);
    job.command.clone_from(&entry.spec.command);
    job.extra_configs = args;
    job.stage_dir = entry.spec.staged.as_ref().map(|staged| staged.copy.clone());
    job.status = Status::Killed(None);
    let mut queued = entry.write(0);
    if let Some(members) = queued.as_object_mut() {
        members.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
    }
    let mut value = job.to_value();
    if let Some(extra) = value.get_mut("extra_msgs").and_then(Value::as_object_mut) {
        extra.insert(KEY.to_owned(), queued);
    }
    Job { raw: value.to_string().into(), ..job }
}

/// What a job was to do that has a record: as it was described, whether it has begun or not.
pub fn spec_of(job: &Job) -> JobSpec {
    if let Some(entry) = entry(job) {
        return entry.spec;
    }
    let words = shlex::split(&job.extra_configs).unwrap_or_default();
    JobSpec { member: None, ..job.spec_with(words) }
}

/// The entry that a record was, if it never began.
pub fn entry(job: &Job) -> Option<QueueEntry> {
    let record = Fields::new(Json::new(job.raw.text()), &Path::Root).ok()?;
    let path = record.below("extra_msgs");
    let extra = Fields::new(record.get("extra_msgs")?, &path).ok()?;
    extra.with(KEY, QueueEntry::read).ok()?
}
