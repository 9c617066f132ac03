//! Who holds a place under the limits of queues and groups: as records tell, and of those that leave it open, as the
//! facts do.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::model::data::{Data, User};
use crate::model::entry::QueueEntry;
use crate::model::ids::{JobId, JobNumber, QueueName, TargetName, UserName};
use crate::model::job::{Intent, Job, Status};
use crate::model::lineage;
use crate::model::member::Member;
use crate::model::queue::Queue;
use crate::ops::launch::plan::LaunchPlan;
use crate::ops::launch::room;
use crate::ops::{Ctx, Error, snapshot, watch};
use crate::plan::budget::comes_back;
use crate::plan::queue::{AtWork, Cap, UserLimits, cap, full, used_up};

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
    counted(data, but, |leaf| room::holds(leaf) || comes_back(leaf))
}

/// Those who are at work by their records: two who come back do not wait for each other.
fn live(data: &Data, but: &[JobId]) -> AtWork {
    counted(data, but, |leaf| leaf.status.is_live())
}

fn counted(data: &Data, but: &[JobId], counts: impl Fn(&Job) -> bool) -> AtWork {
    let mut at_work = AtWork::default();
    for user in data.users() {
        for lineage in lineage::lineages(user) {
            let Some(leaf) = lineage.leaf().and_then(|leaf| user.job(leaf)) else { continue };
            if but.contains(&leaf.id()) || !counts(leaf) {
                continue;
            }
            let group = leaf.member().map(|member| JobId::new(leaf.user.clone(), member.group));
            let queue = leaf.spec.as_ref().and_then(|spec| spec.queue.as_ref());
            at_work.add(leaf.id(), queue, group);
        }
    }
    at_work
}

/// Refuses what somebody starts past the limit of his own, or brings back past that of its queue, or of its group while
/// members of that wait. What its rule brings back has kept its place, if others have not got it all the same.
pub fn may_begin(data: &Data, plan: &LaunchPlan) -> Result<(), Error> {
    if plan.force {
        return Ok(());
    }
    let past_limit = |cap: Cap| {
        Error::refused(cap.to_string()).hint(
            "wait for your turn: tpu submit, or run with --wait; or raise the limit, or --force",
        )
    };
    let (user, most) = (&plan.user, plan.most);
    let Some(parent) = &plan.parent else {
        let jobs = plan.spec.array.as_ref().map_or(1, |array| array.indexes().len());
        let cap = most.and_then(|_| used_up((user, most), &at_work(data, &[]), jobs));
        return cap.map_or(Ok(()), |cap| Err(past_limit(cap)));
    };
    let before = [JobId::new(user.clone(), parent.window)];
    if let Some(reaction) = &parent.reaction {
        return may_come_back(data, (&reaction.seen, most), || Cow::Owned(live(data, &before)));
    }
    let of = (plan.spec.queue.as_ref(), plan.spec.member);
    let limits = OfSuccessor::of(data, (user, most), of);
    let cap = limits.and_then(|limits| limits.cap(data, &at_work(data, &before)));
    cap.map_or(Ok(()), |cap| Err(past_limit(cap)))
}

/// Refuses for now what a rule is to bring back where that would begin by making its target ready: others may be at
/// that for the same place.
pub fn may_be_begun(data: &Data, job: &Job, most: Option<u32>) -> Result<(), Error> {
    may_come_back(data, (job, most), || Cow::Owned(counted(data, &[job.id()], is_live_or_begun)))
}

/// What keeps those from beginning whom rules bring back, looked up once for all of them.
pub struct Comebacks {
    others: AtWork,
    of_users: UserLimits,
}

impl Comebacks {
    /// As records and settings say now.
    pub fn of(ctx: &Ctx, data: &Data) -> Self {
        Self { others: counted(data, &[], is_live_or_begun), of_users: of_users(ctx, data) }
    }

    /// Refuses for now what did not keep its place, and would come back beside those who have it.
    pub fn may_begin(&self, data: &Data, job: &Job) -> Result<(), Error> {
        let most = self.of_users.get(&job.user).copied();
        may_come_back(data, (job, most), || Cow::Borrowed(&self.others))
    }
}

fn is_live_or_begun(leaf: &Job) -> bool {
    leaf.status.is_live() || is_begun(leaf)
}

