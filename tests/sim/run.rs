//! One seed: a world, what happens in it, and what must hold at its end.

use std::sync::Arc;
use std::time::Duration;

use generator::{Generator, Gn};

use tpu_core::model::data::Data;
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{TargetName, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::lineage;
use tpu_core::model::rules::Action;
use tpu_core::model::settings::SettingOrigin;
use tpu_system::sys::random::Random as _;

use super::actors::{self, USERS};
use super::cluster::{Cluster, Engine, TARGETS};
use super::observer::{Cause, Health, Program};
use super::promises::Promises;
use super::tpu::{fleet, new_fleet, target, to_its_end};
use super::turns::Turns;
use super::world::{Faults, Pid, TrueTime, Work, World};
use super::{CODE, DATA, engine, kubernetes, others, queues, slurm};
use crate::common::fakes::disk::FakeDisk;
use crate::slurm::sim::Liar;

/// Words of a coroutine's stack.
const STACK: usize = 96 * 1024;

/// What to play.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Story {
    pub(crate) seed: u64,
    pub(crate) hosts: usize,
    pub(crate) targets: usize,
    /// How long things go wrong.
    pub(crate) chaos: Duration,
    pub(crate) faults: Faults,
    pub(crate) print: bool,
    /// The cluster that is among the targets.
    pub(crate) engine: Option<Engine>,
    /// Whether persons submit jobs to queues.
    pub(crate) has_queues: bool,
    /// Whether another account fails to begin jobs, and programs end well although their targets are taken away.
    pub(crate) has_others: bool,
}

impl Story {
    /// The story of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let random = tpu_system::sys::random::SeededRandom::new(seed);
        let hosts = if random.below(4) == 0 { 2 } else { 1 };
        let faults = Faults {
            crash: [0, 200, 1_000, 4_000].get(pick(&random, 4)).copied().unwrap_or(0),
            freeze: [0, 100, 400].get(pick(&random, 3)).copied().unwrap_or(0),
            disk: [0, 0, 2_000, 10_000].get(pick(&random, 4)).copied().unwrap_or(0),
            tmux: [0, 0, 5_000, 30_000].get(pick(&random, 4)).copied().unwrap_or(0),
            monitor: [0, 500, 2_000].get(pick(&random, 3)).copied().unwrap_or(0),
            unopened: 0,
        };
        let chaos = Duration::from_secs(30 + random.below(100));
        Self {
            seed,
            hosts,
            targets: 2,
            chaos,
            faults,
            print: false,
            engine: None,
            has_queues: false,
            has_others: false,
        }
    }
}

impl Story {
    /// The story of a seed in a world with a cluster of Slurm.
    pub(crate) fn with_slurm(seed: u64) -> Self {
        Self::with(Engine::Slurm(None), seed)
    }

    /// The same with one whose lists, or whose memory, are wrong: each in its turn.
    pub(crate) fn with_liars(seed: u64) -> Self {
        let all = Liar::ALL;
        let liar = all.into_iter().cycle().nth(usize::try_from(seed % 5).unwrap_or(0));
        Self::with(Engine::Slurm(liar), seed)
    }

    /// The same with one of Kubernetes.
    pub(crate) fn with_kubernetes(seed: u64) -> Self {
        Self::with(Engine::Kubernetes, seed)
    }

    fn with(engine: Engine, seed: u64) -> Self {
        let story = Self::of(seed);
        // What a launcher does by itself, a submission waits for: there is time for both.
        Self { engine: Some(engine), chaos: story.chaos * 2, ..story }
    }

    /// The story of a seed in a world with queues.
    pub(crate) fn with_queues(seed: u64) -> Self {
        let story = Self::of(seed);
        Self { has_queues: true, targets: 4, chaos: story.chaos * 3, ..story }
    }
}

impl Story {
    /// The story of a seed in a world with another account.
    pub(crate) fn with_others(seed: u64) -> Self {
        Self { has_others: true, ..Self::of(seed) }
    }
}

fn pick(random: &dyn tpu_system::sys::random::Random, count: u64) -> usize {
    usize::try_from(random.below(count)).unwrap_or(0)
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What must never happen and has.
    pub(crate) broken: Option<String>,
    pub(crate) trace: Vec<String>,
    pub(crate) steps: u64,
    pub(crate) digest: u64,
}

