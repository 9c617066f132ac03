//! Whatever is sent to whichever route: no error inside us, answers as the description says, nothing changed by a refusal.
//!
//! Requests are made of `/openapi.json` itself, so that a new route is tried as soon as it is described.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use tpu_core::model::token::TokenRole;

use super::{Api, Said};
use crate::common::dice::Dice;
use crate::common::env::TestEnv;
use crate::common::json_schema::Validator;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

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

/// Jobs of alice's that were really run, by their numbers.
struct Ran {
    /// It has ended well.
    well: u64,
    /// The same, and nobody needs it.
    spare: u64,
    /// It has failed.
    badly: u64,
}

/// It leaves something to go on from.
const SAVES_AND_FAILS: &str = "echo weights > \"$TPU_LOG_DIR/step_10.pt\"; exit 3";

/// A place where each route can be done: a simulated cloud, hosts in a pool, a queue, jobs that have ended.
fn lab() -> (Api, Ran) {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    let mut data = env.two_users();
    for record in records(&env) {
        let user = record["user"].as_str().unwrap().to_owned();
        data["users"][user]["job_data"].as_array_mut().unwrap().push(record);
    }
    env.write_data(&data);
    for user in ["alice", "bob"] {
        env.code(user, "staging.sh", "true\n");
    }
    for line in [
        "queue create night",
        "queue create brief",
        "register one --type v4-8 --zone us-central2-b --spot",
        "register two --type v4-8 --zone us-central2-b --spot",
        "hosts add j[1-2] --address 127.0.0.9,127.0.0.8 --pool lab --no-probe",
        "hosts add j3 --address 127.0.0.6 --pool brief --no-probe",
    ] {
        drop(env.tpu(line).exits(0));
    }
    // A record of somebody whose session is nowhere is not known to have ended.
    env.start_for("bob", "true", &["run", "local"]);
    let run = |script: &str| env.start(script, &["run", "local"]);
    let ran = Ran { well: run("echo step 1"), spare: run("true"), badly: run(SAVES_AND_FAILS) };
    let ended = [(ran.well, "finished"), (ran.spare, "finished"), (ran.badly, "error")];
    for (number, status) in ended {
        wait_until("it has ended", || {
            env.job("alice", number)["status"].to_string().contains(status)
        });
    }
    let api = Api::over(env, |_| {});
    let add = "POST /cloudmesh/queue/night?for_user=alice&name=a1&command=true&host=localhost";
    drop(api.ask(&api.token("lab", TokenRole::Admin, &[]), add, &[], "").is(200));
    (api, ran)
}

/// What cannot be done in this lab, and why.
const NOT_DONE: [(&str, &str); 2] = [
    ("/api/v1/images", "there is no registry of images"),
    ("/api/v1/jobs/{user}/{number}/ignore", "nothing is at work here that has printed an error"),
];

/// A route as it is described.
struct Described {
    method: String,
    path: String,
    of: Value,
    /// The schema of each kind of content that it may answer with.
    answers: BTreeMap<String, Validator>,
    /// The schema of what it answers where something has begun.
    begun: Option<Validator>,
}

impl Described {
    /// Whether it is called so, behind what all of ours begin with.
    fn is(&self, method: &str, path: &str) -> bool {
        self.method == method && self.path.strip_prefix("/api/v1").unwrap_or(&self.path) == path
    }
}

/// The routes of a server, and the schema of what is answered where a request is not done.
fn described(api: &Api, token: &str) -> (Vec<Described>, Validator) {
    let description = api.get(token, "/openapi.json").is(200).json();
    let whole = |schema: &Value| {
        let Value::Object(mut whole) = schema.clone() else { return schema.clone() };
        whole.insert("components".to_owned(), description["components"].clone());
        Value::Object(whole)
    };
    let validator = |schema: &Value| Validator::of(&whole(schema));
    let mut routes = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, of) in methods.as_object().unwrap() {
            let content = of["responses"]["200"]["content"].as_object().unwrap();
            let answers =
                content.iter().map(|(kind, of)| (kind.clone(), validator(&of["schema"]))).collect();
            let begun = of["responses"].get("202");
            let begun = begun.map(|of| validator(&of["content"]["application/json"]["schema"]));
            let (method, path, of) = (method.to_uppercase(), path.clone(), of.clone());
            routes.push(Described { method, path, of, answers, begun });
        }
    }
    let problem = &description["paths"]["/api/v1/jobs"]["get"]["responses"]["default"];
    (routes, validator(&problem["content"]["application/problem+json"]["schema"]))
}

