//! When those that wait are expected to begin: the decision about the queue ([`queue::stand`]), played on over the ends
//! that can be foreseen.
//!
//! What runs ends when its progress says so, what begins meanwhile runs as long as its like did, and both end well. Of
//! what nobody knows how long it runs the place is taken as kept for ever: so what is said is never too early on its
//! account, and where everything hangs on it nothing is said.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use crate::model::entry::QueueEntry;
use crate::model::facts::Progress;
use crate::model::ids::{JobId, JobNumber};
use crate::model::member::Array;
use crate::model::queues::Queues;
use crate::model::time::{self, Timestamp};

use super::queue::{self, AtWork, EntryStanding, Offers, Readiness, UserLimits};
use super::slots::first_of;

/// What can be had, also later: places are taken, and given back when jobs end.
pub trait Outlook: Offers + Clone {
    /// From now on this job is there, as the entry asks.
    fn occupy(&mut self, job: &JobId, entry: &QueueEntry, place: &Self::Place);

    /// It has ended.
    fn vacate(&mut self, job: &JobId);

    /// The jobs that are where the entry could begin.
    fn in_the_way(&self, entry: &QueueEntry) -> Vec<JobId>;
}

/// A job of which the end is waited for: one that has an attempt, or one that waits itself, a member by its group and its
/// index there.
pub type Awaited = (JobId, Option<u32>);

/// What an entry waits for to end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Awaits {
    /// As a whole.
    pub all: Vec<Awaited>,
    /// Member by member, where some wait for others than the rest.
    pub each: HashMap<u32, Vec<Awaited>>,
    /// That it begins only if something goes wrong, or that nobody is there who would start it.
    pub is_vain: bool,
}

/// What is known of the time that is to come.
#[derive(Clone, Debug, Default)]
pub struct Foreseen {
    /// When each job that is at work ends; those whose end nobody knows are left out.
    pub ends: HashMap<JobId, Timestamp>,
    /// For how many seconds a job of an entry will run, where that is known.
    pub runs_for: HashMap<JobId, u64>,
    /// What each entry waits for; none for those that wait for nothing.
    pub awaits: HashMap<JobId, Awaits>,
}

/// When an entry is expected to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedStart {
    /// About then; of a group the first member, and the last.
    About {
        /// The first.
        first: Timestamp,
        /// The last, where all of them can be foreseen. Of a job by itself the same.
        last: Option<Timestamp>,
        /// Jobs in its way of which nobody knows when they end: it may begin sooner on their account.
        or_sooner: Vec<JobId>,
    },
    /// Nobody knows. These jobs are in its way, and nobody knows when they end; none where it does not hang on that.
    Unknown(Vec<JobId>),
}

impl ExpectedStart {
    /// When the first of it is expected to, where anybody can say that.
    pub fn first(&self) -> Option<Timestamp> {
        match self {
            Self::About { first, .. } => Some(*first),
            Self::Unknown(_) => None,
        }
    }

    /// When the last of it is expected to, where anybody can say that.
    pub fn last(&self) -> Option<Timestamp> {
        match self {
            Self::About { last, .. } => *last,
            Self::Unknown(_) => None,
        }
    }

    /// For people; `None` where there is nothing to say, since it starts at the next look.
    pub fn in_words(&self, now: Timestamp) -> Option<String> {
        self.told(now, &Timestamp::to_rfc3339)
    }

    /// The same, with instants as `clock` says them.
    pub fn told(&self, now: Timestamp, clock: &dyn Fn(Timestamp) -> String) -> Option<String> {
        let open = |jobs: &[JobId]| format!("when {} ends is not known", first_of(jobs));
        let at =
            |at: Timestamp| format!("in {}, at {}", time::age(at.seconds_since(now)), clock(at));
        match self {
            Self::About { first, .. } if *first <= now => None,
            Self::About { first, last, or_sooner } => {
                let mut said = format!("expected {}", at(*first));
                match last {
                    Some(last) if last > first => {
                        said += &format!("; the last of it {}", at(*last));
                    }
                    Some(_) => {}
                    None => said += "; when the last of it begins is not known",
                }
                if !or_sooner.is_empty() {
                    said += &format!("; or sooner: {}", open(or_sooner));
                }
                Some(said)
            }
            Self::Unknown(jobs) if jobs.is_empty() => Some("not known".to_owned()),
            Self::Unknown(jobs) => Some(format!("not known: {}", open(jobs))),
        }
    }

