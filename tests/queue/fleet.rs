//! A sweep over a simulated fleet: ten members on whatever is free, one killed, all others back after their machines
//! were taken away, each to its end, and beside each other by their losses.

use std::collections::BTreeSet;

use serde_json::Value;
use tpu_system::sys::proc;

use crate::common::env::TestEnv;
use crate::common::wait::{wait_for, wait_until};

const TARGETS: u64 = 4;

/// The training of the example, faster, which stays at a step until there is a file `go`.
fn train() -> String {
    let whole = include_str!("../../assets/example/train.py");
    let waits = "time.sleep(0.02)\n        \
                 while state[\"step\"] == 55 and not (Path.home() / \"go\").exists():\n            \
                 time.sleep(0.05)";
    let paused = whole.replace("STEPS = 300", "STEPS = 60").replace("time.sleep(0.2)", waits);
    assert!(paused.contains("Path.home()") && paused.contains("STEPS = 60"), "{paused}");
    paused
}

fn check(env: &TestEnv, words: &str) -> Vec<Value> {
    let said = env.tpu(&format!("check alice {words} --json")).exits(0).json();
    said["jobs"].as_array().unwrap().clone()
}

/// The newest attempt of each member: which it is, how it is, and how often it was resumed.
fn members(env: &TestEnv) -> Vec<(u64, String, u64)> {
    let jobs = check(env, "").into_iter().filter(|job| job["leaf"] == true);
    let begun = jobs.filter(|job| job["group"] == 1 && job["members"].is_null());
    let member = |job: Value| {
        let status = job["status"].as_str().unwrap().to_owned();
        (job["member"].as_u64().unwrap(), status, job["stage"].as_u64().unwrap())
    };
    begun.map(member).filter(|(_, status, _)| status != "queued").collect()
}

#[test]
fn a_sweep_on_a_fleet_comes_back_whole_after_a_preemption() {
    let mut env = TestEnv::new();
    if proc::run(&env.spawn_program("python3", &["--version"])).is_err() {
        println!("skipped: there is no python3");
        return;
    }
    env.code("alice", "train.py", &train());
    for (name, value) in [("TPU_USER", "alice"), ("USER", "alice"), ("TPU_CLOUD", "sim")] {
        env.set(name, value);
    }
    for number in 1..=TARGETS {
        let words = format!("register lab-v4-8-{number} --type v4-8 --zone us-central2-b --spot");
        drop(env.tpu(&words).exits(0));
        drop(env.tpu(&format!("sim ready lab-v4-8-{number}")).exits(0));
    }
    drop(env.tpu("set-settings arguments flags").exits(0));
    drop(env.tpu("daemon start").exits(0));
    let words = "submit v4-8 lr=1e-1,1e-4 seed=0-4 --sweep --json -- python3 train.py";
    let said = env.tpu(words).exits(0).json();
    assert_eq!(said["jobs"][0]["window"], 1, "{said:#}");
    assert_eq!(said["jobs"][0]["members"].as_array().unwrap().len(), 10);

    let at_step_55 = || -> BTreeSet<u64> {
        let jobs = check(&env, "").into_iter().filter(|job| job["leaf"] == true);
        let there = jobs.filter(|job| job["status"] == "running" && job["progress"]["step"] == 55);
        there.filter_map(|job| job["member"].as_u64()).collect()
    };
    wait_until("as many run as there are targets", || at_step_55().len() == 4);
    let folded = env.tpu("check alice").exits(0).stdout;
    assert!(folded.contains("10 members: 4 running, 6 queued"), "as one row: {folded}");
    // One is killed, and another begins in its place.
    let killed = *at_step_55().first().unwrap();
    drop(env.tpu(&format!("kill 1_{killed} -y")).exits(0));
    let hit = wait_for("the next one runs in its place", || {
        let there = at_step_55();
        (there.len() == 4 && !there.contains(&killed)).then_some(there)
    });
    // All machines are taken away under those that run.
    for number in 1..=TARGETS {
        drop(env.tpu(&format!("sim preempt lab-v4-8-{number}")).exits(0));
    }
    wait_until("each goes on, though others wait for the machine that is made anew for it", || {
        let back = members(&env).into_iter().filter(|(_, _, stage)| *stage > 0);
        back.map(|(member, ..)| member).collect::<BTreeSet<u64>>().is_superset(&hit)
    });
    env.touch("go");
    wait_until("all but the one that was killed are finished", || {
        members(&env).iter().filter(|(_, status, _)| status == "finished").count() == 9
    });
    let ends = members(&env);
    assert_eq!(ends.len(), 10, "{ends:?}");
    let stopped: Vec<u64> = ends
        .iter()
        .filter(|(_, status, _)| status == "killed")
        .map(|(member, ..)| *member)
        .collect();
    assert_eq!(stopped, [killed], "{ends:?}");
    // Nobody ran twice: of each member one lineage, and each attempt but the last has one successor.
    let attempts = env.jobs("alice");
    let firsts = attempts.iter().filter(|job| job["extra_msgs"]["father"].is_null());
    assert_eq!(firsts.count(), 10, "{attempts:#?}");

    let said = env.tpu("sweep 1 --json").exits(0).json();
    let ranked = said["jobs"].as_array().unwrap();
    assert_eq!(ranked.len(), 10);
    let lr = |one: &Value| {
        let differs = one["differs"].as_array().unwrap().iter();
        let mut words = differs.filter_map(|word| word.as_str()?.rsplit_once("lr="));
        words.next().unwrap().1.to_owned()
    };
    // Who learns so slowly is behind everybody who does not.
    let rates: Vec<String> = ranked.iter().map(lr).collect();
    assert_eq!(rates[..4], vec!["1e-1"; 4], "{rates:?}");
    let best = &ranked[0];
    assert!(best["last_loss"].as_f64().unwrap() < 0.1, "{best:#}");
}
