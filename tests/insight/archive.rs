//! `tpu archive`: what was cleaned away is listed, shown and brought back, and nothing is ever lost by it.

use serde_json::{Value, json};

use super::made::{archive, attempt, failed, lab};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

/// A tmux server with a session of alice's and no window of a job: nothing is cleaned away where none answers.
fn with_tmux(env: &TestEnv) {
    env.tmux().run(&["new-session", "-d", "-s", "alice", "exec sleep 1000"]);
}

/// Three archived records of alice's, one of bob's.
fn some() -> TestEnv {
    let env = lab(&[]);
    let mut tagged = attempt(&env, 2, "finished", (0, 60));
    tagged["job_tags"] = json!("sweep");
    let preempted = failed(attempt(&env, 3, "error", (60, 90)), "preempted", "it was taken");
    let mut other = attempt(&env, 4, "killed", (0, 5));
    other["tpu"] = json!("lab-v2-8-1");
    let mut of_bob = env.record("bob", 1, "finished");
    of_bob["user"] = json!("bob");
    archive(&env, &[tagged, preempted, other, of_bob]);
    env
}

fn listed(env: &TestEnv, words: &str) -> Vec<String> {
    let document = env.tpu(&format!("archive list {words} --json")).exits(0).json();
    let all = document["archived"].as_array().unwrap().iter();
    all.map(|one| format!("{}/{}", one["user"].as_str().unwrap(), one["window"])).collect()
}

fn numbers(env: &TestEnv) -> Vec<u64> {
    env.jobs("alice").iter().map(|job| job["windows_id"].as_u64().unwrap()).collect()
}

#[test]
fn a_filter_is_as_in_the_monitor() {
    let env = some();
    assert_eq!(listed(&env, ""), ["alice/2", "alice/3", "alice/4", "bob/1"]);
    assert_eq!(listed(&env, "alice"), ["alice/2", "alice/3", "alice/4"]);
    assert_eq!(listed(&env, "status:preempted"), ["alice/3"]);
    assert_eq!(listed(&env, "alice !status:error tpu:v4"), ["alice/2"]);
    assert_eq!(listed(&env, "tag:sweep"), ["alice/2"]);
    assert_eq!(listed(&env, "type:v2"), ["alice/4"]);
    assert_eq!(listed(&env, "zone:us"), ["alice/2", "alice/3"]);
    assert_eq!(listed(&env, "user:bob"), ["bob/1"]);
    assert_eq!(listed(&env, "age>1d user:bob"), ["bob/1"]);
    assert_eq!(listed(&env, "taken"), ["alice/3"]);
    assert_eq!(listed(&env, "-n 1"), ["bob/1"]);
    env.tpu("archive list age>soon").exits(2).says(&["'soon' is no span"]);
    env.tpu("archive list -n 3").exits(0).says(&["1 more before these", "alice/3"]);
    env.tpu("archive list tag:none").exits(0).says(&["Nothing of the kind"]);
}

#[test]
fn a_record_is_called_by_its_name_and_the_newest_of_it_is_meant() {
    let env = lab(&[]);
    let named = |window, name: &str| {
        let mut record = attempt(&env, window, "finished", (0, 60));
        record["extra_msgs"]["spec"] = json!({ "name": name });
        record["extra_msgs"]["launch"]["token"] = json!(format!("{name}-{window}"));
        record
    };
    with_tmux(&env);
    archive(&env, &[named(2, "llama"), named(3, "llama"), named(3, "qwen")]);
    env.tpu("archive show llama alice").exits(0).says(&["alice/3", "llama"]);
    env.tpu("archive show name:qw alice").exits(0).says(&["alice/3", "qwen"]);
    env.tpu("archive show gemma alice").exits(3).says(&["gemma"]);
    env.tpu("archive restore llama alice").exits(0).says(&["Brought back: alice/3"]);
    assert_eq!(env.jobs("alice")[0]["extra_msgs"]["spec"]["name"], "llama");
}

#[test]
fn a_record_is_shown_as_it_was() {
    let env = some();
    env.tpu("archive show 3 alice").exits(0).says(&[
        "error: preempted",
        "it was taken",
        "by clean",
    ]);
    let document = env.tpu("archive show 3 alice --json").exits(0).json();
    assert_eq!(document["job"]["error"], "preempted");
    assert_eq!(document["record"]["extra_msgs"]["launch"]["token"], "token-3");
    env.tpu("archive show 8 alice").exits(3).says(&["alice/8 is not in the archive"]);
    env.tpu("archive show llama alice").exits(3).says(&["in the archive is called 'llama'"]);
    env.tpu("archive show 2,3 alice").exits(2).says(&["2 jobs are named"]);
}

#[test]
fn what_it_printed_is_there_as_long_as_its_log_is() {
    let env = some();
    let mut logged = attempt(&env, 5, "finished", (0, 60));
    logged["log_dir"] = json!(env.path("log"));
    logged["customized_settings"] = json!({ "command": ["./train"] });
    archive(&env, &[logged]);
    std::fs::create_dir_all(env.path("log")).unwrap();
    write_file(&env.path("log/output.log"), "tpu: launch token-5 · job alice/5\nstep 1\nstep 2\n");
    env.tpu("archive logs 5 alice -n 1").exits(0).says(&["step 2"]);
    std::fs::remove_file(env.path("log/output.log")).unwrap();
    env.tpu("archive logs 5 alice").exits(3).says(&["nothing that alice/5 has printed is left"]);
}

