//! The daemon in the built program, with real windows: it brings back what its rules say, once, whatever
//! happens to it or beside it; and it leaves everything else alone.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use tpu_core::model::ids::{JobNumber, UserName};
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::procs::{self, Process, Signal};

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::wait::{wait_for, wait_until};

/// What a program prints when its coordination service has lost a peer.
const LOST_PEER: &str = "echo 'E0410 12:00:00.000000 1 coordination_service_agent.cc:332] Polled an \
    error from coordination service (this can be an error from this or another task).'; echo \
    'absl::Status: DEADLINE_EXCEEDED: The following tasks are unhealthy (stopped sending heartbeats):'; \
    echo '/job:jax_worker/replica:0/task:1'; ";

/// A checkpoint, a wait for `fail` where there is such a word, and a lost peer; from a checkpoint it counts
/// itself and goes on until `go` appears.
pub(super) const RECOVERS: &str = "echo w >\"$TPU_LOG_DIR/checkpoint_10\"; case \"$*\" in *load_from=*) echo $$ \
    >>\"$HOME/children-$1\"; until [ -e \"$HOME/go\" ]; do sleep 0.3; done; exit 0;; esac; \
    until [ -e \"$HOME/fail-$1\" ]; do sleep 0.3; done; ";

pub(super) struct Lab {
    pub(super) env: TestEnv,
}

impl Lab {
    pub(super) fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        Self { env }
    }

    /// A job of alice under `rule=resume`; its window.
    #[track_caller]
    pub(super) fn run(&self, script: &str, words: &[&str]) -> u64 {
        let fixed = ["run", "local", "alice", "rule=resume", "--json", "--", "bash", "-c", script];
        let all: Vec<&str> =
            fixed.into_iter().chain(["job"]).chain(words.iter().copied()).collect();
        self.env.tpu_words(&all).exits(0).json()["launched"]["window"].as_u64().unwrap()
    }

    /// A job that is about to lose a peer.
    fn failing(&self, name: &str) -> u64 {
        self.env.touch(&format!("fail-{name}"));
        self.run(&format!("{RECOVERS}{LOST_PEER}exit 134"), &[name])
    }

    /// A job that has lost a peer, with nobody there to react.
    fn failed(&self, name: &str) -> u64 {
        let window = self.failing(name);
        assert_eq!(self.env.wait_status(window, "error")["error"], "grpc");
        window
    }

    /// The pids that the attempts of a job have noted, from their checkpoints.
    pub(super) fn children(&self, name: &str) -> Vec<u32> {
        let text = std::fs::read_to_string(self.env.path(&format!("children-{name}")));
        text.unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// The youngest attempt of a lineage.
    pub(super) fn leaf(&self, window: u64) -> Value {
        let mut job = self.env.job("alice", window);
        while let Some(child) = job["extra_msgs"]["child"].as_u64() {
            job = self.env.job("alice", child);
        }
        job
    }

    /// Lets the back-off of a lineage be over, if it is in one.
    fn much_later(&self, window: u64) {
        let leaf = self.leaf(window);
        let recovery = &leaf["extra_msgs"]["recovery"];
        let waits = leaf["status"] == "error" && recovery["stopped"].is_null();
        let aged = |at: &Value| at.as_str().is_some_and(|at| at.starts_with("2001"));
        if !waits || !recovery["last_action_at"].is_string() || aged(&recovery["last_action_at"]) {
            return;
        }
        self.env.a_year_ago("alice", leaf["windows_id"].as_u64().unwrap());
    }
}

/// The last line of a job's output that tells its loss.
fn last_loss(job: &Value) -> String {
    let log = Path::new(job["log_dir"].as_str().unwrap()).join("output.log");
    let text = std::fs::read_to_string(log).unwrap();
    let line = text.lines().rev().find(|line| line.contains("loss")).unwrap();
    line.split("loss").nth(1).unwrap().to_owned()
}

