//! What a person has opened in the session of jobs survives every command that clears away: windows, panes
//! beside a job, whatever was moved where. Real tmux, and real processes that must live on.

use serde_json::json;

use tpu_system::sys::procs::Process;

use crate::common::env::{TPU, TestEnv, lives, wait_gone};
use crate::common::terminal::Terminal;
use crate::common::tmux::{PrivateTmux, write_file};
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// Every command that clears something away.
const CLEARING: [&str; 6] = [
    "clean alice",
    "clear-all alice",
    "clear-error alice",
    "clear-finished alice",
    "-czw alice",
    "-czj alice",
];

/// What a person runs: it says which process it is, and stays.
fn own(name: &str) -> String {
    format!("echo $$ >\"$HOME/{name}\"; exec sleep 1000")
}

/// What a person runs, once it is what its window is named by: no longer the shell that began it.
fn own_process(env: &TestEnv, name: &str) -> Process {
    let process = env.wait_pid(name);
    wait_until("it is what it stays", || {
        let words = std::fs::read(format!("/proc/{}/cmdline", process.pid));
        words.is_ok_and(|words| words.starts_with(b"sleep\0"))
    });
    process
}

/// A window that a person opens; what runs in it.
fn own_window(env: &TestEnv, target: &str, name: &str) -> Process {
    let _printed = env.tmux().run(&["new-window", "-d", "-t", target, "-n", name, &own(name)]);
    own_process(env, name)
}

/// A pane that a person opens beside another one.
fn own_pane(env: &TestEnv, beside: &str, flags: &[&str], name: &str) -> Process {
    let command = own(name);
    let words = [&["split-window", "-d", "-t", beside], flags, &[&command]].concat();
    let _printed = env.tmux().run(&words);
    own_process(env, name)
}

/// A session that a person begins; what runs in its first window.
fn own_session(env: &TestEnv, session: &str, name: &str) -> Process {
    let _printed = env.tmux().run(&["new-session", "-d", "-s", session, &own(name)]);
    own_process(env, name)
}

/// A job of alice that is at work; its process.
fn at_work(env: &TestEnv) -> Process {
    env.start(&own("at-work"), &NONE);
    own_process(env, "at-work")
}

/// Clears away with every command there is.
fn clear_with_everything(env: &TestEnv) {
    for command in CLEARING {
        drop(env.tpu(command).exits(0));
    }
}

/// A job of alice that has failed; its window.
fn failed(env: &TestEnv) -> u64 {
    let window = env.start("exit 3", &NONE);
    env.wait_status(window, "error");
    wait_until("its launcher to be done", || {
        env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string()
    });
    window
}

/// Takes the records of alice out of the file.
fn forget_records(env: &TestEnv) {
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([]);
    env.write_data(&data);
}

#[test]
fn windows_and_panes_of_a_person_outlive_all_that_clears_away() {
    let env = TestEnv::new();
    let before = failed(&env);
    let behind = failed(&env);
    let job = |window| env.pane_id("alice", window).unwrap();
    let (first, second) = (job(before), job(behind));
    let theirs = [
        own_window(&env, "=alice:7", "editor"),
        own_window(&env, "=alice:9", "1"),
        own_pane(&env, &first, &["-b"], "above"),
        own_pane(&env, &second, &[], "below"),
    ];
    let dry = env.tpu("clean alice --dry-run").exits(0).says(&[
        "Would archive jobs 1, 2 of alice.",
        "Would close our pane alone of window 1 of alice (alice/1).",
        "Would close our pane alone of window 2 of alice (alice/2).",
    ]);
    assert!(!dry.stdout.contains("window 7") && !dry.stdout.contains("window 9"), "{dry}");
    assert_eq!(env.jobs("alice").len(), 2, "a dry run changed something");
    let cleaned = env.tpu("clean alice").exits(0);
    drop(cleaned.says(&["Archived 2 jobs, closed 0 windows and 2 panes in windows that stay."]));
    clear_with_everything(&env);
    assert_eq!(env.windows("alice"), [0, 1, 2, 7, 9]);
    assert!(theirs.iter().all(lives));
    let panes = env.tmux().run(&["list-panes", "-a", "-F", "#{pane_id}"]);
    assert!(!panes.lines().any(|pane| pane == first || pane == second), "a job's pane is left");
}

#[test]
fn a_session_that_a_person_began_keeps_its_first_window() {
    let env = TestEnv::with_tmux_conf("set -g base-index 1\nset -g pane-base-index 1\n");
    let shell = own_session(&env, "alice", "shell");
    assert_eq!(env.windows("alice"), [1]);
    let window = failed(&env);
    drop(env.tpu("clean alice --dry-run").exits(0).says(&[&format!("window {window} of alice")]));
    drop(env.tpu("clean alice").exits(0).says(&["Archived 1 job, closed 1 window."]));
    clear_with_everything(&env);
    assert_eq!(env.windows("alice"), [0, 1]);
    assert!(lives(&shell));
}

