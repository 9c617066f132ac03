//! A job whose file names no target but what would do: one is made for it, under a name that nobody has, of the first
//! type and zone that is to be had. JobMan's files are read as they are.

use std::path::PathBuf;

use serde_json::Value;

use crate::common::env::TestEnv;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::{wait_for, wait_until};

pub(super) fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    for (name, value) in [("TPU_USER", "alice"), ("TPU_CLOUD", "sim")] {
        env.set(name, value);
    }
    // The simulated cloud begins with these two in their zones; what is named from now on is not there.
    for zone in ["zone-a", "zone-b"] {
        drop(env.tpu(&format!("register other-{zone} --type v3-8 --zone {zone}")).exits(0));
    }
    play(&env, "[timing]\ncreate_s = 0.3\ndelete_s = 0.2\n");
    drop(env.tpu("check-status --json").exits(0));
    env
}

pub(super) fn play(env: &TestEnv, story: &str) {
    let file = env.path("story.toml");
    write_file(&file, story);
    drop(env.tpu_words(&["sim", "play", file.to_str().unwrap()]).exits(0));
}

fn submit(env: &TestEnv, text: &str, code: i32) -> String {
    let file = env.path("job.yaml");
    write_file(&file, text);
    let done = env.tpu_words(&["submit", file.to_str().unwrap()]).exits(code);
    done.stdout.clone() + &done.stderr
}

fn target_of(env: &TestEnv, window: u64) -> String {
    let jobs = env.jobs("alice");
    let job = jobs.iter().find(|job| job["windows_id"] == window);
    job.and_then(|job| job["tpu"].as_str()).unwrap_or_default().to_owned()
}

fn waits_for(env: &TestEnv) -> Vec<Value> {
    let entries = env.data()["queue"]["entries"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| entry["target"].clone()).collect()
}

/// A target that is being made has its name until the daemon has seen it through, also where its job has ended by then.
fn wait_until_nothing_is_made(env: &TestEnv) {
    wait_until("nothing is being made", || {
        env.data()["queue"]["makings"].as_array().is_none_or(Vec::is_empty)
    });
}

#[test]
fn each_gets_a_number_that_nobody_has_and_a_target_of_its_own() {
    let env = lab();
    let _monitor = env.daemon(&[]);
    let text = "target: {accelerator: v4-8, zone: zone-a, pricing: spot}\n\
                tpu: {name: mine, number: auto}\ncommand: 'echo on $TPU_TARGET; exec sleep 1000'\n";
    submit(&env, text, 0);
    submit(&env, text, 0);
    wait_until("both run", || !target_of(&env, 1).is_empty() && !target_of(&env, 2).is_empty());
    let mut both = [target_of(&env, 1), target_of(&env, 2)];
    both.sort_unstable();
    assert_eq!(both, ["mine-1", "mine-2"]);
    // What one has had to the end is the next one's.
    let freed = target_of(&env, 1);
    drop(env.tpu("kill 1 -y").exits(0));
    wait_until_nothing_is_made(&env);
    submit(&env, text, 0);
    wait_until("the third one runs", || !target_of(&env, 3).is_empty());
    assert_eq!(target_of(&env, 3), freed);
}

#[test]
fn where_the_first_is_not_to_be_had_the_next_is_asked_for() {
    let env = lab();
    play(
        &env,
        "[timing]\ncreate_s = 0.3\ndelete_s = 0.2\n[[step]]\nat = 0\nevent = \"no-capacity\"\nzone = \"zone-a\"\n",
    );
    let _monitor = env.daemon(&[]);
    let text = "target: {accelerator: [v4-8, v2-8], zone: [zone-a, zone-b]}\ntpu: {name: any}\n\
                command: exec sleep 1000\n";
    submit(&env, text, 0);
    wait_until("it runs", || !target_of(&env, 1).is_empty());
    assert_eq!(target_of(&env, 1), "any-v4-8-zone-b");
}

#[test]
fn any_zone_is_one_to_practise_with() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    play(&env, "[timing]\ncreate_s = 0.3\ndelete_s = 0.2\n");
    let _monitor = env.daemon(&[]);
    let text = "target: {accelerator: v6e-16, zone: us-east5-b, pricing: spot}\ntpu: {name: mine}\n\
                command: exec sleep 1000\n";
    submit(&env, text, 0);
    wait_until("it runs", || target_of(&env, 1) == "mine");
}

