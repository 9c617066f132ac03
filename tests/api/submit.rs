//! Jobs that are submitted over HTTP: as the command does it, for whom one may, and each request with a key once.

use serde_json::{Value, json};

use tpu_core::model::token::TokenRole;

use super::{Api, Said};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const JSON: &str = "Content-Type: application/json";
const YAML: &str = "Content-Type: application/yaml";

/// A place with code to run, and nothing that would begin by itself.
fn lab() -> Api {
    let api = Api::new(|_| Vec::new());
    api.env.code("alice", "staging.sh", "true\n");
    api
}

fn job(mark: &str) -> String {
    json!({"target": "local", "dir": 1, "command": ["sh", "-c", format!("echo ran >> \"$HOME/{mark}\"")]})
        .to_string()
}

fn post(api: &Api, token: &str, (query, headers): (&str, &[&str]), body: &str) -> Said {
    api.ask(token, &format!("POST /api/v1/jobs{query}"), headers, body)
}

/// How often a job has run.
fn ran(api: &Api, mark: &str) -> usize {
    std::fs::read_to_string(api.env.path(mark)).unwrap_or_default().lines().count()
}

fn waiting(api: &Api) -> usize {
    api.env.data()["queue"]["entries"].as_array().map_or(0, Vec::len)
}

#[test]
fn a_job_is_submitted_as_json_or_as_yaml_and_begins_in_its_turn() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let said = post(&api, &token, ("", &[JSON]), &job("a")).is(200).json();
    assert_eq!(said["jobs"][0]["user"], "alice");
    assert_eq!(said["started"][0]["user"], "alice", "nothing is in its way: {said}");
    wait_until("it has run", || ran(&api, "a") == 1);
    let path = format!("/api/v1/jobs/alice/{}", said["jobs"][0]["window"]);
    assert_eq!(api.get(&token, &path).is(200).json()["submitted_by"], "token alices");
    let dir = api.env.data()["users"]["alice"]["working_dir"]["1"].as_str().unwrap().to_owned();
    let yaml = format!(
        "for_user: alice\njobs:\n  one:\n    target: local\n    dir: {dir}\n    hold: true\n    command: 'true'\n  \
         two:\n    target: local\n    dir: 1\n    after: one\n    command: 'true'\n"
    );
    let said = post(&api, &token, ("", &[YAML]), &yaml).is(200).json();
    let names: Vec<&Value> =
        said["jobs"].as_array().unwrap().iter().map(|job| &job["name"]).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(said["started"], json!([]), "the first is held, and the second waits for it");
    assert_eq!(waiting(&api), 2);
    let actors: Vec<String> = api.env.journal().into_iter().map(|event| event.actor).collect();
    assert!(actors.iter().any(|actor| actor == "api token alices"), "{actors:?}");
}

/// Whoever is far away has no code copied that nobody at the machine has run.
#[test]
fn a_directory_that_nobody_has_chosen_is_refused_however_it_is_said() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let place = |name: &str| {
        std::fs::create_dir_all(api.env.path(name)).unwrap();
        api.env.path(name).to_str().unwrap().to_owned()
    };
    let (keys, exp) = (place("keys"), place("exp"));
    let from = |dir: &str| json!({"target": "local", "dir": dir, "command": "true"});
    let refused = |body: &Value| drop(post(&api, &token, ("", &[JSON]), &body.to_string()).is(409));
    refused(&from(&keys));
    refused(&from("~/keys"));
    refused(&json!({"target": "local", "dir": "{{notes}}", "notes": keys, "command": "true"}));
    refused(
        &json!({"defaults": {"dir": keys}, "jobs": {"a": {"target": "local", "command": "true"}}}),
    );
    assert_eq!((waiting(&api), api.env.jobs("alice").len()), (0, 0));
    // That something ran there as it lies is no word about what may be copied.
    let lies = json!({"target": "local", "code": "none", "dir": keys, "command": "true"});
    drop(post(&api, &token, ("", &[JSON]), &lies.to_string()).is(200));
    api.env.wait_status(1, "finished");
    refused(&from(&keys));
    drop(api.env.tpu_words(&["run", "local", "alice", "-q", "-C", &exp, "--", "true"]).exits(0));
    drop(post(&api, &token, ("", &[JSON]), &from(&exp).to_string()).is(200));
}

