//! Hours of those who wait in line: ten persons, three targets that come and go, waiting processes that
//! are killed, and a machine that is restarted. Nobody starves, nobody gets two, and the dead keep
//! nobody waiting.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::Unreached;
use tpu_lab::sim::Event;
use tpu_ops::act::kill;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::front::clean;
use tpu_ops::waiting::queue::keep;
use tpu_system::sys::random::Random as _;

use super::actors::{self, USERS};
use super::run::{Outcome, Stage, Story, new_world, outcome};
use super::tpu::{call, target};
use super::world::{Faults, Pid, Purpose, World};

const PERSONS: usize = 10;
const TARGETS: usize = 3;

/// How long a job takes at most, with what is around it.
const JOB_S: u64 = 45 * 60;
/// A place whose process is killed is told from one that a restart has ended only after so long.
const TOLD_APART_S: u64 = 300;

/// One who waits, by the number of the lineage.
#[derive(Clone, Debug, Default)]
struct Waiter {
    pid: Option<Pid>,
    /// When it had its place, and its rank among those of the same instant.
    joined: Option<(Timestamp, usize)>,
    started: Option<Timestamp>,
    killed: bool,
    restarted: bool,
    /// The launches that were made for it.
    launches: BTreeSet<String>,
}

type Book = Arc<Mutex<BTreeMap<u32, Waiter>>>;

/// What came of those hours.
#[derive(Debug)]
pub(super) struct Day {
    pub(super) outcome: Outcome,
    /// How many got a target.
    pub(super) started: usize,
    /// How many of them after a restart of the machine had ended their process.
    pub(super) carried_on: usize,
    /// How many were killed while they waited.
    pub(super) killed: usize,
    /// The longest wait, in seconds.
    pub(super) longest_s: u64,
    /// By how many who came later somebody was overtaken, at most.
    pub(super) overtaken: usize,
    /// What must not be, in words.
    pub(super) wrong: Vec<String>,
}

/// Plays so many hours of a seed.
pub(super) fn play(seed: u64, hours: u64) -> Day {
    let length = Duration::from_secs(hours * 3_600);
    let story = Story {
        seed,
        hosts: 1,
        targets: TARGETS,
        chaos: length,
        faults: Faults { monitor: 5, ..Faults::default() },
        print: false,
        engine: None,
        has_queues: false,
        has_others: false,
    };
    let world = new_world(&story);
    {
        let mut state = world.state();
        state.most_steps = u64::MAX;
        state.lazy = Duration::from_secs(40);
        state.habits.says_ms = (300_000, 600_000);
        state.habits.keeps_s = 1.0;
        state.habits.mistake = 0;
    }
    let book = Book::default();
    let mut stage = Stage::new(&world);
    stage.actor(|world| actors::keeper(world, 0));
    for person in 0..PERSONS {
        let book = Arc::clone(&book);
        stage.actor(move |world| wait_in_line(world, person, &book));
    }
    for index in 0..TARGETS {
        stage.actor(move |world| come_and_go(world, index));
    }
    stage.actor(tidy);
    let told = Arc::clone(&book);
    stage.actor(move |world| misfortune(world, &told));
    let seen = Arc::clone(&book);
    stage.actor(move |world| {
        loop {
            actors::wait(world, Duration::from_secs(60));
            look(world, &seen);
        }
    });
    stage.actor(move |world| {
        actors::wait(world, length);
        world.state().over = true;
    });
    stage.play();
    look(&world, &book);
    sum_up(&world, &book)
}

/// A person wants a target, gets one or loses the wish, does something else, and comes again.
fn wait_in_line(world: &Arc<World>, person: usize, book: &Book) {
    loop {
        let nap = world.state().between(60_000, 2_400_000);
        actors::wait(world, nap);
        let number = {
            let mut state = world.state();
            let number = u32::try_from(state.observer.lineages.len()).unwrap_or(0) + 1;
            let needs = state.between(900_000, JOB_S * 1_000 - 600_000).as_secs_f64();
            let lineage = state.observer.lineages.entry(number).or_default();
            (lineage.rule, lineage.needs) = ("pass".to_owned(), needs);
            number
        };
        let user = UserName::from(USERS.get(person % USERS.len()).copied().unwrap_or("alice"));
        let any_of = AnyOf { types: vec!["v2-8".to_owned()], ..AnyOf::default() };
        let spec = JobSpec {
            configs: vec![("config.lineage".to_owned(), number.to_string())],
            rules: Some("pass".to_owned()),
            ..JobSpec::on(TargetRequest::Any(any_of))
        };
        let request = RunRequest::new(user, spec);
        let pid = call(world, &actors::start(0, Purpose::Run), move |ctx| {
            drop(keep::wait(ctx, &request, &actors::Looks::every(150)));
        });
        entries(book).entry(number).or_default().pid = Some(pid);
        loop {
            actors::wait(world, Duration::from_secs(30));
            let alive = world.state().is_alive(pid);
            let waiter = entries(book).get(&number).cloned().unwrap_or_default();
            // Who was ended by a restart trusts that somebody waits on.
            if waiter.killed || waiter.started.is_some() || !alive && !waiter.restarted {
                break;
            }
        }
    }
}

fn entries(book: &Book) -> std::sync::MutexGuard<'_, BTreeMap<u32, Waiter>> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A target is taken away now and then, and comes back.
fn come_and_go(world: &Arc<World>, index: usize) {
    loop {
        let stays = world.state().between(2_400_000, 14_400_000);
        actors::wait(world, stays);
        let name = target(index);
        actors::preempt(world, &name);
        let away = world.state().between(60_000, 3_600_000);
        actors::wait(world, away);
        let (zone, accelerator, pricing) = (None, None, None);
        drop(world.fleet.pull(&Event::Ready { target: name, zone, accelerator, pricing }));
    }
}

