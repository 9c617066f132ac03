//! What scripts and people say about a job: it is heard where it can be true, refused where it would take the
//! job out of everybody's hands, and never text of the job.

use serde_json::{Value, json};

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// A command of alice that is at work.
fn at_work() -> TestEnv {
    let env = TestEnv::new();
    env.start("exec sleep 1000", &NONE);
    env.wait_status(1, "running");
    env
}

#[test]
fn a_command_at_work_is_not_called_finished() {
    for claim in ["finish-job alice:1", "finish-job alice:1 --force"] {
        let env = at_work();
        let before = env.job("alice", 1);
        let refused = env.tpu(claim).exits(4);
        drop(refused.says(&["alice/1 runs a command", "exit code", "tpu kill w=1 alice"]));
        assert_eq!(env.job("alice", 1), before, "{claim}");
        drop(env.tpu("kill w=1 alice -y").exits(0));
        assert_eq!(env.job("alice", 1)["status"], "killed", "{claim}");
        drop(env.tpu("run local alice -q -- true").exits(0));
    }
}

#[test]
fn a_script_inside_a_command_is_refused_and_its_exit_code_counts() {
    let env = TestEnv::new();
    let script = "tpu upd-log alice:1 /elsewhere /elsewhere local now; echo upd=$?; \
                  tpu finish-job alice:1; echo finish=$?; exit 3";
    env.start(script, &NONE);
    let job = env.wait_status(1, "error");
    let pane = env.pane("alice", 1);
    assert!(pane.contains("upd=4") && pane.contains("finish=4"), "{pane}");
    assert_ne!(job["log_dir"], "/elsewhere", "{job:#}");
    assert_eq!((&job["error"], &job["tpu"]), (&json!("unknown"), &json!("local")));
    assert_eq!(job["extra_msgs"]["verdict"]["line"], "exit code 3");
}

#[test]
fn the_end_of_a_command_is_corrected_by_insisting_only() {
    let env = TestEnv::new();
    env.start("exit 3", &NONE);
    let ended = env.wait_status(1, "error");
    let claim = "finish-job alice:1";
    drop(env.tpu(claim).exits(4).says(&["exit code 3", "tpu finish-job alice:1 --force"]));
    assert_eq!(env.job("alice", 1)["status"], ended["status"]);
    drop(env.tpu(&format!("{claim} --force")).exits(0));
    assert_eq!(env.job("alice", 1)["status"], "finished");
}

#[test]
fn a_command_that_was_said_to_have_failed_can_be_killed_and_keeps_its_error() {
    let env = at_work();
    drop(env.tpu("fail-job alice:1").exits(0));
    assert_eq!(env.job("alice", 1)["error"], "unknown");
    drop(env.tpu("kill w=1 alice -y").exits(0));
    let job = env.job("alice", 1);
    assert_eq!((&job["status"], &job["error"]), (&json!("error"), &json!("unknown")), "{job:#}");
    let said = "the script said that it failed";
    assert_eq!(job["extra_msgs"]["verdict"]["line"], said);
    drop(env.tpu("check alice").exits(0).says(&["error: unknown", said]));
    let shown = env.tpu("check alice --json").exits(0).json();
    assert_eq!(shown["jobs"][0]["error"], "unknown");
}

#[test]
fn a_failure_that_was_killed_stays_one_through_a_resume() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let mut job = env.record("alice", 1, "killed");
    job["error"] = json!("grpc");
    data["users"]["alice"]["job_data"] = json!([job]);
    env.write_data(&data);
    drop(env.tpu("add-tag 1 kept alice").exits(0));
    assert_eq!(env.job("alice", 1)["error"], "grpc", "a record of the original keeps it as well");
    drop(env.tpu("check alice").exits(0).says(&["killed (grpc)"]));
}

/// The record of the job, but for its launch: the launcher that a kill ends may still say with what, or be gone
/// with its window before that.
fn without_launch(env: &TestEnv) -> Value {
    let mut job = env.job("alice", 1);
    drop(job["extra_msgs"].as_object_mut().unwrap().remove("launch").unwrap());
    job
}