#[test]
fn a_request_that_is_sent_again_is_answered_as_before_and_starts_nothing() {
    let mut api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let key = ["Idempotency-Key: one", JSON];
    let first = post(&api, &token, ("", &key), &job("a")).is(200).json();
    let again = post(&api, &token, ("", &key), &job("a")).is(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["jobs"], first["jobs"]);
    // Another request with it is none that could be answered so, nor is one that says something else beside it.
    let other = post(&api, &token, ("", &key), &job("b")).is(422).json();
    assert_eq!(other["code"], "refused", "{other}");
    post(&api, &token, ("?start=now", &key), &job("a")).is(422);
    // The next server knows it as well.
    api.end();
    api.begin(|_| {});
    let next = post(&api, &token, ("", &key), &job("a")).is(200).json();
    assert_eq!(next["jobs"], first["jobs"]);
    // The same key of somebody else is another.
    let admin = api.admin();
    let body = job("c").replacen('{', "{\"for_user\":\"alice\",", 1);
    let others = post(&api, &admin, ("", &key), &body).is(200).json();
    assert_ne!(others["jobs"], first["jobs"]);
    wait_until("both have run", || ran(&api, "a") == 1 && ran(&api, "c") == 1);
    assert_eq!(ran(&api, "b"), 0);
}

#[test]
fn a_key_outlives_its_job_and_the_number_is_nobody_elses() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let held = job("a").replacen('{', "{\"hold\":true,", 1);
    let key = ["Idempotency-Key: k", JSON];
    let first = post(&api, &token, ("", &key), &held).is(200).json();
    let number = first["jobs"][0]["window"].as_u64().unwrap();
    api.ask(&token, &format!("POST /api/v1/jobs/alice/{number}/kill"), &[], "").is(200);
    let again = post(&api, &token, ("", &key), &held).is(200).json();
    assert_eq!(again["jobs"][0]["window"], number);
    assert_eq!(waiting(&api), 0, "what somebody has taken out does not come back");
    let new = post(&api, &token, ("", &[JSON]), &held).is(200).json();
    assert_ne!(new["jobs"][0]["window"], number);
}

#[test]
fn many_who_send_one_request_at_the_same_time_submit_it_once() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let held = job("a").replacen('{', "{\"hold\":true,", 1);
    let said: Vec<Value> = std::thread::scope(|scope| {
        let send = || {
            let key = ["Idempotency-Key: same", JSON];
            post(&api, &token, ("", &key), &held).is(200).json()["jobs"].clone()
        };
        let threads: Vec<_> = (0..12).map(|_| scope.spawn(send)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(said.iter().all(|jobs| *jobs == said[0]), "{said:?}");
    assert_eq!(waiting(&api), 1);
    let copies = api.env.data().to_string().matches("\"copy\"").count();
    assert!(copies <= 1, "copies of those that came too late are gone");
}

#[test]
fn what_is_to_begin_now_begins_or_leaves_nothing() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let key = ["Idempotency-Key: now", JSON];
    let held = job("a").replacen('{', "{\"hold\":true,", 1);
    let said = post(&api, &token, ("?start=now", &key), &held).is(409).json();
    assert!(said["detail"].as_str().unwrap().contains("cannot begin at once"), "{said}");
    assert_eq!(waiting(&api), 0);
    // Nothing has come of it: the key may be used again.
    let said = post(&api, &token, ("?start=now", &key), &job("a")).is(200).json();
    assert_eq!(said["started"], json!([{"user": "alice", "window": said["jobs"][0]["window"]}]));
    wait_until("it has run", || ran(&api, "a") == 1);
    let two =
        "target: local\ndir: 1\ncommand: 'true'\n---\ntarget: local\ndir: 1\ncommand: 'true'\n";
    post(&api, &token, ("?start=now", &[YAML]), two).is(400);
    let group = job("a").replacen('{', "{\"array\":\"0-3\",", 1);
    post(&api, &token, ("?start=now", &[JSON]), &group).is(400);
    assert_eq!(waiting(&api), 0);
}

#[test]
fn nobody_else_begins_what_is_to_begin_now_or_not_at_all() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    // As it stands while a server looks whether it can begin: kept by that process.
    let held = job("a").replacen('{', "{\"hold\":true,", 1);
    let key = ["Idempotency-Key: k", JSON];
    let number = post(&api, &token, ("", &key), &held).is(200).json()["jobs"][0]["window"].clone();
    let mut data = api.env.data();
    let entry = &mut data["queue"]["entries"][0];
    entry["held"] = Value::Null;
    let owner = tpu_ops::base::lease::me(&api.ctx.env);
    entry["keeper"] = json!({"owner": owner, "seen": api.ctx.clock.now().to_rfc3339()});
    api.env.write_data(&data);
    drop(api.env.tpu("queue run").exits(0));
    assert_eq!((waiting(&api), ran(&api, "a")), (1, 0), "{number}: it is that process's alone");
    let again = post(&api, &token, ("", &key), &held).is(409);
    assert_eq!(again.header("retry-after"), Some("1"), "what becomes of it is not known yet");
}

