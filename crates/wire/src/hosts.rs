//! Hosts: what they have for jobs, and who has it.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::capacity::{Capacity, Share};
use tpu_core::model::host::{Drained, Found};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::time::Timestamp;
use tpu_ops::act::hosts::add::Added;
use tpu_ops::act::hosts::detect::Asked;
use tpu_ops::act::hosts::{Host, Pool};

use super::figures::{FiguresPart, MachinePart};
use super::words::TimePart;

/// Hosts, each with who is there.
#[derive(Serialize, JsonSchema)]
pub struct HostsDocument<'a> {
    /// Each of them.
    pub hosts: Vec<HostPart<'a>>,
}

impl<'a> HostsDocument<'a> {
    /// The document of these, as they are at an instant.
    pub fn at(hosts: &'a [Host], now: Timestamp) -> Self {
        Self { hosts: hosts.iter().map(|host| HostPart::at(host, now)).collect() }
    }
}

/// A host.
#[derive(Serialize, JsonSchema)]
pub struct HostPart<'a> {
    /// What it is called.
    pub name: &'a TargetName,
    /// Where it is reached; empty for this machine.
    pub addresses: &'a [String],
    /// What it has for jobs.
    pub capacity: CapacityPart,
    /// The pools that it is in.
    pub pools: &'a [String],
    /// Words by which it is found.
    pub tags: &'a [String],
    /// A script that is read there before a command begins.
    pub pyenv: Option<&'a str>,
    /// That nothing new begins there; null while jobs do.
    pub drained: Option<DrainedPart<'a>>,
    /// What `hosts detect` has found there; null where it was never asked.
    pub found: Option<FoundPart<'a>>,
    /// Who has a place there.
    pub jobs: Vec<PlacePart<'a>>,
    /// How much it has to do; null where nobody has asked it.
    pub figures: Option<FiguresPart<'a>>,
}

impl<'a> HostPart<'a> {
    /// A host as it is at an instant.
    fn at(host: &'a Host, now: Timestamp) -> Self {
        let place = |(job, share): &'a (JobId, Option<Share>)| PlacePart {
            job: job.to_string(),
            share: share.as_ref().map(SharePart::from),
        };
        Self {
            name: &host.name,
            addresses: &host.addresses,
            capacity: CapacityPart::from(&host.capacity),
            pools: &host.record.pools,
            tags: &host.record.tags,
            pyenv: host.record.pyenv.as_deref(),
            drained: host.record.drained.as_ref().map(DrainedPart::from),
            found: host.record.found.as_ref().map(FoundPart::from),
            jobs: host.jobs.iter().map(place).collect(),
            figures: host.figures.as_ref().map(|figures| FiguresPart::at(figures, now)),
        }
    }
}

/// That nothing new begins on a host.
#[derive(Serialize, JsonSchema)]
pub struct DrainedPart<'a> {
    /// Who has said so.
    pub by: &'a str,
    /// Since when.
    pub since: TimePart,
    /// What for, if that was said.
    pub why: Option<&'a str>,
}

impl<'a> From<&'a Drained> for DrainedPart<'a> {
    fn from(drained: &'a Drained) -> Self {
        Self { by: &drained.by, since: TimePart(drained.since), why: drained.why.as_deref() }
    }
}

/// What was found on a host; null what is not there, or was not said.
#[derive(Serialize, JsonSchema)]
pub struct FoundPart<'a> {
    /// CPUs that a program may use.
    pub cpus: Option<u32>,
    /// Memory, in MiB.
    pub mem_mib: Option<u64>,
    /// GPUs, or accelerators of another kind.
    pub gpus: Option<u32>,
    /// The name of the first of them, as its driver says it.
    pub model: Option<&'a str>,
    /// The version of tmux.
    pub tmux: Option<&'a str>,
    /// The version of Python.
    pub python: Option<&'a str>,
}

impl<'a> From<&'a Found> for FoundPart<'a> {
    fn from(found: &'a Found) -> Self {
        let Found { cpus, memory, gpus, accelerators: _, model, tmux, python } = found;
        Self {
            cpus: *cpus,
            mem_mib: memory.map(|memory| memory.0),
            gpus: *gpus,
            model: model.as_deref(),
            tmux: tmux.as_deref(),
            python: python.as_deref(),
        }
    }
}

/// What a target has for jobs; null where there is no limit.
#[derive(Serialize, JsonSchema)]
pub struct CapacityPart {
    /// Jobs at a time.
    pub jobs: Option<u32>,
    /// GPUs.
    pub gpus: Option<u32>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Memory, in MiB.
    pub mem_mib: Option<u64>,
}

impl From<&Capacity> for CapacityPart {
    fn from(capacity: &Capacity) -> Self {
        let Capacity { jobs, gpus, cpus, memory } = *capacity;
        Self { jobs, gpus, cpus, mem_mib: memory.map(|memory| memory.0) }
    }
}

