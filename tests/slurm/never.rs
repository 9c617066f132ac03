//! Whatever has the number or the name of a job of ours and is not it: it is never shown in its place, never stopped,
//! and never taken for its end.

use std::ffi::OsStr;

use serde_json::json;

use super::cluster::{Cluster, Setup};
use super::lab::Lab;
use crate::common::wait::wait_until;

/// The cluster was set up anew, and gives the numbers of ours to others.
#[test]
fn a_number_that_is_given_again_is_not_ours() {
    let Some(mut lab) = Lab::new() else { return };
    let (running, waiting) = (lab.train("a", "rule=pre"), lab.run("true", "--sbatch hold"));
    let numbers = [lab.wait_runs(running).id, lab.listed(waiting).id];
    lab.wait_starts("a", 1);
    lab.wait_shown(running, "running");
    lab.cluster.reset();
    let theirs = [1, 2].map(|_| lab.cluster.submit(&["--job-name=theirs"], "sleep 1000"));
    assert_eq!(theirs, numbers, "they have the numbers of ours");
    lab.cluster.wait_state(theirs[1], "RUNNING");

    for window in [running, waiting] {
        let shown = lab.shown(window);
        assert_ne!(shown["status"], "finished", "{shown}");
        assert!(!shown["unknown"].is_null() || shown["status"] == "error", "{shown}");
        // Whatever it says, it does nothing to theirs.
        drop(lab.tpu(&format!("kill {window} -y")));
    }
    let _monitor = lab.daemon(&[]);
    lab.turn();
    for id in theirs {
        assert_eq!(lab.cluster.job(id).state, "RUNNING");
    }
    assert_eq!(lab.cluster.jobs().len(), 2, "nothing was submitted: {:?}", lab.cluster.jobs());
}

/// The target means another cluster by now, where somebody else has a job of that number.
#[test]
fn a_number_of_another_cluster_is_not_ours() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "");
    let ours = lab.wait_runs(window).id;
    let other = Cluster::new();
    let theirs = other.submit(&[], "sleep 1000");
    assert_eq!(theirs, ours);
    other.wait_state(theirs, "RUNNING");
    lab.register("gpu", &other, "--partition low --force");
    lab.wait_shown(window, "running");
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.cluster.job(ours).state, "CANCELLED");
    assert_eq!(other.job(theirs).state, "RUNNING");
    let next = lab.train("b", "");
    wait_until("the next one runs there", || !other.jobs_of(&lab.token(next)).is_empty());
}

/// Somebody has submitted a copy of our script by hand.
#[test]
fn a_job_of_the_same_name_is_not_ours() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "");
    let ours = lab.wait_runs(window);
    let (name, comment) = (format!("-J{}", ours.name), format!("--comment={}", ours.comment));
    let theirs = lab.cluster.submit(&[&name, &comment], "sleep 1000");
    lab.cluster.wait_state(theirs, "RUNNING");
    assert_eq!(lab.shown(window)["status"], "running");
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    assert_eq!(lab.cluster.job(ours.id).state, "CANCELLED");
    assert_eq!(lab.cluster.job(theirs).state, "RUNNING");
    assert_eq!(lab.shown(window)["status"], "killed");
}

/// Ours is over, and the other goes on under its name.
#[test]
fn the_end_of_ours_is_not_hidden_by_another_of_its_name() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "");
    let ours = lab.wait_runs(window);
    let theirs = lab.cluster.submit(&[&format!("-J{}", ours.name)], "sleep 1000");
    lab.cluster.wait_state(theirs, "RUNNING");
    lab.wait_starts("a", 1);
    lab.end("a", "exit 0");
    lab.wait_shown(window, "finished");
    drop(lab.tpu(&format!("kill {window} -y")));
    drop(lab.tpu("clean alice -y").exits(0));
    assert_eq!(lab.cluster.job(theirs).state, "RUNNING");
}

