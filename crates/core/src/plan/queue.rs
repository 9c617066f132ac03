//! Who of those that wait begins next, and why each of the others does not yet: the one decision about the queue.
//!
//! Higher priority comes first, then lower rank, then who was submitted first, over all queues. Each in turn takes the
//! best place that those in front have left. In a queue that is `fifo` nobody begins while somebody in front of him
//! finds no place; in one that is `backfill` he may, where he fits. Those of other queues may in any case.
//!
//! So nobody is passed for ever: in each queue the first who finds no place, and would fit somewhere once others have
//! gone, is kept that place when he has been passed [ten times](PASSED_MOST) or for [an hour](PASSED_FOR_S), by whomever.
//! He counts as one at work from then on: else who takes his place under a limit would cost him the other one.
//!
//! Nothing is asked here: what is to be had the caller knows ([`Offers`]), and also who holds which place.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use crate::model::entry::QueueEntry;
use crate::model::ids::{JobId, QueueName, UserName};
use crate::model::member::Array;
use crate::model::queue::{Queue, QueuePolicy, QueueState};
use crate::model::queues::Queues;
use crate::model::time::Timestamp;

use super::slots::first_of;

/// Who was passed so often is kept a place.
pub(crate) const PASSED_MOST: u32 = 10;
/// Who was passed first so many seconds ago is, too.
pub(crate) const PASSED_FOR_S: u64 = 3600;

/// What entries can be given. Each answer counts on what was taken before.
pub trait Offers {
    /// Where a job begins.
    type Place;

    /// The best place for the next job of an entry; why there is none, in words.
    fn find(&mut self, entry: &QueueEntry) -> Result<Self::Place, String>;

    /// It is given to that job.
    fn take(&mut self, entry: &QueueEntry, place: &Self::Place);

    /// Whether an entry that finds no place would fit somewhere once others have gone from there. Without that, to be
    /// passed costs it nothing.
    fn fits_later(&self, entry: &QueueEntry) -> bool;

    /// Keeps the place where the entry would fit first, which nobody behind it gets. Which that is.
    fn keep(&mut self, entry: &QueueEntry) -> Option<String>;
}

/// Who is at work, or is to be brought back there by rules: each holds a place under the limits that are set for him.
#[derive(Clone, Debug, Default)]
pub struct AtWork {
    queues: HashMap<QueueName, Vec<JobId>>,
    users: HashMap<UserName, Vec<JobId>>,
    groups: HashMap<JobId, Vec<JobId>>,
}

impl AtWork {
    /// One more job: of this queue, where it waited in one, and of this group, where it is a member.
    pub fn add(&mut self, job: JobId, queue: Option<&QueueName>, group: Option<JobId>) {
        if let Some(queue) = queue {
            self.queues.entry(queue.clone()).or_default().push(job.clone());
        }
        if let Some(group) = group {
            self.groups.entry(group).or_default().push(job.clone());
        }
        self.users.entry(job.user.clone()).or_default().push(job);
    }

    /// One less.
    pub fn remove(&mut self, job: &JobId) {
        let limits = self.queues.values_mut().chain(self.groups.values_mut());
        for held in limits.chain(self.users.values_mut()) {
            held.retain(|one| one != job);
        }
    }
}

/// How many jobs of one user may be at work at once, where somebody has set that.
pub type UserLimits = HashMap<UserName, u32>;

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Whose limit it is.
    pub of: CapOf,
    /// The limit.
    pub most: u32,
    /// Who is at work under it.
    pub held: Vec<JobId>,
}

/// Whose limit one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CapOf {
    /// Of a queue (`--max-parallel`).
    Queue(QueueName),
    /// Of a user.
    User(UserName),
    /// Of a group (`%N`).
    Group(JobId),
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.of {
            CapOf::Queue(name) => write!(f, "queue {name} has {} jobs at once", self.most)?,
            CapOf::User(name) => write!(f, "{name} has {} jobs at once", self.most)?,
            CapOf::Group(group) => write!(f, "{} of group {group} run at once", self.most)?,
        }
        // Members of a group that wait to be brought back have its number, each of them.
        let mut held = self.held.clone();
        held.dedup();
        if held.is_empty() { Ok(()) } else { write!(f, ": {}", first_of(&held)) }
    }
}

/// What is known of an entry beside what stands in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// What it waits for to end, in words.
    pub after: Option<String>,
    /// The members of a group that may begin, where not all may; and what the others wait for, in words.
    pub members: Option<(Vec<u32>, String)>,
    /// Who would start it and is not there, in words.
    pub absent: Option<String>,
}

