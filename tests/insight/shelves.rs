//! A lab with buckets in two regions, which the emulator has, and checkpoints in directories.

use std::io::Write as _;
use std::path::Path;

use std::sync::Arc;

use serde_json::{Value, json};
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::storage::ObjectStore;
use tpu_engine::provider::{Provider as _, Trouble};
use tpu_gcp::google::Google;
use tpu_lab::sim::{Call, Event};
use tpu_system::sys::clock::ManualClock;

use super::made::{attempt, failed};
use crate::common::env::TestEnv;
use crate::common::rest::{Served, google};

/// The program with the emulator behind it.
pub(crate) struct Shelves {
    pub(crate) env: TestEnv,
    pub(crate) served: Served,
    google: Google,
}

impl Shelves {
    /// Buckets `lab-us` and `lab-eu`; what lies in `logs` has its counterpart in both.
    pub(crate) fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        let mut data = env.two_users();
        data["users"]["alice"]["settings"]["checkpoint_copy"] = json!({
            "here": env.path("logs"), "us-central1": "gs://lab-us/logs",
            "europe-west4": "gs://lab-eu/logs",
        });
        data["users"]["alice"]["settings"]["prices"] = json!({ "egress": 50 });
        env.write_data(&data);
        let served = Served::beside(&mut env);
        let clock = Arc::new(ManualClock::new(Timestamp::from_second(0)));
        let google = google(&served.endpoint(), &clock, 1);
        let shelves = Self { env, served, google };
        for (name, location) in [("lab-us", "US-CENTRAL1"), ("lab-eu", "EUROPE-WEST4")] {
            let (name, location) = (name.to_owned(), location.to_owned());
            shelves.pull(&Event::Bucket { name, location });
        }
        shelves
    }

    /// The buckets, past the program.
    pub(crate) fn store(&self) -> &dyn ObjectStore {
        self.google.storage().unwrap()
    }

    pub(crate) fn pull(&self, event: &Event) {
        self.served.sim().pull(event).unwrap();
    }

    /// A call fails so many times.
    pub(crate) fn fail(&self, class: Trouble, call: Call, times: u32) {
        let (call, times) = (Some(call), Some(times));
        self.pull(&Event::Error { class, call, target: None, zone: None, times, for_s: None });
    }

    /// A file of so many bytes below the directory of the test, of which no two are the same.
    pub(crate) fn file(&self, below: &str, size: u64) {
        write(&self.env.path(below), size);
    }

    /// Records of alice's, in place of those that there are.
    pub(crate) fn jobs(&self, jobs: &[Value]) {
        let mut data = self.env.data();
        data["users"]["alice"]["job_data"] = json!(jobs);
        self.env.write_data(&data);
    }

    /// A record with a log directory.
    pub(crate) fn job(&self, window: u64, status: &str, log: &str) -> Value {
        let mut record = attempt(&self.env, window, status, (0, 60));
        if status == "error" {
            record = failed(record, "preempted", "it was taken");
        }
        record["tpu"] = json!("local");
        record["log_dir"] = json!(log);
        record
    }

    /// Steps, whether each is whole, and where, as `tpu checkpoints` says.
    pub(crate) fn listed(&self, words: &str) -> Vec<(u64, bool, String)> {
        let document = self.env.tpu(&format!("checkpoints {words} --json")).exits(0).json();
        let all = document["checkpoints"].as_array().unwrap().iter();
        all.map(|one| {
            let place = one["where"].as_str().unwrap().replace(self.env.root(), "");
            (one["step"].as_u64().unwrap(), one["complete"].as_bool().unwrap(), place)
        })
        .collect()
    }

    /// How many requests of this kind were made.
    pub(crate) fn asked(&self, method: &str, part: &str) -> usize {
        let is_it = |one: &&Value| {
            one["method"] == method && one["target"].as_str().unwrap().contains(part)
        };
        self.served.asked().iter().filter(is_it).count()
    }

    /// How many of them were cut off.
    pub(crate) fn cut(&self) -> usize {
        self.served.asked().iter().filter(|one| one["status"].is_null()).count()
    }
}

/// Writes a file of so many bytes.
pub(crate) fn write(path: &Path, size: u64) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = std::fs::File::create(path).unwrap();
    let mut state = size | 1;
    let mut block = vec![0_u8; 1 << 20];
    for byte in &mut block {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = u8::try_from(state >> 56).unwrap();
    }
    let mut left = size;
    let mut number = 0_u64;
    while left > 0 {
        block[..8].copy_from_slice(&number.to_le_bytes());
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        file.write_all(&block[..most]).unwrap();
        left -= most as u64;
        number += 1;
    }
}
