//! A machine that is unplugged leaves its jobs unknown and is followed on; one that was started anew has lost them,
//! and they come back elsewhere by their rule.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

use super::Lab;

/// Counts up and leaves a checkpoint, on a disk that every machine sees, where it is told.
const TRAINS: &str = "i=0; while :; do i=$((i+1)); echo \"step $i loss 0.5\"; \
                      mkdir \"$TPU_LOG_DIR/.new\"; echo 1 >\"$TPU_LOG_DIR/.new/weights\"; \
                      mv \"$TPU_LOG_DIR/.new\" \"$TPU_LOG_DIR/checkpoint_$i\"; sleep 0.3; done";

fn shown(lab: &Lab, window: u64) -> Value {
    lab.env.tpu(&format!("check alice w={window} --json")).exits(0).json()["jobs"][0].clone()
}

#[test]
fn one_that_is_unplugged_leaves_its_jobs_unknown_and_is_followed_on() {
    let Some(mut lab) = Lab::with(1, "--max-jobs 2") else { return };
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", TRAINS]).exits(0));
    wait_until("it prints", || shown(&lab, 1)["progress"]["step"].as_u64() > Some(1));
    lab.hosts.shut(0);
    wait_until("it is unknown", || {
        let job = shown(&lab, 1);
        assert!(!job["status"].as_str().unwrap().starts_with("error"), "{job}");
        job["unknown"].is_string()
    });
    let before = shown(&lab, 1)["progress"]["step"].as_u64().unwrap_or(0);
    lab.hosts.begin(0);
    wait_until("it is followed on", || {
        let job = shown(&lab, 1);
        job["unknown"].is_null() && job["progress"]["step"].as_u64() > Some(before)
    });
    assert_eq!(shown(&lab, 1)["status"], "running");
    drop(lab.env.tpu("kill 1 -y").exits(0));
}

#[test]
fn one_that_answers_once_and_goes_away_again_is_unknown_again() {
    let Some(mut lab) = Lab::with(1, "--max-jobs 2") else { return };
    // It says nothing more, so that only its machine could tell that it is there.
    let quiet = "echo step 1 loss 0.5; exec sleep 600";
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", quiet]).exits(0));
    wait_until("it prints", || shown(&lab, 1)["progress"]["step"].is_u64());
    for _ in 0..2 {
        lab.hosts.shut(0);
        wait_until("it is unknown", || shown(&lab, 1)["unknown"].is_string());
        lab.hosts.begin(0);
        wait_until("its machine has answered", || {
            let job = shown(&lab, 1);
            assert_eq!(job["error"], Value::Null, "our own words are no sign: {job}");
            job["unknown"].is_null()
        });
    }
    drop(lab.env.tpu("kill 1 -y").exits(0));
}

/// The machine comes back between the question whether it does and the next connection: what says nothing must not be
/// unknown for as long as that connection holds.
#[test]
fn one_that_comes_back_a_moment_after_it_was_asked_is_known_again() {
    let Some(lab) = Lab::new(1) else { return };
    let missed = lab.env.path("missed");
    let way = format!(
        "left=$(cat '{0}' 2>/dev/null || echo 0); [ \"$left\" = 0 ] || {{ echo $((left - 1)) >'{0}.new'; mv '{0}.new' '{0}'; \
         echo no route >&2; exit 1; }}; exec 3<>\"/dev/tcp/$1/$2\"; cat <&3 & cat >&3",
        missed.display()
    );
    let program = lab.env.path("way");
    write_script(&program, &format!("exec bash -c '{}' way \"$@\"", way.replace('\'', "'\\''")));
    let mut options = lab.hosts.options();
    options.extend(["-o".to_owned(), format!("ProxyCommand={} %h %p", program.display())]);
    let settings = json!({ "ssh_options": options, "ssh_key": lab.hosts.path("client") });
    write_file(&lab.env.path("settings.json"), &settings.to_string());
    drop(lab.add("h1 --max-jobs 2").exits(0));
    let quiet = "echo step 1 loss 0.5; exec sleep 600";
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", quiet]).exits(0));
    wait_until("it prints", || shown(&lab, 1)["progress"]["step"].is_u64());
    // One is missed when it looks whether its command is over, and one when it asks whether the machine is back.
    write_file(&missed, "2\n");
    lab.hosts.cut(0);
    wait_until("both are missed", || std::fs::read_to_string(&missed).unwrap().trim() == "0");
    wait_until("it is known again", || shown(&lab, 1)["unknown"].is_null());
    drop(lab.env.tpu("kill 1 -y").exits(0));
}

