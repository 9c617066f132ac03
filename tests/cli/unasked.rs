//! What is asked on a terminal is an error where nobody can be asked, and nothing is done. Where nothing is lost,
//! nobody is asked.

use serde_json::Value;

use tpu_system::sys::accounts;
use tpu_system::sys::env::Env;

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// Alice has two jobs at work, two that wait and one that has finished; the target `v2-1` is usable.
fn busy() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    for window in [1, 2] {
        assert_eq!(env.start("exec sleep 1000", &NONE), window);
        env.wait_status(window, "running");
    }
    assert_eq!(env.start("true", &NONE), 3);
    env.wait_status(3, "finished");
    for _ in 0..2 {
        drop(env.tpu("submit local alice --hold -- sleep 1000").exits(0));
    }
    env
}

#[test]
fn what_would_be_asked_is_an_error_that_names_the_question() {
    let env = busy();
    let statuses = || env.jobs("alice").iter().map(|job| job["status"].clone()).collect::<Vec<_>>();
    let before = (statuses(), env.queued());
    for (line, question) in [
        ("kill 1,2 alice", "Kill alice/1 (sleep), alice/2 (sleep)?"),
        ("kill --all alice", "alice/2"),
        ("requeue 1,2 alice", "Stop alice/1 (sleep), alice/2 (sleep)"),
        ("dequeue 4 5 alice", "out of the queue?"),
        ("delete v2-1", "delete lab-tpuvm-v2-32-1?"),
        ("stop v2-1", "stop lab-tpuvm-v2-32-1?"),
        ("restart v2-1", "restart lab-tpuvm-v2-32-1?"),
        ("reapply v2-1", "Delete lab-tpuvm-v2-32-1 and everything on it"),
        ("del-user bob", "Remove user bob"),
        ("jobman delete 3 --user alice", "Delete 000003?"),
        ("jobman clean --all --user alice", "Delete 000003?"),
    ] {
        for how in ["", " --no-input"] {
            let said = env.tpu(&format!("{line}{how}")).exits(2);
            drop(said.says(&["nobody can be asked", question, "add -y"]));
        }
        assert_eq!((statuses(), env.queued()), before, "{line}");
    }
    drop(env.tpu("check-status v2-1").exits(0).says(&["READY"]));
    drop(env.tpu("list-users").exits(0).says(&["bob"]));
    drop(env.tpu("kill 1,2 alice -y").exits(0).says(&["Killed alice/1", "Killed alice/2"]));
    drop(env.tpu("dequeue 4 5 alice -y").exits(0));
    drop(env.tpu("jobman clean --all --user alice -y").exits(0));
}

#[test]
fn nobody_is_asked_where_nothing_is_lost() {
    let env = busy();
    drop(env.tpu("kill 1 alice").exits(0).says(&["Killed alice/1"]));
    drop(env.tpu("dequeue 4 alice").exits(0));
    drop(env.tpu("kill 5 alice").exits(0).says(&["never began"]));
    drop(env.tpu("clear-finished alice").exits(0).says(&["Archived 1 job"]));
    drop(env.tpu("clean alice").exits(0).says(&["Archived 1 job"]));
    drop(env.tpu("kill-window 2 alice").exits(0));
    drop(env.tpu("-czw alice").exits(0));
    drop(env.tpu("-czj alice").exits(0));
    drop(env.tpu("sim preempt v2-1").exits(0));
    drop(env.tpu("reapply v2-1").exits(0).says(&["is READY"]));
    drop(env.tpu("sim preempt v2-1").exits(0));
    drop(env.tpu("delete v2-1").exits(0).says(&["is not there"]));
    drop(env.tpu("delete v2-1").exits(0).says(&["is not there"]));
}

#[test]
fn the_jobs_of_others_are_asked_about_where_it_is_known_who_asks() {
    let mut env = TestEnv::new();
    for window in [1, 2] {
        assert_eq!(env.start_for("bob", "exec sleep 1000", &NONE), window);
        wait_until("it runs", || env.job("bob", window)["status"] == "running");
    }
    env.set("TPU_USER", "alice");
    drop(env.tpu("kill 1 bob").exits(2).says(&["Kill bob/1 (sleep 1000)?", "add -y"]));
    drop(
        env.tpu("kill-window 1 bob")
            .exits(2)
            .says(&["Close the window of bob/1 (sleep 1000)?", "add -y"]),
    );
    drop(env.tpu("submit local bob --hold -- true").exits(0));
    for line in [
        "add-tag 2 mine bob",
        "set-rule 2 pass bob",
        "priority 3 80 bob",
        "priority 3 --first bob",
        "hold 3 bob",
        "unhold 3 bob",
    ] {
        drop(env.tpu(line).exits(2).says(&["of somebody else?", "add -y"]));
    }
    assert_eq!(env.job("bob", 2)["job_tags"], Value::Null);
    drop(env.tpu("add-tag 2 mine bob -y").exits(0));
    drop(env.tpu("priority 3 80 bob -y").exits(0));
    drop(env.tpu("kill 1 bob -y").exits(0));
    env.unset("TPU_USER");
    drop(env.tpu("kill 2 bob").exits(0).says(&["Killed bob/2"]));
}

#[test]
fn who_submitted_a_job_of_somebody_else_is_said_and_the_journal_names_the_account() {
    let mut env = TestEnv::new();
    env.write_data(&env.two_users());
    env.set("TPU_USER", "bob");
    drop(env.tpu("submit local alice --hold -- true").exits(0));
    drop(env.tpu("explain 1 alice").exits(0).says(&["submitted: by bob"]));
    drop(env.tpu("unhold 1 alice -y").exits(0));
    env.wait_status(1, "finished");
    drop(env.tpu("explain 1 alice").exits(0).says(&["submitted: by bob"]));
    let explained = env.tpu("explain 1 alice --json").exits(0).json();
    assert_eq!(explained["submitted_by"], "bob");
    let own = env.tpu("submit local bob --hold --json -- true").exits(0).json();
    let number = &own["jobs"][0]["window"];
    assert!(!env.tpu(&format!("explain {number} bob")).exits(0).stdout.contains("submitted:"));
    let account = accounts::name(Env::read().uid);
    let events = env.tpu("history alice --json").exits(0).json()["events"].clone();
    let events = events.as_array().unwrap().clone();
    assert!(
        !events.is_empty() && events.iter().all(|event| event["account"] == *account),
        "{events:?}"
    );
}

#[test]
fn a_refusal_comes_before_the_question() {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    for window in [1, 2] {
        assert_eq!(env.start("true", &NONE), window);
        env.wait_status(window, "finished");
    }
    drop(env.tpu("kill 1,2 alice").exits(4).says(&["alice/1", "finished"]));
    drop(env.tpu("run v2-1 alice -q -- sleep 1000").exits(0));
    env.wait_status(3, "running");
    for verb in ["delete", "stop", "restart", "reapply"] {
        drop(env.tpu(&format!("{verb} v2-1")).exits(4).says(&["in use by alice/3"]));
    }
    drop(env.tpu("del-user alice").exits(4).says(&["alice/3 is running"]));
}
