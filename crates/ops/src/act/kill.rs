//! `kill`: the intent is recorded first, then the job's processes end, then its window closes, then the
//! record says so. Repeating it after a crash completes it. However many jobs are meant: the wishes are one
//! transaction, and so is what came of those that one engine runs.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use tpu_core::model::data::Data;
use tpu_core::model::facts::{ErrorKind, Progress, TmuxFact};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Event, Intent, Job, KILLING, Refused, Status, Stretch};
use tpu_core::model::lineage::Lineage;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::budget;
use tpu_core::text::counted;
use tpu_engine::runner::{StopOrder, StopOutcome, StopPart};
use tpu_system::store::Tx;

use super::{reconcile, record_facts};
use crate::base::called::Handles;
use crate::base::ctx::{job_mut, job_of};
use crate::base::{lease, records, watch};
use crate::observe::printed::Printed;
use crate::observe::{at_work, runners};
use crate::{Ctx, Error, Kind};

pub use tpu_engine::runner::Unreached;

/// What became of one job.
#[derive(Debug)]
pub struct Killed {
    /// Which job.
    pub job: JobId,
    /// How it had failed before, if it had: it stays so, and no rule brings it back.
    pub failed: Option<ErrorKind>,
    /// Processes that were stopped.
    pub processes: usize,
    /// Whether a window was closed.
    pub window: bool,
}

impl Killed {
    /// What became of it where it had failed already; `None` where it was stopped.
    pub fn was_not_running(&self) -> Option<String> {
        let failed = Status::Error(self.failed?);
        let job = &self.job;
        let what = match self.processes {
            0 => "had ended already".to_owned(),
            count => format!("is stopped ({})", counted(count, "process")),
        };
        Some(format!("{job} {what}, and stays {failed}; no rule restarts it any more"))
    }
}

/// Kills several jobs, each on its own; with `force` also past workers that cannot be reached. What one engine runs
/// is stopped together. The result keeps their order.
pub fn kill(ctx: &Ctx, jobs: &[JobId], force: bool) -> Vec<(JobId, Result<Killed, Error>)> {
    let unreached = by_force(force);
    let (mut results, wishes) = begin(ctx, jobs, unreached);
    for round in together(ctx, wishes).chunks(AT_ONCE) {
        let stopped = std::thread::scope(|scope| {
            let end = |wishes| scope.spawn(move || stop(ctx, wishes, unreached));
            let threads: Vec<_> = round.iter().map(|wishes| (wishes, end(wishes))).collect();
            let joined = threads.into_iter().flat_map(|(wishes, thread)| {
                let stopped = thread.join().unwrap_or_else(|_| all(wishes, &cut_short()));
                wishes.iter().zip(stopped)
            });
            joined.collect()
        });
        results.extend(settle(ctx, stopped));
    }
    let of = |(place, job): (usize, &JobId)| {
        (job.clone(), results.remove(&place).unwrap_or_else(|| Err(cut_short())))
    };
    jobs.iter().enumerate().map(of).collect()
}

fn by_force(force: bool) -> Unreached {
    if force { Unreached::GoPast } else { Unreached::Refuse }
}

/// What came of jobs that are killed together, by their place among all of them.
type Results = BTreeMap<usize, Result<Killed, Error>>;

/// A job whose end is wished for, by its record.
struct Wish {
    /// Its place among those that are killed together.
    place: usize,
    id: JobId,
}

/// A job that is being stopped.
struct Ending<'a> {
    job: &'a Job,
    stopped: Stopped,
}

/// What is known of a job that is stopped.
#[derive(Default)]
struct Stopped {
    outcome: StopOutcome,
    /// How far it had come.
    reached: Progress,
    /// When it was at work, where its record said only that it waits.
    worked: Option<Vec<Stretch>>,
}

fn cut_short() -> Error {
    Error::failed("the kill was cut short").hint("repeat the command: it completes what was begun")
}

/// The same error for each of several jobs.
fn all<T>(wishes: &[Wish], error: &Error) -> Vec<Result<T, Error>> {
    wishes.iter().map(|_| Err(error.again())).collect()
}

