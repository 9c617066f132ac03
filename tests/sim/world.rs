//! The simulated world: machines with processes, one shared disk, a virtual clock, one seed. It knows
//! what is true; programs under test know only what their effects tell them.
//!
//! Processes are coroutines on one thread. Each effect is a [`step`]: there the seed decides whether the
//! process goes on, waits while others work, stands still for a while, or dies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tpu_core::model::facts::{Place, TargetFact};
use tpu_core::model::ids::TargetName;
use tpu_core::model::time::Timestamp;
use tpu_lab::sim::SimCloud;
use tpu_system::sys::clock::Clock;
use tpu_system::sys::random::{Random as _, SeededRandom};

use super::cluster::Cluster;
use super::crowd;
use super::launcher::Habits;
use super::observer::Observer;
use crate::common::fakes::disk::FakeDisk;
use crate::common::fakes::tmux::FakeTmux;

/// When the world begins.
pub(super) const BEGIN: i64 = 1_800_000_000;

/// Nothing takes more steps.
const MOST_STEPS: u64 = 150_000;

/// Lines of the trace that a failure shows.
const TRACE: usize = 400;

/// A process: its machine and its id there.
#[expect(clippy::struct_field_names, reason = "a process id is called pid")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pid {
    pub(crate) host: usize,
    pub(crate) pid: u32,
    /// Tells it from an earlier one of that id.
    pub(crate) start: u64,
}

/// What a process is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The program under test, with what it was asked to do.
    Tpu(Purpose),
    /// The shell in a job's window.
    Launcher,
    /// A job's own program, by its number in [`Observer::programs`].
    Program(usize),
    /// Somebody's process that is nobody's business here.
    Stranger,
}

/// What a `tpu` was asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Monitor,
    /// A callback of a launcher.
    Callback,
    Run,
    Again,
    Kill,
    Clean,
    /// A person makes a target anew, whatever it is.
    Reapply,
    Other,
}

/// One process.
#[derive(Clone, Debug)]
pub(crate) struct Proc {
    pub(crate) role: Role,
    /// Group, as its launcher wrote it down.
    pub(crate) pgid: u32,
    pub(crate) environ: Vec<u8>,
    /// The process with which it dies.
    pub(crate) parent: Option<Pid>,
    /// When it ends.
    pub(crate) ends: Option<Duration>,
    /// It stood still for so long in all.
    pub(crate) frozen: Duration,
    /// When it last heard from tmux, and from the control plane, in its own running time.
    pub(crate) looked: Option<Duration>,
    /// When it last read the process table, in its own running time.
    pub(crate) listed: Option<Duration>,
    pub(crate) asked: BTreeMap<String, Duration>,
    /// What it last read of the data file under the lock.
    pub(crate) base: Option<u64>,
    /// What it last read of it without the lock, while a lie needs it.
    pub(crate) told: Option<Vec<u8>>,
}

/// One machine.
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) boots: u32,
    pub(crate) tmux: Arc<FakeTmux>,
    pub(crate) procs: BTreeMap<u32, (u64, Proc)>,
    next_pid: u32,
    /// How far its clock is ahead of the truth, in seconds.
    pub(crate) skew: i64,
}

impl Host {
    pub(crate) fn boot(&self) -> String {
        format!("boot-{}-{}", self.name, self.boots)
    }
}

/// How likely faults are. All in millionths per step unless said otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) crash: u64,
    pub(crate) freeze: u64,
    pub(crate) disk: u64,
    /// Of a tmux call: it does its work and its answer is lost.
    pub(crate) tmux: u64,
    /// Of each daemon: its death is near.
    pub(crate) monitor: u64,
    /// Of a window that is to be opened: its opener dies before, or tmux does not answer.
    pub(crate) unopened: u64,
}

/// What is to run next to those who run.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

