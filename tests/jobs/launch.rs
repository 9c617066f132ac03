//! `tpu run` in the built program: what is typed arrives, what happens is recorded, and whatever is
//! wrong is said before anything exists.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::process::Signal as RawSignal;

use tpu_system::sys::procs::Process;

use crate::common::env::{TestEnv, lives};
use crate::common::wait::{wait_for, wait_until};

/// Keeps the words it was started with, as the kernel has them, and ends.
const KEEP_WORDS: &str =
    "cat /proc/$$/cmdline >\"$HOME/words.new\"; mv \"$HOME/words.new\" \"$HOME/words\"";

/// Lives until `go` appears; writes its process id first.
const UNTIL_GO: &str =
    "echo $$ >\"$HOME/pid\"; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; exit 3";

/// Words that a careless layer would change: shell, tmux formats, options, nothing at all.
const NASTY: [&[u8]; 16] = [
    b"",
    b" ",
    b"a b",
    b"'",
    b"\"",
    b"\\",
    b"a\nb",
    b"x=y=z",
    b";",
    b"$(id)",
    b"`id`",
    b"#{session_name}",
    b"#(id)",
    b"--",
    b"-n",
    b"\xff\xfe\x80",
];

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => proptest::sample::select(NASTY.to_vec()).prop_map(<[u8]>::to_vec),
        3 => proptest::collection::vec(1_u8..=255, 0..12),
        1 => "[ -~]{0,12}".prop_map(String::into_bytes),
    ]
}

#[test]
fn words_arrive_byte_for_byte() {
    let env = TestEnv::new();
    let config =
        Config { cases: 6, max_shrink_iters: 12, failure_persistence: None, ..Config::default() };
    let words = proptest::collection::vec(word(), 20..60);
    TestRunner::new(config)
        .run(&words, |mut words| {
            words.extend(NASTY.iter().map(|word| word.to_vec()));
            drop(std::fs::remove_file(env.path("words")));
            let typed: Vec<OsString> = words.iter().cloned().map(OsString::from_vec).collect();
            let window = env.start(KEEP_WORDS, &typed);
            let kept = env.wait_file("words");
            let mut arrived: Vec<&[u8]> = kept.split(|byte| *byte == 0).skip(4).collect();
            prop_assert_eq!(arrived.pop(), Some(b"".as_slice()));
            prop_assert_eq!(arrived, words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            // The record keeps them as well, for a resume.
            let command = env.job("alice", window)["customized_settings"]["command"].clone();
            prop_assert_eq!(command.as_array().map(Vec::len), Some(words.len() + 4));
            Ok(())
        })
        .unwrap();
}

#[test]
fn config_values_are_everything_behind_the_first_equals_sign() {
    let env = TestEnv::new();
    let values = ["lr=a b=c", "config.note='$(id)' #{host}\n", "lr="];
    let mut words = vec!["run", "local", "alice"];
    words.extend(values);
    words.extend(["--", "bash", "-c", KEEP_WORDS, "job"]);
    env.tpu_words(&words).exits(0);
    let kept = env.wait_file("words");
    let arrived: Vec<&[u8]> = kept.split(|byte| *byte == 0).skip(4).collect();
    let wanted = [
        "--config.training.learning_rate=a b=c",
        "--config.note='$(id)' #{host}\n",
        "--config.training.learning_rate=",
        "",
    ];
    assert_eq!(arrived, wanted.map(str::as_bytes));
}

#[test]
fn the_job_sees_who_it_is_and_what_its_shell_exports() {
    let mut env = TestEnv::new();
    // A server of somebody else's: what reaches the job, reaches it through the launcher.
    env.tmux().run(&["new-session", "-d", "-s", "other"]);
    env.set("CONDA_PREFIX", "/opt/con da");
    env.set("TPU_API_TOKEN", "hush-hush-1");
    env.set("CONDA_SECRET", "hush-hush-2");
    env.set("WANDB_API_KEY", "hush-hush-3");
    env.set("UNRELATED", "own");
    let window = env.start(
        "env -0 >\"$HOME/env.new\"; command -v tpu >\"$HOME/which\"; mv \"$HOME/env.new\" \"$HOME/env\"",
        &[] as &[&str],
    );
    let bytes = env.wait_file("env");
    let var = |name: &str| {
        let prefix = format!("{name}=");
        let found = bytes.split(|b| *b == 0).find_map(|v| v.strip_prefix(prefix.as_bytes()));
        found.map(|value| String::from_utf8(value.to_vec()).unwrap())
    };
    let job = env.wait_status(window, "finished");
    let state = env.state_of("alice", window);
    let own = state.join("bin/tpu");
    assert_eq!(var("TPU_JOB"), Some(format!("alice/{window}")));
    assert_eq!(var("TPU_DATA").as_deref(), env.data_path().to_str());
    assert_eq!(var("TPU_BIN").as_deref(), own.to_str());
    assert_eq!(var("TPU_TARGET").as_deref(), Some("local"));
    assert_eq!(var("TPU_WORKER").as_deref(), Some("0"));
    assert_eq!(var("TPU_LOG_DIR").as_deref(), job["log_dir"].as_str());
    assert_eq!(var("TPU_STAGE_DIR").as_deref(), job["stage_dir"].as_str());
    assert_eq!(var("TPU_TMUX_SOCKET").as_deref(), Some(env.tmux().socket()));
    assert_eq!(var("CONDA_PREFIX").as_deref(), Some("/opt/con da"));
    assert_eq!(var("UNRELATED").as_deref(), Some("own"));
    assert_eq!(var("WANDB_API_KEY").as_deref(), Some("hush-hush-3"));
    assert_eq!(var("PWD").as_deref(), job["stage_dir"].as_str());
    assert!(var("PATH").unwrap().starts_with(&format!("{}:", state.join("bin").display())));
    let which = String::from_utf8(env.wait_file("which")).unwrap();
    assert_eq!(Some(which.trim_end()), own.to_str());

    for file in ["env", "shell", "spec", "argv", "launcher.sh"] {
        let path = state.join(file);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file} can be read by others");
    }
    // What the job has written itself, and what is kept for its restarts.
    let grep = env.output(&env.spawn_program("grep", &["-rl", "hush-hush", env.root()]));
    let mut holders: Vec<&str> = grep.stdout.lines().collect();
    holders.sort_unstable();
    let (own, kept) = (env.path("env"), state.join("shell"));
    assert_eq!(holders, [own.to_str().unwrap(), kept.to_str().unwrap()]);
}

