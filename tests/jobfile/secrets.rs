//! `secrets:`: a command has their values, and nobody else is told: no argument, log, record, script, plan or answer,
//! and no file but the account's own store.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

use super::setup::lab;

/// Nothing else on the machine has this in it.
const VALUE: &str = "kQ7'x $HOME \"9\"-vX2";

/// Runs a command with something on its standard input.
fn piped(env: &TestEnv, line: &str, input: &str) -> CommandOutput {
    let words: Vec<&str> = line.split(' ').collect();
    env.output(&env.spawn(&words).stdin(input.as_bytes().to_vec()))
}

fn keep(env: &TestEnv, value: &str) {
    drop(piped(env, "secrets set A_KEY", &format!("{value}\n")).exits(0));
}

fn store(env: &TestEnv) -> PathBuf {
    env.path("config/tpu/secrets/A_KEY")
}

/// Files below a directory that hold the value.
fn holders(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holders(&path));
        } else if kind.is_file() && holds(&std::fs::read(&path).unwrap_or_default()) {
            found.push(path);
        }
    }
    found
}

fn holds(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, VALUE.as_bytes()).is_some()
}

/// Processes in whose arguments it is.
fn in_arguments() -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.map(|entry| entry.path().join("cmdline"));
    lines.filter(|line| std::fs::read(line).is_ok_and(|bytes| holds(&bytes))).collect()
}

/// The command says how long its secret is, and stays.
const SAYS: &str =
    "command: 'test \"$A_KEY\" = \"$(cat \"$HOME/expected\")\" && echo it has it; sleep 1000'\n";

#[test]
fn a_command_has_it_and_nothing_else_on_disk_or_in_arguments() {
    let env = TestEnv::alice();
    keep(&env, VALUE);
    write_file(&env.path("expected"), VALUE);
    write_file(&env.path("job.yaml"), &format!("target: local\nsecrets: [A_KEY]\n{SAYS}"));
    let shown = env.tpu("run job.yaml -q --dry-run").exits(0).stdout;
    assert!(shown.contains("A_KEY") && !shown.contains(VALUE), "{shown}");
    drop(env.tpu("run job.yaml -q").exits(0));
    let log = || env.job("alice", 1)["log_dir"].as_str().unwrap_or_default().to_owned();
    let said = || std::fs::read_to_string(format!("{}/output.log", log())).unwrap_or_default();
    wait_until("it has it", || said().contains("it has it"));
    std::fs::remove_file(env.path("expected")).unwrap();
    assert_eq!(holders(&env.path("")), [store(&env)]);
    assert_eq!(in_arguments(), Vec::<PathBuf>::new());
    for words in ["check 1 --json", "show 1", "script 1", "secrets --json", "data get"] {
        assert!(!env.tpu(words).stdout.contains(VALUE), "{words}");
    }
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&store(&env)), mode(store(&env).parent().unwrap())), (0o600, 0o700));
}

#[test]
fn every_worker_has_it_and_none_keeps_it() {
    let Some(lab) = lab(3) else { return };
    keep(&lab.env, VALUE);
    for worker in 0..3 {
        write_file(&lab.hosts.home(worker).join("expected"), VALUE);
    }
    let setup = "setup:\n  - {name: see, run: 'test -n \"$A_KEY\" && touch \"$HOME/seen\"'}\n";
    let text = format!("target: pod\nsecrets: [A_KEY]\n{setup}{SAYS}");
    write_file(&lab.env.path("job.yaml"), &text);
    drop(lab.env.tpu("run job.yaml -q").exits(0));
    let log = || lab.env.job("alice", 1)["log_dir"].as_str().unwrap_or_default().to_owned();
    let said = || std::fs::read_to_string(format!("{}/output.log", log())).unwrap_or_default();
    for worker in 0..3 {
        let line = format!("[worker {worker}] it has it");
        wait_until("a worker has it", || said().contains(&line));
        assert!(lab.hosts.home(worker).join("seen").exists());
        std::fs::remove_file(lab.hosts.home(worker).join("expected")).unwrap();
    }
    assert_eq!(holders(&lab.env.path("")), [store(&lab.env)]);
    assert_eq!(holders(&lab.hosts.path("")), Vec::<PathBuf>::new());
    assert_eq!(in_arguments(), Vec::<PathBuf>::new());
}

