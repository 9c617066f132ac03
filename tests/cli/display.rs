//! What only shows, writes nothing and starts nothing.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::Value;

use crate::common::env::{TPU, TestEnv};
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// One finished, one failed and one live job, and one whose record knows less than the facts.
fn busy_env() -> TestEnv {
    let env = TestEnv::new();
    env.start("echo fine", &NONE);
    env.wait_status(1, "finished");
    env.start("echo 'ValueError: no' >&2; exit 1", &NONE);
    env.wait_status(2, "error");
    env.start("while :; do echo step 10/100 loss 0.5; sleep 0.4; done", &NONE);
    env.wait_status(3, "running");
    // Its window is closed by hand: the shown status moves on, the stored one must not.
    env.start("exec sleep 1000", &NONE);
    env.wait_status(4, "running");
    let pane = env.pane_id("alice", 4).unwrap();
    env.tmux().run(&["kill-pane", "-t", &pane]);
    wait_until("it has ended", || env.tpu("check alice").to_string().contains("window closed"));
    env
}

#[test]
fn showing_a_hundred_times_leaves_the_file_as_it_is() {
    let env = busy_env();
    let stat = || {
        let meta = std::fs::metadata(env.data_path()).unwrap();
        (meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.mode(), env.data_bytes())
    };
    let state = || {
        let mut files: Vec<_> =
            std::fs::read_dir(env.path("tpu-state")).unwrap().flatten().collect();
        files.sort_by_key(std::fs::DirEntry::file_name);
        let lens = files.iter().map(|file| (file.file_name(), file.metadata().unwrap().len()));
        lens.collect::<Vec<_>>()
    };
    // The window's launcher had its last word when its job ended.
    let before = (stat(), state());
    for round in 0..100 {
        match round % 5 {
            0 => {
                drop(env.tpu("check alice").exits(0).says(&["Window 4", "killed (window closed)"]));
            }
            1 => drop(env.tpu("check alice --json").exits(0).json()),
            2 => drop(env.tpu("check --all-users").exits(0)),
            3 => drop(env.tpu("check-simp alice").exits(0)),
            _ => drop(env.tpu("explain 4 alice").exits(0)),
        }
    }
    assert_eq!((stat(), state()), before);
}

#[test]
fn text_and_json_agree() {
    let env = busy_env();
    let json = env.tpu("check alice --json").exits(0).json();
    let shown: Vec<(u64, &str, &Value)> = json["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| {
            (job["window"].as_u64().unwrap(), job["status"].as_str().unwrap(), &job["window_alive"])
        })
        .collect();
    let wanted = [
        (1, "finished", &Value::Bool(true)),
        (2, "error", &Value::Bool(true)),
        (3, "running", &Value::Bool(true)),
        (4, "killed", &Value::Bool(false)),
    ];
    assert_eq!(shown, wanted);
    let table = env.tpu("check-simp alice").exits(0);
    for (window, status, _) in wanted {
        let mut lines = table.stdout.lines();
        let found = lines.any(|line| line.contains(status) && line.contains(&window.to_string()));
        assert!(found, "{window} {status}\n{}", table.report());
    }
}

#[test]
fn listing_directories_needs_no_tmux() {
    let mut env = TestEnv::new();
    env.set("PATH", env.path("code-bob").into_os_string());
    env.tpu("ls alice").exits(0).says(&["[DIR]/code-alice"]);
    // Where tmux is needed, its absence is said.
    env.tpu("run local alice -- true").exits(6).says(&["tmux", "hint:"]);
}

/// Under a limit of one for all processes and threads of an account that has no others, the kernel refuses
/// every further one: whatever succeeds there is one thread and has started nothing.
#[test]
fn listing_directories_is_one_thread_and_starts_nothing() {
    let env = TestEnv::new();
    if rustix::process::getuid().as_raw() != 0 {
        eprintln!("skipped: only root can take on an account that has no processes");
        return;
    }
    let Some(setpriv) = ["/usr/bin/setpriv", "/bin/setpriv"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists())
    else {
        eprintln!("skipped: there is no setpriv");
        return;
    };
    std::fs::set_permissions(env.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = env.path("tpu");
    std::fs::copy(TPU, &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let account = format!("--reuid={}", 1_000_000 + std::process::id());
    let alone = |line: &str| {
        let script = format!("ulimit -u 1 && exec {line}");
        let words = [account.as_str(), "--clear-groups", "bash", "-c", script.as_str()];
        env.output(&env.spawn_program(setpriv, &words))
    };
    alone("./tpu ls alice").exits(0).says(&["[DIR]/code-alice"]);
    alone("./tpu ls alice --json").exits(0);
    // The limit holds: what asks tmux cannot start it there.
    alone("./tpu -czw alice").exits(6).says(&["tmux"]);
}