pub(crate) struct State {
    pub(crate) now: Duration,
    time: TrueTime,
    pub(crate) rng: SeededRandom,
    pub(crate) hosts: Vec<Host>,
    pub(crate) faults: Faults,
    pub(crate) observer: Observer,
    /// Who holds which lock.
    pub(crate) locks: BTreeMap<PathBuf, Pid>,
    /// Until when the running coroutine wants to wait.
    pub(crate) wake: Duration,
    /// Coroutines to begin.
    pub(crate) begun: Vec<(Pid, Work)>,
    pub(crate) trace: VecDeque<String>,
    pub(crate) print: bool,
    pub(crate) steps: u64,
    /// Everything that was done, in one number: the same for the same seed.
    pub(crate) digest: u64,
    /// Whether the end has been reached.
    pub(crate) over: bool,
    starts: u64,
    /// Processes that a window, a machine or a person ended.
    pub(crate) broken: Option<String>,
    /// Ids that were used, for strangers who get them again.
    pub(crate) used: BTreeSet<(usize, u32)>,
    /// Short sleeps take up to so much longer; those that are shorter than the second do not.
    pub(crate) lazy: Duration,
    pub(crate) lazy_from: Duration,
    pub(crate) habits: Habits,
    pub(crate) targets: usize,
    /// When and how targets were last seen not to be ready, while a lie needs it.
    pub(crate) gone: BTreeMap<TargetName, (Duration, TargetFact)>,
    pub(crate) most_steps: u64,
    /// How often the daemon was killed between two of its effects, and how often it is at most.
    pub(crate) kills: u32,
    pub(crate) most_kills: u32,
    /// Whether nothing goes wrong any more.
    pub(crate) calm: bool,
    /// Whether a clock has jumped.
    pub(crate) jumped: bool,
    /// Until then somebody stands still.
    pub(crate) still_until: Duration,
    /// Where programs keep their work on the real disk, if they do.
    pub(crate) logs: Option<PathBuf>,
    /// Whether each version of the data file is looked at for what must never happen, and each question for a file that
    /// is not there is a moment in which others go on. A month has too many of both.
    pub(crate) reads_all: bool,
    /// What the doors know of a crowd.
    pub(crate) watch: crowd::Watch,
}

pub(crate) struct World {
    state: Mutex<State>,
    pub(crate) disk: Arc<FakeDisk>,
    /// Where the simulated cloud keeps its fleet: no part of the machines.
    pub(crate) cloud_disk: Arc<FakeDisk>,
    /// The fleet, for whoever pulls its strings.
    pub(crate) fleet: SimCloud,
    /// The cluster that is among the targets, if there is one.
    pub(crate) site: OnceLock<Arc<dyn Cluster>>,
    /// Where code is copied to on the real disk, in a world whose commands run on the machine itself.
    pub(crate) roots: OnceLock<tempfile::TempDir>,
}

/// Ends a coroutine whose process has died.
pub(crate) struct Died;

/// The true time, as tmux servers and the control plane see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrueTime(Arc<AtomicU64>);

impl TrueTime {
    pub(crate) fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    fn set(&self, elapsed: Duration) {
        self.0.store(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Clock for TrueTime {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(BEGIN).plus(self.elapsed())
    }

    fn monotonic(&self) -> Duration {
        self.elapsed()
    }

    fn sleep(&self, _duration: Duration) {}
}

impl World {
    pub(crate) fn new(
        seed: u64,
        hosts: usize,
        time: &TrueTime,
        (disk, cloud_disk, fleet): (Arc<FakeDisk>, Arc<FakeDisk>, SimCloud),
    ) -> Arc<Self> {
        let machine = |index: usize| {
            let name = format!("host{index}");
            let place = Place {
                host: name.clone(),
                boot: format!("boot-{name}-1"),
                uid: 1000,
                socket: "/tmp/tmux-1000/default".to_owned(),
                server_pid: 0,
                server_start: 0,
            };
            let clock = Arc::new(time.clone());
            Host {
                tmux: Arc::new(FakeTmux::new(place, clock)),
                name,
                boots: 1,
                procs: BTreeMap::new(),
                next_pid: 0,
                skew: 0,
            }
        };
        let state = State {
            now: Duration::ZERO,
            time: time.clone(),
            rng: SeededRandom::new(seed ^ 0x5eed),
            hosts: (0..hosts).map(machine).collect(),
            faults: Faults::default(),
            observer: Observer::default(),
            locks: BTreeMap::new(),
            wake: Duration::ZERO,
            begun: Vec::new(),
            trace: VecDeque::new(),
            print: false,
            steps: 0,
            digest: 0xcbf2_9ce4_8422_2325,
            over: false,
            starts: 0,
            broken: None,
            used: BTreeSet::new(),
            lazy: Duration::from_millis(400),
            lazy_from: Duration::ZERO,
            habits: Habits {
                says_ms: (2_000, 9_000),
                keeps_s: 20.0,
                counts_on: false,
                mistake: 2_000,
                ends_well: 0,
            },
            targets: 0,
            gone: BTreeMap::new(),
            most_steps: MOST_STEPS,
            kills: 0,
            most_kills: u32::MAX,
            calm: false,
            jumped: false,
            still_until: Duration::ZERO,
            logs: None,
            reads_all: true,
            watch: crowd::Watch::default(),
        };
        let (state, site, roots) = (Mutex::new(state), OnceLock::new(), OnceLock::new());
        Arc::new(Self { state, disk, cloud_disk, fleet, site, roots })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A moment of `me`: others may go on, the process may stand still or die, and only then `what`
    /// happens.
    pub(crate) fn step(&self, me: Pid, what: &str) {
        let wait = {
            let mut state = self.state();
            if state.over || !state.is_alive(me) {
                drop(state);
                die();
            }
            state.steps += 1;
            if state.steps > state.most_steps {
                state.violation("it does not come to an end".to_owned());
            }
            let millis = 1 + state.rng.below(8);
            let now = state.now + Duration::from_millis(millis);
            state.set_time(now);
            state.note(Some(me), what);
            if state.strikes(me) {
                drop(state);
                die();
            }
            let frozen = state.freezes(me);
            state.wake = state.now + frozen;
            frozen > Duration::ZERO || state.rng.below(3) == 0
        };
        if wait {
            self.pause(me);
        }
    }

    /// Lets others go on until `State::wake`.
    pub(crate) fn pause(&self, me: Pid) {
        yield_now();
        let mut state = self.state();
        if state.over || !state.is_alive(me) {
            drop(state);
            die();
        }
    }

    /// Waits for a time.
    pub(crate) fn sleep(&self, me: Pid, duration: Duration) {
        {
            let mut state = self.state();
            if state.over || !state.is_alive(me) {
                drop(state);
                die();
            }
            state.wake = state.now + duration;
        }
        self.pause(me);
    }
}

/// Lets somebody who is no process wait.
pub(crate) fn end_here(world: &World, duration: Duration) {
    {
        let mut state = world.state();
        state.wake = state.now + duration;
    }
    yield_now();
    if world.state().over {
        die();
    }
}

/// Gives the word back to the scheduler.
#[expect(
    deprecated,
    reason = "effects are called from deep inside: nobody could hand them a scope"
)]
fn yield_now() {
    generator::yield_with(());
}

/// Ends the running coroutine; no panic message is printed.
pub(crate) fn die() -> ! {
    resume_unwind(Box::new(Died))
}

impl State {
    /// Time has come so far.
    pub(crate) fn set_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
        self.time.set(self.now);
    }

