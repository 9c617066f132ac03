//! What was last heard of the targets. MONITOR writes it down beside its note, so that whoever asks a silent
//! control plane in vain still sees what was known, and how old that is. Nothing is concluded from it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::model::facts::TargetFact;
use crate::model::ids::TargetName;
use crate::store::atomic;

use super::Ctx;

/// Mode of the file: the lab's group reads it.
const MODE: u32 = 0o660;

/// The targets of which something was heard, each with when.
pub(super) type Heard = HashMap<TargetName, TargetFact>;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// Which control plane said so, in words: another one says nothing about its targets.
    cloud: String,
    targets: Vec<TargetFact>,
}

/// Writes down what was heard. What cannot be written is not known to others: that is all.
pub(super) fn keep<'a>(ctx: &Ctx, targets: impl Iterator<Item = &'a TargetFact>) {
    let kept = Kept { cloud: ctx.cloud_in_words(), targets: targets.cloned().collect() };
    let bytes = serde_json::to_vec(&kept).unwrap_or_default();
    let path = ctx.store.paths().heard();
    drop(atomic::write_file(&**ctx.store.disk(), &path, &bytes, MODE));
}

/// What was heard from the control plane that is asked now.
pub(super) fn last(ctx: &Ctx) -> Heard {
    let read = || {
        let bytes = ctx.store.disk().read(&ctx.store.paths().heard()).ok()?.bytes;
        let kept: Kept = serde_json::from_slice(&bytes).ok()?;
        (kept.cloud == ctx.cloud_in_words()).then_some(kept.targets)
    };
    let targets = read().unwrap_or_default();
    targets.into_iter().map(|fact| (fact.name.clone(), fact)).collect()
}
