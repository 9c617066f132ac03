//! `tpu daemon plan`: what the daemon would do next with every job, and why; nothing is done. On the screen with what waits
//! as well, which it lets begin.

use std::time::Duration;

use tpu_core::model::job::Lease;
use tpu_core::model::rules::Action;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{JobView, MonitorHealth, Next, Whose};
use tpu_core::plan::decide::Decision;

use super::queue::shown::{self, WaitingMembers};
use crate::act::outlook;
use crate::observe::snapshot::{self, LookMemory};
use crate::{Ctx, Error};

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
pub(crate) fn plan_from(ctx: &Ctx, memory: &mut LookMemory, age: Duration) -> Result<Plan, Error> {
    let survey = outlook::survey(ctx, memory, age)?;
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

/// The same with what waits in queues behind it: each begins when its turn comes. When that is expected, and why it is not
/// yet, takes asking machines ([`super::queue::outlooks`]).
pub fn plan_with_waiting(ctx: &Ctx, memory: &mut LookMemory, age: Duration) -> Result<Plan, Error> {
    // What waits is read first: what begins meanwhile is in both, and not in neither.
    let mut waiting = shown::views(ctx, &*ctx.data()?, &Whose::default(), WaitingMembers::Folded);
    let mut plan = plan_from(ctx, memory, age)?;
    shown::drop_begun(&mut waiting, plan.jobs.iter().map(|entry| &entry.view));
    plan.jobs.extend(waiting.into_iter().map(|view| {
        let queued = view.shown.queued.as_ref();
        let is_held = queued.is_some_and(|queued| queued.held);
        let reason = queued.and_then(|queued| queued.reason.clone());
        let reason = reason.unwrap_or_else(|| "when its turn comes".to_owned());
        let action = if is_held { Action::Pass.as_str() } else { BEGINS };
        let next = Next {
            action: action.to_owned(),
            in_s: None,
            budget_left: None,
            reason: reason.clone(),
            waits: true,
        };
        Entry { next: Some(next), reason, lease: None, view }
    }));
    Ok(plan)
}