/// A coroutine; `None` for those that are no process.
struct Task {
    pid: Option<Pid>,
    wake: Duration,
    generator: Generator<'static, (), ()>,
}

/// The world of a story, with its data file and its fleet.
pub(crate) fn new_world(story: &Story) -> Arc<World> {
    let time = TrueTime::default();
    let disk = Arc::new(FakeDisk::new("/lab".as_ref()));
    let cloud_disk = Arc::new(FakeDisk::new("/cloud".as_ref()));
    let clock = Arc::new(time.clone());
    let first = new_fleet(&cloud_disk, clock.clone(), (story.targets, 2, story.seed));
    drop(first.look().expect("a new fleet begins"));
    let mut data = Data::empty();
    for user in USERS {
        let name = UserName::from(user);
        data.add_user(&name);
        if let Some(user) = data.user_mut(&name) {
            user.set_dir(1, CODE.to_owned());
            // Its programs are told where they begin by `--config.load_from`.
            let set = user.settings.set("arguments", "config", &SettingOrigin::BuiltIn);
            set.expect("config is a style");
        }
    }
    // In a world with queues the last one is registered later.
    for index in 0..story.targets - usize::from(story.has_queues) {
        let name = TargetName::new(target(index));
        data.registry_mut().register(name, queues::registration(index));
    }
    if story.has_queues {
        queues::set_up(&mut data);
    }
    let site: Option<Arc<dyn Cluster>> = story.engine.map(|engine| match engine {
        Engine::Slurm(liar) => Arc::new(slurm::Site::new(&time, liar)) as _,
        Engine::Kubernetes => Arc::new(kubernetes::Site::new(&time)) as _,
    });
    if let Some(site) = &site {
        for name in TARGETS {
            data.registry_mut().register(TargetName::from(name), site.registration(name));
        }
    }
    disk.put(DATA.as_ref(), &data.to_bytes(), 0o660, (1000, 1000));
    let strings = fleet(&cloud_disk, clock);
    let world = World::new(story.seed, story.hosts, &time, (disk, cloud_disk, strings));
    if let Some(site) = site {
        drop(world.site.set(site));
        // Copies of code lie on this machine before they go to a cluster.
        let roots = tempfile::tempdir().expect("a directory for copies of code");
        drop((story.engine == Some(Engine::Kubernetes)).then(|| world.roots.set(roots)));
    }
    {
        let mut state = world.state();
        state.faults = story.faults;
        state.targets = story.targets;
        state.print = story.print;
        state.habits.ends_well = if story.has_others { 400_000 } else { 0 };
    }
    if story.has_queues {
        queues::watch(&world);
    }
    world
}

/// Plays a story.
pub(crate) fn play(story: &Story) -> Outcome {
    let world = new_world(story);
    let mut stage = Stage::new(&world);
    for host in 0..story.hosts {
        stage.actor(move |world| actors::keeper(world, host));
        stage.actor(move |world| actors::persons(world, host));
    }
    stage.actor(actors::fate);
    if story.has_others {
        stage.actor(|world| others::another_account(world, 0));
    }
    if let Some(site) = world.site.get() {
        let (programs, fate) = (Arc::clone(site), Arc::clone(site));
        stage.actor(move |world| engine::nodes(world, &*programs));
        stage.actor(move |world| engine::fate(world, &*fate));
        stage.actor(|world| (0..3).for_each(|on| engine::run(world, 0, on, "pre", 60.0)));
    }
    let targets = story.targets;
    if story.has_queues {
        for host in 0..story.hosts {
            stage.actor(move |world| queues::persons(world, host));
        }
        stage.actor(move |world| queues::register_late(world, targets - 1));
    }
    stage.actor(move |world| {
        for on in 0..targets.min(2) {
            actors::run(world, 0, on, "pre", 60.0);
        }
    });
    let chaos = story.chaos;
    stage.actor(move |world| {
        actors::wait(world, chaos);
        actors::calm(world);
        settle(world);
    });
    stage.play();
    outcome(&world)
}

/// What has come of it.
pub(crate) fn outcome(world: &World) -> Outcome {
    let mut state = world.state();
    Outcome {
        broken: state.broken.take(),
        trace: state.trace.drain(..).collect(),
        steps: state.steps,
        digest: state.digest,
    }
}

