//! What waits here for a cluster goes there as soon as it may: a group as one array, unless a limit of its queue keeps
//! some back; and what the cluster does not take is told by its record.

use crate::common::wait::wait_until;

use super::lab::Lab;

#[test]
fn a_group_that_waited_is_one_array_unless_a_limit_keeps_some_back() {
    let Some(lab) = Lab::new() else { return };
    let after = lab.env.tpu("submit gpu alice --hold --json --array 0-2 -- sleep 1000").exits(0);
    let group = after.json()["jobs"][0]["window"].as_u64().unwrap();
    assert!(lab.cluster.submissions().is_empty(), "it is held here");
    drop(lab.tpu(&format!("unhold {group}")).exits(0));
    assert_eq!(lab.cluster.submissions().len(), 1);
    let members = |group: u64| {
        let jobs = lab.env.jobs("alice");
        let of = |job: &&serde_json::Value| job["extra_msgs"]["spec"]["member"]["group"] == group;
        jobs.iter().filter(of).count()
    };
    assert_eq!((members(group), lab.env.queued()), (3, 0));
    drop(lab.tpu("queue create night --max-parallel 2").exits(0));
    let said = lab.env.tpu("submit gpu alice queue=night --json --array 0-2 -- sleep 1000");
    let group = said.exits(0).json()["jobs"][0]["window"].as_u64().unwrap();
    assert_eq!((members(group), lab.env.queued()), (2, 1));
    drop(lab.tpu(&format!("kill {group}_0 -y")).exits(0));
    wait_until("the third has its turn", || members(group) == 3 && lab.env.queued() == 0);
}

#[test]
fn what_a_cluster_does_not_take_is_told_by_its_record() {
    let Some(lab) = Lab::new() else { return };
    let said = lab.env.tpu("submit gpu alice --json --sbatch constraint=nope -- sleep 1000");
    let window = said.exits(0).json()["jobs"][0]["window"].as_u64().unwrap();
    let job = lab.env.job("alice", window);
    assert_eq!((&job["status"], &job["error"]), (&"error".into(), &"launch".into()));
    assert_eq!(lab.env.queued(), 0);
}

/// Its copy was made on the disk of this machine; where the nodes share another one it goes there as it was.
#[test]
fn what_waited_runs_the_code_that_it_was_submitted_with_from_the_clusters_disk() {
    let Some(lab) = Lab::new() else { return };
    let stages = lab.env.path("shared-stages").display().to_string();
    lab.register("shared", &lab.cluster, &format!("--partition low --stage-root {stages}"));
    let told = lab.env.path("told").display().to_string();
    lab.env.code("alice", "which.sh", &format!("echo old in $PWD > {told}\n"));
    let said = lab.env.tpu("submit shared alice --hold --json -- bash which.sh").exits(0).json();
    let window = said["jobs"][0]["window"].as_u64().unwrap();
    lab.env.code("alice", "which.sh", &format!("echo new in $PWD > {told}\n"));
    drop(lab.tpu(&format!("unhold {window}")).exits(0));
    lab.wait_shown(window, "finished");
    let told = std::fs::read_to_string(told).unwrap();
    assert!(told.starts_with(&format!("old in {stages}/alice/")), "{told}");
}
