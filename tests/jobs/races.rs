//! Things that happen at the same time: a job that ends while somebody acts on it.

use serde_json::json;
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::Status;
use tpu_system::store::Paths;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_TEST_ROOT", env.path(""));
    env
}

/// Prints what a failed program prints, has a checkpoint, and hangs.
const HANGS: &str = r#"mkdir -p "$TPU_LOG_DIR/checkpoint_1"; echo w >"$TPU_LOG_DIR/checkpoint_1/w"
echo 'Traceback (most recent call last):'
echo '  File "main.py", line 61, in <module>'
echo "KeyError: 'lr'"
echo $$ >"$TPU_TEST_ROOT/pid.new"; mv "$TPU_TEST_ROOT/pid.new" "$TPU_TEST_ROOT/pid-$TPU_JOB_WINDOW"
exec sleep 1000"#;

/// At once, or so late that the launcher of the stopped job has written its end down; should it need
/// even longer, there is nothing to see.
const LATE: [&str; 2] = ["off", "sleep(800)"];

/// Starts a job that has failed by its text and still holds its processes; its window.
fn hanging(env: &TestEnv) -> u64 {
    let script = HANGS.replace("$TPU_JOB_WINDOW", "${TPU_JOB#*/}");
    let window = env.start(&script, &[""; 0]);
    let _pid = env.wait_file(&format!("pid-{window}"));
    wait_until("the failure in the text", || {
        let seen = env.tpu("check --json").exits(0).json();
        seen["jobs"].as_array().unwrap().iter().any(|job| {
            job["window"] == window && job["status"] == "error" && job["error"] == "python-error"
        })
    });
    window
}

#[test]
fn a_failed_job_that_still_hangs_is_stopped_and_resumed() {
    let env = lab();
    for late in LATE {
        let window = hanging(&env);
        assert_eq!(env.job("alice", window)["status"], "running", "only the text says so");
        let process = env.wait_pid(&format!("pid-{window}"));
        let points = [("FAILPOINTS", &*format!("resume-stopped={late}"))];
        assert_eq!(env.start_tpu(&format!("resume w={window}"), &points).wait(), 0, "{late}");
        wait_gone(&process);
        let parent = env.job("alice", window);
        assert_eq!(parent["status"], "resumed");
        assert_eq!(parent["error"], "python-error");
        let child = parent["extra_msgs"]["child"].as_u64().unwrap();
        assert_eq!(env.job("alice", child)["extra_msgs"]["father"], window);
        drop(env.tpu(&format!("kill w={child} -y")).exits(0));
    }
}

#[test]
fn no_target_gets_another_way_to_it_over_a_job_that_has_just_begun() {
    let env = lab();
    drop(env.tpu("register lab-hosts --address 127.0.0.1:1").exits(0));
    env.start("true", &[""; 0]);
    env.wait_status(1, "finished");
    let lock = Paths::new(env.data_path()).lock();
    let mut late = None;
    env.change(|data| {
        let written = std::fs::metadata(&lock).unwrap().len();
        late = Some(env.start_tpu("register lab-hosts --zone us-central1-a", &[]));
        wait_until("it has looked, and waits", || {
            std::fs::metadata(&lock).unwrap().len() > written
        });
        let job = data.job_mut(&JobId::new("alice".into(), JobNumber(1))).unwrap();
        (job.tpu, job.status) = ("lab-hosts".into(), Status::Running);
    });
    assert_eq!(late.unwrap().wait(), 4);
    assert!(String::from_utf8(env.data_bytes()).unwrap().contains("127.0.0.1:1"));
}

#[test]
fn a_job_that_dies_of_ctrl_c_is_not_finished() {
    let env = lab();
    for (before, script) in [
        ("", "exec sleep 1000"),
        ("", "sleep 1000"),
        ("trap 'exit 7' INT", "while :; do sleep 0.4; done"),
    ] {
        // No program of its own: a shell that waits for one that ends well goes on after a Ctrl-C.
        let script = format!("{before}\necho $$ >\"$TPU_TEST_ROOT/up-$TPU_LAUNCH\"\n{script}");
        let window = env.start(&script, &[""; 0]);
        let token = env.job("alice", window)["extra_msgs"]["launch"]["token"].clone();
        let shell = env.wait_pid(&format!("up-{}", token.as_str().unwrap()));
        let pane = env.pane_id("alice", window).unwrap();
        // Whoever sees that nothing happens presses it again: a shell that has forked and does not wait yet goes on.
        wait_until("its shell has ended", || {
            let _typed = env.tmux().run(&["send-keys", "-t", &pane, "C-c"]);
            !lives(&shell)
        });
        let job = env.wait_status(window, "error");
        let code = if script.contains("exit 7") { 7 } else { 130 };
        assert_eq!(job["extra_msgs"]["launch"]["exit"], code, "{script}");
    }
}

#[test]
fn a_live_job_s_window_and_record_go_together() {
    let env = lab();
    for late in LATE {
        let window = hanging(&env);
        let process = env.wait_pid(&format!("pid-{window}"));
        let points = [("FAILPOINTS", &*format!("clean-stopped={late}"))];
        assert_eq!(env.start_tpu(&format!("kill-window {window} -y"), &points).wait(), 0, "{late}");
        wait_gone(&process);
        assert!(!env.has_window("alice", window));
        assert!(env.jobs("alice").is_empty());
    }
}

