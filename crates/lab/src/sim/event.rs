//! The strings of the simulator: each is one thing that a person (`tpu sim …`) or a scenario can do.

use serde::{Deserialize, Serialize};

use super::accounts::AccountChange;
use super::faults::Call;
use super::timing::Timing;
use tpu_core::model::target::Pricing;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::Trouble;

/// One string that can be pulled. Seconds are counted from when it is pulled; a `for_s` or `times` that
/// is not given means "until it is taken back".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// The target is taken away now.
    Preempt {
        /// Which target.
        target: String,
    },
    /// The target is READY now, whatever it was; it is made if it is missing, with what is not given
    /// read from its name.
    Ready {
        /// Which target.
        target: String,
        /// In which zone.
        zone: Option<String>,
        /// Accelerator type.
        accelerator: Option<String>,
        /// How it is paid for.
        pricing: Option<Pricing>,
    },
    /// The control plane says this word about the target, known or not, and its machines go on.
    Say {
        /// Which target.
        target: String,
        /// The control plane's word.
        word: String,
    },
    /// The target's owner works on it: unhealthy, with a symptom.
    Maintenance {
        /// Which target.
        target: String,
        /// For how many seconds.
        for_s: Option<f64>,
    },
    /// The target is healthy.
    Heal {
        /// Which target.
        target: String,
    },
    /// One machine of the target dies; the control plane goes on saying READY.
    LoseWorker {
        /// Which target.
        target: String,
        /// Index of the machine.
        worker: u32,
    },
    /// Programs on the target lose their connection to each other and die of it.
    Grpc {
        /// Which target.
        target: String,
    },
    /// Somebody else holds the accelerators: programs on the target end at their start.
    Lock {
        /// Which target.
        target: String,
    },
    /// The accelerators are free again.
    Unlock {
        /// Which target.
        target: String,
    },
    /// The way to the target's machines breaks; what runs on them goes on.
    Cut {
        /// Which target.
        target: String,
    },
    /// The way is whole again.
    Mend {
        /// Which target.
        target: String,
    },
    /// Creations fail for want of capacity: of one target, in one zone, or all.
    NoCapacity {
        /// About which target.
        target: Option<String>,
        /// In which zone.
        zone: Option<String>,
        /// How many times.
        times: Option<u32>,
        /// For how many seconds.
        for_s: Option<f64>,
    },
    /// There is capacity again: for one target, in one zone, or everywhere.
    Capacity {
        /// About which target.
        target: Option<String>,
        /// In which zone.
        zone: Option<String>,
    },
    /// A zone grants so many nodes, counting all that are there.
    Quota {
        /// In which zone.
        zone: String,
        /// How many; no limit if `None`.
        limit: Option<u32>,
    },
    /// The target's next deletion does not end.
    StickDeleting {
        /// Which target.
        target: String,
        /// For how many seconds.
        for_s: Option<f64>,
    },
    /// The target's deletion ends after all.
    Unstick {
        /// Which target.
        target: String,
    },
    /// What a queued request says about itself, known or not.
    SayQueued {
        /// For which target.
        target: String,
        /// The control plane's word.
        word: String,
    },
    /// Creations or deletions are accepted and fail in the end with an error of a class.
    FailLate {
        /// Which class.
        class: Trouble,
        /// Which call.
        call: Option<Call>,
        /// About which target.
        target: Option<String>,
        /// How many times.
        times: Option<u32>,
    },
    /// Nobody remembers the operations on a target any more; what they were doing goes on.
    ForgetOperations {
        /// About which target.
        target: String,
    },
    /// Calls fail with an error of a class (see [`Trouble`]).
    Error {
        /// Which class.
        class: Trouble,
        /// Which call.
        call: Option<Call>,
        /// About which target.
        target: Option<String>,
        /// In which zone.
        zone: Option<String>,
        /// How many times.
        times: Option<u32>,
        /// For how many seconds.
        for_s: Option<f64>,
    },
    /// A zone answers nothing.
    Outage {
        /// In which zone.
        zone: String,
        /// For how many seconds.
        for_s: Option<f64>,
    },
    /// Answers take long.
    Slow {
        /// How long, in seconds.
        seconds: f64,
        /// Which call.
        call: Option<Call>,
        /// In which zone.
        zone: Option<String>,
        /// How many times.
        times: Option<u32>,
        /// For how many seconds.
        for_s: Option<f64>,
    },
    /// Calls have their effect and their answers are lost.
    LoseAnswer {
        /// Which call.
        call: Option<Call>,
        /// About which target.
        target: Option<String>,
        /// How many times.
        times: Option<u32>,
    },
    /// Calls arrive twice.
    Twice {
        /// Which call.
        call: Option<Call>,
        /// About which target.
        target: Option<String>,
        /// How many times.
        times: Option<u32>,
    },
    /// There is a bucket, in a region or in several.
    Bucket {
        /// Its name.
        name: String,
        /// Where it is, such as `US-CENTRAL1` or `EU`.
        location: String,
    },
    /// What the project may have or has to pay is another.
    Account {
        /// What changes.
        change: AccountChange,
    },
    /// The connection of a call is cut after so many bytes of an object.
    CutAfter {
        /// After how many.
        bytes: u64,
        /// Which call: `read` or `upload`.
        call: Option<Call>,
        /// How many times.
        times: Option<u32>,
    },
    /// How large the answers of the storage are; as usual where nothing is said.
    Storage {
        /// Entries on a page of a list.
        page: Option<u32>,
        /// Bytes that one call copies from bucket to bucket.
        rewrite: Option<u64>,
    },
    /// All faults end: capacity, quota, errors, outages, slowness, lost answers, stuck deletions.
    Calm,
    /// Sets how long things take and how often targets are taken away.
    Time {
        /// All of them.
        timing: Timing,
    },
}

