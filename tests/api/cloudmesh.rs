//! Cloudmesh's routes: with its methods and parameters, as its commands do it here.

use serde_json::{Value, json};

use tpu_core::model::token::TokenRole;

use super::Api;
use crate::common::wait::wait_until;

fn lab() -> Api {
    let api = Api::new(|_| Vec::new());
    api.env.code("alice", "staging.sh", "true\n");
    api
}

/// Names of jobs in lists of an answer.
fn names(said: &Value) -> Vec<String> {
    let lists = ["jobs", "waiting"].iter().flat_map(|list| said[list].as_array().unwrap());
    let mut names: Vec<String> =
        lists.map(|job| job["name"].as_str().unwrap_or_default().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_queue_is_made_filled_run_and_removed() {
    let api = lab();
    let (admin, viewer) = (api.admin(), api.token("viewer", TokenRole::Viewer, &[]));
    let alices = api.token("alices", TokenRole::Operator, &["alice"]);
    let ask = |token: &str, line: &str| api.ask(token, line, &[], "");
    let hello = ask(&viewer, "GET /cloudmesh/").is(200).json();
    assert!(hello["message"].as_str().unwrap().contains("/docs"));
    assert_eq!(ask(&viewer, "GET /redoc").is(308).header("location"), Some("/docs"));
    ask(&alices, "POST /cloudmesh/queue/?name=exp").is(403);
    ask(&admin, "POST /cloudmesh/queue/?name=exp").is(200);
    let queues = ask(&viewer, "GET /cloudmesh/queue/").is(200).json();
    assert_eq!(queues["queues"], json!(["default", "exp"]));
    let added = "POST /cloudmesh/queue/exp?name=a[1-3]&host=localhost&output=out.txt&command=";
    ask(&viewer, &format!("{added}true")).is(403);
    let said = ask(&alices, &format!("{added}echo%20ran%20%3E%3E%20%22%24HOME%2Fran%22")).is(200);
    assert!(said.body.contains("a1"), "{said:?}");
    let lacks = ask(&alices, "POST /cloudmesh/queue/exp?name=a4").is(400).body;
    assert!(lacks.contains("command is not said"), "{lacks}");
    assert_eq!(names(&ask(&viewer, "GET /cloudmesh/queue/exp").is(200).json()), ["a1", "a2", "a3"]);
    assert_eq!(names(&ask(&viewer, "GET /cloudmesh/queue/default").is(200).json()), [""; 0]);
    ask(&viewer, "GET /cloudmesh/queue/nowhere").is(404);
    let table = ask(&viewer, "GET /cloudmesh/queue/exp/info").is(200).body;
    assert!(table.contains("JOBNAME") && table.contains("a2"), "{table}");
    let one = ask(&viewer, "GET /cloudmesh/queue/exp/job/a2").is(200).json();
    assert_eq!(
        (names(&one), &one["waiting"][0]["status"]),
        (vec!["a2".to_owned()], &json!("ready"))
    );
    ask(&viewer, "GET /cloudmesh/queue/exp/job/a").is(404);
    let said = ask(&alices, "DELETE /cloudmesh/queue/exp/job/a3?name=a3").is(200).body;
    assert!(said.contains("is removed"), "{said}");
    // Two users are there: whose jobs begin has to be said.
    ask(&admin, "PUT /cloudmesh/queue/exp/run_fifo?max_parallel=1").is(400);
    let run = "PUT /cloudmesh/queue/exp/run_fifo?max_parallel=1&timeout=10&for_user=alice";
    let said = ask(&admin, run).is(200).json();
    assert!(said["result"].as_str().unwrap().contains("exp"), "{said}");
    let ran = || std::fs::read_to_string(api.env.path("ran")).unwrap_or_default().lines().count();
    wait_until("both have run", || {
        api.env.tpu("queue run").exits(0);
        ran() == 2
    });
    let table = ask(&viewer, "PUT /cloudmesh/queue/exp/refresh").is(200).body;
    assert!(table.contains("finished") && !table.contains('\x1b'), "{table:?}");
    assert!(ask(&viewer, "PUT /cloudmesh/queue/ran").is(200).body.contains("exp: Running"));
    ask(&admin, "PUT /cloudmesh/queue/exp/stop?for_user=alice").is(200);
    assert!(ask(&viewer, "PUT /cloudmesh/queue/ran").is(200).body.contains("exp: Not Running"));
    assert!(ask(&viewer, "GET /cloudmesh/queue/ran").is(200).body.contains("exp: Not Running"));
    ask(&admin, "DELETE /cloudmesh/queue/exp").is(200);
    assert_eq!(ask(&viewer, "GET /cloudmesh/queue").is(200).json()["queues"], json!(["default"]));
    ask(&admin, "DELETE /cloudmesh/queue/default").is(409);
    let actors: Vec<String> = api.env.journal().into_iter().map(|event| event.actor).collect();
    assert!(actors.iter().any(|actor| actor == "api token alices"), "{actors:?}");
}

#[test]
fn what_only_looks_changes_nothing_and_says_the_right_call() {
    let api = lab();
    let admin = api.admin();
    let before = api.env.data_bytes();
    for (path, right) in [
        ("/cloudmesh/queue/default/run_fifo", "PUT"),
        ("/cloudmesh/queue/default/stop", "PUT"),
        ("/cloudmesh/queue/default/reset", "PUT"),
        ("/cloudmesh/cluster/lab/id/j1/deactivate", "PUT"),
        ("/api/v1/jobs/alice/1/kill", "POST"),
    ] {
        let said = api.get(&admin, path).is(405);
        assert_eq!(said.header("allow"), Some(right), "{path}");
        assert!(
            said.json()["hint"].as_str().unwrap().contains(&format!("{right} {path}")),
            "{said:?}"
        );
    }
    let query = "name=x&command=true";
    api.raw(&format!("POST /cloudmesh/queue/default?{query}"), &[], "").is(401);
    api.ask(&admin, &format!("POST /cloudmesh/queue/default?{query}&nmae=x"), &[], "").is(400);
    let many = "POST /cloudmesh/queue/default?for_user=alice&name=a[1-1001]&command=x";
    api.ask(&admin, many, &[], "").is(400);
    // What looks like an option is a name, and no good one.
    api.ask(&admin, "POST /cloudmesh/queue/default?for_user=alice&name=--help&command=x", &[], "")
        .is(409);
    assert_eq!(api.env.data_bytes(), before);
}

#[test]
fn clusters_are_pools_of_hosts() {
    let api = lab();
    let admin = api.admin();
    let bobs = api.token("bobs", TokenRole::Operator, &["bob"]);
    let ask = |token: &str, line: &str| api.ask(token, line, &[], "");
    ask(&admin, "POST /cloudmesh/cluster/?name=lab").is(200);
    ask(&bobs, "POST /cloudmesh/cluster/lab?id=j1&ip=127.0.0.9").is(403);
    drop(
        api.env
            .tpu("hosts add j[1-2] --address 127.0.0.9,127.0.0.8 --pool lab --no-probe")
            .exits(0),
    );
    let pools = ask(&bobs, "GET /cloudmesh/cluster").is(200).json();
    assert!(pools.to_string().contains("lab"), "{pools}");
    let hosts = ask(&bobs, "GET /cloudmesh/cluster/lab").is(200).json();
    assert!(hosts.to_string().contains("j2"), "{hosts}");
    assert!(ask(&bobs, "GET /cloudmesh/cluster/lab/info").is(200).body.contains("j1"));
    ask(&bobs, "GET /cloudmesh/cluster/nowhere").is(404);
    // What stands elsewhere is not what is meant, nor what is only called as a cluster is.
    drop(
        api.env
            .tpu("hosts add other --address 127.0.0.7 --pool else --tag odd --no-probe")
            .exits(0),
    );
    let before = api.env.data_bytes();
    for line in [
        "DELETE /cloudmesh/cluster/else/id/j1",
        "DELETE /cloudmesh/cluster/nowhere/id/j1",
        "PUT /cloudmesh/cluster/lab/id/other/deactivate",
        "PUT /cloudmesh/cluster/lab/id/j1,other/deactivate",
        "PUT /cloudmesh/cluster/else/id/j1/set?key=max_jobs_allowed&value=3",
        "DELETE /cloudmesh/cluster/odd",
        "DELETE /cloudmesh/cluster/j1",
        "DELETE /cloudmesh/cluster/local",
    ] {
        ask(&admin, line).is(404);
        assert_eq!(api.env.data_bytes(), before, "{line}");
    }
    ask(&bobs, "GET /cloudmesh/cluster/lab/id/other").is(404);
    ask(&admin, "PUT /cloudmesh/cluster/lab/id/j1/deactivate").is(200);
    let host =
        |name: &str| ask(&bobs, &format!("GET /cloudmesh/cluster/lab/id/{name}")).is(200).json();
    assert!(host("j1").to_string().contains("drain"), "{}", host("j1"));
    ask(&admin, "PUT /cloudmesh/cluster/lab/id/j1/activate").is(200);
    ask(&admin, "PUT /cloudmesh/cluster/lab/id/j1/set?key=max_jobs_allowed&value=3").is(200);
    ask(&admin, "PUT /cloudmesh/cluster/lab/id/j1/set?key=colour&value=red").is(400);
    ask(&bobs, "DELETE /cloudmesh/cluster/lab/id/j1").is(403);
    ask(&admin, "DELETE /cloudmesh/cluster/lab/id/j1").is(200);
    ask(&bobs, "GET /cloudmesh/cluster/lab/id/j1").is(404);
    ask(&admin, "DELETE /cloudmesh/cluster/lab").is(200);
    ask(&bobs, "GET /cloudmesh/cluster/lab").is(404);
}
