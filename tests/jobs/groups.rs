//! A group of jobs on this machine, in real windows: its members run side by side, and a kill of its launch at any
//! step leaves nothing double and nothing forgotten.

use serde_json::{Value, json};

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// Says which member it is, once for each time that it runs, and stays.
const MEMBER: &str =
    "echo \"$TPU_GROUP $TPU_MEMBER\" >>\"$TPU_DATA.ran-$TPU_JOB_NUMBER\"; exec sleep 1000";

fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let script = MEMBER.replace("$TPU_JOB_NUMBER", "${TPU_JOB#*/}");
    env.code("alice", "member.sh", &script);
    env
}

/// What the job of a window has said of itself, a line for each time that it ran.
fn said(env: &TestEnv, window: u64) -> Option<String> {
    let mut path = env.data_path().into_os_string();
    path.push(format!(".ran-{window}"));
    std::fs::read_to_string(path).ok()
}

fn statuses(env: &TestEnv) -> Vec<(Value, Value)> {
    env.jobs("alice").iter().map(|job| (job["status"].clone(), job["error"].clone())).collect()
}

#[test]
fn its_members_run_side_by_side_and_are_stopped_one_by_one_or_all() {
    let env = lab();
    let ran = env.tpu("run local --array 0,2-3 -q --json -- bash member.sh").exits(0).json();
    assert_eq!(ran["group"]["group"], 1);
    let windows: Vec<&Value> =
        ran["group"]["members"].as_array().unwrap().iter().map(|m| &m["window"]).collect();
    assert_eq!(windows, [2, 3, 4]);
    for (window, member) in [(2, 0), (3, 2), (4, 3)] {
        let told =
            wait_for("it says who it is", || said(&env, window).filter(|t| t.ends_with('\n')));
        assert_eq!(told, format!("1 {member}\n"));
        assert!(env.has_window("alice", window));
    }
    assert!(!env.has_window("alice", 1), "no attempt has the number of the group");
    drop(env.tpu("kill 1_2 -y").exits(0).says(&["alice/3"]));
    assert!(!env.has_window("alice", 3) && env.has_window("alice", 4));
    // Brought back it is the same member, under its next number.
    drop(env.tpu("rerun 1_2 --force").exits(0).says(&["as alice/5"]));
    let told = wait_for("it says who it is", || said(&env, 5).filter(|text| text.ends_with('\n')));
    assert_eq!(told, "1 2\n");
    let shown = env.tpu("check 1_2 --json").exits(0).json();
    assert_eq!((&shown["jobs"][0]["window"], &shown["jobs"][0]["member"]), (&json!(5), &json!(2)));
    drop(env.tpu("kill 1 -y").exits(0).says(&["alice/2", "alice/5", "alice/4"]));
    assert!([2, 4, 5].iter().all(|window| !env.has_window("alice", *window)));
    drop(env.tpu("reset-window-num 1 alice").exits(4));
}

#[test]
fn what_a_person_has_killed_of_a_group_is_started_again_only_where_it_is_named() {
    let env = lab();
    let rule = "rule=killed-by-signal:rerun";
    let words = ["run", "local", rule, "--array", "0-2", "-q", "--", "bash", "-c", "kill -9 $$"];
    drop(env.tpu_words(&words).exits(0));
    for member in 2..=4 {
        env.wait_status(member, "error");
    }
    drop(env.tpu("kill 1_1 -y").exits(0).says(&["alice/3 had ended already"]));
    let again = env.tpu("rerun 1 -y").exits(0).says(&["alice/2", "alice/4"]).to_string();
    assert!(!again.contains("alice/3"), "{again}");
    assert_eq!(env.jobs("alice").len(), 5);
    drop(env.tpu("rerun 1_1 -y").exits(0).says(&["alice/3"]));
    assert_eq!(env.jobs("alice").len(), 6);
    for successor in 5..=7 {
        env.wait_status(successor, "error");
    }
}

