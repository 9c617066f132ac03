//! The first minutes: `tpu` alone, `tpu init`, moving in from the original, what is missing before any
//! set-up; and what must cost nothing: help, lists and completions start no tmux and open no socket.

use serde_json::json;

use tpu_system::sys::proc;

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::wait_until;

/// A machine on which nobody has begun.
fn nothing_yet() -> TestEnv {
    let mut env = TestEnv::new();
    std::fs::remove_file(env.data_path()).unwrap();
    env.set("USER", "carol");
    env
}

#[test]
fn tpu_alone_says_how_to_begin() {
    let env = nothing_yet();
    let output = env.tpu("").exits(0).says(&["tpu demo", "tpu init", "tpu tldr"]);
    assert!(output.stdout.lines().count() <= 12, "{}", output.stdout);
    let widest = output.stdout.lines().map(tpu_core::text::width).max();
    assert!(widest <= Some(80), "{}", output.stdout);
}

#[test]
fn before_any_set_up_run_says_what_is_missing_and_how_to_get_it() {
    let env = nothing_yet();
    drop(env.tpu("run local -- true").exits(5).says(&["no data file", "tpu init"]));
    drop(env.tpu("add-user carol").exits(0));
    drop(env.tpu("run local").exits(3).says(&["no directory 1", "tpu init --name carol"]));
    drop(env.tpu("set-cur 1").exits(0));
    drop(env.tpu("run").exits(2).says(&[
        "which target?",
        "tpu run local -- python train.py",
        "tpu -lta",
        "`local` is this machine",
    ]));
    drop(env.tpu("run local").exits(3).says(&["no staging.sh", "-- python3"]));
    drop(env.tpu("run v2-1").exits(3).says(&["no target 'v2-1'", "tpu register"]));
    drop(env.tpu("run local -- true").exits(0));
}

#[test]
fn init_makes_user_settings_and_scripts_once() {
    let env = nothing_yet();
    let code = env.path("code-alice");
    let line = format!("init --no-input --dir {} --scripts", code.display());
    drop(env.tpu(&format!("{line} --dry-run")).exits(0).says(&["Dry run", "Added user carol"]));
    assert!(!env.data_path().exists() && !code.join("staging.sh").exists());
    drop(env.tpu(&line).exits(0).says(&["Added user carol", "staging.sh, run_remote.sh"]));
    let settings = std::fs::read(env.path("config/tpu/settings.json")).unwrap();
    let settings: serde_json::Value = serde_json::from_slice(&settings).unwrap();
    assert_eq!(settings["user"], "carol");
    assert!(code.join("staging.sh").exists());
    let before = env.data_bytes();
    write_file(&code.join("config.sh"), "mine");
    drop(env.tpu(&line).exits(0).says(&["is there already", "no scripts were put there"]));
    let elsewhere = env.tpu(&format!("init --no-input --dir {}", env.path("").display())).exits(0);
    assert!(elsewhere.stdout.contains("none of carol's; to run from here too: tpu set-dir"));
    assert_eq!(env.data_bytes(), before);
    assert_eq!(std::fs::read_to_string(code.join("config.sh")).unwrap(), "mine");
    // The scripts that it puts there work.
    write_file(&code.join("config.sh"), include_str!("../../assets/example/config.sh"));
    drop(env.tpu("run local --dry-run").exits(0).says(&["source staging.sh", "ka=local"]));
    drop(
        env.tpu("init --name run")
            .exits(2)
            .says(&["'run' already means something: it is a command"]),
    );
    for (name, meaning) in
        [("tag", "word of the grammar"), ("v2-8", "type of"), ("keng", "command")]
    {
        let refused = env.tpu(&format!("add-user {name}")).exits(2);
        assert!(refused.stderr.contains(meaning), "{name}: {refused}");
    }
}

