//! Which runner an attempt has, and what our runners need from the use cases.

use crate::model::data::Data;
use crate::model::exit::Exit;
use crate::model::facts::TmuxFact;
use crate::model::ids::{JobId, TargetName};
use crate::model::job::Job;
use crate::runner::window::{FarWorkers, WindowRunner, beside};
use crate::runner::{
    Chunk, Observed, OutputWanted, RunError, RunRef, Runner, Said, StopOrder, StopOutcome,
    StopPart, Unreached, Want,
};
use crate::sys::procs::Process;

use super::ctx::user_of;
use super::{Ctx, Error, Kind, records, workers};

/// The runner of what computes on a target. **The one place where that is decided.**
pub fn of<'a>(ctx: &'a Ctx, _target: &TargetName) -> Box<dyn Runner + 'a> {
    Box::new(windows(ctx))
}

/// The same, for whoever has looked at tmux for something else as well: windows are found in that look.
pub fn at<'a>(ctx: &'a Ctx, _target: &TargetName, tmux: &'a TmuxFact) -> Box<dyn Runner + 'a> {
    Box::new(windows(ctx).seeing(tmux))
}

/// How runs are, each by the word of its own runner; the result keeps their order.
pub fn observe(ctx: &Ctx, runs: &[RunRef<'_>], tmux: &TmuxFact) -> Vec<Observed> {
    windows(ctx).seeing(tmux).observe(runs)
}

/// What runs have printed, each by its own runner; the result keeps their order.
pub fn outputs(ctx: &Ctx, wanted: &[OutputWanted<'_>]) -> Result<Vec<Option<Chunk>>, Error> {
    Ok(windows(ctx).output(wanted)?)
}

/// A number that changes when a run may have come or gone or ended.
pub fn wakes(ctx: &Ctx) -> u64 {
    windows(ctx).wakes().unwrap_or_default()
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
    of(ctx, &job.tpu).recorded_exit(RunRef { job, session: "" })
}

/// The processes of a job that can be seen from here.
pub fn processes(ctx: &Ctx, data: &Data, job: &Job) -> Result<Vec<Process>, Error> {
    Ok(of(ctx, &job.tpu).processes(run(data, job)?)?)
}

/// Stops a job, or a part of it.
pub fn stop(
    ctx: &Ctx,
    data: &Data,
    job: &Job,
    (part, unreached): (StopPart, Unreached),
) -> Result<StopOutcome, Error> {
    Ok(of(ctx, &job.tpu).stop(run(data, job)?, StopOrder { part, unreached })?)
}

/// A part of what a job has printed.
pub fn output(ctx: &Ctx, data: &Data, job: &Job, want: Want) -> Result<Option<Chunk>, Error> {
    let wanted = OutputWanted { run: run(data, job)?, seen: None, want };
    Ok(of(ctx, &job.tpu).output(&[wanted])?.pop().flatten())
}

/// The workers of a job, as the window runner needs them.
struct Reach<'a>(&'a Ctx);

impl FarWorkers for Reach<'_> {
    fn stop(&self, job: &Job, unreached: Unreached) -> Result<usize, RunError> {
        let Self(ctx) = self;
        let (stopped, unseen) = workers::stop(ctx, job).map_err(run_error)?;
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
    match error.kind {
        Kind::NotFound => RunError::NotFound(said),
        Kind::Refused => RunError::Refused(said),
        Kind::State => RunError::State(said),
        Kind::Unreachable => RunError::Unreachable(said),
        Kind::Failed | Kind::Usage | Kind::TimeOver | Kind::Interrupted => RunError::Failed(said),
    }
}
