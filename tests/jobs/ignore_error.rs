//! A failure that a person says is none: the job counts as running until it prints another one; what has
//! ended counts as nothing but ended, and is told so.

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

#[test]
fn what_is_at_work_counts_as_running_until_it_prints_another_error() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let script = "echo 'RuntimeError: CUDA out of memory'; \
        until [ -e \"$HOME/next\" ]; do read -r -t 0.1 <> <(:); done; \
        echo 'Traceback (most recent call last):'; echo '  File \"x.py\", line 1, in <module>'; \
        echo 'ValueError: another one'; exec sleep 1000";
    env.start(script, &NONE);
    let status = || env.tpu("check --json").exits(0).json()["jobs"][0]["status"].clone();
    wait_until("the text shows a failure", || status() == "error");
    drop(env.tpu("ignore-error 1").exits(0).says(&["counts as running"]));
    assert_eq!(status(), "running");
    drop(env.tpu("check").exits(0).says(&["Status: running"]));
    env.touch("next");
    wait_until("another failure counts", || status() == "error");
    drop(env.tpu("check").exits(0).says(&["another one"]));
}

#[test]
fn what_has_ended_is_told_so_and_stays_as_it_is() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.start("echo 'ValueError: once'; exit 1", &NONE);
    env.wait_status(1, "error");
    let before = env.data_bytes();
    drop(env.tpu("ignore-error 1").exits(4).says(&[
        "alice/1 cannot count as running",
        "exit code 1",
        "tpu rerun w=1 alice",
    ]));
    assert_eq!(env.data_bytes(), before);
    drop(env.tpu("check").exits(0).says(&["Status: error"]));
}
