//! (skeleton)

mod classify_corpus;
mod classify_fuzz;
mod classify_rules;
