//! `…/logs`: what was printed, all of it and nothing twice, in pieces of whole characters; nothing else of the disk.

use serde_json::Value;

use super::Api;
use crate::common::tmux::write_file;

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
