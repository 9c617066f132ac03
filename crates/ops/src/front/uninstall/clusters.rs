//! Objects in clusters: those of jobs that are over, known by their launch tokens.

use std::collections::BTreeMap;

use tpu_core::model::data::Data;
use tpu_core::model::job::Job;
use tpu_core::text::counted;
use tpu_engine::runner::{RunRef, StopOrder, StopPart, Unreached};

use super::{LeftoverKind, Leftovers, Records, Removal};
use crate::observe::runners;
use crate::{Ctx, Error};

/// Asks each engine what is left there of these jobs.
pub(super) fn find(ctx: &Ctx, data: &Data, records: &Records, found: &mut Leftovers) {
    let mut by_engine: BTreeMap<(String, String), Vec<&Job>> = BTreeMap::new();
    for job in &records.over {
        if let Some(run) = &job.engine {
            let engine = (run.kind.as_str().to_owned(), run.cluster.clone());
            by_engine.entry(engine).or_default().push(job);
        }
    }
    for ((kind, cluster), jobs) in by_engine {
        let place = data.target_label(&jobs.first().map_or("".into(), |job| job.tpu.clone()));
        let Some(runner) = jobs.first().and_then(|job| runners::engine_of(ctx, job)) else {
            found.is_silent(&place, format!("this tpu does not know its kind, {kind}"));
            continue;
        };
        let runs: Vec<RunRef<'_>> = jobs.iter().map(|job| RunRef { job, session: "" }).collect();
        match runner.left_behind(&runs) {
            Ok(left) => {
                let left: Vec<(Job, String)> = left
                    .into_iter()
                    .filter_map(|(at, name)| Some(((*jobs.get(at)?).clone(), name)))
                    .collect();
                if left.is_empty() {
                    continue;
                }
                let (jobs, names): (Vec<Job>, Vec<String>) = left.into_iter().unzip();
                let what = format!("{}: {}", counted(names.len(), "Job"), names.join(", "));
                let place = format!("{place} ({cluster})");
                found.add(LeftoverKind::Objects, (place, what), Removal::Objects(jobs));
            }
            Err(error) => found.is_silent(&place, Error::from(error).message),
        }
    }
}

/// Removes what these jobs have left. What they printed is kept before.
pub(super) fn remove(ctx: &Ctx, jobs: &[Job]) -> Result<(), Error> {
    let Some(runner) = jobs.first().and_then(|job| runners::engine_of(ctx, job)) else {
        return Ok(());
    };
    let runs: Vec<RunRef<'_>> = jobs.iter().map(|job| RunRef { job, session: "" }).collect();
    let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
    let problems = runner.stop_all(&runs, order).into_iter().filter_map(Result::err);
    Error::all(problems.map(Error::from).collect()).map_or(Ok(()), Err)
}
