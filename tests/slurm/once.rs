//! SIGKILL of commands and of MONITOR at random moments around a submission: of one launch there are never two jobs, no
//! job is without its record, and no record is left that nobody settles. `./x prove slurm` asks for a thousand kills.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use tpu::sys::clock::{Clock as _, SystemClock};
use tpu::sys::random::{OsRandom, Random as _};

use super::cluster::{Listed, Setup};
use super::lab::{Lab, token_of};
use crate::common::wait::{wait_at_most, wait_until};

/// Kills in a test run.
const SHARE: usize = 12;

/// As many kills as `./x prove slurm` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for() -> Option<usize> {
    std::env::var("TPU_PROVE_SLURM").ok().and_then(|text| text.parse().ok())
}

/// Writes a checkpoint and loses a peer, which a rule answers; from a checkpoint it ends well.
const PROGRAM: &str = "case \"$*\" in *load_from=*) exit 0;; esac\n\
    mkdir -p \"$TPU_LOG_DIR/checkpoints\"; echo 1 >\"$TPU_LOG_DIR/checkpoints/step_1\"\n\
    echo 'E0410 12:00:00.000000 1 coordination_service_agent.cc:332] Polled an error from coordination service \
    (this can be an error from this or another task).'\n\
    echo 'absl::Status: DEADLINE_EXCEEDED: The following tasks are unhealthy (stopped sending heartbeats):'\n\
    echo '/job:jax_worker/replica:0/task:1'\nexit 134\n";

/// One that a person brings back, and one that a rule does.
const RUN: &str = "run gpu alice rule=pass -q -- bash train.sh";
const RUN_UNDER_RULE: &str = "run gpu alice rule=resume -q -- bash train.sh";

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Run,
    Resume,
    Monitor,
}

/// A lab, and how long its commands take when nobody kills them.
struct Proof {
    lab: Lab,
    clock: SystemClock,
    whole: BTreeMap<Victim, Duration>,
}

impl Proof {
    fn new(lab: Lab) -> Self {
        lab.env.code("alice", "train.sh", PROGRAM);
        let mut proof = Self { lab, clock: SystemClock::new(), whole: BTreeMap::new() };
        for victim in [Victim::Run, Victim::Resume, Victim::Monitor] {
            let line = proof.prepare(victim);
            let begun = proof.clock.monotonic();
            if victim == Victim::Monitor {
                let window = proof.newest();
                let _monitor = proof.lab.env.start_tpu(&line, &[]);
                wait_until("MONITOR has brought it back", || {
                    let child = proof.lab.env.job("alice", window)["extra_msgs"]["child"].as_u64();
                    let confirmed = |window| {
                        proof.lab.env.job("alice", window)["extra_msgs"]["launch"]["confirmed"]
                            == true
                    };
                    child.is_some_and(confirmed)
                });
            } else {
                drop(proof.lab.tpu(&line).exits(0));
            }
            let took = proof.clock.monotonic().saturating_sub(begun);
            proof.whole.insert(victim, took);
        }
        proof
    }

    /// The number of the newest record.
    fn newest(&self) -> u64 {
        self.lab.env.jobs("alice").last().unwrap()["windows_id"].as_u64().unwrap()
    }

    /// Makes what a victim needs; the command that it is.
    fn prepare(&self, victim: Victim) -> String {
        match victim {
            Victim::Run => RUN.to_owned(),
            Victim::Resume => {
                let window = self.failed().unwrap_or_else(|| {
                    drop(self.lab.tpu(RUN).exits(0));
                    self.wait_failed();
                    self.newest()
                });
                format!("resume {window} --yes")
            }
            Victim::Monitor => {
                drop(self.lab.tpu(RUN_UNDER_RULE).exits(0));
                self.wait_failed();
                "daemon run".to_owned()
            }
        }
    }

    /// Waits until the newest one has failed.
    fn wait_failed(&self) {
        let token = token_of(&self.lab.env.job("alice", self.newest()));
        wait_until("it has failed", || {
            self.lab.cluster.jobs_of(&token).iter().all(|job| job.state == "FAILED")
        });
    }

