//! What people see, letter by letter. A change here is a change of the interface: look at it, then accept
//! it with `INSTA_UPDATE=always`.

use serde_json::{Value, json};

use crate::common::env::TestEnv;

/// A terminal of 80 columns, nobody's settings.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("COLUMNS", "80");
    env
}

/// Compares what a command prints with its file, without what differs from run to run.
fn golden(env: &TestEnv, name: &str, line: &str) {
    let output = env.tpu(line).exits(0);
    let text = if line.contains("--json") {
        let text = serde_json::to_string_pretty(&output.json()).unwrap();
        text.replace(env.root(), "[DIR]").replace(env.tmux().socket(), "[SOCKET]")
    } else {
        output.to_string()
    };
    insta::with_settings!({
        description => format!("tpu {line}"),
        omit_expression => true,
        prepend_module_to_snapshot => false,
        filters => vec![
            (r"tmux-\d+/", "tmux-[UID]/"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[TIME]"),
            (r"\b\d+d \d\dh\b", "[AGE]"),
            (r"state take [0-9.]+ k?B", "state take [SIZE]"),
        ],
    }, {
        insta::assert_snapshot!(name, text);
    });
}

/// One job of each kind, as the facts of an evening were written down; no tmux server runs.
fn an_evening(env: &TestEnv) {
    let mut data = env.two_users();
    let record = |window: u64, status: &str, changes: Value| {
        let mut job = env.record("alice", window, status);
        job["tpu"] = json!("lab-tpuvm-v2-32-1");
        job["start_time"] = json!("2025-04-20T06:00:00Z");
        for (key, value) in changes.as_object().unwrap() {
            job[key] = value.clone();
        }
        job
    };
    let ended = |at: &str, exit: i32, more: Value| {
        let mut messages = json!({
            "launch": {
                "token": "0123", "mode": "script", "at": "2025-04-20T06:00:00Z", "confirmed": true,
                "exit": exit, "ended": at,
            },
        });
        for (key, value) in more.as_object().unwrap() {
            messages[key] = value.clone();
        }
        messages
    };
    let verdict = |kind: &str, rule: &str, line: &str| json!({ "kind": kind, "rule": rule, "line": line, "ignored": false });
    data["users"]["alice"]["job_data"] = json!([
        record(
            1,
            "finished",
            json!({
                "job_tags": "baseline", "extra_msgs": ended("2025-04-20T06:42:10Z", 0, json!({})),
            })
        ),
        record(
            2,
            "resumed",
            json!({
                "error": "grpc", "rules": { "preempted": "reapply", "grpc": "resume" },
                "extra_msgs": ended("2025-04-20T06:10:00Z", 1, json!({
                    "child": 3,
                    "verdict": verdict("grpc", "grpc.unavailable", "UNAVAILABLE: Socket closed"),
                })),
            })
        ),
        record(
            3,
            "running",
            json!({
                "stage": 1, "extra_msgs": { "father": 2 },
                "rules": { "preempted": "reapply", "grpc": "resume" },
            })
        ),
        record(4, "killed", json!({ "extra_msgs": ended("2025-04-20T06:00:30Z", 130, json!({})) })),
        record(
            5,
            "error",
            json!({
                "error": "python-error",
                "extra_msgs": ended("2025-04-20T06:01:00Z", 1, json!({
                    "verdict": verdict("python-error", "python.exception", "KeyError: 'lr'"),
                })),
            })
        ),
        record(
            6,
            "error",
            json!({
                "error": "OOM", "rules": { "oom": "resume" }, "monitor": false,
                "extra_msgs": ended("2025-04-20T08:00:00Z", 1, json!({})),
            })
        ),
    ]);
    data["users"]["alice"]["windows_offset"] = json!(7);
    env.write_data(&data);
}

/// The same at 80 and 120 columns, without and with colour.
fn golden_everywhere(env: &mut TestEnv, name: &str, line: &str) {
    for (columns, color) in [(80, "never"), (80, "always"), (120, "never"), (120, "always")] {
        env.set("COLUMNS", columns.to_string());
        let suffix = if color == "always" { "_color" } else { "" };
        golden(env, &format!("{name}_{columns}{suffix}"), &format!("{line} --color {color}"));
    }
}

#[test]
fn every_help_text() {
    let mut env = lab();
    for columns in [80, 120] {
        env.set("COLUMNS", columns.to_string());
        let mut text = env.tpu("help --all").exits(0).stdout;
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
        for name in commands(&text) {
            text += &format!("\n==== tpu help {name}\n\n");
            text += &env.tpu(&format!("help {name}")).exits(0).stdout;
        }
        for line in text.lines() {
            let width = line.chars().count();
            let is_example = line.starts_with("  ");
            assert!(width <= columns || is_example, "{width} columns: {line}");
        }
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(format!("help_all_{columns}"), text);
        });
    }
    golden_everywhere(&mut env, "help_check", "help check");
}

