//! Real hosts as the workers of a target of Google's API: their addresses are what the API says, and what
//! it says of the target decides what a silent worker means.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use tpu_system::sys::procs::{self, Process, Signal};

use crate::common::env::{TestEnv, lives};
use crate::common::server::Server;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const TARGET: &str = "lab-tpuvm-v2-16";

struct Lab {
    env: TestEnv,
    hosts: Hosts,
    /// What the API says of the target.
    node: Arc<Mutex<Value>>,
    _server: Server,
}

impl Lab {
    fn new() -> Option<Self> {
        if !is_installed() {
            return None;
        }
        let hosts = Hosts::new(2);
        let mut env = TestEnv::new();
        let node = Arc::new(Mutex::new(json!({
            "name": format!("projects/lab/locations/us-central1-a/nodes/{TARGET}"),
            "state": "READY", "acceleratorType": "v2-16", "createTime": "2026-01-01T00:00:00Z",
        })));
        let said = Arc::clone(&node);
        let server = Server::new(move |asked| {
            let node = said.lock().unwrap();
            let is_nodes = asked.line.contains("/nodes");
            let is_one = asked.line.contains(&format!("/nodes/{TARGET}"));
            let body = match (is_one, is_nodes) {
                (true, _) => node.clone(),
                (false, true) => json!({ "nodes": [*node] }),
                (false, false) => json!({}),
            };
            Some((200, body.to_string()))
        });
        // The API names no ports: they are the user's own business.
        let mut config = String::new();
        for address in hosts.addresses() {
            let (ip, port) = address.split_once(':').unwrap();
            config += &format!("Host {ip}\n  Port {port}\n");
        }
        write_file(&env.path("ssh_config"), &config);
        let mut options = hosts.options();
        env.path("ssh_config").to_str().unwrap().clone_into(&mut options[1]);
        let settings = json!({
            "ssh_options": options, "ssh_key": hosts.path("client"), "stage_root": env.path("stages"),
        });
        write_file(&env.path("settings.json"), &settings.to_string());
        env.set("TPU_SETTINGS", env.path("settings.json"));
        env.set("TPU_USER", "alice");
        env.set("TPU_CLOUD", "google");
        env.set("TPU_CLOUD_AUTH", "none");
        env.set("TPU_PROJECT", "lab");
        env.set("TPU_CLOUD_ENDPOINT", server.url());
        drop(env.tpu(&format!("register {TARGET} --zone us-central1-a --type v2-16")).exits(0));
        Some(Self { env, hosts, node, _server: server })
    }

    /// The API says from now on that its workers are there; an empty one is not there yet, and one that is
    /// `inside` has no address for us.
    fn says(&self, addresses: &[&str]) {
        let endpoint = |address: &&str| match *address {
            "" => json!({ "port": 8470 }),
            "inside" => json!({ "ipAddress": "10.0.0.1", "accessConfig": { "externalIp": "" } }),
            ip => json!({ "ipAddress": "10.0.0.1", "accessConfig": { "externalIp": ip } }),
        };
        let endpoints: Vec<Value> = addresses.iter().map(endpoint).collect();
        self.node.lock().unwrap()["networkEndpoints"] = json!(endpoints);
    }

    /// Starts a job that stays on both workers, and waits until it is there.
    fn run(&self, window: u64) -> Vec<Process> {
        // It ends with the test, however that ends.
        let script = format!(
            "echo $$ >'{root}/pid-{window}-'$TPU_WORKER; while [ -d '{root}' ]; do sleep 0.4; done",
            root = self.env.root()
        );
        let words = ["run", TARGET, "alice", "-q", "--", "bash", "-c", &script];
        drop(self.env.tpu_words(&words).exits(0));
        (0..2).map(|worker| self.env.wait_pid(&format!("pid-{window}-{worker}"))).collect()
    }
}

#[test]
fn workers_are_where_the_api_says_each_at_its_index() {
    let Some(lab) = Lab::new() else { return };
    lab.says(&["127.0.0.11", "", "127.0.0.12"]);
    let command = "echo $TPU_WORKER $SSH_CONNECTION | cut -d ' ' -f 1,4";
    let asked = lab.env.tpu_words(&["ssh", TARGET, "all", "--command", command]).exits(6);
    let asked = asked.says(&["[worker 0] 0 127.0.0.11", "[worker 2] 2 127.0.0.12"]);
    drop(asked.says(&["worker 1", "its address is not known yet"]));
    lab.says(&["127.0.0.11", "127.0.0.12"]);
    let all = lab.run(1);
    drop(lab.env.tpu("kill 1 -y").exits(0));
    assert!(!all.iter().any(lives));
}

#[test]
fn a_worker_that_is_silent_is_gone_when_the_api_says_so() {
    let Some(mut lab) = Lab::new() else { return };
    lab.says(&["127.0.0.11", "127.0.0.12"]);
    let all = lab.run(1);
    lab.hosts.shut(1);
    drop(lab.env.tpu("kill 1 -y").exits(6).says(&["refused"]));
    assert!(!lives(&all[0]) && lives(&all[1]), "it may still run there");
    procs::signal(&all[1], Signal::Kill).unwrap();
    wait_until("the machine is off", || !lives(&all[1]));
    lab.node.lock().unwrap()["state"] = json!("PREEMPTED");
    drop(lab.env.tpu("kill 1 -y").exits(0));
    assert_eq!(lab.env.job("alice", 1)["status"], "killed");
}

#[test]
fn a_worker_whose_address_is_left_out_for_a_moment_is_not_gone() {
    let Some(mut lab) = Lab::new() else { return };
    lab.says(&["127.0.0.11", "127.0.0.12"]);
    let all = lab.run(1);
    lab.hosts.shut(1);
    lab.says(&["127.0.0.11", "inside"]);
    drop(lab.env.tpu("kill 1 -y").exits(6).says(&["worker 1", "refused"]));
    assert!(!lives(&all[0]) && lives(&all[1]));
    lab.hosts.begin(1);
    drop(lab.env.tpu("kill 1 -y").exits(0));
    assert!(!all.iter().any(lives));
}

#[test]
fn nothing_begins_on_a_worker_whose_address_is_not_known_yet() {
    let Some(lab) = Lab::new() else { return };
    lab.says(&["127.0.0.11", ""]);
    let words = ["run", TARGET, "alice", "-q", "--", "true"];
    let refused = lab.env.tpu_words(&words).exits(6);
    drop(refused.says(&[&format!("worker 1 of {TARGET} has no address yet"), "try again"]));
    assert!(lab.env.jobs("alice").is_empty(), "nothing was started");
    lab.says(&["127.0.0.11", "127.0.0.12"]);
    drop(lab.env.tpu_words(&words).exits(0));
    lab.env.wait_status(1, "finished");
}
