//! What was lost with its machine comes back by its rule, once: on another machine that is as good and sees its
//! checkpoint; where none does, on its own; and where that may not be either, it is told why.

use serde_json::{Value, json};

use crate::common::env::Running;
use crate::common::wait::{wait_for, wait_until};

use super::Lab;

/// Says from where it goes on, counts up and leaves checkpoints.
const TRAINS: &str = "mkdir -p \"$TPU_LOG_DIR\"; echo \"from: $*\"; i=0; while :; do i=$((i+1)); \
                      echo \"step $i loss 0.5\"; mkdir \"$TPU_LOG_DIR/.new\"; echo 1 >\"$TPU_LOG_DIR/.new/weights\"; \
                      mv \"$TPU_LOG_DIR/.new\" \"$TPU_LOG_DIR/checkpoint_$i\"; sleep 0.3; done";

struct Lost {
    lab: Lab,
    monitor: Running,
}

impl Lost {
    /// Three machines, two of them in one pool, with the daemon; each with disks of its own where that is said.
    fn new(has_disks: bool) -> Option<Self> {
        let mut lab = Lab::with(3, "--max-jobs 2")?;
        if has_disks {
            let state = lab.env.path("tpu-state");
            lab.hosts.give_disks(&state);
        }
        drop(lab.env.tpu("hosts set h[1-2] --pool lab").exits(0));
        let monitor = lab.env.start_tpu("daemon run", &[]);
        wait_until("the daemon's first turn", || lab.env.tpu("daemon status").code == 0);
        Some(Self { lab, monitor })
    }

    /// A job on a machine, or on one of several, that has left checkpoints.
    fn run(&self, on: &str) {
        self.run_by(on, "rule=resume");
    }

    fn run_by(&self, on: &str, rule: &str) {
        let words = ["run", on, rule, "-q", "--", "bash", "-c", TRAINS, "train"];
        drop(self.lab.env.tpu_words(&words).exits(0));
        wait_until("it has come somewhere", || self.step(1) > Some(1));
    }

    fn shown(&self, window: u64) -> Value {
        let shown = self.lab.env.tpu(&format!("check alice w={window} --json")).exits(0);
        shown.json()["jobs"][0].clone()
    }

    fn step(&self, window: u64) -> Option<u64> {
        self.shown(window)["progress"]["step"].as_u64()
    }

    /// The attempt that goes on for the first, once it runs.
    fn successor(&self) -> Value {
        wait_until("it is back", || {
            self.lab.env.jobs("alice").len() == 2 && self.step(2) > Some(1)
        });
        self.lab.env.job("alice", 2)
    }

    fn says(&self, window: u64) -> String {
        self.lab.env.tpu(&format!("logs {window}")).exits(0).stdout
    }

    fn end(self) {
        self.monitor.kill();
        drop(self.lab.env.tpu("kill --all -y"));
    }
}

#[test]
fn on_another_machine_of_its_pool_from_the_checkpoint_that_both_see() {
    let Some(mut lost) = Lost::new(false) else { return };
    lost.run("h1");
    let logs = lost.lab.env.job("alice", 1)["log_dir"].as_str().unwrap().to_owned();
    lost.lab.hosts.reboot(0);
    let next = lost.successor();
    assert_eq!((&next["tpu"], &next["stage"]), (&json!("h2"), &json!(1)), "{next}");
    let from = format!("--config.load_from={logs}");
    assert!(lost.says(2).contains(&from), "{}", lost.says(2));
    let explained = lost.lab.env.tpu("explain 2").exits(0);
    drop(explained.says(&["lost with h1; 2 of 2 places free, the only one with room"]));
    assert_eq!(lost.lab.env.job("alice", 1)["error"], "lost");
    lost.end();
}

#[test]
fn on_one_of_those_among_which_its_own_was_chosen() {
    let Some(mut lost) = Lost::new(false) else { return };
    // h1 is listed first, and h2 of its pool is none of those.
    lost.run("h1,h3");
    lost.lab.hosts.reboot(0);
    assert_eq!(lost.successor()["tpu"], "h3");
    lost.end();
}

