//! The original's monitor beside the daemon: they never act on the same jobs.
//!
//! One test, since the processes of a machine are seen by everybody on it. All others insist by a variable.

use std::io::Write as _;

use jiff::tz::TimeZone;
use serde_json::json;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc::{self, Spawn};

use crate::common::env::{Running, TPU, TestEnv};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// Stays until somebody ends it.
const MONITOR: &str = "import signal\nsignal.pause()\n";

/// Leaves a checkpoint and loses a peer; from the checkpoint it stays.
const RECOVERS: &str = "case \"$*\" in *load_from=*) exec sleep 1000;; esac; \
    echo w >\"$TPU_LOG_DIR/checkpoint_10\"; \
    echo 'jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: Socket closed; grpc_status:14'; exit 134";

/// What another program of that name would be.
const READS: [&str; 2] = ["tail", "-f MONITOR.py"];

struct Lab {
    env: TestEnv,
}

impl Lab {
    fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        env.unset("TPU_BESIDE_ORIGINAL");
        write_file(&env.path("MONITOR.py"), MONITOR);
        let run = format!("exec {TPU} daemon run $HOW >\"$HOME/$SAYS\"\n");
        write_file(&env.path("run.sh"), &run);
        Self { env }
    }

    /// A job that fails, whose rule brings it back.
    fn fail(&self) -> u64 {
        let words = ["run", "local", "rule=resume", "--json", "--", "bash", "-c", RECOVERS, "job"];
        let started = self.env.tpu_words(&words).exits(0).json();
        let window = started["launched"]["window"].as_u64().unwrap();
        assert_eq!(self.env.wait_status(window, "error")["error"], "grpc");
        window
    }

    /// A daemon that says in this file what it does.
    fn daemon(&self, how: &str, says: &str) -> Running {
        let running = self.env.start_program("bash", "run.sh", &[("HOW", how), ("SAYS", says)]);
        wait_until("the daemon's first turn", || self.env.tpu("daemon status").code == 0);
        running
    }

    fn original(&self) -> Running {
        self.env.start_program("python3", "MONITOR.py", &[])
    }

    fn wait_said(&self, says: &str, part: &str) {
        let said = || std::fs::read_to_string(self.env.path(says)).unwrap_or_default();
        wait_until(&format!("{part:?} in {:?}", said()), || said().contains(part));
    }

    /// How often the journal says this.
    fn noted(&self, part: &str) -> usize {
        self.env.journal().iter().filter(|event| event.text.contains(part)).count()
    }

    /// Writes the time of the newest entry of the original's log.
    fn logged(&self, seconds_ago: i64) {
        let at = SystemClock::new().now().plus_seconds(-seconds_ago);
        let mut data = self.env.data();
        data["MONITOR_config"] = json!({ "checking_freq": 600 });
        let time = at.display_in(&TimeZone::UTC);
        data["MONITOR_logs"] = json!([{ "time": time, "msg": "Loop 1 finished" }]);
        self.env.write_data(&data);
    }
}

#[test]
fn the_daemon_does_not_act_beside_the_originals_monitor_unless_somebody_insists() {
    if proc::run(&Spawn::new("python3").args(["--version"])).is_err() {
        writeln!(std::io::stderr(), "skipped: there is no python3").unwrap();
        return;
    }
    let lab = Lab::new();
    let env = &lab.env;
    // Its log in the data file: it may run on another machine.
    lab.logged(30);
    let start = "daemon start --dry-run";
    drop(env.tpu(start).exits(4).says(&["wrote to MONITOR_logs", "--beside-original"]));
    drop(env.tpu("daemon start --beside-original --dry-run").exits(0));
    lab.logged(1_300);
    drop(env.tpu(start).exits(0));

    // Somebody who reads the script is not the monitor.
    let reader = env.start_program(READS[0], READS[1], &[]);
    drop(env.tpu(start).exits(0));
    reader.kill();

    // Its process: nobody begins to act, and who only watches says what he would do.
    let first = lab.fail();
    let monitor = lab.original();
    wait_until("it to be seen", || env.tpu(start).code == 4);
    let refused = ["the original's monitor runs: MONITOR.py (process", "kill ", "--watch-only"];
    for command in ["daemon start", "daemon run", "daemon run --dry-run"] {
        drop(env.tpu(command).exits(4).says(&refused));
    }
    let before = env.data_bytes();
    let watcher = lab.daemon("--watch-only", "watched");
    lab.wait_said("watched", &format!("alice/{first}: would resume after grpc: the rule for grpc"));
    drop(env.tpu("daemon status").exits(0).says(&["only watches, since it was started with"]));
    watcher.kill();
    assert_eq!(env.data_bytes(), before, "who only watches changes nothing");
    monitor.kill();

    // Once it is gone, the daemon acts; while it is there again, it only watches.
    let daemon = lab.daemon("", "said");
    wait_until("the first to come back", || env.jobs("alice").len() == 2);
    let monitor = lab.original();
    wait_until("the daemon to see it", || {
        env.tpu("daemon status").stdout.contains("only watches, since the original's monitor runs")
    });
    let status = env.tpu("daemon status --json").exits(0).json();
    assert!(status["watches"].as_str().unwrap().contains("MONITOR.py (process"), "{status}");
    let second = lab.fail();
    lab.wait_said("said", &format!("alice/{second}: would resume after grpc"));
    assert_eq!(env.jobs("alice").len(), 3, "nobody has begun anything");
    let plan = env.tpu("daemon plan").exits(0);
    drop(plan.says(&["the daemon only watches", "else it would resume"]));
    assert_eq!(lab.noted("the daemon only watches, since the original's monitor runs"), 1);
    monitor.kill();
    wait_until("the second to come back", || env.jobs("alice").len() == 4);
    assert_eq!(lab.noted("the daemon acts again"), 1);
    drop(daemon);
}
