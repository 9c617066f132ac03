//! What waits in a queue, as every list shows it: jobs that have no attempt yet.
//!
//! The reasons that stand here follow from the records alone; machines are asked by `tpu queue` and `tpu explain`, which
//! say the rest.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use crate::act::launch::plan::quoted;
use crate::act::outlook;
use crate::base::called::WaitingCalled;
use crate::base::known_as::runs_with;
use crate::base::queue_entries::occupancy;
use crate::base::watch;
use crate::observe::snapshot::LookMemory;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::entry::{After, AfterWhich, Awaited, QueueEntry};
use tpu_core::model::facts::Progress;
use tpu_core::model::ids::{JobId, QueueName, TargetName, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::member::{Array, Member};
use tpu_core::model::queue::Queue;
use tpu_core::model::rules::Rules;
use tpu_core::model::spec::TargetRequest;
use tpu_core::model::target::{Machines, TargetKind};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::{self, InQueue, JobView, Shown, Snapshot, Whose};
use tpu_core::plan::expected::ExpectedStart;
use tpu_core::plan::queue::{self as plan, AtWork, Readiness, UserLimits};

use super::presence::{self, Absences};
use super::{expected, unbegun};

/// How the members of a group that wait are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingMembers {
    /// Those of one group as one row.
    Folded,
    /// One by one.
    Each,
}

/// Looks at somebody's jobs, and behind those with an attempt stands what waits, in the order of the turns.
pub fn look(
    ctx: &Ctx,
    memory: &mut LookMemory,
    whose: &Whose,
    members: WaitingMembers,
) -> Result<Snapshot, Error> {
    // Before the look: what begins meanwhile is then in both, and would else be in neither.
    let mut waiting = views(ctx, &*ctx.data()?, whose, members);
    let mut look = outlook::look(ctx, memory, whose)?;
    if !waiting.is_empty() {
        drop_begun(&mut waiting, look.jobs.iter());
        look.jobs.append(&mut waiting);
    }
    view::entitle(&mut look.jobs);
    Ok(look)
}

/// Takes out of what waits what has a job already.
pub(crate) fn drop_begun<'a>(
    waiting: &mut Vec<JobView>,
    jobs: impl Iterator<Item = &'a JobView> + Clone,
) {
    let begun: HashSet<&JobId> = jobs.clone().map(|job| &job.id).collect();
    let members = jobs.filter_map(|job| Some((&job.id.user, job.member?)));
    let members: HashSet<(&UserName, Member)> = members.collect();
    waiting.retain_mut(|view| {
        let user = view.id.user.clone();
        let is_begun =
            |index: u32| members.contains(&(&user, Member { group: view.id.window, index }));
        let Some(queued) = &mut view.shown.queued else { return true };
        match (&mut queued.members, view.member) {
            (Some(indexes), _) => {
                indexes.retain(|index| !is_begun(*index));
                !indexes.is_empty()
            }
            (None, Some(member)) => !is_begun(member.index),
            (None, None) => !begun.contains(&view.id),
        }
    });
}

/// What waits of somebody, in the order of the turns.
pub fn views(ctx: &Ctx, data: &Data, whose: &Whose, members: WaitingMembers) -> Vec<JobView> {
    if data.queues().entries.is_empty() {
        return Vec::new();
    }
    let now = ctx.clock.now();
    let mut line = Line::of(data, Some(ctx));
    let mut views = Vec::new();
    for at in plan::order(&data.queues().entries) {
        let Some(entry) = data.queues().entries.get(at) else { continue };
        // Also who is not shown has a place.
        let position = line.next(&entry.queue);
        if !whose.includes(&entry.user) {
            continue;
        }
        let waits = line.waits(entry, position);
        match (members, &entry.spec.array) {
            (WaitingMembers::Each, Some(array)) => {
                let each = array.indexes().iter();
                views.extend(each.map(|index| line.view(entry, Some(*index), &waits, now)));
            }
            (_, Some(array)) => views.push(match array.indexes() {
                [only] => line.view(entry, Some(*only), &waits, now),
                indexes => {
                    let waits = InQueue { members: Some(indexes.to_vec()), ..waits };
                    line.view(entry, None, &waits, now)
                }
            }),
            (_, None) => views.push(line.view(entry, None, &waits, now)),
        }
    }
    views
}

