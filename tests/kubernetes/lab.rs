//! A user of a cluster: a home with a target that is a namespace, and programs that do what a test tells them.

use serde_json::Value;

use super::client::Cluster;
use crate::common::env::{Running, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// Prints a step each tenth of a second, writes checkpoints, and notes each of its starts; what it says and does at
/// last is in a file. `@` stands for the directory of the test, and its first word is its name there.
const TRAIN: &str = "echo \"$*\" >>\"@/$0.starts\"; n=0; \
    until [ -e \"@/$0.end\" ]; do n=$((n+1)); echo \"step $n/1000 loss 0.5\"; \
    mkdir -p \"$TPU_LOG_DIR/checkpoints\"; echo $n >\"$TPU_LOG_DIR/checkpoints/step_$n\"; sleep 0.3; done; \
    . \"@/$0.end\"";

/// A user with a cluster.
pub(super) struct Lab {
    pub(super) env: TestEnv,
    pub(super) cluster: Cluster,
}

impl Lab {
    /// With two nodes of eight CPUs and two GPUs, and a target `lab` with an image and a flavor.
    pub(super) fn new() -> Self {
        Self::of(2)
    }

    /// The same with so many nodes.
    pub(super) fn of(nodes: usize) -> Self {
        let lab = Self::bare(nodes);
        lab.register();
        lab
    }

    /// Makes its target known.
    pub(super) fn register(&self) {
        let line = "register lab --kind kubernetes --context lab -i train:1 -r no-gpu";
        drop(self.tpu(line).exits(0));
    }

    /// The same without a target.
    pub(super) fn bare(nodes: usize) -> Self {
        let (mut env, cluster) = (TestEnv::new(), Cluster::with_nodes(nodes));
        env.set("TPU_USER", "alice");
        env.set("KUBECONFIG", cluster.kubeconfig().as_os_str());
        Self { env, cluster }
    }

    /// Runs `tpu` with words separated by blanks.
    #[must_use = "say how it should have ended: .exits(0)"]
    pub(super) fn tpu(&self, line: &str) -> CommandOutput {
        self.env.tpu(line)
    }

    /// Starts a script of the shell on `lab`; returns its window.
    #[track_caller]
    pub(super) fn run(&self, script: &str, options: &str) -> u64 {
        self.run_words(&["sh", "-c", script], options)
    }

    /// Starts a command on `lab`; returns its window.
    #[track_caller]
    pub(super) fn run_words(&self, command: &[&str], options: &str) -> u64 {
        let fixed = ["run", "lab", "alice", "-q", "--json"];
        let words = fixed.into_iter().chain(options.split_whitespace()).chain(["--"]);
        let words: Vec<&str> = words.chain(command.iter().copied()).collect();
        let output = self.env.output(&self.env.spawn(&words)).exits(0);
        output.json()["launched"]["window"].as_u64().unwrap()
    }

    /// Starts a program of this name; returns its window.
    #[track_caller]
    pub(super) fn train(&self, name: &str, options: &str) -> u64 {
        let program = TRAIN.replace('@', self.env.root());
        self.run_words(&["sh", "-c", &program, name], options)
    }

    /// What each start of a program was told, oldest first.
    pub(super) fn starts(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path(&format!("{name}.starts")));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Waits until a program has been started so often.
    #[track_caller]
    pub(super) fn wait_starts(&self, name: &str, count: usize) {
        let what = format!("{name} is started {count} times");
        wait_until(&what, || self.starts(name).len() >= count);
        assert_eq!(self.starts(name).len(), count, "{:?}", self.starts(name));
    }

    /// Lets a program say and do this at last.
    pub(super) fn end(&self, name: &str, script: &str) {
        let fresh = self.env.path(&format!("{name}.fresh"));
        write_file(&fresh, script);
        std::fs::rename(fresh, self.env.path(&format!("{name}.end"))).unwrap();
    }

    /// A job as it is shown.
    #[track_caller]
    pub(super) fn shown(&self, window: u64) -> Value {
        let all = self.tpu("check alice --json").exits(0).json();
        let jobs = all["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["window"] == window).unwrap_or_else(|| panic!("{all}")).clone()
    }

    /// Waits until a job is shown with a status.
    #[track_caller]
    pub(super) fn wait_shown(&self, window: u64, status: &str) -> Value {
        wait_for(&format!("{window} is {status}"), || {
            let shown = self.shown(window);
            (shown["status"] == status).then_some(shown)
        })
    }

    /// The name of the Job of a window in the cluster.
    #[track_caller]
    pub(super) fn name(&self, window: u64) -> String {
        let job = self.env.job("alice", window);
        let id = job["extra_msgs"]["engine"]["id"].as_str().unwrap().to_owned();
        id.split_once('@').map_or(id.clone(), |(_, name)| name.to_owned())
    }

    /// The pod of a window, in a phase.
    #[track_caller]
    pub(super) fn pod_in(&self, window: u64, phase: &str) -> String {
        let pod = self.cluster.pod_in(&self.name(window), phase);
        pod["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// The Jobs of the namespace, by their names.
    pub(super) fn jobs(&self) -> Vec<String> {
        let list = self.cluster.get("/apis/batch/v1/namespaces/lab/jobs");
        let jobs = list["items"].as_array().unwrap().iter();
        jobs.map(|job| job["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Lets something happen to a pod.
    #[track_caller]
    pub(super) fn hit(&self, pod: &str, fault: &str) {
        let heard = self.cluster.fault(&format!("pods/{pod}"), &serde_json::json!({"do": fault}));
        assert_eq!(heard.status, 200, "{}", heard.text);
    }

    /// What a job has printed, as it is kept.
    #[track_caller]
    pub(super) fn logs(&self, window: u64) -> String {
        self.tpu(&format!("logs {window}")).exits(0).stdout
    }

    /// What a job has printed so far; nothing where nothing is kept yet.
    pub(super) fn printed(&self, window: u64) -> String {
        self.tpu(&format!("logs {window}")).stdout
    }

    /// The daemon, until the value is dropped.
    pub(super) fn monitor(&self) -> Running {
        let running = self.env.start_tpu("daemon run", &[]);
        wait_until("the daemon runs", || self.tpu("daemon status").code == 0);
        running
    }
}

/// Has the user's settings about Kubernetes say this.
pub(super) fn settings(lab: &Lab, text: &str) {
    let dir = lab.env.path("config/tpu");
    std::fs::create_dir_all(&dir).unwrap();
    write_file(&dir.join("kubernetes.json"), text);
}
