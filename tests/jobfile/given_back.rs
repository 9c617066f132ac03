//! A TPU that was made for a job goes with it (`tpu: {delete_after: done}`): once, when nothing more comes of the job
//! and nobody else has it, whoever dies meanwhile; and never one that was there before, or of which nobody says how it
//! is.

use serde_json::Value;

use super::orders::{lab, play};
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// A job whose TPU goes with it, which runs as long as there is no such file.
fn job(until: &str) -> String {
    format!(
        "target: {{accelerator: v4-8, zone: zone-a, pricing: spot}}\ntpu: {{name: mine, delete_after: done}}\n\
         rules: pre\n\
         command: 'echo begun >> \"$HOME/begun\"; until [ -e \"$HOME/{until}\" ]; do sleep 0.4; done'\n"
    )
}

fn submit(env: &TestEnv, text: &str) {
    let file = env.path("job.yaml");
    write_file(&file, text);
    drop(env.tpu_words(&["submit", file.to_str().unwrap()]).exits(0));
}

fn state(env: &TestEnv) -> String {
    let all = env.tpu("check-status --json").exits(0).json();
    let all = all["targets"].as_array().cloned().unwrap_or_default();
    let mine = all.iter().find(|target| target["name"] == "mine");
    mine.and_then(|mine| mine["state"].as_str()).unwrap_or_default().to_owned()
}

/// What the simulated cloud has done to it so often.
fn happened(env: &TestEnv, what: &str) -> usize {
    let text = std::fs::read_to_string(env.path("tpu-state/sim.json")).unwrap();
    let fleet: Value = serde_json::from_str(&text).unwrap();
    let all = fleet["history"].as_array().unwrap().iter();
    all.filter(|event| event["what"] == what && event["target"] == "mine").count()
}

/// Whether it was asked to make it.
fn is_asked_for(env: &TestEnv) -> bool {
    let Ok(text) = std::fs::read_to_string(env.path("tpu-state/sim.json")) else { return false };
    let fleet: Value = serde_json::from_str(&text).unwrap();
    fleet["operations"].as_array().into_iter().flatten().any(|begun| {
        begun["operation"]["verb"] == "create" && begun["operation"]["target"] == "mine"
    })
}

fn loans(env: &TestEnv) -> usize {
    env.data()["queue"]["loans"].as_array().map_or(0, Vec::len)
}

fn runs(env: &TestEnv) {
    wait_until("it runs", || env.path("begun").exists());
}

#[test]
fn it_goes_once_when_its_job_is_over_whoever_dies_meanwhile() {
    let env = lab();
    submit(&env, &job("end"));
    let first = env.start_tpu("daemon run", &[("FAILPOINTS", "loan-deleted=pause")]);
    runs(&env);
    env.turn();
    assert_eq!((state(&env).as_str(), loans(&env)), ("ready", 1), "not before");
    env.touch("end");
    wait_until("it is deleted", || happened(&env, "gone") == 1);
    first.kill();
    assert_eq!(loans(&env), 1, "nobody has written that down");
    let _next = env.daemon(&[]);
    wait_until("that is written down", || loans(&env) == 0);
    assert_eq!(happened(&env, "gone"), 1);
    let journal = env.tpu("monitor-log -n 200").exits(0).stdout;
    assert_eq!(journal.matches("for which it was made, is over").count(), 1, "{journal}");
}

#[test]
fn whoever_dies_while_it_is_made_leaves_none_that_stays() {
    let env = lab();
    play(&env, "[timing]\ncreate_s = 10\ndelete_s = 0.2\n");
    submit(&env, &job("end"));
    let first = env.daemon(&[]);
    wait_until("it is being made", || is_asked_for(&env));
    assert!(env.data()["queue"]["loans"][0]["made"].is_string(), "{}", env.data()["queue"]);
    first.kill();
    // Who comes after him finds it there, and has nothing more to make.
    wait_until("it is there", || state(&env) == "ready");
    let _next = env.daemon(&[]);
    runs(&env);
    env.touch("end");
    wait_until("it is deleted", || happened(&env, "gone") == 1);
}

#[test]
fn one_that_was_there_before_stays() {
    let env = lab();
    drop(env.tpu("register mine --type v4-8 --zone zone-a --spot").exits(0));
    drop(env.tpu("apply mine").exits(0));
    submit(&env, &job("end"));
    let _monitor = env.daemon(&[]);
    runs(&env);
    env.touch("end");
    drop(env.wait_status(1, "finished"));
    wait_until("nothing is to be given back", || loans(&env) == 0);
    assert_eq!((state(&env).as_str(), happened(&env, "gone")), ("ready", 0));
}

#[test]
fn it_stays_while_somebody_else_has_it_and_goes_then() {
    let env = lab();
    submit(&env, &job("end"));
    let _monitor = env.daemon(&[]);
    runs(&env);
    submit(
        &env,
        "target: mine\ncommand: 'touch \"$HOME/other\"; until [ -e \"$HOME/over\" ]; do sleep 0.4; done'\n",
    );
    env.touch("end");
    wait_until("the other one runs", || env.path("other").exists());
    env.turn();
    assert_eq!((state(&env).as_str(), loans(&env)), ("ready", 1));
    env.touch("over");
    wait_until("it is deleted", || state(&env) == "gone");
    assert_eq!(happened(&env, "gone"), 1);
}

#[test]
fn nothing_is_deleted_because_a_question_failed() {
    let env = lab();
    submit(&env, &job("end"));
    let _monitor = env.daemon(&[]);
    runs(&env);
    drop(env.tpu("sim event error class=auth times=99999").exits(0));
    env.touch("end");
    drop(env.wait_status(1, "finished"));
    env.turn();
    assert_eq!((loans(&env), happened(&env, "gone")), (1, 0));
    drop(env.tpu("sim event calm").exits(0));
    drop(env.tpu("ack").exits(0));
    wait_until("it is deleted", || happened(&env, "gone") == 1);
    wait_until("that is written down", || loans(&env) == 0);
}

#[test]
fn what_its_rule_makes_anew_is_its_own_as_well_and_a_kill_is_an_end() {
    let env = lab();
    submit(&env, &job("end"));
    let _monitor = env.daemon(&[]);
    runs(&env);
    drop(env.tpu("sim preempt mine").exits(0));
    let attempts = || {
        let noted = std::fs::read_to_string(env.path("begun")).unwrap_or_default();
        noted.lines().count()
    };
    wait_until("it is back", || attempts() == 2);
    let before = happened(&env, "gone");
    assert_eq!(loans(&env), 1);
    drop(env.tpu("kill 2 -y").exits(0));
    wait_until("it is deleted", || state(&env) == "gone");
    wait_until("that is written down", || loans(&env) == 0);
    assert_eq!(happened(&env, "gone"), before + 1);
}
