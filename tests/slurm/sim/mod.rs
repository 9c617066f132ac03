//! A cluster in memory, behind the door of the kind: its programs are played on values, by a clock. It preempts, loses
//! nodes, is away, hangs, answers late or not at all, and forgets; and it remembers every submission that it ever
//! accepted, which no real one does.

mod liars;
mod words;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tpu_core::model::time::Timestamp;
use tpu_slurm::client::{
    Client, Clients, ClusterDisk, HereDisk, ProgramAnswer, ProgramCall, Silence,
};
use tpu_slurm::cluster::Cluster;
use tpu_system::effects::Effects;
use tpu_system::sys::clock::Clock;

pub(crate) use liars::Liar;
use liars::Orphan;
pub(crate) use words::Cancelled;
use words::{Order, option, order, refused, row, said, shown, written};

/// How long a program of Slurm tries to reach a controller that is away.
const CONNECTS: Duration = Duration::from_secs(9);
/// How long a job that Slurm starts again waits.
const BEGIN_TIME: Duration = Duration::from_secs(120);
/// Jobs that a node has at once.
const SLOTS: usize = 16;
/// `MessageTimeout` of the cluster: what was sent and not answered is carried out within it, or never.
pub(crate) const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// For how long it remembers what is over.
pub(crate) const MIN_JOB_AGE: Duration = Duration::from_secs(300);

/// How questions fare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    /// They are answered.
    Fair,
    /// Nobody listens.
    Away,
    /// Somebody does, and says nothing.
    Hangs,
    /// The answer takes so long; what was asked for is done.
    Slow(Duration),
}

/// What happens to the next submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It is not heard.
    Unheard,
    /// It is carried out, and its answer is lost.
    Unanswered,
    /// Its answer is lost, and it is carried out so much later.
    Later(Duration),
    /// The way to it breaks, and it is carried out so much later.
    Broken(Duration),
}

/// A job, or a task of an array.
#[derive(Clone, Debug)]
pub(crate) struct SimJob {
    /// Its number. Those of an array that wait have that of the array.
    pub(crate) id: u32,
    /// The number by which it was submitted.
    pub(crate) base: u32,
    /// Which task it is.
    pub(crate) task: Option<u32>,
    /// Its name.
    pub(crate) name: String,
    /// Slurm's word.
    pub(crate) state: &'static str,
    reason: &'static str,
    begin: Duration,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    /// How often it was started anew.
    pub(crate) restarts: u32,
    status: i32,
    node: Option<String>,
    output: Option<String>,
    by: u32,
}

impl SimJob {
    /// Whether it has come to its end.
    pub(crate) fn is_over(&self) -> bool {
        !matches!(self.state, "PENDING" | "RUNNING")
    }

    fn finish(&mut self, state: &'static str, status: i32, now: Timestamp) {
        (self.state, self.status, self.end, self.reason) = (state, status, Some(now), "None");
        if self.task.is_none() {
            self.start.get_or_insert(now);
        }
    }
}

struct World {
    booted: Timestamp,
    next_id: u32,
    jobs: Vec<SimJob>,
    at_once: BTreeMap<u32, usize>,
    nodes: BTreeMap<String, bool>,
    weather: Weather,
    loss: Option<Loss>,
    /// What was sent and has not arrived yet.
    on_its_way: Vec<(Duration, Order)>,
    /// Names of all submissions that were accepted since it was set up.
    accepted: Vec<String>,
    /// What became of each name that it ever knew, which nobody is told.
    fates: BTreeMap<String, &'static str>,
    /// How `squeue` lies, and the jobs that it tells of then.
    lie: Option<Liar>,
    cached: Vec<SimJob>,
    orphans: Vec<Orphan>,
    /// Orphans that have been ended since somebody last asked for them.
    ended_orphans: Vec<SimJob>,
}

/// The cluster. Cheap to share.
pub(crate) struct SimCluster {
    clock: Arc<dyn Clock>,
    world: Mutex<World>,
}

