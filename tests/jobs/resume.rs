//! `tpu resume` and `tpu rerun` in the built program: one child for each attempt, the right arguments,
//! and nobody else's processes.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use tpu_system::sys::procs::Process;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Keeps its words, leaves a checkpoint and fails.
const FAILS: &str = "printf '%s\\n' \"$@\" >\"$TPU_LOG_DIR/words\"; pwd >\"$TPU_LOG_DIR/pwd\"; \
                     echo weights >\"$TPU_LOG_DIR/checkpoint_10\"; exit 1";

/// The first attempt leaves a checkpoint and fails, the later ones go on until `go` appears.
const GOES_ON: &str = "echo weights >\"$TPU_LOG_DIR/checkpoint_10\"; [ $# -gt 0 ] || exit 1; \
                       echo $$ >>\"$HOME/children\"; until [ -e \"$HOME/go\" ]; do sleep 0.4; done";

const NONE: [&str; 0] = [];

/// What an attempt of [`FAILS`] was given, behind the words of its own.
fn words(job: &Value) -> Vec<String> {
    let log = job["log_dir"].as_str().unwrap();
    let text = std::fs::read_to_string(Path::new(log).join("words")).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn ten_at_once_make_one_child() {
    let env = TestEnv::new();
    let parent = env.start(GOES_ON, &NONE);
    env.wait_status(parent, "error");
    let racing: Vec<_> = (0..10).map(|_| env.start_tpu("resume w=1 alice", &[])).collect();
    let mut codes: Vec<i32> = racing.into_iter().map(crate::common::env::Running::wait).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 4, 4, 4, 4, 4, 4, 4, 4, 4]);
    assert_eq!(env.jobs("alice").len(), 2);
    assert_eq!(env.windows("alice"), [0, 1, 2]);
    assert_eq!(env.job("alice", 1)["status"], "resumed");
    assert_eq!(env.job("alice", 1)["extra_msgs"]["child"], 2);
    assert_eq!(env.job("alice", 2)["extra_msgs"]["father"], 1);
    // The losers have not stopped what the winner started.
    let child = env.wait_pid("children");
    assert!(lives(&child));
    env.touch("go");
    env.wait_status(2, "finished");
    assert_eq!(std::fs::read_to_string(env.path("children")).unwrap().lines().count(), 1);
}

/// One has made its plan and is then overtaken: it must not take the winner's child for a leftover.
#[test]
fn who_comes_too_late_stops_nothing() {
    let env = TestEnv::new();
    let parent = env.start(GOES_ON, &NONE);
    env.wait_status(parent, "error");
    let mut late = env.start_at_points("resume w=1 alice", "resume-planned=sleep(4000)");
    // As long as the late one needs to make its plan. Were it slower, it would be refused earlier.
    env.tpu("check alice").exits(0);
    // Under the lock, so that it does not hold that while it is stopped.
    let mut stopped = None;
    env.change(|_| stopped = Some(Stopped::new(late.id())));
    env.tpu("resume w=1 alice").exits(0);
    let child = env.wait_pid("children");
    drop(stopped);
    assert_eq!(late.wait().unwrap().code(), Some(4));
    assert!(lives(&child));
    assert_eq!(env.jobs("alice").len(), 2);
    env.touch("go");
    env.wait_status(2, "finished");
}

#[test]
fn arguments_of_the_lineage_are_computed_each_time_and_never_stored() {
    let env = TestEnv::new();
    let run =
        ["run", "local", "alice", "lr=0.1 x", "--log-stage", "--", "bash", "-c", FAILS, "job"];
    env.tpu_words(&run).exits(0);
    let own = "--config.training.learning_rate=0.1 x";
    let first = env.wait_status(1, "error");
    assert_eq!(words(&first), [own]);
    let stage = first["stage_dir"].as_str().unwrap();
    // What changes in the directory afterwards is not what a resume runs.
    env.code("alice", "later.py", "");

    let mut parent = first.clone();
    for stages in 1..=3_u64 {
        let log = parent["log_dir"].as_str().unwrap();
        if stages == 2 {
            write_file(&Path::new(log).join("wandb_run_id.txt"), "run-77\n");
        }
        env.tpu(&format!("resume w={stages} alice")).exits(0);
        let child = env.wait_status(stages + 1, "error");
        let mut wanted = vec![
            own.to_owned(),
            format!("--config.load_from={log}"),
            format!("--config.stage={stages}"),
        ];
        if stages == 2 {
            wanted.push("--config.wandb_resume_id=run-77".to_owned());
        }
        assert_eq!(words(&child), wanted);
        assert_eq!(child["stage"], stages);
        assert_eq!(child["stage_dir"], stage);
        assert_ne!(child["log_dir"], parent["log_dir"]);
        assert_eq!(child["extra_configs"], first["extra_configs"]);
        assert_eq!(child["customized_settings"], first["customized_settings"]);
        parent = child;
    }
    env.tpu("rerun w=4 alice").exits(0);
    let again = env.wait_status(5, "error");
    assert_eq!(words(&again), [own]);
    assert_eq!(again["stage"], 0);
    assert_eq!(again["extra_configs"], first["extra_configs"]);
    assert_ne!(again["stage_dir"], stage);
    assert!(Path::new(again["stage_dir"].as_str().unwrap()).join("later.py").exists());
    assert_eq!(env.job("alice", 4)["status"], "rerunned");
    // Only the leaf goes on.
    env.tpu("resume w=1 alice").exits(4).says(&["alice/1 continues as alice/2"]);
    // A kill names the newest attempt, which is the one to kill.
    env.tpu("kill 1 alice").exits(4).says(&["alice/1 continues as alice/5", "tpu kill 5 alice"]);
}

