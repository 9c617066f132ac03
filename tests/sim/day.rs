//! Hours of a fleet: a hundred jobs on twenty targets that are taken away, out of stock and failing as
//! real ones are. Nothing that must never happen happens, and the work that gets done is compared with
//! what somebody who knows everything and reacts at once would have got done.

use std::sync::Arc;
use std::time::Duration;

use tpu_lab::sim::{Event, Timing};

use super::actors;
use super::observer::{Cause, Health};
use super::run::{Outcome, Stage, Story, new_world, outcome};
use super::tpu::target;
use super::world::{Faults, World};

/// How long it takes to take a target away and to make one, in seconds.
pub(super) const DELETE_S: f64 = 10.0;
pub(super) const CREATE_S: f64 = 60.0;

/// What came of some hours.
#[derive(Debug)]
pub(crate) struct Day {
    pub(crate) outcome: Outcome,
    pub(crate) jobs: usize,
    pub(crate) finished: usize,
    pub(crate) failures: u32,
    /// Of the work of an oracle, so much was done.
    pub(crate) goodput: f64,
    /// From a failure to the next start, beyond what the cloud itself needs, in seconds on average.
    pub(crate) reaction_s: f64,
}

/// Plays `hours` of a fleet.
pub(crate) fn play(hours: f64, jobs: usize, targets: usize) -> Day {
    let faults = Faults { monitor: 20, ..Faults::default() };
    let length = Duration::from_secs_f64(hours * 3_600.0);
    let story = Story {
        seed: 24,
        hosts: 1,
        targets,
        chaos: length,
        faults,
        print: false,
        engine: None,
        has_queues: false,
        has_others: false,
    };
    let world = new_world(&story);
    let timing = Timing { create_s: CREATE_S, delete_s: DELETE_S, ..Timing::default() };
    world.fleet.pull(&Event::Time { timing }).expect("times can be set");
    {
        let mut state = world.state();
        state.most_steps = u64::MAX;
        state.lazy = Duration::from_secs(3);
        state.habits.says_ms = (20_000, 40_000);
        state.habits.keeps_s = 600.0;
        state.habits.mistake = 0;
    }
    let mut stage = Stage::new(&world);
    stage.actor(|world| actors::keeper(world, 0));
    stage.actor(move |world| fill(world, jobs, hours));
    stage.actor(misfortune);
    stage.actor(move |world| {
        actors::wait(world, length);
        world.state().over = true;
    });
    stage.play();
    sum_up(&world)
}

/// Whenever a target is free, the next job begins on it.
fn fill(world: &Arc<World>, jobs: usize, hours: f64) {
    let targets = world.state().targets;
    #[expect(clippy::cast_precision_loss, reason = "some dozens")]
    let needs = hours * 3_600.0 * targets as f64 / jobs.max(1) as f64 * 0.8;
    let mut begun = 0;
    let mut on: Vec<Option<u32>> = vec![None; targets];
    loop {
        for (index, lineage) in on.iter_mut().enumerate() {
            let is_free = lineage.is_none_or(|number| {
                world.state().observer.lineages.get(&number).is_none_or(|known| known.finished)
            });
            if begun < jobs && is_free && world.word(&target(index)) == "READY" {
                begun += 1;
                *lineage = Some(u32::try_from(begun).unwrap_or(0));
                actors::run(world, 0, index, "pre", needs);
            }
        }
        actors::wait(world, Duration::from_secs(60));
    }
}

/// Preemptions every five hours of each target, sometimes without capacity afterwards; lost peers every
/// twelve.
pub(super) fn misfortune(world: &Arc<World>) {
    loop {
        actors::wait(world, Duration::from_secs(60));
        let targets = world.state().targets;
        for index in 0..targets {
            let name = target(index);
            let (preempts, stock_out, peers) = {
                let state = world.state();
                let minutes = state.between(3_000, 40 * 60_000).as_secs_f64();
                (state.chance(3_333), state.chance(250_000).then_some(minutes), state.chance(1_389))
            };
            if preempts && world.word(&name) == "READY" {
                actors::preempt(world, &name);
                struck(world, &name, stock_out.unwrap_or(0.0) + DELETE_S + CREATE_S);
                if let Some(for_s) = stock_out {
                    let event = Event::NoCapacity {
                        target: Some(name.clone()),
                        zone: None,
                        times: None,
                        for_s: Some(for_s),
                    };
                    drop(world.fleet.pull(&event));
                }
            } else if peers {
                lose_peers(world, &name);
            }
        }
    }
}

/// Whoever was on a target will be down for at least so many seconds.
fn struck(world: &World, name: &str, had_to_s: f64) {
    let mut state = world.state();
    let on = state.observer.live().find(|(_, p)| p.target == name).map(|(_, p)| p.lineage);
    if let Some(lineage) = on {
        state.observer.lineages.entry(lineage).or_default().had_to += had_to_s;
    }
}

fn lose_peers(world: &World, name: &str) {
    let mut state = world.state();
    let on = state.observer.live().find(|(_, p)| p.target == name && p.health == Health::Working);
    if let Some(number) = on.map(|(number, _)| number) {
        let words = "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to all \
                     addresses; last error: UNKNOWN: Socket closed; grpc_status:14\n";
        state.fail(number, Cause::Grpc, words, 1);
    }
}

fn sum_up(world: &World) -> Day {
    let (jobs, finished, failures, goodput, reaction_s) = {
        let mut state = world.state();
        let now = state.now;
        let failures = state
            .observer
            .programs
            .iter()
            .filter(|p| matches!(p.cause, Some(Cause::Preempted | Cause::Grpc)));
        let failures = u32::try_from(failures.count()).unwrap_or(0);
        let lineages = &mut state.observer.lineages;
        for lineage in lineages.values_mut() {
            if let Some(since) = lineage.down.take() {
                lineage.was_down += now.saturating_sub(since).as_secs_f64();
            }
        }
        let sum = |of: fn(&super::observer::Lineage) -> f64| lineages.values().map(of).sum::<f64>();
        let worked = sum(|lineage| lineage.worked);
        let beyond = (sum(|lineage| lineage.was_down) - sum(|lineage| lineage.had_to)).max(0.0);
        let finished = lineages.values().filter(|lineage| lineage.finished).count();
        let goodput = worked / (worked + beyond).max(1.0);
        (lineages.len(), finished, failures, goodput, beyond / f64::from(failures.max(1)))
    };
    Day { outcome: outcome(world), jobs, finished, failures, goodput, reaction_s }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} jobs, {} finished, {} failures: {:.2} % of an oracle's work; back {:.0} s after a \
             failure, beyond what the cloud needs",
            self.jobs,
            self.finished,
            self.failures,
            self.goodput * 100.0,
            self.reaction_s
        )
    }
}
