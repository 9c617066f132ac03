//! What has happened since the last round, as notices: lines of the journal, and states that came or went.

use std::collections::BTreeSet;

use crate::act::outlook::Survey;
use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::facts::{ErrorKind, Phase};
use tpu_core::model::ids::{JobId, JobNumber, TargetName, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::notice::{Notice, NoticeFacts};
use tpu_core::model::notify::{Occasion, Receiver};
use tpu_core::model::outbox::{HeldNotice, Outbox, OutboxSeen};
use tpu_core::model::rules::Action;
use tpu_core::model::target::{Machines, Target};
use tpu_core::model::time::{self, Timestamp};
use tpu_core::plan::answer;
use tpu_core::plan::notices::{self, GIVEN_UP_S};
use tpu_system::store::Event;

use super::{Told, job_anywhere, teller};

/// A target that is waited for this long (seconds) is worth a word.
const NO_CAPACITY_S: u64 = 3600;

/// A job that is at work and shows a phase of which people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseSeen {
    job: JobId,
    occasion: Occasion,
    error: Option<ErrorKind>,
    evidence: Option<String>,
}

/// Those of a look.
pub fn phases(survey: &Survey) -> Vec<PhaseSeen> {
    let both = survey.snapshot.jobs.iter().zip(&survey.decisions);
    both.filter_map(|(view, decision)| {
        let (occasion, error) = match (&view.shown.status, view.shown.phase) {
            // Its text shows it, its program is there all the same, and by its rules nobody does anything about it:
            // nobody else will write it down.
            (Status::Error(kind), _) if decision.action == Action::Pass => {
                let stored = survey.data.job(&view.id)?;
                let is_open = stored.status.is_live() && view.shown.unknown.is_none();
                is_open.then_some((notices::of_failure(*kind), Some(*kind)))?
            }
            (status, Some(Phase::Diverged)) if status.is_live() => (Occasion::Diverged, None),
            (status, Some(Phase::Stalled)) if status.is_live() => (Occasion::Stalled, None),
            (status, Some(Phase::StartedOver)) if status.is_live() => (Occasion::StartedOver, None),
            _ => return None,
        };
        let evidence = view.shown.evidence.as_ref().map(|evidence| evidence.line.clone());
        Some(PhaseSeen { job: view.id.clone(), occasion, error, evidence })
    })
    .collect()
}

/// How a state is called while it lasts: of a launch, of which people are told once.
fn key(job: &Job, occasion: Occasion) -> String {
    let token = job.launch.as_ref().map_or("", |launch| launch.token.as_str());
    format!("{} {} {token}", occasion.as_str(), job.id())
}

/// A target that is asked for and is not there.
struct CapacityAsked<'a> {
    /// How this is called while it lasts.
    state: String,
    target: &'a TargetName,
    job: JobId,
    name: Option<&'a str>,
    /// Who is told beside the setting.
    notify: Option<&'a [Receiver]>,
    since: Timestamp,
    /// What the last answer was.
    why: Option<&'a str>,
}

/// What is asked for now: for those who wait in the queue, and for jobs that are to be brought back.
fn waits(data: &Data) -> impl Iterator<Item = CapacityAsked<'_>> {
    let made = data.queues().makings.iter().map(|making| {
        let entry = data.queues().entry(&making.job);
        CapacityAsked {
            state: format!("no-capacity {}", making.token),
            target: &making.target,
            job: making.job.clone(),
            name: entry.and_then(|entry| entry.spec.name.as_deref()),
            notify: entry.and_then(|entry| entry.spec.execution.notify.as_deref()),
            since: making.first,
            why: making.again.as_ref().map(|(_, why)| why.as_str()),
        }
    });
    let back = data.jobs().filter_map(|job| {
        let recovery = job.recovery.as_ref().filter(|of| !of.is_over())?;
        let is_open = matches!(job.status, Status::Error(_)) && job.child.is_none();
        let since = recovery.waits_since.filter(|_| is_open && !job.is_being_killed())?;
        Some(CapacityAsked {
            state: key(job, Occasion::NoCapacity),
            target: &job.tpu,
            job: job.id(),
            name: job.name(),
            notify: own(job),
            since,
            why: None,
        })
    });
    made.chain(back)
}

/// Who is told of a job beside the setting.
fn own(job: &Job) -> Option<&[Receiver]> {
    job.execution().and_then(|of| of.notify.as_deref())
}

