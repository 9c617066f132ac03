//! Takes a job away together with the machines that it ran on, as JobMan's `delete` does.
//!
//! ```text
//! job stopped ── its target deleted, and gone by its provider's word ── record archived
//! ```
//! In this order, and no further than each step holds: a record that is there says what is still being paid for.

use tpu_core::model::data::Data;
use tpu_core::model::facts::TargetState;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::lineage::Lineage;
use tpu_core::model::target::{Machines, Target};

use super::clean::{self, Ends, Extent};
use crate::act::provision::{self, Change};
use crate::act::{kill, record_facts};
use crate::base::ctx::job_of;
use crate::base::records;
use crate::observe::fleet;
use crate::{Ctx, Error};

/// What was taken away.
#[derive(Debug)]
pub struct TornDown {
    /// Its target, if that was a provider's and is gone now.
    pub target: Option<TargetName>,
    /// Targets on which it was before, and which stay.
    pub left: Vec<TargetName>,
}

/// The target that goes with a job: one that a provider has made, and would make anew.
pub fn target_of(ctx: &Ctx, leaf: &JobId) -> Result<Option<Target>, Error> {
    let data = ctx.data()?;
    let name = &job_of(&data, leaf)?.tpu;
    let target = data.target(name).ok_or_else(|| {
        Error::refused(format!("{name}, where {leaf} ran, is not known any more: it may be there"))
            .hint(format!("once it is not: tpu clean w={} {}", leaf.window, leaf.user))
    })?;
    Ok(Some(target).filter(is_made))
}

/// Whether a provider has made it, and would make it anew.
fn is_made(target: &Target) -> bool {
    target.machines == Machines::Provided && !target.is_here()
}

/// The targets on which a job was in earlier attempts alone.
fn left(data: &Data, leaf: &JobId) -> Vec<TargetName> {
    let Some(user) = data.user(&leaf.user) else { return Vec::new() };
    let windows = Lineage::of(user, leaf.window).map(|lineage| lineage.windows).unwrap_or_default();
    let last = user.job(leaf.window).map(|job| &job.tpu);
    let jobs = windows.into_iter().filter_map(|window| user.job(window));
    let mut names: Vec<TargetName> = Vec::new();
    for job in jobs.filter(|job| Some(&job.tpu) != last) {
        let is_meant = data.target(&job.tpu).is_none_or(|target| is_made(&target));
        if is_meant && !names.contains(&job.tpu) {
            names.push(job.tpu.clone());
        }
    }
    names
}

/// Refuses where somebody else is at work on what would go.
pub fn may_tear_down(ctx: &Ctx, leaf: &JobId) -> Result<(), Error> {
    let Some(target) = target_of(ctx, leaf)? else { return Ok(()) };
    provision::unused(ctx, &target.name, Some(leaf))
}

/// Stops a job, deletes its target, and archives its lineage. The newest attempt is named.
pub fn tear_down(ctx: &Ctx, leaf: &JobId) -> Result<TornDown, Error> {
    may_tear_down(ctx, leaf)?;
    let target = target_of(ctx, leaf)?;
    stop(ctx, leaf)?;
    if let Some(target) = &target {
        delete(ctx, target)?;
    }
    let left = left(&*ctx.data()?, leaf);
    let extent = Extent { force: true, ..Extent::of(Ends::All) };
    let cleaned = clean::clean_some(ctx, &leaf.user, std::slice::from_ref(leaf), extent)?;
    if cleaned.archived.contains(leaf) {
        return Ok(TornDown { target: target.map(|target| target.name), left });
    }
    let kept = cleaned.kept.iter().find(|kept| kept.job == *leaf);
    let why = kept.map_or("it has changed meanwhile", |kept| kept.reason.as_str());
    Err(Error::refused(format!("the record of {leaf} stays: {why}"))
        .hint(format!("`tpu clean w={} {}` tries again", leaf.window, leaf.user)))
}

/// Stops what may be at work of it, and what a rule would bring back: else its target might be made anew while it is
/// being deleted, and nobody would know for whom.
fn stop(ctx: &Ctx, leaf: &JobId) -> Result<(), Error> {
    record_facts::record_ends(ctx, std::slice::from_ref(leaf))?;
    let data = ctx.data()?;
    let job = job_of(&data, leaf)?;
    let is_over = job.status.is_final() && !records::may_be_at_work(job);
    if is_over || kill::is_left_alone(job, ctx.clock.now()) {
        return Ok(());
    }
    match kill::kill(ctx, std::slice::from_ref(leaf), false).pop() {
        Some((_, Err(error))) => Err(error),
        Some((_, Ok(_))) | None => Ok(()),
    }
}

/// Deletes a target, unless it is gone. One that cannot be asked stays, and with it the record that tells of it.
fn delete(ctx: &Ctx, target: &Target) -> Result<(), Error> {
    let name = &target.name;
    let stays = |what: String| {
        Error::unreachable(what).hint("the record of its job stays as long: the same again, later")
    };
    let now = || -> Result<TargetState, Error> {
        let data = ctx.data()?;
        let fact = fleet::ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
        match fact.state {
            TargetState::Unknown => {
                Err(stays(format!("whether {name} is there is unknown: {}", fact.raw_state)))
            }
            state => Ok(state),
        }
    };
    if now()? == TargetState::Gone {
        return Ok(());
    }
    match provision::change(ctx, target, Change::Delete)?.state {
        TargetState::Gone => Ok(()),
        _ => match now()? {
            TargetState::Gone => Ok(()),
            _ => Err(stays(format!("{name} is still being deleted"))),
        },
    }
}
