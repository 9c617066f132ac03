//! `jobman`: jobs as JobMan lists them, and what was done with them.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::ids::{JobNumber, TargetName, UserName};

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
