//! The processes of this machine: who is whose child, since when, with which launch token.
//!
//! Read from `/proc`. On a system without it, [`Table::read`] is an error ("unsupported"), start times
//! are unknown, and [`is_alive`] asks the kernel for the bare id. A process may vanish between two
//! readings: it is then left out, never an error.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

use super::proc::{self, Spawn};

mod table;

pub use table::Table;

/// One process at the moment of reading. Its id alone may be given to another one later; id and start
/// time together are never given twice while the machine is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// Process-group id.
    pub pgid: u32,
    /// Session id (the leader's process id).
    pub session: u32,
    /// Start in kernel ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start: u64,
    /// Whether it has ended and only waits to be collected by its parent.
    pub zombie: bool,
    /// Short name, at most 15 bytes.
    pub name: String,
}

impl Process {
    /// Reads the text of `/proc/<pid>/stat`. The name stands in parentheses and may itself hold blanks
    /// and parentheses: it ends at the last one.
    fn parse(stat: &str) -> Option<Self> {
        let (head, tail) = stat.rsplit_once(')')?;
        let (pid, name) = head.split_once('(')?;
        // Fields after the name count from 3: state, ppid, pgrp, session, …, start time (22).
        let fields: Vec<&str> = tail.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let id = |field: usize| number(field).and_then(|value| u32::try_from(value).ok());
        Some(Self {
            pid: pid.trim().parse().ok()?,
            ppid: id(4)?,
            pgid: id(5)?,
            session: id(6)?,
            start: number(22)?,
            zombie: matches!(*fields.first()?, "Z" | "X" | "x"),
            name: name.to_owned(),
        })
    }

    /// Looks at one process; `None` if there is none with this id.
    pub fn read(pid: u32) -> Option<Self> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    /// Whether it is a tmux server, which calls itself so.
    fn is_tmux_server(&self) -> bool {
        self.name == "tmux: server"
    }
}

/// A process with the words that it was started with, whoever runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedWith {
    /// Process id.
    pub pid: u32,
    /// Its account.
    pub uid: u32,
    /// Program and arguments.
    pub words: Vec<String>,
}

/// The processes, of every account, of which a word ends in one of `ends`; only one small file is read of each. Processes
/// that the system hides from this account are not among them.
fn started_with(ends: &[&str]) -> io::Result<Vec<StartedWith>> {
    let mut found = Vec::new();
    let mut is_read = false;
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let path = Path::new("/proc").join(name).join("cmdline");
        let Ok(bytes) = std::fs::read(&path) else { continue };
        is_read = true;
        let words = || bytes.strip_suffix(b"\0").unwrap_or(&bytes).split(|byte| *byte == 0);
        let is_meant = |word: &[u8]| ends.iter().any(|end| word.ends_with(end.as_bytes()));
        if words().any(is_meant)
            && let Ok(meta) = std::fs::metadata(&path)
        {
            let words = words().map(|word| String::from_utf8_lossy(word).into_owned());
            found.push(StartedWith { pid, uid: meta.uid(), words: words.collect() });
        }
    }
    if is_read {
        return Ok(found);
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "/proc lists no processes"))
}

/// The words that a process was started with, its program first; none where nobody says.
pub fn words_of(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let Some(words) = bytes.strip_suffix(b"\0") else { return Vec::new() };
    let words = words.split(|byte| *byte == 0);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The directory in which a process works; `None` where nobody says, or it is gone.
pub fn working_dir(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/cwd")).ok().filter(|dir| dir.is_dir())
}

/// Whether another file has the name by now of the program that a process runs, or none.
pub fn is_program_replaced(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|path| path.to_string_lossy().ends_with(" (deleted)"))
}

/// Whether the process with this id is a tmux server. `false` also for one of another container, whose ids mean nothing here.
pub(crate) fn is_tmux_server(pid: u32) -> bool {
    Process::read(pid).is_some_and(|process| process.is_tmux_server())
}

/// When a process started, in kernel ticks since boot; `None` if it is gone.
pub fn start_time(pid: u32) -> Option<u64> {
    Process::read(pid).map(|process| process.start)
}