#[test]
fn a_checkpoint_further_up_the_lineage_will_do() {
    let env = TestEnv::new();
    // Only the first attempt gets as far as a checkpoint.
    let script = "printf '%s\\n' \"$@\" >\"$TPU_LOG_DIR/words\"; \
                  [ $# -gt 0 ] || echo weights >\"$TPU_LOG_DIR/checkpoint_10\"; exit 1";
    env.start(script, &NONE);
    let first = env.wait_status(1, "error");
    env.tpu("resume w=1 alice").exits(0);
    env.wait_status(2, "error");
    env.tpu("resume w=2 alice").exits(0);
    let third = env.wait_status(3, "error");
    let from = format!("--config.load_from={}", first["log_dir"].as_str().unwrap());
    assert_eq!(words(&third), [from]);
}

#[test]
fn an_ancestor_that_was_cleaned_away_still_has_its_checkpoint() {
    let env = TestEnv::new();
    let none_of_its_own =
        "[ $# -gt 0 ] && sleep 1000; echo w >\"$TPU_LOG_DIR/checkpoint_10\"; exit 1";
    let first = env.start(none_of_its_own, &NONE);
    let source = env.wait_status(first, "error")["log_dir"].as_str().unwrap().to_owned();
    drop(env.tpu("resume w=1 alice").exits(0));
    env.wait_status(2, "running");
    drop(env.tpu("clean alice -re").exits(0).says(&["Archived 1 job"]));
    drop(env.tpu("kill 2 alice -y").exits(0));
    let plan = env.tpu("resume w=2 alice --force --dry-run").exits(0);
    drop(plan.says(&[&format!("--config.load_from={source}").replace(env.root(), "[DIR]")]));
}

/// A job with a checkpoint whose resume was killed at a step of its launch: a child that never began.
fn cut_short(point: &str) -> (TestEnv, Value) {
    let env = TestEnv::new();
    env.start(FAILS, &NONE);
    let first = env.wait_status(1, "error");
    let resume = env.start_tpu("resume w=1 alice", &[("FAILPOINTS", &format!("{point}=pause"))]);
    wait_until("the claim", || env.jobs("alice").len() == 2);
    if point == "launch-written" {
        let launcher = env.state_of("alice", 2).join("launcher.sh");
        wait_until("the files of the launch", || launcher.exists());
    }
    resume.kill();
    (env, first)
}

fn load_from(job: &Value) -> String {
    format!("--config.load_from={}", job["log_dir"].as_str().unwrap())
}

#[test]
fn an_attempt_that_never_began_has_no_say_in_where_the_next_one_begins() {
    for point in ["launch-claimed", "launch-written"] {
        let (env, first) = cut_short(point);
        // The same command, typed again.
        drop(env.tpu("resume w=1 alice").exits(0).says(&["alice/2", "never began"]));
        let child = env.wait_status(3, "error");
        assert_eq!(words(&child), [load_from(&first)], "{point}");
        let never = env.job("alice", 2);
        assert_eq!((&never["status"], &never["error"]), (&"resumed".into(), &"launch".into()));
        // Asked for in its own name it is the same.
        drop(env.tpu("resume w=1 alice").exits(4).says(&["continues as alice/2"]));
    }
}

#[test]
fn a_log_directory_that_is_gone_holds_no_checkpoint() {
    let env = TestEnv::new();
    env.start(FAILS, &NONE);
    let first = env.wait_status(1, "error");
    drop(env.tpu("resume w=1 alice").exits(0));
    let second = env.wait_status(2, "error");
    drop(env.wait_exit(2));
    std::fs::remove_dir_all(second["log_dir"].as_str().unwrap()).unwrap();
    drop(env.tpu("resume w=2 alice").exits(0));
    assert_eq!(words(&env.wait_status(3, "error")), [load_from(&first)]);
}

