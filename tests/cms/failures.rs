//! Cloudmesh's lists of failures and recoveries, one scenario each, on real machines: what goes wrong with one job or one
//! host keeps no other from beginning, and nothing begins twice.

use serde_json::{Value, json};

use crate::common::wait::wait_until;
use crate::hosts::Lab;

fn shown(lab: &Lab, name: &str) -> Value {
    let said = lab.env.tpu("check alice --json").exits(0).json();
    let jobs = said["jobs"].as_array().unwrap();
    jobs.iter().rfind(|job| job["name"] == name).cloned().unwrap_or_default()
}

fn add(lab: &Lab, names: &str, command: &str, hosts: &str) {
    let (names, command) = (format!("--name={names}"), format!("--command={command}"));
    let hosts = format!("--host={hosts}");
    drop(lab.env.tpu_words(&["cms", "queue", "add", &names, &command, &hosts]).exits(0));
}

fn run(lab: &Lab) {
    drop(lab.env.tpu("cms queue run fifo --max_parallel=3").exits(0));
}

fn waiting(lab: &Lab) -> Vec<String> {
    let said = lab.env.tpu("queue --json").exits(0).json();
    let entries = said["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn wait(lab: &Lab, name: &str, status: &str) {
    wait_until(&format!("{name} is {status}"), || {
        shown(lab, name)["status"].as_str().is_some_and(|is| is.starts_with(status))
    });
}

/// Failure 1 of both schedulers: a job that failed to start on a host.
#[test]
fn one_that_cannot_start_on_its_host_waits_and_the_next_begin() {
    let Some(mut lab) = Lab::with(2, "--max-jobs 2") else { return };
    lab.hosts.shut(0);
    add(&lab, "a[1-3]", "sleep 1000", "h1,h2,h2");
    run(&lab);
    wait(&lab, "a2", "running");
    wait(&lab, "a3", "running");
    assert_eq!(waiting(&lab), ["a1"]);
    // It is not given up: when its host is there it begins.
    lab.hosts.begin(0);
    drop(lab.env.tpu("queue run --once").exits(0));
    wait(&lab, "a1", "running");
    drop(lab.env.tpu("kill --all -y").exits(0));
}

/// Failure 2: a job that crashed on a host.
#[test]
fn one_that_crashes_is_told_and_the_next_begin() {
    let Some(lab) = Lab::with(1, "--max-jobs 1") else { return };
    add(&lab, "b1", "kill -9 $$", "h1");
    add(&lab, "b2", "true", "h1");
    run(&lab);
    wait(&lab, "b1", "error");
    drop(lab.env.tpu("queue run --once").exits(0));
    wait(&lab, "b2", "finished");
}

/// Failure 3: a job that was running on a host that crashed. Its place counts until it is known what became of it.
#[test]
fn one_whose_host_goes_is_unknown_and_the_next_begin_elsewhere() {
    let Some(mut lab) = Lab::with(2, "--max-jobs 1") else { return };
    add(&lab, "c[1-3]", "echo step 1 loss 0.5; sleep 1000", "h1,h1,h2");
    drop(lab.env.tpu("cms queue run fifo --max_parallel=1").exits(0));
    wait_until("it prints", || shown(&lab, "c1")["progress"]["step"] == 1);
    lab.hosts.shut(0);
    wait_until("it is unknown", || shown(&lab, "c1")["unknown"].is_string());
    drop(lab.env.tpu("cms queue refresh").exits(0));
    run(&lab);
    wait(&lab, "c3", "running");
    assert_eq!(lab.env.jobs("alice").len(), 2, "nothing of h1 begins meanwhile, and nothing twice");
    lab.hosts.begin(0);
    wait_until("it is followed on", || shown(&lab, "c1")["unknown"].is_null());
    drop(lab.env.tpu("dequeue c2 -y").exits(0));
    drop(lab.env.tpu("kill --all -y").exits(0));
}

/// Failure 4 of the scheduler of several hosts: none is given a host that fails its probe.
#[test]
fn a_host_that_fails_its_probe_is_given_nothing() {
    let Some(mut lab) = Lab::with(2, "--max-jobs 2") else { return };
    lab.hosts.shut(0);
    add(&lab, "d[1-2]", "sleep 1000", "h1");
    drop(lab.env.tpu("cms queue run fifo_multi --hosts=me@h1,me@h2").exits(0));
    wait(&lab, "d1", "running");
    wait(&lab, "d2", "running");
    let targets: Vec<Value> = lab.env.jobs("alice").iter().map(|job| job["tpu"].clone()).collect();
    assert_eq!(targets, [json!("h2"), json!("h2")]);
    drop(lab.env.tpu("kill --all -y").exits(0));
}

/// Recovery of a crashed manager: refresh, then run again.
#[test]
fn a_manager_that_dies_is_run_again_and_nothing_begins_twice() {
    let Some(lab) = Lab::with(1, "--max-jobs 4") else { return };
    add(&lab, "e[1-3]", "sleep 1000", "h1");
    let line = "cms queue run fifo --max_parallel=3";
    let dies = lab.env.start_tpu(line, &[("FAILPOINTS", "launch-claimed=pause")]);
    wait_until("it has claimed one", || lab.env.jobs("alice").len() == 1);
    dies.kill();
    drop(lab.env.tpu("cms queue refresh").exits(0));
    drop(lab.env.tpu(line).exits(0));
    wait(&lab, "e2", "running");
    wait(&lab, "e3", "running");
    // What was claimed and never opened had its place again.
    wait(&lab, "e1", "running");
    assert_eq!((lab.env.jobs("alice").len(), lab.env.queued()), (3, 0));
    drop(lab.env.tpu("kill --all -y").exits(0));
}

/// Recovery of a crashed worker: the host comes back, what did not end is made ready, and the queue is run again.
#[test]
fn a_host_that_was_started_anew_goes_on_and_what_was_lost_is_run_again() {
    let Some(mut lab) = Lab::with(1, "--max-jobs 1") else { return };
    add(&lab, "f[1-2]", "echo step 1 loss 0.5; sleep 1000", "h1");
    run(&lab);
    wait_until("it prints", || shown(&lab, "f1")["progress"]["step"] == 1);
    lab.hosts.reboot(0);
    wait_until("it is lost", || shown(&lab, "f1")["error"] == "lost");
    drop(lab.env.tpu("queue run --once").exits(0));
    wait(&lab, "f2", "running");
    assert_eq!(lab.env.tpu("cms queue info --status=crash").exits(0).stdout.lines().count(), 2);
    drop(lab.env.tpu("cms queue reset --status=crash").exits(0).says(&["f1 is ready again"]));
    drop(lab.env.tpu("kill f2 -y").exits(0));
    run(&lab);
    wait(&lab, "f1", "running");
    drop(lab.env.tpu("kill --all -y").exits(0));
}
