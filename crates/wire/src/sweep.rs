//! The members of a group in the order of their losses: `sweep`.

use super::document::documents;
use super::jobs::JobPart;

documents! {
    /// A group, ranked.
    pub struct SweepDocument<'a> {
        /// Its members that have begun, the lowest loss first; behind them those without one.
        jobs: Vec<RankedPart<'a>>,
        /// How many have not begun.
        waiting: usize,
    }

    /// A member, as it stands among the others.
    pub struct RankedPart<'a> {
        /// Its place, from 1; null without a loss.
        rank: Option<usize>,
        /// Its last loss; null where it has printed none, or what is no number.
        last_loss: Option<f64>,
        /// Its lowest loss, as far as its log was read; null where it has printed none.
        best_loss: Option<f64>,
        /// The step of its last loss; the epoch where it prints no steps.
        step: Option<f64>,
        /// The arguments that not all members have.
        differs: Vec<String>,
        /// The job.
        job: JobPart<'a>,
    }
}
