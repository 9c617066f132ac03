//! Whatever is sent to whichever route: no error inside us, answers as the description says, nothing changed by a refusal.
//!
//! Requests are made of `/openapi.json` itself, so that a new route is tried as soon as it is described.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use tpu::model::token::TokenRole;

use super::{Api, Said};
use crate::common::dice::Dice;
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

/// So many requests where nobody says otherwise.
const REQUESTS: usize = 400;
/// Where each seed is another history.
const SEED: u64 = 0x5eed_0028;

/// Text that nobody means, and some that somebody may.
const ODD: [&str; 22] = [
    "",
    "0",
    "-1",
    "1",
    "2",
    "99999999999999999999",
    "alice",
    "bob",
    "nobody",
    "default",
    "local",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e",
    "%00",
    "%ff%fe",
    "%F0%9F%A6%80",
    "a%20b",
    "true",
    "status:error",
    "alice/1",
    "--help",
    "%22%3E%3Cscript%3E",
];

fn records(env: &TestEnv) -> Vec<Value> {
    let mut record = env.record("alice", 1, "finished");
    record["log_dir"] = Value::from(env.path("logs").to_str().unwrap());
    std::fs::create_dir_all(env.path("logs")).unwrap();
    write_file(&env.path("logs/output.log"), "step 1 loss 0.5\n");
    vec![record, env.record("bob", 2, "killed")]
}

/// A route as it is described.
struct Described {
    method: String,
    path: String,
    of: Value,
    /// The schema of each kind of content that it may answer with.
    answers: BTreeMap<String, Validator>,
}

/// The routes of a server, and the schema of what is answered where a request is not done.
fn described(api: &Api, token: &str) -> (Vec<Described>, Validator) {
    let description = api.get(token, "/openapi.json").is(200).json();
    let whole = |schema: &Value| {
        let Value::Object(mut whole) = schema.clone() else { return schema.clone() };
        whole.insert("components".to_owned(), description["components"].clone());
        Value::Object(whole)
    };
    let validator = |schema: &Value| jsonschema::validator_for(&whole(schema)).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, of) in methods.as_object().unwrap() {
            let content = of["responses"]["200"]["content"].as_object().unwrap();
            let answers =
                content.iter().map(|(kind, of)| (kind.clone(), validator(&of["schema"]))).collect();
            let (method, path, of) = (method.to_uppercase(), path.clone(), of.clone());
            routes.push(Described { method, path, of, answers });
        }
    }
    let problem = &description["paths"]["/api/v1/jobs"]["get"]["responses"]["default"];
    (routes, validator(&problem["content"]["application/problem+json"]["schema"]))
}

/// A value for a parameter: as it should be, or anything.
fn value(dice: &mut Dice, parameter: &Value) -> String {
    if dice.is(3) {
        return (*dice.one(&ODD)).to_owned();
    }
    let schema = &parameter["schema"];
    if let Some(words) = schema["enum"].as_array() {
        return dice.one(words).as_str().unwrap().to_owned();
    }
    match (schema["type"].as_str(), parameter["name"].as_str()) {
        (Some("boolean"), _) => (*dice.one(&["true", "false"])).to_owned(),
        (Some("integer"), _) => (*dice.one(&["1", "2", "7"])).to_owned(),
        (_, Some("user" | "for_user")) => (*dice.one(&["alice", "bob", "carol"])).to_owned(),
        (_, Some("queue")) => (*dice.one(&["default", "night"])).to_owned(),
        (_, Some("target")) => (*dice.one(&["local", "v4-8", "nowhere"])).to_owned(),
        (_, Some("command")) => "true".to_owned(),
        _ => (*dice.one(&ODD)).to_owned(),
    }
}

/// A value of JSON that nobody means.
fn anything(dice: &mut Dice, deep: usize) -> Value {
    match dice.below(if deep > 3 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => json!(dice.is(5)),
        2 => json!(*dice.one(&[-1_i64, 0, 1, 101, i64::MAX])),
        3 => json!(1e308),
        4 => json!(*dice.one(&ODD)),
        5 => (0..dice.below(4)).map(|_| anything(dice, deep + 1)).collect(),
        _ => {
            let keys = ["target", "command", "priority", "dir", "jobs", "tags", "for_user", "x"];
            let members: Map<String, Value> = (0..dice.below(4))
                .map(|_| ((*dice.one(&keys)).to_owned(), anything(dice, deep + 1)))
                .collect();
            Value::Object(members)
        }
    }
}

/// A body: one that may be right, one that is not, or none.
fn body(dice: &mut Dice, route: &Described) -> String {
    if route.of.get("requestBody").is_none() && !dice.is(1) {
        return String::new();
    }
    match dice.below(8) {
        0 => String::new(),
        1 => "{".to_owned(),
        2 => "\u{feff}[\u{0}".to_owned(),
        3 => format!("{}1{}", "[".repeat(4_000), "]".repeat(4_000)),
        4 | 5 => anything(dice, 0).to_string(),
        6 => json!({"priority": dice.below(120), "seconds": dice.below(1 << 20)}).to_string(),
        _ => {
            let words = [json!("local"), json!("nowhere"), json!({"type": "v4-8"}), json!([])];
            let words = dice.one(&words).clone();
            let user = dice.one(&["alice", "bob", "carol"]);
            json!({"target": words, "dir": dice.below(3), "hold": true, "command": "true", "for_user": user})
                .to_string()
        }
    }
}

