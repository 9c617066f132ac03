//! What facts mean and what follows from them. Pure: values in, values out.
//!
//! [`diagnose`] turns a record and the facts about it into the status that every surface shows. It never
//! reads text itself: a verdict of the classifier is one of the facts.

#![warn(clippy::indexing_slicing, clippy::string_slice, clippy::wildcard_enum_match_arm)]

pub mod answer;
pub mod diagnose;
pub mod next;
pub mod place;
