//! A command on the workers of a target, in the built program and on the simulated fleet: it starts once on
//! each, its lines say whose they are, the highest exit code is the job's, a broken connection is no end,
//! and a kill ends exactly what was started.

use serde_json::Value;

use tpu_system::sys::procs::Process;

use crate::common::env::{TestEnv, lives};
use crate::common::wait::{wait_for, wait_until};

/// A fleet of one target with four workers.
const TARGET: &str = "lab-tpuvm-v2-32-1";

fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    drop(env.tpu("sim list").exits(0).says(&[TARGET, "READY"]));
    env
}

/// Starts a bash script on the workers, with `$HOME` as the meeting point of all; its window.
#[track_caller]
fn run(env: &TestEnv, script: &str) -> u64 {
    let words = ["run", TARGET, "alice", "--json", "--", "bash", "-c", script];
    env.tpu_words(&words).exits(0).json()["launched"]["window"].as_u64().unwrap()
}

/// The processes that the workers have noted, in their order.
fn pids(env: &TestEnv) -> Vec<Process> {
    let pid = |worker| env.wait_pid(&format!("pid-{worker}"));
    (0..4).map(pid).collect()
}

/// What a worker does: notes itself and how often it was started, then waits for `go`.
const STAYS: &str = "echo $$ >>\"$HOME/starts-$TPU_WORKER\"; echo $$ >\"$HOME/pid-$TPU_WORKER\"; \
    echo \"ready $TPU_WORKER\"; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; echo \"over $TPU_WORKER\"";

fn starts(env: &TestEnv) -> Vec<usize> {
    let count = |worker: u32| {
        let text = std::fs::read_to_string(env.path(&format!("starts-{worker}")));
        text.map_or(0, |text| text.lines().count())
    };
    (0..4).map(count).collect()
}

#[test]
fn it_starts_once_on_each_and_the_highest_exit_code_is_the_jobs() {
    let env = lab();
    let window = run(&env, &format!("{STAYS}; exit $TPU_WORKER"));
    let _all = pids(&env);
    drop(env.tpu("check").exits(0).says(&["running"]));
    env.touch("go");
    let job = env.wait_status(window, "error");
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 3);
    assert_eq!(starts(&env), [1, 1, 1, 1]);
    let output = env.log(window);
    for worker in 0..4 {
        assert!(output.contains(&format!("[worker {worker}] ready {worker}\n")), "{output}");
        assert!(output.contains(&format!("[worker {worker}] over {worker}\n")), "{output}");
    }
    assert_eq!(output.lines().count(), 8, "{output}");
}

#[test]
fn where_all_end_well_the_job_has_finished() {
    let env = lab();
    env.touch("go");
    let window = run(&env, STAYS);
    env.wait_status(window, "finished");
}

#[test]
fn words_and_environment_arrive_on_the_workers_as_they_are() {
    let env = lab();
    let odd = "a b'\"$(id)`id`;#{pane_id}\n=\\";
    let script =
        "printf '%s|' \"$1\" \"$TPU_JOB\" \"$TPU_TARGET\" \"$PWD\" >\"$HOME/said-$TPU_WORKER\"";
    let words = ["run", TARGET, "alice", "-q", "--", "bash", "-c", script, "job", odd];
    drop(env.tpu_words(&words).exits(0));
    let job = env.wait_status(1, "finished");
    let stage = job["stage_dir"].as_str().unwrap();
    for worker in 0..4 {
        let said = std::fs::read_to_string(env.path(&format!("said-{worker}"))).unwrap();
        assert_eq!(said, format!("{odd}|alice/1|{TARGET}|{stage}|"));
    }
}

/// A program there has no terminal, and is told that somebody sees it all the same. Bars of several workers are
/// lines.
#[test]
fn what_a_worker_draws_is_shown_in_lines() {
    let env = lab();
    let script = r#"
        printf '%s\n' "$FORCE_COLOR $TTY_COMPATIBLE $PYTHONUNBUFFERED $((COLUMNS > 19))"
        for i in {1..50}; do printf '\r\e[32m%d/50\e[0m' $i; done; printf '\n'
        printf 'train 0\nvalid 0'
        for i in {1..50}; do printf '\r\e[2K\e[1A\e[2Ktrain %d\nvalid %d' $i $i; done; printf '\n'
    "#;
    let window = run(&env, script);
    env.wait_status(window, "finished");
    let output = env.log(window);
    for worker in 0..4 {
        let mark = format!("[worker {worker}] ");
        let lines: Vec<&str> =
            output.lines().filter_map(|line| line.strip_prefix(&*mark)).collect();
        assert_eq!(lines.first(), Some(&"1 1 1 1"), "{output}");
        assert!(lines.contains(&"50/50"), "{output}");
        assert!(lines.ends_with(&["train 50", "valid 50"]), "{output}");
        assert!(lines.len() < 20, "{output}");
    }
    assert!(output.lines().all(|line| line.starts_with("[worker ")), "{output}");
}

#[test]
fn a_kill_ends_it_on_every_worker() {
    let env = lab();
    let window = run(&env, STAYS);
    let all = pids(&env);
    drop(env.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(env.job("alice", window)["status"], "killed");
    let left: Vec<&Process> = all.iter().filter(|process| lives(process)).collect();
    assert!(left.is_empty(), "{left:?} live");
}

#[test]
fn a_command_that_outlives_its_window_keeps_its_target_and_ends_by_a_kill() {
    let env = lab();
    let window = run(&env, STAYS);
    let all = pids(&env);
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["kill-window", "-t", &pane]);
    wait_until("its window is gone", || !env.has_window("alice", window));
    wait_until("it is shown", || env.tpu("check").to_string().contains("are to be asked"));
    assert!(all.iter().all(lives), "a closed window takes nothing from the workers");
    let other = format!("run {TARGET} alice -q -- true");
    drop(env.tpu(&other).exits(4).says(&["is in use by alice/1"]));
    drop(env.tpu("clean").exits(0).says(&["Archived 0 jobs"]));
    assert!(all.iter().all(lives), "nobody has ended it");
    drop(env.tpu(&format!("kill {window} -y")).exits(0));
    assert!(!all.iter().any(lives));
    drop(env.tpu(&other).exits(0));
}

