//! Puts jobs into the queue.

use crate::model::data::Data;
use crate::model::entry::{After, Keeper, Passed, Priority, QueueEntry, QueueHold};
use crate::model::ids::{JobId, QueueName};
use crate::model::spec::{JobSpec, TargetRequest};
use crate::model::sweep::Sweep;
use crate::ops::ctx::user_of;
use crate::ops::launch::RunRequest;
use crate::ops::launch::check;
use crate::ops::whose::name_at_work;
use crate::ops::{Ctx, Error, lease, named, names, records, stage, watch};
use crate::store::Tx;

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
    /// Whether its code is read when it begins, and not copied now.
    pub stages_late: bool,
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
            stages_late: false,
        }
    }
}

/// Puts a job into a queue, or the members of a group. Its number is its own from now on; what would keep it from
/// beginning anywhere is refused at once.
pub fn enter(ctx: &Ctx, request: &RunRequest, how: &Submission) -> Result<JobId, Error> {
    enter_all(ctx, std::slice::from_ref(request), how).map(|mut ids| ids.remove(0))
}

/// Puts several jobs of one user and one directory into a queue, all of them or none. They share the copy of their code.
pub fn enter_all(
    ctx: &Ctx,
    requests: &[RunRequest],
    how: &Submission,
) -> Result<Vec<JobId>, Error> {
    let mut last = None;
    for request in requests {
        last = Some((check::may_wait(ctx, request)?, &request.user));
        if !how.is_target_later {
            can_begin(ctx, request)?;
        }
    }
    let Some((ready, user)) = last else { return Ok(Vec::new()) };
    let env = kept(check::kept_environment(ctx));
    let owner = how.is_kept.then(|| lease::me(&ctx.env));
    let place = watch::place(ctx);
    let staged = (!how.stages_late).then(|| {
        let data = ctx.data()?;
        stage::keep(ctx, user_of(&data, user)?, (&ready.dir, ready.mode))
    });
    let staged = staged.transpose()?;
    let enter = |tx: &mut Tx<'_>, request: &RunRequest| {
        let now = tx.now;
        user_of(&tx.data, &request.user)?;
        edit::takes(&tx.data, &how.queue)?;
        for after in &how.after {
            after::may_be(&tx.data, after, request.spec.array.as_ref())?;
        }
        if let Some(name) = &request.spec.name {
            names::refuse_waiting(&tx.data, &request.user, name)?;
        }
        let number = tx.data.next_number(&request.user, None);
        let number = number.expect("the user was found above, in the same transaction");
        let hold = |data: &Data| QueueHold {
            by: name_at_work(ctx, data),
            since: now,
            why: how.held_for.clone(),
        };
        let entry = QueueEntry {
            user: request.user.clone(),
            number,
            queue: how.queue.clone(),
            spec: JobSpec {
                queue: Some(how.queue.clone()),
                command: request.spec.command.clone().or_else(|| ready.words()),
                staged: staged.clone(),
                ..request.spec.clone()
            },
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
            succeeds: None,
        };
        let id = entry.id();
        tx.data.queues_mut().entries.push(entry);
        records::note(tx, &id, "queued", format!("in {}", how.queue));
        Ok(id)
    };
    let entered = ctx.transact(|tx| requests.iter().map(|request| enter(tx, request)).collect());
    if let (Err(_), Some(staged)) = (&entered, &staged) {
        stage::discard(ctx, staged);
    }
    entered
}

/// Refuses what could begin nowhere that is known.
fn can_begin(ctx: &Ctx, request: &RunRequest) -> Result<(), Error> {
    if let TargetRequest::Named(name) = &request.spec.target {
        named::resolve_target(&*ctx.data()?, name)?;
    }
    Wish::of(request).map_or(Ok(()), |wish| now::possible(ctx, &wish))
}
