//! What control planes have answered, kept for a while beside the state file: asking takes seconds, and a query of
//! `BigQuery` costs money. One file for each account of the machine, which nobody else reads: who may see quotas and
//! bills is decided there, not here.

use serde::Serialize;
use serde::de::DeserializeOwned;

use tpu_system::store::cache::{AnswerCache, CacheFile};

use crate::Ctx;

pub use tpu_system::store::cache::Aged;

/// Mode of the file.
const MODE: u32 = 0o600;
/// What was answered longer ago than this, in seconds, is not kept any more.
const FORGOTTEN_S: u64 = 24 * 3_600;

fn cache(ctx: &Ctx) -> AnswerCache<'_> {
    let path = ctx.store.paths().asked(ctx.env.uid);
    AnswerCache { file: CacheFile { store: &ctx.store, path, mode: MODE }, kept_s: FORGOTTEN_S }
}

/// What was answered to a question in the last so many seconds. A moment ahead was written by another clock.
pub(crate) fn last<T: DeserializeOwned>(
    ctx: &Ctx,
    question: &str,
    young_s: u64,
) -> Option<Aged<T>> {
    let now = ctx.clock.now();
    let is_young = |of: &Aged<T>| of.at <= now && now.seconds_since(of.at) < young_s;
    cache(ctx).last(question).filter(is_young)
}

/// Keeps an answer that was given just now. Where it cannot be kept it is asked for again: that is all.
pub(crate) fn keep<T: Serialize>(ctx: &Ctx, question: &str, answer: T) -> Aged<T> {
    // Without the directory nothing is kept.
    drop(ctx.store.state_dir());
    cache(ctx).keep(question, ctx.clock.now(), answer)
}
