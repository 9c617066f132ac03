//! What has become of the demo's jobs, as it is written down: a pure function of the journal, of one look at the jobs, and
//! of what the simulated fleet has done and still has before it.
//!
//! Nothing is told that is not written somewhere. A part that nobody has written down yet is not there, and what follows
//! from it is not there either: whoever makes sentences of a [`DemoTale`] can only say what has happened.

use std::collections::HashMap;

use crate::simulator::{FleetEvent, Happened, Scheduled};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::rules::Action;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::JobView;
use tpu_ops::observe::journal::Event;

use super::lab::FLEET;

/// What one moment of the demo is told from.
#[derive(Clone, Debug)]
pub struct DemoFacts {
    /// The moment.
    pub now: Timestamp,
    /// Everybody's jobs, begun and waiting.
    pub jobs: Vec<JobView>,
    /// The journal, the oldest event first.
    pub journal: Vec<Event>,
    /// What the simulated fleet has done, the oldest first.
    pub happened: Vec<Happened>,
    /// What it has before it.
    pub coming: Vec<Scheduled>,
    /// The step at which an attempt has gone on, as it has printed it.
    pub first_steps: HashMap<JobId, u64>,
}

/// What has become of the demo's jobs.
#[derive(Clone, Debug)]
pub struct DemoTale {
    /// The moment.
    pub now: Timestamp,
    /// When the first job was started.
    pub began: Timestamp,
    /// What was started by a person, in that order.
    pub started: Vec<Start>,
    /// What has gone through the queue, in the order in which it began.
    pub from_queue: Vec<Start>,
    /// How many jobs wait in the queue.
    pub waiting: usize,
    /// What went wrong, in the order in which it did.
    pub setbacks: Vec<Setback>,
    /// What has ended well.
    pub finished: Vec<JobId>,
    /// What will be done to the fleet, the next first.
    pub threats: Vec<Threat>,
}

/// An attempt that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Which.
    pub job: JobId,
    /// When.
    pub at: Timestamp,
    /// Its target, as people call it.
    pub target: String,
    /// Its tag.
    pub tag: Option<String>,
    /// Since when it had waited in the queue, if it had.
    pub queued: Option<Timestamp>,
    /// Who had left the target last before, where somebody had since this one waited.
    pub after: Option<JobId>,
}

/// Something that went wrong with an attempt, and what has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    /// With which.
    pub job: JobId,
    /// Its target, as people call it.
    pub target: String,
    /// When it happened: by the fleet's own word where it did it, else by the journal's.
    pub at: Timestamp,
    /// When the journal first knew; nothing as long as nobody has noticed.
    pub noticed: Option<Timestamp>,
    /// What it is called; nothing as long as nobody has noticed.
    pub kind: Option<ErrorKind>,
    /// Whether its target was taken from it.
    pub is_taken: bool,
    /// The line that says so.
    pub line: String,
    /// The last step that it has printed.
    pub reached: Option<u64>,
    /// When a new target was asked for, if one was.
    pub asked: Option<Timestamp>,
    /// When that was there.
    pub ready: Option<Timestamp>,
    /// What goes on for it.
    pub comeback: Option<Comeback>,
    /// Why it was not brought back, where that was tried.
    pub refusal: Option<String>,
    /// Why nothing happens by itself, where nothing will.
    pub rests: Option<String>,
}

/// The attempt that goes on for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comeback {
    /// Which.
    pub job: JobId,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it.
    pub by: String,
    /// When its program was started.
    pub started: Option<Timestamp>,
    /// The step from which it goes on, once it has said so.
    pub from: Option<u64>,
}

/// What will be done to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Threat {
    /// When.
    pub at: Timestamp,
    /// To which, as people call it.
    pub target: String,
    /// Whether it is taken away; else its programs lose their connection to each other.
    pub takes: bool,
}

impl Setback {
    /// Seconds from when it happened to when the program of the next attempt was started.
    pub fn lost_s(&self) -> Option<u64> {
        let started = self.comeback.as_ref()?.started?;
        Some(started.seconds_since(self.at))
    }

    /// Whether something has still to be done about it by itself.
    pub fn is_open(&self) -> bool {
        let is_back = self.comeback.as_ref().is_some_and(|comeback| comeback.from.is_some());
        !is_back && self.rests.is_none()
    }

