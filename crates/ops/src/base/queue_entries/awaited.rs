//! The ends for which entries of the queue wait, as far as records tell.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::{After, AfterWhich, QueueEntry};
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::{Job, Status, Succession};
use tpu_core::model::lineage::{self, Lineage};
use tpu_core::model::member::Array;
use tpu_core::model::task::SubmittedTask;
use tpu_core::plan::budget::comes_back;
use tpu_core::plan::expected::{Awaited, Awaits};
use tpu_core::plan::slots::first_of;

/// What the jobs that an entry waits for have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// It waits for nothing any more.
    Free,
    /// It waits for these.
    Waits(String),
    /// It can begin no more: what it waited for has ended otherwise.
    Never(String),
}

/// How a job that is waited for stands.
pub(crate) enum End {
    /// It has ended well.
    Well,
    /// It has ended otherwise: how.
    Ill(String),
    /// It has not ended: why, and the jobs that have to.
    Open(String, Vec<Awaited>),
    /// Nobody knows it any more.
    Gone,
}

/// What the members of a group have come to, where each waits for the one of the same index of another group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    /// Those that wait for nothing any more.
    pub ready: Vec<u32>,
    /// What the others wait for.
    pub waits: String,
    /// Those that can begin no more, and why.
    pub never: Vec<(u32, String)>,
}

/// What one end is to somebody who waits for it.
pub(crate) enum Met {
    Yes,
    NotYet(String),
    Never(String),
}

/// Whether an end is the one that is waited for.
pub(crate) fn met(which: AfterWhich, who: &str, end: &End) -> Met {
    match (which, end) {
        (_, End::Open(how, _)) => Met::NotYet(format!("{who} ({how})")),
        // However it ended, it has.
        (AfterWhich::Any, End::Well | End::Ill(_) | End::Gone)
        | (AfterWhich::Ok | AfterWhich::Each, End::Well)
        | (AfterWhich::Not, End::Ill(_)) => Met::Yes,
        (AfterWhich::Not, End::Well) => {
            Met::Never(format!("it was to begin if {who} failed, which ended well"))
        }
        (_, End::Gone) => Met::Never(format!("{who} is not known any more")),
        (AfterWhich::Ok | AfterWhich::Each, End::Ill(how)) => {
            Met::Never(format!("{who} did not end well: {how}"))
        }
    }
}

/// Which member of the group that is waited for a job is.
pub(crate) fn index_in(job: &Job, after: &After) -> Option<u32> {
    job.member().filter(|of| of.group == after.job.window).map(|of| of.index)
}

/// The ends for which entries wait, by one reading of the file: what many wait for is looked up once.
pub(crate) struct AwaitedEnds<'d> {
    data: &'d Data,
    known: RefCell<HashMap<Awaited, Rc<EndsOfJob>>>,
    lineages: RefCell<HashMap<&'d UserName, Rc<[Lineage]>>>,
    waiting: OnceCell<Waiting<'d>>,
}

/// The jobs of one condition, each with how it stands.
pub(crate) type EndsOfJob = Vec<(String, End)>;

