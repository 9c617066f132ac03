//! Workers that are directories of this machine: those of simulated targets. Real processes, each command
//! in a process group of its own, which die when the simulator switches their machine off.
//!
//! A worker's address is its directory. It is up while the file `environment` is there, and every process
//! on it carries the variables in that file. `runs/<token>` is one command; see `assets/worker.sh`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::each::on_each;
use super::lines::Lines;
use super::streams::{Ear, Streams, lost};
use super::{
    Ask, End, Other, Output, PerWorker, Remote, RemoteError, Replies, Reply, Running, Started,
    Stopped, Stream, Upload, WRAPPER, Work, Worker, checked, joined, nul_ended,
};
use crate::sys::clock::Clock;
use crate::sys::proc::{self, Spawn};
use crate::sys::procs::{self, OsProcesses, Process, Table};
use crate::sys::random::{OsRandom, Random as _};
use crate::sys::stop;
use crate::sys::talk::Stdin;
use tpu_core::model::ids::LaunchToken;

/// The wrapper's exit codes.
const DOWN: i32 = 3;
const STARTED_BEFORE: i32 = 4;
/// The file in a run's directory that says that it was stopped before it began.
const STOPPED: &str = "stopped";
/// How long a guard may take to write down how its command ended.
const LAST_LINE: Duration = Duration::from_secs(5);
/// How often we look whether something has changed.
const POLL: Duration = Duration::from_millis(20);
/// The most that is read of a command's output at once.
const GULP: u64 = 1 << 20;

/// The door to them.
pub struct LocalRemote {
    clock: Arc<dyn Clock>,
}

impl LocalRemote {
    /// A door. The clock must be the machine's own: the processes are real.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

/// One worker.
#[derive(Clone, Debug)]
struct Machine {
    worker: u32,
    dir: PathBuf,
}

impl Machine {
    fn of(worker: &Worker) -> Self {
        Self { worker: worker.index, dir: PathBuf::from(&worker.address) }
    }

    /// The command of a token, which becomes the name of a directory.
    fn run(self, token: &LaunchToken) -> Result<Run, RemoteError> {
        checked(token)?;
        Ok(Run { machine: self, token: token.clone() })
    }

    /// The commands that were started on it.
    fn runs(&self) -> Result<Vec<Run>, RemoteError> {
        let dir = self.dir.join("runs");
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.io("list", &dir)(e)),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let tokens = names.filter(|name| !name.starts_with('.')).map(LaunchToken::new);
        let runs = tokens.map(|token| Run { machine: self.clone(), token });
        Ok(runs.filter(|run| !run.dir().join(STOPPED).exists()).collect())
    }

    /// Why it cannot be reached, if it cannot.
    fn silence(&self) -> Option<&'static str> {
        if self.dir.join("cut").exists() {
            return Some("the connection is broken");
        }
        (!self.dir.join("environment").exists()).then_some("the machine is gone")
    }

    /// The variables of its processes.
    fn environment(&self) -> Result<Vec<(OsString, OsString)>, RemoteError> {
        if let Some(reason) = self.silence() {
            return Err(self.unreachable(reason).before_asking());
        }
        let path = self.dir.join("environment");
        let bytes = fs::read(&path).map_err(self.io("read", &path))?;
        Ok(bytes.split(|byte| *byte == 0).filter_map(pair).collect())
    }

    /// A shell on it.
    fn shell(&self, environment: Vec<(OsString, OsString)>) -> Spawn {
        let mut spawn = Spawn::new("bash")
            .env_remove("TPU_LAUNCH")
            .env("HOME", self.dir.as_os_str())
            .env("TPU_WORKER", self.worker.to_string())
            .cwd(&self.dir);
        for (name, value) in environment {
            spawn = spawn.env(name, value);
        }
        spawn
    }

    /// Runs a shell command to its end.
    fn answer(&self, ask: &Ask, ear: &Ear<Reply>) -> End {
        let environment = match self.environment() {
            Ok(environment) => environment,
            Err(error) => return lost(&error),
        };
        let mut spawn = self.shell(environment).args(["-c", &ask.command]);
        spawn.stdin.clone_from(&ask.input);
        match ear.begin(&spawn, Stdin::Ends) {
            Ok(Some(program)) => match program.reply(ear).status {
                Some(status) if self.silence().is_none() => End::Exit(status.shell_code()),
                _ => End::Lost(self.silence().unwrap_or("it ended unseen").to_owned()),
            },
            Ok(None) => End::Lost("nobody listens".to_owned()),
            Err(error) => lost(&error),
        }
    }

    fn unreachable(&self, reason: &str) -> RemoteError {
        RemoteError::Unreachable {
            worker: self.worker,
            address: self.dir.display().to_string(),
            reason: reason.to_owned(),
        }
    }

    fn io(&self, op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RemoteError {
        let (worker, path) = (self.worker, path.display().to_string());
        move |source| RemoteError::Io { worker, op, path, source }
    }
}

