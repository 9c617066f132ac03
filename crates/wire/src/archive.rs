//! The archive.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_ops::observe::archive::{ArchivedJob, Listed, Restored};

use super::jobs::JobIdPart;
use super::words::TimePart;

/// Jobs that were cleaned away.
#[derive(Serialize, JsonSchema)]
pub struct ArchiveDocument<'a> {
    /// Those that were cleaned away last at the end.
    pub archived: Vec<ArchivedPart<'a>>,
    /// How many older ones pass as well.
    pub more: usize,
}

impl<'a> From<&'a Listed> for ArchiveDocument<'a> {
    fn from(listed: &'a Listed) -> Self {
        Self { archived: listed.jobs.iter().map(ArchivedPart::from).collect(), more: listed.more }
    }
}

/// One of them.
#[derive(Serialize, JsonSchema)]
pub struct ArchivedPart<'a> {
    /// Whose it was.
    pub user: &'a UserName,
    /// Its number.
    pub window: JobNumber,
    /// When it was cleaned away.
    pub at: TimePart,
    /// By whom.
    pub by: &'a str,
    /// Its status then; `null` where it never had one.
    pub status: Option<&'static str>,
    /// The kind of its failure.
    pub error: Option<&'static str>,
    /// The line that decided it.
    pub line: Option<&'a str>,
    /// Its target.
    pub target: &'a TargetName,
    /// Its tag.
    pub tags: Option<&'a str>,
    /// When it began.
    pub began_at: Option<TimePart>,
    /// When it ended, where that is known.
    pub ended_at: Option<TimePart>,
    /// The attempt that it went on from.
    pub father: Option<JobNumber>,
    /// The attempt that went on from it.
    pub child: Option<JobNumber>,
    /// Where it logged.
    pub log_dir: Option<&'a str>,
}

impl<'a> From<&'a ArchivedJob> for ArchivedPart<'a> {
    fn from(ArchivedJob { archived, began, .. }: &'a ArchivedJob) -> Self {
        let job = &archived.job;
        Self {
            user: &job.user,
            window: job.windows_id,
            at: TimePart(archived.at),
            by: &archived.actor,
            status: job.status.word(),
            error: job.status.error().map(tpu_core::model::facts::ErrorKind::as_str),
            line: job.verdict.as_ref().map(|verdict| verdict.line.as_str()),
            target: &job.tpu,
            tags: job.job_tags.as_deref(),
            began_at: began.map(TimePart),
            ended_at: job.launch.as_ref().and_then(|launch| launch.ended).map(TimePart),
            father: job.father,
            child: job.child,
            log_dir: job.log_dir.as_deref(),
        }
    }
}

/// A job that was cleaned away, in full.
#[derive(Serialize, JsonSchema)]
pub struct ArchivedJobDocument<'a> {
    /// What it was.
    pub job: ArchivedPart<'a>,
    /// Its record, as it stood in the data file.
    pub record: Value,
}

impl<'a> From<&'a ArchivedJob> for ArchivedJobDocument<'a> {
    fn from(of: &'a ArchivedJob) -> Self {
        Self { job: ArchivedPart::from(of), record: of.archived.job.to_value() }
    }
}

/// Jobs that were brought back.
#[derive(Serialize, JsonSchema)]
pub struct RestoredJobsDocument<'a> {
    /// Those that are among the jobs again.
    pub restored: Vec<JobIdPart<'a>>,
    /// Those that already were.
    pub already: Vec<JobIdPart<'a>>,
}

impl<'a> From<&'a Restored> for RestoredJobsDocument<'a> {
    fn from(done: &'a Restored) -> Self {
        let ids = |ids: &'a [JobId]| ids.iter().map(JobIdPart::from).collect();
        Self { restored: ids(&done.restored), already: ids(&done.already) }
    }
}
