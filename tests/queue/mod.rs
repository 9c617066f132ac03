//! What waits begins when its turn comes: once, in an order that is told, within its limits, whoever dies meanwhile.
//!
//! slow: real daemons start what waits, turn by turn.

mod after;
mod archived;
mod asked;
mod begins;
mod crowd;
mod edits;
mod expected;
mod fleet;
mod hopeless;
mod killed;
mod limits;
mod names;
mod order;
mod original;
mod ranked;
mod readme;
mod requeue;
mod shown;
mod staged;
mod supply;
mod sweeps;

use serde_json::{Value, json};
use tpu_core::model::ids::QueueName;
use tpu_core::model::queue::QueueState;

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// A lab of `alice` in which one job at a time runs on this machine, or so many.
pub(crate) struct Lab {
    pub(crate) env: TestEnv,
}

impl Lab {
    pub(crate) fn new(at_once: u32) -> Self {
        let mut env = TestEnv::new();
        env.code("alice", "run.sh", "exec sleep 1000\n");
        env.set("TPU_USER", "alice");
        env.set("USER", "alice");
        let lab = Self { env };
        lab.takes(at_once);
        lab
    }

    /// Lets so many jobs run on this machine at a time.
    pub(crate) fn takes(&self, at_once: u32) {
        drop(self.env.tpu(&format!("hosts set local --max-jobs {at_once}")).exits(0));
    }

    /// Submits something that runs until it is killed; its number.
    pub(crate) fn submit(&self, words: &str) -> u64 {
        self.submit_what(words, "bash run.sh")
    }

    /// The same with a command.
    pub(crate) fn submit_what(&self, words: &str, command: &str) -> u64 {
        let said = self.env.tpu(&format!("submit {words} --json -- {command}")).exits(0).json();
        said["jobs"][0]["window"].as_u64().unwrap()
    }

    /// What waits, in the order of the turns.
    pub(crate) fn waiting(&self) -> Vec<u64> {
        let said = self.queue();
        let entries = said["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["window"].as_u64().unwrap()).collect()
    }

    /// What `queue` says.
    pub(crate) fn queue(&self) -> Value {
        self.env.tpu("queue --json").exits(0).json()
    }

    /// Why something waits.
    pub(crate) fn why(&self, window: u64) -> String {
        let said = self.queue();
        let entries = said["entries"].as_array().unwrap();
        let own = entries.iter().find(|entry| entry["window"] == window);
        own.unwrap_or_else(|| panic!("{window} does not wait: {said:#}"))["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The numbers of those that run, in the order in which they began.
    pub(crate) fn running(&self) -> Vec<u64> {
        self.env
            .jobs("alice")
            .iter()
            .filter(|job| ["starting", "running"].contains(&job["status"].as_str().unwrap_or("")))
            .map(|job| job["windows_id"].as_u64().unwrap())
            .collect()
    }

    /// Ends a job; whoever is next begins.
    pub(crate) fn kill(&self, window: u64) {
        drop(self.env.tpu(&format!("kill {window} -y")).exits(0));
    }

    /// Lets a queue start nothing, or start jobs again, without starting any.
    pub(crate) fn pauses(&self, queue: &str, pauses: bool) {
        self.env.change(|data| {
            let mut queue = data.queues().queue(&QueueName::from(queue)).unwrap();
            queue.state = if pauses { QueueState::Paused } else { QueueState::Open };
            data.queues_mut().set(queue);
        });
    }

    /// Waits until these run and no others.
    #[track_caller]
    pub(crate) fn wait_running(&self, windows: &[u64]) {
        wait_until(&format!("{windows:?} run"), || self.running() == windows);
    }
}

/// The number of the first job in a document of what was changed.
pub(crate) fn started(said: &Value) -> Vec<u64> {
    said["started"]
        .as_array()
        .unwrap_or(&Vec::new())
        .iter()
        .map(|job| job["window"].as_u64().unwrap())
        .collect()
}

/// Nothing is at work.
pub(crate) fn nobody() -> Value {
    json!([])
}