#[test]
fn of_a_killed_job_what_is_so_is_said() {
    let env = at_work();
    drop(env.tpu("kill w=1 alice -y").exits(0));
    let killed = without_launch(&env);
    for claim in [
        "finish-job alice:1",
        "finish-job alice:1 --force",
        "fail-job alice:1",
        "upd-log alice:1 /l /s local now",
    ] {
        let refused = env.tpu(claim).exits(4);
        drop(refused.says(&["alice/1 was killed, and stays so", "resume w=1 alice --force"]));
        assert_eq!(without_launch(&env), killed, "{claim}");
    }
}

#[test]
fn of_a_job_that_another_continues_both_are_named() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let (mut father, mut child) =
        (env.record("alice", 1, "resumed"), env.record("alice", 2, "finished"));
    father["extra_msgs"] = json!({ "child": 2 });
    child["extra_msgs"] = json!({ "father": 1 });
    data["users"]["alice"]["job_data"] = json!([father, child]);
    env.write_data(&data);
    for claim in ["finish-job alice:1", "finish-job alice:1 --force", "fail-job alice:1"] {
        drop(env.tpu(claim).exits(4).says(&["alice/1 is resumed", "continues as alice/2"]));
    }
    assert_eq!(env.job("alice", 1)["status"], "resumed");
}

/// The words of `tpu` name a failure, and more than once; the job itself shows none.
#[test]
fn what_callbacks_print_is_no_text_of_the_job() {
    let env = TestEnv::new();
    let work = "tpu upd-log alice:0 '/RuntimeError: no' /s local now\n\
                TPU_DATA=/nowhere/data.json tpu finish-job 'RuntimeError: no'\n\
                printf 'no line end'; tpu fail-job alice:0 --exit-code 1\n";
    env.code("alice", "staging.sh", work);
    drop(env.tpu("run local alice -q").exits(0));
    wait_until("the end", || env.job("alice", 1)["extra_msgs"]["launch"]["ended"].is_string());
    let pane = env.pane("alice", 1);
    assert!(pane.contains("tpu: alice/1 \u{b7} logs in /RuntimeError: no"), "{pane}");
    assert!(pane.contains("tpu: alice/1 \u{b7} error: "), "{pane}");
    assert!(pane.contains("no line endtpu: alice/1 \u{b7} failed: unknown."), "{pane}");
    let job = env.job("alice", 1);
    assert_eq!((&job["status"], &job["error"]), (&json!("error"), &json!("unknown")), "{pane}");
    drop(env.tpu("check alice").exits(0).says(&["error: unknown"]));
}

/// Two providers may have a target of one name; the second one is called `NAME@PROVIDER` here, and NAME there.
#[test]
fn a_script_s_word_for_its_own_target_is_no_other_one() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    data["targets"] = json!({
        "lab-v2-8": { "kind": "tpu", "provider": "sim" },
        "lab-v2-8@other": { "kind": "tpu", "provider": "google", "project": "other" },
    });
    for (own, said, becomes) in [
        ("lab-v2-8@other", "lab-v2-8", "lab-v2-8@other"),
        ("lab-v2-8@other", "lab-v2-8@other", "lab-v2-8@other"),
        ("lab-v2-8@other", "", "lab-v2-8@other"),
        ("lab-v2-8", "lab-v2-8", "lab-v2-8"),
        ("lab-v2-8", "lab-v2-8@other", "lab-v2-8@other"),
        ("lab-v2-8", "new@nobody", "new@nobody"),
    ] {
        let mut job = env.record("alice", 1, "starting");
        job["tpu"] = json!(own);
        data["users"]["alice"]["job_data"] = json!([job]);
        env.write_data(&data);
        drop(env.tpu_words(&["upd-log", "alice:1", "/log", "/stage", said, "now"]).exits(0));
        let job = env.job("alice", 1);
        assert_eq!((&job["tpu"], &job["status"]), (&json!(becomes), &json!("running")), "{said}");
    }
}
