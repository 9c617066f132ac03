//! Sees what waits in the queues of the simulated world, and says which of the things that must never happen there has
//! happened:
//!
//! * 12: two starts of one entry, or of one member.
//! * 13: more at work than a queue or a group has places for.
//! * 14: a start of what is held, in a queue that is paused, or whose dependency is not met.
//! * 15: a start on a target that somebody in front of it was ready for.
//! * 16: a target that is free while somebody waits for it.
//! * 17: an entry that is nowhere any more, and nobody took it out.
//!
//! What was asked for it knows from those who asked; the order is that of the plain rules: priority, rank, submission.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::data::Data;
use tpu_core::model::entry::{AfterWhich, QueueEntry};
use tpu_core::model::facts::Origin;
use tpu_core::model::ids::{JobId, QueueName};
use tpu_core::model::job::{Job, Launch, Status};
use tpu_core::model::queue::{QueuePolicy, QueueState};
use tpu_core::model::rules::Action;
use tpu_core::model::spec::TargetRequest;
use tpu_core::plan::budget::{Budget, RetryCounts};

use super::actors::lineage_of;
use super::observer::Health;
use super::world::{Pid, State};

/// What a process saw of the data file so long ago, in its own running time, may be what it acts on.
const ACTS_ON: Duration = Duration::from_secs(60);

/// What was asked for with one submission.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) queue: QueueName,
    /// The lineages of its members, or the one that it is.
    pub(crate) lineages: Vec<u32>,
    pub(crate) at_once: Option<u32>,
    /// How which lineages have to end before.
    pub(crate) after: Vec<(AfterWhich, Vec<u32>)>,
}

/// What is known of all that was submitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    asked: Vec<Asked>,
    /// Who waits at a terminal goes with his process, and who is taken out is nowhere.
    pub(crate) may_vanish: BTreeSet<u32>,
    /// The lineages that wait or have waited.
    submitted: BTreeSet<u32>,
    /// Whether disks and tmux fail: who could not begin for that is passed for once.
    is_faulty: bool,
    version: u64,
    now: Option<Arc<Data>>,
    /// The launches of first attempts, by lineage.
    begun: BTreeMap<u32, BTreeSet<String>>,
    ended_well: BTreeSet<u32>,
    ended_badly: BTreeSet<u32>,
    /// The highest limit that a queue has ever had.
    highest: BTreeMap<QueueName, Option<u32>>,
    /// When it last could not have begun, or did not stand where it stands in the order.
    unready: BTreeMap<u32, u64>,
    reads: BTreeMap<Pid, VecDeque<(Duration, u64)>>,
}

/// The lineages of the members of an entry that wait, or of the job that it is.
pub(crate) fn lineages_of(entry: &QueueEntry) -> Vec<u32> {
    let members: Vec<Option<u32>> = match &entry.spec.array {
        None => vec![None],
        Some(array) => array.indexes().iter().copied().map(Some).collect(),
    };
    let lineage = |member: Option<u32>| {
        let configs = entry.spec_of(member).configs;
        configs.iter().find(|(key, _)| key == "config.lineage")?.1.parse().ok()
    };
    members.into_iter().filter_map(lineage).collect()
}

/// Whether an attempt has failed, and nobody has seen its end.
pub(crate) fn is_open(job: &Job) -> bool {
    let is_unseen = job.launch.as_ref().is_some_and(|of| of.exit.is_none() && !of.over);
    is_unseen && matches!(job.status, Status::Error(_))
}

/// Whether an attempt that has failed is to be brought back by its rules, or by what was begun.
pub(crate) fn comes_back(job: &Job) -> bool {
    let Status::Error(kind) = job.status else { return false };
    let stopped = job.recovery.as_ref().is_some_and(|of| of.stopped.is_some() || of.blocked);
    let progress = job.reached.clone().unwrap_or_default();
    let is_begun = job.intent.as_ref().is_some_and(|intent| intent.by_rule().is_some());
    let budget = Budget::of(job, kind);
    // How long infrastructure is waited for is no count: its end is told by the record.
    let waits = kind.origin() == Origin::Infrastructure && budget == Budget::Infrastructure;
    let is_left = RetryCounts::of(job, &progress, kind).left(budget) > 0;
    let is_due = job.rules.action(kind) != Action::Pass && (is_left || waits);
    job.monitor && !stopped && (is_begun || is_due)
}

