//! Cloudmesh's schedulers: so many at a time in the order of the file, and any of several hosts.

use super::{lab, with};
use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

fn names(env: &TestEnv, status: &str) -> Vec<String> {
    let jobs = env.jobs("alice");
    let jobs = jobs.iter().filter(|job| job["status"] == status);
    jobs.map(|job| job["extra_msgs"]["spec"]["name"].as_str().unwrap().to_owned()).collect()
}

fn waiting(env: &TestEnv) -> Vec<String> {
    let said = env.tpu("queue --json").exits(0).json();
    let entries = said["entries"].as_array().unwrap().iter();
    entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn wait(env: &TestEnv, running: &[&str]) {
    wait_until(&format!("{running:?} run"), || names(env, "running") == running);
}

#[test]
fn fifo_runs_so_many_at_a_time_in_the_order_of_the_file_and_skips_those_without_a_host() {
    let text = "a1: {command: sleep 1000, host: localhost}\na2: {command: sleep 1000}\na3: {command: sleep 1000, host: localhost}\n\
                a4: {command: sleep 1000, host: localhost}\n";
    let env = with("night-queue.yaml", text);
    drop(env.tpu("import cloudmesh night-queue.yaml").exits(0));
    assert_eq!(env.tpu("cms job list --status=undefined").exits(0).stdout.lines().count(), 2);
    drop(env.tpu("cms queue run fifo --queue=night --max_parallel=2 --timeout=10").exits(0));
    wait(&env, &["a1", "a3"]);
    assert_eq!(waiting(&env), ["a2", "a4"]);
    drop(
        env.tpu("queue")
            .exits(0)
            .says(&["queue night has 2 jobs at once", "undefined: it names no host"]),
    );
    drop(env.tpu("kill a1 -y").exits(0));
    wait(&env, &["a3", "a4"]);
    drop(env.tpu("kill a3 a4 -y").exits(0));
    assert_eq!(waiting(&env), ["a2"], "it is not considered");
    // The other scheduler begins also those that name no host.
    drop(env.tpu("cms queue run fifo_multi --queue=night --hosts=me@localhost").exits(0));
    wait(&env, &["a2"]);
    drop(env.tpu("kill a2 -y").exits(0));
    // Made ready again it names no host, as before.
    drop(env.tpu("cms queue reset --queue=night --name=a2").exits(0));
    drop(
        env.tpu("cms queue run fifo --queue=night --max_parallel=2")
            .exits(0)
            .says(&["Nothing is ready"]),
    );
    assert_eq!(env.tpu("cms job list --status=undefined").exits(0).stdout.lines().count(), 2);
}

#[test]
fn jobs_are_added_to_a_queue_by_words() {
    let env = lab();
    drop(env.tpu("cms queue create --queue=q").exits(0).says(&["Made the queue q"]));
    drop(env.tpu("cms queue create --queue=q").exits(0).says(&["There is a queue q"]));
    let words = [
        "cms",
        "queue",
        "add",
        "--queue=q",
        "--name=a[1-2]",
        "--command=echo $((1+1)); pwd; exit 3",
        "--host=localhost",
        "--output=o1,o2",
        "--experiment=./e",
        "--gpu=5",
    ];
    drop(env.tpu_words(&words).exits(0));
    drop(env.tpu("cms queue run fifo --queue=q --max_parallel=1").exits(0));
    wait_until("both have failed", || {
        drop(env.tpu("queue run --once").exits(0));
        names(&env, "error").len() == 2
    });
    let home = std::path::PathBuf::from(&env.variables()[std::ffi::OsStr::new("HOME")]);
    for (name, file) in [("a1", "o1"), ("a2", "o2")] {
        let printed = std::fs::read_to_string(home.join("e").join(name).join(file)).unwrap();
        let place = home.canonicalize().unwrap().join("e").join(name);
        assert_eq!(printed.lines().collect::<Vec<_>>(), ["2", place.to_str().unwrap()]);
    }
    assert_eq!(
        env.job("alice", 1)["extra_msgs"]["launch"]["exit"],
        3,
        "the exit code is the job's"
    );
    // Cloudmesh's `reset`: all that did not end well.
    drop(
        env.tpu("cms queue reset --queue=q")
            .exits(0)
            .says(&["a1 is ready again", "a2 is ready again"]),
    );
    let of_another = env.tpu("cms queue delete --queue=default --name=a1 -y").exits(4);
    drop(of_another.says(&["a1 is a job of queue q"]));
    drop(env.tpu("cms queue delete --queue=q --name=a[1-2] -y").exits(0));
    assert_eq!((env.queued(), env.jobs("alice").len()), (0, 0));
}

/// A cluster is a pool; what its hosts take at once holds as well.
#[test]
fn fifo_multi_ignores_the_hosts_of_the_file() {
    let env = with(
        "night-queue.yaml",
        "b1: {command: sleep 1000, host: gone.lab}\nb2: {command: sleep 1000}\nb3: {command: sleep 1000}\n",
    );
    drop(env.tpu("import cloudmesh night-queue.yaml").exits(0));
    drop(env.tpu("hosts set local --max-jobs 2 --pool mine").exits(0));
    drop(
        env.tpu("cms queue run fifo_multi --queue=night --hostfile=nobodys")
            .exits(3)
            .says(&["nobodys"]),
    );
    drop(env.tpu("cms queue run fifo_multi --queue=night --hostfile=mine").exits(0));
    wait(&env, &["b1", "b2"]);
    assert_eq!(waiting(&env), ["b3"]);
    drop(env.tpu("kill b1 -y").exits(0));
    wait(&env, &["b2", "b3"]);
    drop(env.tpu("kill b2 b3 -y").exits(0));
}

/// As Cloudmesh does it: the host that a job names comes first, and the policy is asked only where that is full.
#[test]
fn a_job_whose_own_host_is_full_begins_on_another_of_the_jobset() {
    let Some(lab) = crate::hosts::Lab::with(3, "--max-jobs 1") else { return };
    let job = |name: &str| format!("      {name}: {{ip: h1, executable: sleep 1000}}\n");
    let text = format!(
        "cloudmesh:\n  jobset:\n    hosts:\n      h1: {{ip: h1}}\n      h2: {{ip: h2}}\n    jobs:\n{}{}{}",
        job("g1"),
        job("g2"),
        job("g3")
    );
    crate::common::tmux::write_file(&lab.env.path("spec.yaml"), &text);
    drop(lab.env.tpu("cms set jobset=spec.yaml").exits(0));
    drop(lab.env.tpu("cms job add spec.yaml").exits(0));
    let said = lab.env.tpu("cms job run").exits(0);
    drop(said.says(&["g2: h1 is full, so it starts on one of h1, h2"]));
    wait(&lab.env, &["g1", "g2"]);
    let targets: Vec<_> = lab.env.jobs("alice").iter().map(|job| job["tpu"].clone()).collect();
    assert_eq!(targets, ["h1", "h2"], "and on no host that is not in the jobset");
    assert_eq!(waiting(&lab.env), ["g3"], "where all are full it waits");
    drop(lab.env.tpu("kill --all -y").exits(0));
}
