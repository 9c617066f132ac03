//! The daemon on the simulated fleet: a target that was taken away is deleted, created again and its job goes
//! on, once, whatever happens meanwhile; and no target is touched on a doubt.

use serde_json::Value;
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken};

use crate::common::env::{TestEnv, wait_gone};
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// The one target.
const TARGET: &str = "lab-tpuvm-v2-32-1";

/// Leaves a checkpoint and stays; from a checkpoint it counts itself and goes on until `go` appears.
const STAGING: &str = r#"
log=$HOME/logs/$TPU_LAUNCH
mkdir -p "$log/checkpoint_1" && echo w >"$log/checkpoint_1/data"
tpu upd-log "alice:0" "$log" "$PWD" "${1#ka=}" now
case " $* " in
  *load_from=*)
    echo $$ >>"$HOME/children"
    until [ -e "$HOME/go" ]; do sleep 0.4; done
    tpu finish-job "alice:0" ;;
  *) echo $$ >"$HOME/first"; sleep 1000 ;;
esac
"#;

/// Has no checkpoint; the second attempt notes its words and goes on until `go` appears.
const SLOW_STAGING: &str = r#"
log=$HOME/logs/$TPU_LAUNCH
mkdir -p "$log"
tpu upd-log "alice:0" "$log" "$PWD" "${1#ka=}" now
[ -e "$HOME/first" ] || { echo $$ >"$HOME/first"; sleep 1000; }
echo "$*" >>"$HOME/children"
until [ -e "$HOME/go" ]; do sleep 0.4; done
tpu finish-job "alice:0"
"#;

struct Lab {
    env: TestEnv,
}

impl Lab {
    /// A target and nothing on it.
    fn bare() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        env.set("TPU_CLOUD", "sim");
        drop(env.tpu("sim list").exits(0).says(&[TARGET, "READY"]));
        Self { env }
    }

    /// A job of alice at work on the target, under `rule`.
    fn new(rule: &str) -> Self {
        let lab = Self::bare();
        lab.env.code("alice", "staging.sh", STAGING);
        drop(lab.env.tpu(&format!("run v2-1 alice rule={rule} -q")).exits(0));
        lab.env.wait_status(1, "running");
        let _begun = lab.env.wait_file("first");
        lab
    }

    fn children(&self) -> usize {
        let text = std::fs::read_to_string(self.env.path("children"));
        text.map_or(0, |text| text.lines().count())
    }

    fn state(&self) -> String {
        let seen = self.env.tpu("check-status v2-1 --json").exits(0).json();
        seen["targets"][0]["raw_state"].as_str().unwrap().to_owned()
    }

    /// A job of alice on the target that has no checkpoint when it is preempted.
    fn before_its_first_checkpoint() -> Self {
        let lab = Self::bare();
        lab.env.code("alice", "staging.sh", SLOW_STAGING);
        drop(lab.env.tpu("run v2-1 alice rule=pre -q").exits(0));
        lab.env.wait_status(1, "running");
        let _begun = lab.env.wait_file("first");
        lab
    }

    /// How often the simulated control plane has begun this with the target.
    fn begun(&self, verb: &str) -> usize {
        let text = std::fs::read_to_string(self.env.path("tpu-state/sim.json")).unwrap();
        let fleet: Value = serde_json::from_str(&text).unwrap();
        let operations = fleet["operations"].as_array().unwrap();
        operations.iter().filter(|begun| begun["operation"]["verb"] == verb).count()
    }

    /// The first job was preempted, and one child of it is at work.
    fn went_on_once(&self, clue: &str) {
        wait_until(&format!("the child, {clue}"), || self.children() == 1);
        let parent = self.env.job("alice", 1);
        assert_eq!((&parent["status"], &parent["error"]), (&"resumed".into(), &"preempted".into()));
        let leaf = wait_for("the leaf at work", || {
            let leaf = self.env.jobs("alice").pop()?;
            (leaf["status"] == "running").then_some(leaf)
        });
        assert_eq!(leaf["extra_msgs"]["recovery"]["capacity"], 1, "{clue}: {leaf:#}");
        assert_eq!(self.state(), "READY", "{clue}");
        assert_eq!((self.begun("delete"), self.begun("create")), (1, 1), "{clue}");
        self.env.touch("go");
        self.env.wait_status(leaf["windows_id"].as_u64().unwrap(), "finished");
        assert_eq!(self.children(), 1, "{clue}: it ran more than once");
    }
}