/// Who is at work, by records, or comes back there.
fn leaves(data: &Data) -> impl Iterator<Item = &Job> {
    data.jobs().filter(|job| job.child.is_none())
}

fn group_of(job: &Job) -> Option<JobId> {
    job.member().map(|member| JobId::new(job.user.clone(), member.group))
}

fn queue_of(job: &Job) -> Option<&QueueName> {
    job.spec.as_ref()?.queue.as_ref()
}

/// Whether anything of a lineage waits or may still come: its last attempt is recorded.
fn is_known(data: &Data, lineage: u32) -> bool {
    let mut waiting = data.queues().entries.iter().flat_map(lineages_of);
    waiting.any(|one| one == lineage) || leaves(data).any(|job| lineage_of(job) == Some(lineage))
}

/// Those at work of whom something is so; with those who come back, or without.
fn count(data: &Data, with_coming: bool, is_of: &dyn Fn(&Job) -> bool) -> usize {
    let counts = |job: &&Job| job.status.is_live() || with_coming && comes_back(job);
    leaves(data).filter(counts).filter(|job| is_of(job)).count()
}

/// The same with those who have failed and of whom nobody has seen an end: from another machine nobody can tell.
fn count_all(data: &Data, is_of: &dyn Fn(&Job) -> bool) -> usize {
    let is_unseen = |job: &Job| is_open(job) && !comes_back(job);
    count(data, true, is_of) + leaves(data).filter(|job| is_unseen(job) && is_of(job)).count()
}

/// Jobs of whom something is so, and how each is, for whoever reads of what is wrong.
fn told(data: &Data, is_of: &dyn Fn(&Job) -> bool) -> String {
    let all = data.jobs().filter(|job| is_of(job)).map(|job| {
        let exit = job.launch.as_ref().and_then(|launch| launch.exit);
        let father = job.father;
        format!(
            "{} {} (exit {exit:?}, comes back: {}, after {father:?})",
            job.id(),
            job.status,
            comes_back(job)
        )
    });
    all.collect::<Vec<_>>().join("; ")
}

fn is_more(count: usize, most: Option<u32>) -> bool {
    most.is_some_and(|most| count > most as usize)
}

/// Whether an entry has its turn before another one.
fn is_before(data: &Data, one: &QueueEntry, other: &QueueEntry) -> bool {
    let entries = &data.queues().entries;
    let key = |of: &QueueEntry| {
        let at = entries.iter().position(|entry| entry.id() == of.id());
        (Reverse(of.priority), of.rank, at)
    };
    key(one) < key(other)
}

/// Whether somebody in front may keep the rest of a queue waiting.
fn is_blocked(own: &QueueEntry, data: &Data) -> bool {
    let queue = data.queues().queue(&own.queue);
    let in_front = |other: &QueueEntry| other.queue == own.queue && is_before(data, other, own);
    queue.is_some_and(|queue| queue.policy == QueuePolicy::Fifo)
        && data.queues().entries.iter().any(in_front)
}

impl Turns {
    pub(crate) fn new(is_faulty: bool) -> Self {
        Self { is_faulty, ..Self::default() }
    }

    /// Somebody is about to submit something.
    pub(crate) fn asks(&mut self, asked: Asked) {
        self.asked.push(asked);
    }

    pub(crate) fn asked_of(&self, lineage: u32) -> Option<&Asked> {
        self.asked.iter().find(|asked| asked.lineages.contains(&lineage))
    }

    pub(crate) fn submitted(&self) -> &BTreeSet<u32> {
        &self.submitted
    }

    /// How much was submitted.
    pub(crate) fn len(&self) -> usize {
        self.asked.len()
    }

    /// A process has read the data file.
    pub(crate) fn read_by(&mut self, me: Pid, at: Duration) {
        let reads = self.reads.entry(me).or_default();
        reads.push_back((at, self.version));
        while reads.get(1).is_some_and(|(next, _)| *next + ACTS_ON < at) {
            reads.pop_front();
        }
    }

