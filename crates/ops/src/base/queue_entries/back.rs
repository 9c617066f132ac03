//! What was claimed and never began goes back into the queue, as part of a transaction.

use tpu_core::model::entry::{QueueEntry, Shunned};
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::spec::JobSpec;
use tpu_core::model::waited::Waited;
use tpu_system::store::Tx;

use super::follow;
use crate::Error;
use crate::base::ctx::job_mut;
use crate::base::records;

/// Why an attempt has not begun.
pub(crate) enum Back {
    /// Nobody opens its window any more.
    Unopened(String),
    /// Its target was not reached.
    Unreached(Shunned),
}

/// Takes the record of an attempt out and puts its entry in again, under the same number; a launcher of it that comes
/// later finds no record and starts nothing. Whether it did: not where it has begun, was ended or is being killed, and not
/// where what it succeeds is another one by now.
pub(crate) fn give_back(
    tx: &mut Tx<'_>,
    id: &JobId,
    token: &LaunchToken,
    back: Back,
) -> Result<bool, Error> {
    let job = records::of_launch(&mut tx.data, id, token)?.clone();
    if job.status != Status::Starting || job.is_being_killed() || job.child.is_some() {
        return Ok(false);
    }
    let Some(mut entry) = job.waited.as_deref().and_then(|waited| entry_of(&job, waited)) else {
        return Ok(false);
    };
    if let (Some(waited), Some(parent)) = (job.waited.as_deref(), job.father)
        && !release(tx, &job, &JobId::new(id.user.clone(), parent), waited)?
    {
        return Ok(false);
    }
    if let Some(user) = tx.data.user_mut(&id.user) {
        drop(user.remove_job(id.window));
    }
    let why = match back {
        Back::Unopened(why) => why,
        Back::Unreached(shunned) => {
            let why = format!("{} was not reached: {}", shunned.target, shunned.why);
            entry.shunned.retain(|known| known.target != shunned.target && known.until > tx.now);
            entry.shunned.push(shunned);
            why
        }
    };
    put(&mut tx.data.queues_mut().entries, entry);
    records::note(tx, id, "waits-again", why);
    Ok(true)
}

/// The entry that a record has become. The number of a member is that of its group.
fn entry_of(job: &Job, waited: &Waited) -> Option<QueueEntry> {
    let entry = QueueEntry::from_kept(&waited.entry).ok()?;
    let number: JobNumber = job.member().map_or(job.windows_id, |_| entry.number);
    Some(QueueEntry { number, ..entry })
}

/// Lets an attempt be the last of its lineage again. Whether it was possible.
fn release(tx: &mut Tx<'_>, child: &Job, id: &JobId, waited: &Waited) -> Result<bool, Error> {
    let before = waited.parent.as_ref().map(|kept| Job::from_value(kept, &id.user));
    let Some(Ok(before)) = before else { return Ok(false) };
    let parent = job_mut(&mut tx.data, id)?;
    if parent.child != Some(child.windows_id) {
        return Ok(false);
    }
    parent.child = None;
    (parent.status, parent.verdict) = (before.status, before.verdict);
    (parent.recovery, parent.intent) = (before.recovery, before.intent);
    follow(tx, &child.id(), id);
    Ok(true)
}

/// Puts an entry where it stood: they are in the order in which they were submitted. A member goes back to those of its
/// group that wait still.
fn put(entries: &mut Vec<QueueEntry>, entry: QueueEntry) {
    let group = entries.iter_mut().find(|known| known.id() == entry.id());
    let members = |entry: &QueueEntry| entry.spec.array.clone();
    if let (Some(known), Some(back)) = (group, members(&entry)) {
        let all =
            members(known).map(|all| back.indexes().iter().fold(all, |all, one| all.with(*one)));
        known.shunned.extend(entry.shunned);
        known.spec = JobSpec { array: all.or(Some(back)), ..known.spec.clone() };
        return;
    }
    let after = |known: &QueueEntry| (known.since, known.number) > (entry.since, entry.number);
    let at = entries.iter().position(after).unwrap_or(entries.len());
    entries.insert(at, entry);
}
