//! `tpu`: launches jobs in tmux windows, tells by evidence how they are, and brings them back.
//!
//! A pure core, effects at the rim. Arrows never point up (`tests/layers.rs` holds that):
//!
//! ```text
//!   cli      monitor      daemon      demo     ways in, no logic of their own
//!   ops                                        use cases: one verb, one file
//!   store    tmux    cloud    remote           the world, each behind one small door
//!   sys                                        clock, processes, environment
//!   plan     classify                          pure: facts -> decisions, text -> verdict
//!   model                                      pure: users, jobs, targets, rules, facts
//!   text                                       pure: ANSI, width, escaping
//! ```
//!
//! Where things go: a new **command** is one file in `ops/` and one in `cli/commands/`; a new **pattern**
//! is a few lines of `assets/patterns.toml`, no Rust; a new **column** of the screen is one entry in
//! `monitor/view/columns.rs`; a new **target kind** is one folder in `cloud/`.

// Pure: no files, processes, sockets, environment or clock.
pub mod text;

pub mod model;

pub mod classify;
pub mod plan;

// Effects: each knows its own corner of the world, and none knows another.
pub mod sys;

pub mod cloud;
pub mod remote;
pub mod store;
pub mod tmux;

// Use cases, and the ways in.
pub mod ops;

pub mod cli;
pub mod daemon;
pub mod demo;
pub mod monitor;
