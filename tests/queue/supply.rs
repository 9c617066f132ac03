//! `submit --apply`: a target is made for what waits, once, whoever dies meanwhile; no more than may be there; asked
//! for again where there is no capacity; and taken back when nobody waits for it any more.

use serde_json::Value;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

struct Lab {
    env: TestEnv,
}

impl Lab {
    /// Two targets that are known and not there.
    fn new() -> Self {
        let mut env = TestEnv::new();
        for (name, value) in [("TPU_USER", "alice"), ("TPU_CLOUD", "sim")] {
            env.set(name, value);
        }
        for number in 1..=2 {
            let words = format!("register lab-v4-8-{number} --type v4-8 --zone zone-a --spot");
            drop(env.tpu(&words).exits(0));
        }
        let lab = Self { env };
        lab.play("[timing]\ncreate_s = 0.5\ndelete_s = 0.2\n");
        // What is known when the simulated cloud begins is there.
        for number in 1..=2 {
            drop(lab.env.tpu(&format!("delete lab-v4-8-{number} -y")).exits(0));
        }
        lab
    }

    fn play(&self, story: &str) {
        let file = self.env.path("story.toml");
        write_file(&file, story);
        let words = ["sim", "play", file.to_str().unwrap()];
        drop(self.env.tpu_words(&words).exits(0));
    }

    /// What the control plane was asked to do, by the target.
    fn asked(&self, verb: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path("tpu-state/sim.json")).unwrap();
        let fleet: Value = serde_json::from_str(&text).unwrap();
        let all = fleet["operations"].as_array().unwrap().iter();
        let meant = all.filter(|begun| begun["operation"]["verb"] == verb);
        meant.map(|begun| begun["operation"]["target"].to_string()).collect()
    }

    fn state(&self, target: &str) -> String {
        let seen = self.env.tpu(&format!("check-status {target} --json")).exits(0).json();
        seen["targets"][0]["state"].as_str().unwrap().to_owned()
    }

    /// How many targets are there.
    fn ready(&self) -> usize {
        let seen = self.env.tpu("check-status --json").exits(0).json();
        let all = seen["targets"].as_array().unwrap().iter();
        all.filter(|target| target["state"] == "ready").count()
    }

    fn running(&self) -> usize {
        let jobs = self.env.jobs("alice");
        jobs.iter().filter(|job| job["status"] == "running").count()
    }

    fn makings(&self) -> Vec<Value> {
        self.env.data()["queue"]["makings"].as_array().cloned().unwrap_or_default()
    }

    fn why(&self, number: u32) -> String {
        self.env.tpu(&format!("explain {number}")).exits(0).stdout
    }
}

#[test]
fn a_target_is_made_for_each_that_waits_and_no_more_than_may_be_there() {
    let lab = Lab::new();
    let _monitor = lab.env.daemon(&[]);
    let most = lab.ready() + 1;
    drop(lab.env.tpu(&format!("set-settings max_targets {most} alice")).exits(0));
    drop(lab.env.tpu("submit v4-8 --array 0-2 --apply -- sleep 1000").exits(0));
    wait_until("one of them runs", || lab.running() == 1);
    wait_until("nothing is in the making", || lab.makings().is_empty());
    assert!(lab.why(1).contains("no target of v4-8 is free"), "{}", lab.why(1));
    assert_eq!(lab.asked("create").len(), 1);
    drop(lab.env.tpu("set-settings max_targets 99 alice").exits(0));
    drop(lab.env.tpu("ack").exits(0));
    wait_until("two of them run", || lab.running() == 2);
    // There is no third one, and what was made is free for the next.
    drop(lab.env.tpu("kill 1_0 -y").exits(0));
    wait_until("the last one runs", || lab.env.jobs("alice").len() == 3 && lab.running() == 2);
    assert_eq!(lab.asked("create").len(), 2, "{:?}", lab.asked("create"));
    assert!(lab.makings().is_empty(), "{:?}", lab.makings());
}

#[test]
fn without_capacity_it_is_asked_for_again_and_says_so() {
    let lab = Lab::new();
    drop(lab.env.tpu("sim capacity lab-v4-8-1 --off").exits(0));
    let _monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("submit lab-v4-8-1 --apply -- sleep 1000").exits(0));
    wait_until("it was asked for in vain", || lab.why(1).contains("is asked for again in"));
    assert_eq!(lab.makings()[0]["tries"], 1, "{:?}", lab.makings());
    // The next try is a minute away, or now, when somebody says so.
    drop(lab.env.tpu("sim capacity lab-v4-8-1").exits(0));
    drop(lab.env.tpu("ack").exits(0));
    wait_until("it runs", || lab.running() == 1);
    let journal = lab.env.journal();
    let told = journal.iter().filter(|event| event.text.contains("could not be created")).count();
    assert_eq!(told, 1, "{journal:#?}");
}

#[test]
fn what_nobody_waits_for_any_more_is_taken_back() {
    let lab = Lab::new();
    lab.play("[timing]\ncreate_s = 600\ndelete_s = 0.2\n");
    let _monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("submit lab-v4-8-1 --apply -- sleep 1000").exits(0));
    wait_until("it is on its way", || lab.asked("create").len() == 1);
    assert!(lab.why(1).contains("lab-v4-8-1 is being made for it"), "{}", lab.why(1));
    drop(lab.env.tpu("kill 1 -y").exits(0));
    wait_until("it is given back", || lab.makings().is_empty());
    assert_eq!(lab.asked("delete").len(), 3, "two of them when it began");
    wait_until("it is gone", || lab.state("lab-v4-8-1") == "gone");
}

