//! Targets that are made over HTTP: begun at once, refused at once, and told to their end.

use serde_json::Value;

use tpu_core::model::token::TokenRole;

use super::Api;
use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// A server before a simulated cloud with two targets.
fn before_a_cloud() -> Api {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    env.write_data(&env.two_users());
    for name in ["one", "two"] {
        let line = format!("register {name} --type v4-8 --zone us-central2-b --spot");
        drop(env.tpu(&line).exits(0));
    }
    Api::over(env, |_| {})
}

fn told(api: &Api, kind: &str) -> Vec<(String, String)> {
    let events = api.env.journal().into_iter().filter(|event| event.kind == kind);
    events.map(|event| (event.actor, event.text)).collect()
}

#[test]
fn a_target_is_made_and_made_anew_and_events_say_so() {
    let api = before_a_cloud();
    let token = api.with_targets("maker");
    let post = |path: &str, body: &str| {
        let line = format!("POST /api/v1/targets/{path}");
        api.ask(&token, &line, &["Content-Type: application/json"], body)
    };
    let plan = post("one/apply?dry_run=true", "{}").is(200).json();
    assert_eq!(
        (&plan["plan"]["target"], &plan["plan"]["pricing"]),
        (&"one".into(), &"spot".into())
    );
    let plan = post("one/apply?dry_run=true", "{\"pricing\": \"on-demand\"}").is(200).json();
    assert_eq!(plan["plan"]["pricing"], "on-demand");
    assert!(told(&api, "apply").is_empty());
    let begun = post("one/apply", "").is(202).json();
    assert_eq!((&begun["target"], &begun["begun"]), (&"one".into(), &"apply".into()));
    wait_until("it is made", || !told(&api, "made").is_empty());
    assert_eq!(told(&api, "made"), [("api token maker".to_owned(), "one is READY".to_owned())]);
    assert_eq!(told(&api, "apply").len(), 1);
    post("one/reapply", "").is(202);
    // Sent once more, as its answer was slow: it is not deleted a second time.
    post("one/reapply", "").is(409);
    wait_until("it is made anew", || told(&api, "made").len() == 2);
    let targets = api.get(&token, "/api/v1/targets").is(200).json();
    let one = targets["targets"].as_array().unwrap().iter().find(|of| of["name"] == "one");
    assert!(one.is_some_and(|one: &Value| one["zone"] == "us-central2-b"), "{targets}");
}

#[test]
fn what_cannot_be_made_is_refused_or_told() {
    let api = before_a_cloud();
    let token = api.with_targets("maker");
    let without = api.token("without", TokenRole::Operator, &["alice"]);
    let post = |token: &str, path: &str, body: &str| {
        let line = format!("POST /api/v1/targets/{path}");
        api.ask(token, &line, &["Content-Type: application/json"], body)
    };
    post(&without, "one/apply", "").is(403);
    post(&token, "local/apply", "").is(409);
    post(&token, "unheard-of/apply", "{\"zone\": \"zone-a\", \"type\": \"v4-8\"}").is(404);
    drop(api.env.tpu("reserve one bob --for 2h").exits(0));
    let said = post(&token, "one/reapply", "").is(409).json();
    assert!(said["detail"].as_str().unwrap().contains("reserved by bob"), "{said}");
    drop(api.env.tpu("release one bob").exits(0));
    post(&token, "one/apply", "{\"pricing\": \"cheap\"}").is(400);
    post(&token, "one/apply", "{\"size\": 1}").is(400);
    assert!(told(&api, "apply").is_empty());
    drop(api.env.tpu("apply two").exits(0));
    drop(api.env.tpu("run two alice -q -- sleep 1000").exits(0));
    for query in ["", "?dry_run=true"] {
        let said = post(&token, &format!("two/reapply{query}"), "").is(409).json();
        assert!(said["detail"].as_str().unwrap().contains("alice/1"), "{said}");
    }
    drop(api.env.tpu("sim capacity one --off").exits(0));
    post(&token, "one/reapply", "").is(202);
    wait_until("it is told", || !told(&api, "not-made").is_empty());
    let why = told(&api, "not-made").remove(0).1;
    assert!(why.starts_with("one: ") && why.contains("capacity"), "{why}");
    drop(api.env.tpu("kill 1 -y --user alice").exits(0));
}