#[test]
fn windows_without_a_mark_are_listed_and_closed_by_force_alone_where_nobody_looks() {
    let env = TestEnv::new();
    failed(&env);
    let idle = own_window(&env, "=alice:7", "idle");
    let watched = own_window(&env, "=alice:9", "watched");
    // Somebody looks at window 9, from the window of another server.
    let other = PrivateTmux::new("");
    let tmux_dir = env.tmux().dir().display().to_string();
    let attach = format!(
        "env -u TMUX TERM=screen HOME={tmux_dir} TMUX_TMPDIR={tmux_dir} tmux -L {} attach -t =alice:9",
        env.tmux().socket()
    );
    let _printed =
        other.run(&["new-session", "-d", "-s", "viewer", "-x", "80", "-y", "24", &attach]);
    wait_until("somebody to look", || {
        env.tmux().run(&["list-clients", "-F", "#{window_index}"]).contains('9')
    });

    let listed = env.tpu("-czw alice").exits(0);
    drop(listed.says(&[
        "closed 0 windows",
        "Left open: window 7 of alice (sleep)",
        "Left open: window 9 of alice (sleep; somebody looks at it)",
    ]));
    let dry = env.tpu("-czw alice --force --dry-run --json").exits(0).json();
    assert_eq!(dry["would"]["close"][0]["window"], 7, "{dry:#}");
    assert_eq!(dry["would"]["left"][0]["window"], 9, "{dry:#}");
    assert!(lives(&idle) && lives(&watched));

    drop(env.tpu("-czw alice --force -y").exits(0).says(&["closed 1 window", "window 9"]));
    assert_eq!(env.windows("alice"), [0, 1, 9]);
    wait_gone(&idle);
    assert!(lives(&watched));
}

#[test]
fn what_clean_would_close_is_what_a_look_lists() {
    let env = TestEnv::new();
    let old = env.pane_id("alice", failed(&env)).unwrap();
    forget_records(&env);
    let job = env.start("exec sleep 1000", &NONE);
    env.wait_status(job, "running");
    // A person has put the left-over beside a job that is at work, and a shell of their own.
    let at_work = env.pane_id("alice", job).unwrap();
    let _printed = env.tmux().run(&["join-pane", "-d", "-s", &old, "-t", &at_work]);
    let theirs = own_pane(&env, &at_work, &[], "beside");
    let would = env.tpu("-czw alice --dry-run --json").exits(0).json();
    let listed = env.tpu("check alice --json").exits(0).json();
    let closed = would["would"]["close"].as_array().unwrap();
    assert_eq!(closed.len(), 1, "{would}");
    assert_eq!(listed["orphans"][0]["window"], closed[0]["window"], "{listed}");
    drop(env.tpu("-czw alice").exits(0));
    let listed = env.tpu("check alice --json").exits(0).json();
    assert_eq!(listed["orphans"], json!([]), "the shell beside a job needs no word");
    assert!(lives(&theirs));
}

#[test]
fn force_closes_only_what_somebody_was_asked_about_and_agreed_to() {
    let env = TestEnv::new();
    failed(&env);
    let named = own_window(&env, "=alice:5", "named");
    let watched = own_window(&env, "=alice:9", "watched");
    let viewer = PrivateTmux::new("");
    let tmux_dir = env.tmux().dir().display().to_string();
    let attach = format!(
        "env -u TMUX TERM=screen HOME={tmux_dir} TMUX_TMPDIR={tmux_dir} tmux -L {} attach -t =alice:9",
        env.tmux().socket()
    );
    drop(viewer.run(&["new-session", "-d", "-s", "viewer", "-x", "80", "-y", "24", &attach]));
    let clients = || env.tmux().run(&["list-clients", "-F", "#{window_index}"]);
    wait_until("somebody to look", || clients().contains('9'));
    let person = Terminal::new(&env);
    person.command(&format!("{TPU} -czw alice --force"));
    person.shows("Close window 5 of alice (sleep), and what runs there?");
    // While the question waits, another window is opened and nobody looks at window 9 any more.
    let later = own_window(&env, "=alice:7", "later");
    drop(viewer.run(&["kill-session", "-t", "viewer"]));
    wait_until("nobody to look", || clients().is_empty());
    person.command("y");
    person.shows("closed 1 window");
    wait_gone(&named);
    assert_eq!(env.windows("alice"), [0, 1, 7, 9]);
    assert!(lives(&later) && lives(&watched));
}

