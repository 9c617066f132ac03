//! Whose: on a machine with two users, who is meant where no word says so.

use serde_json::json;

use crate::common::env::TestEnv;
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;

/// Alice has the windows 1 and 2, bob 2 and 3, and the account is nobody's.
fn two_with_jobs() -> TestEnv {
    let mut env = TestEnv::new();
    let mut data = env.two_users();
    for (user, windows) in [("alice", [1, 2]), ("bob", [2, 3])] {
        let records: Vec<_> = windows
            .iter()
            .map(|window| {
                let mut record = env.record(user, *window, "finished");
                record["job_tags"] = json!(format!("{user}-{window}"));
                record["stage_dir"] = json!(format!("/stage/{user}/{window}"));
                record
            })
            .collect();
        data["users"][user]["job_data"] = json!(records);
        data["users"][user]["windows_offset"] = json!(4);
    }
    env.write_data(&data);
    env.set("USER", "somebody");
    env
}

#[test]
fn check_and_its_sisters_show_everybody_where_nothing_says_who() {
    let env = two_with_jobs();
    for line in ["check", "check-simp", "check --json"] {
        drop(env.tpu(line).exits(0).says(&["alice-1", "alice-2", "bob-2", "bob-3"]));
    }
    let output = env.tpu("check alice").exits(0).says(&["alice-1"]);
    assert!(!output.stdout.contains("bob-3"), "{}", output.stdout);
    drop(env.tpu("check alice bob").exits(0).says(&["alice-1", "bob-3"]));
    drop(env.tpu("check-simp id=0 user=bob").exits(0).says(&["alice-1", "bob-3"]));
    drop(env.tpu("check alice bbo").exits(3).says(&["'bbo'", "bob"]));
}

#[test]
fn a_look_at_a_window_is_at_the_one_user_who_has_it() {
    let env = two_with_jobs();
    drop(env.tpu("explain 3").exits(0).says(&["bob/3 is finished"]));
    drop(env.tpu("get-stage-dir w=1").exits(0).says(&["/stage/alice/1"]));
    drop(env.tpu("history 1").exits(0));
    drop(env.tpu("wait 1 --timeout 1s").exits(0).says(&["alice/1 finished"]));
    // Two have a window 2, nobody has a window 9.
    for line in ["explain 2", "wait 2", "wait 1,3", "logs 9"] {
        let hint = format!("tpu {line} --user alice");
        drop(env.tpu(line).exits(2).says(&["whose?", "alice, bob", &hint, "TPU_USER"]));
    }
}

#[test]
fn what_changes_something_asks_and_without_a_terminal_names_the_exact_command() {
    let env = two_with_jobs();
    let before = env.data_bytes();
    for line in [
        "kill 1",
        "-k w=3",
        "kill-window 3",
        "clean",
        "clear-finished",
        "-czw",
        "resume w=3",
        "rerun 1 tpu=local",
        "add-tag 1 best",
        "set-rule 3 pass",
        "ignore-error 3",
        "run local lr=0.1",
        "set-cur 2",
        "set-settings theme dark",
        "reserve v2-1",
    ] {
        let hint = format!("tpu {line} --user alice");
        drop(env.tpu(line).exits(2).says(&["whose?", "alice, bob", &hint]));
    }
    // A command of the job stays behind its dashes, quoted as it was meant.
    let output = env.tpu_words(&["run", "local", "--", "echo", "a b"]).exits(2);
    drop(output.says(&["tpu run local --user alice -- echo 'a b'"]));
    assert_eq!(env.data_bytes(), before);
}

#[test]
fn the_name_typed_comes_first_then_the_variable_the_setting_and_the_account() {
    let mut env = two_with_jobs();
    std::fs::create_dir_all(env.path("config/tpu")).unwrap();
    let is = |env: &TestEnv, line: &str, path: &str| drop(env.tpu(line).exits(0).says(&[path]));
    env.set("USER", "bob");
    is(&env, "ls", "code-bob");
    write_file(&env.path("config/tpu/settings.json"), r#"{"user": "alice"}"#);
    is(&env, "ls", "code-alice");
    env.set("TPU_USER", "bob");
    is(&env, "ls", "code-bob");
    is(&env, "ls alice", "code-alice");
    is(&env, "ls --user alice", "code-alice");
    let output = env.tpu("check").exits(0).says(&["bob-3"]);
    assert!(!output.stdout.contains("alice-1"), "{}", output.stdout);
    // Whose window it can be is not asked where it is said who is meant; who has it is.
    drop(env.tpu("explain 1").exits(3).says(&["bob has no job 1", "--user alice"]));
}

#[test]
fn on_a_terminal_it_asks_once_and_goes_on_with_the_answer() {
    let env = two_with_jobs();
    let terminal = Terminal::new(&env);
    let tpu = crate::common::env::TPU;
    terminal.command(&format!("{tpu} add-tag 2 best"));
    terminal.shows("Whose? There are alice, bob:");
    terminal.command("bob");
    terminal.shows("Tagged bob/2: best");
    assert_eq!(env.job("bob", 2)["job_tags"], "best");
    assert_eq!(env.job("alice", 2)["job_tags"], "alice-2");
    // A name that nobody has changes nothing.
    terminal.prompts();
    // The first question is not taken for the second.
    terminal.command("clear");
    terminal.hides("Whose?");
    terminal.command(&format!("{tpu} add-tag 2 worst"));
    terminal.shows("Whose? There are alice, bob:");
    terminal.command("carol");
    terminal.shows("no user 'carol'");
    assert_eq!(env.job("bob", 2)["job_tags"], "best");
}

#[test]
fn the_monitor_shows_everybody_or_those_who_are_named() {
    let env = two_with_jobs();
    let tpu = crate::common::env::TPU;
    let terminal = Terminal::new(&env);
    for (line, header, shown, hidden) in [
        ("", "all users", vec!["alice-1", "bob-3"], None),
        ("monitor", "all users", vec!["alice-1", "bob-3"], None),
        ("monitor bob", "bob", vec!["bob-3"], Some("alice-1")),
        ("monitor alice bob", "alice, bob", vec!["alice-1", "bob-3"], None),
    ] {
        terminal.command(&format!("clear; {tpu} {line}"));
        terminal.shows(header);
        for text in shown {
            terminal.shows(text);
        }
        assert!(hidden.is_none_or(|text| !terminal.screen().contains(text)), "{line}");
        terminal.press("q");
        terminal.prompts();
    }
}