#[test]
fn a_job_that_a_member_starts_is_no_member() {
    let env = lab();
    env.code("alice", "nested.sh", "tpu run local -q -- bash member.sh; exec sleep 1000");
    drop(env.tpu("run local --array 7 -q -- bash nested.sh").exits(0));
    let told = wait_for("the inner job", || said(&env, 3).filter(|text| text.ends_with('\n')));
    assert_eq!(told, " \n");
    assert_eq!(env.job("alice", 3)["extra_msgs"]["spec"]["member"], Value::Null);
}

#[test]
fn a_kill_between_claim_and_submissions_leaves_failed_launches_that_can_be_run_again() {
    let env = lab();
    let line = "run local --array 0-3 -q -- bash member.sh";
    let running = env.start_tpu(line, &[("FAILPOINTS", "launch-claimed=pause")]);
    wait_until("all are claimed at once", || env.jobs("alice").len() == 4);
    running.kill();
    env.a_minute_later("alice");
    drop(env.tpu("clear-finished bob").exits(0));
    assert!(statuses(&env).iter().all(|told| *told == (json!("error"), json!("launch"))));
    drop(env.tpu("rerun 1").exits(0).says(&["as alice/6", "as alice/9"]));
    for (window, member) in (6..=9).zip(0..) {
        let told = wait_for("it runs", || said(&env, window).filter(|text| text.ends_with('\n')));
        assert_eq!(told, format!("1 {member}\n"), "once");
    }
    assert!((2..=5).all(|window| said(&env, window).is_none()), "nothing ran twice");
}

#[test]
fn a_kill_among_the_submissions_keeps_what_has_begun_and_gives_up_the_rest() {
    let env = lab();
    let line = "run local --array 0-3 -q -- bash member.sh";
    // The first is opened and confirmed; the second is opened, and nobody writes it down.
    let running = env.start_tpu(line, &[("FAILPOINTS", "launch-opened=1*off->pause")]);
    for window in [2, 3] {
        wait_until("it runs", || said(&env, window).is_some());
    }
    running.kill();
    env.a_minute_later("alice");
    drop(env.tpu("clear-finished bob").exits(0));
    let lost = (json!("error"), json!("launch"));
    let told = statuses(&env);
    assert!(told[..2].iter().all(|(status, _)| *status == "running"), "{told:?}");
    assert_eq!(told[2..], [lost.clone(), lost]);
    drop(env.tpu("rerun 1").exits(0).says(&["as alice/6", "as alice/7"]));
    for (window, member) in [(2, 0), (3, 1), (6, 2), (7, 3)] {
        let told = wait_for("it runs", || said(&env, window).filter(|text| text.ends_with('\n')));
        assert_eq!(told, format!("1 {member}\n"), "once");
    }
    assert!(
        [4, 5]
            .iter()
            .all(|window| said(&env, *window).is_none() && !env.has_window("alice", *window))
    );
}

#[test]
fn a_member_that_cannot_be_submitted_keeps_the_others_from_nothing() {
    let env = lab();
    // Where the third would have its files, there is something that is no directory.
    let place = env.state_of("alice", 4);
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    write_file(&place, "in the way");
    let ran = env.tpu("run local --array 0-3 -q -- bash member.sh");
    drop(ran.exits(1).says(&["3 jobs", "1_2"]));
    assert_eq!(statuses(&env)[2], (json!("error"), json!("launch")));
    wait_until("the others run", || [2, 3, 5].iter().all(|window| said(&env, *window).is_some()));
}

#[test]
fn members_that_wait_for_their_submission_are_not_taken_for_forgotten_ones() {
    let env = lab();
    let line = "run local --array 0-2 -q -- bash member.sh";
    // So slow that the last is submitted long after it was claimed: it is said again that somebody is at it.
    let mut running = env.start_at_points(line, "launch-written=sleep(2600)");
    assert!(running.wait().unwrap().success());
    let last = env.job("alice", 4);
    let at = last["extra_msgs"]["launch"]["at"].as_str().unwrap();
    assert!(at > last["start_time"].as_str().unwrap(), "{last:#}");
    assert!(statuses(&env).iter().all(|(_, error)| error.is_null()));
}
