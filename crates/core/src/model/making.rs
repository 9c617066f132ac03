//! Targets that are being made for those who wait in the queue (`queue.makings` in data.json).

use serde_json::{Value, json};

use super::facts::TargetFact;
use super::ids::{JobId, TargetName};
use super::read::{self, DataError, Fields, Json, Path};
use super::time::{self, Timestamp};

/// A target that is being made for somebody who waits. It stands here before anything is asked of a control plane, so
/// that whoever finds it after a crash goes on with the same request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Making {
    /// The target.
    pub target: TargetName,
    /// The entry of the queue for which it is made.
    pub job: JobId,
    /// Host, account and tmux server whose daemon makes it.
    pub place: String,
    /// The mark of what is asked for, the same after a crash.
    pub token: String,
    /// Since when it is made for somebody, however often it was refused.
    pub first: Timestamp,
    /// Since when it is asked for this time.
    pub since: Timestamp,
    /// How often it was refused: each request has a number of its own.
    pub tries: u32,
    /// Not to be asked for before, and why it was in vain.
    pub again: Option<(Timestamp, String)>,
    /// Whether it was in vain for want of a login: it is not asked for again until a person says so.
    pub needs_login: bool,
}

impl Making {
    /// Whether a target that was created by this request is one of it.
    pub fn asked_for(&self, request: &str) -> bool {
        request.starts_with(&self.token)
    }

    /// Whether it is not to be asked for now.
    pub fn rests(&self, now: Timestamp) -> bool {
        self.again.as_ref().is_some_and(|(again, _)| self.needs_login || *again > now)
    }

    /// The mark of what is asked for now.
    pub fn request(&self) -> String {
        format!("{}-{}", self.token, self.tries)
    }

    /// How far it is, for somebody who waits, and what the control plane last said of it. Google tells nobody which
    /// place in its line a queued resource has (`QueuedResource` of the API, v2: states alone).
    pub fn in_words(&self, fact: Option<&TargetFact>, now: Timestamp) -> String {
        let target = &self.target;
        match &self.again {
            Some((_, why)) if self.needs_login => {
                format!("{target} is not asked for: it needs you: {why}; then: tpu ack")
            }
            Some((again, why)) if *again > now => {
                let in_s = again.seconds_since(now);
                format!("{target} was not to be had ({why}), and is asked for again in {in_s} s")
            }
            _ => match fact.and_then(|fact| Some((fact, fact.queued.as_ref()?))) {
                Some((fact, queued)) => {
                    let since = fact.since.map(|since| time::age(now.seconds_since(since)));
                    let since = since.map(|age| format!(" for {age}")).unwrap_or_default();
                    format!(
                        "{target} is asked for by the queued resource {}: {}{since}; its place in line is not told",
                        queued.name, queued.raw_state
                    )
                }
                None => format!("{target} is being made for it"),
            },
        }
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let job = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, JobId::parse, "a job, as in alice/12")
        };
        let again = fields.with("again", read::instant)?;
        let why = fields.with("why", read::text)?.unwrap_or_default();
        let since = fields.need("since", "an instant", read::instant)?;
        Ok(Self {
            target: TargetName::new(fields.need("target", "a target", read::text)?),
            job: fields.need("for", "a job", job)?,
            place: fields.need("place", "a place", read::text)?,
            token: fields.need("token", "text", read::text)?,
            first: fields.with("first", read::instant)?.unwrap_or(since),
            since,
            tries: fields.with("tries", read::number)?.unwrap_or_default(),
            again: again.map(|again| (again, why)),
            needs_login: fields.with_or("needs_login", false, read::flag)?,
        })
    }

    pub(super) fn write(&self) -> Value {
        let mut written = json!({
            "target": self.target,
            "for": self.job.to_string(),
            "place": self.place,
            "token": self.token,
            "first": self.first.to_rfc3339(),
            "since": self.since.to_rfc3339(),
            "tries": self.tries,
            "again": self.again.as_ref().map(|(again, _)| again.to_rfc3339()),
            "why": self.again.as_ref().map(|(_, why)| why),
        });
        if self.needs_login
            && let Some(fields) = written.as_object_mut()
        {
            fields.insert("needs_login".to_owned(), true.into());
        }
        written
    }
}
