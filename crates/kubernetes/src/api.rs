//! The door to one API server: one request, one answer, and why there is none.
//!
//! Everything that this kind of target knows of a cluster it has from here, so a test that hands in [`ApiServers`] of
//! its own plays a whole cluster.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use tpu_core::model::time::Timestamp;
use tpu_system::effects::Effects;

use super::cluster::NamespaceAt;
use super::life::Life;

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVerb {
    /// Reads.
    Get,
    /// Creates.
    Post,
    /// Changes some members of an object (RFC 7386).
    MergePatch,
    /// Deletes.
    Delete,
}

impl ApiVerb {
    /// As HTTP has it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::MergePatch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The type of what is sent.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::MergePatch => "application/merge-patch+json",
            Self::Get | Self::Post | Self::Delete => "application/json",
        }
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiCall {
    /// What it does.
    pub verb: ApiVerb,
    /// Path below the address of the server, each part of which needs no escaping.
    pub path: String,
    /// Names and values behind the path.
    pub query: Vec<(&'static str, String)>,
    /// What is sent.
    pub body: Option<Value>,
    /// How long it may take; then nobody waits for the answer any more.
    pub limit: Duration,
}

impl ApiCall {
    /// A request without parameters, which may take so long.
    pub fn new(verb: ApiVerb, path: impl Into<String>, limit: Duration) -> Self {
        Self { verb, path: path.into(), query: Vec::new(), body: None, limit }
    }

    /// With one more parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// With something that is sent.
    #[must_use]
    pub fn sending(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }

    /// The path with its parameters.
    pub fn uri(&self) -> String {
        let parameters = self.query.iter().map(|(name, value)| (*name, value.as_str()));
        let query = super::encoded(parameters);
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }
}

/// What was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// After how long the server wants to be asked again.
    pub retry_after: Option<Duration>,
    /// When it answered, by its own clock (`Date`): what it has stamped is compared with that.
    pub said_at: Option<Timestamp>,
    /// What came behind it. Of what was cut off, as much as there was.
    pub body: Bytes,
    /// Whether the body was cut off.
    pub is_cut: bool,
}

/// Why there was no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The request has never left, for certain.
    NotSent(String),
    /// Nor has this one: what says who asks is missing or has run out. The same until a person has logged in.
    Login(String),
    /// No answer came in time. What was asked for may have been heard.
    Late(Duration),
    /// The way broke before an answer was there. What was asked for may have been heard.
    Broken(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) | Self::Login(why) | Self::Broken(why) => f.write_str(why),
            Self::Late(after) => write!(f, "no answer within {:.1} s", after.as_secs_f64()),
        }
    }
}

/// One API server, with the rights of one user.
pub trait ApiServer: Send + Sync {
    /// Asks once.
    fn ask(&self, call: &ApiCall) -> Result<ApiAnswer, Unanswered>;

    /// Asks several things side by side; the result keeps their order.
    fn ask_all(&self, calls: &[ApiCall]) -> Vec<Result<ApiAnswer, Unanswered>> {
        calls.iter().map(|call| self.ask(call)).collect()
    }

    /// Keeps what these pods print from now on, in a process that stays. Those of which that is so already, by their
    /// identities: nobody has to ask for their logs. A process that does not stay follows none.
    fn follow(&self, _namespace: &str, _lives: Vec<Life>) -> BTreeSet<String> {
        BTreeSet::new()
    }
}

/// What opens clusters.
pub trait ApiServers: Send + Sync {
    /// The door to a cluster. Nothing is asked yet.
    fn open(&self, cluster: &NamespaceAt, effects: &Effects) -> Arc<dyn ApiServer>;

    /// What follows runs while this process stays: a number that changes when something has happened to one.
    fn wakes(&self) -> u64 {
        0
    }
}
