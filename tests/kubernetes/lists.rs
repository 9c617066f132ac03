//! Lists in pieces and as they were, watches that are open while things happen, and what is changed meanwhile.

use serde_json::{Value, json};

use super::client::{Cluster, Heard, job};
use crate::common::wait::wait_until;

const MAPS: &str = "/api/v1/namespaces/lab/configmaps";
const JOBS: &str = "/apis/batch/v1/namespaces/lab/jobs";

fn names(list: &Value) -> Vec<String> {
    let all = list["items"].as_array().unwrap();
    all.iter().map(|of| of["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn lines(heard: &Heard) -> Vec<(String, Value)> {
    let of = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["type"].as_str().unwrap().to_owned(), line["object"].clone())
    };
    heard.text.lines().map(of).collect()
}

fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

#[test]
fn a_list_in_pieces_is_of_one_moment_until_that_is_forgotten() {
    let cluster = Cluster::with_nodes(0);
    for name in ["a", "b", "c", "d"] {
        cluster.make("configmaps", &json!({"metadata": {"name": name}}));
    }
    let first = cluster.get(&format!("{MAPS}?limit=2"));
    assert_eq!(
        (names(&first), &first["metadata"]["remainingItemCount"]),
        (vec!["a".into(), "b".into()], &json!(2))
    );
    let token = first["metadata"]["continue"].as_str().unwrap();
    assert_eq!(cluster.ask("DELETE", &format!("{MAPS}/c"), None).json()["status"], "Success");
    let rest = format!("{MAPS}?limit=2&continue={token}");
    assert_eq!(names(&cluster.get(&rest)), ["c", "d"]);
    let exactly = format!("{MAPS}?resourceVersionMatch=Exact&resourceVersion={}", version(&first));
    assert_eq!(names(&cluster.get(&exactly)).len(), 4);
    assert_eq!(cluster.fault("watch", &json!({"do": "410"})).status, 200);
    let old = cluster.ask("GET", &rest, None);
    assert_eq!((old.status, &old.json()["reason"]), (410, &json!("Expired")));
    let fresh = old.json()["metadata"]["continue"].as_str().unwrap().to_owned();
    assert_eq!(names(&cluster.get(&format!("{MAPS}?limit=2&continue={fresh}"))), ["d"]);
}

#[test]
fn a_watch_tells_what_comes_into_sight_changes_and_goes() {
    let cluster = Cluster::with_nodes(0);
    let at = version(&cluster.get(MAPS));
    let labels = |label: &str| json!({"metadata": {"name": "w", "labels": {"s": label}}});
    cluster.make("configmaps", &labels("in"));
    let path = format!("{MAPS}/w");
    assert_eq!(cluster.ask("PUT", &path, Some(&labels("out"))).status, 200);
    assert_eq!(cluster.ask("PUT", &path, Some(&labels("in"))).status, 200);
    assert_eq!(cluster.ask("DELETE", &path, None).status, 200);
    let words = |selector: &str| -> Vec<String> {
        let path = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={at}{selector}");
        lines(&cluster.ask("GET", &path, None)).into_iter().map(|(word, _)| word).collect()
    };
    assert_eq!(words(""), ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]);
    assert_eq!(words("&labelSelector=s%3Din"), ["ADDED", "DELETED", "ADDED", "DELETED"]);
}

#[test]
fn a_job_is_watched_from_its_beginning_to_its_end_by_its_time() {
    let cluster = Cluster::with_nodes(1);
    let at = version(&cluster.get(JOBS));
    let mut wanted = job("ttl", "true");
    wanted["spec"]["ttlSecondsAfterFinished"] = json!(1);
    cluster.make("jobs", &wanted);
    wait_until("its time is over", || {
        cluster.ask("GET", &format!("{JOBS}/ttl"), None).status == 404
    });
    let path = format!("{JOBS}?watch=true&timeoutSeconds=1&resourceVersion={at}");
    let all = lines(&cluster.ask("GET", &path, None));
    assert_eq!(all[0].0, "ADDED");
    assert_eq!(all[0].1["status"], json!({}));
    assert_eq!(all[1].1["status"]["active"], 1);
    let complete = all.iter().find(|(_, job)| job["status"]["succeeded"] == json!(1)).unwrap();
    assert_eq!(complete.1["status"]["conditions"][0]["type"], "Complete");
    let leaving =
        all.iter().find(|(_, job)| job["metadata"]["deletionTimestamp"].is_string()).unwrap();
    assert_eq!(leaving.1["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(all.last().unwrap().0, "DELETED");
}

#[test]
fn a_change_of_an_old_version_is_a_conflict() {
    let cluster = Cluster::with_nodes(0);
    cluster.make("jobs", &job("pt", "true"));
    let path = format!("{JOBS}/pt");
    wait_until("its controller has seen it", || cluster.get(&path)["status"]["active"] == json!(1));
    let mut read = cluster.get(&path);
    read["metadata"]["labels"]["x"] = json!("3");
    assert_eq!(cluster.ask("PUT", &path, Some(&read)).status, 200);
    let again = cluster.ask("PUT", &path, Some(&read));
    assert_eq!(again.status, 409);
    assert!(
        again.text.contains("the object has been modified; please apply your changes"),
        "{}",
        again.text
    );
    read["metadata"]["resourceVersion"] = Value::Null;
    read["metadata"]["labels"]["x"] = json!("4");
    assert_eq!(cluster.ask("PUT", &path, Some(&read)).status, 200);
    read["metadata"]["name"] = json!("other");
    let named = cluster.ask("PUT", &path, Some(&read)).json();
    assert_eq!(
        named["message"],
        "the name of the object (other) does not match the name on the URL (pt)"
    );
}

#[test]
fn what_is_too_big_is_refused_by_its_size() {
    let cluster = Cluster::with_nodes(0);
    let map = |bytes: usize| json!({"metadata": {"name": "b"}, "data": {"a": "x".repeat(bytes)}});
    let heard = cluster.ask("POST", MAPS, Some(&map(4 << 20)));
    assert_eq!((heard.status, &heard.json()["reason"]), (413, &json!("RequestEntityTooLarge")));
    let heard = cluster.ask("POST", MAPS, Some(&map((1 << 20) + 1)));
    let said = "ConfigMap \"b\" is invalid: []: Too long: must have at most 1048576 bytes";
    assert_eq!((heard.status, &heard.json()["message"]), (422, &json!(said)));
    let mut wanted = job("b", "true");
    wanted["metadata"]["annotations"] = json!({"a": "x".repeat(256 * 1024)});
    let heard = cluster.ask("POST", JOBS, Some(&wanted));
    assert!(
        heard.text.contains("metadata.annotations: Too long: must have at most 262144 bytes"),
        "{}",
        heard.text
    );
}