#[test]
fn what_a_server_that_died_was_to_begin_at_once_has_come_to_nothing_and_may_be_sent_again() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let held = job("a").replacen('{', "{\"hold\":true,", 1);
    for (key, is_cleared) in [("at-once", false), ("later", true)] {
        let key = [&*format!("Idempotency-Key: {key}"), JSON];
        let first = post(&api, &token, ("", &key), &held).is(200).json()["jobs"][0].clone();
        // As a server leaves it that is killed between the two: kept by a process that is dead.
        let seen = api.ctx.clock.now().plus_seconds(if is_cleared { -1_000 } else { 0 });
        let mut data = api.env.data();
        let entries = data["queue"]["entries"].as_array_mut().unwrap();
        let entry = entries.iter_mut().find(|entry| entry["number"] == first["window"]).unwrap();
        entry["held"] = Value::Null;
        let owner = tpu_ops::base::lease::nobody(&api.ctx.env);
        entry["keeper"] = json!({"owner": owner, "seen": seen.to_rfc3339()});
        api.env.write_data(&data);
        if is_cleared {
            // Whoever looks at the queue after a while clears it away.
            drop(api.env.tpu("queue run --once").exits(0));
        }
        let again = post(&api, &token, ("", &key), &held).is(200);
        assert_eq!(again.header("idempotency-replayed"), None, "nothing had come of it");
        let again = again.json()["jobs"][0].clone();
        let is_left = |event: &tpu_system::store::Event| {
            event.kind == "withdrawn" && json!(event.job) == first["window"]
        };
        assert!(api.env.journal().iter().any(is_left), "the journal says what became of the first");
        let data = api.env.data();
        let entries = data["queue"]["entries"].as_array().unwrap();
        assert!(entries.iter().any(|entry| entry["number"] == again["window"]), "it waits");
        assert!(entries.iter().all(|entry| entry["number"] != first["window"]));
    }
    assert_eq!(ran(&api, "a"), 0);
}

#[test]
fn a_key_is_known_for_a_day() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let held = job("a").replacen('{', "{\"hold\":true,", 1);
    let key = ["Idempotency-Key: k", JSON];
    let first = post(&api, &token, ("", &key), &held).is(200).json();
    let mut data = api.env.data();
    data["queue"]["answered"][0]["at"] = json!("2026-01-01T00:00:00Z");
    api.env.write_data(&data);
    let second = post(&api, &token, ("", &key), &held).is(200).json();
    assert_ne!(first["jobs"], second["jobs"]);
    assert_eq!(api.env.data()["queue"]["answered"].as_array().unwrap().len(), 1);
}