    /// When the newest of it was written down.
    pub fn changed(&self) -> Timestamp {
        let comeback = self.comeback.as_ref();
        let later = [
            self.noticed,
            self.asked,
            self.ready,
            comeback.map(|comeback| comeback.at),
            comeback.and_then(|comeback| comeback.started),
        ];
        later.into_iter().flatten().fold(self.at, Timestamp::max)
    }
}

impl DemoTale {
    /// Reads what has become of the jobs.
    pub fn of(facts: &DemoFacts) -> Self {
        let launches = launches(facts);
        let mut setbacks = noticed(facts, &launches);
        setbacks.extend(unnoticed(facts, &launches, &setbacks));
        for setback in &mut setbacks {
            add_fleet(setback, facts, &launches);
            add_view(setback, facts);
        }
        setbacks.retain(|setback| still_holds(setback, facts));
        setbacks.sort_by_key(|setback| setback.at);
        let mut started = Vec::new();
        let mut from_queue = Vec::new();
        for (event, id) in of_jobs(facts, &["run"]) {
            let Some(launch) = launches.get(&id) else { continue };
            let view = facts.jobs.iter().find(|job| job.id == id);
            let queued = queued_at(facts, &id, view);
            let start = Start {
                after: queued
                    .and_then(|since| left_before(facts, &launches, &id, (since, event.at))),
                queued,
                target: label(&launch.target),
                tag: view.and_then(|job| job.tags.clone()),
                job: id,
                at: event.at,
            };
            if queued.is_some() { from_queue.push(start) } else { started.push(start) }
        }
        let began = started.iter().chain(&from_queue).map(|start| start.at).min();
        let waiting = facts.jobs.iter().filter(|job| job.is_queued()).map(JobView::jobs).sum();
        let mut threats: Vec<Threat> = facts.coming.iter().filter_map(threat).collect();
        threats.sort_by_key(|threat| threat.at);
        Self {
            now: facts.now,
            began: began.unwrap_or(facts.now),
            started,
            from_queue,
            waiting,
            setbacks,
            finished: of_jobs(facts, &["finished"]).map(|(_, id)| id).collect(),
            threats,
        }
    }

    /// Whether everything that happens by itself has happened.
    pub fn is_complete(&self) -> bool {
        !self.setbacks.is_empty()
            && self.threats.is_empty()
            && self.waiting == 0
            && self.setbacks.iter().all(|setback| !setback.is_open())
    }
}

/// Where and when an attempt was started.
struct LaunchedAt {
    target: TargetName,
    at: Timestamp,
}

/// The events about jobs of these kinds, and about which.
fn of_jobs<'a>(
    facts: &'a DemoFacts,
    kinds: &'a [&str],
) -> impl Iterator<Item = (&'a Event, JobId)> {
    facts
        .journal
        .iter()
        .filter(|event| kinds.contains(&event.kind.as_str()))
        .filter_map(|event| Some((event, JobId::new(event.user.clone()?, event.job?))))
}

fn launches(facts: &DemoFacts) -> HashMap<JobId, LaunchedAt> {
    let all = of_jobs(facts, &["run", "resume", "rerun"]);
    let launched = all.filter_map(|(event, id)| {
        let target = TargetName::from(event.data.get("target")?.as_str()?);
        Some((id, LaunchedAt { target, at: event.at }))
    });
    launched.collect()
}

