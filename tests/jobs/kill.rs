//! `tpu kill` in the built program: all of the job's processes and none of anybody else's, whatever they
//! do about signals, and however often it is interrupted.

use std::os::unix::process::CommandExt as _;
use std::path::Path;

use serde_json::Value;
use tpu_system::sys::procs::Process;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// Writes its process id and lives on.
const SLEEPS: &str = "echo $$ >\"$HOME/NAME\"; exec sleep 1000";

/// A job that lives until it is stopped; `name` is the file with its process id.
fn sleeper(env: &TestEnv, user: &str, name: &str) -> (u64, Process) {
    let script = SLEEPS.replace("NAME", name);
    let window = env.start_for(user, &script, &NONE);
    (window, env.wait_pid(name))
}

/// A process that has nothing to do with any job; killed and reaped at the end.
struct Stranger(std::process::Child);

impl Stranger {
    #[expect(
        clippy::disallowed_methods,
        reason = "it must be no process of the program under test"
    )]
    fn new() -> Self {
        let mut command = std::process::Command::new("sleep");
        Self(command.arg("1000").env_clear().process_group(0).spawn().unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn everything_of_the_job_ends_and_nothing_else() {
    let env = TestEnv::new();
    // Job control, lest bash lets what it starts in the background ignore SIGINT.
    let script = "set -m; setsid bash -c 'echo $$ >\"$HOME/escaped\"; exec sleep 1000' & set +m; \
                  echo $$ >\"$HOME/leader\"; bash -c 'echo $$ >\"$HOME/member\"; exec sleep 1000'; true";
    let window = env.start(script, &NONE);
    let all = ["leader", "member", "escaped"].map(|name| env.wait_pid(name));
    assert_eq!(all[2].session, all[2].pid, "it has a session of its own");
    assert_eq!(all[1].pgid, all[0].pgid);
    let stranger = Stranger::new();
    let (theirs, neighbour) = sleeper(&env, "bob", "bob");
    assert_eq!(theirs, window, "equal numbers of two users");

    let killed = env.tpu("kill w=1 alice --json").exits(0);
    assert_eq!(killed.json()["killed"][0]["window"], 1);
    for process in &all {
        assert!(!lives(process), "{} is left", process.pid);
    }
    assert!(lives(&Process::read(stranger.0.id()).unwrap()));
    assert!(lives(&neighbour));
    assert_eq!(env.windows("alice"), [0], "window 0 stays");
    assert!(env.has_window("bob", 1));
    let record = env.job("alice", 1);
    assert_eq!(record["status"], "killed");
    assert!(record["extra_msgs"].get("intent").is_none_or(Value::is_null), "{record:#}");
    assert_eq!(env.job("bob", 1)["status"], "running");
}

/// SIGINT 3 s, SIGTERM 10 s, SIGKILL: this test takes as long as that.
#[test]
fn jobs_that_ignore_signals_end_as_well() {
    let env = TestEnv::new();
    let deaf = "echo $$ >\"$HOME/NAME\"; while :; do sleep 0.4; done";
    let first = env.start(&format!("trap '' INT; {}", deaf.replace("NAME", "no-int")), &NONE);
    let second =
        env.start(&format!("trap '' INT TERM; {}", deaf.replace("NAME", "no-term")), &NONE);
    let all = ["no-int", "no-term"].map(|name| env.wait_pid(name));
    env.tpu(&format!("kill {first},{second} alice -y")).exits(0);
    for process in &all {
        assert!(!lives(process));
    }
    assert_eq!(env.windows("alice"), [0]);
    for window in [first, second] {
        assert_eq!(env.job("alice", window)["status"], "killed");
    }
}

#[test]
fn a_job_may_use_its_last_words() {
    let env = TestEnv::new();
    let script = "trap 'echo saved >\"$HOME/saved\"; exit 0' INT; echo $$ >\"$HOME/pid\"; \
                  while :; do sleep 0.4; done";
    env.start(script, &NONE);
    let job = env.wait_pid("pid");
    env.tpu("kill 1 alice").exits(0);
    assert!(!lives(&job));
    assert_eq!(env.wait_file("saved"), b"saved\n");
    assert_eq!(env.job("alice", 1)["status"], "killed");
}

#[test]
fn refusals_change_nothing() {
    let env = TestEnv::new();
    env.start("true", &NONE);
    env.wait_status(1, "finished");
    let (_, job) = sleeper(&env, "alice", "pid");
    env.wait_status(2, "running");
    let before = env.data_bytes();
    env.tpu("kill w=1 alice").exits(4).says(&["alice/1", "finished", "hint:"]);
    env.tpu("kill w=99 alice").exits(3).says(&["no job 99", "hint:"]);
    env.tpu("kill 2,99 alice").exits(3);
    env.tpu("kill alice").exits(2).says(&["which jobs?"]);
    env.tpu("kill tag:none alice").exits(3);
    assert_eq!(env.data_bytes(), before);
    // One of two is final: the other is killed, and the exit code says so.
    env.tpu("kill 1-2 alice -y").exits(4).says(&["Killed alice/2", "alice/1"]);
    assert!(!lives(&job));
    env.tpu("kill w=2 alice").exits(4).says(&["killed"]);
}

#[test]
fn what_cannot_be_reached_is_not_touched() {
    let mut env = TestEnv::new();
    let (_, job) = sleeper(&env, "alice", "pid");
    env.wait_status(1, "running");
    let before = env.data_bytes();
    // No tmux to ask at all.
    let path = env.tmux().env().var("PATH").unwrap().to_owned();
    env.set("PATH", env.path("code-alice").into_os_string());
    env.tpu("kill w=1 alice").exits(6).says(&["tmux", "hint:"]);
    env.set("PATH", path);
    // A server somewhere else.
    env.set("TPU_TMUX_SOCKET", format!("{}-other", env.tmux().socket()));
    env.tpu("kill w=1 alice").exits(4).says(&["is not watched from here", "hint:"]);
    assert_eq!(env.data_bytes(), before);
    assert!(lives(&job));
    assert!(env.has_window("alice", 1));
    env.set("TPU_TMUX_SOCKET", env.tmux().socket().to_owned());
    // A server that has ended for certain: what is left of the job is known by its token.
    env.tmux().kill_server();
    env.tpu("kill w=1 alice").exits(0);
    assert_eq!(env.job("alice", 1)["status"], "killed");
    assert!(!lives(&job));
}

#[test]
fn several_jobs_are_named_by_numbers_ranges_tags_and_targets() {
    let env = TestEnv::new();
    env.code("alice", "staging.sh", "echo $$ >\"$HOME/script\"; exec sleep 1000\n");
    env.tpu("run v2-1 alice tag=sweep").exits(0);
    for _ in 2..=7 {
        env.start("exec sleep 1000", &NONE);
    }
    env.tpu("add-tag 3 sweep alice").exits(0);
    let (_, theirs) = sleeper(&env, "bob", "bob");
    let alive = || -> Vec<u64> {
        let jobs = env.jobs("alice");
        let live = jobs.iter().filter(|job| job["status"] != "killed");
        live.map(|job| job["windows_id"].as_u64().unwrap()).collect()
    };
    let would = env.tpu("kill 4,6-7 alice --dry-run --json").exits(0);
    assert_eq!(would.json()["would"].as_array().unwrap().len(), 3);
    assert_eq!(alive(), [1, 2, 3, 4, 5, 6, 7]);
    env.tpu("kill 4,6-7 w=7 alice -y").exits(0);
    assert_eq!(alive(), [1, 2, 3, 5]);
    env.tpu("kill tag:sweep tpu:local alice -y").exits(0);
    assert_eq!(alive(), [1, 2, 5]);
    env.tpu("kill tpu:v2-1 alice -y").exits(0);
    assert_eq!(alive(), [2, 5]);
    env.tpu("kill --all alice -y").exits(0);
    assert_eq!(alive(), Vec::<u64>::new());
    assert_eq!(env.windows("alice"), [0]);
    assert!(lives(&theirs));
}

/// The killing `tpu` dies at each of its steps; the next one completes its work.
#[test]
fn a_kill_that_was_cut_short_is_completed_by_the_next() {
    for point in ["kill-intended", "kill-stopped", "kill-closed"] {
        let env = TestEnv::new();
        let (_, job) = sleeper(&env, "alice", "pid");
        env.wait_status(1, "running");
        let failing = format!("{point}=pause");
        let killer = env.start_tpu("kill w=1 alice", &[("FAILPOINTS", failing.as_str())]);
        wait_until("the intent is recorded", || {
            env.job("alice", 1)["extra_msgs"]["intent"]["action"] == "killing"
        });
        match point {
            "kill-intended" => assert!(lives(&job)),
            "kill-stopped" => {
                wait_gone(&job);
                // Its launcher records the end of the job meanwhile; that is no end of the kill.
                wait_until("the launcher's last line", || {
                    env.pane("alice", 1).contains("ended with exit code")
                });
                assert!(env.has_window("alice", 1));
            }
            _ => wait_until("the window is closed", || !env.has_window("alice", 1)),
        }
        assert_ne!(env.job("alice", 1)["status"], "killed", "{point}");
        killer.kill();

        // Nothing starts it again meanwhile.
        env.tpu("resume w=1 alice").exits(4).says(&["killing"]);
        env.tpu("kill w=1 alice").exits(0);
        assert!(!lives(&job), "{point}");
        assert_eq!(env.windows("alice"), [0], "{point}");
        let record = env.job("alice", 1);
        assert_eq!(record["status"], "killed", "{point}: {record:#}");
        assert!(record["extra_msgs"].get("intent").is_none(), "{point}: {record:#}");
        assert!(Path::new(record["log_dir"].as_str().unwrap()).join("output.log").exists());
    }
}

/// Read by each bash before its script: that which is to begin the command stands still in it until it may go on, for a
/// minute at most. That its window has been closed comes to it before it would hear of that, or after.
const STANDS_STILL: &str = r#"case $0:$1 in *launcher.sh:on_pty)
    trap '' HUP
    echo $$ >"$HOME/stands"
    for _ in {1..1200}; do [ ! -e "$HOME/go" ] || break; sleep 0.05; done
    trap - HUP
esac
"#;

#[test]
fn what_was_about_to_begin_does_not_begin_after_its_kill() {
    let env = TestEnv::new();
    let hold = env.path("hold.sh");
    write_file(&hold, STANDS_STILL);
    drop(env.wait_status(env.start("exit 0", &NONE), "finished"));
    env.tmux().run(&["set-environment", "-g", "BASH_ENV", hold.to_str().unwrap()]);
    let window = env.start("echo ran >\"$HOME/ran\"", &NONE);
    let about = env.wait_pid("stands");
    drop(env.tpu(&format!("kill w={window} alice -y")).exits(0));
    assert!(!env.has_window("alice", window));
    env.touch("go");
    wait_gone(&about);
    assert!(!env.path("ran").exists(), "it was killed, and has begun");
    assert_eq!(env.job("alice", window)["status"], "killed");
}

/// What has failed stays as it failed: a kill cancels what a rule would do about it, and is refused where none would.
#[test]
fn a_kill_never_changes_how_a_job_has_ended() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(env.tpu("run local -q -- python3 -c raise(IndexError)").exits(0));
    drop(env.wait_status(1, "error"));
    let before = env.job("alice", 1);
    let refused = env.tpu("kill 1 -y").exits(4);
    drop(refused.says(&["alice/1 is error: python-error", "it has already ended", "tpu resume 1"]));
    assert_eq!(env.job("alice", 1), before);

    let rule = "rule=killed-by-signal:rerun";
    drop(env.tpu_words(&["run", "local", rule, "-q", "--", "bash", "-c", "kill -9 $$"]).exits(0));
    drop(env.wait_status(2, "error"));
    drop(
        env.tpu("kill 2 -y")
            .exits(0)
            .says(&["alice/2 had ended already, and stays error: killed-by-signal"]),
    );
    let after = env.job("alice", 2);
    assert_eq!(
        (&after["status"], &after["error"]),
        (&Value::from("error"), &Value::from("killed-by-signal"))
    );
    assert_eq!(after["monitor"], false, "the original's monitor leaves it alone");
    let plan = env.tpu("daemon plan --json").exits(0).json();
    let own = plan["jobs"].as_array().unwrap().iter().find(|job| job["window"] == 2).unwrap();
    assert_eq!(own["next"]["action"], "pass", "{plan}");
    assert!(own.to_string().contains("somebody has killed it"), "{plan}");
    let daemon = env.daemon(&[]);
    env.turn();
    drop(daemon);
    assert_eq!(env.jobs("alice").len(), 2, "no rule brings it back");
    drop(env.tpu("kill 2 -y").exits(4));
    drop(env.tpu("resume 2 -y").exits(0));
    assert_eq!(env.job("alice", 3)["monitor"], true, "what was started anew is watched");
}
