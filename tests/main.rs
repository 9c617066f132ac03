//! (skeleton)
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may panic; the lint excuses only test functions"
)]
mod common;
mod monitor_rim;
mod monitor_snapshots;
mod monitor_update;