#[test]
fn a_lost_peer_is_answered_once_and_the_run_ends_as_if_nothing_had_happened() {
    let lab = Lab::new();
    let train = "exec \"$TPU_BIN\" demo-train --workdir=\"$TPU_LOG_DIR\" \"$@\"";
    let common = ["--config.steps=80", "--config.checkpoint_every=10"];
    let straight = lab.run(train, &common);
    let monitor = lab.env.daemon(&[]);
    let broken = lab.run(train, &[common[0], common[1], "--config.grpc_at=35"]);
    let child = broken + 1;
    let end = wait_for("the end of the child", || {
        let job = lab.env.jobs("alice").into_iter().find(|job| job["windows_id"] == child)?;
        (job["status"] == "finished").then_some(job)
    });
    let parent = lab.env.job("alice", broken);
    assert_eq!((&parent["status"], &parent["error"]), (&"resumed".into(), &"grpc".into()));
    assert_eq!(parent["extra_msgs"]["recovery"]["infra"], 1);
    assert_eq!(end["extra_msgs"]["recovery"]["infra"], 1, "counted in the claim, and handed on");
    assert_eq!(end["extra_msgs"]["intent"], Value::Null);
    assert_eq!(last_loss(&end), last_loss(&lab.env.wait_status(straight, "finished")));
    lab.env.turn();
    assert_eq!(lab.env.jobs("alice").len(), 3, "once, and what has finished is left alone");
    drop(lab.env.tpu("-Ml").exits(0).says(&["resume", "(daemon)"]));
    drop(monitor);
}

#[test]
fn a_monitor_that_is_killed_at_any_step_of_a_resume_is_succeeded_and_the_child_starts_once() {
    std::thread::scope(|scope| {
        for point in [
            "resume-leased",
            "resume-stopped",
            "launch-claimed",
            "launch-written",
            "launch-opened",
            "launch-confirmed",
        ] {
            scope.spawn(move || killed_at(point));
        }
    });
}

fn killed_at(point: &str) {
    let lab = Lab::new();
    let parent = lab.failed("a");
    let points = format!("{point}=pause");
    let monitor = lab.env.start_tpu("daemon run", &[("FAILPOINTS", &points)]);
    wait_until(point, || {
        let leaf = lab.leaf(parent);
        let window = leaf["windows_id"].as_u64().unwrap();
        let written = lab.env.state_of("alice", window).join("launcher.sh").is_file();
        match point {
            "resume-leased" | "resume-stopped" => leaf["extra_msgs"]["lease"].is_object(),
            "launch-claimed" => window != parent,
            "launch-written" => window != parent && written,
            _ => window != parent && !lab.children("a").is_empty(),
        }
    });
    monitor.kill();
    let begun = lab.children("a").len();
    let second = lab.env.daemon(&[]);
    wait_until(&format!("the child after {point}"), || !lab.children("a").is_empty());
    lab.env.turn();
    let leaf = lab.leaf(parent);
    let live = |job: &Value| matches!(job["status"].as_str(), Some("starting" | "running"));
    assert!(live(&leaf), "{point}: {leaf:#}");
    assert_eq!(lab.env.jobs("alice").iter().filter(|job| live(job)).count(), 1, "{point}");
    assert_eq!(leaf["extra_msgs"]["recovery"]["infra"], 1, "{point}: one failure counts once");
    if point == "launch-opened" || point == "launch-confirmed" {
        assert_eq!((begun, leaf["windows_id"].as_u64()), (1, Some(parent + 1)), "{point}");
    }
    lab.env.touch("go");
    let end = leaf["windows_id"].as_u64().unwrap();
    lab.env.wait_status(end, "finished");
    assert_eq!(lab.children("a").len(), 1, "{point}: it ran more than once");
    assert_eq!(lab.leaf(parent)["windows_id"], end, "{point}");
    drop(second);
}

#[test]
fn a_monitor_a_resume_and_a_kill_at_the_same_time_leave_one_child_or_none() {
    // Twenty races; `TPU_SLOW_TESTS=1` asks for the whole promise, a hundred of them.
    let labs = if Env::read().non_empty("TPU_SLOW_TESTS").is_some() { 5 } else { 1 };
    for _ in 0..labs {
        race();
    }
}

