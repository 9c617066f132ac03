//! Checkpoints in the directory in which a command works: in the directory that is named for them, else in those that
//! programs usually keep them in. What lay there before the attempt began is not its own.

use std::fs;
use std::path::Path;

use regex::Regex;

use crate::Ctx;
use crate::observe::checkpoint::{self, Checkpoints};
use crate::observe::runners;
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;

/// What programs call the directory of their checkpoints.
const USUAL: [&str; 3] = ["checkpoints", "ckpt", "ckpts"];

/// What an attempt wrote into a directory of its working directory.
pub(crate) struct InWorkDir {
    /// The directory.
    pub dir: String,
    /// What is known of it.
    pub found: Checkpoints,
}

/// The directory in which a command begins; none of a script, which says itself where it keeps things.
fn work_dir(attempt: &Job) -> Option<String> {
    if !attempt.is_native() {
        return None;
    }
    match (attempt.workplace(), &attempt.stage_dir) {
        (Some(there), _) => Some(there.to_owned()),
        (None, Some(copy)) => Some(attempt.within(copy)),
        (None, None) => None,
    }
}

/// The whole path of a directory that is named for the checkpoints of an attempt.
pub(crate) fn named(attempt: &Job, dir: &str) -> Option<String> {
    let is_whole = dir.starts_with('/') || dir.contains("://");
    if is_whole { Some(dir.to_owned()) } else { Some(format!("{}/{dir}", work_dir(attempt)?)) }
}

/// Since when what an attempt wrote is its own.
pub(crate) fn since(attempt: &Job) -> Option<Timestamp> {
    Some(attempt.launch.as_ref()?.at)
}

/// Looks into the usual directories, as far as they lie on this disk: the first that holds something.
pub(crate) fn usual(
    ctx: &Ctx,
    (data, lineage): (&Data, &[Job]),
    attempt: &Job,
    pattern: Option<&Regex>,
) -> Option<InWorkDir> {
    let (work, since) = work_dir(attempt).zip(since(attempt))?;
    let runner = runners::of(ctx, attempt);
    let files = runner.files();
    if !files.is_seen_from_here() {
        return None;
    }
    USUAL.into_iter().find_map(|name| {
        let dir = format!("{work}/{name}");
        let found = checkpoint::find_since(&*files, &dir, pattern, Some(since));
        let found = match found {
            Checkpoints::None | Checkpoints::NotHere => return None,
            Checkpoints::Newest(..) => match shared_with((data, lineage), attempt, &dir) {
                Some(other) => Checkpoints::Unknown(format!(
                    "{other} works with {dir} as well: name the job's own (checkpoint_dir)"
                )),
                None => found,
            },
            found => found,
        };
        Some(InWorkDir { dir, found })
    })
}

/// Another job that has the same directory in its working directory, and has run since the attempt began: as members do
/// that have one copy of the code, and jobs whose copies have links to one directory.
fn shared_with((data, lineage): (&Data, &[Job]), attempt: &Job, dir: &str) -> Option<JobId> {
    let since = since(attempt)?;
    let real = fs::canonicalize(dir).ok()?;
    let name = Path::new(dir).file_name()?;
    let has_run = |other: &Job| {
        let ended = other.launch.as_ref().and_then(|launch| launch.ended);
        other.status.is_live() || ended.is_some_and(|ended| ended >= since)
    };
    let is_another = |other: &&Job| {
        other.user != attempt.user
            || lineage.iter().all(|known| known.windows_id != other.windows_id)
    };
    let has_it = |other: &&Job| {
        let its = work_dir(other).map(|work| Path::new(&work).join(name));
        its.and_then(|its| fs::canonicalize(its).ok()).is_some_and(|its| its == real)
    };
    let others = data.jobs().filter(is_another).filter(|other| has_run(other));
    others.filter(has_it).map(Job::id).next()
}
