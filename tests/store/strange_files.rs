//! Where a file of ours should be, somebody has put a named pipe, a socket, a device, a directory or a link to
//! a file of his own: no command waits for it, writes through it, or believes that it is ours.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::common::env::TestEnv;
use crate::common::tmux::write_file;
use crate::common::wait::wait_until;

fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    drop(env.tpu("-a first config.first").exits(0));
    env
}

/// Puts something else where a file may have been.
fn put(kind: &str, path: &Path) {
    if path.is_file() {
        std::fs::remove_file(path).unwrap();
    }
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    match kind {
        "a named pipe" => mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap(),
        "a named pipe or a socket" => drop(UnixListener::bind(path).unwrap()),
        "a device" => symlink("/dev/zero", path).unwrap(),
        "is a directory" => std::fs::create_dir(path).unwrap(),
        _ => panic!("{kind}"),
    }
}

/// File, what is put there, command, exit code.
const ROWS: &[(&str, &str, &str, i32)] = &[
    ("data.json", "a named pipe", "ls", 5),
    ("data.json", "a named pipe", "-a k config.k", 5),
    ("data.json", "a named pipe or a socket", "ls", 5),
    ("data.json", "a device", "ls", 5),
    ("data.json", "is a directory", "ls", 5),
    ("data.json.lock", "a named pipe", "-a k config.k", 5),
    ("data.json.lock", "a named pipe or a socket", "-a k config.k", 5),
    ("data.json.lock", "is a directory", "-a k config.k", 5),
    ("tpu-state/events.jsonl", "a named pipe", "-a k config.k", 0),
    ("tpu-state/events.jsonl", "is a directory", "-a k config.k", 0),
    ("tpu-state/sim.json", "a named pipe", "--cloud sim check-status v2-1", 6),
    ("config/tpu/settings.json", "a named pipe", "ls", 2),
    ("config/tpu/settings.json", "a device", "ls", 2),
    ("config/tpu/recipes.toml", "a named pipe", "solve v2-1 --dry-run", 5),
];

#[test]
fn nothing_waits_for_what_is_no_file_and_each_says_what_it_is() {
    for (file, kind, command, code) in ROWS {
        let env = lab();
        put(kind, &env.path(file));
        let output = env.tpu(command).exits(*code);
        drop(output.says(&[kind]));
    }
}

#[test]
fn no_lock_or_journal_is_written_through_a_link() {
    for (file, code) in [("data.json.lock", 5), ("tpu-state/events.jsonl", 0)] {
        let env = lab();
        let (file, victim) = (env.path(file), env.path("thesis.tex"));
        write_file(&victim, "three years of work\n");
        std::fs::remove_file(&file).unwrap();
        symlink(&victim, &file).unwrap();
        drop(env.tpu("-a k config.k").exits(code).says(&["a symbolic link"]));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "three years of work\n");
        std::fs::remove_file(&victim).unwrap();
        drop(env.tpu("-a l config.l").exits(code));
        assert!(!victim.exists(), "a link that leads nowhere is no way to make a file there");
    }
}

#[test]
fn a_backup_that_is_a_pipe_is_passed_over() {
    let env = lab();
    drop(env.tpu("-a k config.k").exits(0));
    put("a named pipe", &env.path("backups/data.json.00000099"));
    write_file(&env.data_path(), "{ broken");
    drop(env.tpu("ls").exits(5).says(&["doctor --restore"]));
    drop(env.tpu("doctor --restore").exits(0));
    drop(env.tpu("ls").exits(0));
}

#[test]
fn an_output_that_is_a_pipe_holds_nobody() {
    let env = lab();
    let window = env.start::<&str>("echo done", &[]);
    wait_until("its end", || env.job("alice", window)["status"] != "running");
    let log = env.job("alice", window)["log_dir"].as_str().unwrap().to_owned();
    put("a named pipe", &Path::new(&log).join("output.log"));
    for command in ["check", "check -v", "logs 1", "explain 1", "check-simp", "history"] {
        drop(env.tpu(command).exits(0));
    }
}
