//! What is read out of the text of jobs.
//!
//! slow: every captured run is read, at every cut.

mod corpus;
mod evidence;
mod no_panic;
mod rules;
mod unseen_lines;
