//! Changes what is kept of hosts: what they have for jobs, whether any may begin there, by what they are found.

use crate::act::targets;
use crate::base::account::name_at_work;
use crate::base::named::named;
use crate::{Ctx, Error};
use tpu_core::model::capacity::Capacity;
use tpu_core::model::data::Data;
use tpu_core::model::host::{Drained, HostRecord};
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::{LOCAL, Machines, Registration, Target};
use tpu_core::text::escape;
use tpu_system::sys::threads;

use super::Limits;

/// What is to be kept of machines from now on; what is not said stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostEdit {
    /// What they have for jobs.
    pub limits: Limits,
    /// The pools that they are in.
    pub pools: Option<Vec<String>>,
    /// Words by which they are found.
    pub tags: Option<Vec<String>>,
    /// What is read there before a command begins.
    pub pyenv: Option<Option<String>>,
}

impl HostEdit {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same registration with what is said.
    fn applied(&self, target: &Target, was: Registration) -> Registration {
        let Self { limits, pools, tags, pyenv } = self;
        let mut new = was;
        if *limits != Limits::default() {
            new.capacity = Some(limits.of(target.capacity));
        }
        if pools.is_some() || tags.is_some() || pyenv.is_some() {
            let host = new.host.get_or_insert_default();
            host.pools = pools.clone().unwrap_or_else(|| std::mem::take(&mut host.pools));
            host.tags = tags.clone().unwrap_or_else(|| std::mem::take(&mut host.tags));
            host.pyenv = pyenv.clone().unwrap_or_else(|| host.pyenv.take());
        }
        new
    }

