//! Who gets a place on a target that jobs share, and which GPUs: the one decision about it.
//!
//! Who holds something is known by the caller: jobs that are at work or may be, and jobs of which nothing is known. A
//! job that was made by hand or by the original has no share, and holds one place.

use std::fmt;

use crate::model::capacity::{Ask, BusyGpus, Capacity, GpuAsk, Memory, Share};
use crate::model::ids::JobId;

/// A job that has a place.
#[derive(Clone, Debug)]
pub struct Tenant<'a> {
    /// Which.
    pub job: JobId,
    /// What it was given, where anything was counted then.
    pub share: Option<&'a Share>,
}

/// Why there is no place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Short {
    /// There are as many jobs as there may be.
    Jobs {
        /// Those.
        held: Vec<JobId>,
    },
    /// The queue starts no more beside these.
    Queue {
        /// So many CPUs may be taken together.
        cpus: u32,
        /// By whom they are.
        held: Vec<JobId>,
    },
    /// More is asked for than there is, whoever goes: waiting would not help.
    Lacks {
        /// What is asked for, and what there is, in words.
        what: String,
    },
    /// What is asked for is in use.
    Taken {
        /// What is asked for, and what is left, in words.
        what: String,
        /// Who has some of it.
        by: Vec<JobId>,
    },
}

/// In short, for a list of several targets.
impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Jobs { held } => write!(f, "it has {}", first_of(held)),
            Self::Queue { cpus, held } => {
                let these = first_of(held);
                write!(
                    f,
                    "the queue starts {cpus} at a time there, one for each core; it has {these}"
                )
            }
            Self::Taken { what, by } if by.is_empty() => f.write_str(what),
            Self::Taken { what, by } => write!(f, "{what}; the rest: {}", first_of(by)),
            Self::Lacks { what } => f.write_str(what),
        }
    }
}

/// The first of many, and how many more.
pub fn first_of(jobs: &[impl fmt::Display]) -> String {
    const MOST: usize = 5;
    let names: Vec<String> = jobs.iter().take(MOST).map(ToString::to_string).collect();
    match jobs.len().checked_sub(MOST).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", names.join(", ")),
        None => names.join(", "),
    }
}