    /// What a machine's clock shows.
    pub(crate) fn wall(&self, host: usize) -> Timestamp {
        let skew = self.hosts.get(host).map_or(0, |host| host.skew);
        Timestamp::from_second(BEGIN + skew).plus(self.now)
    }

    pub(crate) fn begin() -> Timestamp {
        Timestamp::from_second(BEGIN)
    }

    pub(crate) fn time(&self) -> TrueTime {
        self.time.clone()
    }

    /// A chance in millionths.
    pub(crate) fn chance(&self, millionths: u64) -> bool {
        millionths > 0 && self.rng.below(1_000_000) < millionths
    }

    /// A duration between two numbers of milliseconds.
    pub(crate) fn between(&self, low_ms: u64, high_ms: u64) -> Duration {
        Duration::from_millis(low_ms + self.rng.below(high_ms.saturating_sub(low_ms).max(1)))
    }

    /// How much longer than this somebody sleeps.
    pub(crate) fn oversleeps(&self, duration: Duration) -> Duration {
        let is_short = (self.lazy_from..Duration::from_secs(1)).contains(&duration);
        let most = if is_short { self.lazy.as_millis() } else { 0 };
        Duration::from_millis(self.rng.below(u64::try_from(most).unwrap_or(0).max(1)))
    }

    /// Writes a line of the trace.
    pub(crate) fn note(&mut self, who: Option<Pid>, what: &str) {
        let mix = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.digest = what.bytes().fold(self.digest, mix);
        self.digest = who.map_or(0, |pid| pid.pid).to_le_bytes().into_iter().fold(self.digest, mix);
        if self.trace.len() == TRACE {
            self.trace.pop_front();
        }
        let who = match who {
            Some(pid) => {
                let role = self.proc(pid).map(|proc| format!("{:?}", proc.role));
                format!("{}:{} {}", pid.host, pid.pid, role.unwrap_or_default())
            }
            None => "world".to_owned(),
        };
        let line = format!("{:>10.3} {who:<24} {what}", self.now.as_secs_f64());
        if self.print {
            eprintln(&line);
        }
        self.trace.push_back(line);
    }

    /// Says that something must never happen and has.
    pub(crate) fn violation(&mut self, text: String) {
        self.note(None, &format!("VIOLATION {text}"));
        self.broken.get_or_insert(text);
        self.over = true;
    }

