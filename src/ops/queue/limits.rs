//! Who holds a place under the limits of queues and groups, as far as records tell.

use crate::model::data::Data;
use crate::model::facts::ErrorKind;
use crate::model::ids::JobId;
use crate::model::job::{Job, Status};
use crate::model::lineage;
use crate::model::rules::Action;
use crate::ops::launch::room;
use crate::ops::{Ctx, Error};
use crate::plan::budget::{Budget, RetryCounts};
use crate::plan::queue::{AtWork, UserLimits};

/// Everybody who is at work or comes back there by himself. `but` is the attempt that a new one succeeds.
pub fn at_work(data: &Data, but: Option<&JobId>) -> AtWork {
    let mut at_work = AtWork::default();
    for user in data.users() {
        for lineage in lineage::lineages(user) {
            let Some(leaf) = lineage.leaf().and_then(|leaf| user.job(leaf)) else { continue };
            if Some(&leaf.id()) == but || !(room::holds(leaf) || comes_back(leaf)) {
                continue;
            }
            let group = leaf.member().map(|member| JobId::new(leaf.user.clone(), member.group));
            let queue = leaf.spec.as_ref().and_then(|spec| spec.queue.as_ref());
            at_work.add(leaf.id(), queue, group);
        }
    }
    at_work
}

/// How many jobs of each user may be at work at once, where that is set.
pub fn of_users(ctx: &Ctx, data: &Data) -> Result<UserLimits, Error> {
    let mut limits = UserLimits::new();
    for user in data.users() {
        let most = ctx.settings(Some(user))?.max_parallel;
        limits.extend(most.map(|most| (user.name.clone(), most)));
    }
    Ok(limits)
}

/// Whether a job that has failed is to be brought back by its rules: it keeps its place meanwhile, so that a limit holds
/// when it is back.
pub(super) fn comes_back(job: &Job) -> bool {
    let Status::Error(kind) = &job.status else { return false };
    let kind: ErrorKind = *kind;
    let progress = job.reached.clone().unwrap_or_default();
    let counts = RetryCounts::of(job, &progress, kind);
    let is_stopped = job.recovery.as_ref().is_some_and(|recovery| recovery.stopped.is_some());
    job.monitor
        && !is_stopped
        && job.child.is_none()
        && job.rules.action(kind) != Action::Pass
        && counts.left(Budget::of(kind)) > 0
}