    /// An attempt that has failed and has not been brought back.
    fn failed(&self) -> Option<u64> {
        let shown = self.lab.tpu("check alice --json").exits(0).json();
        let is_failed = |job: &&Value| {
            job["leaf"] == true && job["status"] == "error" && job["error"] != "launch"
        };
        shown["jobs"].as_array()?.iter().find(is_failed)?["window"].as_u64()
    }

    /// Kills a victim somewhere between its first step and a little after its last one.
    fn kill(&self, victim: Victim) {
        let line = self.prepare(victim);
        let share = u32::try_from(OsRandom.below(1_200)).unwrap();
        let running = self.lab.env.start_tpu(&line, &[]);
        self.clock.sleep(self.whole[&victim] * share / 1_000);
        running.kill();
    }

    /// What must hold at every moment: a job of the cluster belongs to one record, and a record has one job at most.
    #[track_caller]
    fn holds(&self, round: usize) -> BTreeMap<String, Listed> {
        // The cluster first: a record is written before its job. The log before the list: it is never ahead.
        let submissions = self.lab.cluster.submissions();
        let jobs = self.lab.cluster.jobs();
        let records = self.lab.env.jobs("alice");
        let tokens: Vec<String> = records.iter().map(token_of).collect();
        let listed: Vec<u32> = jobs.iter().map(|job| job.id).collect();
        for id in &submissions {
            assert!(listed.contains(id), "round {round}: {id} is not listed: {jobs:#?}");
        }
        let mut owned = BTreeMap::new();
        for job in jobs {
            let token = tokens.iter().find(|token| job.name.contains(token.as_str()));
            let token = token.unwrap_or_else(|| panic!("round {round}: nobody's: {job:?}"));
            if let Some(other) = owned.insert(token.clone(), job.clone()) {
                panic!("round {round}: one launch was submitted twice: {other:?}, {job:?}");
            }
        }
        for record in &records {
            let is_its_child = |job: &&Value| job["extra_msgs"]["father"] == record["windows_id"];
            let children = records.iter().filter(is_its_child).count();
            assert!(children <= 1, "round {round}: brought back {children} times: {record:#}");
        }
        owned
    }

    /// Lets every record be settled: it has its job, or none, for certain.
    #[track_caller]
    fn settle(&self, round: usize) {
        self.lab.env.a_minute_later("alice");
        let what = format!("round {round}: all is settled");
        wait_at_most(Duration::from_secs(120), &what, || {
            drop(self.lab.tpu("clear-finished bob"));
            let is_settled = |job: &Value| {
                job["extra_msgs"]["launch"]["confirmed"] == true || job["error"] == "launch"
            };
            self.lab.env.jobs("alice").iter().all(is_settled).then_some(())
        });
        let owned = self.holds(round);
        for record in self.lab.env.jobs("alice") {
            let job = owned.get(&token_of(&record));
            let never_began = record["error"] == "launch";
            assert_eq!(job.is_none(), never_began, "round {round}: {record:#}\n{job:?}");
            if let Some(job) = job {
                let known = record["extra_msgs"]["engine"]["id"].as_str().unwrap_or_default();
                assert!(
                    known.starts_with(&format!("{}@", job.id)) || known.starts_with("tpu-"),
                    "round {round}: {known} is {job:?}"
                );
            }
        }
    }
}

#[test]
fn a_launch_is_submitted_once_and_none_is_forgotten_whoever_dies() {
    let Some(lab) = Lab::with(Setup { message_timeout: 2, ..Setup::default() }) else { return };
    let proof = Proof::new(lab);
    let rounds = asked_for().unwrap_or(SHARE);
    let mut counts = BTreeMap::new();
    for round in 0..rounds {
        let victims = [Victim::Run, Victim::Resume, Victim::Monitor];
        let victim = victims[usize::try_from(OsRandom.below(3)).unwrap()];
        proof.kill(victim);
        *counts.entry(victim).or_insert(0) += 1;
        proof.holds(round);
        if round % 50 == 49 {
            proof.settle(round);
        }
    }
    // The proof waits as long as it takes.
    if asked_for().is_none() {
        proof.lab.a_minute_later();
    }
    proof.settle(rounds);
    // What was given up as never begun does not turn up later either.
    proof.settle(rounds);
    let submissions = proof.lab.cluster.submissions().len();
    eprintln!("{rounds} kills {counts:?}, {submissions} submissions {:?}", proof.whole);
}
