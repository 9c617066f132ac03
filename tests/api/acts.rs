//! What is done to a job: as the command does it, by who may, once, and never half.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::rules::Rules;
use tpu_core::model::token::TokenRole;
use tpu_ops::waiting::rules;

use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::Api;

#[test]
fn a_running_job_is_killed_and_comes_back() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let script = "echo begun > \"$PWD/begun\"; exec sleep 1000";
    let number = api.env.start(script, &["run", "local"]);
    let path = format!("/api/v1/jobs/alice/{number}");
    let post = |verb: &str| api.ask(&token, &format!("POST {path}/{verb}"), &[], "");
    let would = post("kill?dry_run=true").is(200).json();
    assert_eq!(would["would"], json!([{"user": "alice", "window": number}]));
    assert_ne!(api.env.job("alice", number)["status"], "killed");
    let killed = post("kill").is(200).json();
    assert_eq!(killed["killed"][0]["window"], json!(number));
    // The next one who asks knows of it.
    assert_eq!(api.get(&token, &path).is(200).json()["job"]["status"], "killed");
    // It was stopped, and has not failed: whoever wants it back all the same says so, and passes over nothing else.
    post("rerun").is(409);
    let again = post("rerun?however_ended=true").is(200).json();
    assert_eq!(again["launched"]["parent"], json!(number));
    let twice = post("rerun?force=true").is(409).json();
    assert_eq!((&twice["code"], &twice["exit"]), (&json!("refused"), &json!(4)));
    assert_eq!(twice["now"]["window"], json!(number), "it says how the job stands");
    let child = again["launched"]["window"].as_u64().unwrap();
    api.ask(&token, &format!("POST /api/v1/jobs/alice/{child}/kill"), &[], "").is(200);
    let actors: Vec<String> = api.env.journal().into_iter().map(|event| event.actor).collect();
    assert!(actors.iter().any(|actor| actor == "api token alices"), "{actors:?}");
}

#[test]
fn what_waits_is_held_let_go_made_urgent_and_taken_out() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    api.env.code("alice", "staging.sh", "true\n");
    let id = api.env.tpu("submit local --hold --user alice --json -- true").exits(0).json();
    let number = id["jobs"][0]["window"].as_u64().unwrap();
    let path = format!("/api/v1/jobs/alice/{number}");
    let ask =
        |line: &str, body: &str| api.ask(&token, line, &["Content-Type: application/json"], body);
    let shown = || api.get(&token, &path).is(200).json()["job"].clone();
    let patched = ask(&format!("PATCH {path}"), "{\"priority\": 80}").is(200).json();
    assert_eq!(patched["job"]["priority"], 80);
    assert_eq!(shown()["held"], true);
    for body in [
        "{\"priority\": 101}",
        "{\"urgent\": 1}",
        "{\"priority\": 1, \"tags\": \"x\"}",
        "{",
        "[]",
        "{\"rule\": \"oom\"}",
    ] {
        ask(&format!("PATCH {path}"), body).is(400);
        assert_eq!(shown()["priority"], 80, "{body}");
    }
    api.ask(&token, &format!("PATCH {path}"), &["Content-Type: text/plain"], "x").is(415);
    let old = ["If-Match: \"1\"", "Content-Type: application/json"];
    api.ask(&token, &format!("PATCH {path}"), &old, "{\"priority\": 1}").is(412);
    assert_eq!(shown()["priority"], 80);
    // Whoever lets it go lets it begin, where nothing else keeps it.
    ask("POST /api/v1/queues/default/pause", "").is(403);
    let admin = api.admin();
    let paused = api.ask(&admin, "POST /api/v1/queues/default/pause", &[], "").is(200).json();
    assert_eq!(paused["queue"]["state"], "paused");
    ask(&format!("POST {path}/unhold"), "").is(200);
    assert_eq!(shown()["held"], false);
    // What is only tried out changes nothing, and is refused where the act would be.
    ask(&format!("POST {path}/hold?dry_run=true"), "").is(200);
    assert_eq!(shown()["held"], false);
    ask(&format!("POST {path}/hold"), "").is(200);
    let explained = api.get(&token, &format!("{path}/explain")).is(200).json();
    assert_eq!(explained["job"]["held"], true, "what waits is explained, too");
    ask(&format!("POST {path}/kill?dry_run=true"), "").is(200);
    assert_eq!(shown()["held"], true);
    let out = ask(&format!("POST {path}/kill"), "").is(200).json();
    assert_eq!(out["jobs"], json!([{"user": "alice", "window": number}]));
    api.get(&token, &path).is(404);
}

