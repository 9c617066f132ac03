//! A receiver that hangs keeps no turn of the daemon waiting, and no other receiver.

use serde_json::json;

use tpu_core::model::time::Timestamp;
use tpu_ops::base::watch::Note;

use super::Lab;
use super::hook::{Fate, Hook};
use crate::common::wait::{wait_for, wait_until};

/// When the daemon says that its last turn ended.
fn turned(lab: &Lab) -> Timestamp {
    wait_for("the daemon's note", || {
        let all = std::fs::read_dir(lab.env.path("tpu-state")).unwrap().flatten();
        let mut names = all.map(|entry| entry.file_name().into_string().unwrap());
        let name = names.find(|name| name.starts_with("daemon-") && !name.contains("lock"))?;
        let bytes = std::fs::read(lab.env.path("tpu-state").join(name)).ok()?;
        Some(serde_json::from_slice::<Note>(&bytes).ok()?.turned)
    })
}

#[test]
fn while_a_receiver_hangs_monitor_turns_and_others_are_told() {
    let lab = Lab::new();
    let (hangs, takes) = (Hook::new(|_| Fate::Hangs), Hook::good());
    lab.tell("alice", &json!([{ "webhook": hangs.url() }, { "webhook": takes.url() }]));
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "first");
    wait_until("the one that hangs", || hangs.open() == 1);
    for _ in 0..5 {
        let before = turned(&lab);
        drop(lab.env.tpu("ack").exits(0));
        wait_until("another turn", || turned(&lab) > before);
    }
    lab.fail("alice", "second");
    wait_until("the other one", || takes.evidence() == ["first", "second"]);
    assert_eq!((hangs.open(), hangs.got().len()), (1, 1), "all of it while that one hangs");
    drop(monitor);
}
