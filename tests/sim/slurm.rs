//! A cluster of Slurm in the world: the door of each process to it, and what must never happen there. Who runs on it,
//! and what befalls it, is in [`super::engine`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tpu::effects::Effects;
use tpu::kinds::slurm::client::{
    Client, Clients, ClusterDisk, ProgramAnswer, ProgramCall, Silence,
};
use tpu::kinds::slurm::cluster::Cluster;
use tpu::model::job::Job;
use tpu::runner::files::Files as _;

use super::actors;
use super::cluster_disk::MemoryDisk;
use super::effects::Me;
use super::lies;
use super::observer::Cause;
use super::world::{TrueTime, World};
use crate::slurm::sim::{Cancelled, Loss, MESSAGE_TIMEOUT, SimCluster, SimJob};

/// The targets that are partitions of it.
pub(crate) const TARGETS: [&str; 2] = ["gpu", "gpu-2"];

/// How the names of our jobs begin.
const PREFIX: &str = "tpu-";

/// The cluster, with what is known of its jobs and said to nobody.
pub(crate) struct Site {
    pub(crate) cluster: Arc<SimCluster>,
    pub(crate) disk: MemoryDisk,
    orders: Mutex<BTreeMap<String, Order>>,
    begun: Mutex<Begun>,
}

/// The programs that run there: by the name of the job, and how often Slurm has started it, which the observer knows
/// them as, and for how many seconds nothing of their work was kept.
type Begun = BTreeMap<(String, u32), (usize, f64)>;

/// What a job was submitted with.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) lineage: u32,
    pub(crate) log: PathBuf,
    loads: Option<PathBuf>,
}

impl Site {
    pub(crate) fn new(time: &TrueTime) -> Self {
        let clock = Arc::new(time.clone());
        let (cluster, disk) = (SimCluster::new(clock), MemoryDisk::new(time.clone()));
        Self { cluster, disk, orders: Mutex::default(), begun: Mutex::default() }
    }

    fn orders(&self) -> MutexGuard<'_, BTreeMap<String, Order>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The programs that run there.
    pub(crate) fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whatever Slurm has no more, or not as it was, is dead.
    fn bury(&self, world: &World) {
        let jobs = self.cluster.jobs();
        self.begun().retain(|(name, restarts), (number, _)| {
            let is_its = |job: &&SimJob| job.name == *name && job.restarts == *restarts;
            let word = jobs.iter().find(is_its).map(|job| job.state);
            if word == Some("RUNNING") {
                return true;
            }
            let cause = match word {
                Some("PREEMPTED") => Cause::Preempted,
                Some("COMPLETED") => Cause::Finished,
                Some("CANCELLED") => Cause::Stopped,
                _ => Cause::Window,
            };
            let mut state = world.state();
            if let Some(program) = state.observer.programs.get_mut(*number) {
                program.cause.get_or_insert(cause);
            }
            let now = state.now;
            state.observer.ended(*number, now);
            false
        });
    }

    /// What a job was submitted with; none of one that is not ours.
    pub(crate) fn order(&self, name: &str) -> Option<Order> {
        self.orders().get(name).cloned()
    }

    /// Whether a job will end before it begins, because its launch was given up before it was submitted.
    pub(crate) fn is_given_up(&self, job: &SimJob) -> bool {
        let Some(order) = self.order(&job.name) else { return false };
        let mark = order.log.parent().map(|dir| dir.join("slurm-given-up"));
        let has_begun = self.begun().contains_key(&(job.name.clone(), job.restarts));
        !has_begun && mark.is_some_and(|mark| self.disk.is_dir(&mark).unwrap_or_default())
    }

    /// Jobs of ours that are not over.
    pub(crate) fn live(&self) -> Vec<SimJob> {
        let mut jobs = self.cluster.jobs();
        jobs.retain(|job| !job.is_over() && job.name.starts_with(PREFIX));
        jobs
    }

    /// Whether a launch has a job there that is not over.
    pub(crate) fn is_live(&self, token: &str) -> bool {
        self.live().iter().any(|job| token_of(&job.name) == token)
    }

    /// Of one launch there is one submission, and of one lineage one job that is not over, beside those that will
    /// run nothing.
    pub(crate) fn hold(&self, world: &World) {
        self.bury(world);
        let mut at_work: BTreeMap<u32, SimJob> = BTreeMap::new();
        for job in self.live() {
            if self.cluster.accepted(&job.name) > 1 {
                world.state().violation(format!("1: {} was submitted twice", job.name));
            }
            let Some(order) = self.order(&job.name).filter(|_| !self.is_given_up(&job)) else {
                continue;
            };
            if let Some(other) = at_work.insert(order.lineage, job.clone()) {
                let text = format!(
                    "1: lineage {} is at Slurm twice: {} {} and {} {}",
                    order.lineage, other.name, other.state, job.name, job.state
                );
                world.state().violation(text);
            }
        }
    }

    /// A job that nobody knows, or whose record is over.
    pub(crate) fn forgotten(&self, world: &World) -> Option<String> {
        let data = actors::data(world)?;
        let knows = |job: &SimJob| {
            let is_its = |record: &&Job| token_in(record) == Some(token_of(&job.name));
            data.jobs().find(is_its).is_some_and(|record| record.status.is_live())
        };
        let lost = self.live().into_iter().find(|job| !knows(job))?;
        Some(format!("{} is {} at Slurm, and no live record knows it", lost.name, lost.state))
    }
}

/// The token of the launch that a job is of.
pub(crate) fn token_of(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or_default()
}

fn token_in(record: &Job) -> Option<&str> {
    record.launch.as_ref().map(|launch| launch.token.as_str())
}

