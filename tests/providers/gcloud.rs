//! `tpu sim serve` before Google's own command line: what it really asks is replayed, and, where it is
//! installed, it is run.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use tpu_system::sys::proc::{self, Spawn};

use crate::common::env::{TPU, TestEnv};
use crate::common::rest::Rest;

/// What gcloud 528 asked of the emulator, with the status it got.
const SESSION: &str = include_str!("../data/gcloud/session.jsonl");

/// Sends a recorded request as it was; status and body.
fn send(rest: &Rest, recorded: &Value) -> (u16, Value) {
    let config = ureq::Agent::config_builder().http_status_as_error(false).build();
    let agent = ureq::Agent::new_with_config(config);
    let url = format!(
        "{}{}",
        rest.endpoint().trim_end_matches('/'),
        recorded["target"].as_str().unwrap()
    );
    let request = http::Request::builder()
        .method(recorded["method"].as_str().unwrap())
        .uri(url)
        .header("content-type", "application/json");
    let answer = match &recorded["body"] {
        Value::Null => agent.run(request.body(()).unwrap()),
        body => agent.run(request.body(body.to_string()).unwrap()),
    };
    let mut answer = answer.unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), serde_json::from_str(&text).unwrap())
}

#[test]
fn what_gcloud_asks_is_answered_as_it_was() {
    let rest = Rest::new(&[]);
    let mut answers = Vec::new();
    for line in SESSION.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let (status, body) = send(&rest, &recorded);
        assert_eq!(u64::from(status), recorded["status"].as_u64().unwrap(), "{line}\n{body:#}");
        let target = recorded["target"].as_str().unwrap().to_owned();
        if status >= 400 {
            let word = body["error"]["status"].as_str().unwrap();
            assert!(["NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION"].contains(&word));
            assert_eq!(body["error"]["code"], status);
        }
        answers.push((format!("{} {target}", recorded["method"].as_str().unwrap()), body));
        // It takes its time between two requests.
        rest.clock.advance(Duration::from_secs(3));
    }
    let find = |line: &str| {
        let found = answers.iter().find(|(asked, _)| asked.starts_with(line));
        &found.unwrap_or_else(|| panic!("nobody asked {line}")).1
    };
    let place = "/v2/projects/lab/locations/us-central1-a";
    let begun = find(&format!("POST {place}/nodes?"));
    assert_eq!(begun["metadata"]["verb"], "create");
    assert_eq!(begun["metadata"]["target"], "projects/lab/locations/us-central1-a/nodes/n1");
    assert_eq!(begun.get("done"), None);
    let done = find(&format!("GET {place}/operations/"));
    assert_eq!((&done["done"], &done["response"]["state"]), (&true.into(), &"READY".into()));
    let node = find(&format!("GET {place}/nodes/n1"));
    assert_eq!(node["acceleratorConfig"]["topology"], "4x4");
    assert_eq!(
        (&node["apiVersion"], &node["schedulingConfig"]),
        (&"V2".into(), &serde_json::json!({}))
    );
    assert_eq!(node["networkEndpoints"].as_array().unwrap().len(), 4);
    assert!(node["id"].is_string(), "a 64-bit number is text");
    let queued = find(&format!("GET {place}/queuedResources/q1"));
    assert_eq!(queued["tpu"]["nodeSpec"][0]["nodeId"], "qn1");
    let list = find("GET /v2/projects/lab/locations/-/nodes");
    assert!(list["nodes"].as_array().unwrap().len() >= 2);
    assert_eq!(list.get("nextPageToken"), None);
}

/// The emulator as a process, and gcloud's way to it.
pub(crate) struct Served {
    child: Child,
    pub(crate) endpoint: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[expect(clippy::disallowed_methods, reason = "the test reads the address that it prints")]
pub(crate) fn serve(env: &TestEnv) -> Served {
    let spawn = env.spawn(&["sim", "serve", "--port", "0"]);
    let mut child = Command::new(TPU)
        .args(&spawn.args)
        .env_clear()
        .envs(spawn.env.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))))
        .current_dir(env.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let endpoint = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    Served { child, endpoint: endpoint.to_owned() }
}

