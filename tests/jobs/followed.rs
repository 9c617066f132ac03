//! `logs -f` goes on when a log is emptied or replaced, and `logs` finds what was cleaned away.

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// Waits within a job for a file of the test.
const UNTIL: &str =
    "waits_for() { while [ ! -e \"$HOME/$1\" ]; do read -r -t 0.1 <> <(:); done; }; ";

#[test]
fn a_log_that_is_emptied_or_replaced_is_followed_to_its_end() {
    let env = TestEnv::new();
    let log = "\"$TPU_LOG_DIR/output.log\"";
    let script = format!(
        "{UNTIL} echo the-first; waits_for emptied; : >{log}; echo the-second; waits_for moved; \
         mv {log} {log}.1; echo the-third; waits_for over; echo the-last"
    );
    env.start(&script, &NONE);
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} logs 1 alice -f; echo code-$?"));
    terminal.shows("the-first");
    env.touch("emptied");
    terminal.shows("the-second");
    env.touch("moved");
    terminal.shows("the-third");
    env.touch("over");
    terminal.shows("the-last");
    terminal.shows("code-0");
}

#[test]
fn a_question_that_waits_for_an_answer_is_shown() {
    let env = TestEnv::new();
    let script = format!("{UNTIL} echo the-first; printf 'Go on? [y/N] '; waits_for over; echo no");
    env.start(&script, &NONE);
    wait_until("it asks", || env.tpu("logs 1 alice").stdout == "the-first\nGo on? [y/N] \n");
    let terminal = Terminal::new(&env);
    terminal.command(&format!("{TPU} logs 1 alice -f; echo code-$?"));
    terminal.shows("Go on? [y/N]");
    env.touch("over");
    terminal.shows("Go on? [y/N] no");
    terminal.shows("code-0");
}

#[test]
fn what_a_job_printed_that_was_cleaned_away_is_found_by_its_number_and_name() {
    let mut env = TestEnv::new();
    env.set("TPU_USER", "alice");
    let words = ["run", "local", "--name", "llama", "-q", "--", "sh", "-c", "echo seen-it; echo b"];
    drop(env.tpu_words(&words).exits(0));
    env.wait_status(1, "finished");
    let dir = env.job("alice", 1)["log_dir"].as_str().unwrap().to_owned();
    let log = std::path::Path::new(&dir).join("output.log");
    wait_until("its log", || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("seen")));
    drop(env.tpu("clean").exits(0).says(&["Archived 1 job"]));
    for word in ["1", "w=1", "llama", "name:llama", "alice/1"] {
        let said = env.tpu(&format!("logs {word}")).exits(0);
        drop(said.says(&["seen-it", "alice/1 was cleaned away"]));
    }
    for word in ["llama", "name:llama", "alice/1"] {
        drop(env.tpu(&format!("history {word}")).exits(0).says(&["alice/1", "finished"]));
    }
    drop(env.tpu("history qwen").exits(3));
    assert_eq!(env.tpu("logs 1 -n 1").exits(0).stdout, "b\n");
    assert_eq!(env.tpu("logs 1 --json").exits(0).json()["lines"][0], "seen-it");
    drop(env.tpu("logs 2").exits(3).says(&["no job 2"]));
    drop(env.tpu("logs 1 bob").exits(3).says(&["no job 1"]));
    std::fs::remove_file(&log).unwrap();
    let gone = "nothing that alice/1 has printed is left";
    drop(env.tpu("logs 1").exits(3).says(&[gone, "hint: its log directory: "]));
}