#[test]
fn a_name_that_is_something_else_is_not_adopted() {
    let env = lab();
    drop(env.tpu("register mine --type v2-8 --zone zone-a").exits(0));
    let text = "target: {accelerator: v4-8, zone: zone-a}\ntpu: {name: mine}\ncommand: x\n";
    let said = submit(&env, text, 4);
    assert!(said.contains("mine is there already") && said.contains("its type is v2-8"), "{said}");
    assert!(waits_for(&env).is_empty());
    let text =
        "target: {accelerator: v2-8, zone: zone-a}\ntpu: {name: mine}\ncommand: x\nhold: true\n";
    submit(&env, text, 0);
    assert_eq!(waits_for(&env).len(), 1);
}

#[test]
fn a_machine_that_somebody_else_has_is_not_taken_for_the_jobs() {
    let env = lab();
    // It is there, and nobody here knows its name.
    drop(env.tpu("register theirs-1 --type v4-8 --zone zone-a --spot").exits(0));
    drop(env.tpu("apply theirs-1 -y").exits(0));
    drop(env.tpu("del-registered theirs-1").exits(0));
    let text = "target: {accelerator: v4-8, zone: zone-a, pricing: spot}\n\
                tpu: {name: theirs, number: auto}\ncommand: x\nhold: true\n";
    submit(&env, text, 0);
    let wanted = waits_for(&env);
    assert!(wanted[0].to_string().contains("theirs-2"), "{wanted:?}");
    let text =
        "target: {accelerator: v2-8, zone: zone-a}\ntpu: {name: theirs, number: 1}\ncommand: x\n";
    let said = submit(&env, text, 4);
    assert!(
        said.contains("theirs-1 is there already") && said.contains("its type is v4-8"),
        "{said}"
    );
}

#[test]
fn the_plainest_file_runs_and_one_that_failed_leaves_its_number_free() {
    let env = lab();
    let _monitor = env.daemon(&[]);
    let text = "name: train\ntarget: {accelerator: v4-8, zone: zone-a}\ncommand: exit 3\n";
    submit(&env, text, 0);
    wait_until("its TPU is there", || !target_of(&env, 1).is_empty());
    env.wait_status(1, "error");
    assert_eq!(target_of(&env, 1), "train-1");
    wait_until_nothing_is_made(&env);
    submit(&env, &text.replace("exit 3", "exec sleep 1000"), 0);
    wait_until("the next one runs", || !target_of(&env, 2).is_empty());
    assert_eq!(target_of(&env, 2), "train-1");
    // Who has no cloud has nobody who makes one.
    let mut none = TestEnv::new();
    none.set("TPU_USER", "alice");
    assert!(submit(&none, text, 4).contains("nobody makes a TPU here"));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let env = lab();
    for (text, says) in [
        ("target: {accelerator: v4-8}\ncommand: x\n", ":1:9: target: zone: is missing"),
        (
            "target: {accelerator: v4-8, zone: z, mode: tpu}\ntpu: {name: a}\n",
            ":1:44: target.mode:",
        ),
        ("target: {accelerator: v4-8, zone: z}\ncommand: x\n", "it has no name"),
        (
            "target: {accelerator: v4-8, zone: z}\ntpu: {name: My_TPU}\ncommand: x\n",
            ":2:13: tpu.name:",
        ),
        (
            "target: {accelerator: v4-8, zone: z}\ntpu: {name: a, tag: b}\n",
            ":2:16: tpu.tag: no such key",
        ),
        (
            "target: {accelerator: v4-8, zone: z}\ntpu: {name: a, flags: [--x]}\n",
            "--x means nothing here",
        ),
        (
            "name: a\ntarget: {accelerator: v4-8, zone: z}\ntpu: {name: a}\ncommand: x\n",
            ":3:13: tpu.name: the job and its TPU",
        ),
        (
            "target: {accelerator: v4-8, zone: z}\ntpu: {name: a}\narray: 0-3\ncommand: x\n",
            ":3:1: array: an array on a TPU",
        ),
        (
            "target: {accelerator: v4-8, zone: [y, z], mode: queued-resources}\ntpu: {name: a}\n",
            ":1:49: target.mode:",
        ),
        ("target: local\ntpu: {name: a}\ncommand: x\n", ":2:1: tpu: target: names one"),
        (
            "target: {accelerator: v4-8, zone: z}\ntpu: {name: a, startup_script: no.sh}\ncommand: x\n",
            "cannot read",
        ),
    ] {
        let file = env.path("job.yaml");
        write_file(&file, text);
        let done = env.tpu_words(&["submit", file.to_str().unwrap()]);
        let said = done.stdout.clone() + &done.stderr;
        assert!(done.code != 0 && said.contains(says), "{text}: {said}");
        assert!(waits_for(&env).is_empty());
    }
}

