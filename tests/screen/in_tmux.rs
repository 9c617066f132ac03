//! The real monitor in a real terminal: keys are typed, the screen is read. The terminal is a window of a
//! second private tmux server, so that the jobs' own server is only what the jobs need.

use crate::common::env::{STEPS, TPU, TestEnv, lives, wait_gone};
use crate::common::terminal::Terminal;

#[test]
fn run_opens_the_monitor_on_the_new_job_unless_it_is_told_not_to() {
    let env = TestEnv::new();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} run local alice -- sleep 1000"));
    terminal.shows("r resume");
    terminal.shows("▸ 1");
    terminal.press("q");
    terminal.prompts();
    assert!(env.has_window("alice", 1), "leaving the screen ends no job");

    terminal.command(&format!("clear; {TPU} run local alice -q -- sleep 1000"));
    terminal.shows("Started alice/2");
    env.tpu("set-settings monitor_after_run False alice").exits(0);
    terminal.command(&format!("clear; {TPU} run local alice -- sleep 1000"));
    terminal.shows("Started alice/3");
    assert!(!terminal.screen().contains("r resume"));
}

#[test]
fn a_day_with_keys() {
    let env = TestEnv::new();
    let window = env.start(STEPS, &[] as &[&str]);
    let victim = env.wait_pid("data.json.pid");
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} monitor alice"));
    terminal.shows("running");
    terminal.shows("loss 0.5");

    // Esc first: nothing happens. Then for real.
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("Escape");
    terminal.hides("Stop 1 job?");
    assert!(lives(&victim));
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    wait_gone(&victim);
    env.wait_status(window, "killed");
    terminal.shows("killed");

    // Another one fails by itself and is resumed by a key; the parent folds under its child.
    let second = env.start(STEPS, &[] as &[&str]);
    let log = env.wait_status(second, "running")["log_dir"].as_str().unwrap().to_owned();
    let first = std::path::Path::new(&log).join("checkpoints/step_1");
    terminal.until("there is something to resume from", || first.is_file());
    terminal.shows("▸");
    env.touch("data.json.stop");
    env.wait_status(second, "error");
    std::fs::remove_file(env.path("data.json.stop")).unwrap();
    terminal.shows("error: unknown");
    terminal.press("G");
    terminal.shows("▸ 2");
    terminal.press("r");
    terminal.until("there is a child", || env.jobs("alice").len() == 3);
    env.wait_status(3, "running");
    terminal.shows("3 +1");

    // A filter hides the other, and says so by its count; Esc shows it again.
    terminal.press("/");
    terminal.types("status:killed");
    terminal.press("Enter");
    terminal.hides("3 +1");
    terminal.press("Escape");
    terminal.shows("3 +1");

    // A tag, a resize in the middle, the log.
    terminal.press("G");
    terminal.press("t");
    terminal.types("sweep");
    terminal.resize((80, 24));
    terminal.press("Enter");
    terminal.until("the tag is stored", || env.job("alice", 3)["job_tags"] == "sweep");
    terminal.press("l");
    terminal.shows("▼ follow");
    terminal.press("Escape");
    // A key that comes together with Esc is another key, on any terminal.
    terminal.hides("▼ follow");

    // Clean away what has ended; what lives stays.
    terminal.press("c");
    terminal.shows("Clean 1 job");
    terminal.press("y");
    terminal.until("the killed one is archived", || env.jobs("alice").len() == 2);
    terminal.shows("Archived 1 job");
    assert!(env.has_window("alice", 3));
    terminal.press("q");
    terminal.prompts();
}

#[test]
fn the_screen_writes_nothing_and_gives_the_terminal_back() {
    let env = TestEnv::new();
    env.start(STEPS, &[] as &[&str]);
    env.wait_status(1, "running");
    let terminal = Terminal::new(&env);
    terminal.note_settings();
    let before = env.data_bytes();
    terminal.command(&format!("{TPU} monitor alice; echo code-$?"));
    terminal.shows("r resume");
    for step in ["step 1", "step 2", "step 3"] {
        terminal.shows(step);
        terminal.press("C-l");
    }
    // All keys are taken before the end: what is left would be the shell's.
    terminal.press("?");
    terminal.shows("Keys in the list");
    assert_eq!(env.data_bytes(), before, "looking never writes");

    tpu_system::sys::procs::signal(&terminal.tpu(), tpu_system::sys::procs::Signal::Terminate)
        .unwrap();
    terminal.shows("code-143");
    terminal.is_as_before();
}
