//! Gathers what was seen so far of targets of each type and zone, for whoever has to choose among them
//! ([`tpu_core::plan::seen`]).
//!
//! It is gathered from the journal and the archive, which are years long. A daemon that starts one job after the other
//! gathers it every ten minutes and not with each of them.

use std::sync::Arc;

use tpu_core::model::target::Pricing;

use super::stats::{Gathered, gather};
use crate::base::seen_lately::SeenBefore;
use crate::{Ctx, Error};

/// No more archived records are read for a choice: what was seen long ago says little.
const RECENT: usize = 5_000;

/// What was seen so far.
pub(crate) fn seen_before(ctx: &Ctx) -> Result<Arc<SeenBefore>, Error> {
    ctx.seen_lately.or_gather(ctx.clock.monotonic(), || gathered(ctx))
}

fn gathered(ctx: &Ctx) -> Result<SeenBefore, Error> {
    let now = ctx.clock.now();
    let Gathered { past, .. } = gather(ctx, RECENT)?;
    let mut seen = SeenBefore::default();
    for run in &past.runs {
        let (Some(accelerator), Some(zone)) = (&run.on.accelerator, &run.on.zone) else { continue };
        let key = (accelerator.clone(), zone.clone(), run.on.pricing.map(Pricing::as_str));
        seen.entry(key).runs.add(run, now);
    }
    for wait in &past.capacity {
        let key = (wait.accelerator.clone(), wait.zone.clone(), wait.pricing.map(Pricing::as_str));
        seen.entry(key).waits.add(wait);
    }
    Ok(seen)
}