#[test]
fn the_stage_directory_holds_the_code_and_links_to_the_rest() {
    let env = TestEnv::new();
    for name in [
        "train.py",
        "lib/model.py",
        ".hidden",
        "wandb/run-1/log",
        ".git/HEAD",
        "junk/big.bin",
        "__pycache__/x.pyc",
        "plot.png",
        "note.log",
    ] {
        env.code("alice", name, "text");
    }
    env.code("alice", ".gitignore", "junk/\n*.log\n");
    let run = env.path("code-alice/run.sh");
    env.code("alice", "run.sh", "exit 0\n");
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink("train.py", env.path("code-alice/link.py")).unwrap();

    let find = "find . ! -type d -printf '%p %y\\n' | sort >\"$HOME/staged\"; ./run.sh";
    let window = env.start(find, &[] as &[&str]);
    let job = env.wait_status(window, "finished");
    let staged = String::from_utf8(env.wait_file("staged")).unwrap();
    let names: Vec<&str> = staged.lines().collect();
    let wanted = [
        "./.gitignore f",
        "./.hidden f",
        "./.tpu-copied f",
        "./junk l",
        "./lib/model.py f",
        "./link.py l",
        "./note.log l",
        "./plot.png l",
        "./run.sh f",
        "./train.py f",
        "./wandb l",
    ];
    assert_eq!(names, wanted);
    assert!(job["stage_dir"].as_str().unwrap().starts_with(env.root()));
}

