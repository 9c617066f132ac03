//! `…/logs`: what was printed, all of it and nothing twice, in pieces of whole characters; nothing else of the disk.

use std::io::{BufRead, Write as _};

use serde_json::Value;

use tpu_core::model::token::TokenRole;
use tpu_ops::front::tokens;

use super::{Api, heard_on};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// A job of alice's that has printed this.
fn printed(text: &str) -> Api {
    Api::new(|env| {
        let mut record = env.record("alice", 1, "finished");
        record["log_dir"] = Value::from(env.path("logs").to_str().unwrap());
        std::fs::create_dir_all(env.path("logs")).unwrap();
        write_file(&env.path("logs/output.log"), text);
        vec![record, env.record("alice", 2, "finished")]
    })
}

#[test]
fn pieces_make_the_whole() {
    // Characters of four bytes behind one of one: each cut at a whole number of them falls into one.
    let text = format!("x{}\n", "\u{1F600}".repeat(600_000));
    let api = printed(&text);
    let token = api.admin();
    let mut heard = String::new();
    let mut next = 0;
    loop {
        let path = format!("/api/v1/jobs/alice/1/logs?offset={next}");
        let said = api.get(&token, &path).is(200);
        assert_eq!(said.header("content-type"), Some("text/plain; charset=utf-8"));
        let after: u64 = said.header("x-next-offset").unwrap().parse().unwrap();
        let as_json = api.ask(&token, &format!("GET {path}"), &["Accept: application/json"], "");
        let as_json = as_json.is(200).json();
        assert_eq!(as_json["text"].as_str().unwrap(), said.body);
        assert_eq!((&as_json["offset"], &as_json["next_offset"]), (&next.into(), &after.into()));
        if said.body.is_empty() {
            assert_eq!(after, next);
            break;
        }
        heard += &said.body;
        next = after;
    }
    assert!(heard == text, "{} of {} bytes", heard.len(), text.len());
}

#[test]
fn a_log_that_is_gone_says_so() {
    let api = printed("");
    let token = api.admin();
    let said = api.get(&token, "/api/v1/jobs/alice/2/logs").is(410).json();
    assert!(said["detail"].as_str().unwrap().contains("alice/2"), "{said}");
    api.get(&token, "/api/v1/jobs/alice/3/logs").is(404);
    api.get(&token, "/api/v1/jobs/alice/1/logs?offset=-1").is(400);
    // Behind the end there is nothing, and that is no error: more may come.
    let said = api.get(&token, "/api/v1/jobs/alice/1/logs?offset=1000").is(200);
    assert_eq!(said.body, "");
}

#[test]
fn what_waits_has_printed_nothing_yet_and_is_followed_from_its_first_byte() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    api.env.code("alice", "staging.sh", "true\n");
    let body = "{\"target\": \"local\", \"dir\": 1, \"hold\": true, \"command\": \"echo at last\"}";
    let ask = |line: &str, body: &str| {
        api.ask(&token, line, &["Content-Type: application/json"], body).is(200)
    };
    let number = ask("POST /api/v1/jobs", body).json()["jobs"][0]["window"].as_u64().unwrap();
    let path = format!("/api/v1/jobs/alice/{number}");
    let said = api.get(&token, &format!("{path}/logs")).is(200);
    assert_eq!((said.body.as_str(), said.header("x-next-offset")), ("", Some("0")));
    let flow = api.flow(&token, &format!("{path}/logs?follow=true"), &[]);
    drop(ask(&format!("POST {path}/unhold"), ""));
    let heard = heard_on(flow);
    assert!(heard.contains("at last"), "{heard:?}");
    // One that is taken out is cut off: there is nothing to come.
    let number = ask("POST /api/v1/jobs", body).json()["jobs"][0]["window"].as_u64().unwrap();
    let path = format!("/api/v1/jobs/alice/{number}");
    let events = ["Accept: text/event-stream"];
    let flow = api.flow(&token, &format!("{path}/logs?follow=true"), &events);
    drop(ask(&format!("POST {path}/kill"), ""));
    let heard = heard_on(flow);
    assert!(heard.contains("event: problem") && heard.contains("404"), "{heard:?}");
}

#[test]
fn what_was_cleaned_away_is_gone_and_says_where_its_record_is() {
    let api = Api::new(|_| Vec::new());
    let token = api.admin();
    let number = api.env.start("exit 0", &["run", "local"]);
    let path = format!("/api/v1/jobs/alice/{number}");
    wait_until("it has ended", || {
        api.get(&token, &path).is(200).json()["job"]["status"] == "finished"
    });
    api.ask(&token, &format!("POST {path}/clean"), &[], "").is(200);
    let said = api.get(&token, &format!("{path}/logs")).is(410).json();
    let hint = format!("tpu archive logs {number} alice");
    assert!(said["hint"].as_str().unwrap().contains(&hint), "{said}");
}