#[test]
fn who_may_not_use_targets_has_none_made() {
    let api = lab();
    let before = api.env.data_bytes();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let body = json!({
        "target": {"accelerator": "v6e-8", "zone": "us-east5-b"}, "name": "mine", "dir": 1,
        "command": "true",
    });
    for query in ["", "?dry_run=true", "?start=now"] {
        let said = post(&api, &token, (query, &[JSON]), &body.to_string()).is(403).json();
        assert!(said["hint"].as_str().unwrap().contains("--targets"), "{said}");
    }
    assert_eq!(api.env.data_bytes(), before);
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_nothing_is_submitted() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    write_file(&api.env.path("secret"), "x");
    let before = api.env.data_bytes();
    for (kind, body, says) in [
        (JSON, "", "line 1, column 0"),
        (JSON, "{", "line 1"),
        (JSON, "[]", "body"),
        (JSON, "{\"target\": \"nowhere\", \"dir\": 1, \"command\": \"true\"}", "nowhere"),
        (JSON, "{\"target\": \"local\", \"dir\": 9, \"command\": \"true\"}", "9"),
        (
            JSON,
            "{\"target\": \"local\", \"dir\": \"/etc\", \"command\": \"true\"}",
            "/etc is in no slot",
        ),
        (JSON, "{\"target\": \"local\", \"command\": \"true\"}", "where its code is"),
        (JSON, "{\"target\": \"local\", \"code\": \".\", \"command\": \"true\"}", "code"),
        (JSON, "{\"target\": \"local\", \"dir\": 1, \"comand\": \"true\"}", "comand"),
        (
            JSON,
            "{\"target\": \"local\", \"dir\": 1, \"name\": \"12\", \"command\": \"true\"}",
            "12",
        ),
        (JSON, "{\"for_user\": [], \"target\": \"local\"}", "for_user"),
        (YAML, "target: local\ndir: 1\ncommand: 'true'\nqueue: nowhere\n", "nowhere"),
        (
            YAML,
            "for_user: alice\ntarget: local\n---\nfor_user: bob\ntarget: local\n",
            "one request",
        ),
        (YAML, "target: [\n", "body"),
        (YAML, "", "no job"),
    ] {
        let said = post(&api, &token, ("", &[kind]), body);
        assert!((400..500).contains(&said.status), "{body}: {said:?}");
        let detail = said.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(says), "{body}: {detail}");
    }
    post(&api, &token, ("", &["Content-Type: text/plain"]), "x").is(415);
    post(&api, &token, ("?start=soon", &[JSON]), &job("a")).is(400);
    for key in ["Idempotency-Key: ", "Idempotency-Key: a b", "Idempotency-Key: \u{e9}"] {
        post(&api, &token, ("", &[JSON, key]), &job("a")).is(400);
    }
    let long = format!("Idempotency-Key: {}", "k".repeat(256));
    post(&api, &token, ("", &[JSON, &long]), &job("a")).is(400);
    assert_eq!(api.env.data_bytes(), before);
    let would = post(&api, &token, ("?dry_run=true", &[JSON]), &job("a")).is(200).json();
    assert_eq!(would["would"][0]["user"], "alice");
    assert_eq!(api.env.data_bytes(), before, "a trial changes nothing");
}

#[test]
fn whose_jobs_they_are_is_said_where_a_token_is_about_several() {
    let api = lab();
    let before = api.env.data_bytes();
    let both = api.token("both", TokenRole::Operator, &["alice", "bob"]);
    let for_alice = job("a").replacen('{', "{\"for_user\":\"alice\",", 1);
    post(&api, &both, ("", &[JSON]), &job("a")).is(400);
    let admin = api.admin();
    post(&api, &admin, ("", &[JSON]), &for_alice.replace("alice", "carol")).is(404);
    assert_eq!(api.env.data_bytes(), before);
    post(&api, &both, ("", &[JSON]), &for_alice).is(200);
}

