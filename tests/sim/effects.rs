//! The effects of one simulated process: each is a step of the world, and what really happens is what
//! the observer sees.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::facts::{PaneFact, TargetFact, TmuxFact};
use tpu_core::model::target::ProviderName;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Answer, Operation, Provider, ProviderError, RequestId, TargetAt, TargetSpec, ZoneAnswer,
};
use tpu_lab::sim::SimCloud;
use tpu_system::store::disk::{Contents, Disk, Lock, Locked, Stat};
use tpu_system::sys::clock::Clock;
use tpu_system::sys::procs::{Process, Processes, Signal, Table};
use tpu_system::tmux::{Capture, Captured, NewWindow, Occupant, Tmux, TmuxError};

use super::world::{Pid, Purpose, Role, World, die};
use super::{DATA, launcher};

/// The handle of a process on its world.
#[derive(Clone)]
pub(crate) struct Me {
    pub(crate) world: Arc<World>,
    pub(crate) pid: Pid,
}

impl Me {
    fn step(&self, what: &str) {
        self.world.step(self.pid, what);
    }
}

/// The last part of a path, for the trace.
fn short(path: &Path) -> String {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    // Numbers of temporary files are counted by the test's own process.
    name.split(".tmp").next().unwrap_or_default().to_owned()
}

impl Clock for Me {
    fn now(&self) -> Timestamp {
        self.world.state().wall(self.pid.host)
    }

    fn monotonic(&self) -> Duration {
        self.world.state().now
    }

    fn sleep(&self, duration: Duration) {
        let length = {
            let mut state = self.world.state();
            let extra = state.oversleeps(duration);
            // It oversleeps because the world plays a long day quickly: it stands still, and does not work.
            if let Some(proc) = state.proc_mut(self.pid) {
                proc.frozen += extra;
            }
            duration + extra
        };
        self.world.sleep(self.pid, length);
    }
}

/// A fault of the disk.
#[derive(Clone, Copy)]
enum Trouble {
    Full,
    Torn,
    /// Half of it is written, and the process is dead.
    Death,
}

impl Me {
    fn disk_step(&self, what: &str, path: &Path) {
        self.step(&format!("{what} {}", short(path)));
    }

    /// What goes wrong with a write.
    fn trouble(&self) -> Option<Trouble> {
        use tpu_system::sys::random::Random as _;
        let state = self.world.state();
        let chance = state.faults.disk;
        if !state.chance(chance) || state.purpose(self.pid).is_none() {
            return None;
        }
        Some(match state.rng.below(3) {
            0 => Trouble::Full,
            1 => Trouble::Torn,
            _ => Trouble::Death,
        })
    }

