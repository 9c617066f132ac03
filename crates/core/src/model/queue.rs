//! A queue: who of it may begin before whom, how many at once, and whether it takes and starts jobs.

use serde_json::{Value, json};

use super::ids::QueueName;
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

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
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

    pub(super) fn write(&self) -> Value {
        json!({
            "name": self.name,
            "policy": self.policy.as_str(),
            "max_parallel": self.max_parallel,
            "on": self.on,
            "state": self.state.as_str(),
        })
    }
}