#[test]
fn a_launch_holds_its_target_until_its_record_gives_it_up() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    env.set("TPU_CLOUD", "sim");
    drop(env.tpu("sim list").exits(0).says(&[TARGET, "READY"]));
    drop(env.tpu("run v2-1 alice -- sleep 1000").exits(0));
    // As if its window had never opened, by a clock that has jumped since.
    env.change(|data| {
        let id = JobId::new("alice".into(), JobNumber(1));
        let launch = data.job_mut(&id).unwrap().launch.as_mut().unwrap();
        launch.token = LaunchToken::from("another");
        launch.at = launch.at.plus_seconds(-3_600);
        launch.confirmed = false;
    });
    let seen = env.tpu("describe v2-1 --json").exits(0).json();
    assert_eq!(seen["target"]["jobs"], serde_json::json!(["alice/1"]), "{seen:#}");
    drop(env.tpu("reapply v2-1 -y").exits(0));
    let given_up = env.job("alice", 1);
    assert_eq!((&given_up["status"], &given_up["error"]), (&"error".into(), &"launch".into()));
}

#[test]
fn a_preempted_target_is_made_anew_and_its_job_goes_on() {
    let lab = Lab::new("pre");
    let first = lab.env.wait_pid("first");
    let monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    drop(lab.env.tpu("ack").exits(0));
    lab.went_on_once("undisturbed");
    // Its window was still open: the processes of the old attempt were stopped first.
    wait_gone(&first);
    drop(lab.env.tpu("-Ml").exits(0).says(&["preempted", "reapply", "resume"]));
    drop(monitor);
}

#[test]
fn a_monitor_that_is_killed_at_any_step_of_a_reapply_is_succeeded() {
    std::thread::scope(|scope| {
        for point in [
            "reapply-intended",
            "reapply-deleted",
            "reapply-asked",
            "reapply-created",
            "reapply-ready",
            "resume-stopped",
            "launch-claimed",
        ] {
            scope.spawn(move || {
                let lab = Lab::new("pre");
                let points = format!("{point}=pause");
                let monitor = lab.env.daemon(&[("FAILPOINTS", &points)]);
                drop(lab.env.tpu("sim preempt v2-1").exits(0));
                drop(lab.env.tpu("ack").exits(0));
                let intent = || lab.env.job("alice", 1)["extra_msgs"]["intent"].is_object();
                wait_until(point, || match point {
                    "reapply-intended" => intent(),
                    "reapply-deleted" => lab.begun("delete") == 1 && lab.state() == "not there",
                    "reapply-asked" => lab.begun("create") == 1,
                    "reapply-created" | "reapply-ready" | "resume-stopped" => {
                        lab.begun("create") == 1 && lab.state() == "READY"
                    }
                    _ => lab.env.jobs("alice").len() == 2,
                });
                monitor.kill();
                let second = lab.env.daemon(&[]);
                lab.went_on_once(point);
                drop(second);
            });
        }
    });
}

#[test]
fn nothing_is_touched_on_a_doubt() {
    // The rule does not ask for it, nobody watches, or the zone says nothing.
    let lab = Lab::new("resume");
    let monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    drop(lab.env.tpu("ack").exits(0));
    assert_eq!(lab.env.wait_status(1, "error")["error"], "preempted");
    drop(lab.env.tpu("daemon plan").exits(0).says(&["no automatic restart (rule preempted=pass)"]));
    assert_eq!((lab.state().as_str(), lab.begun("delete")), ("PREEMPTED", 0));
    assert_eq!(lab.env.jobs("alice").len(), 1);
    drop(monitor);
}

