//! How a command is carried out, as a job file says it, holds on a cluster as on every other target: limits on its time,
//! what is set up before it on each node, and on which of its tasks it runs.

use super::cluster::Setup;
use super::lab::Lab;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// Starts the job of a file; what it says of its target and its command is in there.
#[track_caller]
fn run(lab: &Lab, text: &str) {
    write_file(&lab.env.path("job.yaml"), text);
    drop(lab.tpu("run job.yaml -q").exits(0));
}

/// The line that says why a job has failed.
#[track_caller]
fn why(lab: &Lab, window: u64, kind: &str) -> String {
    let shown = lab.wait_shown(window, "error");
    assert_eq!((&shown["error"], &shown["evidence"]["source"]), (&kind.into(), &"engine".into()));
    shown["evidence"]["line"].as_str().unwrap().to_owned()
}

fn output(lab: &Lab, window: u64) -> String {
    let path = lab.log_dir(window).join("output.log");
    std::fs::read_to_string(path).unwrap_or_default()
}

fn noted(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(lab.env.path(name)).unwrap_or_default()
}

#[test]
fn a_job_ends_when_its_time_is_over_and_slurm_knows_how_long_that_is() {
    let Some(lab) = Lab::new() else { return };
    run(&lab, "target: gpu\ntimeout: 3s\ncommand: 'until false; do echo tick; sleep 0.4; done'\n");
    let id = lab.listed(1).id.to_string();
    let limit = lab.cluster.run(&["squeue", "--noheader", "--states=all", "-o", "%l", "-j", &id]);
    assert_eq!(limit, "2:00");
    assert_eq!(why(&lab, 1, "timeout"), "its time is over: timeout: 3s");
    assert!(output(&lab, 1).ends_with("its time is over: timeout: 3s\n"), "{}", output(&lab, 1));
    // A time that somebody has said himself is his.
    run(&lab, "target: {slurm: gpu, time: '10:00'}\ntimeout: 1h\ncommand: 'true'\n");
    let id = lab.listed(2).id.to_string();
    let limit = lab.cluster.run(&["squeue", "--noheader", "--states=all", "-o", "%l", "-j", &id]);
    assert_eq!(limit, "10:00");
    drop(lab.tpu("wait 2 --timeout 60s").exits(0));
}

/// What ends a command is told when it has ended: a controller that takes its time to say so loses nothing by it.
#[test]
fn a_controller_that_answers_late_ends_it_all_the_same() {
    let Some(mut lab) = Lab::new() else { return };
    lab.replace("scancel", LATE);
    run(&lab, "target: gpu\ntimeout: 1s\ncommand: 'until false; do sleep 0.4; done'\n");
    assert_eq!(why(&lab, 1, "timeout"), "its time is over: timeout: 1s");
}

#[test]
fn who_is_silent_for_too_long_has_stalled_and_who_speaks_has_not() {
    let Some(lab) = Lab::new() else { return };
    // Neither SIGINT nor SIGTERM ends it.
    run(
        &lab,
        "target: gpu\nidle_timeout: 3s\ncommand: 'trap \"\" INT TERM; echo hello; sleep 1000; sleep 1000'\n",
    );
    run(
        &lab,
        "target: gpu\nidle_timeout: 3s\ncommand: 'for i in {1..25}; do echo $i; sleep 0.2; done'\n",
    );
    drop(lab.tpu("wait 2 --timeout 60s").exits(0));
    assert_eq!(why(&lab, 1, "stalled"), "it has printed nothing for 3s: idle_timeout");
}

/// What a program prints because it is told to end is no failure of its own, however long it takes to end then.
#[test]
fn what_is_printed_while_it_is_being_ended_is_not_why() {
    let Some(lab) = Lab::new() else { return };
    is_interrupted(&lab);
}

/// Nor where it is printed long before the script knows that it was told.
#[test]
fn nor_is_what_is_printed_before_the_controller_has_answered() {
    let Some(mut lab) = Lab::new() else { return };
    lab.replace("scancel", LATE);
    is_interrupted(&lab);
}

/// Who could not be told to end, and speaks again, is not being ended: what it prints then is its own.
#[test]
fn what_is_printed_once_it_could_not_be_ended_is_why() {
    let Some(mut lab) = Lab::new() else { return };
    lab.replace("scancel", "[[ $* != *INT* ]] || exit 1; exec /usr/bin/scancel \"$@\"");
    let command = "sleep 5; while true; do echo RuntimeError: broken; sleep 0.4; done";
    run(&lab, &format!("target: gpu\nidle_timeout: 2s\ncommand: '{command}'\n"));
    let shown = lab.wait_shown(1, "error");
    assert_eq!(shown["error"], "python-error", "{shown:#}");
}

/// A controller that takes its time to say that a signal has arrived.
const LATE: &str = "/usr/bin/scancel \"$@\"; code=$?; [[ $* != *INT* ]] || sleep 3; exit $code";

/// A job that is silent for too long, and prints a failure when it is told to end.
#[track_caller]
fn is_interrupted(lab: &Lab) {
    // Where the signal reaches what it waits for first, it still reads on and is told as well.
    let command = "trap \"echo RuntimeError: interrupted; sleep 1000\" INT; trap \"\" TERM; \
                   until false; do sleep 1; done";
    run(lab, &format!("target: gpu\nidle_timeout: 2s\ncommand: '{command}'\n"));
    let mut is_told = false;
    let shown = wait_for("it is over", || {
        let shown = lab.shown(1);
        is_told |= shown["status"] == "running" && shown.to_string().contains("it is being ended");
        (shown["status"] == "error").then_some(shown)
    });
    assert_eq!(shown["error"], "stalled", "{shown:#}");
    assert!(is_told, "somebody who looks meanwhile is told so");
}

