//! What will happen to a job by itself, as every surface shows it: a [`Decision`] in a few words.

use super::decide::Decision;
use crate::model::time::Timestamp;
use crate::model::view::Next;

/// What a decision means at `now`. `None` when nothing is wrong, or nothing can happen any more.
pub fn next(decision: &Decision, now: Timestamp) -> Option<Next> {
    // Without a failure there is nothing that a rule could answer.
    decision.event.map(|_| Next {
        action: decision.action.as_str().to_owned(),
        in_s: decision.not_before.map(|at| at.seconds_since(now)),
        budget_left: decision.budget_left,
        reason: decision.reason.clone(),
    })
}
