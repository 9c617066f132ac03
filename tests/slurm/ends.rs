//! How a job has ended is said with the kind of failure, the reason and the evidence: Slurm's word where Slurm ended
//! it, and what the program has printed where the program did.

use serde_json::{Value, json};

use super::cluster::Setup;
use super::lab::Lab;
use crate::common::wait::wait_until;

fn evidence(shown: &Value) -> (&str, &str, &str) {
    let part = |name: &str| shown["evidence"][name].as_str().unwrap_or_default();
    (part("source"), part("rule"), part("line"))
}

#[test]
fn an_exit_code_alone_says_no_more_than_it_is() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.run("echo hello; exit 7", "");
    let shown = lab.wait_shown(window, "error");
    assert_eq!((&shown["error"], &shown["exit_code"]), (&json!("unknown"), &json!(7)));
    assert!(evidence(&shown).2.contains("exit code 7"), "{shown}");
    drop(lab.tpu(&format!("explain {window}")).exits(0).says(&["exit code 7"]));
    assert_eq!(lab.listed(window).state, "FAILED");
}

/// Nobody has written down yet how it ended when somebody kills it.
#[test]
fn a_kill_takes_no_end_for_its_own() {
    let Some(lab) = Lab::new() else { return };
    let failed = lab.run("exit 7", "");
    let well = lab.run("true", "");
    lab.wait_shown(failed, "error");
    lab.wait_shown(well, "finished");
    drop(
        lab.tpu(&format!("kill {failed} {well} -y"))
            .exits(4)
            .says(&["it has already ended", "is finished"]),
    );
    let records = lab.env.jobs("alice");
    let of = |number: u64| records.iter().find(|job| job["windows_id"] == number).unwrap();
    assert_eq!((&of(failed)["status"], &of(well)["status"]), (&json!("error"), &json!("finished")));
    assert_eq!(of(failed)["extra_msgs"]["launch"]["exit"], 7);
}

#[test]
fn the_text_of_its_log_says_what_it_failed_of() {
    let Some(lab) = Lab::new() else { return };
    let raised = lab.run("python3 -c 'raise ValueError(\"too small\")'", "");
    let memory = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.";
    let oom = lab.run(&format!("echo '{memory}'; exit 1"), "");
    let shown = lab.wait_shown(raised, "error");
    assert_eq!(shown["error"], "python-error", "{shown}");
    assert_eq!(evidence(&shown).0, "text");
    let shown = lab.wait_shown(oom, "error");
    assert_eq!(shown["error"], "oom", "{shown}");
    assert_eq!(evidence(&shown).2, memory);
}

#[test]
fn a_signal_of_the_system_is_one() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.run("kill -9 $$", "");
    let shown = lab.wait_shown(window, "error");
    assert_eq!(shown["error"], "killed-by-signal", "{shown}");
}

#[test]
fn a_node_that_fails_takes_its_job_along_and_is_avoided() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "rule=pass");
    let node = lab.wait_runs(window).nodes;
    lab.wait_checkpoint(window);
    lab.wait_shown(window, "running");
    lab.cluster.set_node(node[1..].parse::<usize>().unwrap() - 1, "down");
    let shown = lab.wait_shown(window, "error");
    assert_eq!(shown["error"], "lost", "{shown}");
    let (source, rule, line) = evidence(&shown);
    assert_eq!((source, rule), ("engine", "NODE_FAIL"));
    assert!(line.contains(&node), "{line}");
    assert_eq!(lab.listed(window).state, "NODE_FAIL");
    lab.cluster.set_node(node[1..].parse::<usize>().unwrap() - 1, "resume");
    lab.cluster.wait_ready();

    let plan = lab.tpu(&format!("resume {window} --yes --dry-run")).exits(0);
    drop(plan.says(&[&node]));
    drop(lab.tpu(&format!("resume {window} --yes")).exits(0));
    lab.wait_starts("a", 2);
    let next = lab.env.jobs("alice")[1]["windows_id"].as_u64().unwrap();
    assert_ne!(lab.wait_runs(next).nodes, node);
}

/// Half a minute: as long as the controller waits for a daemon that has died.
#[test]
fn a_node_whose_daemon_dies_is_lost_when_slurm_says_so() {
    let Some(mut lab) = Lab::with(Setup { nodes: 1, ..Setup::default() }) else { return };
    let window = lab.train("a", "rule=pass");
    lab.wait_runs(window);
    lab.wait_starts("a", 1);
    lab.cluster.kill_node(0);
    assert_eq!(lab.shown(window)["status"], "running");
    let shown = lab.wait_shown(window, "error");
    assert_eq!(shown["error"], "lost", "{shown}");
    assert_eq!(evidence(&shown).1, "NODE_FAIL");
}