/// Jobs that are stopped by the same questions: those of one engine. What has a window is stopped by itself.
fn together(ctx: &Ctx, wishes: Vec<Wish>) -> Vec<Vec<Wish>> {
    let data = ctx.data();
    let engine_of = |wish: &Wish| {
        let run = data.as_ref().ok()?.job(&wish.id)?.engine.as_ref()?;
        Some((run.kind.clone(), run.cluster.clone()))
    };
    let mut alone = Vec::new();
    let mut engines: BTreeMap<_, Vec<Wish>> = BTreeMap::new();
    for wish in wishes {
        match engine_of(&wish) {
            Some(engine) => engines.entry(engine).or_default().push(wish),
            None => alone.push(vec![wish]),
        }
    }
    engines.into_values().chain(alone).collect()
}

/// Which of these jobs a kill would stop, and what speaks against the others. Nothing is stopped.
pub fn dry_run(ctx: &Ctx, jobs: &[JobId], force: bool) -> (Vec<JobId>, Vec<Error>) {
    let (mut can, mut problems) = (Vec::new(), Vec::new());
    for (job, may) in jobs.iter().zip(may_begin(ctx, jobs, by_force(force))) {
        match may {
            Ok(()) => can.push(job.clone()),
            Err(error) => problems.push(error),
        }
    }
    (can, problems)
}

/// The same for one job.
pub(crate) fn dry_run_one(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    may_begin(ctx, std::slice::from_ref(id), Unreached::Refuse).remove(0)
}

/// Engines, and jobs with windows, whose stops are under way at the same time.
const AT_ONCE: usize = 16;

/// Kills one job.
pub fn kill_one(ctx: &Ctx, id: &JobId, unreached: Unreached) -> Result<Killed, Error> {
    let (mut results, wishes) = begin(ctx, std::slice::from_ref(id), unreached);
    let stopped = stop(ctx, &wishes, unreached);
    results.extend(settle(ctx, wishes.iter().zip(stopped).collect()));
    results.remove(&0).unwrap_or_else(|| Err(cut_short()))
}

/// What an engine has not heard is not forgotten: the wish stands in the record.
fn outlasted(ctx: &Ctx, id: &JobId, error: Error) -> Error {
    let has_engine = |data: Arc<Data>| data.job(id).is_some_and(|job| job.engine.is_some());
    if error.kind != Kind::Unreachable || !ctx.data().is_ok_and(has_engine) {
        return error;
    }
    let by_whom = match watch::acting(ctx) {
        Some(_) => "the daemon continues it".to_owned(),
        None => "repeat the command, or let the daemon continue it: tpu daemon start".to_owned(),
    };
    error.hint(format!("{id} counts as being killed; {by_whom}"))
}

/// What this process does not complete is anybody's from now on, however long it lives: the daemon's at once.
fn give_up(ctx: &Ctx, tx: &mut Tx<'_>, id: &JobId) {
    let me = lease::me(&ctx.env);
    let intent = tx.data.job_mut(id).and_then(|job| job.intent.as_mut());
    if let Some(intent) = intent.filter(|i| i.action == KILLING && i.by == me) {
        intent.by = lease::nobody(&ctx.env);
    }
}

/// Writes down that jobs are to end, as far as they may be killed: from here no rule fires on them any more.
fn begin(ctx: &Ctx, jobs: &[JobId], unreached: Unreached) -> (Results, Vec<Wish>) {
    let mut results = Results::new();
    let mut wishes = Vec::new();
    for (place, (id, may)) in jobs.iter().zip(may_begin(ctx, jobs, unreached)).enumerate() {
        match may {
            Ok(()) => wishes.push(Wish { place, id: id.clone() }),
            Err(error) => drop(results.insert(place, Err(error))),
        }
    }
    if wishes.is_empty() {
        return (results, wishes);
    }
    let now = ctx.clock.now();
    let intend = |tx: &mut Tx<'_>| {
        Ok(wishes.iter().map(|wish| intend(ctx, tx, &wish.id, now)).collect::<Vec<_>>())
    };
    let intended = ctx.transact(intend).unwrap_or_else(|error| all(&wishes, &error));
    let mut intended = intended.into_iter();
    wishes.retain(|wish| match intended.next() {
        Some(Ok(())) => true,
        Some(Err(error)) => {
            results.insert(wish.place, Err(error));
            false
        }
        None => false,
    });
    (results, wishes)
}

