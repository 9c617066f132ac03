//! Ending processes: politely, then firmly, then for certain.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::clock::Clock;
use super::procs::{Process, Processes, Signal};

/// How long each signal is given before the next.
const PATIENCE: [(Signal, Duration); 3] = [
    (Signal::Interrupt, Duration::from_secs(3)),
    (Signal::Terminate, Duration::from_secs(10)),
    (Signal::Kill, Duration::from_secs(5)),
];
/// How often we look whether they are gone.
const POLL: Duration = Duration::from_millis(20);

/// Why processes were not stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// They could not be looked for.
    #[error("cannot look for its processes: {0}")]
    Look(io::Error),
    /// One of them may not be signalled.
    #[error("cannot stop process {pid} ({name}): {source}")]
    Signal {
        /// Its id.
        pid: u32,
        /// Its short name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// They do not end, not even by SIGKILL: they hang in the kernel.
    #[error("processes {pids} do not end, not even by SIGKILL")]
    DoNotEnd {
        /// Their ids.
        pids: String,
    },
}

/// Stops what `look` finds: SIGINT, after 3 s SIGTERM, after 10 s SIGKILL. Returns how many processes were
/// stopped, once two looks have found none of them left. What appears meanwhile is stopped as well, and what was found once
/// is not forgotten, although it may hide from the next look. What may not be signalled keeps no other from
/// its end.
pub fn stop(
    (clock, procs): (&dyn Clock, &dyn Processes),
    mut look: impl FnMut() -> io::Result<Vec<Process>>,
) -> Result<usize, StopError> {
    let mut known: BTreeMap<(u32, u64), Process> = BTreeMap::new();
    for (signal, patience) in PATIENCE {
        let deadline = clock.monotonic() + patience;
        let mut signalled: Vec<(u32, u64)> = Vec::new();
        let mut denied: Vec<(u32, u64)> = Vec::new();
        let mut refusal = None;
        let mut is_second_look = false;
        loop {
            let found = look().map_err(StopError::Look)?;
            known.extend(found.into_iter().map(|process| ((process.pid, process.start), process)));
            let alive = alive(procs, &known);
            if alive.is_empty() {
                if is_second_look {
                    return Ok(known.len());
                }
                // What forked and ended while the table was read has a child that is not in it.
                is_second_look = true;
                continue;
            }
            is_second_look = false;
            let mut is_only_denied = true;
            for process in alive {
                let name = (process.pid, process.start);
                if !signalled.contains(&name) {
                    signalled.push(name);
                    if let Err(source) = procs.signal(process, signal) {
                        denied.push(name);
                        let (pid, name) = (process.pid, process.name.clone());
                        refusal.get_or_insert(StopError::Signal { pid, name, source });
                    }
                }
                is_only_denied &= denied.contains(&name);
            }
            if let Some(refusal) = refusal.take_if(|_| is_only_denied) {
                return Err(refusal);
            }
            if clock.monotonic() >= deadline {
                break;
            }
            clock.sleep(POLL);
        }
    }
    let left: Vec<String> =
        alive(procs, &known).iter().map(|process| process.pid.to_string()).collect();
    if left.is_empty() {
        Ok(known.len())
    } else {
        Err(StopError::DoNotEnd { pids: left.join(", ") })
    }
}

fn alive<'a>(procs: &dyn Processes, known: &'a BTreeMap<(u32, u64), Process>) -> Vec<&'a Process> {
    known.values().filter(|process| procs.is_alive(process.pid, process.start)).collect()
}
