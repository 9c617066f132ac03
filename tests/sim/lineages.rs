//! Lineages that are preempted before their first checkpoint, or whose attempts never began: each comes back
//! once for each blow, from the newest checkpoint there is, and is done in the end.
//!
//! Scripts work on targets that are taken away, commands on the machine itself; each has directories of its
//! own on the real disk. Between the claim and the window a `tpu` may be killed, or its tmux not answer.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::UserName;
use tpu_core::model::job::{Job, Status, Succession};
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_ops::act::launch::{self, RunRequest};
use tpu_system::sys::random::Random as _;

use super::actors::{self, USERS};
use super::observer::{Cause, Health};
use super::promises::Promises;
use super::run::{Outcome, Stage, Story, new_world, outcome};
use super::tpu::{call, target};
use super::world::{Faults, Purpose, World};

/// Lineages on targets of their own, and as many commands on the machine itself.
const TARGETS: usize = 6;

/// Lineages of one world that is full.
pub(crate) const EACH: usize = 2 * TARGETS;

/// A program keeps its work so often, and needs so much of it, in seconds.
const KEEPS_S: f64 = 40.0;
const NEEDS_S: f64 = 150.0;

/// All lineages are done by then.
const PATIENCE: Duration = Duration::from_secs(3 * 3_600);

/// What happens to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    /// Before it has kept anything.
    Early,
    /// Once it has.
    Late,
}

/// What came of one world.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) outcome: Outcome,
    pub(crate) lineages: usize,
    /// Attempts that were struck before their first checkpoint, and later.
    pub(crate) early: usize,
    pub(crate) late: usize,
    /// Records of attempts that never began.
    pub(crate) never_began: usize,
    /// Attempts that began from nothing after another one, and from a checkpoint.
    pub(crate) from_nothing: usize,
    pub(crate) from_checkpoint: usize,
    /// The longest time from a preemption whose script lived on to the record of it.
    pub(crate) seen_after: Duration,
}

/// What is done to each lineage, by its number, and how far that has come.
type Blows = Arc<Mutex<BTreeMap<u32, (Vec<Blow>, usize)>>>;