/// A machine and one of the commands on it.
#[derive(Clone, Debug)]
struct Run {
    machine: Machine,
    token: LaunchToken,
}

impl Run {
    fn dir(&self) -> PathBuf {
        self.machine.dir.join("runs").join(self.token.as_str())
    }

    /// Process id and start time in one of its files.
    fn recorded(&self, file: &str) -> Option<(u32, u64)> {
        let text = fs::read_to_string(self.dir().join(file)).ok()?;
        let (pid, start) = text.trim().split_once(' ')?;
        Some((pid.parse().ok()?, start.parse().ok()?))
    }

    fn exit(&self) -> Option<i32> {
        fs::read_to_string(self.dir().join("exit")).ok()?.trim().parse().ok()
    }

    /// What was told to stop does not start any more, whoever is on the way with it.
    fn keep_from_beginning(&self) {
        let dir = self.dir();
        if dir.parent().is_some_and(|runs| fs::create_dir_all(runs).is_ok())
            && fs::create_dir(&dir).is_ok()
        {
            drop(fs::File::create(dir.join(STOPPED)));
        }
    }

    /// Its processes without its guard, which ends with them and writes down how.
    fn processes(&self) -> io::Result<Vec<Process>> {
        let table = Table::read()?;
        let guard = self.recorded("guard").map(|(pid, _)| pid);
        let mut found: BTreeMap<u32, Process> = BTreeMap::new();
        let mut add = |processes: Vec<&Process>| {
            let ours = processes.into_iter().filter(|p| !p.zombie && Some(p.pid) != guard);
            found.extend(ours.map(|process| (process.pid, process.clone())));
        };
        let uid = rustix::process::getuid().as_raw();
        let here = table.with_variable("TPU_MACHINE", &self.machine.dir.to_string_lossy(), uid);
        let launched: Vec<u32> =
            table.with_token(self.token.as_str(), uid).iter().map(|process| process.pid).collect();
        let roots: Vec<&Process> = here
            .into_iter()
            .filter(|process| launched.contains(&process.pid) && Some(process.pid) != guard)
            .collect();
        // A program may start others without its variables: they are below it, or in its group.
        for process in &roots {
            add(table.descendants(process.pid));
        }
        add(roots);
        // The guard leads the group in which the command begins; the command may lead one of its own.
        let leaders = ["guard", "pid"].into_iter().filter_map(|file| self.recorded(file));
        for (group, _) in leaders.filter(|(pid, start)| procs::is_alive(*pid, *start)) {
            add(table.group(group));
        }
        Ok(found.into_values().collect())
    }

    /// Whether somebody still watches over it. A start that has not got so far counts as well.
    fn is_watched(&self) -> bool {
        match self.recorded("guard") {
            Some((pid, start)) => procs::is_alive(pid, start),
            None => self.processes().is_ok_and(|processes| !processes.is_empty()),
        }
    }

    fn start(&self, work: &Work) -> Result<Started, RemoteError> {
        let environment = self.machine.environment()?;
        let run = self.dir();
        if run.exists() {
            return Ok(Started::Already);
        }
        let new = self.machine.dir.join("runs").join(format!(".new-{}", OsRandom.hex(8)));
        fs::create_dir_all(&new).map_err(self.machine.io("create", &new))?;
        let started = self.hand_over(work, environment, &new, &run);
        if !matches!(started, Ok(Started::New)) {
            // Nobody else has its name; what cannot be removed is no run.
            drop(fs::remove_dir_all(&new));
        }
        started
    }

