//! How long targets were waited for that are made for jobs, also for those that are brought back: noted as each comes or is
//! given up. [`crate::observe::stats`] reads it again.

use serde_json::json;

use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::time::Timestamp;
use tpu_system::store::Event;

use super::stats::WAITED;
use crate::Ctx;

/// A target that was asked for.
pub(crate) struct AskedFor<'a> {
    /// Which one.
    pub(crate) target: &'a TargetName,
    /// For whom.
    pub(crate) job: &'a JobId,
    /// Since when.
    pub(crate) since: Timestamp,
}

/// Notes how long a target was waited for, and whether it came. What cannot be noted is only not known.
pub(crate) fn note(ctx: &Ctx, data: &Data, asked: &AskedFor<'_>, came: bool) {
    let Some(target) = data.target(asked.target) else { return };
    let (Some(accelerator), Some(zone)) = (&target.accelerator, &target.zone) else { return };
    let (now, pricing) = (ctx.clock.now(), target.pricing.as_str());
    let waited_s = now.seconds_since(asked.since);
    let how = if came { "it came" } else { "in vain" };
    let event = Event {
        at: now,
        actor: ctx.actor.clone(),
        account: None,
        user: Some(asked.job.user.clone()),
        job: Some(asked.job.window),
        kind: WAITED.to_owned(),
        text: format!("{waited_s} s for {accelerator} in {zone}, {pricing}: {how}"),
        data: json!({
            "type": accelerator, "zone": zone, "pricing": pricing, "waited_s": waited_s, "came": came,
        }),
    };
    if let Err(error) = ctx.store.note(&[event]) {
        ctx.warn([error.to_string()]);
    }
}