/// Says when each of these that waits is expected to start, as far as that can be foreseen.
pub fn foresee(ctx: &Ctx, data: &Data, jobs: &mut [JobView]) -> Result<(), Error> {
    let waiting: HashSet<JobId> =
        jobs.iter().filter(|view| view.is_queued()).map(|view| view.id.clone()).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let is_shown = |entry: &QueueEntry| waiting.contains(&entry.id());
    let expected = expected::expected(ctx, data, &is_shown, expected::OF_LIST)?;
    for view in jobs {
        if let Some(queued) = &mut view.shown.queued {
            queued.expected_start = expected.get(&view.id).and_then(ExpectedStart::first);
        }
    }
    Ok(())
}

/// That something waits, where, and why, as far as records tell: for whoever asked for what only a job that has begun
/// has.
pub fn waits_yet(data: &Data, called: &WaitingCalled) -> Error {
    let id = &called.id;
    let mut line = Line::of(data, None);
    let mut said = format!("{called} {}", called.waits());
    for at in plan::order(&data.queues().entries) {
        let Some(entry) = data.queues().entries.get(at) else { continue };
        let position = line.next(&entry.queue);
        if entry.id() == *id {
            let InQueue { queue, position, reason, .. } = line.waits(entry, position);
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            said += &format!(" in queue {queue} at place {position}{reason}");
            break;
        }
    }
    let job = format!("{} {}", id.window, id.user);
    Error::refused(said).hint(format!(
        "until it has begun and ended: tpu wait {job}; why it waits: tpu explain {job}; to take it out: tpu dequeue \
         {job}"
    ))
}

/// What is worked out once for all entries.
struct Line<'a> {
    data: &'a Data,
    /// Without it nobody is looked for who would start an entry.
    ctx: Option<&'a Ctx>,
    /// How many of each queue there were.
    lengths: HashMap<&'a QueueName, usize>,
    queues: HashMap<QueueName, Queue>,
    /// Whether somebody is at each place where entries were submitted.
    places: HashMap<&'a str, bool>,
    absences: Absences,
    targets: HashMap<&'a str, Wanted>,
    at_work: OnceCell<AtWork>,
    /// How many jobs of each user may be at work.
    limits: UserLimits,
}

/// What an entry is to begin on.
#[derive(Clone)]
struct Wanted {
    name: TargetName,
    label: String,
    machines: Machines,
    kind: TargetKind,
    zone: Option<String>,
    rules: &'static str,
}

impl<'a> Line<'a> {
    fn of(data: &'a Data, ctx: Option<&'a Ctx>) -> Self {
        let queues = data.queues().all().into_iter();
        Self {
            data,
            ctx,
            lengths: HashMap::new(),
            queues: queues.map(|queue| (queue.name.clone(), queue)).collect(),
            places: HashMap::new(),
            absences: Absences::default(),
            targets: HashMap::new(),
            at_work: OnceCell::new(),
            limits: ctx.map(|ctx| occupancy::of_users(ctx, data)).unwrap_or_default(),
        }
    }

    /// The place of the next entry of a queue.
    fn next(&mut self, queue: &'a QueueName) -> usize {
        let length = self.lengths.entry(queue).or_default();
        *length += 1;
        *length
    }

    /// How an entry waits.
    fn waits(&mut self, entry: &'a QueueEntry, position: usize) -> InQueue {
        let (after, absent) = (self.after(entry), self.absent(entry));
        let readiness = Readiness { after, absent, ..Readiness::default() };
        let reason = match self.queues.get(&entry.queue) {
            None => Some(plan::WaitReason::NoQueue(entry.queue.clone()).to_string()),
            Some(queue) => plan::not_ready(entry, queue, &readiness)
                .map(|reason| reason.to_string())
                .or_else(|| self.cap(entry, queue)),
        };
        InQueue {
            queue: entry.queue.clone(),
            position,
            priority: entry.priority,
            reason,
            expected_start: None,
            held: entry.held.is_some(),
            members: None,
        }
    }