/// Whether the process with this id that started then still lives. One that has ended and was not yet
/// collected does not.
pub fn is_alive(pid: u32, start: u64) -> bool {
    if Path::new("/proc/self/stat").exists() {
        return Process::read(pid).is_some_and(|found| found.start == start && !found.zombie);
    }
    raw_pid(pid).is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// Lets this process have so many files open at once, as far as it may; what it starts has the same. Where that cannot be
/// changed, it has what it was given. How many that is.
pub fn allow_open_files(most: u64) -> u64 {
    let now = getrlimit(Resource::Nofile);
    let may = now.maximum.map_or(most, |maximum| maximum.min(most));
    if now.current.is_some_and(|current| current < may) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(may), ..now }).unwrap_or_default();
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The tmux servers of this account that somebody has stopped (as by SIGSTOP): they answer nobody and lose
/// nothing.
pub fn stopped_tmux_servers() -> Vec<u32> {
    let uid = rustix::process::getuid().as_raw();
    let table = Table::read().unwrap_or_default();
    let servers = table.processes.values().filter(|process| process.is_tmux_server());
    let is_stopped = |pid: &u32| {
        let path = format!("/proc/{pid}/stat");
        let is_ours = std::fs::metadata(&path).is_ok_and(|meta| meta.uid() == uid);
        let stat = std::fs::read(path).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let state =
            stat.rsplit_once(')').and_then(|(_, tail)| tail.split_ascii_whitespace().next());
        is_ours && state == Some("T")
    };
    servers.map(|server| server.pid).filter(is_stopped).collect()
}

/// The door to processes. Passed to whoever stops some or waits for their end, so that simulations own
/// them.
pub trait Processes: Send + Sync {
    /// All of them, now.
    fn table(&self) -> io::Result<Table>;

    /// Those, of every account, that were started with a word that ends in one of `ends`. On a simulated machine nobody
    /// looks at such words.
    fn started_with(&self, _ends: &[&str]) -> io::Result<Vec<StartedWith>> {
        Ok(Vec::new())
    }

    /// Whether the process with this id that started then still lives.
    fn is_alive(&self, pid: u32, start: u64) -> bool;

    /// Sends a signal to exactly this process. `Ok(false)` if it is gone.
    fn signal(&self, process: &Process, signal: Signal) -> io::Result<bool>;

    /// Whether they are on a machine that can say something of itself: a simulated one has nothing to say.
    fn can_tell(&self) -> bool {
        false
    }

    /// What the machine says of itself: the output of a program that changes nothing.
    fn tell(&self, _ask: &Spawn) -> io::Result<String> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "a simulated machine says nothing of itself",
        ))
    }
}

/// The machine's own processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsProcesses;

impl Processes for OsProcesses {
    fn table(&self) -> io::Result<Table> {
        Table::read()
    }

    fn started_with(&self, ends: &[&str]) -> io::Result<Vec<StartedWith>> {
        started_with(ends)
    }

    fn is_alive(&self, pid: u32, start: u64) -> bool {
        is_alive(pid, start)
    }

    fn signal(&self, process: &Process, wanted: Signal) -> io::Result<bool> {
        signal(process, wanted)
    }

    fn can_tell(&self) -> bool {
        true
    }

    fn tell(&self, ask: &Spawn) -> io::Result<String> {
        proc::run(ask).map(|output| output.text()).map_err(io::Error::other)
    }
}

/// Whether a process would end by a signal: it neither handles nor ignores that one.
pub(super) fn ends_by(pid: u32, signal: Signal) -> bool {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let stat = String::from_utf8_lossy(&stat);
    // Behind the name: ignored (33) and handled (34), a bit for each signal from 1 on.
    let fields = stat.rsplit_once(')').map(|(_, tail)| tail.split_ascii_whitespace());
    let masks: Vec<u64> =
        fields.into_iter().flatten().skip(30).take(2).flat_map(str::parse).collect();
    let bit = 1 << (signal.raw().as_raw() - 1);
    masks.len() == 2 && masks.iter().all(|mask| mask & bit == 0)
}

/// The signals that we send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// As Ctrl-C.
    Interrupt,
    /// A request to end.
    Terminate,
    /// The end, without a word.
    Kill,
    /// The terminal is gone.
    HangUp,
    /// What a program takes it for.
    User1,
    /// The same, another one.
    User2,
}

