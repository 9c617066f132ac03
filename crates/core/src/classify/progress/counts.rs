//! Reads counts of steps that no word for a step stands beside: a counter in brackets, the number of all steps.

use regex::bytes::Captures;

use super::context::{Loss, Owner};
use super::patterns as p;
use super::patterns::all;
use crate::classify::numerals::{count, whole};
use crate::model::facts::Progress;

/// A smaller number in brackets may be that of workers: `[3/8] loss: 0.5`.
const LEAST: u64 = 100;

/// Bytes at the start of a line in which a counter in brackets may stand.
const REACH: usize = 200;

/// Names of the number of all steps. `num_steps` alone is the length of a rollout for many, and is none.
const TOTALS: [&str; 17] = [
    "total_steps",
    "total_iters",
    "total_iterations",
    "total_updates",
    "total_train_steps",
    "total_training_steps",
    "total_train_iters",
    "max_steps",
    "max_iters",
    "max_iterations",
    "max_updates",
    "max_train_steps",
    "max_training_steps",
    "max_train_iters",
    "num_train_steps",
    "num_training_steps",
    "num_train_iters",
];

/// Reads the counter in brackets before a loss, where nothing else counts: `[120/500] loss: 0.345`. Builds count so,
/// and evaluations; `line` has the launcher's tags before `body`, which look alike.
pub(super) fn read_bracket(line: &[u8], body: &[u8], progress: &mut Progress) {
    if progress.step.is_some() || progress.percent.is_some() {
        return;
    }
    let Some(caps) = p::BRACKET.captures(line.get(..REACH).unwrap_or(line)) else { return };
    let (Some(step), Some(total)) = (whole(&caps, "n"), whole(&caps, "t")) else { return };
    let is_trained = |caps: Captures<'_>| {
        caps.name("name").is_some_and(|name| Loss::of(body, name) != Loss::HeldOut)
    };
    if step <= total && total >= LEAST && all(&p::LOSS, body).any(is_trained) {
        (progress.step, progress.total) = (Some(step), Some(total));
    }
}

/// The number of all steps that has a name of its own beside a step: `total_steps=5000`, `max_steps: 1e5`.
pub(super) fn total(body: &[u8], step: u64) -> Option<u64> {
    let ours =
        |caps: &Captures<'_>| caps.name("w").is_some_and(|word| Owner::of(body, word).is(&TOTALS));
    let named = all(&p::TOTAL, body).filter(ours);
    let total = named.last().and_then(|caps| count(caps.name("t")?.as_bytes()));
    total.filter(|total| *total >= step)
}
