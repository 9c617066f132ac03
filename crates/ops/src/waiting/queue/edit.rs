//! Changes what waits: holds it, lets it begin, takes it back, moves it; and makes and changes queues.

use crate::base::account::name_at_work;
use crate::base::called::JobWord;
use crate::base::ctx::user_of;
use crate::base::environment;
use crate::base::error::did_you_mean;
use crate::base::queue_entries::gone;
use crate::base::records;
use crate::{Ctx, Error, Kind};
use tpu_core::model::data::Data;
use tpu_core::model::entry::{Priority, QueueEntry, QueueHold};
use tpu_core::model::ids::{JobId, JobNumber, QueueName, UserName};
use tpu_core::model::queue::{Queue, QueuePolicy, QueueState};
use tpu_system::store::Tx;

/// The entries of a user that are called by these words: numbers, or names; and what speaks against those words that call
/// a job which waits no more. Fails where one calls nothing.
pub fn called(
    data: &Data,
    user: &UserName,
    words: &[JobWord],
) -> Result<(Vec<JobId>, Vec<Error>), Error> {
    user_of(data, user)?;
    let (mut all, mut problems): (Vec<JobId>, Vec<Error>) = (Vec::new(), Vec::new());
    for word in words {
        let mut found = named(data, user, word);
        if found.is_empty() {
            let error = waits_not(data, user, word);
            if error.kind == Kind::NotFound {
                return Err(error);
            }
            problems.push(error);
        }
        found.retain(|id| !all.contains(id));
        all.extend(found);
    }
    Ok((all, problems))
}

/// The entries of a user that one word calls; none if it calls something else.
pub fn named(data: &Data, user: &UserName, word: &JobWord) -> Vec<JobId> {
    let JobWord::Number(number) = word else {
        let called = word.waiting(data, user).into_iter();
        return called.filter(|called| called.members.is_none()).map(|called| called.id).collect();
    };
    let entries = data.queues().entries.iter();
    let is_meant = |entry: &&QueueEntry| entry.user == *user && entry.number == *number;
    entries.filter(is_meant).map(QueueEntry::id).collect()
}

fn waits_not(data: &Data, user: &UserName, word: &JobWord) -> Error {
    if let JobWord::Number(number) = word
        && let Some(job) = data.job(&JobId::new(user.clone(), *number))
    {
        return Error::refused(format!("{} does not wait: it is {}", job.id(), job.status))
            .hint("`tpu queue` lists what waits");
    }
    Error::not_found(format!("nothing of {user} that waits is called '{word}'"))
        .hint("`tpu queue` lists what waits")
}