/// The commands of the full list, which stand below the titles of their groups.
fn commands(all: &str) -> Vec<String> {
    let rows = all.lines().filter_map(|line| line.strip_prefix("  "));
    rows.filter_map(|row| row.split(' ').next()).map(str::to_owned).collect()
}

/// The commands that `tpu help` shows: the first word behind the name of a group, or below it.
#[test]
fn help_shows_the_commands_of_a_first_day() {
    let help = lab().tpu("help").exits(0).stdout;
    let (_, rows) = help.split_once("Start:").unwrap();
    let (rows, _) = rows.split_once("Anywhere:").unwrap();
    let shown = rows.lines().filter(|row| !row.is_empty()).count();
    assert!((8..=14).contains(&shown), "{shown} commands:\n{help}");
    assert!(help.lines().count() <= 24, "{help}");
    assert!(help.contains("help --all"), "{help}");
}

/// The examples in a help text.
fn examples(help: &str) -> Vec<String> {
    let behind = help.split("Examples:\n").nth(1).unwrap_or_default();
    let lines = behind.lines().take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn every_command_has_two_examples_that_it_understands() {
    let env = lab();
    let all = env.tpu("help --all").exits(0).stdout;
    for name in commands(&all) {
        let help = env.tpu(&format!("help {name}")).exits(0).stdout;
        let examples = examples(&help);
        assert!(examples.len() >= 2, "{name} has {} examples:\n{help}", examples.len());
        for example in examples {
            // Of a pipe, what `tpu` is given.
            let ours = example.split('|').find(|part| part.contains("tpu ")).unwrap();
            let ours = ours.split(" > ").next().unwrap().trim().trim_start_matches("source <(");
            let words = shlex::split(ours.trim_end_matches(')')).unwrap();
            let words: Vec<std::ffi::OsString> =
                words.into_iter().skip(1).map(Into::into).collect();
            let words = tpu::cli::legacy::rewrite(words);
            let parsed = tpu::cli::args::Cli::parse_words(&words);
            assert!(
                parsed.is_ok(),
                "{name}: `{example}` is not understood: {}",
                parsed.unwrap_err()
            );
        }
    }
}

#[test]
fn help_fits_one_screen() {
    let env = lab();
    let help = env.tpu("--help").exits(0);
    let lines: Vec<&str> = help.stdout.lines().collect();
    assert!(lines.len() <= 24, "{} lines", lines.len());
    for line in lines {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    assert_eq!(env.tpu("-h").exits(0).stdout, help.stdout);
    for word in ["run", "monitor", "resume", "kill", "demo"] {
        assert!(help.stdout.contains(word), "no {word}");
    }
    golden(&env, "help", "--help");
    golden(&env, "help_run", "help run");
}

#[test]
fn lists_and_tables() {
    let mut env = lab();
    golden_everywhere(&mut env, "check_rules", "check-rules");
    golden_everywhere(&mut env, "ls", "ls alice");
    golden_everywhere(&mut env, "lta", "-lta");
    golden_everywhere(&mut env, "get_settings", "get-settings alice");
    golden_everywhere(&mut env, "doctor", "doctor");
    golden_everywhere(&mut env, "find", "find");
    golden(&env, "get_settings_origin", "get-settings alice --origin");
}

#[test]
fn an_evening_s_jobs() {
    let mut env = lab();
    an_evening(&env);
    golden_everywhere(&mut env, "check", "check alice");
    golden_everywhere(&mut env, "check_simp", "check-simp alice");
    golden(&env, "check_json", "check alice --json");
    golden(&env, "explain", "explain 5 alice");
}
