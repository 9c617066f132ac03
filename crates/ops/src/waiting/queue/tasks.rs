//! Tasks of a file as jobs: which have been submitted, and how their attempts have gone.

use std::collections::{BTreeSet, HashSet};

use crate::base::queue_entries::tasks::{ended_well, group, settle_in};
use crate::base::records;
use crate::{Ctx, Error};
use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::lineage::Lineage;
use tpu_core::model::task::SubmittedTask;
use tpu_core::plan::budget::comes_back;
use tpu_system::store::Tx;

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

/// Writes down what a task has become, and what it was until now: nothing brings that back any more. Refused where somebody
/// has submitted it meanwhile, or is acting on it.
pub(super) fn note(tx: &mut Tx<'_>, task: &TaskOf, id: &JobId) -> Result<Option<JobId>, Error> {
    let known = tx.data.queues().task(&task.file, &task.id).cloned();
    if let Some(known) = &known {
        if is_open(&tx.data, &known.job) || !task.is_anew {
            let what = format!("task {} is {} already", task.id, known.job);
            let hint = "nothing was submitted; the same command again submits what is new";
            return Err(Error::refused(what).passing().hint(hint));
        }
        let why = format!("task {} has begun anew as {id}", task.id);
        stop(tx, &known.job, &why, |_| true)?;
    }
    let tasks = &mut tx.data.queues_mut().tasks;
    tasks.retain(|known| !known.is(&task.file, &task.id));
    let TaskOf { file, id: name, said, .. } = task.clone();
    tasks.push(SubmittedTask { file, id: name, job: id.clone(), said, is_done: false });
    Ok(known.map(|known| known.job))
}

/// Sees to it that no rule brings back what has failed of a task. Refused while somebody acts on it.
fn stop(
    tx: &mut Tx<'_>,
    task: &JobId,
    why: &str,
    is_meant: impl Fn(&Job) -> bool,
) -> Result<(), Error> {
    let is_failed = |job: &&Job| job.child.is_none() && matches!(job.status, Status::Error(_));
    let failed: Vec<JobId> =
        known(&tx.data, task).filter(is_failed).filter(|job| is_meant(job)).map(Job::id).collect();
    for id in &failed {
        let Some(job) = tx.data.job_mut(id) else { continue };
        if let Some(intent) = &job.intent {
            return Err(Error::refused(format!("{id} is {}", intent.action))
                .passing()
                .hint("wait until that is over, then try again"));
        }
        job.counts_mut().stopped = Some(why.to_owned());
    }
    Ok(())
}

/// That a task which is to begin anew has not ended.
pub fn still_open(task: &SubmittedTask) -> Error {
    Error::refused(format!("task {} is {}, which has not ended", task.id, task.job))
        .hint(format!("stop it first: tpu kill {}", task.job.window))
}

/// Whether a job or a group waits or is at work.
pub fn is_open(data: &Data, id: &JobId) -> bool {
    waits(data, id) || is_at_work(data, id)
}

/// Whether an attempt is at work, as far as the records know.
pub fn is_at_work(data: &Data, id: &JobId) -> bool {
    known(data, id).any(|job| job.status.is_live())
}

/// Whether anything of it is there but in the archive.
pub fn is_known(data: &Data, id: &JobId) -> bool {
    waits(data, id) || known(data, id).next().is_some()
}

/// Whether a job or a group, or what goes on from it, is in a queue.
pub fn waits(data: &Data, id: &JobId) -> bool {
    let queues = data.queues();
    queues.entry(id).is_some()
        || known(data, id).any(|job| queues.successor_of(&job.id()).is_some())
}

/// The attempts of a job, or of all members of a group, whose records are there.
pub(super) fn known<'a>(data: &'a Data, id: &'a JobId) -> impl Iterator<Item = &'a Job> + 'a {
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
    all.sort_unstable_by_key(|job| job.windows_id);
    Ok(all)
}

/// Of a task that several may be at work on, those that have not begun when one of them has ended well are not needed any
/// more, nor is what has failed brought back.
pub(super) fn end_enough(ctx: &Ctx) -> Result<(), Error> {
    let is_enough = |data: &Data| {
        !ended_well(data).is_empty() || !enough(data).is_empty() || !returning(data).is_empty()
    };
    if !is_enough(&*ctx.data()?) {
        return Ok(());
    }
    ctx.transact(|tx| {
        settle_in(tx);
        let all = enough(&tx.data);
        for id in &all {
            records::note(tx, id, "enough", "one of its members has ended well".to_owned());
        }
        edit::take_out(tx, &all)?;
        for task in returning(&tx.data) {
            stop(tx, &task, "its task is done: another member has ended well", comes_back)?;
        }
        Ok(())
    })
}

/// The groups whose task is done.
fn done(data: &Data) -> impl Iterator<Item = &JobId> {
    data.queues().tasks.iter().filter(|task| task.is_done).map(|task| &task.job)
}

/// What waits of tasks that are done: the rest of a group, and what goes on from a member.
fn enough(data: &Data) -> Vec<JobId> {
    let done: HashSet<&JobId> = done(data).collect();
    let is_over =
        |entry: &&QueueEntry| group(data, entry).is_some_and(|group| done.contains(&group));
    if done.is_empty() {
        return Vec::new();
    }
    data.queues().entries.iter().filter(is_over).map(QueueEntry::id).collect()
}

/// Tasks that are done, of which a failed member is brought back by its rules.
fn returning(data: &Data) -> Vec<JobId> {
    let mut groups: Vec<JobId> = Vec::new();
    let done: HashSet<&JobId> = done(data).collect();
    if done.is_empty() {
        return groups;
    }
    for job in data.jobs().filter(|job| job.intent.is_none() && comes_back(job)) {
        let Some(member) = job.member() else { continue };
        let group = JobId::new(job.user.clone(), member.group);
        if done.contains(&group) && !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}