/// Waits until every lineage is where it should be; that this takes too long is what must never happen.
fn settle(world: &Arc<World>) {
    let is_tried_again = actors::data(world).is_some_and(|data| data.jobs().any(is_tried_again));
    let patience = {
        let state = world.state();
        let waiting = state.observer.turns.as_ref().map_or(0, Turns::len) as u64;
        // A clock that was an hour ahead has left marks that are an hour ahead.
        let limit = if state.jumped { 6_000 } else { 2_400 } + 300 * waiting;
        // The longest pause between two tries, once somebody has typed `tpu ack` in the first one.
        let limit = if is_tried_again { limit + 4 * 3_600 } else { limit };
        state.now + Duration::from_secs(limit)
    };
    let mut calm = queues::Calm::new(world);
    let hosts = world.state().hosts.len();
    let promises: Vec<Promises> = (0..hosts).map(|_| Promises::default()).collect();
    loop {
        actors::wait(world, Duration::from_secs(20));
        actors::log_in(world);
        let open = calm.look(world).or_else(|| unsettled(world));
        // Who stands still since the chaos can keep no promise.
        let is_awake = {
            let state = world.state();
            state.now > state.still_until
        };
        if open.is_none() && is_awake {
            // Where nothing is left to be done, nothing is announced.
            for (host, promises) in promises.iter().enumerate() {
                promises.read(world, host);
            }
            if promises.iter().all(Promises::are_kept) {
                break;
            }
        }
        let open = open.unwrap_or_else(|| "something is announced".to_owned());
        if world.state().now > patience {
            let hosts = world.state().hosts.len();
            (0..hosts).for_each(|host| actors::plan(world, host));
            world.state().violation(format!("9: {open}"));
            return;
        }
    }
    world.state().over = true;
}

/// Whether a job has been brought back since its quick tries were used up.
fn is_tried_again(job: &Job) -> bool {
    job.recovery.as_ref().is_some_and(|recovery| {
        recovery.patient_since.is_some() && recovery.last_action_at > recovery.patient_since
    })
}

/// A lineage that is not where it should be.
fn unsettled(world: &Arc<World>) -> Option<String> {
    let Some(data) = actors::data(world) else { return Some("the data file is gone".to_owned()) };
    for user in data.users() {
        for lineage in lineage::lineages(user) {
            let Some(leaf) = lineage.leaf().and_then(|leaf| user.job(leaf)) else { continue };
            if let Some(why) = open(world, &data, leaf) {
                return Some(format!("{} {}: {why}", leaf.id(), leaf.status));
            }
        }
    }
    world.site.get().and_then(|site| site.forgotten(world))
}

/// Why a leaf cannot stay as it is.
fn open(world: &World, data: &Data, leaf: &Job) -> Option<String> {
    let number = actors::lineage_of(leaf)?;
    let state = world.state();
    let lineage = state.observer.lineages.get(&number)?;
    let token = leaf.launch.as_ref().map(|launch| launch.token.as_str().to_owned());
    let own = state.observer.programs.iter().find(|p| Some(&p.token) == token.as_ref());
    let is_working = own.is_some_and(|program| program.health == Health::Working);
    let stopped = leaf.recovery.as_ref().is_some_and(|recovery| recovery.stopped.is_some());
    let name = leaf.tpu.as_str();
    let is_shared = leaf.engine.is_some();
    let on_it = |p: &Program| !is_shared && p.target == name && p.lineage != number;
    let is_taken = state.observer.live().any(|(_, program)| on_it(program));
    if is_taken && !leaf.is_being_killed() {
        // It waits for whoever else is there, also with what somebody has begun and died of: that is completed then.
        return None;
    }
    // From one machine nobody can tell whether a program on another one holds the target.
    let is_elsewhere =
        |other: &Job| other.place.as_ref().map(|p| &p.host) != leaf.place.as_ref().map(|p| &p.host);
    let blocked = !is_shared
        && data.jobs().any(|other| {
            other.tpu == leaf.tpu
                && other.child.is_none()
                && is_elsewhere(other)
                && !other.status.is_final()
                && !other.never_began()
        });
    if blocked && leaf.intent.is_none() && !leaf.status.is_live() {
        return None;
    }
    if lineage.kill_asked {
        // A kill that was asked for and refused, or cut short before it was written down, changes nothing.
        return leaf.is_being_killed().then(|| "its kill is not completed".to_owned());
    }
    match &leaf.status {
        Status::Finished | Status::Killed(_) | Status::Resumed(_) | Status::Rerunned(_) => None,
        Status::Starting | Status::Running if is_shared => {
            let site = world.site.get()?;
            let is_there = token.is_some_and(|token| site.is_live(&token));
            (!is_there).then(|| "its engine has it not".to_owned())
        }
        Status::Unset | Status::Starting | Status::Running => {
            (!is_working).then(|| format!("its program is {:?}", own.map(|p| (p.health, p.cause))))
        }
        Status::Error(kind) => {
            let action = leaf.rules.action(*kind);
            let was_preempted = own.is_some_and(|p| p.cause == Some(Cause::Preempted));
            let wants = was_preempted && leaf.rules.action(ErrorKind::Preempted) != Action::Pass;
            // Without a stage directory there is nothing to resume; and where the record of an attempt before it was
            // taken out, nobody knows whether that has a checkpoint, and a person decides.
            let cannot = leaf.stage_dir.is_none() || is_shared && is_cut_off(data, leaf);
            if stopped || cannot {
                return None;
            }
            if action != Action::Pass {
                return Some(format!("its rule says {action}"));
            }
            if leaf.intent.is_some() {
                return Some("something was begun with it".to_owned());
            }
            wants.then(|| "it was preempted in truth".to_owned())
        }
    }
}