/// The states that there are now. What a launch showed stays said for as long as it is at work: a loss may come and go.
pub(super) fn seen(data: &Data, phases: &[PhaseSeen], before: &OutboxSeen) -> OutboxSeen {
    let waiting = data.queues().entries.iter().map(|entry| entry.user.clone()).collect();
    let shown = phases.iter().filter_map(|of| Some(key(data.job(&of.job)?, of.occasion)));
    let mut states: BTreeSet<String> = shown.collect();
    let mut may_last: BTreeSet<String> = waits(data).map(|wait| wait.state).collect();
    for job in data.jobs().filter(|job| job.status.is_live()) {
        let told = [
            Occasion::Diverged,
            Occasion::Stalled,
            Occasion::StartedOver,
            Occasion::Error,
            Occasion::Preempted,
        ];
        may_last.extend(told.map(|occasion| key(job, occasion)));
    }
    states.extend(before.states.iter().filter(|state| may_last.contains(*state)).cloned());
    let entries = &data.queues().entries;
    let last = entries.iter().map(|entry| (entry.user.clone(), entry.number)).collect();
    OutboxSeen { waiting, last, states }
}

/// Puts what has happened into the outbox. Whether anything in it has changed.
pub(super) fn take_in(ctx: &Ctx, outbox: &mut Outbox, phases: &[PhaseSeen]) -> Result<bool, Error> {
    let now = ctx.clock.now();
    let (mut new, mut is_changed) = (Vec::new(), false);
    loop {
        let (events, place) = ctx.store.events_since(outbox.read)?;
        if place == outbox.read {
            break;
        }
        // Nobody is told of what is older than what is given up.
        new.extend(events.into_iter().filter(|of| now.seconds_since(of.at) < GIVEN_UP_S));
        (outbox.read, is_changed) = (place, true);
    }
    // After the lines: by older data what has just been queued would wait no more, or be no job yet.
    let data = ctx.data()?;
    let data = &*data;
    let mut told = Told::new(ctx, data);
    for event in &new {
        of_event(&mut told, outbox, event, now)?;
    }
    is_changed |= release(&mut told, outbox, now)?;
    let mut after = seen(data, phases, &outbox.seen);
    for of in phases {
        let Some(job) = data.job(&of.job) else { continue };
        if !outbox.seen.states.contains(&key(job, of.occasion)) {
            let error = of.error.map(ErrorKind::as_str);
            let facts = facts_of(Some(job), error, of.evidence.as_deref());
            let about = (&of.job.user, Some(&of.job));
            put(&mut told, outbox, (of.occasion, now), (about, own(job), &facts))?;
        }
    }
    for wait in waits(data) {
        let waited_s = now.seconds_since(wait.since);
        if waited_s < NO_CAPACITY_S || outbox.seen.states.contains(&wait.state) {
            continue;
        }
        let why = wait.why.map(|why| format!(" ({why})")).unwrap_or_default();
        let line = format!("asked for since {}{why}", time::age(waited_s));
        let target = wait.target.to_string();
        let of = NoticeFacts {
            job: Some(wait.job.window),
            name: wait.name,
            target: Some(&target),
            evidence: Some(&line),
            ..NoticeFacts::default()
        };
        let about = (&wait.job.user, Some(&wait.job));
        put(&mut told, outbox, (Occasion::NoCapacity, now), (about, wait.notify, &of))?;
        after.states.insert(wait.state);
    }
    for user in outbox.seen.waiting.difference(&after.waiting).cloned().collect::<Vec<_>>() {
        let line = Some("nothing waits any more");
        let of = NoticeFacts { evidence: line, ..NoticeFacts::default() };
        let last = outbox.seen.last.get(&user).and_then(|last| began_as(&mut told, &user, *last));
        let own = last.as_ref().and_then(own);
        let id = last.as_ref().map(Job::id);
        let about = (&user, id.as_ref());
        put(&mut told, outbox, (Occasion::QueueEmpty, now), (about, own, &of))?;
    }
    if after != outbox.seen {
        (outbox.seen, is_changed) = (after, true);
    }
    Ok(is_changed)
}

/// What something that waited has become: a job, or of a group one of its members.
fn began_as(told: &mut Told<'_>, user: &UserName, number: JobNumber) -> Option<Job> {
    let is_member = |job: &&Job| job.member().is_some_and(|member| member.group == number);
    let member = told.data.user(user).and_then(|user| user.jobs().iter().rev().find(is_member));
    member.cloned().or_else(|| job_anywhere(told.ctx, told.data, &JobId::new(user.clone(), number)))
}

fn facts_of<'a>(
    job: Option<&'a Job>,
    error: Option<&'a str>,
    evidence: Option<&'a str>,
) -> NoticeFacts<'a> {
    NoticeFacts {
        job: job.map(|job| job.windows_id),
        name: job.and_then(Job::name),
        target: job.map(|job| job.tpu.as_str()),
        status: job.and_then(|job| job.status.word()),
        error,
        evidence: evidence.filter(|line| !line.is_empty()),
    }
}

