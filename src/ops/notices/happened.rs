//! What has happened since the last round, as notices: lines of the journal, and states that came or went.

use std::collections::BTreeSet;

use crate::model::data::Data;
use crate::model::facts::{ErrorKind, Phase};
use crate::model::ids::{JobId, UserName};
use crate::model::job::Job;
use crate::model::notice::{Notice, NoticeFacts};
use crate::model::notify::Occasion;
use crate::model::outbox::{Outbox, OutboxSeen};
use crate::model::time::{self, Timestamp};
use crate::ops::snapshot::Survey;
use crate::ops::{Ctx, Error};
use crate::plan::notices::{self, GIVEN_UP_S};
use crate::store::Event;

use super::{Told, job_anywhere};

/// A target that is waited for this long (seconds) is worth a word.
const NO_CAPACITY_S: u64 = 3600;

/// A job that is at work and shows a phase of which people are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseSeen {
    job: JobId,
    occasion: Occasion,
    evidence: Option<String>,
}

/// Those of a look.
pub fn phases(survey: &Survey) -> Vec<PhaseSeen> {
    let told = survey.snapshot.jobs.iter().filter(|view| view.shown.status.is_live());
    told.filter_map(|view| {
        let occasion = match view.shown.phase? {
            Phase::Diverged => Occasion::Diverged,
            Phase::Stalled => Occasion::Stalled,
            _ => return None,
        };
        let evidence = view.shown.evidence.as_ref().map(|evidence| evidence.line.clone());
        Some(PhaseSeen { job: view.id.clone(), occasion, evidence })
    })
    .collect()
}

/// How a state is called while it lasts: of a launch, of which people are told once.
fn key(job: &Job, occasion: Occasion) -> String {
    let token = job.launch.as_ref().map_or("", |launch| launch.token.as_str());
    format!("{} {} {token}", occasion.as_str(), job.id())
}

/// The states that there are now. What a launch showed stays said for as long as it is at work: a loss may come and go.
pub(super) fn seen(data: &Data, phases: &[PhaseSeen], before: &OutboxSeen) -> OutboxSeen {
    let waiting = data.queues().entries.iter().map(|entry| entry.user.clone()).collect();
    let shown = phases.iter().filter_map(|of| Some(key(data.job(&of.job)?, of.occasion)));
    let makings =
        data.queues().makings.iter().map(|making| format!("no-capacity {}", making.token));
    let mut states: BTreeSet<String> = shown.collect();
    let mut may_last: BTreeSet<String> = makings.collect();
    for job in data.jobs().filter(|job| job.status.is_live()) {
        may_last.extend([key(job, Occasion::Diverged), key(job, Occasion::Stalled)]);
    }
    states.extend(before.states.iter().filter(|state| may_last.contains(*state)).cloned());
    OutboxSeen { waiting, states }
}

/// Puts what has happened into the outbox. Whether anything in it has changed.
pub(super) fn take_in(
    ctx: &Ctx,
    data: &Data,
    outbox: &mut Outbox,
    phases: &[PhaseSeen],
) -> Result<bool, Error> {
    let now = ctx.clock.now();
    let mut told = Told::new(ctx, data);
    let mut is_changed = false;
    loop {
        let (events, place) = ctx.store.events_since(outbox.read)?;
        if place == outbox.read {
            break;
        }
        for event in &events {
            // Nobody is told of what is older than what is given up.
            if now.seconds_since(event.at) < GIVEN_UP_S {
                of_event(&mut told, outbox, event, now)?;
            }
        }
        (outbox.read, is_changed) = (place, true);
    }
    let mut after = seen(data, phases, &outbox.seen);
    for of in phases {
        let Some(job) = data.job(&of.job) else { continue };
        if !outbox.seen.states.contains(&key(job, of.occasion)) {
            let facts = facts_of(Some(job), None, of.evidence.as_deref());
            put(&mut told, outbox, (of.occasion, now), (&of.job.user, Some(job), &facts))?;
        }
    }
    for making in &data.queues().makings {
        let waited_s = now.seconds_since(making.since);
        let state = format!("no-capacity {}", making.token);
        if waited_s < NO_CAPACITY_S || outbox.seen.states.contains(&state) {
            continue;
        }
        let why = making.again.as_ref().map(|(_, why)| format!(" ({why})")).unwrap_or_default();
        let line = format!("asked for since {}{why}", time::age(waited_s));
        let target = making.target.to_string();
        let of = NoticeFacts {
            job: Some(making.job.window),
            target: Some(&target),
            evidence: Some(&line),
            ..NoticeFacts::default()
        };
        put(&mut told, outbox, (Occasion::NoCapacity, now), (&making.job.user, None, &of))?;
        after.states.insert(state);
    }
    for user in outbox.seen.waiting.difference(&after.waiting).cloned().collect::<Vec<_>>() {
        let line = Some("nothing waits any more");
        let of = NoticeFacts { evidence: line, ..NoticeFacts::default() };
        put(&mut told, outbox, (Occasion::QueueEmpty, now), (&user, None, &of))?;
    }
    if after != outbox.seen {
        (outbox.seen, is_changed) = (after, true);
    }
    Ok(is_changed)
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
    let mark = format!("{:?} {} {}", event.at, event.kind, event.text);
    let notice = Notice::new((occasion, event.at), &user, &facts, &mark);
    receive(told, outbox, (job.as_ref(), &notice), now)
}

/// A state that has come.
fn put(
    told: &mut Told<'_>,
    outbox: &mut Outbox,
    (occasion, now): (Occasion, Timestamp),
    (user, job, facts): (&UserName, Option<&Job>, &NoticeFacts<'_>),
) -> Result<(), Error> {
    let mark = format!("{now:?} {:?} {:?}", facts.job, facts.target);
    let notice = Notice::new((occasion, now), user, facts, &mark);
    receive(told, outbox, (job, &notice), now)
}

fn receive(
    told: &mut Told<'_>,
    outbox: &mut Outbox,
    (job, notice): (Option<&Job>, &Notice),
    now: Timestamp,
) -> Result<(), Error> {
    let (settings, merge_s) = told.of(&notice.user)?;
    let own = job.and_then(Job::execution).and_then(|of| of.notify.as_deref());
    let all = notices::receivers_of(&settings, own);
    notices::put(outbox, (&all, merge_s), notice, now);
    Ok(())
}
