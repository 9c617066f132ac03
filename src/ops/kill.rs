//! `kill`: the intent is recorded first, then the job's processes end, then its window closes, then the
//! record says so. Repeating it after a crash completes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::data::Data;
use crate::model::facts::ErrorKind;
use crate::model::ids::JobId;
use crate::model::job::{Event, Intent, Job, KILLING, Status};
use crate::runner::{StopOutcome, StopPart};

use super::ctx::{job_mut, job_of};
use super::launch::reconcile;
use super::printed::Printed;
use super::{Ctx, Error, Kind, lease, records, runners, watch};

pub use crate::runner::Unreached;

/// What became of one job.
#[derive(Debug)]
pub struct Killed {
    /// Which job.
    pub job: JobId,
    /// How it had failed before, if it had: then it was at its end already.
    pub failed: Option<ErrorKind>,
    /// Processes that were stopped.
    pub processes: usize,
    /// Whether a window was closed.
    pub window: bool,
}

impl Killed {
    /// What became of it where it was at its end already; `None` where it was stopped.
    pub fn was_not_running(&self) -> Option<String> {
        let failed = Status::Error(self.failed?);
        let job = &self.job;
        Some(format!(
            "{job} was not running ({failed}): it counts as killed now, and no rule brings it back"
        ))
    }
}

/// Kills several jobs at once, each on its own; with `force` also past workers that cannot be reached. The
/// result keeps their order.
pub fn kill(ctx: &Ctx, jobs: &[JobId], force: bool) -> Vec<(JobId, Result<Killed, Error>)> {
    let unreached = if force { Unreached::GoPast } else { Unreached::Refuse };
    let mut results: BTreeMap<usize, Result<Killed, Error>> = BTreeMap::new();
    for (round, chunk) in jobs.chunks(AT_ONCE).enumerate() {
        let done: Vec<Result<Killed, Error>> = std::thread::scope(|scope| {
            let threads: Vec<_> = chunk
                .iter()
                .map(|job| (job, scope.spawn(move || kill_one(ctx, job, unreached))))
                .collect();
            threads
                .into_iter()
                .map(|(job, thread)| {
                    thread.join().unwrap_or_else(|_| {
                        give_up(ctx, job);
                        Err(Error::failed("the kill was cut short")
                            .hint("repeat the command: it completes what was begun"))
                    })
                })
                .collect()
        });
        for (i, result) in done.into_iter().enumerate() {
            results.insert(round * AT_ONCE + i, result);
        }
    }
    jobs.iter().cloned().zip(results.into_values()).collect()
}

/// Which of these jobs a kill would stop, and what speaks against the others. Nothing is stopped.
pub fn dry_run(ctx: &Ctx, jobs: &[JobId]) -> (Vec<JobId>, Vec<Error>) {
    let (mut can, mut problems) = (Vec::new(), Vec::new());
    for job in jobs {
        match dry_run_one(ctx, job) {
            Ok(()) => can.push(job.clone()),
            Err(error) => problems.push(error),
        }
    }
    (can, problems)
}

/// The same for one job.
pub(super) fn dry_run_one(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    may_begin(ctx, id).map(drop)
}

/// Jobs that are being stopped at the same time.
const AT_ONCE: usize = 16;

/// Kills one job.
pub fn kill_one(ctx: &Ctx, id: &JobId, unreached: Unreached) -> Result<Killed, Error> {
    let before = may_begin(ctx, id)?;
    intend(ctx, id)?;
    carry_out(ctx, id, (before, unreached)).map_err(|error| {
        give_up(ctx, id);
        outlasted(ctx, id, error)
    })
}

/// What an engine has not heard is not forgotten: the wish stands in the record.
fn outlasted(ctx: &Ctx, id: &JobId, error: Error) -> Error {
    let has_engine = |data: Arc<Data>| data.job(id).is_some_and(|job| job.engine.is_some());
    if error.kind != Kind::Unreachable || !ctx.data().is_ok_and(has_engine) {
        return error;
    }
    let by_whom = match watch::running(ctx) {
        Some(_) => "MONITOR goes on with it".to_owned(),
        None => "repeat the command, or let MONITOR go on with it: tpu daemon start".to_owned(),
    };
    error.hint(format!("{id} counts as being killed; {by_whom}"))
}

