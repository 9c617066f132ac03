//! Hosts: what they have for jobs, and who has it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::capacity::{Capacity, Share};
use crate::model::ids::{JobId, TargetName};
use crate::ops::hosts::Host;

/// Hosts, each with who is there.
#[derive(Serialize, JsonSchema)]
pub struct HostsDocument<'a> {
    /// Each of them.
    pub hosts: Vec<HostPart<'a>>,
}

impl<'a> From<&'a [Host]> for HostsDocument<'a> {
    fn from(hosts: &'a [Host]) -> Self {
        Self { hosts: hosts.iter().map(HostPart::from).collect() }
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
    /// Who has a place there.
    pub jobs: Vec<PlacePart<'a>>,
}

impl<'a> From<&'a Host> for HostPart<'a> {
    fn from(host: &'a Host) -> Self {
        let place = |(job, share): &'a (JobId, Option<Share>)| PlacePart {
            job: job.to_string(),
            share: share.as_ref().map(SharePart::from),
        };
        Self {
            name: &host.name,
            addresses: &host.addresses,
            capacity: CapacityPart::from(&host.capacity),
            jobs: host.jobs.iter().map(place).collect(),
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
