//! `tpu daemon plan`: what the daemon would do next with every job, and why; nothing is done. On the screen with what waits
//! as well, which it lets begin.

use std::time::Duration;

use crate::model::job::Lease;
use crate::model::time::Timestamp;
use crate::model::view::{JobView, MonitorHealth, Next, Whose};
use crate::plan::decide::Decision;
use crate::plan::expected::ExpectedStart;

use super::queue;
use super::queue::shown::{self, WaitingMembers};
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

/// What is said of something that begins when its turn comes, in the place of an action.
pub const BEGINS: &str = "begin";

/// A plan with what waits in queues behind it: when each is expected to begin, and why not before.
pub fn with_waiting(ctx: &Ctx, mut plan: Plan) -> Result<Plan, Error> {
    let data = ctx.data()?;
    let waiting = shown::views(ctx, &data, &Whose::default(), WaitingMembers::Folded);
    if waiting.is_empty() {
        return Ok(plan);
    }
    let mut outlooks = queue::outlooks(ctx)?;
    let at = plan.at;
    plan.jobs.extend(waiting.into_iter().map(|view| {
        let outlook = outlooks.remove(&view.id).unwrap_or_default();
        let said = view.shown.queued.as_ref().and_then(|queued| queued.reason.clone());
        let reason =
            said.or(outlook.why).unwrap_or_else(|| "it begins when its turn comes".to_owned());
        let in_s = match outlook.expected {
            Some(ExpectedStart::About { first, .. }) => Some(first.seconds_since(at)),
            Some(ExpectedStart::Unknown(_)) | None => None,
        };
        let is_held = view.shown.queued.as_ref().is_some_and(|queued| queued.held);
        let action = if is_held { "pass" } else { BEGINS };
        let next = Next {
            action: action.to_owned(),
            in_s,
            budget_left: None,
            reason: reason.clone(),
            waits: true,
        };
        Entry { next: Some(next), reason, lease: None, view }
    }));
    Ok(plan)
}
