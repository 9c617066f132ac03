//! Another machine for a job that was lost with its own: one of those among which its own was chosen, or of the
//! pools that its own is in.

use crate::act::lately::Lately;
use crate::base::confined;
use crate::base::named::{members, still_known};
use crate::{Ctx, Error};
use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::TargetName;
use tpu_core::model::job::Job;
use tpu_core::model::lineage::Lineage;
use tpu_core::model::policy::Policy;
use tpu_core::model::spec::{AnyOf, TargetRequest};
use tpu_core::model::target::{Machines, Target};
use tpu_core::plan::choice::{self, Assignment, Ranking};

use super::choose::{self, HostRequest};
use super::disk;

/// What came of the search.
#[derive(Debug, Default)]
pub struct Search {
    /// The machine on which the job is to go on.
    pub found: Option<Assignment>,
    /// Those that were passed over, and why.
    passed: Vec<(TargetName, String)>,
}

impl Search {
    /// Why the job cannot go on on its own machine, with why it cannot on any other.
    pub(crate) fn with_why(&self, error: Error) -> Error {
        let each = self.passed.iter().map(|(name, why)| format!("{name}: {why}"));
        let others: Vec<String> = each.collect();
        if others.is_empty() {
            return error;
        }
        let message = format!("{}; nor on another one ({})", error.message, others.join("; "));
        Error { message, ..error }
    }
}

/// Whether a job may go on on another machine at all.
pub fn may_be(data: &Data, job: &Job, event: ErrorKind) -> bool {
    data.target(&job.tpu).is_some_and(|target| choice::may_go_elsewhere(&target, event))
}

/// Looks for a machine, if a job was lost with one that is somebody's own. `source` is the directory from which the
/// job would go on: a machine that does not see it is none.
pub fn look(
    ctx: &Ctx,
    data: &Data,
    (user, job): (&User, &Job),
    event: ErrorKind,
    source: Option<&str>,
) -> Result<Search, Error> {
    if !may_be(data, job, event) {
        return Ok(Search::default());
    }
    let (among, policy) = meant(data, job);
    let spec = job.spec_with(Vec::new());
    let among: Vec<Target> = confined::within(&spec.execution.only_on, among)
        .into_iter()
        .filter(|other| other.machines == Machines::Fixed && other.name != job.tpu)
        .collect();
    let candidates = choose::candidates(ctx, data, &among, &Lately::default());
    let wanted = HostRequest { user: &user.name, among: &among, policy, ask: &spec.ask };
    let Ranking { mut picks, unfit } = choose::rank(ctx, data, &candidates, &wanted)?;
    // Where another attempt of it was lost, too, comes last.
    let lost = lost_with(user, job);
    picks.sort_by_key(|pick| lost.contains(&pick.target));
    let mut passed: Vec<_> =
        unfit.iter().map(|(name, why)| (name.clone(), why.to_string())).collect();
    for (pick, usable) in choose::usable(ctx, &picks, &spec.ask, &Lately::default()) {
        match usable.and_then(|busy| sees(ctx, data, &pick.target, source).map(|()| busy)) {
            Ok(busy) => {
                let reason = format!("lost with {}; {}", job.tpu, pick.reason);
                let found = Assignment { target: pick.target.clone(), reason, busy: Some(busy) };
                return Ok(Search { found: Some(found), passed });
            }
            Err(why) => passed.push((pick.target.clone(), why)),
        }
    }
    Ok(Search { found: None, passed })
}

/// Among which machines one is looked for, and how one of them is chosen: those among which its own was, or those of
/// the pools of its own. A pool that is called as a target is a pool here.
fn meant(data: &Data, job: &Job) -> (Vec<Target>, Option<Policy>) {
    match job.spec_with(Vec::new()).target {
        TargetRequest::Any(AnyOf { among, policy, .. }) if !among.is_empty() => {
            (still_known(data, &among).unwrap_or_default(), policy)
        }
        TargetRequest::Any(_) | TargetRequest::Named(_) => {
            let host = data.registration(&job.tpu).and_then(|known| known.host.as_ref());
            let pools = host.map(|host| host.pools.as_slice()).unwrap_or_default();
            let mut machines: Vec<Target> = Vec::new();
            for machine in pools.iter().flat_map(|pool| members(data, pool)) {
                if !machines.contains(&machine) {
                    machines.push(machine);
                }
            }
            (machines, None)
        }
    }
}

/// The machines with which attempts before this one were lost.
fn lost_with(user: &User, job: &Job) -> Vec<TargetName> {
    let lineage = Lineage::of(user, job.windows_id).map(|l| l.windows).unwrap_or_default();
    let attempts = lineage.iter().filter_map(|window| user.job(*window));
    let lost = attempts.filter(|attempt| {
        attempt.verdict.as_ref().is_some_and(|verdict| verdict.kind == ErrorKind::Lost)
    });
    lost.map(|attempt| attempt.tpu.clone()).collect()
}

/// Whether a machine sees the directory from which the job would go on.
fn sees(ctx: &Ctx, data: &Data, name: &TargetName, source: Option<&str>) -> Result<(), String> {
    let Some((source, target)) = source.zip(data.target(name)) else { return Ok(()) };
    if source.contains("://") {
        return Ok(());
    }
    match disk::sees(ctx, data, &target, source) {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!("it does not see {source}")),
        Err(error) => Err(error.message),
    }
}
