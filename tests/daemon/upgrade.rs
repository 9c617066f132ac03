//! After an upgrade: what runs another `tpu` says so, and one command starts it anew; jobs go on and keep their ends.

use std::path::PathBuf;

use serde_json::{Value, json};
use tpu_core::model::version::VERSION;
use tpu_ops::base::watch;
use tpu_system::sys::env::Env;
use tpu_system::sys::procs::{self, Process};

use crate::common::env::{Running, TPU, TestEnv, lives, wait_gone};
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

/// A program of its own for a test, which can be replaced.
fn program(env: &TestEnv, name: &str) -> PathBuf {
    let program = env.path(name);
    std::fs::copy(TPU, &program).unwrap();
    program
}

/// The note of the daemon of this place.
fn note_of_daemon(env: &TestEnv) -> PathBuf {
    let ctx = env.ctx(Env { vars: env.variables().clone(), ..Env::read() });
    ctx.store.paths().daemon_note(&watch::place(&ctx))
}

/// A process that is noted as the daemon, as one of this version notes itself; one of 0.2 notes no version.
fn noted(env: &TestEnv, version: Option<&str>) -> Running {
    let stands_in = env.start_program("sleep", "1000", &[]);
    let process = Process::read(stands_in.pid()).unwrap();
    let here = Env::read();
    let owner = format!("{}:{}:{}:{}", here.hostname, here.boot_id, process.pid, process.start);
    let now = "2026-01-01T00:00:00Z";
    let mut note = json!({
        "owner": owner, "pid": process.pid, "start": process.start, "since": now,
        "turned": now,
    });
    if let Some(version) = version {
        note["version"] = json!(version);
    }
    let path = note_of_daemon(env);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_file(&path, &note.to_string());
    stands_in
}

