//! What went wrong, as `application/problem+json` (RFC 9457) with our code, advice and exit number.

use axum::http::StatusCode;
use serde_json::Value;

use tpu_ops::{Error, Kind};
use tpu_wire::problem::ProblemDocument;

use super::answer::Answer;

/// After so many seconds somebody may come again, where nobody says otherwise.
const LATER_S: u32 = 5;

/// A request that was not done.
#[derive(Debug)]
pub(super) struct Failure(Box<Said>);

/// What is said of it.
#[derive(Debug)]
struct Said {
    status: StatusCode,
    error: Error,
    /// How what it is about stands now, where that is why.
    now: Option<Value>,
    /// Whether whoever asks has gone too far, whatever the status.
    is_too_much: bool,
    /// Further headers.
    headers: Vec<(&'static str, String)>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind {
            _ if error.is_forbidden => StatusCode::FORBIDDEN,
            Kind::Usage => StatusCode::BAD_REQUEST,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Refused => StatusCode::CONFLICT,
            Kind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
            Kind::State | Kind::Unreachable | Kind::Interrupted => StatusCode::SERVICE_UNAVAILABLE,
            Kind::TimeOver => StatusCode::GATEWAY_TIMEOUT,
        };
        Self(Box::new(Said { status, error, now: None, is_too_much: false, headers: Vec::new() }))
    }
}

impl Failure {
    /// The same with another status.
    pub(super) fn status(mut self, status: StatusCode) -> Self {
        self.0.status = status;
        self
    }

    /// The same with how it stands now.
    pub(super) fn now(mut self, now: Value) -> Self {
        self.0.now = Some(now);
        self
    }

    /// The same with a header.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.headers.push((name, value.into()));
        self
    }

    /// Somebody who has not shown who they are.
    pub(super) fn unauthorized(what: &str) -> Self {
        let error = Error::refused(what)
            .hint("show a token: Authorization: Bearer TOKEN; `tpu token create NAME` makes one");
        Self::from(error).status(StatusCode::UNAUTHORIZED).header("www-authenticate", "Bearer")
    }

    /// Somebody who may not.
    pub(super) fn forbidden(what: impl Into<String>, hint: &str) -> Self {
        Self::from(Error::refused(what).hint(hint)).status(StatusCode::FORBIDDEN)
    }

    /// Somebody who finds no room among those who follow something.
    pub(super) fn too_many_follow() -> Self {
        let error = Error::refused("too many follow already").hint("close some, or come later");
        let mut failure =
            Self::from(error).status(StatusCode::SERVICE_UNAVAILABLE).header("retry-after", "10");
        failure.0.is_too_much = true;
        failure
    }

    /// Whether it is one that the journal tells of: somebody tried what they may not, or what no program of good will does.
    pub(super) fn is_denial(&self) -> bool {
        let is_much = matches!(
            self.0.status,
            StatusCode::REQUEST_TIMEOUT
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNPROCESSABLE_ENTITY
        );
        self.is_grave() || is_much || self.0.is_too_much
    }

    /// Whether somebody tried what they may not.
    pub(super) fn is_grave(&self) -> bool {
        matches!(
            self.0.status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::MISDIRECTED_REQUEST
                | StatusCode::TOO_MANY_REQUESTS
        )
    }

    /// Whether it passes by itself.
    pub(super) fn is_passing(&self) -> bool {
        self.0.status == StatusCode::SERVICE_UNAVAILABLE
    }

    /// The same for somebody who is not to know who else there is, which the advice may say.
    pub(super) fn for_a_stranger(mut self) -> Self {
        if self.0.status == StatusCode::NOT_FOUND {
            self.0.error.hint = None;
        }
        self
    }

    /// What is wrong, in words.
    pub(super) fn message(&self) -> &str {
        &self.0.error.message
    }

    /// As it leaves.
    pub(super) fn answer(&self, path: &str) -> Answer {
        let Said { status, error, now, headers, .. } = &*self.0;
        let document = ProblemDocument::from((error, *status, path, now.as_ref()));
        let text = serde_json::to_string(&document).unwrap_or_default();
        let mut answer = Answer::text(text).kind("application/problem+json").status(*status);
        for (name, value) in headers {
            answer = answer.header(name, value.clone());
        }
        let says_when = headers.iter().any(|(name, _)| *name == "retry-after");
        if *status == StatusCode::SERVICE_UNAVAILABLE && !says_when {
            // Somebody writes for long, or cannot be reached: nobody has to guess when to come again.
            answer = answer.header("retry-after", LATER_S.to_string());
        }
        answer
    }
}
