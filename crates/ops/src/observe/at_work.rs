//! When engines have begun jobs of which the records say only that they wait.

use std::collections::HashMap;

use tpu_core::model::data::Data;
use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, Launch, Stretch};

use super::runners;
use crate::Ctx;

/// When each of these jobs was at work that wait by their records, as their engines say now. An engine that does not answer
/// says nothing of its jobs, and windows are not asked: what they run does not wait.
pub(crate) fn of_waiting<'a>(
    ctx: &Ctx,
    data: &Data,
    jobs: impl Iterator<Item = &'a Job>,
) -> HashMap<JobId, Vec<Stretch>> {
    let waiting = jobs.filter(|job| job.status.is_live() && waits(job));
    let runs: Vec<_> = waiting.filter_map(|job| runners::run(data, job).ok()).collect();
    if runs.is_empty() {
        return HashMap::new();
    }
    let no_windows = TmuxFact::Unknown { reason: "tmux was not asked".to_owned() };
    let seen = runners::observe(ctx, &runs, &no_windows);
    let now = ctx.clock.now();
    let worked = runs.iter().zip(seen).filter_map(|(run, seen)| {
        let worked = run.job.launch.as_ref()?.worked_by(&seen.run, now)?;
        Some((run.job.id(), worked))
    });
    worked.collect()
}

/// Whether an engine has a job, and nobody has seen that it is at work.
fn waits(job: &Job) -> bool {
    let is_so = |launch: &Launch| {
        let worked = launch.worked.as_ref().filter(|_| launch.ended.is_none());
        worked.is_some_and(|all| all.last().is_none_or(|last| last.until.is_some()))
    };
    job.engine.is_some() && job.launch.as_ref().is_some_and(is_so)
}
