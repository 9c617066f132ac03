//! The attempts of a lineage before one of them: those whose records are there, and those in the archive.

use tpu_core::model::data::User;
use tpu_core::model::ids::JobNumber;
use tpu_core::model::job::Job;
use tpu_core::model::lineage::Lineage;

use crate::Ctx;

/// The attempts from one up to the first of its lineage.
pub struct Attempts {
    /// Those whose records are there or in the archive, the youngest first.
    pub known: Vec<Job>,
    /// The attempt before the oldest of them, if its record is nowhere.
    pub lost: Option<JobNumber>,
}

/// Looks for the attempts from one up to the first of its lineage, also in the archive.
pub fn attempts(ctx: &Ctx, user: &User, job: &Job) -> Attempts {
    let lineage = Lineage::of(user, job.windows_id).map(|l| l.windows).unwrap_or_default();
    let upwards = lineage.iter().rev().skip_while(|window| **window != job.windows_id);
    let mut known: Vec<Job> = upwards.filter_map(|window| user.job(*window).cloned()).collect();
    // Cleaning an ancestor away must not cost its leaf the checkpoint. A parent is archived before its
    // child or with it, and then written first; a line that cannot be read ends the search.
    let (mut archived, mut bytes) = (None, None);
    while let Some(first) = known.last()
        && let Some(father) = first.father
    {
        let (owner, child) = (&first.user, first.windows_id);
        let is_it =
            |job: &Job| job.user == *owner && job.windows_id == father && job.child == Some(child);
        let search = || {
            let archived = archived.get_or_insert_with(|| ctx.store.archived());
            for record in archived.by_ref() {
                let job = record?.job;
                if is_it(&job) {
                    return Ok(Some(job));
                }
            }
            Ok(None)
        };
        let bytes = *bytes.get_or_insert_with(|| ctx.store.archive_bytes());
        match ctx.ancestors.before((first, father), bytes, search) {
            Some(found) => known.push(found),
            None => return Attempts { known, lost: Some(father) },
        }
    }
    Attempts { known, lost: None }
}

/// Where the attempts up to the first of a lineage logged, also those of which the records are in the archive; and whether
/// that is known of all that have begun.
pub(crate) fn log_dirs(ctx: &Ctx, user: &User, leaf: &Job) -> (Vec<String>, bool) {
    let attempts = attempts(ctx, user, leaf);
    let is_known = attempts.lost.is_none();
    (attempts.known.into_iter().filter_map(|job| job.log_dir).collect(), is_known)
}

/// How many attempts of its lineage a successor of `job` has before it. Earlier versions did not count them.
pub(crate) fn before_successor(user: &User, job: &Job) -> u32 {
    let counted = job.launch.as_ref().map_or(0, |launch| launch.attempt).saturating_add(1);
    let windows = Lineage::of(user, job.windows_id).map(|lineage| lineage.windows);
    let place = windows.and_then(|windows| windows.iter().position(|one| *one == job.windows_id));
    let there = place.map_or(1, |place| place + 1);
    counted.max(u32::try_from(there).unwrap_or(u32::MAX))
}
