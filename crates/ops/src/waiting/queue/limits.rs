//! Who holds a place under the limits of queues, groups and users by the facts, where records leave it open; and for whom
//! targets are kept because he comes back.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::Ctx;
use crate::base::queue_entries::occupancy::Comebacks;
use crate::base::{records, watch};
use crate::observe::snapshot;
use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::plan::budget::comes_back;

/// Jobs that have failed, of which their records leave open whether anything is still at work, and that are over by the
/// facts: else who was lost without a word would keep his place for ever.
pub fn over(ctx: &Ctx, data: &Data) -> Vec<JobId> {
    let is_open = |job: &Job| {
        job.child.is_none()
            && (job.member().is_some() || job.spec.as_ref().is_some_and(|of| of.queue.is_some()))
            && matches!(job.status, Status::Error(_))
            && records::may_be_at_work(job)
            && !comes_back(job)
    };
    snapshot::users_of_targets(ctx, data, is_open)
        .into_values()
        .flat_map(|users| users.dead)
        .collect()
}

/// Jobs that have failed and that the daemon here is to bring back, or that somebody anywhere is bringing back, by the
/// targets where they were: those are made anew, or were set right, for them and for nobody who waits. Where nobody
/// would bring them back nothing is kept for them.
pub(crate) fn coming_back<'d>(ctx: &Ctx, data: &'d Data) -> HashMap<&'d TargetName, Vec<&'d Job>> {
    let mut coming: HashMap<&TargetName, Vec<&Job>> = HashMap::new();
    let is_watched = watch::acting(ctx).is_some();
    let is_ours =
        |job: &Job| is_watched && job.place.as_ref().is_none_or(|at| at.host == ctx.env.hostname);
    // For who waits until there is a place for him under a limit, nothing is kept beside that.
    let comebacks = OnceCell::new();
    let may = |job: &Job| comebacks.get_or_init(|| Comebacks::of(ctx, data)).may_begin(job).is_ok();
    let entries = data.queues().entries.iter();
    let succeeded = entries.filter_map(|entry| Some((&entry.user, entry.succeeds?.job)));
    let succeeded: HashSet<(&UserName, JobNumber)> = succeeded.collect();
    // Whoever goes on from one waits himself, and in its place.
    let waits = |job: &Job| succeeded.contains(&(&job.user, job.windows_id));
    for job in data.users().iter().flat_map(User::jobs) {
        let is_coming = comes_back(job) && (job.is_being_brought_back() || is_ours(job));
        if is_coming && !waits(job) && may(job) {
            coming.entry(&job.tpu).or_default().push(job);
        }
    }
    coming
}
