//! Writes down what the facts show and the record does not say yet: ends that nobody reported, a
//! preemption, renewed progress, and why a lineage is over. Only the daemon does so; looking never writes.

use std::collections::HashMap;

use tpu_core::model::data::User;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, Progress, Source, TargetFact};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::job::{Event, Job, Status, StoredVerdict, Stretch};
use tpu_core::model::recovery::Recovery;
use tpu_core::model::rules::Action;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::JobView;
use tpu_core::plan::answer::{self, Judgement};
use tpu_core::plan::budget;
use tpu_core::plan::decide::Decision;
use tpu_core::text::counted;

use super::ends;
use super::outlook::Survey;
use crate::base::ctx::{job_mut, job_of};
use crate::base::records;
use crate::observe::printed::reached;
use crate::observe::snapshot;
use crate::{Ctx, Error, Kind};

/// Something that a record is to say.
#[derive(Clone, Debug, PartialEq)]
enum Change {
    /// Its command has ended in this way.
    Exited(Exit),
    /// It has failed, and nothing of it is at work any more.
    Failed(ErrorKind),
    /// Somebody has stopped it where it runs.
    Cancelled,
    /// Its engine has begun it, or lets it wait again: when it was at work.
    Worked(Vec<Stretch>),
    /// The program has shown itself.
    Started,
    /// The error was none: it goes on.
    Withdrawn,
    /// Its engine has begun it anew by itself, so many times in all.
    Restarted(u32),
    /// It has come further than its lineage had come.
    Progressed,
    /// The control plane's answer on which its end is judged was given at this instant.
    Judged(Timestamp),
    /// The machine that it began on was created at this instant.
    Machine(Timestamp),
    /// Its launch or its end was written down by a clock that is ahead of the one here, by which answers are judged: it
    /// was before this instant.
    Before(Timestamp),
    /// A person has to do something before its rules act, or has to no more.
    Blocked(bool),
    /// Its quick tries after this failure are used up: from now on it is tried less often.
    Patient(ErrorKind),
    /// The lineage is over, for this reason.
    Stopped(String),
}