/// Notes each node on which it is set up.
const ON_EACH: &str = "setup:\n  - {name: data, run: 'echo \"$SLURMD_NODENAME\" >> \"$HOME/made\"', once_per: machine}\n";

#[test]
fn every_node_is_set_up_before_the_command_begins_and_once() {
    let Some(lab) = Lab::new() else { return };
    let text = format!(
        "target: {{slurm: gpu, nodes: 2}}\n{ON_EACH}command: 'echo \"after $(sort \"$HOME/made\" | tr \"\\n\" \" \")\"'\n"
    );
    run(&lab, &text);
    drop(lab.tpu("wait 1 --timeout 60s").exits(0));
    let said = output(&lab, 1);
    for words in
        ["set-up: data on node n1: set up", "set-up: data on node n2: set up", "after n1 n2 \n"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("tpu-set-up"), "{said}");
    let log = lab.log_dir(1).join("data_worker_1.log");
    assert!(log.exists());
    assert!(!lab.log_dir(1).join(".set-up").exists(), "nothing is left of it");
    run(&lab, &text);
    drop(lab.tpu("wait 2 --timeout 60s").exits(0));
    let said = output(&lab, 2);
    assert!(said.contains("set-up: data on node n2: is so already"), "{said}");
    assert_eq!(noted(&lab, "made").lines().count(), 2);
    drop(lab.tpu("run job.yaml -q --setup skip").exits(0));
    drop(lab.tpu("wait 3 --timeout 60s").exits(0));
    assert!(!output(&lab, 3).contains("set-up:"), "{}", output(&lab, 3));
    drop(lab.tpu("run job.yaml -q --setup force").exits(0));
    drop(lab.tpu("wait 4 --timeout 60s").exits(0));
    assert_eq!(noted(&lab, "made").lines().count(), 4);
}

#[test]
fn a_node_that_cannot_be_set_up_is_named_with_the_module_and_nothing_begins() {
    let Some(lab) = Lab::new() else { return };
    run(
        &lab,
        "target: {slurm: gpu, nodes: 2}\nsetup:\n  - {name: wheels, run: '[ \"$SLURMD_NODENAME\" = n1 ] && sleep 1000; echo no room left; exit 3'}\ncommand: touch \"$HOME/began\"\n",
    );
    let said = why(&lab, 1, "setup");
    assert_eq!(said, "wheels on node n2: its set-up ended with 3: no room left");
    assert!(!lab.env.path("began").exists());
    assert!(output(&lab, 1).contains(&format!("set-up failed: {said}")), "{}", output(&lab, 1));
    let log = lab.log_dir(1).join("wheels_worker_1.log");
    assert!(std::fs::read_to_string(log).unwrap().contains("no room left"));
}

#[test]
fn how_far_a_set_up_is_can_be_seen_and_what_it_leaves_running_lives_as_long_as_the_command() {
    let Some(lab) = Lab::new() else { return };
    lab.env.code("alice", "words.txt", "these\n");
    run(
        &lab,
        "target: gpu\ntimeout: 1h\nsetup:\n  - {name: words, files: [{from: words.txt, to: ~/there/words}]}\n  \
         - {name: service, run: 'echo halfway there; sleep 1000 & echo $! > \"$HOME/pid\"; until [ -e \"$HOME/go\" ]; do sleep 0.4; done'}\n\
         command: 'cat \"$HOME/there/words\"; kill -0 \"$(cat \"$HOME/pid\")\" && echo it lives'\n",
    );
    wait_until("it says how far it is", || {
        let shown = lab.tpu("check").exits(0).stdout;
        shown.contains("service on node n1: halfway there") && shown.contains("setting-up")
    });
    lab.env.touch("go");
    drop(lab.tpu("wait 1 --timeout 60s").exits(0));
    let said = output(&lab, 1);
    assert!(said.contains("these\nit lives\n"), "{said}");
    let dry = lab.tpu("run job.yaml --dry-run").exits(0);
    drop(dry.says(&["sets up", "node.sh", "#!/bin/bash"]));
}

#[test]
fn a_command_runs_on_the_tasks_that_it_names() {
    let Some(lab) = Lab::with(Setup { nodes: 2, ..Setup::default() }) else { return };
    run(
        &lab,
        "target: {slurm: gpu, nodes: 2}\nworkers: [1]\ncommand: 'echo on $SLURMD_NODENAME >> \"$HOME/ran\"; echo here'\n",
    );
    drop(lab.tpu("wait 1 --timeout 60s").exits(0));
    assert_eq!(noted(&lab, "ran"), "on n2\n");
    assert_eq!(output(&lab, 1), "here\n");
    run(&lab, "target: {slurm: gpu, nodes: 2}\nworkers: [2]\ncommand: 'true'\n");
    assert_eq!(why(&lab, 2, "setup"), "workers: it has 2 of them, and no worker 2");
}

#[test]
fn each_member_of_a_group_is_set_up_where_it_runs() {
    let Some(lab) = Lab::new() else { return };
    lab.env.code("alice", "words.txt", "these\n");
    run(
        &lab,
        "target: gpu\narray: 0-1\nsetup:\n  - {name: words, files: [{from: words.txt, to: ~/there/words}]}\n\
         command: 'cat \"$HOME/there/words\"; echo \"as $TPU_MEMBER\"'\n",
    );
    for (member, window) in [("1_0", 2), ("1_1", 3)] {
        drop(lab.tpu(&format!("wait {member} --timeout 60s")).exits(0));
        let said = output(&lab, window);
        assert!(said.contains("set-up: words on node") && said.contains("these\nas "), "{said}");
        assert!(!lab.log_dir(window).join(".set-up").exists());
    }
}
