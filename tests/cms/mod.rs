//! For those who come from Cloudmesh: its files are taken over whole or not at all, and its command line is understood.
//!
//! slow: real hosts behind sshd, and daemons that take their turns by the clock.

mod clusters;
mod commands;
mod counts;
mod docs;
mod failures;
mod fields;
mod half_done;
mod hostile;
mod jobs;
mod jobset;
mod json;
mod link;
mod probed;
mod ready;
mod schedulers;
mod spec;
mod template;
mod trouble;
mod twice;

use serde_json::Value;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

/// The jobset of the manual, byte for byte.
const SPEC: &str = include_str!("spec.yaml");

/// A home of alice's with the manual's jobset in it.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    write_file(&env.path("spec.yaml"), SPEC);
    env
}

/// The same with a file of this text.
fn with(name: &str, text: &str) -> TestEnv {
    let env = lab();
    write_file(&env.path(name), text);
    env
}

/// A host as `hosts` has it; null where there is none.
fn host(env: &TestEnv, name: &str) -> Value {
    let all = env.tpu("hosts --json").exits(0).json();
    let hosts = all["hosts"].as_array().unwrap();
    hosts.iter().find(|host| host["name"] == name).cloned().unwrap_or_default()
}

/// What became of a field of an entry of a document.
fn becomes(entry: &Value, field: &str) -> String {
    let fields = entry["fields"].as_array().unwrap();
    let found = fields.iter().find(|known| known["name"] == field).unwrap();
    found["becomes"].as_str().unwrap().to_owned()
}
