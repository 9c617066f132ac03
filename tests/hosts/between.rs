//! Between the choice of a machine and the start there: whoever has chosen is killed, the machine goes, or somebody
//! changes how one is chosen. Each job begins once, on a machine that takes it then.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::wait::wait_until;

use super::Lab;

/// Says that it has begun, in a file, and goes on.
const COUNTS: &str = "echo $TPU_JOB >>\"$1\"; echo step 1 loss 0.5; exec sleep 1000";

fn shown(lab: &Lab, window: u64) -> Value {
    lab.env.tpu(&format!("check alice w={window} --json")).exits(0).json()["jobs"][0].clone()
}

fn starts(lab: &Lab) -> usize {
    let text = std::fs::read_to_string(lab.env.path("starts")).unwrap_or_default();
    text.lines().count()
}

/// Starts the job that counts its starts, on one of some machines.
fn run(lab: &Lab, words: &str) {
    let place = lab.env.path("starts");
    let script = ["-q", "--", "bash", "-c", COUNTS, "job", place.to_str().unwrap()];
    let words: Vec<&str> = words.split(' ').chain(script).collect();
    drop(lab.env.tpu_words(&words).exits(0));
}

#[test]
fn a_monitor_that_is_killed_after_its_search_has_it_made_again() {
    let Some(mut lab) = Lab::with(3, "--max-jobs 2") else { return };
    run(&lab, "run h[1-3] rule=rerun");
    wait_until("it runs", || starts(&lab) == 1);
    lab.hosts.reboot(0);
    wait_until("it is lost", || shown(&lab, 1)["error"] == "lost");
    let monitor = lab.env.start_tpu("daemon run", &[("FAILPOINTS", "resume-leased=pause")]);
    wait_until("it has chosen, and may begin", || {
        lab.env.job("alice", 1)["extra_msgs"]["lease"].is_object()
    });
    monitor.kill();
    assert_eq!(lab.env.jobs("alice").len(), 1);
    // The one that it would have been, first of those with room.
    drop(lab.env.tpu("hosts drain h2").exits(0));
    let monitor = lab.env.start_tpu("daemon run", &[]);
    wait_until("it is back", || starts(&lab) == 2);
    assert_eq!(lab.env.job("alice", 2)["tpu"], "h3");
    assert_eq!((lab.env.jobs("alice").len(), starts(&lab)), (2, 2));
    monitor.kill();
    drop(lab.env.tpu("kill 2 -y").exits(0));
}

/// Takes a machine away between its last answer to whoever starts a job there, and the window of that job.
fn loses(lab: &mut Lab, line: &str) {
    let mut running = lab.env.start_at_points(line, "launch-written=sleep(6000)");
    let _written = lab.env.wait_file("tpu-state/jobs/alice/1/launcher.sh");
    let pid = Pid::from_child(&running);
    kill_process(pid, Signal::STOP).unwrap();
    lab.hosts.shut(0);
    kill_process(pid, Signal::CONT).unwrap();
    assert!(running.wait().unwrap().success(), "its window is here");
}

#[test]
fn what_was_to_begin_on_a_machine_that_is_gone_has_not_begun_and_says_why() {
    let Some(mut lab) = Lab::with(1, "--max-jobs 2 --gpus 4") else { return };
    lab.env.code("alice", "count.sh", COUNTS);
    let place = lab.env.path("starts");
    let line = format!("run h1 gpus=1 rule=pre -q -- bash count.sh {}", place.display());
    loses(&mut lab, &line);
    let job = lab.env.wait_status(1, "error");
    assert_eq!(job["error"], "launch", "{job:#}");
    drop(lab.env.tpu("explain 1").exits(0).says(&["Connection refused"]));
    // Nothing of it comes when the machine does.
    lab.hosts.begin(0);
    drop(lab.env.tpu(&format!("run h1 gpus=4 -q -- bash count.sh {}", place.display())).exits(0));
    wait_until("the next one runs", || starts(&lab) == 1);
    assert_eq!(std::fs::read_to_string(&place).unwrap(), "alice/2\n");
    drop(lab.env.tpu("kill 2 -y").exits(0));
}

#[test]
fn what_waited_for_a_machine_that_is_gone_begins_on_another_one_and_once() {
    let Some(mut lab) = Lab::with(2, "--max-jobs 1") else { return };
    lab.env.code("alice", "count.sh", COUNTS);
    drop(lab.env.tpu("queue pause default").exits(0));
    let place = lab.env.path("starts");
    let line = format!("submit h[1-2] -- bash count.sh {}", place.display());
    drop(lab.env.tpu(&line).exits(0));
    loses(&mut lab, "queue resume default");
    wait_until("it runs on the other one", || starts(&lab) == 1);
    let jobs = lab.env.jobs("alice");
    assert_eq!((jobs.len(), lab.env.queued()), (1, 0), "{jobs:#?}");
    assert_eq!(jobs[0]["tpu"], "h2");
    let number = jobs[0]["windows_id"].as_u64().unwrap();
    let windows = || lab.env.windows("alice");
    wait_until("the window is closed in which it did not begin", || {
        windows().iter().all(|window| *window == 0 || *window == number)
    });
    drop(lab.env.tpu(&format!("kill {number} -y")).exits(0));
}

#[test]
fn a_policy_that_is_set_while_somebody_waits_holds_for_him_unless_he_has_named_one() {
    let Some(lab) = Lab::with(2, "--max-jobs 1 --gpus 4") else { return };
    drop(lab.env.tpu("run h1 gpus=1 -q -- sleep 1000").exits(0));
    drop(lab.env.tpu("run h2 gpus=2 -q -- sleep 1000").exits(0));
    let waits = |more: &str, count: usize| {
        let line = format!("run h[1-2] gpus=1 --wait {more} -q -- sleep 1000");
        let waiting = lab.env.start_tpu(&line, &[]);
        let in_line = || lab.env.queued();
        wait_until("it waits", || in_line() == count);
        waiting
    };
    let (by_setting, by_name) = (waits("--name set", 1), waits("--name typed --policy smart", 2));
    drop(lab.env.tpu("set-settings policy frugal").exits(0));
    // Room on both of them at once: 3 GPUs are free on h1, and 2 on h2.
    drop(lab.env.tpu("hosts set h[1-2] --max-jobs 2").exits(0));
    assert_eq!((by_setting.wait(), by_name.wait()), (0, 0));
    let jobs = lab.env.jobs("alice");
    let on = |name: &str| {
        let job = jobs.iter().find(|job| job["extra_msgs"]["spec"]["name"] == name);
        job.unwrap_or_else(|| panic!("{name}: {jobs:#?}"))["tpu"].clone()
    };
    assert_eq!((on("set"), on("typed")), (json!("h2"), json!("h1")));
}