    /// A write that may go wrong in the middle.
    fn write(
        &self,
        path: &Path,
        bytes: &[u8],
        write: impl FnOnce(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let half = bytes.get(..bytes.len() / 2).unwrap_or_default();
        let done = match self.trouble() {
            None => write(bytes),
            Some(Trouble::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(Trouble::Torn) => {
                write(half)?;
                Err(io::ErrorKind::StorageFull.into())
            }
            Some(Trouble::Death) => {
                drop(write(half));
                self.world.state().kill(self.pid, "in the middle of a write");
                self.seen(path);
                die()
            }
        };
        self.seen(path);
        done
    }

    /// The data file may be another one.
    fn seen(&self, path: &Path) {
        if path == Path::new(DATA) && self.world.state().reads_all {
            let bytes = self.world.disk.bytes(path);
            let archive = self.world.disk.bytes(&super::archive());
            let by = Some(self.pid);
            self.world.state().data_changed(by, bytes.as_deref(), archive.as_deref());
        }
    }

    fn small(&self) -> io::Result<()> {
        match self.trouble() {
            None => Ok(()),
            Some(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }
}

impl Disk for Me {
    fn read(&self, path: &Path) -> io::Result<Contents> {
        // Each look asks for the exit code of each job that is at work: in a month a thousand million times.
        if !self.world.state().reads_all && !self.world.disk.is_there(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.disk_step("read", path);
        let contents = self.world.disk.read(path)?;
        if path != Path::new(DATA) {
            return Self::told_of_file(path, contents);
        }
        self.world.state().data_read(self.pid, &contents.bytes);
        Ok(self.told_of_data(contents))
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.world.disk.read_at(path, offset, len)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.world.disk.stat(path)
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.disk_step("create", path);
        self.write(path, bytes, |bytes| self.world.disk.create(path, bytes, mode))
    }

    fn set_owner(&self, path: &Path, uid: u32, gid: u32) -> io::Result<()> {
        self.world.disk.set_owner(path, uid, gid)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.world.disk.set_mode(path, mode)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.small()?;
        self.world.disk.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk_step("rename to", to);
        self.small()?;
        if to == Path::new(DATA) {
            let before = self.world.disk.bytes(to);
            self.world.state().data_replaced(self.pid, before.as_deref());
        }
        if let Some(written) = self.written_in_place(from, to) {
            return written;
        }
        self.world.disk.rename(from, to)?;
        self.seen(to);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.step("sync the directory");
        self.world.disk.sync_dir(dir)?;
        if Path::new(DATA).parent() == Some(dir) {
            self.world.state().data_synced();
        }
        Ok(())
    }

    fn append(&self, path: &Path, bytes: &[u8], mode: u32, durable: bool) -> io::Result<()> {
        self.disk_step("append to", path);
        if short(path) == "events.jsonl" {
            self.world.state().events(self.pid, bytes);
        }
        if Self::goes_nowhere(path) || self.loses(path) {
            return Ok(());
        }
        self.write(path, bytes, |bytes| self.world.disk.append(path, bytes, mode, durable))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.world.disk.remove(path);
        self.seen(path);
        removed
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.world.disk.list(dir)
    }

    fn make_dir(&self, dir: &Path, mode: u32) -> io::Result<bool> {
        self.world.disk.make_dir(dir, mode)
    }

    fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        self.disk_step("remove", dir);
        self.world.disk.remove_tree(dir)
    }

    fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
        self.world.disk.symlink(target, link)
    }

    fn with_lock(&self, lock: Lock<'_>, note: &[u8], work: &mut dyn FnMut()) -> io::Result<Locked> {
        let Lock { path, mode, .. } = lock;
        self.disk_step("lock", path);
        if self.trouble().is_some() && self.world.disk.stat(path).is_err() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        {
            let mut state = self.world.state();
            if let Some(holder) = state.locks.get(path).filter(|_| !state.is_shared(path)).copied()
            {
                if !state.is_alive(holder) {
                    state.violation(format!("8: {} is held by a dead process", short(path)));
                }
                return Ok(Locked::Busy);
            }
            state.locks.insert(path.to_owned(), self.pid);
            let is_data = super::observer::is_lock(path);
            if let Some(proc) = state.proc_mut(self.pid).filter(|_| is_data) {
                proc.base = None;
            }
        }
        self.world.disk.put(path, note, mode, (1000, 1000));
        work();
        self.world.state().locks.remove(path);
        Ok(Locked::Done { awaited: false })
    }
}

impl Processes for Me {
    fn table(&self) -> io::Result<Table> {
        self.step("read the process table");
        let mut state = self.world.state();
        let host = self.pid.host;
        let ids: Vec<Pid> = state.hosts.get(host).map_or_else(Vec::new, |machine| {
            let all = machine.procs.iter();
            all.map(|(pid, (start, _))| Pid { host, pid: *pid, start: *start }).collect()
        });
        let mut processes = Vec::new();
        for id in ids {
            if !state.is_alive(id) {
                continue;
            }
            let Some(proc) = state.proc(id).filter(|proc| !state.is_left_out(proc)) else {
                continue;
            };
            let process = Process {
                pid: id.pid,
                ppid: proc.parent.map_or(1, |parent| parent.pid),
                pgid: proc.pgid,
                session: proc.pgid,
                start: id.start,
                zombie: false,
                name: "python".to_owned(),
            };
            processes.push((process, 1000, proc.environ.clone()));
        }
        let now = state.own_time(self.pid);
        if let Some(proc) = state.proc_mut(self.pid) {
            proc.listed = Some(now);
        }
        Ok(Table::simulated(processes))
    }

    fn is_alive(&self, pid: u32, start: u64) -> bool {
        self.seems_alive(pid)
            || self.world.state().is_alive(Pid { host: self.pid.host, pid, start })
    }

    fn signal(&self, process: &Process, signal: Signal) -> io::Result<bool> {
        self.step(&format!("signal {signal:?} to {}", process.pid));
        let victim = Pid { host: self.pid.host, pid: process.pid, start: process.start };
        Ok(self.world.state().signalled(self.pid, victim, signal))
    }
}

impl Me {
    pub(crate) fn open(&self, window: &NewWindow) -> Result<PaneFact, TmuxError> {
        self.step(&format!("open window {} for {}", window.index, window.job));
        self.world.state().acts(self.pid, "opens a window");
        self.may_open();
        if self.is_not_opened() {
            return Err(Self::lost("new-window"));
        }
        let pane = self.tmux().open_window(window)?;
        launcher::begin(&self.world, self.pid, window, &pane);
        if self.answer_is_lost() {
            return Err(Self::lost("new-window"));
        }
        Ok(pane)
    }
}

impl Me {
    fn tmux(&self) -> Arc<dyn Tmux> {
        let state = self.world.state();
        let machine = state.hosts.get(self.pid.host).expect("a process is on a machine");
        Arc::clone(&machine.tmux) as Arc<dyn Tmux>
    }

    /// Whether a call does its work and its answer is lost.
    fn answer_is_lost(&self) -> bool {
        let state = self.world.state();
        state.purpose(self.pid).is_some() && state.chance(state.faults.tmux)
    }

    /// Whether a window stays closed: its opener dies before, or tmux does not hear him.
    fn is_not_opened(&self) -> bool {
        use tpu_system::sys::random::Random as _;
        let mut state = self.world.state();
        let chance = state.faults.unopened;
        if !state.chance(chance) {
            return false;
        }
        if state.rng.below(2) == 0 {
            state.kill(self.pid, "before its window opens");
            drop(state);
            die()
        }
        state.note(Some(self.pid), "tmux does not hear it");
        true
    }

    fn lost(what: &str) -> TmuxError {
        TmuxError::TimedOut { command: what.to_owned(), seconds: 10 }
    }
}

impl Tmux for Me {
    fn look(&self) -> TmuxFact {
        self.step("look at tmux");
        if self.answer_is_lost() {
            return TmuxFact::Unknown { reason: "tmux did not answer in time".to_owned() };
        }
        let fact = self.tmux().look();
        let mut state = self.world.state();
        let now = state.own_time(self.pid);
        if let Some(proc) = state.proc_mut(self.pid) {
            proc.looked = Some(now);
        }
        fact
    }

    fn ensure_session(&self, session: &str, history: u32) -> Result<(), TmuxError> {
        self.step("ensure a session");
        self.tmux().ensure_session(session, history)
    }

    fn open_window(&self, window: &NewWindow) -> Result<PaneFact, TmuxError> {
        self.opened_again(window, self.open(window))
    }

    fn capture(&self, panes: &[Capture]) -> Result<Captured, TmuxError> {
        self.step("capture");
        self.tmux().capture(panes)
    }

    fn close_pane(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        self.step(&format!("close {} of {}", pane.pane_id, pane.session));
        self.world.state().acts(self.pid, "closes a window");
        let now = match self.tmux().look() {
            TmuxFact::Up { panes, .. } => panes.into_iter().find(|p| p.pane_id == pane.pane_id),
            TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => None,
        };
        let pid = self.world.state().process_of(self.pid.host, pane);
        self.tmux().close_pane(pane, server_pid)?;
        if let Some(closed) = now {
            let mut state = self.world.state();
            state.window_closed(Some(self.pid), self.pid.host, (&closed, pid));
        }
        if self.answer_is_lost() {
            return Err(Self::lost("kill-window"));
        }
        Ok(())
    }

    fn process(&self, pane: &PaneFact, server_pid: u32) -> Result<Option<u32>, TmuxError> {
        self.step(&format!("the process of {}", pane.pane_id));
        self.tmux().process(pane, server_pid)
    }

    fn occupants(&self) -> Result<BTreeMap<String, Occupant>, TmuxError> {
        self.tmux().occupants()
    }

    fn close_unwatched(&self, pane: &PaneFact, server_pid: u32) -> Result<(), TmuxError> {
        let seen = self.tmux().occupants()?;
        if seen.get(&pane.pane_id).is_some_and(|occupant| occupant.watchers > 0) {
            return Err(TmuxError::Changed { pane: pane.pane_id.clone() });
        }
        self.close_pane(pane, server_pid)
    }

    fn attach_argv(&self, pane: &PaneFact, inside: Option<&str>) -> Vec<String> {
        self.tmux().attach_argv(pane, inside)
    }

    fn end_server(&self, server_pid: u32) -> Result<(), TmuxError> {
        self.tmux().end_server(server_pid)
    }
}

/// The way of one process to the control plane.
pub(crate) struct Door {
    pub(crate) me: Me,
    pub(crate) cloud: SimCloud,
}

impl Door {
    /// A call that changes something is sent.
    fn send(&self, what: &str, target: &TargetAt) {
        self.me.step(&format!("cloud: {what} {}", target.name));
        let word = self.me.world.word(target.name.as_str());
        self.me.world.state().cloud_called(self.me.pid, what, target.name.as_str(), &word);
    }
}

impl World {
    /// The true state of a target.
    pub(crate) fn word(&self, name: &str) -> String {
        let fleet = self.fleet.look().expect("the fleet can be looked at");
        let facts = fleet.targets(super::world::State::begin());
        let found = facts.into_iter().find(|fact| fact.name.as_str() == name);
        found.map_or_else(|| "-".to_owned(), |fact| fact.raw_state)
    }
}

impl Provider for Door {
    fn name(&self) -> ProviderName {
        self.cloud.name()
    }

    fn is_here(&self) -> bool {
        self.cloud.is_here()
    }

    fn list(&self, zones: &[String]) -> Vec<ZoneAnswer> {
        self.me.step("cloud: list");
        // What an answer says is as old as the question, however long it was on its way.
        let (wall, now) = {
            let state = self.me.world.state();
            (state.wall(self.me.pid.host), state.own_time(self.me.pid))
        };
        let mut answers = self.cloud.list(zones);
        let mut state = self.me.world.state();
        for zone in &mut answers {
            // The time of an answer is taken from the clock of whoever asked.
            if let Answer::Facts { targets, observed_at } = &mut zone.answer {
                *observed_at = wall;
                for target in targets {
                    target.observed_at = wall;
                }
                if let Some(proc) = state.proc_mut(self.me.pid) {
                    proc.asked.insert(zone.zone.clone(), now);
                }
            }
            state.told_of_zone(zone, wall);
        }
        answers
    }

    fn describe(&self, target: &TargetAt) -> Result<TargetFact, ProviderError> {
        self.me.step("cloud: describe");
        let observed_at = {
            let state = self.me.world.state();
            state.wall(self.me.pid.host)
        };
        Ok(TargetFact { observed_at, ..self.cloud.describe(target)? })
    }

    fn create(&self, spec: &TargetSpec, request: &RequestId) -> Result<Operation, ProviderError> {
        self.send("create", &spec.at());
        self.cloud.create(spec, request)
    }

    fn delete(&self, target: &TargetAt, force: bool) -> Result<Operation, ProviderError> {
        self.send("delete", target);
        let answer = self.cloud.delete(target, force);
        if self.me.world.word(target.name.as_str()) != "READY" {
            self.me.world.state().machines_gone(target.name.as_str());
        }
        answer
    }

    fn start(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.send("start", target);
        self.cloud.start(target)
    }

    fn stop(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.send("stop", target);
        self.cloud.stop(target)
    }

    fn reboot(&self, target: &TargetAt) -> Result<Operation, ProviderError> {
        self.send("reboot", target);
        self.cloud.reboot(target)
    }

    fn operation(&self, name: &str) -> Result<Operation, ProviderError> {
        self.me.step("cloud: look at an operation");
        self.cloud.operation(name)
    }
}

impl super::world::State {
    /// A process does something to the world that rests on what it saw there.
    pub(crate) fn acts(&mut self, me: Pid, what: &str) {
        let now = self.own_time(me);
        let looked = self.proc(me).and_then(|proc| proc.looked);
        self.rests_on(what, looked.map(|at| now.saturating_sub(at)));
    }

    /// A process signals another: that rests on the process table, which is read anew before each signal.
    pub(crate) fn signals(&mut self, me: Pid) {
        let now = self.own_time(me);
        let listed = self.proc(me).and_then(|proc| proc.listed);
        self.rests_on("signals", listed.map(|at| now.saturating_sub(at)));
    }

    fn rests_on(&mut self, what: &str, age: Option<Duration>) {
        if age.is_none_or(|age| age > Duration::from_secs(65)) {
            self.violation(format!("7: a process {what}, and has looked {age:?} ago"));
        }
    }

    /// Whether a process acts because a person wants it.
    pub(crate) fn is_for_a_person(&self, me: Pid, purposes: &[Purpose]) -> bool {
        matches!(self.proc(me).map(|proc| &proc.role), Some(Role::Tpu(purpose)) if purposes.contains(purpose))
    }
}
