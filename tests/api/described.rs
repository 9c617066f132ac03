//! `/openapi.json`: it is valid, says every route, and what is answered is as it says.

use serde_json::Value;

use super::Api;
use crate::common::json_schema::Validator;
use crate::common::tmux::write_file;

fn records(env: &crate::common::env::TestEnv) -> Vec<Value> {
    let mut record = env.record("alice", 1, "finished");
    record["log_dir"] = Value::from(env.path("logs").to_str().unwrap());
    std::fs::create_dir_all(env.path("logs")).unwrap();
    write_file(&env.path("logs/output.log"), "step 1 loss 0.5\n");
    vec![record]
}

/// The schema of a part of the description, with all that it names.
fn schema(description: &Value, of: &Value) -> Value {
    // `true` is a schema, too: of whatever it may be.
    let Value::Object(mut whole) = of.clone() else { return of.clone() };
    whole.insert("components".to_owned(), description["components"].clone());
    Value::Object(whole)
}

#[test]
fn what_is_answered_is_as_the_description_says() {
    let api = Api::new(records);
    let token = api.admin();
    let description = api.get(&token, "/openapi.json").is(200).json();
    assert_eq!(description["openapi"], "3.1.0");
    let mut seen = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let Some(get) = methods.get("get") else { continue };
        let filled = path.replace("{user}", "alice").replace("{number}", "1");
        let filled = filled.replace("{queue}", "default");
        // Of what was not started by us nothing is kept that could be shown.
        // Nor is there a job or a cluster of this name among those of Cloudmesh.
        if path.ends_with("/script")
            || path.ends_with("/files")
            || path.contains("{job}")
            // No registry is known here.
            || path.ends_with("/images")
            || path.contains("{cluster}")
            || path.ends_with("/events")
        {
            continue;
        }
        let said = api.get(&token, &filled).is(200);
        let content = get["responses"]["200"]["content"].as_object().unwrap();
        let kind = said.header("content-type").unwrap();
        let of = content.get(kind).unwrap_or_else(|| panic!("{path}: {kind} is not described"));
        if kind == "application/json" {
            let schema = schema(&description, &of["schema"]);
            let validator = Validator::of(&schema);
            let answer = said.json();
            let errors = validator.complaints(&answer);
            assert!(errors.is_empty(), "{path}: {errors:#?}\n{answer:#}");
        }
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
    let problem = &description["paths"]["/api/v1/jobs"]["get"]["responses"]["default"];
    let problem = schema(&description, &problem["content"]["application/problem+json"]["schema"]);
    let said = api.get(&token, "/api/v1/jobs?limit=0").is(400);
    assert_eq!(said.header("content-type"), Some("application/problem+json"));
    assert!(Validator::of(&problem).is_valid(&said.json()), "{said:?}");
}

#[test]
fn each_route_is_described_for_people_too() {
    let api = Api::new(records);
    let token = api.admin();
    let description = api.get(&token, "/openapi.json").is(200).json();
    let page = api.get(&token, "/docs").is(200).body;
    for path in description["paths"].as_object().unwrap().keys() {
        assert!(page.contains(path.as_str()), "{path}");
    }
    assert!(!page.contains("<script"), "{page}");
}
