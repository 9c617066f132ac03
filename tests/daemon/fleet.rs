//! A fleet of simulated targets under the built program's the daemon: many preempted targets come back at the
//! same time, a daemon that is killed at any moment is succeeded, nothing follows from a control plane that
//! does not answer, and after a restart of the machine the rules act once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use tpu_core::model::time::Timestamp;
use tpu_system::store::Paths;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::procs::Process;
use tpu_system::sys::random::{OsRandom, Random as _};

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_at_most, wait_for, wait_until};

/// Notes each attempt, leaves a checkpoint and stays.
const STAYS: &str = "echo $$ >>\"$HOME/attempts-$1\"; mkdir -p \"$TPU_LOG_DIR/checkpoint_1\"; \
    echo w >\"$TPU_LOG_DIR/checkpoint_1/w\"; echo \"step $(wc -l <\"$HOME/attempts-$1\")/9\"; \
    exec sleep 1000";

struct Fleet {
    env: TestEnv,
    names: Vec<String>,
}

impl Fleet {
    /// So many spot targets, each with a job of alice under the rule `pre`.
    fn new(size: usize) -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        env.set("TPU_CLOUD", "sim");
        let names: Vec<String> = (1..=size).map(|n| format!("lab-spot-{n}")).collect();
        for name in &names {
            let line = format!("register {name} --zone zone-a --type v2-8 --spot");
            drop(env.tpu(&line).exits(0));
            drop(env.tpu(&format!("sim ready {name}")).exits(0));
        }
        let fleet = Self { env, names };
        for name in &fleet.names {
            let words = ["run", name, "alice", "-q", "rule=pre", "--", "bash", "-c", STAYS, "job"];
            let words: Vec<&str> = words.into_iter().chain([name.as_str()]).collect();
            drop(fleet.env.tpu_words(&words).exits(0));
        }
        for name in &fleet.names {
            wait_until("the first attempt", || fleet.attempts(name).len() == 1);
        }
        fleet
    }

    /// Plays a story on the simulated cloud.
    fn play(&self, story: &str) {
        let file = self.env.path("story.toml");
        write_file(&file, story);
        let words = ["sim", "play", file.to_str().unwrap()];
        drop(self.env.tpu_words(&words).exits(0));
    }

    /// Takes every target away.
    fn preempt_all(&self) {
        let step = |name| format!("[[step]]\nat = 0\nevent = \"preempt\"\ntarget = \"{name}\"\n");
        self.play(&self.names.iter().map(step).collect::<String>());
        drop(self.env.tpu("sim list").exits(0));
    }

    /// The processes that the attempts on a target have noted.
    fn attempts(&self, name: &str) -> Vec<u32> {
        let text = std::fs::read_to_string(self.env.path(&format!("attempts-{name}")));
        text.unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn alive(&self, name: &str) -> Vec<u32> {
        self.attempts(name)
            .into_iter()
            .filter(|pid| Process::read(*pid).is_some_and(|p| !p.zombie))
            .collect()
    }

    /// The records of the attempts on a target, oldest first.
    fn records(&self, name: &str) -> Vec<Value> {
        let jobs = self.env.jobs("alice");
        jobs.into_iter().filter(|job| job["tpu"] == name).collect()
    }

    /// Waits until every lineage has so many attempts, of which the last one is at work.
    fn all_at_work(&self, attempts: usize) {
        for name in &self.names {
            // What failed once, as anything may on a busy machine, is tried again after a back-off of a minute.
            wait_at_most(
                Duration::from_secs(150),
                &format!("attempt {attempts} on {name}"),
                || {
                    let is_there = self.attempts(name).len() == attempts;
                    (is_there && self.alive(name).len() == 1).then_some(())
                },
            );
            let records = wait_for("its record", || {
                let records = self.records(name);
                (records.last()?["status"] == "running").then_some(records)
            });
            // A record whose window was never opened is no attempt: its daemon was killed before.
            let launched = |job: &&Value| job["extra_msgs"]["launch"]["confirmed"] == true;
            assert_eq!(records.iter().filter(launched).count(), attempts, "{name}: {records:#?}");
            let ended = records.iter().filter(|job| job["status"] == "resumed").count();
            assert_eq!(ended, records.len() - 1, "{name}: {records:#?}");
        }
    }

    /// What the simulated control plane was asked to do.
    fn operations(&self, verb: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.env.path("tpu-state/sim.json")).unwrap();
        let fleet: Value = serde_json::from_str(&text).unwrap();
        let all = fleet["operations"].as_array().unwrap().clone();
        all.into_iter().filter(|begun| begun["operation"]["verb"] == verb).collect()
    }

    /// Fails as soon as a lineage has two attempts at work, while `during` goes on.
    fn watched(&self, during: impl FnOnce()) {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for name in &self.names {
                        let alive = self.alive(name);
                        assert!(alive.len() <= 1, "two live attempts on {name}: {alive:?}");
                    }
                    SystemClock::new().sleep(Duration::from_millis(5));
                }
            });
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(during));
            over.store(true, Ordering::Relaxed);
            watcher.join().unwrap();
            if let Err(panic) = done {
                std::panic::resume_unwind(panic);
            }
        });
    }
}

