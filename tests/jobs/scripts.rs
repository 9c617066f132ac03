//! Script mode: the exit code is the script's, which may have hidden the program's. What the program printed
//! says how it ended, and what `tpu` itself wrote into the window says nothing.

use serde_json::{Value, json};

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

const BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/corpus/blocks");

/// A script of alice that has begun, and then does `work` with its log directory in `$log`.
fn script(work: &str) -> String {
    format!(
        "log=$HOME/logs/$TPU_LAUNCH\nmkdir -p \"$log/checkpoint_1\" && echo w >\"$log/checkpoint_1/data\"\n\
         tpu upd-log alice:0 \"$log\" \"$PWD\" \"${{1#ka=}}\" now\n{work}\n"
    )
}

/// Runs a script of alice under `rule`; returns its environment and its window.
fn run(work: &str, rule: &str) -> (TestEnv, u64) {
    let env = TestEnv::new();
    env.code("alice", "staging.sh", &script(work));
    let line = format!("run local alice rule={rule} --json");
    let window = env.tpu(&line).exits(0).json()["launched"]["window"].as_u64().unwrap();
    (env, window)
}

/// Runs a script to its end; returns what its record then says.
fn ended(work: &str) -> (TestEnv, Value) {
    let (env, window) = run(work, "pass");
    wait_until("the end of the script", || {
        env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string()
    });
    let job = env.job("alice", window);
    (env, job)
}

fn line_of(job: &Value) -> &str {
    job["extra_msgs"]["verdict"]["line"].as_str().unwrap()
}

#[test]
fn a_lost_peer_behind_a_pipe_is_resumed_by_its_rule() {
    let crash = format!("{BLOCKS}/087-jaxdist-worker-killed-leader.txt");
    let work = format!(
        "case \" $* \" in\n\
         *load_from=*) echo 'step 11/11 loss 0.1'; tpu finish-job alice:0 ;;\n\
         *) bash -c 'echo \"step 10/11 loss 0.2\"; cat {crash}; exit 134' 2>&1 | tee -a \"$log/output.log\"\n\
         cd \"$HOME\" ;;\nesac"
    );
    let (env, window) = run(&work, "resume");
    let _monitor = env.start_tpu("daemon run", &[]);
    wait_until("the child's end", || {
        env.jobs("alice").iter().any(|job| job["status"] == "finished")
    });
    let parent = env.job("alice", window);
    assert_eq!((&parent["status"], &parent["error"]), (&json!("resumed"), &json!("grpc")));
    assert_eq!(parent["extra_msgs"]["launch"]["exit"], 0, "that of the script");
    assert!(!line_of(&parent).contains("exit code"), "{parent:#}");
}

/// The end of a program that ran behind a pipe.
const TRACEBACK: &str = "echo 'Traceback (most recent call last):'; \
     echo '  File \"train.py\", line 61, in <module>'; echo \"KeyError: 'batch'\"";

#[test]
fn what_the_text_shows_is_the_kind_and_its_line_the_reason() {
    let (env, job) = ended(&format!("({TRACEBACK}) | tee -a \"$log/output.log\""));
    assert_eq!((&job["status"], &job["error"]), (&json!("error"), &json!("python-error")));
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 0);
    assert!(line_of(&job).contains("KeyError"), "{job:#}");
    drop(env.tpu("explain 1 alice").exits(0).says(&["python-error", "KeyError", "the script's"]));
}

#[test]
fn without_a_failure_in_its_text_nobody_knows_how_it_ended() {
    for work in ["echo 'step 10/10 loss 0.1'", "true", "echo 'Training done'"] {
        let (env, job) = ended(work);
        assert_eq!((&job["status"], &job["error"]), (&json!("error"), &json!("unknown")), "{work}");
        assert_eq!(job["extra_msgs"]["verdict"]["rule"], "no-finish-job", "{work}");
        drop(env.tpu("check alice").exits(0).says(&["error: unknown", "without `tpu finish-job`"]));
    }
}

#[test]
fn words_before_our_own_are_read_without_ours() {
    let (_, job) = ended(&format!("({TRACEBACK} | head -c -1)"));
    assert_eq!(job["error"], "python-error", "{job:#}");
    assert!(line_of(&job).contains("KeyError: 'batch'"), "{job:#}");
    assert!(!line_of(&job).contains("ended with"), "{job:#}");
}

#[test]
fn words_that_look_like_ours_hide_no_failure() {
    for lie in [
        "echo 'tpu: launch 0123456789abcdef · job alice/9'",
        "echo \"tpu: launch $TPU_LAUNCH · job alice/1\"",
        "echo 'tpu: job alice/1 ended with exit code 0 after 3 s'",
        "printf 'tpu: job alice/1 ended with exit code 0 after 3 s'",
        "printf 'tpu: '",
    ] {
        let before = ended(&format!("{lie}; {TRACEBACK}")).1;
        assert_eq!(before["error"], "python-error", "{lie}, then the failure");
        let after = ended(&format!("{TRACEBACK}; {lie}")).1;
        assert_eq!(after["error"], "python-error", "the failure, then {lie}");
    }
}

#[test]
fn what_only_the_log_file_shows_counts_as_well() {
    let (_, job) = ended(&format!("({TRACEBACK}) >\"$log/output.log\""));
    assert_eq!(job["error"], "python-error", "{job:#}");
    let (_, job) = ended(&format!(
        "({TRACEBACK}) >\"$log/output.log\"; touch -d '1 hour ago' \"$log/output.log\""
    ));
    assert_eq!(job["error"], "unknown", "that is of an earlier launch: {job:#}");
}

#[test]
fn what_a_person_does_in_the_window_later_is_no_text_of_the_job() {
    let (env, window) = run("echo 'step 10/10 loss 0.1'", "resume");
    wait_until("the end of the script", || {
        env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string()
    });
    let pane = env.pane_id("alice", window).unwrap();
    let line = format!("cat {BLOCKS}/087-jaxdist-worker-killed-leader.txt; echo o''ver");
    drop(env.tmux().run(&["send-keys", "-t", &pane, &line, "Enter"]));
    wait_until("the text", || env.pane("alice", window).contains("over"));
    drop(env.tpu("check alice").exits(0).says(&["error: unknown"]));
}