/// Races of one lab: their windows are open at the same time.
fn race() {
    const ROUNDS: usize = 20;
    let lab = Lab::new();
    let windows: Vec<(String, u64)> = (0..ROUNDS)
        .map(|round| {
            let name = round.to_string();
            let window = lab.run(&format!("{RECOVERS}{LOST_PEER}exit 134"), &[&name]);
            (name, window)
        })
        .collect();
    let monitor = lab.env.daemon(&[]);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (name, _) in &windows {
                    let alive: Vec<u32> =
                        lab.children(name).into_iter().filter(|pid| runs(*pid)).collect();
                    assert!(alive.len() <= 1, "two live attempts of {name}: {alive:?}");
                }
                SystemClock::new().sleep(std::time::Duration::from_millis(5));
            }
        });
        for (name, window) in &windows {
            lab.env.touch(&format!("fail-{name}"));
            let resume = format!("resume w={window}");
            let kill = format!("kill w={window} -y");
            drop(lab.env.wait_exit(*window));
            let (resumed, killed) =
                (lab.env.start_tpu(&resume, &[]), lab.env.start_tpu(&kill, &[]));
            let (resumed, killed) = (resumed.wait(), killed.wait());
            assert!([0, 4].contains(&resumed) && [0, 4].contains(&killed), "{resumed} {killed}");
            let root = lab.env.job("alice", *window);
            if killed == 0 {
                let is_cancelled = root["extra_msgs"]["recovery"]["killed"] == true;
                assert!(root["status"] == "error" && is_cancelled, "{name}: {root:#}");
                assert!(root["extra_msgs"]["child"].is_null(), "{name}: {root:#}");
                assert_eq!(resumed, 4, "{name}");
            } else {
                // Refused, because the child was there first: it lives.
                let child = root["extra_msgs"]["child"].as_u64().unwrap();
                wait_until("the child to run", || lab.children(name).len() == 1);
                assert_eq!(lab.env.job("alice", child)["status"], "running", "{name}");
            }
        }
        over.store(true, Ordering::Relaxed);
        watcher.join().unwrap();
    });
    lab.env.turn();
    for (name, window) in &windows {
        let leaf = lab.leaf(*window);
        let begun = usize::from(leaf["status"] == "running");
        assert_eq!(lab.children(name).len(), begun, "{name}: {leaf:#}");
        assert!(leaf["status"] == "running" || leaf["status"] == "error", "{name}: {leaf:#}");
    }
    drop(monitor);
}

fn runs(pid: u32) -> bool {
    Process::read(pid).is_some_and(|process| !process.zombie)
}

#[test]
fn what_dies_as_soon_as_it_is_started_is_started_three_times_and_check_says_so() {
    let lab = Lab::new();
    let script = format!("echo w >\"$TPU_LOG_DIR/checkpoint_1\"; {LOST_PEER}exit 134");
    drop(lab.env.tpu("set-settings patience 0 alice").exits(0));
    let monitor = lab.env.daemon(&[]);
    lab.run(&script, &["x"]);
    let stopped = wait_for("the end of the lineage", || {
        lab.much_later(1);
        let leaf = lab.leaf(1);
        leaf["extra_msgs"]["recovery"]["stopped"].as_str().map(str::to_owned)
    });
    assert!(stopped.contains("3 attempts in a row died within 60 s"), "{stopped}");
    assert_eq!(lab.env.jobs("alice").len(), 4);
    lab.much_later(1);
    lab.env.turn();
    assert_eq!(lab.env.jobs("alice").len(), 4, "it stays stopped");
    drop(lab.env.tpu("check alice").exits(0).says(&[&stopped, "tpu resume w=4 alice"]));
    // A person begins anew.
    drop(lab.env.tpu("resume w=4 alice").exits(0));
    wait_until("another row of three", || {
        lab.much_later(1);
        lab.leaf(1)["windows_id"].as_u64() > Some(5)
    });
    drop(monitor);
}

