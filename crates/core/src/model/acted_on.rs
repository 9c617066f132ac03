//! Who acts on a job: a person who has killed it or has to do something, a rule, whoever holds its lease.

use super::job::{Intent, Job, KILLING, Recovery, Status};
use super::time::Timestamp;

impl Job {
    /// Whether a person has ended it: at work, or what a rule would have brought back.
    pub fn is_killed(&self) -> bool {
        matches!(self.status, Status::Killed(_))
            || self.recovery.as_ref().is_some_and(|recovery| recovery.killed)
    }

    /// Whether a kill has begun and is not complete: no rule fires on it, and nothing starts it again.
    pub fn is_being_killed(&self) -> bool {
        self.intent.as_ref().is_some_and(|intent| intent.action == KILLING)
    }

    /// Whether somebody is bringing it back by its rule.
    pub fn is_being_brought_back(&self) -> bool {
        self.intent.as_ref().and_then(Intent::by_rule).is_some()
    }

    /// Whether somebody acts on it: what ends meanwhile may have been told to.
    pub fn is_acted_on(&self, now: Timestamp) -> bool {
        self.intent.is_some() || self.lease.as_ref().is_some_and(|lease| lease.runs(now))
    }

    /// Whether its rules would bring it back, and a person has to do something first: log in, or what its plan says.
    pub fn needs_person(&self) -> bool {
        let needs = |of: &Recovery| !of.is_over() && (of.blocked || of.login.is_some());
        self.status.error().is_some() && self.recovery.as_deref().is_some_and(needs)
    }
}