/// An event of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scheduled {
    /// When it happens.
    pub at: Timestamp,
    /// What happens.
    pub event: Event,
}

impl Event {
    /// The target or zone that it is about; `-` for the whole fleet.
    pub fn subject(&self) -> &str {
        match self {
            Self::Preempt { target }
            | Self::Ready { target, .. }
            | Self::Say { target, .. }
            | Self::Maintenance { target, .. }
            | Self::Heal { target }
            | Self::LoseWorker { target, .. }
            | Self::Grpc { target }
            | Self::Lock { target }
            | Self::Unlock { target }
            | Self::Cut { target }
            | Self::Mend { target }
            | Self::StickDeleting { target, .. }
            | Self::SayQueued { target, .. }
            | Self::ForgetOperations { target }
            | Self::Unstick { target } => target,
            Self::Bucket { name, .. } => name,
            Self::Quota { zone, .. } | Self::Outage { zone, .. } => zone,
            Self::NoCapacity { target, zone, .. }
            | Self::Capacity { target, zone }
            | Self::Error { target, zone, .. } => {
                target.as_deref().or(zone.as_deref()).unwrap_or("-")
            }
            Self::Slow { zone, .. } => zone.as_deref().unwrap_or("-"),
            Self::LoseAnswer { target, .. }
            | Self::FailLate { target, .. }
            | Self::Twice { target, .. } => target.as_deref().unwrap_or("-"),
            Self::Account { .. }
            | Self::CutAfter { .. }
            | Self::Storage { .. }
            | Self::Calm
            | Self::Time { .. } => "-",
        }
    }

    /// The lengths of time that it names, with their names.
    pub(super) fn lengths(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Maintenance { for_s, .. }
            | Self::NoCapacity { for_s, .. }
            | Self::StickDeleting { for_s, .. }
            | Self::Error { for_s, .. }
            | Self::Outage { for_s, .. } => for_s.map(|s| ("for_s", s)).into_iter().collect(),
            Self::Slow { seconds, for_s, .. } => {
                [Some(("seconds", *seconds)), for_s.map(|s| ("for_s", s))]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            Self::Time { timing } => vec![
                ("create_s", timing.create_s),
                ("delete_s", timing.delete_s),
                ("start_s", timing.start_s),
                ("stop_s", timing.stop_s),
                ("reboot_s", timing.reboot_s),
                ("preemptions_per_h", timing.preemptions_per_h),
            ],
            _ => Vec::new(),
        }
    }
}
