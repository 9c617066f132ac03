//! The members of a group beside each other: in what they differ, and how far the loss of each has come down.

use std::collections::HashMap;

use tpu_core::model::curve::Point;
use tpu_core::model::facts::Phase;
use tpu_core::model::view::JobView;

use super::curves::{self, CurveMemory};
use crate::Ctx;

/// By which loss members are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankBy {
    /// By the last one.
    Last,
    /// By the lowest one.
    Best,
}

/// A member, as it stands among the others.
#[derive(Clone, Debug)]
pub struct Ranked<'a> {
    /// The member, by its last attempt.
    pub job: &'a JobView,
    /// The arguments that not all have.
    pub differs: Vec<String>,
    /// Its last loss.
    pub last: Option<Point>,
    /// Its lowest one, as far as its log was read: of a long one at some places only ([`curves`]).
    pub best: Option<Point>,
    /// Whether what it prints by now is no number any more.
    pub is_diverged: bool,
}

impl Ranked<'_> {
    /// The loss by which it is ranked.
    pub fn loss(&self, by: RankBy) -> Option<f64> {
        match by {
            RankBy::Last if self.is_diverged => None,
            RankBy::Last => self.last.map(|point| point.value),
            RankBy::Best => self.best.map(|point| point.value),
        }
    }
}

/// Jobs in the order of their losses, the lowest first; behind them those that have none.
pub fn ranked<'a>(ctx: &Ctx, jobs: &[&'a JobView], by: RankBy) -> Vec<Ranked<'a>> {
    let words: Vec<Vec<String>> = jobs.iter().map(|job| arguments(job)).collect();
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in words.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let is_own = |word: &&String| counts.get(word.as_str()).is_some_and(|n| *n < jobs.len());
    let mut memory = CurveMemory::default();
    let mut all: Vec<Ranked<'a>> = jobs
        .iter()
        .zip(&words)
        .map(|(job, words)| {
            // What cannot be read has no loss: its row says how it is.
            let curve = curves::of(ctx, &mut memory, &job.id).unwrap_or_default().loss.whole();
            Ranked {
                job,
                differs: words.iter().filter(is_own).cloned().collect(),
                last: curve.last().copied(),
                best: curve.iter().copied().min_by(|a, b| a.value.total_cmp(&b.value)),
                is_diverged: job.shown.phase == Some(Phase::Diverged),
            }
        })
        .collect();
    let rank = |one: &Ranked<'_>| (one.loss(by).unwrap_or(f64::INFINITY), one.job.member);
    all.sort_by(|a, b| {
        let ((a, member_of_a), (b, member_of_b)) = (rank(a), rank(b));
        a.total_cmp(&b).then(member_of_a.cmp(&member_of_b))
    });
    all
}

/// The arguments of a job, without the dashes and without those that follow from its lineage.
fn arguments(job: &JobView) -> Vec<String> {
    let words = shlex::split(&job.configs)
        .unwrap_or_else(|| job.configs.split_whitespace().map(str::to_owned).collect());
    words.into_iter().map(|word| word.trim_start_matches('-').to_owned()).collect()
}
