//! The lease of a lineage in the built program: nobody acts on what is in other hands, a dead hand holds
//! nothing, and what was begun under a lost lease is discarded.

use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::Lease;
use tpu_core::model::time::Timestamp;
use tpu_system::store::{OsDisk, Paths, Store, StoreError, Who};
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// A job that has failed with a checkpoint; it is window 1 of alice.
fn failed() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.start("echo w >\"$TPU_LOG_DIR/checkpoint_1\"; exit 1", &[""; 0]);
    env.wait_status(1, "error");
    env
}

/// Puts a lease into the record, under the lock.
fn hand_over(env: &TestEnv, owner: &str, until: Timestamp) {
    let who = Who { pid: std::process::id(), host: "test".into(), command: "test".into() };
    let clock = Arc::new(SystemClock::new());
    let store = Store::open(Paths::new(env.data_path()), Arc::new(OsDisk), clock, who);
    let given = store.transact("test", |tx| -> Result<(), StoreError> {
        let job = tx.data.job_mut(&JobId::new(UserName::from("alice"), JobNumber(1))).unwrap();
        job.lease = Some(Lease { owner: owner.to_owned(), fence: 9, until });
        Ok(())
    });
    drop(given.unwrap());
}

fn lease(env: &TestEnv) -> Value {
    env.job("alice", 1)["extra_msgs"]["lease"].clone()
}

fn in_a_minute() -> Timestamp {
    SystemClock::new().now().plus_seconds(60)
}

#[test]
fn what_is_in_other_hands_is_left_there_until_its_time_is_over() {
    let env = failed();
    hand_over(&env, "elsewhere:boot:5:100", in_a_minute());
    let refused = env.tpu("resume w=1").exits(4);
    drop(refused.says(&["process 5 on elsewhere is acting on alice/1"]));
    assert_eq!((env.jobs("alice").len(), lease(&env)["fence"].clone()), (1, json!(9)));
    hand_over(&env, "elsewhere:boot:5:100", SystemClock::new().now());
    drop(env.tpu("resume w=1").exits(0));
    assert_eq!(env.job("alice", 2)["extra_msgs"]["lease"]["fence"], 10, "the number rises");
    assert_eq!(lease(&env), Value::Null, "the lease goes on with the leaf");
}

#[test]
fn a_dead_hand_holds_nothing() {
    let env = failed();
    // No boot of this host has had that id.
    let host = tpu_system::sys::env::Env::read().hostname;
    hand_over(&env, &format!("{host}:no-such-boot:5:100"), in_a_minute());
    drop(env.tpu("resume w=1").exits(0));
    assert_eq!(env.jobs("alice").len(), 2);
}

#[test]
fn what_was_begun_under_a_lease_that_was_lost_is_discarded() {
    // Side by side: each takes as long as it sleeps.
    std::thread::scope(|scope| {
        for point in ["resume-leased", "resume-stopped"] {
            scope.spawn(move || {
                let env = failed();
                let points = format!("{point}=sleep(4000)");
                let slow = env.start_tpu("resume w=1", &[("FAILPOINTS", &points)]);
                wait_until("the lease", || lease(&env).is_object());
                hand_over(&env, "elsewhere:boot:5:100", in_a_minute());
                assert_eq!(slow.wait(), 4, "{point}");
                assert_eq!(env.jobs("alice").len(), 1, "{point}");
                assert_eq!(env.windows("alice"), [0, 1], "{point}");
                let kept = lease(&env);
                let holder = (&kept["owner"], &kept["fence"]);
                assert_eq!(holder, (&json!("elsewhere:boot:5:100"), &json!(9)), "{point}");
                let now = SystemClock::new().now().to_rfc3339();
                assert!(
                    kept["until"].as_str().unwrap() > now.as_str(),
                    "{point}: given back by a stranger"
                );
            });
        }
    });
}

#[test]
fn a_kill_that_has_begun_is_above_a_resume_that_has() {
    let env = failed();
    let mut slow = env.start_at_points("resume w=1", "resume-stopped=sleep(2500)");
    wait_until("the lease", || lease(&env).is_object());
    // It stands still until the intent is there. Under the lock, so that it does not hold that meanwhile.
    let sleeper = Pid::from_child(&slow);
    env.change(|_| kill_process(sleeper, Signal::STOP).unwrap());
    let kill = env.start_tpu("kill w=1 -y", &[("FAILPOINTS", "kill-intended=sleep(4000)")]);
    wait_until("the intent", || env.job("alice", 1)["extra_msgs"]["intent"].is_object());
    kill_process(sleeper, Signal::CONT).unwrap();
    assert_eq!(slow.wait().unwrap().code(), Some(4));
    assert_eq!(env.jobs("alice").len(), 1);
    assert_eq!(kill.wait(), 0);
    assert_eq!(env.job("alice", 1)["status"], "error");
}
