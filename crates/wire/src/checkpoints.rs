//! Checkpoints, copies of them, and what lies in buckets and directories.

use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::plan::prune::PruneFate;
use tpu_ops::act::checkpoints::copy::CopiedCheckpoint;
use tpu_ops::act::checkpoints::find::FoundCheckpoint;
use tpu_ops::act::checkpoints::listed::CheckpointList;
use tpu_ops::act::checkpoints::prune::{PruneReport, PrunedCheckpoint};
use tpu_ops::front::storage::{StorageReport, StorageRow};

use super::document::{documents, part};
use super::words::TimePart;

documents! {
    /// The checkpoints of jobs.
    pub struct CheckpointsDocument<'a> from list: &'a CheckpointList {
        /// Of each job the oldest step first.
        checkpoints: Vec<CheckpointPartOf<'a>> = part(&list.found),
        /// Places of which it is not known what is there.
        unknown: Vec<UnknownPlacePart> = unknown(&list.unknown),
    }

    /// A checkpoint.
    pub struct CheckpointPartOf<'a> from (id, found): &'a (JobId, FoundCheckpoint) {
        /// Whose it is.
        user: Option<&'a UserName> = Some(&id.user),
        /// The attempt in whose log directory it is.
        window: Option<JobNumber> = Some(id.window),
        /// Its step.
        step: u64 = found.step,
        /// Its bytes.
        bytes: u64 = found.bytes(),
        /// Whether it is whole.
        complete: bool = found.state.is_complete(),
        /// Why it is not.
        why: Option<&'a str> = found.state.why(),
        /// Where it is; of several files that are one together, the first.
        #[serde(rename = "where")]
        place: String = found.place(),
        /// When its newest part was written.
        written: Option<TimePart> = found.written().map(TimePart),
    }

    /// A place that could not be asked.
    pub struct UnknownPlacePart {
        /// Which one.
        #[serde(rename = "where")]
        place: String,
        /// Why.
        why: String,
    }

    /// Checkpoints that were copied, or would be.
    pub struct CopiedCheckpointsDocument {
        /// The oldest step first.
        copied: Vec<CopiedCheckpointPart>,
        /// Whether it only would be so.
        dry_run: bool,
    }

    /// One of them.
    pub struct CopiedCheckpointPart
        from (found, done, cost): (&'a FoundCheckpoint, &'a CopiedCheckpoint, Option<String>)
    {
        /// Where it was.
        from: String = found.place(),
        /// Where it is now.
        to: String = done.to.to_string(),
        /// Its step.
        step: u64,
        /// Its bytes.
        bytes: u64 = done.bytes,
        /// It was there already.
        was_there: bool = done.was_there,
        /// What it costs to move it out of its region, in words; `null` within one.
        cost: Option<String> = cost,
    }

    /// Checkpoints that were taken away, or would be.
    pub struct PrunedDocument from (report, dry_run): (&'a PruneReport, bool) {
        /// Those that went, or would.
        removed: Vec<PrunedPart> = chosen(report, |fate| fate == PruneFate::Remove),
        /// Those that stay.
        kept: Vec<PrunedPart> = chosen(report, |fate| fate != PruneFate::Remove),
        /// Directories that could not be read: nothing of their runs goes.
        unknown: Vec<UnknownPlacePart> = unknown(&report.unread),
        /// The bytes of those that went, or would.
        bytes: u64 = report.removed().map(FoundCheckpoint::bytes).sum(),
        /// Whether it only would be so.
        dry_run: bool = dry_run,
    }

    /// One of them.
    pub struct PrunedPart from one: &'a PrunedCheckpoint {
        /// Where it is.
        #[serde(rename = "where")]
        place: String = one.found.place(),
        /// Its step.
        step: u64 = one.found.step,
        /// Its bytes.
        bytes: u64 = one.found.bytes(),
        /// Why it stays.
        why: Option<&'static str> = one.fate.reason(),
    }

    /// What lies in buckets and directories.
    pub struct StorageDocument<'a> from report: &'a StorageReport {
        /// One for each place or what is directly below it.
        rows: Vec<StorageRowPart<'a>>,
    }

    /// One row.
    pub struct StorageRowPart<'a> from row: &'a StorageRow {
        /// The place.
        name: &'a str,
        /// Its bytes; `null` where nobody knows.
        bytes: Option<u64> = row.figures.as_ref().map(|figures| figures.bytes),
        /// Its objects or files.
        objects: Option<u64> = row.figures.as_ref().map(|figures| figures.objects),
        /// When the oldest of them was written.
        oldest: Option<TimePart> = row.figures.as_ref().and_then(|figures| part(&figures.oldest)),
        /// The largest checkpoint below it.
        largest_checkpoint: Option<LargestPart<'a>> =
            row.figures.as_ref().and_then(|figures| part(&figures.largest)),
        /// How old the answer is, in seconds.
        age_s: Option<u64>,
        /// Why it could not be asked now.
        unknown: Option<&'a str>,
    }

    /// The largest checkpoint of a place.
    pub struct LargestPart<'a> from (name, bytes): &'a (String, u64) {
        /// Where it is.
        name: &'a str = name,
        /// Its bytes.
        bytes: u64 = *bytes,
    }
}

/// Places that could not be asked, each with why.
fn unknown(places: &[(impl ToString, String)]) -> Vec<UnknownPlacePart> {
    let part = |(place, why): &(_, String)| UnknownPlacePart {
        place: ToString::to_string(place),
        why: why.clone(),
    };
    places.iter().map(part).collect()
}

/// The checkpoints with one of the fates that `is_meant` picks.
fn chosen(report: &PruneReport, is_meant: impl Fn(PruneFate) -> bool) -> Vec<PrunedPart> {
    report.all.iter().filter(|one| is_meant(one.fate)).map(PrunedPart::from).collect()
}
