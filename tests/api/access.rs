//! Who may what: each attack is refused, says so in the journal, and leaves everything as it was.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use serde_json::Value;

use tpu::model::token::TokenRole;
use tpu::ops::tokens;

use super::{Api, heard};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

fn records(env: &TestEnv) -> Vec<Value> {
    vec![env.record("alice", 1, "finished"), env.record("bob", 1, "finished")]
}

/// How often the journal says that somebody was refused.
fn denied(api: &Api) -> usize {
    api.env.journal().iter().filter(|event| event.kind == "denied").count()
}

#[test]
fn nobody_asks_without_a_token_and_health_says_nothing_else() {
    let api = Api::new(records);
    assert_eq!(api.raw("GET /healthz", &[], "").is(200).body, "ok\n");
    assert_eq!(api.raw("GET /readyz", &[], "").is(200).body, "ok\n");
    for path in ["/api/v1/jobs", "/api/v1/jobs/alice/1", "/metrics", "/openapi.json", "/docs"] {
        let said = api.raw(&format!("GET {path}"), &[], "").is(401);
        assert_eq!(said.header("www-authenticate"), Some("Bearer"));
        assert!(!said.body.contains("finished"), "{said:?}");
    }
    for shown in ["Bearer tpu_wrong", "Bearer x", "Basic YTpi", "Bearer", "tpu_x"] {
        api.raw("GET /api/v1/jobs", &[&format!("Authorization: {shown}")], "").is(401);
    }
}

#[test]
fn a_token_opens_what_its_role_opens_and_nothing_once_it_is_taken_back() {
    let api = Api::new(records);
    let before = api.env.data_bytes();
    let viewer = api.token("viewer", TokenRole::Viewer, &[]);
    let bobs_viewer = api.token("bobs-viewer", TokenRole::Viewer, &["bob"]);
    let alices = api.token("alices", TokenRole::Operator, &["alice"]);
    api.get(&viewer, "/api/v1/jobs/alice/1").is(200);
    api.get(&bobs_viewer, "/api/v1/jobs/bob/1").is(200);
    api.get(&bobs_viewer, "/api/v1/jobs/alice/1").is(403);
    for path in ["targets", "hosts", "usage?user=alice", "events?user=alice"] {
        api.get(&bobs_viewer, &format!("/api/v1/{path}")).is(403);
    }
    for path in ["plan", "usage", "users"] {
        let said = api.get(&bobs_viewer, &format!("/api/v1/{path}")).is(200);
        assert!(!said.body.contains("alice"), "{said:?}");
    }
    assert!(!api.get(&bobs_viewer, "/metrics").is(200).body.contains("alice"));
    let seen = api.get(&bobs_viewer, "/api/v1/jobs").is(200).json();
    assert_eq!(seen["jobs"].as_array().unwrap().len(), 1);
    for verb in ["kill", "resume", "rerun", "hold", "unhold", "requeue"] {
        let tries = denied(&api);
        api.ask(&viewer, &format!("POST /api/v1/jobs/alice/1/{verb}"), &[], "").is(403);
        api.ask(&alices, &format!("POST /api/v1/jobs/bob/1/{verb}"), &[], "").is(403);
        api.raw(&format!("POST /api/v1/jobs/alice/1/{verb}"), &[], "").is(401);
        if tries < 25 {
            assert_eq!(denied(&api), tries + 3, "all are in the journal");
        }
        // What is read never acts.
        api.get(&alices, &format!("/api/v1/jobs/alice/1/{verb}")).is(405);
    }
    api.ask(&alices, "PATCH /api/v1/jobs/bob/1", &[], "{\"tags\": \"x\"}").is(403);
    tokens::revoke(&api.ctx, "viewer").unwrap();
    api.get(&viewer, "/api/v1/jobs").is(401);
    assert_eq!(api.env.data_bytes(), before);
}

#[test]
fn a_token_stands_nowhere_but_with_who_has_it() {
    let api = Api::new(records);
    let token = api.admin();
    api.get(&token, "/api/v1/jobs").is(200);
    for path in [format!("/api/v1/jobs?token={token}"), format!("/api/v1/jobs?x={token}")] {
        api.raw(&format!("GET {path}"), &[], "").is(401);
        api.get(&token, &path).is(401);
    }
    let mut looked_at = 0;
    let mut dirs = vec![api.env.path("")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                dirs.push(entry.path());
            } else if entry.file_type().unwrap().is_file() {
                looked_at += 1;
                let bytes = std::fs::read(entry.path()).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                assert!(!text.contains(&token), "{}", entry.path().display());
            }
        }
    }
    assert!(looked_at > 3, "{looked_at}");
    let file = api.ctx.store.paths().tokens(api.ctx.env.uid);
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let key = api.env.path("config/tpu/api-key");
    assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn other_names_and_other_pages_are_refused() {
    let api = Api::new(records);
    let token = api.admin();
    let jobs = |headers: &[&str]| api.ask(&token, "GET /api/v1/jobs", headers, "");
    jobs(&["Host: evil.example:7960"]).is(421);
    jobs(&["Host: localhost.evil.example"]).is(421);
    jobs(&["Host: "]).is(421);
    jobs(&["Host: LOCALHOST:1234"]).is(200);
    jobs(&["Host: [::1]:1234"]).is(200);
    let kill = |origin: &str| {
        api.ask(&token, "POST /api/v1/jobs/alice/1/kill", &[&format!("Origin: {origin}")], "")
    };
    kill("http://evil.example").is(403);
    kill("null").is(403);
    let said = jobs(&["Origin: http://evil.example"]).is(403);
    assert_eq!(said.header("access-control-allow-origin"), None);
    let said = jobs(&[]).is(200);
    assert_eq!(said.header("x-content-type-options"), Some("nosniff"));
    assert!(said.header("content-security-policy").unwrap().contains("default-src 'none'"));
}