#[test]
fn the_log_is_complete_and_the_exit_code_is_recorded() {
    let env = TestEnv::new();
    let window = env.start("seq 5000; echo last words >&2; exit 7", &[] as &[&str]);
    let job = env.wait_status(window, "error");
    assert_eq!(job["extra_msgs"]["launch"]["exit"], 7, "{job:#}");
    let log = std::path::Path::new(job["log_dir"].as_str().unwrap()).join("output.log");
    let text = std::fs::read_to_string(log).unwrap();
    let wanted: Vec<String> =
        (1..=5000).map(|n| n.to_string()).chain(["last words".to_owned()]).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    let exit = std::fs::read_to_string(env.state_of("alice", window).join("exit")).unwrap();
    let (exit, token) = exit.trim().split_once(' ').unwrap();
    assert_eq!(job["extra_msgs"]["launch"]["token"], token);
    assert_eq!(exit.trim(), "7");
    let pane = env.pane_id("alice", window).unwrap();
    let mark = env.tmux().run(&["show-options", "-p", "-v", "-t", &pane, "@tpu_exit"]);
    assert_eq!(mark, "7");

    let good = env.start("echo fine", &[] as &[&str]);
    assert_eq!(env.wait_status(good, "finished")["extra_msgs"]["launch"]["exit"], 0);
}

#[test]
fn ctrl_c_ends_the_job_and_not_its_launcher() {
    let env = TestEnv::new();
    // One process: a shell that waits for a child goes on if that child has ended as the key came (bash(1), SIGNALS).
    let window = env.start("echo $$ >\"$HOME/pid\"; exec sleep 1000", &[] as &[&str]);
    let job = env.wait_pid("pid");
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["send-keys", "-t", &pane, "C-c"]);
    let record = env.wait_status(window, "error");
    assert!(!lives(&job));
    assert_eq!(record["extra_msgs"]["launch"]["exit"], 130, "{record:#}");
    wait_until("the window says how the job ended", || {
        env.pane("alice", window).contains("ended with exit code 130")
    });
    // What is left is a shell for the person.
    env.tmux().run(&["send-keys", "-t", &pane, "echo shell-$((6*7))", "Enter"]);
    wait_until("the shell answers", || env.pane("alice", window).contains("shell-42"));
}

#[test]
fn ctrl_z_freezes_nothing() {
    let env = TestEnv::new();
    let window = env.start(UNTIL_GO, &[] as &[&str]);
    let job = env.wait_pid("pid");
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["send-keys", "-t", &pane, "C-z"]);
    wait_until("the key has arrived", || env.pane("alice", window).contains("^Z"));
    assert!(lives(&job));
    env.touch("go");
    let record = env.wait_status(window, "error");
    assert_eq!(record["extra_msgs"]["launch"]["exit"], 3);
}

#[test]
fn a_stopped_job_has_not_ended() {
    let env = TestEnv::new();
    let window = env.start(UNTIL_GO, &[] as &[&str]);
    let job = env.wait_pid("pid");
    let group = recorded_group(&env, window);
    assert_eq!(group, job.pgid);
    signal_group(group, RawSignal::STOP);
    wait_until("the job is stopped", || state_letter(&job) == Some('T'));
    env.tpu("check alice").exits(0);
    assert_eq!(env.job("alice", window)["extra_msgs"]["launch"]["exit"], serde_json::Value::Null);
    assert!(!env.state_of("alice", window).join("exit").exists());
    env.touch("go");
    signal_group(group, RawSignal::CONT);
    let record = env.wait_status(window, "error");
    assert_eq!(record["extra_msgs"]["launch"]["exit"], 3, "the code of its real end");
}

fn signal_group(group: u32, signal: RawSignal) {
    let group = rustix::process::Pid::from_raw(i32::try_from(group).unwrap()).unwrap();
    rustix::process::kill_process_group(group, signal).unwrap();
}

fn state_letter(process: &Process) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.pid)).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn recorded_group(env: &TestEnv, window: u64) -> u32 {
    let path = env.state_of("alice", window).join("pid");
    wait_for("the recorded process group", || {
        std::fs::read_to_string(&path).ok()?.split_once(' ')?.0.parse().ok()
    })
}

#[test]
fn a_dry_run_changes_nothing() {
    let env = TestEnv::new();
    let before = (env.data_bytes(), names(&env));
    let run = env.tpu("run local alice lr=0.01 tag=t --dry-run -- echo one two").exits(0);
    run.says(&["echo one two '--config.training.learning_rate=0.01'", "[DIR]/code-alice"]);
    assert_eq!((env.data_bytes(), names(&env)), before);
    assert_eq!(env.tmux().server_pid(), None);
}