/// Plays a world of so many lineages. `unopened`: of a million windows, so many are not opened.
pub(crate) fn play(seed: u64, unopened: u64, count: usize) -> Told {
    let place = tempfile::tempdir().expect("a directory for logs");
    let faults = Faults { unopened, ..Faults::default() };
    let story = Story {
        seed,
        hosts: 1,
        targets: TARGETS,
        chaos: PATIENCE,
        faults,
        print: false,
        engine: None,
        has_queues: false,
        has_others: false,
    };
    let world = new_world(&story);
    {
        let mut state = world.state();
        state.most_steps = 3_000_000;
        state.habits.keeps_s = KEEPS_S;
        state.habits.mistake = 0;
        state.logs = Some(place.path().to_owned());
        // Nobody adds to what happens here.
        state.calm = true;
    }
    let blows = Blows::default();
    let seen_after = Arc::new(Mutex::new(Duration::ZERO));
    let mut stage = Stage::new(&world);
    stage.actor(|world| actors::keeper(world, 0));
    let told = Arc::clone(&blows);
    stage.actor(move |world| begin(world, &told, count));
    let told = (Arc::clone(&blows), Arc::clone(&seen_after));
    stage.actor(move |world| strike(world, &told.0, &told.1));
    stage.actor(person);
    stage.actor(read_the_plan);
    stage.actor(move |world| end(world, &blows, count));
    stage.play();
    sum_up(&world, *seen_after.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Starts every lineage; one whose first window does not open is started again by its person.
fn begin(world: &Arc<World>, blows: &Blows, count: usize) {
    for index in 0..count {
        let is_native = index >= TARGETS;
        let (number, draw) = {
            let mut state = world.state();
            let number = u32::try_from(state.observer.lineages.len()).unwrap_or(0) + 1;
            let lineage = state.observer.lineages.entry(number).or_default();
            lineage.needs = NEEDS_S;
            (number, state.rng.below(64))
        };
        let plan: Vec<Blow> = match draw % 4 {
            0 => vec![Blow::Early],
            1 => vec![Blow::Early, Blow::Late],
            2 => vec![Blow::Late, Blow::Early],
            // A command is struck by failures, and each blow may fall within the first minute of an attempt:
            // a third in a row would rightly end its lineage.
            _ if is_native => vec![Blow::Early, Blow::Early],
            _ => vec![Blow::Early, Blow::Early, Blow::Late],
        };
        blows.lock().unwrap_or_else(PoisonError::into_inner).insert(number, (plan, 0));
        // Half of them leave it to a person to go on after a window that did not open.
        let rule = match (is_native, draw % 8 < 4) {
            (false, true) => "preempted:reapply,grpc:resume,launch:resume",
            (false, false) => "pre",
            (true, true) => "grpc:resume,launch:resume",
            (true, false) => "grpc:resume",
        };
        let on = if is_native { "local".to_owned() } else { target(index) };
        let spec = JobSpec {
            configs: vec![("config.lineage".to_owned(), number.to_string())],
            rules: Some(rule.to_owned()),
            command: is_native.then(|| vec!["./train".into()]),
            ..JobSpec::on(TargetRequest::Named(on))
        };
        let user = UserName::from(USERS.get(index % 2).copied().unwrap_or("alice"));
        let request = RunRequest::new(user, spec);
        let _pid = call(world, &actors::start(0, Purpose::Run), move |ctx| {
            drop(launch::launch(ctx, &request));
        });
        let pause = world.state().between(500, 4_000);
        actors::wait(world, pause);
    }
}

/// Strikes attempts as is planned for each, and sees how long it takes until that is written down.
fn strike(world: &Arc<World>, blows: &Blows, seen_after: &Mutex<Duration>) {
    let mut since: BTreeMap<usize, Duration> = BTreeMap::new();
    let mut hung: BTreeMap<String, Duration> = BTreeMap::new();
    loop {
        actors::wait(world, Duration::from_secs(1));
        let working: Vec<(usize, u32, String, bool)> = {
            let state = world.state();
            let live = state.observer.live().filter(|(_, p)| p.health == Health::Working);
            live.map(|(n, p)| (n, p.lineage, p.target.clone(), p.kept)).collect()
        };
        for (number, lineage, target, has_kept) in working {
            let now = world.state().now;
            let age = now.saturating_sub(*since.entry(number).or_insert(now));
            let mut blows = blows.lock().unwrap_or_else(PoisonError::into_inner);
            let Some((plan, done)) = blows.get_mut(&lineage) else { continue };
            let is_time = match plan.get(*done) {
                Some(Blow::Early) => age > Duration::from_secs(2 + u64::from(lineage) * 7 % 25),
                Some(Blow::Late) => has_kept,
                None => false,
            };
            if !is_time {
                continue;
            }
            // What kept its work before it was struck was struck late.
            if has_kept && let Some(blow) = plan.get_mut(*done) {
                *blow = Blow::Late;
            }
            *done += 1;
            drop(blows);
            if target == "local" {
                let words = "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to \
                             all addresses; last error: UNKNOWN: Socket closed; grpc_status:14\n";
                world.state().fail(number, Cause::Grpc, words, 1);
            } else {
                actors::preempt(world, &target);
                let state = world.state();
                let program = state.observer.programs.get(number).cloned();
                drop(state);
                if let Some(program) = program.filter(|program| program.last_words.is_empty()) {
                    hung.insert(program.token, now);
                }
            }
        }
        let Some(data) = actors::data(world) else { continue };
        hung.retain(|token, struck| {
            let of = |job: &&Job| job.launch.as_ref().is_some_and(|l| l.token.as_str() == token);
            let is_known = data.jobs().find(of).is_none_or(|job| !job.status.is_live());
            if is_known {
                let mut longest = seen_after.lock().unwrap_or_else(PoisonError::into_inner);
                *longest = (*longest).max(world.state().now.saturating_sub(*struck));
            }
            !is_known
        });
    }
}

/// Looks in from time to time. A launch that came to nothing, and that no rule answers, is asked for again:
/// by the same command that it came from, if it came from one.
fn person(world: &Arc<World>) {
    let mut seen: Vec<String> = Vec::new();
    loop {
        let nap = world.state().between(20_000, 50_000);
        actors::wait(world, nap);
        let Some(data) = actors::data(world) else { continue };
        let failed: Vec<&Job> = data
            .jobs()
            .filter(|job| job.child.is_none() && job.intent.is_none())
            .filter(|job| job.status == Status::Error(ErrorKind::Launch))
            .filter(|job| {
                job.rules.action(ErrorKind::Launch) == tpu_core::model::rules::Action::Pass
            })
            .collect();
        let names: Vec<String> = failed.iter().map(|job| job.id().to_string()).collect();
        for job in failed.iter().filter(|job| seen.contains(&job.id().to_string())) {
            let window = job.father.unwrap_or(job.windows_id);
            let id = tpu_core::model::ids::JobId::new(job.user.clone(), window);
            actors::again(world, 0, id, Succession::Resume, None);
        }
        seen = names;
    }
}

fn read_the_plan(world: &Arc<World>) {
    let promises = Promises::default();
    loop {
        actors::wait(world, Duration::from_secs(10));
        promises.read(world, 0);
    }
}

/// Waits until every lineage is done.
fn end(world: &Arc<World>, blows: &Blows, count: usize) {
    loop {
        actors::wait(world, Duration::from_secs(10));
        let mut state = world.state();
        let lineages = &state.observer.lineages;
        if lineages.len() == count && lineages.values().all(|lineage| lineage.finished) {
            let blows = blows.lock().unwrap_or_else(PoisonError::into_inner);
            let wrong = lineages.iter().find_map(|(number, lineage)| {
                let (_, struck) = blows.get(number)?;
                let (ran, due) = (lineage.programs.len(), struck + 1);
                (ran != due)
                    .then(|| format!("11: lineage {number} ran {ran} times, {struck} blows"))
            });
            if let Some(wrong) = wrong {
                state.violation(wrong);
            }
            state.over = true;
            return;
        }
        if state.now > PATIENCE {
            let open: Vec<u32> =
                lineages.iter().filter(|(_, l)| !l.finished).map(|(number, _)| *number).collect();
            drop(state);
            actors::plan(world, 0);
            world.state().violation(format!("11: lineages {open:?} do not come back"));
            return;
        }
    }
}

fn sum_up(world: &World, seen_after: Duration) -> Told {
    let never_began = actors::data(world).map_or(0, |data| {
        let never = |job: &&Job| job.status.error() == Some(ErrorKind::Launch);
        data.jobs().filter(never).count()
    });
    let (lineages, begun, early, late) = {
        let state = world.state();
        let programs = &state.observer.programs;
        let struck = |kept: bool| {
            let struck = programs.iter().filter(|p| {
                matches!(p.cause, Some(Cause::Preempted | Cause::Grpc)) && p.kept == kept
            });
            struck.count()
        };
        let begun: Vec<bool> = state.observer.loaded.clone();
        (state.observer.lineages.len(), begun, struck(false), struck(true))
    };
    let from_checkpoint = begun.iter().filter(|loaded| **loaded).count();
    let from_nothing = begun.len().saturating_sub(from_checkpoint + lineages);
    Told {
        outcome: outcome(world),
        lineages,
        early,
        late,
        never_began,
        from_nothing,
        from_checkpoint,
        seen_after,
    }
}

impl Told {
    /// Of two worlds.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            lineages: self.lineages + other.lineages,
            early: self.early + other.early,
            late: self.late + other.late,
            never_began: self.never_began + other.never_began,
            from_nothing: self.from_nothing + other.from_nothing,
            from_checkpoint: self.from_checkpoint + other.from_checkpoint,
            seen_after: self.seen_after.max(other.seen_after),
            outcome: other.outcome,
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} lineages, all done: {} attempts struck before their first checkpoint and {} later, {} never \
             began; {} began again from nothing and {} from the newest checkpoint; a preemption without \
             a sign from its job was seen after {:.1} s at most",
            self.lineages,
            self.early,
            self.late,
            self.never_began,
            self.from_nothing,
            self.from_checkpoint,
            self.seen_after.as_secs_f64()
        )
    }
}

/// The newest log directory of a lineage with a checkpoint in it, in the order in which its attempts began.
pub(crate) fn newest(logs: &[std::path::PathBuf]) -> Option<&Path> {
    let has = |dir: &&std::path::PathBuf| {
        std::fs::read_dir(dir).is_ok_and(|mut entries| {
            entries.any(|entry| {
                entry.is_ok_and(|e| e.file_name().to_string_lossy().starts_with("checkpoint_"))
            })
        })
    };
    logs.iter().rev().find(has).map(std::path::PathBuf::as_path)
}
