//! What people do with the monitor beyond its daily keys, in a real terminal: the form, the command line,
//! going to a window and back, the mouse, pasting.

use crate::common::env::{STEPS, TPU, TestEnv};
use crate::common::terminal::Terminal;

fn monitor(env: &TestEnv) -> Terminal {
    let terminal = Terminal::new(env);
    terminal.command(&format!("clear; {TPU} monitor alice; echo code-$?"));
    terminal.shows("[1 Jobs]");
    terminal
}

#[test]
fn a_run_is_described_planned_and_started() {
    let env = TestEnv::new();
    let terminal = monitor(&env);
    terminal.shows("alice has no jobs");
    terminal.press("n");
    terminal.shows("New run of alice");
    terminal.types("loca");
    // What a field may be filled with is read while somebody types already: here it is proposed.
    terminal.shows("      local  ");
    terminal.keys("Tab Tab");
    terminal.types("lr");
    terminal.shows("config.training.learning_rate");
    terminal.press("Down");
    terminal.shows("▸ lr");
    terminal.press("Enter");
    terminal.types("0.5");
    terminal.keys("Tab Tab Tab");
    // It is given what was typed above as well.
    terminal.types("bash -c 'exec sleep 1000'");
    terminal.press("Enter");
    terminal.shows("plan: Enter starts it");
    terminal.shows("--config.training.learning_rate=0.5");
    assert_eq!(env.jobs("alice").len(), 0, "a plan starts nothing");
    terminal.resize((80, 24));
    terminal.shows("plan: Enter starts it");
    terminal.press("Enter");
    terminal.until("the run is there", || env.jobs("alice").len() == 1);
    env.wait_status(1, "running");
    terminal.shows("▸ 1");
    assert_eq!(env.job("alice", 1)["extra_configs"], "--config.training.learning_rate=0.5");
}

#[test]
fn rules_reruns_explanations_and_any_command_by_key() {
    let env = TestEnv::new();
    let window = env.start(STEPS, &[] as &[&str]);
    env.wait_status(window, "running");
    let terminal = monitor(&env);
    terminal.shows("▸ 1");
    terminal.press("u");
    terminal.shows("What happens by itself when alice/1 (");
    terminal.resize((80, 24));
    terminal.keys("Down Down Down Enter");
    terminal.until("the rule is stored", || env.job("alice", 1)["rules"]["grpc"] == "resume");

    env.touch("data.json.stop");
    env.wait_status(1, "error");
    std::fs::remove_file(env.path("data.json.stop")).unwrap();
    terminal.shows("error: unknown");
    terminal.press("e");
    terminal.shows("Why alice/1 is as it is");
    terminal.shows("exit code: 3");
    terminal.press("Escape");
    terminal.press("p");
    terminal.shows("What would … do? alice/1");
    terminal.press("Enter");
    terminal.shows("What resume would do");
    terminal.shows("parent     1 (resume)");
    terminal.press("Escape");
    terminal.hides("What resume would do");
    terminal.press("R");
    terminal.shows("Start 1 job again from scratch?");
    terminal.press("y");
    terminal.until("there is a child", || env.jobs("alice").len() == 2);
    env.wait_status(2, "running");
    terminal.shows("2 +1");

    terminal.press(":");
    terminal.types("add-tag 2 by-command");
    terminal.press("Enter");
    terminal.until("the tag is stored", || env.job("alice", 2)["job_tags"] == "by-command");
    terminal.press(":");
    terminal.types("kill 2");
    terminal.press("Enter");
    terminal.shows("Would kill alice/2");
    terminal.press("y");
    env.wait_status(2, "killed");
    // The journal has it all.
    terminal.press("4");
    terminal.shows("[4 Events]");
    terminal.shows("killed");
    terminal.press("/");
    terminal.types("tag");
    terminal.press("Enter");
    terminal.shows("by-command");
    terminal.shows("· /tag");
    // Two that come together are one.
    terminal.press("Escape");
    terminal.hides("· /tag");
    terminal.shows("rerun");
    terminal.press("Escape");
    terminal.shows("[1 Jobs]");
    terminal.press(":");
    terminal.types("q");
    terminal.press("Enter");
    terminal.shows("code-0");
}

#[test]
fn the_daemon_is_started_and_ended_by_key() {
    let env = TestEnv::new();
    let window = env.start(STEPS, &[] as &[&str]);
    env.wait_status(window, "running");
    let terminal = monitor(&env);
    terminal.shows("▸ 1");
    terminal.press("D");
    terminal.shows("The daemon runs: process");
    terminal.hides("○ off");
    terminal.press("D");
    terminal.shows("End the daemon?");
    terminal.press("y");
    terminal.shows("The daemon has stopped");
    drop(env.tpu("daemon status").exits(1));
}

#[test]
fn to_the_window_and_back() {
    let env = TestEnv::new();
    let window = env.start(STEPS, &[] as &[&str]);
    env.wait_status(window, "running");
    let terminal = monitor(&env);
    terminal.shows("▸ 1");
    terminal.press("a");
    // The job's own tmux has a status line with the session's name.
    terminal.shows("[alice]");
    terminal.keys("C-b d");
    terminal.shows("[1 Jobs]");
    terminal.hides("[alice]");
    terminal.press("?");
    terminal.shows("Keys in the list");
    terminal.keys("Escape q");
    terminal.shows("code-0");
}

#[test]
fn the_mouse_clicks_scrolls_and_is_released() {
    let env = TestEnv::new();
    for _ in 0..9 {
        env.start("echo started; exec sleep 1000", &[] as &[&str]);
    }
    let terminal = monitor(&env);
    terminal.shows("▸ 1");
    let (x, y) = terminal.place("▸ 1");
    terminal.mouse(0, (x + 3, y + 2), 'M');
    terminal.mouse(0, (x + 3, y + 2), 'm');
    terminal.shows("▸ 3");
    // Wheel down: three rows for each notch.
    terminal.mouse(65, (x + 3, y), 'M');
    terminal.shows("▸ 6");
    terminal.mouse(64, (x + 3, y), 'M');
    terminal.shows("▸ 3");
    let (x, y) = terminal.place("2 Targets");
    terminal.mouse(0, (x, y), 'M');
    terminal.shows("[2 Targets]");
    terminal.press("m");
    terminal.shows("mouse free");
    let flag = terminal.tmux.run(&["display-message", "-p", "-t", "person", "#{mouse_any_flag}"]);
    assert_eq!(flag, "0");
    terminal.press("m");
    terminal.hides("mouse free");
}

#[test]
fn what_is_pasted_is_never_a_command() {
    let env = TestEnv::new();
    let window = env.start("exec sleep 1000", &[] as &[&str]);
    env.wait_status(window, "running");
    let terminal = monitor(&env);
    terminal.shows("▸ 1");
    // Ten kilobytes of what would be keys: quit, kill, yes; and a sign that no name has, be it as random as that of this lab.
    let keys = "q\nx\ny\nR\nc\n~\n".repeat(850);
    terminal.pastes(&keys);
    terminal.press("/");
    terminal.shows("filter:");
    terminal.pastes(&keys);
    terminal.shows("No job matches");
    terminal.press("Escape");
    terminal.hides("No job matches");
    terminal.press("?");
    terminal.shows("Keys in the list");
    assert_eq!(env.job("alice", 1)["status"], "running");
    assert_eq!(env.jobs("alice").len(), 1);
}
