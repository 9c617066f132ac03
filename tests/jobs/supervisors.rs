//! Whatever attends to a command, it keeps one contract: the launcher in a window of this machine, the guard on a
//! worker of the simulated fleet, and that on a real host behind sshd.

use serde_json::{Value, json};

use crate::common::env::{TestEnv, lives};
use crate::common::sshd::{Hosts, is_installed};
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

/// A lab with a target for each supervisor.
struct Lab {
    env: TestEnv,
    targets: Vec<&'static str>,
    _hosts: Option<Hosts>,
}

impl Lab {
    fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        env.set("TPU_CLOUD", "sim");
        drop(env.tpu("sim list").exits(0));
        let mut targets = vec!["local", "lab-tpuvm-v2-32-1"];
        let hosts = is_installed().then(|| Hosts::new(1));
        if let Some(hosts) = &hosts {
            let key = hosts.path("client");
            let settings = json!({ "ssh_options": hosts.options(), "ssh_key": key });
            write_file(&env.path("settings.json"), &settings.to_string());
            env.set("TPU_SETTINGS", env.path("settings.json"));
            let address = hosts.addresses().join(",");
            drop(env.tpu(&format!("register lab-host --address {address}")).exits(0));
            targets.push("lab-host");
        }
        Self { env, targets, _hosts: hosts }
    }

    /// Runs a bash script with one word on each target, with `$AT` as the beginning of the names of its own files;
    /// only the first worker of a target does anything.
    fn run(&self, script: &str, word: &str) -> Vec<(u64, &'static str)> {
        let start = |(number, target): (u64, &&'static str)| {
            let at = self.env.path(&format!("{target}-"));
            let script =
                format!("[ \"$TPU_WORKER\" = 0 ] || exit 0; AT='{}'; {script}", at.display());
            let words = ["run", target, "alice", "-q", "--", "bash", "-c", &script, "x", word];
            drop(self.env.tpu_words(&words).exits(0));
            (number, *target)
        };
        (1..).zip(&self.targets).map(start).collect()
    }

    fn said(&self, target: &str, what: &str) -> String {
        let bytes = self.env.wait_file(&format!("{target}-{what}"));
        String::from_utf8(bytes).unwrap()
    }

    fn ended(&self, window: u64) -> Value {
        wait_until("its end", || self.env.job("alice", window)["status"] != "running");
        self.env.job("alice", window)
    }
}

#[test]
fn a_command_is_told_who_and_where_it_is_and_its_code_is_kept() {
    let lab = Lab::new();
    let word = "two words, 'quotes', $HOME, `id`, \\, ü";
    let told = "printf '%s|' \"$1\" \"$PWD\" \"$TPU_STAGE_DIR\" \"$TPU_LOG_DIR\" \"$TPU_JOB\" \
                \"$TPU_TARGET\" \"$PYTHONUNBUFFERED\" \"${TPU_LAUNCH:+marked}\" >\"${AT}new\"; \
                mv \"${AT}new\" \"${AT}told\"; exit 5";
    for (window, target) in lab.run(told, word) {
        let job = lab.env.wait_status(window, "error");
        assert_eq!(job["extra_msgs"]["launch"]["exit"], 5, "{target}: {job}");
        let text = |name: &str| job[name].as_str().unwrap().to_owned();
        let (stage, log) = (text("stage_dir"), text("log_dir"));
        let told = format!("{word}|{stage}|{stage}|{log}|alice/{window}|{target}|1|marked|");
        assert_eq!(lab.said(target, "told"), told);
    }
}

#[test]
fn what_it_prints_is_kept_to_the_last_word_and_a_signal_is_its_end() {
    let lab = Lab::new();
    let prints = "echo out; echo err >&2; echo; printf 'no end of a line'; kill -9 $$";
    for (window, target) in lab.run(prints, "") {
        let job = lab.env.wait_status(window, "error");
        assert_eq!(job["extra_msgs"]["launch"]["exit"], 137, "{target}: {job}");
        let printed = lab.env.tpu(&format!("logs {window} alice --worker 0")).exits(0).stdout;
        assert_eq!(printed, "out\nerr\n\nno end of a line\n", "{target}");
    }
    // Words of its own that a shell has as well: a code, and a program that is not there.
    for (command, code) in [("exit 254", 254), ("exec no-such-program", 127)] {
        for target in &lab.targets {
            let words = ["run", target, "alice", "--json", "--", "sh", "-c", command];
            let ran = lab.env.tpu_words(&words).exits(0).json();
            let window = ran["launched"]["window"].as_u64().unwrap();
            let job = lab.env.wait_status(window, "error");
            assert_eq!(job["extra_msgs"]["launch"]["exit"], code, "{target}: {job}");
            let printed = lab.env.tpu(&format!("logs {window} alice")).exits(0).stdout;
            assert!(!printed.contains("launcher.sh") && !printed.contains("tpu: no process"));
        }
    }
}

#[test]
fn it_is_asked_to_end_before_it_is_made_to_and_takes_all_of_its_own_along() {
    let lab = Lab::new();
    let stays = "setsid env -i sleep 1000 & echo $! >\"${AT}child\"; \
                 trap 'echo bye >\"${AT}last\"; exit 7' INT; echo $$ >\"${AT}pid\"; \
                 until [ -e \"${AT}go\" ]; do sleep 0.4; done";
    for (window, target) in lab.run(stays, "") {
        let program = lab.env.wait_pid(&format!("{target}-pid"));
        let child = lab.env.wait_pid(&format!("{target}-child"));
        drop(lab.env.tpu(&format!("kill w={window} alice -y")).exits(0));
        assert_eq!(lab.said(target, "last"), "bye\n");
        assert!(!lives(&program) && !lives(&child), "{target}");
        assert_eq!(lab.ended(window)["status"], "killed");
    }
}
