//! Worlds in which persons submit jobs to queues, and change their minds about what waits. [`super::turns`] sees what
//! must never happen there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::capacity::Capacity;
use tpu_core::model::data::Data;
use tpu_core::model::entry::{After, AfterWhich, Priority, QueueEntry};
use tpu_core::model::ids::{JobId, QueueName, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::member::Array;
use tpu_core::model::queue::{Queue, QueuePolicy, QueueState};
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_core::model::sweep::Sweep;
use tpu_core::model::target::{LOCAL, Pricing, Registration};
use tpu_engine::runner::Unreached;
use tpu_lab::sim::Event;
use tpu_ops::Ctx;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::act::{kill, targets};
use tpu_ops::waiting::queue::edit::{self, QueueEdit};
use tpu_ops::waiting::queue::keep;
use tpu_ops::waiting::queue::pass;
use tpu_ops::waiting::queue::submit::{Submission, enter};
use tpu_system::sys::random::Random as _;

use super::actors::{self, USERS, lineage_of};
use super::observer::Health;
use super::tpu::{call, target};
use super::turns::{Asked, Turns, comes_back, is_open, lineages_of};
use super::world::{Pid, Purpose, World};

/// The queues of the world.
pub(crate) const QUEUES: [&str; 3] = ["default", "night", "lab"];

/// What persons submit.
pub(crate) struct Customs {
    /// So much at most.
    pub(crate) most: usize,
    /// What a job needs, in milliseconds of work.
    pub(crate) needs_ms: (u64, u64),
    /// The rules of all jobs, where they have the same; such jobs wait for no failure.
    pub(crate) rules: Option<&'static str>,
}

/// In a world in which much goes wrong.
const CUSTOMS: Customs = Customs { most: 18, needs_ms: (10_000, 60_000), rules: None };

/// A target that is free while somebody is ready for it is taken within so long: a daemon may have to begin first.
const TAKEN_WITHIN: Duration = Duration::from_secs(120);

/// What the data file of such a world has beside the rest.
pub(crate) fn set_up(data: &mut Data) {
    let night = Queue::new(QueueName::from("night"));
    let (policy, most) = (QueuePolicy::Fifo, Some(1));
    data.queues_mut().set(Queue { policy, max_parallel: most, ..night });
    let lab = Queue::new(QueueName::from("lab"));
    data.queues_mut().set(Queue { max_parallel: Some(2), ..lab });
    let capacity = Some(Capacity { jobs: Some(2), ..Capacity::default() });
    let registration = Registration { capacity, ..Registration::default() };
    data.registry_mut().register(TargetName::from(LOCAL), registration);
}

/// The world knows of queues from now on.
pub(crate) fn watch(world: &World) {
    let roots = tempfile::tempdir().expect("a directory for copies of code");
    // The disk for logs is there, and nobody has logged on it.
    std::fs::create_dir(roots.path().join("log")).expect("a directory for logs");
    let _kept = world.roots.set(roots);
    let mut state = world.state();
    let is_faulty = state.faults.disk + state.faults.tmux > 0;
    state.observer.turns = Some(Turns::new(is_faulty));
    state.most_steps *= 8;
    let (bytes, archive) = (world.disk.bytes(super::DATA.as_ref()), None);
    state.data_changed(None, bytes.as_deref(), archive);
}

/// Registers a target late.
pub(crate) fn register_late(world: &Arc<World>, index: usize) {
    let pause = world.state().between(10_000, 60_000);
    actors::wait(world, pause);
    let _pid = call(world, &actors::start(0, Purpose::Other), move |ctx| {
        let registration = registration(index);
        drop(targets::register(ctx, &target(index), &registration, false));
        look_after(ctx);
    });
}

/// What a target is registered as.
pub(crate) fn registration(index: usize) -> Registration {
    Registration {
        zone: Some(format!("zone-{}", index % 2)),
        accelerator: Some("v2-8".to_owned()),
        pricing: Pricing::Spot,
        ..Registration::default()
    }
}

/// What a command does behind its change.
fn look_after(ctx: &Ctx) {
    drop(pass::unless_watched(ctx, usize::MAX));
}

/// Persons at a machine submit and change their minds, until they are told that it is enough.
pub(crate) fn persons(world: &Arc<World>, host: usize) {
    let mut waits_here: Vec<Pid> = Vec::new();
    loop {
        let nap = world.state().between(1_000, 9_000);
        actors::wait(world, nap);
        if world.state().calm {
            return;
        }
        command(world, host, &mut waits_here);
    }
}

/// One thing that they do.
fn command(world: &Arc<World>, host: usize, waits_here: &mut Vec<Pid>) {
    let (choice, draw) = {
        let state = world.state();
        (state.rng.below(100), state.rng.below(u64::MAX))
    };
    let Some(data) = actors::data(world) else { return };
    let entries = &data.queues().entries;
    let of = |count: usize| usize::try_from(draw % count.max(1) as u64).unwrap_or(0);
    let one: Option<JobId> = entries.get(of(entries.len())).map(QueueEntry::id);
    let queue = QueueName::from(QUEUES.get(of(3)).copied().unwrap_or("default"));
    let edit = |change: Box<dyn FnOnce(&Ctx) + Send>| {
        let _pid = call(world, &actors::start(host, Purpose::Other), move |ctx| {
            change(ctx);
            look_after(ctx);
        });
    };
    let set = |edit_of: QueueEdit| {
        edit(Box::new(move |ctx| drop(edit::set(ctx, &queue, &edit_of))));
    };
    let usual = QueueEdit::default;
    match (choice, one) {
        (0..45, _) => submit(world, (host, &CUSTOMS), &data, draw),
        (45..50, Some(one)) => {
            edit(Box::new(move |ctx| drop(edit::hold(ctx, &[one], Some("not yet")))));
        }
        (50..60, _) => {
            let held = entries.iter().filter(|entry| entry.held.is_some()).map(QueueEntry::id);
            let held: Vec<JobId> = held.collect();
            edit(Box::new(move |ctx| drop(edit::unhold(ctx, &held))));
        }
        (60..63, Some(one)) => {
            let gone = entries.iter().filter(|entry| entry.id() == one).flat_map(lineages_of);
            let gone: Vec<u32> = gone.collect();
            if let Some(turns) = &mut world.state().observer.turns {
                turns.may_vanish.extend(gone);
            }
            edit(Box::new(move |ctx| drop(edit::dequeue(ctx, &[one]))));
        }
        (63..70, Some(one)) => {
            let priority = Priority::parse(&(draw % 101).to_string()).unwrap_or_default();
            edit(Box::new(move |ctx| drop(edit::set_priority(ctx, &[one], priority))));
        }
        (70..74, Some(one)) => {
            edit(Box::new(move |ctx| drop(edit::move_to_front(ctx, &[one]))));
        }
        (74..78, _) => set(QueueEdit { state: Some(QueueState::Paused), ..usual() }),
        (78..86, _) => set(QueueEdit { state: Some(QueueState::Open), ..usual() }),
        (86..88, _) => set(QueueEdit { state: Some(QueueState::Draining), ..usual() }),
        (88..92, _) => {
            let most = u32::try_from(draw % 4).ok().filter(|most| *most > 0);
            set(QueueEdit { max_parallel: Some(most), ..usual() });
        }
        (92..94, _) => {
            let policy = if draw % 3 == 0 { QueuePolicy::Fifo } else { QueuePolicy::Backfill };
            set(QueueEdit { policy: Some(policy), ..usual() });
        }
        (94..97, _) => wait_here(world, host, waits_here),
        (97..100, _) => {
            if let Some(pid) = waits_here.pop() {
                world.state().kill(pid, "Ctrl-C");
            }
        }
        _ => edit(Box::new(|_| ())),
    }
}

/// New lineages, of which the programs need so much.
pub(crate) fn lineages(world: &World, count: usize, needs_ms: (u64, u64)) -> Vec<u32> {
    let mut state = world.state();
    let mut new = Vec::new();
    for _ in 0..count {
        let number = u32::try_from(state.observer.lineages.len()).unwrap_or(0) + 1;
        let needs = state.between(needs_ms.0, needs_ms.1).as_secs_f64();
        let lineage = state.observer.lineages.entry(number).or_default();
        (lineage.rule, lineage.needs) = ("pass".to_owned(), needs);
        new.push(number);
    }
    new
}

/// What the members of a submission are to do: each is a lineage of its own.
pub(crate) fn spec_of(
    lineages: &[u32],
    (target, rules, at_once): (TargetRequest, &str, Option<u32>),
) -> (JobSpec, Option<Sweep>) {
    let is_native = matches!(&target, TargetRequest::Named(name) if name == LOCAL);
    let spec = JobSpec {
        rules: Some(rules.to_owned()),
        command: is_native.then(|| vec!["./train".into()]),
        ..JobSpec::on(target)
    };
    let all: Vec<String> = lineages.iter().map(ToString::to_string).collect();
    let mut configs = vec![("config.lineage".to_owned(), all.join(","))];
    let Ok(sweep) = Sweep::take(&mut configs, false) else {
        return (JobSpec { configs, ..spec }, None);
    };
    let most = at_once.map(|most| format!("%{most}")).unwrap_or_default();
    let array = Array::parse(&format!("0-{}{most}", lineages.len().saturating_sub(1)));
    (JobSpec { array: array.ok(), ..spec }, Some(sweep))
}

/// Something that waits or has waited, or a job of any other kind, and of which lineages it is.
fn dependence(data: &Data, draw: u64) -> Option<(After, Vec<u32>)> {
    let which = AfterWhich::ALL[usize::try_from(draw / 7 % 3).unwrap_or(0)];
    let waiting = data.queues().entries.iter().map(|entry| (entry.id(), lineages_of(entry)));
    let records = data.jobs().filter_map(|job| Some((job.id(), vec![lineage_of(job)?])));
    let all: Vec<(JobId, Vec<u32>)> = waiting.chain(records).collect();
    let at = usize::try_from(draw.checked_rem(all.len() as u64)?).ok()?;
    let (job, lineages) = all.get(at).cloned()?;
    Some((After { which, job, member: None, met: None }, lineages))
}

/// Submits a job or a group.
pub(crate) fn submit(
    world: &Arc<World>,
    (host, customs): (usize, &Customs),
    data: &Data,
    draw: u64,
) {
    let known = world.state().observer.turns.as_ref().map_or(0, Turns::len);
    if known >= customs.most {
        return;
    }
    let targets = world.state().targets as u64;
    let of = |step: u64, count: u64| draw / step % count;
    let on = usize::try_from(of(11, targets)).unwrap_or(0);
    let request = match of(13, 8) {
        0 | 1 => TargetRequest::Any(AnyOf { types: vec!["v2-8".to_owned()], ..AnyOf::default() }),
        2 => TargetRequest::Named(LOCAL.to_owned()),
        _ => TargetRequest::Named(target(on)),
    };
    let count = if of(17, 3) == 0 { 2 + usize::try_from(of(19, 3)).unwrap_or(0) } else { 1 };
    let members = lineages(world, count, customs.needs_ms);
    let at_once = (count > 1 && of(23, 3) > 0).then(|| 1 + u32::try_from(of(29, 2)).unwrap_or(0));
    let rules = customs.rules.unwrap_or(if of(31, 2) == 0 { "pass" } else { "pre" });
    let (spec, sweep) = spec_of(&members, (request, rules, at_once));
    let dependence = (of(37, 3) == 0).then(|| dependence(data, draw)).flatten();
    let is_for_failure = |after: &After| customs.rules.is_some() && after.which == AfterWhich::Not;
    let dependence = dependence.filter(|(after, _)| !is_for_failure(after));
    let queue = QueueName::from(QUEUES[usize::try_from(of(41, 3)).unwrap_or(0)]);
    let priority = if of(43, 3) == 0 { of(47, 101) } else { 50 };
    let how = Submission {
        queue: queue.clone(),
        priority: Priority::parse(&priority.to_string()).unwrap_or_default(),
        is_held: of(53, 12) == 0,
        after: dependence.iter().map(|(after, _)| after.clone()).collect(),
        is_kept: false,
        sweep,
        // Nothing is written into the directories of code.
        stages_late: true,
        ..Submission::default()
    };
    let after = dependence.map(|(after, lineages)| (after.which, lineages));
    let asked = Asked { queue, lineages: members, at_once, after: after.into_iter().collect() };
    if let Some(turns) = &mut world.state().observer.turns {
        turns.asks(asked);
    }
    let user = UserName::from(USERS[usize::try_from(of(59, 2)).unwrap_or(0)]);
    let request = RunRequest::new(user, spec);
    let _pid = call(world, &actors::start(host, Purpose::Run), move |ctx| {
        drop(enter(ctx, &request, &how));
        look_after(ctx);
    });
}

/// Waits at a terminal, in turn with everybody else.
fn wait_here(world: &Arc<World>, host: usize, waits_here: &mut Vec<Pid>) {
    let members = lineages(world, 1, CUSTOMS.needs_ms);
    if let Some(turns) = &mut world.state().observer.turns {
        turns.may_vanish.extend(&members);
        let (queue, after) = (QueueName::usual(), Vec::new());
        turns.asks(Asked { queue, lineages: members.clone(), at_once: None, after });
    }
    let any = AnyOf { types: vec!["v2-8".to_owned()], ..AnyOf::default() };
    let (spec, _) = spec_of(&members, (TargetRequest::Any(any), "pass", None));
    let request = RunRequest::new(UserName::from("bob"), spec);
    let pid = call(world, &actors::start(host, Purpose::Run), move |ctx| {
        drop(keep::wait(ctx, &request, &actors::Looks::every(20)));
    });
    waits_here.push(pid);
}

/// Lets everything begin, and gives back what was taken away; until nothing waits. What must never happen: a target is
/// free, and who is ready for it does not begin there.
pub(crate) struct Calm {
    free: Vec<Option<Duration>>,
    gone: Vec<Option<Duration>>,
    tidied: BTreeMap<JobId, u32>,
}

impl Calm {
    pub(crate) fn new(world: &World) -> Self {
        let count = world.state().targets;
        Self { free: vec![None; count], gone: vec![None; count], tidied: BTreeMap::new() }
    }

    /// Looks once; whether nothing waits.
    pub(crate) fn look(&mut self, world: &Arc<World>) -> Option<String> {
        world.state().observer.turns.as_ref()?;
        let data = actors::data(world)?;
        let held = data.queues().entries.iter().any(|entry| entry.held.is_some());
        let shut = data.queues().all().iter().any(|queue| queue.state != QueueState::Open);
        if held || shut {
            release(world, &data);
        }
        self.tidy(world, &data);
        for index in 0..self.free.len() {
            self.give_back(world, index);
            if let Some(text) = self.is_taken(world, index) {
                let hosts = world.state().hosts.len();
                (0..hosts).for_each(|host| actors::plan(world, host));
                world.state().violation(text);
            }
        }
        let state = world.state();
        let first = state.observer.turns.as_ref()?.waiting().into_iter().next()?;
        Some(format!("{first} waits"))
    }

    /// Somebody kills what has failed and may hang: it keeps its target.
    fn tidy(&mut self, world: &Arc<World>, data: &Data) {
        let may_hang = |job: &&Job| job.child.is_none() && is_open(job) && !comes_back(job);
        let hosts = world.state().hosts.len();
        for job in data.jobs().filter(may_hang) {
            let name = job.place.as_ref().and_then(|place| place.host.strip_prefix("host"));
            let host = name.and_then(|number| number.parse().ok()).filter(|host| *host < hosts);
            let (job, host) = (job.id(), host.unwrap_or(0));
            let tries = self.tidied.entry(job.clone()).or_default();
            *tries += 1;
            // First its machine may say how it is.
            if tries.is_multiple_of(20) {
                let _pid = call(world, &actors::start(host, Purpose::Other), move |ctx| {
                    drop(kill::kill_one(ctx, &job, Unreached::Refuse));
                });
            }
        }
    }

    /// A target that is away for long, and that nobody brings back, comes back by itself.
    fn give_back(&mut self, world: &World, index: usize) {
        let name = target(index);
        let is_away = ["PREEMPTED", "-"].contains(&world.word(&name).as_str());
        let now = world.state().now;
        let Some(gone) = self.gone.get_mut(index) else { return };
        let since = if is_away { Some(gone.unwrap_or(now)) } else { None };
        *gone = since;
        if since.is_some_and(|since| now.saturating_sub(since) > Duration::from_secs(240)) {
            let (zone, accelerator, pricing) = (None, None, None);
            drop(world.fleet.pull(&Event::Ready { target: name, zone, accelerator, pricing }));
        }
    }

    /// What is wrong where a target stays free although somebody is ready for it.
    fn is_taken(&mut self, world: &World, index: usize) -> Option<String> {
        let name = target(index);
        let is_ready = world.word(&name) == "READY";
        let state = world.state();
        let is_used =
            state.observer.live().any(|(_, p)| p.target == name && p.health != Health::Ended);
        let is_awake = state.now > state.still_until;
        let ready = state.observer.turns.as_ref().and_then(|turns| {
            let is_free = is_ready && !is_used && is_awake && !turns.is_held(&name);
            turns.ready_for(&name).filter(|_| is_free)
        });
        let now = state.now;
        let free = self.free.get_mut(index)?;
        *free = ready.is_some().then(|| free.unwrap_or(now));
        let (since, who) = free.zip(ready)?;
        (now.saturating_sub(since) > TAKEN_WITHIN)
            .then(|| format!("16: {name} is free since {since:?}, and {who} waits for it"))
    }
}

/// Nothing is held any more, and every queue starts jobs.
fn release(world: &Arc<World>, data: &Data) {
    let held = data.queues().entries.iter().filter(|entry| entry.held.is_some());
    let held: Vec<JobId> = held.map(QueueEntry::id).collect();
    let shut = data.queues().all().into_iter().filter(|queue| queue.state != QueueState::Open);
    let shut: Vec<QueueName> = shut.map(|queue| queue.name).collect();
    let _pid = call(world, &actors::start(0, Purpose::Other), move |ctx| {
        drop(edit::unhold(ctx, &held));
        for name in &shut {
            let open = QueueEdit { state: Some(QueueState::Open), ..QueueEdit::default() };
            drop(edit::set(ctx, name, &open));
        }
        look_after(ctx);
    });
}