    /// In a cell: `now`, `~2h 04m`, `?`.
    pub fn in_short(&self, now: Timestamp) -> String {
        match self {
            Self::About { first, .. } if *first <= now => "now".to_owned(),
            Self::About { first, .. } => format!("~{}", time::age(first.seconds_since(now))),
            Self::Unknown(_) => "?".to_owned(),
        }
    }
}

/// How much may be played on: instants times entries. Ten thousand that wait are about fifty instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort(pub usize);

/// How things stand at the instant from which it is played on.
#[derive(Clone, Copy, Debug)]
pub struct Present<'a> {
    /// What waits.
    pub queues: &'a Queues,
    /// Who holds a place under a limit.
    pub at_work: &'a AtWork,
    /// The limits of users.
    pub limits: &'a UserLimits,
    /// The instant.
    pub now: Timestamp,
}

/// When each of the wanted entries is expected to begin, as far as that shows within this effort.
pub fn expected<P: Outlook>(
    Present { queues, at_work, limits, now }: Present<'_>,
    foreseen: &Foreseen,
    outlook: &P,
    is_wanted: &dyn Fn(&QueueEntry) -> bool,
    Effort(effort): Effort,
) -> HashMap<JobId, ExpectedStart> {
    let mut future = Future {
        queues: queues.clone(),
        at_work: at_work.clone(),
        limits,
        foreseen,
        outlook: outlook.clone(),
        ends: BinaryHeap::new(),
        has_ended: HashSet::new(),
        begins: HashMap::new(),
        begun: 0,
    };
    for (job, at) in &foreseen.ends {
        future
            .ends
            .push(Reverse(((*at).max(now), Ending { seat: job.clone(), is: (job.clone(), None) })));
    }
    let mut left = effort;
    let mut at = now;
    loop {
        let begun = future.begun;
        left = left.saturating_sub(future.queues.entries.len().max(1));
        left = left.saturating_sub(future.pass(at));
        // Who begins may use up a limit of somebody who was in the way of others: they begin at the next look.
        if future.begun > begun && left > 0 {
            continue;
        }
        if left == 0 || !future.queues.entries.iter().any(is_wanted) {
            break;
        }
        match future.next_end() {
            Some(next) => at = next,
            None => break,
        }
    }
    let say = |entry: &QueueEntry| {
        let unknown = |job: &JobId| !foreseen.ends.contains_key(job);
        let mut hidden: Vec<JobId> = outlook.in_the_way(entry);
        let awaits = foreseen.awaits.get(&entry.id());
        let awaited = awaits
            .into_iter()
            .flat_map(|awaits| awaits.all.iter().chain(awaits.each.values().flatten()));
        // What waits itself has an expected start of its own.
        let awaited = awaited.filter(|(job, _)| queues.entry(job).is_none());
        hidden.extend(awaited.map(|(job, _)| job.clone()));
        hidden.retain(unknown);
        hidden.sort_unstable();
        hidden.dedup();
        let known = future.begins.get(&entry.id());
        let said = match known {
            Some(&(first, last)) => {
                let is_whole = future.queues.entry(&entry.id()).is_none();
                let or_sooner = if first > now { hidden } else { Vec::new() };
                ExpectedStart::About { first, last: is_whole.then_some(last), or_sooner }
            }
            None => ExpectedStart::Unknown(hidden),
        };
        (entry.id(), said)
    };
    queues.entries.iter().filter(|entry| is_wanted(entry)).map(say).collect()
}

/// What ends: the job by the name under which it has its place, and as it is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ending {
    seat: JobId,
    is: Awaited,
}

/// The queue at an instant that is to come.
struct Future<'a, P> {
    queues: Queues,
    at_work: AtWork,
    limits: &'a UserLimits,
    foreseen: &'a Foreseen,
    outlook: P,
    ends: BinaryHeap<Reverse<(Timestamp, Ending)>>,
    has_ended: HashSet<Awaited>,
    /// When the first and the newest job of each entry began.
    begins: HashMap<JobId, (Timestamp, Timestamp)>,
    begun: u32,
}