#[test]
fn a_failure_of_the_program_is_left_alone() {
    let lab = Lab::new();
    let script = "echo w >\"$TPU_LOG_DIR/checkpoint_1\"; echo 'Traceback (most recent call last):'; \
        echo '  File \"a.py\", line 1, in <module>'; echo 'ValueError: bad shape'; exit 1";
    let monitor = lab.env.daemon(&[]);
    let window = lab.run(script, &["x"]);
    drop(lab.env.tpu(&format!("set-rule {window} python-error:resume,oom:resume")).exits(0));
    assert_eq!(lab.env.wait_status(window, "error")["error"], "python-error");
    lab.env.turn();
    assert_eq!(lab.env.jobs("alice").len(), 1);
    let plan = lab.env.tpu("daemon plan").exits(0);
    drop(plan.says(&["pass: python-error is a failure of the program"]));
    drop(monitor);
}

#[test]
fn what_cannot_be_looked_at_is_left_alone() {
    let lab = Lab::new();
    let window = lab.failed("a");
    let running = lab.run("sleep 1000", &["x"]);
    lab.env.wait_status(running, "running");
    let before = lab.env.data();
    // This daemon finds no tmux.
    let blind = lab.env.daemon(&[("PATH", lab.env.root())]);
    lab.env.acknowledge();
    assert_eq!(lab.env.data(), before, "nothing follows from what is unknown");
    blind.kill();
    let seeing = lab.env.daemon(&[]);
    wait_until("the resume", || lab.children("a").len() == 1);
    assert_eq!(lab.env.job("alice", window)["status"], "resumed");
    drop(seeing);
}

#[test]
fn a_kill_that_was_cut_short_is_completed() {
    let lab = Lab::new();
    let window = lab.run("echo $$ >\"$HOME/pid\"; exec sleep 1000", &["x"]);
    let job = lab.env.wait_pid("pid");
    let kill = format!("kill w={window} -y");
    let running = lab.env.start_tpu(&kill, &[("FAILPOINTS", "kill-intended=pause")]);
    wait_until("the intent", || {
        lab.env.job("alice", window)["extra_msgs"]["intent"]["action"] == "killing"
    });
    let monitor = lab.env.daemon(&[]);
    lab.env.turn();
    assert!(lives(&job), "whoever began it is alive: it is his");
    running.kill();
    drop(lab.env.tpu("ack").exits(0));
    lab.env.wait_status(window, "killed");
    wait_gone(&job);
    assert!(!lab.env.has_window("alice", window));
    drop(monitor);
}

#[test]
fn there_is_one_monitor_and_it_ends_when_it_is_asked_to() {
    let lab = Lab::new();
    drop(lab.env.tpu("daemon status").exits(1));
    drop(lab.env.tpu("daemon stop").exits(4).says(&["does not run", "tpu daemon start"]));
    drop(lab.env.tpu("ack").exits(0).says(&["the daemon does not run", "tpu daemon start"]));
    assert_eq!(lab.env.data()["ack_MONITOR"], true);

    let started = lab.env.tpu("daemon start --json").exits(0).json();
    let pid = started["pid"].as_u64().unwrap();
    let process = Process::read(u32::try_from(pid).unwrap()).unwrap();
    wait_until("the ack that waited", || lab.env.data()["ack_MONITOR"] == false);
    assert_eq!(lab.env.windows("tpu-daemon"), [0, 1]);
    let named = format!("process {pid} on ");
    drop(lab.env.tpu("daemon run").exits(4).says(&["the daemon runs already", &named]));
    drop(lab.env.tpu("daemon start").exits(0).says(&["daemon runs already", &pid.to_string()]));
    drop(lab.env.tpu("daemon status").exits(0).says(&["daemon runs", &pid.to_string()]));
    let seen = lab.env.tpu("check alice --json").exits(0).json();
    assert_eq!(seen["monitor"]["running"], true);

    // With work at hand.
    lab.failing("a");
    drop(lab.env.tpu("daemon stop").exits(0));
    assert!(!lives(&process));
    drop(lab.env.tpu("daemon status").exits(1));
    let jobs = lab.env.jobs("alice");
    assert!(jobs.iter().all(|job| job["extra_msgs"]["intent"].is_null()), "{jobs:#?}");
    let again = lab.env.daemon(&[]);
    wait_until("the resume", || lab.children("a").len() == 1);
    assert_eq!(lab.env.jobs("alice").len(), 2);
    drop(again);
}

