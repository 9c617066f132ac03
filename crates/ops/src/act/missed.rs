//! Jobs on workers whose window is gone. The workers are asked whether a job goes on; then a window is opened again that
//! shows it, and its end is written down as any. What is on none of them any more is lost, as is what had begun on some
//! of them only.

use tpu_core::model::facts::{TmuxFact, WORKERS_UNASKED};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::text::counted;
use tpu_engine::runner::window::{self, Reopened, beside};
use tpu_system::remote::Running;

use super::outlook;
use super::record_facts;
use crate::base::ctx::job_of;
use crate::base::{lease, records};
use crate::observe::fleet::AskedOnce;
use crate::observe::{doors, runners, worker_processes};
use crate::{Ctx, Error};

/// What became of a job whose window is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reattached {
    /// Its window is not missed, or was opened by somebody else since.
    Here,
    /// It goes on, and a window shows it again.
    Reopened,
    /// The same, and in the window before nothing was heard.
    ReopenedInVain,
    /// Nothing of it is on its workers, and nothing begins there any more.
    Over,
}

/// Whether the workers of a job go on with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Continues,
    /// It was being started when its window went, and has begun on some of them only.
    InPart,
    Over,
}

/// Opens a window again for a job that goes on without one.
pub fn reattach(ctx: &Ctx, id: &JobId) -> Result<Reattached, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    if !is_missed(ctx, job)? {
        return Ok(Reattached::Here);
    }
    if ask(ctx, job)? != Answer::Continues {
        forget(ctx, job)?;
        return Ok(Reattached::Over);
    }
    let lease = match lease::take(ctx, id, |_| Ok(())) {
        // Somebody else has opened it since.
        Err(_) if !is_missed(ctx, job)? => return Ok(Reattached::Here),
        lease => lease?,
    };
    let done = reopen(ctx, id);
    lease::release(ctx, &lease)?;
    done
}

/// Opens the window, unless somebody has opened it before we had the lease.
fn reopen(ctx: &Ctx, id: &JobId) -> Result<Reattached, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let is_open = job.child.is_none() && !job.is_being_killed();
    let Some(launch) = job.launch.as_ref().filter(|_| is_open) else {
        return Ok(Reattached::Here);
    };
    if !is_missed(ctx, job)? {
        return Ok(Reattached::Here);
    }
    let Reopened { place, was_unheard } =
        window::reopen(&ctx.effects, runners::run(&data, job)?, &name(job))?;
    ctx.transact(|tx| {
        records::of_launch(&mut tx.data, id, &launch.token)?.place = Some(place.clone());
        let what = format!("it continues on {}: its window is open again", job.tpu);
        records::note(tx, id, "window", what);
        Ok(())
    })?;
    Ok(if was_unheard { Reattached::ReopenedInVain } else { Reattached::Reopened })
}

/// A job does not go on on its workers. What is still on its way to them does not begin there any more. That somebody has
/// closed its window is not what ended it, if it had begun there.
fn forget(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    if let (_, Some(unseen)) = worker_processes::stop(ctx, job)? {
        return Err(unseen);
    }
    let id = job.id();
    if beside::begun_at(ctx, job).is_some() {
        beside::forget_closed(ctx, &id);
    }
    beside::forget_workers(ctx, &id);
    Ok(())
}

/// Refuses a next attempt while a job goes on on its workers. With `force` it writes down first that somebody has closed
/// its window.
pub(crate) fn settle(ctx: &Ctx, id: &JobId, force: bool) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    if is_missed(ctx, job)? {
        match ask(ctx, job)? {
            Answer::Over | Answer::InPart => forget(ctx, job)?,
            Answer::Continues => {
                return Err(Error::refused(continues(job))
                    .hint(format!("to end it: tpu kill w={} {}", id.window, id.user)));
            }
        }
    }
    if force && job.status.is_live() {
        record_facts::record_cancelled(ctx, job, &outlook::look_at(ctx, id)?)?;
    }
    Ok(())
}

