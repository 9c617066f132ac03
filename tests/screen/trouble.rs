//! The monitor when something is broken around it: it answers keys, says what is so and how old that is,
//! goes on by itself when it can, and gives the terminal back however it ends.

use std::os::unix::fs::PermissionsExt as _;

use tpu_system::sys::procs::{Process, Signal, signal};

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
    terminal.shows("Keys in the ");
    terminal.press("Escape");
    terminal.hides("Keys in the ");
}

#[test]
fn a_data_file_that_is_cut_off_is_named_and_read_again_when_it_is_whole() {
    let env = running_job();
    let terminal = monitor(&env, "");
    let whole = String::from_utf8(env.data_bytes()).unwrap();
    let (half, _) = whole.split_at(whole.len() / 2);
    write_file(&env.path("data.json"), half);
    terminal.shows("data.json");
    terminal.shows("as of");
    terminal.shows("▸ 1");
    answers(&terminal);
    write_file(&env.path("data.json"), &whole);
    terminal.hides("▲ ");
    terminal.hides("as of");
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
        !tpu_system::sys::proc::run(&tried).unwrap().status.success()
    });
    terminal.press("t");
    terminal.types("mine");
    terminal.press("Enter");
    terminal.shows("tagging alice/1");
    terminal.press("?");
    terminal.shows("Keys in the ");
    // Who waits for the lock gives up after ten seconds.
    terminal.tmux.run(&["kill-window", "-t", "holder"]);
    terminal.press("Escape");
    terminal.hides("Keys in the ");
    terminal.until("the tag is stored", || env.job("alice", 1)["job_tags"] == "mine");
    terminal.hides("tagging alice/1");
    terminal.press("q");
    terminal.shows("code-0");
}

/// The first answer of the cloud takes 25 seconds, then none comes at all.
#[test]
fn a_slow_cloud_holds_up_no_key_and_its_last_answer_stays_with_its_age() {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    env.tpu("register lab-1 --zone zone-a --type v2-8").exits(0);
    env.tpu("sim ready lab-1").exits(0);
    let window = env.start("echo step 1; exec sleep 1000", &[] as &[&str]);
    env.wait_status(window, "running");
    env.tpu("sim event slow seconds=25 call=list").exits(0);
    let terminal = monitor(&env, "");
    terminal.press("2");
    terminal.shows("Reading …");
    answers(&terminal);
    terminal.shows("Reading … for ");
    // The answer that is awaited takes its time all the same.
    env.tpu("sim event calm").exits(0);
    terminal.press("1");
    terminal.shows("▸ 1");
    terminal.press("t");
    terminal.types("meanwhile");
    terminal.press("Enter");
    terminal.until("the tag is stored", || env.job("alice", 1)["job_tags"] == "meanwhile");
    terminal.press("2");
    // The answer comes, however late.
    terminal.shows("lab-1");
    terminal.hides("Reading …");
    env.tpu("sim event outage zone=zone-a").exits(0);
    terminal.press("C-l");
    // What is not known any more is no guess, and it is said why.
    terminal.shows("? unknown");
    terminal.shows("▲ zone-a: ");
    answers(&terminal);
    env.tpu("sim event calm").exits(0);
    terminal.press("C-l");
    terminal.hides("▲ zone-a: ");
    terminal.hides("? unknown");
    terminal.press("q");
    terminal.shows("code-0");
    terminal.is_as_before();
}

#[test]
fn a_hanging_ssh_holds_up_nothing_but_itself() {
    let mut env = TestEnv::new();
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    write_file(&bin.join("ssh"), "#!/bin/sh\necho $$ >>\"$HOME/hangs\"\nexec sleep 1000\n");
    std::fs::set_permissions(bin.join("ssh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let outer = tpu_system::sys::env::Env::read();
    let path = outer.non_empty("PATH").unwrap();
    env.set("PATH", format!("{}:{path}", bin.display()));
    env.tpu("register lab-hosts --address 127.0.0.1:1").exits(0);
    let window = env.start("echo step 1; exec sleep 1000", &[] as &[&str]);
    env.wait_status(window, "running");
    let terminal = monitor(&env, "");
    terminal.press(":");
    terminal.types("ssh lab-hosts --command uptime");
    terminal.press("Enter");
    let hanging = || {
        let text = std::fs::read_to_string(env.path("hangs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse::<u32>().ok()).collect::<Vec<_>>()
    };
    terminal.until("ssh hangs", || !hanging().is_empty());
    terminal.shows("tpu ssh lab-hosts");
    // Whoever leaves is told what would be left unfinished.
    terminal.press("q");
    terminal.shows("Still tpu ssh lab-hosts");
    terminal.press("Escape");
    answers(&terminal);
    terminal.press("t");
    terminal.types("meanwhile");
    terminal.press("Enter");
    terminal.until("the tag is stored", || env.job("alice", 1)["job_tags"] == "meanwhile");
    let ended = || {
        for pid in hanging() {
            if let Some(process) = Process::read(pid) {
                drop(signal(&process, Signal::Kill));
            }
        }
    };
    terminal.until("it has ended, and that is said", || {
        ended();
        terminal.screen().contains("lab-hosts") && terminal.screen().contains("worker 0")
    });
    terminal.press("Escape");
    answers(&terminal);
    terminal.press("q");
    terminal.shows("code-0");
    terminal.is_as_before();
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
    assert!(tpu_system::sys::proc::run(&hang_up).unwrap().status.success());
    terminal.shows("code-129");
    terminal.is_as_before();
}

#[test]
fn keys_from_a_terminal_that_was_hung_up_end_the_monitor() {
    let env = running_job();
    // What is drawn goes on to be seen, and no signal comes: this terminal is not the one that went.
    let (terminal, keys) = (Terminal::new(&env), Terminal::new(&env));
    let tty = keys.tmux.run(&["display-message", "-p", "-t", "person", "#{pane_tty}"]);
    terminal.command(&format!("{TPU} monitor alice <{tty}; echo code-$?"));
    terminal.shows("▸ 1");
    keys.tmux.kill_server();
    terminal.shows("it was hung up");
    terminal.shows("code-1");
}
