//! How jobs and targets are. A look asks tmux, engines and providers, and returns facts.
//!
//! Nothing here decides what starts, and nothing is started.

// One look.
pub mod doors;
pub mod fleet;
pub mod orphans;
pub mod runners;
pub mod snapshot;
pub mod wake;
pub mod worker_processes;

// What jobs print, and what that shows.
pub mod checkpoint;
pub mod classify;
pub mod curves;
pub mod follow;
pub mod logs;
pub mod panes;
pub mod printed;
pub mod tracked_run;

// What has happened.
pub mod archive;
pub mod journal;
pub mod lineage_attempts;
pub mod log_files;
pub mod news;

// What is counted over many jobs.
pub(crate) mod at_work;
pub mod seen_before;
pub mod stats;
pub mod sweeps;
pub(crate) mod waits;
