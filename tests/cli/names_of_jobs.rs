//! A job that was given a name is called by it wherever a job is: the newest attempt is meant, among the jobs of
//! whoever asks, and no word that means something already is taken from anybody.

use crate::common::env::{STEPS, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::wait::wait_until;
use serde_json::json;

fn run(env: &TestEnv, user: &str, name: &str) -> CommandOutput {
    let words = ["run", "local", user, "--name", name, "-q", "--", "sh", "-c", "exec sleep 1000"];
    env.tpu_words(&words)
}

/// Alice, who asks, and bob have a finished job 1 each, called `llama`; bob alone has a `mistral`.
fn with_records() -> TestEnv {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    for (user, names) in [("alice", &["llama"][..]), ("bob", &["llama", "mistral"])] {
        let records = (1_u64..).zip(names).map(|(window, name)| {
            let mut record = env.record(user, window, "error");
            record["error"] = json!("oom");
            record["extra_msgs"]["spec"] = json!({ "name": name });
            record["stage_dir"] = json!(format!("/stage/{user}/{window}"));
            record
        });
        data["users"][user]["job_data"] = records.collect();
    }
    env.write_data(&data);
    env.set("TPU_USER", "alice");
    env
}

#[test]
fn it_is_found_by_its_name_and_its_successor_is_too() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let words = ["run", "local", "--name", "llama", "-q", "--", "bash", "-c", STEPS];
    drop(env.tpu_words(&words).exits(0));
    env.wait_status(1, "running");
    drop(env.tpu("explain llama").exits(0).says(&["alice/1"]));
    drop(env.tpu("kill llama -y").exits(0).says(&["alice/1"]));
    drop(env.tpu("rerun llama --force").exits(0).says(&["alice/2 on"]));
    let shown = env.tpu("check llama --json").exits(0).json();
    let jobs = shown["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1, "the newest attempt alone: {jobs:?}");
    assert_eq!((&jobs[0]["name"], &jobs[0]["window"]), (&json!("llama"), &json!(2)));
    env.wait_status(2, "running");
    wait_until("it prints", || env.tpu("logs llama").stdout.contains("loss"));
    drop(env.tpu("add-tag llama best").exits(0).says(&["alice/2: best"]));
    drop(env.tpu("history llama").exits(0).says(&["alice/2"]));
    drop(env.tpu("get-stage-dir name:lla").exits(0));
    drop(env.tpu("kill name:llama -y").exits(0).says(&["alice/2"]));
    drop(env.tpu("wait llama --timeout 10s").exits(1).says(&["alice/2 is killed"]));
}

#[test]
fn a_name_that_means_something_is_refused_and_so_is_one_that_is_in_use() {
    let env = TestEnv::new();
    for taken in ["v2-32", "tag", "pre", "lr", "12_3", "9-12", "all"] {
        drop(run(&env, "alice", taken).exits(4).says(&["already means something"]));
    }
    for odd in ["a b", "", "job[0-1]", "a/b", "a:b", "7"] {
        drop(run(&env, "alice", odd).exits(2).says(&["cannot be the name"]));
    }
    assert!(env.jobs("alice").is_empty());
    drop(run(&env, "alice", "llama").exits(0));
    drop(run(&env, "alice", "llama").exits(4).says(&["alice/1"]));
    drop(run(&env, "bob", "llama").exits(0));
    assert_eq!((env.jobs("alice").len(), env.jobs("bob").len()), (1, 1));
}

#[test]
fn a_name_never_chooses_whose_job_it_is() {
    let env = with_records();
    let before = env.data_bytes();
    // Alice has no mistral: bob's is not meant, whatever is done.
    for line in [
        "kill mistral",
        "resume mistral",
        "add-tag mistral best",
        "explain mistral",
        "check mistral",
    ] {
        drop(env.tpu(line).exits(3).says(&["mistral"]));
    }
    assert_eq!(env.data_bytes(), before);
    drop(env.tpu("get-stage-dir llama").exits(0).says(&["/stage/alice/1"]));
    for line in ["bob/llama", "bob/1", "bob llama", "bob 1", "name:llama --user bob"] {
        drop(env.tpu(&format!("get-stage-dir {line}")).exits(0).says(&["/stage/bob/1"]));
    }
    drop(env.tpu("wait bob/mistral").exits(1).says(&["bob/2"]));
    assert_eq!(env.job("alice", 1)["status"], "error");
    // A verb of targets stops none of them.
    for word in ["llama", "bob/llama", "name:lla", "12_3"] {
        drop(env.tpu(&format!("stop {word}")).exits(2).says(&["is no target", "tpu kill"]));
    }
    // Half of it says whose it is.
    drop(env.tpu("kill 1 bob/1 -y").exits(2).says(&["'bob/1'", "'1'"]));
    drop(env.tpu("kill alice bob/1 -y").exits(2).says(&["two users"]));
    drop(env.tpu("kill bob/9 -y").exits(3));
    drop(env.tpu("kill carl/1 -y").exits(3));
}

#[test]
fn who_looks_and_is_nobody_means_the_one_who_has_it() {
    let mut env = with_records();
    env.unset("TPU_USER");
    env.set("USER", "somebody");
    drop(env.tpu("explain mistral").exits(0).says(&["bob/2"]));
    drop(env.tpu("explain llama").exits(2).says(&["whose?"]));
    drop(env.tpu("kill mistral").exits(2).says(&["whose?"]));
    let shown = env.tpu("check llama --json").exits(0).json();
    assert_eq!(shown["jobs"].as_array().unwrap().len(), 2, "as of a number");
    drop(env.tpu("check mistrl").exits(3).says(&["'mistrl'"]));
}

#[test]
fn what_is_known_otherwise_is_no_name_and_free_text_is_none_either() {
    let env = with_records();
    let mut data = env.data();
    data["users"]["alice"]["job_data"][0]["extra_msgs"]["spec"]["name"] = json!("bob");
    let mut second = env.record("alice", 2, "finished");
    second["extra_msgs"]["spec"] = json!({ "name": "cave" });
    second["stage_dir"] = json!("/stage/cave");
    data["users"]["alice"]["job_data"].as_array_mut().unwrap().push(second);
    env.write_data(&data);
    drop(env.tpu("-ta cave v2-1").exits(0));
    // A user and a target are called as a job is: where a command takes none, the job is meant.
    drop(env.tpu("get-stage-dir bob").exits(0).says(&["/stage/alice/1"]));
    drop(env.tpu("get-stage-dir cave").exits(0).says(&["/stage/cave"]));
    drop(env.tpu("check bob").exits(0).says(&["mistral"]));
    // Where it takes one, the target is meant as long as the job is not live.
    drop(env.tpu("wait cave").exits(3).says(&["no job of alice is meant"]));
    drop(env.tpu("get-stage-dir v2-1").exits(3).says(&["is a target", "name:v2-1"]));
    drop(env.tpu("get-stage-dir name:cave").exits(0).says(&["/stage/cave"]));
    drop(env.tpu("get-stage-dir alice name:bob").exits(0).says(&["/stage/alice/1"]));
    // Tags and rules are free text: with a number beside it a word is never a job.
    drop(env.tpu("add-tag 1 llama").exits(0).says(&["alice/1: llama"]));
    drop(env.tpu("add-tag cave 2").exits(0).says(&["alice/2: cave"]));
    drop(env.tpu("add-tag 2 5").exits(0).says(&["alice/2: 5"]));
    drop(env.tpu("add-tag name:cave 7").exits(0).says(&["alice/2: 7"]));
    drop(env.tpu("set-rule 1 grpc:rerun").exits(0).says(&["alice/1"]));
}

#[test]
fn a_pattern_means_those_of_its_names_that_there_are() {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    let records = (0_u64..4).map(|n| {
        let mut record = env.record("alice", n + 1, "error");
        record["error"] = json!("oom");
        record["extra_msgs"]["spec"] = json!({ "name": format!("job{n}") });
        record
    });
    data["users"]["alice"]["job_data"] = records.collect();
    env.write_data(&data);
    env.set("TPU_USER", "alice");
    let windows = |line: &str| -> Vec<u64> {
        let shown = env.tpu(line).exits(0).json();
        shown["jobs"].as_array().unwrap().iter().map(|j| j["window"].as_u64().unwrap()).collect()
    };
    assert_eq!(windows("check job[0-1,3,8] --json"), [1, 2, 4]);
    assert_eq!(windows("check name:job --json"), [1, 2, 3, 4]);
    drop(env.tpu("kill bob/job[1-2] -y").exits(3));
    drop(env.tpu("wait job[1-2] --timeout 9s").exits(1).says(&["alice/2", "alice/3"]));
    drop(env.tpu("explain job[1-2]").exits(2).says(&["one job at a time"]));
    drop(env.tpu("explain job[8-9]").exits(3));
    drop(env.tpu("explain job[x]").exits(2).says(&["column 5"]));
}

#[test]
fn where_two_live_jobs_have_come_to_one_name_neither_is_taken_for_it() {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    let records = [(1_u64, "running"), (2, "running")].map(|(window, status)| {
        let mut record = env.record("alice", window, status);
        record["extra_msgs"]["spec"] = json!({ "name": "llama" });
        record
    });
    data["users"]["alice"]["job_data"] = json!(records);
    env.write_data(&data);
    env.set("TPU_USER", "alice");
    drop(env.tpu("add-tag llama best").exits(4).says(&["alice/1 (running)", "alice/2 (running)"]));
    drop(env.tpu("explain llama").exits(4).says(&["alice/1", "alice/2", "name:llama"]));
    drop(env.tpu("add-tag name:llama best").exits(0).says(&["alice/1, alice/2: best"]));
}

#[test]
fn a_name_means_the_live_job_of_it_else_the_newest() {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    let records = [
        (1_u64, "llama", "running"),
        (2, "llama", "error"),
        (3, "qwen", "finished"),
        (4, "qwen", "error"),
    ];
    let records = records.map(|(window, name, status)| {
        let mut record = env.record("alice", window, status);
        if status == "error" {
            record["error"] = json!("oom");
        }
        record["extra_msgs"]["spec"] = json!({ "name": name });
        record["stage_dir"] = json!(format!("/stage/{window}"));
        record
    });
    data["users"]["alice"]["job_data"] = json!(records);
    env.write_data(&data);
    env.set("TPU_USER", "alice");
    drop(env.tpu("get-stage-dir llama").exits(0).says(&["/stage/1"]));
    drop(env.tpu("get-stage-dir name:lla").exits(0).says(&["/stage/1"]));
    drop(env.tpu("get-stage-dir qwen").exits(0).says(&["/stage/4"]));
    drop(env.tpu("add-tag llama new").exits(0).says(&["alice/1: new"]));
    let shown = env.tpu("check name:qwen --json").exits(0).json();
    assert_eq!(shown["jobs"].as_array().unwrap().len(), 2, "all of that name");
    drop(env.tpu("add-tag name:qwen best").exits(0).says(&["alice/3, alice/4: best"]));
}

#[test]
fn a_job_may_be_called_as_a_command_a_target_or_a_user_is() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    for (number, name) in [(1, "kill"), (2, "local"), (3, "bob")] {
        drop(run(&env, "alice", name).exits(0));
        env.wait_status(number, "running");
        drop(env.tpu(&format!("explain {name}")).exits(0).says(&[&format!("alice/{number}")]));
    }
    // A target could be meant as well, and nobody is stopped by a guess.
    drop(env.tpu("kill local -y").exits(2).says(&["is a target and the name of a job"]));
    for (number, name) in [(1, "kill"), (2, "name:local"), (3, "bob")] {
        drop(env.tpu(&format!("kill {name} -y")).exits(0).says(&[&format!("alice/{number}")]));
    }
}