#[test]
fn force_leaves_a_session_its_home() {
    let env = TestEnv::with_tmux_conf("set -g base-index 1\n");
    let shell = own_session(&env, "alice", "shell");
    drop(env.tpu("-czw alice --force -y").exits(0).says(&["closed 1 window"]));
    wait_gone(&shell);
    assert_eq!(env.windows("alice"), [0], "the session, and with it the server");
}

#[test]
fn a_marked_window_without_a_record_goes_with_clean_once_its_job_has_ended() {
    let env = TestEnv::new();
    failed(&env);
    let at_work = at_work(&env);
    env.wait_status(2, "running");
    let ended = env.pane_id("alice", 1).unwrap();
    let beside = own_pane(&env, &ended, &[], "beside");
    forget_records(&env);
    let what = "Left open: window 2 of alice (alice/2 is at work in it, without a record";
    drop(env.tpu("clean alice --dry-run").exits(0).says(&["our pane alone of window 1", what]));
    drop(env.tpu("clean alice").exits(0).says(&["1 pane in windows that stay", what]));
    assert_eq!(env.windows("alice"), [0, 1, 2]);
    assert!(lives(&beside) && lives(&at_work));
    // Whoever asks for it by name has it closed; what stands beside is still a person's.
    drop(env.tpu("-czw alice").exits(0).says(&["closed 1 window", "window 1 of alice (sleep)"]));
    assert_eq!(env.windows("alice"), [0, 1]);
    assert!(lives(&beside));
}

#[test]
fn a_job_s_pane_is_found_by_its_mark_wherever_a_person_has_moved_it() {
    let env = TestEnv::new();
    for _ in 0..3 {
        failed(&env);
    }
    let editor = own_window(&env, "=alice:9", "editor");
    let private = own_session(&env, "private", "private");
    let job = |window| env.pane_id("alice", window).unwrap();
    let (first, second) = (job(1), job(2));
    // Into her own window, into another session, and her own pane into the window of a job.
    let _printed = env.tmux().run(&["join-pane", "-d", "-s", &first, "-t", "=alice:9"]);
    let _printed = env.tmux().run(&["break-pane", "-d", "-s", &second, "-t", "=private:5"]);
    let guest = own_window(&env, "=alice:11", "guest");
    let moved = env.pane_id("alice", 11).unwrap();
    let _printed = env.tmux().run(&["swap-pane", "-d", "-s", &moved, "-t", &job(3)]);
    drop(env.tpu("clean alice").exits(0).says(&["Archived 3 jobs"]));
    clear_with_everything(&env);
    assert!(lives(&editor) && lives(&private) && lives(&guest));
    let left = env.tmux().run(&["list-panes", "-a", "-F", "#{@tpu_launch}"]);
    assert_eq!(left.trim(), "", "a job's pane is left");
}

#[test]
fn windows_that_several_sessions_show_are_closed_once() {
    let env = TestEnv::new();
    failed(&env);
    env.start(&own("at-work"), &NONE);
    env.wait_status(2, "running");
    let editor = own_window(&env, "=alice:7", "editor");
    // A second view of the session, as `tmux new-session -t alice` makes it.
    let _printed = env.tmux().run(&["new-session", "-d", "-t", "alice", "-s", "a-view"]);
    drop(env.tpu("clean alice").exits(0).says(&["Archived 1 job, closed 1 window."]));
    forget_records(&env);
    drop(env.tpu("-czw alice").exits(0).says(&["closed 1 window."]));
    assert_eq!(env.windows("alice"), [0, 7]);
    assert!(lives(&editor));
}

#[test]
fn a_renamed_session_and_one_that_took_its_name_are_left_alone() {
    let env = TestEnv::new();
    failed(&env);
    let before = own_window(&env, "=alice:7", "before");
    let _printed = env.tmux().run(&["rename-session", "-t", "=alice", "work"]);
    let private = own_session(&env, "alice", "private");
    let after = own_window(&env, "=alice:1", "after");
    drop(env.tpu("clean alice").exits(0).says(&["Archived 1 job, closed 1 window."]));
    clear_with_everything(&env);
    assert_eq!((env.windows("alice"), env.windows("work")), (vec![0, 1], vec![0, 7]));
    assert!([before, private, after].iter().all(lives));
}

#[test]
fn two_data_files_in_one_session_close_nothing_of_each_other() {
    let mut env = TestEnv::new();
    failed(&env);
    let at_work = at_work(&env);
    let beside = own_pane(&env, &env.pane_id("alice", 2).unwrap(), &[], "beside");
    std::fs::create_dir(env.path("other")).unwrap();
    write_file(&env.path("other/data.json"), &env.two_users().to_string());
    env.set("TPU_DATA", env.path("other/data.json"));
    for command in CLEARING {
        drop(env.tpu(command).exits(0).says(&[" 0 "]));
    }
    drop(env.tpu("-czw alice --force").exits(0).says(&["closed 0 windows"]));
    drop(env.tpu("doctor --fix"));
    assert_eq!(env.windows("alice"), [0, 1, 2]);
    assert!(lives(&at_work) && lives(&beside));
}