#[test]
fn what_begins_now_takes_it_from_its_caller_and_what_begins_later_needs_the_store() {
    let mut env = TestEnv::alice();
    let text = "target: local\nsecrets: [A_KEY]\ncommand: 'echo \"$A_KEY\" > \"$HOME/got\"'\n";
    write_file(&env.path("job.yaml"), text);
    drop(
        env.tpu("run job.yaml -q")
            .exits(3)
            .says(&["no secret A_KEY is kept", "tpu secrets set A_KEY"]),
    );
    assert!(env.jobs("alice").is_empty());
    let shown = env.tpu("run job.yaml -q --dry-run").exits(0);
    assert!(shown.stderr.contains("no secret A_KEY is kept"), "{}", shown.report());
    let shown = env.tpu("submit job.yaml --dry-run").exits(0);
    assert!(shown.stderr.contains("no secret A_KEY is kept"), "{}", shown.report());
    assert!(shown.stdout.contains("secrets    A_KEY"), "{}", shown.report());
    env.set("A_KEY", "of the caller");
    drop(env.tpu("submit job.yaml").exits(3).says(&["no secret A_KEY is kept"]));
    let out = env.tpu("run job.yaml -q").exits(0);
    assert!(out.stderr.contains("in this environment alone"), "{}", out.report());
    let got = || std::fs::read_to_string(env.path("got")).unwrap_or_default();
    wait_until("its caller's", || got() == "of the caller\n");
    drop(env.wait_status(1, "finished"));
    keep(&env, "of the store");
    // The daemon, which has been begun in that environment as well, goes by the store.
    let _monitor = env.start_tpu("daemon run", &[]);
    drop(env.tpu("submit job.yaml").exits(0));
    wait_until("the store's", || got() == "of the store\n");
}

#[test]
fn what_is_typed_is_not_seen_and_ctrl_c_leaves_the_terminal_as_it_was() {
    let env = TestEnv::alice();
    let terminal = Terminal::new(&env);
    terminal.prompts();
    terminal.note_settings();
    terminal.command(&format!("{TPU} secrets set A_KEY"));
    terminal.shows("\nA_KEY:");
    terminal.types("wrongX");
    terminal.keys("BSpace");
    terminal.keys("C-c");
    terminal.shows("no answer");
    terminal.is_as_before();
    assert!(!store(&env).exists());
    terminal.note_settings();
    terminal.command(&format!("{TPU} secrets set A_KEY"));
    terminal.shows("\nA_KEY:");
    terminal.types("righté!");
    terminal.keys("BSpace BSpace Enter");
    terminal.shows("A_KEY is kept");
    terminal.is_as_before();
    terminal.hides("righ");
    terminal.hides("wron");
    assert_eq!(std::fs::read_to_string(store(&env)).unwrap(), "right");
}

#[test]
fn a_store_that_others_may_read_or_an_odd_name_is_refused() {
    let env = TestEnv::alice();
    for (name, says) in [
        ("A-KEY", "no name of a variable"),
        ("../x", "no name of a variable"),
        ("TPU_JOB", "tpu sets it"),
        ("dir", "use capitals"),
        ("UID", "bash sets it"),
        ("TPU_KEY", "another name"),
        ("PATH", "another name"),
    ] {
        let words = format!("secrets set {name}");
        drop(piped(&env, &words, "x").exits(2).says(&[says]));
    }
    drop(piped(&env, "secrets set A_KEY", "").exits(2).says(&["nothing came in"]));
    drop(piped(&env, "secrets set A_KEY", "a\0b").exits(2).says(&["no variable can hold it"]));
    drop(piped(&env, "secrets set A_KEY --dry-run", "x").exits(0));
    assert!(!store(&env).exists());
    keep(&env, "x");
    assert_eq!(env.tpu("secrets").exits(0).stdout, "A_KEY\n");
    std::fs::set_permissions(store(&env), std::fs::Permissions::from_mode(0o640)).unwrap();
    write_file(&env.path("job.yaml"), "target: local\nsecrets: [A_KEY]\ncommand: 'true'\n");
    drop(env.tpu("run job.yaml -q").says(&["may be read by others", "chmod 600"]));
    assert!(env.jobs("alice").is_empty());
    drop(env.tpu("secrets remove A_KEY -y").exits(0));
    drop(env.tpu("secrets remove A_KEY -y").exits(3));
}

