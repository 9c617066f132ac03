//! What an API answers where a request was not done.

use serde_json::Value;

use tpu_ops::{Error, Kind};

use super::document::{documents, part};
use super::words::Word;

documents! {
    /// A problem as in RFC 9457, `application/problem+json`.
    pub struct ProblemDocument<'a>
        from (error, status, path, now): (&'a Error, http::StatusCode, &'a str, Option<&'a Value>)
    {
        /// Always `about:blank`: `code` says what kind it is of.
        #[serde(rename = "type")]
        about: &'static str = "about:blank",
        /// The status of the answer in words.
        title: &'static str = status.canonical_reason().unwrap_or_default(),
        /// The status of the answer.
        status: u16 = status.as_u16(),
        /// What is wrong and where; several problems are one line each.
        detail: &'a str = &error.message,
        /// What to do next.
        hint: &'a str = error.advice(),
        /// What kind it is of, as in the errors of commands.
        code: Word<Kind> = part(&error.kind),
        /// With what number a command would have ended.
        exit: u8 = error.kind.exit_code(),
        /// The path that was asked for.
        instance: &'a str = path,
        /// How what the request is about stands now, where that is why.
        #[serde(skip_serializing_if = "Option::is_none")]
        now: Option<&'a Value> = now,
    }
}
