//! What is set holds for what happens next, whether or not the daemon runs; what happened before is nobody's news.

use serde_json::json;

use super::hook::Hook;
use super::{Lab, webhook};
use crate::common::wait::wait_until;

#[test]
fn a_setting_made_while_monitor_runs_holds_for_the_next_event() {
    let lab = Lab::new();
    let hook = Hook::good();
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "before");
    drop(lab.env.tpu("ack").exits(0));
    lab.tell("alice", &webhook(&hook.url()));
    lab.fail("alice", "after");
    wait_until("it", || hook.evidence().contains(&"after".to_owned()));
    assert_eq!(hook.evidence(), ["after"]);
    lab.tell("alice", &json!([]));
    lab.fail("alice", "no more");
    // Whoever comes next shows that the daemon has read past it.
    let next = Hook::good();
    lab.tell("alice", &webhook(&next.url()));
    lab.fail("alice", "at last");
    wait_until("the next", || next.evidence().contains(&"at last".to_owned()));
    assert_eq!(hook.evidence(), ["after"]);
    drop(monitor);
}

#[test]
fn what_happens_while_no_monitor_runs_is_told_by_the_next_one() {
    let lab = Lab::new();
    let hook = Hook::good();
    lab.fail("alice", "before");
    lab.tell("alice", &webhook(&hook.url()));
    lab.fail("alice", "between");
    let monitor = lab.env.daemon(&[]);
    wait_until("it", || !hook.got().is_empty());
    monitor.kill();
    lab.fail("alice", "without");
    let monitor = lab.env.daemon(&[]);
    wait_until("both", || hook.evidence().len() == 2);
    assert_eq!(hook.evidence(), ["between", "without"]);
    drop(monitor);
}

#[test]
fn nothing_is_kept_where_nobody_wants_to_be_told() {
    let lab = Lab::new();
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "it");
    for _ in 0..2 {
        lab.env.acknowledge();
    }
    assert!(!lab.env.path("tpu-state/outbox.json").exists());
    drop(monitor);
}

#[test]
fn an_outbox_that_nobody_can_read_is_put_aside_and_the_next_event_is_told() {
    let lab = Lab::new();
    let hook = Hook::good();
    lab.tell("alice", &webhook(&hook.url()));
    lab.env.touch("tpu-state/outbox.json");
    let monitor = lab.env.daemon(&[]);
    wait_until("it is put aside", || lab.env.path("tpu-state/outbox.unreadable").exists());
    wait_until("another one", || lab.env.path("tpu-state/outbox.json").exists());
    lab.fail("alice", "it");
    wait_until("it", || hook.evidence() == ["it"]);
    drop(monitor);
}