#[test]
fn the_window_of_an_original_s_record_stays_when_the_record_goes() {
    let env = TestEnv::new();
    let _printed = env.tmux().run(&["new-session", "-d", "-s", "alice", "exec sleep 1000"]);
    let theirs = own_window(&env, "=alice:5", "shell");
    let mut data = env.two_users();
    data["users"]["alice"]["job_data"] = json!([env.record("alice", 5, "finished")]);
    env.write_data(&data);
    let stays = "Left open: window 5 of alice (sleep)";
    drop(env.tpu("clean alice --dry-run").exits(0).says(&["Would archive job 5", stays]));
    drop(env.tpu("clean alice").exits(0).says(&["Archived 1 job, closed 0 windows.", stays]));
    assert_eq!(env.jobs("alice"), [json!(null); 0]);
    assert_eq!(env.windows("alice"), [0, 5]);
    assert!(lives(&theirs));
}

/// The number of an original's job was an earlier job's, and that one's workers are still written down.
#[test]
fn what_is_left_of_an_earlier_job_ends_nothing_of_an_original_s() {
    let env = TestEnv::new();
    let _printed = env.tmux().run(&["new-session", "-d", "-s", "alice", "exec sleep 1000"]);
    let line = format!("sleep 1000 & echo $! >{}; wait", env.path("theirs").display());
    let _printed = env.tmux().run(&["new-window", "-d", "-t", "=alice:5", &line]);
    let theirs = env.wait_pid("theirs");
    let mut data = env.two_users();
    data["users"]["alice"]["job_data"] = json!([env.record("alice", 5, "finished")]);
    env.write_data(&data);
    let earlier = env.state_of("alice", 5);
    std::fs::create_dir_all(&earlier).unwrap();
    write_file(&earlier.join("workers"), "here-0\0");
    drop(env.tpu("clean alice").exits(0).says(&["Archived 1 job, closed 0 windows."]));
    assert!(lives(&theirs));
    assert_eq!(env.windows("alice"), [0, 5]);
}

#[test]
fn a_named_window_is_closed_only_as_far_as_it_is_a_job_s() {
    let env = TestEnv::new();
    failed(&env);
    let beside = own_pane(&env, &env.pane_id("alice", 1).unwrap(), &["-b"], "beside");
    let own_one = own_window(&env, "=alice:7", "editor");
    for command in ["kill-window 7 alice", "kill-window 7 alice --dry-run"] {
        let by_hand = format!("`tmux kill-window -t {}`", env.pane_id("alice", 7).unwrap());
        drop(env.tpu(command).exits(4).says(&["window 7 of alice (sleep)", &by_hand]));
    }
    drop(env.tpu("kill-window 1 alice").exits(0).says(&["1 pane in windows that stay"]));
    // The window of an original's job, split: which pane is the job's?
    let split = own_window(&env, "=alice:8", "split");
    let more = own_pane(&env, &env.pane_id("alice", 8).unwrap(), &[], "more");
    let mut data = env.data();
    data["users"]["alice"]["job_data"] = json!([env.record("alice", 8, "running")]);
    env.write_data(&data);
    let bytes = env.data_bytes();
    for command in ["kill w=8 alice", "kill-window 8 alice"] {
        drop(env.tpu(command).exits(4).says(&["several panes", "hint:"]));
    }
    assert!(env.data_bytes() == bytes, "a refused kill wrote");
    assert_eq!(env.windows("alice"), [0, 1, 7, 8]);
    assert!([beside, own_one, split, more].iter().all(lives));
}

#[test]
fn a_kill_and_a_fix_leave_what_stands_beside_a_job() {
    let env = TestEnv::new();
    env.start(&own("job"), &NONE);
    let job = env.wait_pid("job");
    env.wait_status(1, "running");
    let beside = own_pane(&env, &env.pane_id("alice", 1).unwrap(), &["-b"], "beside");
    drop(env.tpu("kill w=1 alice").exits(0));
    wait_gone(&job);
    failed(&env);
    let below = own_pane(&env, &env.pane_id("alice", 2).unwrap(), &[], "below");
    let editor = own_window(&env, "=alice:7", "editor");
    forget_records(&env);
    let fixed = env.tpu("doctor --fix");
    drop(fixed.says(&["closed our pane alone of window 2 of alice (alice/2)"]));
    assert_eq!(env.windows("alice"), [0, 1, 2, 7]);
    assert!([beside, below, editor].iter().all(lives));
}