/// Opens the cluster for one process.
pub(crate) struct Doors {
    pub(crate) me: Me,
    pub(crate) site: Arc<Site>,
}

impl Clients for Doors {
    fn open<'a>(&self, _: &Cluster, effects: &'a Effects) -> Box<dyn Client + 'a> {
        Box::new(Door { me: self.me.clone(), site: Arc::clone(&self.site), effects })
    }
}

struct Door<'a> {
    me: Me,
    site: Arc<Site>,
    effects: &'a Effects,
}

impl Door<'_> {
    /// A submission leaves; some are lost on their way.
    fn submits(&self, call: &ProgramCall) {
        let option = |name: &str| {
            let value = |arg: &String| arg.strip_prefix(name).map(str::to_owned);
            call.args.iter().find_map(value).unwrap_or_default()
        };
        let script = String::from_utf8_lossy(&call.stdin).into_owned();
        let word = |name: &str| {
            let (_, rest) = script.split_once(name)?;
            let end = rest.find(|c: char| c.is_whitespace() || c == '\'').unwrap_or(rest.len());
            rest.get(..end).map(str::to_owned)
        };
        let order = Order {
            lineage: word("--config.lineage=").and_then(|n| n.parse().ok()).unwrap_or(0),
            log: PathBuf::from(option("--output=")),
            loads: word("--config.load_from=").map(PathBuf::from),
        };
        let loads = order.loads.clone();
        self.site.orders().insert(option("--job-name="), order);
        let mut state = self.me.world.state();
        if let Some(dir) = loads.filter(|dir| !self.site.disk.has_checkpoint(dir)) {
            state.violation(format!("11: it goes on from {}, where nothing is", dir.display()));
        }
        let chance = state.faults.tmux * 8;
        if state.chance(chance) {
            let most = u64::try_from(MESSAGE_TIMEOUT.as_millis()).unwrap_or(0);
            let loss = match state.between(0, 3).as_millis() {
                0 => Loss::Unheard,
                1 => Loss::Unanswered,
                _ => Loss::Later(state.between(0, most)),
            };
            state.note(Some(self.me.pid), &format!("the submission is lost: {loss:?}"));
            drop(state);
            self.site.cluster.lose_next(Some(loss));
        }
    }

    /// What is cancelled is one that somebody wants to end, or whose record is over.
    fn cancels(&self, call: &ProgramCall) {
        let before = self.site.cluster.jobs();
        let Some(cancelled) = Cancelled::of(call) else { return };
        for job in before.iter().filter(|job| cancelled.has(job) && !job.is_over()) {
            let data = actors::data(&self.me.world);
            let record = data.as_ref().and_then(|data| {
                data.jobs().find(|record| token_in(record) == Some(token_of(&job.name)))
            });
            let lineage = self.site.order(&job.name).map(|order| order.lineage);
            let mut state = self.me.world.state();
            let known = lineage.and_then(|lineage| state.observer.lineages.get(&lineage));
            let is_wanted = known.is_some_and(|known| known.kill_asked);
            match (lineage, record) {
                (None, _) => {
                    state.violation(format!("6: somebody else's {} is cancelled", job.name));
                }
                (Some(lineage), Some(record)) if record.status.is_live() && !is_wanted => {
                    let state_of = job.state;
                    state.violation(format!(
                        "6: {} of lineage {lineage} is cancelled, and is {state_of}",
                        job.name
                    ));
                }
                (Some(_), _) => {}
            }
        }
        self.me.world.state().rests_on_slurm(self.me.pid);
    }
}

impl Client for Door<'_> {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence> {
        let what = format!("slurm: {} {}", call.program, shown(call));
        self.me.world.step(self.me.pid, &what);
        match call.program {
            "sbatch" => self.submits(call),
            "scancel" => self.cancels(call),
            _ => {}
        }
        let answer = self.site.cluster.answer(call, &*self.effects.clock);
        self.site.cluster.lose_next(None);
        self.site.hold(&self.me.world);
        let said = answer.as_ref().map(|answer| answer.code).ok();
        if call.program == "squeue" && said == Some(0) {
            self.me.world.state().has_asked_slurm(self.me.pid);
        }
        let answer = lies::told_of_slurm(call, answer);
        // It may die before it hears it.
        self.me.world.step(self.me.pid, &format!("slurm says {said:?}"));
        answer
    }

    fn disk(&self) -> Box<dyn ClusterDisk + '_> {
        Box::new(self.site.disk.clone())
    }

    fn at_terminal(&self, words: &[String]) -> Vec<String> {
        words.to_vec()
    }

    fn is_here(&self) -> bool {
        true
    }
}

/// What tells one call from another in a trace.
fn shown(call: &ProgramCall) -> String {
    let telling = |arg: &&String| arg.starts_with("--job-name") || arg.starts_with("--name");
    let last = call.args.last().filter(|_| call.program != "sbatch" && call.program != "squeue");
    let words = call.args.iter().filter(telling).chain(last);
    words.cloned().collect::<Vec<_>>().join(" ")
}

/// The word under which a process notes when it last heard from the cluster.
const ASKED: &str = "slurm";

impl super::world::State {
    fn has_asked_slurm(&mut self, me: super::world::Pid) {
        let now = self.own_time(me);
        if let Some(proc) = self.proc_mut(me) {
            proc.asked.insert(ASKED.to_owned(), now);
        }
    }

    fn rests_on_slurm(&mut self, me: super::world::Pid) {
        let now = self.own_time(me);
        let asked = self.proc(me).and_then(|proc| proc.asked.get(ASKED).copied());
        let age = asked.map(|at| now.saturating_sub(at));
        if age.is_none_or(|age| age > Duration::from_secs(65)) {
            self.violation(format!("7: a job is cancelled on an answer that is {age:?} old"));
        }
    }
}