/// JobMan's quick start, as its README has it, on a machine with four workers.
const QUICK_START: &str = r#"
tpu:
  allocation_mode: "queued-resources"    # tpu-vm | queued-resources
  accelerator: v2-32
  name: yufeng-${tpu.accelerator}
  zone: zone-a
  version: tpu-ubuntu2204-base
  pricing: spot
  startup_script: null
  tags: ["jobman", "experiment"]
  metadata:
    owner: "yufeng"
ssh:
  tpu_private_key: @HOME@/key
  tpu_public_key: @HOME@/key.pub
setup:
  modules:
    - ssh
    - docker
    - command
docker:
  image: yx3038/maxtext_base_image:latest
  mount_dirs:
    - /dev
    - @HOME@/.ssh:/root/.ssh
  flags: ["--privileged"]
command:
  run: |
    echo "it's $HOME" 'and {{.ID}}'
    echo ran >> "$HOME/ran-$TPU_WORKER"
  workers: [0] # int | list | "all"
"#;

/// A container engine that runs what it is told on this machine.
const ENGINE: &str = r#"
case $1 in
info | pull) exit 0 ;;
image) [ -e "$HOME/pulled" ] || { touch "$HOME/pulled"; false; } ;;
run)
    shift
    while :; do
        case $1 in -v | -w | -e | --name) shift 2 ;; -*) shift ;; *) break ;; esac
    done
    shift
    exec "$@"
    ;;
esac
"#;

#[test]
fn a_file_of_jobman_is_submitted_as_it_is_and_its_tpu_is_made() {
    let mut env = lab();
    std::fs::create_dir_all(env.path("bin")).unwrap();
    write_script(&env.path("bin/docker"), ENGINE);
    let path = env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap().to_owned();
    env.set("PATH", format!("{}:{path}", env.path("bin").display()));
    write_file(&env.path("key"), "a private key\n");
    write_file(&env.path("key.pub"), "a public key\n");
    let _monitor = env.daemon(&[]);
    let text =
        QUICK_START.replace("@HOME@", env.path("").display().to_string().trim_end_matches('/'));
    let said = submit(&env, &text, 0);
    assert!(said.contains("a number without gaps stands behind it"), "{said}");
    let is_over = |job: &Value| job["status"] == "finished" || job["status"] == "error";
    wait_until("it is over", || env.jobs("alice").iter().any(is_over));
    let job = env.job("alice", 1);
    let said =
        std::fs::read_to_string(PathBuf::from(job["log_dir"].as_str().unwrap()).join("output.log"));
    assert_eq!(job["status"], "finished", "{said:?} {job:#}");
    let job = env.job("alice", 1);
    assert_eq!(job["tpu"], "yufeng-v2-32-1");
    let log = PathBuf::from(job["log_dir"].as_str().unwrap());
    let output = std::fs::read_to_string(log.join("output.log")).unwrap();
    let expected = format!("it's {} and {{{{.ID}}}}", env.path("").display());
    assert!(
        output.contains(expected.trim_end_matches('/')) || output.contains("and {{.ID}}"),
        "{output}"
    );
    assert!(env.path("ran-0").exists() && !env.path("ran-1").exists(), "{output}");
    for worker in 0..4 {
        assert!(log.join(format!("docker_worker_{worker}.log")).exists(), "{output}");
    }
    assert_eq!(std::fs::read_to_string(env.path(".ssh/key")).unwrap(), "a private key\n");
    let known = env.tpu("describe yufeng-v2-32-1").exits(0).stdout;
    assert!(known.contains("v2-32"), "{known}");
}

