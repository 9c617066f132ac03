//! Puts a job back into the queue: it is stopped, at a checkpoint where its program can save one, and goes on as the next
//! attempt of its lineage when its turn comes.
//!
//! Its entry is there before anything is stopped, and does not begin while the attempt lives: whoever dies in between
//! leaves a job that runs, and what waits for its end.

use std::time::Duration;

use crate::act::{kill, reconcile, successor};
use crate::base::account::name_at_work;
use crate::base::ctx::{job_mut, job_of, user_of};
use crate::base::{confined, environment, records, secrets, watch};
use crate::observe::runners;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::{Awaited, Passed, Priority, QueueEntry, QueueHold};
use tpu_core::model::ids::{JobId, QueueName};
use tpu_core::model::job::{Job, Status, Succession};
use tpu_core::model::lineage::Lineage;
use tpu_core::model::spec::JobSpec;
use tpu_engine::runner::Unreached;

use super::edit::{self, takes};
use super::order;

/// Between two looks at a program that saves a checkpoint.
const REST: Duration = Duration::from_millis(200);

/// How a job waits that is put back.
#[derive(Clone, Debug, Default)]
pub struct Requeued {
    /// In which queue; else in that in which it waited before.
    pub queue: Option<QueueName>,
    /// How urgent it is.
    pub priority: Priority,
    /// Whether it is not to begin before somebody says so.
    pub is_held: bool,
    /// Stop it without waiting for a checkpoint.
    pub now: bool,
    /// Whether no target is to be made for it, though its own was.
    pub keeps_targets: bool,
}

/// Refuses what [`requeue`] would refuse before it stops anything.
pub fn dry_run(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, &leaf_of(ctx, id)?)?;
    checked(ctx, &data, job)?;
    may_enter(&data, job)?;
    let queue = job.spec.as_ref().and_then(|spec| spec.queue.clone());
    takes(&data, &queue.unwrap_or_else(QueueName::usual))
}

/// How a job would go on, if it can be begun again: what could not be is not stopped.
fn checked(ctx: &Ctx, data: &Data, job: &Job) -> Result<Succession, Error> {
    if let Some(target) = data.target(&job.tpu) {
        confined::may_run_on(&ctx.only_on, &target)?;
    }
    let way = if job.status == Status::Finished { Succession::Rerun } else { Succession::Resume };
    drop(successor::of(ctx, user_of(data, &job.user)?, job, way)?);
    if let Some(execution) = job.execution() {
        let given = environment::stored(ctx, &job.id())?.unwrap_or_default().given;
        secrets::are_kept(ctx, execution, &given)?;
    }
    Ok(way)
}

/// Refuses what goes on already, or is about to.
fn may_enter(data: &Data, job: &Job) -> Result<(), Error> {
    let id = job.id();
    if let Some(waits) = data.queues().successor_of(&id) {
        return Err(Error::refused(format!("{id} already waits to continue as {}", waits.id()))
            .hint(format!("`tpu explain {} {}` says why", waits.number, id.user)));
    }
    if let Some(intent) = &job.intent {
        return Err(Error::refused(format!("{id} is {}", intent.action))
            .hint("wait until that is over, then try again"));
    }
    match job.child {
        Some(child) => Err(Error::refused(format!("{id} continues as {}/{child}", id.user))
            .hint("look again: tpu check")),
        None => Ok(()),
    }
}

/// Puts a job back into the queue. Its number there; what was to be known of how it was stopped.
pub fn requeue(ctx: &Ctx, id: &JobId, how: &Requeued) -> Result<(JobId, Option<String>), Error> {
    reconcile::reconcile(ctx)?;
    let data = ctx.data()?;
    let job = job_of(&data, &leaf_of(ctx, id)?)?;
    let way = checked(ctx, &data, job)?;
    let entry = enter(ctx, job, way, how)?;
    fail::fail_point!("requeue-entered");
    match stop(ctx, (job, &entry), how) {
        Ok(remark) => Ok((entry, remark)),
        Err(error) => Err(undone(ctx, (&job.id(), &entry), error)),
    }
}

/// What was not stopped does not wait either, unless its end is under way.
fn undone(ctx: &Ctx, (job, entry): (&JobId, &JobId), error: Error) -> Error {
    let left = ctx.transact(|tx| {
        let is_ending = tx.data.job(job).is_none_or(Job::is_being_killed);
        if is_ending || tx.data.queues_mut().take(entry).is_none() {
            return Ok(is_ending);
        }
        edit::forget_awaited(tx, job);
        records::note(tx, entry, "dequeued", format!("{job} could not be stopped"));
        Ok(false)
    });
    let hint = match left {
        Ok(false) => "it continues to run, and nothing of it is queued".to_owned(),
        Ok(true) | Err(_) => format!(
            "{entry} waits to continue from it; to prevent that: tpu dequeue {} {}",
            entry.window, entry.user
        ),
    };
    let hint = format!("{}; {hint}", error.advice());
    error.hint(hint)
}

/// The last attempt of its lineage.
fn leaf_of(ctx: &Ctx, id: &JobId) -> Result<JobId, Error> {
    let data = ctx.data()?;
    let lineage = Lineage::of(user_of(&data, &id.user)?, id.window);
    let leaf = lineage.and_then(|lineage| lineage.leaf()).unwrap_or(id.window);
    Ok(JobId::new(id.user.clone(), leaf))
}

