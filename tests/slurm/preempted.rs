//! Who has to make place for somebody of higher rank comes back once: by the rule, from its checkpoint, where Slurm
//! ends it; and where Slurm starts it again by itself, that is followed as the next attempt.

use std::time::Duration;

use serde_json::json;

use tpu_system::sys::clock::{Clock as _, SystemClock};

use super::cluster::{Preempted, Setup};
use super::lab::Lab;
use crate::common::wait::wait_until;

/// Somebody of higher rank wants all nodes.
fn take_all(lab: &Lab) -> u32 {
    lab.cluster.submit(&["--partition=high", "-N2", "--exclusive"], "sleep 1000")
}

#[test]
fn what_slurm_has_ended_is_brought_back_once_from_its_checkpoint() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "lr=0.1 rule=pre");
    let first = lab.wait_runs(window);
    lab.wait_checkpoint(window);
    let _monitor = lab.daemon(&[]);
    lab.env.wait_status(window, "running");
    let high = take_all(&lab);
    lab.cluster.wait_state(first.id, "PREEMPTED");
    let clock = SystemClock::new();
    lab.env.wait_status(window, "resumed");
    assert!(clock.monotonic() < Duration::from_secs(5), "{:?}", clock.monotonic());
    let shown = lab.shown(window);
    assert_eq!(shown["error"], "preempted", "{shown}");
    assert_eq!(shown["evidence"]["rule"], "PREEMPTED");

    // It waits until there is place, and goes on where it was.
    let second = lab.env.job("alice", window)["extra_msgs"]["child"].as_u64().unwrap();
    wait_until("it waits", || lab.shown(second)["status"] == "pending");
    lab.cluster.run(&["scancel", &high.to_string()]);
    lab.wait_runs(second);
    lab.wait_starts("a", 2);
    let from = format!("--config.load_from={}", lab.log_dir(window).display());
    assert!(lab.starts("a")[1].contains(&from), "{:?}", lab.starts("a"));
    lab.turn();
    assert_eq!(lab.env.jobs("alice").len(), 2);
    assert_eq!(lab.cluster.submissions().len(), 3, "ours, that of the other, and ours again");
    lab.end("a", "exit 0");
    lab.env.wait_status(second, "finished");
}

/// A cluster says nothing by itself, and a daemon for which nothing has happened rests for half a minute.
#[test]
fn it_is_seen_within_five_seconds_also_by_a_monitor_that_rests() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "rule=pre");
    let first = lab.wait_runs(window);
    lab.wait_checkpoint(window);
    let _monitor = lab.daemon(&[]);
    lab.env.wait_status(window, "running");
    let turned_s = || lab.tpu("daemon status --json").json()["turn_age_s"].as_u64().unwrap();
    for _ in 0..2 {
        wait_until("the daemon rests", || turned_s() >= 2);
        wait_until("the daemon turns", || turned_s() < 2);
    }
    take_all(&lab);
    lab.cluster.wait_state(first.id, "PREEMPTED");
    let clock = SystemClock::new();
    lab.env.wait_status(window, "resumed");
    assert!(clock.monotonic() < Duration::from_secs(5), "{:?}", clock.monotonic());
}

/// Where jobs can be preempted that rule is the usual one, and nowhere else.
#[test]
fn a_partition_whose_jobs_are_preempted_has_the_rule_for_it() {
    let Some(lab) = Lab::new() else { return };
    lab.register("fast", &lab.cluster, "--partition high");
    drop(lab.tpu("run gpu -q --sbatch hold -- true").exits(0));
    drop(lab.tpu("run fast -q --sbatch hold -- true").exits(0));
    let rules = [1, 2].map(|window| lab.shown(window)["rule"]["preempted"].clone());
    assert_eq!(rules, [json!("reapply"), json!("pass")]);
}

#[test]
fn what_slurm_would_start_again_is_left_to_the_rules() {
    let setup = Setup { preempted: Preempted::Requeued, ..Setup::default() };
    let Some(lab) = Lab::with(setup) else { return };
    let window = lab.train("a", "rule=pass");
    let job = lab.wait_runs(window);
    lab.wait_checkpoint(window);
    take_all(&lab);
    let shown = lab.wait_shown(window, "error");
    assert_eq!(shown["error"], "preempted", "{shown}");
    let state = lab.cluster.job(job.id).state;
    assert!(["PREEMPTED", "CANCELLED"].contains(&state.as_str()), "{state}");
    assert_eq!(lab.starts("a").len(), 1);
}

/// A site may order that every job is started again: it is the same job, with one attempt more.
#[test]
fn what_slurm_starts_again_all_the_same_is_followed_as_one_more_attempt() {
    let setup = Setup { preempted: Preempted::Requeued, ..Setup::default() };
    let Some(lab) = Lab::with(setup) else { return };
    let window = lab.train("a", "");
    let job = lab.wait_runs(window);
    lab.wait_checkpoint(window);
    lab.cluster.run(&["scontrol", "update", &format!("jobid={}", job.id), "Requeue=1"]);
    let _monitor = lab.daemon(&[]);
    lab.env.wait_status(window, "running");
    let high = take_all(&lab);
    lab.cluster.wait_state(job.id, "PENDING");
    let clock = SystemClock::new();
    let shown = lab.wait_shown(window, "pending");
    assert!(clock.monotonic() < Duration::from_secs(5), "{:?}", clock.monotonic());
    assert_eq!((&shown["restarts"], &shown["pending"]["raw"]), (&json!(1), &json!("PENDING")));
    lab.cluster.run(&["scancel", &high.to_string()]);
    // Slurm lets it wait for two minutes; that can be cut.
    let waits = lab.shown(window)["pending"]["reason"].as_str().unwrap().to_owned();
    assert!(!waits.is_empty() && waits != "BeginTime", "in plain words: {waits}");
    drop(lab.tpu(&format!("unhold {window}")).exits(0));
    lab.wait_starts("a", 2);
    lab.wait_shown(window, "running");
    lab.turn();
    assert_eq!((lab.env.jobs("alice").len(), lab.starts("a").len()), (1, 2));
    assert_eq!(lab.cluster.submissions().len(), 2, "ours, and that of the other");
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.cluster.job(job.id).state, "CANCELLED");
}

#[test]
fn put_back_by_hand_it_is_followed_too() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "rule=pass");
    let job = lab.wait_runs(window);
    lab.wait_checkpoint(window);
    let number = job.id.to_string();
    lab.cluster.run(&["scontrol", "update", &format!("jobid={number}"), "Requeue=1"]);
    lab.wait_shown(window, "running");
    lab.cluster.run(&["scontrol", "requeue", &number]);
    let shown = lab.wait_shown(window, "pending");
    assert_eq!(shown["restarts"], 1, "{shown}");
    drop(lab.tpu(&format!("unhold {window}")).exits(0));
    lab.wait_starts("a", 2);
    lab.end("a", "exit 0");
    lab.wait_shown(window, "finished");
    assert_eq!(lab.cluster.submissions(), [job.id]);
    assert_eq!(lab.env.jobs("alice").len(), 1);
}