/// Brings the records up to what a survey saw. Returns how many changed.
pub fn record_facts(ctx: &Ctx, survey: &Survey) -> Result<usize, Error> {
    let mut written = 0;
    let mut facts: HashMap<&TargetName, TargetFact> = HashMap::new();
    for (view, decision) in survey.snapshot.jobs.iter().zip(&survey.decisions) {
        let seen = job_of(&survey.data, &view.id)?;
        let fact =
            facts.entry(&seen.tpu).or_insert_with(|| survey.fleet.fact(&survey.data, &seen.tpu));
        let mut changes = changes(seen, view, decision);
        // Where the run cannot be seen, nobody can tell what the provider's answer means for it: it stays open.
        if view.window_alive.is_some() {
            changes.extend(judged(seen, fact, survey.snapshot.at));
            let machine = answer::machine_of(seen, fact, survey.snapshot.at);
            changes.extend(machine.map(Change::Machine));
            changes.extend(blocked(seen, decision).map(Change::Blocked));
            let is_ahead = answer::is_ahead(seen, survey.snapshot.at);
            changes.extend(is_ahead.then_some(Change::Before(survey.snapshot.at)));
        }
        for change in changes {
            match write(ctx, seen, (view, decision), &change) {
                Ok(()) => written += 1,
                // Somebody else has written or archived it since: the next look sees what.
                Err(error) if matches!(error.kind, Kind::NotFound | Kind::Refused) => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(written + record_over(ctx, survey)?)
}

/// Writes down which failures nothing is at work of any more, though nobody has reported an end: a daemon elsewhere
/// cannot see it, and would keep their targets and places for them for ever. Of what an engine runs its word is enough,
/// which came with this look, and which it may take back.
fn record_over(ctx: &Ctx, survey: &Survey) -> Result<usize, Error> {
    let data = &survey.data;
    let is_open = |job: &Job| job.child.is_none() && records::may_be_at_work(job);
    let is_open_here = |job: &Job| job.engine.is_none() && is_open(job);
    let users = snapshot::users_of_targets(ctx, data, is_open_here);
    let dead = users.values().flat_map(|users| &users.dead).filter_map(|id| data.job(id));
    let mut found: Vec<(&Job, bool)> = dead.map(|job| (job, true)).collect();
    for view in &survey.snapshot.jobs {
        let (Some(is_alive), Some(job)) = (view.window_alive, data.job(&view.id)) else { continue };
        let was_over = job.launch.as_ref().is_some_and(|launch| launch.over);
        if job.engine.is_some() && (!is_alive && is_open(job) || is_alive && was_over) {
            found.push((job, !is_alive));
        }
    }
    if found.is_empty() {
        return Ok(0);
    }
    ctx.transact(|tx| {
        let mut written = 0;
        for (seen, is_over) in &found {
            // What has changed since is looked at again.
            let job =
                tx.data.job_mut(&seen.id()).filter(|job| unchanged(&seen.id(), job, seen).is_ok());
            if let Some(launch) = job.and_then(|job| job.launch.as_mut()) {
                launch.over = *is_over;
                written += 1;
            }
        }
        Ok(written)
    })
}

/// What the record of `view` is to say. A failure that only the text shows is none of it while the
/// program may be at work: whoever acts on it writes it.
fn changes(job: &Job, view: &JobView, decision: &Decision) -> Vec<Change> {
    let mut changes = Vec::new();
    if job.is_being_killed() || view.shown.unknown.is_some() || job.child.is_some() {
        return changes;
    }
    changes.extend(worked(job, view).map(Change::Worked));
    // Why an engine ended it is its own word, and outranks the code that the program ended with.
    let has_cause = !view.shown.status.is_live()
        && view.shown.evidence.as_ref().is_some_and(|e| e.source == Source::Engine);
    if let (Some(exit), true, false) = (view.exit, job.status.is_live(), has_cause) {
        changes.push(Change::Exited(exit));
        return changes;
    }
    match (&job.status, &view.shown.status) {
        // What never reached its engine is given up by who settles launches, and there.
        (stored, Status::Error(ErrorKind::Launch))
            if stored.is_live() && job.engine.is_some() && is_unconfirmed(job) => {}
        (stored, Status::Error(kind)) if stored.is_live() => {
            let by_fact =
                view.shown.evidence.as_ref().is_some_and(|evidence| match evidence.source {
                    Source::Exit | Source::Engine | Source::Api => true,
                    Source::Text | Source::Record => false,
                });
            if by_fact {
                changes.push(Change::Failed(*kind));
            }
        }
        (Status::Error(stored), Status::Error(kind)) if stored != kind => {
            changes.push(Change::Failed(*kind));
        }
        (Status::Error(_), Status::Finished) if view.window_alive.is_some() => {
            changes.extend(view.exit.map(Change::Exited));
        }
        (stored, Status::Killed(_)) if stored.is_live() => changes.push(Change::Cancelled),
        (Status::Unset | Status::Starting, Status::Running) => changes.push(Change::Started),
        (Status::Error(_), Status::Running) => changes.push(Change::Withdrawn),
        _ => {}
    }
    let is_new = !job.status.is_final()
        && job.recovery.as_ref().is_some_and(|recovery| !recovery.progressed);
    if is_new && budget::has_progressed(job, &view.shown.progress) {
        changes.push(Change::Progressed);
    }
    if job.status.is_live() && view.restarts > job.restarts() {
        changes.push(Change::Restarted(view.restarts));
    }
    if decision.begins_patience {
        changes.extend(decision.event.map(Change::Patient));
    }
    let is_noted = |of: &Recovery| of.killed || of.stopped.as_ref() == Some(&decision.reason);
    if decision.stopped && !job.recovery.as_deref().is_some_and(is_noted) {
        changes.push(Change::Stopped(decision.reason.clone()));
    }
    changes
}

/// When it was at work, where a look shows more of that than the record.
fn worked(job: &Job, view: &JobView) -> Option<Vec<Stretch>> {
    let launch = job.launch.as_ref().filter(|launch| launch.ended.is_none())?;
    view.worked.clone().filter(|worked| launch.worked.as_ref() != Some(worked))
}

fn is_unconfirmed(job: &Job) -> bool {
    job.launch.as_ref().is_some_and(|launch| !launch.confirmed)
}

/// The first answer after an end settles it; what becomes of the target later does not matter.
fn judged(job: &Job, fact: &TargetFact, now: Timestamp) -> Option<Change> {
    let is_open = matches!(job.status, Status::Error(_)) && answer::judged_at(job).is_none();
    match answer::judgement(job, Some(fact), now) {
        Judgement::Judged(at) if is_open && job.child.is_none() => Some(Change::Judged(at)),
        Judgement::Judged(_) | Judgement::NotWatched | Judgement::Open(_) => None,
    }
}

/// Whether a person has to do something before its rules act, where the record says something else: what they would
/// need is not kept for it then. An engine keeps nothing for anybody.
fn blocked(job: &Job, decision: &Decision) -> Option<bool> {
    let was = job.recovery.as_ref().is_some_and(|recovery| recovery.blocked);
    let is = decision.action == Action::Pass && !decision.waits && !decision.stopped;
    let is = is && budget::is_to_come_back(job) && job.engine.is_none();
    (is != was && matches!(job.status, Status::Error(_))).then_some(is)
}

/// Writes one change, if the record still is what was seen.
fn write(
    ctx: &Ctx,
    seen: &Job,
    (view, decision): (&JobView, &Decision),
    change: &Change,
) -> Result<(), Error> {
    let id = &view.id;
    if let Change::Exited(exit) = change {
        return ends::record_end(ctx, id, exit.code()).map(drop);
    }
    let reached = match change {
        Change::Failed(_) | Change::Cancelled => reached(ctx, seen, view),
        _ => Progress::default(),
    };
    ctx.transact(|tx| {
        let now = tx.now;
        let job = job_mut(&mut tx.data, id)?;
        unchanged(id, job, seen)?;
        let (kind, text) = match change {
            Change::Exited(_) => return Ok(()),
            Change::Worked(worked) => {
                // What it does then has a line of its own.
                if let Some(launch) = job.launch.as_mut() {
                    launch.worked = Some(worked.clone());
                }
                return Ok(());
            }
            Change::Failed(kind) => {
                job.apply(&Event::Failed(*kind))?;
                let verdict = StoredVerdict::new(*kind, view.shown.evidence.as_ref());
                let text = format!("{kind}: {}", verdict.line);
                job.verdict = Some(verdict);
                job.keep_reached(&reached);
                // After a restart of the machine nobody knows when it ended.
                if job.engine.is_some()
                    && view.window_alive == Some(false)
                    && let Some(launch) = job.launch.as_mut()
                {
                    launch.ended.get_or_insert(now);
                }
                if view.window_alive == Some(false)
                    && *kind == ErrorKind::Lost
                    && !is_restart(view)
                    && let Some(launch) = job.launch.as_mut()
                {
                    launch.ended.get_or_insert(now);
                }
                ("error", text)
            }
            Change::Cancelled => ("killed", cancel(job, view, &reached, now)?),
            Change::Started => {
                job.apply(&Event::Started)?;
                ("started", "it prints".to_owned())
            }
            Change::Withdrawn => {
                job.apply(&Event::ErrorWithdrawn)?;
                if let Some(launch) = job.launch.as_mut().filter(|launch| launch.exit.is_none()) {
                    (launch.over, launch.ended) = (false, None);
                }
                ("progress", "it goes on by itself".to_owned())
            }
            Change::Restarted(times) => {
                let progress = &view.shown.progress;
                job.keep_counts(budget::restarted(job, progress, *times, now));
                let times = counted(*times as usize, "time");
                ("restarted", format!("its engine has begun it anew by itself, {times} so far"))
            }
            Change::Progressed => {
                job.counts_mut().progressed = true;
                ("progress", "further than before: the count of failures starts again".to_owned())
            }
            Change::Judged(at) => {
                job.counts_mut().judged = Some(*at);
                ("judged", format!("{} was asked since it ended", seen.tpu))
            }
            Change::Machine(created) => {
                let Some(launch) = job.launch.as_mut() else { return Ok(()) };
                launch.machine = Some(*created);
                ("machine", format!("{} was created at {}", seen.tpu, created.to_rfc3339()))
            }
            Change::Before(at) => {
                let Some(launch) = job.launch.as_mut() else { return Ok(()) };
                launch.at = launch.at.min(*at);
                launch.ended = launch.ended.map(|ended| ended.min(*at));
                (
                    "clock",
                    "its start or its end lies in the future by the clock of this machine"
                        .to_owned(),
                )
            }
            Change::Blocked(is_blocked) => {
                job.counts_mut().blocked = *is_blocked;
                let text = if *is_blocked { "a person has to act" } else { "no more" };
                ("blocked", format!("{text}: {}", decision.reason))
            }
            Change::Patient(kind) => {
                job.keep_counts(budget::patient(job, &view.shown.progress, *kind, now));
                ("patient", format!("after {kind}: {}", decision.reason))
            }
            Change::Stopped(reason) => {
                job.counts_mut().stopped = Some(reason.clone());
                ("stopped", reason.clone())
            }
        };
        records::note(tx, id, kind, text);
        Ok(())
    })
}

/// The end of a job that somebody has stopped where it runs; what says so.
fn cancel(
    job: &mut Job,
    view: &JobView,
    reached: &Progress,
    now: Timestamp,
) -> Result<String, Error> {
    job.apply(&Event::Killed)?;
    let verdict = StoredVerdict::new(ErrorKind::KilledBySignal, view.shown.evidence.as_ref());
    let text = verdict.line.clone();
    job.verdict = Some(verdict);
    job.keep_reached(reached);
    if let Some(launch) = job.launch.as_mut() {
        launch.worked.clone_from(&view.worked);
        launch.ended.get_or_insert(now);
    }
    Ok(text)
}

/// Writes down, before a command stops jobs or removes what engines have of them, which of them have ended at their engines:
/// else their ends would be taken for its work.
pub fn record_ends(ctx: &Ctx, ids: &[JobId]) -> Result<(), Error> {
    let data = ctx.data()?;
    let is_open =
        |job: &Job| job.engine.is_some() && job.status.is_live() && !job.is_being_killed();
    let of = |id: &JobId| Some((data.user(&id.user)?, data.job(id).filter(|job| is_open(job))?));
    let jobs: Vec<(&User, &Job)> = ids.iter().filter_map(of).collect();
    if jobs.is_empty() {
        return Ok(());
    }
    let mut ended = Vec::new();
    for ((_, job), (view, decision)) in
        jobs.iter().zip(snapshot::look_at_engines(ctx, &data, &jobs))
    {
        // What is lost may come back, so it is stopped as what is at work.
        let is_end = |change: &Change| match change {
            Change::Failed(kind) => *kind != ErrorKind::Lost,
            Change::Exited(_) | Change::Cancelled => true,
            _ => false,
        };
        let is_over = view.window_alive == Some(false);
        for change in changes(job, &view, &decision).iter().filter(|it| is_over && is_end(it)) {
            if let Change::Exited(exit) = change {
                ended.push((view.id.clone(), exit.code()));
                continue;
            }
            match write(ctx, job, (&view, &decision), change) {
                // Somebody else has written it since.
                Err(error) if matches!(error.kind, Kind::NotFound | Kind::Refused) => {}
                other => other?,
            }
        }
    }
    ends::record_all(ctx, &ended)
}

/// The same for all that engines have.
pub fn record_all_ends(ctx: &Ctx) -> Result<(), Error> {
    let ids: Vec<JobId> = ctx.data()?.jobs().map(Job::id).collect();
    record_ends(ctx, &ids)
}

/// Writes down, before a command acts on a job, that somebody has stopped it where it runs, if a look has shown that.
pub(crate) fn record_cancelled(ctx: &Ctx, seen: &Job, view: &JobView) -> Result<(), Error> {
    let is_news = seen.status.is_live() && matches!(view.shown.status, Status::Killed(_));
    if !is_news || view.shown.unknown.is_some() {
        return Ok(());
    }
    let reached = reached(ctx, seen, view);
    ctx.transact(|tx| {
        let now = tx.now;
        let job = job_mut(&mut tx.data, &view.id)?;
        unchanged(&view.id, job, seen)?;
        let text = cancel(job, view, &reached, now)?;
        records::note(tx, &view.id, "killed", text);
        Ok(())
    })
}

/// Whether its window went with its server or its machine.
fn is_restart(view: &JobView) -> bool {
    view.shown.evidence.as_ref().is_some_and(|evidence| evidence.rule == "window-lost")
}

fn unchanged(id: &JobId, job: &Job, seen: &Job) -> Result<(), Error> {
    let is_same = job.launch.as_ref().map(|l| &l.token) == seen.launch.as_ref().map(|l| &l.token)
        && job.status == seen.status
        && job.child == seen.child
        && !job.is_being_killed();
    if is_same {
        return Ok(());
    }
    Err(Error::refused(format!("{id} has changed since it was looked at"))
        .hint("it is looked at again"))
}
