//! The vocabulary of the project, as plain values: users, jobs, targets, rules, settings, facts.
//!
//! Pure: nothing here touches files, tmux, clocks or the environment. Start with [`job`] (what one
//! attempt is and which changes of status are legal), then [`facts`] (what can be observed about it).

#![warn(clippy::indexing_slicing, clippy::string_slice, clippy::wildcard_enum_match_arm)]

pub mod accelerators;
pub mod archived;
pub mod audit;
pub mod billing;
pub mod board;
pub mod bucket;
pub mod calendar;
pub mod capacity;
mod check;
pub mod checkpoint;
pub mod checkpoint_copy;
pub mod checkpoint_signal;
mod codec;
pub mod curve;
pub mod data;
pub mod entry;
pub mod execution;
pub mod exit;
mod extras;
pub mod facts;
pub mod figures;
pub mod groups;
mod handle;
mod head;
pub mod host;
pub mod ids;
pub mod job;
mod json;
pub mod launch;
pub mod lease;
pub mod lineage;
pub mod loan;
pub mod making;
pub mod member;
mod monitor_config;
pub mod notice;
pub mod notify;
pub mod objects;
pub mod options;
pub mod order;
pub mod outbox;
pub mod pattern;
pub mod plot;
pub mod policy;
pub mod prices;
pub mod queue;
pub mod queues;
pub mod quota;
mod read;
pub mod recipe;
pub mod recovery;
pub mod registry;
pub mod repeat;
pub mod repository;
pub mod retry;
pub mod rules;
pub mod settings;
pub mod setup;
mod source;
pub mod spec;
pub mod status;
pub mod sweep;
pub mod target;
pub mod task;
pub mod time;
pub mod token;
pub mod unbegun;
mod user;
pub mod variables;
pub mod view;
mod walk;
pub(crate) mod words;
