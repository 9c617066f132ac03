//! What is read out of the text of jobs.

mod corpus;
mod evidence;
mod no_panic;
mod rules;
mod unseen_lines;