    /// The machine has lost what was not on the platter.
    pub(crate) fn falls_back(&mut self, data: &Data, archived: &str) {
        let known: BTreeSet<&str> =
            data.jobs().filter_map(|job| Some(job.launch.as_ref()?.token.as_str())).collect();
        for tokens in self.begun.values_mut() {
            tokens.retain(|token| known.contains(token.as_str()) || archived.contains(&**token));
        }
        self.now = None;
    }

    /// The data file is another one: what of that must never be.
    pub(crate) fn changed(&mut self, data: Data, by: Option<Pid>) -> Vec<String> {
        self.version += 1;
        let mut wrong = Vec::new();
        let data = Arc::new(data);
        let before = self.now.replace(Arc::clone(&data));
        for queue in data.queues().all() {
            let highest = self.highest.entry(queue.name).or_insert(Some(0));
            *highest = highest.zip(queue.max_parallel).map(|(a, b)| a.max(b));
        }
        self.note_ends(&data);
        self.submitted.extend(data.queues().entries.iter().flat_map(lineages_of));
        if let Some(before) = &before {
            self.forget_given_back(before, &data);
        }
        for job in data.jobs() {
            let (Some(lineage), Some(launch)) = (lineage_of(job), &job.launch) else { continue };
            if job.father.is_some() || self.asked_of(lineage).is_none() {
                continue;
            }
            let tokens = self.begun.entry(lineage).or_default();
            if !tokens.insert(launch.token.as_str().to_owned()) {
                continue;
            }
            if tokens.len() > 1 {
                wrong.push(format!("12: lineage {lineage} is begun twice: {tokens:?}"));
            }
            if let Some(before) = &before {
                wrong.extend(self.begins(lineage, job, (before, &data), by));
            }
        }
        wrong.extend(self.at_work(&data));
        if let Some(before) = &before {
            wrong.extend(self.forgotten(before, &data));
            self.note_unready(before, &data);
        }
        wrong
    }

    /// What was claimed and waits again has not begun.
    fn forget_given_back(&mut self, before: &Data, data: &Data) {
        for job in before.jobs().filter(|job| job.waited.is_some()) {
            let (Some(lineage), Some(launch)) = (lineage_of(job), &job.launch) else { continue };
            let is_it = |of: &Launch| of.token == launch.token;
            let is_there = data.jobs().any(|job| job.launch.as_ref().is_some_and(is_it));
            let mut waiting = data.queues().entries.iter().flat_map(lineages_of);
            if !is_there
                && waiting.any(|waits| waits == lineage)
                && let Some(tokens) = self.begun.get_mut(&lineage)
            {
                tokens.remove(launch.token.as_str());
            }
        }
    }

    fn note_ends(&mut self, data: &Data) {
        for job in leaves(data) {
            let Some(lineage) = lineage_of(job) else { continue };
            match job.status {
                Status::Finished => drop(self.ended_well.insert(lineage)),
                Status::Killed(_) => drop(self.ended_badly.insert(lineage)),
                Status::Error(_) if !comes_back(job) => drop(self.ended_badly.insert(lineage)),
                _ => {}
            }
        }
    }

    /// Whether what a submission waits for has ended as it is to.
    fn is_free(&self, asked: &Asked, data: &Data) -> bool {
        asked.after.iter().all(|(which, lineages)| {
            // Of a group of which some were taken out the others count.
            lineages.iter().filter(|lineage| !self.may_vanish.contains(lineage)).all(|lineage| {
                let (well, badly) =
                    (self.ended_well.contains(lineage), self.ended_badly.contains(lineage));
                match which {
                    AfterWhich::Ok | AfterWhich::Each => well,
                    AfterWhich::Not => badly,
                    // Of what was cleared away nothing comes any more.
                    AfterWhich::Any => well || badly || !is_known(data, *lineage),
                }
            })
        })
    }

