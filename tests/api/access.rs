//! Who may what: what a token opens, where it stands, and how it is made. Who is refused stands in the table of attacks.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use serde_json::Value;

use tpu_core::model::token::TokenRole;
use tpu_ops::front::tokens;

use super::{Api, heard};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

fn records(env: &TestEnv) -> Vec<Value> {
    vec![env.record("alice", 1, "finished"), env.record("bob", 1, "finished")]
}

#[test]
fn health_is_told_to_everybody_and_nothing_else_is() {
    let api = Api::new(records);
    assert_eq!(api.raw("GET /healthz", &[], "").is(200).body, "ok\n");
    assert_eq!(api.raw("GET /readyz", &[], "").is(200).body, "ok\n");
    assert!(api.raw("GET /", &[], "").is(200).body.contains("tpu token create"));
    let said = api.raw("GET /api/v1/jobs", &[], "").is(401);
    assert_eq!(said.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn a_token_opens_what_its_role_opens_and_nothing_once_it_is_taken_back() {
    let api = Api::new(records);
    let before = api.env.data_bytes();
    let viewer = api.token("viewer", TokenRole::Viewer, &[]);
    let bobs_viewer = api.token("bobs-viewer", TokenRole::Viewer, &["bob"]);
    let alices = api.token("alices", TokenRole::Operator, &["alice"]);
    for token in [&viewer, &alices] {
        let seen = api.get(token, "/api/v1/jobs").is(200).json();
        assert_eq!(seen["jobs"].as_array().unwrap().len(), 2, "an operator sees everything, too");
        for path in ["jobs/alice/1", "jobs/bob/1", "targets", "hosts", "usage?user=alice"] {
            api.get(token, &format!("/api/v1/{path}")).is(200);
        }
    }
    api.get(&bobs_viewer, "/api/v1/jobs/bob/1").is(200);
    for path in ["plan", "usage", "users"] {
        let said = api.get(&bobs_viewer, &format!("/api/v1/{path}")).is(200);
        assert!(!said.body.contains("alice"), "{said:?}");
    }
    assert!(!api.get(&bobs_viewer, "/metrics").is(200).body.contains("alice"));
    let seen = api.get(&bobs_viewer, "/api/v1/jobs").is(200).json();
    assert_eq!(seen["jobs"].as_array().unwrap().len(), 1);
    for verb in ["kill", "resume", "rerun", "hold", "unhold", "requeue"] {
        // What is read never acts.
        api.get(&alices, &format!("/api/v1/jobs/alice/1/{verb}")).is(405);
    }
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
    let lock = file.with_extension("lock");
    let key = api.env.path("config/tpu/api-key");
    for own in [file, lock, key.with_extension("lock"), key] {
        let mode = std::fs::metadata(&own).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", own.display());
    }
}

#[test]
fn names_of_this_machine_are_ours_and_pages_of_this_server_may_ask() {
    let api = Api::new(records);
    let token = api.admin();
    let jobs = |headers: &[&str]| api.ask(&token, "GET /api/v1/jobs", headers, "");
    jobs(&["Host: LOCALHOST:1234"]).is(200);
    jobs(&["Host: [::1]:1234"]).is(200);
    jobs(&["Host: localhost:1234", "Origin: http://localhost:1234"]).is(200);
    let said = jobs(&[]).is(200);
    assert_eq!(said.header("x-content-type-options"), Some("nosniff"));
    assert!(said.header("content-security-policy").unwrap().contains("default-src 'none'"));
}

#[test]
fn a_socket_needs_no_token_and_goes_with_its_server() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let path = env.path("s.sock");
    let api = Api::over(env, |serving| serving.socket = Some(path.clone()));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    heard(stream).is(200);
    drop(api);
    assert!(!path.exists());
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
    let limited =
        env.tpu("token create three --role operator --user bob --targets v4-*,lab[1-2]").exits(0);
    limited.says(&["on v4-*,lab1,lab2 only", "can do what that account can"]);
    env.tpu("token create odd --role admin --targets v4-*").exits(2).says(&["--role operator"]);
    env.tpu("token create odd --role operator --user bob --targets v4-[").exits(2);
    env.tpu("token create odd --role operator").exits(2).says(&["--user"]);
    env.tpu("token create odd --role operator --user nobody").exits(3);
    env.tpu("token create odd --role king").exits(2);
    env.tpu("token create a/b --role viewer").exits(2);
    env.tpu("token create odd --role viewer --expires soon").exits(2);
    let all = env.tpu("token list --json").exits(0).json();
    let names: Vec<&str> =
        all["tokens"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["phone", "two", "three"]);
    assert_eq!(all["tokens"][2]["only_on"], serde_json::json!(["v4-*", "lab1", "lab2"]));
    let secret = made.stdout.trim();
    assert!(!env.tpu("token list").exits(0).stdout.contains(secret));
    env.tpu("token revoke phone -y").exits(0);
    env.tpu("token revoke phone -y").exits(3);
    env.tpu("token create dry --role viewer --dry-run").exits(0);
    assert_eq!(env.tpu("token list --json").exits(0).json()["tokens"].as_array().unwrap().len(), 2);
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