fn path_and_query(dice: &mut Dice, route: &Described) -> String {
    let mut path = route.path.clone();
    let mut query: Vec<String> = Vec::new();
    for parameter in route.of["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let value = value(dice, parameter);
        if parameter["in"] == "path" {
            // An empty part is another path.
            let value = if value.is_empty() { "x".to_owned() } else { value };
            path = path.replace(&format!("{{{name}}}"), &value);
        } else if dice.is(4) {
            query.push(format!("{name}={value}"));
        }
    }
    if dice.is(1) {
        query.push(format!("{}={}", dice.one(&["limit", "x", "token", "dry_run"]), dice.one(&ODD)));
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

/// What of an answer is not as the description says.
fn wrong(route: &Described, said: &Said, problem: &Validator) -> Option<String> {
    // What machines or a cloud do not answer is no error of ours; there are none in this test that could be silent.
    if said.status == 0 || said.status >= 500 {
        return Some("an error inside us".to_owned());
    }
    let kind = said.header("content-type").unwrap_or_default();
    let errors = |schema: &Validator| {
        let errors: Vec<String> = schema.iter_errors(&said.json()).map(|e| e.to_string()).collect();
        (!errors.is_empty()).then(|| errors.join("; "))
    };
    match (said.status, kind) {
        (400.., "application/problem+json") => errors(problem),
        (200, kind) => match route.answers.get(kind) {
            None => Some(format!("{kind} is not described")),
            Some(schema) if kind == "application/json" => errors(schema),
            Some(_) => None,
        },
        (400.., kind) => Some(format!("{kind}, and no problem")),
        (304, _) => None,
        (status, _) => Some(format!("{status} is not described")),
    }
}

/// Whether no job is at work.
fn is_quiet(data: &[u8]) -> bool {
    let data: Value = serde_json::from_slice(data).unwrap();
    let jobs = data["users"].as_object().unwrap().values();
    let mut jobs = jobs.flat_map(|user| user["job_data"].as_array().unwrap());
    jobs.all(|job| matches!(job["status"].as_str(), Some("finished" | "killed" | "error")))
}

/// As many requests as `./x prove api` asks for.
#[expect(clippy::disallowed_methods, reason = "asked for on the command line of ./x")]
fn asked_for() -> Option<usize> {
    std::env::var("TPU_PROVE_API").ok().and_then(|text| text.parse().ok())
}

#[test]
fn whatever_is_asked_is_answered_as_described_and_refused_without_a_trace() {
    let requests = asked_for().unwrap_or(REQUESTS);
    let api = Api::new(records);
    api.env.code("alice", "staging.sh", "true\n");
    drop(api.env.tpu("queue create night").exits(0));
    let admin = api.admin();
    let tokens = [
        admin.clone(),
        admin.clone(),
        api.token("alices", TokenRole::Operator, &["alice"]),
        api.token("bobs", TokenRole::Operator, &["bob"]),
        api.token("viewer", TokenRole::Viewer, &[]),
        "tpu_nothing".to_owned(),
    ];
    let (routes, problem) = described(&api, &admin);
    // What only flows has no end.
    let flows = |of: &&Described| of.answers.keys().all(|kind| kind == "text/event-stream");
    let routes: Vec<&Described> = routes.iter().filter(|route| !flows(route)).collect();
    let mut dice = Dice(SEED);
    let mut problems: Vec<String> = Vec::new();
    let (mut statuses, mut tried) = (BTreeMap::<u16, usize>::new(), BTreeMap::<&str, usize>::new());
    for number in 0..requests {
        // Each route in turn: none is left out by chance.
        let route = routes[number % routes.len()];
        let line = format!("{} {}", route.method, path_and_query(&mut dice, route));
        let body = body(&mut dice, route);
        let kind =
            dice.one(&["application/json", "application/json", "application/yaml", "text/plain"]);
        let kind = format!("Content-Type: {kind}");
        let mut headers = vec![kind.as_str()];
        let key = format!("Idempotency-Key: {}", dice.below(8));
        if dice.is(2) {
            headers.push(&key);
        }
        if dice.is(1) {
            headers.push("If-Match: \"1\"");
        }
        // Wrong ones are told to come later before long, and would be told nothing else.
        let known = if dice.is(1) { &tokens[..] } else { &tokens[..tokens.len() - 1] };
        let token = dice.one(known);
        let before = api.env.data_bytes();
        let said = api.ask(token, &line, &headers, &body);
        let what = format!("{number}: {line} {headers:?} {}", body.get(..200).unwrap_or(&body));
        if let Some(wrong) = wrong(route, &said, &problem) {
            problems.push(format!("{what}\n  {wrong}\n  {said:?}"));
        }
        // What a job writes that has begun comes in between.
        if (said.status >= 400 || route.method == "GET")
            && is_quiet(&before)
            && api.env.data_bytes() != before
        {
            problems.push(format!("{what}\n  it left something behind\n  {said:?}"));
        }
        *statuses.entry(said.status).or_default() += 1;
        if said.status == 200 {
            *tried.entry(route.path.as_str()).or_default() += 1;
        }
    }
    println!(
        "{requests} requests: {statuses:?}; done on {} of {} paths",
        tried.len(),
        routes.len()
    );
    let some: Vec<&str> = problems.iter().take(20).map(String::as_str).collect();
    assert!(problems.is_empty(), "{} of them:\n{}", problems.len(), some.join("\n"));
    for status in [200, 400, 401, 403, 404] {
        assert!(statuses.contains_key(&status), "nothing was answered with {status}: {statuses:?}");
    }
}