/// Somebody kills what hangs after its target was taken away, and clears away what is over.
fn tidy(world: &Arc<World>) {
    let mut done: BTreeSet<JobId> = BTreeSet::new();
    loop {
        actors::wait(world, Duration::from_secs(600));
        let Some(data) = actors::data(world) else { continue };
        let failed = data.jobs().filter(|job| matches!(job.status, Status::Error(_)));
        let failed: Vec<JobId> = failed.map(Job::id).collect();
        for job in failed.into_iter().filter(|job| done.insert(job.clone())) {
            let _pid = call(world, &actors::start(0, Purpose::Other), move |ctx| {
                drop(kill::kill_one(ctx, &job, Unreached::Refuse));
            });
        }
        for user in USERS {
            let _pid = call(world, &actors::start(0, Purpose::Clean), move |ctx| {
                let all = clean::Extent::of(clean::Ends::All);
                drop(clean::clean(ctx, &UserName::from(user), all));
            });
        }
    }
}

/// Waiting processes are killed; three times a day the machine is restarted.
fn misfortune(world: &Arc<World>, book: &Book) {
    for round in 1.. {
        for _ in 0..6 {
            let nap = world.state().between(600_000, 3_000_000);
            actors::wait(world, nap);
            let waiting: Vec<(u32, Pid)> = {
                let book = entries(book);
                let those = book.iter().filter(|(_, w)| w.joined.is_some() && w.started.is_none());
                those.filter_map(|(number, waiter)| Some((*number, waiter.pid?))).collect()
            };
            let mut state = world.state();
            let alive: Vec<_> =
                waiting.into_iter().filter(|(_, pid)| state.is_alive(*pid)).collect();
            let choice = state.rng.below(alive.len().max(1) as u64);
            let Some((number, pid)) = usize::try_from(choice).ok().and_then(|at| alive.get(at))
            else {
                continue;
            };
            // It may have been served a moment ago.
            entries(book).entry(*number).or_default().killed = true;
            state.kill(*pid, "SIGKILL");
        }
        actors::wait(world, Duration::from_secs(TOLD_APART_S));
        world.state().note(None, &format!("restart {round}"));
        let mut waited_for: Vec<u32> = Vec::new();
        for (number, waiter) in entries(book).iter() {
            let is_alive = waiter.pid.is_some_and(|pid| world.state().is_alive(pid));
            if is_alive && waiter.joined.is_some() {
                waited_for.push(*number);
            }
        }
        for number in waited_for {
            entries(book).entry(number).or_default().restarted = true;
        }
        actors::reboot(world, 0);
    }
}

/// Writes down who has a place and who has got a target.
fn look(world: &Arc<World>, book: &Book) {
    let Some(data) = actors::data(world) else { return };
    let mut book = entries(book);
    for (rank, entry) in data.queues().entries.iter().enumerate() {
        let number = entry.spec.configs.iter().find_map(|(_, value)| value.parse::<u32>().ok());
        let waiter = book.entry(number.unwrap_or(0)).or_default();
        waiter.joined.get_or_insert((entry.since, rank));
    }
    // Who got a target that went at once may have been cleared away since the last look.
    let archived = archived(world);
    for job in data.jobs().chain(&archived) {
        let (Some(number), Some(launch)) = (actors::lineage_of(job), &job.launch) else { continue };
        let waiter = book.entry(number).or_default();
        waiter.launches.insert(launch.token.as_str().to_owned());
        waiter.started.get_or_insert(launch.at);
    }
}

/// The newest records of the archive: more than are cleared away between two looks.
fn archived(world: &World) -> Vec<Job> {
    let bytes = world.disk.bytes(&super::archive()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().rev().take(20).filter_map(|line| serde_json::from_str(line).ok());
    let job = |line: Value| {
        let user = UserName::from(line["user"].as_str()?);
        Job::from_value(&line["job"], &user).ok()
    };
    lines.filter_map(job).collect()
}

fn sum_up(world: &Arc<World>, book: &Book) -> Day {
    let book = entries(book).clone();
    let now = super::world::State::begin().plus(world.state().now);
    let mut wrong = Vec::new();
    let mut longest_s = 0;
    let mut overtaken = 0;
    for (number, waiter) in &book {
        let Some(joined) = waiter.joined else { continue };
        let until = waiter.started.unwrap_or(now);
        let waited = until.seconds_since(joined.0);
        if waiter.launches.len() > 1 {
            wrong.push(format!("{number} got more than one: {waiter:?}"));
        }
        if waiter.killed {
            continue;
        }
        longest_s = longest_s.max(waited);
        let later = book.values().filter(|other| {
            other.joined.is_some_and(|other| other > joined)
                && other.started.is_some_and(|at| at < until)
        });
        // Who is restarted is passed over until a daemon is there.
        if !waiter.restarted {
            overtaken = overtaken.max(later.count());
        }
    }
    let killed = book.values().filter(|waiter| waiter.killed);
    let ghosts = actors::data(world).map_or(0, |data| {
        let kept = data.queues().entries.iter().filter_map(|entry| entry.keeper.as_ref());
        kept.filter(|keeper| now.seconds_since(keeper.seen) > 3_600).count()
    });
    if ghosts > 0 {
        wrong.push(format!("{ghosts} ghosts in the line at the end"));
    }
    let started = || book.values().filter(|waiter| waiter.started.is_some());
    Day {
        outcome: outcome(world),
        started: started().count(),
        carried_on: started().filter(|waiter| waiter.restarted).count(),
        killed: killed.filter(|waiter| waiter.started.is_none()).count(),
        longest_s,
        overtaken,
        wrong,
    }
}
