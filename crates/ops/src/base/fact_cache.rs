//! What was last heard of the targets. The daemon writes it down beside its note, so that whoever asks a silent
//! control plane in vain still sees what was known, and how old that is. Nothing is concluded from that. What a control
//! plane has answered as a whole serves the daemons of other accounts as well, for as long as it is young.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use tpu_core::model::facts::TargetFact;
use tpu_core::model::ids::TargetName;
use tpu_core::model::time::Timestamp;
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
    /// Whole answers, by what each provider is called.
    #[serde(default)]
    answers: BTreeMap<String, SharedAnswer>,
}

/// What a provider has said of all its zones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SharedAnswer {
    /// When it was asked.
    pub(crate) asked_at: Timestamp,
    /// Its zones, each with the moment of which it speaks.
    pub(crate) zones: BTreeMap<String, Timestamp>,
    /// Its targets.
    pub(crate) targets: Vec<TargetFact>,
}

fn file(ctx: &Ctx) -> CacheFile<'_> {
    CacheFile { store: &ctx.store, path: ctx.store.paths().heard(), mode: MODE }
}

/// Writes down what was heard, and the answers that were whole.
pub(crate) fn keep(ctx: &Ctx, heard: HeardOf, answers: BTreeMap<String, SharedAnswer>) {
    let providers = heard.into_iter().map(|(at, heard)| (at, heard.into_values().collect()));
    // Other daemons may ask other providers.
    let Kept { answers: mut all, .. } = file(ctx).read();
    all.extend(answers);
    file(ctx).write(&Kept { providers: providers.collect(), answers: all });
}

/// The whole answers that are younger than so many seconds, by what each provider is called.
pub(crate) fn answers(ctx: &Ctx, young_s: u64) -> BTreeMap<String, SharedAnswer> {
    let now = ctx.clock.now();
    let Kept { mut answers, .. } = file(ctx).read();
    // A moment ahead was written by another clock.
    answers.retain(|_, of| of.asked_at <= now && now.seconds_since(of.asked_at) < young_s);
    answers
}

/// What was heard last.
pub(crate) fn last(ctx: &Ctx) -> HeardOf {
    let heard = |facts: Vec<TargetFact>| {
        facts.into_iter().map(|fact| (fact.name.clone(), fact)).collect::<Heard>()
    };
    let Kept { providers, .. } = file(ctx).read();
    providers.into_iter().map(|(at, facts)| (at, heard(facts))).collect()
}