/// Stops jobs whose end is intended, all of one engine; the result keeps their order.
fn stop(ctx: &Ctx, wishes: &[Wish], unreached: Unreached) -> Vec<Result<Stopped, Error>> {
    if wishes.is_empty() {
        return Vec::new();
    }
    fail::fail_point!("kill-intended");

    // Read again: the launch may have been confirmed between.
    let data = match ctx.data() {
        Ok(data) => data,
        Err(error) => return all(wishes, &error),
    };
    let ending =
        |wish: &Wish| Ok(Ending { job: job_of(&data, &wish.id)?, stopped: Stopped::default() });
    let mut endings: Vec<Result<Ending<'_>, Error>> = wishes.iter().map(ending).collect();
    let mut worked =
        at_work::of_waiting(ctx, &data, endings.iter().flatten().map(|ending| ending.job));
    for ending in endings.iter_mut().flatten() {
        ending.stopped.worked = worked.remove(&ending.job.id());
    }
    stop_part(ctx, &data, &mut endings, StopOrder { part: StopPart::Program, unreached });
    fail::fail_point!("kill-stopped");
    // All that they will ever print, while their windows still show it.
    let mut open: Vec<&mut Ending<'_>> = endings.iter_mut().flatten().collect();
    let jobs: Vec<&Job> = open.iter().map(|ending| ending.job).collect();
    for (ending, printed) in open.iter_mut().zip(Printed::all_by_now(ctx, &data, &jobs)) {
        ending.stopped.reached = printed.numbers();
    }
    // That takes its time: what is closed is what is there now.
    stop_part(ctx, &data, &mut endings, StopOrder { part: StopPart::Whole, unreached });
    fail::fail_point!("kill-closed");
    endings.into_iter().map(|ending| Ok(ending?.stopped)).collect()
}

