//! What will happen to a job by itself, as every surface shows it: a [`Decision`] in a few words.

use super::decide::Decision;
use crate::model::rules::Action;
use crate::model::time::Timestamp;
use crate::model::view::Next;

/// The same while no MONITOR runs: nothing happens by itself until one does.
pub fn without_monitor(next: Next) -> Next {
    let acts = next.action != Action::Pass.as_str();
    let reason = if acts {
        format!("nothing by itself, since MONITOR does not run (tpu daemon start); {}", next.reason)
    } else {
        next.reason
    };
    Next { in_s: None, reason, ..next }
}

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
