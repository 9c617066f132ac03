//! A command starts the daemon where something depends on it, says so in one line, and never where nobody wants that. A
//! daemon that was started so ends when there has been nothing to do for long; one that a person starts does not.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::json;

use tpu_system::sys::procs::Process;

use crate::common::env::{TPU, TestEnv};
use crate::common::output::CommandOutput;
use crate::common::tmux::write_script;
use crate::common::wait::wait_until;

/// Works until a file says that it may end.
const WORK: &str = "until [ -e \"$HOME/end\" ]; do read -r -t 0.1 <> <(:); done; exit 0";

/// What stands behind `run` or `submit` for a job that works.
fn job(options: &[&str]) -> Vec<String> {
    let fixed = ["local", "alice"].into_iter().chain(options.iter().copied());
    fixed.chain(["--", "bash", "-c", WORK]).map(str::to_owned).collect()
}

/// A home in which commands may start the daemon.
fn home() -> TestEnv {
    let mut env = TestEnv::alice();
    env.unset("TPU_DAEMON_AUTOSTART");
    env
}

/// Starts a job that works.
#[must_use = "say how it should have ended: .exits(0)"]
fn run(env: &TestEnv, options: &[&str], vars: &[(&str, &str)]) -> CommandOutput {
    let words: Vec<String> = std::iter::once("run".to_owned()).chain(job(options)).collect();
    let mut spawn = env.spawn(&words);
    for (name, value) in vars {
        spawn = spawn.env(*name, *value);
    }
    env.output(&spawn)
}

/// Insists that nothing was said of a daemon that was started.
#[track_caller]
fn no_start(output: CommandOutput) -> CommandOutput {
    assert!(!output.to_string().contains("started the daemon"), "{}", output.report());
    output
}

/// How many daemons have begun.
fn begun(env: &TestEnv) -> usize {
    env.journal().iter().filter(|event| event.text == "the daemon begins").count()
}

/// Waits until a daemon has turned.
#[track_caller]
fn wait_turned(env: &TestEnv) {
    wait_until("the daemon's first turn", || env.tpu("daemon status").code == 0);
}

#[test]
fn a_rule_that_acts_starts_it_and_says_so_in_one_line() {
    let env = home();
    drop(no_start(run(&env, &[], &[]).exits(0)));
    assert_eq!(begun(&env), 0, "nothing depends on it");
    let said = run(&env, &["rule=resume"], &[]).exits(0);
    let lines = said.stderr.lines().filter(|line| line.contains("started the daemon (process "));
    assert_eq!(lines.count(), 1, "{}", said.report());
    drop(said.says(&[
        "it restarts alice/2 after failures, by its rule",
        "daemon stop",
        "daemon_autostart False",
    ]));
    wait_turned(&env);
    let status = env.tpu("daemon status").exits(0);
    drop(status.says(&["Hosted: tmux session tpu-daemon.", "ends after an hour"]));
    drop(no_start(run(&env, &["rule=resume"], &[]).exits(0)));

    // How it is forbidden is said once.
    drop(env.tpu("daemon stop").exits(0));
    let again = run(&env, &["rule=resume"], &[]).exits(0).says(&["started the daemon"]);
    assert!(!again.stderr.contains("daemon_autostart"), "{}", again.report());
    wait_until("the next one", || begun(&env) == 2);
}

#[test]
fn it_is_not_started_where_nobody_wants_that_and_what_to_type_is_said() {
    let mut env = home();
    let rule = ["rule=resume"];
    let cases: [(&[(&str, &str)], &str); 2] =
        [(&[("CI", "true")], "CI is set"), (&[("TPU_JOB", "alice/99")], "this is a job")];
    for (vars, why) in cases {
        let said = no_start(run(&env, &rule, vars).exits(0));
        drop(said.says(&[
            "after failures, by its rule; it was not started, because",
            "tpu daemon start",
            why,
        ]));
    }
    let tried = no_start(run(&env, &["rule=resume", "--dry-run"], &[]).exits(0));
    assert!(!tried.to_string().contains("daemon start"), "{}", tried.report());
    drop(env.tpu("set-settings daemon_autostart False alice").exits(0));
    drop(no_start(run(&env, &rule, &[]).exits(0)));
    drop(env.tpu("set-settings daemon_autostart True alice").exits(0));
    env.set("TPU_DAEMON_AUTOSTART", "false");
    drop(no_start(run(&env, &rule, &[]).exits(0)));
    drop(env.tpu("daemon status").exits(1));
    assert_eq!(begun(&env), 0);
}

#[test]
fn a_place_in_a_queue_and_a_notice_start_it_too() {
    let env = home();
    drop(env.tpu("hosts set local --max-jobs 1").exits(0));
    let submit = |options: &[&str]| {
        let words: Vec<String> = std::iter::once("submit".to_owned()).chain(job(options)).collect();
        env.tpu_words(&words).exits(0)
    };
    drop(no_start(submit(&[])));
    let waits = submit(&[]).says(&["started the daemon", "it starts alice/2 when there is room"]);
    assert!(!waits.stderr.contains("nothing starts automatically"), "{}", waits.report());
    wait_turned(&env);
    env.touch("end");
    wait_until("the one that waited", || env.jobs("alice").len() == 2);
    drop(env.wait_status(2, "finished"));
    drop(env.tpu("daemon stop").exits(0));
    let told = run(&env, &["--notify", "tmux"], &[]).exits(0);
    drop(told.says(&["started the daemon", "it sends the notices about alice/3"]));
}

