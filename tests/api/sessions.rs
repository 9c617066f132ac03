//! How a browser logs in, what its cookie opens, and when it opens nothing any more.

use serde_json::{Value, json};

use tpu_core::model::token::TokenRole;
use tpu_ops::front::tokens;

use super::{Api, Said};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

const PAGE: &str = "X-Tpu-Page: 1";

fn records(env: &TestEnv) -> Vec<Value> {
    vec![env.record("alice", 1, "finished"), env.record("bob", 1, "finished")]
}

/// A browser that is logged in: its cookie, and what it shows with a change.
struct Browser {
    cookie: String,
    csrf: String,
}

impl Browser {
    fn log_in(api: &Api, token: &str) -> Self {
        Self::of(
            &api.raw("POST /api/v1/session", &[], &json!({"token": token}).to_string()).is(200),
        )
    }

    fn of(said: &Said) -> Self {
        let sets = said.headers.iter().filter(|(name, _)| name == "set-cookie");
        let paths: Vec<&str> = sets
            .filter_map(|(_, set)| set.split("; ").find(|of| of.starts_with("Path=")))
            .collect();
        assert_eq!(paths, ["Path=/api/v1", "Path=/docs", "Path=/openapi.json"]);
        let set = said.header("set-cookie").unwrap();
        for word in ["HttpOnly", "SameSite=Strict", "Path=/api/v1"] {
            assert!(set.contains(word), "{set}");
        }
        let pair = set.split(';').next().unwrap();
        let csrf = said.json()["csrf"].as_str().unwrap().to_owned();
        Self { cookie: format!("Cookie: other=1; {pair}"), csrf }
    }

    fn get(&self, api: &Api, path: &str) -> Said {
        api.raw(&format!("GET {path}"), &[&self.cookie, PAGE], "")
    }

    fn post(&self, api: &Api, path: &str) -> Said {
        let csrf = format!("X-Tpu-Csrf: {}", self.csrf);
        api.raw(&format!("POST {path}"), &[&self.cookie, PAGE, &csrf], "")
    }
}

#[test]
fn a_cookie_opens_what_its_token_opens_to_the_page_alone() {
    let api = Api::new(records);
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let browser = Browser::log_in(&api, &token);
    assert!(!browser.cookie.contains(&token));
    assert_eq!(browser.get(&api, "/api/v1/session").is(200).json()["name"], "alices");
    browser.get(&api, "/api/v1/jobs").is(200);
    // Without the header that another site cannot send it is none; nor is it elsewhere than where the page asks.
    api.raw("GET /api/v1/jobs", &[&browser.cookie], "").is(401);
    for path in ["/metrics", "/cloudmesh/queue/"] {
        browser.get(&api, path).is(401);
    }
    let elsewhere = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"];
    for site in elsewhere {
        api.raw("GET /api/v1/jobs", &[&browser.cookie, PAGE, site], "").is(403);
    }
    let foreign = format!("Origin: http://{}:1", "127.0.0.1");
    api.raw("GET /api/v1/jobs", &[&browser.cookie, PAGE, &foreign], "").is(403);
    // What describes the API a browser opens as it is; another site cannot have it opened.
    for path in ["/docs", "/openapi.json"] {
        let line = format!("GET {path}");
        api.raw(&line, &[&browser.cookie, "Sec-Fetch-Site: none"], "").is(200);
        api.raw(&line, &[&browser.cookie, "Sec-Fetch-Site: same-origin"], "").is(200);
        for site in elsewhere {
            api.raw(&line, &[&browser.cookie, site], "").is(403);
        }
        api.raw(&line, &[], "").is(401);
    }
    // It may what its token may.
    browser.post(&api, "/api/v1/jobs/bob/1/kill").is(403);
    browser.post(&api, "/api/v1/jobs/alice/1/kill").is(409);
}

#[test]
fn a_change_shows_that_it_comes_from_the_page() {
    let api = Api::new(records);
    let browser = Browser::log_in(&api, &api.admin());
    let other = Browser::log_in(&api, &api.token("other", TokenRole::Admin, &[]));
    let before = api.env.data_bytes();
    let pause = "POST /api/v1/queues/default/pause";
    api.raw(pause, &[&browser.cookie, PAGE], "").is(403);
    for wrong in ["", "00", &other.csrf, "zz"] {
        let wrong = format!("X-Tpu-Csrf: {wrong}");
        api.raw(pause, &[&browser.cookie, PAGE, &wrong], "").is(403);
    }
    assert_eq!(api.env.data_bytes(), before);
    let denied = api.env.journal().into_iter().filter(|event| event.kind == "denied").count();
    assert!(denied >= 5, "{denied}");
    browser.post(&api, "/api/v1/queues/default/pause").is(200);
}

