//! The archive.

use serde_json::Value;

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobNumber, TargetName, UserName};
use tpu_ops::observe::archive::{ArchivedJob, Listed, Restored};

use super::document::{documents, part};
use super::jobs::JobIdPart;
use super::words::TimePart;

documents! {
    /// Jobs that were cleaned away.
    pub struct ArchiveDocument<'a> from listed: &'a Listed {
        /// Those that were cleaned away last at the end.
        archived: Vec<ArchivedPart<'a>> = part(&listed.jobs),
        /// How many older ones pass as well.
        more: usize,
    }

    /// One of them.
    pub struct ArchivedPart<'a> from one: &'a ArchivedJob {
        /// Whose it was.
        user: &'a UserName = &one.archived.job.user,
        /// Its number.
        window: JobNumber = one.archived.job.windows_id,
        /// When it was cleaned away.
        at: TimePart = part(&one.archived.at),
        /// By whom.
        by: &'a str = &one.archived.actor,
        /// Its status then; `null` where it never had one.
        status: Option<&'static str> = one.archived.job.status.word(),
        /// The kind of its failure.
        error: Option<&'static str> = one.archived.job.status.error().map(ErrorKind::as_str),
        /// The line that decided it.
        line: Option<&'a str> =
            one.archived.job.verdict.as_ref().map(|verdict| verdict.line.as_str()),
        /// Its target.
        target: &'a TargetName = &one.archived.job.tpu,
        /// Its tag.
        tags: Option<&'a str> = part(&one.archived.job.job_tags),
        /// When it began.
        began_at: Option<TimePart> = part(&one.began),
        /// When it ended, where that is known.
        ended_at: Option<TimePart> =
            one.archived.job.launch.as_ref().and_then(|launch| part(&launch.ended)),
        /// The attempt that it went on from.
        father: Option<JobNumber> = one.archived.job.father,
        /// The attempt that went on from it.
        child: Option<JobNumber> = one.archived.job.child,
        /// Where it logged.
        log_dir: Option<&'a str> = part(&one.archived.job.log_dir),
    }

    /// A job that was cleaned away, in full.
    pub struct ArchivedJobDocument<'a> from one: &'a ArchivedJob {
        /// What it was.
        job: ArchivedPart<'a> = part(one),
        /// Its record, as it stood in the data file.
        record: Value = one.archived.job.to_value(),
    }

    /// Jobs that were brought back.
    pub struct RestoredJobsDocument<'a> from done: &'a Restored {
        /// Those that are among the jobs again.
        restored: Vec<JobIdPart<'a>>,
        /// Those that already were.
        already: Vec<JobIdPart<'a>>,
        /// Those whose code is gone: they cannot be resumed.
        without_code: Vec<JobIdPart<'a>> =
            done.without_code.iter().map(|(id, _)| part(id)).collect(),
    }
}