/// Why an entry does not begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// Somebody holds it: who, and why.
    Held(String),
    /// Its queue starts nothing.
    Paused(QueueName),
    /// Its queue is not there any more.
    NoQueue(QueueName),
    /// Another job has to end first.
    After(String),
    /// The process that waits for it is gone, or those who would start it are, and may come again: who, in words.
    Absent(String),
    /// A limit is reached.
    Cap(Cap),
    /// In its queue nobody passes this one, who finds no place.
    Behind(JobId),
    /// There is no place for it.
    NoPlace {
        /// Why, in words.
        why: String,
        /// What is kept free for it, since it was passed for too long.
        kept: Option<String>,
    },
}

/// For people, in short.
impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused(queue) => write!(f, "queue {queue} is paused"),
            Self::NoQueue(queue) => write!(f, "there is no queue {queue} any more"),
            Self::After(what) | Self::Absent(what) => f.write_str(what),
            Self::Cap(cap) => cap.fmt(f),
            Self::Behind(job) => write!(f, "{job} is in front of it and finds no place"),
            Self::Held(why) | Self::NoPlace { why, kept: None } => f.write_str(why),
            Self::NoPlace { why, kept: Some(kept) } => write!(f, "{why}; {kept} is kept for it"),
        }
    }
}

/// How an entry stands.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryStanding<P> {
    /// Which, by its place among all.
    pub entry: usize,
    /// Its place in its queue, from 1.
    pub position: usize,
    /// Where its next jobs begin now, one after the other.
    pub starts: Vec<P>,
    /// Of a group, the members that begin there, in the same order.
    pub members: Vec<u32>,
    /// Why the rest of it waits.
    pub waits: Option<WaitReason>,
    /// Whom each of its jobs that begins passes: of each queue the first in front of it who finds no place and would
    /// fit later.
    pub passes: Vec<JobId>,
}

/// The order in which entries have their turn, by their places.
pub fn order(entries: &[QueueEntry]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    let key = |at: &usize| {
        let entry = entries.get(*at)?;
        Some((Reverse(entry.priority), entry.rank, *at))
    };
    order.sort_by_key(key);
    order
}

/// The limit of a queue, if so many more jobs would pass it.
pub fn full(queue: &Queue, at_work: &AtWork, jobs: usize) -> Option<Cap> {
    let held = at_work.queues.get(&queue.name);
    reached(held, queue.max_parallel, jobs, || CapOf::Queue(queue.name.clone()))
}

/// The limit of a user, if so many more jobs would pass it.
pub fn used_up(
    (user, most): (&UserName, Option<u32>),
    at_work: &AtWork,
    jobs: usize,
) -> Option<Cap> {
    reached(at_work.users.get(user), most, jobs, || CapOf::User(user.clone()))
}

fn reached(
    held: Option<&Vec<JobId>>,
    most: Option<u32>,
    jobs: usize,
    of: impl FnOnce() -> CapOf,
) -> Option<Cap> {
    let (held, most) = (held.map(Vec::as_slice).unwrap_or_default(), most?);
    let is_reached = held.len().saturating_add(jobs) > usize::try_from(most).unwrap_or(usize::MAX);
    is_reached.then(|| Cap { of: of(), most, held: held.to_vec() })
}

/// The group under whose limit the jobs of an entry are at work: its own number, where it is no member of another.
fn group_of(entry: &QueueEntry) -> JobId {
    let group = entry.spec.member.map_or(entry.number, |member| member.group);
    JobId::new(entry.user.clone(), group)
}

/// The limit that keeps the next job of an entry from beginning, if one does.
pub fn cap(
    queues: &Queues,
    entry: &QueueEntry,
    queue: &Queue,
    at_work: &AtWork,
    limits: &UserLimits,
) -> Option<Cap> {
    caps(queues, entry, queue, at_work, limits).next()
}

/// All limits that keep it from beginning.
pub fn caps(
    queues: &Queues,
    entry: &QueueEntry,
    queue: &Queue,
    at_work: &AtWork,
    limits: &UserLimits,
) -> impl Iterator<Item = Cap> {
    // A member that was put back waits by itself: its group's limit holds while others of that wait.
    let group = group_of(entry);
    let waiting = entry.spec.member.and_then(|_| queues.entry(&group)).unwrap_or(entry);
    let at_once = waiting.spec.array.as_ref().and_then(Array::at_once);
    let of_user = used_up((&entry.user, limits.get(&entry.user).copied()), at_work, 1);
    let of_group = reached(at_work.groups.get(&group), at_once, 1, || CapOf::Group(group.clone()));
    [full(queue, at_work, 1), of_user, of_group].into_iter().flatten()
}

