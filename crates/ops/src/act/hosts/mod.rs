//! Machines that are somebody's own, and this one: what they have for jobs, and who has it.

use std::collections::BTreeMap;

use tpu_core::model::capacity::{Capacity, Memory, Share};
use tpu_core::model::data::Data;
use tpu_core::model::figures::HostFigures;
use tpu_core::model::host::HostRecord;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::target::{Machines, Target};

use crate::base::error::did_you_mean;
use crate::base::named::named;
use crate::observe::snapshot;
use crate::{Ctx, Error};

pub mod add;
pub mod choose;
pub mod detect;
pub mod disk;
pub mod edit;
pub mod elsewhere;
pub mod figures;
mod heard_lately;
pub mod probe;
pub mod words;

/// A machine and those who have a place there.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// What it is called.
    pub name: TargetName,
    /// Where it is reached; nowhere for this machine.
    pub addresses: Vec<String>,
    /// What it has for jobs.
    pub capacity: Capacity,
    /// What is kept of it.
    pub record: HostRecord,
    /// Who has a place there, and what each was given.
    pub jobs: Vec<(JobId, Option<Share>)>,
    /// What it said last, if it is asked at all.
    pub figures: Option<HostFigures>,
}

impl Host {
    /// How many GPUs are in use, where they are counted.
    pub(crate) fn gpus_in_use(&self) -> usize {
        let of = |share: &Share| share.gpus.as_ref().map_or(0, Vec::len);
        self.jobs.iter().filter_map(|(_, share)| share.as_ref()).map(of).sum()
    }

    /// The job that was given an accelerator.
    pub fn who_has(&self, gpu: u32) -> Option<&JobId> {
        let has = |share: &Share| share.gpus.as_ref().is_some_and(|gpus| gpus.contains(&gpu));
        self.jobs.iter().find(|(_, share)| share.as_ref().is_some_and(has)).map(|(job, _)| job)
    }
}

/// A new limit: so much, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit<T>(pub Option<T>);

/// What is to be changed of a capacity; what is not said stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Jobs at a time.
    pub jobs: Option<Limit<u32>>,
    /// GPUs.
    pub gpus: Option<Limit<u32>>,
    /// CPUs.
    pub cpus: Option<Limit<u32>>,
    /// Memory.
    pub memory: Option<Limit<Memory>>,
}

impl Limits {
    /// What a target has for jobs then.
    fn of(self, was: Capacity) -> Capacity {
        fn one<T>(new: Option<Limit<T>>, was: Option<T>) -> Option<T> {
            new.map_or(was, |Limit(new)| new)
        }
        Capacity {
            jobs: one(self.jobs, was.jobs),
            gpus: one(self.gpus, was.gpus),
            cpus: one(self.cpus, was.cpus),
            memory: one(self.memory, was.memory),
            queue_cpus: was.queue_cpus.filter(|_| self.jobs.is_none()),
        }
    }
}

/// Reads a limit: a number that is not 0, or `none`.
pub fn limit(option: &str, text: &str) -> Result<Limit<u32>, Error> {
    let number = || text.parse().ok().filter(|number| *number > 0).map(Some);
    match if text == "none" { Some(None) } else { number() } {
        Some(limit) => Ok(Limit(limit)),
        None => Err(Error::usage(format!("--{option} {text}: a number, or `none`"))
            .hint(format!("as in --{option} 2; `none` takes the limit away"))),
    }
}

/// Reads an amount of memory, or `none`.
pub fn memory_limit(text: &str) -> Result<Limit<Memory>, Error> {
    match if text == "none" { Some(None) } else { Memory::parse(text).map(Some) } {
        Some(limit) => Ok(Limit(limit)),
        None => Err(Error::usage(format!("--mem {text}: an amount of memory, or `none`"))
            .hint("as in --mem 256G")),
    }
}

/// Machines by what is typed, or every one of somebody's own, this one first: by the facts, who is there.
pub fn list(ctx: &Ctx, words: &[String]) -> Result<Vec<Host>, Error> {
    let data = ctx.data()?;
    let mut users = snapshot::users_of_targets(ctx, &data, |_| true);
    let mut figures = figures::last(ctx, &data);
    let targets = if words.is_empty() { own(&data).collect() } else { named(&data, words)? };
    let one = |target: Target| {
        let present = users.remove(&target.name).unwrap_or_default().present();
        Host { figures: figures.remove(&target.name), ..place(&data, target, present) }
    };
    Ok(targets.into_iter().map(one).collect())
}

