//! What stands on stderr when a command fails.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_ops::{Error, Kind};

use super::words::Word;

/// On stderr, when a command fails; the exit code says the same: 1 failed, 2 usage, 3 not found, 4 refused,
/// 5 state, 6 unreachable, 7 time over, 130 interrupted.
#[derive(Serialize, JsonSchema)]
pub struct ErrorDocument<'a> {
    /// The failure.
    pub error: ErrorPart<'a>,
}

/// A failure.
#[derive(Serialize, JsonSchema)]
pub struct ErrorPart<'a> {
    /// What kind it is of.
    pub code: Word<Kind>,
    /// What is wrong and where; several problems are one line each.
    pub message: &'a str,
    /// What to do next.
    pub hint: String,
}

impl<'a> From<&'a Error> for ErrorDocument<'a> {
    fn from(error: &'a Error) -> Self {
        let (code, hint) = (Word(error.kind), error.advice().to_owned());
        Self { error: ErrorPart { code, message: &error.message, hint } }
    }
}