/// A value for a parameter: as it should be, or anything.
fn value(dice: &mut Dice, parameter: &Value) -> String {
    if dice.is(3) { (*dice.one(&ODD)).to_owned() } else { likely(dice, parameter) }
}

/// A value that may well be right.
fn likely(dice: &mut Dice, parameter: &Value) -> String {
    let schema = &parameter["schema"];
    if let Some(words) = schema["enum"].as_array() {
        return dice.one(words).as_str().unwrap().to_owned();
    }
    match (schema["type"].as_str(), parameter["name"].as_str()) {
        (Some("boolean"), _) => (*dice.one(&["true", "false"])).to_owned(),
        (Some("integer"), _) => (*dice.one(&["1", "2", "7"])).to_owned(),
        (_, Some("user" | "for_user")) => (*dice.one(&["alice", "bob", "carol"])).to_owned(),
        (_, Some("queue")) => (*dice.one(&["default", "night"])).to_owned(),
        (_, Some("target")) => (*dice.one(&["local", "v4-8", "one", "nowhere"])).to_owned(),
        (_, Some("command")) => "true".to_owned(),
        (_, Some("cluster")) => (*dice.one(&["lab", "nowhere"])).to_owned(),
        (_, Some("id")) => (*dice.one(&["j1", "j2", "j[1-2]"])).to_owned(),
        (_, Some("job" | "name")) => (*dice.one(&["a1", "a2", "b"])).to_owned(),
        (_, Some("key")) => (*dice.one(&["max_jobs_allowed", "pyenv", "status"])).to_owned(),
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

/// A request that can be done, as far as what has been done before lets it: its path, its query and its body.
fn fair(
    number: usize,
    route: &Described,
    (ran, data, admin): (&Ran, &Value, &str),
) -> (String, String) {
    let waiting = data["queue"]["entries"].as_array().into_iter().flatten();
    let waiting =
        waiting.filter(|entry| entry["user"] == "alice").filter_map(|of| of["number"].as_u64());
    let waiting = waiting.max().unwrap_or(1).to_string();
    let on = |verb: &str| route.path.ends_with(&format!("/{{number}}/{verb}"));
    let job = match () {
        () if ["kill", "hold", "unhold", "first"].into_iter().any(on) => waiting,
        () if on("resume") => ran.badly.to_string(),
        () if on("rerun") || on("script") => ran.well.to_string(),
        () if on("clean") => ran.spare.to_string(),
        () => "1".to_owned(),
    };
    let new = format!("n{number}");
    let mut path = route.path.clone();
    let mut query = Vec::new();
    let is_of_host = route.path.contains("/{id}");
    for parameter in route.of["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let is_new =
            route.is("POST", "/cloudmesh/queue") || route.is("POST", "/cloudmesh/queue/{queue}");
        let value = match name {
            "user" if parameter["in"] == "path" => "alice",
            "number" => &job,
            // It has ended well.
            "force" if on("rerun") => "true",
            "host" if route.path.contains("/{host}/") => "j3",
            "host" => "localhost",
            "for_user" => "alice",
            "queue" if route.method == "DELETE" && route.path.ends_with("/{queue}") => "brief",
            "queue" if route.path.ends_with("/drain") => "brief",
            "queue" => "night",
            "target" if route.path.ends_with("/reapply") => "two",
            "target" if parameter["in"] == "path" => "one",
            "cluster" if route.is("DELETE", "/cloudmesh/cluster/{cluster}") => "brief",
            "cluster" => "lab",
            "id" if is_of_host && route.method == "DELETE" => "j2",
            "id" if is_of_host => "j1",
            "id" => &new,
            "name" if is_new => &new,
            "ip" => "127.0.0.7",
            "job" | "name" => "a1",
            "command" => "true",
            "key" => "max_jobs_allowed",
            "value" => "3",
            "max_parallel" => "1",
            _ => continue,
        };
        if parameter["in"] == "path" {
            path = path.replace(&format!("{{{name}}}"), value);
        } else if parameter["in"] == "query" {
            query.push(format!("{name}={value}"));
        }
    }
    let body = match () {
        () if route.is("POST", "/session") => json!({"token": admin}),
        () if route.is("POST", "/jobs") => {
            json!({"target": "local", "dir": 1, "hold": true, "command": "true", "for_user": "alice"})
        }
        () if route.is("PATCH", "/jobs/{user}/{number}") => json!({"tags": "fair", "rule": "pass"}),
        () if route.is("POST", "/targets/{target}/reserve") => {
            json!({"for_user": "alice", "seconds": 60})
        }
        () if route.is("POST", "/targets/{target}/release") => json!({"for_user": "alice"}),
        () => Value::Null,
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    (if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }, body)
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
        } else if parameter["in"] == "query" && dice.is(4) {
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
        let errors: Vec<String> = schema.complaints(&said.json());
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
        (202, "application/json") => {
            route.begun.as_ref().map_or_else(|| Some("202 is not described".to_owned()), errors)
        }
        (204 | 304, _) if route.of["responses"].get(said.status.to_string()).is_some() => None,
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
    let (api, ran) = lab();
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
    let (mut statuses, mut tried) =
        (BTreeMap::<u16, usize>::new(), BTreeMap::<(&str, &str), usize>::new());
    // What was answered first where all was as it should be.
    let mut refused = BTreeMap::<(&str, &str), String>::new();
    for number in 0..requests {
        // Each route in turn: none is left out by chance; every fourth time as it should be.
        let route = routes[number % routes.len()];
        let is_fair = (number / routes.len()).is_multiple_of(4);
        let (path, body) = if is_fair {
            let data = serde_json::from_slice(&api.env.data_bytes()).unwrap();
            fair(number, route, (&ran, &data, &admin))
        } else {
            (path_and_query(&mut dice, route), body(&mut dice, route))
        };
        let line = format!("{} {path}", route.method);
        let kind =
            dice.one(&["application/json", "application/json", "application/yaml", "text/plain"]);
        let kind = format!("Content-Type: {}", if is_fair { "application/json" } else { kind });
        let mut headers = vec![kind.as_str()];
        let key = format!("Idempotency-Key: {}", dice.below(8));
        if !is_fair && dice.is(2) {
            headers.push(&key);
        }
        if !is_fair && dice.is(1) {
            headers.push("If-Match: \"1\"");
        }
        // Wrong ones are told to come later before long, and would be told nothing else.
        let known = if dice.is(1) { &tokens[..] } else { &tokens[..tokens.len() - 1] };
        let token = if is_fair { &admin } else { dice.one(known) };
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
        if is_fair {
            let line = format!("{line}\n    {} {}", said.status, said.body);
            refused.entry((&*route.method, &*route.path)).or_insert(line);
        }
        if matches!(said.status, 200 | 202) {
            *tried.entry((&*route.method, &*route.path)).or_default() += 1;
        }
    }
    let is_done = |of: &&&Described| tried.contains_key(&(&*of.method, &*of.path));
    let not_done: Vec<String> = routes
        .iter()
        .filter(|of| !is_done(of) && NOT_DONE.iter().all(|(path, _)| of.path != *path))
        .map(|of| refused[&(&*of.method, &*of.path)].clone())
        .collect();
    println!(
        "{requests} requests: {statuses:?}; {} of {} routes done; not done: {NOT_DONE:?}",
        tried.len(),
        routes.len()
    );
    let some: Vec<&str> = problems.iter().take(20).map(String::as_str).collect();
    assert!(problems.is_empty(), "{} of them:\n{}", problems.len(), some.join("\n"));
    assert!(not_done.is_empty(), "never done:\n  {}", not_done.join("\n  "));
    for status in [200, 400, 401, 403, 404] {
        assert!(statuses.contains_key(&status), "nothing was answered with {status}: {statuses:?}");
    }
}
