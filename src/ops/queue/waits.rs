//! How long targets were waited for that are made for jobs: noted as each comes or is given up for another one.
//! [`crate::ops::stats`] reads it again.

use serde_json::json;

use crate::model::data::Data;
use crate::model::making::Making;
use crate::ops::Ctx;
use crate::ops::stats::WAITED;
use crate::store::Event;

/// Notes how long a target was waited for, and whether it came. What cannot be noted is only not known.
pub(super) fn note(ctx: &Ctx, data: &Data, making: &Making, came: bool) {
    let Some(target) = data.target(&making.target) else { return };
    let (Some(accelerator), Some(zone)) = (&target.accelerator, &target.zone) else { return };
    let (now, pricing) = (ctx.clock.now(), target.pricing.as_str());
    let waited_s = now.seconds_since(making.since);
    let how = if came { "it came" } else { "in vain" };
    let event = Event {
        at: now,
        actor: ctx.actor.clone(),
        user: Some(making.job.user.clone()),
        job: Some(making.job.window),
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
