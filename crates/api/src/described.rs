//! Makes the description of the API for programs, OpenAPI 3.1, of the table of routes. Only tests do: programs have what
//! they made (`docs/openapi.json`), and a test holds the one against the other.

use axum::http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::route::{Body, Gives, Route, Versions, shape};
use super::takes::{Needs, Of, Parameter};
use tpu_wire::problem::ProblemDocument;

/// The description, without what a job file is: that depends on the kinds of target that there are.
fn for_programs(routes: &[Route]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.for_serialize().into_generator();
    let problem = shape::<ProblemDocument<'_>>(&mut generator);
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let said = operation(route, &mut generator, problem.as_value());
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = said;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tpu",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Jobs, queues and targets of a lab, as `--json` of the commands shows them.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator, problem: &Value) -> Value {
    let content = match route.gives {
        Gives::Json(shape) | Gives::Begun(shape, _) => {
            json!({"application/json": {"schema": shape(generator)}})
        }
        Gives::OneOf(shapes) => {
            let any: Vec<_> = shapes.iter().map(|shape| shape(generator)).collect();
            json!({"application/json": {"schema": {"anyOf": any}}})
        }
        Gives::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
        Gives::TextOr(kind, shape) => json!({
            "application/json": {"schema": shape(generator)},
            kind: {"schema": {"type": "string"}},
        }),
        Gives::Log(shape) => json!({
            "application/json": {"schema": shape(generator)},
            "text/plain; charset=utf-8": {"schema": {"type": "string"}},
            "text/event-stream": {"schema": {"type": "string"}},
        }),
        Gives::Events => json!({"text/event-stream": {"schema": {"type": "string"}}}),
    };
    let mut answers = json!({
        "200": {"description": "done", "content": content},
        "default": {
            "description": "not done, and why",
            "content": {"application/problem+json": {"schema": problem}},
        },
    });
    if let Gives::Begun(_, shape) = route.gives {
        let content = json!({"application/json": {"schema": shape(generator)}});
        answers["202"] = json!({"description": "begun, and not done yet", "content": content});
        answers["200"]["description"] = json!("what would be done");
    }
    match route.versions {
        Versions::None => {}
        Versions::Told => {
            answers["304"] = json!({"description": "as it was: If-None-Match names this version"});
            answers["200"]["headers"] = header("ETag", "the version of what is shown");
        }
        Versions::Heeded => {
            let why = "If-Match names another version; `now` says how it is";
            answers["412"] = json!({"description": why, "content": answers["default"]["content"]});
        }
    }
    if route.method == Method::PATCH {
        answers["204"] = json!({"description": "done; how it is now could not be looked at"});
    }
    if let Gives::Log(_) = route.gives {
        let says = "where the next piece begins, in bytes; of text";
        answers["200"]["headers"] = header("X-Next-Offset", says);
        answers["410"] = json!({
            "description": "what it has printed is gone",
            "content": answers["default"]["content"],
        });
    }
    let mut parameters: Vec<Value> =
        route.parameters.iter().map(|parameter| described_parameter(route, parameter)).collect();
    parameters.extend(headers(route).into_iter().map(|(name, says)| {
        json!({
            "name": name, "in": "header", "required": false, "description": says,
            "schema": {"type": "string"},
        })
    }));
    let mut said = json!({
        "summary": route.says,
        "operationId": operation_id(route),
        "parameters": parameters,
        "responses": answers,
    });
    if let Some(body) = route.body {
        let content = match body {
            Body::Json(shape) => json!({"application/json": {"schema": shape(generator)}}),
            Body::JobFile => {
                let schema = json!({"$ref": "#/components/schemas/JobFile"});
                json!({"application/json": {"schema": schema}, "application/yaml": {"schema": schema}})
            }
        };
        // Where nothing has to be said, nothing has to be sent.
        let is_required = !matches!(route.gives, Gives::Begun(..));
        said["requestBody"] = json!({"required": is_required, "content": content});
    }
    if route.needs == Needs::Nothing {
        said["security"] = json!([]);
    }
    said
}

/// The headers that a route heeds, and what they mean.
fn headers(route: &Route) -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    match route.versions {
        Versions::None => {}
        Versions::Told => {
            all.push(("If-None-Match", "the version that is known: nothing more is said of it"));
        }
        Versions::Heeded => {
            all.push(("If-Match", "the version that was read: nothing is done to another one"));
        }
    }
    if matches!(route.body, Some(Body::JobFile)) {
        let says = "another for each request: the same again starts nothing, for a day";
        all.push(("Idempotency-Key", says));
    }
    if matches!(route.gives, Gives::Events | Gives::Log(_)) {
        all.push(("Last-Event-ID", "the last event that was heard: those behind it follow"));
    }
    all
}

/// A header of an answer.
fn header(name: &str, says: &str) -> Value {
    json!({name: {"description": says, "schema": {"type": "string"}}})
}

fn operation_id(route: &Route) -> String {
    let path = route.path.trim_start_matches("/api/v1").replace(['{', '}'], "");
    let words = path.split(['/', '.', '-']).filter(|word| !word.is_empty());
    let id = words.collect::<Vec<_>>().join("_");
    let id = if id.is_empty() { "begin".to_owned() } else { id };
    format!("{}_{id}", route.method.as_str().to_lowercase())
}

fn described_parameter(route: &Route, parameter: &Parameter) -> Value {
    let Parameter { name, says, of } = parameter;
    let is_of_path = route.path.contains(&format!("{{{name}}}"));
    let schema = match of {
        Of::Text => json!({"type": "string"}),
        Of::Number(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        Of::Flag => json!({"type": "boolean"}),
        Of::Word(words) => json!({"type": "string", "enum": words}),
    };
    json!({
        "name": name,
        "in": if is_of_path { "path" } else { "query" },
        "required": is_of_path,
        "description": says,
        "schema": schema,
    })
}

/// `./x schema` writes it anew.
#[test]
fn the_description_is_what_the_routes_give() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let made = serde_json::to_string_pretty(&for_programs(&crate::routes::all())).unwrap() + "\n";
    #[expect(clippy::disallowed_methods, reason = "it says what is to be done with the file")]
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        #[expect(clippy::disallowed_methods, reason = "nobody reads it before this test ends")]
        std::fs::write(path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap();
    assert!(kept == made, "docs/openapi.json is older than the routes: ./x schema writes it anew");
}