#[test]
fn a_session_ends_with_its_token_and_when_it_is_ended_and_outlives_its_server() {
    let mut api = Api::new(records);
    let browsers: Vec<Browser> = ["one", "two", "three"]
        .map(|name| Browser::log_in(&api, &api.token(name, TokenRole::Viewer, &[])))
        .into();
    let [one, two, three] = browsers.as_slice() else { unreachable!() };
    let path = api.ctx.store.paths().tokens(api.ctx.env.uid);
    let whole = std::fs::read_to_string(&path).unwrap();
    tokens::revoke(&api.ctx, "one").unwrap();
    one.get(&api, "/api/v1/jobs").is(401);
    let gone = two.post(&api, "/api/v1/session/end").is(200);
    assert!(gone.header("set-cookie").unwrap().contains("Max-Age=0"), "{gone:?}");
    two.get(&api, "/api/v1/jobs").is(401);
    // Whoever puts an older file of tokens back brings back nothing.
    write_file(&path, &whole);
    one.get(&api, "/api/v1/jobs").is(401);
    two.get(&api, "/api/v1/jobs").is(401);
    three.get(&api, "/api/v1/jobs").is(200);
    api.end();
    api.begin(|_| {});
    // The cookie of a server is called by its port, which is another one now.
    let port = api.address.rsplit_once(':').unwrap().1;
    let renamed = |browser: &Browser| {
        let (_, value) = browser.cookie.rsplit_once('=').unwrap();
        format!("Cookie: tpu_session_{port}={value}")
    };
    api.raw("GET /api/v1/jobs", &[&renamed(three), PAGE], "").is(200);
    api.raw("GET /api/v1/jobs", &[&renamed(two), PAGE], "").is(401);
}

#[test]
fn made_up_sessions_open_nothing_and_are_counted() {
    let api = Api::new(records);
    let browser = Browser::log_in(&api, &api.admin());
    let (name, value) = browser.cookie.rsplit_once('=').unwrap();
    let parts: Vec<&str> = value.split('.').collect();
    let [id, since, hash, signature] = parts.as_slice() else { panic!("{value}") };
    let later = since.parse::<i64>().unwrap() + 1;
    let made_up = [
        String::new(),
        "x".to_owned(),
        format!("{id}.{later}.{hash}.{signature}"),
        format!("{}.{since}.{hash}.{signature}", "0".repeat(32)),
        format!("{id}.{since}.{}.{signature}", "0".repeat(64)),
        format!("{id}.{since}.{hash}.{}", "0".repeat(64)),
        format!("{id}.{since}.{hash}."),
    ];
    for value in made_up {
        api.raw("GET /api/v1/jobs", &[&format!("{name}={value}"), PAGE], "").is(401);
    }
    let mut last = 0;
    for _ in 0..40 {
        last = api.raw("POST /api/v1/session", &[], r#"{"token": "tpu_x"}"#).status;
    }
    assert_eq!(last, 429);
    // Who has the right token is let in all the same.
    browser.get(&api, "/api/v1/jobs").is(200);
}

#[test]
fn a_record_of_a_token_that_was_changed_takes_its_sessions_with_it() {
    let api = Api::new(records);
    let browser = Browser::log_in(&api, &api.token("small", TokenRole::Viewer, &["alice"]));
    let path = api.ctx.store.paths().tokens(api.ctx.env.uid);
    let text = std::fs::read_to_string(&path).unwrap();
    write_file(&path, &text.replace("\"viewer\"", "\"admin\""));
    browser.get(&api, "/api/v1/jobs").is(401);
}

#[test]
fn the_page_is_whole_by_itself_and_says_what_it_may() {
    let api = Api::new(records);
    let page = api.raw("GET /", &["Accept: text/html"], "").is(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert!(!page.body.contains("http") && !page.body.contains("style="), "{}", page.body);
    let parts: Vec<&str> = page.body.split('"').filter(|word| word.starts_with("/page/")).collect();
    assert!(parts.len() >= 4, "{parts:?}");
    for part in parts {
        let said = api.raw(&format!("GET {part}"), &[], "").is(200);
        assert!(said.header("cache-control").unwrap().contains("immutable"), "{said:?}");
        let tag = format!("If-None-Match: {}", said.header("etag").unwrap());
        api.raw(&format!("GET {part}"), &[&tag], "").is(304);
    }
    api.raw("GET /page/x/nothing.js", &[], "").is(404);
    api.raw("GET /page/x/..%2f..%2fetc%2fpasswd", &[], "").is(404);
    // For whoever asks otherwise it is as it was.
    assert!(api.raw("GET /", &[], "").is(200).body.contains("tpu token create"));
}