fn names(env: &TestEnv) -> Vec<String> {
    let entries = std::fs::read_dir(env.root()).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    // Asking for a server leaves tmux's own directory.
    names.retain(|name| !name.starts_with("tmux-"));
    names
}

#[test]
fn all_problems_are_reported_together_with_the_lowest_code() {
    let env = TestEnv::new();
    let before = env.data_bytes();
    let all = env.tpu("run v9-9 alice dir=9 rule=often foo=1 -- true").exits(2);
    all.says(&["no directory 9", "no target 'v9-9'", "rule 'often'", "'foo=1'"]);
    let missing = env.tpu("run v9-9 alice dir=9 -- true").exits(3);
    missing.says(&["no directory 9", "no target 'v9-9'", "hint:"]);
    assert_eq!(env.data_bytes(), before);
    assert_eq!(env.tmux().server_pid(), None);
}

#[test]
fn an_exclusive_target_takes_one_live_job() {
    let env = TestEnv::new();
    for user in ["alice", "bob"] {
        env.code(
            user,
            "staging.sh",
            "echo \"$@\" >\"$HOME/staged-by-$TPU_JOB_USER\"; sleep 1000\n",
        );
    }
    env.tpu("run v2-1 alice").exits(0);
    let refused = env.tpu("run v2-1 bob").exits(4);
    refused.says(&["lab-tpuvm-v2-32-1 is in use by alice/1", "--force"]);
    assert!(env.jobs("bob").is_empty());
    assert_eq!(env.windows("bob"), Vec::<u64>::new());
    assert_eq!(env.jobs("alice").len(), 1);
    env.tpu("run v2-1 bob --force").exits(0);
    // A shared one takes any number.
    env.start_for("bob", "sleep 1000", &[] as &[&str]);
    env.start_for("bob", "sleep 1000", &[] as &[&str]);
}

#[test]
fn script_mode_passes_plain_values_and_refuses_what_the_script_would_take_apart() {
    let env = TestEnv::new();
    env.code(
        "alice",
        "staging.sh",
        "printf '%s\\0' \"$@\" >\"$HOME/new\"; mv \"$HOME/new\" \"$HOME/words\"\n",
    );
    for value in ["a b", "a;b", "$(id)", "`id`", "a'b", "a\"b", "a|b", "a&b", "*", "a\nb", "#{x}"] {
        let pair = format!("lr={value}");
        let refused = env.tpu_words(&["run", "v2-1", "alice", &pair]).exits(4);
        refused.says(&["staging.sh", "--force"]);
        assert!(env.jobs("alice").is_empty());
    }
    let forced = env.tpu_words(&["run", "v2-1", "alice", "lr=a b", "config.x=1e-3", "--force"]);
    forced.exits(0);
    let words = env.wait_file("words");
    let words: Vec<&OsStr> = words.split(|byte| *byte == 0).map(OsStr::from_bytes).collect();
    let wanted = [
        "ka=lab-tpuvm-v2-32-1",
        "zone=europe-west4-a",
        "--config.training.learning_rate=a b",
        "--config.x=1e-3",
        "",
    ];
    assert_eq!(words, wanted);
    // It ended without a word: that is no success, whatever its exit code.
    let record = env.wait_status(1, "error");
    assert_eq!(record["extra_configs"], "'--config.training.learning_rate=a b' --config.x=1e-3");
}

#[test]
fn the_file_keeps_the_originals_shape() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    data["zz_unknown"] = serde_json::json!({ "b": 1, "a": [1, 2] });
    data["users"]["alice"]["favourite"] = "tea".into();
    env.write_data(&data);
    let window = env.start("true", &[] as &[&str]);
    let record = env.wait_status(window, "finished");
    let after = env.data();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(keys(&after), keys(&data));
    assert_eq!(keys(&after["users"]["alice"]), keys(&data["users"]["alice"]));
    assert_eq!(after["zz_unknown"], data["zz_unknown"]);
    assert_eq!(after["users"]["bob"], data["users"]["bob"]);
    assert_eq!(after["users"]["alice"]["windows_offset"], window + 1);
    assert_eq!(keys(&record), keys(&env.record("alice", 1, "finished")));
    assert_eq!(record["windows_id"], window);
    assert!(record["job_dir_id"].is_null(), "it stands in no slot");
    assert!(record["rules"].is_object() && record["customized_settings"].is_object());
}
