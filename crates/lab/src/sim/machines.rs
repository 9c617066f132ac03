//! The machines of simulated targets: directories of this machine, whose processes die when the power
//! goes.
//!
//! A machine is up while the file `environment` is in its directory. Whoever starts a process on it does
//! so with the variables in that file, and looks at the file again before the work begins; so what the
//! file's removal does not keep from starting can be found by its variables and killed. The address that
//! the control plane gives for a worker is the path of its directory.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::procs::{self, Process, Signal, Table};

/// The variable that names the machine to every process on it.
const MACHINE: &str = "TPU_MACHINE";
/// The variable that a job's own processes have beside it: the worker's index.
const WORKER: &str = "TPU_WORKER";
/// Present while the machine is up: variables of its processes, each `NAME=VALUE` and a NUL.
const ENVIRONMENT: &str = "environment";
/// Present after the programs were broken: the exit code, a line feed, and their last words.
const LAST_WORDS: &str = "last-words";
/// Present while programs end at their start: in the same form.
const REFUSAL: &str = "refusal";
/// Present while the way to the machine is broken.
const CUT: &str = "cut";
/// A killed process is gone long before.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something to be done to machines, in the order in which it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Power {
    /// The first `workers` machines go on.
    On { boot: u64, workers: u32 },
    /// These go off; their processes die.
    Off { boot: u64, workers: Vec<u32> },
    /// Their disks are gone as well.
    Remove { boot: u64 },
    /// The programs on them die with these words and this code.
    Break { boot: u64, workers: u32, code: i32, text: String },
    /// Programs that start end at once with these words and this code.
    Refuse { boot: u64, workers: u32, code: i32, text: String },
    /// They do so no more.
    Allow { boot: u64, workers: u32 },
    /// Nobody can reach them; what runs goes on.
    Cut { boot: u64, workers: u32 },
    /// They can be reached again.
    Mend { boot: u64, workers: u32 },
}

/// Where the machines are. Without a place there are none, and the fleet consists of words alone, as a
/// simulation of many days needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Machines {
    root: Option<PathBuf>,
}

impl Machines {
    /// Machines below a directory, which need not be there yet. Its path becomes absolute: it is an
    /// address, and others have other working directories.
    pub(super) fn new(root: Option<PathBuf>) -> Self {
        Self { root: root.map(|root| std::path::absolute(&root).unwrap_or(root)) }
    }

    /// The address of a worker.
    pub(super) fn address(&self, boot: u64, worker: u32) -> String {
        match &self.root {
            Some(root) => directory(root, boot, worker).to_string_lossy().into_owned(),
            None => format!("sim-{boot}-w{worker}"),
        }
    }

    /// Does one thing to the machines. Doing it again changes nothing.
    pub(super) fn perform(&self, power: &Power) -> io::Result<()> {
        let Some(root) = &self.root else { return Ok(()) };
        let of = |boot: u64, workers: u32| machines_of(root, boot, 0..workers);
        match power {
            Power::On { boot, workers } => {
                of(*boot, *workers).iter().try_for_each(|(_, machine)| switch_on(machine))
            }
            Power::Off { boot, workers } => {
                let machines = machines_of(root, *boot, workers.iter().copied());
                take(&machines, ENVIRONMENT)?;
                kill_all(&machines, Whom::Everything)
            }
            Power::Remove { boot } => match fs::remove_dir_all(root.join(boot.to_string())) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            },
            Power::Break { boot, workers, code, text } => {
                let machines = of(*boot, *workers);
                put(&machines, LAST_WORDS, format!("{code}\n{text}").as_bytes())?;
                kill_all(&machines, Whom::Programs)
            }
            Power::Refuse { boot, workers, code, text } => {
                put(&of(*boot, *workers), REFUSAL, format!("{code}\n{text}").as_bytes())
            }
            Power::Allow { boot, workers } => take(&of(*boot, *workers), REFUSAL),
            Power::Cut { boot, workers } => put(&of(*boot, *workers), CUT, b""),
            Power::Mend { boot, workers } => take(&of(*boot, *workers), CUT),
        }
    }
}

/// Worker indices and directories.
type Places = Vec<(u32, PathBuf)>;

fn machines_of(root: &Path, boot: u64, workers: impl Iterator<Item = u32>) -> Places {
    workers.map(|worker| (worker, directory(root, boot, worker))).collect()
}

fn directory(root: &Path, boot: u64, worker: u32) -> PathBuf {
    root.join(boot.to_string()).join(format!("w{worker}"))
}

/// Puts a file into the machines that are there.
fn put(machines: &Places, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut there = machines.iter().filter(|(_, machine)| machine.is_dir());
    there.try_for_each(|(_, machine)| write(&machine.join(name), bytes))
}

/// Takes a file away from the machines.
fn take(machines: &Places, name: &str) -> io::Result<()> {
    machines.iter().try_for_each(|(_, machine)| remove(&machine.join(name)))
}

fn switch_on(machine: &Path) -> io::Result<()> {
    if machine.to_str().is_none() {
        let what = format!("the path {} is no UTF-8, and is to be an address", machine.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    fs::create_dir_all(machine)?;
    remove(&machine.join(LAST_WORDS))?;
    let mut variables = format!("{MACHINE}=").into_bytes();
    variables.extend(machine.as_os_str().as_encoded_bytes());
    variables.push(0);
    write(&machine.join(ENVIRONMENT), &variables)
}

/// Writes a file that is there as a whole or not at all. A machine that the power failure of ours takes
/// away needs no more than that.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    fs::File::create(&new)?.write_all(bytes)?;
    fs::rename(new, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Which processes of a machine are meant.
#[derive(Clone, Copy)]
enum Whom {
    /// All of them.
    Everything,
    /// The jobs' own, and not those that watch over them and write their last words down.
    Programs,
}

/// Kills processes of some machines, and returns when none is left. A process that was just being
/// forked shows up in the next look.
fn kill_all(machines: &Places, whom: Whom) -> io::Result<()> {
    let uid = rustix::process::getuid().as_raw();
    let clock = SystemClock::new();
    let mut empty_looks = 0;
    while empty_looks < 2 {
        let table = Table::read()?;
        let mut found: Vec<&Process> = Vec::new();
        for (worker, machine) in machines {
            let mut here = table.with_variable(MACHINE, &machine.to_string_lossy(), uid);
            if matches!(whom, Whom::Programs) && !here.is_empty() {
                let programs = table.with_variable(WORKER, &worker.to_string(), uid);
                here.retain(|process| programs.contains(process));
            }
            // What a program starts with other variables is still the machine's.
            let below = here.iter().flat_map(|process| table.descendants(process.pid));
            let below: Vec<&Process> = below.filter(|process| !process.zombie).collect();
            found.extend(here);
            found.extend(below);
        }
        empty_looks = if found.is_empty() { empty_looks + 1 } else { 0 };
        for process in &found {
            procs::signal(process, Signal::Kill)?;
        }
        if clock.monotonic() > PATIENCE {
            let pids: Vec<String> = found.iter().map(|process| process.pid.to_string()).collect();
            let what = format!("processes {} do not end", pids.join(", "));
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        if !found.is_empty() {
            clock.sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}
