//! Tasks of files as records know them: which are done, and what is not needed any more.

use std::collections::{BTreeSet, HashSet};

use crate::Error;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::lineage::{self, Lineage};
use tpu_system::store::Tx;

/// What was called by one number is called by another.
pub fn follow(tx: &mut Tx<'_>, from: &JobId, to: &JobId) {
    if !tx.data.queues().tasks.iter().any(|task| task.job == *from) {
        return;
    }
    for task in tx.data.queues_mut().tasks.iter_mut().filter(|task| task.job == *from) {
        task.job = to.clone();
    }
}

/// Keeps of each task that an attempt of it has ended well, as part of a transaction that may archive records.
pub fn settle_in(tx: &mut Tx<'_>) {
    let done = ended_well(&tx.data);
    if done.is_empty() {
        return;
    }
    let tasks = tx.data.queues_mut().tasks.iter_mut();
    tasks.filter(|task| done.contains(&task.job)).for_each(|task| task.is_done = true);
}

/// The tasks of which an attempt has ended well and nobody has written that down.
pub fn ended_well(data: &Data) -> HashSet<JobId> {
    let open = || data.queues().tasks.iter().filter(|task| !task.is_done);
    let users: BTreeSet<&UserName> = open().map(|task| &task.job.user).collect();
    let mut done = HashSet::new();
    for user in users.into_iter().filter_map(|name| data.user(name)) {
        let is_well = |job: &&Job| job.status == Status::Finished;
        let well: HashSet<JobNumber> =
            user.jobs().iter().filter(is_well).map(|job| job.windows_id).collect();
        if well.is_empty() {
            continue;
        }
        let lineages = lineage::lineages(user);
        let has_ended = |lineage: &&Lineage| lineage.windows.iter().any(|one| well.contains(one));
        let windows = lineages.iter().filter(has_ended).flat_map(|one| one.windows.iter().copied());
        let groups = user.jobs().iter().filter(is_well).filter_map(Job::member);
        let numbers: HashSet<JobNumber> = windows.chain(groups.map(|one| one.group)).collect();
        let of_user = open().map(|task| &task.job).filter(|job| job.user == user.name);
        done.extend(of_user.filter(|job| numbers.contains(&job.window)).cloned());
    }
    done
}

/// The group of which an entry is the rest, or from a member of which it goes on.
pub fn group(data: &Data, entry: &QueueEntry) -> Option<JobId> {
    let Some(of) = entry.succeeds else {
        return entry.spec.array.is_some().then(|| entry.id());
    };
    let before = JobId::new(entry.user.clone(), of.job);
    let member = data.job(&before)?.member()?;
    Some(JobId::new(entry.user.clone(), member.group))
}

/// Refuses to begin what is not needed any more: another member of its task has ended well, if only just now.
pub fn is_needed(data: &Data, entry: &QueueEntry) -> Result<(), Error> {
    let group = group(data, entry);
    let task = data.queues().tasks.iter().find(|task| group.as_ref() == Some(&task.job));
    match task {
        Some(task) if task.is_done || ended_well(data).contains(&task.job) => {
            Err(Error::refused(format!("task {} is done", task.id))
                .passing()
                .hint("another of its jobs has ended well"))
        }
        _ => Ok(()),
    }
}
