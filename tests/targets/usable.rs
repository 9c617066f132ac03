//! A target that is made usable before a job starts there says each step until it is.

use crate::common::env::TestEnv;

/// A lab of alice on the simulated cloud, whose target was taken away.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    env.code("alice", "staging.sh", "exec sleep 1000\n");
    drop(env.tpu("sim preempt v2-1").exits(0));
    env
}

#[test]
fn a_start_with_apply_shows_its_steps() {
    let env = lab();
    let ran = env.tpu("run v2-1 -apply -q").exits(0);
    let steps: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" is ")).collect();
    assert!(steps.first().is_some_and(|first| first.contains("is PREEMPTED")), "{ran}");
    assert!(steps.last().is_some_and(|last| last.contains("is READY")), "{ran}");
    drop(env.tpu("kill 1").exits(0));
    drop(env.tpu("sim preempt v2-1").exits(0));
    let again = env.tpu("rerun 1 -y --apply").exits(0);
    drop(again.says(&["is PREEMPTED", "is READY", "Started again alice/1"]));
    // What reads JSON hears nothing beside it.
    drop(env.tpu("kill 2").exits(0));
    drop(env.tpu("sim preempt v2-1").exits(0));
    let silent = env.tpu("run v2-1 -apply -q --json").exits(0);
    assert!(!silent.stderr.contains("is READY"), "{silent}");
}
