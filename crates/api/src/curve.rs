//! `…/curve`: the loss of a run over its steps.

use std::sync::PoisonError;

use tpu_ops::observe::curves;
use tpu_wire::curves::CurveDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::jobs::JOB;
use super::route::{Gives, Route, shape};

/// The curve of one job.
pub(super) fn routes() -> Vec<Route> {
    let curve = Gives::Json(shape::<CurveDocument<'_>>);
    let says = "Shows the loss of a run over its steps, across all its attempts";
    vec![Route::get("/api/v1/jobs/{user}/{number}/curve", says, curve, of_job).with(&JOB)]
}

fn of_job(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let id = asked.job();
    let known = || asked.served.curves.lock().unwrap_or_else(PoisonError::into_inner);
    // A disk that does not answer holds up whoever asked for what is on it, and nobody else.
    let mut memory = std::mem::take(&mut *known());
    let curves = curves::of(asked.ctx, &mut memory, &id);
    *known() = memory;
    let curves = curves?;
    Ok(Answer::document(&CurveDocument::from((&id, &curves))))
}
