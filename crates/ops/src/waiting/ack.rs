//! `ack`: a person says that things have changed. Whatever waits for a pause, or for a login, is tried once at once; what
//! is counted stays.

use tpu_core::model::entry::{QueueEntry, QueueHold};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::job::Job;
use tpu_core::model::rules::Action;
use tpu_core::model::view::MonitorHealth;
use tpu_core::plan::budget;

use super::queue::supply;
use crate::act::outlook;
use crate::base::{records, watch};
use crate::observe::snapshot::{self, LookMemory};
use crate::{Ctx, Error};
use tpu_system::store::Tx;

/// What was woken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acked {
    /// Whether there is a daemon to act on it.
    pub monitor: MonitorHealth,
    /// Jobs that waited to be brought back, and entries of the queue that were held for want of a login, or kept from a
    /// target that was not reached.
    pub jobs: Vec<JobId>,
    /// Targets that were to be made later.
    pub targets: Vec<TargetName>,
}

/// Wakes what waits, and asks the daemon to look at once. It is remembered when none runs.
pub fn ack(ctx: &Ctx) -> Result<Acked, Error> {
    let mut acked = ctx.transact(|tx| {
        let now = tx.now;
        tx.data.set_ack(true);
        let targets = supply::rouse(&mut tx.data, now);
        let asleep = tx.data.jobs().filter(|job| budget::is_asleep(job, now));
        let mut jobs: Vec<JobId> = asleep.map(Job::id).collect();
        for id in &jobs {
            rouse(tx, id);
        }
        jobs.extend(let_begin(tx));
        Ok(Acked { monitor: MonitorHealth::NotRunning, jobs, targets })
    })?;
    acked.jobs.extend(rouse_unrecorded(ctx)?);
    acked.monitor = watch::health(ctx);
    Ok(acked)
}

fn rouse(tx: &mut Tx<'_>, id: &JobId) {
    if let Some(job) = tx.data.job_mut(id) {
        budget::rouse(job);
        records::note(tx, id, "roused", "it waits no longer (tpu ack)");
    }
}

/// Lets begin what was held for want of a login, and lets begin anywhere what was on a target in vain.
fn let_begin(tx: &mut Tx<'_>) -> Vec<JobId> {
    let now = tx.now;
    let needs_login = |held: &QueueHold| held.needs_login;
    let is_meant = |entry: &&QueueEntry| {
        entry.held.as_ref().is_some_and(needs_login)
            || entry.shunned.iter().any(|shunned| shunned.until > now)
    };
    let meant: Vec<JobId> =
        tx.data.queues().entries.iter().filter(is_meant).map(QueueEntry::id).collect();
    for id in &meant {
        if let Some(entry) = tx.data.queues_mut().entry_mut(id) {
            entry.held.take_if(|held| needs_login(held));
            entry.shunned.clear();
            records::note(tx, id, "unhold", "it starts when its turn comes (tpu ack)");
        }
    }
    meant
}

/// Wakes those whose failure only their output shows, which no record tells. Everything is looked at for it, where there
/// may be one.
fn rouse_unrecorded(ctx: &Ctx) -> Result<Vec<JobId>, Error> {
    let has_row = |job: &Job| {
        let counts = job.recovery.as_deref();
        counts.is_some_and(|of| of.last_action_at.is_some() && !of.roused)
    };
    let may_wait = |job: &Job| job.status.is_live() && job.child.is_none() && has_row(job);
    if !ctx.data()?.jobs().any(may_wait) {
        return Ok(Vec::new());
    }
    let survey = outlook::survey(ctx, &mut LookMemory::default(), snapshot::ASKED_AT_MOST)?;
    let now = survey.snapshot.at;
    let waits = survey.decisions.iter().filter(|decision| {
        decision.action != Action::Pass && decision.not_before.is_some_and(|at| at > now)
    });
    let found: Vec<&Job> =
        waits.filter_map(|of| survey.data.job(&of.job)).filter(|job| may_wait(job)).collect();
    if found.is_empty() {
        return Ok(Vec::new());
    }
    ctx.transact(|tx| {
        let same = |tx: &Tx<'_>, seen: &&&Job| {
            tx.data.job(&seen.id()).is_some_and(|job| job.launch == seen.launch && may_wait(job))
        };
        let jobs: Vec<JobId> =
            found.iter().filter(|seen| same(tx, seen)).map(|job| job.id()).collect();
        for id in &jobs {
            rouse(tx, id);
        }
        Ok(jobs)
    })
}