/// Whether somebody is bringing it back.
fn is_begun(job: &Job) -> bool {
    job.intent.as_ref().and_then(Intent::by_rule).is_some()
}

/// Refuses for now what would come back to a place that it did not keep: it had ended before anybody knew that it would
/// come back, and others began. Who is past a limit without that (it was lowered, or somebody insisted) keeps his.
fn may_come_back<'a>(
    data: &Data,
    (job, most): (&Job, Option<u32>),
    others: impl FnOnce() -> Cow<'a, AtWork>,
) -> Result<(), Error> {
    // Until its record says that it has failed it has its place.
    let Some(launch) = job.launch.as_ref().filter(|_| !job.status.is_live()) else {
        return Ok(());
    };
    let queue = job.spec.as_ref().and_then(|spec| spec.queue.as_ref());
    let limits = OfSuccessor::of(data, (&job.user, most), (queue, job.member()));
    let Some(cap) = limits.and_then(|limits| limits.cap(data, &others())) else { return Ok(()) };
    let since = launch.ended.unwrap_or(launch.at);
    let came_since = |other: &Job| {
        is_begun(other) || other.launch.as_ref().is_none_or(|launch| launch.at >= since)
    };
    if !cap.held.iter().filter_map(|id| data.job(id)).any(came_since) {
        return Ok(());
    }
    Err(Error::refused(cap.to_string())
        .passing()
        .hint("it begins when one of those has ended, or when the limit is raised"))
}

/// The limits under which the successor of a job is at work.
struct OfSuccessor<'d> {
    user: (&'d UserName, Option<u32>),
    queue: Option<Queue>,
    /// Its group, while members of that wait.
    group: Option<&'d QueueEntry>,
}

impl<'d> OfSuccessor<'d> {
    /// None where there are none.
    fn of(
        data: &'d Data,
        user: (&'d UserName, Option<u32>),
        (queue, member): (Option<&QueueName>, Option<Member>),
    ) -> Option<Self> {
        let queue = queue.and_then(|name| data.queues().queue(name));
        let group = member.map(|member| JobId::new(user.0.clone(), member.group));
        let group = group.and_then(|group| data.queues().entry(&group));
        let is_limited = |queue: &Queue| queue.max_parallel.is_some() || group.is_some();
        let queue = queue.filter(is_limited);
        (queue.is_some() || user.1.is_some()).then_some(Self { user, queue, group })
    }

    /// The one that keeps it from beginning beside those who are at work.
    fn cap(&self, data: &Data, at_work: &AtWork) -> Option<Cap> {
        let of_queue = self.queue.as_ref().and_then(|queue| match self.group {
            Some(group) => cap(data.queues(), group, queue, at_work, &UserLimits::new()),
            None => full(queue, at_work, 1),
        });
        of_queue.or_else(|| used_up(self.user, at_work, 1))
    }
}

/// Jobs that have failed and that the daemon here is to bring back, or that somebody anywhere is bringing back, by the
/// targets where they were: those are made anew, or were set right, for them and for nobody who waits. Where nobody
/// would bring them back nothing is kept for them.
pub fn coming_back<'d>(ctx: &Ctx, data: &'d Data) -> HashMap<&'d TargetName, Vec<&'d Job>> {
    let mut coming: HashMap<&TargetName, Vec<&Job>> = HashMap::new();
    let is_watched = watch::running(ctx).is_some();
    let is_ours =
        |job: &Job| is_watched && job.place.as_ref().is_none_or(|at| at.host == ctx.env.hostname);
    // For who waits until there is a place for him under a limit, nothing is kept beside that.
    let comebacks = OnceCell::new();
    let has_place =
        |job: &Job| comebacks.get_or_init(|| Comebacks::of(ctx, data)).may_begin(data, job).is_ok();
    let entries = data.queues().entries.iter();
    let succeeded = entries.filter_map(|entry| Some((&entry.user, entry.succeeds?.job)));
    let succeeded: HashSet<(&UserName, JobNumber)> = succeeded.collect();
    // Whoever goes on from one waits himself, and in its place.
    let waits = |job: &Job| succeeded.contains(&(&job.user, job.windows_id));
    for job in data.users().iter().flat_map(User::jobs) {
        if comes_back(job) && (is_begun(job) || is_ours(job) && has_place(job)) && !waits(job) {
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
