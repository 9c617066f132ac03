//! Checkpoints, copies of them, and what lies in buckets and directories.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::plan::prune::PruneFate;
use tpu_ops::act::checkpoints::copy::CopiedCheckpoint;
use tpu_ops::act::checkpoints::find::FoundCheckpoint;
use tpu_ops::act::checkpoints::listed::CheckpointList;
use tpu_ops::act::checkpoints::prune::{PruneReport, PrunedCheckpoint};
use tpu_ops::front::storage::{StorageReport, StorageRow};

use super::words::TimePart;

/// The checkpoints of jobs.
#[derive(Serialize, JsonSchema)]
pub struct CheckpointsDocument<'a> {
    /// Of each job the oldest step first.
    pub checkpoints: Vec<CheckpointPartOf<'a>>,
    /// Places of which it is not known what is there.
    pub unknown: Vec<UnknownPlacePart>,
}

/// A checkpoint.
#[derive(Serialize, JsonSchema)]
pub struct CheckpointPartOf<'a> {
    /// Whose it is.
    pub user: Option<&'a UserName>,
    /// The attempt in whose log directory it is.
    pub window: Option<JobNumber>,
    /// Its step.
    pub step: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Whether it is whole.
    pub complete: bool,
    /// Why it is not.
    pub why: Option<String>,
    /// Where it is; of several files that are one together, the first.
    #[serde(rename = "where")]
    pub place: String,
    /// When its newest part was written.
    pub written: Option<TimePart>,
}

impl<'a> CheckpointPartOf<'a> {
    fn new(found: &FoundCheckpoint, of: Option<(&'a UserName, JobNumber)>) -> Self {
        Self {
            user: of.map(|(user, _)| user),
            window: of.map(|(_, window)| window),
            step: found.step,
            bytes: found.bytes(),
            complete: found.state.is_complete(),
            why: found.state.why().map(str::to_owned),
            place: found.place(),
            written: found.written().map(TimePart),
        }
    }
}

/// A place that could not be asked.
#[derive(Serialize, JsonSchema)]
pub struct UnknownPlacePart {
    /// Which one.
    #[serde(rename = "where")]
    pub place: String,
    /// Why.
    pub why: String,
}

impl<'a> From<&'a CheckpointList> for CheckpointsDocument<'a> {
    fn from(list: &'a CheckpointList) -> Self {
        let part = |(id, found): &'a (tpu_core::model::ids::JobId, FoundCheckpoint)| {
            CheckpointPartOf::new(found, Some((&id.user, id.window)))
        };
        let unknown = list
            .unknown
            .iter()
            .map(|(place, why)| UnknownPlacePart { place: place.clone(), why: why.clone() });
        Self { checkpoints: list.found.iter().map(part).collect(), unknown: unknown.collect() }
    }
}

/// Checkpoints that were copied, or would be.
#[derive(Serialize, JsonSchema)]
pub struct CopiedCheckpointsDocument {
    /// The oldest step first.
    pub copied: Vec<CopiedCheckpointPart>,
    /// Whether it only would be so.
    pub dry_run: bool,
}

/// One of them.
#[derive(Serialize, JsonSchema)]
pub struct CopiedCheckpointPart {
    /// Where it was.
    pub from: String,
    /// Where it is now.
    pub to: String,
    /// Its step.
    pub step: u64,
    /// Its bytes.
    pub bytes: u64,
    /// It was there already.
    pub was_there: bool,
    /// What it costs to move it out of its region, in words; `null` within one.
    pub cost: Option<String>,
}

impl CopiedCheckpointPart {
    /// One that was copied, or would be.
    pub fn new(found: &FoundCheckpoint, done: &CopiedCheckpoint, cost: Option<String>) -> Self {
        Self {
            from: found.place(),
            to: done.to.to_string(),
            step: found.step,
            bytes: done.bytes,
            was_there: done.was_there,
            cost,
        }
    }
}

/// Checkpoints that were taken away, or would be.
#[derive(Serialize, JsonSchema)]
pub struct PrunedDocument {
    /// Those that went, or would.
    pub removed: Vec<PrunedPart>,
    /// Those that stay.
    pub kept: Vec<PrunedPart>,
    /// Directories that could not be read: nothing of their runs goes.
    pub unknown: Vec<UnknownPlacePart>,
    /// The bytes of those that went, or would.
    pub bytes: u64,
    /// Whether it only would be so.
    pub dry_run: bool,
}

/// One of them.
#[derive(Serialize, JsonSchema)]
pub struct PrunedPart {
    /// Where it is.
    #[serde(rename = "where")]
    pub place: String,
    /// Its step.
    pub step: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Why it stays.
    pub why: Option<&'static str>,
}

impl PrunedDocument {
    /// What was, or would be, done.
    pub fn new(report: &PruneReport, dry_run: bool) -> Self {
        let part = |one: &PrunedCheckpoint| PrunedPart {
            place: one.found.place(),
            step: one.found.step,
            bytes: one.found.bytes(),
            why: match one.fate {
                PruneFate::Keep(why) => Some(why),
                PruneFate::Remove => None,
            },
        };
        let (removed, kept) =
            report.all.iter().map(part).partition(|one: &PrunedPart| one.why.is_none());
        let unread = report.unread.iter();
        Self {
            removed,
            kept,
            unknown: unread
                .map(|(place, why)| UnknownPlacePart { place: place.to_string(), why: why.clone() })
                .collect(),
            bytes: report.removed().map(FoundCheckpoint::bytes).sum(),
            dry_run,
        }
    }
}

/// What lies in buckets and directories.
#[derive(Serialize, JsonSchema)]
pub struct StorageDocument<'a> {
    /// One for each place or what is directly below it.
    pub rows: Vec<StorageRowPart<'a>>,
}

/// One row.
#[derive(Serialize, JsonSchema)]
pub struct StorageRowPart<'a> {
    /// The place.
    pub name: &'a str,
    /// Its bytes; `null` where nobody knows.
    pub bytes: Option<u64>,
    /// Its objects or files.
    pub objects: Option<u64>,
    /// When the oldest of them was written.
    pub oldest: Option<TimePart>,
    /// The largest checkpoint below it.
    pub largest_checkpoint: Option<LargestPart<'a>>,
    /// How old the answer is, in seconds.
    pub age_s: Option<u64>,
    /// Why it could not be asked now.
    pub unknown: Option<&'a str>,
}

/// The largest checkpoint of a place.
#[derive(Serialize, JsonSchema)]
pub struct LargestPart<'a> {
    /// Where it is.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: u64,
}

impl<'a> From<&'a StorageReport> for StorageDocument<'a> {
    fn from(report: &'a StorageReport) -> Self {
        let part = |row: &'a StorageRow| StorageRowPart {
            name: &row.name,
            bytes: row.figures.as_ref().map(|of| of.bytes),
            objects: row.figures.as_ref().map(|of| of.objects),
            oldest: row.figures.as_ref().and_then(|of| of.oldest).map(TimePart),
            largest_checkpoint: row
                .figures
                .as_ref()
                .and_then(|of| of.largest.as_ref())
                .map(|(name, bytes)| LargestPart { name, bytes: *bytes }),
            age_s: row.age_s,
            unknown: row.unknown.as_deref(),
        };
        Self { rows: report.rows.iter().map(part).collect() }
    }
}
