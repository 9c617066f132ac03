//! A window that a person closes ends its job for good; one that is gone because something killed what ran in it is lost,
//! and its job comes back.

use std::path::Path;

use tpu_system::sys::procs::{self, Process, Signal};

use super::brings_back::{Lab, RECOVERS};
use crate::common::env::{lives, wait_gone};
use crate::common::tmux::write_script;
use crate::common::wait::wait_until;

/// A job under `rule=resume` that has a checkpoint from which it could go on.
fn recoverable(lab: &Lab, name: &str) -> u64 {
    let window = lab.run(&format!("{RECOVERS}sleep 1000"), &[name]);
    lab.env.wait_status(window, "running");
    wait_until("a checkpoint", || {
        let log = lab.env.job("alice", window)["log_dir"].as_str().map(str::to_owned);
        Path::new(&log.unwrap()).join("checkpoint_10").exists()
    });
    window
}

/// A script of the lab's own kind, which runs in the window itself.
fn script(lab: &Lab) -> u64 {
    let work = "tpu upd-log alice:0 \"$HOME\" \"$PWD\" local now\nsleep 1000\n";
    lab.env.code("alice", "staging.sh", work);
    let line = "run local alice rule=resume --json";
    let window = lab.env.tpu(line).exits(0).json()["launched"]["window"].as_u64().unwrap();
    lab.env.wait_status(window, "running");
    window
}

fn pane(lab: &Lab, window: u64) -> String {
    lab.env.pane_id("alice", window).unwrap()
}

