//! What has happened: `history` and the log of the daemon.

use serde_json::Value;

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::time::Timestamp;
use tpu_ops::observe::journal::Event;
use tpu_ops::observe::news::News;

use super::document::{documents, part};
use super::words::TimePart;

documents! {
    /// What has happened.
    pub struct EventsDocument<'a> from events: &'a [Event] {
        /// The oldest first.
        events: Vec<EventPart<'a>> = part(events),
    }

    /// What is new for a user.
    pub struct NewsDocument<'a> from news: &'a News {
        /// The newest, the oldest of them first.
        events: Vec<EventPart<'a>>,
        /// How many older ones are new as well.
        more: usize,
        /// When this was asked the last time.
        since: Option<TimePart>,
    }

    /// A line of the journal.
    pub struct EventPart<'a> from event: &'a Event {
        /// When.
        #[schemars(with = "TimePart")]
        at: Timestamp = event.at,
        /// Who did it: a command, the daemon, a callback.
        actor: &'a str,
        /// The account that did it, by its name on its machine; earlier versions did not note it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        account: Option<&'a str> = event.account.as_deref(),
        /// Whose affair it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "UserName")]
        user: Option<&'a UserName>,
        /// Which of that user's jobs.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "JobNumber")]
        job: Option<JobNumber>,
        /// The kind of event, for programs.
        kind: &'a str,
        /// What happened, for people.
        text: &'a str,
        /// Details, for programs.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Value")]
        data: Option<&'a Value> = Some(&event.data).filter(|data| !data.is_null()),
    }

    /// The log of the daemon begins anew.
    pub struct ClearedLogDocument {
        /// It does.
        #[schemars(extend("const" = true))]
        cleared: bool,
    }

    /// An event as it is streamed.
    pub struct StreamedEventPart<'a> from (event, id): (&'a Event, &'a str) {
        /// What it is called: `Last-Event-ID` asks for what came behind it.
        id: &'a str = id,
        /// When.
        time: TimePart = part(&event.at),
        /// The kind of event, for programs.
        kind: &'a str,
        /// Who did it: a command, the daemon, a callback.
        actor: &'a str,
        /// Whose affair it is.
        user: Option<&'a UserName>,
        /// Which of that user's jobs.
        job: Option<JobNumber>,
        /// What happened, for people.
        text: &'a str,
        /// Details, for programs.
        data: &'a Value,
    }
}
