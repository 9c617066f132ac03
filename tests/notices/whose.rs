//! Everybody is told of his own affairs alone.

use serde_json::json;

use super::hook::Hook;
use super::{Lab, webhook};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

#[test]
fn a_second_user_hears_nothing_of_the_first() {
    let lab = Lab::new();
    let (alice, bob) = (Hook::good(), Hook::good());
    lab.tell("alice", &webhook(&alice.url()));
    lab.tell("bob", &webhook(&bob.url()));
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "of alice");
    lab.fail("bob", "of bob");
    wait_until("both", || !alice.got().is_empty() && !bob.got().is_empty());
    lab.fail("alice", "once more");
    wait_until("the rest", || alice.evidence().len() == 2);
    assert_eq!(alice.evidence(), ["of alice", "once more"]);
    assert_eq!(bob.evidence(), ["of bob"]);
    drop(monitor);
}

#[test]
fn the_file_of_one_users_account_has_nobody_else_told() {
    let lab = Lab::new();
    let (own, alice) = (Hook::good(), Hook::good());
    lab.tell("alice", &webhook(&alice.url()));
    // The daemon runs with the settings of bob's account.
    let file = json!({ "user": "bob", "notify": webhook(&own.url()), "notify_merge": 1 });
    std::fs::create_dir_all(lab.env.path("config/tpu")).unwrap();
    write_file(&lab.env.path("config/tpu/settings.json"), &file.to_string());
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "of alice");
    lab.fail("bob", "of bob");
    wait_until("both", || !alice.got().is_empty() && !own.got().is_empty());
    assert_eq!(alice.evidence(), ["of alice"]);
    assert_eq!(own.evidence(), ["of bob"]);
    drop(monitor);
}

#[test]
fn the_file_of_a_lab_has_all_told() {
    let lab = Lab::new();
    let all = Hook::good();
    let file = json!({ "notify": webhook(&all.url()), "notify_merge": 1 });
    std::fs::create_dir_all(lab.env.path("config/tpu")).unwrap();
    write_file(&lab.env.path("config/tpu/settings.json"), &file.to_string());
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "of alice");
    lab.fail("bob", "of bob");
    wait_until("both", || all.evidence().len() == 2);
    // Each user has a line of his own: no body mixes what two may not read of one another.
    assert!(all.got().iter().all(|got| got.body["events"].as_array().unwrap().len() == 1));
    drop(monitor);
}

#[test]
fn a_daemon_sends_nothing_of_the_jobs_of_another_account() {
    let lab = Lab::new();
    let (alice, bob) = (Hook::good(), Hook::good());
    lab.tell("alice", &webhook(&alice.url()));
    lab.tell("bob", &webhook(&bob.url()));
    let mut data = lab.env.data();
    let mut job = lab.env.record("alice", 7, "finished");
    job["extra_msgs"]["place"] = json!({
        "host": "lab", "boot": "b", "uid": 4_000_000_001_u32, "socket": "/tmp/s", "server_pid": 1,
        "server_start": 1,
    });
    data["users"]["alice"]["job_data"].as_array_mut().unwrap().push(job);
    lab.env.write_data(&data);
    let monitor = lab.env.daemon(&[]);
    lab.fail("alice", "of another account");
    lab.fail("bob", "of bob");
    wait_until("bob's", || !bob.got().is_empty());
    let outbox = std::fs::read_to_string(lab.env.path("tpu-state/outbox.json")).unwrap();
    assert!(outbox.contains("of another account"), "it waits for that account's: {outbox}");
    assert!(alice.got().is_empty());
    drop(monitor);
}
