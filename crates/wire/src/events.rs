//! What has happened: `history` and the log of the daemon.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::time::Timestamp;
use tpu_ops::observe::journal::Event;
use tpu_ops::observe::news::News;

use super::words::TimePart;

/// What has happened.
#[derive(Serialize, JsonSchema)]
pub struct EventsDocument<'a> {
    /// The oldest first.
    pub events: Vec<EventPart<'a>>,
}

impl<'a> From<&'a [Event]> for EventsDocument<'a> {
    fn from(events: &'a [Event]) -> Self {
        Self { events: events.iter().map(EventPart::from).collect() }
    }
}

/// What is new for a user.
#[derive(Serialize, JsonSchema)]
pub struct NewsDocument<'a> {
    /// The newest, the oldest of them first.
    pub events: Vec<EventPart<'a>>,
    /// How many older ones are new as well.
    pub more: usize,
    /// When this was asked the last time.
    pub since: Option<TimePart>,
}

impl<'a> From<&'a News> for NewsDocument<'a> {
    fn from(news: &'a News) -> Self {
        Self {
            events: news.events.iter().map(EventPart::from).collect(),
            more: news.more,
            since: news.since.map(TimePart),
        }
    }
}

/// A line of the journal.
#[derive(Serialize, JsonSchema)]
pub struct EventPart<'a> {
    /// When.
    #[schemars(with = "TimePart")]
    pub at: Timestamp,
    /// Who did it: a command, the daemon, a callback.
    pub actor: &'a str,
    /// Whose affair it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "UserName")]
    pub user: Option<&'a UserName>,
    /// Which of that user's jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "JobNumber")]
    pub job: Option<JobNumber>,
    /// The kind of event, for programs.
    pub kind: &'a str,
    /// What happened, for people.
    pub text: &'a str,
    /// Details, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub data: Option<&'a Value>,
}

impl<'a> From<&'a Event> for EventPart<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            at: event.at,
            actor: &event.actor,
            user: event.user.as_ref(),
            job: event.job,
            kind: &event.kind,
            text: &event.text,
            data: Some(&event.data).filter(|data| !data.is_null()),
        }
    }
}

/// The log of the daemon begins anew.
#[derive(Serialize, JsonSchema)]
pub struct ClearedLogDocument {
    /// It does.
    #[schemars(extend("const" = true))]
    pub cleared: bool,
}

/// An event as it is streamed.
#[derive(Serialize, JsonSchema)]
pub struct StreamedEventPart<'a> {
    /// What it is called: `Last-Event-ID` asks for what came behind it.
    pub id: &'a str,
    /// When.
    pub time: TimePart,
    /// The kind of event, for programs.
    pub kind: &'a str,
    /// Who did it: a command, the daemon, a callback.
    pub actor: &'a str,
    /// Whose affair it is.
    pub user: Option<&'a UserName>,
    /// Which of that user's jobs.
    pub job: Option<JobNumber>,
    /// What happened, for people.
    pub text: &'a str,
    /// Details, for programs.
    pub data: &'a Value,
}

impl<'a> StreamedEventPart<'a> {
    /// An event, called so.
    pub fn new(event: &'a Event, id: &'a str) -> Self {
        let Event { at, actor, user, job, kind, text, data } = event;
        let (user, time) = (user.as_ref(), TimePart(*at));
        Self { id, time, kind, actor, user, job: *job, text, data }
    }
}