#[test]
fn a_daemon_of_the_release_before_says_so_and_is_replaced_by_one_command() {
    let env = TestEnv::alice();
    let old = noted(&env, None);
    let another = ["the daemon runs an earlier tpu", VERSION, "tpu daemon restart"];
    drop(env.tpu("daemon status").exits(0).says(&another));
    drop(env.tpu("daemon start").exits(0).says(&another));
    drop(env.tpu("check").exits(0).says(&another));
    drop(env.tpu("doctor").exits(0).says(&another));
    drop(env.tpu("run local -q -- true").exits(0).says(&another));
    drop(env.tpu("daemon restart --dry-run").exits(0).says(&["start the daemon anew"]));
    let before = old.process();
    assert!(lives(&before));
    drop(env.tpu("daemon restart").exits(0).says(&["The daemon runs again"]));
    wait_gone(&before);
    wait_until("the new one's first turn", || env.tpu("daemon status").code == 0);
    let status = env.tpu("daemon status").exits(0);
    assert!(!status.to_string().contains("tpu daemon restart"), "{}", status.report());
    assert_eq!(env.tpu("daemon status --json").exits(0).json()["version"], VERSION);
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn a_daemon_of_a_later_version_is_left_alone() {
    let env = TestEnv::alice();
    let newer = noted(&env, Some("99.0.0"));
    let later = ["the daemon runs tpu 99.0.0", "newer than this tpu", "type -a tpu"];
    drop(env.tpu("daemon status").exits(0).says(&later));
    let refused = env.tpu("daemon restart").exits(4);
    drop(refused.says(&["99.0.0", "nothing was done"]));
    assert!(lives(&newer.process()));
}

#[test]
fn a_daemon_is_not_ended_where_no_other_may_begin() {
    let env = TestEnv::alice();
    let old = noted(&env, None);
    write_file(&env.data_path(), "{ broken");
    for line in ["daemon restart --dry-run", "daemon restart"] {
        drop(env.tpu(line).exits(5));
        assert!(lives(&old.process()), "{line}");
    }
}

#[test]
fn a_restart_finds_what_the_daemon_was_told_where_it_was_started() {
    let env = TestEnv::alice();
    let foreground = env.start_tpu("daemon run --serve --socket api.sock", &[]);
    wait_until("its first turn", || env.tpu("daemon status").code == 0);
    let before = foreground.process();
    let elsewhere = env.spawn(&["daemon", "restart"]).cwd(env.path("code-bob"));
    drop(env.output(&elsewhere).exits(0).says(&["it ran in a terminal"]));
    wait_gone(&before);
    let status = wait_for("its first turn", || {
        Some(env.tpu("daemon status --json")).filter(|status| status.code == 0)
    });
    let pid = status.json()["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap();
    let words = procs::words_of(pid);
    let socket = env.path("api.sock").display().to_string();
    assert!(words.contains(&socket), "{words:?}");
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn a_launcher_without_a_link_calls_this_program_again() {
    let env = TestEnv::alice();
    assert_eq!(env.start("echo begun; exec sleep 1000", &[""; 0]), 1);
    // Its launcher has called what shows its words, and calls this program again at its end.
    wait_until("it speaks", || env.tpu("logs 1 alice").stdout.contains("begun"));
    let link = env.path("tpu-state/jobs/alice/1/bin/tpu");
    std::fs::remove_file(&link).unwrap();
    drop(env.tpu("doctor").exits(0).says(&["the launcher of alice/1 calls a tpu that is gone"]));
    let done = env.tpu("daemon restart").exits(0);
    drop(done.says(&["Their launchers call this tpu now: alice/1"]));
    assert!(link.is_symlink() && !link.with_extension("new").is_symlink());
    drop(env.tpu("kill 1").exits(0));
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn a_server_of_a_later_version_is_named_and_goes_on() {
    let env = TestEnv::alice();
    let newer = env.start_program("sleep", "1000", &[]);
    let (process, here) = (newer.process(), Env::read());
    let owner = format!("{}:{}:{}:{}", here.hostname, here.boot_id, process.pid, process.start);
    let note = json!({
        "owner": owner, "pid": process.pid, "since": "2026-01-01T00:00:00Z",
        "address": "http://127.0.0.1:1", "version": "99.0.0",
    });
    let file = env.path(&format!("tpu-state/server-{}.json", process.pid));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    write_file(&file, &note.to_string());
    let done = env.tpu("daemon restart").exits(0);
    drop(done.says(&["the server on http://127.0.0.1:1", "99.0.0", "and continues"]));
    assert!(lives(&process));
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn a_restart_keeps_what_the_daemon_was_started_with_and_starts_one_where_none_runs() {
    let env = TestEnv::alice();
    drop(env.tpu("daemon restart").exits(0).says(&["The daemon runs: process"]));
    drop(env.tpu("daemon stop").exits(0));
    drop(env.tpu("daemon start --serve --socket api.sock").exits(0));
    wait_until("it answers", || env.path("api.sock").exists());
    let words = || {
        let pid = env.tpu("daemon status --json").json()["pid"].as_u64();
        procs::words_of(u32::try_from(pid.unwrap_or_default()).unwrap())
    };
    let before = wait_for("its first turn", || Some(words()).filter(|words| !words.is_empty()));
    drop(env.tpu("daemon restart").exits(0));
    let after = wait_for("its first turn", || Some(words()).filter(|words| !words.is_empty()));
    assert_eq!(before, after);
    assert!(after.iter().any(|word| word == "--socket"), "{after:?}");
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn a_program_that_was_replaced_is_noticed_and_jobs_go_on_through_the_restart() {
    let env = TestEnv::alice();
    let old = program(&env, "old-tpu");
    let with = |words: &[&str]| env.output(&env.spawn_program(old.to_str().unwrap(), words));
    drop(with(&["daemon", "start"]).exits(0));
    let script = "echo $$ >\"$HOME/pid\"; until [ -e \"$HOME/end\" ]; do read -r -t 0.1 <> <(:); done; exit 7";
    drop(with(&["run", "local", "-q", "--", "bash", "-c", script]).exits(0));
    let job = env.wait_pid("pid");
    env.wait_status(1, "running");
    wait_until("the daemon's first turn", || env.tpu("daemon status").code == 0);
    std::fs::remove_file(&old).unwrap();

    drop(
        env.tpu("daemon status").exits(0).says(&["has been replaced since", "tpu daemon restart"]),
    );
    drop(env.tpu("doctor").exits(0).says(&["the launcher of alice/1 calls a tpu that is gone"]));
    let done = env.tpu("daemon restart").exits(0);
    drop(done.says(&["The daemon runs again", "Their launchers call this tpu now: alice/1"]));
    assert!(lives(&job), "the job is the same process");
    let seen = env.tpu("doctor").exits(0);
    assert!(!seen.to_string().contains("that is gone"), "{}", seen.report());
    env.touch("end");
    let ended = env.wait_status(1, "error");
    assert_eq!(ended["extra_msgs"]["launch"]["exit"], 7);
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn a_server_becomes_the_new_program_and_keeps_its_process_and_its_address() {
    let env = TestEnv::alice();
    let old = program(&env, "old-tpu");
    let socket = env.path("api.sock");
    let server = env.start_program(
        old.to_str().unwrap(),
        &format!("serve --socket {}", socket.display()),
        &[],
    );
    let note = env.path(&format!("tpu-state/server-{}.json", server.pid()));
    wait_until("it answers", || note.exists());
    std::fs::remove_file(&old).unwrap();
    drop(env.tpu("doctor").exits(0).says(&["the server on", "has been replaced since"]));
    drop(env.tpu("daemon restart").exits(0).says(&["The server answers again on"]));
    assert!(lives(&server.process()));
    let now: Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    assert_eq!(now["version"], VERSION);
    assert!(!procs::is_program_replaced(server.pid()));
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn what_a_later_program_wrote_is_shown_and_never_changed() {
    let env = TestEnv::alice();
    drop(env.tpu("daemon start").exits(0));
    wait_until("its first turn", || env.tpu("daemon status").code == 0);
    drop(env.tpu("-a k config.k").exits(0));
    let mut data = env.data();
    data["tpu_format"] = json!(2);
    env.write_data(&data);
    let before = env.data_bytes();
    let newer = ["is of format 2", VERSION, "type -a tpu"];
    drop(env.tpu("ls").exits(0));
    for line in
        ["-a l config.l", "run local -q -- true", "doctor --restore", "-a l config.l --dry-run"]
    {
        drop(env.tpu(line).exits(5).says(&newer));
        assert_eq!(env.data_bytes(), before, "{line}");
    }
    drop(env.tpu("doctor").exits(1).says(&newer));
    wait_until("the daemon only watches", || {
        env.tpu("daemon status").stdout.contains("It only watches, since a newer tpu wrote")
    });
    assert_eq!(env.data_bytes(), before);

    // Nobody locks himself out by an edit.
    data.as_object_mut().unwrap().remove("tpu_format");
    env.write_data(&data);
    drop(env.tpu("data set tpu_format 9").exits(2).says(&["tpu_format", "tpu alone writes it"]));
    wait_until("the daemon acts again", || {
        !env.tpu("daemon status").stdout.contains("only watches")
    });
    drop(env.tpu("daemon stop").exits(0));
}