impl<P: Outlook> Future<'_, P> {
    /// Lets begin whose turn it is, as the dispatcher does. What it costs.
    fn pass(&mut self, now: Timestamp) -> usize {
        let readiness = |at: usize| self.readiness(at);
        let at_work = (self.at_work.clone(), self.limits);
        let mut offers = self.outlook.clone();
        let standings = queue::stand(&self.queues, at_work, &readiness, &mut offers, now);
        let begin: Vec<(QueueEntry, EntryStanding<P::Place>)> = standings
            .into_iter()
            .filter(|standing| !standing.starts.is_empty())
            .filter_map(|standing| {
                Some((self.queues.entries.get(standing.entry)?.clone(), standing))
            })
            .collect();
        let before = self.begun;
        for (entry, standing) in begin {
            self.begin(&entry, &standing, now);
        }
        // Each end is looked for among all that run.
        let begun = usize::try_from(self.begun - before).unwrap_or(usize::MAX);
        begun.saturating_mul(1 + self.ends.len() / 16)
    }

    fn begin(&mut self, entry: &QueueEntry, standing: &EntryStanding<P::Place>, now: Timestamp) {
        let id = entry.id();
        let known = self.begins.entry(id.clone()).or_insert((now, now));
        known.1 = now;
        let group = entry.spec.member.map_or(entry.number, |member| member.group);
        let group = JobId::new(entry.user.clone(), group);
        for (nth, place) in standing.starts.iter().enumerate() {
            // A number that nobody has: each has a place of its own.
            let number = JobNumber(u32::MAX - self.begun);
            self.begun += 1;
            let seat = JobId::new(entry.user.clone(), number);
            self.outlook.occupy(&seat, entry, place);
            self.at_work.add(seat.clone(), Some(&entry.queue), Some(group.clone()));
            if let Some(seconds) = self.foreseen.runs_for.get(&id) {
                let is = (id.clone(), standing.members.get(nth).copied());
                self.ends
                    .push(Reverse((now.plus(Duration::from_secs(*seconds)), Ending { seat, is })));
            }
        }
        for passed in &standing.passes {
            let Some(front) = self.queues.entry_mut(passed) else { continue };
            front.passed.times = front.passed.times.saturating_add(1);
            front.passed.since.get_or_insert(now);
        }
        let rest = entry.spec.array.as_ref().and_then(|array| {
            let rest = array.indexes().iter().filter(|index| !standing.members.contains(index));
            array.only(rest.copied().collect())
        });
        match (rest, self.queues.entry_mut(&id)) {
            (Some(rest), Some(waiting)) => waiting.spec.array = Some(rest),
            (_, _) => drop(self.queues.take(&id)),
        }
    }

    /// Everything that ends at the next instant at which something does.
    fn next_end(&mut self) -> Option<Timestamp> {
        let Reverse((at, _)) = self.ends.peek()?;
        let at = *at;
        while let Some(Reverse((when, _))) = self.ends.peek()
            && *when == at
            && let Some(Reverse((_, ending))) = self.ends.pop()
        {
            self.outlook.vacate(&ending.seat);
            self.at_work.remove(&ending.seat);
            self.has_ended.insert(ending.is);
        }
        Some(at)
    }

    fn readiness(&self, at: usize) -> Readiness {
        let Some(entry) = self.queues.entries.get(at) else { return Readiness::default() };
        let Some(awaits) = self.foreseen.awaits.get(&entry.id()) else {
            return Readiness::default();
        };
        let is_open = |of: &Awaited| !self.has_ended.contains(of);
        let waits = awaits.is_vain || awaits.all.iter().any(is_open);
        let members = (!awaits.each.is_empty()).then(|| {
            let is_ready =
                |index: &&u32| awaits.each.get(index).is_none_or(|of| !of.iter().any(is_open));
            let all = entry.spec.array.as_ref().map(Array::indexes).unwrap_or_default();
            (all.iter().filter(is_ready).copied().collect(), String::new())
        });
        Readiness { after: waits.then(String::new), members, absent: None }
    }
}

/// For how many seconds a job will still run, by how far it came since it began `age_s` seconds ago at the fraction
/// `from`; by what it says itself, where it does.
pub fn remaining_s(progress: &Progress, from: f64, age_s: u64) -> Option<u64> {
    let told = progress.eta_s.or_else(|| {
        let speed = progress.steps_per_s.filter(|speed| *speed > 0.0)?;
        let left = progress.total?.saturating_sub(progress.step?);
        Some(as_float(left) / speed)
    });
    let by_share = || {
        let done = progress.fraction()?;
        let came = done - from;
        (came > 0.0).then(|| as_float(age_s) * (1.0 - done) / came)
    };
    whole(told.or_else(by_share)?)
}

/// The middle one of some durations, in seconds; `None` of none.
pub fn median_s(mut all: Vec<u64>) -> Option<u64> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

/// The share of a duration that is left to somebody who goes on from this fraction.
pub fn rest_s(duration_s: u64, from: f64) -> u64 {
    whole(as_float(duration_s) * (1.0 - from.clamp(0.0, 1.0))).unwrap_or(duration_s)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn as_float(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
fn whole(seconds: f64) -> Option<u64> {
    const YEARS: f64 = 3.0e9;
    (0.0..YEARS).contains(&seconds).then_some(seconds as u64)
}