#[test]
fn what_somebody_else_has_asked_for_is_not_taken_back() {
    let lab = Lab::new();
    drop(lab.env.tpu("sim capacity lab-v4-8-1 --off").exits(0));
    let _monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("submit lab-v4-8-1 --apply -- sleep 1000").exits(0));
    wait_until("it was asked for in vain", || lab.why(1).contains("is asked for again in"));
    lab.play("[timing]\ncreate_s = 600\ndelete_s = 0.2\n");
    drop(lab.env.tpu("sim capacity lab-v4-8-1").exits(0));
    let other = lab.env.start_tpu("apply lab-v4-8-1", &[]);
    wait_until("somebody makes it", || lab.state("lab-v4-8-1") == "pending");
    other.kill();
    drop(lab.env.tpu("kill 1 -y").exits(0));
    wait_until("it is left alone", || lab.makings().is_empty());
    assert_eq!(lab.state("lab-v4-8-1"), "pending");
    assert_eq!(lab.asked("delete").len(), 2, "as when it began");
}

#[test]
fn a_limit_of_the_user_counts_for_what_is_made() {
    let lab = Lab::new();
    drop(lab.env.tpu("set-settings max_parallel 1 alice").exits(0));
    let _monitor = lab.env.daemon(&[]);
    for number in 1..=2 {
        drop(lab.env.tpu(&format!("submit lab-v4-8-{number} --apply -- sleep 1000")).exits(0));
    }
    wait_until("the first one runs", || lab.running() == 1);
    wait_until("nothing is in the making", || lab.makings().is_empty());
    assert_eq!(lab.asked("create").len(), 1, "{:?}", lab.asked("create"));
}

#[test]
fn a_monitor_that_is_killed_meanwhile_is_succeeded_and_one_target_is_made() {
    for points in ["supply-written=sleep(100000)", "reapply-asked=sleep(100000)"] {
        let lab = Lab::new();
        let monitor = lab.env.daemon(&[("FAILPOINTS", points)]);
        drop(lab.env.tpu("submit v4-8 --apply -- sleep 1000").exits(0));
        let token = wait_for("it is written down", || {
            let makings = lab.makings();
            let making = makings.first()?;
            Some(making["token"].clone())
        });
        if points.starts_with("reapply") {
            wait_until("it is asked for", || !lab.asked("create").is_empty());
        }
        monitor.kill();
        assert_eq!(lab.makings()[0]["token"], token, "{points}");
        let _next = lab.env.daemon(&[]);
        wait_until("it runs", || lab.running() == 1);
        wait_until("nothing is in the making", || lab.makings().is_empty());
        assert_eq!(lab.asked("create").len(), 1, "{points}: {:?}", lab.asked("create"));
        assert_eq!(lab.env.jobs("alice").len(), 1, "{points}");
    }
}

#[test]
fn a_target_that_was_taken_away_is_made_anew_and_no_other_beside_it() {
    let lab = Lab::new();
    drop(lab.env.tpu("sim ready lab-v4-8-1").exits(0));
    drop(lab.env.tpu("sim preempt lab-v4-8-1").exits(0));
    // So many turns see it on its way out.
    lab.play("[timing]\ncreate_s = 0.5\ndelete_s = 3\n");
    let _monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("submit v4-8 --apply -- sleep 1000").exits(0));
    wait_until("it runs", || {
        drop(lab.env.tpu("ack"));
        lab.running() == 1
    });
    assert_eq!(lab.asked("create"), ["\"lab-v4-8-1\""], "and not the other one as well");
}

#[test]
fn what_is_there_is_not_made_whatever_people_wrote() {
    let lab = Lab::new();
    drop(lab.env.tpu("sim ready lab-v4-8-1").exits(0));
    let mut data = lab.env.data();
    data["board"]["lab-v4-8-1"] = serde_json::json!({ "status": "gone" });
    lab.env.write_data(&data);
    let _monitor = lab.env.daemon(&[]);
    for number in 1..=2 {
        drop(lab.env.tpu(&format!("submit lab-v4-8-{number} --apply -- sleep 1000")).exits(0));
    }
    wait_until("the other one was made", || lab.running() == 1);
    let made = || -> Vec<String> {
        let journal = lab.env.journal().into_iter().map(|event| event.text);
        journal.filter(|text| text.contains("was made for")).collect()
    };
    // The job may begin before it is written down for whom its target was made.
    wait_until("that is written down", || !made().is_empty());
    assert_eq!(made(), ["lab-v4-8-2 was made for alice/2"], "{:#?}", lab.env.journal());
}

#[test]
fn what_nobody_makes_is_not_promised() {
    let lab = Lab::new();
    drop(lab.env.tpu("hosts add gpu1 --address 127.0.0.1 --no-probe"));
    for target in ["local", "gpu1"] {
        let out = lab.env.tpu(&format!("submit {target} --apply -- true")).exits(4);
        assert!(out.stderr.contains("--apply"), "{}", out.report());
    }
    assert!(lab.env.data()["queue"]["entries"].as_array().is_none_or(Vec::is_empty));
}
