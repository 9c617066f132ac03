//! A target gives out no more than it has: as many jobs as may be there, and no GPU twice, whoever asks at once,
//! whatever is set later, and whoever insists.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tpu_core::model::ids::{JobNumber, UserName};

use crate::common::env::TestEnv;
use crate::common::tmux::write_script;
use crate::common::wait::wait_for;

/// Says which GPUs it sees, and stays.
const SAYS: &str = "echo \"$CUDA_VISIBLE_DEVICES\" >\"$TPU_LOG_DIR/gpus.new\"; \
                    mv \"$TPU_LOG_DIR/gpus.new\" \"$TPU_LOG_DIR/gpus\"; exec sleep 100000";

fn lab(limits: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(env.tpu(&format!("hosts set local {limits}")).exits(0));
    env
}

/// Starts a job that stays and asks for this.
fn starts(env: &TestEnv, asks: &str) -> Value {
    let mut words = vec!["run", "local", "-q", "--json"];
    words.extend(asks.split_whitespace());
    words.extend(["--", "sh", "-c", SAYS]);
    env.tpu_words(&words).exits(0).json()["launched"].clone()
}

fn refused(env: &TestEnv, asks: &str, code: i32) -> String {
    let mut words = vec!["run", "local", "-q"];
    words.extend(asks.split_whitespace());
    words.extend(["--", "sh", "-c", SAYS]);
    env.tpu_words(&words).exits(code).stderr
}

/// What the program of a job sees.
fn seen(env: &TestEnv, window: &Value) -> String {
    let dir = env.job("alice", window.as_u64().unwrap())["log_dir"].as_str().unwrap().to_owned();
    wait_for("the job has said what it sees", || {
        std::fs::read_to_string(format!("{dir}/gpus")).ok().map(|text| text.trim().to_owned())
    })
}

#[test]
fn as_many_jobs_as_there_may_be_and_each_its_own_gpus() {
    let env = lab("--max-jobs 3 --gpus 4");
    let (one, two) = (starts(&env, "gpus=2"), starts(&env, "gpu=3"));
    assert_eq!((&one["share"]["gpus"], &two["share"]["gpus"]), (&json!([0, 1]), &json!([3])));
    assert_eq!(
        (seen(&env, &one["window"]), seen(&env, &two["window"])),
        ("0,1".into(), "3".into())
    );
    let said = refused(&env, "gpus=2", 4);
    assert!(said.contains("1 of 4 GPUs are free") && said.contains("alice/1"), "{said}");
    let said = refused(&env, "gpu=1", 4);
    assert!(said.contains("GPU 1 is in use") && said.contains("alice/1"), "{said}");
    // Nothing was asked for, and others are there: it sees none.
    let third = starts(&env, "");
    assert_eq!(
        (&third["share"]["gpus"], seen(&env, &third["window"])),
        (&json!([]), String::new())
    );
    let said = refused(&env, "", 4);
    assert!(said.contains("takes 3 jobs at a time") && said.contains("alice/3"), "{said}");
    // What one leaves is the next one's.
    drop(env.tpu("kill 1 -y").exits(0));
    assert_eq!(starts(&env, "gpus=3")["share"]["gpus"], json!([0, 1, 2]));
}

#[test]
fn what_is_not_there_is_a_mistake_and_no_reason_to_wait() {
    let env = lab("--max-jobs 2 --gpus 2 --cpus 8 --mem 32G");
    for (asks, says) in [
        ("gpus=3", "3 GPUs are asked for, and it has 2"),
        ("gpu=2", "it has no GPU 2"),
        ("cpus=9", "9 CPUs are asked for, and it has 8 CPUs"),
        ("mem=33G", "33G of memory are asked for"),
        ("gpus=two", "gpus=two is not a number of GPUs"),
        ("gpu=0,x", "gpu=0,x is not the numbers of GPUs"),
    ] {
        let said = refused(&env, asks, 2);
        assert!(said.contains(says), "{asks}: {said}");
    }
    assert!(env.jobs("alice").is_empty());
    // CPUs and memory are counted, too.
    drop(starts(&env, "cpus=6 mem=20G"));
    assert!(refused(&env, "cpus=3", 4).contains("2 CPUs of 8 CPUs are free"));
    assert!(refused(&env, "mem=16G", 4).contains("12G of memory of 32G of memory are free"));
    drop(starts(&env, "cpus=2 mem=12G"));
}

#[test]
fn where_nobody_counts_gpus_none_is_hidden_or_given() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("CUDA_VISIBLE_DEVICES", "7");
    // Whatever this machine has, its driver knows of none.
    write_script(&env.path("nvidia-smi"), "exit 0");
    let search = env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap().to_owned();
    env.set("PATH", format!("{}:{search}", env.path("").display()));
    let job = starts(&env, "");
    assert_eq!(job["share"], Value::Null);
    assert!(refused(&env, "gpus=1", 2).contains("GPUs"));
    // Alone by capacity, a job has all there are.
    drop(env.tpu("kill 1 -y").exits(0));
    drop(env.tpu("hosts set local --max-jobs 1 --gpus 2").exits(0));
    let job = starts(&env, "");
    assert_eq!(seen(&env, &job["window"]), "0,1");
}

