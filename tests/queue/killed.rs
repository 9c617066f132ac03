//! Who starts what waits may be killed at any step: nothing begins twice, and nothing that waits is lost.

use crate::common::wait::wait_until;

use super::Lab;

#[test]
fn who_dies_behind_the_claim_has_handed_the_place_in() {
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
    // What became of the claim is settled by whoever looks next; then the place is free, or taken.
    lab.env.a_minute_later("alice");
    drop(lab.env.tpu("queue run --once").exits(0));
    let second = lab.env.job("alice", second)["status"].clone();
    assert!(second == "error" || second == "running" || second == "starting", "{second}");
    assert!(lab.running().len() <= 1);
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