/// Stops a part of those jobs about which nothing speaks against it.
fn stop_part(ctx: &Ctx, data: &Data, endings: &mut [Result<Ending<'_>, Error>], order: StopOrder) {
    let jobs: Vec<&Job> = endings.iter().flatten().map(|ending| ending.job).collect();
    let outcomes = runners::stop_all(ctx, data, &jobs, order);
    for (ending, outcome) in endings.iter_mut().filter(|ending| ending.is_ok()).zip(outcomes) {
        match (ending, outcome) {
            (Ok(Ending { stopped, .. }), Ok(StopOutcome { processes, window })) => {
                stopped.outcome.processes += processes;
                stopped.outcome.window |= window;
            }
            (ending, Err(error)) => *ending = Err(error),
            (Err(_), Ok(_)) => {}
        }
    }
}

/// Writes down what came of stops. What was not stopped is given up by us.
fn settle(ctx: &Ctx, stopped: Vec<(&Wish, Result<Stopped, Error>)>) -> Results {
    if stopped.is_empty() {
        return Results::new();
    }
    let now = ctx.clock.now();
    let written = ctx.transact(|tx| {
        let write = |(wish, stopped): &(&Wish, Result<Stopped, Error>)| {
            if let Ok(stopped) = stopped {
                return write_end(tx, wish, stopped, now);
            }
            give_up(ctx, tx, &wish.id);
            Ok(Written::Killed)
        };
        Ok(stopped.iter().map(write).collect::<Vec<_>>())
    });
    let written = written.unwrap_or_else(|error| {
        let given_up = ctx.transact(|tx| {
            for (wish, _) in &stopped {
                give_up(ctx, tx, &wish.id);
            }
            Ok(())
        });
        // Then they are given up with this process. Why the kill failed is what a person must know.
        drop(given_up);
        stopped.iter().map(|_| Err(error.again())).collect()
    });
    let all = stopped.into_iter().zip(written);
    all.map(|((wish, stopped), written)| (wish.place, told(ctx, wish, (stopped, written))))
        .collect()
}

/// What the record of a job says once it is stopped.
enum Written {
    /// That it was killed.
    Killed,
    /// That it had failed so before, and that no rule brings it back any more.
    StaysFailed(ErrorKind),
    /// That it had come to another end before.
    Overtaken,
}

/// In the record of a job that is stopped. What had failed stays as it is.
fn write_end(
    tx: &mut Tx<'_>,
    wish: &Wish,
    stopped: &Stopped,
    now: Timestamp,
) -> Result<Written, Error> {
    let id = &wish.id;
    let job = job_mut(&mut tx.data, id)?;
    if matches!(job.status, Status::Killed(_)) {
        // Somebody else completed what had been begun.
        job.intent = None;
        return Ok(Written::Killed);
    }
    if job.status.is_final() {
        return Ok(Written::Overtaken);
    }
    // An end that the launcher reported since the kill began is the kill's; one before it is the job's own.
    let began = job.intent.as_ref().map_or(now, |intent| intent.at);
    let ended = job.launch.as_ref().and_then(|launch| launch.ended);
    let had_failed = job.is_killed() || ended.is_none_or(|ended| ended < began);
    if let Status::Error(failed) = job.status
        && had_failed
    {
        note_killed(job);
        job.intent = None;
        // Whoever is bringing it back has lost it.
        if let Some(lease) = job.lease.as_mut() {
            lease.fence = lease.fence.saturating_add(1);
            lease.free();
        }
        if let Some(launch) = job.launch.as_mut() {
            launch.over = true;
        }
        records::note(tx, id, "killed", format!("it had failed before ({failed}), and stays so"));
        return Ok(Written::StaysFailed(failed));
    }
    job.apply(&Event::Killed)?;
    job.keep_reached(&stopped.reached);
    job.intent = None;
    // Its launcher may have gone with the window before it could say so.
    if let Some(launch) = job.launch.as_mut() {
        launch.worked = stopped.worked.clone().or(launch.worked.take());
        launch.ended.get_or_insert(now);
    }
    let processes = counted(stopped.outcome.processes, "process");
    records::note(tx, id, "killed", format!("{processes} stopped"));
    Ok(Written::Killed)
}

/// What is to be said of one, once it is written down.
fn told(
    ctx: &Ctx,
    wish: &Wish,
    (stopped, written): (Result<Stopped, Error>, Result<Written, Error>),
) -> Result<Killed, Error> {
    let id = &wish.id;
    let StopOutcome { processes, window } =
        stopped.map_err(|error| outlasted(ctx, id, error))?.outcome;
    let failed = match written {
        Ok(Written::Killed) => None,
        Ok(Written::StaysFailed(kind)) => Some(kind),
        Ok(Written::Overtaken) => return Err(overtaken(ctx, id)),
        Err(error) => return Err(outlasted(ctx, id, error)),
    };
    Ok(Killed { job: id.clone(), failed, processes, window })
}

/// Ends the program of a job, whatever its record says, and leaves that and its window as they are.
pub fn stop_program(ctx: &Ctx, data: &Data, job: &Job) -> Result<(), Error> {
    runners::stop(
        ctx,
        data,
        job,
        StopOrder { part: StopPart::Program, unreached: Unreached::Refuse },
    )
    .map(drop)
}

/// Which jobs may be killed, before anything of that has begun; the result keeps their order.
fn may_begin(ctx: &Ctx, jobs: &[JobId], unreached: Unreached) -> Vec<Result<(), Error>> {
    // An end that its launcher could not report, or that its engine alone knows, is an end: such a job is not killed.
    let settled = reconcile::reconcile(ctx).and_then(|()| record_facts::record_ends(ctx, jobs));
    let data = match settled.and_then(|()| ctx.data()) {
        Ok(data) => data,
        Err(error) => return jobs.iter().map(|_| Err(error.again())).collect(),
    };
    let handles = Handles::of(&data, jobs);
    let tmux = OnceCell::new();
    let look = || tmux.get_or_init(|| ctx.tmux.look());
    let may = |id: &JobId| {
        let job = job_of(&data, id)?;
        if job.is_being_killed() && job.status.is_final() {
            return Err(overtaken(ctx, id));
        }
        check(ctx, &data, (job, &handles), unreached, &look)
    };
    jobs.iter().map(may).collect()
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

/// Whether a job has failed, nothing of it may be at work, and nobody brings it back: then there is nothing to kill.
pub fn is_left_alone(job: &Job, now: Timestamp) -> bool {
    matches!(job.status, Status::Error(_))
        && !job.is_being_killed()
        && !job.lease.as_ref().is_some_and(|lease| lease.runs(now))
        && !records::may_be_at_work(job)
        && !budget::is_to_come_back(job)
}

/// Whether a kill is allowed, before anything changes. A run that cannot be looked at makes it impossible.
fn check<'t>(
    ctx: &Ctx,
    data: &Data,
    (job, handles): (&Job, &Handles),
    unreached: Unreached,
    look: &dyn Fn() -> &'t TmuxFact,
) -> Result<(), Error> {
    let mut trial = job.clone();
    trial.apply(&Event::Killed).map_err(|refused| superseded(data, job, refused))?;
    if is_left_alone(job, ctx.clock.now()) {
        let id = job.id();
        let what = format!("{id} is {}: it has already ended", job.status);
        let (word, user) = (handles.word(job), &id.user);
        return Err(Error::refused(what).hint(format!(
            "start it again: tpu resume {word} {user}; clear it away: tpu clean {word} {user}"
        )));
    }
    let run = runners::run(data, job)?;
    match job.engine {
        Some(_) => runners::of(ctx, job).may_stop(run, unreached)?,
        None => runners::at(ctx, job, look()).may_stop(run, unreached)?,
    };
    Ok(())
}

/// The refusal to kill an attempt that is over: names the attempt that continues it, if there is one.
fn superseded(data: &Data, job: &Job, refused: Refused) -> Error {
    let lineage = data.user(&job.user).and_then(|user| Lineage::of(user, job.windows_id));
    match lineage.and_then(|lineage| lineage.leaf()).filter(|leaf| *leaf != job.windows_id) {
        None => refused.into(),
        Some(leaf) => Error::refused(format!("{} continues as {}/{leaf}", job.id(), job.user))
            .hint(format!("tpu kill {leaf} {}", job.user)),
    }
}

/// In the record of what had failed before it was killed.
fn note_killed(job: &mut Job) {
    let unwatched = job.monitor;
    let recovery = job.counts_mut();
    recovery.killed = true;
    recovery.unwatched = unwatched;
    // A daemon of an earlier version knows only this word.
    recovery.stopped.get_or_insert_with(|| "somebody has killed it".to_owned());
}

/// In the record of a job that it is to end, and that it had failed by then.
fn intend(ctx: &Ctx, tx: &mut Tx<'_>, id: &JobId, now: Timestamp) -> Result<(), Error> {
    let job = job_mut(&mut tx.data, id)?;
    let mut trial = job.clone();
    trial.apply(&Event::Killed)?;
    // What a kill has begun on may owe its failure to that kill.
    if matches!(job.status, Status::Error(_)) && !job.is_being_killed() {
        note_killed(job);
    }
    // Whatever was being done about it: a kill is above a rule. Whoever repeats a kill takes it over.
    let at = match &job.intent {
        Some(intent) if intent.action == KILLING => intent.at,
        Some(_) | None => now,
    };
    job.intent = Some(Intent { action: KILLING.to_owned(), at, by: lease::me(&ctx.env) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use tpu_core::model::ids::JobNumber;

    use super::*;

    #[test]
    fn the_originals_monitor_watches_no_job_whose_plan_was_killed() {
        for monitor in [true, false] {
            let id = JobId::new("alice".into(), JobNumber(1));
            let mut job = Job { monitor, ..Job::new(&id, "local".into(), "/d".to_owned()) };
            note_killed(&mut job);
            assert!(job.is_killed());
            assert_eq!((job.monitor, job.counts().unwatched), (monitor, monitor));
            assert_eq!(job.to_value()["monitor"], false);
        }
    }
}
