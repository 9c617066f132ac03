//! `/openapi.json` and `/docs`: what there is.

use serde_json::Value;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};

/// What describes the rest.
pub(super) fn routes() -> Vec<Route> {
    let html = Gives::Text("text/html; charset=utf-8");
    vec![
        Route::get(
            "/openapi.json",
            "Describes the API, OpenAPI 3.1",
            Gives::Json(shape::<Value>),
            openapi,
        ),
        Route::get("/docs", "Describes the API, for people", html, docs),
    ]
}

#[expect(clippy::unnecessary_wraps, reason = "as all routes are")]
fn openapi(asked: &Asked<'_>) -> Result<Answer, Failure> {
    Ok(Answer::text(asked.served.description.for_programs.clone()).kind("application/json"))
}

#[expect(clippy::unnecessary_wraps, reason = "as all routes are")]
fn docs(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let page = asked.served.description.for_people.clone();
    Ok(Answer::text(page).kind("text/html; charset=utf-8"))
}