#[test]
fn the_server_of_windows_hands_it_to_nobody_else() {
    let mut env = TestEnv::alice();
    keep(&env, "of the store");
    env.set("A_KEY", VALUE);
    env.set("OWN_KEY", VALUE);
    let text = "target: local\nsecrets: [OWN_KEY]\ncommand: 'echo \"$OWN_KEY\" > \"$HOME/got\"'\n";
    write_file(&env.path("job.yaml"), text);
    // It begins the server, which lives as long as the machine.
    drop(env.tpu("run job.yaml -q").exits(0));
    let got = || std::fs::read_to_string(env.path("got")).unwrap_or_default();
    wait_until("its own", || got() == format!("{VALUE}\n"));
    drop(env.wait_status(1, "finished"));
    env.unset("A_KEY");
    env.unset("OWN_KEY");
    env.start_for("alice", "env > \"$HOME/env.new\"; mv \"$HOME/env.new\" \"$HOME/env\"", &[""; 0]);
    let seen = || std::fs::read_to_string(env.path("env")).unwrap_or_default();
    wait_until("the other's environment", || seen().contains("TPU_LAUNCH="));
    assert!(!holds(seen().as_bytes()), "{}", seen());
}

#[test]
fn a_launch_that_never_came_to_it_leaves_nothing() {
    let env = TestEnv::alice();
    keep(&env, VALUE);
    write_file(&env.path("job.yaml"), "target: local\nsecrets: [A_KEY]\ncommand: sleep 1000\n");
    let laid = |window| env.state_of("alice", window).join("secrets");
    for (window, ends, code) in [(1, "kill 1 -y", 4), (2, "clear-finished bob", 0)] {
        let points = [("FAILPOINTS", "launch-written=pause")];
        let running = env.start_tpu("run job.yaml -q", &points);
        wait_until("what lies ready", || laid(window).exists());
        running.kill();
        env.a_minute_later("alice");
        drop(env.tpu(ends).exits(code));
        assert!(!laid(window).exists(), "{ends}");
    }
    assert_eq!(holders(&env.path("")), [store(&env)]);
}

#[test]
fn who_could_not_begin_again_is_not_stopped_for_the_queue() {
    let env = TestEnv::alice();
    keep(&env, VALUE);
    write_file(&env.path("job.yaml"), "target: local\nsecrets: [A_KEY]\ncommand: sleep 1000\n");
    drop(env.tpu("run job.yaml -q").exits(0));
    drop(env.wait_status(1, "running"));
    drop(env.tpu("secrets remove A_KEY -y").exits(0));
    drop(env.tpu("requeue 1").exits(3).says(&["no secret A_KEY is kept", "tpu secrets set A_KEY"]));
    assert_eq!(env.job("alice", 1)["status"], "running");
    drop(env.tpu("kill 1 -y").exits(0));
}

#[test]
fn what_waits_is_held_with_the_reason_where_its_store_may_not_be_read() {
    let env = TestEnv::alice();
    keep(&env, VALUE);
    write_file(&env.path("job.yaml"), "target: local\nsecrets: [A_KEY]\ncommand: 'true'\n");
    drop(env.tpu("submit job.yaml --hold").exits(0));
    std::fs::set_permissions(store(&env), std::fs::Permissions::from_mode(0o640)).unwrap();
    drop(env.tpu("unhold 1").exits(0));
    let _monitor = env.start_tpu("daemon run", &[]);
    let why = || env.tpu("queue").exits(0).stdout;
    wait_until("it is held", || why().contains("may be read by others"));
    assert!(env.jobs("alice").is_empty());
}
