//! The log endpoint: what of a log is given, and why there is none, as recorded.

use serde_json::{Value, json};

use super::client::{Cluster, job};
use crate::common::wait::wait_until;

#[test]
fn a_log_is_given_as_it_is_asked_for() {
    let cluster = Cluster::with_nodes(1);
    cluster.run("run", "for n in 1 2 3 4 5 6; do echo line $n; done; printf end");
    let pod = cluster.pod_in("run", "Succeeded");
    let path =
        format!("/api/v1/namespaces/lab/pods/{}/log", pod["metadata"]["name"].as_str().unwrap());
    let log = |query: &str| cluster.ask("GET", &format!("{path}?{query}"), None);
    let whole = "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\nend";
    for query in ["", "follow=true", "sinceSeconds=60", "container=main"] {
        assert_eq!(log(query).text, whole, "{query}");
        assert_eq!(log(query).content_type, "text/plain");
    }
    assert_eq!(log("tailLines=2").text, "line 6\nend");
    assert_eq!(log("tailLines=0").text, "");
    assert_eq!(log("limitBytes=10").text, "line 1\nlin");
    let timed = log("timestamps=true&tailLines=2").text;
    let (time, rest) = timed.lines().next().unwrap().split_once(' ').unwrap();
    assert!(time.parse::<jiff::Timestamp>().is_ok() && rest == "line 6", "{timed}");
    for (query, status, said) in [
        ("sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z",
            422,
            "at most one of `sinceTime` or `sinceSeconds`",
        ),
        ("tailLines=x", 400, "strconv.ParseInt: parsing \\\"x\\\": invalid syntax"),
        ("container=nosuch", 400, "container nosuch is not valid for pod run-"),
        ("previous=true", 400, "previous terminated container \\\"main\\\" in pod"),
    ] {
        let heard = log(query);
        assert_eq!(heard.status, status, "{query}: {}", heard.text);
        assert!(heard.text.contains(said), "{query}: {}", heard.text);
    }
}

#[test]
fn without_a_node_a_log_is_empty_and_of_several_containers_one_is_named() {
    let cluster = Cluster::with_nodes(0);
    let mut wanted = job("two", "true");
    let spec = &mut wanted["spec"]["template"]["spec"];
    spec["initContainers"] = json!([{"name": "ini", "image": "i"}]);
    spec["containers"] = json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]);
    cluster.make("jobs", &wanted);
    let pod: Value = cluster.pod_in("two", "Pending");
    let name = pod["metadata"]["name"].as_str().unwrap();
    let path = format!("/api/v1/namespaces/lab/pods/{name}/log");
    let several = cluster.ask("GET", &path, None).json()["message"].clone();
    let said =
        format!("a container name must be specified for pod {name}, choose one of: [ini a b]");
    assert_eq!(several, json!(said));
    let unbound = cluster.ask("GET", &format!("{path}?container=a"), None);
    assert_eq!((unbound.status, unbound.text.as_str()), (204, ""));
}

#[test]
fn a_followed_log_outlives_its_pod() {
    let cluster = Cluster::with_nodes(1);
    cluster.run("cut", "trap '' TERM; echo first; sleep 1000");
    let pod = cluster.pod_in("cut", "Running");
    let path = format!("/api/v1/namespaces/lab/pods/{}", pod["metadata"]["name"].as_str().unwrap());
    wait_until("it has written", || {
        cluster.ask("GET", &format!("{path}/log"), None).text == "first\n"
    });
    let followed = std::thread::scope(|scope| {
        let following =
            scope.spawn(|| cluster.ask("GET", &format!("{path}/log?follow=true"), None));
        let gone = cluster.ask("DELETE", &format!("{path}?gracePeriodSeconds=0"), None);
        assert_eq!(gone.status, 200);
        following.join().unwrap()
    });
    assert!(followed.status == 404 || followed.text == "first\n", "{}", followed.text);
    assert_eq!(cluster.ask("GET", &format!("{path}/log"), None).status, 404);
}