#[test]
fn the_plan_says_what_then_happens() {
    let lab = Lab::new();
    let resumed = lab.failed("a");
    let passed = lab.failed("b");
    drop(lab.env.tpu(&format!("set-rule {passed} pass")).exits(0));
    let observed = lab.failed("c");
    lab.env.change(|data| {
        let user = data.user_mut(&UserName::from("alice")).unwrap();
        user.job_mut(JobNumber(u32::try_from(observed).unwrap())).unwrap().monitor = false;
    });
    let running = lab.run("sleep 1000", &["x"]);
    lab.env.wait_status(running, "running");

    let before = lab.env.data_bytes();
    let plan = lab.env.tpu("daemon plan --json").exits(0).json();
    let text = lab.env.tpu("daemon plan").exits(0);
    assert_eq!(lab.env.data_bytes(), before, "a plan changes nothing");
    assert_eq!(plan["monitor"]["running"], false);
    let planned = |window: u64| {
        let jobs = plan["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["window"] == window).unwrap().clone()
    };
    let next = &planned(resumed)["next"];
    assert_eq!(
        (&next["action"], &next["in_s"], &next["budget_left"]),
        (&"resume".into(), &Value::Null, &20.into()),
        "nobody is there to do it"
    );
    assert_eq!(planned(passed)["next"]["action"], "pass");
    assert_eq!(planned(observed)["next"]["action"], "pass");
    assert_eq!(planned(running)["next"], Value::Null);
    drop(text.says(&[
        "resume (20 left): nothing by itself, since the daemon does not run (tpu daemon start); the rule for \
         grpc is resume",
        "nothing is wrong",
    ]));
    let check = lab.env.tpu("check alice").exits(0);
    drop(check.says(&["the daemon does not run", "the rule for grpc is resume"]));

    let monitor = lab.env.daemon(&[]);
    wait_until("the resume", || lab.children("a").len() == 1);
    lab.env.turn();
    assert_eq!(lab.env.jobs("alice").len(), 5);
    for (window, status) in
        [(resumed, "resumed"), (passed, "error"), (observed, "error"), (running, "running")]
    {
        assert_eq!(lab.env.job("alice", window)["status"], status);
    }
    let child = lab.env.job("alice", resumed)["extra_msgs"]["child"].as_u64().unwrap();
    assert_eq!(lab.env.job("alice", child)["extra_msgs"]["recovery"]["infra"], 1);
    drop(monitor);
}

#[test]
fn monitors_log_can_be_read_and_begun_anew() {
    let lab = Lab::new();
    let monitor = lab.env.daemon(&[]);
    lab.failing("a");
    wait_until("the resume", || lab.children("a").len() == 1);
    drop(lab.env.tpu("-Ml").exits(0).says(&["resume", "(daemon)"]));
    let raw = lab.env.tpu("-Ml cn --json").exits(0).json();
    assert!(raw["events"].as_array().unwrap().iter().all(|event| event["actor"] == "daemon"));
    drop(lab.env.tpu("-Ml nowhere").exits(2).says(&["no time zone 'nowhere'"]));
    drop(lab.env.tpu("-Mc").exits(0));
    drop(lab.env.tpu("-Ml").exits(0).says(&["nothing yet"]));
    drop(lab.env.tpu("history").exits(0).says(&["resume"]));
    drop(monitor);
}

#[test]
fn a_monitor_whose_lock_file_was_removed_stays_the_only_one() {
    let lab = Lab::new();
    drop(lab.env.tpu("-a k config.k").exits(0));
    let _monitor = lab.env.daemon(&[]);
    let mut removed = 0;
    for entry in std::fs::read_dir(lab.env.path("tpu-state")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "lock") {
            std::fs::remove_file(path).unwrap();
            removed += 1;
        }
    }
    assert_eq!(removed, 1);
    drop(lab.env.tpu("daemon run").exits(4).says(&["the daemon runs already: process "]));
}

