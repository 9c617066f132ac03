//! What stands on stderr when a command fails.

use tpu_ops::{Error, Kind};

use super::document::{documents, part};
use super::words::Word;

documents! {
    /// On stderr, when a command fails; the exit code says the same: 1 failed, 2 usage, 3 not found, 4 refused,
    /// 5 state, 6 unreachable, 7 time over, 130 interrupted.
    pub struct ErrorDocument<'a> from error: &'a Error {
        /// The failure.
        error: ErrorPart<'a> = part(error),
    }

    /// A failure.
    pub struct ErrorPart<'a> from error: &'a Error {
        /// What kind it is of.
        code: Word<Kind> = part(&error.kind),
        /// What is wrong and where; several problems are one line each.
        message: &'a str,
        /// What to do next.
        hint: &'a str = error.advice(),
    }
}
