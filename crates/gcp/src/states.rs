//! What each word of a control plane means to us. A word that is not here means nothing: no action, and
//! never a destructive one, follows from it.

use tpu_core::model::facts::{QueuedState, TargetState};

/// The state of a target by the control plane's word.
pub fn of_target(word: &str) -> TargetState {
    match word {
        "READY" => TargetState::Ready,
        "CREATING" | "STARTING" | "RESTARTING" | "REIMAGING" | "REPAIRING" => TargetState::Pending,
        "PREEMPTED" | "TERMINATED" => TargetState::Preempted,
        "STOPPED" | "STOPPING" => TargetState::Stopped,
        "DELETING" => TargetState::Deleting,
        // Also HIDING, HIDDEN, UNHIDING, UNKNOWN and STATE_UNSPECIFIED.
        _ => TargetState::Unknown,
    }
}

/// The state of a queued request by the control plane's word.
pub(crate) fn of_queued(word: &str) -> QueuedState {
    match word {
        "CREATING" | "ACCEPTED" | "WAITING_FOR_RESOURCES" | "PROVISIONING" => QueuedState::Waiting,
        "ACTIVE" => QueuedState::Active,
        "SUSPENDING" | "SUSPENDED" | "FAILED" => QueuedState::Ended,
        "DELETING" => QueuedState::Deleting,
        _ => QueuedState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::facts::TargetStep;

    #[test]
    fn every_word_of_the_api_has_its_meaning() {
        use TargetState::{Deleting, Pending, Preempted, Ready, Stopped, Unknown};
        for (word, state, step) in [
            ("READY", Ready, TargetStep::Launch),
            ("CREATING", Pending, TargetStep::Wait),
            ("STARTING", Pending, TargetStep::Wait),
            ("RESTARTING", Pending, TargetStep::Wait),
            ("REIMAGING", Pending, TargetStep::Wait),
            ("REPAIRING", Pending, TargetStep::Wait),
            ("PREEMPTED", Preempted, TargetStep::DeleteThenCreate),
            ("TERMINATED", Preempted, TargetStep::DeleteThenCreate),
            ("STOPPED", Stopped, TargetStep::Start),
            ("STOPPING", Stopped, TargetStep::Start),
            ("DELETING", Deleting, TargetStep::Wait),
            ("HIDING", Unknown, TargetStep::Nothing),
            ("HIDDEN", Unknown, TargetStep::Nothing),
            ("UNHIDING", Unknown, TargetStep::Nothing),
            ("UNKNOWN", Unknown, TargetStep::Nothing),
            ("STATE_UNSPECIFIED", Unknown, TargetStep::Nothing),
        ] {
            assert_eq!((of_target(word), of_target(word).step()), (state, step), "{word}");
        }
    }

    #[test]
    fn a_word_that_nobody_knows_is_never_destructive() {
        for word in ["", "ready", "Preempted", "PREEMPTED ", "DELETED", "EVICTED", "FAILED", "404"]
        {
            assert_eq!(of_target(word).step(), TargetStep::Nothing, "{word:?}");
        }
        assert_eq!(TargetState::Gone.step(), TargetStep::Create);
        assert_eq!(TargetState::NotWatched.step(), TargetStep::Launch);
    }

    #[test]
    fn every_word_of_a_queued_request_has_its_meaning() {
        use QueuedState::{Active, Deleting, Ended, Unknown, Waiting};
        for (word, state) in [
            ("CREATING", Waiting),
            ("ACCEPTED", Waiting),
            ("WAITING_FOR_RESOURCES", Waiting),
            ("PROVISIONING", Waiting),
            ("ACTIVE", Active),
            ("SUSPENDING", Ended),
            ("SUSPENDED", Ended),
            ("FAILED", Ended),
            ("DELETING", Deleting),
            ("STATE_UNSPECIFIED", Unknown),
            ("READY", Unknown),
        ] {
            assert_eq!(of_queued(word), state, "{word}");
        }
    }
}
