//! Whether a target has room for a job, first by the facts, then in the transaction that claims it: `plan::slots`
//! decides, who holds what is found out here.

use std::collections::BTreeMap;

use crate::model::capacity::{Capacity, Share};
use crate::model::data::Data;
use crate::model::ids::JobId;
use crate::model::job::Job;
use crate::model::spec::JobSpec;
use crate::model::target::{Machines, Target};
use crate::model::time::Timestamp;
use crate::ops::{Ctx, Error, board, snapshot};
use crate::plan::slots::{self, Short, Tenant};

use super::plan::{LaunchPlan, Provided};

/// Refuses a job that a target has no room for. Returns the records that claim it and are dead by the facts.
/// `but` is the attempt that the new one succeeds.
pub fn check(
    ctx: &Ctx,
    data: &Data,
    (target, spec): (&Target, &JobSpec),
    but: Option<&JobId>,
    (provided, force): (Provided, bool),
) -> Result<Vec<JobId>, Error> {
    if target.capacity.is_unlimited() {
        return give(target, &target.capacity, &[], spec, force).map(|_| Vec::new());
    }
    let users = snapshot::users_of_target(ctx, data, &target.name);
    let left = users.left.iter().filter(|_| provided != Provided::LaterByRule);
    let present = users.live.iter().chain(left).filter(|job| Some(*job) != but);
    let tenants: Vec<Tenant<'_>> = present
        .map(|id| Tenant {
            job: id.clone(),
            share: data.job(id).and_then(|job| job.share.as_ref()),
        })
        .collect();
    give(target, &target.capacity, &tenants, spec, force)?;
    Ok(if force { Vec::new() } else { users.dead })
}

/// The same in the transaction that claims the job: what it is given. A job that has failed since the check may
/// still be at work.
pub(super) fn claim(data: &Data, plan: &LaunchPlan) -> Result<Option<Share>, Error> {
    let name = &plan.target.name;
    // The limits of now: somebody may have set others since the check.
    let capacity = data.target(name).map_or(plan.target.capacity, |target| target.capacity);
    if capacity.is_unlimited() {
        return Ok(None);
    }
    let parent = plan.parent.as_ref().map(|p| JobId::new(plan.user.clone(), p.window));
    let tenants: Vec<Tenant<'_>> = data
        .jobs()
        .filter(|job| job.tpu == *name && holds(job) && Some(job.id()) != parent)
        .filter(|job| !plan.known_dead.contains(&job.id()))
        .map(|job| Tenant { job: job.id(), share: job.share.as_ref() })
        .collect();
    give(&plan.target, &capacity, &tenants, &plan.spec, plan.force)
        .map(|share| Some(share).filter(|share| *share != Share::default()))
}

/// Nobody keeps the target for himself.
pub(super) fn may_take(data: &Data, plan: &LaunchPlan, now: Timestamp) -> Result<(), Error> {
    if plan.target.capacity.is_unlimited() || plan.force {
        return Ok(());
    }
    board::may_take(data, &plan.target.name, &plan.user, now)
}

/// Whether a record holds a place, as far as records tell.
pub(crate) fn holds(job: &Job) -> bool {
    job.status.is_live() || snapshot::may_be_at_work(job)
}

fn give(
    target: &Target,
    capacity: &Capacity,
    tenants: &[Tenant<'_>],
    spec: &JobSpec,
    force: bool,
) -> Result<Share, Error> {
    if target.machines == Machines::Engine {
        return engine(target, spec);
    }
    slots::give(capacity, tenants, &BTreeMap::new(), &spec.ask, force)
        .map_err(|short| refusal(target, short))
}

/// An engine gives out what it has by itself, in words of its own.
fn engine(target: &Target, spec: &JobSpec) -> Result<Share, Error> {
    if spec.ask.is_empty() {
        return Ok(Share::default());
    }
    let what = format!("{} gives out GPUs, CPUs and memory by itself", target.name);
    Err(Error::usage(what).hint("ask in its own words: `tpu run --help` lists them"))
}

/// Why there is no room, and what would make some.
fn refusal(target: &Target, short: Short) -> Error {
    let name = &target.name;
    let others = "take another target, or use --force";
    match short {
        Short::Jobs { held } => {
            let list = list(&held);
            let most = target.capacity.jobs.unwrap_or_default();
            let what = match held.as_slice() {
                [_] if most == 1 => format!("{name} is in use by {list}"),
                _ => format!("{name} takes {most} jobs at a time, and has {list}"),
            };
            Error::refused(what).hint(match held.first() {
                Some(job) => {
                    format!("kill it (tpu kill w={} {}), {others}", job.window, job.user)
                }
                None => others.to_owned(),
            })
        }
        Short::Taken { what, by } => {
            let of =
                if by.is_empty() { String::new() } else { format!("; {} has the rest", list(&by)) };
            Error::refused(format!("{name} has no room: {what}{of}"))
                .hint("wait for those, ask for less, or take another target")
        }
        Short::Lacks { what } => Error::usage(format!("{name} cannot run it: {what}"))
            .hint(format!("ask for less; `tpu show-target {name}` says what it has")),
    }
}

/// The first of many, and how many more.
fn list(jobs: &[JobId]) -> String {
    const MOST: usize = 5;
    let names: Vec<String> = jobs.iter().take(MOST).map(ToString::to_string).collect();
    match jobs.len().checked_sub(MOST).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", names.join(", ")),
        None => names.join(", "),
    }
}
