//! What a target has for jobs, what a job asks of it, and what it was given.
//!
//! A capacity is what somebody has set; where nothing is set there is no limit. `plan::slots` decides who gets what.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::read::{self, DataError, Fields, Json, Path};
use super::words::words;

/// GPUs on which somebody else is at work, by their numbers, with whom. Only NVIDIA's driver tells of processes: on
/// others nobody is seen.
pub type BusyGpus = BTreeMap<u32, String>;

/// How much there is of everything that jobs share, where somebody has set it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Jobs at a time.
    pub jobs: Option<u32>,
    /// GPUs, numbered from 0 as the driver does. Without it none is given out, and none is hidden.
    pub gpus: Option<u32>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Memory.
    pub memory: Option<Memory>,
    /// CPUs that jobs without GPUs may take together while the queue starts more: one for each that asks for none. What
    /// is started by hand begins all the same. A number of jobs at a time replaces it.
    pub queue_cpus: Option<u32>,
}

impl Capacity {
    /// One job at a time.
    pub const ONE: Self =
        Self { jobs: Some(1), gpus: None, cpus: None, memory: None, queue_cpus: None };

    /// Whether nothing is limited for what is started by hand.
    pub fn is_unlimited(&self) -> bool {
        Self { queue_cpus: None, ..*self } == Self::default()
    }

    /// How many CPUs the jobs may take together that the queue starts, where no number of jobs is said.
    pub fn of_queue(&self) -> Option<u32> {
        self.queue_cpus.filter(|_| self.jobs.is_none())
    }
}

/// An amount of memory, in MiB.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Memory(pub u64);

impl Memory {
    /// Reads `256G`, `512M`, `1.5T`; a number without a unit is in G. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_suffix(['B', 'b']).unwrap_or(text);
        let text = text.strip_suffix('i').unwrap_or(text);
        let (number, mib) = match text.char_indices().last()? {
            (at, 'M' | 'm') => (text.get(..at)?, 1.0),
            (at, 'G' | 'g') => (text.get(..at)?, 1024.0),
            (at, 'T' | 't') => (text.get(..at)?, 1024.0 * 1024.0),
            _ => (text, 1024.0),
        };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let amount = number.parse::<f64>().ok().filter(|_| is_plain)? * mib;
        // Below 2^53 every whole number of MiB is exact.
        let is_sane = (1.0..9e15).contains(&amount);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and within the bounds that were just checked"
        )]
        is_sane.then(|| Self(amount.round() as u64))
    }
}

/// As it is typed: `256G`, or `512M` where that says it exactly.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1024) {
            write!(f, "{}G", self.0 / 1024)
        } else {
            write!(f, "{}M", self.0)
        }
    }
}

/// The GPUs that a job asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum GpuAsk {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// So many.
    Count(u32),
    /// These, by their numbers.
    These(Vec<u32>),
}

impl GpuAsk {
    /// Whether at least one is asked for.
    pub fn is_some(&self) -> bool {
        matches!(self, Self::Count(1..) | Self::These(_))
    }

    /// How many are asked for, where that was said.
    pub fn count(&self) -> Option<u32> {
        match self {
            Self::Unsaid => None,
            Self::Count(count) => Some(*count),
            Self::These(these) => u32::try_from(these.len()).ok(),
        }
    }
}

/// What a job asks of its target, beside a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ask {
    /// GPUs.
    pub gpus: GpuAsk,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Memory.
    pub memory: Option<Memory>,
}

impl Ask {
    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads what was typed behind `key=`. `None` for a key that asks for nothing; for a value that makes no sense what
    /// is expected, and an example.
    pub fn say(
        &mut self,
        key: &str,
        value: &str,
    ) -> Option<Result<(), (&'static str, &'static str)>> {
        let said = match key {
            "gpus" => value.parse().map(|count| self.gpus = GpuAsk::Count(count)).ok(),
            "gpu" => indices(value).map(|these| self.gpus = GpuAsk::These(these)),
            "cpus" => positive(value).map(|count| self.cpus = Some(count)),
            "mem" => Memory::parse(value).map(|memory| self.memory = Some(memory)),
            _ => return None,
        };
        Some(said.ok_or(match key {
            "gpus" => ("a number of GPUs", "gpus=2"),
            "gpu" => ("the numbers of GPUs", "gpu=0,2"),
            "cpus" => ("a number of CPUs", "cpus=8"),
            _ => ("an amount of memory", "mem=32G"),
        }))
    }

    /// The keys that [`Self::say`] knows.
    pub const KEYS: [&str; 4] = ["gpus", "gpu", "cpus", "mem"];
}

/// `0,2`: each once, in order.
fn indices(text: &str) -> Option<Vec<u32>> {
    let mut all: Vec<u32> =
        text.split(',').map(|one| one.trim().parse().ok()).collect::<Option<_>>()?;
    all.sort_unstable();
    all.dedup();
    Some(all)
}

fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number > 0)
}

/// The makers of accelerators, which each have a variable of their own that says which of them a program sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerators {
    /// NVIDIA's GPUs.
    #[default]
    Nvidia,
    /// AMD's GPUs.
    Amd,
    /// TPU chips.
    Tpu,
}

words! {
    /// The spelling in data.json and JSON output.
    Accelerators {
        Nvidia: "nvidia",
        Amd: "amd",
        Tpu: "tpu",
    }
}

impl Accelerators {
    /// The word, unless it is the usual one, which goes without saying.
    pub(super) fn unusual(self) -> Option<&'static str> {
        (self != Self::default()).then(|| self.as_str())
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Self, DataError> {
        let parse = |word: &str| Self::ALL.into_iter().find(|whose| whose.as_str() == word);
        read::one_of(value, path, parse, "nvidia, amd or tpu")
    }
}