#[test]
fn what_was_preempted_before_its_first_checkpoint_begins_again_from_nothing() {
    let lab = Lab::before_its_first_checkpoint();
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    wait_until("the plan to say how", || {
        let plan = lab.env.tpu("daemon plan").exits(0).to_string();
        plan.contains("reapply") && plan.contains("from nothing, since there is no checkpoint yet")
    });
    let monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("ack").exits(0));
    lab.went_on_once("from nothing");
    let words = std::fs::read_to_string(lab.env.path("children")).unwrap();
    assert!(!words.contains("load_from"), "{words}");
    let child = lab.env.job("alice", 2);
    assert_eq!((&child["stage"], &child["extra_msgs"]["father"]), (&1.into(), &1.into()));
    drop(lab.env.tpu("-Ml").exits(0).says(&["resumed from nothing"]));
    drop(monitor);
}

#[test]
fn what_cannot_begin_again_is_not_promised_and_no_target_is_made_for_it() {
    let lab = Lab::before_its_first_checkpoint();
    let monitor = lab.env.daemon(&[]);
    // Neither the copy that it ran from nor the directory is there any more.
    let code = lab.env.path("code-alice");
    std::fs::rename(&code, lab.env.path("moved-away")).unwrap();
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    drop(lab.env.tpu("ack").exits(0));
    assert_eq!(lab.env.wait_status(1, "error")["error"], "preempted");
    let plan = lab.env.tpu("daemon plan --json").exits(0).json();
    let next = &plan["jobs"][0]["next"];
    assert_eq!((&next["action"], &next["in_s"]), (&"pass".into(), &Value::Null), "{plan:#}");
    drop(lab.env.tpu("explain 1").exits(0).says(&["the directory of alice/1 is gone"]));
    lab.env.acknowledge();
    assert_eq!((lab.begun("delete"), lab.begun("create")), (0, 0));
    let counted = &lab.env.job("alice", 1)["extra_msgs"]["recovery"]["capacity"];
    assert_eq!(counted.as_u64().unwrap_or(0), 0, "nothing was tried");
    // Once it is back, so is the job.
    std::fs::rename(lab.env.path("moved-away"), code).unwrap();
    drop(lab.env.tpu("ack").exits(0));
    lab.went_on_once("its directory is back");
    drop(monitor);
}

#[test]
fn of_two_that_were_preempted_on_one_target_one_comes_back_at_its_first_try() {
    let lab = Lab::bare();
    lab.env.code("alice", "staging.sh", &STAGING.replace(">\"$HOME/first\"", ">>\"$HOME/first\""));
    drop(lab.env.tpu("run v2-1 alice rule=pre -q").exits(0));
    lab.env.wait_status(1, "running");
    drop(lab.env.tpu("run v2-1 alice rule=pre -q --force").exits(0));
    lab.env.wait_status(2, "running");
    wait_until("both", || lab.env.wait_file("first").split(|byte| *byte == b'\n').count() == 3);
    let monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    drop(lab.env.tpu("ack").exits(0));
    let leaf = wait_for("a child at work", || {
        let jobs = lab.env.jobs("alice");
        jobs.into_iter()
            .find(|job| job["windows_id"].as_u64() > Some(2) && job["status"] == "running")
    });
    assert_eq!(leaf["extra_msgs"]["recovery"]["capacity"], 1, "{leaf:#}");
    let other = 3 - leaf["extra_msgs"]["father"].as_u64().unwrap();
    drop(lab.env.tpu("ack").exits(0));
    let held = format!("alice/{} uses {TARGET}", leaf["windows_id"]);
    wait_until("the other one waits", || {
        lab.env.tpu(&format!("explain {other}")).exits(0).to_string().contains(&held)
    });
    wait_until("its program", || lab.children() == 1);
    assert_eq!((lab.begun("delete"), lab.begun("create"), lab.children()), (1, 1, 1));
    drop(monitor);
}

