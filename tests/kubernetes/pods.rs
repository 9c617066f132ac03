//! What the cluster does with pods: placed, run as processes, ended, forgotten, and nothing left of them.

use std::path::Path;

use serde_json::{Value, json};

use super::client::{Cluster, job};
use crate::common::wait::{wait_for, wait_until};

fn condition(pod: &Value) -> Value {
    pod["status"]["conditions"][0].clone()
}

fn with_gpus(name: &str, script: &str, count: u32) -> Value {
    let mut wanted = job(name, script);
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"nvidia.com/gpu": count}});
    wanted
}

#[test]
fn a_pod_that_fits_nowhere_says_why() {
    let cluster = Cluster::with_nodes(4);
    cluster.make("jobs", &with_gpus("huge", "true", 8));
    let pod = wait_for("it is refused", || {
        cluster.pods("huge").into_iter().find(|pod| condition(pod)["status"] == json!("False"))
    });
    assert_eq!(condition(&pod)["reason"], "Unschedulable");
    let why = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.";
    assert_eq!(condition(&pod)["message"], why);
    let events =
        cluster.get("/api/v1/namespaces/lab/events?fieldSelector=reason%3DFailedScheduling");
    assert_eq!(events["items"][0]["message"], why);
}

#[test]
fn the_more_important_pod_takes_the_place_of_the_less_important() {
    let cluster = Cluster::with_nodes(1);
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    assert_eq!(cluster.ask("POST", path, Some(&class)).status, 201);
    cluster.make("jobs", &with_gpus("low", "sleep 1000", 2));
    let low = cluster.pod_in("low", "Running");
    let mut high = with_gpus("high", "sleep 1000", 1);
    high["spec"]["template"]["spec"]["priorityClassName"] = json!("high");
    cluster.make("jobs", &high);
    cluster.pod_in("high", "Running");
    let old = low["metadata"]["name"].as_str().unwrap();
    assert!(cluster.pods("low").iter().all(|pod| pod["metadata"]["name"] != json!(old)));
    let path = format!(
        "/api/v1/namespaces/lab/events?fieldSelector=reason%3DPreempted,involvedObject.name%3D{old}"
    );
    assert_eq!(cluster.get(&path)["items"].as_array().unwrap().len(), 1);
}

#[test]
fn exit_codes_signals_and_words_of_a_container_arrive() {
    let cluster = Cluster::with_nodes(1);
    let mut wanted = job("words", "");
    wanted["spec"]["template"]["spec"]["containers"][0] = json!({
        "name": "main", "image": "a:1", "command": ["sh", "-c", "printf '%s|' \"$@\" \"$A\" \"$POD\"; exit 3", "sh"],
        "args": ["a  b", "$(A)", "$$(A)", "it's"],
        "env": [
            {"name": "A", "value": "x y"},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
    });
    cluster.make("jobs", &wanted);
    let pod = cluster.pod_in("words", "Failed");
    let end = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&end["exitCode"], &end["reason"]), (&json!(3), &json!("Error")));
    let name = pod["metadata"]["name"].as_str().unwrap();
    let log = cluster.ask("GET", &format!("/api/v1/namespaces/lab/pods/{name}/log"), None);
    assert_eq!(log.text, format!("a  b|x y|$(A)|it's|x y|{name}|"));
}

#[test]
fn a_program_that_is_not_there_is_a_start_error() {
    let cluster = Cluster::with_nodes(1);
    let mut wanted = job("none", "");
    wanted["spec"]["template"]["spec"]["containers"][0]["command"] = json!(["nosuchprogram"]);
    cluster.make("jobs", &wanted);
    let pod = cluster.pod_in("none", "Failed");
    let end = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((&end["exitCode"], &end["reason"]), (&json!(128), &json!("StartError")));
    assert!(end["message"].as_str().unwrap().contains("executable file not found in $PATH"));
}

