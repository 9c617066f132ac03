//! Settles what a dead `tpu` left behind: launches that were claimed and never confirmed, and ends that
//! the launcher recorded and nobody wrote down.
//!
//! Every writing command begins with this; it asks tmux only if some record needs it.

use crate::act::ends;
use crate::base::environment;
use crate::base::queue_entries::back::{self, Back};
use crate::base::{lease, records};
use crate::observe::runners;
use crate::{Ctx, Error, Kind};
use tpu_core::model::data::Data;
use tpu_core::model::facts::RunState;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{CLEANING, Intent, Job, Launch};
use tpu_core::model::launch::LAUNCH_LIMIT_S;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::RunRef;
use tpu_engine::runner::window::launcher;
use tpu_system::store::Tx;

/// Clearing records away takes so long at most: a stop of each job's processes.
const CLEANING_LIMIT_S: u64 = 120;

/// What is to be done with one record.
enum Cure {
    /// Its window exists.
    Adopt(JobId),
    /// It has no window, and no `tpu` will open one any more.
    GiveUp(JobId, Timestamp),
    /// The same of one that has waited in the queue, where whoever claimed it is dead: it waits again.
    GiveBack(JobId, Timestamp),
    /// Whoever was clearing it away is dead: it stays.
    Keep(JobId, Intent),
    /// Its end lies recorded beside its launcher.
    Ended(JobId, i32),
}

/// Adopts launches whose window exists, gives up those that never got one, and writes down ends.
pub fn reconcile(ctx: &Ctx) -> Result<(), Error> {
    let data = ctx.data()?;
    let mut cures = cures(ctx, &data);
    keep_what_stands(ctx, &data, &mut cures);
    for cure in cures {
        let cured = match cure {
            Cure::Ended(id, code) => ends::record_end(ctx, &id, code).map(drop),
            Cure::Adopt(id) => ctx.transact(|tx| {
                if let Some(job) = tx.data.job_mut(&id) {
                    job.confirm_launch();
                }
                Ok(())
            }),
            Cure::Keep(id, intent) => ctx.transact(|tx| {
                if let Some(job) = tx.data.job_mut(&id)
                    && job.intent.as_ref() == Some(&intent)
                {
                    job.intent = None;
                }
                Ok(())
            }),
            Cure::GiveUp(id, at) => ctx.transact(|tx| give_up(tx, &id, at)),
            Cure::GiveBack(id, at) => ctx.transact(|tx| give_back(tx, &id, at)),
        };
        match cured {
            // Somebody else has settled or archived it since: as good as cured.
            Err(error) if matches!(error.kind, Kind::NotFound | Kind::Refused) => {}
            other => other?,
        }
    }
    environment::clear_laid_by(ctx);
    Ok(())
}

/// The launch that was made then, if nobody has been let through or has said anything of it since.
fn open_launch<'a>(tx: &'a mut Tx<'_>, id: &JobId, at: Timestamp) -> Option<&'a mut Job> {
    let is_open = |launch: &Launch| !launch.confirmed && launch.at == at;
    let job = tx.data.job_mut(id)?;
    (job.status.is_live() && job.launch.as_ref().is_some_and(is_open)).then_some(job)
}

fn give_up(tx: &mut Tx<'_>, id: &JobId, at: Timestamp) -> Result<(), Error> {
    let Some(job) = open_launch(tx, id, at) else { return Ok(()) };
    let what = match &job.engine {
        Some(_) => "it never reached its engine",
        None => "its window was never opened",
    };
    records::fail_launch(job, what)?;
    records::note(tx, id, "error", format!("launch: {what}"));
    Ok(())
}

fn give_back(tx: &mut Tx<'_>, id: &JobId, at: Timestamp) -> Result<(), Error> {
    let Some(launch) = open_launch(tx, id, at).and_then(|job| job.launch.clone()) else {
        return Ok(());
    };
    let why = "the process that was to open its window is dead, and has not opened it";
    if back::give_back(tx, id, &launch.token, Back::Unopened(why.to_owned()))? {
        Ok(())
    } else {
        give_up(tx, id, at)
    }
}

/// Leaves out those that cannot be given up, or that have been found since: the next look says how they are.
fn keep_what_stands(ctx: &Ctx, data: &Data, cures: &mut Vec<Cure>) {
    // What was to run them would be told for good.
    if ctx.store.is_dry_run() {
        return;
    }
    let given_up = |cure: &Cure| match cure {
        Cure::GiveUp(id, _) | Cure::GiveBack(id, _) => data.job(id),
        Cure::Adopt(_) | Cure::Keep(..) | Cure::Ended(..) => None,
    };
    let jobs: Vec<&Job> = cures.iter().filter_map(given_up).collect();
    let mut said = runners::give_up(ctx, data, &jobs).into_iter();
    cures
        .retain(|cure| given_up(cure).is_none() || said.next().is_some_and(|s| s.unwrap_or(false)));
}

