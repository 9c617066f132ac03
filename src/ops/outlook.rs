//! `tpu daemon plan`: what MONITOR would do next with every job, and why; nothing is done.

use crate::model::time::Timestamp;
use crate::model::view::{JobView, MonitorHealth, Next};
use crate::plan::decide::Decision;
use crate::plan::next;

use super::snapshot::{self, Memory};
use super::{Ctx, Error};

/// What is planned for one job.
#[derive(Clone, Debug)]
pub struct Entry {
    /// How it stands.
    pub view: JobView,
    /// What would happen if MONITOR turned now; `None` if nothing is wrong.
    pub next: Option<Next>,
    /// Why nothing is to be done, where nothing is wrong.
    pub reason: String,
}

/// The whole plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When it was made.
    pub at: Timestamp,
    /// Whether there is a MONITOR to carry it out.
    pub monitor: MonitorHealth,
    /// Every job, in the order of the file.
    pub jobs: Vec<Entry>,
}

/// Plans for everybody's jobs.
pub fn plan(ctx: &Ctx) -> Result<Plan, Error> {
    let survey = snapshot::survey(ctx, &mut Memory::default(), snapshot::ASKED_AT_MOST)?;
    let at = survey.snapshot.at;
    let entry = |(view, decision): (JobView, Decision)| Entry {
        next: next::next(&decision, at),
        reason: decision.reason,
        view,
    };
    Ok(Plan {
        at,
        monitor: survey.snapshot.monitor,
        jobs: survey.snapshot.jobs.into_iter().zip(survey.decisions).map(entry).collect(),
    })
}
