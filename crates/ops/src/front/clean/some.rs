//! `clean` of jobs that are named: their lineages, and nothing else.

use std::collections::BTreeSet;

use crate::act::reconcile;
use crate::base::ctx::user_of;
use crate::{Ctx, Error};
use tpu_core::model::data::User;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::lineage::Links;

use super::{Chosen, Cleaned, Extent, Kept, choose, clear_chosen, would_clear};

/// Archives the lineages of these jobs, of those whose leaf has ended.
pub fn clean_some(
    ctx: &Ctx,
    user: &UserName,
    jobs: &[JobId],
    extent: Extent,
) -> Result<Cleaned, Error> {
    reconcile::reconcile(ctx)?;
    clear_chosen(ctx, user, chosen(ctx, user, jobs, extent)?)
}

/// What [`clean_some`] would do now.
pub fn dry_run_clean_some(
    ctx: &Ctx,
    user: &UserName,
    jobs: &[JobId],
    extent: Extent,
) -> Result<Cleaned, Error> {
    would_clear(ctx, user, chosen(ctx, user, jobs, extent)?)
}

/// Of what would be cleared away what belongs to these jobs; those of them that stay, each with the reason.
fn chosen(ctx: &Ctx, user: &UserName, jobs: &[JobId], extent: Extent) -> Result<Chosen, Error> {
    let Chosen { mut windows, mut kept } = choose(ctx, user, extent)?;
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    let meant = lineages(owner, jobs);
    windows.retain(|window| meant.contains(window));
    kept.retain(|kept| meant.contains(&kept.job.window));
    for id in jobs {
        let is_told = |kept: &Kept| kept.job == *id;
        if !windows.contains(&id.window)
            && !kept.iter().any(is_told)
            && let Some(job) = owner.job(id.window)
        {
            let reason = format!("it is {}", job.status);
            kept.push(Kept { job: id.clone(), reason });
        }
    }
    Ok(Chosen { windows, kept })
}

/// All attempts of the lineages of these jobs.
fn lineages(owner: &User, jobs: &[JobId]) -> BTreeSet<JobNumber> {
    let links = Links::of(owner);
    let lineages = jobs.iter().filter_map(|id| links.lineage(id.window));
    lineages.flat_map(|lineage| lineage.windows).collect()
}