/// A window is looked for in what tmux says after the records were read: one that comes to be in between is no record
/// without a window.
#[test]
fn what_begins_while_somebody_cleans_is_not_cleaned_away() {
    let env = lab();
    let first = env.start("exec sleep 1000", &["run", "local"]);
    let mut cleaning = env.start_at_points("clean alice -y", "windowless-read=sleep(3000)");
    let mut begun = Vec::new();
    while cleaning.try_wait().unwrap().is_none() {
        begun.push(env.start("exec sleep 1000", &["run", "local"]));
    }
    for number in [first].into_iter().chain(begun) {
        env.wait_status(number, "running");
        drop(env.tpu(&format!("kill w={number} alice")).exits(0));
    }
}

#[test]
fn a_script_that_finishes_before_its_launch_is_confirmed_keeps_its_window() {
    let env = lab();
    let script = "tpu finish-job alice:1; until [ -e \"$TPU_TEST_ROOT/go\" ]; do sleep 0.4; done";
    env.code("alice", "staging.sh", script);
    // Long enough for the script to call back; should it be late, there is nothing to see.
    let points = [("FAILPOINTS", "launch-opened=sleep(1500)")];
    let running = env.start_tpu("run v2-1 -q", &points);
    wait_until("the record", || !env.jobs("alice").is_empty());
    let _finished = env.wait_status(1, "finished");
    assert_eq!(running.wait(), 0);
    assert!(env.has_window("alice", 1), "the script is still at work");
    env.touch("go");
    wait_until("the end of the script", || {
        env.job("alice", 1)["extra_msgs"]["launch"]["ended"].is_string()
    });
    assert_eq!(env.job("alice", 1)["status"], "finished");
}

#[test]
fn a_job_that_finishes_while_somebody_looks_has_finished() {
    let env = lab();
    let script = "until [ -e \"$TPU_TEST_ROOT/go\" ]; do sleep 0.3; done; tpu finish-job alice:0";
    env.code("alice", "staging.sh", script);
    drop(env.tpu("run v2-1 -q").exits(0));
    wait_until("the script", || env.job("alice", 1)["extra_msgs"]["launch"]["confirmed"] == true);
    // It has read the record, and reads how the job ended only when all is over. Should it be late with
    // the first, there is nothing to see.
    let points = [("FAILPOINTS", "look-read=1*sleep(1500)")];
    let looking = env.start_tpu("wait w=1", &points);
    env.touch("go");
    let _finished = env.wait_status(1, "finished");
    assert_eq!(looking.wait(), 0, "it finished well");
}

#[test]
fn a_window_that_closes_with_its_job_does_not_stop_a_kill() {
    let mut env = lab();
    // The shell that the launcher leaves behind ends at once, and the window with it.
    env.set("SHELL", "/bin/true");
    let window =
        env.start("echo $$ >pid.new; mv pid.new \"$1\"; exec sleep 1000", &[env.path("pid")]);
    let process = env.wait_pid("pid");
    let points = [("FAILPOINTS", "kill-stopped=sleep(800)")];
    assert_eq!(env.start_tpu(&format!("kill w={window} -y"), &points).wait(), 0);
    wait_gone(&process);
    let job = env.job("alice", window);
    assert_eq!((&job["status"], &job["extra_msgs"]["intent"]), (&json!("killed"), &json!(null)));
}

#[test]
fn nothing_is_closed_when_one_window_cannot_be_judged() {
    let env = lab();
    let window = env.start("exit 3", &[""; 0]);
    let _failed = env.wait_status(window, "error");
    let mut data = env.data();
    let mut elsewhere = data["users"]["alice"]["job_data"][0].clone();
    elsewhere["windows_id"] = json!(7);
    elsewhere["extra_msgs"]["place"]["socket"] = json!("/tmp/no-such-socket");
    elsewhere["extra_msgs"]["launch"]["token"] = json!("0123");
    data["users"]["alice"]["job_data"].as_array_mut().unwrap().push(elsewhere);
    write_file(&env.data_path(), &data.to_string());
    let bytes = env.data_bytes();
    drop(env.tpu("clean").exits(6).says(&["alice/7", "no record was archived"]));
    assert!(env.has_window("alice", window));
    assert!(env.data_bytes() == bytes);
}

/// A plan is made of what was read before: what is said of the job until it begins holds for what begins.
#[test]
fn what_is_said_of_a_job_while_its_next_attempt_begins_holds_for_that() {
    let env = lab();
    let window = env.start("exit 3", &["run", "local"]);
    env.wait_status(window, "error");
    let mut resumes =
        env.start_at_points(&format!("rerun w={window} -y"), "launch-planned=sleep(8000)");
    wait_until("it is about to begin", || {
        env.job("alice", window)["extra_msgs"]["lease"].is_object()
    });
    drop(env.tpu(&format!("set-rule {window} rerun alice")).exits(0));
    drop(env.tpu(&format!("add-tag {window} late alice")).exits(0));
    assert!(env.job("alice", window)["extra_msgs"]["child"].is_null(), "said in time");
    assert!(resumes.wait().unwrap().success());
    let parent = env.job("alice", window);
    let child = env.job("alice", parent["extra_msgs"]["child"].as_u64().unwrap());
    assert_eq!((&child["job_tags"], &child["rules"]), (&parent["job_tags"], &parent["rules"]));
    assert_eq!(child["job_tags"], "late");
}