/// A line of the journal.
fn of_event(
    told: &mut Told<'_>,
    outbox: &mut Outbox,
    event: &Event,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(user) = event.user.clone() else { return Ok(()) };
    // What has begun before anybody looked has waited all the same.
    if event.kind == "queued" {
        outbox.seen.waiting.insert(user.clone());
        outbox.seen.last.extend(event.job.map(|number| (user.clone(), number)));
    }
    let Some((occasion, error, line)) = notices::occasion(&event.kind, &event.text) else {
        return Ok(());
    };
    let id = event.job.map(|window| JobId::new(user.clone(), window));
    let job = id.as_ref().and_then(|id| job_anywhere(told.ctx, told.data, id));
    // That it goes on somewhere its target says already.
    let line = match occasion {
        Occasion::Resumed => line
            .strip_prefix("on ")
            .map_or(line, |on| on.split_once(", ").map_or("", |(_, more)| more)),
        _ => line,
    };
    let mut facts = facts_of(job.as_ref(), error.map(ErrorKind::as_str), Some(line));
    facts.job = event.job;
    facts.evidence = facts.evidence.filter(|line| !line.is_empty());
    // Members of a group may fail alike at one instant.
    let whose = event.job.map(|job| job.to_string()).unwrap_or_default();
    let mark = format!("{:?} {whose} {} {}", event.at, event.kind, event.text);
    let notice = Notice::new((occasion, event.at), &user, &facts, &mark);
    if occasion == Occasion::Error
        && let Some(job) = &job
    {
        if outbox.seen.states.contains(&key(job, Occasion::Error)) {
            // It was told when the program showed it.
            return Ok(());
        }
        if may_be_preempted(told.data, job, now) {
            outbox.held.push(HeldNotice { job: job.id(), notice });
            return Ok(());
        }
    }
    let uid = teller(told.ctx, told.data, id.as_ref(), job.as_ref());
    receive(told, outbox, (job.as_ref().and_then(own), uid, &notice), now)
}

/// Whether the control plane may yet say that a job which has just failed was taken its target.
fn may_be_preempted(data: &Data, job: &Job, now: Timestamp) -> bool {
    let can_be_taken =
        |target: &Target| target.machines == Machines::Provided && target.pricing.is_reclaimable();
    data.target(&job.tpu).as_ref().is_some_and(can_be_taken) && answer::may_be_judged_yet(job, now)
}

/// Tells what was held back and has turned out to be a failure of its own. Whether anything was decided.
fn release(told: &mut Told<'_>, outbox: &mut Outbox, now: Timestamp) -> Result<bool, Error> {
    let held = std::mem::take(&mut outbox.held);
    let before = held.len();
    for one in held {
        let job = told.data.job(&one.job);
        if job.is_some_and(|job| may_be_preempted(told.data, job, now)) {
            outbox.held.push(one);
            continue;
        }
        let job = job_anywhere(told.ctx, told.data, &one.job);
        let verdict = job.as_ref().and_then(|job| job.verdict.as_ref());
        if verdict.is_none_or(|verdict| verdict.kind != ErrorKind::Preempted) {
            let uid = teller(told.ctx, told.data, Some(&one.job), job.as_ref());
            receive(told, outbox, (job.as_ref().and_then(own), uid, &one.notice), now)?;
        }
    }
    Ok(outbox.held.len() != before)
}

/// A state that has come.
fn put(
    told: &mut Told<'_>,
    outbox: &mut Outbox,
    (occasion, now): (Occasion, Timestamp),
    ((user, id), own, facts): ((&UserName, Option<&JobId>), Option<&[Receiver]>, &NoticeFacts<'_>),
) -> Result<(), Error> {
    let mark = format!("{now:?} {:?} {:?}", facts.job, facts.target);
    let notice = Notice::new((occasion, now), user, facts, &mark);
    let job = id.and_then(|id| told.data.job(id));
    let uid = teller(told.ctx, told.data, id, job);
    receive(told, outbox, (own, uid, &notice), now)
}

fn receive(
    told: &mut Told<'_>,
    outbox: &mut Outbox,
    (own, uid, notice): (Option<&[Receiver]>, u32, &Notice),
    now: Timestamp,
) -> Result<(), Error> {
    let (settings, merge_s) = told.of(&notice.user)?;
    let all = notices::receivers_of(&settings, own);
    notices::put(outbox, (&all, merge_s, uid), notice, now);
    Ok(())
}
