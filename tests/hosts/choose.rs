//! One of several machines is chosen as the policy says, the reason is kept, a machine that cannot be used is passed
//! over, and whoever waits gets what becomes free.

use serde_json::json;
use tpu_core::model::spec::{AnyOf, TargetRequest};

use crate::common::wait::wait_until;

use super::Lab;

#[test]
fn each_policy_chooses_as_it_says_and_the_reason_is_kept() {
    let Some(lab) = Lab::with(3, "--max-jobs 4 --gpus 4") else { return };
    let run = |words: &str| {
        let line = format!("run {words} -q --json -- sleep 1000");
        let job = lab.env.tpu(&line).exits(0).json()["launched"].clone();
        (job["target"].as_str().unwrap().to_owned(), job["window"].as_u64().unwrap())
    };
    let on = |words: &str| run(words).0;
    assert_eq!(on("h2 gpus=1"), "h2");
    assert_eq!(on("h[1-3] gpus=2"), "h1", "the first with room");
    assert_eq!(on("h[1-3] gpus=1 --policy smart"), "h3", "4 of 4 are free there");
    assert_eq!(on("h[1-3] gpus=2 --policy frugal"), "h1", "2 of 4 are left there");
    assert_eq!(on("h[1-3] gpus=3 --policy frugal"), "h2", "the only ones with 3, and h2 is first");
    assert!(["h1", "h2", "h3"].contains(&on("h[1-3] --policy random").as_str()));
    drop(lab.env.tpu("set-settings policy smart").exits(0));
    let (target, window) = run("h3,h1 gpus=1");
    assert_eq!(target, "h3", "by the setting, in the order as typed");
    let said = lab.env.tpu(&format!("explain {window}")).exits(0).stdout;
    assert!(said.contains("GPUs free"), "{said}");
    let said = lab.env.tpu("run h[1-3] --policy best -- true").exits(2).stderr;
    assert!(said.contains("--policy best: no such policy"), "{said}");
}

#[test]
fn a_machine_that_does_not_answer_or_whose_gpus_others_use_is_passed_over() {
    let Some(mut lab) = Lab::with(3, "--max-jobs 2 --gpus 4") else { return };
    lab.hosts.shut(0);
    lab.hosts.occupy(1, 0);
    let line = "run h[1-3] gpus=4 -q --json -- sleep 1000";
    let said = lab.env.tpu(line).exits(0);
    assert_eq!(said.json()["launched"]["target"], "h3", "{}", said.report());
    assert!(said.stderr.contains("h1: worker 0 at 127.0.0.11"), "{}", said.report());
    assert!(said.stderr.contains("h2: 3 of 4 GPUs are free"), "{}", said.report());
    // None is left: said for each, and nothing has begun.
    let said = lab.env.tpu(line).exits(4).stderr;
    assert!(said.contains("none of h[1-3] can be used"), "{said}");
    assert_eq!(lab.env.jobs("alice").len(), 1);
    // A job that names one machine is told the same of it.
    assert!(lab.env.tpu("run h1 -q -- true").exits(6).stderr.contains("h1 cannot be used now"));
    let said = lab.env.tpu("run h2 gpu=0 -q -- true").exits(4).stderr;
    assert!(said.contains("GPU 0 is in use by"), "{said}");
}

#[test]
fn whoever_waits_for_a_machine_that_does_not_answer_is_told_so() {
    const WHY: &str = "h1: worker 0 at 127.0.0.11";
    let Some(mut lab) = Lab::with(1, "--max-jobs 1") else { return };
    lab.hosts.shut(0);
    drop(lab.env.tpu("submit h1 -- true").exits(0).says(&[WHY]));
    drop(lab.env.tpu("explain 1").exits(0).says(&[WHY]));
    let listed = lab.env.tpu("queue --json").exits(0).json();
    let entry = &listed["entries"][0];
    assert!(entry["reason"].as_str().is_some_and(|reason| reason.starts_with(WHY)), "{entry}");
    assert!(entry["expected_start"].is_null(), "{entry}");
    let said = lab.env.tpu("queue run --once").exits(0);
    assert!(said.stderr.contains(&format!("alice/1 waits: {WHY}")), "{}", said.report());
}

#[test]
fn whoever_waits_begins_when_there_is_room_and_never_where_there_can_be_none() {
    let Some(lab) = Lab::with(2, "--max-jobs 1 --gpus 4") else { return };
    let said = lab.env.tpu("run h[1-2] gpus=5 --wait -q -- true").exits(2).stderr;
    assert!(said.contains("could ever run it"), "{said}");
    for host in ["h1", "h2"] {
        drop(lab.env.tpu(&format!("run {host} -q -- sleep 1000")).exits(0));
    }
    let said = lab.env.tpu("run h[1-2] -q -- true").exits(4).stderr;
    assert!(said.contains("none of h[1-2] has room") && said.contains("alice/1"), "{said}");
    let waiting = lab.env.start_tpu("run h[1-2] gpus=2 --wait -q -- sleep 1000", &[]);
    wait_until("it waits", || lab.env.queued() > 0);
    drop(lab.env.tpu("kill 2 -y").exits(0));
    assert_eq!(waiting.wait(), 0);
    let job = lab.env.job("alice", 3);
    assert_eq!((&job["tpu"], &job["extra_msgs"]["share"]["gpus"]), (&json!("h2"), &json!([0, 1])));
}

/// Lets the entry at a place of the queue wait for other machines.
fn wish_for(lab: &Lab, at: usize, among: &str) {
    lab.env.change(|data| {
        let any_of = AnyOf { among: vec![among.to_owned()], ..AnyOf::default() };
        data.queues_mut().entries[at].spec.target = TargetRequest::Any(any_of);
    });
}

#[test]
fn a_machine_that_is_forgotten_ends_the_wait_for_it_alone_and_holds_nobody_up() {
    let Some(lab) = Lab::with(2, "--max-jobs 1") else { return };
    for host in ["h1", "h2"] {
        drop(lab.env.tpu(&format!("run {host} -q -- sleep 1000")).exits(0));
    }
    let waits = |words: &str, count: usize| {
        let waiting = lab.env.start_tpu(&format!("run {words} --wait -q -- sleep 1000"), &[]);
        let in_line = || lab.env.queued();
        wait_until("it waits", || in_line() == count);
        waiting
    };
    let (first, second) = (waits("h1 gpus=0", 1), waits("h2 gpus=0", 2));
    // One of a pattern that goes leaves the others to whoever waits.
    wish_for(&lab, 1, "h[2-3]");
    // As if the first had waited for one that is not known any more, and had not looked yet.
    wish_for(&lab, 0, "gone[1-2]");
    drop(lab.env.tpu("kill 2 -y").exits(0));
    assert_eq!(second.wait(), 0, "whoever stands behind begins");
    // Forgotten by hand: `hosts remove` refuses while a job is there.
    lab.env.change(|data| assert!(data.registry_mut().forget(&"h1".into())));
    assert_eq!(first.wait(), 3, "what he waits for is not there any more");
    assert_eq!(lab.env.queued(), 0);
}
