//! `tpu monitor USER -wdtsv`: each letter shows what it showed in the original, and nothing else of the list.

use crate::common::env::{TPU, TestEnv};
use crate::common::terminal::Terminal;

/// The heads of the list, once it is there, and its row.
fn shown(env: &TestEnv, flags: &str) -> (Vec<String>, String) {
    let terminal = Terminal::new(env);
    terminal.resize((160, 30));
    terminal.command(&format!("clear; {TPU} monitor alice {flags}"));
    terminal.shows("▸");
    let screen = terminal.screen();
    terminal.press("q");
    // The detail stands beside the list.
    let list = |line: &str| line.split("││").next().unwrap_or_default().to_owned();
    let lines: Vec<String> = screen.lines().map(list).collect();
    let row = lines.iter().position(|line| line.contains('▸')).unwrap();
    let heads = lines[row - 1].split_whitespace().filter(|head| *head != "│");
    (heads.map(str::to_owned).collect(), lines[row].clone())
}

#[test]
fn each_letter_is_a_part_of_the_list() {
    let mut env = TestEnv::new();
    env.code("alice", "run.sh", "echo warming up; exec sleep 1000\n");
    env.set("TPU_USER", "alice");
    drop(env.tpu("run local alice tag=paper -q -- bash run.sh").exits(0));
    env.wait_status(1, "running");
    let of_status = ["status", "done", "started", "time"];
    for (flags, wanted) in [
        ("-w", vec!["w", "name"]),
        ("-d", vec!["dir", "tags"]),
        ("-t", vec!["tpu"]),
        ("-s", of_status.to_vec()),
        ("-ds", [vec!["dir", "tags"], of_status.to_vec()].concat()),
        ("-v", vec!["output"]),
    ] {
        let (heads, row) = shown(&env, flags);
        assert_eq!(heads, wanted, "{flags}: {row}");
    }
    // As in the original's handbook: directory, status, and what is printed.
    let (heads, row) = shown(&env, "-dsv");
    for head in ["dir", "status", "output"] {
        assert!(heads.iter().any(|shown| shown == head), "{heads:?}");
    }
    assert!(!heads.iter().any(|shown| shown == "w" || shown == "tpu"), "{heads:?}");
    assert!(
        row.contains("code-alice") && row.contains("running") && row.contains("warming up"),
        "{row}"
    );
    // All of them are what is shown without a word, but for the output.
    assert_eq!(shown(&env, "-wdts").0, shown(&env, "").0);
}