/// What a job was given when it was claimed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The GPUs, by their numbers; `None` where nobody counts them, and it sees all there are.
    pub gpus: Option<Vec<u32>>,
    /// CPUs; nothing holds the job to them.
    pub cpus: Option<u32>,
    /// Memory; nothing holds the job to it.
    pub memory: Option<Memory>,
    /// Whose GPUs they are, which says by which variable a program is told of them.
    pub accelerators: Accelerators,
}

impl Share {
    /// For people: `GPU 0, 2`, `8 CPUs, 32G`; empty where there is nothing to say.
    pub fn in_words(&self) -> String {
        let gpus = self.gpus.as_deref().map(|gpus| match gpus {
            [] => "no GPU".to_owned(),
            some => format!("GPU {}", list(some)),
        });
        let cpus = self.cpus.map(|count| format!("{count} CPUs"));
        let memory = self.memory.map(|memory| memory.to_string());
        [gpus, cpus, memory].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// `0,2`: as the drivers read them from the environment.
pub fn list(gpus: &[u32]) -> String {
    gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Members of an object, without those that say nothing.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let said = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(said.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

pub(super) fn read_memory(value: Json<'_>, path: &Path<'_>) -> Result<Memory, DataError> {
    let text = read::text(value, path)?;
    Memory::parse(&text).ok_or_else(|| path.error("an amount of memory such as 256G", Some(value)))
}

fn read_indices(value: Json<'_>, path: &Path<'_>) -> Result<Vec<u32>, DataError> {
    read::list(value, path, read::number)
}

/// Reads a capacity.
pub(super) fn read_capacity(value: Json<'_>, path: &Path<'_>) -> Result<Capacity, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Capacity {
        jobs: fields.with("jobs", read::number)?,
        gpus: fields.with("gpus", read::number)?,
        cpus: fields.with("cpus", read::number)?,
        memory: fields.with("mem", read_memory)?,
        queue_cpus: fields.with("queue_cpus", read::number)?,
    })
}

/// A capacity, for the file: what has no limit takes an earlier one away.
pub(super) fn write_capacity(capacity: &Capacity) -> Value {
    json!({
        "jobs": capacity.jobs,
        "gpus": capacity.gpus,
        "cpus": capacity.cpus,
        "mem": capacity.memory.map(|memory| memory.to_string()),
        "queue_cpus": capacity.queue_cpus,
    })
}

/// Reads what a job asks for.
pub(super) fn read_ask(value: Json<'_>, path: &Path<'_>) -> Result<Ask, DataError> {
    let fields = Fields::new(value, path)?;
    let count = fields.with("gpus", read::number)?.map(GpuAsk::Count);
    let these = fields.with("gpu", read_indices)?.map(GpuAsk::These);
    Ok(Ask {
        gpus: these.or(count).unwrap_or_default(),
        cpus: fields.with("cpus", read::number)?,
        memory: fields.with("mem", read_memory)?,
    })
}

/// What a job asks for, for the file; null if that is nothing.
pub(super) fn write_ask(ask: &Ask) -> Value {
    let (count, these) = match &ask.gpus {
        GpuAsk::Unsaid => (None, None),
        GpuAsk::Count(count) => (Some(*count), None),
        GpuAsk::These(these) => (None, Some(these)),
    };
    if ask.is_empty() {
        return Value::Null;
    }
    object([
        ("gpus", json!(count)),
        ("gpu", json!(these)),
        ("cpus", json!(ask.cpus)),
        ("mem", json!(ask.memory.map(|memory| memory.to_string()))),
    ])
}

/// Reads what a job was given.
pub(super) fn read_share(value: Json<'_>, path: &Path<'_>) -> Result<Share, DataError> {
    let fields = Fields::new(value, path)?;
    Ok(Share {
        gpus: fields.with("gpus", read_indices)?,
        cpus: fields.with("cpus", read::number)?,
        memory: fields.with("mem", read_memory)?,
        accelerators: fields.with("accelerators", Accelerators::read)?.unwrap_or_default(),
    })
}

/// What a job was given, for the file.
pub(super) fn write_share(share: &Share) -> Value {
    object([
        ("gpus", json!(share.gpus)),
        ("cpus", json!(share.cpus)),
        ("mem", json!(share.memory.map(|memory| memory.to_string()))),
        ("accelerators", json!(share.accelerators.unusual())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read_as_they_are_written() {
        let read = |text: &str| Memory::parse(text).map(|memory| memory.to_string());
        for (text, expected) in [
            ("256G", "256G"),
            ("256", "256G"),
            ("1.5T", "1536G"),
            ("512M", "512M"),
            ("2048 MiB", ""),
            ("2048MiB", "2G"),
            ("0", ""),
            ("-3G", ""),
            ("G", ""),
            ("1e3G", ""),
            ("", ""),
            ("99999999999999999T", ""),
        ] {
            assert_eq!(read(text).unwrap_or_default(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_asked_for_is_read_or_refused() {
        let mut ask = Ask::default();
        assert_eq!(ask.say("gpu", "2, 0,2"), Some(Ok(())));
        assert_eq!(ask.gpus, GpuAsk::These(vec![0, 2]));
        assert_eq!(ask.say("gpus", "0"), Some(Ok(())));
        assert_eq!(ask.gpus, GpuAsk::Count(0));
        for (key, value) in [("gpus", "two"), ("gpu", ""), ("cpus", "0"), ("mem", "much")] {
            assert!(matches!(ask.say(key, value), Some(Err(_))), "{key}={value}");
        }
        assert_eq!(ask.say("lr", "1"), None);
    }
}
