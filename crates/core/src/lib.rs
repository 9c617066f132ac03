//! What tpu decides with, and how it decides. Pure: no files, processes, sockets, environment, clock or runtime.
//!
//! * [`model`]: users, jobs, targets, rules, settings, facts, and data.json.
//! * [`classify`]: text of a job to a verdict with evidence; the rules are data (`assets/patterns.toml`).
//! * [`plan`]: data, facts and time to decisions with reasons.
//! * [`text`]: ANSI, width, escaping.

pub mod classify;
pub mod model;
pub mod plan;
pub mod text;
