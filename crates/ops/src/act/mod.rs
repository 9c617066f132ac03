//! Verbs that change a job or a target, and what they share.
//!
//! A launch takes its place in the queue within its own transaction, but nothing here decides whose turn it is.

// What is next of each job, and what is written down of it.
pub mod callbacks;
pub mod ends;
pub mod outlook;
pub mod reconcile;
pub mod record_facts;

// Verbs about jobs.
pub mod attach;
pub mod kill;
pub mod launch;
pub mod limits;
pub mod missed;
pub mod resume;
pub mod returned;
pub mod selection;
pub mod successor;

// What a launch asks, and what it lays ready.
pub mod checkpoints;
pub mod clone;
mod copy_progress;
pub(crate) mod lately;
pub mod setup;
pub mod stage;

// What runs on workers.
pub mod recipes;
pub mod results;
pub mod worker_shell;
pub mod workers;

// Verbs about targets.
pub mod board;
pub mod hosts;
pub mod provision;
pub mod target_spec;
pub mod targets;

// The daemon, people, windows.
pub mod notices;
pub mod orphan_windows;
pub mod remembered;
pub mod service;

pub use tpu_engine::runner::window::{relay, unwritten};
