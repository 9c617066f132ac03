//! A cluster in this process, and whoever asks it.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use tpu_lab::kubernetes::KubernetesEmulator;

use crate::common::wait::wait_for;

/// A running cluster.
pub(crate) struct Cluster {
    emulator: Arc<KubernetesEmulator>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    agent: ureq::Agent,
    token: String,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) text: String,
}

impl Heard {
    /// As JSON; text that is none as text.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| json!(self.text))
    }
}

impl Cluster {
    /// With so many nodes.
    pub(crate) fn with_nodes(nodes: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let emulator = Arc::new(KubernetesEmulator::bind(0, nodes, Arc::clone(&stop)).unwrap());
        let serving = Arc::clone(&emulator);
        let thread = std::thread::spawn(move || serving.serve().unwrap());
        let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
        let config = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .timeout_global(Some(Duration::from_secs(60)))
            .build();
        let text = std::fs::read_to_string(emulator.kubeconfig()).unwrap();
        let config_file: Value = serde_json::from_str(&text).unwrap();
        let token = config_file["users"][0]["user"]["token"].as_str().unwrap().to_owned();
        let agent = config.new_agent();
        Self { emulator, stop, thread: Some(thread), agent, token }
    }

    /// The file for `kubectl`.
    pub(crate) fn kubeconfig(&self) -> &std::path::Path {
        self.emulator.kubeconfig()
    }

    /// The token of a user.
    pub(crate) fn token_of(&self, user: &str) -> String {
        let text = std::fs::read_to_string(self.emulator.kubeconfig()).unwrap();
        let config: Value = serde_json::from_str(&text).unwrap();
        let users = config["users"].as_array().unwrap().iter();
        let found = users.clone().find(|of| of["name"] == json!(user)).unwrap();
        found["user"]["token"].as_str().unwrap().to_owned()
    }

    /// Asks with any headers; the administrator's token unless they have an `Authorization` (empty for none).
    pub(crate) fn ask_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Heard {
        let url = format!("https://{}{path}", self.emulator.address().unwrap());
        let mut request = http::Request::builder().method(method).uri(url);
        let admin = format!("Bearer {}", self.token);
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization")) {
            request = request.header("Authorization", admin);
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let response = match body {
            Some(body) => self.agent.run(request.body(body.to_vec()).unwrap()),
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut response = response.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let of = response.headers().get("content-type").and_then(|of| of.to_str().ok());
        let content_type = of.unwrap_or_default().to_owned();
        let mut bytes = Vec::new();
        // What is broken off is as long as it is.
        let _read = response.body_mut().as_reader().read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Heard { status: response.status().as_u16(), content_type, text }
    }

    /// Asks for JSON with JSON.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Heard {
        let bytes = body.map(|body| body.to_string().into_bytes());
        self.ask_with(method, path, &[("Content-Type", "application/json")], bytes.as_deref())
    }

    /// An object that is there.
    pub(crate) fn get(&self, path: &str) -> Value {
        let heard = self.ask("GET", path, None);
        assert_eq!(heard.status, 200, "{path}: {}", heard.text);
        heard.json()
    }

    /// Makes an object in the namespace `lab`.
    pub(crate) fn make(&self, resource: &str, object: &Value) -> Value {
        let path = match resource {
            "jobs" => "/apis/batch/v1/namespaces/lab/jobs".to_owned(),
            core => format!("/api/v1/namespaces/lab/{core}"),
        };
        let heard = self.ask("POST", &path, Some(object));
        assert_eq!(heard.status, 201, "{}", heard.text);
        heard.json()
    }

    /// Makes a Job that runs a line of shell.
    pub(crate) fn run(&self, name: &str, script: &str) {
        self.make("jobs", &job(name, script));
    }

    /// The pods of a Job, the newest first.
    pub(crate) fn pods(&self, job: &str) -> Vec<Value> {
        let list = self.get(&format!("/api/v1/namespaces/lab/pods?labelSelector=job-name%3D{job}"));
        let mut pods = list["items"].as_array().unwrap().clone();
        let version = |pod: &Value| {
            pod["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned()
        };
        pods.sort_by_key(|pod| std::cmp::Reverse(version(pod)));
        pods
    }

    /// Waits until the pod of a Job is in a phase.
    #[track_caller]
    pub(crate) fn pod_in(&self, job: &str, phase: &str) -> Value {
        wait_for(&format!("a pod of {job} is {phase}"), || {
            self.pods(job).into_iter().find(|pod| pod["status"]["phase"] == json!(phase))
        })
    }

    /// Waits until a Job has a condition.
    #[track_caller]
    pub(crate) fn job_is(&self, name: &str, condition: &str) -> Value {
        wait_for(&format!("{name} is {condition}"), || {
            let job = self.get(&format!("/apis/batch/v1/namespaces/lab/jobs/{name}"));
            (job["status"]["conditions"][0]["type"] == json!(condition)).then_some(job)
        })
    }

    /// Lets something go wrong.
    pub(crate) fn fault(&self, at: &str, what: &Value) -> Heard {
        self.ask("POST", &format!("/_sim/{at}"), Some(what))
    }

    /// Ends it. What it kept is gone after that.
    pub(crate) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}

/// A Job that runs a line of shell.
pub(crate) fn job(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "example.org/train:1", "command": ["sh", "-c", script]}],
        }}},
    })
}