/// How many more jobs of an entry no limit keeps from beginning, of so many that wait: they count as at work from then on.
pub fn room(
    queues: &Queues,
    entry: &QueueEntry,
    queue: &Queue,
    (at_work, limits): (&mut AtWork, &UserLimits),
    waiting: usize,
) -> usize {
    let has_room = |_: &usize| {
        let is_open = cap(queues, entry, queue, at_work, limits).is_none();
        if is_open {
            at_work.add(entry.id(), Some(&queue.name), Some(group_of(entry)));
        }
        is_open
    };
    (0..waiting).take_while(has_room).count()
}

/// How each entry stands, in the order of their turns. `readiness` is asked by place.
pub fn stand<P: Offers>(
    queues: &Queues,
    (mut at_work, limits): (AtWork, &UserLimits),
    readiness: &dyn Fn(usize) -> Readiness,
    places: &mut P,
    now: Timestamp,
) -> Vec<EntryStanding<P::Place>> {
    let known: HashMap<QueueName, Queue> =
        queues.all().into_iter().map(|queue| (queue.name.clone(), queue)).collect();
    let mut lines: HashMap<&QueueName, Line> = HashMap::new();
    let mut passed: Vec<JobId> = Vec::new();
    let mut standings = Vec::new();
    for at in order(&queues.entries) {
        let Some(entry) = queues.entries.get(at) else { continue };
        let line = lines.entry(&entry.queue).or_default();
        line.length += 1;
        let mut standing = EntryStanding {
            entry: at,
            position: line.length,
            starts: Vec::new(),
            members: Vec::new(),
            waits: None,
            passes: Vec::new(),
        };
        let Some(queue) = known.get(&entry.queue) else {
            standing.waits = Some(WaitReason::NoQueue(entry.queue.clone()));
            standings.push(standing);
            continue;
        };
        let ready = readiness(at);
        let all = entry.spec.array.as_ref().map(Array::indexes).unwrap_or_default();
        let members = ready.members.as_ref().map_or(all, |(members, _)| members);
        let count = if ready.members.is_some() { members.len() } else { entry.waiting() };
        let waits = not_ready(entry, queue, &ready).or_else(|| {
            let front = line.front.clone().filter(|_| queue.policy == QueuePolicy::Fifo);
            front.map(WaitReason::Behind)
        });
        standing.waits = waits.or_else(|| {
            let no_place = (0..count).find_map(|_| {
                if let Some(cap) = cap(queues, entry, queue, &at_work, limits) {
                    return Some(WaitReason::Cap(cap));
                }
                match places.find(entry) {
                    Ok(place) => {
                        places.take(entry, &place);
                        at_work.add(entry.id(), Some(&queue.name), Some(group_of(entry)));
                        standing.starts.push(place);
                        None
                    }
                    Err(why) => Some(WaitReason::NoPlace { why, kept: None }),
                }
            });
            no_place
                .or_else(|| ready.members.as_ref().map(|(_, rest)| WaitReason::After(rest.clone())))
        });
        standing.members = members.iter().copied().take(standing.starts.len()).collect();
        if !standing.starts.is_empty() {
            standing.passes.clone_from(&passed);
        }
        if let Some(WaitReason::NoPlace { kept, .. }) = &mut standing.waits {
            line.front.get_or_insert_with(|| entry.id());
            if !line.is_passed && places.fits_later(entry) {
                line.is_passed = true;
                passed.push(entry.id());
                *kept = is_starved(entry, now).then(|| places.keep(entry)).flatten();
                if kept.is_some() {
                    at_work.add(entry.id(), Some(&queue.name), Some(group_of(entry)));
                }
            }
        }
        standings.push(standing);
    }
    standings
}

/// One queue, as far as it was gone through.
#[derive(Default)]
struct Line {
    length: usize,
    /// The first who is ready and finds no place.
    front: Option<JobId>,
    /// Whether one of those would fit later: the first such is passed by whoever begins behind him.
    is_passed: bool,
}

/// Why an entry would not begin wherever there was a place.
pub fn not_ready(entry: &QueueEntry, queue: &Queue, readiness: &Readiness) -> Option<WaitReason> {
    if let Some(hold) = &entry.held {
        return Some(WaitReason::Held(hold.to_string()));
    }
    if queue.state == QueueState::Paused {
        return Some(WaitReason::Paused(queue.name.clone()));
    }
    if let Some(after) = &readiness.after {
        return Some(WaitReason::After(after.clone()));
    }
    readiness.absent.clone().map(WaitReason::Absent)
}

/// Whether an entry was passed for too long.
fn is_starved(entry: &QueueEntry, now: Timestamp) -> bool {
    let passed = entry.passed;
    passed.times >= PASSED_MOST
        || passed.since.is_some_and(|since| now.seconds_since(since) >= PASSED_FOR_S)
}
