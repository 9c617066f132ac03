//! `GET /api/v1/jobs`: the same as `check --json`, page by page, filtered, and unchanged where nothing has changed.

use serde_json::{Value, json};

use tpu_core::model::token::TokenRole;

use super::Api;
use crate::cli::json_schema::assert_described;

fn records(env: &crate::common::env::TestEnv) -> Vec<Value> {
    let mut all: Vec<Value> = (1..=5).map(|n| env.record("alice", n, "finished")).collect();
    all[1]["job_tags"] = json!("sweep");
    all.extend((1..=3).map(|n| env.record("bob", n, "killed")));
    all
}

fn ids(page: &Value) -> Vec<String> {
    let id = |job: &Value| format!("{}/{}", job["user"].as_str().unwrap(), job["window"]);
    page["jobs"].as_array().unwrap().iter().map(id).collect()
}

#[test]
fn a_job_is_the_same_as_for_a_command() {
    let api = Api::new(records);
    let token = api.admin();
    let page = api.get(&token, "/api/v1/jobs").is(200).json();
    let check = api.env.tpu("check --all-users --json").exits(0).json();
    assert_eq!(page["jobs"], check["jobs"]);
    let one = api.get(&token, "/api/v1/jobs/alice/2").is(200).json();
    let explain = api.env.tpu("explain alice/2 --json").exits(0).json();
    assert_eq!(one["job"], explain["job"]);
    assert_described("explain", &one);
    let gone = api.get(&token, "/api/v1/jobs/alice/77").is(404).json();
    assert_eq!((&gone["code"], &gone["exit"]), (&json!("not-found"), &json!(3)));
}

#[test]
fn pages_follow_one_another_whatever_is_gone_between_them() {
    let api = Api::new(records);
    let token = api.admin();
    let first = api.get(&token, "/api/v1/jobs?limit=3").is(200).json();
    assert_eq!(ids(&first), ["alice/1", "alice/2", "alice/3"]);
    assert_eq!(first["next"], "alice/3");
    // The job that the page ended with goes.
    let mut data = api.env.data();
    data["users"]["alice"]["job_data"].as_array_mut().unwrap().remove(2);
    api.env.write_data(&data);
    crate::common::wait::wait_until("it is gone", || {
        !ids(&api.get(&token, "/api/v1/jobs").is(200).json()).contains(&"alice/3".to_owned())
    });
    let mut all = ids(&first);
    let mut next = first["next"].clone();
    while let Some(cursor) = next.as_str() {
        let page = api.get(&token, &format!("/api/v1/jobs?limit=2&cursor={cursor}")).is(200).json();
        all.extend(ids(&page));
        assert!(all.len() < 20, "pages go round in a circle: {all:?}");
        next = page["next"].clone();
    }
    let expected =
        ["alice/1", "alice/2", "alice/3", "alice/4", "alice/5", "bob/1", "bob/2", "bob/3"];
    assert_eq!(all, expected);
}

#[test]
fn filters_and_fields_are_those_of_the_screen() {
    let api = Api::new(records);
    let token = api.admin();
    let get = |query: &str| api.get(&token, &format!("/api/v1/jobs?{query}"));
    assert_eq!(ids(&get("filter=tag:sweep").is(200).json()), ["alice/2"]);
    assert_eq!(ids(&get("user=bob&filter=status:killed").is(200).json()).len(), 3);
    let slim = get("limit=1&fields=status,target").is(200).json();
    let expected = json!([{"user": "alice", "window": 1, "target": "local", "status": "finished"}]);
    assert_eq!(slim["jobs"], expected);
    for (odd, hint) in [
        ("filter=age%3Esoon", "span"),
        ("limit=0", "1 to 1000"),
        ("limit=x", "1 to 1000"),
        ("fields=statuss", "status"),
        ("cursor=nothing", "next"),
        ("colour=red", "filter"),
        ("user=bob&user=alice", "once"),
    ] {
        let said = get(odd).is(400).json();
        let text = format!("{} {}", said["detail"], said["hint"]);
        assert!(text.contains(hint), "{odd}: {text}");
    }
}

#[test]
fn what_has_not_changed_is_not_sent_again() {
    let api = Api::new(records);
    let token = api.admin();
    for path in ["/api/v1/jobs?limit=3", "/api/v1/jobs/alice/2"] {
        let first = api.get(&token, path).is(200);
        let tag = first.header("etag").unwrap().to_owned();
        let condition = format!("If-None-Match: {tag}");
        let again = |tag: &str| api.ask(&token, &format!("GET {path}"), &[tag], "");
        again(&condition).is(304);
        api.env.tpu(&format!("add-tag 2 tag{} alice", tag.len())).exits(0);
        crate::common::wait::wait_until("the change is seen", || {
            let said = again(&condition);
            said.status == 200 && said.header("etag") != Some(&tag)
        });
        api.env.tpu("add-tag 2 sweep alice").exits(0);
        crate::common::wait::wait_until("the change is seen", || again(&condition).status == 304);
    }
}

#[test]
fn what_begins_between_two_pages_is_on_one_of_them() {
    let api =
        Api::new(|env| vec![env.record("alice", 1, "finished"), env.record("bob", 1, "killed")]);
    let token = api.admin();
    api.ask(&token, "POST /api/v1/queues/default/pause", &[], "").is(200);
    for _ in 0..2 {
        api.env.tpu("submit local --user alice -- true").exits(0);
    }
    let first = api.get(&token, "/api/v1/jobs?limit=2").is(200).json();
    assert_eq!(
        ids(&first),
        ["alice/1", "alice/2"],
        "what waits stands where it will when it has begun"
    );
    // The job with which the page ended begins, and all behind it.
    api.ask(&token, "POST /api/v1/queues/default/resume", &[], "").is(200);
    api.env.tpu("queue run --once").exits(0);
    let next = first["next"].as_str().unwrap();
    let rest = api.get(&token, &format!("/api/v1/jobs?cursor={next}")).is(200).json();
    assert_eq!(ids(&rest), ["alice/3", "bob/1"]);
}

#[test]
fn what_happened_to_a_job_is_told_to_whoever_may_see_it() {
    let api = Api::new(|_| Vec::new());
    let number = api.env.start("true", &["run"]);
    let (alices, bobs) = (
        api.token("alices", TokenRole::Viewer, &["alice"]),
        api.token("bobs", TokenRole::Viewer, &["bob"]),
    );
    let path = format!("/api/v1/jobs/alice/{number}/timeline");
    let said = api.get(&alices, &path).is(200).json();
    let kinds: Vec<&str> = said["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"run"), "{said}");
    api.get(&bobs, &path).is(403);
    api.get(&alices, "/api/v1/jobs/alice/99/timeline").is(404);
    let rules = api.get(&bobs, "/api/v1/rules").is(200).json();
    assert!(rules.to_string().contains("pre"), "{rules}");
}