impl SimCluster {
    /// Two nodes that are idle.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let world = World {
            booted: clock.now(),
            next_id: 1,
            jobs: Vec::new(),
            at_once: BTreeMap::new(),
            nodes: ["n1", "n2"].map(|name| (name.to_owned(), true)).into(),
            weather: Weather::Fair,
            loss: None,
            on_its_way: Vec::new(),
            accepted: Vec::new(),
            fates: BTreeMap::new(),
            lie: None,
            cached: Vec::new(),
            orphans: Vec::new(),
            ended_orphans: Vec::new(),
        };
        Arc::new(Self { clock, world: Mutex::new(world) })
    }

    /// The state is replaced in whole steps, so it is usable whatever happened to another thread.
    fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.advance(self.clock.now(), self.clock.monotonic());
        world
    }

    // -- what happens to it

    pub(crate) fn set_weather(&self, weather: Weather) {
        self.world().weather = weather;
    }

    /// What becomes of the next submission.
    pub(crate) fn lose_next(&self, loss: Option<Loss>) {
        self.world().loss = loss;
    }

    /// A job ends with this code.
    pub(crate) fn end(&self, id: u32, code: i32) {
        let state = if code == 0 { "COMPLETED" } else { "FAILED" };
        let now = self.clock.now();
        self.world().job(id).finish(state, code << 8, now);
    }

    /// A job ends by this signal.
    pub(crate) fn end_by(&self, id: u32, signal: i32) {
        let now = self.clock.now();
        self.world().job(id).finish("FAILED", signal, now);
    }

    /// Somebody of higher rank takes its place: it is over, or Slurm starts it again.
    pub(crate) fn preempt(&self, id: u32, is_requeued: bool) {
        let (now, begin) = (self.clock.now(), self.clock.monotonic() + BEGIN_TIME);
        let mut world = self.world();
        let job = world.job(id);
        if is_requeued {
            (job.state, job.reason, job.begin) = ("PENDING", "BeginTime", begin);
            (job.start, job.node) = (None, None);
            job.restarts += 1;
        } else {
            job.finish("PREEMPTED", 0, now);
        }
    }

    /// A node fails, with all that runs there.
    pub(crate) fn fail_node(&self, node: &str) {
        let now = self.clock.now();
        let mut world = self.world();
        world.nodes.insert(node.to_owned(), false);
        for job in &mut world.jobs {
            if job.state == "RUNNING" && job.node.as_deref() == Some(node) {
                job.finish("NODE_FAIL", 0, now);
            }
        }
    }

    /// All nodes are there again.
    pub(crate) fn mend_nodes(&self) {
        self.world().nodes.values_mut().for_each(|is_up| *is_up = true);
    }

    /// It forgets what has been over for longer than `MinJobAge`.
    pub(crate) fn forget_ended(&self) {
        let age = i64::try_from(MIN_JOB_AGE.as_secs()).unwrap();
        let before = self.clock.now().plus_seconds(-age);
        let mut world = self.world();
        world.note_fates();
        world.jobs.retain(|job| job.end.is_none_or(|end| end >= before));
    }

    /// It was set up anew: all jobs are forgotten, and their numbers are given again.
    pub(crate) fn reset(&self) {
        let now = self.clock.now();
        let mut world = self.world();
        (world.booted, world.next_id) = (now, 1);
        world.note_fates();
        world.jobs.clear();
        world.on_its_way.clear();
        world.accepted.clear();
    }

    /// Somebody else submits a job; its number.
    pub(crate) fn submit_by_hand(&self, name: &str) -> u32 {
        let order = Order {
            name: name.to_owned(),
            tasks: Vec::new(),
            at_once: usize::MAX,
            is_held: false,
            output: None,
        };
        let mut world = self.world();
        world.place(&order);
        let id = world.jobs.last().map_or(0, |job| job.id);
        world.advance(self.clock.now(), self.clock.monotonic());
        id
    }

    // -- what is in it

    /// All jobs that it knows.
    pub(crate) fn jobs(&self) -> Vec<SimJob> {
        self.world().jobs.clone()
    }

    /// The jobs of a name, of which there may be several.
    pub(crate) fn named(&self, name: &str) -> Vec<SimJob> {
        self.jobs().into_iter().filter(|job| job.name == name).collect()
    }

    /// What became of the one job of a name, also where it is forgotten. None where it was never accepted.
    pub(crate) fn fate(&self, name: &str) -> Option<&'static str> {
        let mut world = self.world();
        world.note_fates();
        world.fates.get(name).copied()
    }

    /// Whether a submission of this name was sent and has not arrived.
    pub(crate) fn is_on_its_way(&self, name: &str) -> bool {
        self.world().on_its_way.iter().any(|(_, order)| order.name == name)
    }

    /// How often submissions of this name were accepted since it was set up.
    pub(crate) fn accepted(&self, name: &str) -> usize {
        self.world().accepted.iter().filter(|known| *known == name).count()
    }

    // -- its programs

    /// What a program says to somebody who waits for it by a clock of his own.
    pub(crate) fn answer(
        &self,
        call: &ProgramCall,
        clock: &dyn Clock,
    ) -> Result<ProgramAnswer, Silence> {
        let late = || Silence::Late { program: call.program, after: call.limit };
        let weather = self.world().weather;
        match weather {
            Weather::Fair => {}
            Weather::Away if call.limit >= CONNECTS => {
                clock.sleep(CONNECTS);
                return Ok(refused("Unable to contact slurm controller (connect failure)"));
            }
            Weather::Away | Weather::Hangs => {
                clock.sleep(call.limit);
                return Err(late());
            }
            Weather::Slow(by) if by >= call.limit => {
                clock.sleep(call.limit);
                drop(self.carry_out(call));
                return Err(late());
            }
            Weather::Slow(by) => clock.sleep(by),
        }
        if call.program == "squeue" && self.world().lie == Some(Liar::Hanging) {
            clock.sleep(call.limit);
            return Err(late());
        }
        if call.program != "sbatch" {
            return Ok(self.carry_out(call));
        }
        let Some(loss) = self.world().loss.take() else { return Ok(self.carry_out(call)) };
        let broken = || Silence::Broken("the connection was closed".to_owned());
        let now = self.clock.monotonic();
        match loss {
            Loss::Unheard => Err(late()),
            Loss::Unanswered => {
                drop(self.carry_out(call));
                Err(late())
            }
            Loss::Later(by) | Loss::Broken(by) => {
                if let Some(order) = order(call) {
                    self.world().on_its_way.push((now + by, order));
                }
                Err(if matches!(loss, Loss::Broken(_)) { broken() } else { late() })
            }
        }
    }

    fn carry_out(&self, call: &ProgramCall) -> ProgramAnswer {
        let words: Vec<&str> = call.args.iter().map(String::as_str).collect();
        match (call.program, words.as_slice()) {
            ("scontrol", ["show", "config", ..]) => said(&self.config()),
            ("scontrol", ["show", "job"]) => {
                said(&self.jobs().iter().map(shown).collect::<String>())
            }
            ("scontrol", ["show", "job", .., id]) => self.world().show(id),
            ("squeue", [.., "--format=%A"]) => {
                let world = self.world();
                let ids: Vec<String> = world.told().iter().map(|job| job.id.to_string()).collect();
                said(&ids.join("\n"))
            }
            ("squeue", _) => {
                let name = option(&words, "--name");
                said(&self.world().rows(name.as_deref()))
            }
            ("sbatch", _) => match order(call) {
                Some(order) => {
                    let mut world = self.world();
                    let id = world.place(&order);
                    said(&format!("{id}\n"))
                }
                None => refused("Batch job submission failed: Unspecified error"),
            },
            ("scancel", _) => match Cancelled::of(call) {
                Some(cancelled) => {
                    let now = self.clock.now();
                    let mut world = self.world();
                    let meant = |job: &&mut SimJob| cancelled.has(job) && !job.is_over();
                    for job in world.jobs.iter_mut().filter(meant) {
                        job.finish("CANCELLED", 15, now);
                    }
                    said("")
                }
                None => refused("Invalid job id specified"),
            },
            ("sacct", _) => refused("Slurm accounting storage is disabled"),
            _ => refused("it does not play that"),
        }
    }

    fn config(&self) -> String {
        let booted = written(Some(self.world().booted));
        format!(
            "Configuration data as of {booted}\nBOOT_TIME               = {booted}\n\
             ClusterName             = sim\nMessageTimeout          = {} sec\nMinJobAge               = {} sec\n\
             SLURM_VERSION           = 22.05.8\n",
            MESSAGE_TIMEOUT.as_secs(),
            MIN_JOB_AGE.as_secs(),
        )
    }
}

