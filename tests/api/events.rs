//! `/api/v1/events`: what happens is heard as it happens, once and in order, also by who was away, and by nobody who may
//! not see it.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;

use serde_json::Value;

use tpu_core::model::token::TokenRole;

use super::Api;

/// The next event: what it is called, and what it says.
fn next(stream: &mut BufReader<TcpStream>) -> (String, Value) {
    let mut id = String::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream has ended");
        if let Some(said) = line.strip_prefix("id: ") {
            said.trim().clone_into(&mut id);
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (id, serde_json::from_str(data).unwrap());
        }
    }
}

fn records(env: &crate::common::env::TestEnv) -> Vec<Value> {
    vec![env.record("alice", 1, "finished"), env.record("bob", 1, "finished")]
}

#[test]
fn who_was_away_hears_what_was_missed_and_nothing_twice() {
    let mut api = Api::new(records);
    let token = api.token("v", TokenRole::Viewer, &[]);
    let mut stream = api.follow(&token, &[]);
    for n in 0..5 {
        api.env.tpu(&format!("add-tag 1 t{n} alice")).exits(0);
    }
    let mut heard = Vec::new();
    while heard.len() < 5 {
        let (id, event) = next(&mut stream);
        assert_eq!(event["id"], id);
        if event["kind"] == "tag" {
            heard.push((id, event["text"].as_str().unwrap().to_owned()));
        }
    }
    let names: BTreeSet<&String> = heard.iter().map(|(id, _)| id).collect();
    assert_eq!(names.len(), 5, "each is called by its own name");
    drop(stream);
    // The server ends, things happen, another one begins.
    api.end();
    api.env.tpu("add-tag 1 t5 alice").exits(0);
    api.begin(|_| {});
    let last = format!("Last-Event-ID: {}", heard[2].0);
    let mut stream = api.follow(&token, &[&last]);
    let mut missed = Vec::new();
    while missed.len() < 3 {
        let (_, event) = next(&mut stream);
        if event["kind"] == "tag" {
            missed.push(event["text"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(missed[..2], [heard[3].1.clone(), heard[4].1.clone()]);
    assert!(missed[2].contains("t5"), "{missed:?}");
}

#[test]
fn a_token_that_is_taken_back_hears_nothing_more() {
    let api = Api::new(records);
    let token = api.token("v", TokenRole::Viewer, &[]);
    let stream = api.follow(&token, &[]);
    tpu_ops::front::tokens::revoke(&api.ctx, "v").unwrap();
    // It ends when the streams are looked at the next time; until then it says now and then where it is.
    let lines = std::io::BufRead::lines(stream).map(Result::unwrap);
    let goes_on = lines.filter(|line| line == ": still here").nth(3).is_some();
    assert!(!goes_on);
}

#[test]
fn events_of_others_are_not_heard() {
    let api = Api::new(records);
    let token = api.token("v", TokenRole::Viewer, &["bob"]);
    let mut stream = api.follow(&token, &[]);
    api.env.tpu("add-tag 1 hers alice").exits(0);
    api.env.tpu("add-tag 1 his bob").exits(0);
    let (_, event) = next(&mut stream);
    assert_eq!(event["user"], "bob", "{event}");
    api.get(&token, "/api/v1/events?user=alice").is(403);
    api.ask(&token, "GET /api/v1/events", &["Last-Event-ID: yesterday"], "").is(400);
}