/// The entries, to be changed one by one; one that has begun meanwhile is an error, and then nothing is changed.
fn each(
    ctx: &Ctx,
    ids: &[JobId],
    mut change: impl FnMut(&mut Tx<'_>, &JobId) -> Result<(), Error>,
) -> Result<(), Error> {
    ctx.transact(|tx| each_in(tx, ids, &mut change))
}

fn each_in(
    tx: &mut Tx<'_>,
    ids: &[JobId],
    mut change: impl FnMut(&mut Tx<'_>, &JobId) -> Result<(), Error>,
) -> Result<(), Error> {
    for id in ids {
        if tx.data.queues().entry(id).is_none() {
            return Err(waits_not(&tx.data, &id.user, &JobWord::Number(id.window)));
        }
        change(tx, id)?;
    }
    Ok(())
}

fn entry<'a>(tx: &'a mut Tx<'_>, id: &JobId) -> Result<&'a mut QueueEntry, Error> {
    tx.data.queues_mut().entry_mut(id).ok_or_else(gone)
}

/// Lets entries wait until somebody says otherwise.
pub fn hold(ctx: &Ctx, ids: &[JobId], why: Option<&str>) -> Result<(), Error> {
    each(ctx, ids, |tx, id| {
        let (by, since) = (name_at_work(ctx, &tx.data), tx.now);
        entry(tx, id)?.held =
            Some(QueueHold { by, since, why: why.map(str::to_owned), needs_login: false });
        records::note(tx, id, "held", why.unwrap_or_default());
        Ok(())
    })
}

/// Lets them begin when their turn comes.
pub fn unhold(ctx: &Ctx, ids: &[JobId]) -> Result<(), Error> {
    each(ctx, ids, |tx, id| {
        entry(tx, id)?.held = None;
        records::note(tx, id, "unhold", "it starts when its turn comes");
        Ok(())
    })
}

/// Takes them out of the queue, into the archive: nothing of them begins.
pub fn dequeue(ctx: &Ctx, ids: &[JobId]) -> Result<(), Error> {
    ctx.transact(|tx| take_out(tx, ids))?;
    // One that came back into the queue has left its own.
    environment::discard(ctx, ids);
    environment::clear_laid_by(ctx);
    Ok(())
}

/// The same within a transaction.
pub(super) fn take_out(tx: &mut Tx<'_>, ids: &[JobId]) -> Result<(), Error> {
    each_in(tx, ids, |tx, id| {
        if let Some(entry) = tx.data.queues_mut().take(id) {
            if let Some(of) = entry.succeeds {
                forget_awaited(tx, &JobId::new(id.user.clone(), of.job));
            }
            super::unbegun::archive(tx, &entry);
        }
        Ok(())
    })
}

/// Makes them more or less urgent.
pub fn set_priority(ctx: &Ctx, ids: &[JobId], priority: Priority) -> Result<(), Error> {
    each(ctx, ids, |tx, id| {
        entry(tx, id)?.priority = priority;
        records::note(tx, id, "priority", priority.to_string());
        Ok(())
    })
}

/// Moves them before all others of their priority, in the order in which they are named.
pub fn move_to_front(ctx: &Ctx, ids: &[JobId]) -> Result<(), Error> {
    ctx.transact(|tx| {
        let lowest = tx.data.queues().entries.iter().map(|entry| entry.rank).min().unwrap_or(0);
        let count = i64::try_from(ids.len()).unwrap_or(i64::MAX);
        for (id, rank) in ids.iter().zip(lowest.saturating_sub(count)..) {
            entry(tx, id)?.rank = rank;
            records::note(tx, id, "moved", "before all others of its priority");
        }
        Ok(())
    })
}

/// What is said of a queue; what is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueEdit {
    /// Who may begin before whom.
    pub policy: Option<QueuePolicy>,
    /// How many of its jobs may be at work at once; none without a limit.
    pub max_parallel: Option<Option<u32>>,
    /// Where its jobs begin, whatever they name; an empty list where each says it itself.
    pub on: Option<Vec<String>>,
    /// What it does.
    pub state: Option<QueueState>,
}

/// Makes a queue.
pub fn create(ctx: &Ctx, name: &QueueName, edit: &QueueEdit) -> Result<Queue, Error> {
    let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let text = name.as_str();
    if text.is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
        return Err(Error::usage(format!("'{text}' cannot be the name of a queue"))
            .hint("letters, digits, '_', '-' and '.', and no '-' in front"));
    }
    ctx.transact(|tx| {
        let known = tx.data.queues();
        if known.queue(name).is_some() {
            return Err(Error::refused(format!("there is a queue {name} already"))
                .hint(format!("change it: tpu queue set {name} …")));
        }
        change(tx, Queue::new(name.clone()), edit)
    })
}

/// Changes a queue.
pub fn set(ctx: &Ctx, name: &QueueName, edit: &QueueEdit) -> Result<Queue, Error> {
    ctx.transact(|tx| {
        let known = find(&tx.data, name)?;
        change(tx, known, edit)
    })
}

