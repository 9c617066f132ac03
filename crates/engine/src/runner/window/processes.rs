//! The processes of a job, on this machine and on the workers of its target, and how they are stopped:
//! exactly those, and all of those.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::runner::RunError;
use tpu_core::model::checkpoint_signal::CheckpointSignal;
use tpu_core::model::job::Job;
use tpu_system::effects::Effects;
use tpu_system::sys::procs::{Process, Signal, Table};
use tpu_system::sys::pty::COMMAND;
use tpu_system::sys::stop::{self, StopError};

use super::beside;

/// The live processes of a job.
///
/// A job of ours: its recorded process group (if pid and start time still agree), every process that carries its
/// launch token, and what is below these. A job of the original: what runs below its pane's shell, if it has one
/// still.
pub fn of_job(effects: &Effects, job: &Job, shell: Option<u32>) -> Result<Vec<Process>, RunError> {
    look(effects, job, shell).map_err(|e| unreadable(&e))
}

fn look(effects: &Effects, job: &Job, shell: Option<u32>) -> io::Result<Vec<Process>> {
    let table = effects.procs.table()?;
    let found = match (&job.launch, shell) {
        (Some(_), _) => in_table(effects, job, &table),
        (None, Some(shell)) => live(effects, table.descendants(shell)),
        (None, None) => BTreeMap::new(),
    };
    Ok(found.into_values().collect())
}

/// Those of a job of ours in one reading of the process table, by their ids.
pub(super) fn in_table(effects: &Effects, job: &Job, table: &Table) -> BTreeMap<u32, Process> {
    let Some(launch) = &job.launch else { return BTreeMap::new() };
    // Those of a simulated machine can be seen from here and are not here: the way to them is [`super::FarWorkers`].
    let workers = beside::workers(effects, job);
    let machines: Vec<&str> = workers.iter().map(|worker| worker.address.as_str()).collect();
    let mut found =
        live(effects, table.of_launch(launch.token.as_str(), &machines, effects.env.uid));
    if let Some((group, start)) = beside::recorded_group(effects, job)
        // No later process of that number.
        && effects.procs.is_alive(group, start)
    {
        found.extend(live(effects, table.group(group)));
    }
    // What has left the group and dropped the token is still theirs as long as they live.
    let known: BTreeSet<u32> = found.keys().copied().collect();
    found.extend(live(effects, table.below(known)));
    found
}

/// Those that have not ended, without ourselves.
fn live<'a>(
    effects: &Effects,
    processes: impl IntoIterator<Item = &'a Process>,
) -> BTreeMap<u32, Process> {
    let is_live = |process: &&Process| !process.zombie && process.pid != effects.env.pid;
    let live = processes.into_iter().filter(is_live);
    live.map(|process| (process.pid, process.clone())).collect()
}

/// Sends a signal to the program that the launcher of a job has started: not to what that has started itself, which
/// may know nothing of the signal and would end by it.
pub fn save(effects: &Effects, job: &Job, signal: CheckpointSignal) -> Result<bool, RunError> {
    let Some((group, start)) = beside::recorded_group(effects, job) else { return Ok(false) };
    if !effects.procs.is_alive(group, start) {
        return Ok(false);
    }
    let table = effects.procs.table().map_err(|e| unreadable(&e))?;
    let in_group: Vec<&Process> = table.group(group);
    let begun_by = |pid: u32| {
        let of_it = in_group.iter().filter(move |process| process.ppid == pid && !process.zombie);
        of_it.copied()
    };
    // What runs a command as its job wants it is told as well: it is not to begin that again.
    let with_command = |process: &'_ Process| match process.name.as_str() {
        COMMAND => begun_by(process.pid).collect(),
        _ => Vec::new(),
    };
    let programs: Vec<&Process> = begun_by(group)
        .flat_map(|process| std::iter::once(process).chain(with_command(process)))
        .collect();
    let mut is_told = false;
    for program in programs {
        is_told |= effects.procs.signal(program, of_checkpoint(signal)).map_err(|e| {
            RunError::refused(
                format!("process {} cannot be told to save: {e}", program.pid),
                "it can be stopped without: --now",
            )
        })?;
    }
    Ok(is_told)
}

fn of_checkpoint(signal: CheckpointSignal) -> Signal {
    match signal {
        CheckpointSignal::Usr1 => Signal::User1,
        CheckpointSignal::Usr2 => Signal::User2,
        CheckpointSignal::Hup => Signal::HangUp,
        CheckpointSignal::Int => Signal::Interrupt,
        CheckpointSignal::Term => Signal::Terminate,
    }
}

/// Stops those on this machine alone, and says how many there were. None begins afterwards.
pub(crate) fn stop_here(
    effects: &Effects,
    job: &Job,
    shell: Option<u32>,
) -> Result<usize, RunError> {
    beside::record_stopped(effects, job);
    let stopped = stop::stop((&*effects.clock, &*effects.procs), || look(effects, job, shell));
    stopped.map_err(|error| match error {
        StopError::Look(e) => unreadable(&e),
        StopError::Signal { .. } => RunError::refused(
            error.to_string(),
            "whoever owns it must end it; then repeat the command",
        ),
        StopError::DoNotEnd { .. } => RunError::unreachable(
            format!("{}: {error}", job.id()),
            "they hang in the kernel, usually on a dead mount; the job stays in the state 'killing'",
        ),
    })
}

fn unreadable(error: &io::Error) -> RunError {
    RunError::failed(
        format!("cannot read the process table: {error}"),
        "/proc must be mounted to tell which processes are the job's",
    )
}