#[test]
fn many_who_ask_at_once_never_get_the_same() {
    let env = lab("--max-jobs 5 --gpus 6");
    let started = std::thread::scope(|scope| {
        let asks = ["gpus=1", "gpus=2", "gpu=0", "gpu=5,4", "", "gpus=3"];
        let threads: Vec<_> = (0..18)
            .map(|n| {
                let asked = asks[n % asks.len()];
                let env = &env;
                scope.spawn(move || {
                    let mut words = vec!["run", "local", "-q"];
                    words.extend(asked.split_whitespace());
                    words.extend(["--", "sh", "-c", SAYS]);
                    let done = env.tpu_words(&words);
                    assert!([0, 4].contains(&done.code), "{}", done.report());
                    done.code == 0
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|started| *started).count()
    });
    assert_eq!(env.jobs("alice").len(), started);
    assert!((1..=5).contains(&started), "{started}");
    let mut whose = BTreeMap::new();
    for job in env.jobs("alice") {
        for gpu in job["extra_msgs"]["share"]["gpus"].as_array().unwrap() {
            let before = whose.insert(gpu.as_u64(), job["windows_id"].clone());
            assert_eq!(before, None, "{gpu} is given twice: {:?}", env.jobs("alice"));
        }
    }
}

#[test]
fn a_limit_that_is_set_later_holds_for_those_that_start_later() {
    let env = lab("--gpus 4");
    let jobs = [starts(&env, "gpus=1"), starts(&env, "gpus=1"), starts(&env, "gpus=1")];
    drop(env.tpu("hosts set local --max-jobs 2 --gpus 2").exits(0));
    for job in &jobs {
        env.wait_status(job["window"].as_u64().unwrap(), "running");
    }
    assert!(refused(&env, "", 4).contains("takes 2 jobs at a time"));
    drop(env.tpu("kill 1,2 -y").exits(0));
    // GPU 2 is still in use, and not one of those that are given out any more.
    assert_eq!(starts(&env, "gpus=2")["share"]["gpus"], json!([0, 1]));
    drop(env.tpu("hosts set local --max-jobs none --gpus none").exits(0));
    assert_eq!(starts(&env, "")["share"], Value::Null);
}

#[test]
fn whoever_insists_gets_a_place_and_never_the_gpu_of_another() {
    let env = lab("--max-jobs 1 --gpus 2");
    drop(starts(&env, "gpus=1"));
    assert!(refused(&env, "gpus=1", 4).contains("in use by alice/1"));
    assert_eq!(starts(&env, "gpus=1 --force")["share"]["gpus"], json!([1]));
    assert!(refused(&env, "gpus=1 --force", 4).contains("0 of 2 GPUs are free"));
}

#[test]
fn a_successor_asks_for_the_same_and_gets_what_is_free_then() {
    let env = lab("--max-jobs 3 --gpus 3");
    drop(starts(&env, "gpu=0"));
    let job = starts(&env, "gpus=1");
    assert_eq!(job["share"]["gpus"], json!([1]));
    drop(env.tpu("kill 1,2 -y").exits(0));
    drop(env.tpu("rerun 2 --force").exits(0));
    let next = env.jobs("alice").last().unwrap().clone();
    assert_eq!(next["extra_msgs"]["share"]["gpus"], json!([0]));
    assert_eq!(seen(&env, &next["windows_id"]), "0");
}

/// The original and people write records that say nothing of shares.
#[test]
fn a_record_without_a_share_counts_as_one_job() {
    let env = lab("--max-jobs 2 --gpus 2");
    drop(starts(&env, "gpus=1"));
    env.change(|data| {
        let user = data.user_mut(&UserName::from("alice")).unwrap();
        user.job_mut(JobNumber(1)).unwrap().share = None;
    });
    assert_eq!(starts(&env, "gpus=2")["share"]["gpus"], json!([0, 1]));
    assert!(refused(&env, "", 4).contains("takes 2 jobs at a time"));
}

#[test]
fn hosts_shows_who_is_where() {
    let env = lab("--max-jobs 2 --gpus 4 --mem 64G");
    drop(env.tpu("register gpu1 --address 127.0.0.9").exits(0));
    drop(starts(&env, "gpus=2"));
    env.wait_status(1, "running");
    drop(env.tpu("hosts").exits(0).says(&[
        "local",
        "1/2",
        "2/4",
        "64G",
        "alice/1 (GPU 0,1)",
        "gpu1",
        "0/1",
    ]));
    let shown = env.tpu("hosts --json").exits(0).json();
    let names: Vec<&str> = shown["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["local", "gpu1"], "each once");
    assert_eq!(shown["hosts"][0]["jobs"][0]["job"], "alice/1");
    assert_eq!(shown["hosts"][0]["capacity"]["mem_mib"], 65_536);
    // What was set stays when the rest is said anew, and patterns name several.
    drop(env.tpu("hosts set gpu[1-1],local --max-jobs 4").exits(0).says(&["gpu1 takes 4 jobs"]));
    drop(env.tpu("register gpu1 --address 127.0.0.8").exits(0));
    assert_eq!(env.data()["targets"]["gpu1"]["capacity"]["jobs"], 4);
    drop(env.tpu("hosts set nothere --gpus 1").exits(3).says(&["nothere"]));
    drop(env.tpu("hosts set gpu[ --gpus 1").exits(2).says(&["column"]));
    drop(env.tpu("hosts set local --gpus 0").exits(2).says(&["none"]));
    drop(env.tpu("hosts set local").exits(2));
}