    /// What it says, for the journal.
    fn in_words(&self, capacity: &Capacity) -> String {
        let list = |name: &str, words: &Option<Vec<String>>| {
            words.as_ref().map(|words| match words.as_slice() {
                [] => format!("no {name}"),
                words => format!("{name} {}", words.join(", ")),
            })
        };
        let pyenv = self.pyenv.as_ref().map(|file| match file {
            Some(file) => format!("reads {file}"),
            None => "reads no environment".to_owned(),
        });
        let takes = (self.limits != Limits::default())
            .then(|| format!("takes {}", super::in_words(capacity)));
        let all = [takes, list("pools", &self.pools), list("tags", &self.tags), pyenv];
        all.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// What is done to hosts.
#[derive(Clone, Debug)]
pub enum HostChange<'a> {
    /// Nothing new begins there, for this reason.
    Drain(Option<&'a str>),
    /// Jobs begin there again.
    Undrain,
    /// They are forgotten.
    Remove,
    /// What is kept of them is set.
    Set(HostEdit),
}

/// What became of hosts.
#[derive(Clone, Debug)]
pub enum HostsChanged {
    /// They are open, closed or gone, which the words say.
    State(Vec<TargetName>, &'static str),
    /// They have this for jobs from now on.
    Capacity(Vec<(TargetName, Capacity)>),
}

impl HostsChanged {
    /// A line for each.
    pub fn in_words(&self) -> String {
        let line = |name: &TargetName, how: &str| format!("{} {how}.\n", escape(name.as_str()));
        match self {
            Self::State(hosts, how) => hosts.iter().map(|name| line(name, how)).collect(),
            Self::Capacity(hosts) => {
                let takes = |has: &Capacity| format!("takes {}", super::in_words(has));
                hosts.iter().map(|(name, has)| line(name, &takes(has))).collect()
            }
        }
    }
}

/// Changes hosts. The words may be patterns.
pub fn apply(ctx: &Ctx, words: &[String], change: HostChange<'_>) -> Result<HostsChanged, Error> {
    Ok(match change {
        HostChange::Drain(why) => HostsChanged::State(drain(ctx, words, why)?, CLOSED),
        HostChange::Undrain => HostsChanged::State(undrain(ctx, words)?, OPEN),
        HostChange::Remove => HostsChanged::State(remove(ctx, words)?, "is forgotten"),
        HostChange::Set(edit) => HostsChanged::Capacity(set(ctx, words, &edit)?),
    })
}

const CLOSED: &str = "takes no new jobs";
const OPEN: &str = "takes jobs again";

/// Sets what is kept of targets: for jobs that start from then on. The words may be patterns.
pub fn set(
    ctx: &Ctx,
    words: &[String],
    edit: &HostEdit,
) -> Result<Vec<(TargetName, Capacity)>, Error> {
    ctx.transact(|tx| {
        let mut changed = Vec::new();
        for target in named(&tx.data, words)? {
            may_be_set(&target, edit)?;
            edit.pools
                .iter()
                .chain(&edit.tags)
                .flatten()
                .try_for_each(|word| may_group(&tx.data, word))?;
            let registration = edit.applied(&target, registration(&tx.data, &target));
            tx.data.registry_mut().register(target.name.clone(), registration);
            let capacity = edit.limits.of(target.capacity);
            tx.edited(None, format!("{}: {}", target.name, edit.in_words(&capacity)));
            changed.push((target.name, capacity));
        }
        Ok(changed)
    })
}

/// A data file with which a lab begins: the queue starts as many jobs on this machine as it has cores, until somebody
/// says a number. Files of earlier versions say nothing of it, and their queues start any number.
pub(crate) fn new_lab(mut data: Data) -> Data {
    let cores = u32::try_from(threads::cores()).unwrap_or(u32::MAX);
    if let Some(target) = data.target(&TargetName::from(LOCAL)) {
        let capacity = Some(Capacity { queue_cpus: Some(cores), ..target.capacity });
        let local = Registration { capacity, ..registration(&data, &target) };
        data.registry_mut().register(target.name, local);
    }
    data
}

/// Refuses a word for several machines that is one target: it would mean that one.
pub(super) fn may_group(data: &Data, word: &str) -> Result<(), Error> {
    match data.resolve_target(word) {
        None => Ok(()),
        Some(target) => Err(Error::usage(format!(
            "'{word}' cannot name a pool: it is the target {}",
            target.name
        ))
        .hint("take another word")),
    }
}

fn may_be_set(target: &Target, edit: &HostEdit) -> Result<(), Error> {
    let name = &target.name;
    if target.machines == Machines::Engine {
        let what = format!("{name} gives out what it has by itself");
        return Err(Error::refused(what).hint("its engine has limits of its own"));
    }
    if target.is_here() && edit.pyenv.iter().any(Option::is_some) {
        let what =
            format!("{name} is this machine: jobs have the environment of whoever starts them");
        return Err(Error::usage(what).hint("activate it there, then: tpu run"));
    }
    Ok(())
}

/// Changes what is kept of machines. Those of other kinds become hosts by it.
fn change(
    ctx: &Ctx,
    words: &[String],
    what: impl Fn(&mut HostRecord, &TargetName),
    in_words: &str,
) -> Result<Vec<TargetName>, Error> {
    ctx.transact(|tx| {
        let mut changed = Vec::new();
        for target in named(&tx.data, words)? {
            if target.machines == Machines::Engine {
                let refusal =
                    format!("{} has an engine, which knows its own machines", target.name);
                return Err(Error::refused(refusal).hint("its administrators drain its nodes"));
            }
            let mut registration = registration(&tx.data, &target);
            what(registration.host.get_or_insert_default(), &target.name);
            tx.data.registry_mut().register(target.name.clone(), registration);
            tx.edited(None, format!("{} {in_words}", target.name));
            changed.push(target.name);
        }
        Ok(changed)
    })
}

/// Lets nothing new begin on machines. What is at work there is left alone.
pub fn drain(ctx: &Ctx, words: &[String], why: Option<&str>) -> Result<Vec<TargetName>, Error> {
    let by = name_at_work(ctx, &*ctx.data()?);
    let drained = Drained { by, since: ctx.clock.now(), why: why.map(str::to_owned) };
    change(ctx, words, |host, _| host.drained = Some(drained.clone()), CLOSED)
}

/// Lets jobs begin on machines again.
pub fn undrain(ctx: &Ctx, words: &[String]) -> Result<Vec<TargetName>, Error> {
    change(ctx, words, |host, _| host.drained = None, OPEN)
}

/// Forgets machines. Refused while a job may be at work on one of them; none is forgotten then.
pub fn remove(ctx: &Ctx, words: &[String]) -> Result<Vec<TargetName>, Error> {
    let data = ctx.data()?;
    let targets = named(&data, words)?;
    for target in &targets {
        targets::refuse_forgetting(ctx, &data, target)?;
    }
    targets.iter().map(|target| targets::forget(ctx, target.name.as_str())).collect()
}

/// The registration of a target, or the one that says what is known of it so far.
pub(super) fn registration(data: &Data, target: &Target) -> Registration {
    let known = data.registration(&target.name).cloned();
    known.unwrap_or_else(|| Registration {
        kind: target.kind.clone(),
        zone: target.zone.clone(),
        pricing: target.pricing,
        ..Registration::default()
    })
}
