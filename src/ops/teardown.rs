//! Takes a job away together with the machines that it ran on, as JobMan's `delete` does.
//!
//! ```text
//! job stopped ── its target deleted, and gone by its provider's word ── record archived
//! ```
//! In this order, and no further than each step holds: a record that is there says what is still being paid for.

use crate::model::facts::TargetState;
use crate::model::ids::{JobId, TargetName};
use crate::model::job::Status;
use crate::model::target::{Machines, Target};

use super::clean::{self, Cleaned, Ends, Extent};
use super::ctx::job_of;
use super::provision::{self, Change};
use super::{Ctx, Error, fleet, kill, snapshot};

/// What was taken away.
#[derive(Debug)]
pub struct TornDown {
    /// Its target, if that was a provider's and is gone now.
    pub target: Option<TargetName>,
    /// What has become of its records.
    pub cleaned: Cleaned,
}

/// The target that goes with a job: one that a provider has made, and would make anew.
pub fn target_of(ctx: &Ctx, leaf: &JobId) -> Result<Option<Target>, Error> {
    let data = ctx.data()?;
    let target = data.target(&job_of(&data, leaf)?.tpu);
    Ok(target.filter(|target| target.machines == Machines::Provided && !target.is_here()))
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
    let extent = Extent { force: true, ..Extent::of(Ends::All) };
    let cleaned = clean::clean_some(ctx, &leaf.user, std::slice::from_ref(leaf), extent)?;
    match cleaned.kept.iter().find(|kept| kept.job == *leaf) {
        Some(kept) => Err(Error::refused(format!("{leaf} stays: {}", kept.reason))
            .hint(format!("`tpu clean w={}` tries again", leaf.window))),
        None => Ok(TornDown { target: target.map(|target| target.name), cleaned }),
    }
}

/// Stops what may be at work of it, and what a rule would bring back: else its target might be made anew while it is
/// being deleted, and nobody would know for whom.
fn stop(ctx: &Ctx, leaf: &JobId) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, leaf)?;
    let is_over = !job.status.is_live() && !matches!(job.status, Status::Error(_));
    if is_over && !snapshot::may_be_at_work(job) {
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
