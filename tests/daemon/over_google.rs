//! The daemon and the commands over Google's API, with the simulated fleet behind it: what forerunners lost,
//! doubled or deleted in doubt.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::Value;

use tpu_engine::provider::Trouble;
use tpu_lab::sim::{Call, Event, Timing};
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;

use crate::common::env::{TPU, TestEnv};
use crate::common::rest::Served;
use crate::common::terminal::Terminal;
use crate::common::wait::{wait_at_most, wait_for, wait_until};

/// Leaves a checkpoint and stays; from a checkpoint it counts itself and goes on until `go` appears.
const STAGING: &str = r#"
log=$HOME/logs/$TPU_LAUNCH
mkdir -p "$log/checkpoint_1" && echo w >"$log/checkpoint_1/data"
tpu upd-log "alice:0" "$log" "$PWD" "${1#ka=}" now
case " $* " in
  *load_from=*)
    echo "$1" >>"$HOME/children"
    until [ -e "$HOME/go" ]; do sleep 0.4; done
    tpu finish-job "alice:0" ;;
  *) echo "$1" >>"$HOME/first"; sleep 1000 ;;
esac
"#;

struct Lab {
    env: TestEnv,
    served: Served,
    targets: Vec<String>,
}

impl Lab {
    /// So many targets in two zones, with a job of alice on each under the rule `pre`.
    fn new(count: usize) -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        let targets: Vec<String> = (1..=count).map(|n| format!("lab-{n}-v2-8")).collect();
        let mut data = env.two_users();
        let of_zone = |odd: bool| -> Vec<&String> {
            targets
                .iter()
                .enumerate()
                .filter(|(i, _)| (i % 2 == 1) == odd)
                .map(|(_, t)| t)
                .collect()
        };
        data["all_tpus"] = serde_json::json!({
            "zone-1": of_zone(false), "zone-2": of_zone(true), "preemptible": [], "spot": targets,
        });
        data["tpu_aliases"] = serde_json::json!({});
        env.write_data(&data);
        let served = Served::beside(&mut env);
        env.code("alice", "staging.sh", STAGING);
        drop(env.tpu("sim list").exits(0));
        for target in &targets {
            drop(env.tpu(&format!("run {target} alice rule=pre -q")).exits(0));
        }
        wait_until("every job at work", || lines(&env, "first") == count);
        Self { env, served, targets }
    }

    fn pull(&self, event: &Event) {
        self.served.sim().pull(event).unwrap();
    }

    fn preempt(&self, target: &str) {
        self.pull(&Event::Preempt { target: target.to_owned() });
        drop(self.env.tpu("ack").exits(0));
    }

    /// How often the API was asked for this.
    fn count(&self, method: &str, part: &str) -> usize {
        let is_it = |asked: &&Value| {
            asked["method"] == method && asked["target"].as_str().is_some_and(|t| t.contains(part))
        };
        self.served.asked().iter().filter(is_it).count()
    }

    fn state(&self, target: &str) -> String {
        let seen = self.env.tpu(&format!("check-status {target} --json")).json();
        seen["targets"][0]["raw_state"].as_str().unwrap().to_owned()
    }

    fn children(&self) -> usize {
        lines(&self.env, "children")
    }
}

fn lines(env: &TestEnv, name: &str) -> usize {
    std::fs::read_to_string(env.path(name)).map_or(0, |text| text.lines().count())
}

/// A failure of so many calls.
fn failing(class: Trouble, call: Call, times: u32) -> Event {
    let (target, zone, for_s) = (None, None, None);
    Event::Error { class, call: Some(call), target, zone, times: Some(times), for_s }
}

