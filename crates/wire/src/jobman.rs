//! `jobman`: jobs as JobMan lists them, and what was done with them.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::{JobNumber, TargetName, UserName};

/// Jobs, each by the number that it keeps.
#[derive(Serialize, JsonSchema)]
pub struct JobmanJobsDocument<'a> {
    /// The jobs.
    pub jobs: Vec<JobmanJobPart<'a>>,
    /// Cores at work, by zone.
    pub cores: Vec<JobmanCoresPart>,
}

/// A job.
#[derive(Serialize, JsonSchema)]
pub struct JobmanJobPart<'a> {
    /// Its number, six digits.
    pub id: &'a str,
    /// Its newest attempt.
    pub window: JobNumber,
    /// Whose.
    pub user: &'a UserName,
    /// Its name.
    pub name: Option<&'a str>,
    /// Accelerator type.
    pub accelerator: Option<&'a str>,
    /// Zone.
    pub zone: Option<&'a str>,
    /// Address of the first worker, where it is known.
    pub host0: Option<&'a str>,
    /// Its state in JobMan's word.
    pub state: &'static str,
    /// Its status in ours.
    pub status: &'a str,
}

/// Cores at work in a zone.
#[derive(Serialize, JsonSchema)]
pub struct JobmanCoresPart {
    /// The zone.
    pub zone: String,
    /// How many, by the names of the accelerator types.
    pub cores: u64,
}

/// The tasks of a file, with what there is for them.
#[derive(Serialize, JsonSchema)]
pub struct JobmanTasksDocument<'a> {
    /// The file, by its whole path.
    pub file: &'a str,
    /// What there is of each accelerator.
    pub accelerators: &'a [JobmanAcceleratorPart],
    /// The tasks.
    pub tasks: Vec<JobmanTaskPart<'a>>,
}

/// What there is of an accelerator type, by the names of the targets.
#[derive(Serialize, JsonSchema)]
pub struct JobmanAcceleratorPart {
    /// As the file names it.
    pub accelerator: String,
    /// A job is at work there.
    pub working: Vec<String>,
    /// Nobody uses them.
    pub idle: Vec<String>,
    /// They are being made.
    pub waiting: Vec<String>,
    /// They are not there, or not to be counted on.
    pub stopped: Vec<String>,
}

/// A task.
#[derive(Serialize, JsonSchema)]
pub struct JobmanTaskPart<'a> {
    /// What the file calls it.
    pub id: &'a str,
    /// Below which accelerator it stands.
    pub accelerator: &'a str,
    /// Its state in JobMan's word; NEW where it was not submitted.
    pub state: &'static str,
    /// The job or the group that it has become.
    pub job: Option<String>,
    /// Those at work on it.
    pub running: Vec<JobNumber>,
    /// How often it was begun.
    pub runs: usize,
    /// How often its program has failed.
    pub fails: u32,
    /// Whether lists leave it out.
    pub hidden: bool,
    /// Its attempts, the oldest first.
    pub attempts: Vec<JobmanAttemptPart<'a>>,
}

/// An attempt of a task.
#[derive(Serialize, JsonSchema)]
pub struct JobmanAttemptPart<'a> {
    /// Its number.
    pub window: JobNumber,
    /// How it stands by its record.
    pub status: String,
    /// Where what it prints is kept.
    pub log_dir: Option<&'a str>,
}

/// What was done with jobs.
#[derive(Serialize, JsonSchema)]
pub struct JobmanDoneDocument {
    /// With which.
    pub done: Vec<JobmanDonePart>,
}

/// What was done with a job.
#[derive(Serialize, JsonSchema)]
pub struct JobmanDonePart {
    /// Its number, six digits.
    pub id: String,
    /// Its newest attempt, if it has one that stands.
    pub window: Option<JobNumber>,
    /// The TPU that was deleted with it.
    pub deleted: Option<TargetName>,
}
