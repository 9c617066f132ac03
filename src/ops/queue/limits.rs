//! Who holds a place under the limits of queues and groups: as records tell, and of those that leave it open, as the
//! facts do.

use std::collections::{HashMap, HashSet};

use crate::model::data::{Data, User};
use crate::model::ids::{JobId, JobNumber, TargetName, UserName};
use crate::model::job::{Intent, Job, Status};
use crate::model::lineage;
use crate::ops::launch::room;
use crate::ops::{Ctx, snapshot, watch};
use crate::plan::budget::comes_back;
use crate::plan::queue::{AtWork, UserLimits};

/// Jobs that have failed, of which their records leave open whether anything is still at work, and that are over by the
/// facts: else who was lost without a word would keep his place for ever.
pub fn over(ctx: &Ctx, data: &Data) -> Vec<JobId> {
    let is_open = |job: &Job| {
        job.child.is_none()
            && (job.member().is_some() || job.spec.as_ref().is_some_and(|of| of.queue.is_some()))
            && matches!(job.status, Status::Error(_))
            && snapshot::may_be_at_work(job)
            && !comes_back(job)
    };
    snapshot::users_of_targets(ctx, data, is_open)
        .into_values()
        .flat_map(|users| users.dead)
        .collect()
}

/// Everybody who is at work or comes back there by himself, but for some: those who are [`over`], the attempt that a
/// new one succeeds.
pub fn at_work(data: &Data, but: &[JobId]) -> AtWork {
    let mut at_work = AtWork::default();
    for user in data.users() {
        for lineage in lineage::lineages(user) {
            let Some(leaf) = lineage.leaf().and_then(|leaf| user.job(leaf)) else { continue };
            if but.contains(&leaf.id()) || !(room::holds(leaf) || comes_back(leaf)) {
                continue;
            }
            let group = leaf.member().map(|member| JobId::new(leaf.user.clone(), member.group));
            let queue = leaf.spec.as_ref().and_then(|spec| spec.queue.as_ref());
            at_work.add(leaf.id(), queue, group);
        }
    }
    at_work
}

/// Jobs that have failed and that the daemon here is to bring back, or that somebody anywhere is bringing back, by the
/// targets where they were: those are made anew, or were set right, for them and for nobody who waits. Where nobody
/// would bring them back nothing is kept for them.
pub fn coming_back<'d>(ctx: &Ctx, data: &'d Data) -> HashMap<&'d TargetName, Vec<&'d Job>> {
    let mut coming: HashMap<&TargetName, Vec<&Job>> = HashMap::new();
    let is_watched = watch::running(ctx).is_some();
    let is_ours =
        |job: &Job| is_watched && job.place.as_ref().is_none_or(|at| at.host == ctx.env.hostname);
    let is_begun = |job: &Job| job.intent.as_ref().and_then(Intent::by_rule).is_some();
    let entries = data.queues().entries.iter();
    let succeeded = entries.filter_map(|entry| Some((&entry.user, entry.succeeds?.job)));
    let succeeded: HashSet<(&UserName, JobNumber)> = succeeded.collect();
    // Whoever goes on from one waits himself, and in its place.
    let waits = |job: &Job| succeeded.contains(&(&job.user, job.windows_id));
    for job in data.users().iter().flat_map(User::jobs) {
        if comes_back(job) && (is_begun(job) || is_ours(job)) && !waits(job) {
            coming.entry(&job.tpu).or_default().push(job);
        }
    }
    coming
}

/// How many jobs of each user may be at work at once, where that is set. Where the settings cannot be read nobody is
/// kept waiting by that: the check of each launch reads them too, and says so.
pub fn of_users(ctx: &Ctx, data: &Data) -> UserLimits {
    let limit = |user: &User| {
        let most = ctx.settings(Some(user)).ok()?.max_parallel?;
        Some((user.name.clone(), most))
    };
    data.users().iter().filter_map(limit).collect()
}
