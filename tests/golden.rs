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
    golden(&env, "help", "--help");
    golden(&env, "help_run", "help run");
}

#[test]
fn lists_and_tables() {
    let env = lab();
    golden(&env, "check_rules", "check-rules");
    golden(&env, "ls", "ls alice");
    golden(&env, "lta", "-lta");
    golden(&env, "get_settings", "get-settings alice");
    golden(&env, "get_settings_origin", "get-settings alice --origin");
}

#[test]
fn an_evening_s_jobs() {
    let env = lab();
    an_evening(&env);
    golden(&env, "check", "check alice");
    golden(&env, "check_simp", "check-simp alice");
    golden(&env, "check_json", "check alice --json");
    golden(&env, "explain", "explain 5 alice");
}
