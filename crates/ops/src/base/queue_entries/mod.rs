//! Entries of the queue as records: what follows when an attempt or a number takes the place of another. All of it is
//! done as part of a transaction, and nothing here looks at anything else.

pub mod awaited;
pub mod back;
pub mod occupancy;
pub mod tasks;

use tpu_core::model::answered::AnsweredRequest;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::JobId;
use tpu_system::store::Tx;

use super::records;
use crate::Error;

/// The kind of the event that says under which number an entry began, where that is another one.
pub(crate) const RENUMBERED: &str = "renumbered";
/// How its text begins.
pub(crate) const BECOME: &str = "it has become ";

/// Somebody else has started what was to be started, or it was told not to begin.
pub fn gone() -> Error {
    Error::refused("its place in the queue is gone: nothing was started")
        .hint("`tpu check` shows whether it was started already; wait anew: tpu run TYPE --wait")
}

/// Lets those that wait for an attempt wait for the one that succeeds it: the record of the first may be cleared away
/// while the second is at work.
pub fn follow(tx: &mut Tx<'_>, from: &JobId, to: &JobId) {
    tasks::follow(tx, from, to);
    targets_follow(tx, from, to);
    let waits = |entry: &QueueEntry| entry.after.iter().any(|after| after.job == *from);
    if !tx.data.queues().entries.iter().any(waits) {
        return;
    }
    let entries = tx.data.queues_mut().entries.iter_mut();
    let waits = entries.flat_map(|entry| entry.after.iter_mut());
    for after in waits.filter(|after| after.job == *from) {
        after.job = to.clone();
    }
}

/// Lets those that wait for an entry wait for the job that it has become, under another number.
pub fn renumber(tx: &mut Tx<'_>, from: &JobId, to: &JobId) {
    follow(tx, from, to);
    answers_follow(tx, from, to);
    let text = format!("{BECOME}{to}: a tmux window stood in its place");
    records::note(tx, from, RENUMBERED, text);
}

/// The promise goes on with whatever goes on from a job.
fn targets_follow(tx: &mut Tx<'_>, from: &JobId, to: &JobId) {
    if tx.data.queues().loans.iter().any(|loan| loan.job == *from) {
        let loans = tx.data.queues_mut().loans.iter_mut();
        loans.filter(|loan| loan.job == *from).for_each(|loan| loan.job = to.clone());
    }
}

/// What was answered with one number is answered with another.
fn answers_follow(tx: &mut Tx<'_>, from: &JobId, to: &JobId) {
    let is_meant = |request: &AnsweredRequest| request.jobs.contains(from);
    if !tx.data.queues().answered.iter().any(is_meant) {
        return;
    }
    let answered = tx.data.queues_mut().answered.iter_mut();
    for job in answered.flat_map(|request| &mut request.jobs).filter(|job| *job == from) {
        *job = to.clone();
    }
}