/// Continues a process that was stopped, whatever becomes of the test.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: u32) -> Self {
        let pid = Pid::from_raw(pid.cast_signed()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _continued = kill_process(self.0, Signal::CONT);
    }
}

#[test]
fn a_launch_that_tmux_did_not_carry_out_is_told_as_what_it_is_and_the_same_command_goes_on() {
    let env = TestEnv::new();
    env.start(FAILS, &NONE);
    let first = env.wait_status(1, "error");
    let server = env.tmux().server_pid().unwrap();
    let said = std::thread::scope(|scope| {
        let resume = scope.spawn(|| {
            let spawn = env.spawn(&["resume", "w=1", "alice"]);
            env.output(&spawn.env("FAILPOINTS", "launch-claimed=sleep(5000)"))
        });
        wait_until("the claim", || env.jobs("alice").len() == 2);
        let _stopped = Stopped::new(server);
        resume.join().unwrap()
    });
    let said = said.exits(6).says(&[
        "alice/2 could not be started",
        "its record stays, as error: launch, and alice/1 has been handed over to it",
        "tpu resume w=1 alice",
    ]);
    assert!(!said.to_string().contains("nothing was"), "{said}");
    drop(env.tpu("resume w=1 alice").exits(0));
    assert_eq!(words(&env.wait_status(3, "error")), [load_from(&first)]);
}

#[test]
fn what_has_nothing_to_resume_from_begins_anew_once_a_person_says_so() {
    let env = TestEnv::new();
    env.start(
        "printf '%s\\n' \"$@\" >\"$TPU_LOG_DIR/words\"; pwd >\"$TPU_LOG_DIR/pwd\"; exit 1",
        &NONE,
    );
    let first = env.wait_status(1, "error");
    drop(env.tpu("resume w=1 alice").exits(4).says(&["nothing to resume from", "--yes"]));
    drop(env.tpu("resume w=1 alice --yes --dry-run").exits(0).says(&["1 (resumed from nothing)"]));
    assert_eq!(env.jobs("alice").len(), 1);
    drop(env.tpu("resume w=1 alice --yes").exits(0).says(&["resumed from nothing", "no complete"]));
    let second = env.wait_status(2, "error");
    assert_eq!(words(&second), [""], "no checkpoint is named that is not there");
    assert_eq!((&second["stage"], &second["stage_dir"]), (&1.into(), &first["stage_dir"]));
    let parent = env.job("alice", 1);
    assert_eq!((&parent["status"], &parent["extra_msgs"]["child"]), (&"resumed".into(), &2.into()));
    drop(env.tpu("history").exits(0).says(&["resumed from nothing"]));
}

#[test]
fn without_a_complete_checkpoint_nothing_begins_unasked() {
    let env = TestEnv::new();
    let script = "cd \"$TPU_LOG_DIR\"; : >checkpoint_1; mkdir checkpoint_2 checkpoint_3.orbax-checkpoint-tmp-9; \
                  echo x >checkpoint_3.orbax-checkpoint-tmp-9/part; echo x >tmp_4; exit 1";
    env.start(script, &NONE);
    env.wait_status(1, "error");
    let before = env.data_bytes();
    env.tpu("resume w=1 alice")
        .exits(4)
        .says(&["alice/1 has nothing to resume from", "no complete checkpoint"]);
    assert_eq!(env.data_bytes(), before);
    assert_eq!(env.windows("alice"), [0, 1]);
    env.tpu("rerun w=1 alice").exits(0);
    env.wait_status(2, "error");
}

#[test]
fn what_is_final_goes_on_only_by_force() {
    let env = TestEnv::new();
    env.start("echo weights >\"$TPU_LOG_DIR/checkpoint_1\"", &NONE);
    env.wait_status(1, "finished");
    env.start("echo weights >\"$TPU_LOG_DIR/checkpoint_1\"; sleep 1000", &NONE);
    let log = env.wait_status(2, "running")["log_dir"].as_str().unwrap().to_owned();
    wait_until("its checkpoint", || {
        std::fs::metadata(Path::new(&log).join("checkpoint_1")).is_ok_and(|file| file.len() > 0)
    });
    for verb in ["resume", "rerun"] {
        env.tpu(&format!("{verb} w=1 alice")).exits(4).says(&["alice/1 is finished", "hint:"]);
        env.tpu(&format!("{verb} w=2 alice")).exits(4).says(&["alice/2 is", "tpu kill w=2 alice"]);
    }
    let killed = env.tpu("kill w=2 alice").exits(0);
    let words = killed.stdout.trim_end().to_owned();
    assert!(words.starts_with("Killed alice/2 after "), "{words}");
    assert!(words.ends_with(", checkpoint 1: tpu resume 2 alice"), "{words}");
    // A person killed it: that is asked about, once.
    env.tpu("resume w=2 alice").exits(2).says(&["alice/2 was killed: resume it?", "-y"]);
    assert_eq!(env.jobs("alice").len(), 2);
    env.tpu("resume w=2 alice -y").exits(0);
    env.wait_status(3, "running");
}