    /// The limit that keeps it from beginning.
    fn cap(&self, entry: &QueueEntry, queue: &Queue) -> Option<String> {
        let at_once = entry.spec.array.as_ref().and_then(Array::at_once);
        let of_user = self.limits.get(&entry.user).copied();
        queue.max_parallel.or(at_once).or(of_user)?;
        let at_work = self.at_work.get_or_init(|| occupancy::at_work(self.data, &[]));
        plan::cap(self.data.queues(), entry, queue, at_work, &self.limits)
            .map(|cap| cap.to_string())
    }

    /// The jobs that it waits for, but those that have ended well for certain.
    fn after(&self, entry: &QueueEntry) -> Option<String> {
        let ended_well = |job: &Job| job.status == Status::Finished;
        let waited = entry.after.iter().filter(|after| {
            let is_met = after.member.is_none()
                && after.which != AfterWhich::Not
                && self.data.job(&after.job).is_some_and(ended_well);
            !is_met
        });
        let lives = |of: &Awaited| {
            let before = self.data.job(&JobId::new(entry.user.clone(), of.job));
            before.is_some_and(|job| job.status.is_live())
        };
        let before = entry.succeeds.filter(lives).map(|of| format!("{}/{}", entry.user, of.job));
        let jobs: Vec<String> = waited.map(After::of).chain(before).collect();
        (!jobs.is_empty()).then(|| format!("after {}", jobs.join(", ")))
    }

    /// Who would start it and is not there.
    fn absent(&mut self, entry: &'a QueueEntry) -> Option<String> {
        let ctx = self.ctx?;
        let is_present = if entry.keeper.is_some() {
            presence::counts(ctx, entry)
        } else {
            let place = entry.place.as_str();
            *self.places.entry(place).or_insert_with(|| watch::is_attended(ctx, place))
        };
        (!is_present).then(|| self.absences.of(ctx, entry))
    }

    fn wanted(&mut self, entry: &'a QueueEntry) -> Wanted {
        let any = |words: String| Wanted {
            name: words.as_str().into(),
            label: words,
            machines: Machines::default(),
            kind: TargetKind::default(),
            zone: None,
            rules: "pass",
        };
        let name = match &entry.spec.target {
            TargetRequest::Any(any_of) => return any(any_of.in_words()),
            TargetRequest::Named(name) => name.as_str(),
        };
        let data = self.data;
        let wanted = self.targets.entry(name).or_insert_with(|| match data.resolve_target(name) {
            Some(target) => Wanted {
                label: data.target_label(&target.name),
                machines: target.machines,
                kind: target.kind.clone(),
                rules: target.default_rules(false),
                zone: target.zone,
                name: target.name,
            },
            None => any(name.to_owned()),
        });
        wanted.clone()
    }

