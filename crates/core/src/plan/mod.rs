//! What facts mean and what follows from them. Pure: values in, values out.
//!
//! [`diagnose`] turns a record and the facts about it into the status that every surface shows. It never
//! reads text itself: a verdict of the classifier is one of the facts. [`decide`] turns the shown status,
//! the rules and the history of the lineage into what is to be done, with the reason.

#![warn(clippy::indexing_slicing, clippy::string_slice, clippy::wildcard_enum_match_arm)]

pub mod answer;
pub mod backoff;
pub mod board;
pub mod budget;
pub mod changes;
pub mod choice;
pub mod decide;
pub mod diagnose;
pub mod expected;
pub mod filter;
pub mod next;
pub mod notices;
pub mod original;
pub mod preferred;
pub mod prune;
pub mod queue;
pub mod resume_from;
pub mod returned;
pub mod seen;
pub mod slots;
pub mod stats;
pub mod supply;
pub mod types;
