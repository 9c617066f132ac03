//! Who starts what waits may be killed at any step: nothing begins twice, and nothing that waits is lost.

use serde_json::{Value, json};
use tpu_core::model::entry::Shunned;
use tpu_core::model::ids::TargetName;
use tpu_core::model::time::Timestamp;

use crate::common::wait::wait_until;

use super::Lab;

#[test]
fn who_dies_behind_the_claim_has_handed_the_place_in_and_it_is_given_back() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let second = lab.submit("local");
    let third = lab.submit("local");
    lab.pauses("default", true);
    lab.kill(first);
    assert_eq!(lab.waiting(), [second, third]);
    lab.pauses("default", false);
    let dies = lab.env.start_tpu("queue run --once", &[("FAILPOINTS", "launch-claimed=pause")]);
    wait_until("it has claimed", || lab.env.jobs("alice").len() == 2);
    assert_eq!(lab.waiting(), [third], "in one step");
    dies.kill();
    let token = |job: &Value| job["extra_msgs"]["launch"]["token"].clone();
    let claimed = token(&lab.env.job("alice", second));
    assert_eq!(lab.env.job("alice", second)["extra_msgs"]["waited"]["entry"]["number"], second);
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[second]);
    let begun = lab.env.wait_status(second, "running");
    assert!(token(&begun) != claimed && begun["extra_msgs"]["waited"].is_null(), "{begun:#}");
    assert_eq!(lab.waiting(), [third]);
}

#[test]
fn who_dies_behind_the_claim_gives_back_a_member_to_its_group() {
    let lab = Lab::new(1);
    lab.pauses("default", true);
    drop(lab.env.tpu("submit local --array 0-1 -- sleep 1000").exits(0));
    let dies = |jobs: usize| {
        let points = [("FAILPOINTS", "launch-claimed=pause")];
        let dies = lab.env.start_tpu("queue run --once", &points);
        wait_until("it has claimed", || lab.env.jobs("alice").len() == jobs);
        dies.kill();
    };
    lab.pauses("default", false);
    dies(1);
    drop(lab.env.tpu("queue run --once").exits(0));
    wait_until("one runs", || lab.running().len() == 1);
    let entry = lab.env.data()["queue"]["entries"][0].clone();
    assert_eq!((&entry["array"], lab.env.jobs("alice").len()), (&json!("1"), 1), "{entry:#}");
    lab.kill(lab.running()[0]);
    wait_until("the other one runs", || lab.running().len() == 1);
    assert!(lab.waiting().is_empty());
}

#[test]
fn who_dies_behind_the_claim_gives_back_the_only_one_and_what_it_succeeds() {
    let lab = Lab::new(1);
    let first = lab.submit_what("local", "false");
    lab.env.wait_status(first, "error");
    let before = lab.env.job("alice", first);
    lab.pauses("default", true);
    drop(lab.env.tpu(&format!("requeue {first} -y")).exits(0));
    let [second] = lab.waiting()[..] else { panic!("{:?}", lab.waiting()) };
    lab.pauses("default", false);
    let dies = lab.env.start_tpu("queue run --once", &[("FAILPOINTS", "launch-claimed=pause")]);
    wait_until("it has claimed", || lab.env.jobs("alice").len() == 2);
    dies.kill();
    assert_eq!(lab.env.job("alice", first)["extra_msgs"]["child"], second);
    assert!(lab.waiting().is_empty(), "so that nobody would look");
    lab.pauses("default", true);
    drop(lab.env.tpu("queue run --once").exits(0));
    assert_eq!((lab.waiting(), lab.env.jobs("alice").len()), (vec![second], 1));
    let after = lab.env.job("alice", first);
    for of in ["status", "error"] {
        assert_eq!(before[of], after[of]);
    }
    assert!(after["extra_msgs"]["child"].is_null(), "{after:#}");
    lab.pauses("default", false);
    drop(lab.env.tpu("queue run --once").exits(0));
    wait_until("it begins", || lab.env.jobs("alice").len() == 2);
    assert_eq!(lab.env.job("alice", second)["extra_msgs"]["father"], first);
}

#[test]
fn what_somebody_has_left_claimed_begins_when_a_job_ends_though_nothing_else_waits() {
    let lab = Lab::new(2);
    let ends = "until [ -e \"$HOME/go\" ]; do sleep 0.3; done";
    lab.env.code("alice", "ends.sh", ends);
    lab.submit_what("local", "bash ends.sh");
    lab.pauses("default", true);
    let second = lab.submit("local");
    lab.pauses("default", false);
    let dies = lab.env.start_tpu("queue run --once", &[("FAILPOINTS", "launch-claimed=pause")]);
    wait_until("it has claimed", || lab.env.jobs("alice").len() == 2);
    dies.kill();
    assert!(lab.waiting().is_empty());
    lab.env.touch("go");
    lab.wait_running(&[second]);
}

/// The target that it was given could not be reached: it is not given it again at once, whatever that says to a probe.
#[test]
fn a_target_that_was_not_reached_is_left_out_for_a_while_or_until_a_person_says_so() {
    let lab = Lab::new(1);
    lab.pauses("default", true);
    let waits = lab.submit("local");
    lab.env.change(|data| {
        let until = Timestamp::parse_rfc3339("2099-01-01T00:00:00Z").unwrap();
        let why = "ssh: refused".to_owned();
        let entry = data.queues_mut().entries.first_mut().unwrap();
        entry.shunned = vec![Shunned { target: TargetName::from("local"), until, why }];
    });
    lab.pauses("default", false);
    drop(lab.env.tpu("queue run --once").exits(0));
    assert_eq!(lab.waiting(), [waits]);
    assert!(lab.why(waits).contains("local just now (ssh: refused)"), "{}", lab.why(waits));
    let woken = lab.env.tpu("ack --json").exits(0).json();
    assert_eq!(woken["jobs"], json!([format!("alice/{waits}")]));
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[waits]);
}

#[test]
fn who_dies_before_the_claim_leaves_all_as_it_was() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let second = lab.submit("local");
    lab.pauses("default", true);
    lab.kill(first);
    lab.pauses("default", false);
    let dies = lab.env.start_tpu("queue run --once", &[("FAILPOINTS", "look-read=pause")]);
    dies.kill();
    assert_eq!(lab.waiting(), [second]);
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[second]);
}