#[test]
fn what_was_written_of_a_silence_goes_with_the_record_of_its_job() {
    let Some(lab) = Lab::with(1, "--max-jobs 2") else { return };
    drop(lab.env.tpu("run h1 -q -- true").exits(0));
    lab.env.wait_status(1, "finished");
    let job = lab.env.job("alice", 1);
    let token = job["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned();
    // As whoever attended to it leaves it behind when he is killed.
    let silences = lab.env.path("tpu-state/silences");
    std::fs::create_dir_all(&silences).unwrap();
    for name in [format!("{token}.0"), format!("{token}.12"), format!("{token}x.0")] {
        write_file(&silences.join(name), "2026-01-01T00:00:00Z no route to host\n");
    }
    drop(lab.env.tpu("clean 1 -y").exits(0));
    let left: Vec<_> =
        std::fs::read_dir(&silences).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, [format!("{token}x.0").as_str()], "another launch's stays");
}

#[test]
fn nor_does_one_that_says_nothing_more_lose_them() {
    let Some(lab) = Lab::with(1, "--max-jobs 2") else { return };
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", TRAINS]).exits(0));
    wait_until("it prints", || shown(&lab, 1)["progress"]["step"].as_u64() > Some(1));
    lab.hosts.freeze(0, true);
    let mut last = 0;
    // As long as its connection stands it is a job that prints nothing.
    wait_until("it is unknown", || {
        let job = shown(&lab, 1);
        assert_eq!(job["error"], Value::Null, "{job}");
        last = job["progress"]["step"].as_u64().unwrap_or(0);
        job["unknown"].is_string()
    });
    lab.hosts.freeze(0, false);
    wait_until("it is followed on", || {
        let job = shown(&lab, 1);
        job["unknown"].is_null() && job["progress"]["step"].as_u64() > Some(last)
    });
    drop(lab.env.tpu("kill 1 -y").exits(0));
}

#[test]
fn nor_does_one_whose_cable_is_pulled_and_others_are_taken_until_it_is_back() {
    let Some(lab) = Lab::wired(2, "--max-jobs 3") else { return };
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", TRAINS]).exits(0));
    wait_until("it prints", || shown(&lab, 1)["progress"]["step"].as_u64() > Some(1));
    lab.hosts.pull_cable(0);
    let mut last = 0;
    wait_until("it is unknown", || {
        let job = shown(&lab, 1);
        assert_eq!(job["error"], Value::Null, "{job}");
        last = job["progress"]["step"].as_u64().unwrap_or(0);
        job["unknown"].is_string()
    });
    let said = lab.env.tpu("run h[1-2] -q --json -- sleep 1000").exits(0);
    assert_eq!(said.json()["launched"]["target"], "h2", "{}", said.report());
    assert!(said.stderr.contains("h1: "), "{}", said.report());
    drop(lab.env.tpu("run h1 -q -- true").exits(6).says(&["h1 cannot be used now"]));
    // Nobody knows what is left there of the place that it takes.
    assert_eq!(lab.host("h1")["jobs"][0]["job"], "alice/1");
    lab.hosts.put_cable_back(0);
    wait_until("it is followed on", || {
        let job = shown(&lab, 1);
        job["unknown"].is_null() && job["progress"]["step"].as_u64() > Some(last)
    });
    drop(lab.env.tpu("kill 1,2 -y").exits(0));
}

