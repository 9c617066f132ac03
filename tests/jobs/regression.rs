//! What a review found: one test for each way in which an update, a record, a process or a window went
//! astray. Each failed before its fix.

use std::path::Path;

use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

use tpu_system::sys::procs;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// Starts a process that leaves the job's group and ignores the end of its window; `$HOME/left` holds its
/// pid. It ends on SIGINT.
const LEFTOVER: &str = "set -m; setsid bash -c 'echo $$ >\"$HOME/left\"; exec sleep 1000' \
    >/dev/null 2>&1 </dev/null & set +m; while [ ! -s \"$HOME/left\" ]; do sleep 0.4; done; ";

/// A directory of programs that stand before all others; returns the search path without it.
fn programs(env: &mut TestEnv) -> String {
    let path = env.tmux().env().var("PATH").unwrap().to_owned();
    std::fs::create_dir(env.path("programs")).unwrap();
    env.set("PATH", format!("{}:{path}", env.path("programs").display()));
    path
}

#[test]
fn notes_are_kept_in_the_record_and_go_on_to_its_successor() {
    let env = TestEnv::new();
    let words = ["run", "local", "alice", "ssn=too hot?", "-q", "--", "bash", "-c", "exit 1"];
    drop(env.tpu_words(&words).exits(0));
    assert_eq!(env.wait_status(1, "error")["extra_msgs"]["spreadsheet_notes"], "too hot?");
    drop(env.tpu("rerun w=1 alice").exits(0));
    assert_eq!(env.job("alice", 2)["extra_msgs"]["spreadsheet_notes"], "too hot?");
}

#[test]
fn a_window_of_another_data_file_is_no_orphan() {
    let mut env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    let ours = env.data_path();
    let theirs = env.path("other");
    std::fs::create_dir(&theirs).unwrap();
    write_file(&theirs.join("data.json"), &env.two_users().to_string());
    env.set("TPU_DATA", theirs.join("data.json"));
    let look = env.tpu("check alice --json").exits(0).json();
    assert_eq!(look["orphans"], json!([]));
    drop(env.tpu("-czw alice").exits(0).says(&["closed 0 windows"]));
    drop(env.tpu("clean alice").exits(0));
    drop(env.tpu("kill-window 1 alice").exits(4).says(&["hint:"]));
    assert_eq!(env.windows("alice"), [0, 1]);
    // A window of our own whose record is gone is one.
    env.set("TPU_DATA", ours);
    let two_users = env.two_users();
    env.write_data(&two_users);
    drop(env.tpu("-czw alice").exits(0).says(&["closed 1 window"]));
    assert_eq!(env.windows("alice"), [0]);
}

#[test]
fn a_job_that_runs_is_no_failed_launch_because_tmux_stumbled() {
    let mut env = TestEnv::new();
    let path = programs(&mut env);
    let stumbles = format!(
        "PATH='{path}'\ncase \" $* \" in *' new-window '*' =alice:1 '*)\n  tmux \"$@\" >/dev/null\n  \
         until grep -q '\"status\": \"running\"' \"$TPU_DATA\"; do sleep 0.4; done\n  \
         echo 'server exited unexpectedly' >&2; exit 1;;\nesac\nexec tmux \"$@\""
    );
    write_script(&env.path("programs/tmux"), &stumbles);
    let script = "until [ -e \"$HOME/end\" ]; do sleep 0.4; done";
    let words = ["run", "local", "alice", "-q", "--", "bash", "-c", script];
    drop(env.tpu_words(&words).exits(6).says(&["alice/1 is started", "hint:"]));
    assert_eq!(env.job("alice", 1)["status"], "running");
    env.touch("end");
    env.wait_status(1, "finished");
}

#[test]
fn a_launch_whose_record_is_cleaned_away_leaves_no_window() {
    let env = TestEnv::new();
    let mut running =
        env.start_at_points("run local alice -q -- sleep 1000", "launch-written=sleep(2000)");
    let _written = env.wait_file("tpu-state/jobs/alice/1/launcher.sh");
    let sleeper = Pid::from_child(&running);
    kill_process(sleeper, rustix::process::Signal::STOP).unwrap();
    drop(env.tpu("kill w=1 alice").exits(0));
    drop(env.tpu("clean alice").exits(0));
    assert_eq!(env.jobs("alice"), Vec::<Value>::new());
    kill_process(sleeper, rustix::process::Signal::CONT).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(4));
    assert_eq!(env.windows("alice"), [0], "a window without a record");
}

