//! Whether a target has room for a job, first by the facts, then in the transaction that claims it: `plan::slots`
//! decides, who holds what is found out here.

use crate::act::hosts::detect;
use crate::act::lately::Lately;
use crate::base::queue_entries::occupancy::holds;
use crate::base::reservations;
use crate::{Ctx, Error};
use tpu_core::model::capacity::{Ask, BusyGpus, Capacity, Share};
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::time::Timestamp;
use tpu_core::plan::slots::{self, Short, Tenant};

use super::plan::{LaunchPlan, Occupants, Provided};

/// A job that wants a place on a target.
#[derive(Clone, Copy)]
pub struct Applicant<'a> {
    /// The target.
    pub target: &'a Target,
    /// What the job asks of it.
    pub ask: &'a Ask,
    /// GPUs on which somebody else is at work, with whom.
    pub busy: &'a BusyGpus,
    /// The attempt that the new one succeeds.
    pub but: Option<&'a JobId>,
    /// Whether the queue starts it.
    pub is_queued: bool,
}

impl Applicant<'_> {
    /// Whether it begins there whoever is there.
    fn is_unbound(&self, capacity: &Capacity) -> bool {
        capacity.is_unlimited() && !(self.is_queued && capacity.of_queue().is_some())
    }

    /// Whether it is written down what it takes there: also of what is started by hand, since the queue counts that.
    fn is_counted(&self, capacity: &Capacity) -> bool {
        !self.is_unbound(capacity) || capacity.of_queue().is_some()
    }
}

/// Refuses a job that a target has no room for. Returns who is there by the facts.
pub(crate) fn check(
    ctx: &Ctx,
    data: &Data,
    applicant: &Applicant<'_>,
    (provided, force): (Provided, bool),
    lately: &Lately,
) -> Result<Occupants, Error> {
    let target = applicant.target;
    if !force {
        may_begin(data, target)?;
    }
    if applicant.is_unbound(&target.capacity) {
        return give(applicant, &target.capacity, &[], force).map(|_| Occupants::default());
    }
    let users = lately.users_of(ctx, data, &target.name);
    let left = users.left.iter().filter(|_| provided != Provided::LaterByRule);
    let present = users.live.iter().chain(left).filter(|job| Some(*job) != applicant.but);
    let present: Vec<JobId> = present.cloned().collect();
    let tenants: Vec<Tenant<'_>> = present.iter().map(|id| tenant(data, id)).collect();
    give(applicant, &target.capacity, &tenants, force)?;
    let dead = if force { Vec::new() } else { users.dead };
    Ok(Occupants { present, dead })
}

/// A job with what it was given.
pub fn tenant<'a>(data: &'a Data, job: &JobId) -> Tenant<'a> {
    Tenant { job: job.clone(), share: data.job(job).and_then(|job| job.share.as_ref()) }
}

/// The same in the transaction that claims the job: what it is given. A job that has failed since the check may
/// still be at work, and one that has ended may have left something that is.
pub(super) fn claim(data: &Data, plan: &LaunchPlan) -> Result<Option<Share>, Error> {
    let name = &plan.target.name;
    if !plan.force {
        may_begin(data, &plan.target)?;
    }
    // The limits of now: somebody may have set others since the check.
    let capacity = data.target(name).map_or(plan.target.capacity, |target| target.capacity);
    let (ask, is_queued) = (&plan.spec.ask, plan.turn.is_some());
    let applicant = Applicant { target: &plan.target, ask, busy: &plan.busy, but: None, is_queued };
    if !applicant.is_counted(&capacity) {
        return Ok(None);
    }
    let parent = plan.parent.as_ref().map(|p| JobId::new(plan.user.clone(), p.window));
    let occupants = &plan.occupants;
    let tenants: Vec<Tenant<'_>> = data
        .jobs()
        .filter(|job| job.tpu == *name && Some(job.id()) != parent)
        .filter(|job| holds(job) || occupants.present.contains(&job.id()))
        .filter(|job| !occupants.dead.contains(&job.id()))
        .map(|job| Tenant { job: job.id(), share: job.share.as_ref() })
        .collect();
    let share = give(&applicant, &capacity, &tenants, plan.force)?;
    let found = data.registration(name).and_then(|known| known.host.as_ref()?.found.as_ref());
    let accelerators = found.map(|found| found.accelerators).unwrap_or_default();
    Ok(Some(Share { accelerators, ..share }).filter(|share| *share != Share::default()))
}

/// Refuses a target on which nothing new is to begin.
fn may_begin(data: &Data, target: &Target) -> Result<(), Error> {
    match data.drained(&target.name) {
        None => Ok(()),
        Some(why) => {
            Err(Error::refused(format!("{} takes no new jobs: {why}", target.name)).hint(format!(
                "take another one, or open it: tpu hosts undrain {}; --force ignores it",
                target.name
            )))
        }
    }
}

