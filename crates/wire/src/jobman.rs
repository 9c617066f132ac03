//! `jobman`: jobs as JobMan lists them, and what was done with them.

use tpu_core::model::ids::{JobNumber, TargetName, UserName};

use super::document::documents;

documents! {
    /// Jobs, each by the number that it keeps.
    pub struct JobmanJobsDocument<'a> {
        /// The jobs.
        jobs: Vec<JobmanJobPart<'a>>,
        /// Cores at work, by zone.
        cores: Vec<JobmanCoresPart>,
    }

    /// A job.
    pub struct JobmanJobPart<'a> {
        /// Its number, six digits.
        id: &'a str,
        /// Its newest attempt.
        window: JobNumber,
        /// Whose.
        user: &'a UserName,
        /// Its name.
        name: Option<&'a str>,
        /// Accelerator type.
        accelerator: Option<&'a str>,
        /// Zone.
        zone: Option<&'a str>,
        /// Address of the first worker, where it is known.
        host0: Option<&'a str>,
        /// Its state in JobMan's word.
        state: &'static str,
        /// Its status in ours.
        status: &'a str,
    }

    /// Cores at work in a zone.
    pub struct JobmanCoresPart {
        /// The zone.
        zone: String,
        /// How many, by the names of the accelerator types.
        cores: u64,
    }

    /// The tasks of a file, with what there is for them.
    pub struct JobmanTasksDocument<'a> {
        /// The file, by its whole path.
        file: &'a str,
        /// What there is of each accelerator.
        accelerators: &'a [JobmanAcceleratorPart],
        /// The tasks.
        tasks: Vec<JobmanTaskPart<'a>>,
    }

    /// What there is of an accelerator type, by the names of the targets.
    pub struct JobmanAcceleratorPart {
        /// As the file names it.
        accelerator: String,
        /// A job is at work there.
        working: Vec<String>,
        /// Nobody uses them.
        idle: Vec<String>,
        /// They are being made.
        waiting: Vec<String>,
        /// They are not there, or not to be counted on.
        stopped: Vec<String>,
    }

    /// A task.
    pub struct JobmanTaskPart<'a> {
        /// What the file calls it.
        id: &'a str,
        /// Below which accelerator it stands.
        accelerator: &'a str,
        /// Its state in JobMan's word; NEW where it was not submitted.
        state: &'static str,
        /// The job or the group that it has become.
        job: Option<String>,
        /// Those at work on it.
        running: Vec<JobNumber>,
        /// How often it was begun.
        runs: usize,
        /// How often its program has failed.
        fails: u32,
        /// Whether lists leave it out.
        hidden: bool,
        /// Its attempts, the oldest first.
        attempts: Vec<JobmanAttemptPart<'a>>,
    }

    /// An attempt of a task.
    pub struct JobmanAttemptPart<'a> {
        /// Its number.
        window: JobNumber,
        /// How it stands by its record.
        status: String,
        /// Where what it prints is kept.
        log_dir: Option<&'a str>,
    }

    /// What was done with jobs.
    pub struct JobmanDoneDocument {
        /// With which.
        done: Vec<JobmanDonePart>,
    }

    /// What was done with a job.
    pub struct JobmanDonePart {
        /// Its number, six digits.
        id: String,
        /// Its newest attempt, if it has one that stands.
        window: Option<JobNumber>,
        /// The TPU that was deleted with it.
        deleted: Option<TargetName>,
    }
}
