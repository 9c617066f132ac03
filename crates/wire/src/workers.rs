//! The machines of targets: commands, copies and recipes on them, and an end of what was left there.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::TargetName;
use tpu_ops::act::recipes::{Outcome, StepEnd};
use tpu_ops::act::worker_shell::{Ended, Stranger, Swept};

use super::document::{documents, part};

documents! {
    /// What a command has printed on workers.
    pub struct SshDocument<'a> {
        /// Full name.
        target: &'a TargetName,
        /// Each worker that was asked.
        workers: Vec<SpokenPart<'a>>,
    }

    /// How a command has ended on a worker.
    pub struct EndedPart<'a> from ended: &'a Ended {
        /// The worker's number.
        worker: u32,
        /// Its address.
        address: &'a str,
        /// The exit code there; null if nobody knows.
        exit: Option<i32> = ended.code.as_ref().ok().copied(),
        /// Why nobody knows.
        lost: Option<&'a str> = ended.code.as_ref().err().map(String::as_str),
    }

    /// What a command has printed on a worker, and how it has ended.
    pub struct SpokenPart<'a> {
        /// How it has ended.
        #[serde(flatten)]
        ended: EndedPart<'a>,
        /// What it printed.
        stdout: String,
        /// What it printed as errors.
        stderr: String,
    }

    /// What became of a copy.
    pub struct CopiedDocument<'a> {
        /// Each worker that it concerned.
        workers: Vec<EndedPart<'a>>,
    }

    /// What was ended on a target.
    pub struct SweptDocument<'a> from (target, swept): (&'a TargetName, &'a Swept) {
        /// Full name.
        target: &'a TargetName = target,
        /// Launches of ours that had something left.
        launches: usize = swept.stopped.len(),
        /// Processes of ours that were ended.
        processes: usize = swept.stopped.values().sum(),
        /// Processes of others that were ended.
        ended_of_others: usize = swept.ended,
        /// Processes that are not ours and were not touched.
        others: Vec<StrangerPart<'a>> = part(&swept.strangers),
        /// Workers that could not be asked.
        unknown: Vec<SilentWorkerPart<'a>> = part(&swept.unknown),
    }

    /// A process of somebody else on a worker.
    pub struct StrangerPart<'a> from stranger: &'a Stranger {
        /// The worker's number.
        worker: u32,
        /// Its process id there.
        pid: u32 = stranger.process.pid,
        /// Whose it is.
        user: &'a str = &stranger.process.user,
        /// Seconds since it began.
        age_s: u64 = stranger.process.age_s,
        /// What runs.
        command: &'a str = &stranger.process.command,
    }

    /// A worker that could not be asked.
    pub struct SilentWorkerPart<'a> from (worker, reason): &'a (u32, String) {
        /// Its number.
        worker: u32 = *worker,
        /// Why not.
        reason: &'a str = reason,
    }

    /// What came of a recipe.
    pub struct RecipeDocument<'a> {
        /// Full name of the target.
        target: &'a TargetName,
        /// Name of the recipe.
        recipe: &'a str,
        /// Each step on each worker.
        steps: Vec<StepPart<'a>>,
    }

    /// One step on one worker.
    pub struct StepPart<'a> from outcome: &'a Outcome {
        /// The worker's number.
        worker: u32,
        /// Name of the step.
        step: &'a str,
        /// What came of it.
        result: StepResultPart = StepResultPart::from(&outcome.result),
        /// Why it is not well.
        why: Option<&'a str> = outcome.result.why(),
        /// File in which its words are kept.
        log: String = outcome.log.to_string_lossy().into_owned(),
        /// What it said, where the recipe wants it shown.
        says: &'a [String] = &outcome.shown,
    }

    /// What a dry run of a recipe would do.
    pub struct RecipePlanDocument<'a> {
        /// Nothing was changed.
        #[schemars(extend("const" = true))]
        dry_run: bool,
        /// Full name of the target.
        target: &'a TargetName,
        /// Name of the recipe.
        recipe: &'a str,
        /// Each step, on each worker.
        plan: Vec<PlannedStepPart<'a>>,
    }

    /// A step that a dry run would take.
    pub struct PlannedStepPart<'a> {
        /// Name of the step.
        step: &'a str,
        /// What it would do, in words.
        would: &'a str,
    }
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

impl From<&StepEnd> for StepResultPart {
    fn from(end: &StepEnd) -> Self {
        match end {
            StepEnd::Done => Self::Well,
            StepEnd::SetUp => Self::SetUp,
            StepEnd::Failed(_) => Self::Failed,
            StepEnd::Lost(_) => Self::Lost,
        }
    }
}
