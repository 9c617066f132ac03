//! What acts on the world and was begun on the screen comes to its end, whatever becomes of the screen: it is
//! hung up, left, stopped, or something else is interrupted in its terminal.

use tpu_system::sys::procs::{Signal, signal};

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::wait::wait_until;

/// Alice, whose one job runs here, and simulated targets of one type.
fn lab(targets: &[&str]) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    for target in targets {
        env.tpu(&format!("register {target} --zone zone-a --type v2-8")).exits(0);
        env.tpu(&format!("sim ready {target}")).exits(0);
    }
    let window = env.start("echo step 1; exec sleep 1000", &[] as &[&str]);
    env.wait_status(window, "running");
    env
}

/// The monitor with points at which it waits.
fn monitor(env: &TestEnv, points: &str) -> Terminal {
    let terminal = Terminal::new(env);
    terminal.command(&format!("FAILPOINTS='{points}' {TPU} monitor alice; echo code-$?"));
    terminal.shows("▸ 1");
    terminal
}

fn types(terminal: &Terminal, line: &str) {
    terminal.press(":");
    terminal.types(line);
    terminal.press("Enter");
}

fn is_there(env: &TestEnv, target: &str) -> bool {
    let listed = env.tpu("sim list --json").exits(0).json();
    let targets = listed["targets"].as_array().unwrap();
    targets.iter().any(|known| known["name"] == target && known["state"] == "ready")
}

/// Between the deletion and the creation for some seconds.
const IN_THE_MIDDLE: &str = "reapply-deleted=sleep(8000)";

fn is_made_again_after(end: impl Fn(&Terminal), begin: impl Fn(&Terminal)) {
    let env = lab(&["lab-1"]);
    let terminal = monitor(&env, IN_THE_MIDDLE);
    begin(&terminal);
    terminal.until("it is deleted", || !is_there(&env, "lab-1"));
    end(&terminal);
    wait_until("it is there again", || is_there(&env, "lab-1"));
}

fn type_reapply(terminal: &Terminal) {
    types(terminal, "reapply lab-1");
    terminal.shows("would");
    terminal.press("y");
}

fn press_reapply(terminal: &Terminal) {
    terminal.press("2");
    terminal.shows("lab-1");
    terminal.types("/lab-1");
    terminal.keys("Enter A");
    terminal.shows("would");
    terminal.press("y");
}

#[test]
fn a_hang_up_in_the_middle_of_a_typed_reapply_loses_no_target() {
    is_made_again_after(|terminal| terminal.tmux.kill_server(), type_reapply);
}

#[test]
fn a_hang_up_in_the_middle_of_a_reapply_by_key_loses_no_target() {
    is_made_again_after(|terminal| terminal.tmux.kill_server(), press_reapply);
}

#[test]
fn who_leaves_in_the_middle_of_a_typed_reapply_loses_no_target() {
    let leave = |terminal: &Terminal| {
        terminal.press("q");
        terminal.shows("Still tpu reapply lab-1");
        terminal.press("q");
        terminal.shows("code-0");
    };
    is_made_again_after(leave, type_reapply);
}

#[test]
fn who_leaves_in_the_middle_of_a_reapply_by_key_is_kept_until_it_is_done() {
    let leave = |terminal: &Terminal| {
        terminal.press("q");
        terminal.shows("Still making lab-1 anew");
        terminal.press("q");
        terminal.shows("not done yet");
        terminal.shows("lab-1 is READY");
        terminal.shows("code-0");
    };
    is_made_again_after(leave, press_reapply);
}

