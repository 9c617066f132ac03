//! What an API answers where a request was not done.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use tpu_ops::{Error, Kind};

use super::words::Word;

/// A problem as in RFC 9457, `application/problem+json`.
#[derive(Serialize, JsonSchema)]
pub struct ProblemDocument<'a> {
    /// Always `about:blank`: `code` says what kind it is of.
    #[serde(rename = "type")]
    pub about: &'static str,
    /// The status of the answer in words.
    pub title: String,
    /// The status of the answer.
    pub status: u16,
    /// What is wrong and where; several problems are one line each.
    pub detail: &'a str,
    /// What to do next.
    pub hint: &'a str,
    /// What kind it is of, as in the errors of commands.
    pub code: Word<Kind>,
    /// With what number a command would have ended.
    pub exit: u8,
    /// The path that was asked for.
    pub instance: &'a str,
    /// How what the request is about stands now, where that is why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<&'a Value>,
}

impl<'a> ProblemDocument<'a> {
    /// The problem of a request to this path.
    pub fn new(status: u16, error: &'a Error, path: &'a str, now: Option<&'a Value>) -> Self {
        let known = http::StatusCode::from_u16(status).ok();
        let title = known.and_then(|status| status.canonical_reason()).unwrap_or_default();
        Self {
            about: "about:blank",
            title: title.to_owned(),
            status,
            detail: &error.message,
            hint: error.advice(),
            code: Word(error.kind),
            exit: error.kind.exit_code(),
            instance: path,
            now,
        }
    }
}