#[test]
fn a_deleted_pod_gets_term_and_time_and_then_kill() {
    let cluster = Cluster::with_nodes(1);
    let dir = tempfile::tempdir().unwrap();
    let heard = dir.path().join("heard");
    let script = format!(
        "trap 'echo bye > {}' TERM; echo ready; while :; do sleep 0.4; done",
        heard.display()
    );
    let mut wanted = job("deaf", &script);
    wanted["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(1);
    cluster.make("jobs", &wanted);
    let pod = cluster.pod_in("deaf", "Running");
    let name = pod["metadata"]["name"].as_str().unwrap();
    wait_until("it listens", || {
        cluster.ask("GET", &format!("/api/v1/namespaces/lab/pods/{name}/log"), None).text
            == "ready\n"
    });
    let path = "/apis/batch/v1/namespaces/lab/jobs/deaf?propagationPolicy=Background";
    assert_eq!(cluster.ask("DELETE", path, None).json()["status"], "Success");
    wait_until("it is to go", || {
        let pod = cluster.ask("GET", &format!("/api/v1/namespaces/lab/pods/{name}"), None).json();
        pod["metadata"]["deletionGracePeriodSeconds"] == json!(1) || pod["code"] == json!(404)
    });
    wait_until("it is gone", || cluster.pods("deaf").is_empty());
    assert!(heard.exists(), "it was asked before it was killed");
}

#[test]
fn what_a_container_does_not_say_is_not_answered_either() {
    let cluster = Cluster::with_nodes(1);
    let made = cluster.make("jobs", &job("bare", "true"));
    let spec = made["spec"]["template"]["spec"].as_object().unwrap();
    assert!(!spec.contains_key("volumes"), "{made}");
    let container = spec["containers"][0].as_object().unwrap();
    assert!(!container.contains_key("ports") && !container.contains_key("env"), "{made}");
}

#[test]
fn volumes_are_where_a_container_expects_them() {
    let cluster = Cluster::with_nodes(1);
    cluster.make("configmaps", &json!({"metadata": {"name": "code"}, "data": {"a.sh": "cat /in/note; echo out > /in/new"}}));
    cluster.make("secrets", &json!({"metadata": {"name": "key"}, "stringData": {"k": "hidden"}}));
    let mut wanted = job("mounted", "");
    let spec = &mut wanted["spec"]["template"]["spec"];
    spec["initContainers"] = json!([{
        "name": "first", "image": "a:1", "command": ["sh", "-c", "echo hello > /in/note"],
        "volumeMounts": [{"name": "room", "mountPath": "/in"}],
    }]);
    spec["containers"][0] = json!({
        "name": "main", "image": "a:1", "command": ["sh", "-c", "sh /code/a.sh; cat /etc/keys/k; cat /in/new; pwd"],
        "workingDir": "/in",
        "volumeMounts": [
            {"name": "code", "mountPath": "/code", "readOnly": true}, {"name": "room", "mountPath": "/in"},
            {"name": "key", "mountPath": "/etc/keys"},
        ],
    });
    spec["volumes"] = json!([
        {"name": "code", "configMap": {"name": "code"}}, {"name": "room", "emptyDir": {}},
        {"name": "key", "secret": {"secretName": "key"}},
    ]);
    cluster.make("jobs", &wanted);
    if !rustix::process::geteuid().is_root() {
        let path = "/api/v1/namespaces/lab/events?fieldSelector=reason%3DFailedMount";
        let said = wait_for("it is refused", || {
            cluster.get(path)["items"].as_array().unwrap().first().cloned()
        });
        assert!(said["message"].as_str().unwrap().contains("only root can mount"), "{said}");
        return;
    }
    let pod = cluster.pod_in("mounted", "Succeeded");
    let name = pod["metadata"]["name"].as_str().unwrap();
    let log =
        cluster.ask("GET", &format!("/api/v1/namespaces/lab/pods/{name}/log?container=main"), None);
    assert_eq!(log.text, "hello\nhiddenout\n/in\n");
    for made in ["/in", "/code", "/etc/keys"] {
        assert!(!Path::new(made).exists(), "{made} was made on this machine");
    }
}

#[test]
fn when_the_cluster_ends_nothing_of_it_is_left() {
    let mut cluster = Cluster::with_nodes(1);
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let script = format!(
        "setsid sh -c 'echo $$ >> {0}; exec sleep 1000' & echo $$ >> {0}; echo written; exec sleep 1000",
        pids.display()
    );
    cluster.run("left", &script);
    cluster.pod_in("left", "Running");
    let ids = wait_for("both processes run", || {
        let text = std::fs::read_to_string(&pids).ok()?;
        (text.lines().count() == 2).then(|| text.lines().map(str::to_owned).collect::<Vec<_>>())
    });
    let state = cluster.kubeconfig().parent().unwrap().to_owned();
    cluster.end();
    for id in ids {
        let path = format!("/proc/{id}/status");
        wait_until("the process is gone", || {
            std::fs::read_to_string(&path).map_or(true, |text| text.contains("State:\tZ"))
        });
    }
    drop(cluster);
    assert!(!state.exists(), "{}", state.display());
}
