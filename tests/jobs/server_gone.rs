//! The tmux server has ended, and no daemon runs: each command settles what has ended with it, and says what to type about
//! what goes on, or what nobody can know.

use serde_json::Value;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// Jobs of alice that have begun, and whose tmux server has ended since.
fn after_the_server(count: u64) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let script =
        "echo w >\"$TPU_LOG_DIR/checkpoint_1\"; echo $$ >\"$HOME/pid-$TPU_JOB_ID\"; sleep 1000";
    for window in 1..=count {
        let named = script.replace("$TPU_JOB_ID", &window.to_string());
        assert_eq!(env.start(&named, &NONE), window);
    }
    let programs: Vec<_> =
        (1..=count).map(|window| env.wait_pid(&format!("pid-{window}"))).collect();
    env.tmux().kill_server();
    programs.iter().for_each(wait_gone);
    wait_until("all have ended", || {
        let said = env.tpu("check").exits(0).to_string();
        said.matches("its tmux server has ended").count() >= usize::try_from(count).unwrap()
    });
    env
}

fn statuses(env: &TestEnv) -> Vec<String> {
    env.jobs("alice").iter().map(|job| job["status"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_has_ended_with_its_server_is_explained_and_settled_by_any_command() {
    let env = after_the_server(4);
    assert_eq!(statuses(&env), ["running"; 4], "looking writes nothing");
    let explained = env.tpu("explain 1").exits(0);
    drop(explained.says(&["lost", "its tmux server has ended", "since: after"]));
    drop(env.tpu("kill 1 -y").exits(0));
    assert_eq!(env.job("alice", 1)["status"], "killed");
    drop(env.tpu("-czj alice").exits(0).says(&["Archived 4 jobs"]));

    let env = after_the_server(2);
    drop(env.tpu("resume w=2").exits(0));
    assert_eq!(env.job("alice", 2)["status"], "resumed");
    env.wait_status(3, "running");
    drop(env.tpu("clean").exits(0).says(&["Archived 1 job"]));
    assert_eq!(env.jobs("alice").len(), 2, "the lineage that is at work stays");
}

#[test]
fn what_outlives_its_server_is_said_to_go_on_and_is_settled_by_nobody_but_a_kill() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let script = "setsid sleep 1000 & echo $! >\"$HOME/child\"; sleep 1000";
    assert_eq!(env.start(script, &NONE), 1);
    let child = env.wait_pid("child");
    env.tmux().kill_server();
    wait_until("it is said", || {
        env.tpu("explain 1").exits(0).to_string().contains("it continues here (process")
    });
    drop(env.tpu("explain 1").exits(0).says(&["is running", "window: gone", "tpu kill w=1 alice"]));
    drop(env.tpu("clean").exits(0).says(&["Archived 0 jobs"]));
    drop(env.tpu("-czj alice").exits(0).says(&["Archived 0 jobs", "it continues here"]));
    drop(env.tpu("resume w=1").exits(4).says(&["tpu kill w=1 alice"]));
    assert_eq!(statuses(&env), ["running"]);
    assert!(lives(&child));
    drop(env.tpu("kill 1 -y").exits(0));
    wait_gone(&child);
    assert_eq!(statuses(&env), ["killed"]);
}

/// Its records say nothing of where their windows live: nobody but a person can know that they are gone.
fn original() -> TestEnv {
    const FILE: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/original-without-session.json");
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let data: Value = serde_json::from_str(&std::fs::read_to_string(FILE).unwrap()).unwrap();
    env.write_data(&data);
    env
}

#[test]
fn a_person_settles_what_the_original_ran_in_a_session_that_is_gone() {
    for is_up in [false, true] {
        let env = original();
        if is_up {
            env.tmux().run(&["new-session", "-d", "-s", "other"]);
        }
        let way_out = "tpu kill w=1 alice --force";
        drop(env.tpu("explain 1").exits(0).says(&[way_out]));
        drop(env.tpu("kill 1 -y").exits(6).says(&[way_out]));
        drop(env.tpu("resume w=1").exits(6).says(&[way_out]));
        assert_eq!(statuses(&env), ["running", "resumed", "running"]);
        drop(env.tpu("kill 1 -y --force --dry-run").exits(0).says(&["Would kill alice/1"]));
        drop(env.tpu("kill 1 -y --force").exits(0));
        assert_eq!(statuses(&env), ["killed", "resumed", "running"]);
        drop(env.tpu("clean").exits(0).says(&["Archived 1 job"]));
        drop(env.tpu("kill 3 -y --force").exits(0));
        drop(env.tpu("clean").exits(0).says(&["Archived 2 jobs"]));
        assert_eq!(env.jobs("alice").len(), 0);
    }
}
