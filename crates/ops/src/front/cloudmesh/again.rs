//! Makes jobs ready again, and takes them away.

use crate::act::kill;
use crate::act::launch::RunRequest;
use crate::act::record_facts;
use crate::front::clean::{self, Ends, Extent};
use crate::waiting::queue::{edit, submit};
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, QueueName, UserName};
use tpu_core::model::spec::JobSpec;
use tpu_core::model::unbegun;
use tpu_jobfile::cloudmesh::{ImportedJob, ImportedState};

use super::ready::{self, Adding, JobFate};

/// Makes the job of a name ready again, as it was last: one that has ended here, or was taken away, or that stands in
/// the file alone. What became of it, in words.
pub fn reset(
    ctx: &Ctx,
    user: &UserName,
    name: &str,
    file: &[ImportedJob],
    to: &Adding<'_>,
) -> Result<String, Error> {
    let data = ctx.data()?;
    if let Some(entry) = ready::entry(&data, user, name) {
        return match &entry.held {
            Some(hold) => Ok(format!("{name} is {hold}")),
            None => Err(Error::refused(format!("{name} waits for its turn, as {}", entry.id()))
                .hint(format!("let it wait: tpu hold {}", entry.number))),
        };
    }
    if let Some(job) = ready::newest(&data, user, name)? {
        if job.status.is_live() {
            return Err(Error::refused(format!("{name} is {}, as {}", job.status, job.id()))
                .hint(format!("stop it first: tpu cms job kill --name={name}")));
        }
        let (spec, over) = (unbegun::spec_of(job), job.id());
        // What is left of it ends, and so does the place that it may still hold. Should this be the last that we do,
        // it is found in the archive.
        put_away(ctx, user, &[over])?.into_iter().next().map_or(Ok(()), Err)?;
        let id = enter(ctx, user, spec, to)?;
        return Ok(format!("{name} is ready again, as {id}"));
    }
    if let Some(spec) = archived(ctx, user, name)? {
        let id = enter(ctx, user, spec, to)?;
        return Ok(format!("{name} is ready again, as {id}"));
    }
    let Some(job) = file.iter().find(|job| job.name == name) else {
        return Err(ready::unknown(user, name));
    };
    let state = ImportedState::of(None, job.host.is_some());
    let job = ImportedJob { state, ..job.clone() };
    let fates = ready::add(ctx, &data, (&[job], &mut Vec::new()), to)?;
    match fates.first() {
        Some(JobFate::Refused(why)) => Err(Error::refused(format!("{name}: {why}"))
            .hint("correct it in the file, or add it by options: tpu cms job add --name=NAME")),
        _ => Ok(format!("{name} is ready, as its file says")),
    }
}

fn enter(ctx: &Ctx, user: &UserName, spec: JobSpec, to: &Adding<'_>) -> Result<JobId, Error> {
    let queue = spec.queue.clone().unwrap_or_else(|| to.queue.clone());
    let known = ctx.data()?.queues().queue(&queue).is_some();
    let queue = if known { queue } else { QueueName::usual() };
    let how = ready::held(queue, &spec);
    let request = RunRequest::new(user.clone(), spec);
    submit::enter(ctx, &request, &how)
}

/// The newest record of this name in the archive.
fn archived(ctx: &Ctx, user: &UserName, name: &str) -> Result<Option<JobSpec>, Error> {
    for archived in ctx.store.archived() {
        let job = archived?.job;
        if job.user == *user && job.name() == Some(name) {
            return Ok(Some(unbegun::spec_of(&job)));
        }
    }
    Ok(None)
}

/// Jobs that are to be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// Whose they are.
    pub user: UserName,
    /// What waits.
    pub waiting: Vec<JobId>,
    /// What is at work, which is stopped first.
    pub live: Vec<JobId>,
    /// What has ended.
    pub over: Vec<JobId>,
}

impl Doomed {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &JobId> {
        self.waiting.iter().chain(&self.live).chain(&self.over)
    }
}

/// The jobs of these names, each of which there must be.
pub fn doomed(data: &Data, user: &UserName, names: &[String]) -> Result<Doomed, Error> {
    let (waiting, live, over) = (Vec::new(), Vec::new(), Vec::new());
    let mut doomed = Doomed { user: user.clone(), waiting, live, over };
    for name in names {
        let waiting = ready::entry(data, user, name).map(QueueEntry::id);
        let newest = ready::newest(data, user, name)?;
        if waiting.is_none() && newest.is_none() {
            return Err(ready::unknown(user, name));
        }
        doomed.waiting.extend(waiting);
        match newest {
            Some(job) if job.status.is_live() => doomed.live.push(job.id()),
            Some(job) => doomed.over.push(job.id()),
            None => {}
        }
    }
    Ok(doomed)
}

/// Takes jobs away: what is at work is stopped first, and all of them go to the archive. What could not be, with why.
pub fn delete(ctx: &Ctx, doomed: &Doomed) -> Result<Vec<Error>, Error> {
    let mut problems = Vec::new();
    if !doomed.waiting.is_empty() {
        edit::dequeue(ctx, &doomed.waiting)?;
    }
    record_facts::record_ends(ctx, &doomed.live)?;
    let data = ctx.data()?;
    let is_live = |id: &JobId| data.job(id).is_some_and(|job| job.status.is_live());
    let (live, over): (Vec<JobId>, Vec<JobId>) = doomed.live.iter().cloned().partition(is_live);
    let mut ended = [&*doomed.over, &over].concat();
    for (id, killed) in kill::kill(ctx, &live, false) {
        match killed {
            Ok(_) => ended.push(id),
            Err(error) => problems.push(error),
        }
    }
    problems.extend(put_away(ctx, &doomed.user, &ended)?);
    Ok(problems)
}

/// Takes the records of jobs that have ended to the archive. Those that stay, each with why.
fn put_away(ctx: &Ctx, user: &UserName, ended: &[JobId]) -> Result<Vec<Error>, Error> {
    if ended.is_empty() {
        return Ok(Vec::new());
    }
    let extent = Extent { force: true, ..Extent::of(Ends::All) };
    let cleaned = clean::clean_some(ctx, user, ended, extent)?;
    let kept = cleaned.kept.iter().filter(|kept| ended.contains(&kept.job));
    let why = kept.map(|kept| {
        Error::refused(format!("{} is kept: {}", kept.job, kept.reason))
            .hint("look at it: tpu check; then again")
    });
    Ok(why.collect())
}
