//! `*-cluster.yaml` becomes a pool, `*-queue.yaml` a list of jobs with what each state means, and `cms cluster` works on
//! the pools.

use serde_json::{Value, json};

use super::{becomes, host, lab, with};

const CLUSTER: &str = "j1:\n  id: j1\n  name: juliet1\n  ip:\n  user: me\n  status: active\n  job_counter: 3\n  \
    max_jobs_allowed: 2\n  cores: 1\n  threads: 1\n  gpu: \"0,1\"\n  pyenv: \"\"\n  probe_status:\n  probe_time:\n  \
    ping_status:\n  ping_time:\nj2:\n  id: j2\n  name: juliet2\n  ip: 10.0.0.2\n  status: inactive\n";

#[test]
fn a_cluster_is_a_pool() {
    let env = with("lab-cluster.yaml", CLUSTER);
    let said = env.tpu("import cloudmesh lab-cluster.yaml --no-probe --json").exits(0).json();
    assert_eq!(said["files"][0]["is"], "the cluster lab");
    let pools = env.tpu("pools --json").exits(0).json();
    assert_eq!(pools["pools"], json!([{ "name": "lab", "open": 1, "hosts": ["j1", "j2"] }]));
    let (j1, j2) = (host(&env, "j1"), host(&env, "j2"));
    assert_eq!((&j1["addresses"], &j1["capacity"]["gpus"]), (&json!(["juliet1"]), &json!(2)));
    assert_eq!(j1["capacity"]["cpus"], json!(null), "`cores: 1` is what the file begins with");
    assert_eq!((&j2["addresses"], j2["drained"].is_object()), (&json!(["10.0.0.2"]), true));
    let shown = env.tpu("hosts show j2").exits(0).stdout;
    assert!(shown.contains("Cloudmesh: inactive"), "{shown}");
}

/// The states of a queue, and what each is here.
pub(super) const STATES: [(&str, &str); 14] = [
    ("ready", "held"),
    ("undefined", "held, without a target"),
    ("end", "finished"),
    ("done", "finished"),
    ("kill", "killed"),
    ("killed", "killed"),
    ("fail_start", "error: launch"),
    ("crash", "error: lost"),
    ("failed", "error: unknown"),
    ("timeout", "error: timeout"),
    ("submitted", "left alone"),
    ("run", "left alone"),
    ("start", "left alone"),
    ("epoch 7", "left alone"),
];

#[test]
fn each_state_of_a_queue_means_something_here() {
    let job = |(place, (state, _)): (usize, &(&str, &str))| {
        format!(
            "job{place}:\n  name: job{place}\n  host: j1\n  command: hostname\n  status: {state}\n"
        )
    };
    let text: String = STATES.iter().enumerate().map(job).collect();
    let env = with("default-queue.yaml", &text);
    let said = env.tpu("import cloudmesh default-queue.yaml --json").exits(0);
    let said = said.json();
    for (place, (state, meant)) in STATES.iter().enumerate() {
        let becomes = said["files"][0]["jobs"][place]["becomes"].as_str().unwrap();
        assert!(becomes.starts_with(meant), "{state}: {becomes}");
    }
    assert_eq!(
        env.queued(),
        2,
        "what is ready, and what is undefined; no other begins or began here"
    );
    assert!(env.jobs("alice").is_empty());
}

#[test]
fn a_job_that_cannot_be_called_so_here_is_said() {
    let names = ["'12'", "tag", "a b", "smooth"];
    let text: Vec<String> = names.iter().map(|name| format!("{name}:\n  command: ls\n")).collect();
    let env = with("q-queue.yaml", &text.concat());
    let said = env.tpu("import cloudmesh q-queue.yaml --json").exits(0).json();
    let jobs = said["files"][0]["jobs"].as_array().unwrap();
    let needs_another = |job: &Value| job["fields"][0]["name"] == "name";
    let strange: Vec<bool> = jobs.iter().map(needs_another).collect();
    assert_eq!(strange, [true, true, true, false], "{said}");
    assert!(becomes(&jobs[1], "name").contains("it is a word of the grammar"), "{said}");
}

#[test]
fn a_ready_job_without_a_host_has_no_target_yet() {
    let env = with("q-queue.yaml", "a:\n  status: ready\n  command: ls\nb:\n  command: ls\n");
    let said = env.tpu("import cloudmesh q-queue.yaml --json").exits(0).json();
    for place in [0, 1] {
        assert_eq!(said["files"][0]["jobs"][place]["becomes"], "held, without a target");
    }
}

#[test]
fn cluster_commands_work_on_pools() {
    let env = lab();
    let cms = |words: &[&str]| env.tpu_words(&[&["cms", "cluster"], words].concat());
    drop(cms(&["create", "--cluster=lab"]).exits(0));
    let add = [
        "add",
        "--cluster=lab",
        "--id=j[1-3]",
        "--name=juliet[1-3].lab",
        "--user=me",
        "--no-probe",
    ];
    drop(cms(&add).exits(0));
    assert_eq!(host(&env, "j3")["addresses"], json!(["juliet3.lab"]));
    assert_eq!(env.data()["targets"]["j3"]["ssh_user"], "me");
    drop(cms(&["deactivate", "--id=j[1-2]"]).exits(0));
    let pools = cms(&["list", "--json"]).exits(0).json();
    assert_eq!(pools["pools"][0]["open"], 1, "{pools}");
    drop(cms(&["activate", "--id=j1"]).exits(0));
    let set = |key: &str, value: &str| {
        let (key, value) = (format!("--key={key}"), format!("--value={value}"));
        env.tpu_words(&["cms", "cluster", "set", "--id=j1", &key, &value])
    };
    drop(set("max_jobs_allowed", "5").exits(0));
    drop(set("status", "inactive").exits(0));
    drop(set("pyenv", "~/v/bin/activate").exits(0));
    let j1 = host(&env, "j1");
    assert_eq!(j1["pyenv"], "~/v/bin/activate");
    assert_eq!((&j1["capacity"]["jobs"], j1["drained"].is_object()), (&json!(5), true));
    for (key, value) in [("rack", "x"), ("ip", "y"), ("status", "sleepy"), ("cpus", "many")] {
        assert!(set(key, value).exits(2).stderr.contains("hint:"), "{key}");
    }
    let listed = cms(&["list", "--cluster=lab", "--json"]).exits(0).json();
    assert_eq!(listed["hosts"].as_array().unwrap().len(), 3);
    assert!(cms(&["list", "--cluster=la"]).exits(3).stderr.contains("'lab'"));
    drop(cms(&["delete", "--id=j[1-3]"]).exits(0));
    assert!(host(&env, "j1").is_null());
}