/// The successor of a job, as it waits.
fn enter(ctx: &Ctx, job: &Job, way: Succession, how: &Requeued) -> Result<JobId, Error> {
    let id = job.id();
    let mut spec = job.spec_with(successor::stored_args(job));
    spec.execution.only_on = confined::limit(ctx, &spec.execution).clone();
    let queue = how.queue.clone().or_else(|| spec.queue.clone());
    let queue = queue.unwrap_or_else(QueueName::usual);
    let place = watch::place(ctx);
    ctx.transact(|tx| {
        let now = tx.now;
        may_enter(&tx.data, job_of(&tx.data, &id)?)?;
        takes(&tx.data, &queue)?;
        user_of(&tx.data, &id.user)?;
        let number = tx.data.next_number(&id.user, None);
        let number = number.expect("the user was found a line above, in the same transaction");
        let held = how.is_held.then(|| name_at_work(ctx, &tx.data));
        let waits = JobId::new(id.user.clone(), number);
        let job = job_mut(&mut tx.data, &id)?;
        let tpu = job.tpu.clone();
        // No rule brings it back beside that.
        let recovery = job.counts_mut();
        recovery.stopped = Some(format!("it waits in the queue to continue as {waits}"));
        let applies = !how.keeps_targets && order::was_made_for(&tx.data, &tpu);
        tx.data.queues_mut().entries.push(QueueEntry {
            user: id.user.clone(),
            number,
            queue: queue.clone(),
            spec: JobSpec { queue: Some(queue.clone()), ..spec.clone() },
            sweep: None,
            force: false,
            // Its parent's is taken.
            env: Vec::new().into(),
            since: now,
            priority: how.priority,
            rank: 0,
            held: held.clone().map(|by| QueueHold {
                by,
                since: now,
                why: None,
                needs_login: false,
            }),
            shunned: Vec::new(),
            after: Vec::new(),
            passed: Passed::default(),
            place: place.clone(),
            keeper: None,
            succeeds: Some(Awaited { job: id.window, how: way, is_told: false }),
            applies,
        });
        records::note(tx, &waits, "queued", format!("in {queue}, to go on from {id}"));
        Ok(waits)
    })
}

/// Stops what is to go on later; its program is told before, and given its time. What is to be known of that.
fn stop(ctx: &Ctx, (job, entry): (&Job, &JobId), how: &Requeued) -> Result<Option<String>, Error> {
    let id = job.id();
    if !job.status.is_live() {
        return Ok(None);
    }
    let data = ctx.data()?;
    let settings = ctx.settings(Some(user_of(&data, &id.user)?))?;
    let mut remark = None;
    if let Some(signal) = settings.checkpoint_signal.filter(|_| !how.now) {
        told(ctx, entry)?;
        match runners::save(ctx, &data, job, signal) {
            Ok(true) => {
                let grace = Duration::from_secs(u64::from(settings.checkpoint_grace));
                if !ends_within(ctx, &id, grace)? {
                    remark = Some(format!(
                        "{id} was told to save a checkpoint ({}) and ran on for {} s: it was stopped",
                        signal.as_str(),
                        settings.checkpoint_grace
                    ));
                }
            }
            Ok(false) => {}
            Err(error) => remark = Some(format!("stopped without a checkpoint: {}", error.message)),
        }
    }
    let data = ctx.data()?;
    let now = job_of(&data, &id)?;
    if now.child.is_some() {
        // It has ended, and found its next place at once.
        return Ok(remark);
    }
    if data.queues().entry(entry).is_none() {
        return Err(Error::refused(format!("{entry} was taken out of the queue meanwhile"))
            .hint(format!("{id} was not stopped")));
    }
    let ended = |job: &Job| format!("{id} has ended before it was stopped: it is {}", job.status);
    if !now.status.is_live() {
        return Ok(remark.or_else(|| Some(ended(now))));
    }
    match kill::kill_one(ctx, &id, Unreached::Refuse) {
        Ok(_) => Ok(remark),
        Err(error) => match job_of(&*ctx.data()?, &id)? {
            job if job.status.is_live() => Err(error),
            job => Ok(remark.or_else(|| Some(ended(job)))),
        },
    }
}

/// Remembers that the program of the attempt is told to save a checkpoint, before it is.
fn told(ctx: &Ctx, entry: &JobId) -> Result<(), Error> {
    ctx.transact(|tx| {
        let waits = tx.data.queues_mut().entry_mut(entry);
        if let Some(of) = waits.and_then(|waits| waits.succeeds.as_mut()) {
            of.is_told = true;
        }
        Ok(())
    })
}

/// Whether the program of a job ends within so much time.
fn ends_within(ctx: &Ctx, id: &JobId, grace: Duration) -> Result<bool, Error> {
    let until = ctx.clock.monotonic() + grace;
    loop {
        let data = ctx.data()?;
        let job = job_of(&data, id)?;
        if !job.status.is_live() || runners::processes(ctx, &data, job)?.is_empty() {
            return Ok(true);
        }
        if ctx.clock.monotonic() >= until {
            return Ok(false);
        }
        ctx.clock.sleep(REST);
    }
}