#[test]
fn what_is_being_killed_gets_no_successor() {
    let env = TestEnv::new();
    let stubborn = "set -m; setsid bash -c 'trap \"touch \\\"$HOME/asked\\\"\" INT; \
        trap \"until [ -e \\\"$HOME/go\\\" ]; do sleep 0.4; done; exit\" TERM; touch \"$HOME/left\"; \
        while :; do sleep 0.4; done' >/dev/null 2>&1 </dev/null & set +m; \
        until [ -e \"$HOME/left\" ]; do sleep 0.4; done; exit 3";
    env.start(stubborn, &NONE);
    env.wait_status(1, "error");
    // It has made its plan, and waits for what is left of the parent.
    let again = env.start_tpu("rerun w=1 alice", &[]);
    let _asked = env.wait_file("asked");
    let killer = env.start_tpu("kill w=1 alice", &[("FAILPOINTS", "kill-intended=pause")]);
    wait_until("the intent is recorded", || {
        env.job("alice", 1)["extra_msgs"]["intent"]["action"] == "killing"
    });
    env.touch("go");
    assert_eq!(again.wait(), 4);
    assert_eq!(env.jobs("alice").len(), 1, "a job that is being killed went on");
    killer.kill();
    drop(env.tpu("kill w=1 alice").exits(0));
    assert_eq!(env.job("alice", 1)["status"], "error");
}

#[test]
fn an_end_that_nobody_wrote_down_is_no_kill() {
    let env = TestEnv::new();
    // The launcher cannot call back; it still leaves the exit code.
    env.start("rm -f \"$TPU_BIN\"", &NONE);
    let _code = env.wait_file("tpu-state/jobs/alice/1/exit");
    assert_eq!(env.job("alice", 1)["status"], "running");
    drop(env.tpu("kill w=1 alice").exits(4).says(&["finished"]));
    assert_eq!(env.job("alice", 1)["status"], "finished");
}

#[test]
fn the_end_of_an_earlier_job_of_that_number_ends_no_other() {
    let env = TestEnv::new();
    env.start("true", &NONE);
    env.wait_status(1, "finished");
    drop(env.tpu("clean alice").exits(0));
    drop(env.tpu("reset-window-num 1 alice").exits(0));
    let line = "run local alice -q -- true";
    let claimed = env.start_tpu(line, &[("FAILPOINTS", "launch-claimed=pause")]);
    wait_until("the claim", || env.jobs("alice").len() == 1);
    drop(env.tpu("clear-finished alice").exits(0).says(&["Archived 0 jobs"]));
    assert_eq!(env.job("alice", 1)["status"], "starting");
    claimed.kill();
}

