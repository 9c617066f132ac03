//! `/healthz`, `/readyz`: whether the server lives, and whether it can answer. They need no token, and say nothing else.

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::page;
use super::route::{Gives, Route};
use super::takes::Needs;

/// What says whether all is well, and where to begin.
pub(super) fn routes() -> Vec<Route> {
    let text = Gives::Text("text/plain; charset=utf-8");
    vec![
        Route::get("/healthz", "Whether the server lives", text, lives).needs(Needs::Nothing),
        Route::get("/readyz", "Whether the state can be read", text, ready).needs(Needs::Nothing),
        Route::get("/", "Says how to begin", text, begin).needs(Needs::Nothing),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "as all routes are")]
fn lives(_: &Asked<'_>) -> Result<Answer, Failure> {
    Ok(Answer::text("ok\n"))
}

fn ready(asked: &Asked<'_>) -> Result<Answer, Failure> {
    // What is wrong with it is told to those who may know.
    asked.ctx.data().map_err(|_| tpu_ops::Error::state("the state cannot be read"))?;
    Ok(Answer::text("ok\n"))
}

#[expect(clippy::unnecessary_wraps, reason = "as all routes are")]
fn begin(asked: &Asked<'_>) -> Result<Answer, Failure> {
    if let Some(page) = page::page(asked.headers) {
        return Ok(page);
    }
    Ok(Answer::text(
        "This is tpu, a job manager. Its jobs, over HTTP:\n\n  \
         curl -H \"Authorization: Bearer $TOKEN\" http://HOST:PORT/api/v1/jobs\n\n\
         A token is made where it runs: tpu token create NAME --role viewer\n\
         /docs says what there is, /openapi.json says it to programs.\n",
    ))
}