/// The process of a pane, which is the launcher.
fn launcher(lab: &Lab, window: u64) -> Process {
    let pane = pane(lab, window);
    let pid = lab.env.tmux().run(&["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    Process::read(pid.trim().parse().unwrap()).unwrap()
}

/// How often the journal says that a job was killed.
fn said_to_be_killed(lab: &Lab, window: u64) -> usize {
    let number = u32::try_from(window).unwrap();
    let is_it = |event: &&tpu_system::store::Event| {
        event.kind == "killed" && event.job.is_some_and(|job| job.0 == number)
    };
    lab.env.journal().iter().filter(is_it).count()
}

#[test]
fn closing_a_window_ends_its_job() {
    let lab = Lab::new();
    let (by_pane, by_window) = (recoverable(&lab, "a"), recoverable(&lab, "b"));
    let (of_script, in_session) = (script(&lab), recoverable(&lab, "c"));
    lab.env.tmux().run(&["new-session", "-d", "-s", "other"]);
    let monitor = lab.env.daemon(&[]);
    lab.env.tmux().run(&["kill-pane", "-t", &pane(&lab, by_pane)]);
    lab.env.tmux().run(&["kill-window", "-t", &pane(&lab, by_window)]);
    lab.env.tmux().run(&["kill-pane", "-t", &pane(&lab, of_script)]);
    for window in [by_pane, by_window, of_script] {
        lab.env.wait_status(window, "killed");
    }
    lab.env.tmux().run(&["kill-session", "-t", "=alice"]);
    lab.env.wait_status(in_session, "killed");
    lab.env.turn();
    for window in [by_pane, by_window, of_script, in_session] {
        let job = lab.env.job("alice", window);
        assert!(job["extra_msgs"]["child"].is_null(), "{job:#}");
        assert!(job["extra_msgs"]["launch"]["ended"].is_string(), "{job:#}");
        assert_eq!(said_to_be_killed(&lab, window), 1);
    }
    drop(lab.env.tpu("check").exits(0).says(&["killed (window closed)"]));
    drop(lab.env.tpu(&format!("explain {by_pane}")).exits(0).says(&["its window was closed"]));
    // A person may want it all the same.
    drop(lab.env.tpu(&format!("resume w={by_pane}")).exits(2).says(&["was killed", "-y"]));
    drop(lab.env.tpu(&format!("resume w={by_pane} --force")).exits(0));
    wait_until("the resume", || lab.children("a").len() == 1);
    drop(monitor);
}

#[test]
fn without_a_daemon_it_is_shown_and_a_command_writes_it_down() {
    let lab = Lab::new();
    let window = recoverable(&lab, "a");
    // A job of another data file has the same user and number.
    let other = Lab::new();
    assert_eq!(recoverable(&other, "a"), window);
    lab.env.tmux().run(&["kill-pane", "-t", &pane(&lab, window)]);
    wait_until("it is shown", || {
        lab.env.tpu("check").exits(0).to_string().contains("killed (window closed)")
    });
    drop(lab.env.tpu("clean").exits(0).says(&["Archived 1 job"]));
}

/// A shell that starts a program loses what it is told between the two.
#[test]
fn a_window_that_is_closed_as_its_command_begins_ends_that() {
    let lab = Lab::new();
    let windows: Vec<u64> = (0..5)
        .map(|_| {
            let window = lab.run("exec sleep 1000", &[]);
            lab.env.wait_status(window, "running");
            lab.env.tmux().run(&["kill-window", "-t", &pane(&lab, window)]);
            window
        })
        .collect();
    wait_until("all have ended", || {
        let said = lab.env.tpu("check").exits(0).to_string();
        said.matches("killed (window closed)").count() >= windows.len()
    });
}

/// The kernel takes the largest process where memory is short, and asks nobody.
#[test]
fn what_was_killed_in_its_window_comes_back() {
    let lab = Lab::new();
    let window = recoverable(&lab, "a");
    let monitor = lab.env.daemon(&[]);
    procs::signal(&launcher(&lab, window), Signal::Kill).unwrap();
    wait_until("the resume", || lab.children("a").len() == 1);
    assert_eq!(lab.env.job("alice", window)["error"], "lost");
    assert_eq!(said_to_be_killed(&lab, window), 0);
    drop(monitor);
}

/// It hears of it as of any hang-up, and tmux has its window still.
#[test]
fn a_hang_up_that_does_not_come_from_tmux_is_no_window_that_was_closed() {
    let lab = Lab::new();
    let window = script(&lab);
    let monitor = lab.env.daemon(&[]);
    procs::signal(&launcher(&lab, window), Signal::HangUp).unwrap();
    let lost = lab.env.wait_status(window, "resumed");
    assert_eq!(lost["error"], "lost");
    drop(monitor);
}

#[test]
fn where_the_machine_shuts_down_nobody_has_closed_a_window() {
    let mut lab = Lab::new();
    let bin = lab.env.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    write_script(&bin.join("systemctl"), "echo stopping; exit 1");
    let path = lab.env.variables()[std::ffi::OsStr::new("PATH")].clone();
    let path =
        std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).unwrap();
    lab.env.set("PATH", path);
    let window = recoverable(&lab, "a");
    let monitor = lab.env.daemon(&[]);
    lab.env.tmux().run(&["kill-pane", "-t", &pane(&lab, window)]);
    wait_until("the resume", || lab.children("a").len() == 1);
    assert_eq!(lab.env.job("alice", window)["error"], "lost");
    drop(monitor);
}

#[test]
fn what_goes_on_without_its_window_is_not_ended_and_is_not_started_again() {
    let lab = Lab::new();
    let stays =
        "trap '' HUP; echo $$ >\"$HOME/pid\"; until [ -e \"$HOME/go\" ]; do sleep 0.3; done; ";
    lab.env.touch("fail-a");
    let window = lab.run(&format!("{stays}{RECOVERS}"), &["a"]);
    let program = lab.env.wait_pid("pid");
    let monitor = lab.env.daemon(&[]);
    lab.env.tmux().run(&["kill-pane", "-t", &pane(&lab, window)]);
    wait_until("its window is gone", || !lab.env.has_window("alice", window));
    lab.env.turn();
    let explained = lab.env.tpu(&format!("explain {window}")).exits(0);
    drop(explained.says(&["running", "its window is gone; it continues here", "tpu kill w="]));
    assert_eq!(lab.env.job("alice", window)["status"], "running");
    assert!(lives(&program), "nobody has ended it");
    lab.env.touch("go");
    lab.env.wait_status(window, "killed");
    assert_eq!(lab.children("a").len(), 0);
    wait_gone(&program);
    drop(monitor);
}