/// Whether nobody clears the record away any more: whoever began is dead, or elsewhere and overdue.
fn is_given_up(ctx: &Ctx, intent: &Intent, now: Timestamp) -> bool {
    intent.action == CLEANING
        && match lease::is_alive(ctx, &intent.by) {
            Some(alive) => !alive,
            None => now.seconds_since(intent.at) > CLEANING_LIMIT_S,
        }
}

fn cures(ctx: &Ctx, data: &Data) -> Vec<Cure> {
    let now = ctx.clock.now();
    let mut cures = Vec::new();
    let mut unconfirmed: Vec<(&Job, &str)> = Vec::new();
    for user in data.users() {
        for job in user.jobs() {
            if let Some(intent) = job.intent.as_ref().filter(|i| is_given_up(ctx, i, now)) {
                cures.push(Cure::Keep(job.id(), intent.clone()));
            }
            let Some(launch) = &job.launch else { continue };
            if !job.status.is_live() || launch.ended.is_some() {
                continue;
            }
            if let Some(exit) = runners::recorded_exit(ctx, job) {
                cures.push(Cure::Ended(job.id(), exit.code()));
            } else if !launch.confirmed {
                unconfirmed.push((job, user.tmux_name.as_str()));
            }
        }
    }
    if unconfirmed.is_empty() {
        return cures;
    }
    let runs: Vec<RunRef<'_>> =
        unconfirmed.into_iter().map(|(job, session)| RunRef { job, session }).collect();
    // Seen before the look: what they began to open until then is seen by it.
    let are_dead: Vec<bool> = runs.iter().map(|run| is_claimer_dead(ctx, run.job)).collect();
    let tmux = ctx.tmux.look();
    let seen = runners::observe(ctx, &runs, &tmux);
    for ((run, is_dead), seen) in runs.iter().zip(are_dead).zip(seen) {
        let job = run.job;
        let overdue = job
            .launch
            .as_ref()
            .is_some_and(|launch| now.seconds_since(launch.at) >= LAUNCH_LIMIT_S)
            // Whoever was opening it is dead: nobody will, and whoever comes next goes on from here.
            || job.intent.as_ref().is_some_and(|i| lease::is_alive(ctx, &i.by) == Some(false))
            || job.lease.as_ref().is_some_and(|l| lease::is_alive(ctx, &l.owner) == Some(false));
        match seen.run.state {
            RunState::Pending | RunState::Starting | RunState::Running | RunState::Ended => {
                cures.push(Cure::Adopt(job.id()));
            }
            RunState::Gone if is_dead && has_no_process(ctx, *run) => {
                let at = job.launch.as_ref().map(|launch| launch.at);
                cures.extend(at.map(|at| Cure::GiveBack(job.id(), at)));
            }
            RunState::Gone if overdue => cures.extend(given_up(job)),
            RunState::Elsewhere if is_left_by_another_account(ctx, job, now) => {
                cures.extend(given_up(job));
            }
            RunState::Gone | RunState::Elsewhere | RunState::Unknown => {}
        }
    }
    cures
}

/// Whether something was taken from the queue by somebody who is dead: what waits is looked at when that is settled.
pub(crate) fn is_left(ctx: &Ctx, data: &Data) -> bool {
    data.jobs().any(|job| is_claimer_dead(ctx, job))
}

/// Whether an attempt may go back into the queue, from which somebody took it who is dead.
fn is_claimer_dead(ctx: &Ctx, job: &Job) -> bool {
    let waited = job.waited.as_ref().filter(|_| job.engine.is_none());
    waited.is_some_and(|waited| lease::is_alive(ctx, &waited.by) == Some(false))
}

fn has_no_process(ctx: &Ctx, run: RunRef<'_>) -> bool {
    runners::of(ctx, run.job).processes(run).is_ok_and(|found| found.is_empty())
}

fn given_up(job: &Job) -> Option<Cure> {
    job.launch.as_ref().map(|launch| Cure::GiveUp(job.id(), launch.at))
}

/// Whether a launch of another account on this machine came to nothing, so that it would hold its target for ever. Its tmux
/// server cannot be asked; but its time is over, and no launcher of it runs. One that came later would be refused.
fn is_left_by_another_account(ctx: &Ctx, job: &Job, now: Timestamp) -> bool {
    let Some(place) = job.place.as_ref().filter(|_| job.engine.is_none()) else { return false };
    let is_theirs = place.host == ctx.env.hostname && place.uid != ctx.env.uid;
    let is_over = |launch: &Launch| now.seconds_since(launch.at) >= LAUNCH_LIMIT_S;
    if !is_theirs || !job.launch.as_ref().is_some_and(is_over) {
        return false;
    }
    let (paths, dir) = (ctx.store.paths(), ctx.store.paths().job(&job.id()));
    // The same directory may have another name for them.
    let script = dir.strip_prefix(paths.state()).unwrap_or(&dir).join(launcher::SCRIPT);
    let runs = ctx.procs.started_with(&[&*script.to_string_lossy()]);
    // Where nobody can tell, it stands.
    place.boot != ctx.env.boot_id
        || runs.is_ok_and(|runs| runs.iter().all(|process| process.uid != place.uid))
}
