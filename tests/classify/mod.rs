//! What is read out of the text of jobs.
//!
//! slow: every captured run is read, at every cut.

mod corpus;
mod evidence;
mod no_panic;
mod rules;
mod unseen_lines;

use tpu_core::model::facts::ErrorKind;

/// Whether a class is the one expected, or a kind that was a part of it when the texts were given their classes.
fn is_part_of(class: &str, expected: &str) -> bool {
    let wider = ErrorKind::parse(class).and_then(ErrorKind::wider);
    class == expected || wider.is_some_and(|wider| wider.as_str() == expected)
}
