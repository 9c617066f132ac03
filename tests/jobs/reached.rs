//! How far a run came outlasts it: the loss, the last step and the totals stand in its record, whatever becomes
//! of its window and of its text.

use serde_json::{Value, json};

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;
use tpu_system::sys::procs::{self, Process, Signal};

const NONE: [&str; 0] = [];

/// What a program prints while it is at work.
const PRINTS: &str = "echo 'epoch 2/3 step 200/300 loss 0.5 lr 1e-3 4.2 it/s'; echo 'epoch 3/3 step 300/300 loss 0.25 lr 1e-3 4.2 it/s'";

/// What is shown of a job of alice.
fn shown(env: &TestEnv, window: u64) -> Value {
    let seen = env.tpu("check alice --json").exits(0).json();
    let jobs = seen["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["window"] == window).unwrap_or_else(|| panic!("{seen:#}")).clone()
}

/// What stands in the record of a job, and is shown of it, after [`PRINTS`]. A run that is over has neither a
/// speed nor an end to come.
#[track_caller]
fn has_come_all_the_way(env: &TestEnv, window: u64) {
    let wanted = json!({
        "epoch": 3.0, "epochs": 3.0, "step": 300, "total": 300, "percent": null, "loss": 0.25,
        "lr": 0.001, "steps_per_s": null, "eta_s": null,
    });
    assert_eq!(shown(env, window)["progress"], wanted, "{:#}", env.job("alice", window));
    drop(env.tpu("check alice").exits(0).says(&["epoch 3/3", "step 300/300", "loss 0.25"]));
}

/// Waits until the launcher has written how the job ended.
fn wait_end(env: &TestEnv, window: u64) -> Value {
    drop(env.wait_exit(window));
    env.job("alice", window)
}

fn close(env: &TestEnv, window: u64) {
    drop(env.tmux().run(&["kill-pane", "-t", &env.pane_id("alice", window).unwrap()]));
}

/// Closes the window, ends the server, and archives the record: the numbers stay through all of it.
#[track_caller]
fn stay(env: &TestEnv, window: u64) {
    has_come_all_the_way(env, window);
    if env.has_window("alice", window) {
        close(env, window);
        has_come_all_the_way(env, window);
    }
    env.tmux().kill_server();
    has_come_all_the_way(env, window);
    drop(env.tmux().run(&["new-session", "-d", "-s", "alice"]));
    has_come_all_the_way(env, window);
    drop(env.tpu("clean alice -y --force").exits(0));
    let kept = archived(env, window)["extra_msgs"]["reached"].clone();
    assert_eq!((&kept["step"], &kept["loss"]), (&json!(300), &json!(0.25)));
}

/// The record of a job in the archive.
fn archived(env: &TestEnv, window: u64) -> Value {
    let archive = std::fs::read_to_string(env.path("tpu-state/archive.jsonl")).unwrap();
    let lines = archive.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut records = lines.map(|line| line["job"].clone());
    let record = records.find(|job| job["windows_id"] == window);
    record.unwrap_or_else(|| panic!("{window} was not archived: {archive}"))
}

#[test]
fn of_a_command_that_has_ended_well() {
    let env = TestEnv::new();
    let window = env.start(PRINTS, &NONE);
    drop(env.wait_status(window, "finished"));
    stay(&env, window);
}

#[test]
fn of_a_command_that_has_failed() {
    let env = TestEnv::new();
    let window = env.start(&format!("{PRINTS}; exit 3"), &NONE);
    drop(env.wait_status(window, "error"));
    stay(&env, window);
}

#[test]
fn of_a_script_however_it_tells_its_end() {
    for (tells, status) in [
        ("tpu finish-job \"$TPU_JOB\"", "finished"),
        ("tpu finish-job \"$TPU_JOB\" --force", "finished"),
        ("tpu fail-job \"$TPU_JOB\"", "error"),
        ("true", "error"),
    ] {
        let env = TestEnv::new();
        env.code("alice", "staging.sh", &format!("{PRINTS} | tee log\n{tells}\n"));
        drop(env.tpu("run local alice -q").exits(0));
        assert_eq!(wait_end(&env, 1)["status"], status, "{tells}");
        stay(&env, 1);
    }
}

/// It says so while its script goes on for long: what was reached is kept then, and not only at the end.
#[test]
fn of_a_script_that_tells_its_end_before_it_ends() {
    for tells in ["finish-job", "finish-job --force", "fail-job"] {
        let env = TestEnv::new();
        let script = format!("{PRINTS}\ntpu {tells} \"$TPU_JOB\"; clear; exec sleep 1000\n");
        env.code("alice", "staging.sh", &script);
        drop(env.tpu("run local alice -q").exits(0));
        wait_until(tells, || {
            matches!(env.job("alice", 1)["status"].as_str(), Some("finished" | "error"))
        });
        // Until then its text says how fast it is, as that of any that runs.
        wait_until("it is cleared", || !env.pane("alice", 1).contains("step 300/300"));
        has_come_all_the_way(&env, 1);
        drop(env.tmux().run(&["kill-pane", "-t", &env.pane_id("alice", 1).unwrap()]));
        has_come_all_the_way(&env, 1);
    }
}

#[test]
fn of_a_job_that_was_killed() {
    let env = TestEnv::new();
    let window =
        env.start(&format!("{PRINTS}; echo ready >\"$HOME/ready\"; exec sleep 1000"), &NONE);
    drop(env.wait_file("ready"));
    has_printed(&env, window);
    drop(env.tpu("kill w=1 alice -y").exits(0));
    assert_eq!(env.job("alice", 1)["status"], "killed");
    stay(&env, window);
}

/// A script of which only the window shows anything.
#[test]
fn of_a_script_that_was_killed() {
    let env = TestEnv::new();
    env.code("alice", "staging.sh", &format!("{PRINTS}\nexec sleep 1000\n"));
    drop(env.tpu("run local alice -q").exits(0));
    has_printed(&env, 1);
    drop(env.tpu("kill w=1 alice -y").exits(0));
    stay(&env, 1);
}

fn has_printed(env: &TestEnv, window: u64) {
    wait_until("the last step", || env.pane("alice", window).contains("step 300/300"));
}

#[test]
fn of_an_attempt_that_another_continues() {
    for how in ["resume w=1 alice --yes", "rerun w=1 alice"] {
        let env = TestEnv::new();
        let script = format!(
            "[ -e \"$HOME/again\" ] && exec sleep 1000; {PRINTS}; touch \"$HOME/again\"; exit 3"
        );
        let window = env.start(&script, &NONE);
        drop(env.wait_status(window, "error"));
        drop(env.tpu(how).exits(0));
        close(&env, window);
        has_come_all_the_way(&env, window);
        drop(env.wait_status(2, "running"));
        drop(env.tpu("kill w=2 alice -y").exits(0));
        let child = env.job("alice", 2);
        assert!(
            child["extra_msgs"].get("reached").is_none(),
            "what it did itself counts: {child:#}"
        );
    }
}

/// Nobody saw how it ended: its window is gone, its log is there.
#[test]
fn of_a_job_whose_window_was_closed() {
    let env = TestEnv::new();
    let window = env.start(&format!("{PRINTS}; exec sleep 1000"), &NONE);
    has_printed(&env, window);
    let _monitor = env.start_tpu("daemon run", &[]);
    wait_until("the daemon's first turn", || env.tpu("daemon status").code == 0);
    let pane = env.pane_id("alice", window).unwrap();
    drop(env.tmux().run(&["kill-pane", "-t", &pane]));
    drop(env.wait_status(window, "killed"));
    has_come_all_the_way(&env, window);
}

/// Its launcher was killed while no daemon ran: whoever comes next writes how it ended, and how far it came.
#[test]
fn of_a_job_that_nobody_saw_end() {
    for next in ["clean alice -y", "-czj alice", "resume w=1 alice --yes"] {
        let env = TestEnv::new();
        let window = env.start(
            &format!("[ -e \"$HOME/printed\" ] && exec sleep 1000; {PRINTS}; touch \"$HOME/printed\"; exec sleep 1000"),
            &NONE,
        );
        has_printed(&env, window);
        let pane = env.pane_id("alice", window).unwrap();
        let pid = env.tmux().run(&["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
        let launcher = Process::read(pid.trim().parse().unwrap()).unwrap();
        procs::signal(&launcher, Signal::Kill).unwrap();
        wait_until("it is shown", || env.tpu("check alice").to_string().contains("error: lost"));
        drop(env.tpu(next).exits(0));
        if next.starts_with("resume") {
            has_come_all_the_way(&env, window);
            continue;
        }
        let record = archived(&env, window);
        assert_eq!(
            (&record["status"], &record["error"]),
            (&json!("error"), &json!("lost")),
            "{next}"
        );
        assert_eq!(record["extra_msgs"]["reached"]["step"], 300, "{next}: {record:#}");
        let journal = env.journal();
        assert_eq!(journal.last().unwrap().text, "error: lost", "{next}");
    }
}

/// What a person does in the window afterwards is none of the job's numbers.
#[test]
fn what_is_typed_in_its_window_afterwards_changes_nothing() {
    for end in ["exit 0", "exit 3"] {
        let env = TestEnv::new();
        let window = env.start(&format!("{PRINTS}; {end}"), &NONE);
        drop(wait_end(&env, window));
        let pane = env.pane_id("alice", window).unwrap();
        let types = "clear; echo step 9/10 loss 9.5";
        drop(env.tmux().run(&["send-keys", "-t", &pane, types, "Enter"]));
        wait_until("the other's step", || {
            env.pane("alice", window).lines().any(|line| line == "step 9/10 loss 9.5")
        });
        has_come_all_the_way(&env, window);
    }
}

/// A number that is none, or larger than any that can be kept, is not kept; the record stays one.
#[test]
fn numbers_that_are_none_are_not_kept() {
    for numbers in [
        "step 99999999999999999999999999999999/99999999999999999999999999999999999 loss 1e999",
        "epoch 1e400/1e999 step 5/5 loss -1e500",
        "step 18446744073709551615/18446744073709551615 loss 1e308",
        "step 18446744073709551616/5 loss nan",
    ] {
        let env = TestEnv::new();
        let window = env.start(&format!("echo '{numbers}'"), &NONE);
        drop(env.wait_status(window, "finished"));
        let before = shown(&env, window);
        let record = env.job("alice", window);
        assert!(record.to_string().len() < 4_000, "{record:#}");
        drop(env.tpu("add-tag 1 kept alice").exits(0));
        assert_eq!(shown(&env, window)["progress"], before["progress"], "{numbers}");
        let reached = env.job("alice", window)["extra_msgs"]["reached"].clone();
        let all = reached.as_object().into_iter().flatten();
        assert!(all.clone().all(|(_, value)| value.is_number()), "{numbers}: {reached}");
    }
}

/// A run of which nothing was read has no numbers, and nothing of that stands in its record.
#[test]
fn nothing_is_made_up() {
    let env = TestEnv::new();
    let window = env.start("echo hello", &NONE);
    let record = env.wait_status(window, "finished");
    assert!(record["extra_msgs"].get("reached").is_none(), "{record:#}");
    assert!(shown(&env, window)["progress"].is_null());
}

#[test]
fn explain_reads_how_the_output_of_what_is_over_ends() {
    let env = TestEnv::new();
    let none: [&str; 0] = [];
    let over = |script: &str, status: &str| {
        let window = env.start(script, &none);
        env.wait_status(window, status);
        let ended = || env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string();
        wait_until("its launcher to be done", ended);
        window
    };
    let crash = "printf 'Traceback (most recent call last):\\n  File \"t.py\", line 1, in <module>\\n\
                 IndexError: list index out of range\\n' | tee /dev/null";
    let hidden = over(crash, "finished");
    let explain = |window: u64| env.tpu(&format!("explain {window} alice")).exits(0);
    drop(explain(hidden).says(&[
        "is finished",
        "its output ends in: IndexError: list index out of range; a pipe such as `| tee`",
        "set -o pipefail",
    ]));
    let well = over("echo step 3/3 loss=0.1; echo done", "finished");
    let said = explain(well).says(&["why: no sign of trouble"]);
    assert!(!said.stdout.contains("ends in") && !said.stdout.contains("not read"), "{said}");
    let unknown = over("echo the last words; exit 3", "error");
    drop(explain(unknown).says(&["error: unknown", "last output: the last words"]));
    let fine = over("echo step 2/3 loss=0.2; exit 3", "error");
    drop(
        explain(fine).says(&["the log looks fine, but it ended with code 3", "tpu resume 4 alice"]),
    );
    // Where nothing can be read, that is said.
    let dir = env.job("alice", well)["log_dir"].as_str().unwrap().to_owned();
    std::fs::remove_file(std::path::Path::new(&dir).join("output.log")).unwrap();
    env.tmux().kill_server();
    drop(explain(well).says(&["its output could not be read"]));
}
