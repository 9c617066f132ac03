//! Who holds a place under the limits of queues, groups and users, as records tell; and who may come back beside them.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::base::records;
use crate::{Ctx, Error};
use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, QueueName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::lineage;
use tpu_core::model::member::Member;
use tpu_core::model::queue::Queue;
use tpu_core::plan::budget::comes_back;
use tpu_core::plan::queue::{AtWork, Cap, UserLimits, caps, full, used_up};

/// Whether a record holds a place, as far as records tell.
pub fn holds(job: &Job) -> bool {
    job.status.is_live() || records::may_be_at_work(job)
}

/// Everybody who is at work or comes back there by himself, but for some: those who are over by the facts, the attempt that a
/// new one succeeds.
pub fn at_work(data: &Data, but: &[JobId]) -> AtWork {
    counted(data, but, |leaf| holds(leaf) || comes_back(leaf))
}

/// Those at work whom `counts` lets count, but for some.
pub(crate) fn counted(data: &Data, but: &[JobId], counts: impl Fn(&Job) -> bool) -> AtWork {
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

/// Refuses for now what a rule is to bring back where that would begin by making its target ready: others may be at
/// that for the same place.
pub(crate) fn may_be_brought_back(data: &Data, job: &Job, most: Option<u32>) -> Result<(), Error> {
    let others = || counted(data, &[job.id()], is_live_or_being_brought_back);
    has_place(data, (job, most), || Cow::Owned(others()))
}

/// What keeps those from beginning whom rules bring back, looked up once for all of them.
pub(crate) struct Comebacks<'d> {
    data: &'d Data,
    of_users: UserLimits,
    /// Once somebody has a limit.
    others: OnceCell<AtWork>,
}

impl<'d> Comebacks<'d> {
    /// By these records, and as settings say now.
    pub(crate) fn of(ctx: &Ctx, data: &'d Data) -> Self {
        Self { data, of_users: of_users(ctx, data), others: OnceCell::new() }
    }

    /// Refuses for now what did not keep its place, and would come back beside those who have it. What is being brought
    /// back already is one of those.
    pub(crate) fn may_begin(&self, job: &Job) -> Result<(), Error> {
        if job.is_being_brought_back() {
            return Ok(());
        }
        let most = self.of_users.get(&job.user).copied();
        let others = || counted(self.data, &[], is_live_or_being_brought_back);
        has_place(self.data, (job, most), || Cow::Borrowed(self.others.get_or_init(others)))
    }
}

pub(crate) fn is_live(leaf: &Job) -> bool {
    leaf.status.is_live()
}

pub(crate) fn is_live_or_being_brought_back(leaf: &Job) -> bool {
    is_live(leaf) || leaf.is_being_brought_back() && comes_back(leaf)
}

/// Refuses for now what would come back to a place that it did not keep: it had ended before anybody knew that it would
/// come back, and among those who reach a limit is one who began since. Who is past a limit without that keeps his
/// place: it was lowered, or somebody insisted.
pub(crate) fn has_place<'a>(
    data: &Data,
    (job, most): (&Job, Option<u32>),
    others: impl FnOnce() -> Cow<'a, AtWork>,
) -> Result<(), Error> {
    // Until its record says that it has failed it has its place.
    let Some(launch) = job.launch.as_ref().filter(|_| !is_live(job)) else { return Ok(()) };
    let queue = job.spec.as_ref().and_then(|spec| spec.queue.as_ref());
    let Some(limits) = OfSuccessor::of(data, (&job.user, most), (queue, job.member())) else {
        return Ok(());
    };
    // Nobody gets the place of what has a window before it is seen to be over, which is after its target was asked.
    let judged = job.recovery.as_ref().and_then(|recovery| recovery.judged);
    let intended = job.intent.as_ref().map(|intent| intent.at);
    let since = launch.ended.or(judged).or(intended).unwrap_or(launch.at);
    let came_since = |id: &JobId| {
        data.job(id).is_some_and(|other| {
            other.is_being_brought_back()
                || other.launch.as_ref().is_some_and(|launch| launch.at >= since)
        })
    };
    match limits.caps(data, &others()).find(|cap| cap.held.iter().any(came_since)) {
        None => Ok(()),
        Some(cap) => Err(Error::refused(cap.to_string()).passing().hint(
            "it begins when one that has begun since has ended, or when the limit is raised",
        )),
    }
}

/// The limits under which the successor of a job is at work.
pub(crate) struct OfSuccessor<'d> {
    user: (&'d UserName, Option<u32>),
    queue: Option<Queue>,
    /// Its group, while members of that wait.
    group: Option<&'d QueueEntry>,
}

impl<'d> OfSuccessor<'d> {
    /// None where there are none.
    pub(crate) fn of(
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

    /// Those that keep it from beginning beside those who are at work.
    pub(crate) fn caps(&self, data: &Data, at_work: &AtWork) -> impl Iterator<Item = Cap> {
        let (queue, none) = (self.queue.as_ref(), UserLimits::new());
        let of_queue: Vec<Cap> = match (queue, self.group) {
            (Some(queue), Some(group)) => {
                caps(data.queues(), group, queue, at_work, &none).collect()
            }
            (Some(queue), None) => full(queue, at_work, 1).into_iter().collect(),
            (None, _) => Vec::new(),
        };
        of_queue.into_iter().chain(used_up(self.user, at_work, 1))
    }
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
