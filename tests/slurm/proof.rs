//! SIGKILL of commands and of the daemon at random moments around a submission, here and through a login node, whose
//! connections are cut as well: of one launch there are never two jobs, no job is without its record, and no record is
//! left that nobody settles. `./x prove slurm` asks for a thousand.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::random::{OsRandom, Random as _, SeededRandom};

use super::cluster::{Listed, Setup};
use super::lab::{Lab, token_of};
use crate::common::env::Running;
use crate::common::sshd::{self, Hosts};
use crate::common::wait::{wait_at_most, wait_until};

/// Accidents in a test run.
const SHARE: usize = 6;

/// Nobody waits longer for all records to be settled: a submission on a login node may be at work for a minute.
const SETTLED: Duration = Duration::from_secs(180);

/// After so many, how long commands take is measured anew: the machine has other things to do.
const MEASURED: usize = 20;

/// After so many, all records are settled and compared with the cluster.
const COMPARED: usize = 100;

/// As many accidents as `./x prove slurm` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for(variable: &str) -> Option<usize> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Writes a checkpoint and loses a peer, which a rule answers; from a checkpoint it ends well.
const PROGRAM: &str = "case \"$*\" in *load_from=*) exit 0;; esac\n\
    mkdir -p \"$TPU_LOG_DIR/checkpoints\"; echo 1 >\"$TPU_LOG_DIR/checkpoints/step_1\"\n\
    echo 'E0410 12:00:00.000000 1 coordination_service_agent.cc:332] Polled an error from coordination service \
    (this can be an error from this or another task).'\n\
    echo 'absl::Status: DEADLINE_EXCEEDED: The following tasks are unhealthy (stopped sending heartbeats):'\n\
    echo '/job:jax_worker/replica:0/task:1'\nexit 134\n";

/// Who submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Run,
    Resume,
    Monitor,
}

const VICTIMS: [Victim; 3] = [Victim::Run, Victim::Resume, Victim::Monitor];

/// What befalls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Accident {
    /// It is killed.
    Killed,
    /// Its connection is cut, and it lives to see what has come of it.
    Cut,
    /// Its connection is cut, and a little later it is killed.
    CutAndKilled,
}

const ACCIDENTS: [Accident; 3] = [Accident::Killed, Accident::Cut, Accident::CutAndKilled];

/// A lab, and how long its commands take when nothing befalls them. The login node, if there is one, ends after its
/// user.
struct Proof {
    lab: Lab,
    hosts: Option<Hosts>,
    clock: SystemClock,
    draw: SeededRandom,
    whole: BTreeMap<Victim, Duration>,
}

impl Proof {
    fn new(lab: Lab, hosts: Option<Hosts>, seed: u64) -> Self {
        lab.env.code("alice", "train.sh", PROGRAM);
        let (clock, draw) = (SystemClock::new(), SeededRandom::new(seed));
        let mut proof = Self { lab, hosts, clock, draw, whole: BTreeMap::new() };
        proof.measure();
        proof
    }

    /// With the programs of this machine. None where there is no Slurm.
    fn here(seed: u64) -> Option<Self> {
        let lab = Lab::with(setup())?;
        Some(Self::new(lab, None, seed))
    }

    /// Through a login node. None where a program is missing.
    fn through_a_login_node(seed: u64) -> Option<Self> {
        if !sshd::is_installed() {
            return None;
        }
        let lab = Lab::bare(setup())?;
        let hosts = Hosts::new(1);
        let account = lab.cluster.run(&["id", "-un"]);
        let (address, key) = (hosts.addresses()[0].clone(), hosts.path("client"));
        let login = format!("--login {account}@{address} --login-key {}", key.display());
        let (stages, logs) = (lab.env.path("stages"), lab.env.path("logs"));
        let roots = format!("--stage-root {} --log-root {}", stages.display(), logs.display());
        lab.register("gpu", &lab.cluster, &format!("{login} {roots} --partition low"));
        Some(Self::new(lab, Some(hosts), seed))
    }

    /// How long each command takes.
    fn measure(&mut self) {
        for victim in VICTIMS {
            let line = self.prepare(victim);
            let begun = self.clock.monotonic();
            self.to_its_end(victim, self.lab.env.start_tpu(&line, &[]));
            let took = self.clock.monotonic().saturating_sub(begun);
            self.whole.insert(victim, took);
        }
    }

    /// Lets a victim do what it was started for, or give it up.
    fn to_its_end(&self, victim: Victim, running: Running) {
        if victim != Victim::Monitor {
            let _code: i32 = running.wait();
            return;
        }
        let window = self.newest();
        let is_brought_back = || {
            let child = self.lab.env.job("alice", window)["extra_msgs"]["child"].as_u64()?;
            let launch = &self.lab.env.job("alice", child)["extra_msgs"]["launch"];
            (launch["confirmed"] == true).then_some(())
        };
        wait_at_most(SETTLED, "the daemon has brought it back", is_brought_back);
        running.kill();
    }

    /// The number of the newest record.
    fn newest(&self) -> u64 {
        self.lab.env.jobs("alice").last().unwrap()["windows_id"].as_u64().unwrap()
    }

