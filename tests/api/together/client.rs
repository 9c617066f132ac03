//! Somebody who acts at random over HTTP, and remembers what was answered.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use tpu_core::model::ids::{JobId, JobNumber, UserName};

use super::lab::{Holder, Lab};
use crate::api::Said;
use crate::common::dice::Dice;

const JSON: &str = "Content-Type: application/json";
/// Rules by the names that the journal has them by. None of them lets a job of this proof come back: they end well, or are
/// killed.
const RULES: [&str; 3] = ["pass", "resume", "rerun"];
/// A request that is told to come again is sent so often, and then left.
const TRIES: usize = 40;

/// What is done to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Hold,
    Unhold,
    Priority,
    Tag,
    Rule,
    Kill,
    Requeue,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered as done.
    Done,
    /// It was refused.
    Refused,
    /// Its server was killed, or could not say.
    Unknown,
}

/// How a job was when somebody read it, as far as others change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Whether it was held, and how urgent it was; of what waits.
    pub(super) waiting: Option<(bool, u8)>,
    pub(super) tag: Option<String>,
}

/// Something that was done to a job, or not.
pub(super) struct Act {
    /// As the journal calls who did it.
    pub(super) actor: String,
    pub(super) job: JobId,
    pub(super) verb: Verb,
    /// What the journal is to say of it.
    pub(super) text: String,
    pub(super) outcome: Outcome,
    /// How the job had been read, where it was to be done to that and nothing else.
    pub(super) on: Option<Seen>,
    /// What a job goes on as that was put back into the queue.
    pub(super) becomes: Option<JobId>,
}

/// A request with a key of its own.
pub(super) struct Key {
    /// The key, which is the name of its job as well.
    pub(super) name: String,
    pub(super) is_now: bool,
    pub(super) is_held: bool,
    pub(super) priority: u8,
    body: String,
    /// The jobs of each answer.
    pub(super) answers: Vec<Vec<JobId>>,
    /// Whether it was cut off at least once.
    pub(super) was_cut: bool,
    /// Whether nobody knows what became of it when it was sent last.
    pub(super) is_open: bool,
}

/// Somebody who acts.
pub(super) struct Client<'a> {
    lab: &'a Lab,
    holder: &'a Holder,
    dice: Dice,
    pub(super) acts: Vec<Act>,
    pub(super) keys: Vec<Key>,
    /// Answers that should never be given.
    pub(super) wrong: Vec<String>,
    /// How often there was each status; 0 where the connection was cut.
    pub(super) statuses: BTreeMap<u16, usize>,
}

impl<'a> Client<'a> {
    pub(super) fn new(lab: &'a Lab, holder: &'a Holder, seed: u64) -> Self {
        Self {
            lab,
            holder,
            dice: Dice(seed),
            acts: Vec::new(),
            keys: Vec::new(),
            wrong: Vec::new(),
            statuses: BTreeMap::new(),
        }
    }

    /// Acts until all is over.
    pub(super) fn run(mut self) -> Self {
        while !self.lab.is_over() {
            match self.dice.below(10) {
                0 | 1 => self.submit(),
                2 if !self.keys.is_empty() => {
                    let again = self.dice.below(self.keys.len());
                    self.send(again);
                }
                _ => self.act(),
            }
            self.lab.count();
        }
        self
    }

    /// Sends everything again of which it is not known what has become of it.
    pub(super) fn asks_what_became(&mut self) {
        for number in 0..self.keys.len() {
            if self.keys[number].is_open {
                self.send(number);
            }
        }
    }

    /// Sends everything again.
    pub(super) fn asks_again(&mut self) {
        for number in 0..self.keys.len() {
            if !self.keys[number].answers.is_empty() {
                self.send(number);
            }
        }
    }

    fn ask(&mut self, line: &str, headers: &[String], body: &str) -> Option<Said> {
        let said = self.lab.ask((&self.holder.token, line), headers, body);
        let status = said.as_ref().map_or(0, |said| said.status);
        *self.statuses.entry(status).or_default() += 1;
        let may_be = status < 500 || status == 503;
        let is_told_when = said.as_ref().is_none_or(|said| said.header("retry-after").is_some());
        if !may_be || status == 503 && !is_told_when {
            self.wrong.push(format!("{line} {headers:?} {body}: {said:?}"));
        }
        said
    }

    fn submit(&mut self) {
        let name = format!("{}-{}", self.holder.actor.replace(' ', "-"), self.keys.len());
        let (is_now, is_held) = (self.dice.is(2), self.dice.is(7));
        let priority = u8::try_from(self.dice.below(101)).unwrap();
        let mut body = json!({
            "name": name, "target": "local", "dir": 1, "priority": priority,
            "command": ["sh", "-c", "echo \"$TPU_JOB\" >>\"$HOME/ran\""],
        });
        let is_held = is_held && !is_now;
        if is_held {
            body["hold"] = json!(true);
        }
        if self.holder.is_admin {
            body["for_user"] = json!(self.holder.user);
        }
        self.keys.push(Key {
            name,
            is_now,
            is_held,
            priority,
            body: body.to_string(),
            answers: Vec::new(),
            was_cut: false,
            is_open: false,
        });
        self.send(self.keys.len() - 1);
    }