#[test]
fn what_is_brought_back_is_as_it_was_and_twice_brings_nothing_back_twice() {
    let env = some();
    env.tpu("archive restore 2,4 alice").exits(0).says(&["Brought back: alice/2, alice/4"]);
    assert_eq!(numbers(&env), [2, 4]);
    assert_eq!(env.job("alice", 2)["extra_msgs"]["launch"]["token"], "token-2");
    let before = env.data_bytes();
    env.tpu("archive restore 2 alice").exits(0).says(&["Among the jobs already: alice/2"]);
    assert_eq!(env.data_bytes(), before);
    assert_eq!(listed(&env, "alice"), ["alice/3"], "what is back is not archived");
    let told: Vec<_> = env.journal().into_iter().filter(|event| event.kind == "restored").collect();
    assert_eq!(told.len(), 2, "{told:?}");
    // Cleaned away again and brought back again.
    with_tmux(&env);
    drop(env.tpu("clear-all alice -y").exits(0));
    assert_eq!(listed(&env, "alice"), ["alice/3", "alice/2", "alice/4"]);
    drop(env.tpu("archive restore 2 alice").exits(0));
    assert_eq!(numbers(&env), [2]);
}

#[test]
fn a_number_that_is_taken_is_refused_and_nothing_is_lost() {
    let env = some();
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([attempt(&env, 2, "finished", (500, 560))]);
    data["users"]["alice"]["job_data"][0]["extra_msgs"]["launch"]["token"] = json!("another");
    data["queue"] = json!({ "entries": [
        { "user": "alice", "number": 4, "target": "v2-1", "since": "2026-11-20T14:00:00Z" },
    ] });
    env.write_data(&data);
    let before = env.data();
    // The first of them could come back, and does not alone.
    env.tpu("archive restore 3,2 alice").exits(4).says(&["alice/2 is another job by now"]);
    env.tpu("archive restore 4 alice").exits(4).says(&["waits in the queue as alice/4"]);
    env.tpu("archive restore 9 alice").exits(3).says(&["alice/9 is not in the archive"]);
    assert_eq!(env.data(), before);
    assert_eq!(listed(&env, "alice").len(), 3);
    with_tmux(&env);
    // Both attempts of that number are kept, and the one that was cleaned away last is meant.
    drop(env.tpu("clear-all alice -y").exits(0));
    assert_eq!(listed(&env, "alice").iter().filter(|id| *id == "alice/2").count(), 2);
    drop(env.tpu("archive restore 2 alice").exits(0));
    assert_eq!(env.job("alice", 2)["extra_msgs"]["launch"]["token"], "another");
}

#[test]
fn nothing_begins_by_bringing_back() {
    let env = lab(&[]);
    let mut failed = failed(attempt(&env, 3, "error", (0, 60)), "preempted", "it was taken");
    failed["rules"] = json!({ "preempted": "reapply" });
    failed["extra_msgs"]["intent"] =
        json!({ "action": "cleaning", "at": "2026-11-20T14:00:00Z", "by": "x" });
    archive(&env, &[failed]);
    drop(env.tpu("archive restore 3 alice").exits(0));
    let record = env.job("alice", 3);
    assert_eq!(record["extra_msgs"]["intent"], Value::Null, "{record:#}");
    with_tmux(&env);
    let plan = env.tpu("daemon plan --json").exits(0).json().to_string();
    assert!(plan.contains("brought back from the archive"), "{plan}");
}

#[test]
fn a_dry_run_brings_nothing_back() {
    let env = some();
    let before = env.data_bytes();
    env.tpu("archive restore 2 alice --dry-run").exits(0).says(&["Dry run", "alice/2"]);
    assert_eq!(env.data_bytes(), before);
}

#[test]
fn of_several_that_had_a_number_each_can_be_named_and_the_others_are_told_of() {
    let env = some();
    let mut older = attempt(&env, 3, "finished", (0, 30));
    older["job_tags"] = json!("before");
    older["extra_msgs"]["launch"]["token"] = json!("another");
    // What stands first in the archive was cleaned away first.
    let path = env.path("tpu-state/archive.jsonl");
    let after = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    archive(&env, &[older]);
    let first = std::fs::read_to_string(&path).unwrap();
    write_file(&path, &(first + &after));
    let newest = env.tpu("archive show 3 alice").exits(0);
    newest.says(&["preempted", "1 other record had the number of alice/3", "--older N"]);
    env.tpu("archive show 3 alice --older 1").exits(0).says(&["before", "finished"]);
    env.tpu("archive show 3 alice --older 2").exits(3).says(&["no more than 2 records"]);
    assert!(!env.tpu("archive show 2 alice").exits(0).report().contains("other record"));
    with_tmux(&env);
    env.tpu("archive restore 3 alice --older 1")
        .exits(0)
        .says(&["Brought back: alice/3", "1 other record"]);
    assert_eq!(env.job("alice", 3)["status"], "finished");
}