#[test]
fn whoever_was_added_begins_with_init_and_takes_over_nobody_s_account() {
    let env = nothing_yet();
    let begin = |name: &str| {
        let code = env.path(&format!("code-{name}"));
        std::fs::create_dir_all(&code).unwrap();
        env.tpu(&format!("init --no-input --name {name} --dir {}", code.display()))
    };
    drop(begin("alice").exits(0).says(&["Added user alice", "Wrote user = \"alice\""]));
    let next = "in the directory of your code: tpu init --name zoe";
    drop(env.tpu("add-user zoe").exits(0).says(&[next]));
    for line in ["run local zoe", "ls zoe", "doctor"] {
        let said = env.tpu(line).to_string();
        assert!(said.contains(next), "{line}: {said}");
        assert!(!said.contains("set-cur"), "{line}: {said}");
    }
    drop(begin("zoe").exits(0).says(&["User zoe is there already; made ", "still mean alice"]));
    drop(env.tpu("run local zoe -q -- true").exits(0).says(&["Started zoe/1"]));
    drop(env.tpu("run local -q -- true").exits(0).says(&["Started alice/1"]));
}

#[test]
fn the_version_says_what_the_program_was_built_from() {
    let env = nothing_yet();
    let said = env.tpu("--version").exits(0).stdout;
    let [name, commit, features] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert_eq!(name, format!("tpu {}", env!("CARGO_PKG_VERSION")));
    let (key, commit) = commit.split_once(": ").unwrap();
    let is_hash = commit.trim_end_matches("-dirty").chars().all(|c| c.is_ascii_hexdigit());
    assert!(key == "commit" && (is_hash || commit == "unknown"), "{said}");
    for feature in ["kubernetes", "lab", "mail", "page", "slurm"] {
        assert!(features.starts_with("features: ") && features.contains(feature), "{said}");
    }
    assert!(!features.contains("default"), "{said}");
    assert_eq!(env.tpu("-V").exits(0).stdout, format!("{name}\n"));
}

#[test]
fn a_short_name_is_none_that_means_something() {
    let env = TestEnv::new();
    env.write_data(&env.two_users());
    let before = env.data_bytes();
    for name in ["kill", "keng", "tag", "w", "bob", "pre", "resume", "v2-8", "local", "12", "true"]
    {
        for add in [format!("-ta {name} lab-tpu-1"), format!("-a {name} config.lr alice")] {
            let refused = env.tpu(&add);
            assert!([2, 4].contains(&refused.code), "{refused}");
            assert_eq!(env.data_bytes(), before, "{add}");
        }
    }
    drop(env.tpu("-ta mine lab-tpu-1").exits(0));
    drop(env.tpu("-a rate config.lr alice").exits(0));
}

#[test]
fn moving_in_reports_and_changes_nothing() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let mut job = env.record("alice", 3, "running");
    let record = job.as_object_mut().unwrap();
    record.remove("stage_dir");
    record.insert("staage_dir".to_owned(), json!("/old"));
    data["users"]["alice"]["job_data"] = json!([job, env.record("alice", 4, "error")]);
    data["monitor_config"]["checking_freq"] = json!(600);
    data["lab_wiki"] = json!("https://example.org");
    env.write_data(&data);
    let dir = env.path("old");
    std::fs::create_dir(&dir).unwrap();
    std::fs::rename(env.data_path(), dir.join("data.json")).unwrap();
    write_file(&dir.join("legacy.json"), "[{}, {}]");
    write_file(&dir.join("queue.json"), "[{\"id\": 1}]");
    write_file(&dir.join("lock.json"), "{\"data\": {\"status\": true, \"user\": \"bob\"}}");
    let files = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
            .into_iter()
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect::<Vec<_>>()
    };
    let before = files();
    let line = format!("init --from {}", dir.display());
    drop(env.tpu(&line).exits(0).says(&[
        "user alice: tmux session alice, 1 directory, 1 error, 1 running",
        "keys of others, which stay: lab_wiki",
        "legacy.json: 2 archived jobs",
        "queue.json: 1 task in line",
        "lock.json: locked by bob",
        "spelt staage_dir in 1 record",
        "checking_freq 600 was never read by the original",
        "nothing now",
    ]));
    assert_eq!(files(), before);
    drop(env.tpu(&format!("{line} --adopt")).exits(0).says(&["settings.json", "Next: tpu check"]));
    assert_eq!(files(), before, "the file stays where and as it is");
    let settings = std::fs::read_to_string(env.path("config/tpu/settings.json")).unwrap();
    assert!(settings.contains("old/data.json"), "{settings}");
    write_file(&dir.join("data.json"), "{\"users\": {\"a\": {\"id\": []}}}");
    drop(env.tpu(&line).exits(5).says(&["users.a.id", "hint: "]));
}

