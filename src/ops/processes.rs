//! The processes of a job on this machine, and how they are stopped: exactly those, and all of those.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::model::facts::PaneFact;
use crate::model::job::Job;
use crate::sys::procs::{self, Process, Signal, Table};

use super::{Ctx, Error, records};

/// How long each signal is given before the next.
const PATIENCE: [(Signal, Duration); 3] = [
    (Signal::Interrupt, Duration::from_secs(3)),
    (Signal::Terminate, Duration::from_secs(10)),
    (Signal::Kill, Duration::from_secs(5)),
];

/// How often we look whether they are gone.
const POLL: Duration = Duration::from_millis(40);

/// The live processes of a job.
///
/// A job of ours: its recorded process group (if pid and start time still agree) and every process that
/// carries its launch token. A job of the original: what runs below its pane's shell.
pub fn of_job(ctx: &Ctx, job: &Job, pane: Option<&PaneFact>) -> Result<Vec<Process>, Error> {
    let table = Table::read().map_err(|e| {
        Error::failed(format!("cannot read the process table: {e}"))
            .hint("/proc must be mounted to tell which processes are the job's")
    })?;
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
            add(table.with_token(launch.token.as_str(), ctx.env.uid));
            if let Some((group, start)) = recorded_group(ctx, job)
                && procs::is_alive(group, start)
            {
                add(table.group(group));
            }
        }
        (None, Some(pane)) => add(table.descendants(pane.pane_pid)),
        (None, None) => {}
    }
    Ok(found.into_values().collect())
}

/// Process group and start time of its leader, as the launcher wrote them.
fn recorded_group(ctx: &Ctx, job: &Job) -> Option<(u32, u64)> {
    let bytes = records::launcher_file(ctx, &job.id(), "pid")?;
    let text = String::from_utf8(bytes).ok()?;
    let (group, start) = text.trim().split_once(' ')?;
    Some((group.parse().ok()?, start.parse().ok()?))
}

/// Stops the processes of a job: SIGINT, 3 s, SIGTERM, 10 s, SIGKILL. Processes that appear meanwhile
/// are stopped as well.
pub fn stop(ctx: &Ctx, job: &Job, pane: Option<&PaneFact>) -> Result<usize, Error> {
    let mut stopped: BTreeSet<(u32, u64)> = BTreeSet::new();
    for (signal, patience) in PATIENCE {
        let deadline = ctx.clock.monotonic() + patience;
        let mut signalled: BTreeSet<(u32, u64)> = BTreeSet::new();
        loop {
            let alive = of_job(ctx, job, pane)?;
            if alive.is_empty() {
                return Ok(stopped.len());
            }
            for process in &alive {
                let name = (process.pid, process.start);
                if signalled.insert(name) {
                    procs::signal(process, signal).map_err(|e| {
                        Error::refused(format!(
                            "cannot stop process {} ({}): {e}",
                            process.pid, process.name
                        ))
                        .hint("whoever owns it must end it; then repeat the command")
                    })?;
                    stopped.insert(name);
                }
            }
            if ctx.clock.monotonic() >= deadline {
                break;
            }
            ctx.clock.sleep(POLL);
        }
    }
    let left = of_job(ctx, job, pane)?;
    match left.first() {
        None => Ok(stopped.len()),
        Some(process) => Err(Error::unreachable(format!(
            "process {} ({}) of {} does not end, not even by SIGKILL",
            process.pid,
            process.name,
            job.id()
        ))
        .hint(
            "it hangs in the kernel, usually on a dead mount; the job stays in the state 'killing'",
        )),
    }
}