/// What the workers of a job say whose window is missed; `None` where it is not.
pub fn told(ctx: &Ctx, id: &JobId) -> Result<Option<String>, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    if !is_missed(ctx, job)? {
        return Ok(None);
    }
    let (window, user, on) = (job.windows_id, &job.user, &job.tpu);
    Ok(Some(match ask(ctx, job) {
        Ok(Answer::Continues) => continues(job),
        Ok(Answer::InPart) => {
            format!("it has begun on some workers of {on} only: tpu resume w={window} {user}")
        }
        Ok(Answer::Over) => {
            format!("nothing of it is on {on} any more: tpu resume w={window} {user}")
        }
        Err(error) => error.message,
    }))
}

fn continues(job: &Job) -> String {
    let (window, user) = (job.windows_id, &job.user);
    format!("its window is gone; it continues on {}: tpu attach w={window} {user}", job.tpu)
}

/// Whether a job may live on workers, and has no window that shows it.
fn is_missed(ctx: &Ctx, job: &Job) -> Result<bool, Error> {
    Ok(is_on_workers(ctx, job) && is_unasked(ctx, job, &ctx.tmux.look())?)
}

/// The jobs among these of which that is so, by one look.
pub fn of<'a>(ctx: &Ctx, jobs: impl Iterator<Item = &'a Job>) -> Vec<JobId> {
    let jobs: Vec<&Job> = jobs.filter(|job| is_on_workers(ctx, job)).collect();
    if jobs.is_empty() {
        return Vec::new();
    }
    let tmux = ctx.tmux.look();
    let is_so = |job: &&&Job| is_unasked(ctx, job, &tmux).unwrap_or(false);
    jobs.iter().filter(is_so).map(|job| job.id()).collect()
}

fn is_on_workers(ctx: &Ctx, job: &Job) -> bool {
    job.status.is_live() && !worker_processes::of_job(ctx, job).is_empty()
}

fn is_unasked(ctx: &Ctx, job: &Job, tmux: &TmuxFact) -> Result<bool, Error> {
    let data = ctx.data()?;
    let seen = runners::observe(ctx, &[runners::run(&data, job)?], tmux);
    Ok(seen.first().is_some_and(|seen| seen.run.raw == WORKERS_UNASKED))
}

/// Asks all workers of a job. What one of them has of it is worth hearing, also how it ended.
fn ask(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let (data, recorded) = (ctx.data()?, worker_processes::of_job(ctx, job));
    let Some(launch) = &job.launch else { return Ok(Answer::Over) };
    let asked = AskedOnce::new(ctx, &data, &job.tpu);
    let there = doors::still_there(&asked, job, recorded);
    if there.is_empty() {
        return Ok(Answer::Over);
    }
    let (mut begun, mut not_begun, mut silent) = (0, 0, Vec::new());
    for (worker, answer) in doors::to(ctx, &asked)?.remote.probe(&there) {
        match answer {
            Ok(found) => {
                let is_ours = |of: &&Running| of.token == launch.token;
                let is_begun = |of: &Running| !of.processes.is_empty() || of.exit.is_some();
                let is_there = found.iter().filter(is_ours).any(is_begun);
                *if is_there { &mut begun } else { &mut not_begun } += 1;
            }
            Err(error) => silent.push(format!("worker {worker}: {error}")),
        }
    }
    if begun > 0 {
        let is_whole = not_begun == 0 || !silent.is_empty() || beside::begun_at(ctx, job).is_some();
        return Ok(if is_whole { Answer::Continues } else { Answer::InPart });
    }
    if silent.is_empty() {
        return Ok(Answer::Over);
    }
    let what = counted(silent.len(), "worker");
    Err(Error::unreachable(format!(
        "{}: its window is gone, and {what} of {} cannot be asked: {}",
        job.id(),
        job.tpu,
        silent.join("; ")
    ))
    .hint("it may still run there; try again when they answer"))
}

/// The name that tmux shows; only decoration.
fn name(job: &Job) -> String {
    let tag = job.job_tags.as_deref().unwrap_or(job.tpu.as_str());
    let is_plain = |c: &char| c.is_alphanumeric() || "-_.".contains(*c);
    let name: String = tag.chars().filter(is_plain).take(24).collect();
    if name.is_empty() { "job".to_owned() } else { name }
}