    fn hand_over(
        &self,
        work: &Work,
        environment: Vec<(OsString, OsString)>,
        new: &Path,
        run: &Path,
    ) -> Result<Started, RemoteError> {
        let files: [(&str, Vec<u8>); 5] = [
            ("argv", nul_ended(work.argv.iter().map(|word| word.as_bytes().to_vec()))?),
            ("env", nul_ended(work.env.iter().map(|(name, value)| joined(name, value)))?),
            ("token", format!("{}\n", self.token).into_bytes()),
            ("worker", format!("{}\n", self.machine.worker).into_bytes()),
            ("worker.sh", WRAPPER.as_bytes().to_vec()),
        ];
        let dir = work.dir.iter().map(|dir| dir.as_os_str().as_bytes().to_vec());
        let dir = work.dir.as_ref().map(|_| nul_ended(dir)).transpose()?.map(|dir| ("dir", dir));
        for (name, bytes) in files.into_iter().chain(dir) {
            let path = new.join(name);
            fs::File::create(&path)
                .and_then(|mut file| file.write_all(&bytes))
                .map_err(self.machine.io("write", &path))?;
        }
        let mut spawn = Spawn::new("bash")
            .args([new.join("worker.sh").as_os_str(), new.as_os_str(), run.as_os_str()])
            .env("TPU_LAUNCH", self.token.as_str())
            .env_remove("TPU_WORKER");
        for (name, value) in environment.into_iter().chain(work.secrets.0.iter().cloned()) {
            spawn = spawn.env(name, value);
        }
        let output = proc::run(&spawn)
            .map_err(|source| RemoteError::Program { worker: self.machine.worker, source })?;
        match output.status.shell_code() {
            0 => Ok(Started::New),
            STARTED_BEFORE => Ok(Started::Already),
            // It went down meanwhile: what started on it was killed with it.
            code if code == DOWN || self.machine.silence().is_some() => {
                Err(self.machine.unreachable("the machine is gone"))
            }
            code => {
                let what =
                    format!("the start failed with exit code {code}: {}", output.complaint());
                Err(self.machine.unreachable(&what))
            }
        }
    }

    fn stop(&self, clock: &dyn Clock) -> Result<Stopped, RemoteError> {
        self.machine.environment()?;
        self.keep_from_beginning();
        let stopped = stop::stop((clock, &OsProcesses), || self.processes())
            .map_err(|source| RemoteError::Stop { worker: self.machine.worker, source })?;
        // Its guard still writes down how it ended. If it cannot (a full disk), nobody waits for it.
        let deadline = clock.monotonic() + LAST_LINE;
        while self.is_watched() && clock.monotonic() < deadline {
            clock.sleep(POLL);
        }
        Ok(if stopped == 0 { Stopped::NotRunning } else { Stopped::Ended(stopped) })
    }
}

fn pair(bytes: &[u8]) -> Option<(OsString, OsString)> {
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    let (name, value) = bytes.split_at_checked(at)?;
    let value = value.get(1..)?;
    Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
}

impl Remote for LocalRemote {
    fn start(&self, workers: &[Worker], work: &Work, token: &LaunchToken) -> PerWorker<Started> {
        on_each(workers, |worker| {
            if work.argv.is_empty() {
                return Err(RemoteError::Request {
                    what: "there is no command to start".to_owned(),
                });
            }
            Machine::of(worker).run(token)?.start(work)
        })
    }

    fn follow(&self, workers: &[Worker], token: &LaunchToken, from: &BTreeMap<u32, u64>) -> Stream {
        let mut heard = Vec::new();
        let mut open = Vec::new();
        for worker in workers {
            match Machine::of(worker).run(token) {
                Ok(run) => {
                    let offset = from.get(&worker.index).copied().unwrap_or(0);
                    open.push(Tail { run, lines: Lines::from(offset) });
                }
                Err(e) => heard.push((worker.index, Output::End(End::Lost(e.to_string())))),
            }
        }
        Box::new(Tails { clock: Arc::clone(&self.clock), open, heard: heard.into() })
    }

    fn stop(&self, workers: &[Worker], token: &LaunchToken) -> PerWorker<Stopped> {
        on_each(workers, |worker| Machine::of(worker).run(token)?.stop(&*self.clock))
    }

    fn probe(&self, workers: &[Worker]) -> PerWorker<Vec<Running>> {
        on_each(workers, |worker| {
            let machine = Machine::of(worker);
            machine.environment()?;
            let mut found = Vec::new();
            for run in machine.runs()? {
                let processes = run.processes().map_err(machine.io("read", Path::new("/proc")))?;
                let mut processes: Vec<u32> = processes.iter().map(|process| process.pid).collect();
                // In this order: a guard that has gone meanwhile has written it down.
                let guard = run.recorded("guard").filter(|(p, start)| procs::is_alive(*p, *start));
                let exit = run.exit();
                if exit.is_none() && processes.is_empty() {
                    processes.extend(guard.map(|(pid, _)| pid));
                }
                found.push(Running { exit, processes, token: run.token });
            }
            found.sort_unstable_by(|a, b| a.token.cmp(&b.token));
            Ok(found)
        })
    }