#[test]
fn a_log_that_goes_while_it_is_read_is_gone_behind_its_beginning_too() {
    let api = printed("one\ntwo\n");
    let token = api.admin();
    let said = api.get(&token, "/api/v1/jobs/alice/1/logs").is(200);
    let next = said.header("x-next-offset").unwrap().to_owned();
    std::fs::remove_file(api.env.path("logs/output.log")).unwrap();
    api.get(&token, &format!("/api/v1/jobs/alice/1/logs?offset={next}")).is(410);
}

/// A job that puts a link in the place of its log shows nobody what it leads to: neither the text, nor what is read off it.
#[test]
fn a_link_in_the_place_of_a_log_is_not_followed() {
    let api = printed("");
    let token = api.admin();
    let secret = "step 3 loss 0.25\nValueError: the key is canary-47\n";
    write_file(&api.env.path("secret"), secret);
    let log = api.env.path("logs/output.log");
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink(api.env.path("secret"), &log).unwrap();
    let job = "/api/v1/jobs/alice/1";
    let said = api.get(&token, &format!("{job}/logs"));
    assert_ne!(said.status, 200, "{}", said.body);
    assert!(said.body.contains("output.log: it is a symbolic link"), "{}", said.body);
    for of in ["", "/logs?worker=0", "/logs?follow=true", "/curve", "/explain", "/files"] {
        let said = api.get(&token, &format!("{job}{of}"));
        let tells = |text: &str| said.body.contains(text);
        assert!(!tells("canary-47") && !tells("0.25"), "{of}: {}", said.body);
    }
}

#[test]
fn the_lines_of_one_worker_are_whole_and_its_own() {
    let mut text = String::from("setting up\n");
    for step in 0..60_000 {
        text += &format!("[worker 0] step {step}\n[worker 1] loss {step}\n[worker 10] x {step}\n");
    }
    text += "[worker 1] cut off";
    let api = printed(&text);
    let token = api.admin();
    let all = |worker: u32| {
        let (mut heard, mut next) = (String::new(), 0_u64);
        loop {
            let path = format!("/api/v1/jobs/alice/1/logs?worker={worker}&offset={next}");
            let said = api.ask(&token, &format!("GET {path}"), &["Accept: application/json"], "");
            let said = said.is(200).json();
            assert_eq!(said["worker"], worker);
            heard += said["text"].as_str().unwrap();
            let after = said["next_offset"].as_u64().unwrap();
            if after == next {
                return heard;
            }
            next = after;
        }
    };
    let of = |worker: u32, word: &str| -> String {
        let sign = format!("[worker {worker}] ");
        let lines = text.split_inclusive('\n').filter(|line| line.contains(word));
        lines.map(|line| line.replace(&sign, "")).collect()
    };
    assert!(all(0) == format!("setting up\n{}", of(0, "step ")));
    assert!(all(1) == of(1, "[worker 1] "));
    assert!(all(10) == of(10, "[worker 10] "));
    assert_eq!(all(2), "");
}

/// The next event of a stream: its lines up to the empty one.
fn event(stream: &mut impl BufRead) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        // An answer that flows comes in pieces, each with its length before it.
        let line = line.trim_end();
        let is_length = u64::from_str_radix(line, 16).is_ok() && !line.contains(' ');
        match line {
            "" if !lines.is_empty() => return lines,
            "" => {}
            _ if is_length => {}
            line => lines.push(line.to_owned()),
        }
    }
}

#[test]
fn a_log_is_followed_to_its_end_and_gone_on_with_where_it_was_cut_off() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let (go, end) = (api.env.path("go"), api.env.path("end"));
    let script = format!(
        "echo first; until [ -e {} ]; do sleep 0.4; done; \
         echo second; until [ -e {} ]; do sleep 0.4; done; echo third",
        go.display(),
        end.display()
    );
    let number = api.env.start(&script, &["run", "local"]);
    let path = format!("/api/v1/jobs/alice/{number}/logs?follow=true");
    let as_text = api.flow(&token, &path, &[]);
    let mut stream = api.flow(&token, &path, &["Accept: text/event-stream"]);
    let told = event(&mut stream);
    let id = told[0].strip_prefix("id: ").unwrap().to_owned();
    assert!(told[1].contains("first"), "{told:?}");
    drop(stream);
    write_file(&go, "");
    let again = format!("Last-Event-ID: {id}");
    let mut stream = api.flow(&token, &path, &["Accept: text/event-stream", &again]);
    let told = event(&mut stream);
    assert!(told[1].contains("second") && !told[1].contains("first"), "{told:?}");
    write_file(&end, "");
    let told = event(&mut stream);
    assert!(told[1].contains("third"), "{told:?}");
    assert_eq!(event(&mut stream), ["event: end", "data: {}"]);
    let whole = heard_on(as_text);
    assert!(whole.contains("first") && whole.contains("second") && whole.contains("third"));
}

