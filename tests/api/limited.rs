//! Tokens that are limited: to some targets, and to what the account that serves does not carry out itself.

use serde_json::{Value, json};

use tpu_core::model::ids::UserName;
use tpu_core::model::target_limit::TargetLimit;
use tpu_core::model::token::{Rights, TokenRole};

use super::{Api, Said, token_with};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const JSON: &[&str] = &["Content-Type: application/json"];

/// A server before a simulated cloud with two targets of one type and one of another; alice has a job that has ended here,
/// and another one that is held.
fn lab() -> Api {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    let mut data = env.two_users();
    data["users"]["alice"]["job_data"] = json!([env.record("alice", 1, "error")]);
    env.write_data(&data);
    env.code("alice", "staging.sh", "true\n");
    for (name, kind) in [("one", "v4-8"), ("two", "v4-8"), ("three", "v3-8")] {
        let line = format!("register {name} --type {kind} --zone us-central2-b --spot");
        drop(env.tpu(&line).exits(0));
    }
    drop(env.tpu("submit local --hold --user alice -- true").exits(0));
    Api::over(env, |_| {})
}

/// An operator of alice's who may use these targets only.
fn limited(api: &Api, name: &str, patterns: &str) -> String {
    let only_on = TargetLimit::parse(patterns).unwrap();
    let operator = Rights::of(TokenRole::Operator, vec![UserName::from("alice")]);
    token_with(&api.ctx, name, Rights { targets: true, only_on, ..operator })
}

fn submit(api: &Api, token: &str, query: &str, job: &Value) -> Said {
    api.ask(token, &format!("POST /api/v1/jobs{query}"), JSON, &job.to_string())
}

#[test]
fn a_limited_token_starts_and_moves_nothing_elsewhere_by_any_route() {
    let api = lab();
    let token = limited(&api, "limited", "v4-*");
    let before = api.env.data_bytes();
    let on = |target: Value| json!({"target": target, "dir": 1, "command": "true"});
    let of = |accelerator: &str| json!({"accelerator": accelerator, "zone": "us-central2-b"});
    let ordered = json!({
        "target": of("v3-8"), "tpu": {"name": "v4-mine"}, "dir": 1, "command": "true",
    });
    let jobs = [
        on(json!("local")),
        on(json!("three")),
        on(json!({"type": "v3-8"})),
        ordered,
        json!({"target": "local", "dir": 1, "command": ["echo"], "array": {"lr": [1, 2]}}),
        json!({"jobs": {"a": on(json!("one")), "b": on(json!("local"))}}),
    ];
    for job in &jobs {
        for query in ["", "?start=now", "?dry_run=true"] {
            let said = submit(&api, &token, query, job);
            let is_several = query == "?start=now" && said.status == 400;
            assert!(said.status == 403 || is_several, "{job}{query}: {said:?}");
        }
    }
    let verbs = ["resume", "rerun", "kill", "requeue", "pause", "clean", "ignore"];
    let ended = verbs.map(|verb| (format!("POST /api/v1/jobs/alice/1/{verb}"), ""));
    let held = ["unhold", "first", "hold", "kill"];
    let held = held.map(|verb| (format!("POST /api/v1/jobs/alice/2/{verb}"), ""));
    let rest = [
        ("PATCH /api/v1/jobs/alice/2", "{\"priority\": 90}"),
        ("PATCH /api/v1/jobs/alice/1", "{\"rule\": \"pre\"}"),
        ("POST /api/v1/jobs/alice/1/resume?target=one", ""),
        ("POST /api/v1/targets/three/apply", ""),
        ("POST /api/v1/targets/three/reapply", ""),
        ("POST /api/v1/targets/three/reserve", "{\"seconds\": 60}"),
        ("POST /api/v1/targets/three/release", "{}"),
        ("POST /api/v1/targets/one/apply", "{\"type\": \"v3-8\"}"),
        ("POST /cloudmesh/queue/default?name=x&command=true&host=local", ""),
        ("PUT /cloudmesh/queue/default/reset?name=x", ""),
    ];
    let rest = rest.map(|(line, body)| (line.to_owned(), body));
    for (line, body) in ended.into_iter().chain(held).chain(rest) {
        let said = api.ask(&token, &line, JSON, body);
        assert_eq!(said.status, 403, "{line}: {said:?}");
    }
    assert_eq!(api.env.data_bytes(), before);
    let denied = api.env.journal().into_iter().filter(|event| event.kind == "denied").count();
    assert!(denied >= 30, "the journal tells of them: {denied}");
    // What is within its limit it may.
    api.get(&token, "/api/v1/jobs/alice/1").is(200);
    let session = api.get(&token, "/api/v1/session").is(200).json();
    assert_eq!(session["only_on"], json!(["v4-*"]));
    let held = json!({"target": "one", "dir": 1, "command": "true", "hold": true});
    let number = submit(&api, &token, "", &held).is(200).json()["jobs"][0]["window"].clone();
    api.ask(&token, &format!("POST /api/v1/jobs/alice/{number}/first"), JSON, "").is(200);
    api.ask(&token, "POST /api/v1/targets/one/reserve", JSON, "{\"seconds\": 60}").is(200);
}