/// What this process does not complete is anybody's from now on, however long it lives: MONITOR's at once.
fn give_up(ctx: &Ctx, id: &JobId) {
    let me = lease::me(&ctx.env);
    let given_up = ctx.transact(|tx| {
        let job = job_mut(&mut tx.data, id)?;
        if let Some(intent) = job.intent.as_mut().filter(|i| i.action == KILLING && i.by == me) {
            intent.by = lease::nobody(&ctx.env);
        }
        Ok(())
    });
    // Then it is given up with this process. Why the kill failed is what a person must know.
    drop(given_up);
}

/// Kills a job whose end is intended.
fn carry_out(
    ctx: &Ctx,
    id: &JobId,
    (before, unreached): (Status, Unreached),
) -> Result<Killed, Error> {
    fail::fail_point!("kill-intended");

    // Read again: the launch may have been confirmed between.
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let mut stopped = runners::stop(ctx, &data, job, (StopPart::Program, unreached))?;
    fail::fail_point!("kill-stopped");
    // All that it will ever print, while its window still shows it.
    let reached = Printed::by_now(ctx, job).numbers();
    // That takes its time: what is closed is what is there now.
    let rest = runners::stop(ctx, &data, job, (StopPart::Whole, unreached))?;
    stopped.processes += rest.processes;
    stopped.window |= rest.window;
    fail::fail_point!("kill-closed");
    let now = ctx.clock.now();
    let done = ctx.transact(|tx| {
        let job = job_mut(&mut tx.data, id)?;
        if matches!(job.status, Status::Killed(_)) {
            // Somebody else completed what had been begun.
            job.intent = None;
            return Ok(true);
        }
        if job.status.is_final() {
            return Ok(false);
        }
        job.apply(&Event::Killed)?;
        job.keep_reached(&reached);
        job.intent = None;
        // Its launcher may have gone with the window before it could say so.
        if let Some(launch) = job.launch.as_mut() {
            launch.ended.get_or_insert(now);
        }
        records::note(
            tx,
            id,
            "killed",
            format!("{} stopped", crate::text::counted(stopped.processes, "process")),
        );
        Ok(true)
    })?;
    if !done {
        return Err(overtaken(ctx, id));
    }
    let failed = match before {
        Status::Error(kind) if stopped.processes == 0 => Some(kind),
        _ => None,
    };
    let StopOutcome { processes, window } = stopped;
    Ok(Killed { job: id.clone(), failed, processes, window })
}

/// Ends the program of a job, whatever its record says, and leaves that and its window as they are.
pub fn stop_program(ctx: &Ctx, data: &Data, job: &Job) -> Result<(), Error> {
    runners::stop(ctx, data, job, (StopPart::Program, Unreached::Refuse)).map(drop)
}

/// How a job is that may be killed, before anything of that has begun.
fn may_begin(ctx: &Ctx, id: &JobId) -> Result<Status, Error> {
    // An end that its launcher could not report is an end: such a job is not killed any more.
    reconcile::reconcile(ctx)?;
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    if job.is_being_killed() && job.status.is_final() {
        return Err(overtaken(ctx, id));
    }
    check(ctx, &data, job)?;
    Ok(job.status.clone())
}

/// It came to another end before the kill was complete: nothing is left to be done, and nobody is to try.
fn overtaken(ctx: &Ctx, id: &JobId) -> Error {
    let cleared = ctx.transact(|tx| {
        let job = job_mut(&mut tx.data, id)?;
        if job.status.is_final() && job.is_being_killed() {
            job.intent = None;
        }
        Ok(job.status.clone())
    });
    match cleared {
        Ok(status) => Error::refused(format!("{id} is {status}: it ended before it was killed"))
            .hint(format!("`tpu check {}` shows it", id.user)),
        Err(error) => error,
    }
}

/// Whether a kill is allowed, before anything changes. A run that cannot be looked at makes it impossible.
fn check(ctx: &Ctx, data: &Data, job: &Job) -> Result<(), Error> {
    let mut trial = job.clone();
    trial.apply(&Event::Killed)?;
    runners::of(ctx, job).may_stop(runners::run(data, job)?)?;
    Ok(())
}

/// Records the intent: from here no rule fires on the job any more.
fn intend(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    let now = ctx.clock.now();
    ctx.transact(|tx| {
        let job = job_mut(&mut tx.data, id)?;
        let mut trial = job.clone();
        trial.apply(&Event::Killed)?;
        // Whatever was being done about it: a kill is above a rule. Whoever repeats a kill takes it over.
        let at = match &job.intent {
            Some(intent) if intent.action == KILLING => intent.at,
            Some(_) | None => now,
        };
        job.intent = Some(Intent { action: KILLING.to_owned(), at, by: lease::me(&ctx.env) });
        Ok(())
    })
}
