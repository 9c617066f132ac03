//! `tpu kjob queue`: what waits and runs, by flavors; from everywhere where one may look, else from a summary.

use serde_json::{Value, json};

use tpu_core::model::facts::RunState;
use tpu_core::model::job::Job;

use super::lab::{Lab, settings};
use super::stage::{JOBS, PODS, Stage};
use crate::common::wait::{wait_for, wait_until};

fn submitted(lab: &Lab) {
    for (name, flavor) in [("a", "no-gpu"), ("b", "no-gpu"), ("c", "small-gpu")] {
        let line = format!("kjob submit -i alpine -j {name} -r {flavor} -- sleep 1000");
        drop(lab.tpu(&line).exits(0));
    }
    drop(lab.tpu("kjob submit -i alpine -j over -r no-gpu -- true").exits(0));
    lab.cluster.run("foreign", "sleep 1000");
    drop(lab.cluster.job_is("over", "Complete"));
}

fn rows(told: &Value) -> Vec<Value> {
    let rows = told["answer"]["queue"].as_array().unwrap().iter();
    rows.map(|row| json!([row["flavor"], row["total"], row["yours"], row["gpus"]])).collect()
}

#[test]
fn active_jobs_are_counted_by_what_they_ask_for() {
    let lab = Lab::bare(2);
    drop(lab.tpu("register everywhere --kind kubernetes --context admin --namespace lab").exits(0));
    submitted(&lab);
    let told = lab.tpu("kjob queue --json").exits(0).json();
    let expected =
        [json!([null, 1, 1, 0]), json!(["no-gpu", 2, 2, 0]), json!(["small-gpu", 1, 1, 1])];
    assert_eq!(rows(&told), expected);
    let text = lab.tpu("kjob queue").exits(0);
    drop(text.says(&[
        "Flavor",
        "Jobs total",
        "Jobs yours",
        "GPUs",
        "<no label>",
        "1G",
        "All namespaces",
    ]));
    // What alice has there is not bob's.
    let of_bob = lab.tpu("kjob queue --json --user bob").exits(0).json();
    assert_eq!(rows(&of_bob)[1], json!(["no-gpu", 2, 0, 0]));
}

#[test]
fn who_may_not_look_everywhere_reads_the_summary_else_his_own_namespace() {
    let lab = Lab::bare(2);
    drop(lab.tpu("register lab --kind kubernetes --context lab").exits(0));
    submitted(&lab);
    let own = lab.tpu("kjob queue").exits(0);
    drop(own.says(&["The namespace lab alone", "no-gpu", "small-gpu"]));
    let job = |namespace: &str| {
        json!({"namespace": namespace, "name": "j",
            "resources": {"flavor": "big", "requests": {"cpu": "4", "amd.com/gpu": "2"}}})
    };
    let summary = json!({"updated": "2024-01-17T10:00:00Z", "jobs": [job("user-x"), job("lab")]});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "queue"},
        "data": {"queue": summary.to_string()},
    });
    lab.cluster.make("configmaps", &map);
    settings(&lab, r#"{"jobsQueue": {"namespace": "lab", "configmap": "queue"}}"#);
    let told = lab.tpu("kjob queue --json").exits(0).json();
    let from = told["answer"]["from"].as_str().unwrap();
    assert!(from.contains("lab/queue") && from.contains("ago"), "{from}");
    assert_eq!(rows(&told), [json!(["big", 2, 1, 2])]);
}

#[test]
fn the_queue_of_a_cluster_is_asked_for_by_its_name() {
    let lab = Lab::bare(2);
    for (name, namespace) in [("one", "lab"), ("two", "default")] {
        let line =
            format!("register {name} --kind kubernetes --context admin --namespace {namespace}");
        drop(lab.tpu(&line).exits(0));
    }
    lab.cluster.run("a", "sleep 1000");
    for line in ["queue --cluster one", "queue --cluster=one", "kjob queue --cluster one"] {
        drop(lab.tpu(line).exits(0).says(&["Jobs total", "<no label>", "All namespaces"]));
    }
    let told = lab.tpu("queue --cluster one --json").exits(0).json();
    assert_eq!(rows(&told), [json!([null, 1, 1, 0])]);
    assert_eq!(
        rows(&lab.tpu("queue --cluster two --json").exits(0).json()),
        [json!([null, 1, 0, 0])]
    );
    drop(
        lab.tpu("queue --cluster local").exits(3).says(&["not a registered namespace", "one, two"]),
    );
    settings(&lab, r#"{"target": "two"}"#);
    drop(lab.tpu("queue --cluster").exits(0).says(&["Jobs total"]));
}

#[test]
fn of_a_thousand_jobs_there_is_one_list_in_each_look() {
    let stage = Stage::new();
    let jobs = stage.begun_all(1_000);
    let all: Vec<&Job> = jobs.iter().collect();
    for look in 1..=3 {
        stage.play(|play| play.table.asked.clear());
        let facts = stage.look(&all);
        assert!(facts.iter().all(|fact| fact.state == RunState::Pending), "{look}");
        stage.play(|play| {
            assert_eq!(play.table.count(&format!("GET {JOBS}")), 1, "{:?}", play.table.asked);
            assert_eq!(play.table.count(&format!("GET {PODS}")), 1, "{:?}", play.table.asked);
            assert!(play.table.asked.len() <= 3, "and why they wait: {:?}", play.table.asked);
        });
    }
}

#[test]
fn one_watch_of_jobs_and_one_of_pods_serve_whoever_follows_many() {
    let lab = Lab::new();
    let _monitor = lab.daemon(&[]);
    let names = ["a", "b", "c", "d"];
    let windows = names.map(|name| lab.train(name, ""));
    for name in names {
        lab.wait_starts(name, 1);
    }
    let kept = |window: u64| {
        let token = lab.env.job("alice", window)["extra_msgs"]["launch"]["token"].clone();
        let kept = format!("tpu-state/kubernetes/{}/output.log", token.as_str().unwrap());
        std::fs::read_to_string(lab.env.path(&kept)).unwrap_or_default().lines().count()
    };
    for window in windows {
        wait_until("the daemon follows it", || kept(window) > 20);
    }
    let watches = || lab.cluster.get("/_sim/asked")["watches"].as_u64().unwrap();
    assert_eq!(watches(), 2);
    lab.end("a", "exit 0");
    lab.env.wait_status(windows[0], "finished");
    assert_eq!(watches(), 2, "and the same as long as anything is followed");
}

#[test]
fn however_many_jobs_there_are_few_questions_are_asked() {
    let lab = Lab::bare(0);
    drop(lab.tpu("register lab --kind kubernetes --context lab -i a -r no-gpu").exits(0));
    drop(lab.tpu("run lab alice -q --array 0-199 -- true").exits(0));
    let asked = || lab.cluster.get("/_sim/asked")["asked"].as_u64().unwrap();
    for (line, says) in [("kjob list", "Waiting"), ("check alice", "200 pending")] {
        // A server that has not answered in time, on a machine with much to do, is asked again.
        let (questions, said) = wait_for(line, || {
            let before = asked();
            let said = lab.tpu(line).exits(0);
            said.stdout.contains(says).then(|| (asked() - before, said))
        });
        assert!((1..=3).contains(&questions), "{line}: {questions} questions");
        assert!(line != "kjob list" || said.stdout.matches(says).count() == 200, "{}", said.stdout);
    }
}
