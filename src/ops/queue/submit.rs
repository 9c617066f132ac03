//! Puts jobs into the queue.

use crate::model::data::Data;
use crate::model::entry::{After, Keeper, Passed, Priority, QueueEntry, QueueHold};
use crate::model::ids::{JobId, QueueName};
use crate::model::queue::QueueState;
use crate::model::spec::{JobSpec, TargetRequest};
use crate::model::sweep::Sweep;
use crate::ops::ctx::user_of;
use crate::ops::launch::{RunRequest, check};
use crate::ops::whose::name_at_work;
use crate::ops::{Ctx, Error, lease, named, names, records, watch};

use super::field::Wish;
use super::pass::kept;
use super::{after, edit, now};

/// How a job waits.
#[derive(Clone, Debug)]
pub struct Submission {
    /// In which queue.
    pub queue: QueueName,
    /// How urgent it is.
    pub priority: Priority,
    /// Whether it is not to begin before somebody says so.
    pub is_held: bool,
    /// Why it is held, if that is said.
    pub held_for: Option<String>,
    /// Whether its target may be one that nobody knows yet: it waits until somebody does.
    pub is_target_later: bool,
    /// What has to end before.
    pub after: Vec<After>,
    /// Whether this process waits for it.
    pub is_kept: bool,
    /// What differs between the members of a group.
    pub sweep: Option<Sweep>,
}

impl Default for Submission {
    fn default() -> Self {
        Self {
            queue: QueueName::usual(),
            priority: Priority::default(),
            is_held: false,
            held_for: None,
            is_target_later: false,
            after: Vec::new(),
            is_kept: false,
            sweep: None,
        }
    }
}

/// Puts a job into a queue, or the members of a group. Its number is its own from now on; what would keep it from
/// beginning anywhere is refused at once.
pub fn enter(ctx: &Ctx, request: &RunRequest, how: &Submission) -> Result<JobId, Error> {
    check::may_wait(ctx, request)?;
    if !how.is_target_later {
        can_begin(ctx, request)?;
    }
    let env = kept(check::kept_environment(ctx));
    let owner = how.is_kept.then(|| lease::me(&ctx.env));
    let place = watch::place(ctx);
    ctx.transact(|tx| {
        let now = tx.now;
        user_of(&tx.data, &request.user)?;
        takes(&tx.data, &how.queue)?;
        for after in &how.after {
            after::may_be(&tx.data, after)?;
        }
        if let Some(name) = &request.spec.name {
            names::refuse_waiting(&tx.data, &request.user, name)?;
        }
        let number = tx.data.next_number(&request.user, None);
        let number = number.expect("the user was found above, in the same transaction");
        let why = how.held_for.clone();
        let hold = |data: &Data| QueueHold { by: name_at_work(ctx, data), since: now, why };
        let entry = QueueEntry {
            user: request.user.clone(),
            number,
            queue: how.queue.clone(),
            spec: JobSpec { queue: Some(how.queue.clone()), ..request.spec.clone() },
            sweep: how.sweep.clone(),
            force: request.force,
            env: env.clone(),
            since: now,
            priority: how.priority,
            rank: 0,
            held: how.is_held.then(|| hold(&tx.data)),
            after: how.after.clone(),
            passed: Passed::default(),
            place: place.clone(),
            keeper: owner.clone().map(|owner| Keeper { owner, seen: now }),
            staged: None,
        };
        let id = entry.id();
        tx.data.queues_mut().entries.push(entry);
        records::note(tx, &id, "queued", format!("in {}", how.queue));
        Ok(id)
    })
}

/// Refuses what could begin nowhere that is known.
fn can_begin(ctx: &Ctx, request: &RunRequest) -> Result<(), Error> {
    if let TargetRequest::Named(name) = &request.spec.target {
        named::resolve_target(&*ctx.data()?, name)?;
    }
    Wish::of(request).map_or(Ok(()), |wish| now::possible(ctx, &wish))
}

/// Refuses a queue that is not there, or takes nothing new.
fn takes(data: &Data, name: &QueueName) -> Result<(), Error> {
    match edit::find(data, name)?.state {
        QueueState::Draining => Err(Error::refused(format!("queue {name} takes nothing new"))
            .hint(format!("take another one, or open it: tpu queue resume {name}"))),
        QueueState::Open | QueueState::Paused => Ok(()),
    }
}
