//! A command asks a provider once about what does not change meanwhile, however many of its parts want to know.

use serde_json::Value;

use crate::common::env::TestEnv;
use crate::common::rest::Served;
use crate::common::wait::wait_until;

/// Says where it logs, leaves a checkpoint, and goes on until `go` appears.
const STAGING: &str = r#"
log=$HOME/logs/$TPU_LAUNCH
mkdir -p "$log/checkpoint_1" && echo w >"$log/checkpoint_1/data"
tpu upd-log "alice:0" "$log" "$PWD" "${1#ka=}" now
echo "$TPU_LAUNCH" >>"$HOME/started"
until [ -e "$HOME/go" ]; do sleep 0.2; [ ! -e "$HOME/fail-$1" ] || exit 3; done
"#;

/// How often `what` asked for all nodes, and for one.
fn asked(served: &Served, what: impl FnOnce()) -> (usize, usize) {
    let before = served.asked().len();
    what();
    let asked = served.asked();
    let nodes: Vec<&str> = asked[before..]
        .iter()
        .filter(|asked| asked["method"] == "GET")
        .filter_map(|asked: &Value| asked["target"].as_str())
        .filter(|target| target.contains("/nodes"))
        .collect();
    let lists = nodes.iter().filter(|target| !target.contains("/nodes/")).count();
    (lists, nodes.len() - lists)
}

#[test]
fn no_command_asks_twice_about_what_does_not_change() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let mut data = env.two_users();
    let targets = ["lab-1-v2-8", "lab-2-v2-8", "lab-3-v2-8"];
    data["all_tpus"] = serde_json::json!({ "zone-1": targets, "preemptible": [], "spot": targets });
    data["tpu_aliases"] = serde_json::json!({});
    env.write_data(&data);
    env.code("alice", "staging.sh", STAGING);
    let served = Served::beside(&mut env);
    drop(env.tpu("sim list").exits(0));
    let mut wrong = Vec::new();
    let mut counts = |line: &str, expected: (usize, usize)| {
        let counted = asked(&served, || drop(env.tpu(line).exits(0)));
        if counted != expected {
            wrong.push(format!("{line}: {counted:?} and not {expected:?}"));
        }
    };
    counts("run lab-1-v2-8 alice -q", (1, 0));
    counts("run lab-2-v2-8 alice -q", (1, 0));
    let started = || std::fs::read_to_string(env.path("started")).unwrap_or_default();
    wait_until("both at work", || started().lines().count() == 2);
    counts("check alice", (1, 0));
    counts("check-status", (1, 0));
    counts("check-status lab-1-v2-8", (1, 0));
    counts("targets", (1, 0));
    counts("find v2", (1, 0));
    counts("describe lab-1-v2-8", (0, 1));
    counts("daemon plan", (1, 0));
    counts("ls", (0, 0));
    counts("kill w=1 alice", (0, 0));
    counts("rerun w=1 alice --force", (1, 0));
    wait_until("it is at work again", || started().lines().count() == 3);
    env.touch("fail-ka=lab-2-v2-8");
    drop(env.wait_status(2, "error"));
    counts("resume w=2 alice", (1, 0));
    env.touch("go");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