#[test]
fn ctrl_c_meant_for_what_has_the_terminal_ends_nothing_else() {
    let env = lab(&["lab-1"]);
    env.tpu("run lab-1 bob -q -- sleep 1000").exits(0);
    let line = || env.queued();
    // Who is told of signals is told late.
    let terminal = monitor(&env, "screen-signal=sleep(300)");
    types(&terminal, "run v2-8 -q --wait -- sleep 1000");
    terminal.until("it is in line", || line() == 1);
    types(&terminal, "logs 1 -f");
    // What stood there before the screen is seen again.
    terminal.shows("monitor alice; echo");
    terminal.shows("step 1");
    terminal.press("C-c");
    terminal.shows("r resume");
    env.tpu("kill 1 bob").exits(0);
    terminal.until("the job that waited has started", || env.jobs("alice").len() == 2);
    terminal.shows("Started alice/2");
}

#[test]
fn a_typed_command_is_about_the_user_on_the_screen_and_fails_with_its_remedy() {
    let env = lab(&[]);
    let terminal = monitor(&env, "");
    types(&terminal, "set-dir 7 .");
    let dirs = |user: &str| env.data()["users"][user]["working_dir"].as_object().unwrap().len();
    terminal.until("the directory is stored", || dirs("alice") == 2);
    assert_eq!(dirs("bob"), 1);
    terminal.shows("Set directory 7");
    terminal.press("Escape");
    types(&terminal, "help kill");
    terminal.shows("tpu kill");
    terminal.press("Escape");
    types(&terminal, "kill w=9");
    terminal.shows("alice has no job 9");
    terminal.shows("→ ");
    types(&terminal, "kil 7");
    terminal.shows("there is no command 'kil'");
}

#[test]
fn a_screen_that_is_stopped_keeps_no_lock() {
    let env = lab(&[]);
    let terminal = monitor(&env, "txn-read=sleep(6000)");
    types(&terminal, "add-tag 1 first");
    let lock = env.path("data.json.lock");
    terminal.until("the lock is held", || {
        let tried = env.spawn_program("flock", &["-n", lock.to_str().unwrap(), "true"]);
        !tpu_system::sys::proc::run(&tried).unwrap().status.success()
    });
    terminal.press("C-z");
    terminal.shows("Stopped");
    env.tpu("add-tag 1 second alice").exits(0);
    assert_eq!(env.job("alice", 1)["job_tags"], "second");
    terminal.command("clear; fg");
    terminal.shows("▸ 1");
}

#[test]
fn an_action_by_key_is_done_before_the_screen_stops() {
    let env = lab(&[]);
    let terminal = monitor(&env, "kill-intended=sleep(7500)");
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    terminal.shows("killing alice/1");
    terminal.press("C-z");
    terminal.shows("Still killing alice/1");
    env.wait_status(1, "killed");
    terminal.hides("killing alice/1");
    terminal.press("C-z");
    terminal.shows("Stopped");
    terminal.command("clear; fg");
    terminal.shows("▸ 1");
}

/// The screen lives on, and with it the process that began the kill.
#[test]
fn a_kill_that_failed_half_way_is_completed_while_the_screen_is_open() {
    let env = lab(&[]);
    let terminal = monitor(&env, "kill-intended=1*panic(cut short)");
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    terminal.shows("cut short");
    assert_eq!(env.job("alice", 1)["status"], "running");
    let daemon = env.start_tpu("daemon run", &[]);
    env.wait_status(1, "killed");
    drop(daemon);
    terminal.press("q");
    terminal.shows("code-0");
}

fn kills_before_it_ends(end: Signal) {
    let env = lab(&[]);
    let terminal = monitor(&env, "kill-intended=sleep(7500)");
    terminal.press("x");
    terminal.shows("Stop 1 job?");
    terminal.press("y");
    terminal
        .until("the kill has begun", || env.job("alice", 1)["extra_msgs"]["intent"].is_object());
    signal(&terminal.tpu(), end).unwrap();
    terminal.shows("not done yet");
    terminal.shows("code-1");
    assert_eq!(env.job("alice", 1)["status"], "killed");
}

#[test]
fn a_kill_by_key_is_done_before_the_screen_ends() {
    kills_before_it_ends(Signal::Terminate);
}

#[test]
fn a_kill_by_key_is_done_before_an_interrupted_screen_ends() {
    kills_before_it_ends(Signal::Interrupt);
}