#[test]
fn a_lock_that_what_a_killed_daemon_was_starting_still_holds_is_waited_for() {
    let lab = Lab::new();
    drop(lab.env.daemon(&[]));
    let mut files = std::fs::read_dir(lab.env.path("tpu-state")).unwrap();
    let is_lock = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("daemon-") && path.extension().is_some_and(|of| of == "lock")
    };
    let lock = files.find_map(|file| Some(file.unwrap().path()).filter(|path| is_lock(path)));
    let file = std::fs::File::options().write(true).open(lock.unwrap()).unwrap();
    file.set_len(0).unwrap();
    let mut held = fd_lock::RwLock::new(file);
    let guard = held.write().unwrap();
    let next = lab.env.start_tpu("daemon run", &[]);
    wait_until("an attempt, which leaves its mark", || guard.metadata().unwrap().len() > 0);
    drop(guard);
    wait_until("the next daemon's first turn", || lab.env.tpu("daemon status").code == 0);
    drop(next);
}

#[test]
fn of_six_who_start_monitor_at_once_one_opens_a_window() {
    let lab = Lab::new();
    let outputs: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> = (0..6).map(|_| scope.spawn(|| lab.env.tpu("daemon start"))).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let codes: Vec<i32> = outputs.iter().map(|output| output.code).collect();
    assert_eq!(codes, [0; 6]);
    let ran = outputs.iter().filter(|output| output.stdout.contains("runs already"));
    assert_eq!(ran.count(), 5);
    assert_eq!(lab.env.windows("tpu-daemon").len(), 2, "its own and the home window");
    drop(lab.env.tpu("daemon stop").exits(0));
}

/// Prints steps up to a number that a file names, from the one that follows its newest checkpoint, and waits there.
const COUNTS: &str = "echo $$ >\"$TPU_DATA.pid\"; n=0; \
     case \"$*\" in *--config.load_from=*) n=20 ;; esac; \
     while :; do upto=$(cat \"$TPU_DATA.upto\"); \
     while [ $n -lt $upto ]; do n=$((n+1)); echo \"step $n/300 loss=0.5\"; \
     if [ $n = 20 ]; then mkdir -p \"$TPU_LOG_DIR/checkpoint_20\"; echo x >\"$TPU_LOG_DIR/checkpoint_20/data\"; fi; \
     done; read -r -t 0.05 <> <(:); done";

#[test]
fn what_is_done_again_is_no_progress() {
    let lab = Lab::new();
    let upto =
        |n: u32| crate::common::tmux::write_file(&lab.env.path("data.json.upto"), &n.to_string());
    let progress = |job: u64| {
        let of = |event: &&tpu_system::store::Event| {
            event.kind == "progress" && event.job.is_some_and(|window| u64::from(window.0) == job)
        };
        lab.env.journal().iter().filter(of).count()
    };
    upto(40);
    let line = [
        "run",
        "local",
        "alice",
        "rule=killed-by-signal:resume",
        "-q",
        "--",
        "bash",
        "-c",
        COUNTS,
        "job",
    ];
    drop(lab.env.tpu_words(&line).exits(0));
    let shows = |window: u64, step: &str| {
        wait_until("its step", || {
            lab.env.tpu(&format!("check-simp {window} alice")).stdout.contains(step)
        });
    };
    shows(1, "step 40/300");
    upto(25);
    let monitor = lab.env.daemon(&[]);
    let pid = lab.env.wait_pid("data.json.pid");
    assert!(procs::signal(&pid, Signal::Kill).unwrap());
    lab.env.wait_status(1, "resumed");
    lab.env.wait_status(2, "running");
    shows(2, "step 25/300");
    lab.env.turn();
    assert_eq!(progress(2), 0, "{:#?}", lab.env.journal());
    assert_eq!(lab.env.job("alice", 2)["extra_msgs"]["recovery"]["infra"], 1);
    upto(60);
    shows(2, "step 60/300");
    lab.env.turn();
    wait_until("its progress is noted", || progress(2) == 1);
    drop(monitor);
}
