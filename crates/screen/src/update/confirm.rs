//! Asking the person whether something is to be done.

use std::collections::BTreeSet;

use crate::message::{Act, Ask, Effect};
use crate::model::{Body, Confirm, Model, Overlay};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::view::Whose;

/// Asks the person whether something is to be done. Where it would be done to the jobs of somebody else, that is
/// said, and it is not what a quick Enter does.
pub(super) fn confirm(
    model: &mut Model,
    act: Act,
    jobs: Vec<JobId>,
    plan: Option<Body>,
    note: Option<String>,
) {
    let others = of_others(&model.own, &concerned(&act, &jobs));
    let yes = others.is_none();
    model.overlay = Some(Overlay::Confirm(Confirm { act, jobs, yes, top: 0, plan, note, others }));
}

/// Asks the person, and meanwhile what that would do.
pub(super) fn confirm_with_plan(
    model: &mut Model,
    act: Act,
    jobs: Vec<JobId>,
    question: Ask,
    note: Option<&str>,
) -> Vec<Effect> {
    confirm(model, act, jobs, Some(Body::Awaited(question.clone())), note.map(str::to_owned));
    vec![Effect::Ask(question)]
}

/// The jobs of a question, and those that the act itself or a typed command names.
fn concerned(act: &Act, jobs: &[JobId]) -> BTreeSet<JobId> {
    let named: Vec<JobId> = match act {
        Act::IgnoreError(job) => vec![job.clone()],
        Act::Reapply { then_resume, .. } => then_resume.iter().cloned().collect(),
        Act::Confirmed(words) => words.iter().filter_map(|word| JobId::parse(word)).collect(),
        _ => Vec::new(),
    };
    jobs.iter().cloned().chain(named).collect()
}

/// Who owns those of the jobs that are not of the users for whom the screen was opened; `None` if it is nobody, or
/// if it was opened for everybody.
fn of_others(own: &Whose, jobs: &BTreeSet<JobId>) -> Option<String> {
    /// So many are named.
    const NAMED: usize = 3;
    let others: BTreeSet<&UserName> =
        jobs.iter().map(|job| &job.user).filter(|user| !own.includes(user)).collect();
    if others.is_empty() {
        return None;
    }
    let count = jobs.iter().filter(|job| others.contains(&job.user)).count();
    let mut names: Vec<String> = others.iter().take(NAMED).map(ToString::to_string).collect();
    names.extend((others.len() > NAMED).then(|| format!("{} more", others.len() - NAMED)));
    let which = match (count, jobs.len()) {
        (1, 1) => "This job belongs".to_owned(),
        (all, jobs) if all == jobs => format!("All {all} belong"),
        (some, jobs) => {
            format!("{some} of these {jobs} {}", if some == 1 { "belongs" } else { "belong" })
        }
    };
    Some(format!("{which} to {}; this screen is {own}'s.", names.join(", ")))
}