#[test]
fn on_another_machine_although_somebody_else_has_taken_its_own_since() {
    let Some(lost) = Lost::new(false) else { return };
    lost.run("h1");
    // A word that names a pool cannot become that of a target, and the other way round.
    drop(lost.lab.env.tpu("register lab --address nowhere").exits(4).says(&["pool"]));
    drop(lost.lab.env.tpu("hosts set h1 --pool h2").exits(2).says(&["it is the target h2"]));
    let Lost { mut lab, monitor } = lost;
    monitor.kill();
    lab.hosts.reboot(0);
    wait_until("it is lost", || {
        lab.env.tpu("check alice w=1 --json").exits(0).json()["jobs"][0]["error"] == "lost"
    });
    for _ in 0..2 {
        drop(lab.env.tpu("run h1 bob --force -q -- sleep 600").exits(0));
    }
    let monitor = lab.env.start_tpu("daemon run", &[]);
    let lost = Lost { lab, monitor };
    assert_eq!(lost.successor()["tpu"], "h2");
    lost.end();
}

#[test]
fn on_its_own_machine_where_no_other_one_sees_its_checkpoint() {
    let Some(mut lost) = Lost::new(true) else { return };
    lost.run("h1");
    let logs = lost.lab.env.job("alice", 1)["log_dir"].as_str().unwrap().to_owned();
    lost.lab.hosts.reboot(0);
    let next = lost.successor();
    assert_eq!(next["tpu"], "h1", "{next}");
    let from = format!("--config.load_from={logs}");
    assert!(lost.says(2).contains(&from), "{}", lost.says(2));
    lost.end();
}

#[test]
fn nothing_begins_anew_while_the_disk_of_its_logs_is_not_there() {
    let Some(mut lost) = Lost::new(true) else { return };
    lost.run("h1");
    // Its machine comes back without the disk.
    let disk = lost.lab.hosts.home(0).join("disk");
    let away = lost.lab.hosts.home(0).join("away");
    lost.lab.hosts.kill(0);
    std::fs::rename(&disk, &away).unwrap();
    lost.lab.hosts.reboot(0);
    wait_until("the daemon waits for it", || {
        let tried = lost.lab.env.tpu("resume 1 --yes");
        tried.code == 6 && tried.stderr.contains("what was logged there is not to be seen")
    });
    assert_eq!(lost.lab.env.jobs("alice").len(), 1);
    // With it, it goes on from there.
    lost.lab.hosts.kill(0);
    std::fs::remove_dir_all(&disk).unwrap();
    std::fs::rename(&away, &disk).unwrap();
    lost.lab.hosts.begin(0);
    assert_eq!(lost.successor()["tpu"], "h1");
    assert!(lost.says(2).contains("--config.load_from="), "{}", lost.says(2));
    lost.end();
}

#[test]
fn nobody_who_asks_for_it_by_hand_loses_it_either() {
    let Some(mut lost) = Lost::new(true) else { return };
    lost.run_by("h1", "rule=pass");
    lost.lab.hosts.reboot(0);
    wait_until("it is lost", || lost.shown(1)["error"] == "lost");
    let refused = lost.lab.env.tpu("resume 1 tpu=h2 --yes").exits(4);
    drop(refused.says(&["h2 does not see", "tpu rerun w=1 alice tpu=h2"]));
    lost.lab.hosts.shut(0);
    let unknown = lost.lab.env.tpu("resume 1 tpu=h2 --yes").exits(6);
    drop(unknown.says(&["whether alice/1 has a checkpoint is unknown", "tpu rerun w=1 alice"]));
    lost.lab.hosts.begin(0);
    drop(lost.lab.env.tpu("resume 1 --yes").exits(0).says(&["h1 has it on a disk of its own"]));
    assert_eq!(lost.successor()["tpu"], "h1");
    lost.end();
}

#[test]
fn nowhere_where_its_own_is_closed_and_no_other_sees_its_checkpoint_and_that_is_told() {
    let Some(mut lost) = Lost::new(true) else { return };
    lost.run("h1");
    drop(lost.lab.env.tpu("hosts drain h1 --why smoke").exits(0));
    lost.lab.hosts.reboot(0);
    let why = wait_for("the daemon has tried", || {
        let said = lost.lab.env.tpu("-Ml").exits(0).stdout;
        said.contains("not-resumed").then_some(said)
    });
    assert!(why.contains("h1 takes no new jobs: drained by"), "{why}");
    assert!(why.contains("nor on another one (h2: it does not see"), "{why}");
    assert_eq!(lost.lab.env.jobs("alice").len(), 1);
    lost.end();
}