#[test]
fn what_fails_for_a_login_is_asked_for_once_until_a_person_says_so() {
    let lab = Lab::new(1);
    let target = lab.targets[0].clone();
    lab.pull(&failing(Trouble::Auth, Call::Create, u32::MAX));
    let monitor = lab.env.daemon(&[]);
    lab.preempt(&target);
    let login = wait_for("the refusal in the record", || {
        let job = lab.env.job("alice", 1);
        job["extra_msgs"]["recovery"]["login"].as_str().map(str::to_owned)
    });
    assert!(login.contains("gcloud auth application-default login"), "{login}");
    let counted = ["capacity", "infra", "retried", "quick", "last_action_at"];
    let counts = || {
        let recovery = lab.env.job("alice", 1)["extra_msgs"]["recovery"].clone();
        counted.map(|of| recovery[of].clone())
    };
    let before = counts();
    let asked = lab.count("POST", "odes?");
    for _ in 0..3 {
        lab.env.change(|data| data.set_ack(true));
        wait_until("a turn", || lab.env.data()["ack_MONITOR"] == false);
    }
    assert_eq!(lab.count("POST", "odes?"), asked, "no rule asks again");
    assert_eq!(counts(), before);
    let needed = ["it needs you: ", "gcloud auth application-default login", "then: tpu ack"];
    drop(lab.env.tpu("daemon plan").exits(0).says(&needed));
    drop(lab.env.tpu("explain 1 alice").exits(0).says(&needed));
    drop(lab.env.tpu("doctor").says(&["alice/1 is not brought back: ", "tpu ack"]));
    lab.pull(&Event::Calm);
    let woken = lab.env.tpu("ack --json").exits(0).json();
    assert_eq!(woken["jobs"], serde_json::json!(["alice/1"]));
    wait_until("the resume", || lab.children() == 1);
    let leaf = lab.env.job("alice", 2);
    assert_eq!(leaf["extra_msgs"]["recovery"].get("login"), None);
    drop(monitor);
}

#[test]
fn while_it_is_silent_what_was_known_stays_with_its_age_and_nothing_is_done() {
    let lab = Lab::new(1);
    let silence = failing(Trouble::Transient, Call::List, u32::MAX);
    lab.pull(&silence);
    // Nobody has asked it before.
    drop(lab.env.tpu("check alice").exits(0).says(&[
        "Status: running",
        "its target is unknown: ",
        "; nothing was heard before",
    ]));
    lab.pull(&Event::Calm);
    let _monitor = lab.env.daemon(&[]);
    lab.env.turn();
    let terminal = Terminal::new(&lab.env);
    terminal.command(&format!("{TPU} monitor alice"));
    terminal.shows("running");
    assert!(!terminal.screen().contains("its target is unknown"), "{}", terminal.screen());

    lab.pull(&silence);
    let known = regex::Regex::new("its target is unknown: .*; it was READY [0-9]+[smh]").unwrap();
    for line in ["check alice", "explain 1"] {
        let text = lab.env.tpu(line).exits(0).says(&["running"]).to_string();
        assert!(known.is_match(&text), "{text}");
    }
    let job = &lab.env.tpu("check alice --json").exits(0).json()["jobs"][0];
    assert_eq!(job["status"], "running", "{job}");
    assert!(job["target_unknown"].as_str().unwrap().contains("it was READY"), "{job}");
    terminal.press("C-l");
    // The panel is narrow.
    terminal.shows("was READY");
    terminal.shows("running");
    lab.env.turn();
    let changes = lab.count("POST", "") + lab.count("DELETE", "");
    assert_eq!((changes, lab.children()), (0, 0), "{:#?}", lab.served.asked());
    assert_eq!(lab.env.job("alice", 1)["status"], "running");

    lab.pull(&Event::Calm);
    terminal.press("C-l");
    terminal.until("the screen knows again", || !terminal.screen().contains("is unknown"));
    terminal.press("q");
}

#[test]
fn questions_that_fail_delete_nothing() {
    let lab = Lab::new(1);
    let monitor = lab.env.daemon(&[]);
    for class in [Trouble::Auth, Trouble::Permission, Trouble::Quota, Trouble::NotFound] {
        lab.pull(&failing(class, Call::List, 5));
        for _ in 0..3 {
            lab.env.turn();
        }
        lab.pull(&Event::Calm);
    }
    // And a target in a state that nobody knows is left alone.
    lab.pull(&Event::Say { target: lab.targets[0].clone(), word: "HIDDEN".to_owned() });
    lab.env.turn();
    assert_eq!(lab.state(&lab.targets[0]), "HIDDEN");
    lab.env.turn();
    assert_eq!(lab.count("DELETE", ""), 0);
    assert_eq!(lab.count("POST", ""), 0);
    assert_eq!(lab.env.jobs("alice").len(), 1);
    drop(monitor);
}

