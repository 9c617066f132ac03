//! Figures: how much machines and the jobs on them have to do, and when that was said.

use tpu_core::model::capacity::Memory;
use tpu_core::model::facts::{GpuFact, MachineFact};
use tpu_core::model::figures::{HostFigures, JobFigures, SeenFigures};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::time::Timestamp;
use tpu_ops::act::hosts::figures::Figures;

use super::document::{documents, part};
use super::words::TimePart;

documents! {
    /// What a machine said last of its load and its memory; all null while it does not answer, or has not for an hour.
    pub struct FiguresPart<'a> from (host, now): (&'a HostFigures, Timestamp) {
        /// When it was last asked.
        asked_at: TimePart,
        /// When it last answered; null if it never did.
        as_of: Option<TimePart> = host.seen.as_ref().map(|seen| TimePart(seen.at)),
        /// Seconds since then.
        age_s: Option<u64> = host.age_s(now),
        /// Why it did not answer when it was last asked; null if it did.
        silent: Option<&'a str>,
        /// How many programs wanted a CPU at a time, in the last minute.
        load: Option<f64> = host.known(now).and_then(|seen| seen.machine.load),
        /// CPUs that a program may use.
        cpus: Option<u32> = host.known(now).and_then(|seen| seen.machine.cpus),
        /// Memory in use, in MiB.
        used_mib: Option<u64> =
            host.known(now).and_then(SeenFigures::memory).map(|(used, _)| used.0),
        /// Memory, in MiB.
        mem_mib: Option<u64> = host.known(now).and_then(SeenFigures::memory).map(|(_, all)| all.0),
        /// Accelerators.
        gpus: Option<Vec<GpuPart<'a>>> = host.known(now).map(|seen| part(&seen.machine.gpus)),
        /// What is known of the jobs on it; null if its processes could not be looked at.
        jobs: Option<Vec<JobFiguresPart<'a>>> =
            host.known(now).and_then(|seen| JobFiguresPart::all(seen, now)),
    }

    /// What the processes of a job have of their machine.
    pub struct JobFiguresPart<'a>
        from (figures, job, seen, now): (&'a JobFigures, &'a JobId, &'a SeenFigures, Timestamp)
    {
        /// `alice/7`.
        job: String = job.to_string(),
        /// When its machine said so.
        as_of: TimePart = part(&seen.at),
        /// Seconds since then.
        age_s: u64 = now.seconds_since(seen.at),
        /// How many processes it has, those that they have started among them.
        processes: usize,
        /// How many cores they kept busy on average over the interval; null where that could not be measured.
        cores: Option<f64>,
        /// Length of that interval, in seconds.
        interval_s: f64,
        /// CPU time that they have had, with the children that they have collected, in seconds.
        cpu_s: f64,
        /// Memory that they hold, in MiB: what several share counts for each of them.
        mem_mib: u64 = part(&figures.memory),
        /// The accelerators that it was given, and those on which its processes are.
        gpus: Vec<JobGpuPart<'a>> =
            figures.gpus.iter().map(|gpu| JobGpuPart::from((gpu, &seen.machine))).collect(),
    }

    /// An accelerator of a job.
    pub struct JobGpuPart<'a>
        from ((index, own), machine): ((&'a u32, &'a Option<Memory>), &'a MachineFact)
    {
        /// Its number, as its driver counts.
        index: u32 = *index,
        /// What the job's processes have of its memory, in MiB; null where the driver does not say so.
        own_mib: Option<u64> = part(own),
        /// What its driver says of it, whoever is on it; null if that says nothing.
        gpu: Option<GpuPart<'a>> =
            machine.gpus.iter().find(|gpu| gpu.index == *index).map(GpuPart::from),
    }

    /// What a machine says of itself; null where it says nothing.
    pub struct MachinePart<'a> from machine: &'a MachineFact {
        /// What it calls itself.
        hostname: &'a str,
        /// CPUs that a program may use.
        cpus: Option<u32>,
        /// How many programs wanted a CPU at a time, in the last minute.
        load: Option<f64>,
        /// Memory, in MiB.
        mem_mib: Option<u64> = part(&machine.memory),
        /// Memory that a program can still have, in MiB.
        free_mib: Option<u64> = part(&machine.available),
        /// What is free on the disk of the account's home, in MiB.
        free_disk_mib: Option<u64> = part(&machine.free_disk),
        /// Accelerators.
        gpus: Vec<GpuPart<'a>>,
        /// The version of tmux.
        tmux: Option<&'a str>,
        /// The version of Python.
        python: Option<&'a str>,
    }

    /// An accelerator; null where it says nothing.
    pub struct GpuPart<'a> from gpu: &'a GpuFact {
        /// Its number, as its driver counts.
        index: u32,
        /// What it is.
        model: Option<&'a str>,
        /// How much of the last moment it was at work, in per cent.
        use_percent: Option<u32>,
        /// Its memory that is in use, in MiB.
        used_mib: Option<u64> = part(&gpu.used),
        /// Its memory, in MiB.
        mem_mib: Option<u64> = part(&gpu.memory),
        /// How hot it is, in degrees Celsius.
        celsius: Option<u32>,
        /// Accounts whose programs are on it.
        users: Vec<&'a str> = gpu.processes.iter().map(|process| process.user.as_str()).collect(),
    }
}

impl<'a> JobFiguresPart<'a> {
    /// The figures of all jobs on a machine; nothing if its processes could not be looked at.
    fn all(seen: &'a SeenFigures, now: Timestamp) -> Option<Vec<Self>> {
        let one = |(job, figures): &'a (JobId, JobFigures)| Self::from((figures, job, seen, now));
        Some(seen.jobs.as_ref()?.iter().map(one).collect())
    }

    /// The figures of these jobs, as far as some are known: each with the target that it is on.
    pub fn of(
        figures: &'a Figures,
        jobs: impl IntoIterator<Item = (&'a JobId, &'a TargetName)>,
        now: Timestamp,
    ) -> Vec<Self> {
        let one = |(job, target): (&'a JobId, &'a TargetName)| {
            let host = figures.get(target)?;
            Some(Self::from((host.job(job, now)?, job, host.known(now)?, now)))
        };
        jobs.into_iter().filter_map(one).collect()
    }
}