#[test]
fn what_happened_since_last_time_is_told_once() {
    let env = TestEnv::new();
    let window = env.start("true", &[] as &[&str]);
    env.wait_status(window, "finished");
    // What happened is told just behind the change.
    wait_until("its end is told", || env.tpu("history alice").exits(0).stdout.contains("finished"));
    drop(env.tpu("history alice --since-last --dry-run").exits(0).says(&["alice/1"]));
    drop(env.tpu("history alice --since-last").exits(0).says(&["alice/1"]));
    drop(env.tpu("history alice --since-last").exits(0).says(&["Nothing has happened"]));
    drop(env.tpu("history bob --since-last").exits(0).says(&["Nothing has happened"]));
    drop(env.tpu("add-tag 1 later alice").exits(0));
    drop(env.tpu("history alice --since-last").exits(0).says(&["later"]));
}

#[test]
fn every_dry_run_changes_nothing() {
    let mut env = TestEnv::new();
    // So that the commands about targets have somebody to ask.
    env.set("TPU_CLOUD", "sim");
    write_file(&env.path("more.json"), "{\"conda_env_name\": \"other\"}");
    let window = env.start("exec sleep 1000", &[] as &[&str]);
    env.wait_status(window, "running");
    let before = env.data_bytes();
    for line in [
        "run local alice -- true",
        "kill 1 alice",
        "kill-window 1 alice",
        "clean alice",
        "clean alice --with-results",
        "clear-finished alice",
        "clear-error alice",
        "clear-all alice",
        "-czw alice",
        "-czj alice",
        "add-tag 1 x alice",
        "set-rule 1 resume alice",
        "add-user zoe",
        "del-user bob",
        "set-cur 2 alice",
        "set-dir / 3 alice",
        "del-dir 1 alice",
        "-a x config.x alice",
        "del-config-alias lr alice",
        "set-settings theme dark alice",
        "reset-settings alice",
        "reset-window-num 90 alice",
        "-ta x lab-x",
        "register lab-x",
        "del-registered v2-1",
        "ssn v2-1 x",
        "asn v2-1 x",
        "reserve v2-1 alice",
        "release v2-1",
        "apply v2-1",
        "reapply v2-1",
        "delete v2-1",
        "start v2-1",
        "stop v2-1",
        "restart v2-1",
        "sim preempt v2-1",
        "daemon start",
        "ack",
        "-Mc",
        "-smc checking_freq 60",
        "data set conda_env_name x",
        "data merge more.json",
        "doctor --fix",
        "doctor --restore",
        "init --name zoe",
    ] {
        drop(env.tpu(&format!("--dry-run {line}")).exits(0));
        let now = env.data_bytes();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            now == before,
            "tpu {line} --dry-run wrote\n{}\nover\n{}",
            text(&now),
            text(&before)
        );
        assert!(env.has_window("alice", window), "tpu {line} --dry-run closed a window");
    }
    drop(env.tpu("daemon status").exits(1));
}

#[test]
fn waiting_shows_itself_on_a_terminal_and_is_silent_in_a_pipe() {
    let env = TestEnv::new();
    let window = env.start("while [ ! -e \"$HOME/go\" ]; do sleep 0.4; done", &[] as &[&str]);
    env.wait_status(window, "running");
    // The server's own variables name no data file: the command does.
    let line = format!("{TPU} --data {} wait 1 alice", env.data_path().display());
    let pane =
        env.tmux().run(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "=alice:", &line]);
    let text = || env.tmux().try_run(&["capture-pane", "-p", "-t", pane.trim()]).text();
    wait_until("what is waited for, on the terminal", || text().contains("alice/1 running"));
    let piped = env.start_tpu("wait 1 alice", &[]);
    env.touch("go");
    assert_eq!(piped.wait(), 0);
    let output = env.tpu("wait 1 alice").exits(0);
    assert_eq!(output.stderr, "");
}

