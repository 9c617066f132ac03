//! What the simulation has found in the program, once each in the built one.

use serde_json::{Value, json};

use crate::common::env::{TestEnv, lives};
use crate::common::wait::wait_until;

fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_TEST_ROOT", env.path(""));
    env
}

/// Changes the only record of alice.
fn change(env: &TestEnv, change: impl FnOnce(&mut Value)) {
    let mut data = env.data();
    change(&mut data["users"]["alice"]["job_data"][0]);
    env.write_data(&data);
}

#[test]
fn a_kill_that_was_overtaken_by_a_good_end_is_over() {
    let env = lab();
    env.start("exit 0", &[""; 0]);
    env.wait_status(1, "finished");
    wait_until("its end", || env.job("alice", 1)["extra_msgs"]["launch"]["ended"].is_string());
    change(&env, |job| {
        job["extra_msgs"]["intent"] =
            json!({ "action": "killing", "at": "2026-11-20T08:00:00Z", "by": "here:boot:1:1" });
    });
    drop(env.tpu("kill w=1 -y").exits(4).says(&["ended before it was killed"]));
    let job = env.job("alice", 1);
    assert_eq!((&job["status"], &job["extra_msgs"]["intent"]), (&json!("finished"), &Value::Null));
}

#[test]
fn what_may_still_run_on_another_machine_is_not_succeeded_from_here() {
    let env = lab();
    env.start("echo w >\"$TPU_LOG_DIR/checkpoint_1\"; exit 1", &[""; 0]);
    env.wait_status(1, "error");
    wait_until("its end", || env.job("alice", 1)["extra_msgs"]["launch"]["ended"].is_string());
    change(&env, |job| {
        job["extra_msgs"]["place"]["host"] = json!("elsewhere");
        let launch = job["extra_msgs"]["launch"].as_object_mut().unwrap();
        drop(launch.remove("exit"));
        drop(launch.remove("ended"));
    });
    drop(env.tpu("resume w=1").exits(4).says(&["may still run on elsewhere", "--force"]));
    assert_eq!(env.jobs("alice").len(), 1);
    drop(env.tpu("resume w=1 --force").exits(0));
    assert_eq!(env.jobs("alice").len(), 2);
}

#[test]
fn a_job_that_has_outlived_its_window_holds_its_target() {
    let env = lab();
    let script = "trap '' HUP; echo $$ >\"$TPU_TEST_ROOT/pid.new\"; \
                  mv \"$TPU_TEST_ROOT/pid.new\" \"$TPU_TEST_ROOT/pid\"; \
                  until [ -e \"$TPU_TEST_ROOT/go\" ]; do sleep 0.4; done";
    env.code("alice", "staging.sh", script);
    drop(env.tpu("run v2-1 -q").exits(0));
    let process = env.wait_pid("pid");
    drop(env.tmux().try_run(&["kill-window", "-t", "=alice:1"]));
    wait_until("the window to be gone", || !env.has_window("alice", 1));
    assert!(lives(&process));
    drop(env.tpu("run v2-1 -q").exits(4).says(&["in use by alice/1"]));
    env.touch("go");
    wait_until("the program to end", || !lives(&process));
    // Its launcher has the last word.
    wait_until("the target to be free", || env.tpu("run v2-1 -q").code == 0);
}