#[test]
fn paths_lead_nowhere_else() {
    let api = Api::new(records);
    let token = api.admin();
    for path in [
        "/api/v1/jobs/..%2f..%2fetc/1",
        "/api/v1/jobs/%2e%2e/1",
        "/api/v1/../../etc/passwd",
        "/api/v1/jobs/alice/-1",
        "/api/v1/jobs/alice/99999999999",
        "/api/v1/jobs/alice/1%00",
        "/api/v1/jobs/%ff/1",
        "/api/v1/jobs//1",
    ] {
        let said = api.get(&token, path);
        assert!(matches!(said.status, 400 | 404), "{path}: {said:?}");
        assert!(!said.body.contains("root:"), "{path}");
    }
}

#[test]
fn wrong_tokens_are_slowed_down_and_who_has_a_right_one_is_not() {
    let api = Api::new(records);
    let token = api.admin();
    let mut last = 0;
    for n in 0..200 {
        last = api.get(&format!("tpu_{n}"), "/api/v1/jobs").status;
    }
    assert_eq!(last, 429);
    api.get(&token, "/api/v1/jobs").is(200);
    assert!((30..60).contains(&denied(&api)), "a flood does not fill the journal");
}

#[test]
fn what_is_too_large_or_too_slow_is_given_up() {
    let api = Api::new(records);
    let token = api.admin();
    let large = " ".repeat((1 << 20) + 1);
    api.ask(&token, "PATCH /api/v1/jobs/alice/1", &[], &large).is(413);
    // Whoever begins a head and does not end it is hung up on; others are answered meanwhile.
    let mut slow = api.connect();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").unwrap();
    api.get(&token, "/api/v1/jobs").is(200);
    let said = heard(slow);
    assert!(matches!(said.status, 0 | 408), "{said:?}");
}

#[test]
fn a_socket_is_its_owners_alone_and_needs_no_token() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let path = env.path("s.sock");
    let api = Api::over(env, |serving| serving.socket = Some(path.clone()));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    drop(api);
    assert!(!path.exists(), "the socket goes with the server");
}

#[test]
fn strangers_are_kept_out_before_anybody_listens() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    env.tpu("serve --listen 0.0.0.0:0").exits(4).says(&["--cert"]);
    env.tpu("serve --listen 0.0.0.0:0 --behind-proxy").exits(4).says(&["tpu token create"]);
    env.tpu("serve --listen 127.0.0.1:0 --cert nothing.pem --key nothing.pem").exits(2);
    env.tpu("serve --socket nowhere/s").exits(5);
}

#[test]
fn tokens_are_made_listed_and_taken_back() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let made = env.tpu("token create phone --role viewer --expires 30d").exits(0);
    assert!(made.stdout.starts_with("tpu_") && made.stdout.lines().count() == 1, "{}", made.stdout);
    assert!(made.stderr.contains("token phone: viewer"), "{}", made.stderr);
    env.tpu("token create phone --role viewer").exits(4);
    env.tpu("token create two --role operator --user alice,bob --targets").exits(0);
    env.tpu("token create odd --role operator").exits(2).says(&["--user"]);
    env.tpu("token create odd --role operator --user nobody").exits(3);
    env.tpu("token create odd --role king").exits(2);
    env.tpu("token create a/b --role viewer").exits(2);
    env.tpu("token create odd --role viewer --expires soon").exits(2);
    let all = env.tpu("token list --json").exits(0).json();
    let names: Vec<&str> =
        all["tokens"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["phone", "two"]);
    let secret = made.stdout.trim();
    assert!(!env.tpu("token list").exits(0).stdout.contains(secret));
    env.tpu("token revoke phone -y").exits(0);
    env.tpu("token revoke phone -y").exits(3);
    env.tpu("token create dry --role viewer --dry-run").exits(0);
    assert_eq!(env.tpu("token list --json").exits(0).json()["tokens"].as_array().unwrap().len(), 1);
}

#[test]
fn nobody_makes_more_of_a_token_than_it_is() {
    let api = Api::new(records);
    let token = api.token("phone", TokenRole::Viewer, &["bob"]);
    api.get(&token, "/api/v1/jobs").is(200);
    let path = api.ctx.store.paths().tokens(api.ctx.env.uid);
    let whole = std::fs::read_to_string(&path).unwrap();
    for (is, becomes) in [("viewer", "admin"), ("bob", "alice"), ("phone", "other")] {
        assert!(whole.contains(is), "{whole}");
        write_file(&path, &whole.replace(is, becomes));
        api.get(&token, "/api/v1/jobs").is(401);
    }
    write_file(&path, &whole);
    api.get(&token, "/api/v1/jobs").is(200);
}
