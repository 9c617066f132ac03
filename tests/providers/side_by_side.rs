//! Targets of several providers in one data file: two projects of a cloud, a simulated fleet and somebody's own
//! machines. Each is asked for its own targets alone, and one that is silent takes nothing from the others.

use std::net::TcpListener;

use serde_json::{Value, json};

use tpu_lab::sim::Event;

use crate::common::env::TestEnv;
use crate::common::rest::Served;
use crate::common::sim::ZONE;
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

const ONE: &str = "lab-1-v2-8";
const TWO: &str = "lab-2-v2-8";
const SIMULATED: &str = "lab-3-v2-8";
const HOSTS: &str = "lab-hosts";

/// Notes its target, leaves a checkpoint, and goes on until `go` appears.
const STAGING: &str = r#"
log=$HOME/logs/$TPU_LAUNCH
mkdir -p "$log/checkpoint_1" && echo w >"$log/checkpoint_1/data"
tpu upd-log "alice:0" "$log" "$PWD" "${1#ka=}" now
case " $* " in
  *load_from=*) echo "$1" >>"$HOME/children" ;;
  *) echo "$1" >>"$HOME/first" ;;
esac
until [ -e "$HOME/go" ]; do sleep 0.4; done
tpu finish-job "alice:0"
"#;

/// A lab with targets of two projects, of a simulated fleet, and, where there is sshd, with a machine of its own.
struct Lab {
    env: TestEnv,
    /// The projects `lab` and `other`.
    clouds: [Option<Served>; 2],
    hosts: Option<Hosts>,
}