#[test]
fn verbose_says_what_holds() {
    let env = TestEnv::new();
    let output = env.tpu("ls alice --verbose").exits(0);
    for word in ["data file: ", "tmux server: ", "cloud: none"] {
        assert!(output.stderr.contains(word), "{}", output.stderr);
    }
}

#[test]
fn help_lists_and_completions_start_no_tmux_and_open_no_socket() {
    let mut env = TestEnv::new();
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    write_script(&bin.join("tmux"), "echo called >>\"$HOME/called\"; exit 1");
    env.set("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let strace = ["/usr/bin/strace", "/usr/local/bin/strace"]
        .into_iter()
        .find(|path| std::path::Path::new(path).exists());
    if strace.is_none() {
        eprintln!("skipped: without strace the sockets are not counted");
    }
    for words in [
        &["--help"][..],
        &["help", "run"],
        &["ls", "alice"],
        &["-lta"],
        &["-sa", "alice"],
        &["tldr"],
        &["completions", "bash"],
        &["list-users"],
        &["get-settings", "alice"],
    ] {
        drop(env.tpu_words(words).exits(0));
        let Some(strace) = strace else { continue };
        let log = env.path("strace.log");
        let mut all = vec![
            "-f",
            "-qq",
            "-e",
            "trace=network,clone,clone3,fork,vfork",
            "-o",
            log.to_str().unwrap(),
            TPU,
        ];
        all.extend(words);
        let output = proc::run(&env.spawn_program(strace, &all)).unwrap();
        if !output.status.success() {
            eprintln!("skipped: strace may not trace here: {}", output.complaint());
            continue;
        }
        let calls = std::fs::read_to_string(&log).unwrap();
        assert!(calls.trim().is_empty(), "tpu {words:?} makes\n{calls}");
    }
    assert!(!env.path("called").exists(), "tmux was called");
}

#[test]
fn a_time_zone_that_there_is_not_is_asked_for_again_or_refused_before_anything_is_written() {
    let env = nothing_yet();
    drop(env.tpu("init --no-input --time-zone Mars/Olympus").exits(2).says(&[
        "--time-zone Mars/Olympus",
        "nothing was written",
        "Europe/Berlin",
    ]));
    assert!(!env.data_path().exists() && !env.path("config/tpu/settings.json").exists());
    let terminal = Terminal::new(&env);
    terminal
        .command(&format!("{TPU} init --name carol --dir {}", env.path("code-alice").display()));
    terminal.shows("Time zone (");
    terminal.command("Mars/Olympus");
    terminal.shows("'Mars/Olympus' is no time zone");
    terminal.command("Europe/Berlin");
    terminal.shows("How your programs take lr=0.05");
    terminal.command("");
    terminal.shows("Put example scripts there");
    terminal.command("n");
    terminal.shows("Added user carol");
    assert_eq!(env.data()["users"]["carol"]["settings"]["time_zone"], "Europe/Berlin");
}

#[test]
fn a_name_that_nobody_knows_is_asked_for_until_there_is_one() {
    let env = nothing_yet();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("env -u USER -u LOGNAME {TPU} init --time-zone us"));
    terminal.shows("Your name here []");
    terminal.command("");
    terminal.shows("a name is needed");
    for (pasted, problem) in [
        ("tpu init --name carol", "cannot be a user name"),
        ("3rd", "cannot be a user name"),
        ("kill", "'kill' already means something"),
    ] {
        terminal.command(pasted);
        terminal.shows(problem);
    }
    terminal.command("carol");
    terminal.shows("Directory of your code");
    terminal.command("~/not-there");
    terminal.shows("not-there is not a directory");
    terminal.command("~");
    terminal.shows("How your programs take lr=0.05 (flags as --lr=0.05, hydra as lr=0.05");
    terminal.command("args");
    terminal.shows("'args' is none of flags, hydra and config");
    terminal.command("hydra");
    terminal.shows("Put example scripts there");
    terminal.command("n");
    terminal.shows("Added user carol");
    wait_until("the answer is kept", || {
        env.data()["users"]["carol"]["settings"]["arguments"] == "hydra"
    });
    assert_eq!(env.data()["users"]["carol"]["working_dir"]["1"], env.root());
}