/// The number of an array goes on as that of its last task; those that have ended have none any more.
#[test]
fn a_member_that_has_ended_takes_no_other_along() {
    let Some(lab) = Lab::with(Setup { min_job_age: 2, ..Setup::default() }) else { return };
    let script = "[ $TPU_MEMBER != 0 ] || exit 0; exec sleep 1000";
    let words = ["run", "gpu", "alice", "-q", "--array", "0-2", "--", "bash", "-c", script, "job"];
    drop(lab.env.tpu_words(&words).exits(0));
    wait_until("two are left", || lab.cluster.jobs().len() == 2);
    wait_until("its end", || lab.shown(2)["status"] == "finished");
    drop(lab.tpu("kill 1_0 -y"));
    assert!(lab.cluster.jobs().iter().all(|job| job.state == "RUNNING"));
    drop(lab.tpu("kill 1_2 -y").exits(0));
    assert_eq!([3, 4].map(|w| lab.shown(w)["status"].clone()), [json!("running"), json!("killed")]);
    let running = lab.cluster.jobs().into_iter().filter(|job| job.state == "RUNNING");
    assert_eq!(running.map(|job| job.tasks).collect::<Vec<_>>(), ["1"]);
}

/// It is not listed any more: that alone is not the end.
#[test]
fn what_is_no_longer_listed_has_not_finished() {
    let setup = Setup { min_job_age: 2, keeps_ended: false, ..Setup::default() };
    let Some(mut lab) = Lab::with(setup) else { return };
    let window = lab.train("a", "rule=pass");
    lab.wait_runs(window);
    lab.wait_starts("a", 1);
    lab.wait_shown(window, "running");
    lab.cluster.reset();
    assert!(lab.cluster.jobs().is_empty());
    for _ in 0..3 {
        let shown = lab.shown(window);
        assert_ne!(shown["status"], "finished", "{shown}");
    }
}

/// Its submission was cut off, it ran to its end, and Slurm has forgotten it before anybody looked: it has left a log.
#[test]
fn what_ran_unseen_is_not_said_never_to_have_begun() {
    let setup =
        Setup { min_job_age: 2, keeps_ended: false, message_timeout: 2, ..Setup::default() };
    let Some(mut lab) = Lab::with(setup) else { return };
    let path = lab.env.variables()[OsStr::new("PATH")].clone();
    lab.replace("sbatch", "/usr/bin/sbatch \"$@\" >/dev/null; exec sleep 1000");
    let run = lab.env.start_tpu("run gpu rule=pass -q -- true", &[]);
    wait_until("it is submitted", || !lab.cluster.submissions().is_empty());
    run.kill();
    lab.env.set("PATH", path);
    let ran = || lab.cluster.jobs().is_empty();
    wait_until("Slurm has forgotten it", ran);
    lab.a_minute_later();
    drop(lab.tpu("clear-finished bob"));
    let shown = lab.shown(1);
    assert_ne!(shown["error"], "launch", "{shown}");
    assert_eq!(lab.cluster.submissions().len(), 1);
}

/// The disk may be full just then.
#[test]
fn what_slurm_has_taken_is_at_work_where_that_cannot_be_written_down() {
    let Some(mut lab) = Lab::new() else { return };
    let script = "/usr/bin/sbatch \"$@\" || exit\ncd \"ROOT/tpu-state/slurm\"\n\
        for note in tpu-*; do mv \"$note\" \"away-$note\"; echo >\"$note\"; done";
    lab.replace("sbatch", &script.replace("ROOT", lab.env.root()));
    let window = lab.train("a", "rule=pre");
    let id = lab.wait_runs(window).id;
    lab.wait_starts("a", 1);
    let shown = lab.wait_shown(window, "running");
    assert!(shown["error"].is_null(), "{shown}");
    drop(lab.tpu(&format!("kill {window} -y")).exits(0));
    lab.cluster.wait_state(id, "CANCELLED");
}
