//! The checkpoints of jobs: in the log directories of all attempts, and in their counterparts in other regions.

use std::collections::BTreeSet;

use crate::base::ctx::user_of;
use crate::{Ctx, Error};
use tpu_core::model::checkpoint_copy;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::lineage::{self, Lineage};
use tpu_core::model::objects::StoragePlace;

use super::find::{self, FoundCheckpoint};
use super::shelf;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct CheckpointList {
    /// Each with the attempt in whose log directory it is.
    pub found: Vec<(JobId, FoundCheckpoint)>,
    /// Places that could not be asked, and why.
    pub unknown: Vec<(String, String)>,
}

/// Lists those of some jobs with their lineages; of all jobs of a user where none is named.
pub fn list(ctx: &Ctx, name: &UserName, jobs: &[JobId]) -> Result<CheckpointList, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, name)?;
    let lineages: Vec<Lineage> = if jobs.is_empty() {
        lineage::lineages(user)
    } else {
        jobs.iter().filter_map(|id| Lineage::of(user, id.window)).collect()
    };
    let pattern = find::pattern(ctx, Some(user))?;
    let places = checkpoint_copy::places(&ctx.settings(Some(user))?.checkpoint_copy);
    let shelf = shelf::open(ctx).ok();
    let mut list = CheckpointList::default();
    let mut seen = BTreeSet::new();
    for window in lineages.iter().flat_map(|lineage| &lineage.windows) {
        let Some(log) = user.job(*window).and_then(|job| job.log_dir.as_deref()) else { continue };
        let Ok(own) = StoragePlace::parse(log) else { continue };
        let mut all = vec![own.clone()];
        all.extend(checkpoint_copy::counterparts(&places, &own));
        for place in all {
            if !seen.insert(place.to_string()) {
                continue;
            }
            let id = JobId::new(name.clone(), *window);
            match find::below(ctx, shelf.as_ref(), &place, pattern.as_ref()) {
                Ok(found) => list.found.extend(found.into_iter().map(|one| (id.clone(), one))),
                Err(error) => list.unknown.push((place.to_string(), error.message)),
            }
        }
    }
    Ok(list)
}
