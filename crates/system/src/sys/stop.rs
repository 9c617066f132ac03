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
/// stopped, once none of them was left at two looks and the second found no new one. What appears meanwhile
/// is stopped as well, and what was found once is not forgotten, although it may hide from the next look.
/// What may not be signalled keeps no other from its end.
pub fn stop(
    (clock, procs): (&dyn Clock, &dyn Processes),
    mut look: impl FnMut() -> io::Result<Vec<Process>>,
) -> Result<usize, StopError> {
    let mut known: BTreeMap<(u32, u64), Process> = BTreeMap::new();
    let mut left: Vec<u32> = Vec::new();
    for (signal, patience) in PATIENCE {
        let deadline = clock.monotonic() + patience;
        let mut signalled: Vec<(u32, u64)> = Vec::new();
        let mut denied: Vec<(u32, u64)> = Vec::new();
        let mut refusal = None;
        let mut is_second_look = false;
        loop {
            let mut new = Vec::new();
            for process in look().map_err(StopError::Look)? {
                let pid = process.pid;
                if known.insert((pid, process.start), process).is_none() {
                    new.push(pid);
                }
            }
            let alive = alive(procs, &known);
            if alive.is_empty() {
                if new.is_empty() && is_second_look {
                    return Ok(known.len());
                }
                // What forked and ended while the table was read has a child that is not in it.
                is_second_look = true;
                if !new.is_empty() && clock.monotonic() >= deadline {
                    left = new;
                    break;
                }
                continue;
            }
            is_second_look = false;
            left = alive.iter().map(|process| process.pid).collect();
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
    let left: Vec<String> = left.iter().map(u32::to_string).collect();
    Err(StopError::DoNotEnd { pids: left.join(", ") })
}

fn alive<'a>(procs: &dyn Processes, known: &'a BTreeMap<(u32, u64), Process>) -> Vec<&'a Process> {
    known.values().filter(|process| procs.is_alive(process.pid, process.start)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::sys::clock::ManualClock;
    use crate::sys::procs::Table;
    use tpu_core::model::time::Timestamp;

    /// Processes of which those in the set live, until any signal.
    struct Living(Mutex<BTreeSet<u32>>);

    impl Processes for Living {
        fn table(&self) -> io::Result<Table> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn is_alive(&self, pid: u32, _start: u64) -> bool {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&pid)
        }

        fn signal(&self, process: &Process, _signal: Signal) -> io::Result<bool> {
            Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&process.pid))
        }
    }

    fn found(pids: &[u32]) -> Vec<Process> {
        let own = Process::read(std::process::id()).unwrap();
        pids.iter().map(|pid| Process { pid: *pid, start: 1, ..own.clone() }).collect()
    }

    #[test]
    fn what_ends_at_the_second_look_has_left_something_for_a_third() {
        let living = Living(Mutex::new(BTreeSet::from([8])));
        let looks: [&[u32]; 5] = [&[], &[7], &[8], &[], &[]];
        let mut looks = looks.into_iter();
        let clock = ManualClock::new(Timestamp::from_second(0));
        let stopped = stop((&clock, &living), || Ok(found(looks.next().unwrap())));
        assert_eq!(stopped.unwrap(), 2);
        assert_eq!(living.0.into_inner().unwrap(), BTreeSet::new());
    }

    #[test]
    fn what_always_leaves_another_one_does_not_end() {
        let living = Living(Mutex::default());
        let clock = ManualClock::new(Timestamp::from_second(0));
        let mut pid = 100;
        let stopped = stop((&clock, &living), || {
            pid += 1;
            clock.advance(Duration::from_millis(500));
            Ok(found(&[pid]))
        });
        let expected = pid.to_string();
        assert!(matches!(stopped, Err(StopError::DoNotEnd { pids }) if pids == expected));
    }
}
