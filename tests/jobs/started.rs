//! What a job that was started on a terminal leaves a person to read, whatever the screen meets: that it has
//! started, so that nobody starts it twice.

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;

const RUN: &str = "run local alice -- sleep 1000";

/// Leaves the screen, and insists that the start is told once.
#[track_caller]
fn is_told(env: &TestEnv, terminal: &Terminal) {
    terminal.prompts();
    let screen = terminal.screen();
    assert_eq!(screen.matches("Started alice/1").count(), 1, "{screen}");
    assert_eq!(env.jobs("alice").len(), 1);
}

#[test]
fn a_bad_setting_of_the_screen_falls_back_with_a_word() {
    for (settings, word) in [
        (r#"{"theme": "nosuch"}"#, "no theme 'nosuch'"),
        (r#"{"keys": {"nosuch": "x"}}"#, "keys.nosuch"),
        (r#"{"keys": {"quit": "j"}}"#, "would mean both"),
    ] {
        let env = TestEnv::alice();
        std::fs::create_dir_all(env.path("config/tpu")).unwrap();
        write_file(&env.path("config/tpu/settings.json"), settings);
        let terminal = Terminal::new(&env);
        terminal.command(&format!("{TPU} {RUN}"));
        terminal.shows(word);
        terminal.shows("1 job");
        terminal.press("q");
        is_told(&env, &terminal);
    }
}

#[test]
fn a_screen_that_does_not_open_is_no_error_of_the_job() {
    let env = TestEnv::alice();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("FAILPOINTS=no-raw-mode=return {TPU} {RUN}; echo code $?"));
    terminal.shows("code 0");
    terminal.shows("the monitor did not open");
    is_told(&env, &terminal);
}

#[test]
fn a_terminal_that_is_too_small_still_tells() {
    let env = TestEnv::alice();
    let terminal = Terminal::new(&env);
    terminal.resize((70, 5));
    terminal.command(&format!("clear; {TPU} {RUN}"));
    terminal.shows("make this larger");
    terminal.press("q");
    terminal.resize((120, 30));
    terminal.prompts();
    is_told(&env, &terminal);
}

/// crossterm asks no terminal's description: the screen opens in any that is one.
#[test]
fn a_terminal_without_a_name_or_with_an_unknown_one_still_tells() {
    for term in ["env -u TERM", "env TERM=", "env TERM=nosuch"] {
        let env = TestEnv::alice();
        let terminal = Terminal::new(&env);
        terminal.command(&format!("{term} {TPU} {RUN}; echo code $?"));
        terminal.shows("1 job");
        terminal.press("q");
        terminal.shows("code 0");
        is_told(&env, &terminal);
    }
}

#[test]
fn where_standard_input_is_no_terminal_it_is_told_and_no_screen_opens() {
    for from in ["</dev/null", "<&-", "< <(echo y)"] {
        let env = TestEnv::alice();
        let terminal = Terminal::new(&env);
        terminal.command(&format!("{TPU} {RUN} {from}; echo code $?"));
        terminal.shows("code 0");
        is_told(&env, &terminal);
    }
}

#[test]
fn where_nobody_reads_what_is_printed_it_is_started_once_and_is_no_failure() {
    for to in [">&-", ">&- 2>&-", "| true; (exit ${PIPESTATUS[0]})", ">/dev/null", "2>&-"] {
        let env = TestEnv::alice();
        let terminal = Terminal::new(&env);
        let quiet = RUN.replace(" --", " -q --");
        terminal.command(&format!("{TPU} {quiet} {to}; echo code $?"));
        terminal.shows("code 0");
        assert_eq!(env.jobs("alice").len(), 1, "{to}");
    }
    // Without `-q` the screen does not open on what is no terminal.
    let env = TestEnv::alice();
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} {RUN} >&-; echo code $?"));
    terminal.shows("code 0");
    assert_eq!(env.jobs("alice").len(), 1);
}

#[test]
fn what_cannot_be_printed_is_told_all_the_same() {
    let env = TestEnv::alice();
    for (line, said) in [
        (RUN.to_owned(), "Started alice/1"),
        (format!("--json {RUN}"), "Started alice/2"),
        ("kill 1 -y".to_owned(), "Killed alice/1 after "),
        ("ls".to_owned(), "code-alice"),
    ] {
        let typed = format!("{TPU} {line} >/dev/full");
        let output = env.output(&env.spawn_program("bash", &["-c", &typed]));
        drop(output.exits(1).says(&["cannot print: ", said]));
    }
    assert_eq!(env.jobs("alice").len(), 2);
}

#[test]
fn a_clock_that_nobody_can_write_down_is_an_error() {
    let mut env = TestEnv::alice();
    env.set("FAILPOINTS", "clock-in-year-10000=return");
    for command in ["check", "ls", "run local alice -q -- true", "-a k config.k"] {
        drop(env.tpu(command).exits(5).says(&["a year beyond 9999", "date"]));
    }
    assert!(env.jobs("alice").is_empty());
}
