//! What the page asks beside all others: what waits and when it begins, what has happened, where users work; and what it does
//! that no command line needed a route for.

use serde_json::{Value, json};

use tpu_core::model::token::TokenRole;

use super::Api;
use crate::common::wait::wait_until;

fn submit(api: &Api, user: &str) -> u64 {
    api.env.code(user, "staging.sh", "true\n");
    let line = format!("submit local --hold --user {user} --json -- true");
    api.env.tpu(&line).exits(0).json()["jobs"][0]["window"].as_u64().unwrap()
}

#[test]
fn what_waits_is_told_in_its_order_and_moved_to_the_front() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let (first, second) = (submit(&api, "alice"), submit(&api, "alice"));
    submit(&api, "bob");
    let order = |token: &str| -> Vec<Value> {
        let said = api.get(token, "/api/v1/queue").is(200).json();
        let entries = said["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["window"].clone()).collect()
    };
    assert_eq!(order(&token)[..2], [json!(first), json!(second)]);
    let move_it = |number: u64, query: &str| {
        api.ask(&token, &format!("POST /api/v1/jobs/alice/{number}/first{query}"), &[], "")
    };
    move_it(second, "?dry_run=true").is(200);
    assert_eq!(order(&token)[0], first, "a trial changes nothing");
    move_it(second, "").is(200);
    assert_eq!(order(&token)[..2], [json!(second), json!(first)]);
    move_it(99, "").is(404);
    let bobs = api.token("bobs", TokenRole::Viewer, &["bob"]);
    assert_eq!(order(&bobs).len(), 1, "others' are not told");
}

#[test]
fn what_has_happened_is_told_to_those_who_may_know() {
    let api = Api::new(|_| Vec::new());
    submit(&api, "alice");
    submit(&api, "bob");
    let users = |token: &str, query: &str| -> Vec<Value> {
        let said = api.get(token, &format!("/api/v1/journal{query}")).is(200).json();
        said["events"].as_array().unwrap().iter().map(|event| event["user"].clone()).collect()
    };
    let all = users(&api.admin(), "");
    assert!(all.contains(&json!("alice")) && all.contains(&json!("bob")), "{all:?}");
    let bobs = api.token("bobs", TokenRole::Viewer, &["bob"]);
    assert!(users(&bobs, "").iter().all(|user| user == "bob"));
    assert_eq!(users(&bobs, "?limit=1").len(), 1);
    api.get(&bobs, "/api/v1/journal?user=alice").is(403);
}

#[test]
fn the_directories_of_a_user_are_told() {
    let api = Api::new(|_| Vec::new());
    let bobs = api.token("bobs", TokenRole::Viewer, &["bob"]);
    let dirs = api.get(&bobs, "/api/v1/users/bob/dirs").is(200).json();
    assert_eq!(dirs["dirs"]["1"], json!(api.env.path("code-bob")));
    api.get(&bobs, "/api/v1/users/alice/dirs").is(403);
}

#[test]
fn an_error_that_is_none_is_taken_back() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let script = "echo 'Traceback (most recent call last):'; echo 'ValueError: x'; exec sleep 1000";
    let number = api.env.start(script, &["run", "local"]);
    let path = format!("/api/v1/jobs/alice/{number}");
    let status = || api.get(&token, &path).is(200).json()["job"]["status"].clone();
    wait_until("it is seen to have failed", || status() == "error");
    api.ask(&token, &format!("POST {path}/ignore?dry_run=true"), &[], "").is(200);
    assert_eq!(status(), "error");
    let said = api.ask(&token, &format!("POST {path}/ignore"), &[], "").is(200).json();
    assert_eq!(said["job"]["status"], "running");
    api.ask(&token, &format!("POST {path}/ignore"), &[], "").is(409);
}

#[test]
fn an_admin_lets_nothing_new_begin_on_a_machine() {
    let api = Api::new(|_| Vec::new());
    drop(api.env.tpu("hosts add j1 --address 127.0.0.9 --no-probe").exits(0));
    let (admin, alices) = (api.admin(), api.token("alices", TokenRole::Operator, &["alice"]));
    let drained = || {
        let hosts = api.get(&admin, "/api/v1/hosts").is(200).json()["hosts"].clone();
        let host = hosts.as_array().unwrap().iter().find(|host| host["name"] == "j1").cloned();
        !host.unwrap()["drained"].is_null()
    };
    api.ask(&alices, "POST /api/v1/hosts/j1/drain", &[], "").is(403);
    api.ask(&admin, "POST /api/v1/hosts/j1/drain", &[], "").is(200);
    assert!(drained());
    api.ask(&admin, "POST /api/v1/hosts/j1/undrain", &[], "").is(200);
    assert!(!drained());
    api.ask(&admin, "POST /api/v1/hosts/nowhere/drain", &[], "").is(404);
}
