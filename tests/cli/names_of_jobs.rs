//! A job that was given a name is called by it wherever a job is: the newest attempt is meant, and no word that
//! means something already is taken from anybody.

use crate::common::env::{STEPS, TestEnv};

fn run(env: &TestEnv, user: &str, name: &str) -> crate::common::env::CommandOutput {
    let words = ["run", "local", user, "--name", name, "-q", "--", "sh", "-c", "exec sleep 1000"];
    env.tpu_words(&words)
}

#[test]
fn it_is_found_by_its_name_and_its_successor_is_too() {
    let env = TestEnv::new();
    let words = ["run", "local", "alice", "--name", "llama", "-q", "--", "sh", "-c", STEPS];
    drop(env.tpu_words(&words).exits(0));
    env.wait_status(1, "running");
    drop(env.tpu("explain llama").exits(0).says(&["alice/1"]));
    drop(env.tpu("kill llama -y").exits(0).says(&["alice/1"]));
    drop(env.tpu("rerun llama --force").exits(0).says(&["window 2"]));
    let shown = env.tpu("check alice --json").exits(0).json();
    assert_eq!(shown["jobs"][1]["name"], "llama");
    drop(env.tpu("kill alice llama -y").exits(0).says(&["alice/2"]));
}

#[test]
fn a_name_that_means_something_is_refused_and_so_is_one_that_is_in_use() {
    let env = TestEnv::new();
    for taken in ["alice", "local", "v2-32", "7", "tag", "pre", "v2-1"] {
        drop(run(&env, "alice", taken).exits(4).says(&["already means something"]));
    }
    drop(run(&env, "alice", "a b").exits(2).says(&["cannot be the name"]));
    assert!(env.jobs("alice").is_empty());
    drop(run(&env, "alice", "llama").exits(0));
    drop(run(&env, "alice", "llama").exits(4).says(&["alice/1"]));
    drop(run(&env, "bob", "llama").exits(0));
    drop(env.tpu("explain llama").exits(2).says(&["alice/1", "bob/1"]));
    drop(env.tpu("explain bob llama").exits(0).says(&["bob/1"]));
}
