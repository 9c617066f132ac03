//! What is kept of a machine of somebody's own, beside where it is and what it has for jobs: the lists that name
//! it, whether new jobs may begin there, and what was found on it.

use std::fmt;

use serde_json::{Value, json};

use super::capacity::{Accelerators, Memory};
use super::read::{self, DataError, Fields, Json, Path};
use super::time::Timestamp;

/// What is kept of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRecord {
    /// The pools that it is in: a job may ask for one of them instead of a machine.
    pub pools: Vec<String>,
    /// Words by which people find it, as `a100`.
    pub tags: Vec<String>,
    /// A script there that is read before a command begins, as the `activate` of a Python environment; `~/` is the
    /// account's home.
    pub pyenv: Option<String>,
    /// That nothing new begins there, while this stands.
    pub drained: Option<Drained>,
    /// What was found there when somebody last looked.
    pub found: Option<Found>,
}

/// That nothing new begins on a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Who said so.
    pub by: String,
    /// When.
    pub since: Timestamp,
    /// Why, if that was said.
    pub why: Option<String>,
}

/// Who has said so, and what for.
impl fmt::Display for Drained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "drained by {}", self.by)?;
        self.why.iter().try_for_each(|why| write!(f, ": {why}"))
    }
}

/// What was found on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// CPUs that a program may use.
    pub cpus: Option<u32>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Accelerators.
    pub gpus: Option<u32>,
    /// Whose they are.
    pub accelerators: Accelerators,
    /// The name of the first, as its driver says it.
    pub model: Option<String>,
    /// The version of tmux, if there is one.
    pub tmux: Option<String>,
    /// The version of Python, if there is one.
    pub python: Option<String>,
}

impl HostRecord {
    /// Whether it is in a pool, or has a tag.
    pub fn is_called(&self, word: &str) -> bool {
        self.pools.iter().chain(&self.tags).any(|known| known == word)
    }
}

/// Reads what is kept of a machine.
pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<HostRecord, DataError> {
    let fields = Fields::new(value, path)?;
    let words = |value: Json<'_>, path: &Path<'_>| read::list(value, path, read::text);
    Ok(HostRecord {
        pools: fields.with("pools", words)?.unwrap_or_default(),
        tags: fields.with("tags", words)?.unwrap_or_default(),
        pyenv: fields.with("pyenv", read::text)?,
        drained: fields.with("drained", read_drained)?,
        found: fields.with("found", read_found)?,
    })
}

fn read_drained(value: Json<'_>, path: &Path<'_>) -> Result<Drained, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Drained {
        by: fields.with("by", read::text)?.unwrap_or_default(),
        since: fields.need("since", "an instant", read::instant)?,
        why: fields.with("why", read::text)?,
    })
}

fn read_found(value: Json<'_>, path: &Path<'_>) -> Result<Found, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Found {
        cpus: fields.with("cpus", read::number)?,
        memory: fields.with("mem", super::capacity::read_memory)?,
        gpus: fields.with("gpus", read::number)?,
        accelerators: fields.with("accelerators", Accelerators::read)?.unwrap_or_default(),
        model: fields.with("model", read::text)?,
        tmux: fields.with("tmux", read::text)?,
        python: fields.with("python", read::text)?,
    })
}

/// What is kept of a machine, for the file.
pub(super) fn write(host: &HostRecord) -> Value {
    json!({
        "pools": host.pools,
        "tags": host.tags,
        "pyenv": host.pyenv,
        "drained": host.drained.as_ref().map(|drained| json!({
            "by": drained.by,
            "since": drained.since.to_rfc3339(),
            "why": drained.why,
        })),
        "found": host.found.as_ref().map(|found| json!({
            "cpus": found.cpus,
            "mem": found.memory.map(|memory| memory.to_string()),
            "gpus": found.gpus,
            "accelerators": found.accelerators.as_str(),
            "model": found.model,
            "tmux": found.tmux,
            "python": found.python,
        })),
    })
}
