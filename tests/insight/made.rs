//! Records, archive and journal of attempts that were, written as the program writes them; and what the simulated cloud
//! says of quotas and bills.

use serde_json::{Value, json};

use tpu_engine::provider::Trouble;
use tpu_lab::sim::{AccountChange, Call, Event};

use crate::common::env::TestEnv;
use crate::common::rest::Served;
use crate::common::tmux::write_file;

/// Begins and ends of attempts count from here: 2024-11-04, a Monday, at noon in UTC.
pub(crate) const NOON: i64 = 1_730_721_600;

/// An instant so many minutes after noon.
pub(crate) fn at(minutes: i64) -> String {
    tpu_core::model::time::Timestamp::from_second(NOON + minutes * 60).to_rfc3339()
}

/// A record of alice's that ran on a target from one minute to another.
pub(crate) fn attempt(env: &TestEnv, window: u64, status: &str, (from, to): (i64, i64)) -> Value {
    let mut record = env.record("alice", window, status);
    record["tpu"] = json!("lab-v4-8-1");
    record["extra_msgs"] = json!({ "launch": {
        "token": format!("token-{window}"), "mode": "native", "at": at(from), "confirmed": true,
        "ended": at(to),
    } });
    record
}

/// The same after a failure, with the line that decided it.
pub(crate) fn failed(mut record: Value, kind: &str, line: &str) -> Value {
    record["error"] = json!(kind);
    record["extra_msgs"]["verdict"] = json!({ "kind": kind, "rule": "r", "line": line });
    record
}

/// Two users, targets of two types, and prices.
pub(crate) fn lab(jobs: &[Value]) -> TestEnv {
    let env = TestEnv::new();
    let mut data = env.two_users();
    data["users"]["alice"]["job_data"] = json!(jobs);
    data["users"]["alice"]["settings"]["time_zone"] = json!("UTC");
    data["users"]["alice"]["settings"]["prices"] = json!({ "v4": 0.5 });
    env.write_data(&data);
    for (name, of) in [("lab-v4-8-1", "v4-8"), ("lab-v4-8-2", "v4-8"), ("lab-v2-8-1", "v2-8")] {
        let zone = if of == "v4-8" { "us-central2-b" } else { "eu-west4-a" };
        drop(env.tpu(&format!("register {name} --zone {zone} --type {of} --spot")).exits(0));
    }
    env
}

/// Puts records into the archive, as if they had been cleaned away.
pub(crate) fn archive(env: &TestEnv, records: &[Value]) {
    let line = |record: &Value| {
        let user = &record["user"];
        json!({ "at": at(9_000), "actor": "clean", "user": user, "job": record }).to_string() + "\n"
    };
    let path = env.path("tpu-state/archive.jsonl");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::create_dir_all(env.path("tpu-state")).unwrap();
    write_file(&path, &(before + &records.iter().map(line).collect::<String>()));
}

/// Lines of the journal before all others.
pub(crate) fn journal(env: &TestEnv, events: &[Value]) {
    let path = env.path("tpu-state/events.jsonl");
    let after = std::fs::read_to_string(&path).unwrap_or_default();
    let text: String = events.iter().map(|event| event.to_string() + "\n").collect();
    std::fs::create_dir_all(env.path("tpu-state")).unwrap();
    write_file(&path, &(text + &after));
}

/// One of them, about a job of alice's.
pub(crate) fn event(minutes: i64, job: u64, kind: &str, text: &str) -> Value {
    json!({ "at": at(minutes), "actor": "t", "user": "alice", "job": job, "kind": kind, "text": text })
}

/// Changes what the project may have or has to pay.
pub(crate) fn account(served: &Served, change: AccountChange) {
    served.sim().pull(&Event::Account { change }).unwrap();
}

/// From now on a call is denied, about one table or about everything.
pub(crate) fn denied(served: &Served, call: Call, table: Option<&str>) {
    let (class, target) = (Trouble::Permission, table.map(str::to_owned));
    let call = Some(call);
    let event = Event::Error { class, call, target, zone: None, times: None, for_s: None };
    served.sim().pull(&event).unwrap();
}

/// Insists on a number, but for the last digits.
#[track_caller]
pub(crate) fn near(value: &Value, wanted: f64) {
    let found = value.as_f64().unwrap_or(f64::NAN);
    assert!((found - wanted).abs() < 1e-6, "{found} is not {wanted}");
}