/// A job whose target was taken away in truth, while the daemon cannot be told, with these variables.
fn nothing_happens(words: &str, vars: impl FnOnce(&str) -> Vec<(&'static str, String)>) {
    let lab = Lab::new(1);
    lab.pull(&Event::Preempt { target: lab.targets[0].clone() });
    let vars = vars(&lab.served.endpoint());
    let vars: Vec<(&str, &str)> = vars.iter().map(|(name, value)| (*name, &**value)).collect();
    let monitor = lab.env.start_tpu("daemon run", &vars);
    wait_until("the daemon's first turn", || lab.env.tpu("daemon status").code == 0);
    let mut spawn = lab.env.spawn(&["check-status"]);
    for (name, value) in vars {
        spawn = spawn.env(name, value);
    }
    drop(lab.env.output(&spawn).exits(0).says(&[words, "the cloud said nothing"]));
    assert_eq!(lab.env.jobs("alice").len(), 1, "{words}");
    assert_eq!(lab.env.jobs("alice")[0]["child"], Value::Null, "{words}");
    assert_eq!(lab.count("DELETE", "") + lab.count("POST", ""), 0, "{words}");
    monitor.kill();
    // The way is free again.
    let monitor = lab.env.daemon(&[]);
    wait_until("the child", || lab.children() == 1);
    drop(monitor);
}

#[test]
fn what_stands_between_us_and_the_api_makes_nothing_happen() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let at = |url: String| vec![("TPU_CLOUD_ENDPOINT", url)];
    std::thread::scope(|scope| {
        let (silent, proxy) = (format!("http://{closed}"), closed);
        scope.spawn(|| nothing_happens("nothing listens", |_| at(silent)));
        let nowhere = format!("https://{}.invalid", "x".repeat(64));
        scope.spawn(|| nothing_happens("does not resolve", |_| at(nowhere)));
        scope.spawn(|| nothing_happens("TLS", |url| at(url.replace("http:", "https:"))));
        scope.spawn(|| {
            nothing_happens("proxy", |_| {
                let url = "https://tpu.example".to_owned();
                vec![("TPU_CLOUD_ENDPOINT", url), ("HTTPS_PROXY", proxy)]
            });
        });
    });
}

#[test]
fn a_target_whose_creation_lost_its_answer_is_adopted_and_never_doubled() {
    let lab = Lab::new(1);
    let monitor = lab.env.daemon(&[]);
    lab.pull(&Event::LoseAnswer { call: Some(Call::Create), target: None, times: Some(1) });
    lab.preempt(&lab.targets[0]);
    wait_until("the child", || lab.children() == 1);
    assert_eq!(lab.count("POST", "/nodes?nodeId="), 2, "asked twice: the first answer was lost");
    let fleet = lab.served.sim().look().unwrap();
    let made = fleet.history().iter().filter(|h| h.what == "creating").count();
    assert_eq!(made, 2, "once at the beginning, once anew");
    drop(monitor);
}

#[test]
fn a_deletion_that_fails_stays_visible_and_is_tried_again() {
    let lab = Lab::new(1);
    let monitor = lab.env.daemon(&[]);
    let late = Event::FailLate {
        class: Trouble::Transient,
        call: Some(Call::Delete),
        target: None,
        times: Some(1),
    };
    lab.pull(&late);
    lab.preempt(&lab.targets[0]);
    wait_until("a deletion", || lab.count("DELETE", "/nodes/") == 1);
    wait_until("its failure", || lab.state(&lab.targets[0]) == "PREEMPTED");
    let next = wait_for("the next try", || {
        let plan = lab.env.tpu("daemon plan --json").exits(0).json();
        let next = plan["jobs"][0]["next"].clone();
        (next["action"] == "reapply" && next["in_s"].as_u64() > Some(0)).then_some(next)
    });
    assert!(next["budget_left"].as_u64() > Some(9_000), "{next}");
    assert_eq!(lab.count("POST", "/nodes?nodeId="), 0, "nothing is created beside what is left");
    assert_eq!(lab.env.jobs("alice").len(), 1);
    drop(monitor);
}

