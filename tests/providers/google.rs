//! Our provider for Google's API where no simulator is enough: lists that cannot be trusted, credentials,
//! and everything that can go wrong on the way. From none of it follows anything destructive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use tpu_core::model::facts::{TargetFact, TargetStep};
use tpu_core::model::ids::TargetName;
use tpu_core::model::settings::CloudAuth;
use tpu_core::model::time::Timestamp;
use tpu_engine::provider::{
    Answer, EVERYWHERE, Provider as _, ProviderError, RequestId, TargetAt, TargetSpec, Trouble,
};
use tpu_gcp::google::Google;
use tpu_lab::sim::{Call, Event};
use tpu_system::sys::clock::ManualClock;
use tpu_system::sys::env::Env;

use crate::common::rest::{Rest, google, with_env};
use crate::common::server::Server;
use crate::common::sim::{ZONE, spec};

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(Timestamp::from_second(1_800_000_000)))
}

/// What a provider in this environment says when it has to list the fleet.
fn refusal(endpoint: &str, vars: &[(&str, &str)], auth: CloudAuth) -> ProviderError {
    let env = Env::fixed([("HOME", "/nonexistent")].iter().chain(vars).copied());
    refused(&with_env(endpoint, &clock(), 1, (env, auth)))
}

fn refused(google: &Google) -> ProviderError {
    let answers = google.list(&[]);
    let [answer] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(answer.zone, EVERYWHERE);
    match &answer.answer {
        Answer::Unknown { error, .. } => error.clone(),
        facts @ Answer::Facts { .. } => panic!("{facts:?}"),
    }
}

fn facts(google: &Google) -> BTreeMap<String, Vec<TargetFact>> {
    let mut facts: BTreeMap<String, Vec<TargetFact>> = BTreeMap::new();
    for answer in google.list(&[]) {
        if let Answer::Facts { targets, .. } = answer.answer {
            facts.entry(answer.zone).or_default().extend(targets);
        }
    }
    facts
}

