//! What will happen to a job by itself, as every surface shows it: a [`Decision`] in a few words.

use super::decide::Decision;
use crate::model::rules::Action;
use crate::model::time::{self, Timestamp};
use crate::model::view::{JobView, Next};

/// The same while no daemon runs: nothing happens by itself until one does.
pub fn without_monitor(next: Next) -> Next {
    let acts = next.action != Action::Pass.as_str();
    let reason = if acts {
        format!(
            "nothing by itself, since the daemon does not run (tpu daemon start); {}",
            next.reason
        )
    } else {
        next.reason
    };
    Next { in_s: None, reason, ..next }
}

/// The same while the daemon only watches, for this reason.
pub fn while_watching(next: Next, why: &str) -> Next {
    if next.action == Action::Pass.as_str() {
        return next;
    }
    let Next { action, reason, .. } = &next;
    let reason = format!("the daemon only watches, since {why}; else it would {action}: {reason}");
    let action = Action::Pass.as_str().to_owned();
    Next { action, in_s: None, budget_left: None, waits: false, reason }
}

/// The same while the daemon works with another control plane than whoever looks: what follows from the word
/// of the one does not follow from that of the other.
pub fn by_another_cloud(next: &Next, (its, ours): (&str, &str)) -> Next {
    let reason = format!(
        "the daemon works with cloud {its} and not with {ours}, so what it does cannot be told from here (tpu \
         daemon stop, then tpu daemon start); {}",
        next.reason
    );
    Next {
        action: Action::Pass.as_str().to_owned(),
        in_s: None,
        budget_left: None,
        waits: false,
        reason,
    }
}

/// The same after a try of the daemon that came to nothing, for this reason; the next one is not before
/// `again`.
pub fn after_trouble(next: Next, (why, again): (&str, Timestamp), now: Timestamp) -> Next {
    if next.action == Action::Pass.as_str() {
        return next;
    }
    let reason = format!("{}; the last try came to nothing: {why}", next.reason);
    let in_s = next.in_s.map(|seconds| seconds.max(again.seconds_since(now)));
    Next { in_s, reason, ..next }
}

/// What a decision means at `now`. `None` when nothing is wrong, or nothing can happen any more.
pub fn next(decision: &Decision, now: Timestamp) -> Option<Next> {
    // Without a failure there is nothing that a rule could answer.
    decision.event.map(|_| Next {
        action: decision.action.as_str().to_owned(),
        in_s: decision.not_before.map(|at| at.seconds_since(now)),
        budget_left: decision.budget_left,
        reason: decision.reason.clone(),
        waits: decision.waits,
    })
}

/// What will happen to a job by itself, in a few words, while a daemon runs or none.
pub fn outlook(job: &JobView, runs: bool) -> String {
    match &job.next {
        Some(next) if next.action != Action::Pass.as_str() => {
            let left = next.budget_left.map(|n| format!(" ({n} left)")).unwrap_or_default();
            let when = match next.in_s {
                _ if !runs => {
                    return format!(
                        "{} once the daemon runs (tpu daemon start){left}",
                        next.action
                    );
                }
                Some(0) => " now".to_owned(),
                Some(seconds) => format!(" in {}", time::age(seconds)),
                None => String::new(),
            };
            format!("next: {}{when}{left}", next.action)
        }
        Some(_) | None => match (&job.intent, &job.next) {
            (Some(action), _) => format!("under way: {action}"),
            (None, Some(next)) if next.waits && runs => format!("not yet: {}", next.reason),
            (None, _) => "nothing will happen by itself".to_owned(),
        },
    }
}
