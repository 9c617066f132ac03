//! `retry:`: a job goes on by itself as often as its file says, after the failures that it names, and never for ever.

use crate::common::env::{Running, TestEnv};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Counts its runs, and fails with another code each time.
const EACH_OTHERWISE: &str = "echo r >>\"$HOME/runs\"; exit $((20 + $(wc -l <\"$HOME/runs\")))";

/// Counts its runs, and fails in the same way each time, but for a number.
const ALL_ALIKE: &str = "echo r >>\"$HOME/runs\"; echo \"Traceback (most recent call last):\"; \
    echo \"ValueError: at $(date +%s%N)\"; exit 1";

fn lab(retry: &str, command: &str) -> (TestEnv, Running) {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let monitor = env.start_tpu("daemon run", &[]);
    let text = format!("target: local\nretry: {retry}\ncommand: |\n  {command}\n");
    write_file(&env.path("job.yaml"), &text);
    drop(env.tpu("run job.yaml -q").exits(0));
    (env, monitor)
}

fn runs(env: &TestEnv) -> usize {
    std::fs::read_to_string(env.path("runs")).unwrap_or_default().lines().count()
}

/// Waits until nothing happens by itself any more; why.
fn stopped(env: &TestEnv) -> String {
    let mut why = String::new();
    wait_until("it is given up", || {
        let stopped =
            env.jobs("alice").pop().map(|last| last["extra_msgs"]["recovery"]["stopped"].clone());
        why = stopped.and_then(|why| why.as_str().map(str::to_owned)).unwrap_or_default();
        !why.is_empty()
    });
    why
}

#[test]
fn it_comes_back_so_often_and_a_person_begins_to_count_anew() {
    let (env, _monitor) = lab("{max: 2, on: [unknown], backoff: 1s}", EACH_OTHERWISE);
    let why = stopped(&env);
    assert!(why.contains("its budget is used up: 2 retries"), "{why}");
    assert_eq!(runs(&env), 3);
    drop(env.tpu("rerun 3 -f").exits(0));
    wait_until("it was brought back twice more", || runs(&env) == 6);
    let why = stopped(&env);
    assert!(why.contains("2 retries"), "{why}");
    assert_eq!((runs(&env), env.jobs("alice").len()), (6, 6));
}

#[test]
fn the_same_failure_of_a_program_is_retried_twice_at_most() {
    let (env, _monitor) = lab("{max: 9, backoff: 1s}", ALL_ALIKE);
    let why = stopped(&env);
    assert!(why.contains("the same exit code and line 3 times in a row"), "{why}");
    assert_eq!(runs(&env), 3);
}

#[test]
fn of_what_is_not_named_nothing_comes_back() {
    let (env, _monitor) = lab("{max: 9, on: [lost, oom]}", ALL_ALIKE);
    drop(env.wait_status(1, "error"));
    let says = "no automatic restart (rule python-error=pass)";
    wait_until("the daemon leaves it", || env.tpu("check 1").stdout.contains(says));
    assert_eq!((runs(&env), env.jobs("alice").len()), (1, 1));
}

#[test]
fn a_plan_and_a_check_say_what_is_retried() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let text = "target: local\nretry: {max: 3, on: [oom, lost], backoff: 90s}\ncommand: a\n";
    write_file(&env.path("job.yaml"), text);
    let shown = env.tpu("run job.yaml -q --dry-run").exits(0).stdout;
    assert!(shown.contains("at most 3 times after oom, lost; the first one after 90 s"), "{shown}");
    assert!(shown.contains("oom:resume") && shown.contains("lost:resume"), "{shown}");
}