impl World {
    #[track_caller]
    fn job(&mut self, id: u32) -> &mut SimJob {
        let known = format!("{:?}", self.jobs);
        self.jobs
            .iter_mut()
            .find(|job| job.id == id && (job.task.is_none() || job.start.is_some()))
            .unwrap_or_else(|| panic!("no job {id}: {known}"))
    }

    fn note_fates(&mut self) {
        for job in &self.jobs {
            self.fates.insert(job.name.clone(), job.state);
        }
    }

    /// What has been sent arrives, and what waits starts where there is place. Nodes end what the controller does not know.
    fn advance(&mut self, now: Timestamp, at: Duration) {
        let (ended, orphans): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.orphans).into_iter().partition(|orphan| orphan.until <= at);
        self.orphans = orphans;
        self.ended_orphans.extend(ended.into_iter().map(|orphan| orphan.job));
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.on_its_way).into_iter().partition(|(when, _)| *when <= at);
        self.on_its_way = later;
        for (_, order) in due {
            self.place(&order);
        }
        for index in 0..self.jobs.len() {
            let waits = self.jobs[index].state == "PENDING" && self.jobs[index].begin <= at;
            if !waits {
                continue;
            }
            let base = self.jobs[index].base;
            let running = |job: &&SimJob| job.state == "RUNNING";
            let of_array = self.jobs.iter().filter(running).filter(|j| j.base == base).count();
            if of_array >= self.at_once.get(&base).copied().unwrap_or(usize::MAX) {
                self.jobs[index].reason = "JobArrayTaskLimit";
                continue;
            }
            let on = |node: &String| {
                let runs = |job: &&SimJob| job.node.as_ref() == Some(node);
                self.jobs.iter().filter(running).filter(runs).count()
            };
            let up = self.nodes.iter().filter(|(_, is_up)| **is_up).map(|(name, _)| name);
            let Some(node) = up.into_iter().find(|node| on(node) < SLOTS).cloned() else {
                self.jobs[index].reason = "Resources";
                continue;
            };
            // A task gets a number when it starts; the last one has that of its array.
            let waiting = |job: &&SimJob| job.base == base && job.start.is_none();
            let is_last = self.jobs.iter().filter(waiting).count() == 1;
            let is_task = self.jobs[index].task.is_some() && self.jobs[index].restarts == 0;
            if is_task && !is_last {
                self.jobs[index].id = self.next_id;
                self.next_id += 1;
            }
            let job = &mut self.jobs[index];
            (job.state, job.reason, job.start, job.node) =
                ("RUNNING", "None", Some(now), Some(node));
            // As the daemon of its node does.
            if let Some(output) = &job.output {
                drop(std::fs::OpenOptions::new().create(true).append(true).open(output));
            }
        }
    }

    /// Accepts a submission; its number.
    fn place(&mut self, order: &Order) -> u32 {
        let base = self.next_id;
        self.next_id += 1;
        self.accepted.push(order.name.clone());
        self.at_once.insert(base, order.at_once);
        let tasks: Vec<Option<u32>> = match order.tasks.as_slice() {
            [] => vec![None],
            tasks => tasks.iter().copied().map(Some).collect(),
        };
        let held = if order.is_held { Duration::MAX } else { Duration::ZERO };
        self.jobs.extend(tasks.into_iter().map(|task| SimJob {
            id: base,
            base,
            task,
            name: order.name.clone(),
            state: "PENDING",
            reason: if order.is_held { "JobHeldUser" } else { "None" },
            begin: held,
            start: None,
            end: None,
            restarts: 0,
            status: 0,
            node: None,
            output: order.output.clone(),
            by: 0,
        }));
        base
    }

    fn rows(&self, name: Option<&str>) -> String {
        let mut text = String::new();
        let mut waiting: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let jobs = self.told();
        let meant = jobs
            .iter()
            .filter(|job| name.is_none_or(|all| all.split(',').any(|name| job.name == name)));
        for job in meant {
            match job.task {
                Some(task) if job.start.is_none() && job.restarts == 0 && !job.is_over() => {
                    waiting.entry(job.base).or_default().push(task);
                }
                // One that was cancelled before it began is listed no more.
                Some(_) if job.start.is_none() => {}
                Some(task) => text.push_str(&row(job, &task.to_string())),
                None => text.push_str(&row(job, "N/A")),
            }
        }
        for (base, tasks) in waiting {
            let tasks: Vec<String> = tasks.iter().map(u32::to_string).collect();
            let most = self.at_once.get(&base).copied().unwrap_or(usize::MAX);
            let tail = if most == usize::MAX { String::new() } else { format!("%{most}") };
            if let Some(job) = jobs.iter().find(|job| job.base == base && job.start.is_none()) {
                text.push_str(&row(job, &format!("{}{tail}", tasks.join(","))));
            }
        }
        text
    }

    fn show(&self, id: &str) -> ProgramAnswer {
        let (base, task) = match id.split_once('_') {
            Some((base, task)) => (base, task.parse().ok()),
            None => (id, None),
        };
        let is_meant = |job: &&SimJob| {
            job.id.to_string() == base && task.is_none()
                || job.base.to_string() == base && (task.is_none() || job.task == task)
        };
        let text: String = self.jobs.iter().filter(is_meant).map(shown).collect();
        if text.is_empty() {
            return refused("slurm_load_jobs error: Invalid job id specified");
        }
        said(&text)
    }
}

/// A cluster whose programs are played, and whose nodes see the disk of this machine.
pub(crate) trait Played: Send + Sync {
    /// What a program says.
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence>;
}

impl Played for SimCluster {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence> {
        self.answer(call, &*self.clock)
    }
}

/// What opens it, whatever cluster is wanted.
pub(crate) struct PlayedClients<P>(pub(crate) Arc<P>);

impl<P: Played + 'static> Clients for PlayedClients<P> {
    fn open<'a>(&self, _: &Cluster, _: &'a Effects) -> Box<dyn Client + 'a> {
        Box::new(PlayedClient(Arc::clone(&self.0)))
    }
}

struct PlayedClient<P>(Arc<P>);

impl<P: Played> Client for PlayedClient<P> {
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence> {
        self.0.run(call)
    }

    fn disk(&self) -> Box<dyn ClusterDisk + '_> {
        Box::new(HereDisk)
    }

    fn at_terminal(&self, words: &[String]) -> Vec<String> {
        words.to_vec()
    }

    fn is_here(&self) -> bool {
        true
    }
}