#[test]
fn the_search_path_does_not_grow_with_each_attempt() {
    let env = TestEnv::new();
    env.start("exit 1", &NONE);
    env.wait_status(1, "error");
    for window in [1, 2] {
        drop(env.tpu(&format!("rerun w={window} alice")).exits(0));
        env.wait_status(window + 1, "error");
    }
    let bytes = std::fs::read(env.state_of("alice", 3).join("env")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let path = text.split('\0').find_map(|pair| pair.strip_prefix("PATH=")).unwrap();
    let own = env.state_of("alice", 3).join("bin");
    let of_jobs: Vec<&str> = path.split(':').filter(|dir| dir.contains("tpu-state")).collect();
    assert_eq!(of_jobs, [own.to_str().unwrap()], "{path}");
}

#[test]
fn a_log_that_cannot_be_written_does_not_fail_the_job() {
    let mut env = TestEnv::new();
    let _path = programs(&mut env);
    // As tee does on a full disk: it passes everything on, and ends with 1.
    write_script(&env.path("programs/tee"), "cat\nexit 1");
    env.start("echo done", &NONE);
    env.wait_status(1, "finished");
    env.start("exit 7", &NONE);
    assert_eq!(env.wait_status(2, "error")["extra_msgs"]["launch"]["exit"], 7);
}

#[test]
fn a_lost_directory_costs_no_attempt() {
    let env = TestEnv::new();
    let script = "mkdir \"$TPU_LOG_DIR/checkpoint_1\"; echo w >\"$TPU_LOG_DIR/checkpoint_1/w\"; \
                  exit 3";
    env.code("alice", "main.sh", "true\n");
    env.start(script, &NONE);
    env.wait_status(1, "error");
    std::fs::remove_dir_all(env.path("code-alice")).unwrap();
    let before = env.data_bytes();
    drop(env.tpu("rerun w=1 alice").exits(3).says(&["code-alice", "hint:"]));
    assert_eq!(env.data_bytes(), before, "the parent may still be continued");
    // A resume runs the copy of the code, and that is there.
    drop(env.tpu("resume w=1 alice").exits(0));
    assert_eq!(env.wait_status(2, "error")["extra_msgs"]["launch"]["exit"], 3);
}

#[test]
fn a_copy_that_failed_half_way_is_no_stage_directory() {
    let env = TestEnv::new();
    env.code("alice", "main.sh", "true\n");
    // A path that is as long as paths may be does not fit into a directory with a longer name.
    let mut deep = env.path("code-alice");
    while deep.as_os_str().len() < 3_880 {
        deep.push("d".repeat(200));
    }
    std::fs::create_dir_all(&deep).unwrap();
    let rest = 4_090 - deep.as_os_str().len() - 1;
    write_file(&deep.join("f".repeat(rest.min(255))), "");
    env.start("true", &NONE);
    let job = env.wait_status(1, "error");
    // The record may be written before tmux has drawn the line.
    wait_until("it says so", || env.pane("alice", 1).contains("cannot copy"));
    let stage = job["stage_dir"].as_str().unwrap();
    assert!(!Path::new(stage).exists(), "a resume would run what is there");
    // What is printed is ours and no text of the job: the record says it.
    assert_eq!(job["error"], "launch");
    assert!(job["extra_msgs"]["verdict"]["line"].as_str().unwrap().contains("cannot copy"));
}

#[test]
fn an_empty_word_of_a_script_takes_nothing_out_of_the_record() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let mut job = env.record("alice", 1, "running");
    job["tpu"] = json!("lab-tpuvm-v2-32-1");
    job["stage_dir"] = json!("/stage");
    data["users"]["alice"]["job_data"] = json!([job]);
    env.write_data(&data);
    drop(env.tpu_words(&["upd-log", "alice:1", "/log", "", "", "now"]).exits(0));
    let job = env.job("alice", 1);
    assert_eq!((&job["tpu"], &job["log_dir"]), (&json!("lab-tpuvm-v2-32-1"), &json!("/log")));
    assert_eq!(job["stage_dir"], "/stage");
}

#[test]
fn a_process_of_another_launch_cannot_speak_for_the_job() {
    let mut env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    env.wait_status(1, "running");
    env.set("TPU_JOB", "alice/1");
    env.set("TPU_LAUNCH", "of-an-earlier-job-of-that-number");
    drop(env.tpu("finish-job alice:1").exits(4).says(&["another launch", "hint:"]));
    assert_eq!(env.job("alice", 1)["status"], "running");
}

#[test]
fn what_the_control_plane_proved_is_not_renamed_by_a_script() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let mut job = env.record("alice", 1, "error");
    job["error"] = json!("preempted");
    job["extra_msgs"]["verdict"] = json!({
        "kind": "preempted", "rule": "target-state", "line": "x is PREEMPTED", "ignored": false,
    });
    data["users"]["alice"]["job_data"] = json!([job]);
    env.write_data(&data);
    drop(env.tpu("fail-job alice:1"));
    assert_eq!(env.job("alice", 1)["error"], "preempted");
}

#[test]
fn closing_the_window_of_a_job_kills_it_first() {
    let env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    env.wait_status(1, "running");
    drop(env.tpu("kill-window 1 alice").exits(0));
    assert_eq!(env.windows("alice"), [0]);
    let archive = std::fs::read_to_string(env.path("tpu-state/archive.jsonl")).unwrap();
    let line: Value = serde_json::from_str(archive.trim()).unwrap();
    assert_eq!(line["job"]["status"], "killed");
}

