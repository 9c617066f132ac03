//! Asks machines about themselves, and keeps what they have as what they have for jobs.

use std::time::Duration;

use crate::base::named::named;
use crate::{Ctx, Error};
use tpu_core::model::capacity::Capacity;
use tpu_core::model::facts::MachineFact;
use tpu_core::model::host::Found;
use tpu_core::model::ids::TargetName;

use super::edit;
use super::probe::{self, Depth};

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
            });
            registration.host.get_or_insert_default().found = Some(found);
            tx.data.registry_mut().register(name.clone(), registration);
            tx.edited(None, format!("what {name} has was found out"));
        }
        Ok(())
    })?;
    Ok(asked)
}
