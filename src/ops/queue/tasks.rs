//! Tasks of a file as jobs: which have been submitted, and how their attempts have gone.

use std::collections::BTreeSet;

use crate::model::data::{Data, User};
use crate::model::entry::QueueEntry;
use crate::model::ids::{JobId, JobNumber};
use crate::model::job::{Job, Status};
use crate::model::lineage::Lineage;
use crate::model::task::SubmittedTask;
use crate::ops::{Ctx, Error, records};
use crate::store::Tx;

use super::edit;

/// That a job is a task of a file.
#[derive(Clone, Debug)]
pub struct TaskOf {
    /// The file, by its whole path.
    pub file: String,
    /// What the file calls it.
    pub id: String,
    /// What the file says of it, as a job file.
    pub said: String,
    /// Whether it begins anew, whatever has become of it.
    pub is_anew: bool,
}

/// Writes down what a task has become. Refused where somebody has submitted it meanwhile.
pub(super) fn note(tx: &mut Tx<'_>, task: &TaskOf, id: &JobId) -> Result<(), Error> {
    if let Some(known) = tx.data.queues().task(&task.file, &task.id).cloned() {
        let is_open = is_open(&tx.data, &known.job);
        if is_open || !task.is_anew {
            let what = format!("task {} is {} already", task.id, known.job);
            let hint = "nothing was submitted; the same again submits what is new";
            return Err(Error::refused(what).passing().hint(hint));
        }
    }
    let tasks = &mut tx.data.queues_mut().tasks;
    tasks.retain(|known| !known.is(&task.file, &task.id));
    let TaskOf { file, id: name, said, .. } = task.clone();
    tasks.push(SubmittedTask { file, id: name, job: id.clone(), said });
    Ok(())
}

/// That a task which is to begin anew has not ended.
pub fn still_open(task: &SubmittedTask) -> Error {
    Error::refused(format!("task {} is {}, which has not ended", task.id, task.job))
        .hint(format!("stop it first: tpu kill {}", task.job.window))
}

/// What was called by one number is called by another.
pub(super) fn follow(tx: &mut Tx<'_>, from: &JobId, to: &JobId) {
    if !tx.data.queues().tasks.iter().any(|task| task.job == *from) {
        return;
    }
    for task in tx.data.queues_mut().tasks.iter_mut().filter(|task| task.job == *from) {
        task.job = to.clone();
    }
}

/// Whether a job or a group waits or is at work.
pub fn is_open(data: &Data, id: &JobId) -> bool {
    waits(data, id) || known(data, id).any(|job| job.status.is_live())
}

/// Whether a job or a group, or what goes on from it, is in a queue.
pub fn waits(data: &Data, id: &JobId) -> bool {
    let queues = data.queues();
    queues.entry(id).is_some()
        || known(data, id).any(|job| queues.successor_of(&job.id()).is_some())
}

/// The attempts of a job, or of all members of a group, whose records are there.
fn known<'a>(data: &'a Data, id: &'a JobId) -> impl Iterator<Item = &'a Job> + 'a {
    let user = data.user(&id.user);
    let lineage = user.and_then(|user| Lineage::of(user, id.window));
    let windows = lineage.map(|lineage| lineage.windows).unwrap_or_default();
    let is_of = move |job: &&Job| {
        windows.contains(&job.windows_id)
            || job.member().is_some_and(|member| member.group == id.window)
    };
    user.into_iter().flat_map(User::jobs).filter(is_of)
}

/// The attempts of a task, the oldest first: those whose records are there, and else those in the archive.
pub fn attempts(ctx: &Ctx, data: &Data, id: &JobId) -> Result<Vec<Job>, Error> {
    let mut all: Vec<Job> = known(data, id).cloned().collect();
    if all.is_empty() && data.queues().entry(id).is_none() {
        let mut numbers: BTreeSet<JobNumber> = [id.window].into();
        for archived in ctx.store.archived() {
            let job = archived?.job;
            let is_of = |number: &JobNumber| numbers.contains(number);
            let is_member = job.member().is_some_and(|member| member.group == id.window);
            if job.user == id.user
                && (is_member || is_of(&job.windows_id) || job.child.as_ref().is_some_and(is_of))
            {
                numbers.insert(job.windows_id);
                all.push(job);
            }
        }
    }
    all.sort_by_key(|job| job.windows_id);
    Ok(all)
}

/// Of a task that several may be at work on, those that have not begun when one of them has ended well are not needed any
/// more.
pub(super) fn end_enough(ctx: &Ctx) -> Result<(), Error> {
    let is_done = |data: &Data| enough(data).next().is_some();
    if !is_done(&*ctx.data()?) {
        return Ok(());
    }
    ctx.transact(|tx| {
        let all: Vec<JobId> = enough(&tx.data).map(QueueEntry::id).collect();
        for id in &all {
            records::note(tx, id, "enough", "one of its members has ended well".to_owned());
        }
        edit::take_out(tx, &all)
    })
}

fn enough(data: &Data) -> impl Iterator<Item = &QueueEntry> {
    let queues = data.queues();
    let is_task = |id: &JobId| queues.tasks.iter().any(|task| task.job == *id);
    let is_done = move |id: &JobId| {
        let member = |job: &Job| job.member().is_some_and(|member| member.group == id.window);
        let jobs = data.user(&id.user).into_iter().flat_map(User::jobs);
        jobs.into_iter().any(|job| member(job) && job.status == Status::Finished)
    };
    let groups = queues.entries.iter().filter(|entry| entry.spec.array.is_some());
    groups.filter(move |entry| is_task(&entry.id()) && is_done(&entry.id()))
}