/// Nobody keeps the target for himself.
pub(super) fn may_take(data: &Data, plan: &LaunchPlan, now: Timestamp) -> Result<(), Error> {
    if plan.target.capacity.is_unlimited() || plan.force {
        return Ok(());
    }
    reservations::may_take(data, &plan.target.name, &plan.user, now)
}

fn give(
    applicant: &Applicant<'_>,
    capacity: &Capacity,
    tenants: &[Tenant<'_>],
    force: bool,
) -> Result<Share, Error> {
    let Applicant { target, ask, busy, is_queued, .. } = applicant;
    if target.machines == Machines::Engine {
        return engine(target, ask);
    }
    let is_uncounted = ask.gpus.is_some() && capacity.gpus.is_none();
    let may_start =
        if *is_queued && !force { slots::queue_starts(capacity, tenants, ask) } else { Ok(()) };
    let given = may_start.and_then(|()| slots::give(capacity, tenants, busy, ask, force));
    given.map_err(|short| match short {
        Short::Lacks { .. } if is_uncounted => uncounted(target),
        short => refusal(target, short),
    })
}

/// The refusal of a job that asks for GPUs of a target whose GPUs were never counted.
fn uncounted(target: &Target) -> Error {
    let name = &target.name;
    Error::usage(format!("tpu does not know {} GPUs", detect::whose(target))).hint(format!(
        "tpu hosts detect {name}; or say how many it has: tpu hosts set {name} --gpus N"
    ))
}

/// An engine gives out what it has by itself, in words of its own.
fn engine(target: &Target, ask: &Ask) -> Result<Share, Error> {
    if ask.is_empty() {
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
            let list = slots::first_of(&held);
            let most = target.capacity.jobs.unwrap_or_default();
            let what = match held.as_slice() {
                [_] if most == 1 => format!("{name} is in use by {list}"),
                _ => format!("{name} takes {most} jobs at a time, and has {list}"),
            };
            Error::refused(what).passing().hint(match held.first() {
                Some(job) => {
                    format!("kill it (tpu kill w={} {}), {others}", job.window, job.user)
                }
                None => others.to_owned(),
            })
        }
        short @ (Short::Queue { .. } | Short::Taken { .. }) => {
            Error::refused(format!("{name} has no room: {short}"))
                .passing()
                .hint("wait for those, ask for less, or take another target")
        }
        Short::Lacks { what } => Error::usage(format!("{name} cannot run it: {what}"))
            .hint(format!("ask for less; `tpu show-target {name}` says what it has")),
    }
}

#[cfg(test)]
mod tests {
    use tpu_core::model::capacity::GpuAsk;
    use tpu_core::model::ids::JobNumber;

    use super::*;

    /// A target of eight cores for which nobody has set how many jobs it takes.
    const BY_CORES: Capacity =
        Capacity { jobs: None, gpus: None, cpus: None, memory: None, queue_cpus: Some(8) };

    /// What an applicant for `cpus` is given beside jobs that were given so many.
    fn given(cpus: u32, is_queued: bool, others: &[u32]) -> Result<Share, Error> {
        let (target, busy) = (Target::local(), BusyGpus::default());
        let ask = Ask { cpus: Some(cpus), ..Ask::default() };
        let applicant = Applicant { target: &target, ask: &ask, busy: &busy, but: None, is_queued };
        let share = |cpus: &u32| Share { cpus: Some(*cpus), ..Share::default() };
        let shares: Vec<Share> = others.iter().map(share).collect();
        let tenants = shares.iter().zip(1..).map(|(share, number)| Tenant {
            job: JobId::new("alice".into(), JobNumber(number)),
            share: Some(share),
        });
        give(&applicant, &BY_CORES, &tenants.collect::<Vec<_>>(), false)
    }

    #[test]
    fn without_a_limit_the_queue_starts_as_many_jobs_as_their_cores_allow() {
        assert_eq!(given(4, true, &[4]).unwrap().cpus, Some(4));
        assert_eq!(given(1, true, &[4, 3]).unwrap().cpus, Some(1));
        let refused = given(2, true, &[4, 3]).unwrap_err();
        assert!(refused.passes && refused.message.contains("has no room"), "{refused:?}");
        assert!(given(9, true, &[]).is_ok(), "one may always run");
        assert_eq!(given(8, false, &[4, 4]).unwrap().cpus, Some(8), "by hand it begins");
    }

    #[test]
    fn what_is_started_by_hand_is_counted_where_the_queue_counts_cores() {
        let (target, busy) = (Target::local(), BusyGpus::default());
        let ask = Ask { cpus: Some(4), gpus: GpuAsk::Unsaid, memory: None };
        let by_hand =
            Applicant { target: &target, ask: &ask, busy: &busy, but: None, is_queued: false };
        assert!(by_hand.is_unbound(&BY_CORES) && by_hand.is_counted(&BY_CORES));
        let free = Capacity::default();
        assert!(by_hand.is_unbound(&free) && !by_hand.is_counted(&free));
        let one = Capacity { jobs: Some(1), ..BY_CORES };
        assert!(!by_hand.is_unbound(&one) && by_hand.is_counted(&one));
    }
}
