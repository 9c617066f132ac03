//! Days of a lab with three queues and eight targets: jobs, groups, priorities and dependencies, targets that are taken
//! away and given back, and a daemon that is killed again and again between any two of its effects. Each job runs to
//! its end, in one attempt more than it was struck; what [`super::turns`] forbids does not happen.

use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::ids::UserName;
use tpu_lab::sim::Event;
use tpu_ops::front::clean::{self, Ends, Extent};
use tpu_system::sys::random::Random as _;

use super::actors::{self, USERS};
use super::observer::Cause;
use super::queues::{self, Calm, Customs};
use super::run::{Outcome, Stage, Story, new_world, outcome};
use super::tpu::{call, target};
use super::world::{Faults, Purpose, World};

const TARGETS: usize = 8;

/// Between two of the daemon's effects it dies with this chance, in millionths.
const DIES: u64 = 6_000;

/// Everything is done by then, and so much later for each job.
const PATIENCE: Duration = Duration::from_secs(4 * 3_600);
const PATIENCE_EACH: Duration = Duration::from_secs(600);

/// An attempt that never began, since the daemon died between its claim and its window, comes back as well.
const RULES: &str = "preempted:reapply,grpc:resume,ssh-lost:resume,launch:resume";

/// What came of it.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) outcome: Outcome,
    pub(crate) jobs: usize,
    pub(crate) attempts: usize,
    pub(crate) preempted: usize,
    pub(crate) kills: u32,
    hours: f64,
}

/// Plays a world of so many jobs at least, in which the daemon is killed at most so often.
pub(crate) fn play(seed: u64, jobs: usize, kills: u32) -> Told {
    let faults = Faults { monitor: DIES, ..Faults::default() };
    let patience = PATIENCE + PATIENCE_EACH * u32::try_from(jobs).unwrap_or(0);
    let story = Story {
        seed,
        hosts: 1,
        targets: TARGETS,
        chaos: patience,
        faults,
        print: false,
        engine: None,
        has_queues: true,
        has_others: false,
    };
    let world = new_world(&story);
    {
        let mut state = world.state();
        state.most_steps = u64::MAX;
        state.most_kills = kills;
        state.habits.says_ms = (20_000, 60_000);
        state.habits.mistake = 0;
        state.habits.keeps_s = 60.0;
    }
    let mut stage = Stage::new(&world);
    stage.actor(|world| actors::keeper(world, 0));
    stage.actor(move |world| submit(world, jobs));
    stage.actor(|world| queues::register_late(world, TARGETS - 1));
    stage.actor(tidy);
    for index in 0..TARGETS {
        stage.actor(move |world| come_and_go(world, index));
    }
    stage.actor(move |world| end(world, jobs, patience));
    stage.play();
    sum_up(&world)
}

/// Jobs are submitted faster than they are done.
fn submit(world: &Arc<World>, jobs: usize) {
    let customs = Customs { most: usize::MAX, needs_ms: (120_000, 900_000), rules: Some(RULES) };
    loop {
        let pause = world.state().between(2_000, 30_000);
        actors::wait(world, pause);
        if lineages(world) >= jobs {
            return;
        }
        let draw = world.state().rng.below(u64::MAX);
        if let Some(data) = actors::data(world) {
            queues::submit(world, (0, &customs), &data, draw);
        }
    }
}

/// How many wait or have waited; what names a target that is not there yet is refused.
fn lineages(world: &World) -> usize {
    world.state().observer.turns.as_ref().map_or(0, |turns| turns.submitted().len())
}

/// What is done is cleared away.
fn tidy(world: &Arc<World>) {
    loop {
        actors::wait(world, Duration::from_secs(300));
        for user in USERS {
            let _pid = call(world, &actors::start(0, Purpose::Clean), move |ctx| {
                let done = Extent { ends: Ends::Finished, ancestors_too: true, force: false };
                drop(clean::clear(ctx, &UserName::from(user), done));
            });
        }
    }
}

/// A target is taken away now and then; it comes back by itself, or by the rules of who was on it.
fn come_and_go(world: &Arc<World>, index: usize) {
    loop {
        let stays = world.state().between(300_000, 3_600_000);
        actors::wait(world, stays);
        let name = target(index);
        actors::preempt(world, &name);
        let away = world.state().between(60_000, 600_000);
        actors::wait(world, away);
        if world.word(&name) == "PREEMPTED" {
            let (zone, accelerator, pricing) = (None, None, None);
            drop(world.fleet.pull(&Event::Ready { target: name, zone, accelerator, pricing }));
        }
    }
}

/// Waits until every job is done.
fn end(world: &Arc<World>, jobs: usize, patience: Duration) {
    let mut calm = Calm::new(world);
    loop {
        actors::wait(world, Duration::from_secs(20));
        let waits = calm.look(world);
        let mut state = world.state();
        let submitted = state.observer.turns.as_ref().map(|turns| turns.submitted().clone());
        let submitted = submitted.unwrap_or_default();
        let is_done =
            |number: &u32| state.observer.lineages.get(number).is_some_and(|l| l.finished);
        let open = submitted.iter().find(|number| !is_done(number));
        let open = open.map(|number| format!("lineage {number} is not done"));
        let is_all = submitted.len() >= jobs;
        let open = waits.or(open).or_else(|| (!is_all).then(|| "more is to come".to_owned()));
        match open {
            None => {
                if let Some(wrong) = attempts(&state.observer) {
                    state.violation(wrong);
                }
                state.over = true;
                return;
            }
            Some(open) if state.now > patience => {
                drop(state);
                actors::plan(world, 0);
                world.state().violation(format!("16: {open}"));
                return;
            }
            Some(_) => {}
        }
    }
}

/// Each attempt but the last was struck.
fn attempts(observer: &super::observer::Observer) -> Option<String> {
    let submitted = observer.turns.as_ref()?.submitted();
    submitted.iter().find_map(|number| {
        let lineage = observer.lineages.get(number)?;
        let programs = lineage.programs.iter().filter_map(|at| observer.programs.get(*at));
        let causes: Vec<Option<Cause>> = programs.map(|program| program.cause).collect();
        let done = causes.iter().filter(|cause| **cause == Some(Cause::Finished)).count();
        let is_struck = |cause: &Option<Cause>| {
            matches!(cause, Some(Cause::Finished | Cause::Preempted | Cause::Grpc))
        };
        (done != 1 || !causes.iter().all(is_struck))
            .then(|| format!("12: the attempts of lineage {number} ended by {causes:?}"))
    })
}

fn sum_up(world: &World) -> Told {
    let state = world.state();
    let programs = &state.observer.programs;
    let preempted =
        programs.iter().filter(|program| program.cause == Some(Cause::Preempted)).count();
    let attempts = programs.len();
    let jobs = state.observer.turns.as_ref().map_or(0, |turns| turns.submitted().len());
    let (kills, hours) = (state.kills, state.now.as_secs_f64() / 3_600.0);
    drop(state);
    Told { outcome: outcome(world), jobs, attempts, preempted, kills, hours }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} jobs in three queues on {TARGETS} targets, all done in {:.1} simulated hours and {} attempts; {} of \
             them were preempted, and the daemon was killed {} times",
            self.jobs, self.hours, self.attempts, self.preempted, self.kills
        )
    }
}