#[test]
fn of_two_commands_at_the_same_time_one_has_the_daemon() {
    let env = home();
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| drop(run(&env, &["rule=resume"], &[]).exits(0))))
            .collect();
        for one in all {
            one.join().unwrap();
        }
    });
    wait_turned(&env);
    assert_eq!(begun(&env), 1);
    drop(env.tpu("daemon stop").exits(0));
    assert_eq!(begun(&env), 1);
}

#[test]
fn started_by_a_command_it_ends_when_there_is_nothing_to_do_and_by_a_person_it_stays() {
    let mut env = home();
    env.set("FAILPOINTS", "daemon-idle-ms=return(200)");
    drop(run(&env, &["rule=resume"], &[]).exits(0).says(&["started the daemon"]));
    wait_turned(&env);
    env.turn();
    drop(env.tpu("daemon status").exits(0));
    env.touch("end");
    wait_until("its end", || env.tpu("daemon status").code == 1);
    let last = env.journal().into_iter().rfind(|event| event.kind == "daemon").unwrap();
    assert_eq!(last.text, "the daemon has had nothing to do for an hour, and ends");
    assert_eq!(env.job("alice", 1)["status"], "finished");

    drop(env.tpu("daemon start").exits(0));
    env.turn();
    env.turn();
    drop(env.tpu("daemon stop").exits(0));
    let last = env.journal().into_iter().rfind(|event| event.kind == "daemon").unwrap();
    assert_eq!(last.text, "the daemon was asked to end");
}

#[test]
fn one_that_cannot_begin_says_why_at_once() {
    let env = home();
    let refused = env.tpu("daemon start --serve --listen 0.0.0.0:0").exits(1);
    drop(refused.says(&["the daemon stopped at once: ", "0.0.0.0", "tpu daemon run --serve"]));
    drop(env.tpu("daemon status").exits(1));
}

#[test]
fn without_tmux_it_is_a_process_that_holds_nothing_of_whoever_started_it() {
    let env = home();
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let bash = PathBuf::from("/bin/bash");
    std::os::unix::fs::symlink(bash.canonicalize().unwrap(), bin.join("bash")).unwrap();
    let held = env.path("held");
    let script = "exec 9>\"$1\" 23>&9; exec \"$0\" daemon start --json";
    let words = ["-c", script, TPU, held.to_str().unwrap()];
    let start = env.spawn_program("/bin/bash", &words).env("PATH", bin.as_os_str());
    let started = env.output(&start.clone().env("TPU_JOB", "alice/9")).exits(0).json();
    assert_eq!(started.get("session"), None);
    let pid = u32::try_from(started["pid"].as_u64().unwrap()).unwrap();
    assert_eq!(Process::read(pid).unwrap().session, pid, "it has left the terminal");
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let open: Vec<PathBuf> =
        open.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok()).collect();
    assert!(!open.contains(&held), "{open:?}");
    let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(!environ.windows(8).any(|part| part == b"TPU_JOB="), "nothing of a job");

    // Who starts it again finds it.
    let again = env.output(&start).exits(0).json();
    assert_eq!((&again["pid"], &again["ran_before"]), (&json!(pid), &json!(true)));
    wait_turned(&env);
    drop(env.tpu("daemon status").exits(0).says(&["Hosted: without a terminal", ".log"]));
    let status = env.tpu("daemon status --json").exits(0).json();
    assert_eq!((&status["hosting"], &status["ends_idle"]), (&json!("detached"), &json!(false)));
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn beside_a_tmux_that_is_too_old_it_is_a_process_too() {
    let mut env = home();
    stand_ins(&mut env, &[("tmux", "echo tmux 2.9")]);
    let started = env.tpu("daemon start --json").exits(0).json();
    assert_eq!(started.get("session"), None);
    drop(env.tpu("daemon status").exits(0).says(&["Hosted: without a terminal"]));
    drop(env.tpu("daemon stop").exits(0));
}

/// Puts programs in the place of the machine's own; each notes its words in `calls`.
fn stand_ins(env: &mut TestEnv, programs: &[(&str, &str)]) {
    let bin = env.path("bin");
    std::fs::create_dir(&bin).unwrap();
    for (name, does) in programs {
        let calls = env.path("calls");
        let script = format!("#!/bin/sh\necho \"{name} $*\" >>'{}'\n{does}\n", calls.display());
        write_script(&bin.join(name), &script);
    }
    let path = env.variables()[std::ffi::OsStr::new("PATH")].to_str().unwrap().to_owned();
    env.set("PATH", format!("{}:{path}", bin.display()));
}