#[test]
fn a_broken_connection_is_no_end_and_no_second_start() {
    let env = lab();
    let window = run(&env, STAYS);
    let _all = pids(&env);
    wait_until("all are heard", || env.log(window).matches("ready").count() == 4);
    drop(env.tpu(&format!("sim cut {TARGET}")).exits(0));
    wait_until("the silence is noticed", || {
        env.log(window).matches("does not answer").count() == 4
    });
    // It may be at work behind the silence: it cannot be killed for certain, and is not said to be.
    drop(env.tpu(&format!("kill {window} -y")).exits(6).says(&["the connection is broken"]));
    assert_ne!(env.job("alice", window)["status"], "killed");
    drop(env.tpu(&format!("sim mend {TARGET}")).exits(0));
    drop(env.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(env.job("alice", window)["status"], "killed");
    assert_eq!(starts(&env), [1, 1, 1, 1]);
}

#[test]
fn it_is_heard_again_when_the_connection_comes_back() {
    let env = lab();
    let window = run(&env, STAYS);
    let _all = pids(&env);
    wait_until("all are heard", || env.log(window).matches("ready").count() == 4);
    drop(env.tpu(&format!("sim cut {TARGET}")).exits(0));
    wait_until("the silence is noticed", || env.log(window).contains("does not answer"));
    env.touch("go");
    drop(env.tpu(&format!("sim mend {TARGET}")).exits(0));
    env.wait_status(window, "finished");
    let output = env.log(window);
    assert_eq!(output.matches("ready").count(), 4, "nothing is heard twice: {output}");
    assert_eq!(output.matches("over").count(), 4, "nothing is lost: {output}");
    assert_eq!(starts(&env), [1, 1, 1, 1]);
}

#[test]
fn ctrl_c_in_the_window_reaches_the_workers() {
    let env = lab();
    let script = "trap 'echo \"asked $TPU_WORKER\"; exit 7' INT; echo \"ready $TPU_WORKER\"; \
        while :; do sleep 0.4; done";
    let window = run(&env, script);
    wait_until("all are heard", || env.log(window).matches("ready").count() == 4);
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["send-keys", "-t", &pane, "C-c"]);
    let job = env.wait_status(window, "error");
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 7);
    assert_eq!(env.log(window).matches("asked").count(), 4);
}

#[test]
fn a_target_that_is_not_usable_is_refused_or_made_usable_first() {
    let env = lab();
    drop(env.tpu(&format!("sim preempt {TARGET}")).exits(0));
    let words = format!("run {TARGET} alice -q -- true");
    drop(env.tpu(&words).exits(4).says(&["PREEMPTED", "--apply"]));
    assert!(env.jobs("alice").is_empty(), "nothing has changed");
    drop(env.tpu(&words.replace("-q", "-q --apply")).exits(0));
    env.wait_status(1, "finished");
}

#[test]
fn a_worker_that_is_gone_ends_the_job_and_the_rest_is_stopped_before_it_goes_on() {
    let mut env = lab();
    env.set("TPU_CLOUD", "sim");
    let script = format!(
        "mkdir -p \"$TPU_LOG_DIR/checkpoint_5\"; echo w >\"$TPU_LOG_DIR/checkpoint_5/w\"; {STAYS}"
    );
    let window = run(&env, &script);
    let first = pids(&env);
    drop(env.tpu("set-rule 1 pre").exits(0));
    let monitor = env.start_tpu("daemon run", &[]);
    drop(env.tpu(&format!("sim preempt {TARGET}")).exits(0));
    let leaf = wait_for("its successor", || {
        let leaf = env.jobs("alice").pop()?;
        (leaf["windows_id"] != window && leaf["status"] == "running").then_some(leaf)
    });
    wait_until("all workers have begun again", || starts(&env) == [2, 2, 2, 2]);
    assert!(!first.iter().any(lives));
    let parent: Value = env.job("alice", window);
    assert_eq!((&parent["status"], &parent["error"]), (&"resumed".into(), &"preempted".into()));
    env.touch("go");
    env.wait_status(leaf["windows_id"].as_u64().unwrap(), "finished");
    assert_eq!(starts(&env), [2, 2, 2, 2]);
    drop(monitor);
}

#[test]
fn a_script_that_gcloud_would_start_twice_is_found() {
    let env = lab();
    drop(env.tpu("doctor").exits(0));
    let script =
        "cd x\ngcloud compute tpus tpu-vm ssh $VM_NAME --worker=all \\\n  --command \"$cmd\"\n";
    env.code("alice", "run_remote.sh", script);
    let found = env.tpu("doctor").exits(0);
    drop(found.says(&["run_remote.sh:2: gcloud runs this command again", "begun-$TPU_LAUNCH"]));
    env.code(
        "alice",
        "run_remote.sh",
        &script.replace("$cmd", "mkdir /tmp/$TPU_LAUNCH || exit; $cmd"),
    );
    let mended = env.tpu("doctor").exits(0);
    assert!(!mended.to_string().contains("runs this command again"), "{mended}");
}
