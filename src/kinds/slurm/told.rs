//! What the script of a job tells of itself in files beside its log: why it ends or has ended it, and how far its set-up
//! is. They are read only of jobs that may have such files, of all of them by one question.

use std::path::{Path, PathBuf};

use crate::model::execution::Execution;
use crate::model::facts::{ErrorKind, RunFact, RunState, SETTING_UP};
use crate::model::job::Job;
use crate::runner::RunRef;

use super::client::ClusterDisk;
use super::laid;
use super::limits::WHY_FILE;

/// The file in which a node says how far its set-up is.
const PROGRESS_FILE: &str = "set-up";

/// A reason has no more bytes.
const MOST: u64 = 4096;

/// Adds to what our scripts have ended why they have.
pub(super) fn add_reasons(disk: &dyn ClusterDisk, runs: &[RunRef<'_>], facts: &mut [RunFact]) {
    let is_by_script = |job: &Job, fact: &RunFact| {
        let kinds = [Some(ErrorKind::Setup), Some(ErrorKind::Stalled), Some(ErrorKind::Timeout)];
        fact.state == RunState::Ended
            && kinds.contains(&fact.cause)
            && matches!(fact.raw.as_ref(), "FAILED" | "ENDED")
            && job.launch.as_ref().is_some_and(|launch| launch.ended.is_none())
    };
    for (fact, text) in of_files(disk, (runs, facts), is_by_script, WHY_FILE) {
        if let Some((_, why)) = text.split_once('\n') {
            fact.reason = Some(why.trim_end().to_owned().into());
        }
    }
}

/// Adds to what our scripts are just ending why they do. What its programs still print when they are told to end, such as
/// a shell's notice of a signal, is no failure of its own: how it has ended is told when it has.
pub(super) fn add_endings(disk: &dyn ClusterDisk, runs: &[RunRef<'_>], facts: &mut [RunFact]) {
    let may_be_ending = |job: &Job, fact: &RunFact| {
        fact.state == RunState::Running && job.execution().is_some_and(Execution::is_limited)
    };
    for (fact, text) in of_files(disk, (runs, facts), may_be_ending, WHY_FILE) {
        let Some((head, why)) = text.split_once('\n') else { continue };
        // What an earlier life was ended for stands there until the script of this one begins.
        let life = head.split_whitespace().nth(1).and_then(|count| count.parse().ok());
        if life == Some(fact.restarts) {
            fact.reason = Some(format!("it is being ended: {}", why.trim_end()).into());
            fact.text_waits = true;
        }
    }
}

/// Adds to what is being set up how far that is.
pub(super) fn add_progress(disk: &dyn ClusterDisk, runs: &[RunRef<'_>], facts: &mut [RunFact]) {
    let may_set_up =
        |job: &Job, fact: &RunFact| fact.state == RunState::Running && laid::sets_up(job);
    for (fact, text) in of_files(disk, (runs, facts), may_set_up, PROGRESS_FILE) {
        fact.reason = Some(text.trim_end().to_owned().into());
        fact.raw = SETTING_UP.into();
    }
}

/// The facts of those runs that may have a file, with what is in it. What cannot be read is not known.
fn of_files<'f>(
    disk: &dyn ClusterDisk,
    (runs, facts): (&[RunRef<'_>], &'f mut [RunFact]),
    may_have: impl Fn(&Job, &RunFact) -> bool,
    name: &str,
) -> Vec<(&'f mut RunFact, String)> {
    let wanted = |(run, fact): (&RunRef<'_>, &'f mut RunFact)| {
        let dir = run.job.log_dir.as_deref().filter(|_| may_have(run.job, fact))?;
        Some((fact, Path::new(dir).join(name)))
    };
    let wanted: Vec<(&mut RunFact, PathBuf)> = runs.iter().zip(facts).filter_map(wanted).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let paths: Vec<(PathBuf, u64)> = wanted.iter().map(|(_, path)| (path.clone(), MOST)).collect();
    let ends = disk.ends(&paths).unwrap_or_default();
    let found = wanted.into_iter().zip(ends).filter_map(|((fact, _), end)| {
        Some((fact, String::from_utf8_lossy(&end?.bytes).into_owned()))
    });
    found.collect()
}