    pub(crate) fn proc(&self, pid: Pid) -> Option<&Proc> {
        let (start, proc) = self.hosts.get(pid.host)?.procs.get(&pid.pid)?;
        (*start == pid.start).then_some(proc)
    }

    pub(crate) fn proc_mut(&mut self, pid: Pid) -> Option<&mut Proc> {
        let (start, proc) = self.hosts.get_mut(pid.host)?.procs.get_mut(&pid.pid)?;
        (*start == pid.start).then_some(proc)
    }

    /// Whether a process lives, after what was due to end has ended.
    pub(crate) fn is_alive(&mut self, pid: Pid) -> bool {
        let Some(proc) = self.proc(pid) else { return false };
        if proc.ends.is_some_and(|ends| ends <= self.now) {
            self.kill(pid, "ends");
            return false;
        }
        true
    }

    /// What a `tpu` was asked to do.
    pub(crate) fn purpose(&self, pid: Pid) -> Option<Purpose> {
        match &self.proc(pid)?.role {
            Role::Tpu(purpose) => Some(purpose.clone()),
            Role::Launcher | Role::Program(_) | Role::Stranger => None,
        }
    }

    /// Begins a process. Ids are few, so that they come again soon.
    pub(crate) fn spawn(&mut self, host: usize, role: Role, pid: Option<u32>) -> Option<Pid> {
        self.starts += 1;
        let start = self.starts;
        let machine = self.hosts.get_mut(host)?;
        let pid = match pid {
            Some(pid) => pid,
            None => loop {
                machine.next_pid = (machine.next_pid + 1) % 200;
                let pid = 100 + machine.next_pid;
                if !machine.procs.contains_key(&pid) {
                    break pid;
                }
            },
        };
        let proc = Proc {
            role,
            pgid: pid,
            environ: Vec::new(),
            parent: None,
            ends: None,
            frozen: Duration::ZERO,
            looked: None,
            listed: None,
            asked: BTreeMap::new(),
            base: None,
            told: None,
        };
        machine.procs.insert(pid, (start, proc));
        self.used.insert((host, pid));
        Some(Pid { host, pid, start })
    }

    /// Ends a process with those that die with it. Its locks are free.
    pub(crate) fn kill(&mut self, pid: Pid, why: &str) {
        if self.proc(pid).is_none() {
            return;
        }
        self.note(Some(pid), &format!("dies: {why}"));
        let role = self.proc(pid).map(|proc| proc.role.clone());
        if let Some(host) = self.hosts.get_mut(pid.host) {
            host.procs.remove(&pid.pid);
        }
        self.locks.retain(|_, holder| *holder != pid);
        if let Some(Role::Program(number)) = role {
            let now = self.now;
            self.observer.ended(number, now);
        }
        let children: Vec<Pid> = self.hosts.get(pid.host).map_or_else(Vec::new, |host| {
            let below = host.procs.iter().filter(|(_, (_, proc))| proc.parent == Some(pid));
            below.map(|(id, (start, _))| Pid { host: pid.host, pid: *id, start: *start }).collect()
        });
        for child in children {
            self.kill(child, "with its parent");
        }
    }

    /// Whether `me` dies here and now.
    fn strikes(&mut self, me: Pid) -> bool {
        let is_monitor = self.purpose(me) == Some(Purpose::Monitor);
        let chance = match self.purpose(me) {
            Some(Purpose::Monitor) if self.kills >= self.most_kills => 0,
            Some(Purpose::Monitor) => self.faults.crash + self.faults.monitor,
            Some(_) => self.faults.crash,
            None => 0,
        };
        if !self.chance(chance) {
            return false;
        }
        self.kills += u32::from(is_monitor);
        self.kill(me, "SIGKILL");
        true
    }

    /// How long `me` stands still here.
    fn freezes(&mut self, me: Pid) -> Duration {
        if self.purpose(me).is_none() || !self.chance(self.faults.freeze) {
            return Duration::ZERO;
        }
        let length = self.between(1_000, 90_000);
        self.note(Some(me), &format!("stands still for {length:?}"));
        self.still_until = self.still_until.max(self.now + length);
        if let Some(proc) = self.proc_mut(me) {
            proc.frozen += length;
        }
        length
    }

    /// How long a process has been running, without the time in which it stood still.
    pub(crate) fn own_time(&self, pid: Pid) -> Duration {
        self.now.saturating_sub(self.proc(pid).map_or(Duration::ZERO, |proc| proc.frozen))
    }
}

/// A line for whoever looks at a trace while it is made.
fn eprintln(line: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr(), "{line}"));
}
