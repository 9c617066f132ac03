//! No more are at work than a limit allows, however many look at the queue at the same time.

use tpu_core::model::ids::JobId;

use crate::common::env::Running;
use crate::common::wait::wait_until;

use super::Lab;

#[test]
fn a_queue_and_a_group_have_no_more_at_work_than_they_may() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create night --max-parallel 3").exits(0));
    let group = lab.submit("local queue=night --array 0-9%2");
    let single = lab.submit("local queue=night");
    let more = lab.submit("local queue=night");
    assert_eq!(lab.running().len(), 3, "two of the group, and one");
    assert!(lab.why(group).contains("queue night has 3 jobs at once"), "{}", lab.why(group));
    assert!(lab.why(more).contains("queue night has 3 jobs at once"));
    drop(lab.env.tpu("queue set night --max-parallel none").exits(0));
    assert_eq!(lab.running().len(), 4);
    assert!(lab.why(group).contains(&format!("2 of group alice/{group} run at once")));
    assert_eq!(lab.waiting(), [group]);
    lab.kill(single);
    assert_eq!(lab.running().len(), 3, "the limit of the group holds");
}

#[test]
fn many_who_look_at_once_start_no_more_than_a_limit_allows_and_nothing_twice() {
    let lab = Lab::new(32);
    drop(lab.env.tpu("queue create night --max-parallel 4").exits(0));
    drop(lab.env.tpu("queue pause night").exits(0));
    for _ in 0..4 {
        lab.submit("local queue=night --array 0-2");
    }
    assert!(lab.running().is_empty(), "a queue that is paused starts nothing");
    lab.pauses("night", false);
    let all: Vec<_> = (0..6).map(|_| lab.env.start_tpu("queue run --once", &[])).collect();
    for one in all {
        assert_eq!(one.wait(), 0);
    }
    assert_eq!(lab.running().len(), 4);
    let members: Vec<String> = lab
        .env
        .jobs("alice")
        .iter()
        .map(|job| job["extra_msgs"]["spec"]["member"].to_string())
        .collect();
    let mut once = members.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), members.len(), "{members:?}");
}

#[test]
fn what_is_to_come_back_by_its_rule_keeps_its_place_under_a_limit() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create night --max-parallel 1").exits(0));
    let first = lab.submit_what("local queue=night rule=unknown:resume", "false");
    let second = lab.submit("local queue=night");
    lab.env.wait_status(first, "error");
    drop(lab.env.tpu("queue run --once").exits(0));
    assert!(lab.running().is_empty(), "its rule brings the first one back");
    assert!(lab.why(second).contains(&format!("alice/{first}")), "{}", lab.why(second));
    drop(lab.env.tpu(&format!("set-rule {first} pass")).exits(0));
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[second]);
}

#[test]
fn a_person_brings_nothing_back_past_the_limit_of_its_queue() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create night --max-parallel 1").exits(0));
    let first = lab.submit_what("local queue=night rule=pass", "false");
    lab.env.wait_status(first, "error");
    let second = lab.submit("local queue=night");
    lab.wait_running(&[second]);
    let again = || lab.env.tpu(&format!("rerun {first}"));
    drop(again().exits(4).says(&["queue night has 1 jobs at once", &format!("alice/{second}")]));
    lab.kill(second);
    drop(again().exits(0));
}

/// Its rule was set when its place was somebody else's: it comes back when that is free again, and to nobody's cost.
#[test]
fn what_a_rule_brings_back_that_kept_no_place_waits_for_one() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create night --max-parallel 1").exits(0));
    let first = lab.submit_what("local queue=night rule=pass", "false");
    lab.env.wait_status(first, "error");
    let second = lab.submit("local queue=night");
    lab.wait_running(&[second]);
    drop(lab.env.tpu(&format!("set-rule {first} unknown:rerun")).exits(0));
    // Whether or not a daemon runs: nothing clears it away, and who kills all means it, too.
    drop(lab.env.tpu("clean alice"));
    assert!(lab.env.jobs("alice").iter().any(|job| job["windows_id"] == first));
    drop(lab.env.tpu("kill --all --dry-run").exits(0).says(&[&format!("alice/{first}")]));
    let monitor = daemon(&lab);
    lab.env.turn();
    assert_eq!(lab.running(), [second]);
    let why = format!("queue night has 1 jobs at once: alice/{second}");
    drop(lab.env.tpu(&format!("explain {first}")).exits(0).says(&[&why]));
    // It is to come back: nothing clears it away, and what waits in line stands behind it.
    let third = lab.submit("local queue=night");
    drop(lab.env.tpu("clean alice"));
    assert!(lab.env.jobs("alice").iter().any(|job| job["windows_id"] == first));
    lab.kill(second);
    wait_until("it goes on", || lab.env.job("alice", first)["extra_msgs"]["child"].is_number());
    assert_eq!(lab.waiting(), [third]);
    drop(monitor);
}

/// Times are whole seconds: whoever began in the one in which another ended might have got his place.
fn began_a_minute_ago(lab: &Lab, window: u64) {
    lab.env.change(|data| {
        let job = data.job_mut(&JobId::parse(&format!("alice/{window}")).unwrap()).unwrap();
        let launch = job.launch.as_mut().unwrap();
        launch.at = launch.at.plus_seconds(-60);
    });
}

fn daemon(lab: &Lab) -> Running {
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("the daemon runs", || lab.env.tpu("daemon status").code == 0);
    monitor
}

/// Of two limits that are reached one was lowered, and of the other its place was taken.
#[test]
fn a_limit_by_which_it_keeps_its_place_hides_none_by_which_it_does_not() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create night --max-parallel 2").exits(0));
    drop(lab.env.tpu("set-settings max_parallel 3 alice").exits(0));
    let first = lab.submit_what("local queue=night rule=pass", "false");
    lab.env.wait_status(first, "error");
    let older = lab.submit("local queue=night");
    began_a_minute_ago(&lab, older);
    for _ in 0..2 {
        drop(lab.env.tpu("run local -q -- bash run.sh").exits(0));
    }
    drop(lab.env.tpu("queue set night --max-parallel 1").exits(0));
    drop(lab.env.tpu(&format!("set-rule {first} unknown:rerun")).exits(0));
    let monitor = daemon(&lab);
    lab.env.turn();
    assert_eq!(lab.running(), [older, 3, 4]);
    let why = "alice has 3 jobs at once: alice/2, alice/3, alice/4";
    drop(lab.env.tpu(&format!("explain {first}")).exits(0).says(&[why]));
    drop(monitor);
}

/// A limit that was lowered below what is at work takes nothing from those who are.
#[test]
fn who_was_there_before_a_limit_was_lowered_comes_back_by_his_rule() {
    let lab = Lab::new(8);
    drop(lab.env.tpu("queue create night --max-parallel 2").exits(0));
    let script = "until [ -e \"$HOME/fail\" ]; do sleep 0.4; done; rm -f \"$HOME/fail\"; exit 3";
    lab.env.code("alice", "fails.sh", script);
    let first = lab.submit_what("local queue=night rule=unknown:rerun", "bash fails.sh");
    let second = lab.submit("local queue=night");
    lab.wait_running(&[first, second]);
    began_a_minute_ago(&lab, second);
    drop(lab.env.tpu("queue set night --max-parallel 1").exits(0));
    let monitor = daemon(&lab);
    lab.env.touch("fail");
    wait_until("it goes on", || lab.env.job("alice", first)["extra_msgs"]["child"].is_number());
    drop(monitor);
}