    /// An entry, or one of its members.
    fn view(
        &mut self,
        entry: &'a QueueEntry,
        member: Option<u32>,
        waits: &InQueue,
        now: Timestamp,
    ) -> JobView {
        let Wanted { name, label, machines, kind, zone, rules } = self.wanted(entry);
        let varied = member.and_then(|index| Some(entry.sweep.as_ref()?.configs(index)));
        let varied = varied.unwrap_or_default();
        let configs = entry.spec.configs.iter().chain(&varied);
        let configs = configs.map(|(key, value)| format!("{key}={value}"));
        let configs: Vec<String> = configs.chain(entry.spec.words.iter().cloned()).collect();
        let rules = entry.spec.rules.as_deref().unwrap_or(rules);
        JobView {
            id: entry.id(),
            lineage: vec![entry.number],
            leaf: true,
            dir: (entry.spec.dir, unbegun::dir(self.data, entry)),
            target: name,
            kind,
            target_label: label,
            target_unknown: None,
            machines,
            share: None,
            zone,
            name: entry.spec.name.clone(),
            runs: entry.spec.command.as_deref().and_then(|words| runs_with(words, &configs)),
            title: None,
            member: member.map(|index| Member { group: entry.number, index }),
            tags: entry.spec.tag.clone(),
            shown: Shown {
                status: Status::Unset,
                unknown: None,
                pending: None,
                queued: Some(waits.clone()),
                phase: None,
                progress: Progress::default(),
                evidence: None,
            },
            stored: Status::Unset,
            stage: 0,
            from_step: None,
            restarts: 0,
            rules: Rules::parse(rules)
                .unwrap_or_default()
                .retrying(entry.spec.execution.retry.as_ref()),
            monitor: entry.spec.monitor,
            next: None,
            needs_person: false,
            started_at: None,
            ended_at: None,
            age_s: Some(now.seconds_since(entry.since)),
            worked: None,
            waited_s: Some(now.seconds_since(entry.since)),
            cost: None,
            log_dir: None,
            stage_dir: entry.spec.staged.as_ref().map(|staged| staged.copy.clone()),
            exit: None,
            window_alive: Some(false),
            pane_id: None,
            tail: "".into(),
            nodes: Vec::new(),
            raw: None,
            gpus: entry.spec.ask.gpus.count(),
            configs: quoted(&configs),
            intent: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::ids::JobNumber;

    const DATA: &str = r#"{"users":{},"queue":{"entries":[
        {"user":"alice","number":2,"target":"local","since":"2026-11-20T14:00:00Z"},
        {"user":"alice","number":3,"target":"local","array":"0-2","since":"2026-11-20T14:00:00Z"},
        {"user":"bob","number":2,"target":"local","since":"2026-11-20T14:00:00Z"}]}}"#;

    /// The entries, each as one row.
    fn rows() -> Vec<JobView> {
        let data = Data::parse(DATA.as_bytes()).unwrap();
        let mut line = Line::of(&data, None);
        let mut rows = Vec::new();
        for entry in &data.queues().entries {
            let position = line.next(&entry.queue);
            let members = entry.spec.array.as_ref().map(|array| array.indexes().to_vec());
            let waits = InQueue { members, ..line.waits(entry, position) };
            rows.push(line.view(entry, None, &waits, Timestamp::from_second(1_795_183_331)));
        }
        rows
    }

    /// A job that has begun.
    fn begun(user: &str, number: u32, member: Option<u32>) -> JobView {
        let mut view = rows().remove(0);
        view.id = JobId::new(UserName::from(user), JobNumber(number));
        view.member = member.map(|index| Member { group: JobNumber(3), index });
        view.shown.queued = None;
        view
    }

    #[test]
    fn what_begins_under_the_look_is_one_row_and_not_two() {
        let left = |jobs: &[JobView]| -> Vec<(String, usize)> {
            let mut waiting = rows();
            drop_begun(&mut waiting, jobs.iter());
            waiting.iter().map(|view| (view.id.to_string(), view.jobs())).collect()
        };
        let is = |all: &[(&str, usize)]| -> Vec<(String, usize)> {
            all.iter().map(|(id, jobs)| ((*id).to_owned(), *jobs)).collect()
        };
        assert_eq!(left(&[]), is(&[("alice/2", 1), ("alice/3", 3), ("bob/2", 1)]));
        let two = [begun("alice", 2, None), begun("alice", 4, Some(1))];
        assert_eq!(left(&two), is(&[("alice/3", 2), ("bob/2", 1)]));
        let all = [4, 5, 6].map(|number| begun("alice", number, Some(number - 4)));
        assert_eq!(left(&all), is(&[("alice/2", 1), ("bob/2", 1)]));
        assert_eq!(left(&[begun("bob", 4, Some(1))]).len(), 3, "another user's member");
    }

    #[test]
    fn places_are_counted_in_each_queue() {
        let places: Vec<usize> =
            rows().iter().filter_map(|row| Some(row.shown.queued.as_ref()?.position)).collect();
        assert_eq!(places, [1, 2, 3]);
    }
}
