//! The process table: all processes at one moment, and which of them belong together.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use super::Process;

/// All processes at one moment, as far as they could be read.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub(super) processes: BTreeMap<u32, Process>,
    /// Owner and variables of each, where they are not this machine's.
    simulated: Option<BTreeMap<u32, (u32, Vec<u8>)>>,
}

impl Table {
    /// Reads the process table.
    pub fn read() -> io::Result<Self> {
        let mut processes = BTreeMap::new();
        for entry in std::fs::read_dir("/proc")? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if let Some(process) = Process::read(pid) {
                processes.insert(pid, process);
            }
        }
        if processes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "/proc lists no processes"));
        }
        Ok(Self { processes, simulated: None })
    }

    /// A table of simulated processes, each with its user and its variables (`NAME=VALUE` and a NUL).
    pub fn simulated(processes: impl IntoIterator<Item = (Process, u32, Vec<u8>)>) -> Self {
        let mut table = Self { simulated: Some(BTreeMap::new()), ..Self::default() };
        for (process, uid, variables) in processes {
            if let Some(simulated) = &mut table.simulated {
                simulated.insert(process.pid, (uid, variables));
            }
            table.processes.insert(process.pid, process);
        }
        table
    }

    /// The variables that a process of user `uid` was started with; `None` if it is gone or another user's.
    fn environ(&self, pid: u32, uid: u32) -> Option<Vec<u8>> {
        let Some(simulated) = &self.simulated else { return environ(pid, uid) };
        simulated.get(&pid).filter(|(owner, _)| *owner == uid).map(|(_, bytes)| bytes.clone())
    }

    /// One process.
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// Its children.
    pub fn children(&self, pid: u32) -> Vec<&Process> {
        self.processes.values().filter(|process| process.ppid == pid).collect()
    }

    /// The children, their children and so on, without `pid` itself; parents come before children. A tmux server
    /// among them is nobody's child: neither it nor what is below it counts.
    pub fn descendants(&self, pid: u32) -> Vec<&Process> {
        self.below(BTreeSet::from([pid]))
    }

    /// The same of several at once, without these.
    pub fn below(&self, pids: BTreeSet<u32>) -> Vec<&Process> {
        let mut found: Vec<&Process> = Vec::new();
        let mut parents = pids.clone();
        let mut known = pids;
        while !parents.is_empty() {
            let is_child = |process: &&Process| {
                parents.contains(&process.ppid)
                    && !process.is_tmux_server()
                    && known.insert(process.pid)
            };
            let children: Vec<&Process> = self.processes.values().filter(is_child).collect();
            parents = children.iter().map(|process| process.pid).collect();
            found.extend(children);
        }
        found
    }

    /// The members of a process group.
    pub fn group(&self, pgid: u32) -> Vec<&Process> {
        self.processes.values().filter(|process| process.pgid == pgid).collect()
    }

    /// The processes of user `uid` that were started with `TPU_LAUNCH=<token>`: those of one launch.
    pub fn with_token(&self, token: &str, uid: u32) -> Vec<&Process> {
        self.of_launch(token, &[], uid)
    }

    /// The same without those of simulated machines, which are known by `TPU_MACHINE`.
    pub fn of_launch(&self, token: &str, machines: &[&str], uid: u32) -> Vec<&Process> {
        let is_far = |variable: &[u8]| {
            let machine = variable.strip_prefix(b"TPU_MACHINE=");
            machine.is_some_and(|own| machines.iter().any(|known| known.as_bytes() == own))
        };
        self.carriers("TPU_LAUNCH", token, uid, |environ| !variables(environ).any(is_far))
    }

    /// The processes of user `uid` that were started with a variable of this value.
    ///
    /// A tmux server that somebody started inside a job inherits the job's variables, and so does all
    /// that ever runs below it: neither is the job's. Such servers, what is below them, and what says in
    /// `$TMUX` that it came from one of them are left out. Zombies cannot be read and do not count.
    pub fn with_variable(&self, name: &str, value: &str, uid: u32) -> Vec<&Process> {
        self.carriers(name, value, uid, |_| true)
    }

    /// The environment of a process is read once: while it becomes another program it has none.
    fn carriers(
        &self,
        name: &str,
        value: &str,
        uid: u32,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Vec<&Process> {
        let wanted = format!("{name}={value}");
        let mut found: Vec<(&Process, Vec<u8>)> = Vec::new();
        for process in self.processes.values() {
            let Some(environ) = self.environ(process.pid, uid) else { continue };
            if variables(&environ).any(|variable| variable == wanted.as_bytes())
                && is_wanted(&environ)
            {
                found.push((process, environ));
            }
        }
        let servers: BTreeSet<u32> = found
            .iter()
            .filter(|(process, _)| process.is_tmux_server())
            .map(|(process, _)| process.pid)
            .collect();
        found.retain(|(process, environ)| {
            !self.is_at_or_below(process, &servers)
                && !tmux_server_of(environ).is_some_and(|server| servers.contains(&server))
        });
        found.into_iter().map(|(process, _)| process).collect()
    }

    /// Whether a process or one of its ancestors is among `roots`.
    fn is_at_or_below(&self, process: &Process, roots: &BTreeSet<u32>) -> bool {
        let mut current = Some(process);
        // The table is no atomic picture: reused ids could form a circle, which this bounds.
        for _ in 0..self.processes.len() {
            match current {
                Some(here) if roots.contains(&here.pid) => return true,
                Some(here) => current = self.get(here.ppid),
                None => return false,
            }
        }
        false
    }
}

/// The variables that a process of user `uid` was started with; `None` if it is gone or another user's.
fn environ(pid: u32, uid: u32) -> Option<Vec<u8>> {
    let path = format!("/proc/{pid}/environ");
    if std::fs::metadata(&path).ok()?.uid() != uid {
        return None;
    }
    std::fs::read(path).ok()
}

fn variables(environ: &[u8]) -> impl Iterator<Item = &[u8]> {
    environ.split(|byte| *byte == 0)
}

/// The process id of the tmux server in `TMUX=<socket>,<pid>,<session>`.
fn tmux_server_of(environ: &[u8]) -> Option<u32> {
    let value = variables(environ).find_map(|variable| variable.strip_prefix(b"TMUX="))?;
    let text = std::str::from_utf8(value).ok()?;
    text.rsplit(',').nth(1)?.parse().ok()
}