#[test]
fn a_queued_request_survives_its_monitor_and_is_made_once() {
    let lab = Lab::new(1);
    let target = lab.targets[0].clone();
    let mut data = lab.env.data();
    data["targets"][&target]["queued"] = true.into();
    data["targets"][&target]["kind"] = "tpu".into();
    data["targets"][&target]["zone"] = "zone-1".into();
    data["targets"][&target]["type"] = "v2-8".into();
    data["targets"][&target]["pricing"] = "spot".into();
    lab.env.write_data(&data);
    let none =
        Event::NoCapacity { target: Some(target.clone()), zone: None, times: None, for_s: None };
    lab.pull(&none);
    // Nothing is left of it; so it is asked for in the way that its registration says.
    lab.pull(&Event::Preempt { target: target.clone() });
    drop(lab.env.tpu(&format!("sim event say target={target} word=TERMINATED")).exits(0));
    tpu_engine::provider::Provider::delete(
        lab.served.sim(),
        &tpu_engine::provider::TargetAt::new(target.as_str().into(), None),
        true,
    )
    .unwrap();
    wait_until("its end", || lab.state(&target) == "not there");
    // Begun only now: between two of these steps it could see a preempted target, and ask anew for that one.
    let monitor = lab.env.daemon(&[]);
    wait_until("the request", || lab.count("POST", "/queuedResources?") == 1);
    wait_until("its waiting", || lab.state(&target) == "WAITING_FOR_RESOURCES");
    monitor.kill();
    let second = lab.env.daemon(&[]);
    lab.env.turn();
    assert_eq!(lab.state(&target), "WAITING_FOR_RESOURCES");
    lab.pull(&Event::Capacity { target: Some(target), zone: None });
    wait_until("the child", || lab.children() == 1);
    assert_eq!(lab.count("POST", "/queuedResources?"), 1, "adopted, not made a second time");
    assert_eq!(lab.count("POST", "/nodes?"), 0);
    drop(second);
}

#[test]
fn ten_preempted_targets_come_back_side_by_side_with_few_questions() {
    // Scaled to a tenth; `TPU_SLOW_TESTS=1` asks for a minute each, and for all to be back in 90 s. Without it, what
    // failed once, as anything may on a busy machine, is waited for: it is tried again after a back-off of a minute.
    let is_slow = Env::read().non_empty("TPU_SLOW_TESTS").is_some();
    let (create_s, limit_s) = if is_slow { (60.0, 90) } else { (6.0, 150) };
    let lab = Lab::new(10);
    lab.pull(&Event::Time { timing: Timing { create_s, ..Timing::default() } });
    let monitor = lab.env.daemon(&[]);
    lab.env.turn();
    let clock = SystemClock::new();
    let quiet = lab.served.asked().len();
    for _ in 0..4 {
        lab.env.turn();
    }
    // Two zones, and each of these may have been two turns. Where they take long, others come in between by themselves:
    // however many there are, no zone is asked more than once a second.
    let asked = lab.served.asked().len() - quiet;
    let rounds = usize::try_from(clock.monotonic().as_secs()).unwrap() + 2;
    assert!(asked <= 2 * rounds.max(4 * 2), "{asked} questions in 4 quiet turns");

    let before = lab.served.asked();
    for target in &lab.targets {
        lab.pull(&Event::Preempt { target: target.clone() });
    }
    drop(lab.env.tpu("ack").exits(0));
    let limit = Duration::from_secs(limit_s);
    wait_at_most(limit, "ten children", || (lab.children() == 10).then_some(()));
    let after = lab.served.asked();
    let asked = &after[before.len()..];
    let posts: Vec<u64> = asked
        .iter()
        .filter(|asked| asked["method"] == "POST")
        .map(|asked| asked["at_ms"].as_u64().unwrap())
        .collect();
    assert_eq!(posts.len(), 10, "each is created once");
    // All are asked for long before the first could be there if they came one after the other.
    let span = posts.iter().max().unwrap() - posts.iter().min().unwrap();
    assert!(span < 30_000, "the creations were begun within {span} ms");
    let first = asked[0]["at_ms"].as_u64().unwrap();
    let last = asked[asked.len() - 1]["at_ms"].as_u64().unwrap();
    let seconds = (last - first) / 1_000 + 1;
    let most = u64::try_from(asked.len()).unwrap();
    assert!(most <= seconds * 10 + 10, "{most} questions in {seconds} s");
    drop(monitor);
    let leaves = wait_for("the leaves", || {
        let jobs = lab.env.jobs("alice");
        (jobs.len() == 20).then_some(jobs)
    });
    assert_eq!(leaves.iter().filter(|job| job["status"] == "resumed").count(), 10);
}