/// What waits, to be looked up.
#[derive(Default)]
struct Waiting<'d> {
    entries: HashMap<(&'d UserName, JobNumber), &'d QueueEntry>,
    /// What goes on from a job.
    successors: HashMap<(&'d UserName, JobNumber), JobNumber>,
    /// The tasks of files.
    tasks: HashMap<(&'d UserName, JobNumber), &'d SubmittedTask>,
}

impl<'d> AwaitedEnds<'d> {
    /// Those of a file.
    pub(crate) fn of_file(data: &'d Data) -> Self {
        Self {
            data,
            known: RefCell::default(),
            lineages: RefCell::default(),
            waiting: OnceCell::new(),
        }
    }

    /// What an entry still waits for.
    pub(crate) fn still(&self, entry: &QueueEntry) -> Vec<After> {
        let is_met = |after: &After| {
            let ends = self.of(after);
            ends.iter().all(|(who, end)| matches!(met(after.which, who, end), Met::Yes))
        };
        let (each, whole): (Vec<_>, Vec<_>) =
            entry.after.iter().partition(|after| after.which == AfterWhich::Each);
        let whole = whole.into_iter().filter(|after| !is_met(after));
        let mut still: Vec<After> = whole.map(|after| self.of_leaf(after)).collect();
        let own = entry.spec.array.as_ref().map(Array::indexes).unwrap_or_default();
        for after in each {
            let is_over = |index: &u32| is_met(&After { member: Some(*index), ..after.clone() });
            let known = after.met.as_ref().map(Array::indexes).unwrap_or_default();
            let (over, open): (Vec<u32>, Vec<u32>) =
                own.iter().partition(|index| known.contains(index) || is_over(index));
            if !open.is_empty() {
                still.push(After { met: Array::of(over), ..after.clone() });
            }
        }
        still
    }

    /// The same by the newest attempt of the lineage: those before it may be cleared away while that is at work.
    fn of_leaf(&self, after: &After) -> After {
        let user = self.data.user(&after.job.user).filter(|_| after.member.is_none());
        let leaf = user.and_then(|user| {
            let lineages = self.lineages(user);
            lineages.iter().find(|one| one.windows.contains(&after.job.window))?.leaf()
        });
        let job = leaf.map(|leaf| JobId::new(after.job.user.clone(), leaf));
        After { job: job.unwrap_or_else(|| after.job.clone()), ..after.clone() }
    }

    /// Of the groups that an entry waits for, each member among these that did not end as it was to.
    pub(crate) fn in_vain(&self, entry: &QueueEntry, leaving: &[JobId]) -> Vec<After> {
        let wholes = entry.after.iter();
        let wholes =
            wholes.filter(|after| after.member.is_none() && after.which != AfterWhich::Each);
        let mut in_vain = Vec::new();
        for after in wholes {
            for (who, end) in self.of(after).iter() {
                let job = leaving.iter().find(|id| id.to_string() == *who);
                let Some(job) = job.and_then(|id| self.data.job(id)) else { continue };
                // What a rule would have brought back comes back no more.
                let is_over = matches!(end, End::Open(..)) && !job.status.is_live();
                let end = if is_over { &End::Ill(how_it_ended(job)) } else { end };
                if let (Some(index), Met::Never(_)) =
                    (index_in(job, after), met(after.which, who, end))
                {
                    in_vain.push(After { member: Some(index), ..after.clone() });
                }
            }
        }
        in_vain
    }

    /// What an entry waits for as a whole.
    pub(crate) fn dependence(&self, entry: &QueueEntry) -> Dependence {
        let mut waits = Vec::new();
        if let Some(of) = entry.succeeds {
            let job = JobId::new(entry.user.clone(), of.job);
            match self.data.job(&job) {
                None => return Dependence::Never(format!("{job} is not known any more")),
                Some(before) if before.status.is_live() => {
                    waits.push(format!("{job} has stopped"));
                }
                Some(before) => {
                    if let Some(child) = before.child {
                        return Dependence::Never(format!("{job} continues as {child} already"));
                    }
                    if before.status == Status::Finished
                        && of.how == Succession::Resume
                        && !of.is_told
                    {
                        return Dependence::Never(format!("{job} ended well by itself"));
                    }
                }
            }
        }
        for after in entry.after.iter().filter(|after| after.which != AfterWhich::Each) {
            for (who, end) in self.of(after).iter() {
                match met(after.which, who, end) {
                    Met::Yes => {}
                    Met::NotYet(whom) => waits.push(whom),
                    Met::Never(why) => return Dependence::Never(why),
                }
            }
        }
        if waits.is_empty() {
            return Dependence::Free;
        }
        Dependence::Waits(format!("after {}", first_of(&waits)))
    }

    /// What its members wait for one by one, if they do.
    pub(crate) fn each(&self, entry: &QueueEntry) -> Option<Each> {
        let conditions: Vec<&After> =
            entry.after.iter().filter(|after| after.which == AfterWhich::Each).collect();
        if conditions.is_empty() {
            return None;
        }
        let (mut ready, mut waits, mut never) = (Vec::new(), Vec::new(), Vec::new());
        for index in entry.spec.array.as_ref()?.indexes() {
            let open = conditions.iter().filter(|after| {
                after.met.as_ref().is_none_or(|met| !met.indexes().contains(index))
            });
            let mut is_ready = true;
            for after in open {
                let of_member = After { member: Some(*index), ..(*after).clone() };
                for (who, end) in self.of(&of_member).iter() {
                    match met(after.which, who, end) {
                        Met::Yes => continue,
                        Met::NotYet(whom) => waits.push(whom),
                        Met::Never(why) => never.push((*index, why)),
                    }
                    is_ready = false;
                }
            }
            if is_ready {
                ready.push(*index);
            }
        }
        never.dedup_by_key(|(index, _)| *index);
        let waits = match never.first() {
            Some((_, why)) if waits.is_empty() => why.clone(),
            _ => format!("after {}", first_of(&waits)),
        };
        Some(Each { ready, waits, never })
    }

    /// The jobs for which it waits, whoever they are by now.
    pub(crate) fn awaits(&self, entry: &QueueEntry) -> Awaits {
        let mut awaits = Awaits::default();
        let before = entry.succeeds.map(|of| JobId::new(entry.user.clone(), of.job));
        let lives = |job: &JobId| self.data.job(job).is_some_and(|job| job.status.is_live());
        awaits.all.extend(before.filter(lives).map(|job| (job, None)));
        let own = entry.spec.array.as_ref().map(Array::indexes).unwrap_or_default();
        for after in &entry.after {
            // All are taken to end well.
            let is_vain = after.which == AfterWhich::Not;
            if after.which != AfterWhich::Each {
                for job in self.open(after) {
                    awaits.is_vain |= is_vain;
                    awaits.all.push(job);
                }
                continue;
            }
            let known = after.met.as_ref().map(Array::indexes).unwrap_or_default();
            for index in own.iter().filter(|index| !known.contains(index)) {
                let of_member = After { member: Some(*index), ..after.clone() };
                awaits.each.entry(*index).or_default().extend(self.open(&of_member));
            }
        }
        awaits.is_vain |= matches!(self.dependence(entry), Dependence::Never(_));
        awaits
    }

    /// The jobs of one condition that have not ended.
    fn open(&self, after: &After) -> Vec<Awaited> {
        let ends = self.of(after);
        let open = ends.iter().filter_map(|(_, end)| match end {
            End::Open(_, jobs) => Some(jobs.iter().cloned()),
            End::Well | End::Ill(_) | End::Gone => None,
        });
        open.flatten().collect()
    }

    /// The jobs of one condition.
    pub(crate) fn of(&self, after: &After) -> Rc<EndsOfJob> {
        let key = (after.job.clone(), after.member);
        if let Some(known) = self.known.borrow().get(&key) {
            return Rc::clone(known);
        }
        let ends = Rc::new(self.look_up(after));
        self.known.borrow_mut().insert(key, Rc::clone(&ends));
        ends
    }

    fn look_up(&self, after: &After) -> EndsOfJob {
        let Some(user) = self.data.user(&after.job.user) else {
            return vec![(after.of(), End::Gone)];
        };
        let waiting = self.waiting.get_or_init(|| Waiting::of(self.data));
        let member = after.member;
        let mut all = EndsOfJob::new();
        if let Some(waiting) = waiting.entries.get(&(&user.name, after.job.window)) {
            let id = waiting.id();
            let open: Vec<Awaited> = match (&waiting.spec.array, member) {
                (Some(array), Some(index)) if !array.indexes().contains(&index) => Vec::new(),
                (Some(_), Some(index)) => vec![(id, Some(index))],
                (Some(array), None) => {
                    array.indexes().iter().map(|index| (id.clone(), Some(*index))).collect()
                }
                (None, _) => vec![(id, None)],
            };
            if !open.is_empty() {
                all.push((after.of(), End::Open("queued".to_owned(), open)));
            }
        }
        let is_meant = |job: JobNumber| {
            user.job(job).and_then(Job::member).is_some_and(|of| {
                of.group == after.job.window && member.is_none_or(|index| of.index == index)
            })
        };
        for lineage in self.lineages(user).iter() {
            let Some(leaf) = lineage.leaf() else { continue };
            let is_it = lineage.windows.contains(&after.job.window) && member.is_none();
            if is_it || is_meant(leaf) {
                let successor = waiting.successors.get(&(&user.name, leaf));
                let end = successor.map_or_else(
                    || end_of(user, leaf),
                    |successor| {
                        let how = format!("waits to continue as {successor}");
                        End::Open(how, vec![(JobId::new(user.name.clone(), *successor), None)])
                    },
                );
                all.push((JobId::new(user.name.clone(), leaf).to_string(), end));
            }
        }
        if all.is_empty() {
            all.push((after.of(), End::Gone));
        }
        let task = waiting.tasks.get(&(&user.name, after.job.window));
        match task.filter(|_| member.is_none()) {
            Some(task) => of_task(task, &after.of(), all),
            None => all,
        }
    }

    fn lineages(&self, user: &'d User) -> Rc<[Lineage]> {
        let mut known = self.lineages.borrow_mut();
        Rc::clone(known.entry(&user.name).or_insert_with(|| lineage::lineages(user).into()))
    }
}

impl<'d> Waiting<'d> {
    fn of(data: &'d Data) -> Self {
        let mut waiting = Self::default();
        for entry in &data.queues().entries {
            waiting.entries.entry((&entry.user, entry.number)).or_insert(entry);
            if let Some(of) = entry.succeeds {
                waiting.successors.entry((&entry.user, of.job)).or_insert(entry.number);
            }
        }
        for task in &data.queues().tasks {
            waiting.tasks.insert((&task.job.user, task.job.window), task);
        }
        waiting
    }
}

/// How a task stands, by those that are at work on it: it is done when one has ended well, and has failed when all have.
fn of_task(task: &SubmittedTask, who: &str, mut all: EndsOfJob) -> EndsOfJob {
    if task.is_done || all.iter().any(|(_, end)| matches!(end, End::Well)) {
        return vec![(who.to_owned(), End::Well)];
    }
    let is_open = |end: &End| matches!(end, End::Open(..));
    if all.iter().any(|(_, end)| is_open(end)) {
        all.retain(|(_, end)| is_open(end));
    }
    all
}

/// How the last attempt of a lineage stands, by its record.
fn end_of(user: &User, leaf: JobNumber) -> End {
    let Some(job) = user.job(leaf) else { return End::Gone };
    let open = |how: String| End::Open(how, vec![(job.id(), None)]);
    match &job.status {
        Status::Finished => End::Well,
        Status::Error(kind) if comes_back(job) => open(format!("{kind}, and comes back")),
        Status::Killed(_) | Status::Error(_) => End::Ill(how_it_ended(job)),
        Status::Unset | Status::Starting | Status::Running => {
            open(job.status.word().unwrap_or("starting").to_owned())
        }
        // What it went on as was cleaned away: nobody knows how that ended.
        Status::Resumed(_) | Status::Rerunned(_) => End::Gone,
    }
}

/// How a job ended that did not end well, and by which line that is known.
pub(crate) fn how_it_ended(job: &Job) -> String {
    let line = job.verdict.as_ref().map(|verdict| verdict.line.trim());
    let line = line.filter(|line| !line.is_empty()).map(|line| format!(" ({line})"));
    let exit = || {
        let code = job.launch.as_ref().and_then(|launch| launch.exit)?;
        Some(format!(" ({})", job.exit(code)))
    };
    format!("{}{}", job.status, line.or_else(exit).unwrap_or_default())
}
