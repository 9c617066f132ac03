//! What goes wrong when somebody asks for it looks as it does on a real cluster.

use serde_json::{Value, json};

use super::client::{Cluster, job};
use crate::common::wait::{wait_for, wait_until};

fn name(pod: &Value) -> String {
    pod["metadata"]["name"].as_str().unwrap().to_owned()
}

/// A Job that goes on until somebody ends it, and its pod.
fn running(cluster: &Cluster, of: &str) -> String {
    cluster.run(of, "echo begun; sleep 1000");
    name(&cluster.pod_in(of, "Running"))
}

fn state(pod: &Value) -> Value {
    pod["status"]["containerStatuses"][0]["state"]["terminated"].clone()
}

#[test]
fn without_memory_a_container_ends_with_137_and_its_job_fails() {
    let cluster = Cluster::with_nodes(1);
    let pod = running(&cluster, "big");
    assert_eq!(cluster.fault(&format!("pods/{pod}"), &json!({"do": "oom"})).status, 200);
    let pod = cluster.pod_in("big", "Failed");
    assert_eq!(state(&pod)["exitCode"], 137);
    assert_eq!(state(&pod)["reason"], "OOMKilled");
    let failed = cluster.job_is("big", "Failed");
    assert_eq!(failed["status"]["conditions"][0]["reason"], "BackoffLimitExceeded");
    assert_eq!(failed["status"]["failed"], 1);
}

#[test]
fn an_evicted_pod_says_so_and_nothing_of_its_containers() {
    let cluster = Cluster::with_nodes(1);
    let pod = running(&cluster, "out");
    assert_eq!(cluster.fault(&format!("pods/{pod}"), &json!({"do": "evict"})).status, 200);
    let pod = cluster.pod_in("out", "Failed");
    assert_eq!(pod["status"]["reason"], "Evicted");
    assert!(pod["status"]["containerStatuses"].is_null(), "{pod}");
    cluster.job_is("out", "Failed");
}

#[test]
fn a_pod_deleted_by_hand_is_made_again() {
    let cluster = Cluster::with_nodes(1);
    let first = running(&cluster, "again");
    let body = json!({"do": "delete"});
    assert_eq!(cluster.fault(&format!("pods/{first}"), &body).status, 200);
    wait_until("another pod runs instead", || {
        let pods = cluster.pods("again");
        pods.iter().any(|pod| name(pod) != first) && pods.len() == 1
    });
}

#[test]
fn a_lost_node_is_unknown_and_gets_nothing_new() {
    let cluster = Cluster::with_nodes(2);
    let pod = running(&cluster, "lost");
    assert_eq!(cluster.fault(&format!("pods/{pod}"), &json!({"do": "node-lost"})).status, 200);
    let there = cluster.get(&format!("/api/v1/namespaces/lab/pods/{pod}"));
    let node = there["spec"]["nodeName"].as_str().unwrap().to_owned();
    assert_eq!(there["status"]["phase"], "Running");
    let lost = cluster.get(&format!("/api/v1/nodes/{node}"));
    assert_eq!(lost["spec"]["taints"][1]["effect"], "NoExecute");
    let ready = lost["status"]["conditions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("Unknown"), &json!("NodeStatusUnknown"))
    );
    let log = cluster.ask("GET", &format!("/api/v1/namespaces/lab/pods/{pod}/log"), None);
    assert_eq!(log.status, 500, "{}", log.text);
    assert!(log.text.contains("connect: connection refused"), "{}", log.text);
    let next = running(&cluster, "next");
    let next = cluster.get(&format!("/api/v1/namespaces/lab/pods/{next}"));
    assert_ne!(next["spec"]["nodeName"], json!(node));
}

#[test]
fn an_image_that_is_not_there_is_waited_for() {
    let cluster = Cluster::with_nodes(1);
    let mut wanted = job("pull", "true");
    wanted["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nosuch.invalid/x:1");
    cluster.make("jobs", &wanted);
    let waiting = |word: &str| {
        wait_for(word, || {
            let pod = cluster.pods("pull").into_iter().next()?;
            let waits = pod["status"]["containerStatuses"][0]["state"]["waiting"].clone();
            (waits["reason"] == json!(word)).then_some((pod, waits))
        })
    };
    waiting("ErrImagePull");
    let (pod, waits) = waiting("ImagePullBackOff");
    assert_eq!(waits["message"], "Back-off pulling image \"nosuch.invalid/x:1\"");
    assert_eq!(pod["status"]["phase"], "Pending");
    let log = cluster.ask("GET", &format!("/api/v1/namespaces/lab/pods/{}/log", name(&pod)), None);
    assert_eq!(log.status, 400);
    assert!(log.text.contains("trying and failing to pull image"), "{}", log.text);
}

#[test]
fn logs_are_refused_or_break_off_as_asked_and_are_whole_afterwards() {
    let cluster = Cluster::with_nodes(1);
    cluster.run("told", "echo one; echo two");
    let pod = name(&cluster.pod_in("told", "Succeeded"));
    let path = format!("/api/v1/namespaces/lab/pods/{pod}/log");
    for status in [400_u16, 404, 500] {
        let what = json!({"do": status.to_string(), "for_s": 60});
        assert_eq!(cluster.fault("logs", &what).status, 200);
        assert_eq!(cluster.ask("GET", &path, None).status, status);
    }
    assert_eq!(cluster.fault("logs", &json!({"do": "break", "after": 5, "for_s": 60})).status, 200);
    assert_eq!(cluster.ask("GET", &path, None).text, "one\nt");
    assert_eq!(cluster.fault("logs", &json!({"do": "500", "for_s": 0})).status, 200);
    assert_eq!(cluster.ask("GET", &path, None).text, "one\ntwo\n");
}

#[test]
fn the_server_refuses_everything_for_a_while_and_then_no_more() {
    let cluster = Cluster::with_nodes(0);
    let list = "/apis/batch/v1/namespaces/lab/jobs";
    for status in [429_u16, 500] {
        assert_eq!(cluster.fault("api", &json!({"status": status, "for_s": 60})).status, 200);
        let heard = cluster.ask("GET", list, None);
        assert_eq!((heard.status, &heard.json()["code"]), (status, &json!(status)));
    }
    assert_eq!(cluster.fault("api", &json!({"status": 500, "for_s": 0})).status, 200);
    assert_eq!(cluster.ask("GET", list, None).status, 200);
    let lab = format!("Bearer {}", cluster.token_of("lab"));
    let body = br#"{"status": 500}"#;
    let heard = cluster.ask_with("POST", "/_sim/api", &[("Authorization", &lab)], Some(body));
    assert_eq!(heard.status, 403, "only the administrator lets things go wrong");
}

#[test]
fn a_watch_ends_with_410_when_what_happened_is_forgotten() {
    let cluster = Cluster::with_nodes(0);
    let at =
        cluster.get("/api/v1/namespaces/lab/configmaps")["metadata"]["resourceVersion"].clone();
    cluster.make("configmaps", &json!({"metadata": {"name": "new"}}));
    let path = format!(
        "/api/v1/namespaces/lab/configmaps?watch=true&timeoutSeconds=50&resourceVersion={}",
        at.as_str().unwrap()
    );
    assert_eq!(cluster.fault("watch", &json!({"do": "410"})).status, 200);
    let heard = cluster.ask("GET", &path, None);
    let last: Value = serde_json::from_str(heard.text.lines().last().unwrap()).unwrap();
    assert_eq!((heard.status, &last["type"]), (200, &json!("ERROR")));
    assert_eq!(last["object"]["code"], 410);
}
