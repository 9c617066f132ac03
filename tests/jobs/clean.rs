//! `tpu clean` and its parts in the built program: every record is either kept or archived, ancestors stay
//! with their live leaf, and nothing goes while tmux cannot be asked.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// One logical run: how many attempts, whether each was resumed or rerun, and how the last one is.
#[derive(Clone, Debug)]
struct Chain {
    hows: Vec<bool>,
    leaf: &'static str,
    bob: bool,
}

fn chain() -> impl Strategy<Value = Chain> {
    let leaf = proptest::sample::select(vec!["finished", "error", "killed", "running", "starting"]);
    (proptest::collection::vec(any::<bool>(), 0..4), leaf, proptest::bool::weighted(0.3))
        .prop_map(|(hows, leaf, bob)| Chain { hows, leaf, bob })
}

/// Writes the chains as an original's file; returns, for each, its user and windows.
fn write_chains(env: &TestEnv, chains: &[Chain]) -> Vec<(&'static str, Vec<u64>)> {
    let mut data = env.two_users();
    let mut all = Vec::new();
    for chain in chains {
        let user = if chain.bob { "bob" } else { "alice" };
        let jobs = data["users"][user]["job_data"].as_array_mut().unwrap();
        let first = jobs.len() as u64 + 1;
        let last = first + chain.hows.len() as u64;
        let hows = chain.hows.iter().map(|resumed| if *resumed { "resumed" } else { "rerunned" });
        for (window, status) in (first..=last).zip(hows.chain([chain.leaf])) {
            let mut job = env.record(user, window, status);
            if status == "error" {
                job["error"] = "OOM".into();
            }
            if window > first {
                job["extra_msgs"]["father"] = json!(window - 1);
            }
            if window < last {
                job["extra_msgs"]["child"] = json!(window + 1);
            }
            jobs.push(job);
        }
        all.push((user, (first..=last).collect()));
    }
    env.write_data(&data);
    all
}

/// The windows of a user's records.
fn kept(env: &TestEnv, user: &str) -> BTreeSet<u64> {
    env.jobs(user).iter().map(|job| job["windows_id"].as_u64().unwrap()).collect()
}

/// User and window of every archived record, in order.
fn archived(env: &TestEnv) -> Vec<(String, u64)> {
    let text = std::fs::read_to_string(env.path("tpu-state/archive.jsonl")).unwrap_or_default();
    text.lines()
        .map(|line| {
            let entry: Value = serde_json::from_str(line).unwrap();
            let job = entry.get("job").unwrap_or(&entry);
            (job["user"].as_str().unwrap().to_owned(), job["windows_id"].as_u64().unwrap())
        })
        .collect()
}

/// A window for every live record, so that they stay live.
fn open_windows(env: &TestEnv, chains: &[Chain], places: &[(&str, Vec<u64>)]) {
    for (chain, (user, windows)) in chains.iter().zip(places) {
        if matches!(chain.leaf, "running" | "starting") {
            let target = format!("={user}:{}", windows.last().unwrap());
            env.tmux().run(&["new-window", "-d", "-t", &target, "exec sleep 1000"]);
        }
    }
}