/// A machine with those who have a place there, without figures.
fn place(data: &Data, target: Target, present: Vec<JobId>) -> Host {
    let share = |id: &JobId| data.job(id).and_then(|job| job.share.clone());
    Host {
        addresses: addresses(data, &target.name),
        jobs: present.into_iter().map(|id| (id.clone(), share(&id))).collect(),
        capacity: target.capacity,
        record: record(data, &target.name),
        name: target.name,
        figures: None,
    }
}

/// Every machine of somebody's own, and this one, with those who have a place there by `present`; without figures.
pub fn places(data: &Data, present: impl Fn(&TargetName) -> Vec<JobId>) -> Vec<Host> {
    let one = |target: Target| {
        let jobs = present(&target.name);
        place(data, target, jobs)
    };
    own(data).map(one).collect()
}

/// The machines of somebody's own, this one first.
fn own(data: &Data) -> impl Iterator<Item = Target> {
    let built_in: Vec<TargetName> =
        Target::built_in().into_iter().map(|target| target.name).collect();
    // What is there by itself is registered as well once somebody has set something of it.
    let mut names = data.registry().names();
    names.retain(|name| !built_in.contains(name));
    built_in.into_iter().chain(names).filter_map(|name| data.target(&name)).filter(is_own)
}

/// Some machines that go by one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// The name.
    pub name: String,
    /// The machines.
    pub hosts: Vec<TargetName>,
    /// On how many of them jobs may begin.
    pub open: usize,
}

/// Every pool, in the order of their names.
pub fn pools(ctx: &Ctx) -> Result<Vec<Pool>, Error> {
    let data = ctx.data()?;
    let mut pools: BTreeMap<&str, Pool> = BTreeMap::new();
    for (name, registration) in data.registry().registrations() {
        let Some(host) = &registration.host else { continue };
        for word in &host.pools {
            let new = || Pool { name: word.clone(), hosts: Vec::new(), open: 0 };
            let pool = pools.entry(word).or_insert_with(new);
            pool.hosts.push(name.clone());
            pool.open += usize::from(host.drained.is_none());
        }
    }
    Ok(pools.into_values().collect())
}

/// Refuses words that are no pools.
pub fn refuse_no_pool(ctx: &Ctx, words: &[String]) -> Result<(), Error> {
    let pools = pools(ctx)?;
    let known = || pools.iter().map(|pool| pool.name.as_str());
    match words.iter().find(|word| known().all(|pool| pool != word.as_str())) {
        None => Ok(()),
        Some(word) => {
            let hint = did_you_mean(word, known()).unwrap_or_else(|| {
                "`tpu pools` lists them; `tpu hosts set HOST --pool NAME`".to_owned()
            });
            Err(Error::not_found(format!("no pool '{word}'")).hint(hint))
        }
    }
}

fn is_own(target: &Target) -> bool {
    matches!(target.machines, Machines::Fixed | Machines::Here)
}

fn record(data: &Data, name: &TargetName) -> HostRecord {
    data.registration(name).and_then(|known| known.host.clone()).unwrap_or_default()
}

fn addresses(data: &Data, name: &TargetName) -> Vec<String> {
    data.registration(name).map(|known| known.addresses.clone()).unwrap_or_default()
}

/// A capacity for people: `2 jobs at a time, 8 GPUs`.
pub fn in_words(capacity: &Capacity) -> String {
    let counted = |count: u32, one: &str, many: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    };
    let parts = [
        capacity.jobs.map(|count| counted(count, "job at a time", "jobs at a time")),
        capacity.gpus.map(|count| counted(count, "GPU", "GPUs")),
        capacity.cpus.map(|count| counted(count, "CPU", "CPUs")),
        capacity.memory.map(|memory| format!("{memory} of memory")),
    ];
    let mut said: Vec<String> = parts.into_iter().flatten().collect();
    if said.is_empty() {
        said.push("any number of jobs".to_owned());
    }
    said.extend(
        capacity
            .of_queue()
            .map(|cpus| format!("the queue starts {cpus} at a time, one for each core")),
    );
    said.join(", ")
}