#[test]
fn a_record_stays_while_processes_that_outlived_its_window_live() {
    for command in ["-czj alice", "clear-error alice"] {
        let env = TestEnv::new();
        env.start(&format!("{LEFTOVER} exec sleep 1000"), &NONE);
        let left = env.wait_pid("left");
        env.wait_status(1, "running");
        drop(env.tmux().run(&["kill-window", "-t", &env.pane_id("alice", 1).unwrap()]));
        drop(env.tpu(command).exits(0).says(&["Archived 0 jobs"]));
        assert!(lives(&left));
        drop(env.tpu("kill 1 alice -y").exits(0));
        wait_gone(&left);
        drop(env.tpu(command).exits(0).says(&["Archived 1 job"]));
    }
}

#[test]
fn a_job_that_was_moved_into_the_home_window_does_not_take_it_along() {
    let env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    env.wait_status(1, "running");
    let pane = env.pane_id("alice", 1).unwrap();
    drop(env.tmux().run(&["join-pane", "-d", "-s", &pane, "-t", "=alice:0"]));
    drop(env.tpu("kill w=1 alice").exits(0));
    assert_eq!(env.job("alice", 1)["status"], "killed");
    assert_eq!(env.windows("alice"), [0], "the session, and with it the server");
}

#[test]
fn a_window_that_somebody_has_split_stays_the_jobs() {
    let env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    let job = env.pane_id("alice", 1).unwrap();
    drop(env.tmux().run(&["split-window", "-b", "-d", "-t", &job, "exec sleep 1000"]));
    drop(env.tmux().run(&["new-window", "-d", "-t", "=alice:7", "exec sleep 1000"]));
    let seven = env.pane_id("alice", 7).unwrap();
    drop(env.tmux().run(&["split-window", "-d", "-t", &seven, "exec sleep 1000"]));
    drop(env.tpu("-czw alice --force -y").exits(0).says(&["closed 1 window."]));
    assert_eq!(env.windows("alice"), [0, 1]);
    let panes = env.tmux().run(&["list-panes", "-t", &job, "-F", "#{pane_id}"]);
    assert_eq!(panes.lines().count(), 2, "a pane of a job's window was closed");
}

#[test]
fn a_job_that_begins_while_it_is_killed_is_stopped_as_well() {
    let mut env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    let token = env.wait_status(1, "running")["extra_msgs"]["launch"]["token"].clone();
    let path = programs(&mut env);
    // The first process of the job appears between the last look at processes and the end of the window.
    let mark = format!("TPU_LAUNCH={}", token.as_str().unwrap());
    let late = format!(
        "PATH='{path}'\ncase \"$*\" in *kill-*) {mark} setsid sleep 1000 >/dev/null 2>&1 & \
         echo $! >\"$HOME/late\"; until grep -qsz '^{mark}$' /proc/$!/environ; do sleep 0.4; done;; \
         esac\nexec tmux \"$@\""
    );
    write_script(&env.path("programs/tmux"), &late);
    drop(env.tpu("kill w=1 alice").exits(0));
    let pid = std::fs::read_to_string(env.path("late")).unwrap().trim().parse().unwrap();
    assert!(procs::Process::read(pid).is_none_or(|process| process.zombie), "{pid} is left");
}

#[test]
fn a_proven_preemption_is_not_renamed_by_a_claim_of_success_either() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let mut job = env.record("alice", 1, "error");
    job["error"] = json!("preempted");
    job["log_dir"] = json!(env.path("code-alice"));
    job["extra_msgs"]["verdict"] = json!({
        "kind": "preempted", "rule": "target-state", "line": "x is PREEMPTED", "ignored": false,
    });
    data["users"]["alice"]["job_data"] = json!([job]);
    env.write_data(&data);
    let traceback = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n\
                     KeyError: 'lr'\n";
    env.code("alice", "output.log", traceback);
    drop(env.tpu("finish-job alice:1").exits(4));
    assert_eq!(env.job("alice", 1)["error"], "preempted");
}

#[test]
fn the_shell_that_a_job_leaves_speaks_for_no_job() {
    let env = TestEnv::new();
    env.start("true", &NONE);
    env.wait_status(1, "finished");
    let pane = env.pane_id("alice", 1).unwrap();
    let line = "echo \"[$TPU_JOB]\" >\"$HOME/said\"";
    drop(env.tmux().run(&["send-keys", "-t", &pane, line, "Enter"]));
    wait_until("the shell's answer", || {
        std::fs::read_to_string(env.path("said")).is_ok_and(|said| said.ends_with('\n'))
    });
    assert_eq!(env.wait_file("said"), b"[]\n");
}

