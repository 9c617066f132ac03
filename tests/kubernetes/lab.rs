//! A user of a cluster: a home with a target that is a namespace, and programs that do what a test tells them.

use std::ops::Deref;

use super::client::Cluster;
use crate::common::env::TestEnv;
use crate::common::tmux::write_file;

/// A user with a cluster.
pub(super) struct Lab {
    pub(super) env: TestEnv,
    pub(super) cluster: Cluster,
}

impl Deref for Lab {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.env
    }
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
        let (mut env, cluster) = (TestEnv::alice(), Cluster::with_nodes(nodes));
        env.set("KUBECONFIG", cluster.kubeconfig().as_os_str());
        Self { env, cluster }
    }

    /// Starts a script of the shell on `lab`; returns its window.
    #[track_caller]
    pub(super) fn run(&self, script: &str, options: &str) -> u64 {
        self.run_words(&["sh", "-c", script], options)
    }

    /// Starts a command on `lab`; returns its window.
    #[track_caller]
    pub(super) fn run_words(&self, command: &[&str], options: &str) -> u64 {
        self.launched(&self.starting("lab", options, command))
    }

    /// Starts a program of this name; returns its window.
    #[track_caller]
    pub(super) fn train(&self, name: &str, options: &str) -> u64 {
        self.run_words(&["sh", "-c", &self.program(), name], options)
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
}

/// Has the user's settings about Kubernetes say this.
pub(super) fn settings(lab: &Lab, text: &str) {
    let dir = lab.env.path("config/tpu");
    std::fs::create_dir_all(&dir).unwrap();
    write_file(&dir.join("kubernetes.json"), text);
}
