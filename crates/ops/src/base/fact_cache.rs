//! What was last heard of the targets. The daemon writes it down beside its note, so that whoever asks a silent
//! control plane in vain still sees what was known, and how old that is. Nothing is concluded from it.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_system::store::cache::CacheFile;

use crate::Ctx;

/// Mode of the file: the lab's group reads it.
const MODE: u32 = 0o660;

/// The targets of one provider of which something was heard, each with when.
pub(crate) type Heard = HashMap<TargetName, TargetFact>;

/// The same of every provider, by what it is called: another one says nothing about its targets.
pub(crate) type HeardOf = BTreeMap<String, Heard>;

/// The contents of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    providers: BTreeMap<String, Vec<TargetFact>>,
}

fn file(ctx: &Ctx) -> CacheFile<'_> {
    CacheFile { store: &ctx.store, path: ctx.store.paths().heard(), mode: MODE }
}

/// Writes down what was heard.
pub(crate) fn keep(ctx: &Ctx, heard: HeardOf) {
    let providers = heard.into_iter().map(|(at, heard)| (at, heard.into_values().collect()));
    file(ctx).write(&Kept { providers: providers.collect() });
}

/// What was heard last.
pub(crate) fn last(ctx: &Ctx) -> HeardOf {
    let heard = |facts: Vec<TargetFact>| {
        facts.into_iter().map(|fact| (fact.name.clone(), fact)).collect::<Heard>()
    };
    let Kept { providers } = file(ctx).read();
    providers.into_iter().map(|(at, facts)| (at, heard(facts))).collect()
}
