//! `tpu daemon plan`: what the daemon would do next with every job, and why; nothing is done.

use std::time::Duration;

use crate::model::job::Lease;
use crate::model::time::Timestamp;
use crate::model::view::{JobView, MonitorHealth, Next};
use crate::plan::decide::Decision;

use super::snapshot::{self, LookMemory};
use super::{Ctx, Error};

/// What is planned for one job.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// How it stands.
    pub view: JobView,
    /// What happens by itself; `None` if nothing is wrong.
    pub next: Option<Next>,
    /// Why nothing is to be done, where nothing is wrong.
    pub reason: String,
    /// Who is acting on its lineage, if anybody.
    pub lease: Option<Lease>,
}

/// The whole plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// When it was made.
    pub at: Timestamp,
    /// Whether there is a daemon to carry it out.
    pub monitor: MonitorHealth,
    /// Every job, in the order of the file.
    pub jobs: Vec<Entry>,
}

/// Plans for everybody's jobs.
pub fn plan(ctx: &Ctx) -> Result<Plan, Error> {
    plan_from(ctx, &mut LookMemory::default(), snapshot::ASKED_AT_MOST)
}

/// The same for whoever plans again and again: panes that have not changed are not read again, and an
/// answer of the control plane serves for so long.
pub fn plan_from(ctx: &Ctx, memory: &mut LookMemory, age: Duration) -> Result<Plan, Error> {
    let survey = snapshot::survey(ctx, memory, age)?;
    let at = survey.snapshot.at;
    let lease = |view: &JobView| survey.data.job(&view.id)?.lease.clone();
    let entry = |(view, decision): (JobView, Decision)| Entry {
        next: view.next.clone(),
        reason: decision.reason,
        lease: lease(&view).filter(|lease| lease.until > at),
        view,
    };
    Ok(Plan {
        at,
        monitor: survey.snapshot.monitor,
        jobs: survey.snapshot.jobs.into_iter().zip(survey.decisions).map(entry).collect(),
    })
}
