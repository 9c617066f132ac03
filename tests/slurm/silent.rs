//! A controller that is away, or that hangs, makes jobs unknown, with the reason and the age of what is known, and
//! nothing else: no look waits for it, nothing is stopped or started, and all is right again when it answers.

use std::time::Duration;

use super::cluster::{Cluster, Setup};
use super::lab::Lab;
use crate::common::output::CommandOutput;
use crate::common::wait::wait_until;
use crate::common::within::within;

/// Longest time of a look, and a second for all the rest of a command of a program that is not optimised.
const LOOK: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug)]
enum Silence {
    /// Nobody listens.
    Away,
    /// Somebody does, and says nothing.
    Hangs,
}

fn be_silent(cluster: &mut Cluster, how: Silence) {
    match how {
        Silence::Away => cluster.stop_controller(),
        Silence::Hangs => cluster.hold_controller(true),
    }
}

fn answer_again(cluster: &mut Cluster, how: Silence) {
    match how {
        Silence::Away => cluster.start_controller(),
        Silence::Hangs => cluster.hold_controller(false),
    }
}

/// A command that only looks, and does not take long.
#[track_caller]
fn looks(lab: &Lab, line: &str) -> CommandOutput {
    within(LOOK, line, || lab.tpu(line).exits(0))
}

fn nothing_follows(how: Silence) {
    let Some(mut lab) = Lab::new() else { return };
    let (one, other) = (lab.train("a", "rule=pre"), lab.train("b", "rule=pre"));
    let before = [lab.wait_runs(one), lab.wait_runs(other)];
    lab.wait_starts("b", 1);
    let monitor = lab.daemon(&[]);
    lab.env.wait_status(one, "running");
    lab.env.wait_status(other, "running");
    be_silent(&mut lab.cluster, how);

    for line in ["check alice", "check-simp alice", "explain 1", "show 1"] {
        drop(looks(&lab, line));
    }
    let unknown = lab.shown(one);
    assert_eq!(unknown["status"], "running", "what is stored stays: {unknown}");
    let why = unknown["unknown"].as_str().unwrap_or_else(|| panic!("{unknown}"));
    assert!(why.contains("controller") || why.contains("answer"), "{why}");
    assert!(why.contains(" ago"), "how old is what is known: {why}");
    // What needs an answer says that there is none, and does nothing.
    drop(lab.tpu("show 1 --raw").exits(6));
    drop(lab.env.output(&lab.training("c", "")).exits(6));
    drop(lab.tpu("clean alice -y"));
    lab.turn();
    assert_eq!(lab.env.job("alice", one)["status"], "running");

    answer_again(&mut lab.cluster, how);
    wait_until("both are known again", || {
        [one, other].iter().all(|window| lab.shown(*window)["unknown"].is_null())
    });
    assert_eq!([lab.listed(one), lab.listed(other)], before);
    // Whatever that one launch was, it is at most one job, and none is there without a record.
    lab.turn();
    for job in lab.env.jobs("alice") {
        let token = super::lab::token_of(&job);
        assert!(lab.cluster.jobs_of(&token).len() <= 1, "{job}");
    }
    assert!(lab.cluster.submissions().len() <= lab.env.jobs("alice").len());
    lab.end("a", "exit 0");
    lab.env.wait_status(one, "finished");
    drop(monitor);
    drop(lab.tpu(&format!("kill {other} -y")).exits(0));
}

#[test]
fn nothing_follows_from_a_controller_that_is_away() {
    nothing_follows(Silence::Away);
}

#[test]
fn nothing_follows_from_a_controller_that_hangs() {
    nothing_follows(Silence::Hangs);
}

#[test]
fn a_kill_into_silence_is_carried_out_when_there_is_an_answer() {
    let Some(mut lab) = Lab::new() else { return };
    let (one, other) = (lab.train("a", ""), lab.train("b", ""));
    let (one_id, other_id) = (lab.wait_runs(one).id, lab.wait_runs(other).id);
    // One that has not quite begun fails by the silence alone.
    lab.wait_starts("a", 1);
    lab.wait_starts("b", 1);
    be_silent(&mut lab.cluster, Silence::Hangs);
    drop(lab.tpu(&format!("kill {one} -y")).exits(6));
    assert_ne!(lab.env.job("alice", one)["status"], "killed");
    let _monitor = lab.daemon(&[]);
    answer_again(&mut lab.cluster, Silence::Hangs);
    lab.cluster.wait_state(one_id, "CANCELLED");
    lab.env.wait_status(one, "killed");
    assert_eq!(lab.cluster.job(other_id).state, "RUNNING");
}

/// However many clusters hang, they are waited for together.
#[test]
fn a_cluster_that_hangs_keeps_nobody_from_seeing_the_others() {
    let Some(lab) = Lab::new() else { return };
    let others = [Cluster::new(), Cluster::new()];
    lab.register("two", &others[0], "--partition low");
    lab.register("three", &others[1], "--partition low");
    let script = lab.program();
    let window = lab.train("a", "");
    for (target, name) in [("two", "b"), ("three", "c")] {
        let words = ["run", target, "alice", "-q", "--", "bash", "-c", &script, name];
        drop(lab.env.tpu_words(&words).exits(0));
    }
    lab.wait_runs(window);
    lab.wait_starts("c", 1);
    for cluster in &others {
        cluster.hold_controller(true);
    }
    let seen = looks(&lab, "check alice --json").json();
    let unknown = seen["jobs"].as_array().unwrap().iter().map(|job| !job["unknown"].is_null());
    assert_eq!(unknown.collect::<Vec<_>>(), [false, true, true], "{seen:#}");
    for cluster in &others {
        cluster.hold_controller(false);
    }
    wait_until("all are known", || {
        let seen = lab.tpu("check alice --json").exits(0).json();
        seen["jobs"].as_array().unwrap().iter().all(|job| job["status"] == "running")
    });
}

/// What ended meanwhile is not missed, though nobody could look.
#[test]
fn what_ended_in_the_silence_is_told_afterwards() {
    let Some(mut lab) = Lab::with(Setup::default()) else { return };
    let window = lab.train("a", "rule=pass");
    lab.wait_runs(window);
    lab.wait_starts("a", 1);
    be_silent(&mut lab.cluster, Silence::Away);
    lab.end("a", "exit 7");
    assert_ne!(lab.shown(window)["status"], "error", "nobody who knows has said so");
    answer_again(&mut lab.cluster, Silence::Away);
    assert_eq!(lab.wait_shown(window, "error")["exit_code"], 7);
}
