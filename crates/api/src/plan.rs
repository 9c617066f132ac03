//! `/api/v1/plan`: what happens by itself next.

use tpu_ops::waiting::preview;
use tpu_wire::daemon::PlanDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};

/// What is read of the plan.
pub(super) fn routes() -> Vec<Route> {
    vec![Route::get(
        "/api/v1/plan",
        "Says what happens by itself next",
        Gives::Json(shape::<PlanDocument<'_>>),
        plan,
    )]
}

fn plan(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let mut plan = preview::plan(asked.ctx)?;
    plan.jobs.retain(|entry| asked.who.rights.may_see(&entry.view.id.user));
    Ok(Answer::document(&PlanDocument::from(&plan)))
}
