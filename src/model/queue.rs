//! What waits to be started: the queues, and the entries that stand in them (`queue` in data.json).
//!
//! The original ignores this key. In `job_data` its MONITOR would act on records whose status it does not know, and
//! remove those without a window: so a record begins with the claim, under the number that its entry has had since it
//! was submitted.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::entry::{self, Environment, QueueEntry};
use super::ids::{JobId, QueueName};
use super::read::{self, DataError, Fields, Json, Path};
use super::words::words;

/// Who of a queue may begin before whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueuePolicy {
    /// Nobody begins before those in front of him.
    Fifo,
    /// Who fits where nobody in front of him does may pass them.
    #[default]
    Backfill,
}

words! {
    /// The spelling on the command line and in the file.
    QueuePolicy {
        Fifo: "fifo",
        Backfill: "backfill",
    }
}

impl QueuePolicy {
    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// What a queue does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueState {
    /// It takes jobs and starts them.
    #[default]
    Open,
    /// It takes jobs and starts none.
    Paused,
    /// It starts what waits and takes nothing new.
    Draining,
}

words! {
    /// The spelling in lists and in the file.
    QueueState {
        Open: "open",
        Paused: "paused",
        Draining: "draining",
    }
}

impl QueueState {
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: QueueName,
    /// Who may begin before whom.
    pub policy: QueuePolicy,
    /// So many of its jobs may be at work at once.
    pub max_parallel: Option<u32>,
    /// Where its jobs begin, whatever they name: targets, pools, patterns or types, as typed. None means that each job
    /// says it.
    pub on: Vec<String>,
    /// What it does.
    pub state: QueueState,
}

impl Queue {
    /// One that nobody has said anything of.
    pub fn new(name: QueueName) -> Self {
        Self {
            name,
            policy: QueuePolicy::default(),
            max_parallel: None,
            on: Vec::new(),
            state: QueueState::default(),
        }
    }

    fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let policy = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, QueuePolicy::parse, "'fifo' or 'backfill'")
        };
        let state = |value: Json<'_>, path: &Path<'_>| {
            read::one_of(value, path, QueueState::parse, "'open', 'paused' or 'draining'")
        };
        Ok(Self {
            name: QueueName::new(fields.need("name", "text", read::text)?),
            policy: fields.with("policy", policy)?.unwrap_or_default(),
            max_parallel: fields.with("max_parallel", read::number)?,
            on: fields
                .with("on", |value, path| read::list(value, path, read::text))?
                .unwrap_or_default(),
            state: fields.with("state", state)?.unwrap_or_default(),
        })
    }

    fn write(&self) -> Value {
        json!({
            "name": self.name,
            "policy": self.policy.as_str(),
            "max_parallel": self.max_parallel,
            "on": self.on,
            "state": self.state.as_str(),
        })
    }
}

/// All queues, with what waits in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Those that somebody has made or said something of.
    named: Vec<Queue>,
    /// What waits, in the order in which it was submitted.
    pub entries: Vec<QueueEntry>,
}

impl Queues {
    /// The queue of this name; the usual one is there even where nobody has said anything of it.
    pub fn queue(&self, name: &QueueName) -> Option<Queue> {
        let known = self.named.iter().find(|queue| queue.name == *name).cloned();
        known.or_else(|| (*name == QueueName::usual()).then(|| Queue::new(name.clone())))
    }

    /// All queues, the usual one first.
    pub fn all(&self) -> Vec<Queue> {
        let usual = QueueName::usual();
        let first = self.queue(&usual);
        let others = self.named.iter().filter(|queue| queue.name != usual).cloned();
        first.into_iter().chain(others).collect()
    }

    /// Keeps what is said of a queue, which may be new.
    pub fn set(&mut self, queue: Queue) {
        match self.named.iter_mut().find(|known| known.name == queue.name) {
            Some(known) => *known = queue,
            None => self.named.push(queue),
        }
    }

    /// Forgets a queue. Whether it was there.
    pub fn remove(&mut self, name: &QueueName) -> bool {
        let before = self.named.len();
        self.named.retain(|queue| queue.name != *name);
        self.named.len() < before
    }

    /// The entry of this number.
    pub fn entry(&self, id: &JobId) -> Option<&QueueEntry> {
        self.entries.iter().find(|entry| entry.user == id.user && entry.number == id.window)
    }

    /// The entry of this number, to be changed.
    pub fn entry_mut(&mut self, id: &JobId) -> Option<&mut QueueEntry> {
        self.entries.iter_mut().find(|entry| entry.user == id.user && entry.number == id.window)
    }

    /// Takes an entry out.
    pub fn take(&mut self, id: &JobId) -> Option<QueueEntry> {
        let at = self.entries.iter().position(|entry| entry.id() == *id)?;
        Some(self.entries.remove(at))
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let fields = Fields::new(value, path)?;
        let environments: Vec<Environment> = fields
            .with("environments", |value, path| read::list(value, path, entry::read_environment))?
            .unwrap_or_default();
        let read_entry =
            |value: Json<'_>, path: &Path<'_>| QueueEntry::read(value, path, &environments);
        Ok(Self {
            named: fields
                .with("queues", |value, path| read::list(value, path, Queue::read))?
                .unwrap_or_default(),
            entries: fields
                .with("entries", |value, path| read::list(value, path, read_entry))?
                .unwrap_or_default(),
        })
    }

    /// For the file. What many entries keep of the environment stands there once.
    pub(super) fn write(&self) -> Value {
        let mut environments: Vec<&Environment> = Vec::new();
        let mut entries = Vec::new();
        for entry in &self.entries {
            let known = environments
                .iter()
                .rposition(|known| Arc::ptr_eq(known, &entry.env) || **known == entry.env);
            let at = known.unwrap_or_else(|| {
                environments.push(&entry.env);
                environments.len() - 1
            });
            entries.push(entry.write(at));
        }
        let environments: Vec<Value> =
            environments.into_iter().map(|env| entry::write_environment(env)).collect();
        let members = [
            ("queues", self.named.iter().map(Queue::write).collect::<Vec<_>>()),
            ("environments", environments),
            ("entries", entries),
        ];
        let members: Map<String, Value> =
            members.into_iter().map(|(key, list)| (key.to_owned(), Value::Array(list))).collect();
        Value::Object(members)
    }
}