fn calls(env: &TestEnv) -> Vec<String> {
    let calls = std::fs::read_to_string(env.path("calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

#[test]
fn installing_shows_the_unit_first_and_writes_it_with_a_yes() {
    let mut env = home();
    stand_ins(&mut env, &[("systemctl", ""), ("crontab", "echo no crontab for you >&2; exit 1")]);
    let file = env.path("config/systemd/user/tpu-daemon.service");
    let shown = env.tpu("daemon install").exits(2);
    drop(shown.says(&["ExecStart=", "daemon\" \"run\" \"--hosting\" \"systemd\"", "-y"]));
    drop(env.tpu("daemon install --dry-run").exits(0).says(&["Would write", "KillMode=process"]));
    assert!(!file.exists());
    assert_eq!(calls(&env), ["systemctl --user show-environment"; 2]);

    let done = env.tpu("daemon install -y").exits(0).says(&["loginctl enable-linger"]);
    drop(done.says(&["Wrote ", "tpu-daemon.service"]));
    let text = std::fs::read_to_string(&file).unwrap();
    let data = env.data_path().display().to_string();
    assert!(text.contains(&format!("\"--data\" \"{data}\"")), "{text}");
    assert_eq!(
        calls(&env)[3..],
        ["systemctl --user daemon-reload", "systemctl --user enable --now tpu-daemon.service"]
    );

    drop(env.tpu("daemon uninstall").exits(0).says(&["Removed ", "daemon stop"]));
    assert!(!file.exists());
    assert!(calls(&env).contains(&"systemctl --user disable tpu-daemon.service".to_owned()));
    drop(env.tpu("daemon uninstall").exits(3).says(&["daemon install"]));
}

#[test]
fn without_systemd_it_is_a_line_of_the_crontab_and_the_others_stay() {
    let mut env = home();
    let table = env.path("crontab");
    let crontab = format!(
        "case $1 in -l) cat '{0}' ;; -) cat >'{0}.new' && mv '{0}.new' '{0}' ;; esac",
        table.display()
    );
    stand_ins(&mut env, &[("systemctl", "exit 1"), ("crontab", &crontab)]);
    crate::common::tmux::write_file(&table, "# mine\n0 5 * * * true\n");
    drop(env.tpu("daemon install").exits(2).says(&["@reboot env ", "daemon start", "-y"]));
    let lines = || std::fs::read_to_string(&table).unwrap();
    assert_eq!(lines(), "# mine\n0 5 * * * true\n");
    for said in ["The daemon runs now", "A daemon runs already"] {
        drop(env.tpu("daemon install -y").exits(0).says(&[said]));
        wait_turned(&env);
        let all = lines();
        let ours: Vec<&str> = all.lines().filter(|line| line.ends_with("# tpu-daemon")).collect();
        assert_eq!((ours.len(), all.lines().count()), (1, 3), "{all}");
    }
    assert_eq!(begun(&env), 1, "the one that ran goes on");
    drop(env.tpu("daemon stop").exits(0));
    drop(env.tpu("daemon uninstall").exits(0));
    assert_eq!(lines(), "# mine\n0 5 * * * true\n");
}

#[test]
fn a_unit_that_is_installed_beside_a_daemon_leaves_that_one_alone() {
    let mut env = home();
    stand_ins(&mut env, &[("systemctl", ""), ("crontab", "exit 1")]);
    drop(env.tpu("daemon start").exits(0));
    wait_turned(&env);
    let done = env.tpu("daemon install -y").exits(0);
    drop(done.says(&["A daemon runs already (process ", "the installed one follows it"]));
    drop(env.tpu("daemon status").exits(0));
    assert_eq!(begun(&env), 1);
    // The unit can be removed although the crontab cannot be read.
    drop(env.tpu("daemon uninstall").exits(0).says(&["Removed "]));
    drop(env.tpu("daemon stop").exits(0));
}

#[test]
fn where_the_account_may_have_no_crontab_that_is_said_before_anything_is_asked() {
    let mut env = home();
    let forbids = "echo 'You (alice) are not allowed to use this program (crontab)' >&2; exit 1";
    stand_ins(&mut env, &[("systemctl", "exit 1"), ("crontab", forbids)]);
    for line in ["daemon install", "daemon install -y"] {
        drop(env.tpu(line).exits(6).says(&["neither a systemd", "tpu daemon start"]));
    }
    drop(env.tpu("daemon uninstall").exits(3).says(&["daemon install"]));
    drop(env.tpu("uninstall -y").exits(0).says(&["nothing to remove"]));
}

#[test]
fn lines_of_a_crontab_that_are_no_text_stay_as_they_are() {
    let mut env = home();
    let table = env.own_crontab();
    let mine: &[u8] = b"# caf\xe9\n0 5 * * * true\n";
    File::create(&table).unwrap().write_all(mine).unwrap();
    drop(env.tpu("daemon install -y").exits(0));
    assert!(std::fs::read(&table).unwrap().starts_with(mine));
    wait_turned(&env);
    drop(env.tpu("daemon stop").exits(0));
    drop(env.tpu("daemon uninstall").exits(0));
    assert_eq!(std::fs::read(&table).unwrap(), mine);
}