#[test]
fn a_successor_does_not_take_a_name_that_another_has_meanwhile() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(run(&env, "alice", "llama").exits(0));
    env.wait_status(1, "running");
    drop(env.tpu("kill llama -y").exits(0));
    drop(run(&env, "alice", "llama").exits(0));
    drop(env.tpu("rerun 1 --yes").exits(4));
    drop(env.tpu("explain llama").exits(0).says(&["alice/2"]));
    assert_eq!(env.jobs("alice").len(), 2, "nothing is left behind");
}

#[test]
fn of_several_who_take_a_name_at_once_one_gets_it_and_the_others_leave_nothing() {
    let env = TestEnv::new();
    let one = || run(&env, "alice", "llama").code;
    let mut codes: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    codes.sort_unstable();
    assert_eq!(codes, [0, 4, 4, 4, 4, 4]);
    assert_eq!(env.jobs("alice").len(), 1);
    let windows = env.tmux().run(&["list-windows", "-a", "-F", "#{window_index}"]);
    let jobs = windows.lines().filter(|index| *index != "0").count();
    assert_eq!(jobs, 1, "{windows}");
}

/// Somebody may give a target the name later: then nobody is killed by a guess.
#[test]
fn a_word_that_has_become_a_target_as_well_kills_nothing() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(run(&env, "alice", "llama").exits(0));
    env.wait_status(1, "running");
    drop(env.tpu("-ta llama v2-32").exits(0));
    let refused = env.tpu("kill llama -y").exits(2);
    drop(refused.says(&["is a target and the name of a job", "name:llama"]));
    assert_eq!(env.job("alice", 1)["status"], "running");
    drop(env.tpu("kill name:llama -y").exits(0));
    assert_eq!(env.job("alice", 1)["status"], "killed");
}

