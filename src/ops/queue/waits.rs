//! How long targets were waited for that are made for jobs: noted as each comes or is given up for another one, and read
//! again where a job wants the fastest.

use std::collections::HashMap;

use serde_json::json;

use crate::model::data::Data;
use crate::model::making::Making;
use crate::model::order::TypeInZone;
use crate::model::target::Pricing;
use crate::ops::{Ctx, Error, journal};
use crate::plan::preferred::SeenWaits;
use crate::store::Event;

/// The kind of the events.
const WAITED: &str = "waited";

/// No more events are read: what was seen long ago says little.
const MOST: usize = 5_000;

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

/// What was seen of all.
#[derive(Default)]
pub(super) struct Seen(HashMap<(String, String, String), SeenWaits>);

impl Seen {
    /// What was seen of one.
    pub(super) fn of(&self, of: &TypeInZone, pricing: Pricing) -> SeenWaits {
        let key = (of.accelerator.clone(), of.zone.clone(), pricing.as_str().to_owned());
        self.0.get(&key).copied().unwrap_or_default()
    }
}

/// What was seen so far, by the journal.
pub(super) fn seen(ctx: &Ctx) -> Result<Seen, Error> {
    let mut seen = Seen::default();
    let events = journal::newest(ctx, None, None, MOST)?;
    for event in events.iter().filter(|event| event.kind == WAITED) {
        let text = |key: &str| event.data[key].as_str().map(str::to_owned);
        let (Some(accelerator), Some(zone), Some(pricing), Some(waited_s)) =
            (text("type"), text("zone"), text("pricing"), event.data["waited_s"].as_u64())
        else {
            continue;
        };
        let waits = seen.0.entry((accelerator, zone, pricing)).or_default();
        waits.total_s += waited_s;
        match event.data["came"].as_bool() {
            Some(true) => waits.came += 1,
            _ => waits.vain += 1,
        }
    }
    Ok(seen)
}
