//! What control planes have answered, kept for a while beside the state file: asking takes seconds, and a query of
//! `BigQuery` costs money. One file for each account of the machine, which nobody else reads: who may see quotas and
//! bills is decided there, not here.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use tpu_core::model::time::Timestamp;
use tpu_system::store::atomic;

use crate::Ctx;

/// Mode of the file.
const MODE: u32 = 0o600;
/// What was answered longer ago than this, in seconds, is not kept any more.
const FORGOTTEN_S: u64 = 24 * 3_600;

/// An answer, and when it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged<T> {
    /// What was said.
    pub answer: T,
    /// When.
    pub at: Timestamp,
}

/// One that is kept.
#[derive(Serialize, Deserialize)]
struct KeptAnswer {
    at: Timestamp,
    answer: Value,
}

/// The file: answers by the questions.
#[derive(Default, Serialize, Deserialize)]
struct KeptAnswers {
    answers: BTreeMap<String, KeptAnswer>,
}

impl KeptAnswers {
    fn read(ctx: &Ctx) -> Self {
        let path = ctx.store.paths().asked(ctx.env.uid);
        let file = ctx.store.disk().read(&path).ok();
        // What cannot be read is asked again.
        file.and_then(|file| serde_json::from_slice(&file.bytes).ok()).unwrap_or_default()
    }
}

/// What was answered to a question in the last so many seconds. A moment ahead was written by another clock.
pub(crate) fn last<T: DeserializeOwned>(
    ctx: &Ctx,
    question: &str,
    young_s: u64,
) -> Option<Aged<T>> {
    let kept = KeptAnswers::read(ctx).answers.remove(question)?;
    let now = ctx.clock.now();
    let is_young = kept.at <= now && now.seconds_since(kept.at) < young_s;
    let answer = serde_json::from_value(kept.answer).ok().filter(|_| is_young)?;
    Some(Aged { answer, at: kept.at })
}

/// Keeps an answer that was given just now. Where it cannot be kept it is asked for again: that is all.
pub(crate) fn keep<T: Serialize>(ctx: &Ctx, question: &str, answer: T) -> Aged<T> {
    let at = ctx.clock.now();
    let value = serde_json::to_value(&answer).ok().filter(|_| !ctx.store.is_dry_run());
    if let (Some(answer), Ok(_)) = (value, ctx.store.state_dir()) {
        let mut kept = KeptAnswers::read(ctx);
        kept.answers.retain(|_, old| at.seconds_since(old.at) < FORGOTTEN_S);
        kept.answers.insert(question.to_owned(), KeptAnswer { at, answer });
        let bytes = serde_json::to_vec(&kept).unwrap_or_default();
        let path = ctx.store.paths().asked(ctx.env.uid);
        drop(atomic::write_file(&**ctx.store.disk(), &path, &bytes, MODE));
    }
    Aged { answer, at }
}
