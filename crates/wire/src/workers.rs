//! The machines of targets: commands, copies and recipes on them, and an end of what was left there.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::TargetName;
use tpu_ops::act::recipes::{Outcome, StepEnd};
use tpu_ops::act::worker_shell::{Ended, Stranger, Swept};

/// What a command has printed on workers.
#[derive(Serialize, JsonSchema)]
pub struct SshDocument<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// Each worker that was asked.
    pub workers: Vec<SpokenPart<'a>>,
}

/// How a command has ended on a worker.
#[derive(Serialize, JsonSchema)]
pub struct EndedPart<'a> {
    /// The worker's number.
    pub worker: u32,
    /// Its address.
    pub address: &'a str,
    /// The exit code there; null if nobody knows.
    pub exit: Option<i32>,
    /// Why nobody knows.
    pub lost: Option<&'a str>,
}

impl<'a> From<&'a Ended> for EndedPart<'a> {
    fn from(ended: &'a Ended) -> Self {
        Self {
            worker: ended.worker,
            address: &ended.address,
            exit: ended.code.as_ref().ok().copied(),
            lost: ended.code.as_ref().err().map(String::as_str),
        }
    }
}

/// What a command has printed on a worker, and how it has ended.
#[derive(Serialize, JsonSchema)]
pub struct SpokenPart<'a> {
    /// How it has ended.
    #[serde(flatten)]
    pub ended: EndedPart<'a>,
    /// What it printed.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
}

/// What became of a copy.
#[derive(Serialize, JsonSchema)]
pub struct CopiedDocument<'a> {
    /// Each worker that it concerned.
    pub workers: Vec<EndedPart<'a>>,
}

/// What was ended on a target.
#[derive(Serialize, JsonSchema)]
pub struct SweptDocument<'a> {
    /// Full name.
    pub target: &'a TargetName,
    /// Launches of ours that had something left.
    pub launches: usize,
    /// Processes of ours that were ended.
    pub processes: usize,
    /// Processes of others that were ended.
    pub ended_of_others: usize,
    /// Processes that are not ours and were not touched.
    pub others: Vec<StrangerPart<'a>>,
    /// Workers that could not be asked.
    pub unknown: Vec<SilentWorkerPart<'a>>,
}

impl<'a> From<(&'a TargetName, &'a Swept)> for SweptDocument<'a> {
    fn from((target, swept): (&'a TargetName, &'a Swept)) -> Self {
        Self {
            target,
            launches: swept.stopped.len(),
            processes: swept.stopped.values().sum(),
            ended_of_others: swept.ended,
            others: swept.strangers.iter().map(StrangerPart::from).collect(),
            unknown: swept
                .unknown
                .iter()
                .map(|(worker, reason)| SilentWorkerPart { worker: *worker, reason })
                .collect(),
        }
    }
}

/// A process of somebody else on a worker.
#[derive(Serialize, JsonSchema)]
pub struct StrangerPart<'a> {
    /// The worker's number.
    pub worker: u32,
    /// Its process id there.
    pub pid: u32,
    /// Whose it is.
    pub user: &'a str,
    /// Seconds since it began.
    pub age_s: u64,
    /// What runs.
    pub command: &'a str,
}

impl<'a> From<&'a Stranger> for StrangerPart<'a> {
    fn from(Stranger { worker, process }: &'a Stranger) -> Self {
        Self {
            worker: *worker,
            pid: process.pid,
            user: &process.user,
            age_s: process.age_s,
            command: &process.command,
        }
    }
}

/// A worker that could not be asked.
#[derive(Serialize, JsonSchema)]
pub struct SilentWorkerPart<'a> {
    /// Its number.
    pub worker: u32,
    /// Why not.
    pub reason: &'a str,
}

/// What came of a recipe.
#[derive(Serialize, JsonSchema)]
pub struct RecipeDocument<'a> {
    /// Full name of the target.
    pub target: &'a TargetName,
    /// Name of the recipe.
    pub recipe: &'a str,
    /// Each step on each worker.
    pub steps: Vec<StepPart<'a>>,
}

/// One step on one worker.
#[derive(Serialize, JsonSchema)]
pub struct StepPart<'a> {
    /// The worker's number.
    pub worker: u32,
    /// Name of the step.
    pub step: &'a str,
    /// What came of it.
    pub result: StepResultPart,
    /// Why it is not well.
    pub why: Option<&'a str>,
    /// File in which its words are kept.
    pub log: String,
    /// What it said, where the recipe wants it shown.
    pub says: &'a [String],
}

/// What came of a step.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepResultPart {
    /// It was so already, or was looked at and is well.
    Well,
    /// It is so now.
    SetUp,
    /// It is not so, and could not be brought about.
    Failed,
    /// The worker cannot be reached: nobody knows.
    Lost,
}

impl<'a> From<&'a Outcome> for StepPart<'a> {
    fn from(outcome: &'a Outcome) -> Self {
        let (result, why) = match &outcome.result {
            StepEnd::Done => (StepResultPart::Well, None),
            StepEnd::SetUp => (StepResultPart::SetUp, None),
            StepEnd::Failed(why) => (StepResultPart::Failed, Some(why.as_str())),
            StepEnd::Lost(why) => (StepResultPart::Lost, Some(why.as_str())),
        };
        Self {
            worker: outcome.worker,
            step: &outcome.step,
            result,
            why,
            log: outcome.log.to_string_lossy().into_owned(),
            says: &outcome.shown,
        }
    }
}

/// What a dry run of a recipe would do.
#[derive(Serialize, JsonSchema)]
pub struct RecipePlanDocument<'a> {
    /// Nothing was changed.
    #[schemars(extend("const" = true))]
    pub dry_run: bool,
    /// Full name of the target.
    pub target: &'a TargetName,
    /// Name of the recipe.
    pub recipe: &'a str,
    /// Each step, on each worker.
    pub plan: Vec<PlannedStepPart<'a>>,
}

/// A step that a dry run would take.
#[derive(Serialize, JsonSchema)]
pub struct PlannedStepPart<'a> {
    /// Name of the step.
    pub step: &'a str,
    /// What it would do, in words.
    pub would: &'a str,
}
