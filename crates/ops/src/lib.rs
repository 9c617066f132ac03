//! The use cases: one verb, one file, the same function for a key, a command and the daemon.
//!
//! Each is a plain function `(ctx, request) -> Result<outcome, Error>`; [`ctx::Ctx`] holds every effect,
//! which tests fill with fakes. Nothing here knows terminals. Start with
//! [`snapshot`] (how jobs are) and [`launch`] (how one begins).

// What every verb gets and gives.
pub mod ctx;
pub mod error;
pub mod open;

// How things are. Looking never writes.
pub mod curves;
pub mod journal;
pub mod show;
pub mod snapshot;
pub mod stats;
pub mod storage;

// Verbs about jobs.
pub mod attach;
pub mod callbacks;
pub mod classify;
pub mod clean;
pub mod clone;
pub mod kill;
pub mod launch;
pub mod launch_paths;
pub mod limits;
pub mod lineage_attempts;
pub mod log_files;
pub mod logs;
pub mod orphan_windows;
pub mod orphans;
pub mod outlook;
pub mod resume;
pub mod rules;
pub mod unhold;

// Verbs about everything else.
pub mod account;
pub mod aliases;
pub mod ancestors;
pub mod archive;
pub mod asked;
pub mod billing;
pub mod board;
pub mod cloudmesh;
pub mod data;
pub mod dirs;
pub mod disk;
pub mod doctor;
pub mod dry_run;
pub mod ends;
pub mod hosts;
pub mod import;
pub mod init;
pub mod jobfile;
pub mod locks;
pub mod named;
pub mod names;
pub mod news;
pub mod notices;
pub mod provision;
pub mod queue;
pub mod queue_entries;
pub mod quota;
pub mod recipes;
pub mod reconcile;
pub mod remembered;
pub mod settings;
pub mod settings_files;
pub mod setup;
pub mod target_spec;
pub mod targets;

pub mod tokens;
pub mod users;
pub mod worker_shell;

// The daemon: how it is, what it would do, its start and end, what it writes down.
pub mod insisted;
pub mod inventory;
pub mod precedent;
pub mod preview;
pub mod record_facts;
pub mod recover;
pub mod service;
pub mod sessions;
pub mod watch;

// What the words of a request mean, and whose they are about.
pub mod called;
pub mod commands;
pub mod request;
pub mod reservations;
pub mod selection;
pub mod whose;

// Parts that several verbs share.
pub mod checkpoint;
pub mod checkpoints;
pub mod doors;
pub mod fleet;
mod heard;
pub mod lease;
pub mod panes;
pub mod printed;
pub mod providers;
pub mod records;
pub mod runners;
pub mod scripts;
pub mod secrets;
pub mod seen_before;
pub mod seen_lately;
pub mod setting_layers;
pub mod stage;
pub mod successor;
pub mod sweeps;
pub mod teardown;
mod waits;
pub mod wake;
pub mod worker_processes;
pub mod workers;

pub use ctx::Ctx;
pub use error::{Error, Kind};
pub use tpu_engine::runner::window::relay;
