//! The processes of a job, on this machine and on the workers of its target, and how they are stopped:
//! exactly those, and all of those.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::model::facts::PaneFact;
use crate::model::job::Job;
use crate::remote::Worker;
use crate::sys::procs::{Process, Table};
use crate::sys::stop::{self, StopError};

use super::{Ctx, Error, records, workers};

/// The live processes of a job.
///
/// A job of ours: its recorded process group (if pid and start time still agree) and every process that
/// carries its launch token. A job of the original: what runs below its pane's shell.
pub fn of_job(ctx: &Ctx, job: &Job, pane: Option<&PaneFact>) -> Result<Vec<Process>, Error> {
    look(ctx, job, pane).map_err(|e| unreadable(&e))
}

fn look(ctx: &Ctx, job: &Job, pane: Option<&PaneFact>) -> io::Result<Vec<Process>> {
    let table = ctx.procs.table()?;
    let mut found: BTreeMap<u32, Process> = BTreeMap::new();
    let mut add = |processes: Vec<&Process>| {
        found.extend(
            processes
                .into_iter()
                .filter(|process| !process.zombie && process.pid != ctx.env.pid)
                .map(|process| (process.pid, process.clone())),
        );
    };
    match (&job.launch, pane) {
        (Some(launch), _) => {
            let far = on_machines(ctx, job, &table);
            let here = table.with_token(launch.token.as_str(), ctx.env.uid);
            add(here.into_iter().filter(|process| !far.contains(&process.pid)).collect());
            if let Some((group, start)) = recorded_group(ctx, job)
                && is_same(ctx, group, start)
            {
                add(table.group(group));
            }
        }
        (None, Some(pane)) => add(table.descendants(pane.pane_pid)),
        (None, None) => {}
    }
    Ok(found.into_values().collect())
}

/// Processes of the job's workers. Those of a simulated machine can be seen from here and are not here:
/// the way to them is that of [`workers::stop`].
fn on_machines(ctx: &Ctx, job: &Job, table: &Table) -> BTreeSet<u32> {
    let workers = workers::of_job(ctx, job);
    let on = |worker: &Worker| table.with_variable("TPU_MACHINE", &worker.address, ctx.env.uid);
    workers.iter().flat_map(on).map(|process| process.pid).collect()
}

/// Whether a process is the one that was written down, and no later one of that number.
fn is_same(ctx: &Ctx, pid: u32, start: u64) -> bool {
    fail::fail_point!("bug-reused-pid", |_| true);
    ctx.procs.is_alive(pid, start)
}

/// Process group and start time of its leader, as the launcher wrote them.
fn recorded_group(ctx: &Ctx, job: &Job) -> Option<(u32, u64)> {
    let bytes = records::launcher_file(ctx, &job.id(), "pid")?;
    let text = String::from_utf8(bytes).ok()?;
    let (group, start) = text.trim().split_once(' ')?;
    Some((group.parse().ok()?, start.parse().ok()?))
}

/// What is done where workers of a job cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// It is an error.
    Refuse,
    /// They are looked for no more, by a person's word: nobody else can know that they never will answer
    /// again. The journal says which they were.
    GoPast,
}

/// Stops the processes of a job as [`stop::stop`] does, and says how many there were.
pub fn stop(
    ctx: &Ctx,
    job: &Job,
    pane: Option<&PaneFact>,
    unreached: Unreached,
) -> Result<usize, Error> {
    let is_known = !workers::of_job(ctx, job).is_empty();
    let mut stopped = stop_there(ctx, job, unreached)?;
    stopped += stop_here(ctx, job, pane)?;
    if !is_known {
        // What attended to them may have begun since we looked.
        stopped += stop_there(ctx, job, unreached)?;
    }
    Ok(stopped)
}

fn stop_there(ctx: &Ctx, job: &Job, unreached: Unreached) -> Result<usize, Error> {
    let (stopped, unseen) = workers::stop(ctx, job)?;
    match (unseen, unreached) {
        (None, _) => {}
        (Some(error), Unreached::Refuse) => return Err(error),
        // Before they are forgotten: nothing else says that it may still run there.
        (Some(error), Unreached::GoPast) => note_unseen(ctx, job, &error)?,
    }
    workers::forget(ctx, &job.id());
    Ok(stopped)
}

fn note_unseen(ctx: &Ctx, job: &Job, error: &Error) -> Result<(), Error> {
    let what = format!("{}; not looked at, it may still run there", error.message);
    ctx.transact(|tx| {
        records::note(tx, &job.id(), "not-stopped", what.clone());
        Ok(())
    })?;
    ctx.warn([what]);
    Ok(())
}

/// Stops those on this machine alone.
pub fn stop_here(ctx: &Ctx, job: &Job, pane: Option<&PaneFact>) -> Result<usize, Error> {
    stop::stop((&*ctx.clock, &*ctx.procs), || look(ctx, job, pane)).map_err(|error| match error {
        StopError::Look(e) => unreadable(&e),
        StopError::Signal { .. } => Error::refused(error.to_string())
            .hint("whoever owns it must end it; then repeat the command"),
        StopError::DoNotEnd { .. } => Error::unreachable(format!("{}: {error}", job.id())).hint(
            "they hang in the kernel, usually on a dead mount; the job stays in the state 'killing'",
        ),
    })
}

fn unreadable(error: &io::Error) -> Error {
    Error::failed(format!("cannot read the process table: {error}"))
        .hint("/proc must be mounted to tell which processes are the job's")
}
