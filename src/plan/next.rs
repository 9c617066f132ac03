//! What will happen to a job by itself, in words that every surface shows.

use crate::model::job::{Job, Status};
use crate::model::rules::Action;
use crate::model::view::{Next, Shown};

/// What the job's rules ask for now. `None` when nothing is wrong.
pub fn next(job: &Job, shown: &Shown) -> Option<Next> {
    let Status::Error(kind) = &shown.status else { return None };
    if job.child.is_some() {
        return None;
    }
    let action = job.rules.action(*kind);
    let reason = if let Some(unknown) = &shown.unknown {
        format!("nothing while this is unknown: {unknown}")
    } else if !job.monitor {
        "MONITOR only observes this job (monitor=false)".to_owned()
    } else if action == Action::Pass {
        format!("the rule for {kind} is pass: nothing happens by itself")
    } else {
        format!("the rule for {kind} is {action}")
    };
    Some(Next { action: action.as_str().to_owned(), in_s: None, budget_left: None, reason })
}
