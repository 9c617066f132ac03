//! Hosts: what they have for jobs, and who has it.

use tpu_core::model::capacity::{Capacity, Share};
use tpu_core::model::facts::MachineFact;
use tpu_core::model::host::{Drained, Found};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::time::Timestamp;
use tpu_ops::act::hosts::add::{Added, Additions, NotAdded};
use tpu_ops::act::hosts::detect::Asked;
use tpu_ops::act::hosts::{Host, Pool};

use super::document::{documents, part};
use super::figures::{FiguresPart, MachinePart};
use super::words::TimePart;

documents! {
    /// Hosts, each with who is there.
    pub struct HostsDocument<'a> {
        /// Each of them.
        hosts: Vec<HostPart<'a>>,
    }

    /// A host.
    pub struct HostPart<'a> from (host, now): (&'a Host, Timestamp) {
        /// What it is called.
        name: &'a TargetName,
        /// Where it is reached; empty for this machine.
        addresses: &'a [String],
        /// What it has for jobs.
        capacity: CapacityPart,
        /// The pools that it is in.
        pools: &'a [String] = &host.record.pools,
        /// Words by which it is found.
        tags: &'a [String] = &host.record.tags,
        /// A script that is read there before a command begins.
        pyenv: Option<&'a str> = part(&host.record.pyenv),
        /// That nothing new begins there; null while jobs do.
        drained: Option<DrainedPart<'a>> = part(&host.record.drained),
        /// What `hosts detect` has found there; null where it was never asked.
        found: Option<FoundPart<'a>> = part(&host.record.found),
        /// Who has a place there.
        jobs: Vec<PlacePart<'a>>,
        /// How much it has to do; null where nobody has asked it.
        figures: Option<FiguresPart<'a>> =
            host.figures.as_ref().map(|figures| FiguresPart::from((figures, now))),
    }

    /// That nothing new begins on a host.
    pub struct DrainedPart<'a> from drained: &'a Drained {
        /// Who has said so.
        by: &'a str,
        /// Since when.
        since: TimePart,
        /// What for, if that was said.
        why: Option<&'a str>,
    }

    /// What was found on a host; null what is not there, or was not said.
    pub struct FoundPart<'a> from found: &'a Found {
        /// CPUs that a program may use.
        cpus: Option<u32>,
        /// Memory, in MiB.
        mem_mib: Option<u64> = part(&found.memory),
        /// GPUs, or accelerators of another kind.
        gpus: Option<u32>,
        /// The name of the first of them, as its driver says it.
        model: Option<&'a str>,
        /// The version of tmux.
        tmux: Option<&'a str>,
        /// The version of Python.
        python: Option<&'a str>,
    }

    /// What a target has for jobs; null where there is no limit.
    pub struct CapacityPart from capacity: &'a Capacity {
        /// Jobs at a time.
        jobs: Option<u32>,
        /// GPUs.
        gpus: Option<u32>,
        /// CPUs.
        cpus: Option<u32>,
        /// Memory, in MiB.
        mem_mib: Option<u64> = part(&capacity.memory),
        /// CPUs that jobs from the queue may take together, where no number of jobs is said.
        queue_cpus: Option<u32> = capacity.of_queue(),
    }

    /// A job that has a place.
    pub struct PlacePart<'a> from (job, share): &'a (JobId, Option<Share>) {
        /// `alice/7`.
        job: String = job.to_string(),
        /// What it was given; null where nothing was counted when it began.
        share: Option<SharePart<'a>> = part(share),
    }

    /// What a job was given of its target.
    pub struct SharePart<'a> from share: &'a Share {
        /// The numbers of its GPUs; null where nobody counts them.
        gpus: Option<&'a [u32]>,
        /// CPUs.
        cpus: Option<u32>,
        /// Memory, in MiB.
        mem_mib: Option<u64> = part(&share.memory),
    }

    /// What targets have for jobs from now on.
    pub struct HostsSetDocument<'a> from set: &'a [(TargetName, Capacity)] {
        /// Each that was changed.
        set: Vec<SetPart<'a>> = part(set),
    }

    /// A target whose limits were set.
    pub struct SetPart<'a> from (target, capacity): &'a (TargetName, Capacity) {
        /// Its name.
        target: &'a TargetName = target,
        /// What it has for jobs.
        capacity: CapacityPart = part(capacity),
    }

    /// Hosts that were added.
    pub struct HostsAddedDocument<'a> from additions: &'a Additions {
        /// Each of them.
        added: Vec<AddedPart<'a>> = part(&additions.added),
        /// Those that were not added, since ssh finds no way to them.
        refused: Vec<NotAddedPart<'a>> = part(&additions.refused),
    }

    /// A host that was not added.
    pub struct NotAddedPart<'a> from host: &'a NotAdded {
        /// Its name.
        name: &'a TargetName,
        /// Why.
        why: &'a str,
        /// The command that shows it, as a person types it.
        login: &'a str,
    }

    /// A host that was added.
    pub struct AddedPart<'a> from host: &'a Added {
        /// Its name.
        name: &'a TargetName,
        /// What it has for jobs.
        capacity: CapacityPart,
        /// What it says of itself; null where it says nothing or was not asked.
        machine: Option<MachinePart<'a>> = host.answer.as_ref().and_then(machine),
        /// Why it does not answer.
        silent: Option<&'a str> = host.answer.as_ref().and_then(silent),
    }

    /// Hosts that were asked.
    pub struct HostsAskedDocument<'a> from asked: &'a [Asked] {
        /// Each of them.
        asked: Vec<AskedPart<'a>> = part(asked),
    }

    /// A host that was asked.
    pub struct AskedPart<'a> from (name, answer): &'a Asked {
        /// Its name.
        name: &'a TargetName = name,
        /// What it says of itself.
        machine: Option<MachinePart<'a>> = machine(answer),
        /// Why it does not answer.
        silent: Option<&'a str> = silent(answer),
    }

    /// Hosts that were changed.
    pub struct HostsChangedDocument<'a> {
        /// Their names.
        hosts: &'a [TargetName],
    }

    /// Pools of hosts.
    pub struct PoolsDocument<'a> from pools: &'a [Pool] {
        /// Each of them.
        pools: Vec<PoolPart<'a>> = part(pools),
    }

    /// A pool of hosts.
    pub struct PoolPart<'a> from pool: &'a Pool {
        /// Its name.
        name: &'a str,
        /// On how many of its hosts jobs may begin.
        open: usize,
        /// Its hosts.
        hosts: &'a [TargetName],
    }
}

impl<'a> HostsDocument<'a> {
    /// The document of these, as they are at an instant.
    pub fn at(hosts: &'a [Host], now: Timestamp) -> Self {
        Self { hosts: hosts.iter().map(|host| HostPart::from((host, now))).collect() }
    }
}

/// What a machine that answered says of itself.
fn machine(answer: &Result<MachineFact, String>) -> Option<MachinePart<'_>> {
    answer.as_ref().ok().map(MachinePart::from)
}

/// Why a machine does not answer.
fn silent(answer: &Result<MachineFact, String>) -> Option<&str> {
    answer.as_ref().err().map(String::as_str)
}
