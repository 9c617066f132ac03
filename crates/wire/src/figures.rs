//! Figures: how much machines and the jobs on them have to do, and when that was said.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::capacity::Memory;
use tpu_core::model::facts::{GpuFact, MachineFact};
use tpu_core::model::figures::{HostFigures, JobFigures, SeenFigures};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::time::Timestamp;
use tpu_ops::act::hosts::figures::Figures;

use super::words::TimePart;

/// What a machine said last of its load and its memory; all null while it does not answer, or has not for an hour.
#[derive(Serialize, JsonSchema)]
pub struct FiguresPart<'a> {
    /// When it was last asked.
    pub asked_at: TimePart,
    /// When it last answered; null if it never did.
    pub as_of: Option<TimePart>,
    /// Seconds since then.
    pub age_s: Option<u64>,
    /// Why it did not answer when it was last asked; null if it did.
    pub silent: Option<&'a str>,
    /// How many programs wanted a CPU at a time, in the last minute.
    pub load: Option<f64>,
    /// CPUs that a program may use.
    pub cpus: Option<u32>,
    /// Memory in use, in MiB.
    pub used_mib: Option<u64>,
    /// Memory, in MiB.
    pub mem_mib: Option<u64>,
    /// Accelerators.
    pub gpus: Option<Vec<GpuPart<'a>>>,
    /// What is known of the jobs on it; null if its processes could not be looked at.
    pub jobs: Option<Vec<JobFiguresPart<'a>>>,
}

impl<'a> FiguresPart<'a> {
    /// The figures of a machine as they are at an instant.
    pub fn at(host: &'a HostFigures, now: Timestamp) -> Self {
        let known = host.known(now);
        let machine = known.map(|seen| &seen.machine);
        let memory = known.and_then(SeenFigures::memory);
        let jobs = known.and_then(|seen| Some((seen, seen.jobs.as_ref()?)));
        let part = |(seen, jobs): (&'a SeenFigures, &'a Vec<(JobId, JobFigures)>)| {
            let each = jobs.iter();
            each.map(|(job, figures)| JobFiguresPart::at(job, figures, seen, now)).collect()
        };
        Self {
            asked_at: TimePart(host.asked_at),
            as_of: host.seen.as_ref().map(|seen| TimePart(seen.at)),
            age_s: host.age_s(now),
            silent: host.silent.as_deref(),
            load: machine.and_then(|machine| machine.load),
            cpus: machine.and_then(|machine| machine.cpus),
            used_mib: memory.map(|(used, _)| used.0),
            mem_mib: memory.map(|(_, all)| all.0),
            gpus: machine.map(|machine| machine.gpus.iter().map(GpuPart::from).collect()),
            jobs: jobs.map(part),
        }
    }
}

/// What the processes of a job have of their machine.
#[derive(Serialize, JsonSchema)]
pub struct JobFiguresPart<'a> {
    /// `alice/7`.
    pub job: String,
    /// When its machine said so.
    pub as_of: TimePart,
    /// Seconds since then.
    pub age_s: u64,
    /// How many processes it has, those that they have started among them.
    pub processes: usize,
    /// How many cores they kept busy on average over the interval; null where that could not be measured.
    pub cores: Option<f64>,
    /// Length of that interval, in seconds.
    pub interval_s: f64,
    /// CPU time that they have had, with the children that they have collected, in seconds.
    pub cpu_s: f64,
    /// Memory that they hold, in MiB: what several share counts for each of them.
    pub mem_mib: u64,
    /// The accelerators that it was given, and those on which its processes are.
    pub gpus: Vec<JobGpuPart<'a>>,
}

impl<'a> JobFiguresPart<'a> {
    fn at(job: &JobId, figures: &'a JobFigures, seen: &'a SeenFigures, now: Timestamp) -> Self {
        let gpu = |(index, own): (&u32, &Option<Memory>)| JobGpuPart {
            own_mib: own.map(|own| own.0),
            gpu: seen.machine.gpus.iter().find(|gpu| gpu.index == *index).map(GpuPart::from),
            index: *index,
        };
        Self {
            job: job.to_string(),
            as_of: TimePart(seen.at),
            age_s: now.seconds_since(seen.at),
            processes: figures.processes,
            cores: figures.cores,
            interval_s: figures.interval_s,
            cpu_s: figures.cpu_s,
            mem_mib: figures.memory.0,
            gpus: figures.gpus.iter().map(gpu).collect(),
        }
    }

