//! What an error of a library comes from.

use std::error::Error as StdError;

/// An error with its innermost cause, which is what a person can do something about.
pub(super) fn in_words(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    let mut before = None;
    while let Some(cause) = last.source() {
        before = Some(last);
        last = cause;
    }
    let (outer, inner) = (before.map(ToString::to_string), last.to_string());
    match outer {
        Some(outer) if !outer.contains(&inner) => format!("{outer}: {inner}"),
        Some(outer) => outer,
        None => inner,
    }
}
