//! `uninstall` removes the Jobs of runs that are over from a cluster, and nobody else's; a Job that runs goes on.

use super::lab::Lab;
use crate::common::wait::wait_until;

#[test]
fn jobs_that_are_over_leave_the_cluster_and_all_others_stay() {
    let mut lab = Lab::new();
    drop(lab.env.own_crontab());
    let over = lab.run("echo said; exit 3", "");
    let archived = lab.run("true", "");
    wait_until("both are over", || {
        lab.shown(over)["status"] == "error" && lab.shown(archived)["status"] == "finished"
    });
    drop(lab.tpu("clean -y").exits(0));
    let again = lab.run("exit 4", "");
    wait_until("it is over", || lab.shown(again)["status"] == "error");
    let runs = lab.run("sleep 1000", "");
    let pod = lab.pod_in(runs, "Running");
    lab.cluster.run("thesis", "sleep 1000");
    let before = lab.jobs();
    assert!(before.contains(&"thesis".to_owned()), "{before:?}");

    drop(lab.tpu("uninstall --dry-run").exits(0).says(&["objects", "may be at work"]));
    assert_eq!(lab.jobs(), before);
    drop(lab.tpu("uninstall -y").exits(0).says(&["Removed:", "objects"]));
    let mut left = lab.jobs();
    left.sort();
    let mut kept = vec![lab.name(runs), "thesis".to_owned()];
    kept.sort();
    assert_eq!(left, kept);
    assert_eq!(lab.pod_in(runs, "Running"), pod, "it is the same pod");
    assert_eq!(lab.shown(again)["status"], "error");
    let job = lab.env.job("alice", again);
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 4, "its exit code is kept: {job:#}");
    drop(lab.tpu(&format!("archive logs {over}")).exits(0).says(&["said"]));
    drop(lab.tpu(&format!("kill {runs} -y")).exits(0));
}

#[test]
fn a_cluster_that_does_not_answer_is_named() {
    let mut lab = Lab::new();
    drop(lab.env.own_crontab());
    let over = lab.run("exit 3", "");
    wait_until("it is over", || lab.shown(over)["status"] == "error");
    drop(lab.tpu("clean -y").exits(0));
    lab.cluster.end();
    drop(lab.tpu("uninstall -y").exits(6).says(&["No answer", "lab: "]));
}
