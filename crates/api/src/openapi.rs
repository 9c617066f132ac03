//! `/openapi.json` and `/docs`: what there is.

use std::fmt::Write as _;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::route::{Gives, Route, shape};
use super::takes::Needs;

/// `docs/openapi.json`, as `build.rs` has packed it.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));

/// What is known of the API when the program is built: all but what a job file is.
pub(super) fn description() -> Value {
    let mut text = String::new();
    GzDecoder::new(PACKED).read_to_string(&mut text).expect("build.rs has packed it");
    serde_json::from_str(&text).expect("a test has parsed it")
}

/// The description for programs, with the schema of a job file.
pub(super) fn for_programs(job_file: &Value) -> Value {
    let mut whole = description();
    if let Some(Value::Object(schemas)) = whole.pointer_mut("/components/schemas") {
        add_job_file(schemas, job_file);
    }
    whole
}

/// Adds the schema of a job file, whose own parts stand beside all others here.
fn add_job_file(schemas: &mut Map<String, Value>, schema: &Value) {
    let moved = schema.to_string().replace("#/$defs/", "#/components/schemas/JobFile-");
    let Ok(Value::Object(mut whole)) = serde_json::from_str::<Value>(&moved) else { return };
    whole.remove("$schema");
    if let Some(Value::Object(parts)) = whole.remove("$defs") {
        let parts = parts.into_iter().map(|(name, part)| (format!("JobFile-{name}"), part));
        schemas.extend(parts);
    }
    schemas.insert("JobFile".to_owned(), Value::Object(whole));
}

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

/// The same for people: a page without a script.
pub(super) fn for_people(routes: &[Route]) -> String {
    let mut rows = String::new();
    for route in routes {
        let Route { method, path, says, needs, .. } = route;
        let who = match needs {
            Needs::Nothing => "anybody",
            Needs::Seeing => "viewer",
            Needs::Acting => "operator",
            Needs::Targets => "operator with targets",
            Needs::Administering => "admin",
        };
        let takes =
            route.parameters.iter().filter(|of| !path.contains(&format!("{{{}}}", of.name)));
        let takes: Vec<String> =
            takes.map(|of| format!("<code>{}</code> {}", of.name, of.says)).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            rows,
            "<tr><td><code>{method} {path}</code></td><td>{says}</td><td>{}</td><td>{who}</td></tr>",
            takes.join("<br>")
        );
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>tpu: the API</title>\n\
         <h1>tpu: the API</h1>\n<p>Each request shows a token: <code>Authorization: Bearer TOKEN</code>. \
         Programs read <a href=\"/openapi.json\">/openapi.json</a>.</p>\n\
         <table>\n<tr><th>route</th><th>what it does</th><th>takes</th><th>who may</th></tr>\n{rows}</table>\n</html>\n"
    )
}