#[test]
fn one_that_ends_what_runs_before_it_goes_down_has_lost_it_all_the_same() {
    let Some(mut lab) = Lab::with(1, "--max-jobs 2") else { return };
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", TRAINS]).exits(0));
    // It ends by itself, while nobody can hear it.
    let ends = "echo step 1 loss 0.5; until [ -e \"$TPU_LOG_DIR/go\" ]; do sleep 0.4; done; exit 7";
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", ends]).exits(0));
    for window in [1, 2] {
        wait_until("it prints", || shown(&lab, window)["progress"]["step"].is_u64());
    }
    lab.hosts.shut(0);
    let job = lab.env.job("alice", 2);
    let go = Path::new(job["log_dir"].as_str().unwrap()).join("go");
    write_file(&go, "");
    let token = job["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned();
    let exit = lab.hosts.home(0).join(format!(".tpu/runs/{token}.0/exit"));
    wait_until("its end is written down", || exit.is_file());
    lab.hosts.shut_down(0);
    for (window, error) in [(1, json!("lost")), (2, json!("unknown"))] {
        wait_until("its end is known", || shown(&lab, window)["status"] == "error");
        let job = shown(&lab, window);
        assert_eq!(job["error"], error, "{job}");
    }
}

#[test]
fn one_that_was_started_anew_has_lost_its_jobs() {
    let Some(mut lab) = Lab::with(2, "--max-jobs 2") else { return };
    drop(lab.env.tpu_words(&["run", "h1", "-q", "--", "sh", "-c", TRAINS]).exits(0));
    wait_until("it prints", || shown(&lab, 1)["progress"]["step"].as_u64() > Some(1));
    lab.hosts.reboot(0);
    wait_until("it is lost", || {
        let job = shown(&lab, 1);
        job["status"] == "error" && job["error"] == "lost"
    });
    let job = shown(&lab, 1);
    assert_eq!(job["evidence"]["rule"], "host.restarted", "{job}");
    // The machines share a disk: it goes on from its checkpoint on another one.
    drop(lab.env.tpu("resume 1 tpu=h2").exits(0));
    wait_until("it goes on", || shown(&lab, 2)["progress"]["step"].as_u64() > Some(1));
    let next = lab.env.job("alice", 2);
    assert_eq!((&next["tpu"], &next["stage"]), (&json!("h2"), &json!(1)), "{next}");
    drop(lab.env.tpu("kill 2 -y").exits(0));
}

/// The memory of its machine was short, or somebody has ended all that he saw: nobody has written down how it ended.
#[test]
fn what_is_killed_there_with_all_that_attends_to_it_is_lost_and_comes_back() {
    let Some(lab) = Lab::with(1, "--max-jobs 2") else { return };
    let words = ["run", "h1", "-q", "rule=pre", "--", "sh", "-c", TRAINS];
    drop(lab.env.tpu_words(&words).exits(0));
    wait_until("it prints", || shown(&lab, 1)["progress"]["step"].as_u64() > Some(1));
    let daemon = lab.env.start_tpu("daemon run", &[]);
    let token = lab.env.job("alice", 1)["extra_msgs"]["launch"]["token"].clone();
    let run = lab.hosts.home(0).join(format!(".tpu/runs/{}.0", token.as_str().unwrap()));
    let guard = std::fs::read_to_string(run.join("guard")).unwrap();
    let group = Pid::from_raw(guard.split(' ').next().unwrap().parse().unwrap()).unwrap();
    kill_process_group(group, Signal::KILL).unwrap();
    let lost = lab.env.wait_status(1, "resumed");
    assert_eq!(lost["error"], "lost", "{lost:#}");
    wait_until("it goes on", || shown(&lab, 2)["progress"]["step"].as_u64() > Some(1));
    assert_eq!(lab.env.job("alice", 2)["stage"], 1);
    daemon.kill();
    drop(lab.env.tpu("kill 2 -y").exits(0));
}
