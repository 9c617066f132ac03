//! The queue in plain words: what the rules say of each job that waits, by itself, from everything that was decided
//! before it. Nothing is kept from one decision to the next.

use std::collections::BTreeSet;

use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::queue::QueuePolicy;

pub(super) const QUEUES: [&str; 3] = ["default", "night", "paper"];
/// The last one submits nothing in a history: see [`World::crowd`].
pub(super) const USERS: [&str; 3] = ["alice", "bob", "mallory"];
/// The same figures as in the contract, not those of the code.
pub(super) const PASSED_TIMES: u32 = 10;
const PASSED_SECONDS: i64 = 3600;

/// What stays as it is during a history.
#[derive(Clone, Debug)]
pub(super) struct Lab {
    /// Places of each target.
    pub(super) targets: Vec<u32>,
    /// How each queue goes, and how many of its jobs may be at work at once.
    pub(super) queues: Vec<(QueuePolicy, Option<u32>)>,
    /// How many jobs of each user may be.
    pub(super) limits: Vec<Option<u32>>,
}

/// What somebody asks for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) queue: usize,
    pub(super) user: usize,
    pub(super) priority: u8,
    pub(super) rank: i64,
    pub(super) members: Option<(u32, Option<u32>)>,
    pub(super) wish: Vec<usize>,
    pub(super) need: u32,
    pub(super) is_awaited: bool,
}

/// One that waits, as the model keeps it.
#[derive(Clone, Debug)]
pub(super) struct Waiter {
    pub(super) asked: Asked,
    pub(super) number: u32,
    /// The members that still wait; of a single job the one.
    pub(super) left: Vec<u32>,
    pub(super) is_held: bool,
    pub(super) is_unready: bool,
    pub(super) is_left: bool,
    pub(super) passed: (u32, Option<i64>),
}

impl Waiter {
    pub(super) fn id(&self) -> JobId {
        JobId::new(UserName::from(USERS[self.asked.user]), JobNumber(self.number))
    }

    /// Whether it has its turn before another.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        let (a, b) = (&self.asked, &other.asked);
        if a.priority != b.priority {
            return a.priority > b.priority;
        }
        if a.rank != b.rank {
            return a.rank < b.rank;
        }
        self.number < other.number
    }

    pub(super) fn at_once(&self) -> Option<u32> {
        self.asked.members.and_then(|(_, at_once)| at_once)
    }
}

/// One that runs.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub(super) job: JobId,
    pub(super) queue: usize,
    pub(super) user: usize,
    pub(super) target: usize,
    pub(super) need: u32,
    pub(super) at_once: Option<u32>,
}

/// What the rules say of one job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Begins(usize),
    Held,
    Paused,
    After,
    Absent,
    QueueFull,
    UserFull,
    GroupFull,
    Behind(JobId),
    NoPlace { kept: Option<usize> },
}

/// What was decided of one member of one waiter, in the order of the decisions.
#[derive(Clone, Debug)]
struct Decision {
    waiter: usize,
    fate: Fate,
    /// That it is the one of its queue whom those pass who begin behind it.
    is_passed: bool,
}

/// How one that waits is to stand: its place in its queue, where it begins, why the rest waits, and whom it passes.
pub(super) type Expected = (JobId, usize, Vec<usize>, Option<Fate>, Vec<JobId>);

pub(super) struct World {
    pub(super) lab: Lab,
    /// In the order in which they were submitted.
    pub(super) waiters: Vec<Waiter>,
    /// In the order in which they began.
    pub(super) running: Vec<Running>,
    pub(super) paused: BTreeSet<usize>,
    pub(super) now: i64,
    pub(super) next: u32,
}

