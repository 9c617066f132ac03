//! Where an attempt may have left checkpoints: in the directory that is named for them, else in its log directory and in
//! those of its working directory that programs usually keep them in. Outside of the log directory, what was written before
//! the attempt began is not its own, and neither is what may be another job's.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Ctx;
use crate::base::named::resolve_target;
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::target::Machines;
use tpu_core::model::time::Timestamp;

/// What programs call the directory of their checkpoints.
const USUAL: [&str; 3] = ["checkpoints", "ckpt", "ckpts"];

/// A directory in which an attempt may have left checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The directory.
    pub dir: String,
    /// Which one it is.
    pub kind: PlaceKind,
}

/// Which directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// That of its log.
    Log,
    /// That which is named for checkpoints.
    Named,
    /// A usual one of its working directory.
    WorkDir,
}

/// The directories of an attempt, in the order in which they are looked at. `named` is what the settings say by now: it
/// counts beside the others for a job that did not know of it.
pub(crate) fn places(attempt: &Job, named: Option<&str>) -> Vec<Place> {
    let place = |kind: PlaceKind| move |dir: String| Place { dir, kind };
    if let Some(own) = own_directory(attempt) {
        return vec![place(PlaceKind::Named)(own)];
    }
    let named = named.and_then(|dir| whole(attempt, dir)).map(place(PlaceKind::Named));
    let log = attempt.log_dir.clone().map(place(PlaceKind::Log));
    let work = work_dir(attempt).into_iter();
    let usual = work.flat_map(|work| USUAL.map(|name| format!("{work}/{name}")));
    named.into_iter().chain(log).chain(usual.map(place(PlaceKind::WorkDir))).collect()
}

/// The directory that the job itself names for checkpoints.
fn own_directory(attempt: &Job) -> Option<String> {
    whole(attempt, attempt.execution()?.checkpoint_dir.as_deref()?)
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

/// The whole path of a directory that is named for the checkpoints of a command.
fn whole(attempt: &Job, dir: &str) -> Option<String> {
    let work = work_dir(attempt)?;
    let is_whole = dir.starts_with('/') || dir.contains("://");
    Some(if is_whole { dir.to_owned() } else { format!("{work}/{dir}") })
}

/// Since when what an attempt wrote is its own.
pub(crate) fn since(attempt: &Job) -> Option<Timestamp> {
    Some(attempt.launch.as_ref()?.at)
}

/// Whether an attempt has its working directory on the disk that its runner shows: it ran on this machine, or an engine has
/// it. Of all others a copy may lie here, of which nobody knows whether they see it.
pub(crate) fn is_on_shown_disk(data: &Data, attempt: &Job) -> bool {
    resolve_target(data, attempt.tpu.as_str())
        .is_ok_and(|target| target.is_here() || target.machines == Machines::Engine)
}

/// Another job that keeps checkpoints in the same directory, and has run since the attempt began: as members do that have one
/// copy of the code, and jobs whose copies have links to one directory.
pub(crate) fn shared_with(
    ctx: &Ctx,
    (data, lineage): (&Data, &[Job]),
    attempt: &Job,
    place: &Place,
) -> Option<JobId> {
    let since = since(attempt)?;
    let real = |dir: &str| {
        if dir.contains("://") {
            return Some(PathBuf::from(dir.trim_end_matches('/')));
        }
        fs::canonicalize(dir).ok()
    };
    let ours = real(&place.dir)?;
    let has_run = |other: &Job| {
        let ended = other.launch.as_ref().and_then(|launch| launch.ended);
        other.status.is_live() || ended.is_none_or(|ended| ended >= since)
    };
    let is_another = |other: &Job| {
        other.user != attempt.user
            || lineage.iter().all(|known| known.windows_id != other.windows_id)
    };
    let name = Path::new(&place.dir).file_name()?.to_str()?;
    let keeps_there = |other: &Job| {
        let its = own_directory(other).or_else(|| Some(format!("{}/{name}", work_dir(other)?)));
        its.and_then(|its| real(&its)).is_some_and(|its| its == ours)
    };
    let is_it = |other: &Job| is_another(other) && has_run(other) && keeps_there(other);
    if let Some(other) = data.jobs().find(|other| is_it(other)) {
        return Some(other.id());
    }
    // What was cleaned away may have run until a moment ago. A copy of its own no other job has had.
    let is_own_copy = attempt.stage_dir.as_ref().is_some_and(|copy| ours.starts_with(copy));
    if is_own_copy && attempt.member().is_none() {
        return None;
    }
    let archived = ctx.store.archived().map_while(Result::ok);
    let later = archived.take_while(|record| record.at >= since).map(|record| record.job);
    later.into_iter().find(is_it).map(|job| job.id())
}