/// What the journal knows to have gone wrong.
fn noticed(facts: &DemoFacts, launches: &HashMap<JobId, LaunchedAt>) -> Vec<Setback> {
    let mut all: Vec<Setback> = Vec::new();
    let kinds =
        ["error", "resume", "rerun", "started", "not-resumed", "stopped", "blocked", "killed"];
    for (event, id) in of_jobs(facts, &kinds) {
        let open = |all: &mut Vec<Setback>, job: &JobId| {
            all.iter().rposition(|known| known.job == *job && known.comeback.is_none())
        };
        match event.kind.as_str() {
            "error" => {
                let (word, line) = event.text.split_once(": ").unwrap_or((&event.text, ""));
                let kind = Some(ErrorKind::parse(word).unwrap_or(ErrorKind::Unknown));
                let line = line.to_owned();
                // What is known better later is still the same.
                if let Some(known) = open(&mut all, &id).and_then(|at| all.get_mut(at)) {
                    (known.kind, known.line) = (kind, line);
                } else if let Some(launch) = launches.get(&id) {
                    let noticed = Some(event.at);
                    let setback = bare(id, &launch.target, event.at);
                    all.push(Setback { noticed, kind, line, ..setback });
                }
            }
            "resume" | "rerun" => {
                let father = father(facts, &id);
                let Some(at) = father.and_then(|father| open(&mut all, &father)) else { continue };
                let from = facts.first_steps.get(&id).copied();
                let (at_instant, by) = (event.at, event.actor.clone());
                let comeback = Comeback { job: id, at: at_instant, by, started: None, from };
                if let Some(known) = all.get_mut(at) {
                    (known.comeback, known.refusal) = (Some(comeback), None);
                }
            }
            "started" => {
                let comebacks = all.iter_mut().filter_map(|known| known.comeback.as_mut());
                for comeback in comebacks.filter(|comeback| comeback.job == id) {
                    comeback.started.get_or_insert(event.at);
                }
            }
            "killed" => {
                if let Some(known) = open(&mut all, &id).and_then(|at| all.get_mut(at)) {
                    known.rests = Some("it was stopped by hand".to_owned());
                }
            }
            _ => {
                let is_over = event.kind == "blocked" && event.text.starts_with("no more");
                if let Some(known) = open(&mut all, &id).and_then(|at| all.get_mut(at)) {
                    known.refusal = (!is_over).then(|| event.text.clone());
                }
            }
        }
    }
    all
}

/// Attempts whose target the fleet has taken away, or whose connections it has broken, and of which the journal does not
/// know that yet.
fn unnoticed(
    facts: &DemoFacts,
    launches: &HashMap<JobId, LaunchedAt>,
    known: &[Setback],
) -> Vec<Setback> {
    let harm = |happened: &&Happened| [PREEMPTED, BROKEN].contains(&happened.what.as_str());
    let mut all = Vec::new();
    for happened in facts.happened.iter().filter(harm) {
        for (event, id) in of_jobs(facts, &["run", "resume", "rerun"]) {
            let Some(launch) = launches.get(&id) else { continue };
            let is_there = launch.target.as_str() == happened.target && event.at <= happened.at;
            let ends = ["finished", "error", "killed"];
            let has_ended = of_jobs(facts, &ends).any(|(_, ended)| ended == id);
            let is_known = known.iter().any(|known| known.job == id);
            if is_there && !has_ended && !is_known {
                let setback = bare(id, &launch.target, happened.at);
                all.push(Setback { is_taken: happened.what == PREEMPTED, ..setback });
            }
        }
    }
    all
}

fn bare(job: JobId, target: &TargetName, at: Timestamp) -> Setback {
    Setback {
        job,
        target: label(target),
        at,
        noticed: None,
        kind: None,
        is_taken: false,
        line: String::new(),
        reached: None,
        asked: None,
        ready: None,
        comeback: None,
        refusal: None,
        rests: None,
    }
}

/// The fleet's words, as its history has them.
const PREEMPTED: &str = "preempted";
const BROKEN: &str = "grpc error";
const CREATING: &str = "creating";
const READY: &str = "ready";