#[test]
fn the_keys_of_one_sender_have_an_end_and_take_nobody_elses() {
    let api = lab();
    let (alices, bobs) = (
        api.token("alices", TokenRole::Operator, &["alice"]),
        api.token("bobs", TokenRole::Operator, &["bob"]),
    );
    let once = |token: &str, key: &str| {
        let key = format!("Idempotency-Key: {key}");
        post(
            &api,
            token,
            ("", &[JSON, &key]),
            "{\"target\": \"local\", \"dir\": 1, \"hold\": true, \"command\": \"true\"}",
        )
    };
    api.env.code("bob", "staging.sh", "true\n");
    once(&alices, "first").is(200);
    // As many as somebody has sent in a day.
    let mut data = api.env.data();
    let answered = data["queue"]["answered"].as_array_mut().unwrap();
    for number in 1..1_000 {
        let mut another = answered[0].clone();
        another["key"] = json!(format!("key-{number}"));
        answered.push(another);
    }
    api.env.write_data(&data);
    let said = once(&alices, "one-more").is(429);
    assert!(said.header("retry-after").is_some() && waiting(&api) == 1, "{said:?}");
    assert_eq!(once(&alices, "first").is(200).header("idempotency-replayed"), Some("true"));
    once(&bobs, "one-more").is(200);
    // A day later they are forgotten.
    for request in data["queue"]["answered"].as_array_mut().unwrap() {
        request["at"] = json!("2020-01-01T00:00:00Z");
    }
    api.env.write_data(&data);
    once(&alices, "one-more").is(200);
    assert_eq!(api.env.data()["queue"]["answered"].as_array().unwrap().len(), 1);
}

#[test]
fn what_a_job_was_started_with_starts_another_like_it() {
    let api = lab();
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let file = json!({
        "target": "local", "dir": 1, "name": "one", "command": ["sh", "-c", "echo \"$MARK $*\" >> \"$HOME/a\"", "it's", "{{\"{{\"}}"],
        "configs": {"config.lr": "0.01"}, "env": {"MARK": "here"}, "rules": "preempted:resume", "tag": "t", "priority": 70,
        "timeout": "1h", "hold": true,
    });
    let first = post(&api, &token, ("", &[JSON]), &file.to_string()).is(200).json();
    let number = first["jobs"][0]["window"].as_u64().unwrap();
    let asked = format!("GET /api/v1/jobs/alice/{number}/jobfile");
    // While it waits it says how; what has begun waits no more. Its name is free once it has ended.
    let waits = api.ask(&token, &asked, &[], "").is(200).json();
    assert_eq!(waits["job_file"]["priority"], "70", "{waits}");
    api.ask(&token, &format!("POST /api/v1/jobs/alice/{number}/unhold"), &[], "").is(200);
    wait_until("it has run", || ran(&api, "a") == 1);
    api.env.wait_status(number, "finished");
    let said = api.ask(&token, &asked, &[], "").is(200).json();
    let again = &said["job_file"];
    assert_eq!(
        (&said["left_out"], &again["name"], &again["priority"]),
        (&json!([]), &json!("one"), &Value::Null)
    );
    assert_eq!((&again["env"]["MARK"], &again["tag"]), (&json!("here"), &json!("t")), "{said}");
    post(&api, &token, ("", &[JSON]), &again.to_string()).is(200);
    wait_until("the other has run", || ran(&api, "a") == 2);
    let text = std::fs::read_to_string(api.env.path("a")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "here {{ --config.lr=0.01", "{text}");
    assert_eq!(lines[0], lines[1], "the same command with the same arguments and environment");
    let jobs = api.env.jobs("alice");
    let of = |job: &Value| [job["rules"].clone(), job["tags"].clone()];
    assert_eq!(of(&jobs[0]), of(&jobs[1]), "{jobs:?}");

    // Without a tag it is told by its name; short names are sent long, whoever else's they are.
    drop(api.env.tpu("-a rate config.training.rate alice").exits(0));
    let file = json!({"target": "local", "dir": 1, "name": "two", "command": ["true"], "configs": {"rate": "1"}, "hold": true});
    let second = post(&api, &token, ("", &[JSON]), &file.to_string()).is(200).json();
    let number = second["jobs"][0]["window"].as_u64().unwrap();
    let line = format!("GET /api/v1/jobs/alice/{number}/jobfile");
    let said = api.ask(&token, &line, &[], "").is(200).json();
    assert_eq!(said["job_file"]["configs"], json!({"config.training.rate": "1"}), "{said}");
    assert_eq!(said["job_file"]["tag"], "two", "{said}");

    // What is in its environment is for those who act for its user.
    let viewer = api.token("looks", TokenRole::Viewer, &[]);
    api.ask(&viewer, &asked, &[], "").is(403);
    api.ask(&token, "GET /api/v1/jobs/alice/99/jobfile", &[], "").is(404);
}