/// A job that has a place.
#[derive(Serialize, JsonSchema)]
pub struct PlacePart<'a> {
    /// `alice/7`.
    pub job: String,
    /// What it was given; null where nothing was counted when it began.
    pub share: Option<SharePart<'a>>,
}

/// What a job was given of its target.
#[derive(Serialize, JsonSchema)]
pub struct SharePart<'a> {
    /// The numbers of its GPUs; null where nobody counts them.
    pub gpus: Option<&'a [u32]>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Memory, in MiB.
    pub mem_mib: Option<u64>,
}

impl<'a> From<&'a Share> for SharePart<'a> {
    fn from(share: &'a Share) -> Self {
        let mem_mib = share.memory.map(|memory| memory.0);
        Self { gpus: share.gpus.as_deref(), cpus: share.cpus, mem_mib }
    }
}

/// What targets have for jobs from now on.
#[derive(Serialize, JsonSchema)]
pub struct HostsSetDocument<'a> {
    /// Each that was changed.
    pub set: Vec<SetPart<'a>>,
}

impl<'a> From<&'a [(TargetName, Capacity)]> for HostsSetDocument<'a> {
    fn from(changed: &'a [(TargetName, Capacity)]) -> Self {
        let part = |(target, capacity): &'a (TargetName, Capacity)| SetPart {
            target,
            capacity: CapacityPart::from(capacity),
        };
        Self { set: changed.iter().map(part).collect() }
    }
}

/// A target whose limits were set.
#[derive(Serialize, JsonSchema)]
pub struct SetPart<'a> {
    /// Its name.
    pub target: &'a TargetName,
    /// What it has for jobs.
    pub capacity: CapacityPart,
}

/// Hosts that were added.
#[derive(Serialize, JsonSchema)]
pub struct HostsAddedDocument<'a> {
    /// Each of them.
    pub added: Vec<AddedPart<'a>>,
}

impl<'a> From<&'a [Added]> for HostsAddedDocument<'a> {
    fn from(added: &'a [Added]) -> Self {
        let part = |host: &'a Added| AddedPart {
            name: &host.name,
            capacity: CapacityPart::from(&host.capacity),
            machine: host.answer.as_ref().and_then(|a| a.as_ref().ok()).map(MachinePart::from),
            silent: host.answer.as_ref().and_then(|a| a.as_ref().err()).map(String::as_str),
        };
        Self { added: added.iter().map(part).collect() }
    }
}

/// A host that was added.
#[derive(Serialize, JsonSchema)]
pub struct AddedPart<'a> {
    /// Its name.
    pub name: &'a TargetName,
    /// What it has for jobs.
    pub capacity: CapacityPart,
    /// What it says of itself; null where it says nothing or was not asked.
    pub machine: Option<MachinePart<'a>>,
    /// Why it does not answer.
    pub silent: Option<&'a str>,
}

/// Hosts that were asked.
#[derive(Serialize, JsonSchema)]
pub struct HostsAskedDocument<'a> {
    /// Each of them.
    pub asked: Vec<AskedPart<'a>>,
}

impl<'a> From<&'a [Asked]> for HostsAskedDocument<'a> {
    fn from(asked: &'a [Asked]) -> Self {
        let part = |(name, answer): &'a Asked| AskedPart {
            name,
            machine: answer.as_ref().ok().map(MachinePart::from),
            silent: answer.as_ref().err().map(String::as_str),
        };
        Self { asked: asked.iter().map(part).collect() }
    }
}

/// A host that was asked.
#[derive(Serialize, JsonSchema)]
pub struct AskedPart<'a> {
    /// Its name.
    pub name: &'a TargetName,
    /// What it says of itself.
    pub machine: Option<MachinePart<'a>>,
    /// Why it does not answer.
    pub silent: Option<&'a str>,
}

/// Hosts that were changed.
#[derive(Serialize, JsonSchema)]
pub struct HostsChangedDocument<'a> {
    /// Their names.
    pub hosts: &'a [TargetName],
}

/// Pools of hosts.
#[derive(Serialize, JsonSchema)]
pub struct PoolsDocument<'a> {
    /// Each of them.
    pub pools: Vec<PoolPart<'a>>,
}

impl<'a> From<&'a [Pool]> for PoolsDocument<'a> {
    fn from(pools: &'a [Pool]) -> Self {
        let part =
            |pool: &'a Pool| PoolPart { name: &pool.name, open: pool.open, hosts: &pool.hosts };
        Self { pools: pools.iter().map(part).collect() }
    }
}

/// A pool of hosts.
#[derive(Serialize, JsonSchema)]
pub struct PoolPart<'a> {
    /// Its name.
    pub name: &'a str,
    /// On how many of its hosts jobs may begin.
    pub open: usize,
    /// Its hosts.
    pub hosts: &'a [TargetName],
}
