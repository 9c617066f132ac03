//! `tpu script` prints what a job was started by, so that a shell does the same with it; `tpu show` everything of
//! one job, and none of the secrets of its user.

use tpu_system::sys::proc::{self, Spawn};

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

/// Prints each of its words on a line of its own, whatever is in it, then where it is.
const PRINTS: &str = "import os, sys\nfor word in sys.argv[1:]: print(ascii(word))\n\
                      print(os.environ['TPU_TARGET'], os.path.exists('prints.py'))\n";

#[test]
fn a_script_does_in_a_shell_what_the_job_did() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("WANDB_API_KEY", "0123456789abcdef");
    env.code("alice", "prints.py", PRINTS);
    let odd = ["two words", "it's", "$HOME `x` \"y\"", "a\nb", "--flag=\\", "*", "ü"];
    let mut words = vec!["run", "local", "-q", "--", "python3", "prints.py"];
    words.extend(odd);
    drop(env.tpu_words(&words).exits(0));
    env.wait_status(1, "finished");
    let printed = env.tpu("logs 1").exits(0).stdout;

    let script = env.tpu("script 1").exits(0).stdout;
    assert!(!script.contains("0123456789abcdef"), "{script}");
    let again = proc::run(&Spawn::new("bash").arg("-c").arg(&script)).unwrap().text();
    assert_eq!(again.lines().count(), odd.len() + 1);
    for line in again.lines() {
        assert!(printed.contains(line), "{line} is not in {printed}");
    }

    let shown = env.tpu("show 1").exits(0);
    let shown = shown.says(&["alice/1 is finished", "exit code: 0", "python3 prints.py"]);
    assert!(shown.stdout.contains("what runs it says"), "{}", shown.stdout);
    let document = env.tpu("details 1 --json").exits(0).json();
    assert_eq!(document["job"]["status"], "finished");
    assert_eq!(document["script"].as_str(), Some(script.as_str()));
    assert!(document["raw"].as_str().unwrap().contains("window alice:1"), "{document}");

    // What is no longer kept is said so, and keeps nobody from the rest.
    drop(env.tpu("show 2").exits(3));
    let beside = env.data_path().parent().unwrap().join("tpu-state/jobs");
    std::fs::remove_dir_all(&beside).unwrap();
    drop(env.tpu("script 1").exits(3).says(&["not kept", "tpu show 1 alice"]));
    drop(env.tpu("show 1").exits(0).says(&["alice/1 is finished"]));
}

#[test]
fn a_users_own_script_is_shown_as_it_is_sourced() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.code("alice", "staging.sh", "echo \"args: $@\"\n");
    drop(env.tpu("run local lr=0.1 -q").exits(0));
    wait_until("its output", || env.tpu("logs 1").stdout.contains("args:"));
    drop(env.tpu("script 1").exits(0).says(&["source staging.sh 'ka=local'"]));
}

/// Puts a disk that is full in the place of its log, and a good one when it is told to.
const FILLS_ITS_DISK: &str = "log=$TPU_LOG_DIR/output.log; rm \"$log\"; ln -s /dev/full \"$log\"; echo step 1; \
    until [ -e \"$HOME/go\" ]; do echo step 2; sleep 0.2; done; rm \"$log\"; echo step 3; \
    until [ -e \"$HOME/end\" ]; do sleep 0.2; done";

#[test]
fn a_log_that_takes_nothing_more_is_said_of_its_job() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let none: [&str; 0] = [];
    let window = env.start(FILLS_ITS_DISK, &none);
    let evidence = || {
        let jobs = env.tpu("check --json").exits(0).json()["jobs"].clone();
        jobs[0]["evidence"].clone()
    };
    wait_until("its state says so", || evidence()["rule"] == "log-unwritten");
    let said = "its log takes nothing more: No space left on device";
    assert!(evidence()["line"].as_str().unwrap().starts_with(said), "{}", evidence());
    drop(env.tpu("check").exits(0).says(&[said]));
    drop(env.tpu("explain 1").exits(0).says(&["log: its log takes nothing more"]));
    drop(env.tpu("doctor").says(&["alice/1: its log takes nothing more", "make room: df -h"]));
    // It goes on, and the log itself says what is missing.
    env.touch("go");
    wait_until("it goes on", || evidence()["rule"] != "log-unwritten");
    let explained = env.tpu("explain 1").exits(0).stdout;
    assert!(
        explained.contains("log: its log lacks") && explained.contains("says where"),
        "{explained}"
    );
    env.touch("end");
    env.wait_status(window, "finished");
}
