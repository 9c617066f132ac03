//! How long things take in a simulated fleet.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long things take, in seconds, and how often targets are taken away.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    /// From the request to READY, or to the message that there is no capacity.
    pub create_s: f64,
    /// From the request to its disappearance.
    pub delete_s: f64,
    /// From STOPPED to READY.
    pub start_s: f64,
    /// From READY to STOPPED.
    pub stop_s: f64,
    /// From READY to READY.
    pub reboot_s: f64,
    /// How often a spot or preemptible target is taken away, per hour in which it is READY.
    pub preemptions_per_h: f64,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            create_s: 2.0,
            delete_s: 1.0,
            start_s: 1.0,
            stop_s: 1.0,
            reboot_s: 1.0,
            preemptions_per_h: 0.0,
        }
    }
}

/// Seconds as a duration; what is no length of time counts as none.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}