#[test]
fn leftovers_of_the_parent_are_stopped_and_the_neighbour_is_not() {
    let env = TestEnv::new();
    // A data loader that survives the end of its training. (A zombie has no command line.)
    let script = "[ $# -gt 0 ] && { grep -qs sleep \"/proc/$(cat \"$HOME/left\")/cmdline\" && echo alive \
                  >\"$HOME/overlap\"; exit 0; }; echo weights >\"$TPU_LOG_DIR/checkpoint_1\"; set -m; \
                  setsid bash -c 'echo $$ >\"$HOME/left\"; exec sleep 1000' >/dev/null 2>&1 & \
                  until [ -s \"$HOME/left\" ]; do sleep 0.4; done; exit 1";
    env.start(script, &NONE);
    let left: Process = env.wait_pid("left");
    env.wait_status(1, "error");
    assert!(lives(&left), "it has outlived its parent");
    // Another user's job in the window of the same number.
    let theirs = env.start_for("bob", "echo $$ >\"$HOME/bob\"; exec sleep 1000", &NONE);
    assert_eq!(theirs, 1);
    let neighbour = env.wait_pid("bob");
    let record = env.job("bob", 1);

    env.tpu("resume w=1 alice").exits(0);
    wait_gone(&left);
    env.wait_status(2, "finished");
    assert!(!env.path("overlap").exists(), "it still ran when the child began");
    assert!(lives(&neighbour));
    assert_eq!(env.job("bob", 1)["status"], "running");
    assert_eq!(env.job("bob", 1)["extra_msgs"], record["extra_msgs"]);
    wait_until("bob's window is there", || env.has_window("bob", 1));
}

#[test]
fn a_resumed_script_is_known_by_the_directory_that_it_was_copied_from() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.code(
        "alice",
        "staging.sh",
        "mkdir -p \"$HOME/stage\" \"$HOME/log/checkpoint_1\"; echo w >\"$HOME/log/checkpoint_1/w\"\n\
         cp staging.sh \"$HOME/stage\"; tpu upd-log \"alice:$1\" \"$HOME/log\" \"$HOME/stage\" local now\n\
         exit 3\n",
    );
    drop(env.tpu("run local -q").exits(0));
    env.wait_status(1, "error");
    for window in 2..=3 {
        drop(env.tpu(&format!("resume {} --force", window - 1)).exits(0));
        env.wait_status(window, "error");
        assert_eq!(env.job("alice", window)["job_dir"], env.job("alice", 1)["stage_dir"]);
    }
    let jobs = env.tpu("check --json").exits(0).json();
    for job in jobs["jobs"].as_array().unwrap() {
        assert_eq!(job["dir"]["path"], env.path("code-alice").to_str().unwrap(), "{job:#}");
    }
    let output = env.tpu("check").exits(0);
    assert_eq!(output.stdout.matches("DIR: code-alice\n").count(), 3, "{}", output.stdout);
}

/// A resume runs the copy of the first attempt; from scratch means the code as it is now.
#[test]
fn a_resumed_script_is_rerun_from_where_its_code_is_written() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let script = "mkdir -p \"$HOME/stage\" \"$HOME/log/checkpoint_1\"; echo w >\"$HOME/log/checkpoint_1/w\"\n\
         cp staging.sh \"$HOME/stage\"; tpu upd-log \"alice:$1\" \"$HOME/log\" \"$HOME/stage\" local now\n\
         pwd >\"$HOME/where\"; exit 3\n";
    env.code("alice", "staging.sh", script);
    let code = env.path("code-alice");
    drop(env.tpu("run local -q").exits(0));
    env.wait_status(1, "error");
    drop(env.tpu("resume 1 --force").exits(0));
    env.wait_status(2, "error");
    drop(env.tpu("rerun 2 --dry-run").exits(0).says(&["directory  [DIR]/code-alice\n"]));
    drop(env.tpu("rerun 2 --force").exits(0));
    env.wait_status(3, "error");
    assert_eq!(env.job("alice", 3)["job_dir"], code.to_str().unwrap());
    assert_eq!(std::fs::read_to_string(env.path("where")).unwrap().trim(), code.to_str().unwrap());
    // With the copy gone as well, what has nothing to resume from begins there too.
    drop(env.tpu("resume 3 --force").exits(0));
    env.wait_status(4, "error");
    std::fs::remove_dir_all(env.path("stage")).unwrap();
    std::fs::remove_dir_all(env.path("log")).unwrap();
    drop(env.tpu("resume 4 --yes").exits(0));
    env.wait_status(5, "error");
    assert_eq!(std::fs::read_to_string(env.path("where")).unwrap().trim(), code.to_str().unwrap());
}
