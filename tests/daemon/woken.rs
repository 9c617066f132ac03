//! `tpu ack`: what waits for a pause is tried at once, once, and what is counted stays.

use serde_json::{Value, json};

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// Loses a peer; from its checkpoint it goes on until `go` appears.
const TRAIN: &str = "echo w >\"$TPU_LOG_DIR/checkpoint_10\"; case \"$*\" in *load_from=*) \
    until [ -e \"$HOME/go\" ]; do sleep 0.3; done; exit 0;; esac; \
    echo 'jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: failed to connect to all addresses; \
    last error: UNKNOWN: Socket closed; grpc_status:14'; exit 134";

fn recovery(env: &TestEnv, window: u64) -> Value {
    env.job("alice", window)["extra_msgs"]["recovery"].clone()
}

#[test]
fn a_person_has_what_waits_tried_at_once_and_what_is_counted_stays() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let words = ["run", "local", "alice", "rule=resume", "--", "bash", "-c", TRAIN, "job"];
    drop(env.tpu_words(&words).exits(0));
    assert_eq!(env.wait_status(1, "error")["error"], "grpc");
    wait_until("its end", || env.job("alice", 1)["extra_msgs"]["launch"]["ended"].is_string());
    env.change(|data| {
        let user = data.user_mut(&UserName::from("alice")).unwrap();
        let counts = user.job_mut(JobNumber(1)).unwrap().counts_mut();
        (counts.infra, counts.last_action_at) = (9, Some(SystemClock::new().now()));
    });
    drop(env.tpu("daemon plan").exits(0).says(&["resume (11 left)"]));
    drop(env.tpu("ack").exits(0).says(&["Woken: alice/1."]));
    let woken = recovery(&env, 1);
    assert_eq!((&woken["infra"], &woken["roused"]), (&json!(9), &json!(true)));
    let nothing = env.tpu("ack --json").exits(0).json();
    assert_eq!(nothing["jobs"], json!([]), "it is awake already");
    let monitor = env.start_tpu("daemon run", &[]);
    wait_until("the next attempt", || env.jobs("alice").len() == 2);
    env.wait_status(2, "running");
    let woken = recovery(&env, 2);
    assert_eq!((&woken["infra"], woken.get("roused")), (&json!(10), None));
    drop(monitor);
}