#[test]
fn tag_and_rules_are_set_together_or_not_at_all_of_what_waits_as_well() {
    let api = Api::new(|env| vec![env.record("alice", 1, "finished")]);
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    api.env.code("alice", "staging.sh", "true\n");
    let id = api.env.tpu("submit local --hold --user alice --json -- true").exits(0).json();
    let number = id["jobs"][0]["window"].as_u64().unwrap();
    let patch = |number: u64, body: &str| {
        let line = format!("PATCH /api/v1/jobs/alice/{number}");
        api.ask(&token, &line, &["Content-Type: application/json"], body)
    };
    for number in [1, number] {
        let said = patch(number, "{\"tags\": \"both\", \"rule\": \"oom:resume\"}").is(200).json();
        assert_eq!(said["job"]["tags"], "both", "{said}");
        patch(number, "{\"tags\": \"half\", \"rule\": \"no rule\"}").is(400);
        let said = api.get(&token, &format!("/api/v1/jobs/alice/{number}")).is(200).json();
        assert_eq!(said["job"]["tags"], "both", "{said}");
    }
    let data: serde_json::Value = serde_json::from_slice(&api.env.data_bytes()).unwrap();
    assert!(data["queue"].to_string().contains("oom:resume"), "{}", data["queue"]);
    // What is so now is said where something stands in the way.
    let said = patch(1, "{\"priority\": 3}").is(409).json();
    assert_eq!(said["now"]["status"], "finished", "{said}");
    let stale = ["If-Match: \"1\"", "Content-Type: application/json"];
    let said = api.ask(&token, "PATCH /api/v1/jobs/alice/1", &stale, "{\"tags\": \"x\"}").is(412);
    assert_eq!(said.json()["now"]["tags"], "both");
}

/// What begins was planned before: what is said of it until then is said of what begins.
#[test]
fn what_is_said_of_a_job_that_is_about_to_begin_is_not_forgotten() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    api.env.code("alice", "staging.sh", "true\n");
    let answer = api.env.tpu("submit local --hold --user alice --json -- true").exits(0).json();
    let number = answer["jobs"][0]["window"].as_u64().unwrap();
    let id = JobId::new("alice".into(), JobNumber(u32::try_from(number).unwrap()));
    let shown =
        || api.get(&token, &format!("/api/v1/jobs/alice/{number}")).is(200).json()["job"].clone();
    let unhold = format!("unhold {number} alice");
    let mut begins = api.env.start_at_points(&unhold, "launch-planned=sleep(2000)");
    let mut said = 0;
    let rules = |said: i32| Rules::parse(if said % 2 == 0 { "rerun" } else { "resume" }).unwrap();
    while shown()["queue"].is_string() {
        // The last of it long before it begins.
        if said == 100 {
            continue;
        }
        said += 1;
        rules::change(&api.ctx, &id, Some(&said.to_string()), Some(&rules(said))).unwrap();
    }
    assert!(begins.wait().unwrap().success());
    let begun = api.env.job("alice", number);
    assert_eq!(begun["job_tags"], json!(said.to_string()));
    for (event, action) in rules(said).iter() {
        assert_eq!(begun["rules"][event.as_str()], action.as_str());
    }
}

#[test]
fn who_may_not_use_targets_sets_no_rule_that_takes_one_down() {
    let api = Api::new(|env| vec![env.record("alice", 1, "finished")]);
    api.env.code("alice", "staging.sh", "true\n");
    let without = api.token("alices", TokenRole::Operator, &["alice"]);
    let with = api.with_targets("maker");
    let ask = |token: &str, line: &str, body: &str| {
        api.ask(token, line, &["Content-Type: application/json"], body)
    };
    let change = "PATCH /api/v1/jobs/alice/1";
    for rule in ["reapply", "grpc:reapply", "lost:restart"] {
        let body = json!({"rule": rule}).to_string();
        ask(&without, change, &body).is(403);
        ask(&with, change, &body).is(200);
        let job =
            json!({"target": "local", "dir": 1, "hold": true, "command": "true", "rules": rule});
        ask(&without, "POST /api/v1/jobs", &job.to_string()).is(403);
        ask(&with, "POST /api/v1/jobs", &job.to_string()).is(200);
    }
    // One that was preempted is gone: nobody loses it.
    for rule in ["pre", "pass", "resume", "preempted:reapply"] {
        ask(&without, change, &json!({"rule": rule}).to_string()).is(200);
    }
}

#[test]
fn what_has_no_version_cannot_be_insisted_on() {
    let api = Api::new(|_| Vec::new());
    let admin = api.admin();
    let before = api.env.data_bytes();
    for line in ["POST /api/v1/queues/default/pause", "PUT /cloudmesh/queue/default/stop"] {
        let said = api.ask(&admin, line, &["If-Match: \"1\""], "").is(400).json();
        assert!(said["detail"].as_str().unwrap().contains("If-Match"), "{said}");
    }
    assert_eq!(api.env.data_bytes(), before);
}

