//! Jobs of their own: what a job file and `--notify` say, and what real ends, resumes and queues are told as.

use serde_json::{Value, json};

use super::hook::Hook;
use super::{Lab, webhook};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// What was told of, in order.
fn events(hook: &Hook) -> Vec<String> {
    let got = hook.got();
    let all = got.iter().flat_map(|got| got.body["events"].as_array().cloned().unwrap_or_default());
    all.map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_job_is_told_of_by_those_whom_it_names_and_those_of_the_setting() {
    let lab = Lab::new();
    let (setting, own) = (Hook::good(), Hook::good());
    lab.tell("alice", &webhook(&setting.url()));
    let monitor = lab.env.daemon(&[]);
    let notify = format!("finished={}", own.url());
    let words =
        ["run", "local", "alice", "--name", "train", "--notify", &notify, "--json", "--", "true"];
    let run = lab.env.tpu_words(&words).exits(0).json();
    let window = run["launched"]["window"].as_u64().unwrap();
    wait_until("both", || !own.got().is_empty() && !setting.got().is_empty());
    let event = own.got()[0].body["events"][0].clone();
    let said = |key: &str| event[key].clone();
    assert_eq!(said("event"), "finished");
    assert_eq!((said("user"), said("job")), (json!("alice"), json!(window)));
    assert_eq!(
        (said("name"), said("target"), said("status")),
        (json!("train"), json!("local"), json!("finished"))
    );
    assert_eq!(said("error"), Value::Null);
    assert!(
        said("text")
            .as_str()
            .unwrap()
            .contains(&format!("alice/{window} (train): finished on local"))
    );
    // A failure it is not told of; the setting's is.
    let words =
        ["run", "local", "alice", "--notify", &notify, "--", "bash", "-c", "echo boom >&2; exit 3"];
    drop(lab.env.tpu_words(&words).exits(0));
    wait_until("the failure", || events(&setting).contains(&"error".to_owned()));
    assert_eq!(events(&own), ["finished"]);
    drop(monitor);
}

#[test]
fn a_job_that_names_nobody_is_told_to_nobody() {
    let lab = Lab::new();
    let setting = Hook::good();
    lab.tell("alice", &webhook(&setting.url()));
    let monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("run local alice --notify none -- true").exits(0));
    drop(lab.env.wait_status(1, "finished"));
    drop(lab.env.tpu("run local alice -- true").exits(0));
    wait_until("the other one", || !setting.got().is_empty());
    assert_eq!(setting.got()[0].body["events"][0]["job"], 2);
    drop(monitor);
}

#[test]
fn a_file_says_it_and_is_told_back_as_it_stood() {
    let lab = Lab::new();
    let hook = Hook::good();
    let file = format!(
        "target: local\ncommand: exit 0\nnotify:\n  - {{on: [finished, queue-empty], webhook: '{}'}}\n  - tmux\n",
        hook.url()
    );
    write_file(&lab.env.path("job.yaml"), &file);
    drop(lab.env.tpu("set-settings notify_merge 1 alice").exits(0));
    let monitor = lab.env.daemon(&[]);
    let as_alice = lab.env.spawn(&["submit", "job.yaml"]).env("TPU_USER", "alice");
    drop(lab.env.output(&as_alice).exits(0));
    wait_until("it", || events(&hook).contains(&"finished".to_owned()));
    // That nothing waits any more is told of nobody's job, and to whom the last one names.
    wait_until("the queue", || events(&hook).contains(&"queue-empty".to_owned()));
    let got = hook.got();
    let all = got.iter().flat_map(|got| got.body["events"].as_array().unwrap());
    let window = all.map(|event| &event["job"]).find_map(Value::as_u64).unwrap();
    let spec = lab.env.job("alice", window)["extra_msgs"]["spec"].clone();
    assert_eq!(spec["notify"][0]["webhook"], hook.url());
    assert_eq!(spec["notify"][1]["message"], "tmux");
    drop(monitor);
}

#[test]
fn a_resume_and_an_empty_queue_are_told() {
    let lab = Lab::new();
    let hook = Hook::good();
    lab.tell("alice", &webhook(&hook.url()));
    let monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("submit local alice -- bash -c true").exits(0));
    wait_until("its turn", || events(&hook).contains(&"queue-empty".to_owned()));
    wait_until("its end", || events(&hook).contains(&"finished".to_owned()));
    let failed = lab.env.start("exit 3", &[""; 0]);
    drop(lab.env.wait_status(failed, "error"));
    drop(lab.env.tpu(&format!("rerun w={failed} alice")).exits(0));
    wait_until("it", || events(&hook).contains(&"resumed".to_owned()));
    drop(monitor);
}

#[test]
fn what_is_typed_wrong_is_refused_before_anything_starts() {
    let lab = Lab::new();
    for (typed, says) in [
        ("eror=me@lab.org", "no address"),
        ("eror=./tell.sh", "neither a program"),
        ("finished=", "where to"),
        ("{\"on\": \"eror\", \"message\": \"tmux\"}", "did you mean 'error'?"),
    ] {
        let words = ["run", "local", "alice", "--notify", typed, "--", "true"];
        drop(lab.env.tpu_words(&words).exits(2).says(&["--notify", says]));
    }
    assert!(lab.env.jobs("alice").is_empty());
    write_file(&lab.env.path("job.yaml"), "target: local\ncommand: x\n");
    drop(lab.env.tpu("run job.yaml --notify tmux").exits(2).says(&["--notify beside a file"]));
}