#[test]
fn a_limited_token_reaches_no_attempt_elsewhere_by_naming_an_older_one() {
    let api = lab();
    let token = limited(&api, "limited", "v4-*");
    let mut data = api.env.data();
    let attempt = |window, on: &str, links| {
        let mut record = api.env.record("alice", window, "error");
        (record["tpu"], record["extra_msgs"]) = (json!(on), links);
        record
    };
    let all = data["users"]["alice"]["job_data"].as_array_mut().unwrap();
    all.push(attempt(11, "one", json!({"child": 12})));
    all.push(attempt(12, "local", json!({"father": 11})));
    api.env.write_data(&data);
    let before = api.env.data_bytes();
    for verb in ["resume", "rerun", "kill", "requeue", "pause", "clean", "ignore"] {
        let line = format!("POST /api/v1/jobs/alice/11/{verb}");
        let said = api.ask(&token, &line, JSON, "");
        assert_eq!(said.status, 403, "{verb}: {said:?}");
    }
    assert_eq!(api.env.data_bytes(), before);
}

#[test]
fn what_a_limited_token_has_submitted_keeps_to_its_targets_whoever_starts_it() {
    let api = lab();
    let token = limited(&api, "limited", "one");
    drop(api.env.tpu("apply two").exits(0));
    drop(api.env.tpu("delete one -y").exits(0));
    let any = json!({"target": {"type": "v4-8"}, "dir": 1, "command": "sleep 1000"});
    let said = submit(&api, &token, "", &any).is(200).json();
    assert_eq!(said["started"], json!([]), "two is free, and beyond its limit: {said}");
    drop(api.env.tpu("queue run --once").exits(0));
    let number = said["jobs"][0]["window"].as_u64().unwrap();
    let works =
        |env: &TestEnv| env.jobs("alice").into_iter().find(|job| job["windows_id"] == number);
    assert_eq!(works(&api.env), None);
    drop(api.env.tpu("apply one").exits(0));
    drop(api.env.tpu("queue run --once").exits(0));
    wait_until("it has a place", || works(&api.env).is_some());
    assert_eq!(works(&api.env).unwrap()["tpu"], "one");
    // A person who has no limit, and says where, lifts it.
    drop(api.env.tpu(&format!("kill {number} alice -y")).exits(0));
    let resumed = api.env.tpu(&format!("rerun {number} alice tpu=two --force -y --json")).exits(0);
    let child = resumed.json()["launched"]["window"].as_u64().unwrap();
    assert_eq!(api.env.job("alice", child)["tpu"], "two");
    drop(api.env.tpu(&format!("kill {child} alice -y")).exits(0));
}

#[test]
fn what_the_account_that_serves_would_carry_out_takes_an_admins_token() {
    let api = lab();
    write_file(&api.env.path("secret"), "x");
    let secret = api.env.path("secret").to_str().unwrap().to_owned();
    let with = |key: &str, value: Value| {
        let mut job = json!({"target": "local", "dir": 1, "command": "true", "hold": true});
        job[key] = value;
        job
    };
    let cloned =
        |repo| json!({"target": "local", "command": "true", "hold": true, "code": {"repo": repo}});
    let mut script = with("script", json!("staging.sh"));
    script.as_object_mut().unwrap().remove("command");
    let jobs = [
        script,
        with("stdin", json!("questions.txt")),
        with("notify", json!({"command": ["sh", "-c", "id"]})),
        with("notify", json!("error=./tell.sh")),
        with("notify", json!({"webhook": "http://127.0.0.1:9/"})),
        with("notify", json!(["me@example.org", "https://[::1]/x"])),
        with("notify", json!("http://169.254.169.254/x")),
        with(
            "setup",
            json!([{"name": "s", "run": "true", "files": [{"from": secret, "to": "~/x"}]}]),
        ),
        with("setup", json!([{"ssh_keys": {"identities": [{"private_key": "~/.ssh/id"}]}}])),
        cloned("https://localhost/train.git"),
        cloned("git@127.0.0.1:train.git"),
        json!({"defaults": with("stdin", json!("/etc/passwd")), "jobs": {"a": {"tag": "x"}}}),
    ];
    let operator = api.token("alices", TokenRole::Operator, &["alice"]);
    let before = api.env.data_bytes();
    for job in &jobs {
        let said = submit(&api, &operator, "", job);
        assert_eq!(said.status, 403, "{job}: {said:?}");
        assert!(said.json()["detail"].as_str().unwrap().contains("admin"), "{said:?}");
    }
    assert_eq!(api.env.data_bytes(), before);
    let admin = api.admin();
    for mut job in jobs.into_iter().take(3) {
        job["for_user"] = json!("alice");
        submit(&api, &admin, "", &job).is(200);
    }
    // A name is looked up when it is told, and has to be public then.
    let far = with("notify", json!("https://hooks.example.org/x"));
    submit(&api, &operator, "", &far).is(200);
    let entries = api.env.data()["queue"]["entries"].clone();
    let last = entries.as_array().unwrap().last().unwrap();
    assert_eq!(last["notify"][0]["public_only"], true, "{last}");
}
