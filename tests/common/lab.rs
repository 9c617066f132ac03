//! A lab of `alice`: programs that do what a test tells them, what is shown of their jobs, and the daemon. It is the same
//! whatever runs the jobs: windows, Slurm or Kubernetes.

use std::path::PathBuf;

use serde_json::Value;

use tpu_system::sys::proc::Spawn;

use super::env::{Running, TestEnv};
use super::tmux::write_file;
use super::wait::{wait_for, wait_until};

/// Prints steps and writes a checkpoint at each, and notes each of its starts; what it says and
/// does at last is in a file: its last lines, then `exit N`. `@` stands for the directory of the test, and its first
/// word is its name there.
const TRAIN: &str = "echo \"$*\" >>\"@/$0.starts\"; n=0; \
    until [ -e \"@/$0.end\" ]; do n=$((n+1)); echo \"step $n/1000 loss 0.5\"; \
    mkdir -p \"$TPU_LOG_DIR/checkpoints\"; echo $n >\"$TPU_LOG_DIR/checkpoints/step_$n\"; sleep 0.3; done; \
    . \"@/$0.end\"";

impl TestEnv {
    /// A home where every command is one of `alice`.
    pub(crate) fn alice() -> Self {
        let mut env = Self::new();
        env.set("TPU_USER", "alice");
        env
    }

    // -- jobs

    /// A program that trains until it is told to end.
    pub(crate) fn program(&self) -> String {
        TRAIN.replace('@', self.root())
    }

    /// The start of a command on a target, not yet running.
    pub(crate) fn starting(&self, target: &str, options: &str, command: &[&str]) -> Spawn {
        let fixed = ["run", target, "alice", "-q", "--json"];
        let words = fixed.into_iter().chain(options.split_whitespace()).chain(["--"]);
        let words: Vec<&str> = words.chain(command.iter().copied()).collect();
        self.spawn(&words)
    }

    /// Runs a command that starts something; returns the window of it.
    #[track_caller]
    pub(crate) fn launched(&self, spawn: &Spawn) -> u64 {
        let output = self.output(spawn).exits(0);
        output.json()["launched"]["window"].as_u64().unwrap()
    }

    /// Runs a job file.
    #[track_caller]
    pub(crate) fn run_file(&self, text: &str) {
        let file = self.path("job.yaml");
        write_file(&file, text);
        drop(self.tpu_words(&["run", file.to_str().unwrap(), "-q"]).exits(0));
    }

    /// What each start of a program was told, oldest first.
    pub(crate) fn starts(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(&format!("{name}.starts")));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until a program has been started so often.
    #[track_caller]
    pub(crate) fn wait_starts(&self, name: &str, count: usize) {
        let what = format!("{name} is started {count} times");
        wait_until(&what, || self.starts(name).len() >= count);
        assert_eq!(self.starts(name).len(), count, "{:?}", self.starts(name));
    }

    /// Lets a program say and do this at last.
    pub(crate) fn end(&self, name: &str, script: &str) {
        let fresh = self.path(&format!("{name}.fresh"));
        write_file(&fresh, script);
        std::fs::rename(fresh, self.path(&format!("{name}.end"))).unwrap();
    }

    /// Lets it go on once more.
    pub(crate) fn let_go_on(&self, name: &str) {
        std::fs::remove_file(self.path(&format!("{name}.end"))).unwrap();
    }

    // -- what is said of them

    /// One job as `check` shows it.
    #[track_caller]
    pub(crate) fn shown(&self, window: u64) -> Value {
        let document = self.tpu("check alice --json").exits(0).json();
        let jobs = document["jobs"].as_array().unwrap();
        let found = jobs.iter().find(|job| job["window"] == window).cloned();
        found.unwrap_or_else(|| panic!("no job {window}: {document:#}"))
    }

    /// Waits until `check` shows a job so.
    #[track_caller]
    pub(crate) fn wait_shown(&self, window: u64, status: &str) -> Value {
        wait_for(&format!("alice/{window} is {status}"), || {
            Some(self.shown(window)).filter(|shown| shown["status"] == status)
        })
    }

    /// The directory of a job's logs.
    #[track_caller]
    pub(crate) fn log_dir(&self, window: u64) -> PathBuf {
        self.job("alice", window)["log_dir"].as_str().unwrap().into()
    }

    /// What a job has printed, as it is kept.
    #[track_caller]
    pub(crate) fn log(&self, window: u64) -> String {
        std::fs::read_to_string(self.log_dir(window).join("output.log")).unwrap_or_default()
    }

    /// The same without what a terminal adds to the ends of lines.
    #[track_caller]
    pub(crate) fn plain_log(&self, window: u64) -> String {
        self.log(window).replace('\r', "")
    }

    // -- the daemon

    /// A daemon that has turned at least once, with additional variables. It is killed when dropped.
    pub(crate) fn daemon(&self, vars: &[(&str, &str)]) -> Running {
        let running = self.start_tpu("daemon run", vars);
        wait_until("the daemon's first turn", || self.tpu("daemon status").code == 0);
        running
    }

    /// Waits until the daemon has begun another turn.
    pub(crate) fn acknowledge(&self) {
        drop(self.tpu("ack").exits(0));
        wait_until("a turn after ack", || self.data()["ack_MONITOR"] == false);
    }

    /// Waits until the daemon has turned once more, from beginning to end.
    pub(crate) fn turn(&self) {
        // The flag falls at the beginning of a turn; the next one begins after its end.
        self.acknowledge();
        self.acknowledge();
    }
}