#[test]
fn of_many_who_insist_on_what_they_have_read_one_changes_it() {
    let api = Api::new(|env| vec![env.record("alice", 1, "finished")]);
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let path = "/api/v1/jobs/alice/1";
    for round in 0..3 {
        let read = api.get(&token, path).is(200).header("etag").unwrap().to_owned();
        let mut statuses: Vec<u16> = std::thread::scope(|scope| {
            let change = |number: usize| {
                let insists = format!("If-Match: {read}");
                let headers = [insists.as_str(), "Content-Type: application/json"];
                let body = json!({"tags": format!("{round}-{number}")}).to_string();
                api.ask(&token, &format!("PATCH {path}"), &headers, &body).status
            };
            let threads: Vec<_> =
                (0..12).map(|number| scope.spawn(move || change(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        statuses.sort_unstable();
        assert_eq!(statuses[0], 200, "{statuses:?}");
        assert!(statuses[1..].iter().all(|status| *status == 412), "{statuses:?}");
    }
    let tags = api.env.journal().iter().filter(|event| event.kind == "tag").count();
    assert_eq!(tags, 3, "what was refused was not done");
}

#[test]
fn a_trial_is_refused_where_the_act_would_be() {
    let api = Api::new(|env| vec![env.record("alice", 1, "finished")]);
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let before = api.env.data_bytes();
    for verb in ["hold", "unhold", "resume", "rerun"] {
        let ask = |query: &str| {
            api.ask(&token, &format!("POST /api/v1/jobs/alice/1/{verb}{query}"), &[], "")
        };
        let (act, trial) = (ask(""), ask("?dry_run=true"));
        assert_eq!(act.status, trial.status, "{verb}: {act:?} {trial:?}");
        assert!(matches!(act.status, 404 | 409), "{verb}: {act:?}");
    }
    assert_eq!(api.env.data_bytes(), before);
}

/// A job whose code is copied; its window comes before that.
fn begun(api: &Api) -> u64 {
    let number = api.env.start("exec sleep 1000", &["run", "local"]);
    let copy = || api.env.job("alice", number)["stage_dir"].as_str().map(PathBuf::from);
    wait_until("its code is copied", || copy().is_some_and(|copy| copy.is_dir()));
    number
}

/// Within the first moments of a job its code is not copied yet; of one that runs it was.
#[test]
fn who_pauses_a_job_without_a_copy_of_its_code_is_told_whether_there_will_be_one() {
    let api = Api::new(|env| {
        let with = |window, status| {
            let log = env.tmux().dir().join(format!("log-{window}"));
            fs::create_dir_all(log.join("checkpoint_100")).unwrap();
            write_file(&log.join("checkpoint_100/weights"), "100");
            let mut record = env.record("alice", window, status);
            (record["log_dir"], record["stage_dir"]) =
                (json!(log), json!(env.tmux().dir().join("none")));
            record
        };
        vec![with(1, "starting"), with(2, "running")]
    });
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    for (window, status, detail) in [(1, 409, "no copy of its code yet"), (2, 404, "is gone")] {
        let path = format!("POST /api/v1/jobs/alice/{window}/pause?dry_run=true");
        let said = api.ask(&token, &path, &[], "").is(status).json();
        assert!(said["detail"].as_str().unwrap().contains(detail), "{said}");
    }
}

#[test]
fn a_paused_job_is_stopped_and_goes_on_when_it_is_let_go() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let number = begun(&api);
    let post = |number: u64, verb: &str| {
        api.ask(&token, &format!("POST /api/v1/jobs/alice/{number}/{verb}"), &[], "")
    };
    let would = post(number, "pause?dry_run=true").is(200).json();
    assert_eq!(would["would"], json!([{"user": "alice", "window": number}]));
    assert_ne!(api.env.job("alice", number)["status"], "killed");
    let paused = post(number, "pause").is(200).json();
    assert_eq!(api.env.job("alice", number)["status"], "killed");
    let waits = paused["jobs"][0]["window"].as_u64().unwrap();
    let shown = api.get(&token, &format!("/api/v1/jobs/alice/{waits}")).is(200).json();
    assert_eq!(shown["job"]["held"], true, "{shown}");
    for query in ["", "?dry_run=true"] {
        let twice = post(number, &format!("pause{query}")).is(409).json();
        assert_eq!(twice["now"]["window"], json!(number), "{twice}");
    }
    let begun = post(waits, "unhold").is(200).json();
    assert_eq!(begun["started"], json!([{"user": "alice", "window": waits}]), "{begun}");
    post(waits, "kill").is(200);
}

#[test]
fn what_has_ended_is_cleaned_away_and_what_lives_stays() {
    let api = Api::new(|_| Vec::new());
    let token = api.token("alices", TokenRole::Operator, &["alice"]);
    let number = api.env.start("exec sleep 1000", &["run", "local"]);
    let path = format!("/api/v1/jobs/alice/{number}");
    let post = |verb: &str| api.ask(&token, &format!("POST {path}/{verb}"), &[], "");
    for query in ["", "?dry_run=true"] {
        let said = post(&format!("clean{query}")).is(409).json();
        assert_eq!(said["now"]["window"], json!(number), "{said}");
    }
    assert!(api.env.has_window("alice", number));
    post("kill").is(200);
    let would = post("clean?dry_run=true").is(200).json();
    assert_eq!(would["would"]["windows"], json!([number]));
    api.get(&token, &path).is(200);
    let done = post("clean").is(200).json();
    assert_eq!(done["archived"], json!([{"user": "alice", "window": number}]));
    api.get(&token, &path).is(404);
    post("clean").is(404);
}