    /// A first attempt is claimed.
    fn begins(
        &self,
        lineage: u32,
        job: &Job,
        (before, data): (&Data, &Data),
        by: Option<Pid>,
    ) -> Vec<String> {
        let mut wrong = Vec::new();
        let waits = |entry: &&QueueEntry| lineages_of(entry).contains(&lineage);
        let Some(entry) = before.queues().entries.iter().find(waits) else {
            return vec![format!("12: lineage {lineage} begins, and did not wait")];
        };
        let Some(asked) = self.asked_of(lineage) else { return wrong };
        let queue = before.queues().queue(&entry.queue);
        if let Some(hold) = &entry.held {
            wrong.push(format!("14: lineage {lineage} begins, and is {hold}"));
        }
        if queue.as_ref().is_some_and(|queue| queue.state == QueueState::Paused) {
            wrong.push(format!("14: lineage {lineage} begins in {}, which is paused", entry.queue));
        }
        if !self.is_free(asked, before) {
            let (id, after) = (entry.id(), &asked.after);
            wrong.push(format!("14: lineage {lineage} of {id} begins, and was to wait: {after:?}"));
        }
        let of_queue = count(data, true, &|job| queue_of(job) == Some(&entry.queue));
        let most = queue.as_ref().and_then(|queue| queue.max_parallel);
        if is_more(of_queue, most) {
            wrong.push(format!(
                "13: {of_queue} are at work of {}, as {lineage} begins",
                entry.queue
            ));
        }
        let of_group = count(data, true, &|job| group_of(job) == Some(entry.id()));
        if is_more(of_group, asked.at_once) {
            wrong.push(format!("13: {of_group} are at work of {}", entry.id()));
        }
        let passed = self.passes(entry, job, (before, data), by);
        wrong.extend(passed.filter(|_| !self.is_faulty).map(|other| {
            let (id, on) = (entry.id(), &job.tpu);
            format!("15: lineage {lineage} of {id} begins on {on}, for which {other} was ready")
        }));
        wrong
    }

    /// Who in front was ready for the target on which somebody begins, and could have had no other.
    fn passes(
        &self,
        own: &QueueEntry,
        job: &Job,
        (before, data): (&Data, &Data),
        by: Option<Pid>,
    ) -> Option<JobId> {
        let (_, saw) = self.reads.get(&by?)?.front()?;
        for other in before.queues().entries.iter().filter(|other| is_before(before, other, own)) {
            let still_waits = data.queues().entry(&other.id()).is_some();
            let is_of_place = other.place == own.place && other.keeper.is_none();
            let TargetRequest::Named(name) = &other.spec.target else { continue };
            let could = still_waits && is_of_place && name == job.tpu.as_str();
            if !could || self.is_kept_back(other, before) || is_blocked(other, before) {
                continue;
            }
            let last = lineages_of(other).iter().filter_map(|one| self.unready.get(one)).max();
            if last.is_none_or(|last| last < saw) {
                return Some(other.id());
            }
        }
        None
    }

    /// Whether an entry is kept from beginning by anything but a place.
    fn is_kept_back(&self, entry: &QueueEntry, data: &Data) -> bool {
        let Some(queue) = data.queues().queue(&entry.queue) else { return true };
        let asked = lineages_of(entry).first().and_then(|lineage| self.asked_of(*lineage));
        let is_full =
            |count: usize, most: Option<u32>| most.is_some_and(|most| count >= most as usize);
        entry.held.is_some()
            || queue.state == QueueState::Paused
            || !entry.after.is_empty()
            || asked.is_none_or(|asked| !self.is_free(asked, data))
            || is_full(
                count_all(data, &|job| queue_of(job) == Some(&entry.queue)),
                queue.max_parallel,
            )
            || is_full(
                count_all(data, &|job| group_of(job) == Some(entry.id())),
                asked.and_then(|asked| asked.at_once),
            )
    }

    fn note_unready(&mut self, before: &Data, data: &Data) {
        let mut unready = Vec::new();
        for entry in &data.queues().entries {
            let old = before.queues().entry(&entry.id());
            let stood = |old: &QueueEntry| (old.priority, old.rank) == (entry.priority, entry.rank);
            if !old.is_some_and(stood) || self.is_kept_back(entry, data) {
                unready.extend(lineages_of(entry));
            }
        }
        let version = self.version;
        self.unready.extend(unready.into_iter().map(|lineage| (lineage, version)));
    }

