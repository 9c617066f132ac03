//! A cluster of Slurm in the world: the door of each process to it, and what must never happen there. Who runs on it,
//! and what befalls it, is in [`super::engine`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tpu_core::model::job::Job;
use tpu_core::model::target::{Registration, TargetKind};
use tpu_engine::kinds::KindOfTarget;
use tpu_engine::runner::files::Files as _;
use tpu_slurm::Slurm;
use tpu_slurm::client::{Client, Clients, ClusterDisk, ProgramAnswer, ProgramCall, Silence};
use tpu_slurm::cluster::Cluster;
use tpu_system::effects::Effects;

use super::actors;
use super::cluster::{self, AtWork, Begun, Cluster as _, Draw, Order, Start};
use super::cluster_disk::{MemoryDisk, keep_checkpoint};
use super::effects::Me;
use super::lies;
use super::observer::Cause;
use super::world::{TrueTime, World};
use crate::slurm::sim::{Cancelled, Liar, Loss, MESSAGE_TIMEOUT, SimCluster, SimJob, Weather};

/// The name of a job of somebody else.
const THEIRS: &str = "theirs";

/// How the names of our jobs begin.
const PREFIX: &str = "tpu-";

/// The cluster, with what is known of its jobs and said to nobody.
pub(crate) struct Site {
    cluster: Arc<SimCluster>,
    disk: MemoryDisk,
    orders: Mutex<BTreeMap<String, Order>>,
    begun: Mutex<Begun>,
    /// How it lies, if it does.
    liar: Option<Liar>,
}

impl Site {
    pub(crate) fn new(time: &TrueTime, liar: Option<Liar>) -> Self {
        let clock = Arc::new(time.clone());
        let (cluster, disk) = (SimCluster::new(clock), MemoryDisk::new(time.clone()));
        Self { cluster, disk, orders: Mutex::default(), begun: Mutex::default(), liar }
    }

    fn orders(&self) -> MutexGuard<'_, BTreeMap<String, Order>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job of a start.
    fn job(&self, at: &AtWork) -> Option<SimJob> {
        self.live().into_iter().find(|job| (&job.name, job.restarts) == (&at.start.0, at.start.1))
    }

    /// What a job was submitted with; none of one that is not ours.
    fn order(&self, name: &str) -> Option<Order> {
        self.orders().get(name).cloned()
    }

    /// Whether a job will end before it begins, because its launch was given up before it was submitted.
    fn is_given_up(&self, job: &SimJob) -> bool {
        let Some(order) = self.order(&job.name) else { return false };
        let mark = order.log.parent().map(|dir| dir.join("slurm-given-up"));
        let has_begun = self.begun().contains_key(&(job.name.clone(), job.restarts));
        !has_begun && mark.is_some_and(|mark| self.disk.is_dir(&mark).unwrap_or_default())
    }

    /// Jobs of ours that are not over.
    fn live(&self) -> Vec<SimJob> {
        let mut jobs = self.cluster.jobs_and_orphans();
        jobs.retain(|job| !job.is_over() && job.name.starts_with(PREFIX));
        jobs
    }

    /// A file in the log directory of a job.
    fn file(at: &AtWork, name: &str) -> Option<PathBuf> {
        Some(at.order.log.parent()?.join(name))
    }

    /// Lies, or leaves it, as the seed has it.
    fn lies(&self, liar: Liar, Draw { which, long, .. }: Draw) -> String {
        if liar == Liar::Restored {
            let newest = 1 + usize::try_from(which % 3).unwrap_or(0);
            self.cluster.restore(newest, long * 20);
            return format!("it is set back to before its {newest} newest jobs");
        }
        let lie = (which % 3 != 0).then_some(liar);
        self.cluster.set_lie(lie);
        format!("squeue: {lie:?}")
    }
}

impl cluster::Cluster for Site {
    fn registration(&self, target: &str) -> Registration {
        Registration {
            kind: TargetKind::new("slurm"),
            engine: true,
            options: [("partition", target)].into_iter().collect(),
            ..Registration::default()
        }
    }

    fn kind(self: Arc<Self>, me: &Me) -> Arc<dyn KindOfTarget> {
        Arc::new(Slurm::with(Arc::new(Doors { me: me.clone(), site: self })))
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self, (name, restarts): &Start) -> Option<Cause> {
        let jobs = self.cluster.jobs_and_orphans();
        let its = jobs.iter().find(|job| job.name == *name && job.restarts == *restarts);
        match its.map(|job| job.state) {
            Some("RUNNING") => None,
            Some("PREEMPTED") => Some(Cause::Preempted),
            Some("COMPLETED") => Some(Cause::Finished),
            Some("CANCELLED") => Some(Cause::Stopped),
            _ => Some(Cause::Window),
        }
    }

    fn at_work(&self) -> Vec<AtWork> {
        let at_work = |job: SimJob| {
            let order = self.order(&job.name)?;
            let token = token_of(&job.name).to_owned();
            Some(AtWork { start: (job.name, job.restarts), token, order })
        };
        self.live().into_iter().filter(|job| job.state == "RUNNING").filter_map(at_work).collect()
    }