#[test]
fn a_failed_job_holds_its_target_until_its_program_ends() {
    let env = TestEnv::new();
    env.code("alice", "staging.sh", "tpu fail-job x:1; exec sleep 1000\n");
    env.code("bob", "staging.sh", "true\n");
    drop(env.tpu("run v2-1 alice -q").exits(0));
    env.wait_status(1, "error");
    drop(env.tpu("run v2-1 bob -q").exits(4).says(&["in use by alice/1", "hint:"]));
    drop(env.tpu("kill w=1 alice").exits(0));
    drop(env.tpu("run v2-1 bob -q").exits(0));
}

#[test]
fn a_command_that_ends_well_has_finished_whatever_its_text_had_shown() {
    let env = TestEnv::new();
    let window = env.start(
        "until [ -e \"$TPU_DATA.go\" ]; do read -r -t 0.05 <> <(:); done; exit 0",
        &[] as &[&str],
    );
    env.wait_status(window, "running");
    env.tpu(&format!("fail-job alice:{window}")).exits(0);
    env.wait_status(window, "error");
    env.touch("data.json.go");
    env.wait_status(window, "finished");
    // What it was taken for before is no evidence about its end.
    let shown = env.tpu(&format!("check {window} alice --json")).exits(0).json();
    let job = &shown["jobs"][0];
    assert_eq!((&job["evidence"], &job["exit_code"]), (&json!(null), &json!(0)), "{job:#}");
}

#[test]
fn two_users_in_one_command_are_one_too_many() {
    let env = TestEnv::new();
    env.tpu("ls alice --user bob").exits(2).says(&["alice", "bob"]);
}

#[test]
fn a_dry_run_is_never_taken_for_nothing() {
    let env = TestEnv::new();
    let before = env.data_bytes();
    for line in [
        "del-user bob",
        "set-settings monitor_upd_time 9 alice",
        "-a x config.x alice",
        "clear alice",
    ] {
        let output = env.tpu(&format!("{line} --dry-run")).exits(0);
        assert!(output.stdout.contains("Dry run") || output.stdout.contains("Would"), "{output}");
    }
    assert_eq!(env.data_bytes(), before);
}

/// The only record of alice: a script whose target was taken away while it was at work, as its daemon has noted.
fn seen_preempted(env: &TestEnv) -> Value {
    let mut job = env.record("alice", 1, "error");
    job["error"] = json!("preempted");
    job["extra_msgs"]["verdict"] = json!({
        "kind": "preempted", "rule": "target-state", "line": "x is PREEMPTED", "ignored": false,
    });
    job
}

fn write_job(env: &TestEnv, job: &Value) {
    let mut data = env.two_users();
    data["users"]["alice"]["job_data"] = json!([job]);
    env.write_data(&data);
}

#[test]
fn a_script_that_was_seen_preempted_and_then_ends_well_is_finished() {
    let env = TestEnv::new();
    write_job(&env, &seen_preempted(&env));
    drop(env.tpu("finish-job alice:1").exits(0));
    let job = env.job("alice", 1);
    assert_eq!((&job["status"], &job["error"]), (&json!("finished"), &Value::Null));
    assert_eq!(job["extra_msgs"]["verdict"], Value::Null, "what was taken for its failure");
}

#[test]
fn while_a_rule_brings_it_back_its_claim_is_refused_and_the_action_goes_on() {
    let env = TestEnv::new();
    let mut job = seen_preempted(&env);
    job["extra_msgs"]["intent"] =
        json!({ "action": "reapply", "at": "2026-11-20T08:00:00Z", "by": "here:boot:1:1" });
    write_job(&env, &job);
    let refused = ["alice/1 was preempted", "reapply is under way", "hint:"];
    drop(env.tpu("finish-job alice:1").exits(4).says(&refused));
    assert_eq!(env.job("alice", 1)["error"], "preempted");
}

#[test]
fn an_error_under_which_a_good_end_is_recorded_is_mended_by_the_daemon() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.start("exit 0", &NONE);
    env.wait_status(1, "finished");
    let mut data = env.data();
    let job = &mut data["users"]["alice"]["job_data"][0];
    (job["status"], job["error"]) = (json!("error"), json!("grpc"));
    env.write_data(&data);
    let _daemon = env.start_tpu("daemon run", &[]);
    env.wait_status(1, "finished");
}
