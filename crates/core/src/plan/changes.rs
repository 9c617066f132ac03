//! What has changed between two looks at the jobs: for whoever is told of changes one by one and sees no screen.
//!
//! A job has changed when its state has ([`JobView::state`]), when something else follows by itself than was told, or when
//! it has come another tenth of its way. Numbers that go on, places in a queue and what a job that is well does just now
//! are no changes: whoever listens would hear nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

use crate::model::ids::{JobId, TargetName};
use crate::model::rules::Action;
use crate::model::view::{JobView, MonitorHealth, Snapshot, TmuxHealth};

/// One change. What is borrowed is of the two looks.
#[derive(Clone, Debug, PartialEq)]
pub enum LookChange<'a> {
    /// The daemon runs now, or does no more.
    Daemon {
        /// Whether it runs.
        runs: bool,
    },
    /// The daemon runs and only watches now, for this reason, or acts again.
    DaemonWatches(Option<&'a str>),
    /// Windows can be seen now, or no more, for this reason.
    Windows(Option<&'a TmuxHealth>),
    /// Nobody knows any more how targets are.
    TargetsLost {
        /// What they are called.
        labels: Vec<&'a str>,
        /// Why, and what was heard of them before.
        why: &'a str,
    },
    /// It is known again how targets are.
    TargetsBack(Vec<&'a str>),
    /// A job that was not there.
    New {
        /// The job.
        job: &'a JobView,
        /// The attempt that it goes on for, where that is seen.
        of: Option<&'a JobView>,
    },
    /// A job that is in another state.
    State {
        /// As it was.
        before: &'a JobView,
        /// As it is.
        job: &'a JobView,
    },
    /// A job of which something else will come by itself than was told.
    Outlook(&'a JobView),
    /// A job that has come another tenth of its way.
    Tenth(&'a JobView),
    /// A job that is not there any more, as it was.
    Gone(&'a JobView),
}

/// What has changed from one look to the next: at large first, then job by job in the order of the second look, then
/// those that are gone. A job stands in one change at most.
pub fn changes<'a>(before: &'a Snapshot, after: &'a Snapshot) -> Vec<LookChange<'a>> {
    let mut changes = at_large(before, after);
    let (known, there) = (by_id(before), by_id(after));
    let mut told = BTreeSet::new();
    for job in after.jobs.iter().filter(|job| told.insert(&job.id)) {
        changes.extend(match known.get(&job.id) {
            Some(before) => of_job(before, job),
            None => Some(LookChange::New {
                job,
                of: father(job).and_then(|id| there.get(&id)).copied(),
            }),
        });
    }
    let gone = known.values().filter(|job| !there.contains_key(&job.id));
    changes.extend(gone.map(|job| LookChange::Gone(job)));
    changes
}

/// The second look, as it is to be compared with a third one: what has been told of a job is not told anew when its
/// output shows less for a while.
#[must_use]
pub fn remembering(before: &Snapshot, mut after: Snapshot) -> Snapshot {
    let known = by_id(before);
    for job in &mut after.jobs {
        let Some(before) = known.get(&job.id) else { continue };
        if tenth(before) > tenth(job) {
            job.shown.progress = before.shown.progress.clone();
        }
        if is_same_failure(before, job) && prospect(job) == Prospect::Open {
            job.next.clone_from(&before.next);
            job.intent.clone_from(&before.intent);
        }
    }
    after
}

/// The attempt that a job goes on for.
pub fn father(job: &JobView) -> Option<JobId> {
    let at = job.lineage.iter().position(|number| *number == job.id.window)?.checked_sub(1)?;
    Some(JobId::new(job.id.user.clone(), *job.lineage.get(at)?))
}

/// The attempt that goes on for a job.
pub fn child(job: &JobView) -> Option<JobId> {
    let at = job.lineage.iter().position(|number| *number == job.id.window)?;
    Some(JobId::new(job.id.user.clone(), *job.lineage.get(at + 1)?))
}

fn by_id(look: &Snapshot) -> BTreeMap<&JobId, &JobView> {
    // Of two records of one job, which no sound file has, the first counts, here as there.
    look.jobs.iter().rev().map(|job| (&job.id, job)).collect()
}

fn at_large<'a>(before: &'a Snapshot, after: &'a Snapshot) -> Vec<LookChange<'a>> {
    let mut changes = Vec::new();
    let runs = |look: &Snapshot| look.monitor != MonitorHealth::NotRunning;
    if runs(before) != runs(after) {
        changes.push(LookChange::Daemon { runs: runs(after) });
    }
    let watches = |look: &'a Snapshot| look.monitor.watches();
    // Why it does may be said in other words each time.
    if runs(after) && watches(before).is_some() != watches(after).is_some() {
        changes.push(LookChange::DaemonWatches(watches(after)));
    }
    let trouble = windows_unseen(after);
    // Why it does not answer may be said in other words each time.
    if windows_unseen(before).map(discriminant) != trouble.map(discriminant) {
        changes.push(LookChange::Windows(trouble));
    }
    let lost_before: BTreeSet<&TargetName> = lost(before).map(|job| &job.target).collect();
    let mut newly: Vec<(&str, Vec<&str>)> = Vec::new();
    let lost_now: BTreeSet<&TargetName> = lost(after).map(|job| &job.target).collect();
    for job in lost(after).filter(|job| !lost_before.contains(&job.target)) {
        let why = job.target_unknown.as_deref().unwrap_or_default();
        let label = job.target_label.as_str();
        if newly.iter().any(|(_, labels)| labels.contains(&label)) {
            continue;
        }
        match newly.iter_mut().find(|(known, _)| *known == why) {
            Some((_, labels)) => labels.push(label),
            None => newly.push((why, vec![label])),
        }
    }
    changes.extend(newly.into_iter().map(|(why, labels)| LookChange::TargetsLost { labels, why }));
    let mut back: Vec<&str> = Vec::new();
    for job in after.jobs.iter().filter(|job| job.shown.status.is_live()) {
        let is_back = lost_before.contains(&job.target) && !lost_now.contains(&job.target);
        if is_back && !back.contains(&job.target_label.as_str()) {
            back.push(&job.target_label);
        }
    }
    if !back.is_empty() {
        changes.push(LookChange::TargetsBack(back));
    }
    changes
}

/// Why windows cannot be seen, where that matters.
fn windows_unseen(look: &Snapshot) -> Option<&TmuxHealth> {
    look.misses_tmux().then_some(&look.tmux)
}

/// Jobs on targets of which nobody knows how they are.
fn lost(look: &Snapshot) -> impl Iterator<Item = &JobView> {
    look.jobs.iter().filter(|job| job.target_unknown.is_some())
}

fn of_job<'a>(before: &'a JobView, job: &'a JobView) -> Option<LookChange<'a>> {
    if before.state() != job.state() {
        return Some(LookChange::State { before, job });
    }
    let follows = prospect(job);
    let is_decided = follows != Prospect::Open && follows != prospect(before);
    if is_decided && is_same_failure(before, job) {
        return Some(LookChange::Outlook(job));
    }
    let is_on_its_way = job.shown.status.is_live() && job.shown.unknown.is_none();
    (is_on_its_way && tenth(job) > tenth(before)).then_some(LookChange::Tenth(job))
}

/// Whether it is a failure that was told already.
fn is_same_failure(before: &JobView, job: &JobView) -> bool {
    job.failure().is_some() && before.failure() == job.failure()
}

/// What will become of a job by itself, as far as one is told of it anew when it changes.
#[derive(PartialEq)]
enum Prospect<'a> {
    /// This will be done.
    Done(&'a str),
    /// It is not decided, or under way.
    Open,
    /// Nothing.
    Nothing,
}

fn prospect(job: &JobView) -> Prospect<'_> {
    match &job.next {
        _ if job.intent.is_some() => Prospect::Open,
        Some(next) if next.action != Action::Pass.as_str() => Prospect::Done(&next.action),
        Some(next) if next.waits => Prospect::Open,
        Some(_) | None => Prospect::Nothing,
    }
}

/// How many tenths of its way a job has come; none where it says nothing of it.
fn tenth(job: &JobView) -> u8 {
    let fraction = job.shown.progress.fraction().filter(|fraction| fraction.is_finite());
    // What a division leaves beside a whole number is none of the share.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 10")]
    let tenths = (fraction.unwrap_or_default() * 10.0 + 1e-9).floor() as u8;
    tenths
}
