//! No more are at work than a limit allows, however many look at the queue at the same time.

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