#[test]
fn a_job_without_a_name_is_known_by_what_it_runs() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    for (number, seconds) in [(1, "1000"), (2, "2000")] {
        drop(
            env.tpu_words(&[
                "run",
                "local",
                "-q",
                "--",
                "sh",
                "-c",
                &format!("exec sleep {seconds}"),
            ])
            .exits(0),
        );
        env.wait_status(number, "running");
    }
    drop(env.tpu("check").exits(0).says(&["RUNS: sleep 1000\n", "RUNS: sleep 2000\n"]));
    let table = env.tpu("check-simp").exits(0).stdout;
    let mut lines = table.lines();
    assert!(lines.next().unwrap().ends_with("NAME"), "{table}");
    assert!(lines.next().unwrap().ends_with("sleep 1000"), "{table}");
    let shown = env.tpu("check 2 --json").exits(0).json();
    assert_eq!(shown["jobs"][0]["title"], "sleep 2000");
    drop(env.tpu("kill 1 --dry-run").exits(0).says(&["Would kill alice/1 (sleep 1000)."]));
    drop(run(&env, "alice", "llama").exits(0));
    env.wait_status(3, "running");
    drop(env.tpu("history llama").exits(0).says(&["alice/3 (llama)"]));
    drop(env.tpu("daemon plan").exits(0).says(&["alice/3 (llama)"]));
    let shown = env.tpu("check 3").exits(0).says(&["name: llama"]).stdout;
    assert!(!shown.contains("RUNS"), "{shown}");
}