    /// Sends a request with a key until it is known what became of it, or patience is at its end.
    fn send(&mut self, number: usize) {
        for _ in 0..TRIES {
            let Key { name, is_now, body, .. } = &self.keys[number];
            let line = format!("POST /api/v1/jobs?start={}", if *is_now { "now" } else { "queue" });
            let headers = [format!("Idempotency-Key: {name}"), JSON.to_owned()];
            let body = body.clone();
            let said = self.ask(&line, &headers, &body);
            let key = &mut self.keys[number];
            key.is_open = true;
            match &said {
                None => {
                    key.was_cut = true;
                    // Some people give up, or come back later.
                    if self.dice.is(2) {
                        return;
                    }
                }
                Some(said) if said.status == 200 => {
                    let jobs = ids(&said.json()["jobs"]);
                    let is_first = key.answers.is_empty();
                    key.is_open = false;
                    key.answers.push(jobs.clone());
                    if is_first {
                        for job in jobs {
                            self.lab.knows(job);
                        }
                    }
                    return;
                }
                Some(said) if said.header("retry-after").is_some() => {}
                // There was no place for it at once: it has left nothing behind, and may be sent again.
                Some(said) if said.status == 409 && key.is_now => {
                    key.is_open = false;
                    return;
                }
                Some(said) => {
                    self.wrong.push(format!("{name}: {said:?}", name = key.name));
                    return;
                }
            }
        }
    }

    /// Does something to a job; now and then only if that is as it was read.
    fn act(&mut self) {
        let Some((job, is_old)) = self.lab.some_job(&mut self.dice, self.holder.user) else {
            return self.submit();
        };
        let verb = if is_old { Verb::Kill } else { self.verb() };
        let path = format!("/api/v1/jobs/{}/{}", job.user, job.window);
        let read = if self.dice.is(3) { self.read(&path) } else { None };
        let mut headers = vec![JSON.to_owned()];
        headers.extend(read.iter().map(|(tag, _)| format!("If-Match: {tag}")));
        let mark = format!("{}-{}", self.holder.actor.replace(' ', "-"), self.acts.len());
        let post = |verb: &str| (format!("POST {path}/{verb}"), String::new());
        let patch = |body: Value| (format!("PATCH {path}"), body.to_string());
        let ((line, body), text) = match verb {
            Verb::Hold => (post("hold"), String::new()),
            Verb::Unhold => (post("unhold"), "it starts when its turn comes".to_owned()),
            Verb::Kill => (post("kill"), String::new()),
            Verb::Requeue => (post("requeue"), String::new()),
            Verb::Priority => {
                let number = self.dice.below(101);
                (patch(json!({"priority": number})), number.to_string())
            }
            Verb::Tag => (patch(json!({"tags": mark})), mark),
            Verb::Rule => {
                let rule = *self.dice.one(&RULES);
                (patch(json!({"rule": rule})), rule.to_owned())
            }
        };
        let said = self.ask(&line, &headers, &body);
        let outcome = match &said {
            Some(said) if said.status == 200 => Outcome::Done,
            Some(said) if (400..500).contains(&said.status) => Outcome::Refused,
            _ => Outcome::Unknown,
        };
        let waits = said.filter(|_| verb == Verb::Requeue && outcome == Outcome::Done);
        let becomes = waits.and_then(|said| ids(&said.json()["jobs"]).pop());
        if let Some(job) = &becomes {
            self.lab.knows(job.clone());
        }
        let (actor, on) = (self.holder.actor.clone(), read.map(|(_, seen)| seen));
        self.acts.push(Act { actor, job, verb, text, outcome, on, becomes });
    }

    fn verb(&mut self) -> Verb {
        *self.dice.one(&[
            Verb::Hold,
            Verb::Hold,
            Verb::Unhold,
            Verb::Unhold,
            Verb::Unhold,
            Verb::Priority,
            Verb::Priority,
            Verb::Tag,
            Verb::Tag,
            Verb::Tag,
            Verb::Rule,
            Verb::Kill,
            Verb::Requeue,
        ])
    }

    /// The version of a job, and what it says.
    fn read(&mut self, path: &str) -> Option<(String, Seen)> {
        let said = self.ask(&format!("GET {path}"), &[], "")?;
        let tag = said.header("etag").filter(|_| said.status == 200)?.to_owned();
        let job = said.json()["job"].clone();
        let priority = job["priority"].as_u64().and_then(|number| u8::try_from(number).ok());
        let waiting = job["held"].as_bool().zip(priority);
        let tag_of_job = job["tags"].as_str().map(str::to_owned);
        Some((tag, Seen { waiting, tag: tag_of_job }))
    }
}

/// The jobs of an answer.
fn ids(jobs: &Value) -> Vec<JobId> {
    let id = |job: &Value| {
        let number = u32::try_from(job["window"].as_u64().unwrap()).unwrap();
        JobId::new(UserName::from(job["user"].as_str().unwrap()), JobNumber(number))
    };
    jobs.as_array().unwrap().iter().map(id).collect()
}
