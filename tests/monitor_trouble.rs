//! The monitor when something is broken around it: it answers keys, says what is so and how old that is,
//! goes on by itself when it can, and gives the terminal back however it ends.

use tpu::sys::procs::{Signal, signal};

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;

fn running_job() -> TestEnv {
    let env = TestEnv::new();
    let window = env.start("echo step 1; exec sleep 1000", &[] as &[&str]);
    env.wait_status(window, "running");
    env
}

/// The monitor with points at which it fails, in a terminal whose settings are noted.
fn monitor(env: &TestEnv, points: &str) -> Terminal {
    let terminal = Terminal::new(env);
    terminal.note_settings();
    terminal.command(&format!("FAILPOINTS='{points}' {TPU} monitor alice; echo code-$?"));
    terminal.shows("▸ 1");
    terminal
}

/// Keys are answered now.
#[track_caller]
fn answers(terminal: &Terminal) {
    terminal.press("?");
    terminal.shows("Keys in the list");
    terminal.press("Escape");
    terminal.hides("Keys in the list");
}

#[test]
fn a_data_file_that_is_cut_off_is_named_and_read_again_when_it_is_whole() {
    let env = running_job();
    let terminal = monitor(&env, "");
    let whole = String::from_utf8(env.data_bytes()).unwrap();
    let (half, _) = whole.split_at(whole.len() / 2);
    write_file(&env.path("data.json"), half);
    terminal.shows("data.json");
    terminal.shows("▸ 1");
    answers(&terminal);
    write_file(&env.path("data.json"), &whole);
    terminal.hides("▲ ");
    terminal.keys("q");
    terminal.shows("code-0");
    terminal.is_as_before();
}

#[test]
fn a_dead_tmux_server_is_noticed() {
    let env = running_job();
    let terminal = monitor(&env, "");
    env.tmux().kill_server();
    terminal.shows("No tmux server is running");
    answers(&terminal);
    let again = env.start("exec sleep 1000", &[] as &[&str]);
    env.wait_status(again, "running");
    terminal.hides("No tmux server is running");
    terminal.shows("● running");
}

#[test]
fn looks_that_hang_hold_up_no_key_and_their_age_is_told() {
    let env = running_job();
    env.tpu("set-settings monitor_upd_time 1 alice").exits(0);
    // The first looks succeed; then every look hangs for ever, as on a cloud or a disk that does not answer.
    let terminal = monitor(&env, "look-read=3*off->pause");
    terminal.shows("as of");
    answers(&terminal);
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.keys("Escape 2");
    terminal.shows("[2 Targets]");
    terminal.press("q");
    terminal.shows("code-0");
    terminal.is_as_before();
}

#[test]
fn a_locked_data_file_makes_an_action_wait_and_nothing_else() {
    let env = running_job();
    let terminal = monitor(&env, "");
    // Somebody holds the lock of the data file and does not let go.
    let lock = env.path("data.json.lock");
    assert!(lock.is_file());
    let hold = format!("exec flock '{}' sleep 1000", lock.display());
    terminal.tmux.run(&["new-window", "-d", "-n", "holder", &hold]);
    terminal.until("the lock is held", || {
        let tried = env.spawn_program("flock", &["-n", lock.to_str().unwrap(), "true"]);
        !tpu::sys::proc::run(&tried).unwrap().status.success()
    });
    terminal.press("t");
    terminal.types("mine");
    terminal.press("Enter");
    terminal.shows("tagging 1");
    answers(&terminal);
    terminal.tmux.run(&["kill-window", "-t", "holder"]);
    terminal.until("the tag is stored", || env.job("alice", 1)["job_tags"] == "mine");
    terminal.hides("tagging 1");
    terminal.press("q");
    terminal.shows("code-0");
}

#[test]
fn a_panic_gives_the_terminal_back() {
    let env = running_job();
    let terminal = monitor(&env, "screen-key=1*off->panic(injected)");
    terminal.press("j");
    terminal.press("k");
    terminal.shows("injected");
    terminal.shows("code-101");
    terminal.is_as_before();
}

#[test]
fn stopped_and_continued_and_hung_up() {
    let env = running_job();
    let terminal = monitor(&env, "");
    terminal.press("C-z");
    terminal.shows("Stopped");
    terminal.is_as_before();
    terminal.command("clear; fg; echo code-$?");
    terminal.shows("▸ 1");
    answers(&terminal);
    signal(&terminal.tpu(), Signal::Terminate).unwrap();
    terminal.shows("code-143");
    terminal.is_as_before();
    terminal.command(&format!("clear; {TPU} monitor alice; echo code-$?"));
    terminal.shows("▸ 1");
    let pid = terminal.tpu().pid.to_string();
    let hang_up = env.spawn_program("kill", &["-HUP", &pid]);
    assert!(tpu::sys::proc::run(&hang_up).unwrap().status.success());
    terminal.shows("code-129");
    terminal.is_as_before();
}