impl Signal {
    fn raw(self) -> rustix::process::Signal {
        match self {
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
            Self::HangUp => rustix::process::Signal::HUP,
            Self::User1 => rustix::process::Signal::USR1,
            Self::User2 => rustix::process::Signal::USR2,
        }
    }
}

/// Sends a signal to exactly this process, never to a later one with the same id. `Ok(false)` if it is
/// gone.
pub fn signal(process: &Process, signal: Signal) -> io::Result<bool> {
    let Some(pid) = raw_pid(process.pid) else { return Ok(false) };
    let sent = send(pid, process, signal);
    match sent {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Through a handle on the process: opened first, checked then, so nobody can slip in between.
#[cfg(target_os = "linux")]
fn send(pid: Pid, process: &Process, signal: Signal) -> rustix::io::Result<()> {
    use rustix::io::Errno;
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) if is_alive(process.pid, process.start) => {
            pidfd_send_signal(&handle, signal.raw())
        }
        Ok(_) => Err(Errno::SRCH),
        // Kernels before 5.3, and sandboxes that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => send_by_id(pid, process, signal),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn send(pid: Pid, process: &Process, signal: Signal) -> rustix::io::Result<()> {
    send_by_id(pid, process, signal)
}

fn send_by_id(pid: Pid, process: &Process, signal: Signal) -> rustix::io::Result<()> {
    if !is_alive(process.pid, process.start) {
        return Err(rustix::io::Errno::SRCH);
    }
    rustix::process::kill_process(pid, signal.raw())
}

fn raw_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::sys::clock::{Clock as _, SystemClock};
    use crate::sys::random::{OsRandom, Random as _};

    /// A process of the test, killed with its whole group and reaped at the end.
    struct Started(Child);

    impl Started {
        #[expect(
            clippy::disallowed_methods,
            reason = "the test is about processes, not about spawning"
        )]
        fn new(argv: &[&str], vars: &[(&str, &str)]) -> Self {
            let child = Command::new(argv[0])
                .args(&argv[1..])
                .envs(vars.iter().copied())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0)
                .spawn()
                .unwrap();
            Self(child)
        }

        fn pid(&self) -> u32 {
            self.0.id()
        }
    }

    impl Drop for Started {
        fn drop(&mut self) {
            if let Some(group) = raw_pid(self.pid()) {
                let _: rustix::io::Result<()> =
                    rustix::process::kill_process_group(group, Signal::Kill.raw());
            }
            drop(self.0.wait());
        }
    }

    fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
        let clock = SystemClock::new();
        while !condition() {
            assert!(clock.monotonic().as_secs() < 20, "waited in vain until {what}");
            clock.sleep(std::time::Duration::from_millis(2));
        }
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_is_read() {
        let fields: Vec<String> = (7..=52).map(|field| (field * 10).to_string()).collect();
        let stat = format!("42 (a) b (c) S 7 40 39 {}", fields.join(" "));
        let process = Process::parse(&stat).unwrap();
        assert_eq!((process.pid, process.ppid, process.pgid, process.session), (42, 7, 40, 39));
        assert_eq!(process.name, "a) b (c");
        assert_eq!(process.start, 220);
        assert!(!process.zombie);
        assert_eq!(Process::parse("42 (cut"), None);
        assert_eq!(Process::parse("42 (cut) S 1"), None);
    }

    #[test]
    fn descendants_are_found_and_vanished_ones_are_no_error() {
        let family = Started::new(&["sh", "-c", "sleep 1000 & sleep 1000 & wait"], &[]);
        let me = std::process::id();
        wait_until("both children exist", || {
            let table = Table::read().unwrap();
            let below: Vec<u32> = table.descendants(me).iter().map(|p| p.pid).collect();
            below.contains(&family.pid()) && table.descendants(family.pid()).len() == 2
        });
        let table = Table::read().unwrap();
        assert_eq!(table.group(family.pid()).len(), 3);
        assert_eq!(table.get(family.pid()).unwrap().ppid, me);
    }

    #[test]
    fn a_token_finds_its_processes_and_no_others() {
        let token = OsRandom.hex(16);
        let job = Started::new(&["sleep", "1000"], &[("TPU_LAUNCH", &token)]);
        let other = Started::new(&["sleep", "1000"], &[("TPU_LAUNCH", &format!("{token}x"))]);
        let uid = rustix::process::getuid().as_raw();
        // Between fork and exec a child still has our own variables.
        wait_until("the job shows its token", || {
            let table = Table::read().unwrap();
            let found: Vec<u32> = table.with_token(&token, uid).iter().map(|p| p.pid).collect();
            found == [job.pid()]
        });
        let table = Table::read().unwrap();
        assert_eq!(table.with_token(&token, uid.wrapping_add(1)), Vec::<&Process>::new());
        assert!(table.get(other.pid()).is_some());
    }

    #[test]
    fn a_server_started_inside_a_job_is_not_the_jobs() {
        let token = OsRandom.hex(16);
        // The server renames itself as tmux does; what it starts and what came from it carries the token.
        let script = "printf 'tmux: server' > /proc/self/comm; exec 3>&1; sleep 1000 & \
                      read line; kill $!";
        let server = Started::new(&["bash", "-c", script], &[("TPU_LAUNCH", &token)]);
        let orphan_of_it = Started::new(
            &["sleep", "1000"],
            &[("TPU_LAUNCH", &token), ("TMUX", &format!("/tmp/s,1,{},0", server.pid()))],
        );
        let job =
            Started::new(&["sleep", "1000"], &[("TPU_LAUNCH", &token), ("TMUX", "/tmp/other,1,0")]);
        let uid = rustix::process::getuid().as_raw();
        wait_until("the server is renamed and its child runs", || {
            let table = Table::read().unwrap();
            table.get(server.pid()).is_some_and(Process::is_tmux_server)
                && table.descendants(server.pid()).len() == 1
                && table.get(job.pid()).is_some_and(|p| p.name == "sleep")
                && table.get(orphan_of_it.pid()).is_some_and(|p| p.name == "sleep")
        });
        let table = Table::read().unwrap();
        let found: Vec<u32> = table.with_token(&token, uid).iter().map(|p| p.pid).collect();
        assert_eq!(found, [job.pid()]);
    }

    #[test]
    fn who_was_started_with_a_word_is_found_with_his_account() {
        let token = OsRandom.hex(16);
        let job = Started::new(&["sh", "-c", "read line", &format!("/x/{token}")], &[]);
        let found = || started_with(&[&token]).unwrap();
        // Between fork and exec a child still has our own words.
        wait_until("the process shows its words", || found().len() == 1);
        let one = found().remove(0);
        let uid = rustix::process::getuid().as_raw();
        assert_eq!((one.pid, one.uid), (job.pid(), uid));
        assert_eq!(one.words, ["sh", "-c", "read line", &format!("/x/{token}")]);
        assert_eq!(started_with(&[&format!("{token}x")]).unwrap(), []);
    }

    #[test]
    fn a_signal_reaches_that_process_only() {
        let mut child = Started::new(&["sleep", "1000"], &[]);
        let process = Process::read(child.pid()).unwrap();
        let later = Process { start: process.start + 1, ..process.clone() };
        assert!(!signal(&later, Signal::Kill).unwrap(), "an id that was given again is left alone");
        assert!(is_alive(process.pid, process.start));
        assert!(signal(&process, Signal::Terminate).unwrap());
        assert_eq!(child.0.wait().unwrap().signal(), Some(15));
        assert!(!is_alive(process.pid, process.start));
        assert!(!signal(&process, Signal::Kill).unwrap());
    }

    #[test]
    fn who_handles_or_ignores_a_signal_does_not_end_by_it() {
        let child = Started::new(&["sleep", "1000"], &[]);
        wait_until("it ends by it", || ends_by(child.pid(), Signal::HangUp));
        for script in ["trap '' HUP; read -r", "trap : HUP; read -r"] {
            let child = Started::new(&["bash", "-c", script], &[]);
            wait_until(script, || !ends_by(child.pid(), Signal::HangUp));
        }
        assert!(!ends_by(0, Signal::HangUp), "nobody");
    }

    #[test]
    fn the_dead_are_not_alive() {
        let mut child = Started::new(&["true"], &[]);
        let start = start_time(child.pid()).unwrap();
        wait_until("it is a zombie", || !is_alive(child.pid(), start));
        assert!(Process::read(child.pid()).is_some_and(|process| process.zombie));
        child.0.wait().unwrap();
        assert_eq!(start_time(child.pid()), None);
    }
}