const OF_TWO: &str = "target: {accelerator: [v4-8, v2-8], zone: zone-a, prefer: cheapest}\ntpu: {name: any}\n\
                      command: exec sleep 1000\n";

#[test]
fn the_cheapest_is_tried_first_by_the_prices_that_somebody_has_set() {
    let env = lab();
    let file = env.path("job.yaml");
    write_file(&file, OF_TWO);
    let dry = || env.tpu_words(&["submit", file.to_str().unwrap(), "--dry-run"]).exits(0);
    drop(dry().says(&[
        "in the order in which they are written: the settings name no price",
        "v4-8 in zone-a or v2-8 in zone-a",
    ]));
    let prices = r#"{"v4-8": 3.2, "v2": {"on-demand": 0.5}}"#;
    drop(env.tpu_words(&["set-settings", "prices", prices]).exits(0));
    drop(
        dry().says(&[
            "cheapest first: v2-8 in zone-a (2.00 an hour), v4-8 in zone-a (3.20 an hour)",
        ]),
    );
    submit(&env, OF_TWO, 0);
    drop(env.tpu("explain 1").exits(0).says(&["order: cheapest first: v2-8 in zone-a (2.00"]));
    let _monitor = env.daemon(&[]);
    wait_until("it runs", || !target_of(&env, 1).is_empty());
    assert_eq!(target_of(&env, 1), "any-v2-8-zone-a");
    drop(env.tpu("explain 1").exits(0).says(&["order: cheapest first: v2-8 in zone-a (2.00"]));
}

#[test]
fn the_fastest_is_what_jobs_have_waited_for_least() {
    let env = lab();
    play(
        &env,
        "[timing]\ncreate_s = 0.3\ndelete_s = 0.2\n[[step]]\nat = 0\nevent = \"no-capacity\"\nzone = \"zone-a\"\n",
    );
    let text = "target: {accelerator: v4-8, zone: [zone-a, zone-b], prefer: fastest}\n\
                tpu: {name: any, number: auto}\ncommand: exec sleep 1000\n";
    submit(&env, text, 0);
    drop(env.tpu("explain 1").exits(0).says(&["written: nobody has waited for any of them yet"]));
    let _monitor = env.daemon(&[]);
    wait_until("it runs", || !target_of(&env, 1).is_empty());
    assert_eq!(target_of(&env, 1), "any-v4-8-zone-b-1");
    submit(&env, &text.replace("command", "hold: true\ncommand"), 0);
    let said = wait_for("what was waited is told", || {
        Some(env.tpu("explain 2").exits(0).stdout).filter(|said| said.contains("for each of 1"))
    });
    let order = said.lines().find(|line| line.starts_with("order: ")).unwrap_or_default();
    // The reason of the first may have commas of its own.
    let (first, last) = order.split_once("), ").unwrap_or_default();
    assert!(
        first.starts_with("order: fastest first: v4-8 in zone-b (")
            && first.contains("for each of 1"),
        "{said}"
    );
    assert!(last.starts_with("v4-8 in zone-a (not to be had 1 times"), "{said}");
}

#[test]
fn what_nobody_could_ever_make_is_refused_as_it_is_submitted() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    for (target, says) in [
        ("{accelerator: v99-8, zone: us-east5-b}", "accelerator type 'v99-8' is not known"),
        ("{accelerator: [v6e-8, v5p-8], zone: us-east5}", "there is no zone 'us-east5'"),
    ] {
        write_file(
            &env.path("job.yaml"),
            &format!("name: odd\ntarget: {target}\ncommand: 'true'\n"),
        );
        drop(env.tpu("submit job.yaml").exits(4).says(&["job.yaml:2:9: ", says]));
    }
    assert_eq!(env.queued(), 0);
}

#[test]
fn who_waits_for_a_target_that_is_made_is_told_so_in_plain_words() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    let text = "target: {accelerator: v6e-8, zone: us-east5-b}\ntpu: {name: third, number: auto}\ncommand: 'true'\n";
    write_file(&env.path("job.yaml"), text);
    let why = "third-1 is not there; the daemon makes it";
    let said = env.tpu("submit job.yaml").exits(0);
    drop(said.says(&[
        why,
        "no target is created and nothing starts automatically",
        "tpu daemon start",
    ]));
}
