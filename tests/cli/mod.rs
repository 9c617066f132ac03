//! The command line: what is typed, what is answered.
//!
//! slow: the built program is started for every command there is, and the demo tells its whole story.

mod bad_input;
mod completions;
mod demo;
mod demo_captions;
mod demo_truth;
mod display;
mod doctor;
mod dry_run;
mod first_contact;
mod golden;
pub(super) mod json_schema;
mod leaving;
mod names_of_jobs;
mod original;
mod original_commands;
mod original_walk;
mod readme;
mod schema;
mod times;
mod unasked;
mod whose;
mod words;
