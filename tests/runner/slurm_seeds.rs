//! A simulated cluster over many seeds: submissions are lost, late and repeated, the controller goes and comes, jobs end,
//! are preempted and forgotten, their numbers are given again. What is said of a run is true, or that nobody knows.

use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::RunState;
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::{RunRef, StopOrder, StopPart, Unreached};
use tpu_system::sys::clock::ManualClock;
use tpu_system::sys::random::{Random as _, SeededRandom};

use super::contract::World as _;
use super::slurm::SlurmWorld;
use crate::slurm::sim::{Loss, MESSAGE_TIMEOUT, MIN_JOB_AGE, SimCluster, Weather};

/// Longest time that a submission may take that nobody waits for.
const AT_WORK: Duration = Duration::from_secs(30);

struct Play {
    seed: u64,
    draw: SeededRandom,
    clock: Arc<ManualClock>,
    world: SlurmWorld,
    cluster: Arc<SimCluster>,
    jobs: Vec<Job>,
    /// Jobs of somebody else.
    theirs: Vec<String>,
    trace: Vec<String>,
}

impl Play {
    fn new(seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)));
        let (world, cluster) = SlurmWorld::by_clock(&clock);
        let jobs = (1..=3).map(|number| world.claim(number)).collect();
        let (theirs, trace) = (Vec::new(), Vec::new());
        Self { seed, draw: SeededRandom::new(seed), clock, world, cluster, jobs, theirs, trace }
    }

    fn seconds(&self, below: u64) -> Duration {
        Duration::from_millis(self.draw.below(below * 1_000))
    }

    fn any<T: Copy>(&self, all: &[T]) -> T {
        all[usize::try_from(self.draw.below(all.len() as u64)).unwrap()]
    }

    fn loss(&self) -> Option<Loss> {
        let most = MESSAGE_TIMEOUT.as_secs();
        match self.draw.below(7) {
            0 => Some(Loss::Unheard),
            1 => Some(Loss::Unanswered),
            2 => Some(Loss::Later(self.seconds(most))),
            3 => Some(Loss::Broken(self.seconds(AT_WORK.as_secs() + most))),
            _ => None,
        }
    }

    fn weather(&self) -> Weather {
        let slow = Weather::Slow(self.seconds(12));
        self.any(&[Weather::Fair, Weather::Fair, Weather::Away, Weather::Hangs, slow])
    }

    /// A job of ours that the cluster runs.
    fn running(&self) -> Option<u32> {
        let jobs = self.cluster.jobs();
        let names: Vec<String> = self.jobs.iter().map(SlurmWorld::name).collect();
        let is_ours = |name: &String| names.contains(name);
        jobs.into_iter().find(|job| job.state == "RUNNING" && is_ours(&job.name)).map(|job| job.id)
    }

    fn step(&mut self) {
        let index = usize::try_from(self.draw.below(self.jobs.len() as u64)).unwrap();
        let said = match self.draw.below(12) {
            0..=2 => {
                let loss = self.loss();
                self.cluster.lose_next(loss);
                let job = self.jobs[index].clone();
                let submitted = self.world.submit_as_is(&job);
                if let Ok(submitted) = &submitted {
                    self.jobs[index].keep_handle(submitted.handle.clone());
                }
                self.cluster.lose_next(None);
                format!("submit {index} {loss:?}: {:?}", submitted.map(|s| s.handle))
            }
            3 => {
                let by = self.seconds(90);
                self.clock.advance(by);
                format!("{by:?} pass")
            }
            4 | 5 => {
                let weather = self.weather();
                self.cluster.set_weather(weather);
                format!("{weather:?}")
            }
            6 => match self.running() {
                Some(id) => {
                    let code = self.any(&[0, 0, 7]);
                    self.cluster.end(id, code);
                    format!("{id} ends with {code}")
                }
                None => return,
            },
            7 => match self.running() {
                Some(id) => {
                    let is_requeued = self.draw.below(2) == 0;
                    self.cluster.preempt(id, is_requeued);
                    format!("{id} is preempted, requeued: {is_requeued}")
                }
                None => return,
            },
            8 => {
                self.clock.advance(self.seconds(2 * MIN_JOB_AGE.as_secs()));
                self.cluster.forget_ended();
                "what is over is forgotten".to_owned()
            }
            9 if self.draw.below(4) == 0 => {
                self.cluster.reset();
                self.theirs.clear();
                "it is set up anew".to_owned()
            }
            9 => {
                let name = format!("theirs-{}", self.trace.len());
                let id = self.cluster.submit_by_hand(&name);
                self.theirs.push(name);
                format!("somebody submits {id}")
            }
            10 if self.draw.below(4) == 0 => {
                let node = self.any(&["n1", "n2"]);
                self.cluster.fail_node(node);
                format!("{node} fails")
            }
            10 => {
                let run = RunRef { job: &self.jobs[index], session: "alice" };
                let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
                let stopped = self.world.runner().stop(run, order);
                format!("stop {index}: {stopped:?}")
            }
            _ => "a look".to_owned(),
        };
        self.trace.push(said);
        self.look();
    }

    /// What is said is true, and what must never happen has not.
    fn look(&mut self) {
        let runs: Vec<RunRef<'_>> =
            self.jobs.iter().map(|job| RunRef { job, session: "alice" }).collect();
        let seen = self.world.runner().observe(&runs);
        for (index, (job, seen)) in self.jobs.iter().zip(seen).enumerate() {
            let name = SlurmWorld::name(job);
            let fate = self.cluster.fate(&name);
            let run = seen.run;
            let is_true = match run.state {
                RunState::Pending => fate == Some("PENDING"),
                RunState::Running => fate == Some("RUNNING"),
                RunState::Starting => matches!(fate, None | Some("RUNNING")),
                // It is over, or it has never begun and will not.
                RunState::Gone => {
                    fate != Some("RUNNING") && !self.cluster.is_on_its_way(&name)
                        || self.cluster.named(&name).is_empty() && fate.is_some()
                }
                RunState::Ended => !matches!(fate, None | Some("PENDING" | "RUNNING")),
                RunState::Unknown => run.reason.is_some(),
                RunState::Elsewhere => false,
            };
            assert!(is_true, "{index} is said to be {run:?}, and is {fate:?}\n{}", self.told());
            let is_well = run.exit.is_some_and(|exit| Exit::code(exit) == 0);
            assert!(!is_well || fate == Some("COMPLETED"), "{run:?} {fate:?}\n{}", self.told());
            let times = self.cluster.accepted(&name);
            assert!(times <= 1, "{index} was submitted {times} times\n{}", self.told());
        }
        for name in &self.theirs {
            let state = self.cluster.fate(name);
            assert_ne!(state, Some("CANCELLED"), "{name}\n{}", self.told());
        }
    }

    fn told(&self) -> String {
        format!("seed {}\n{}\n{:#?}", self.seed, self.trace.join("\n"), self.cluster.jobs())
    }

    /// Everything answers again: each submission is settled, and has been carried out once.
    fn settle(&mut self) {
        self.cluster.set_weather(Weather::Fair);
        self.trace.push("all answers again".to_owned());
        self.clock.advance(AT_WORK + MESSAGE_TIMEOUT * 2);
        self.look();
        for index in 0..self.jobs.len() {
            let name = SlurmWorld::name(&self.jobs[index]);
            let before = self.cluster.fate(&name);
            let submitted = self.world.submit_as_is(&self.jobs[index]);
            let was_there = before.is_some();
            self.trace.push(format!("submit {index}: {submitted:?}"));
            if let (Ok(_), false) = (&submitted, was_there) {
                assert_eq!(self.cluster.accepted(&name), 1, "{}", self.told());
            }
        }
        self.look();
    }
}

#[test]
fn what_is_said_is_true_whatever_is_lost_and_nothing_is_submitted_twice() {
    for seed in 0..150 {
        let mut play = Play::new(seed);
        for _ in 0..40 {
            play.step();
        }
        play.settle();
    }
}
