//! Asks machines about themselves, and keeps what they have as what they have for jobs.

use std::time::Duration;

use crate::base::named::named;
use crate::{Ctx, Error};
use tpu_core::model::capacity::Capacity;
use tpu_core::model::data::Data;
use tpu_core::model::facts::MachineFact;
use tpu_core::model::host::Found;
use tpu_core::model::ids::TargetName;
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::target::{Machines, Target};
use tpu_core::text::counted;

use super::edit;
use super::probe::{self, Depth, PATIENCE};

/// How long machines may take that somebody asks about themselves: a hundred of them, at 32 connections at a time, are
/// through in 10 s.
const ASKING: Duration = Duration::from_secs(9);

/// What a machine was asked about itself, and what it said.
pub type Asked = (TargetName, Result<MachineFact, String>);

/// Asks machines about themselves, and changes nothing.
pub fn ask(ctx: &Ctx, words: &[String]) -> Result<Vec<Asked>, Error> {
    about(ctx, words, Depth::State)
}

fn about(ctx: &Ctx, words: &[String], depth: Depth) -> Result<Vec<Asked>, Error> {
    let data = ctx.data()?;
    let targets = named(&data, words)?;
    let answers = probe::machines(ctx, &data, &targets, (depth, ASKING));
    Ok(targets.into_iter().map(|target| target.name).zip(answers).collect())
}

/// What is kept of an answer. What a driver that says nothing has is what it had.
fn found_now(fact: &MachineFact, was: Found) -> Found {
    let found = fact.found();
    if fact.silent_driver.is_none() {
        return found;
    }
    let Found { gpus, accelerators, model, .. } = was;
    Found { gpus, accelerators, model, ..found }
}

/// Asks machines what they have, and keeps it: CPUs, memory and GPUs as what they have for jobs, all else for people.
pub fn detect(ctx: &Ctx, words: &[String]) -> Result<Vec<Asked>, Error> {
    let asked = about(ctx, words, Depth::Versions)?;
    ctx.transact(|tx| {
        for (name, answer) in &asked {
            let (Ok(fact), Some(target)) = (answer, tx.data.target(name)) else { continue };
            let mut registration = edit::registration(&tx.data, &target);
            let was = registration.host.as_ref().and_then(|host| host.found.clone());
            let found = found_now(fact, was.unwrap_or_default());
            registration.capacity = Some(Capacity {
                jobs: target.capacity.jobs,
                gpus: found.gpus.or(target.capacity.gpus),
                cpus: found.cpus.or(target.capacity.cpus),
                memory: found.memory.or(target.capacity.memory),
                queue_cpus: target.capacity.queue_cpus,
            });
            registration.host.get_or_insert_default().found = Some(found);
            tx.data.registry_mut().register(name.clone(), registration);
            tx.edited(None, format!("what {name} has was found out"));
        }
        Ok(())
    })?;
    Ok(asked)
}

/// Finds out how many GPUs the machines of a job have, where it asks for some and nobody has said how many there are. A
/// driver that fails or does not answer leaves the number unknown: nothing is kept then. The job is refused where no
/// machine is left for it.
pub(crate) fn on_first_need(ctx: &Ctx, spec: &JobSpec) -> Result<(), Error> {
    let words = match &spec.target {
        TargetRequest::Named(name) => std::slice::from_ref(name),
        TargetRequest::Any(any_of) => any_of.among.as_slice(),
    };
    if !spec.ask.gpus.is_some() {
        return Ok(());
    }
    let data = ctx.data()?;
    // What is not known at all is complained of later.
    let mut targets = named(&data, words).unwrap_or_default();
    if targets.iter().any(|target| target.capacity.gpus.is_some()) {
        return Ok(());
    }
    targets.retain(|target| is_uncounted_machine(&data, target));
    if targets.is_empty() {
        return Ok(());
    }
    let answers = probe::machines(ctx, &data, &targets, (Depth::Versions, PATIENCE));
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for (target, answer) in targets.iter().zip(answers) {
        match answer.and_then(|fact| counted_gpus(&fact)) {
            Ok(Some(machine)) => found.push((target, machine)),
            Ok(None) => {}
            Err(why) => unknown.push(unknown_gpus(target, &why)),
        }
    }
    if found.is_empty() {
        // Where there are none, the job is refused by what there is.
        return unknown.into_iter().next().map_or(Ok(()), Err);
    }
    keep_gpus(ctx, &found)
}

/// What a machine has, if it has GPUs; or why that is not known.
fn counted_gpus(fact: &MachineFact) -> Result<Option<Found>, String> {
    match &fact.silent_driver {
        Some(driver) => Err(format!("{driver} does not answer")),
        None => Ok(Some(fact.found()).filter(|found| found.gpus.is_some())),
    }
}

/// Keeps how many GPUs machines have, and says so: from then on they are given out.
fn keep_gpus(ctx: &Ctx, machines: &[(&Target, Found)]) -> Result<(), Error> {
    let kept = ctx.transact(|tx| {
        let mut kept = Vec::new();
        for (target, found) in machines {
            let Some(target) = tx.data.target(&target.name) else { continue };
            if !is_uncounted_machine(&tx.data, &target) {
                continue;
            }
            let mut registration = edit::registration(&tx.data, &target);
            registration.capacity = Some(Capacity { gpus: found.gpus, ..target.capacity });
            registration.host.get_or_insert_default().found = Some(found.clone());
            tx.data.registry_mut().register(target.name.clone(), registration);
            tx.edited(None, format!("the GPUs of {} were found out", target.name));
            let count = found.gpus.and_then(|count| usize::try_from(count).ok());
            kept.push((target.name, count.unwrap_or_default()));
        }
        Ok(kept)
    })?;
    ctx.warn(kept.iter().map(|(name, count)| {
        let gpus = counted(*count, "GPU");
        format!("found {gpus} on {name}: from now on a job there sees those that it asks for, as in gpus=1")
    }));
    Ok(())
}

/// Whether it is this machine or one that somebody has added, and nobody has said how many GPUs it has.
fn is_uncounted_machine(data: &Data, target: &Target) -> bool {
    let is_host = || data.registration(&target.name).is_some_and(|known| known.host.is_some());
    let is_machine = match target.machines {
        Machines::Here => true,
        Machines::Fixed => is_host(),
        Machines::Provided | Machines::Engine => false,
    };
    is_machine && target.capacity.gpus.is_none()
}

fn unknown_gpus(target: &Target, why: &str) -> Error {
    let name = &target.name;
    Error::unreachable(format!("tpu does not know {} GPUs: {why}", whose(target))).hint(format!(
        "ask again: tpu hosts detect {name}; or say how many it has: tpu hosts set {name} --gpus N"
    ))
}

/// Whose something is, in words: `this machine's`, `gpu1's`.
pub(crate) fn whose(target: &Target) -> String {
    if target.is_here() { "this machine's".to_owned() } else { format!("{}'s", target.name) }
}