/// A test that fails shows what was done until then.
impl Drop for Fleet {
    #[expect(clippy::print_stdout, reason = "it belongs to what the test prints")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let journal = Paths::new(self.env.data_path()).events();
            println!("{}", std::fs::read_to_string(journal).unwrap_or_default());
            println!("{:#}", self.env.data());
        }
    }
}

#[test]
fn ten_preempted_targets_are_made_anew_at_the_same_time() {
    let fleet = Fleet::new(10);
    fleet.play("[timing]\ncreate_s = 20\ndelete_s = 0.2\n");
    let monitor = fleet.env.daemon(&[]);
    fleet.preempt_all();
    drop(fleet.env.tpu("ack").exits(0));
    fleet.all_at_work(2);
    // Each creation takes twenty seconds: the last one had begun before the first one was done.
    let begun: Vec<String> = fleet
        .operations("create")
        .iter()
        .map(|begun| begun["operation"]["began"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(begun.len(), 10, "{begun:?}");
    let at = |text: &String| Timestamp::parse_rfc3339(text).unwrap();
    let (first, last) = (begun.iter().map(at).min().unwrap(), begun.iter().map(at).max().unwrap());
    assert!(last.seconds_since(first) < 20, "{begun:?}");
    assert_eq!(fleet.operations("delete").len(), 10);
    drop(monitor);
}

#[test]
fn a_monitor_that_is_killed_at_random_moments_is_succeeded_and_nothing_runs_twice() {
    // Two rounds of five kills; `TPU_SLOW_TESTS=1` asks for fifty kills.
    let rounds = if Env::read().non_empty("TPU_SLOW_TESTS").is_some() { 10 } else { 2 };
    let fleet = Fleet::new(4);
    fleet.play("[timing]\ncreate_s = 0.5\ndelete_s = 0.2\n");
    fleet.watched(|| {
        for round in 1..=rounds {
            fleet.preempt_all();
            for _ in 0..5 {
                let monitor = fleet.env.start_tpu("daemon run", &[]);
                SystemClock::new().sleep(Duration::from_millis(OsRandom.below(900)));
                monitor.kill();
            }
            let monitor = fleet.env.daemon(&[]);
            fleet.all_at_work(round + 1);
            drop(monitor);
        }
    });
    for name in &fleet.names {
        let records = fleet.records(name);
        let counted = &records.last().unwrap()["extra_msgs"]["recovery"]["capacity"];
        assert_eq!(counted, rounds, "each preemption is counted once: {records:#?}");
    }
}

#[test]
fn nothing_follows_from_a_control_plane_that_does_not_answer() {
    let fleet = Fleet::new(2);
    fleet.play(
        "[[step]]\nat = 0\nevent = \"error\"\nclass = \"transient\"\ncall = \"list\"\ntimes = 5\n",
    );
    let monitor = fleet.env.daemon(&[]);
    let asked = || fleet.env.tpu("check-status lab-spot-1 --json").json();
    wait_until("five failed lists and then an answer", || {
        drop(fleet.env.tpu("ack").exits(0));
        asked()["targets"][0]["raw_state"] == "READY"
    });
    // A zone that says nothing: its jobs' targets are unknown.
    fleet.play("[[step]]\nat = 0\nevent = \"outage\"\nzone = \"zone-a\"\n");
    let silent = fleet.env.tpu("check-status lab-spot-1 --json").exits(6).json();
    assert_eq!(silent["targets"][0]["state"], "unknown", "{silent:#}");
    // A job that ends meanwhile: why is open, and no rule fires.
    let pid = fleet.alive("lab-spot-1")[0];
    let process = Process::read(pid).unwrap();
    tpu_system::sys::procs::signal(&process, tpu_system::sys::procs::Signal::Kill).unwrap();
    let ended = fleet.env.wait_status(1, "error");
    assert!(ended["extra_msgs"]["recovery"]["judged"].is_null(), "{ended:#}");
    drop(
        fleet.env.tpu("set-rule 1 killed-by-signal:resume,preempted:reapply,lost:resume").exits(0),
    );
    drop(
        fleet
            .env
            .tpu("daemon plan")
            .exits(0)
            .says(&["no rule fires before it is known what happened"]),
    );
    for _ in 0..3 {
        fleet.env.acknowledge();
    }
    assert_eq!(fleet.env.jobs("alice").len(), 2);
    assert_eq!(fleet.operations("delete").len() + fleet.operations("create").len(), 0);
    drop(monitor);
}

#[test]
fn after_a_restart_of_the_machine_the_rules_act_once() {
    let fleet = Fleet::new(2);
    // As a restart leaves it: no tmux server, and another boot in every record.
    fleet.env.tmux().run(&["kill-server"]);
    let mut data = fleet.env.data();
    for job in data["users"]["alice"]["job_data"].as_array_mut().unwrap() {
        job["extra_msgs"]["place"]["boot"] = "00000000-0000-0000-0000-000000000000".into();
    }
    fleet.env.write_data(&data);
    for name in &fleet.names {
        drop(fleet.env.tpu(&format!("sim preempt {name}")).exits(0));
        drop(fleet.env.tpu(&format!("sim ready {name}")).exits(0));
    }
    let check = fleet.env.tpu("check --json").exits(0).json();
    for job in check["jobs"].as_array().unwrap() {
        let unknown = job["unknown"].as_str().unwrap_or_default();
        assert!(unknown.contains("its workers are to be asked"), "{job:#}");
    }
    let monitor = fleet.env.daemon(&[]);
    fleet.watched(|| fleet.all_at_work(2));
    drop(monitor);
    let again = fleet.env.daemon(&[]);
    fleet.env.acknowledge();
    fleet.all_at_work(2);
    drop(again);
}

#[test]
fn without_capacity_for_twenty_tries_the_waits_grow_and_the_same_target_is_made_in_the_end() {
    let fleet = Fleet::new(1);
    let name = "lab-spot-1";
    fleet.play("[timing]\ncreate_s = 0.1\ndelete_s = 0.1\n");
    let before = fleet.env.data()["targets"][name].clone();
    drop(fleet.env.tpu(&format!("sim capacity {name} --off --times 20")).exits(0));
    let monitor = fleet.env.daemon(&[]);
    fleet.preempt_all();
    drop(fleet.env.tpu("ack").exits(0));
    for tried in 1..=20_u64 {
        let waits = wait_for(&format!("refusal {tried}"), || {
            let plan = fleet.env.tpu("daemon plan --json").exits(0).json();
            let counted = fleet.records(name).pop()?["extra_msgs"]["recovery"]["capacity"] == tried;
            let next = plan["jobs"][0]["next"].clone();
            (counted && next["budget_left"] == 10_000 - tried && next["in_s"].as_u64()? > 0)
                .then_some(next)
        });
        // 60 s doubling to 300 s, a tenth more at most; some of it has passed since.
        let spec = (60 << (tried - 1).min(10)).min(300);
        let in_s = waits["in_s"].as_u64().unwrap();
        assert!(in_s <= spec + spec / 10 && in_s > spec - 30, "try {tried}: {waits:#}");
        assert_eq!(fleet.env.jobs("alice").len(), 1);
        drop(fleet.env.tpu("check").exits(0).says(&["next: ", "preempted"]));
        fleet.env.a_year_ago("alice", 1);
    }
    fleet.all_at_work(2);
    assert_eq!(fleet.env.data()["targets"][name], before, "what is asked for is remembered");
    let seen = fleet.env.tpu(&format!("check-status {name} --json")).exits(0).json();
    let target = &seen["targets"][0];
    assert_eq!((&target["type"], &target["pricing"]), (&"v2-8".into(), &"spot".into()));
    assert_eq!(fleet.operations("delete").len(), 1);
    drop(monitor);
}