#[test]
fn a_cloud_that_is_set_after_monitor_has_begun_is_used() {
    for how in ["set-settings cloud sim alice", "the machine's file"] {
        let mut lab = Lab::new("pre");
        lab.env.unset("TPU_CLOUD");
        let monitor = lab.env.daemon(&[]);
        drop(lab.env.tpu("sim preempt v2-1").exits(0));
        lab.env.acknowledge();
        assert_eq!(lab.env.job("alice", 1)["status"], "running", "nobody can know");
        if how.starts_with("set") {
            drop(lab.env.tpu(how).exits(0));
        } else {
            let dir = lab.env.path("config/tpu");
            std::fs::create_dir_all(&dir).unwrap();
            write_file(&dir.join("settings.json"), r#"{"cloud": "sim"}"#);
            drop(lab.env.tpu("ack").exits(0));
        }
        lab.went_on_once(how);
        drop(monitor);
    }
}

#[test]
fn a_settings_file_that_is_gone_for_a_moment_changes_nothing_and_is_told_of_once() {
    let mut lab = Lab::new("pre");
    let dir = lab.env.path("config/tpu");
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("settings.json");
    write_file(&file, r#"{"cloud": "sim"}"#);
    lab.env.unset("TPU_CLOUD");
    let monitor = lab.env.daemon(&[]);
    std::fs::rename(&file, lab.env.path("settings.json.old")).unwrap();
    let turn = || {
        lab.env.acknowledge();
    };
    turn();
    turn();
    let told =
        || lab.env.tpu("history").exits(0).to_string().matches("settings.json is gone").count();
    assert_eq!(told(), 1);
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    wait_until("the child", || {
        drop(lab.env.tpu("ack").exits(0));
        lab.children() == 1
    });
    std::fs::rename(lab.env.path("settings.json.old"), &file).unwrap();
    lab.went_on_once("the file is back");
    assert_eq!(told(), 1);
    // A change that somebody makes holds, and is told of.
    write_file(&file, r#"{"cloud": "none"}"#);
    turn();
    wait_until("word of the change", || {
        let history = lab.env.tpu("history").exits(0).to_string();
        history.contains("the daemon works with cloud none now, until here with sim")
    });
    drop(monitor);
}

#[test]
fn a_monitor_that_was_started_with_another_cloud_promises_nothing() {
    let lab = Lab::new("pre");
    let monitor = lab.env.daemon(&[("TPU_CLOUD", "none")]);
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    let why = "the daemon works with cloud none and not with sim";
    wait_until("the plan says why nothing happens", || {
        let plan = lab.env.tpu("daemon plan").exits(0).stdout;
        plan.contains("pass: ") && plan.contains(why)
    });
    drop(lab.env.tpu("explain 1").exits(0).says(&[why]));
    drop(
        lab.env
            .tpu("doctor")
            .says(&["the daemon works with cloud none, and this command with sim"]),
    );
    drop(monitor);
}

#[test]
fn without_capacity_it_is_asked_for_again_later_and_not_at_once() {
    let lab = Lab::new("pre");
    let monitor = lab.env.daemon(&[]);
    drop(lab.env.tpu("sim capacity v2-1 --off --times 1").exits(0));
    drop(lab.env.tpu("sim preempt v2-1").exits(0));
    drop(lab.env.tpu("ack").exits(0));
    wait_until("the refusal", || {
        lab.env.tpu("history").exits(0).to_string().contains("not-resumed")
    });
    let plan = lab.env.tpu("daemon plan --json").exits(0).json();
    let next = &plan["jobs"][0]["next"];
    assert_eq!(next["action"], "reapply");
    assert!(next["in_s"].as_u64().unwrap() > 40, "{next}");
    assert_eq!(next["budget_left"], 9_999);
    wait_until("the plan says what came of the last try", || {
        let plan = lab.env.tpu("daemon plan").exits(0).stdout;
        plan.contains("the last try came to nothing")
    });
    assert_eq!(lab.env.jobs("alice").len(), 1);
    drop(monitor);
}