#[test]
fn a_list_that_cannot_be_trusted_is_no_list() {
    for (body, why) in [
        ("<html>", "no JSON"),
        ("[]", "cannot be read"),
        ("7", "cannot be read"),
        (r#"{"nodes": {"a": 1}}"#, "cannot be read"),
        (r#"{"nodes": [{"state": "READY"}]}"#, "cannot be read"),
        (r#"{"nodes": [], "unreachable": "all"}"#, "cannot be read"),
        (r#"{"unreachable": [7]}"#, "cannot be read"),
        (r#"{"nextPageToken": 7}"#, "cannot be read"),
        (r#"{"nextPageToken": "again"}"#, "never ends"),
        (r#"{"error": {"code": 5}}"#, "cannot be read"),
    ] {
        let server = Server::new(move |_| Some((200, body.to_owned())));
        let error = refused(&google(&server.url(), &clock(), 1));
        assert_eq!(error.trouble, Trouble::Transient, "{body}");
        assert!(error.message.contains(why), "{body}: {error}");
    }
    let empty = Server::new(|_| Some((200, r#"{"nodes": null, "new": [1]}"#.to_owned())));
    let all = facts(&google(&empty.url(), &clock(), 1));
    assert_eq!(all.get(EVERYWHERE).map(Vec::len), Some(0), "an empty project is an answer");
}

#[test]
fn a_page_that_is_missing_makes_the_whole_unknown() {
    let server = Server::new(|asked| {
        let node = json!({"name": "projects/lab/locations/z/nodes/a", "state": "READY"});
        if asked.line.contains("pageToken") {
            return Some((503, String::new()));
        }
        Some((200, json!({"nodes": [node], "nextPageToken": "2"}).to_string()))
    });
    assert_eq!(refused(&google(&server.url(), &clock(), 1)).trouble, Trouble::Transient);
    let asked = server.asked();
    assert!(asked[1].line.ends_with("&pageToken=2"), "{asked:?}");
}

#[test]
fn a_page_is_asked_for_again_and_five_times_at_most() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let server = Server::new(move |_| match seen.fetch_add(1, Ordering::SeqCst) {
        0 => None,
        1..=3 => Some((503, String::new())),
        _ => Some((200, "{}".to_owned())),
    });
    assert!(facts(&google(&server.url(), &clock(), 5)).contains_key(EVERYWHERE));
    let down = Server::new(|_| Some((500, String::new())));
    drop(refused(&google(&down.url(), &clock(), 5)));
    assert_eq!(down.asked().len(), 5);
    let denied = Server::new(|_| Some((403, String::new())));
    drop(refused(&google(&denied.url(), &clock(), 5)));
    assert_eq!(denied.asked().len(), 1, "what is refused is not asked again");
}

#[test]
fn a_zone_that_cannot_be_reached_is_unknown_and_not_empty() {
    let rest = Rest::new(&[("one", "v2-8")]);
    let elsewhere = TargetSpec { zone: "zone-2".to_owned(), ..spec("two") };
    rest.google.create(&elsewhere, &RequestId("r".to_owned())).unwrap();
    rest.sim().pull(&Event::Outage { zone: ZONE.to_owned(), for_s: Some(5.0) }).unwrap();
    let answers = rest.google.list(&[]);
    let silent = answers.iter().find(|answer| answer.zone == ZONE).unwrap();
    assert!(matches!(silent.answer, Answer::Unknown { .. }), "{silent:?}");
    let known = facts(&rest.google);
    assert_eq!(known["zone-2"].len(), 1);
    assert!(!known.contains_key(ZONE));
}

#[test]
fn the_fleet_is_one_call_and_queued_resources_are_looked_at_when_there_are_any() {
    let rest = Rest::new(&[("one", "v2-8")]);
    let count = |kind: &str| {
        let is_it = |asked: &&Value| {
            asked["method"] == "GET"
                && asked["target"].as_str().is_some_and(|t| t.contains(&format!("/{kind}?")))
        };
        rest.asked().iter().filter(is_it).count()
    };
    for _ in 0..10 {
        drop(facts(&rest.google));
    }
    assert_eq!((count("nodes"), count("queuedResources")), (10, 1));
    let queued = TargetSpec { queued: true, ..spec("two") };
    rest.google.create(&queued, &RequestId("r".to_owned())).unwrap();
    for _ in 0..3 {
        drop(facts(&rest.google));
    }
    assert_eq!(count("queuedResources"), 4, "while one is open");
    rest.clock.advance(std::time::Duration::from_secs(10));
    for _ in 0..6 {
        drop(facts(&rest.google));
    }
    assert_eq!(count("queuedResources"), 5, "and no more once it has its target");
}

#[test]
fn a_target_of_another_zone_is_another_target() {
    let server = Server::new(|asked| {
        let node = |zone: &str, state: &str| json!({"name": format!("projects/lab/locations/{zone}/nodes/a"), "state": state});
        let nodes = [node("z1", "READY"), node("z2", "PREEMPTED")];
        let is_queue = asked.line.contains("/queuedResources");
        let page = if is_queue { json!({}) } else { json!({"nodes": nodes}) };
        Some((200, page.to_string()))
    });
    let google = google(&server.url(), &clock(), 1);
    let error = google.delete(&TargetAt::new(TargetName::from("a"), None), true).unwrap_err();
    assert_eq!(error.trouble, Trouble::User);
    assert!(error.message.contains("z1, z2"), "{error}");
    assert!(server.asked().iter().all(|asked| asked.line.starts_with("GET")), "nothing is deleted");
}

#[test]
fn another_process_adopts_what_a_lost_answer_has_made() {
    let rest = Rest::new(&[]);
    let lost = Event::LoseAnswer { call: Some(Call::Create), target: None, times: Some(1) };
    rest.sim().pull(&lost).unwrap();
    let request = RequestId("Alice:7/0".to_owned());
    assert_eq!(rest.google.create(&spec("two"), &request).unwrap_err().trouble, Trouble::Transient);
    let another = rest.another(1);
    let found = tpu_engine::provider::adopt::create(&another, &spec("two"), &request).unwrap();
    assert!(matches!(found, tpu_engine::provider::adopt::Created::Adopted(_)), "{found:?}");
    let other = RequestId("Bob:7/0".to_owned());
    let error = tpu_engine::provider::adopt::create(&another, &spec("two"), &other).unwrap_err();
    assert_eq!(error.trouble, Trouble::AlreadyExists);
}

#[test]
fn each_way_to_fail_has_its_own_words_and_its_remedy() {
    let none = CloudAuth::None;
    let ok = Server::new(|_| Some((200, "{}".to_owned())));
    let mut said: Vec<String> = Vec::new();
    let mut check = |error: ProviderError, trouble: Trouble, message: &str, remedy: &str| {
        assert_eq!(error.trouble, trouble, "{error}");
        assert!(error.message.contains(message), "{error}");
        let hint = error.hint().unwrap_or_default();
        assert!(hint.contains(remedy), "{error}\n{hint}");
        assert!(!said.contains(&error.message), "said twice: {error}");
        said.push(error.message);
    };
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    check(
        refusal(&format!("http://{closed}"), &[], none),
        Trouble::Transient,
        "nothing listens",
        "cloud_endpoint",
    );
    // A label that is too long has no address, and nobody is asked for it.
    let nowhere = format!("https://{}.invalid", "x".repeat(64));
    check(refusal(&nowhere, &[], none), Trouble::Transient, "does not resolve", "DNS");
    // Whoever speaks no TLS answers in clear text.
    let plain = Server::greeting("HTTP/1.1 400 Bad Request\r\n\r\n");
    let tls = plain.url().replace("http:", "https:");
    check(refusal(&tls, &[], none), Trouble::Transient, "TLS with", "SSL_CERT_FILE");
    let proxy = [("HTTPS_PROXY", closed.as_str())];
    check(
        refusal("https://tpu.example", &proxy, none),
        Trouble::Transient,
        "the proxy",
        "unset HTTPS_PROXY",
    );
    let refusing = Server::new(|_| Some((407, String::new())));
    let proxy = [("https_proxy", refusing.address())];
    check(
        refusal("https://tpu.example", &proxy, none),
        Trouble::Transient,
        "refused the way",
        "$https_proxy",
    );
    assert!(refusing.asked()[0].line.starts_with("CONNECT tpu.example:443"));
    check(
        refusal("http://10.0.0.1", &[], CloudAuth::Google),
        Trouble::User,
        "not encrypted",
        "cloud_auth none",
    );
    check(refusal("nonsense", &[], none), Trouble::User, "no address", "cloud_endpoint");
    check(
        refusal(&ok.url(), &[("SSL_CERT_FILE", "/nonexistent.pem")], none),
        Trouble::User,
        "No such file",
        "unset SSL_CERT_FILE",
    );
    let nobody = [("GCE_METADATA_HOST", closed.as_str()), ("PATH", "/nonexistent")];
    check(
        refusal(&ok.url(), &nobody, CloudAuth::Google),
        Trouble::Auth,
        "no credentials",
        "gcloud auth application-default login",
    );
    let says = |status: u16, word: &str, message: &str| {
        let body = json!({"error": {"code": status, "message": message, "status": word}});
        let server = Server::new(move |_| Some((status, body.to_string())));
        let token = [("GOOGLE_OAUTH_ACCESS_TOKEN", "ya29.t0psecret")];
        refusal(&server.url(), &token, CloudAuth::Google)
    };
    check(
        says(401, "UNAUTHENTICATED", "expired"),
        Trouble::Auth,
        "expired",
        "GOOGLE_OAUTH_ACCESS_TOKEN",
    );
    check(
        says(403, "PERMISSION_DENIED", "Permission 'tpu.nodes.list' denied"),
        Trouble::Permission,
        "tpu.nodes.list",
        "owner",
    );
    check(
        says(429, "RESOURCE_EXHAUSTED", "Quota limit 'X' has been exceeded. Limit: 0 in zone z."),
        Trouble::Quota,
        "Limit: 0",
        "asking again does not help",
    );
    check(
        says(429, "RESOURCE_EXHAUSTED", "There is no more capacity in the zone"),
        Trouble::NoCapacity,
        "no more capacity",
        "another zone",
    );
    let google = Google::open(tpu_gcp::google::GoogleConfig {
        project: None,
        ..config(&ok.url(), CloudAuth::None)
    });
    check(refused(&google), Trouble::User, "which project", "set-settings project");
}

fn config(endpoint: &str, auth: CloudAuth) -> tpu_gcp::google::GoogleConfig {
    tpu_gcp::google::GoogleConfig {
        endpoint: Some(endpoint.to_owned()),
        project: Some("lab".to_owned()),
        auth,
        node: serde_json::Map::new(),
        env: Env::fixed([("HOME", "/nonexistent")]),
        clock: clock(),
        random: Arc::new(tpu_system::sys::random::SeededRandom::new(1)),
        list_tries: 1,
    }
}

#[test]
fn a_token_is_kept_until_it_expires_and_replaced_when_it_is_refused() {
    let issued = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&issued);
    // The third token on is good; what was asked for with the second one is refused once.
    let server = Server::new(move |asked| {
        if asked.line.contains("/token") {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            let token = json!({"access_token": format!("token-{number}"), "expires_in": 3600});
            return Some((200, token.to_string()));
        }
        let is_bad = asked.headers.contains("token-2");
        Some(if is_bad { (401, "{}".to_owned()) } else { (200, "{}".to_owned()) })
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("application_default_credentials.json");
    let text = json!({
        "type": "authorized_user", "client_id": "id", "client_secret": "s3cret&=",
        "refresh_token": "r/1", "token_uri": format!("{}/token", server.url()),
    });
    crate::common::tmux::write_file(&file, &text.to_string());
    let env =
        Env::fixed([("HOME", "/nonexistent"), ("CLOUDSDK_CONFIG", dir.path().to_str().unwrap())]);
    let clock = clock();
    let google = with_env(&server.url(), &clock, 1, (env, CloudAuth::Google));
    for _ in 0..5 {
        drop(facts(&google));
    }
    assert_eq!(issued.load(Ordering::SeqCst), 1, "one token for all");
    let form = server.asked()[0].body.clone();
    assert!(form.contains("client_secret=s3cret%26%3D&refresh_token=r%2F1"), "{form}");
    clock.advance(std::time::Duration::from_secs(3_600));
    drop(facts(&google));
    assert_eq!(issued.load(Ordering::SeqCst), 3, "the second was refused, the third served");
    let last = server.asked().pop().unwrap();
    assert!(last.headers.contains("Bearer token-3"), "{last:?}");
}

#[test]
fn a_machine_in_the_cloud_knows_who_it_is() {
    let server = Server::new(|asked| {
        Some(match asked.line.contains("/computeMetadata/") {
            true if asked.headers.to_lowercase().contains("metadata-flavor: google") => {
                (200, json!({"access_token": "from-metadata", "expires_in": 600}).to_string())
            }
            true => (403, String::new()),
            false => (200, "{}".to_owned()),
        })
    });
    let vars = [("HOME", "/nonexistent"), ("GCE_METADATA_HOST", server.address())];
    let env = Env::fixed(vars);
    let google = with_env(&server.url(), &clock(), 1, (env, CloudAuth::Google));
    assert!(facts(&google).contains_key(EVERYWHERE));
    assert!(server.asked().pop().unwrap().headers.contains("Bearer from-metadata"));
}

/// Any JSON, with the words that a list uses here and there.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "READY",
        "PREEMPTED",
        "TERMINATED",
        "DELETING",
        "STOPPED",
        "FROZEN",
        "",
        "\u{1b}[31m",
        "projects/lab/locations/z/nodes/a",
        "projects/lab/locations/z",
        "z",
        "SUSPENDED",
        "FAILED",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        words.prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        let keys = prop::sample::select(vec![
            "nodes",
            "queuedResources",
            "unreachable",
            "nextPageToken",
            "name",
            "state",
            "health",
            "labels",
            "tpu-request",
            "schedulingConfig",
            "spot",
            "networkEndpoints",
            "symptoms",
            "acceleratorType",
            "createTime",
            "queuedResource",
            "tpu",
            "nodeSpec",
            "nodeId",
            "node",
            "multisliceParams",
            "nodeCount",
            "error",
            "zz",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..7).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

#[test]
fn whatever_a_list_says_nothing_is_deleted_that_did_not_say_so_itself() {
    let body = Arc::new(std::sync::Mutex::new((String::new(), String::new())));
    let told = Arc::clone(&body);
    let server = Server::new(move |asked| {
        let (nodes, queued) = told.lock().unwrap().clone();
        Some((200, if asked.line.contains("/queuedResources") { queued } else { nodes }))
    });
    let mut runner =
        TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let page = |kind: &'static str| {
        let node = (any_json(), any_json()).prop_map(|(state, more)| {
            let mut node = json!({"name": "projects/lab/locations/z/nodes/a", "state": state});
            if let (Value::Object(node), Value::Object(more)) = (&mut node, more) {
                node.extend(more);
            }
            node
        });
        prop_oneof![
            any_json(),
            prop::collection::vec(prop_oneof![node, any_json()], 0..4)
                .prop_map(move |nodes| json!({ kind: nodes })),
        ]
    };
    runner
        .run(&(page("nodes"), page("queuedResources")), |(nodes, queued)| {
            let text = (nodes.to_string(), queued.to_string());
            body.lock().unwrap().clone_from(&text);
            let google = google(&server.url(), &clock(), 1);
            for fact in facts(&google).into_values().flatten() {
                if fact.state.step() == TargetStep::DeleteThenCreate {
                    let proof = ["PREEMPTED", "TERMINATED", "SUSPENDED", "SUSPENDING", "FAILED"];
                    prop_assert!(proof.contains(&fact.raw_state.as_str()), "{fact:?}");
                    prop_assert!(
                        text.0.contains(&fact.raw_state) || text.1.contains(&fact.raw_state)
                    );
                }
            }
            Ok(())
        })
        .unwrap();
    assert!(server.asked().iter().all(|asked| asked.line.starts_with("GET")));
}
