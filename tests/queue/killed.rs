//! Who starts what waits may be killed at any step: nothing begins twice, and nothing that waits is lost.

use serde_json::{Value, json};

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