    /// Starts one whose program fails, and waits until it has. What was cut a moment ago may refuse the first try.
    fn failing(&self, rule: &str) -> u64 {
        let line = format!("run gpu alice rule={rule} -q -- bash train.sh");
        wait_until("a run comes through", || self.lab.tpu(&line).code == 0);
        let window = self.newest();
        let token = token_of(&self.lab.env.job("alice", window));
        wait_until("it has failed", || {
            let jobs = self.lab.cluster.jobs_of(&token);
            !jobs.is_empty() && jobs.iter().all(|job| job.state == "FAILED")
        });
        window
    }

    /// Makes what a victim needs; the command that it is.
    fn prepare(&self, victim: Victim) -> String {
        match victim {
            Victim::Run => "run gpu alice rule=pass -q -- bash train.sh".to_owned(),
            Victim::Resume => format!("resume {} --yes", self.failing("pass")),
            Victim::Monitor => {
                self.failing("resume");
                "daemon run".to_owned()
            }
        }
    }

    /// Something befalls a victim between its first step and a little after its last one.
    fn strike(&self, victim: Victim, accident: Accident) {
        let line = self.prepare(victim);
        let part = |thousandths: u64| {
            self.whole[&victim] * u32::try_from(self.draw.below(thousandths)).unwrap() / 1_000
        };
        let running = self.lab.env.start_tpu(&line, &[]);
        self.clock.sleep(part(1_200));
        if let Some(hosts) = self.hosts.as_ref().filter(|_| accident != Accident::Killed) {
            hosts.cut(0);
        }
        match accident {
            Accident::Killed => running.kill(),
            Accident::CutAndKilled => {
                self.clock.sleep(part(500));
                running.kill();
            }
            Accident::Cut if victim == Victim::Monitor => {
                self.clock.sleep(part(2_000));
                running.kill();
            }
            Accident::Cut => {
                let _code: i32 = running.wait();
            }
        }
    }

    /// What must hold at every moment: a job of the cluster belongs to one record, and a record has one job at most.
    #[track_caller]
    fn holds(&self, round: usize) -> BTreeMap<String, Listed> {
        // The cluster first: a record is written before its job. The log before the list: it is never ahead.
        let submissions = self.lab.cluster.submissions();
        let jobs = self.lab.cluster.jobs();
        let records = self.lab.env.jobs("alice");
        let tokens: Vec<String> = records.iter().map(token_of).collect();
        for id in &submissions {
            let is_listed = jobs.iter().any(|job| job.id == *id);
            assert!(is_listed, "round {round}: {id} is not listed: {jobs:#?}");
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
        wait_at_most(SETTLED, &what, || {
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
            let Some(job) = job else { continue };
            let known = record["extra_msgs"]["engine"]["id"].as_str().unwrap_or_default();
            let is_its = known.starts_with(&format!("{}@", job.id)) || known.starts_with("tpu-");
            assert!(is_its, "round {round}: {known} is {job:?}");
        }
    }
}

/// A cluster on which a message is on its way for two seconds at most.
fn setup() -> Setup {
    Setup { message_timeout: 2, ..Setup::default() }
}

/// Lets accidents happen, and says what they were.
fn endure(mut proof: Proof, (asked, seed): (Option<usize>, u64), accidents: &[Accident]) -> String {
    let rounds = asked.unwrap_or(SHARE);
    let mut counts = BTreeMap::new();
    for round in 0..rounds {
        let pick = |count: usize| usize::try_from(proof.draw.below(count as u64)).unwrap();
        let (victim, accident) = (VICTIMS[pick(3)], accidents[pick(accidents.len())]);
        proof.strike(victim, accident);
        *counts.entry((victim, accident)).or_insert(0) += 1;
        proof.holds(round);
        if round % MEASURED == MEASURED - 1 {
            proof.measure();
        }
        if round % COMPARED == COMPARED - 1 {
            proof.settle(round);
        }
    }
    // The proof waits as long as it takes.
    if asked.is_none() {
        proof.lab.a_minute_later();
    }
    proof.settle(rounds);
    // What was given up as never begun does not turn up later either.
    proof.settle(rounds);
    let (launches, took) = (proof.lab.env.jobs("alice").len(), proof.clock.monotonic().as_secs());
    let submissions = proof.lab.cluster.submissions().len();
    format!(
        "seed {seed}: {rounds} accidents {counts:?}, {launches} launches, {submissions} of them submitted, \
         {took} s, at last {:?}",
        proof.whole
    )
}

#[test]
fn a_launch_is_submitted_once_and_none_is_forgotten_whoever_dies() {
    let seed = OsRandom.below(u64::MAX);
    let Some(proof) = Proof::here(seed) else { return };
    let asked = asked_for("TPU_PROVE_SLURM");
    eprintln!("here: {}", endure(proof, (asked, seed), &[Accident::Killed]));
}

#[test]
fn nor_whatever_breaks_on_the_way_to_a_login_node() {
    let seed = OsRandom.below(u64::MAX);
    let Some(proof) = Proof::through_a_login_node(seed) else { return };
    let asked = asked_for("TPU_PROVE_SLURM_CUTS");
    eprintln!("through a login node: {}", endure(proof, (asked, seed), &ACCIDENTS));
}