impl Lab {
    fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        env.set("TPU_CLOUD_AUTH", "none");
        let mut data = env.two_users();
        data["all_tpus"] = json!({});
        data["tpu_aliases"] = json!({});
        env.write_data(&data);
        env.code("alice", "staging.sh", STAGING);
        let fleets = [("cloud-1", ONE), ("cloud-2", TWO)];
        let clouds = fleets.map(|(dir, name)| {
            let dir = env.path(dir);
            std::fs::create_dir_all(&dir).unwrap();
            Some(Served::in_directory(&dir, &[(name, "v2-8")]))
        });
        let hosts = is_installed().then(|| Hosts::new(1));
        if let Some(hosts) = &hosts {
            let settings =
                json!({ "ssh_options": hosts.options(), "ssh_key": hosts.path("client") });
            env.set("TPU_SETTINGS", env.path("settings.json"));
            write_file(&env.path("settings.json"), &settings.to_string());
        }
        let lab = Self { env, clouds, hosts };
        let told = format!("--zone {ZONE} --type v2-8 --spot");
        for (name, project, at) in [(ONE, "lab", 0), (TWO, "other", 1)] {
            let provider = lab.provider(project, at);
            drop(lab.env.tpu(&format!("register {name} {provider} {told}")).exits(0));
        }
        drop(lab.env.tpu(&format!("register {SIMULATED} --provider sim {told}")).exits(0));
        if let Some(hosts) = &lab.hosts {
            let addresses = hosts.addresses().join(",");
            drop(lab.env.tpu(&format!("register {HOSTS} --address {addresses}")).exits(0));
        }
        lab
    }

    /// The words for one of the clouds.
    fn provider(&self, project: &str, at: usize) -> String {
        let endpoint = self.clouds[at].as_ref().unwrap().endpoint();
        format!("--provider google --project {project} --endpoint {endpoint}")
    }

    fn cloud(&self, at: usize) -> &Served {
        self.clouds[at].as_ref().unwrap()
    }

    /// The states of these targets.
    fn states(&self, names: &[&str]) -> Vec<Value> {
        let seen = self.env.tpu("check-status --json").exits(0).json();
        let targets = seen["targets"].as_array().unwrap();
        let of = |name: &&str| {
            let it = targets.iter().find(|target| target["name"] == **name).unwrap();
            it["state"].clone()
        };
        names.iter().map(of).collect()
    }

    fn started(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.env.path(file)).unwrap_or_default();
        let mut names: Vec<String> =
            text.lines().map(|line| line.trim_start_matches("ka=").to_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn each_is_asked_for_its_own_and_one_that_is_silent_takes_nothing_from_the_others() {
    let mut lab = Lab::new();
    let watched = [ONE, TWO, SIMULATED];
    assert_eq!(lab.states(&watched), ["ready", "ready", "ready"]);
    let listed = lab.env.tpu("targets").exits(0);
    drop(listed.says(&[ONE, TWO, SIMULATED]));
    drop(lab.env.tpu(&format!("describe {TWO}")).exits(0).says(&["READY"]));
    for name in watched {
        drop(lab.env.tpu(&format!("run {name} alice rule=pre -q")).exits(0));
    }
    wait_until("a job at work on each", || lab.started("first") == watched);
    if lab.hosts.is_some() {
        assert_eq!(lab.states(&[HOSTS]), ["not-watched"]);
        let words = ["run", HOSTS, "alice", "-q", "--", "sh", "-c", "echo here; sleep 0"];
        drop(lab.env.tpu_words(&words).exits(0));
        drop(lab.env.wait_status(4, "finished"));
    }
    // The first cloud is gone: nobody knows how its target is, and the others are as they were.
    lab.clouds[0] = None;
    assert_eq!(lab.states(&watched), ["unknown", "ready", "ready"]);
    let seen = lab.env.tpu("check-status").exits(0);
    drop(seen.says(&["google, project lab", "said nothing", "unknown: ", "it was READY"]));
    // Who asks for it by name wants an answer. What is wrong stands in its registration.
    let named = lab.env.tpu(&format!("check-status {ONE}")).exits(6);
    assert!(!named.stderr.contains("cloud_endpoint"), "{named}");
    drop(named.says(&[
        "unknown: ",
        "it was READY",
        " ago",
        &format!("tpu data get targets.{ONE}"),
    ]));
    drop(lab.env.tpu(&format!("check-status {TWO}")).exits(0).says(&["READY"]));
    let refused = lab.env.tpu(&format!("reapply {ONE} -y"));
    assert_ne!(refused.code, 0, "{}", refused.report());
    // The daemon brings back what the other one loses, and leaves alone what nobody knows.
    let running = lab.env.start_tpu("daemon run", &[]);
    wait_until("the daemon's first turn", || lab.env.tpu("daemon status").code == 0);
    lab.cloud(1).sim().pull(&Event::Preempt { target: TWO.to_owned() }).unwrap();
    drop(lab.env.tpu("ack").exits(0));
    wait_until("the job is brought back", || lab.started("children") == [TWO]);
    assert_eq!(lab.env.jobs("alice")[0]["status"], "running");
    assert_eq!(lab.states(&watched), ["unknown", "ready", "ready"]);
    running.kill();
    lab.env.touch("go");
}

/// What listens and never answers keeps whoever asks it waiting for a minute.
#[test]
fn monitor_waits_for_none_that_is_silent_while_others_lose_something() {
    let mut lab = Lab::new();
    for name in [ONE, TWO] {
        drop(lab.env.tpu(&format!("run {name} alice rule=pre -q")).exits(0));
    }
    wait_until("a job at work on each", || lab.started("first") == [ONE, TWO]);
    let endpoint = lab.cloud(0).endpoint();
    lab.clouds[0] = None;
    let address = endpoint.trim_start_matches("http://").trim_end_matches('/');
    let _silent = TcpListener::bind(address).unwrap();
    let running = lab.env.start_tpu("daemon run", &[]);
    lab.cloud(1).sim().pull(&Event::Preempt { target: TWO.to_owned() }).unwrap();
    wait_until("the job is brought back", || lab.started("children") == [TWO]);
    assert_eq!(lab.env.jobs("alice")[0]["status"], "running");
    running.kill();
    lab.env.touch("go");
}

#[test]
fn a_second_one_of_a_name_is_imported_with_whose_it_is() {
    let lab = Lab::new();
    for event in [
        Event::Ready {
            target: ONE.to_owned(),
            zone: Some(ZONE.to_owned()),
            accelerator: Some("v3-8".to_owned()),
            pricing: None,
        },
        Event::Ready {
            target: "lab-9-v2-8".to_owned(),
            zone: None,
            accelerator: None,
            pricing: None,
        },
    ] {
        lab.cloud(1).sim().pull(&event).unwrap();
    }
    let from = lab.provider("other", 1);
    let namesake = format!("{ONE}@other");
    drop(lab.env.tpu(&format!("targets import {from} -y")).exits(0).says(&[&namesake]));
    let known = &lab.env.data()["targets"];
    assert_eq!(known[&namesake]["project"], "other");
    assert_eq!(known[&namesake]["type"], "v3-8");
    assert_eq!(known[ONE]["project"], "lab", "the first one is as it was");
    assert_eq!(known["lab-9-v2-8"]["provider"], "google");
    assert_eq!(lab.states(&[ONE, &namesake]), ["ready", "ready"]);
    // Each verb goes to its own: the namesake is taken away, and the first one stays.
    drop(lab.env.tpu(&format!("delete {namesake} -y")).exits(0));
    assert_eq!(lab.states(&[ONE, &namesake]), ["ready", "gone"]);
    drop(lab.env.tpu("targets import -y").exits(0).says(&["Nothing to import"]));
}

/// Two names would not keep two jobs apart.
#[test]
fn one_target_has_one_name() {
    let env = TestEnv::new();
    drop(env.tpu("register lab-7 --zone a").exits(0));
    for again in ["register lab-7@x --zone a", "register lab-7@x"] {
        drop(env.tpu(again).exits(4).says(&["a second name of lab-7", "tpu -ta ALIAS lab-7"]));
    }
    drop(env.tpu("register lab-7 --zone a").exits(0));
    drop(env.tpu("register lab-7@x --zone b").exits(0));
    drop(env.tpu("register lab-7@y --zone a --provider google --project other").exits(0));
    drop(env.tpu("register lab-7@z --address h1").exits(0));
}

#[test]
fn an_option_that_says_nothing_of_a_kind_is_refused() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    for (line, words) in [
        ("register a --provider heaven", "sim or google"),
        ("register a --provider sim --project lab", "neither projects nor endpoints"),
        ("register a --kind ssh --project lab", "--project says nothing of machines"),
        ("register a --kind ssh", "need an address each"),
        ("register a --kind moon", "--kind is tpu, ssh, slurm or kubernetes"),
        ("register a --provider google --address h", "no kind of target has all of"),
    ] {
        let refused = env.tpu(line);
        assert!([2, 4].contains(&refused.code), "{}", refused.report());
        drop(refused.says(&[words]));
    }
}

#[test]
fn a_kind_that_nobody_knows_is_shown_and_left_alone() {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    let mut data = env.two_users();
    data["targets"] = json!({ "moon": { "kind": "lunar", "colour": "grey" } });
    env.write_data(&data);
    let seen = env.tpu("check-status --json").exits(0).json();
    let of = |name: &str| {
        let targets = seen["targets"].as_array().unwrap();
        targets.iter().find(|target| target["name"] == name).unwrap().clone()
    };
    assert_eq!(of("moon")["state"], "unknown");
    assert!(of("moon")["raw_state"].as_str().unwrap().contains("'lunar'"), "{seen}");
    assert_eq!(of("lab-tpuvm-v2-32-1")["state"], "ready");
    for line in ["run moon alice -- true", "run moon alice --force -- true", "reapply moon -y"] {
        let refused = env.tpu(line);
        assert_ne!(refused.code, 0, "{}", refused.report());
        drop(refused.says(&["'lunar'"]));
    }
    assert_eq!(env.data()["targets"]["moon"], json!({ "kind": "lunar", "colour": "grey" }));
}
