//! People are told of what happens to jobs, by receivers that are real and fail as real ones do.
//!
//! slow: receivers are real and fail as real ones do, each in its own time.

mod command;
mod given_up;
mod hook;
mod jobs;
mod later;
mod mail;
mod mails;
mod once;
mod screens;
mod secrets;
mod told;
mod turns;
mod whose;

use serde_json::{Value, json};

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_system::store::Event;
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;

/// A place of alice and bob, in which things happen.
struct Lab {
    env: TestEnv,
}

impl Lab {
    fn new() -> Self {
        Self { env: TestEnv::new() }
    }

    /// Has a user told by these receivers; what happens within a second goes together.
    #[track_caller]
    fn tell(&self, user: &str, receivers: &Value) {
        let receivers = receivers.to_string();
        drop(self.env.tpu_words(&["set-settings", "notify_merge", "1", user]).exits(0));
        drop(self.env.tpu_words(&["set-settings", "notify", &receivers, user]).exits(0));
    }

    /// Keeps a secret.
    #[track_caller]
    fn keep(&self, name: &str, value: &str) {
        let spawn = self.env.spawn(&["secrets", "set", name]).stdin(value);
        drop(self.env.output(&spawn).exits(0));
    }

    /// Notes things as a job does that fails.
    fn fail_each(&self, user: &str, lines: impl IntoIterator<Item = String>) {
        let at = SystemClock::new().now();
        let event = |line: String| Event {
            at,
            actor: "test".to_owned(),
            account: None,
            user: Some(UserName::from(user)),
            job: Some(JobNumber(7)),
            kind: "error".to_owned(),
            text: format!("oom: {line}"),
            data: Value::Null,
        };
        let events: Vec<Event> = lines.into_iter().map(event).collect();
        self.env.ctx(Env::read()).store.note(&events).unwrap();
    }

    /// The same of one.
    fn fail(&self, user: &str, line: &str) {
        self.fail_each(user, [line.to_owned()]);
    }
}

/// A receiver of everything by a webhook.
fn webhook(url: &str) -> Value {
    json!([{ "webhook": url }])
}
