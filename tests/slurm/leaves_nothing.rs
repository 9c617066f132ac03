//! The clusters of these tests end with them, however those end: no daemon, no step, no process of a job and no file is
//! left, and several live side by side.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tpu_system::sys::procs::{Process, Table};

use super::cluster::{Cluster, is_installed};
use crate::common::env::lives;
use crate::common::wait::wait_until;

/// A job with a step that nobody asks to end, and a process that has left them both.
const STUBBORN: &str = "trap '' TERM HUP INT; srun bash -c 'trap \"\" TERM; touch here; while :; do sleep 1; done' & \
     setsid bash -c 'trap \"\" TERM; touch there; while :; do sleep 1; done' & while :; do sleep 1; done";

/// Puts a cluster to work; its processes, and the file that says all about it.
fn at_work(cluster: &Cluster) -> (Vec<Process>, String) {
    cluster.submit(&[&format!("--chdir={}", cluster.path(".").display())], STUBBORN);
    wait_until("it is at work", || {
        ["here", "there"].iter().all(|file| cluster.path(file).exists())
    });
    (cluster.processes(), cluster.conf())
}

#[test]
fn a_test_that_fails_leaves_nothing_behind() {
    if !is_installed() {
        return;
    }
    let other = Cluster::new();
    let mut found = None;
    let failed = catch_unwind(AssertUnwindSafe(|| {
        let cluster = Cluster::new();
        found = Some(at_work(&cluster));
        // Also with a controller that can do nothing about it.
        cluster.hold_controller(true);
        std::panic::resume_unwind(Box::new("as if it had failed"));
    }));
    assert!(failed.is_err());
    let (processes, conf) = found.unwrap();
    // Three daemons and the key, two steps, and what they run.
    assert!(processes.len() >= 8, "{processes:#?}");
    let left: Vec<&Process> = processes.iter().filter(|process| lives(process)).collect();
    assert!(left.is_empty(), "{left:#?}");
    assert!(!Path::new(&conf).parent().unwrap().exists());
    let uid = rustix::process::getuid().as_raw();
    assert!(Table::read().unwrap().with_variable("SLURM_CONF", &conf, uid).is_empty());
    // The other one has nothing to do with it.
    let id = other.submit(&[], "true");
    other.wait_state(id, "COMPLETED");
}

#[test]
fn a_controller_comes_back_with_what_it_knew_and_a_new_one_with_nothing() {
    if !is_installed() {
        return;
    }
    let mut cluster = Cluster::new();
    let id = cluster.submit(&["--job-name=odd name"], "sleep 1000");
    cluster.wait_state(id, "RUNNING");
    cluster.stop_controller();
    cluster.start_controller();
    assert_eq!(cluster.job(id).state, "RUNNING");
    assert_eq!(cluster.job(id).name, "odd name");
    assert_eq!(cluster.submissions(), [id]);
    cluster.reset();
    assert!(cluster.jobs().is_empty());
    assert_eq!(cluster.submit(&[], "true"), id, "its numbers are given again");
    cluster.wait_state(id, "COMPLETED");
}
