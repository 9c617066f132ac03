//! Nothing begins from scratch unless it is certain that there is no checkpoint: what cannot be read, what may
//! be one, and a disk that is not there are no proof.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// A job that failed, and its log directory.
fn failed(env: &TestEnv) -> String {
    env.start("exit 1", &[] as &[&str]);
    let log = env.wait_status(1, "error")["log_dir"].as_str().unwrap().to_owned();
    drop(env.wait_exit(1));
    log
}

/// A resume would go on from this directory, on a doubt or not.
fn goes_on(env: &TestEnv, log: &str, is_sure: bool, clue: &str) {
    let plan = env.tpu("resume w=1 alice --dry-run").exits(0).to_string();
    let from = format!("--config.load_from={log}").replace(env.root(), "[DIR]");
    assert!(plan.contains(&from), "{clue}: {plan}");
    assert_eq!(
        !plan.contains("whether there is a checkpoint is unknown"),
        is_sure,
        "{clue}: {plan}"
    );
}

/// A resume would begin anew.
fn begins_anew(env: &TestEnv, clue: &str) {
    let plan = env.tpu("resume w=1 alice --yes --dry-run").exits(0).to_string();
    assert!(plan.contains("resumed from nothing"), "{clue}: {plan}");
}

fn empty(log: &Path) {
    for entry in fs::read_dir(log).unwrap().map(Result::unwrap) {
        let is_directory = entry.file_type().unwrap().is_dir();
        let path = entry.path();
        if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }
}

#[test]
fn a_checkpoint_that_cannot_be_read_or_has_another_name_is_no_proof_of_none() {
    let env = TestEnv::new();
    let text = failed(&env);
    let log = Path::new(&text);
    // As with another account's, or a disk that fails: even root cannot look into a link to itself.
    for name in ["checkpoint_500", "last.ckpt", "checkpoints/checkpoint_500", "global_step500"] {
        empty(log);
        fs::create_dir_all(log.join("checkpoints")).unwrap();
        symlink(Path::new(name).file_name().unwrap(), log.join(name)).unwrap();
        goes_on(&env, &text, false, name);
        // One that can be read is enough to be sure.
        write_file(&log.join("checkpoint_3"), "w");
        goes_on(&env, &text, true, name);
    }
    // On a disk that is not mounted.
    for name in ["checkpoint_500", "checkpoints", "latest_checkpoint"] {
        empty(log);
        symlink("/nowhere/here", log.join(name)).unwrap();
        goes_on(&env, &text, false, name);
    }
    for (name, is_sure) in [
        ("global_step500", true),
        ("iter_500.pth", true),
        ("model_0000500.pt", true),
        ("epoch=3-step=500.ckpt", true),
        ("model.ckpt-10.index", true),
        ("last.ckpt", false),
        ("weights_best.safetensors", false),
        ("checkpoint.pth.tar", false),
    ] {
        empty(log);
        write_file(&log.join(name), "");
        begins_anew(&env, &format!("{name} is empty"));
        write_file(&log.join(name), "w");
        goes_on(&env, &text, is_sure, name);
    }
    for name in ["run_7", "ckpts"] {
        empty(log);
        fs::create_dir(log.join(name)).unwrap();
        begins_anew(&env, &format!("{name} is empty"));
        write_file(&log.join(name).join("weights"), "w");
        goes_on(&env, &text, false, name);
    }
    empty(log);
    write_file(&log.join("output.log"), "step 500");
    write_file(&log.join("metrics.csv"), "500");
    begins_anew(&env, "logs alone");
}

#[test]
fn a_disk_that_is_not_mounted_is_no_proof_of_none() {
    let env = TestEnv::new();
    let root = env.path("mnt/logs");
    fs::create_dir_all(&root).unwrap();
    drop(env.tpu(&format!("set-settings log_root {} alice", root.display())).exits(0));
    let log = failed(&env);
    write_file(&Path::new(&log).join("checkpoint_500"), "w");
    goes_on(&env, &log, true, "it is mounted");
    // After a restart of the machine the empty mount point is there.
    fs::rename(&root, env.path("disk")).unwrap();
    fs::create_dir(&root).unwrap();
    goes_on(&env, &log, false, "it is not mounted");
    fs::remove_dir(&root).unwrap();
    fs::rename(env.path("disk"), &root).unwrap();
    fs::remove_dir_all(&log).unwrap();
    begins_anew(&env, "it is mounted, and the directory is gone");
}

#[test]
fn a_link_to_a_disk_that_is_not_mounted_is_no_proof_of_none() {
    let env = TestEnv::new();
    let log = failed(&env);
    let root = Path::new(&log).ancestors().nth(2).unwrap().to_owned();
    fs::rename(&root, env.path("disk")).unwrap();
    symlink(env.path("disk"), &root).unwrap();
    write_file(&Path::new(&log).join("checkpoint_500"), "w");
    goes_on(&env, &log, true, "it is mounted");
    fs::rename(env.path("disk"), env.path("away")).unwrap();
    goes_on(&env, &log, false, "it is not mounted");
    // The same where the link is the log directory itself.
    fs::rename(env.path("away"), env.path("disk")).unwrap();
    fs::rename(&log, env.path("of-this-run")).unwrap();
    symlink(env.path("not-mounted"), &log).unwrap();
    goes_on(&env, &log, false, "the log directory is a link");
}

/// Prints how far it is, never says where it logs, and fails.
const SILENT: &str = "\
for step in 100 200 300; do echo \"step $step/1000 loss: 0.5\"; done
echo 'ssh: connect to host 10.0.0.1 port 22: Connection refused'; exit 255
";

#[test]
fn a_script_that_never_said_where_it_logs_is_not_begun_anew_once_it_has_come_somewhere() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    env.code("alice", "staging.sh", SILENT);
    drop(env.tpu("run v2-1 alice rule=pre -q").exits(0));
    env.wait_status(1, "error");
    wait_until("its numbers", || env.job("alice", 1)["extra_msgs"]["reached"].is_object());
    let why = "alice/1 came to step 300, and its script never said where it logs";
    for words in ["resume w=1 alice", "resume w=1 alice --yes", "resume w=1 alice --force"] {
        drop(env.tpu(words).exits(4).says(&["is unknown", why, "tpu rerun w=1 alice"]));
    }
    assert_eq!(env.jobs("alice").len(), 1);
    // The daemon asks the same.
    drop(env.tpu("sim preempt v2-1").exits(0));
    wait_until("the plan", || env.tpu("explain 1").exits(0).to_string().contains(why));
    let plan = env.tpu("daemon plan --json").exits(0).json();
    assert_eq!(plan["jobs"][0]["next"]["action"], "pass", "{plan:#}");
}

/// A setting that is printed before the first step is nothing that would be lost.
#[test]
fn a_script_that_said_only_how_it_is_set_is_begun_anew() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    let script = "echo 'step 0/1000 lr 0.1 loss 2.5'; exit 1";
    env.code("alice", "staging.sh", script);
    drop(env.tpu("run v2-1 alice rule=pre -q").exits(0));
    env.wait_status(1, "error");
    wait_until("its numbers", || env.job("alice", 1)["extra_msgs"]["reached"].is_object());
    drop(env.tpu("resume w=1 alice --yes").exits(0).says(&["from nothing"]));
}