/// What the fleet says of it: when it happened, and how far the next target is.
fn add_fleet(setback: &mut Setback, facts: &DemoFacts, launches: &HashMap<JobId, LaunchedAt>) {
    let Some(launch) = launches.get(&setback.job) else { return };
    let of_target: Vec<&Happened> = facts
        .happened
        .iter()
        .filter(|happened| happened.target == launch.target.as_str())
        .collect();
    let noticed = setback.noticed.unwrap_or(facts.now);
    let caused = |what: &str| {
        let while_it_ran = |at: Timestamp| at >= launch.at && at <= noticed;
        of_target
            .iter()
            .rev()
            .find(|one| one.what == what && while_it_ran(one.at))
            .map(|one| one.at)
    };
    let cause = match setback.kind {
        Some(ErrorKind::Preempted | ErrorKind::Unknown) => caused(PREEMPTED),
        Some(ErrorKind::Grpc) => caused(BROKEN),
        // What nobody has noticed is known from the fleet alone, with its instant.
        None | Some(_) => None,
    };
    setback.at = cause.unwrap_or(setback.at);
    // The program's end may be written down before anybody knows why.
    setback.is_taken |= setback.kind == Some(ErrorKind::Preempted)
        || setback.kind == Some(ErrorKind::Unknown) && cause.is_some();
    if !setback.is_taken {
        return;
    }
    let until = setback.comeback.as_ref().map_or(facts.now, |comeback| comeback.at);
    let first = |what: &str, after: Timestamp| {
        let in_between = |at: Timestamp| at >= after && at <= until;
        of_target.iter().find(|one| one.what == what && in_between(one.at)).map(|one| one.at)
    };
    setback.asked = first(CREATING, setback.at);
    setback.ready = setback.asked.and_then(|asked| first(READY, asked));
}

/// What a look says of it.
fn add_view(setback: &mut Setback, facts: &DemoFacts) {
    let Some(job) = facts.jobs.iter().find(|job| job.id == setback.job) else { return };
    setback.reached = job.shown.progress.step;
    // That its program has ended is written down before anybody asks why.
    if setback.is_taken && setback.kind == Some(ErrorKind::Unknown) {
        return;
    }
    let next = job.next.as_ref().filter(|_| job.leaf && job.failure().is_some());
    if let Some(next) = next.filter(|next| next.action == Action::Pass.as_str() && !next.waits) {
        setback.rests.get_or_insert_with(|| next.reason.clone());
    }
}

/// Whether a job still shows what went wrong, or somebody goes on for it. An error may be withdrawn, by a person or because
/// its program goes on.
fn still_holds(setback: &Setback, facts: &DemoFacts) -> bool {
    let view = facts.jobs.iter().find(|job| job.id == setback.job);
    let shows_none = |job: &JobView| job.leaf && job.failure().is_none();
    setback.comeback.is_some() || setback.noticed.is_none() || !view.is_some_and(shows_none)
}

/// The attempt for which another one goes on.
fn father(facts: &DemoFacts, child: &JobId) -> Option<JobId> {
    let view = facts.jobs.iter().find(|job| job.id == *child)?;
    let at = view.lineage.iter().position(|window| *window == child.window)?;
    let window = view.lineage.get(at.checked_sub(1)?)?;
    Some(JobId::new(child.user.clone(), *window))
}

/// Since when an attempt had waited in the queue, if it had.
fn queued_at(facts: &DemoFacts, id: &JobId, view: Option<&JobView>) -> Option<Timestamp> {
    let group = view.and_then(|job| job.member).map(|member| member.group);
    let entry = JobId::new(id.user.clone(), group.unwrap_or(id.window));
    of_jobs(facts, &["queued"]).find(|(_, queued)| *queued == entry).map(|(event, _)| event.at)
}

/// Who was the last to leave the target of an attempt while that waited.
fn left_before(
    facts: &DemoFacts,
    launches: &HashMap<JobId, LaunchedAt>,
    id: &JobId,
    (since, until): (Timestamp, Timestamp),
) -> Option<JobId> {
    let target = &launches.get(id)?.target;
    let ended = of_jobs(facts, &["finished", "error", "killed"]);
    let left = ended.filter(|(event, other)| {
        let launch = launches.get(other);
        other != id
            && (since..=until).contains(&event.at)
            && launch.is_some_and(|launch| launch.target == *target)
    });
    left.last().map(|(_, other)| other)
}

/// What is planned for the fleet, as far as it is part of the story.
fn threat(scheduled: &Scheduled) -> Option<Threat> {
    let (target, takes) = match &scheduled.event {
        FleetEvent::Preempt { target } => (target, true),
        FleetEvent::Grpc { target } => (target, false),
        _ => return None,
    };
    Some(Threat { at: scheduled.at, target: label(&TargetName::from(target.as_str())), takes })
}

/// What people call a target of the lab.
fn label(target: &TargetName) -> String {
    let known = FLEET.iter().find(|(_, full, _)| *full == target.as_str());
    known.map_or_else(|| target.to_string(), |(alias, ..)| (*alias).to_owned())
}