#[test]
fn commands_work_over_the_api() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let served = Served::beside(&mut env);
    drop(env.tpu("sim list").exits(0));
    drop(env.tpu("targets").exits(0).says(&["lab-tpuvm-v2-32-1", "READY", "16"]));
    let told = env.tpu("apply lab-new --type v2-8 --zone zone-9 --spot").exits(0);
    drop(told.says(&["lab-new is READY."]));
    drop(env.tpu("restart v2-1 -y").exits(0).says(&["lab-tpuvm-v2-32-1 is READY."]));
    drop(env.tpu("stop v2-1 -y").exits(0).says(&["STOPPED"]));
    drop(env.tpu("start v2-1").exits(0).says(&["READY"]));
    drop(env.tpu("describe v2-1").exits(0).says(&["HEALTHY", "workers    4", "google"]));
    let prices = r#"{"v2": {"spot": 0.5}, "v2-32": 10}"#;
    drop(env.tpu_words(&["set-settings", "prices", prices]).exits(0));
    let cost = env.tpu("targets --cost --json").exits(0).json();
    let sums = cost["in_use"].as_array().unwrap();
    assert_eq!(sums.len(), 2, "{cost:#}");
    let spot = sums.iter().find(|sum| sum["pricing"] == "spot").unwrap();
    assert_eq!((&spot["chips"], &spot["targets"]), (&4.into(), &1.into()));

    // What the cloud lists is shown, asked about, and then known.
    let fresh = Event::Ready {
        target: "theirs".to_owned(),
        zone: Some("zone-9".to_owned()),
        accelerator: Some("v4-8".to_owned()),
        pricing: Some(tpu_core::model::target::Pricing::Preemptible),
    };
    served.sim().pull(&fresh).unwrap();
    let before = env.data_bytes();
    let taken = env.tpu("targets import --alias kill").exits(2);
    assert!(taken.stderr.contains("'kill' already means something"), "{taken}");
    let import = "targets import --alias {type}-{pricing}{n}";
    let dry = env.tpu(&format!("{import} --dry-run")).exits(0);
    drop(dry.says(&[
        "+ theirs",
        "zone zone-9",
        "type v4-8",
        "pricing preemptible",
        "alias v4-8-p1",
    ]));
    assert_eq!(env.data_bytes(), before);
    drop(env.tpu(&format!("{import} -y")).exits(0).says(&["Imported"]));
    let data = env.data();
    assert_eq!(data["targets"]["theirs"]["type"], "v4-8");
    assert_eq!(data["targets"]["theirs"]["origin"], "imported");
    assert_eq!(data["tpu_aliases"]["v4-8-p1"], "theirs");
    drop(env.tpu(import).exits(0).says(&["Nothing to import"]));

    let late = Event::FailLate {
        class: Trouble::Transient,
        call: Some(Call::Delete),
        target: None,
        times: Some(1),
    };
    served.sim().pull(&late).unwrap();
    drop(env.tpu("delete lab-new -y").exits(6).says(&["cannot delete lab-new"]));
    drop(env.tpu("check-status lab-new").exits(0).says(&["PREEMPTED"]));
    drop(env.tpu("delete lab-new").exits(0).says(&["lab-new is not there."]));
    let none = Event::NoCapacity { target: None, zone: None, times: Some(2), for_s: None };
    served.sim().pull(&none).unwrap();
    let refused = env.tpu("apply lab-new").exits(1);
    assert!(refused.stderr.contains("no more capacity"), "{refused}");
    drop(env.tpu("applyy lab-new t=0 m=5").exits(0).says(&["lab-new is READY."]));
    drop(env.tpu("applyy lab-new every=5").exits(2));
    let registered = env.data()["targets"]["lab-new"].clone();
    assert_eq!((&registered["zone"], &registered["type"]), (&"zone-9".into(), &"v2-8".into()));
    drop(
        env.tpu("apply lab-q --type v2-8 --zone zone-9 --queued --spot").exits(0).says(&["READY"]),
    );
    drop(env.tpu("targets").exits(0).says(&["[lab-q-q ACTIVE]"]));
    drop(env.tpu("delete lab-q -y").exits(0).says(&["lab-q is not there."]));
    assert!(
        served
            .sim()
            .look()
            .unwrap()
            .targets(tpu_core::model::time::Timestamp::from_second(0))
            .iter()
            .all(|t| t.name.as_str() != "lab-q")
    );
}

