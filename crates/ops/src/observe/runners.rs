//! Which runner an attempt has, and what our runners need from the use cases.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tpu_core::model::checkpoint_signal::CheckpointSignal;
use tpu_core::model::data::Data;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::TmuxFact;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{EngineRun, Job};
use tpu_core::model::target::{Target, TargetKind};
use tpu_engine::kinds::KindOfTarget;
use tpu_engine::runner::window::panes::{self, Known};
use tpu_engine::runner::window::{FarWorkers, WindowRunner, beside};
use tpu_engine::runner::{
    Chunk, Observed, OutputWanted, RunError, RunRef, Runner, Said, StopOrder, StopOutcome,
    Unreached, Want,
};
use tpu_system::sys::procs::Process;
use tpu_system::sys::{accounts, threads};
use tpu_system::tmux::Look;

use super::worker_processes;
use crate::base::ctx::user_of;
use crate::base::records;
use crate::{Ctx, Error, Kind};

/// How long a look waits for engines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// How long whoever stops runs waits for them: as long as for the answer to that, and for its way here.
const LONGER_PATIENCE: Duration = Duration::from_secs(9);

/// The runner of what is to be started on a target.
pub fn of_target<'a>(
    ctx: &'a Ctx,
    data: &Data,
    target: &Target,
) -> Result<Box<dyn Runner + 'a>, Error> {
    let kind = ctx.kinds.of(target).map_err(|unknown| {
        Error::refused(format!("{} cannot be used: {unknown}", target.name))
            .hint("a newer tpu knows it; `tpu --version` says which this is")
    })?;
    Ok(kind.runner(data.registration(&target.name), &ctx.effects, windows(ctx)))
}

/// The runner of an attempt, by its handle. Where nobody knows the engine that has it, the window runner says
/// that it is elsewhere.
pub fn of<'a>(ctx: &'a Ctx, job: &Job) -> Box<dyn Runner + 'a> {
    engine(ctx, job).unwrap_or_else(|| Box::new(windows(ctx)))
}

/// The same, for whoever has looked at tmux for something else as well: windows are found in that look.
pub fn at<'a>(ctx: &'a Ctx, job: &Job, tmux: &'a TmuxFact) -> Box<dyn Runner + 'a> {
    engine(ctx, job).unwrap_or_else(|| Box::new(windows(ctx).seeing(tmux)))
}

/// The engine that has an attempt; `None` where it ran in a window, or where nobody here knows its kind.
pub(crate) fn engine_of<'a>(ctx: &'a Ctx, job: &Job) -> Option<Box<dyn Runner + 'a>> {
    engine(ctx, job)
}

fn engine<'a>(ctx: &'a Ctx, job: &Job) -> Option<Box<dyn Runner + 'a>> {
    ctx.kinds.engine(job.engine.as_ref()?, &ctx.effects)
}

/// The account that an engine has a job of, if it is another one than that of this process.
pub(super) fn other_account(ctx: &Ctx, job: &Job) -> Option<String> {
    let uid = ctx.kinds.account(job.engine.as_ref()?)?;
    (uid != ctx.env.uid).then(|| accounts::name(uid))
}

