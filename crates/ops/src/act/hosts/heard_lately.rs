//! What machines have said to the daemon of one account, for those of the others: where a job could not begin a moment ago,
//! no other daemon asks for a minute. A machine on which one can begin is asked by whoever starts it there.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::Ctx;
use crate::base::watch;
use tpu_core::model::capacity::BusyGpus;
use tpu_core::model::data::Data;
use tpu_core::model::ids::TargetName;
use tpu_core::model::target::Target;
use tpu_core::model::time::Timestamp;
use tpu_system::store::cache::CacheFile;

use super::addresses;
use super::probe::{Unusable, is_asked};

/// What was said serves the others so long, in seconds.
const SERVES_S: u64 = 60;

/// Mode of the file: the lab's group reads it.
const MODE: u32 = 0o660;

/// The contents of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    machines: BTreeMap<TargetName, Heard>,
}

/// What a machine said.
#[derive(Debug, Serialize, Deserialize)]
struct Heard {
    at: Timestamp,
    /// Where it was asked: another machine may have its name by now.
    addresses: Vec<String>,
    /// The GPUs on which somebody is at work, or why nothing begins there.
    said: Result<BusyGpus, String>,
}

fn file(ctx: &Ctx) -> CacheFile<'_> {
    CacheFile { store: &ctx.store, path: ctx.store.paths().machines_heard(), mode: MODE }
}

/// What machines said within the last minute; nothing where no other daemon may have asked them. Who names a machine, and a
/// daemon that is alone, asks by itself.
pub(super) fn last(ctx: &Ctx, data: &Data) -> HashMap<TargetName, Result<BusyGpus, String>> {
    if !is_shared(ctx) {
        return HashMap::new();
    }
    let now = ctx.clock.now();
    let Kept { machines } = file(ctx).read();
    let serves = |(name, heard): &(TargetName, Heard)| {
        // A moment ahead was written by another clock.
        heard.at <= now
            && now.seconds_since(heard.at) < SERVES_S
            && heard.addresses == addresses(data, name)
    };
    let young = machines.into_iter().filter(serves);
    young.map(|(name, heard)| (name, heard.said)).collect()
}

/// Keeps what machines have said just now. What could not be asked says nothing to others: another account may have
/// another way.
pub(super) fn keep<'a>(
    ctx: &Ctx,
    data: &Data,
    all: impl Iterator<Item = (&'a Target, &'a Result<BusyGpus, Unusable>)>,
) {
    if !is_shared(ctx) {
        return;
    }
    let now = ctx.clock.now();
    let heard = all.filter(|(target, _)| is_asked(data, target)).filter_map(|(target, said)| {
        let said = match said {
            Ok(busy) => Ok(busy.clone()),
            Err(Unusable::Said(why)) => Err(why.clone()),
            Err(Unusable::Unasked(_)) => return None,
        };
        let addresses = addresses(data, &target.name);
        Some((target.name.clone(), Heard { at: now, addresses, said }))
    });
    let heard: Vec<(TargetName, Heard)> = heard.collect();
    if heard.is_empty() {
        return;
    }
    let mut kept: Kept = file(ctx).read();
    kept.machines.retain(|_, heard| now.seconds_since(heard.at) < SERVES_S);
    kept.machines.extend(heard);
    file(ctx).write(&kept);
}

/// Whether several daemons work on this data file, and this is one.
fn is_shared(ctx: &Ctx) -> bool {
    ctx.actor == watch::ACTOR && watch::has_others(ctx)
}