/// Half a minute: so often Slurm looks at the time.
#[test]
fn a_limit_on_its_time_is_said_to_be_over() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "--sbatch time=5");
    let job = lab.wait_runs(window);
    lab.wait_starts("a", 1);
    lab.cluster.run(&["scontrol", "update", &format!("jobid={}", job.id), "EndTime=now+1"]);
    lab.cluster.wait_state(job.id, "TIMEOUT");
    let shown = lab.shown(window);
    assert_eq!(shown["error"], "timeout", "{shown}");
    assert_eq!(evidence(&shown).1, "TIMEOUT");
    assert_eq!(lab.listed(window).state, "TIMEOUT");
}

#[test]
fn cancelled_by_somebody_else_is_killed_and_nobody_brings_it_back() {
    let Some(lab) = Lab::new() else { return };
    let window = lab.train("a", "rule=pre");
    let job = lab.wait_runs(window);
    lab.wait_starts("a", 1);
    let _monitor = lab.daemon(&[]);
    lab.cluster.run(&["scancel", &job.id.to_string()]);
    let shown = lab.wait_shown(window, "killed");
    let (source, _, line) = evidence(&shown);
    // By the record, once the daemon has written down what Slurm said.
    assert!(["engine", "record"].contains(&source), "{shown}");
    assert!(line.contains("cancelled"), "{line}");
    lab.turn();
    assert_eq!(lab.env.jobs("alice").len(), 1);
    assert_eq!(lab.cluster.submissions(), [job.id]);
}

#[test]
fn what_was_seen_outlives_the_memory_of_slurm() {
    let setup = Setup { min_job_age: 2, keeps_ended: false, ..Setup::default() };
    let Some(lab) = Lab::with(setup) else { return };
    let windows = [lab.run("exit 0", ""), lab.run("exit 7", "rule=pass")];
    let _monitor = lab.daemon(&[]);
    lab.env.wait_status(windows[0], "finished");
    lab.env.wait_status(windows[1], "error");
    wait_until("Slurm has forgotten them", || lab.cluster.jobs().is_empty());
    lab.turn();
    assert_eq!(lab.shown(windows[0])["status"], "finished");
    let shown = lab.shown(windows[1]);
    assert_eq!((&shown["status"], &shown["error"]), (&json!("error"), &json!("unknown")));
}

/// Where what has ended is written to a file, that is asked.
#[test]
fn an_end_that_nobody_has_seen_is_asked_of_the_accounting() {
    let Some(lab) = Lab::with(Setup { min_job_age: 2, ..Setup::default() }) else { return };
    let windows = [lab.run("exit 0", ""), lab.run("exit 7", "rule=pass")];
    wait_until("Slurm has forgotten them", || lab.cluster.jobs().is_empty());
    lab.wait_shown(windows[0], "finished");
    lab.wait_shown(windows[1], "error");
}

/// Without accounting nobody knows, except the job itself, which has written it down.
#[test]
fn an_end_that_nobody_has_seen_is_no_success() {
    let setup = Setup { min_job_age: 2, keeps_ended: false, ..Setup::default() };
    let Some(lab) = Lab::with(setup) else { return };
    let killed = lab.train("a", "rule=pass");
    let id = lab.wait_runs(killed).id;
    lab.wait_starts("a", 1);
    lab.cluster.run(&["scancel", "--signal=KILL", "--full", &id.to_string()]);
    wait_until("Slurm has forgotten it", || lab.cluster.jobs().is_empty());
    let shown = lab.shown(killed);
    assert!(shown["unknown"].is_string(), "{shown}");
    lab.missing_for_a_minute(killed);
    let shown = lab.shown(killed);
    assert_ne!(shown["status"], "finished", "{shown}");
    assert_ne!(shown["status"], "running", "{shown}");
}

/// What ended it there has left a word in its log.
#[test]
fn an_end_that_slurm_has_forgotten_is_told_by_slurms_word_in_the_log() {
    let setup = Setup { min_job_age: 2, keeps_ended: false, ..Setup::default() };
    let Some(lab) = Lab::with(setup) else { return };
    let window = lab.train("a", "rule=pre");
    let id = lab.wait_runs(window).id;
    lab.wait_starts("a", 1);
    lab.cluster.run(&["scancel", &id.to_string()]);
    wait_until("Slurm has forgotten it", || lab.cluster.jobs().is_empty());
    drop(lab.shown(window));
    lab.missing_for_a_minute(window);
    let shown = lab.wait_shown(window, "killed");
    assert_eq!(evidence(&shown).0, "engine", "{shown}");
}
