//! The members of a group in the order of their losses: `sweep`.

use schemars::JsonSchema;
use serde::Serialize;

use super::jobs::JobPart;

/// A group, ranked.
#[derive(Serialize, JsonSchema)]
pub struct SweepDocument<'a> {
    /// Its members that have begun, the lowest loss first; behind them those without one.
    pub jobs: Vec<RankedPart<'a>>,
    /// How many have not begun.
    pub waiting: usize,
}

/// A member, as it stands among the others.
#[derive(Serialize, JsonSchema)]
pub struct RankedPart<'a> {
    /// Its place, from 1; null without a loss.
    pub rank: Option<usize>,
    /// Its last loss; null where it has printed none, or what is no number.
    pub last_loss: Option<f64>,
    /// Its lowest loss, as far as its log was read; null where it has printed none.
    pub best_loss: Option<f64>,
    /// The step of its last loss; the epoch where it prints no steps.
    pub step: Option<f64>,
    /// The arguments that not all members have.
    pub differs: Vec<String>,
    /// The job.
    pub job: JobPart<'a>,
}