#[test]
fn secrets_are_nowhere() {
    const SECRET: &str = "ya29.TopSecretToken";
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let served = Served::beside(&mut env);
    env.set("TPU_CLOUD_AUTH", "google");
    env.set("GOOGLE_OAUTH_ACCESS_TOKEN", SECRET);
    drop(env.tpu("sim list").exits(0));
    served.sim().pull(&failing(Trouble::Auth, Call::Describe, 1)).unwrap();
    let said = [
        env.tpu("targets --json"),
        env.tpu("describe v2-1"),
        env.tpu("describe v2-1 --json"),
        env.tpu("check-status"),
        env.tpu("apply lab-new --type v2-8 --zone zone-9"),
        env.tpu("get-settings --json"),
        env.tpu("doctor"),
        env.tpu("history"),
    ];
    assert!(said[0].code == 0 && said[1].code == 6, "{}", said[1]);
    for said in &said {
        assert!(!said.to_string().contains("TopSecret"), "{said}");
    }
    // A job under the daemon: what others see of both, in the list of processes and of windows.
    env.code("alice", "staging.sh", "echo at work; exec sleep 1000");
    drop(env.tpu("run v2-1 rule=pre -q").exits(0));
    let monitor = env.start_tpu("daemon run", &[]);
    wait_until("the daemon's first turn", || env.tpu("daemon status").code == 0);
    wait_until("the job at work", || env.pane("alice", 1).contains("at work"));
    let argvs = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let argv = std::fs::read(entry.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&argv).into_owned())
    });
    assert_eq!(argvs.filter(|argv| argv.contains("TopSecret")).collect::<Vec<_>>(), [""; 0]);
    let shown = ["list-panes", "-a", "-F", "#{window_name} #{pane_title} #{pane_start_command}"];
    assert!(!env.tmux().run(&shown).contains("TopSecret"));
    drop(monitor);
    let asked: Vec<String> = served.asked().iter().map(ToString::to_string).collect();
    assert!(!asked.is_empty() && asked.iter().all(|line| !line.contains("TopSecret")));
    let mut dirs = vec![env.path("")];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                // What the shell exports is kept for the restarts of its job, for one account alone.
                let is_kept = entry.path().ends_with("jobs/alice/1/exported")
                    && entry.metadata().unwrap().permissions().mode() & 0o777 == 0o600;
                assert!(is_kept || !text.contains("TopSecret"), "{}", entry.path().display());
            }
        }
    }
}
