//! The doors to the world, each behind one small type that tests and simulations replace. No decisions.
//!
//! * [`sys`]: clock, processes, environment, random numbers, threads.
//! * [`store`]: data.json under its lock, the journal, whole-file replacement.
//! * [`tmux`]: windows and panes.
//! * [`remote`]: commands on other machines, by ssh or gcloud.
//! * [`post`]: mail and webhooks.
//! * [`effects`]: all of these together, as one request may use them.

pub mod effects;
pub mod post;
pub mod remote;
pub mod store;
pub mod sys;
pub mod tmux;