#[test]
fn a_token_that_is_taken_back_follows_no_log_any_more() {
    let api = Api::new(|_| Vec::new());
    let number = api.env.start("echo first; exec sleep 1000", &["run", "local"]);
    let token = api.token("alices", TokenRole::Viewer, &["alice"]);
    let bobs = api.token("bobs", TokenRole::Viewer, &["bob"]);
    let path = format!("/api/v1/jobs/alice/{number}/logs?follow=true");
    api.get(&bobs, &path).is(403);
    let mut stream = api.flow(&token, &path, &["Accept: text/event-stream"]);
    assert!(event(&mut stream)[1].contains("first"));
    tokens::revoke(&api.ctx, "alices").unwrap();
    let told = event(&mut stream);
    assert_eq!(told[0], "event: problem");
    assert!(told[1].contains("opens nothing any more"), "{told:?}");
    drop(api.env.tpu("kill 1 -y --user alice").exits(0));
}

#[test]
fn nonsense_as_the_last_that_was_heard_is_refused() {
    let api = printed("one\n");
    let token = api.admin();
    for heard in ["", "x", "-1", "18446744073709551615"] {
        let heard = format!("Last-Event-ID: {heard}");
        let line = "GET /api/v1/jobs/alice/1/logs?follow=true";
        let said = api.ask(&token, line, &["Accept: text/event-stream", &heard], "");
        assert_eq!(said.status, 400, "{heard}: {said:?}");
    }
}

#[test]
fn a_log_without_a_last_end_is_told_whole_once_it_is_over() {
    // Its last byte begins a character that never came.
    let api = Api::new(|env| {
        let mut record = env.record("alice", 1, "finished");
        record["log_dir"] = Value::from(env.path("logs").to_str().unwrap());
        std::fs::create_dir_all(env.path("logs")).unwrap();
        let mut log = std::fs::File::create(env.path("logs/output.log")).unwrap();
        log.write_all(b"one\n[worker 1] tw\xc3").unwrap();
        vec![record]
    });
    let token = api.admin();
    let of =
        |query: &str| api.get(&token, &format!("/api/v1/jobs/alice/1/logs?{query}")).is(200).body;
    assert_eq!(of("worker=1"), "tw\u{fffd}");
    assert!(of("follow=true").contains("tw\u{fffd}"));
}

#[test]
fn who_sees_only_some_is_not_told_who_else_there_is() {
    let api = printed("one\n");
    let alices = api.token("alices", TokenRole::Viewer, &["alice"]);
    let bobs = api.env.record("bob", 9, "finished");
    let mut data = api.env.data();
    data["users"]["bob"]["job_data"].as_array_mut().unwrap().push(bobs);
    api.env.write_data(&data);
    let told = api.get(&alices, "/api/v1/jobs/alice/9/logs").is(404);
    assert!(!told.body.contains("bob"), "{told:?}");
    let told = api.get(&api.admin(), "/api/v1/jobs/alice/9/logs").is(404);
    assert!(told.body.contains("bob"), "{told:?}");
}

#[test]
fn a_text_that_breaks_off_is_not_taken_for_the_whole() {
    let api = Api::new(|_| Vec::new());
    let go = api.env.path("go");
    let script = format!("echo first; until [ -e {} ]; do sleep 0.4; done", go.display());
    let number = api.env.start(&script, &["run", "local"]);
    let token = api.token("alices", TokenRole::Viewer, &["alice"]);
    let path = format!("/api/v1/jobs/alice/{number}/logs?follow=true");
    // An answer that flows ends with an empty piece.
    let is_whole = |text: &str| text.ends_with("\r\n0\r\n\r\n");
    let mut broken = api.flow(&token, &path, &[]);
    let mut line = String::new();
    while !line.contains("first") {
        line.clear();
        assert!(broken.read_line(&mut line).unwrap() > 0, "it ends before it has begun");
    }
    tokens::revoke(&api.ctx, "alices").unwrap();
    let text = heard_on(broken);
    assert!(!is_whole(&text), "{text:?}");
    let whole = api.flow(&api.admin(), &path, &[]);
    write_file(&go, "");
    let text = heard_on(whole);
    assert!(text.contains("first") && is_whole(&text), "{text:?}");
}