    fn ask(&self, workers: &[Worker], ask: &Ask) -> Replies {
        let ask = Arc::new(ask.clone());
        Box::new(Streams::begin(workers, move |worker, ear| {
            let end = Machine::of(worker).answer(&ask, ear);
            ear.say(vec![Reply::End(end)]);
        }))
    }

    fn put(&self, workers: &[Worker], upload: &Upload) -> PerWorker<()> {
        on_each(workers, |worker| {
            let machine = Machine::of(worker);
            machine.environment()?;
            let path = match upload.path.as_bytes().strip_prefix(b"~/") {
                Some(below) => machine.dir.join(OsStr::from_bytes(below)),
                None => PathBuf::from(&upload.path),
            };
            let dir = path.parent().unwrap_or(&path);
            let kept = fs::create_dir_all(dir).and_then(|()| {
                let mut file = tempfile::NamedTempFile::new_in(dir)?;
                file.write_all(&upload.bytes)?;
                file.as_file().set_permissions(fs::Permissions::from_mode(upload.mode))?;
                file.persist(&path).map(drop).map_err(io::Error::from)
            });
            kept.map_err(machine.io("write", &path))
        })
    }

    fn others(&self, workers: &[Worker], _: &[String]) -> PerWorker<Vec<Other>> {
        // Nothing else can be on a machine that is a directory.
        on_each(workers, |worker| Machine::of(worker).environment().map(|_| Vec::new()))
    }

    fn end(&self, worker: &Worker, _: &[Other]) -> Result<usize, RemoteError> {
        Machine::of(worker).environment().map(|_| 0)
    }

    fn terminal(&self, worker: &Worker, command: Option<&str>) -> Option<Spawn> {
        let machine = Machine::of(worker);
        let environment = machine.environment().ok()?;
        let words = command.map(|command| ["-c".to_owned(), command.to_owned()]);
        Some(machine.shell(environment).args(words.into_iter().flatten()))
    }
}

/// The output of one command, read as it grows.
struct Tail {
    run: Run,
    lines: Lines,
}

impl Tail {
    /// What is new, and how it ended if it has.
    fn look(&mut self) -> (Vec<Output>, Option<End>) {
        // In this order: what was written before the exit, or before the death, is not missed.
        let watched = self.run.is_watched();
        let exit = self.run.exit();
        let silence = self.run.machine.silence();
        let mut said = Vec::new();
        // The rest of much is for the next look: what is heard is to be handed on first.
        if silence.is_none() && self.read(&mut said) {
            return (said, None);
        }
        let lost = |why: &str| Some(End::Lost(why.to_owned()));
        let end = match (silence, exit) {
            (Some(why), _) => lost(why),
            (None, Some(code)) => Some(End::Exit(code)),
            (None, None) if watched => None,
            (None, None) if self.run.dir().exists() && !self.run.dir().join(STOPPED).exists() => {
                lost("its processes are gone, and no exit code was recorded")
            }
            (None, None) => lost("it was never started there"),
        };
        if end.is_some() {
            self.lines.end(&mut said);
        }
        (said, end)
    }

    /// Reads some more; whether there was anything. A file that is not there yet, or no more, says
    /// nothing.
    fn read(&mut self, said: &mut Vec<Output>) -> bool {
        let mut bytes = Vec::new();
        let read = fs::File::open(self.run.dir().join("out")).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.lines.offset()))?;
            file.take(GULP).read_to_end(&mut bytes)
        });
        if read.is_err() || bytes.is_empty() {
            return false;
        }
        self.lines.take(&bytes, said);
        true
    }
}

/// All of them, by turns.
struct Tails {
    clock: Arc<dyn Clock>,
    open: Vec<Tail>,
    heard: std::collections::VecDeque<(u32, Output)>,
}

impl Iterator for Tails {
    type Item = (u32, Output);

    fn next(&mut self) -> Option<(u32, Output)> {
        loop {
            if let Some(said) = self.heard.pop_front() {
                return Some(said);
            }
            if self.open.is_empty() {
                return None;
            }
            let heard = &mut self.heard;
            self.open.retain_mut(|tail| {
                let (said, end) = tail.look();
                let said = said.into_iter().chain(end.clone().map(Output::End));
                heard.extend(said.map(|said| (tail.run.machine.worker, said)));
                end.is_none()
            });
            if self.heard.is_empty() && !self.open.is_empty() {
                self.clock.sleep(POLL);
            }
        }
    }
}