fn change(tx: &mut Tx<'_>, mut queue: Queue, edit: &QueueEdit) -> Result<Queue, Error> {
    if let Some(on) = &edit.on {
        super::wish::may_be_places(&tx.data, on)?;
        queue.on.clone_from(on);
    }
    queue.policy = edit.policy.unwrap_or(queue.policy);
    queue.max_parallel = edit.max_parallel.unwrap_or(queue.max_parallel);
    queue.state = edit.state.unwrap_or(queue.state);
    tx.data.queues_mut().set(queue.clone());
    tx.edited(None, format!("queue {}: {}", queue.name, in_words(&queue)));
    Ok(queue)
}

/// What holds for a queue, for people.
pub fn in_words(queue: &Queue) -> String {
    let mut words = vec![queue.state.as_str().to_owned(), queue.policy.as_str().to_owned()];
    words.extend(queue.max_parallel.map(|most| format!("{most} at once")));
    if !queue.on.is_empty() {
        words.push(format!("on {}", queue.on.join(", ")));
    }
    words.join(", ")
}

/// Takes all that waits in a queue out of it, into the archive, and forgets the queue: both or neither. What was taken out.
pub fn remove_with_all(ctx: &Ctx, name: &QueueName) -> Result<Vec<JobId>, Error> {
    ctx.transact(|tx| {
        let waiting = tx.data.queues().entries.iter().filter(|entry| entry.queue == *name);
        let waiting: Vec<JobId> = waiting.map(QueueEntry::id).collect();
        take_out(tx, &waiting)?;
        forget(tx, name)?;
        Ok(waiting)
    })
}

/// Forgets a queue in which nothing waits.
pub fn remove(ctx: &Ctx, name: &QueueName) -> Result<(), Error> {
    ctx.transact(|tx| {
        let waiting = tx.data.queues().entries.iter().filter(|entry| entry.queue == *name);
        let waiting: Vec<JobNumber> = waiting.map(|entry| entry.number).collect();
        if let Some(first) = waiting.first() {
            let what = format!("{} wait in {name}", tpu_core::text::counted(waiting.len(), "entry"));
            return Err(Error::refused(what).hint(format!(
                "take them out first: tpu dequeue {first}, or let it run empty: tpu queue drain {name}"
            )));
        }
        forget(tx, name)
    })
}

fn forget(tx: &mut Tx<'_>, name: &QueueName) -> Result<(), Error> {
    find(&tx.data, name)?;
    if !tx.data.queues_mut().remove(name) {
        return Err(Error::refused(format!("{name} is always there"))
            .hint("its settings are the defaults: nothing to remove"));
    }
    tx.edited(None, format!("queue {name} is forgotten"));
    Ok(())
}

/// A queue that is there.
pub fn find(data: &Data, name: &QueueName) -> Result<Queue, Error> {
    data.queues().queue(name).ok_or_else(|| {
        let all = data.queues().all();
        let known: Vec<&str> = all.iter().map(|queue| queue.name.as_str()).collect();
        let hint = did_you_mean(name.as_str(), known.iter().copied()).unwrap_or_else(|| {
            format!("there is {}; make one: tpu queue create {name}", known.join(", "))
        });
        Error::not_found(format!("there is no queue '{name}'")).hint(hint)
    })
}

/// Refuses a queue that is not there, or takes nothing new.
pub(super) fn takes(data: &Data, name: &QueueName) -> Result<(), Error> {
    match find(data, name)?.state {
        QueueState::Draining => Err(Error::refused(format!("queue {name} takes nothing new"))
            .hint(format!("take another one, or open it: tpu queue resume {name}"))),
        QueueState::Open | QueueState::Paused => Ok(()),
    }
}

/// Nothing waits any more to go on from an attempt: its rules hold again.
pub(super) fn forget_awaited(tx: &mut Tx<'_>, job: &JobId) {
    let recovery = tx.data.job_mut(job).and_then(|job| job.recovery.as_mut());
    if let Some(recovery) = recovery {
        recovery.stopped = None;
    }
}