    fn refuses(&self, at: &AtWork) -> bool {
        let job = self.job(at).filter(|job| self.is_given_up(job));
        // As the batch script does.
        let ends = |job: SimJob| {
            if !self.cluster.end_orphan(&job.name) {
                self.cluster.end_by(job.id, 54);
            }
        };
        job.map(ends).is_some()
    }

    fn prints(&self, at: &AtWork, text: &str) {
        self.disk.append(&at.order.log, text);
        // As its script does.
        if let Some(alive) = Self::file(at, "slurm-alive") {
            self.disk.append(&alive, "");
        }
    }

    fn keeps(&self, at: &AtWork, step: f64) {
        let Some(dir) = at.order.log.parent() else { return };
        keep_checkpoint(&self.disk, dir, step);
    }

    fn ends(&self, at: &AtWork, code: i32) {
        let Some(job) = self.job(at) else { return };
        // Its script writes down how.
        if let Some(exit) = Self::file(at, "slurm-exit") {
            self.disk.write(&exit, &format!("{} {} {code}\n", job.id, job.restarts));
        }
        if !self.cluster.end_orphan(&job.name) {
            self.cluster.end(job.id, code);
        }
    }

    fn is_live(&self, token: &str) -> bool {
        self.live().iter().any(|job| token_of(&job.name) == token)
    }

    fn hold(&self, world: &World) {
        for job in self.cluster.ended_orphans() {
            let Some(order) = self.order(&job.name) else { continue };
            let line = format!(
                "slurmstepd-n1: error: *** JOB {} ON n1 CANCELLED AT 2027-01-15T08:00:00 ***\n",
                job.id
            );
            self.disk.append(&order.log, &line);
        }
        cluster::bury(self, world);
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

    fn forgotten(&self, world: &World) -> Option<String> {
        let data = actors::data(world)?;
        let knows = |job: &SimJob| {
            let is_its = |record: &&Job| token_in(record) == Some(token_of(&job.name));
            data.jobs().find(is_its).is_some_and(|record| record.status.is_live())
        };
        let lost = self.live().into_iter().find(|job| !knows(job))?;
        Some(format!("{} is {} at Slurm, and no live record knows it", lost.name, lost.state))
    }

    fn happens(&self, world: &World, Draw { choice, which: draw, long }: Draw) {
        let running = || {
            // What the controller does not know nobody preempts.
            let mut jobs = self.cluster.jobs();
            jobs.retain(|job| job.state == "RUNNING" && job.name.starts_with(PREFIX));
            let index = usize::try_from(draw.checked_rem(jobs.len() as u64)?).ok()?;
            jobs.get(index).cloned()
        };
        let note = |text: String| world.state().note(None, &text);
        match choice {
            41..80 if self.liar.is_some() => {
                let draw = Draw { choice, which: draw, long };
                note(self.liar.map(|liar| self.lies(liar, draw)).unwrap_or_default());
            }
            0..25 => {
                let Some(job) = running() else { return };
                let is_requeued = draw % 3 == 0;
                note(format!("{} is preempted, requeued: {is_requeued}", job.name));
                self.cluster.preempt(job.id, is_requeued);
            }
            25..33 => {
                let node = if draw % 2 == 0 { "n1" } else { "n2" };
                note(format!("{node} fails"));
                self.cluster.fail_node(node);
            }
            33..41 => {
                note("the nodes are there again".to_owned());
                self.cluster.mend_nodes();
            }
            41..68 => {
                let weather = match draw % 6 {
                    0 => Weather::Away,
                    1 => Weather::Hangs,
                    2 => Weather::Slow(long),
                    _ => Weather::Fair,
                };
                note(format!("the controller: {weather:?}"));
                self.cluster.set_weather(weather);
            }
            68..73 => {
                note("it is set up anew".to_owned());
                self.cluster.reset();
            }
            73..80 => {
                note("it forgets what is over".to_owned());
                self.cluster.forget_ended();
            }
            _ => {
                let id = self.cluster.submit_by_hand(THEIRS);
                note(format!("somebody else submits {id}"));
            }
        }
    }

    fn calm(&self) {
        self.cluster.set_weather(Weather::Fair);
        self.cluster.set_lie(None);
        self.cluster.mend_nodes();
        // One that lists nothing at all may have lost what it had: nobody would ever know.
        self.cluster.submit_by_hand(THEIRS);
    }
}

/// The token of the launch that a job is of.
fn token_of(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or_default()
}

fn token_in(record: &Job) -> Option<&str> {
    record.launch.as_ref().map(|launch| launch.token.as_str())
}

/// Opens the cluster for one process.
struct Doors {
    me: Me,
    site: Arc<Site>,
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
        let script = String::from_utf8_lossy(&call.stdin);
        let order = Order::read(&script, PathBuf::from(option("--output=")));
        let loads = order.loads.clone();
        self.site.orders().insert(option("--job-name="), order);
        let mut state = self.me.world.state();
        if let Some(dir) = loads.filter(|dir| !self.site.disk.has_checkpoint(dir)) {
            state.violation(format!("11: it goes on from {}, where nothing is", dir.display()));
        }
        let chance = state.faults.tmux * 8;
        if state.chance(chance) || lies::is_wanted_lost() {
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
        self.me.world.state().rests_on_cluster(self.me.pid);
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
            self.me.world.state().has_asked_cluster(self.me.pid);
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