    /// The figures of these jobs, as far as some are known: each with the target that it is on.
    pub fn of(
        figures: &'a Figures,
        jobs: impl IntoIterator<Item = (&'a JobId, &'a TargetName)>,
        now: Timestamp,
    ) -> Vec<Self> {
        let one = |(job, target): (&'a JobId, &'a TargetName)| {
            let host = figures.get(target)?;
            Some(Self::at(job, host.job(job, now)?, host.known(now)?, now))
        };
        jobs.into_iter().filter_map(one).collect()
    }
}

/// An accelerator of a job.
#[derive(Serialize, JsonSchema)]
pub struct JobGpuPart<'a> {
    /// Its number, as its driver counts.
    pub index: u32,
    /// What the job's processes have of its memory, in MiB; null where the driver does not say so.
    pub own_mib: Option<u64>,
    /// What its driver says of it, whoever is on it; null if that says nothing.
    pub gpu: Option<GpuPart<'a>>,
}

/// What a machine says of itself; null where it says nothing.
#[derive(Serialize, JsonSchema)]
pub struct MachinePart<'a> {
    /// What it calls itself.
    pub hostname: &'a str,
    /// CPUs that a program may use.
    pub cpus: Option<u32>,
    /// How many programs wanted a CPU at a time, in the last minute.
    pub load: Option<f64>,
    /// Memory, in MiB.
    pub mem_mib: Option<u64>,
    /// Memory that a program can still have, in MiB.
    pub free_mib: Option<u64>,
    /// What is free on the disk of the account's home, in MiB.
    pub free_disk_mib: Option<u64>,
    /// Accelerators.
    pub gpus: Vec<GpuPart<'a>>,
    /// The version of tmux.
    pub tmux: Option<&'a str>,
    /// The version of Python.
    pub python: Option<&'a str>,
}

impl<'a> From<&'a MachineFact> for MachinePart<'a> {
    fn from(fact: &'a MachineFact) -> Self {
        let mib = |memory: Option<Memory>| memory.map(|Memory(mib)| mib);
        Self {
            hostname: &fact.hostname,
            cpus: fact.cpus,
            load: fact.load,
            mem_mib: mib(fact.memory),
            free_mib: mib(fact.available),
            free_disk_mib: mib(fact.free_disk),
            gpus: fact.gpus.iter().map(GpuPart::from).collect(),
            tmux: fact.tmux.as_deref(),
            python: fact.python.as_deref(),
        }
    }
}

/// An accelerator; null where it says nothing.
#[derive(Serialize, JsonSchema)]
pub struct GpuPart<'a> {
    /// Its number, as its driver counts.
    pub index: u32,
    /// What it is.
    pub model: Option<&'a str>,
    /// How much of the last moment it was at work, in per cent.
    pub use_percent: Option<u32>,
    /// Its memory that is in use, in MiB.
    pub used_mib: Option<u64>,
    /// Its memory, in MiB.
    pub mem_mib: Option<u64>,
    /// How hot it is, in degrees Celsius.
    pub celsius: Option<u32>,
    /// Accounts whose programs are on it.
    pub users: Vec<&'a str>,
}

impl<'a> From<&'a GpuFact> for GpuPart<'a> {
    fn from(gpu: &'a GpuFact) -> Self {
        let mib = |memory: Option<Memory>| memory.map(|Memory(mib)| mib);
        Self {
            index: gpu.index,
            model: gpu.model.as_deref(),
            use_percent: gpu.use_percent,
            used_mib: mib(gpu.used),
            mem_mib: mib(gpu.memory),
            celsius: gpu.celsius,
            users: gpu.processes.iter().map(|process| process.user.as_str()).collect(),
        }
    }
}