/// What the rules say.
impl World {
    fn in_turn(&self) -> Vec<usize> {
        let before = |at: usize| {
            let own = &self.waiters[at];
            self.waiters.iter().filter(|other| other.is_before(own)).count()
        };
        let mut all: Vec<(usize, usize)> =
            (0..self.waiters.len()).map(|at| (before(at), at)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, at)| at).collect()
    }

    fn is_starved(&self, waiter: &Waiter) -> bool {
        let (times, since) = waiter.passed;
        times >= PASSED_TIMES || since.is_some_and(|since| self.now - since >= PASSED_SECONDS)
    }

    /// Whether as many as there may be are at work under a limit: those who run, those who begin now, and whoever is
    /// kept a place.
    fn is_full(
        &self,
        most: Option<u32>,
        so_far: &[Decision],
        is_of: impl Fn(usize, usize, &JobId) -> bool,
    ) -> bool {
        let running = self.running.iter().filter(|one| is_of(one.queue, one.user, &one.job));
        let new = so_far.iter().filter(|decision| {
            let waiter = &self.waiters[decision.waiter];
            matches!(decision.fate, Fate::Begins(_) | Fate::NoPlace { kept: Some(_) })
                && is_of(waiter.asked.queue, waiter.asked.user, &waiter.id())
        });
        most.is_some_and(|most| running.count() + new.count() >= most as usize)
    }

    /// What becomes of the next member of one who waits, after all that was decided before.
    fn fate(&self, at: usize, so_far: &[Decision]) -> Decision {
        let waiter = &self.waiters[at];
        let asked = &waiter.asked;
        let decided = |fate| Decision { waiter: at, fate, is_passed: false };
        let (policy, most) = self.lab.queues[asked.queue];
        if waiter.is_held {
            return decided(Fate::Held);
        }
        if self.paused.contains(&asked.queue) {
            return decided(Fate::Paused);
        }
        if waiter.is_unready {
            return decided(Fate::After);
        }
        if asked.is_awaited && waiter.is_left {
            return decided(Fate::Absent);
        }
        let mut of_queue =
            so_far.iter().filter(|one| self.waiters[one.waiter].asked.queue == asked.queue);
        let front = of_queue.clone().find(|one| matches!(one.fate, Fate::NoPlace { .. }));
        if let Some(front) = front.filter(|_| policy == QueuePolicy::Fifo) {
            return decided(Fate::Behind(self.waiters[front.waiter].id()));
        }
        if self.is_full(most, so_far, |queue, _, _| queue == asked.queue) {
            return decided(Fate::QueueFull);
        }
        let of_user = self.lab.limits.get(asked.user).copied().flatten();
        if self.is_full(of_user, so_far, |_, user, _| user == asked.user) {
            return decided(Fate::UserFull);
        }
        if self.is_full(waiter.at_once(), so_far, |_, _, job| *job == waiter.id()) {
            return decided(Fate::GroupFull);
        }
        let there = |target: usize| {
            let old = self.running.iter().filter(move |one| one.target == target);
            let new = so_far.iter().filter(move |one| one.fate == Fate::Begins(target));
            let new = new.map(|one| self.waiters[one.waiter].asked.need);
            old.map(|one| one.need).chain(new)
        };
        let is_kept = |target: usize| {
            so_far.iter().any(|one| one.fate == Fate::NoPlace { kept: Some(target) })
        };
        let open = || asked.wish.iter().copied().filter(|target| !is_kept(*target));
        let fits =
            |target: &usize| there(*target).sum::<u32>() + asked.need <= self.lab.targets[*target];
        if let Some(target) = open().find(fits) {
            return decided(Fate::Begins(target));
        }
        let later = open().filter(|target| asked.need <= self.lab.targets[*target]);
        let soonest = later.min_by_key(|target| there(*target).count());
        let is_passed = soonest.is_some() && !of_queue.any(|one| one.is_passed);
        let kept = soonest.filter(|_| is_passed && self.is_starved(waiter));
        Decision { waiter: at, fate: Fate::NoPlace { kept }, is_passed }
    }

    pub(super) fn expected(&self) -> Vec<Expected> {
        let mut so_far: Vec<Decision> = Vec::new();
        let mut expected = Vec::new();
        for at in self.in_turn() {
            let waiter = &self.waiters[at];
            let id = |one: &Decision| self.waiters[one.waiter].id();
            let passes: Vec<JobId> = so_far.iter().filter(|one| one.is_passed).map(id).collect();
            let mut starts = Vec::new();
            let mut waits = None;
            for _ in &waiter.left {
                let decision = self.fate(at, &so_far);
                so_far.push(decision.clone());
                match decision.fate {
                    Fate::Begins(target) => starts.push(target),
                    fate => {
                        waits = Some(fate);
                        break;
                    }
                }
            }
            let in_front = |other: &&Waiter| {
                other.asked.queue == waiter.asked.queue && other.is_before(waiter)
            };
            let position = 1 + self.waiters.iter().filter(in_front).count();
            let passes = if starts.is_empty() { Vec::new() } else { passes };
            expected.push((waiter.id(), position, starts, waits, passes));
        }
        expected
    }
}