/// What a job is given of a target, or why it is not. `busy` are GPUs that somebody else uses, with whom; `force`
/// passes over the number of jobs, and over CPUs and memory, but gives no GPU twice.
pub fn give(
    capacity: &Capacity,
    tenants: &[Tenant<'_>],
    busy: &BusyGpus,
    ask: &Ask,
    force: bool,
) -> Result<Share, Short> {
    let gpus = gpus(capacity, tenants, busy, ask)?;
    if !force {
        room(capacity, tenants)?;
        let cpus = |share: &Share| share.cpus.map(u64::from);
        let of = |count: Option<u32>| count.map(u64::from);
        enough((of(capacity.cpus), of(ask.cpus)), tenants, cpus, |n| format!("{n} CPUs"))?;
        let mib = |memory: Option<Memory>| memory.map(|Memory(mib)| mib);
        let held = |share: &Share| mib(share.memory);
        let said = |mib| format!("{} of memory", Memory(mib));
        enough((mib(capacity.memory), mib(ask.memory)), tenants, held, said)?;
    }
    Ok(Share { gpus, cpus: ask.cpus, memory: ask.memory, ..Share::default() })
}

/// Whether the queue may start one job more beside those that are there. GPUs are given out one by one: jobs that have
/// some, or ask for some, are not counted here. One job may always be there.
pub fn queue_starts(capacity: &Capacity, tenants: &[Tenant<'_>], ask: &Ask) -> Result<(), Short> {
    let Some(cpus) = capacity.of_queue().filter(|_| !ask.gpus.is_some()) else { return Ok(()) };
    let held: Vec<&Tenant<'_>> = tenants.iter().filter(|tenant| weight(tenant) > 0).collect();
    let taken: u64 = held.iter().map(|tenant| weight(tenant)).sum();
    let asked = u64::from(ask.cpus.unwrap_or(1));
    if held.is_empty() || taken + asked <= u64::from(cpus) {
        return Ok(());
    }
    Err(Short::Queue { cpus, held: held.into_iter().map(|tenant| tenant.job.clone()).collect() })
}

/// How many CPUs a job takes by which the queue is bound.
fn weight(tenant: &Tenant<'_>) -> u64 {
    let has_gpus = |share: &Share| share.gpus.as_ref().is_some_and(|gpus| !gpus.is_empty());
    match tenant.share {
        Some(share) if has_gpus(share) => 0,
        share => u64::from(share.and_then(|share| share.cpus).unwrap_or(1)),
    }
}

/// Whether one job more may be there.
fn room(capacity: &Capacity, tenants: &[Tenant<'_>]) -> Result<(), Short> {
    let most = capacity.jobs.map(|jobs| usize::try_from(jobs).unwrap_or(usize::MAX));
    match most {
        Some(most) if tenants.len() >= most => Err(Short::Jobs { held: ids(tenants) }),
        Some(_) | None => Ok(()),
    }
}

/// The GPUs of a job; `None` where nobody counts them.
fn gpus(
    capacity: &Capacity,
    tenants: &[Tenant<'_>],
    busy: &BusyGpus,
    ask: &Ask,
) -> Result<Option<Vec<u32>>, Short> {
    let Some(all) = capacity.gpus else {
        return match &ask.gpus {
            GpuAsk::Unsaid | GpuAsk::Count(0) => Ok(None),
            GpuAsk::Count(_) | GpuAsk::These(_) => {
                Err(Short::Lacks { what: "tpu does not know its GPUs".to_owned() })
            }
        };
    };
    let tenant_of = |gpu: u32| {
        let has = |share: &Share| share.gpus.as_ref().is_some_and(|held| held.contains(&gpu));
        tenants.iter().find(|tenant| tenant.share.is_some_and(has))
    };
    let free: Vec<u32> =
        (0..all).filter(|gpu| tenant_of(*gpu).is_none() && !busy.contains_key(gpu)).collect();
    let mut by: Vec<JobId> =
        (0..all).filter_map(tenant_of).map(|tenant| tenant.job.clone()).collect();
    by.dedup();
    let left = || {
        let strangers: Vec<&str> = busy.values().map(String::as_str).collect();
        let also = if strangers.is_empty() {
            String::new()
        } else {
            format!(", and {} use {}", strangers.join(", "), busy.len())
        };
        format!("{} of {all} GPUs are free{also}", free.len())
    };
    match &ask.gpus {
        // Whoever is alone there needs no word to use what is there.
        GpuAsk::Unsaid if capacity.jobs == Some(1) => Ok(Some(free)),
        GpuAsk::Unsaid => Ok(Some(Vec::new())),
        GpuAsk::Count(count) if *count > all => {
            Err(Short::Lacks { what: format!("{count} GPUs are asked for, and it has {all}") })
        }
        GpuAsk::Count(count) => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            match free.get(..count) {
                Some(given) => Ok(Some(given.to_vec())),
                None => Err(Short::Taken { what: left(), by }),
            }
        }
        GpuAsk::These(these) => {
            if let Some(missing) = these.iter().find(|gpu| **gpu >= all) {
                let what =
                    format!("it has no GPU {missing}: they are 0 to {}", all.saturating_sub(1));
                return Err(Short::Lacks { what });
            }
            match these.iter().find(|gpu| !free.contains(gpu)) {
                None => Ok(Some(these.clone())),
                Some(taken) => {
                    let stranger = busy.get(taken).map(|who| format!(" by {who}"));
                    let what = format!("GPU {taken} is in use{}", stranger.unwrap_or_default());
                    let by = tenant_of(*taken).map(|tenant| tenant.job.clone());
                    Err(Short::Taken { what, by: by.into_iter().collect() })
                }
            }
        }
    }
}

/// Whether there is enough left of something that is only counted. Without a limit there always is.
fn enough(
    (capacity, asked): (Option<u64>, Option<u64>),
    tenants: &[Tenant<'_>],
    of: impl Fn(&Share) -> Option<u64>,
    in_words: impl Fn(u64) -> String,
) -> Result<(), Short> {
    let (Some(all), Some(asked)) = (capacity, asked) else { return Ok(()) };
    if asked > all {
        let what = format!("{} are asked for, and it has {}", in_words(asked), in_words(all));
        return Err(Short::Lacks { what });
    }
    let has = |tenant: &&Tenant<'_>| tenant.share.and_then(&of).is_some_and(|held| held > 0);
    let held: u64 = tenants.iter().filter_map(|tenant| tenant.share.and_then(&of)).sum();
    let left = all.saturating_sub(held);
    if asked <= left {
        return Ok(());
    }
    let by = tenants.iter().filter(has).map(|tenant| tenant.job.clone()).collect();
    Err(Short::Taken { what: format!("{} of {} are free", in_words(left), in_words(all)), by })
}

fn ids(tenants: &[Tenant<'_>]) -> Vec<JobId> {
    tenants.iter().map(|tenant| tenant.job.clone()).collect()
}