    /// At no moment more are at work than there may be.
    fn at_work(&self, data: &Data) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, most) in &self.highest {
            let of_queue = count(data, false, &|job| queue_of(job) == Some(name));
            if is_more(of_queue, *most) {
                let told = told(data, &|job| queue_of(job) == Some(name));
                let what = format!("13: {of_queue} are at work of {name}, at most {most:?}");
                wrong.push(format!("{what}: {told}"));
            }
        }
        // Once all members have begun nothing says any more how many may be at work: what somebody brings back by hand
        // is beside the limit.
        let waiting: BTreeSet<u32> = data.queues().entries.iter().flat_map(lineages_of).collect();
        let waits = |asked: &&Asked| {
            asked.at_once.is_some() && asked.lineages.iter().any(|one| waiting.contains(one))
        };
        for asked in self.asked.iter().filter(waits) {
            let is_of =
                |job: &Job| lineage_of(job).is_some_and(|one| asked.lineages.contains(&one));
            let of_group = count(data, false, &is_of);
            if is_more(of_group, asked.at_once) {
                wrong.push(format!("13: {of_group} are at work of {:?}", asked.lineages));
            }
        }
        wrong
    }

    /// What waited and does not any more has begun, or was taken out.
    fn forgotten(&self, before: &Data, data: &Data) -> Vec<String> {
        let waits = |data: &Data| -> BTreeSet<u32> {
            data.queues().entries.iter().flat_map(lineages_of).collect()
        };
        let (then, now) = (waits(before), waits(data));
        let gone = then.difference(&now).filter(|lineage| {
            let is_its = |job: &Job| lineage_of(job) == Some(**lineage);
            !self.may_vanish.contains(lineage) && !data.jobs().any(is_its)
        });
        gone.map(|lineage| format!("17: lineage {lineage} waits no more and is nowhere")).collect()
    }

    /// Who could begin on a target, if that is free: the ready who stand behind nobody.
    pub(crate) fn ready_for(&self, target: &str) -> Option<JobId> {
        let data = self.now.as_ref()?;
        let is_ready = |entry: &&QueueEntry| {
            matches!(&entry.spec.target, TargetRequest::Named(name) if name == target)
                && entry.keeper.is_none()
                && !self.is_kept_back(entry, data)
                && !is_blocked(entry, data)
        };
        data.queues().entries.iter().find(is_ready).map(QueueEntry::id)
    }

    /// What waits.
    pub(crate) fn waiting(&self) -> Vec<JobId> {
        let Some(data) = &self.now else { return Vec::new() };
        data.queues().entries.iter().map(QueueEntry::id).collect()
    }

    /// Whether a record holds a target, or may come back to it.
    pub(crate) fn is_held(&self, target: &str) -> bool {
        self.now.as_ref().is_none_or(|data| {
            leaves(data).any(|job| {
                job.tpu.as_str() == target
                    && (job.status.is_live()
                        || job.intent.is_some()
                        || is_open(job)
                        || comes_back(job))
            })
        })
    }
}

impl State {
    /// Programs that work, of a queue or a group, are never more than may.
    pub(crate) fn turns_hold(&mut self) {
        let Some(turns) = &self.observer.turns else { return };
        let working: Vec<u32> = self
            .observer
            .live()
            .filter(|(_, program)| program.health == Health::Working)
            .map(|(_, program)| program.lineage)
            .collect();
        let mut wrong = Vec::new();
        let waiting: BTreeSet<u32> = turns
            .now
            .iter()
            .flat_map(|data| data.queues().entries.iter().flat_map(lineages_of))
            .collect();
        let waits = |asked: &&Asked| {
            asked.at_once.is_some() && asked.lineages.iter().any(|one| waiting.contains(one))
        };
        for asked in turns.asked.iter().filter(waits) {
            let of_group = working.iter().filter(|one| asked.lineages.contains(one)).count();
            if is_more(of_group, asked.at_once) {
                wrong.push(format!("13: {of_group} work of {:?}", asked.lineages));
            }
        }
        for (name, most) in &turns.highest {
            let is_its = |one: &&u32| turns.asked_of(**one).is_some_and(|of| of.queue == *name);
            let of_queue = working.iter().filter(is_its).count();
            if is_more(of_queue, *most) {
                wrong.push(format!("13: {of_queue} work of {name}, at most {most:?}"));
            }
        }
        for text in wrong {
            self.violation(text);
        }
    }
}
