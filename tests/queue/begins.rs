//! What is submitted begins at once where there is a place, and by the daemon when there is one; it has the number that
//! it had in the queue; what could never begin is refused.

use crate::common::wait::wait_until;

use super::{Lab, started};

#[test]
fn it_begins_at_once_where_there_is_a_place_and_else_by_monitor() {
    let lab = Lab::new(1);
    let said = lab.env.tpu("submit local --json -- sleep 1000").exits(0).json();
    assert_eq!(started(&said), [1]);
    let output = lab.env.tpu("submit local -- sleep 1000").exits(0);
    let output = output.says(&["Queued alice/2 in default", "local: it has alice/1"]);
    assert!(output.stderr.contains("while the daemon does not run"), "{}", output.stderr);
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("the daemon runs", || lab.env.tpu("daemon status").code == 0);
    lab.kill(1);
    lab.wait_running(&[2]);
    let job = lab.env.job("alice", 2);
    assert_eq!(job["extra_msgs"]["spec"]["queue"], "default");
    drop(lab.env.tpu("history 2").exits(0).says(&["queued", "in default"]));
    drop(monitor);
}

#[test]
fn it_begins_when_the_one_before_ends_by_itself_or_is_killed() {
    let lab = Lab::new(1);
    let first = lab.submit_what("local", "true");
    let second = lab.submit("local");
    let third = lab.submit("local");
    lab.env.wait_status(first, "finished");
    lab.wait_running(&[second]);
    lab.kill(second);
    lab.wait_running(&[third]);
}

/// It would begin beside a program that holds the machine still.
#[test]
fn after_finish_job_the_next_one_begins_once_the_script_has_ended() {
    let lab = Lab::new(1);
    let script = "until [ -e \"$HOME/waits\" ]; do sleep 0.3; done\ntpu finish-job alice:0\n\
        echo >\"$HOME/said\"\nuntil [ -e \"$HOME/go\" ]; do sleep 0.3; done\n";
    lab.env.code("alice", "staging.sh", script);
    let said = lab.env.tpu("submit local --json").exits(0).json();
    let first = started(&said)[0];
    let second = lab.submit("local");
    lab.env.touch("waits");
    lab.env.wait_file("said");
    assert_eq!(lab.env.job("alice", first)["status"], "finished");
    assert_eq!(lab.waiting(), [second]);
    lab.env.touch("go");
    lab.wait_running(&[second]);
}

#[test]
fn what_could_never_begin_is_refused_and_what_may_come_is_waited_for() {
    let lab = Lab::new(1);
    for (words, code, says) in [
        ("submit nonsense -- true", 3, "nonsense"),
        ("submit local gpus=2 -- true", 2, "could ever run it"),
        ("submit local queue=nope -- true", 3, "there is no queue 'nope'"),
        ("submit local priority=101 -- true", 2, "from 0 to 100"),
        ("submit local after=9 -- true", 3, "there is no job alice/9"),
        ("submit local nope=1 -- true", 2, "'nope' is no alias"),
        ("submit local", 3, "no staging.sh"),
    ] {
        drop(lab.env.tpu(words).exits(code).says(&[says]));
    }
    assert_eq!(lab.env.queued(), 0, "nothing of that waits");
    lab.env.code("alice", "staging.sh", "exec sleep 1000\n");
    let later = lab.env.tpu("submit v6e-16 --json").exits(0).json();
    let later = later["jobs"][0]["window"].as_u64().unwrap();
    assert_eq!(lab.why(later), "no target of v6e-16 is free");
    drop(lab.env.tpu("register lab-v6e-16-a --type v6e-16").exits(0));
    drop(lab.env.tpu("queue run --once").exits(0));
    lab.wait_running(&[later]);
}

/// A person may open a window in the session, which tmux puts where a number is kept.
#[test]
fn it_begins_under_another_number_where_somebodys_own_window_has_its_own() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let waits = lab.submit("local");
    let follows = lab.submit(&format!("local after_any={waits}"));
    lab.env.tmux().run(&["new-window", "-d", "-t", &format!("alice:{waits}"), "sleep 1000"]);
    lab.kill(first);
    drop(lab.env.tpu("queue run --once").exits(0));
    let running = lab.running();
    assert_eq!(running.len(), 1);
    assert_ne!(running, [waits]);
    // Who waits for it waits for what it is now.
    assert!(lab.why(follows).contains(&format!("alice/{}", running[0])), "{}", lab.why(follows));
}

#[test]
fn a_dry_run_says_what_would_wait_and_changes_nothing() {
    let lab = Lab::new(1);
    let said = lab.env.tpu("submit local --array 0-3 --dry-run -- true").exits(0).stdout;
    assert!(said.contains("queue 4 jobs for local"), "{said}");
    assert_eq!((lab.env.queued(), lab.env.jobs("alice").len()), (0, 0));
}

/// Without a daemon whoever waits at a terminal starts also what comes before.
#[test]
fn who_waits_at_a_terminal_is_not_behind_what_nobody_starts() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let second = lab.submit("local");
    lab.pauses("default", true);
    lab.kill(first);
    lab.pauses("default", false);
    assert!(lab.running().is_empty());
    let waits = lab.env.start_tpu("run local --wait -q -- sleep 1000", &[]);
    lab.wait_running(&[second]);
    lab.kill(second);
    assert_eq!(waits.wait(), 0);
    lab.wait_running(&[second + 1]);
}

/// A data file may be shared: what was submitted where nobody is any more begins there or nowhere.
#[test]
fn what_was_submitted_elsewhere_takes_nobodys_turn() {
    let lab = Lab::new(1);
    let first = lab.submit("local");
    let elsewhere = lab.submit("local");
    let here = lab.submit("local");
    lab.env.change(|data| data.queues_mut().entries[0].place = "elsewhere".to_owned());
    assert!(lab.why(elsewhere).contains("no daemon runs"), "{}", lab.why(elsewhere));
    lab.kill(first);
    lab.wait_running(&[here]);
    assert_eq!(lab.waiting(), [elsewhere], "it is there when its place is");
}

#[test]
fn monitor_starts_all_of_many_though_not_in_one_turn() {
    let lab = Lab::new(40);
    lab.pauses("default", true);
    lab.submit("local --array 0-19");
    assert!(lab.running().is_empty());
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("the daemon runs", || lab.env.tpu("daemon status").code == 0);
    lab.pauses("default", false);
    wait_until("all have begun", || lab.running().len() == 20);
    assert_eq!(lab.env.queued(), 0);
    drop(monitor);
}