/// How runs are, each by the word of its own runner, who is asked once about all of its own; the result keeps
/// their order. Engines are asked side by side, and one that is late holds up neither the others nor the look.
pub fn observe(ctx: &Ctx, runs: &[RunRef<'_>], tmux: &TmuxFact) -> Vec<Observed> {
    observe_within(ctx, runs, tmux, PATIENCE)
}

/// The same for whoever stops what has not ended by then.
pub(crate) fn observe_patiently(ctx: &Ctx, runs: &[RunRef<'_>], tmux: &TmuxFact) -> Vec<Observed> {
    observe_within(ctx, runs, tmux, LONGER_PATIENCE)
}

fn observe_within(
    ctx: &Ctx,
    runs: &[RunRef<'_>],
    tmux: &TmuxFact,
    patience: Duration,
) -> Vec<Observed> {
    if runs.iter().all(|run| run.job.engine.is_none()) {
        return windows(ctx).seeing(tmux).observe(runs);
    }
    let deadline = ctx.clock.monotonic() + patience;
    let mut seen: Vec<Observed> = runs.iter().map(|_| late(patience)).collect();
    let (say, answers) = channel();
    let mut here = Vec::new();
    for (first, places) in by_engine(runs.iter().map(|run| run.job)) {
        let asked: Vec<RunRef<'_>> =
            places.iter().filter_map(|index| runs.get(*index)).copied().collect();
        match first.engine.as_deref().filter(|_| engine(ctx, first).is_some()) {
            Some(run) => ask(ctx, (run.clone(), patience), &asked, places, say.clone()),
            None => here.push((places, asked)),
        }
    }
    drop(say);
    for (places, asked) in here {
        Answer { places, said: windows(ctx).seeing(tmux).observe(&asked) }.put_into(&mut seen);
    }
    while let Some(answer) = next_of(ctx, &answers, deadline) {
        answer.put_into(&mut seen);
    }
    seen
}

/// The next answer of those that were asked side by side; `None` when all have answered, or at the deadline.
fn next_of<T>(ctx: &Ctx, answers: &Receiver<T>, deadline: Duration) -> Option<T> {
    let left = deadline.saturating_sub(ctx.clock.monotonic());
    threads::next_of(&*ctx.threads, answers, left).ok()
}

/// What a runner has said of some runs, one by one.
struct Answer<T> {
    /// The indexes of these runs among all that are asked about.
    places: Vec<usize>,
    said: Vec<T>,
}

impl<T> Answer<T> {
    /// Puts what is said of each run at its place.
    fn put_into(self, all: &mut [T]) {
        for (index, said) in self.places.into_iter().zip(self.said) {
            if let Some(place) = all.get_mut(index) {
                *place = said;
            }
        }
    }
}

/// What is known of a run whose engine has not answered in time.
fn late(patience: Duration) -> Observed {
    let mut late = Observed::unknown();
    let why = format!("its engine has not answered within {} s", patience.as_secs());
    late.run.reason = Some(why.into());
    late
}

/// Asks an engine about its runs on another thread, which sends the answer to `say`.
fn ask(
    ctx: &Ctx,
    (run, patience): (EngineRun, Duration),
    asked: &[RunRef<'_>],
    places: Vec<usize>,
    say: Sender<Answer<Observed>>,
) {
    let (kinds, effects) = (ctx.kinds.clone(), ctx.effects.clone());
    let asked: Vec<(Job, String)> =
        asked.iter().map(|run| (run.job.clone(), run.session.to_owned())).collect();
    ctx.threads.spawn(Box::new(move || {
        let runs: Vec<RunRef<'_>> =
            asked.iter().map(|(job, session)| RunRef { job, session }).collect();
        let said = kinds.engine(&run, &effects).map(|engine| match patience {
            LONGER_PATIENCE => engine.observe_patiently(&runs),
            _ => engine.observe(&runs),
        });
        // Nobody hears it any more where the look is over.
        drop(say.send(Answer { places, said: said.unwrap_or_default() }));
    }));
}

/// What runs have printed, each by its own runner; the result keeps their order. What cannot be read by one
/// keeps nobody from what others say: engines are asked side by side, and what comes too late is not read.
pub fn outputs(
    ctx: &Ctx,
    wanted: &[OutputWanted<'_>],
    look: &Look<'_>,
) -> Result<Vec<Option<Chunk>>, Error> {
    if wanted.iter().all(|wanted| wanted.run.job.engine.is_none()) {
        return Ok(windows(ctx).reading(look).output(wanted)?);
    }
    let deadline = ctx.clock.monotonic() + PATIENCE;
    let mut outputs: Vec<Option<Chunk>> = wanted.iter().map(|_| None).collect();
    let (say, answers) = channel();
    let mut here = Vec::new();
    for (first, places) in by_engine(wanted.iter().map(|wanted| wanted.run.job)) {
        let asked: Vec<OutputWanted<'_>> =
            places.iter().filter_map(|index| wanted.get(*index)).copied().collect();
        match first.engine.as_deref().filter(|_| engine(ctx, first).is_some()) {
            Some(run) => read(ctx, run.clone(), &asked, places, say.clone()),
            None => here.push((places, asked)),
        }
    }
    drop(say);
    for (places, asked) in here {
        let said = windows(ctx).reading(look).output(&asked).unwrap_or_default();
        Answer { places, said }.put_into(&mut outputs);
    }
    while let Some(answer) = next_of(ctx, &answers, deadline) {
        answer.put_into(&mut outputs);
    }
    Ok(outputs)
}

/// Has an engine read outputs on another thread, which sends them to `say`.
fn read(
    ctx: &Ctx,
    run: EngineRun,
    asked: &[OutputWanted<'_>],
    places: Vec<usize>,
    say: Sender<Answer<Option<Chunk>>>,
) {
    let (kinds, effects) = (ctx.kinds.clone(), ctx.effects.clone());
    let asked: Vec<(Job, String, Option<Observed>, Want)> = asked
        .iter()
        .map(|OutputWanted { run, seen, want }| {
            (run.job.clone(), run.session.to_owned(), seen.cloned(), *want)
        })
        .collect();
    ctx.threads.spawn(Box::new(move || {
        let wanted = asked.iter().map(|(job, session, seen, want)| OutputWanted {
            run: RunRef { job, session },
            seen: seen.as_ref(),
            want: *want,
        });
        let wanted: Vec<OutputWanted<'_>> = wanted.collect();
        let said = kinds.engine(&run, &effects).and_then(|engine| engine.output(&wanted).ok());
        // Nobody hears it any more where the look is over.
        drop(say.send(Answer { places, said: said.unwrap_or_default() }));
    }));
}

/// An engine: its kind, and which of it.
type Engine<'a> = (&'a TargetKind, &'a String);

/// Groups jobs by the engine that has them; with the first of each, the indexes of all.
pub(crate) fn by_engine<'a>(
    jobs: impl Iterator<Item = &'a Job>,
) -> impl Iterator<Item = (&'a Job, Vec<usize>)> {
    let engine_of = |job: &'a Job| job.engine.as_ref().map(|run| (&run.kind, &run.cluster));
    let mut groups: BTreeMap<Option<Engine<'_>>, (&Job, Vec<usize>)> = BTreeMap::new();
    for (index, job) in jobs.enumerate() {
        groups.entry(engine_of(job)).or_insert((job, Vec::new())).1.push(index);
    }
    groups.into_values()
}

/// A number that changes when a run may have come or gone or ended.
pub fn wakes(ctx: &Ctx) -> u64 {
    let engines: u64 = ctx.kinds.all().map(KindOfTarget::wakes).fold(0, u64::wrapping_add);
    windows(ctx).wakes().wrapping_add(engines)
}

fn windows(ctx: &Ctx) -> WindowRunner<'_> {
    WindowRunner::new(&ctx.effects, Box::new(Reach(ctx)))
}

/// The run of a job.
pub fn run<'a>(data: &'a Data, job: &'a Job) -> Result<RunRef<'a>, Error> {
    Ok(RunRef { job, session: &user_of(data, &job.user)?.tmux_name })
}

/// How the command of a job has ended, by its record or by what its supervisor has written down.
pub fn exit_of(ctx: &Ctx, job: &Job) -> Option<Exit> {
    let by_record = job.launch.as_ref()?.exit.map(|code| job.exit(code));
    by_record.or_else(|| recorded_exit(ctx, job))
}

/// The same by its supervisor alone.
pub fn recorded_exit(ctx: &Ctx, job: &Job) -> Option<Exit> {
    of(ctx, job).recorded_exit(RunRef { job, session: "" })
}

/// The processes of a job that can be seen from here.
pub fn processes(ctx: &Ctx, data: &Data, job: &Job) -> Result<Vec<Process>, Error> {
    Ok(of(ctx, job).processes(run(data, job)?)?)
}

/// Tells the program of a job to save a checkpoint. Whether there is one that was told.
pub fn save(ctx: &Ctx, data: &Data, job: &Job, signal: CheckpointSignal) -> Result<bool, Error> {
    Ok(of(ctx, job).save(run(data, job)?, signal)?)
}

/// Stops a job, or a part of it.
pub fn stop(ctx: &Ctx, data: &Data, job: &Job, order: StopOrder) -> Result<StopOutcome, Error> {
    Ok(of(ctx, job).stop(run(data, job)?, order)?)
}

/// Stops jobs that one runner has, or a part of each; the result keeps their order.
pub fn stop_all(
    ctx: &Ctx,
    data: &Data,
    jobs: &[&Job],
    order: StopOrder,
) -> Vec<Result<StopOutcome, Error>> {
    let Some(first) = jobs.first() else { return Vec::new() };
    let runs: Result<Vec<RunRef<'_>>, Error> = jobs.iter().map(|job| run(data, job)).collect();
    match runs {
        Ok(runs) => {
            let mut said = of(ctx, first).stop_all(&runs, order).into_iter();
            let unsaid = || Err(Error::failed("what runs it does not say whether it is stopped"));
            jobs.iter().map(|_| said.next().map_or_else(unsaid, |outcome| Ok(outcome?))).collect()
        }
        Err(error) => jobs.iter().map(|_| Err(error.again())).collect(),
    }
}

/// Gives up launches that never reached what was to run them, with as few questions as it takes. Whether each is given
/// up by that; the result keeps their order.
pub fn give_up(ctx: &Ctx, data: &Data, jobs: &[&Job]) -> Vec<Result<bool, Error>> {
    let unsaid = || Err(Error::failed("what was to run it does not say whether it is given up"));
    let mut given_up: Vec<Result<bool, Error>> = jobs.iter().map(|_| unsaid()).collect();
    for (first, theirs) in by_engine(jobs.iter().copied()) {
        let runs = theirs.iter().filter_map(|index| jobs.get(*index));
        let runs: Result<Vec<RunRef<'_>>, Error> = runs.map(|job| run(data, job)).collect();
        let said = match runs {
            Ok(runs) => of(ctx, first).give_up(&runs).into_iter().map(|said| Ok(said?)).collect(),
            Err(error) => theirs.iter().map(|_| Err(error.again())).collect::<Vec<_>>(),
        };
        for (index, said) in theirs.into_iter().zip(said) {
            if let Some(place) = given_up.get_mut(index) {
                *place = said;
            }
        }
    }
    given_up
}

/// A part of what jobs have printed that one runner has; the result keeps their order. What cannot be read is none.
pub(crate) fn outputs_of(ctx: &Ctx, data: &Data, jobs: &[&Job], want: Want) -> Vec<Option<Chunk>> {
    let Some(first) = jobs.first() else { return Vec::new() };
    let wanted: Result<Vec<_>, Error> = jobs
        .iter()
        .map(|job| Ok(OutputWanted { run: run(data, job)?, seen: None, want }))
        .collect();
    let read = wanted.ok().and_then(|wanted| of(ctx, first).output(&wanted).ok());
    read.unwrap_or_else(|| jobs.iter().map(|_| None).collect())
}

/// A part of what a job has printed.
pub fn output(ctx: &Ctx, data: &Data, job: &Job, want: Want) -> Result<Option<Chunk>, Error> {
    let wanted = OutputWanted { run: run(data, job)?, seen: None, want };
    Ok(of(ctx, job).output(&[wanted])?.pop().flatten())
}

/// What is shown of a job now, for whoever reads it over and over: so many lines above that or all of them, with
/// colours or without. Where its window was found is kept in `known`; an engine is asked for its run.
pub(crate) fn shown_again(
    ctx: &Ctx,
    data: &Data,
    job: &Job,
    (above, colours): (Option<u32>, bool),
    known: &mut Option<Known>,
) -> Result<Option<Vec<u8>>, Error> {
    let Some(engine) = engine(ctx, job) else {
        return Ok(panes::read_again(ctx, run(data, job)?, (above, colours), known)?);
    };
    *known = None;
    let want = Want::Shown { above, colours };
    let wanted = OutputWanted { run: run(data, job)?, seen: None, want };
    Ok(engine.output(&[wanted])?.pop().flatten().map(|chunk| chunk.bytes.into()))
}

/// The workers of a job, as the window runner needs them.
struct Reach<'a>(&'a Ctx);

impl FarWorkers for Reach<'_> {
    fn stop(&self, job: &Job, unreached: Unreached) -> Result<usize, RunError> {
        let Self(ctx) = self;
        // What attends to them may record them at any moment: only those that were stopped are forgotten.
        if worker_processes::of_job(ctx, job).is_empty() {
            return Ok(0);
        }
        let (stopped, unseen) = worker_processes::stop(ctx, job).map_err(run_error)?;
        match (unseen, unreached) {
            (None, _) => {}
            (Some(error), Unreached::Refuse) => return Err(run_error(error)),
            // Before they are forgotten: nothing else says that it may still run there.
            (Some(error), Unreached::GoPast) => {
                note_unseen(ctx, &job.id(), &error).map_err(run_error)?;
            }
        }
        beside::forget_workers(ctx, &job.id());
        Ok(stopped)
    }
}

fn note_unseen(ctx: &Ctx, id: &JobId, error: &Error) -> Result<(), Error> {
    let what = format!("{}; not looked at, it may still run there", error.message);
    ctx.transact(|tx| {
        records::note(tx, id, "not-stopped", what.clone());
        Ok(())
    })?;
    ctx.warn([what]);
    Ok(())
}

fn run_error(error: Error) -> RunError {
    let said = Said { message: error.message, hint: error.hint };
    if error.needs_login {
        return RunError::Login(said);
    }
    match error.kind {
        Kind::NotFound => RunError::NotFound(said),
        Kind::Refused => RunError::Refused(said),
        Kind::State => RunError::State(said),
        Kind::Unreachable => RunError::Unreachable(said),
        Kind::Failed | Kind::Usage | Kind::TimeOver | Kind::Interrupted => RunError::Failed(said),
    }
}