/// Whether the record of an attempt before this one is gone.
fn is_cut_off(data: &Data, leaf: &Job) -> bool {
    let mut father = leaf.father;
    while let Some(number) = father {
        let before = data.users().iter().find(|user| user.name == leaf.user);
        let Some(job) = before.and_then(|user| user.job(number)) else { return true };
        father = job.father;
    }
    false
}

/// Runs coroutines, one at a time.
pub(crate) struct Stage {
    world: Arc<World>,
    tasks: Vec<Task>,
}

impl Stage {
    pub(crate) fn new(world: &Arc<World>) -> Self {
        Self { world: Arc::clone(world), tasks: Vec::new() }
    }

    /// Adds somebody who is no process.
    pub(crate) fn actor(&mut self, work: impl FnOnce(&Arc<World>) + Send + 'static) {
        let world = Arc::clone(&self.world);
        self.add(None, Box::new(move || work(&world)));
    }

    fn add(&mut self, pid: Option<Pid>, work: Work) {
        let world = Arc::clone(&self.world);
        let generator = Gn::new_opt(STACK, move || to_its_end(&world, work));
        let wake = self.world.state().now;
        self.tasks.push(Task { pid, wake, generator });
    }

    /// Until the end is reached; then everybody ends.
    pub(crate) fn play(&mut self) {
        loop {
            let begun = std::mem::take(&mut self.world.state().begun);
            for (pid, work) in begun {
                self.add(Some(pid), work);
            }
            if self.tasks.is_empty() {
                return;
            }
            let Some(index) = self.choose() else { continue };
            self.go_on(index);
        }
    }

    /// Who goes on: one of those who can, else time passes.
    fn choose(&mut self) -> Option<usize> {
        let mut state = self.world.state();
        if state.over {
            return Some(0);
        }
        let mut ready = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            // The dead go on as well, to their own end.
            let is_dead = task.pid.is_some_and(|pid| !state.is_alive(pid));
            if is_dead {
                return Some(index);
            }
            if task.wake <= state.now {
                ready.push(index);
            }
        }
        if ready.is_empty() {
            let next = self.tasks.iter().map(|task| task.wake).min()?;
            state.set_time(next);
            return None;
        }
        let chosen = usize::try_from(state.rng.below(ready.len() as u64)).ok()?;
        ready.get(chosen).copied()
    }

    fn go_on(&mut self, index: usize) {
        let Some(task) = self.tasks.get_mut(index) else { return };
        {
            let mut state = self.world.state();
            state.wake = state.now;
        }
        let _yielded: Option<()> = task.generator.resume();
        if task.generator.is_done() {
            drop(self.tasks.swap_remove(index));
        } else {
            task.wake = self.world.state().wake;
        }
    }
}