/// Runs gcloud; exit code, stdout, stderr.
fn gcloud(env: &TestEnv, served: &Served, words: &str) -> (i32, String, String) {
    let fixed = ["compute", "tpus"].into_iter();
    let spawn = Spawn::new("gcloud")
        .args(fixed.chain(words.split_whitespace()))
        .env("CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU", &served.endpoint)
        .env("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true")
        .env("CLOUDSDK_CORE_PROJECT", "lab")
        .env("CLOUDSDK_CORE_DISABLE_PROMPTS", "1")
        .env("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "true")
        .env("CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK", "true")
        .env("CLOUDSDK_CONFIG", env.path("gcloud"))
        .cwd(env.root())
        .timeout(Duration::from_secs(110));
    let output = proc::run(&spawn).unwrap();
    (output.status.shell_code(), output.text(), output.complaint())
}

#[test]
fn the_real_gcloud_works_on_the_simulated_fleet() {
    let installed = tpu_system::sys::env::Env::read();
    let path = installed.var("PATH").unwrap_or_default();
    if !path.split(':').any(|dir| Path::new(dir).join("gcloud").is_file()) {
        eprintln!("skipped: gcloud is not installed");
        return;
    }
    let env = TestEnv::new();
    let served = serve(&env);
    let zone = "--zone us-central1-a";
    let ok = |words: &str| {
        let (code, stdout, stderr) = gcloud(&env, &served, words);
        assert_eq!(code, 0, "{words}\n{stdout}\n{stderr}");
        (stdout, stderr)
    };
    let (stdout, stderr) = ok(&format!(
        "tpu-vm create n1 {zone} --accelerator-type v2-32 --version tpu-ubuntu2204-base --spot"
    ));
    assert_eq!(stdout, "");
    assert!(stderr.contains("Create request issued for: [n1]"), "{stderr}");
    assert!(stderr.contains("Created tpu [n1]."), "{stderr}");
    let (stdout, _) = ok("tpu-vm list --zone=-");
    assert!(
        stdout.lines().any(|line| line.split_whitespace().eq([
            "n1",
            "us-central1-a",
            "v2-32",
            "V2",
            "4x4",
            "default",
            "READY"
        ])),
        "{stdout}"
    );
    let (code, _, stderr) = gcloud(&env, &served, &format!("tpu-vm describe nope {zone}"));
    assert_eq!(code, 1);
    assert!(
        stderr.contains("NOT_FOUND: Resource 'projects/lab/locations/us-central1-a/nodes/nope'")
    );
    let (_, stderr) = ok(&format!("tpu-vm stop n1 {zone}"));
    assert!(stderr.contains("Request issued for: [n1]"), "{stderr}");
    // What one sees, the other sees.
    drop(env.tpu("sim list").exits(0).says(&["n1", "STOPPED"]));
    let (_, stderr) = ok(&format!(
        "queued-resources create q1 {zone} --node-id qn1 --accelerator-type v2-8 \
         --runtime-version tpu-ubuntu2204-base --spot"
    ));
    assert!(stderr.contains("Created queued_resource [q1]."), "{stderr}");
    let (_, stderr) = ok(&format!("queued-resources delete q1 {zone} --quiet --force"));
    assert!(stderr.contains("Deleted queued_resource [q1]."), "{stderr}");
    let (_, stderr) = ok(&format!("tpu-vm delete n1 {zone} --quiet"));
    assert!(stderr.contains("Deleted tpu [n1]."), "{stderr}");
    let (stdout, _) = ok("tpu-vm list --zone=- --format=json");
    let left: Vec<Value> = serde_json::from_str(&stdout).unwrap();
    let is_ours =
        |node: &Value| node["name"].as_str().is_some_and(|n| n.contains("/us-central1-a/"));
    assert!(!left.iter().any(is_ours), "{stdout}");
}