#[test]
fn records_are_kept_or_archived_and_ancestors_stay_with_a_live_leaf() {
    let env = TestEnv::new();
    // The server must outlive the sessions of each round.
    env.tmux().run(&["new-session", "-d", "-s", "keeper", "exec sleep 1000"]);
    let config =
        Config { cases: 12, max_shrink_iters: 16, failure_persistence: None, ..Config::default() };
    let commands = proptest::sample::select(vec![
        "clear-finished alice",
        "clear-error alice",
        "clear-all alice",
        "clear alice",
        "clean alice",
        "clean alice -re",
        "-czj alice",
    ]);
    let runs = (proptest::collection::vec(chain(), 1..6), commands);
    TestRunner::new(config)
        .run(&runs, |(chains, command)| {
            drop(env.tmux().try_run(&["kill-session", "-t", "=alice"]));
            drop(env.tmux().try_run(&["kill-session", "-t", "=bob"]));
            for session in ["alice", "bob"] {
                env.tmux().run(&["new-session", "-d", "-s", session, "-x", "80", "-y", "24", "sh"]);
            }
            drop(std::fs::remove_file(env.path("tpu-state/archive.jsonl")));
            let places = write_chains(&env, &chains);
            open_windows(&env, &chains, &places);
            let before = kept(&env, "alice");
            let bobs = (env.jobs("bob"), env.windows("bob"));

            env.tpu(command).exits(0);

            let after = kept(&env, "alice");
            let gone = archived(&env);
            let gone_set: BTreeSet<u64> = gone.iter().map(|(_, window)| *window).collect();
            prop_assert_eq!(gone_set.len(), gone.len(), "archived twice: {:?}", &gone);
            prop_assert!(gone.iter().all(|(user, _)| user == "alice"));
            prop_assert!(after.is_disjoint(&gone_set));
            prop_assert_eq!(&after | &gone_set, before, "lost or made up");
            prop_assert_eq!((env.jobs("bob"), env.windows("bob")), bobs, "another user's");
            prop_assert!(env.windows("alice").contains(&0), "window 0 is never closed");
            for (chain, (user, windows)) in chains.iter().zip(&places) {
                if *user != "alice" {
                    continue;
                }
                let stays: Vec<bool> =
                    windows.iter().map(|window| after.contains(window)).collect();
                let (leaf, ancestors) = stays.split_last().unwrap();
                if matches!(chain.leaf, "running" | "starting") {
                    prop_assert!(leaf, "a live leaf was removed: {windows:?}");
                    let dropped = command.ends_with("-re");
                    prop_assert!(ancestors.iter().all(|stay| *stay != dropped), "{windows:?}");
                } else {
                    let meant = match command {
                        "clear-finished alice" => chain.leaf == "finished",
                        "clear-error alice" => chain.leaf != "finished",
                        _ => true,
                    };
                    prop_assert!(stays.iter().all(|stay| *stay != meant), "{windows:?} {command}");
                }
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn nothing_is_removed_while_tmux_cannot_be_asked() {
    let mut env = TestEnv::new();
    env.start("true", &NONE);
    env.wait_status(1, "finished");
    env.start("exit 1", &NONE);
    env.wait_status(2, "error");
    let before = env.data_bytes();
    let path = env.tmux().env().var("PATH").unwrap().to_owned();
    let commands = [
        "clean alice",
        "clear-all alice",
        "clear-finished alice",
        "clear-error alice",
        "-czj alice",
        "-czw alice",
    ];
    env.set("PATH", env.path("code-alice").into_os_string());
    for command in commands {
        env.tpu(command).exits(6).says(&["error:", "hint:"]);
    }
    env.set("PATH", path);
    env.tmux().kill_server();
    env.tpu("-czw alice").exits(6).says(&["error:", "hint:"]);
    assert_eq!(env.data_bytes(), before);
    assert_eq!(archived(&env), []);
    // The server has ended, and its windows with it: they are gone for certain.
    env.tpu("clean alice").exits(0).says(&["Archived 2 jobs"]);
    assert_eq!(archived(&env).len(), 2);
}

#[test]
fn windows_without_record_are_closed_by_force_and_no_others() {
    let env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    let theirs = env.start_for("bob", "exec sleep 1000", &NONE);
    env.wait_status(1, "running");
    wait_until("bob's job to run", || env.job("bob", theirs)["status"] == "running");
    for window in ["=alice:7", "=alice:9", "=bob:8"] {
        env.tmux().run(&["new-window", "-d", "-t", window, "-n", "1", "exec sleep 1000"]);
    }
    // Sessions that only begin like hers.
    env.tmux().run(&["new-session", "-d", "-s", "alice2", "exec sleep 1000"]);
    env.tmux().run(&["new-session", "-d", "-s", "ali", "exec sleep 1000"]);
    let others = (env.windows("bob"), env.windows("alice2"), env.windows("ali"));
    let before = env.data_bytes();
    env.tpu("-czw alice --force -y").exits(0).says(&["closed 2 windows"]);
    assert_eq!(env.windows("alice"), [0, 1]);
    assert_eq!((env.windows("bob"), env.windows("alice2"), env.windows("ali")), others);
    assert!(others.0.contains(&theirs));
    assert_eq!(env.data_bytes(), before);
    env.tpu("-czw alice").exits(0).says(&["closed 0 windows"]);
}

#[test]
fn records_go_only_when_their_window_is_gone_for_certain() {
    let env = TestEnv::new();
    for window in 1..=2 {
        env.start("exec sleep 1000", &NONE);
        // Its launcher writes no more: the file is changed by hand below.
        env.wait_status(window, "running");
    }
    env.tmux().run(&["kill-window", "-t", &env.pane_id("alice", 2).unwrap()]);
    wait_until("it has ended", || env.tpu("check alice").to_string().contains("window closed"));
    // Elsewhere: another host, another socket.
    let mut data = env.data();
    let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
    for (window, key, value) in [(3, "host", "far-away"), (4, "socket", "/tmp/no-such/default")] {
        let mut job = jobs[0].clone();
        job["windows_id"] = json!(window);
        job["extra_msgs"]["place"][key] = json!(value);
        job["extra_msgs"]["launch"]["token"] = json!(format!("{window}{window}"));
        jobs.push(job);
    }
    env.write_data(&data);
    env.tpu("-czj alice").exits(0).says(&["Archived 1 job,"]);
    assert_eq!(kept(&env, "alice"), BTreeSet::from([1, 3, 4]));
    assert_eq!(archived(&env), [("alice".to_owned(), 2)]);
    assert_eq!(env.windows("alice"), [0, 1]);
}

#[test]
fn closing_a_window_archives_its_record() {
    let env = TestEnv::new();
    env.start("true", &NONE);
    env.wait_status(1, "finished");
    env.tpu("kill-window 1 alice").exits(0);
    assert_eq!(archived(&env), [("alice".to_owned(), 1)]);
    // Ours, without a record.
    env.start("true", &NONE);
    env.wait_status(2, "finished");
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([]);
    env.write_data(&data);
    env.tpu("-kw 2 alice").exits(0).says(&["closed 1 window."]);
    assert_eq!(env.windows("alice"), [0]);
    env.tpu("kill-window 0 alice").exits(3).says(&["hint:"]);
    env.tpu("kill-window 6 alice").exits(3).says(&["hint:"]);
    assert_eq!(env.windows("alice"), [0]);
}

#[test]
fn what_was_being_cleared_away_by_the_dead_stays_and_can_be_cleared_again() {
    let env = TestEnv::new();
    env.start("exit 1", &NONE);
    env.wait_status(1, "error");
    let cleaner = env.start_tpu("clean alice", &[("FAILPOINTS", "clean-stopped=pause")]);
    let intent = || env.job("alice", 1)["extra_msgs"]["intent"].clone();
    wait_until("the clean to begin", || intent()["action"] == "cleaning");
    // Nobody else clears it away meanwhile.
    env.tpu("clean alice").exits(0).says(&["Archived 0 jobs"]);
    cleaner.kill();
    drop(env.tpu("clear-finished bob").exits(0));
    assert!(intent().is_null(), "{}", intent());
    assert_eq!(env.job("alice", 1)["status"], "error");
    env.tpu("clean alice").exits(0).says(&["Archived 1 job, closed 1 window"]);
    assert_eq!(archived(&env), [("alice".to_owned(), 1)]);
}

/// What a program prints when its coordination service has lost a peer, and how it ends.
const LOST_PEER: &str = "echo w >\"$TPU_LOG_DIR/checkpoint_10\"; echo 'absl::Status: DEADLINE_EXCEEDED: \
    The following tasks are unhealthy (stopped sending heartbeats):'; exit 134";

/// A job of alice that a rule is going to resume; its window.
fn planned(env: &TestEnv) -> u64 {
    let line = ["run", "local", "alice", "rule=resume", "--json", "--", "bash", "-c", LOST_PEER];
    let launched = env.tpu_words(&line).exits(0).json();
    let window = launched["launched"]["window"].as_u64().unwrap();
    assert_eq!(env.wait_status(window, "error")["error"], "grpc");
    wait_until("its launcher to be done", || {
        env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string()
    });
    window
}

#[test]
fn what_a_rule_is_about_to_bring_back_is_named_and_kept() {
    let env = TestEnv::new();
    let window = planned(&env);
    env.start("exit 3", &NONE);
    env.wait_status(2, "error");
    let why = "Kept alice/1: resume is planned (";
    let words = [why, "the rule for grpc is resume", "--force archives it too"];
    let dry = env.tpu("clean alice --dry-run").exits(0).says(&words);
    dry.says(&["Would archive job 2 of alice.", "the daemon does not run"]);
    env.tpu("clean alice").exits(0).says(&words).says(&["Archived 1 job, closed 1 window."]);
    for command in ["clear-error alice", "clear-all alice", "clean alice -re"] {
        env.tpu(command).exits(0).says(&words).says(&["Archived 0 jobs"]);
    }
    let document = env.tpu("clear-error alice --json").exits(0).json();
    assert_eq!(document["kept"][0]["job"], json!({"user": "alice", "window": window}));
    assert_eq!(kept(&env, "alice"), BTreeSet::from([window]));
    assert!(env.has_window("alice", window));
    // The same where its window has gone.
    env.tmux().run(&["kill-window", "-t", &env.pane_id("alice", window).unwrap()]);
    for command in ["-czj alice", "-czj alice --dry-run", "clean alice"] {
        env.tpu(command).exits(0).says(&words);
    }
    assert_eq!(kept(&env, "alice"), BTreeSet::from([window]));
    // It comes back, from where it stood.
    let monitor = env.start_tpu("daemon run", &[]);
    wait_until("the resume", || env.job("alice", window)["status"] == "resumed");
    monitor.kill();
}

#[test]
fn what_a_rule_is_about_to_bring_back_goes_by_force() {
    for command in ["clean alice --force", "clear-error alice -f", "-czj alice --force"] {
        let env = TestEnv::new();
        let window = planned(&env);
        if command.starts_with("-czj") {
            env.tmux().run(&["kill-window", "-t", &env.pane_id("alice", window).unwrap()]);
        }
        env.tpu(&format!("{command} --dry-run")).exits(0).says(&["Would archive job 1 of"]);
        env.tpu(command).exits(0).says(&["Archived 1 job"]);
        assert_eq!(archived(&env), [("alice".to_owned(), window)]);
    }
}

#[test]
fn what_goes_on_without_its_window_keeps_its_record() {
    let env = TestEnv::new();
    let left = "setsid bash -c 'echo $$ >\"$HOME/left\"; exec sleep 1000' & exec sleep 1000";
    env.start(left, &NONE);
    let left = env.wait_pid("left");
    env.wait_status(1, "running");
    env.tmux().run(&["kill-window", "-t", &env.pane_id("alice", 1).unwrap()]);
    for command in ["-czj alice --dry-run", "-czj alice", "clean alice"] {
        env.tpu(command).exits(0).says(&["it continues here", "tpu kill w=1 alice"]);
        assert!(lives(&left));
        assert_eq!(kept(&env, "alice"), BTreeSet::from([1]));
    }
    env.tpu("kill 1 alice -y").exits(0);
    wait_gone(&left);
    env.tpu("-czj alice").exits(0).says(&["Archived 1 job"]);
}

/// A job of alice that failed to start, as another account has left it: its record is given up, or nobody has come to that.
fn failed_by_another_account(env: &TestEnv, status: &str) -> u64 {
    let window = env.start("exit 0", &NONE);
    env.wait_status(window, "finished");
    drop(env.wait_exit(window));
    drop(env.tmux().run(&["kill-window", "-t", &format!("=alice:{window}")]));
    let mut data = env.data();
    let jobs = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
    let job = jobs.iter_mut().find(|job| job["windows_id"] == window).unwrap();
    (job["status"], job["tpu"]) = (json!(status), json!("lab-tpuvm-v2-32-1"));
    job["error"] = if status == "error" { json!("launch") } else { Value::Null };
    job["extra_msgs"]["place"]["uid"] = json!(4_000_000_001_u32);
    let launch = job["extra_msgs"]["launch"].as_object_mut().unwrap();
    launch.insert("confirmed".to_owned(), json!(false));
    launch.insert("at".to_owned(), json!("2026-11-20T08:00:00Z"));
    drop((launch.remove("exit"), launch.remove("ended")));
    let dir = env.state_of("alice", window);
    std::fs::remove_dir_all(dir).unwrap();
    env.write_data(&data);
    window
}

#[test]
fn a_failed_launch_of_another_account_holds_nothing_and_keeps_no_clean_from_its_work() {
    for status in ["error", "starting"] {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        let theirs = failed_by_another_account(&env, status);
        env.code("alice", "staging.sh", "tpu finish-job \"alice:2\"");
        drop(env.tpu("run v2-1 -q").exits(0));
        env.wait_status(2, "finished");
        let said =
            format!("Kept alice/{theirs}: alice/{theirs} never began, and is uid 4000000001's");
        drop(env.tpu("clean").exits(0).says(&["Archived 1 job", &said]));
        let left = env.job("alice", theirs);
        assert_eq!(
            (&left["status"], &left["error"]),
            (&json!("error"), &json!("launch")),
            "{status}"
        );
        assert_eq!(env.jobs("alice").len(), 1, "{status}");
        drop(env.tpu(&format!("clean w={theirs}")).exits(0).says(&[&said]));
    }
}
