//! What a person types first: other names of commands, jobs given to verbs of targets, selectors, waiting, and
//! lists whose columns stand in line.

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::common::env::TestEnv;
use crate::common::wait::wait_until;

const NONE: [&str; 0] = [];

/// Alice has a finished job 1, a failed one 2 with the tag `sweep`, and 3, which runs.
fn lab() -> TestEnv {
    let env = TestEnv::new();
    for (window, script, status) in
        [(1, "true", "finished"), (2, "exit 3", "error"), (3, "exec sleep 1000", "running")]
    {
        assert_eq!(env.start(script, &NONE), window);
        env.wait_status(window, status);
        let ended = || env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string();
        wait_until("its launcher to be done", || status == "running" || ended());
    }
    drop(env.tpu("add-tag 2 sweep alice").exits(0));
    env
}

/// The windows that a list shows.
fn shown(env: &TestEnv, line: &str) -> Vec<u64> {
    let document = env.tpu(&format!("{line} --json")).exits(0).json();
    let jobs = document["jobs"].as_array().unwrap();
    jobs.iter().map(|job| job["window"].as_u64().unwrap()).collect()
}

#[test]
fn status_and_ps_are_check() {
    let env = lab();
    for word in ["status", "ps"] {
        assert_eq!(shown(&env, &format!("{word} alice")), [1, 2, 3]);
        drop(env.tpu(&format!("{word} alice")).exits(0).says(&["Window 2", "Status: finished"]));
    }
}

#[test]
fn a_job_given_to_a_verb_of_targets_does_nothing_and_hears_of_its_own_verb() {
    let env = lab();
    let bytes = env.data_bytes();
    for (verb, own) in [
        ("stop", "kill"),
        ("delete", "kill"),
        ("start", "resume"),
        ("restart", "resume"),
        ("reapply", "resume"),
        ("describe", "explain"),
        ("release", "kill"),
    ] {
        for word in ["3", "w=3"] {
            let hint = format!("tpu {own} 3");
            drop(env.tpu(&format!("{verb} {word}")).exits(2).says(&["is no target", &hint]));
        }
    }
    drop(env.tpu("stop alice/3").exits(2).says(&["tpu kill 3 alice"]));
    drop(env.tpu("stop no-such-thing").exits(3));
    assert!(env.data_bytes() == bytes);
}

#[test]
fn selectors_choose_or_are_refused() {
    let env = lab();
    for command in ["check", "check-simp", "status"] {
        assert_eq!(shown(&env, &format!("{command} status:finished alice")), [1]);
        assert_eq!(shown(&env, &format!("{command} alice status:error")), [2]);
        assert_eq!(shown(&env, &format!("{command} alice status:unknown")), [2]);
        assert_eq!(shown(&env, &format!("{command} tag:sweep alice")), [2]);
        assert_eq!(shown(&env, &format!("{command} tpu:local alice status:running")), [3]);
        assert_eq!(shown(&env, &format!("{command} tag:other alice")), [0_u64; 0]);
        drop(env.tpu(&format!("{command} tag:other alice")).exits(0).says(&["No job is meant"]));
        drop(env.tpu(&format!("{command} status:finnished alice")).exits(2).says(&["finished"]));
        drop(env.tpu(&format!("{command} tpu:no-such alice")).exits(3).says(&["no-such"]));
    }
    assert_eq!(shown(&env, "caj status:finished"), [1]);
    drop(env.tpu("caj nobody-known").exits(3));
    let bytes = env.data_bytes();
    for command in [
        "clean status:error alice",
        "clear-error tag:sweep alice",
        "-czw status:error alice",
        "-czj status:error alice",
        "logs 2 tag:sweep alice",
        "explain 2 status:error alice",
        "history status:error alice",
        "resume 2 status:error alice",
        "kill-window 2 status:error alice",
        "set-rule 2 resume tag:sweep alice",
        "add-tag 2 new tag:sweep alice",
        "run local alice tag:sweep -- true",
        "ls tag:sweep alice",
        "get-settings tag:sweep alice",
    ] {
        drop(env.tpu(command).exits(2).says(&["chooses among several jobs", "hint:"]));
    }
    drop(env.tpu("kill-window --all alice").exits(2));
    assert!(env.data_bytes() == bytes);
    // What is named is meant: a failed job too.
    drop(env.tpu("kill status:eror alice").exits(2).says(&["error"]));
    drop(
        env.tpu("kill status:error alice")
            .exits(4)
            .says(&["alice/2 is error: unknown", "it has already ended"]),
    );
    assert_eq!(env.job("alice", 2)["status"], "error");
    drop(env.tpu("kill status:finished alice").exits(4));
    drop(env.tpu("kill status:running alice").exits(0).says(&["Killed alice/3"]));
}

#[test]
fn windows_choose_among_the_jobs_of_a_list() {
    let env = lab();
    for command in ["check", "check-simp", "status"] {
        for word in ["w=2", "2", "windows=2", "window=2", "-w=2"] {
            assert_eq!(shown(&env, &format!("{command} {word} alice")), [2], "{command} {word}");
        }
        assert_eq!(shown(&env, &format!("{command} alice 2,3")), [2, 3]);
        assert_eq!(shown(&env, &format!("{command} 1-3 status:running alice")), [3]);
        drop(env.tpu(&format!("{command} w=9 alice")).exits(3).says(&["9"]));
        drop(env.tpu(&format!("{command} w=x alice")).exits(2).says(&["w=x"]));
        // Everybody's, where nobody is named: alice's 2 is the only one.
        assert_eq!(shown(&env, &format!("{command} 2")), [2]);
    }
    assert_eq!(shown(&env, "caj w=3"), [3]);
    drop(env.tpu("caj 9").exits(3).says(&["9"]));
    let text = env.tpu("check 2 alice").exits(0).stdout;
    assert!(text.contains("Window 2") && !text.contains("Window 1"), "{text}");
}

/// What no command has a use for is refused by each: nothing that is typed goes by without an effect.
#[test]
fn every_word_counts_or_is_refused() {
    let env = lab();
    let bytes = env.data_bytes();
    let none: [&str; 0] = [];
    let mut goes_by = Vec::new();
    let rows: &[(&str, &[&str])] = &[
        ("check alice", &["3"]),
        ("check-simp alice", &["3"]),
        ("caj", &["3"]),
        ("maj --rounds 1", &["3"]),
        ("monitor alice", &none),
        ("clean alice", &["3"]),
        ("clear-finished alice", &none),
        ("clear-error alice", &none),
        ("clear-all alice", &none),
        ("-czw alice", &none),
        ("-czj alice", &none),
        ("ls alice", &none),
        ("show-config-alias alice", &none),
        ("get-settings alice", &none),
        ("reset-settings alice", &none),
        ("history --since-last alice", &none),
        ("set-cur 1 alice", &none),
        ("set-dir . 2 alice", &none),
        ("get-dir 1 alice", &none),
        ("del-dir 1 alice", &none),
        ("swap-dir 1 1 alice", &none),
        ("reset-window-num 50 alice", &none),
        ("add-config-alias xy config.xy alice", &none),
        ("del-config-alias lr alice", &none),
        ("set-settings show_length 3 alice", &none),
        ("del-user bob", &none),
        ("explain 1 alice", &none),
        ("logs 1 alice", &none),
        ("history 1 alice", &none),
        ("attach 1 alice", &none),
        ("get-stage-dir 1 alice", &none),
        ("resume 2 alice", &none),
        ("rerun 2 alice", &none),
        ("add-tag 2 new alice", &none),
        ("set-rule 2 resume alice", &none),
        ("ignore-error 2 alice", &none),
        ("kill-window 2 alice", &none),
        ("add-tpu-alias xy lab-tpuvm-v2-32-1", &none),
        ("del-registered lab-tpuvm-v2-32-1", &none),
        ("release v2-1 alice", &none),
        ("reserve v2-1 alice", &none),
        ("find v2", &none),
        ("-smc checking_freq 30", &none),
        ("list-users", &none),
        ("check-rules", &none),
        ("targets", &none),
        ("run local alice", &none),
    ];
    for (line, known) in rows {
        for word in ["w=3", "3", "tag:other", "foo=1", "nonsense"] {
            if known.iter().any(|known| word.ends_with(known)) || is_known(line, word) {
                continue;
            }
            let (before, behind) = (format!("{line} {word} --dry-run"), "-- true");
            let words = if line.starts_with("run") { format!("{before} {behind}") } else { before };
            let output = env.tpu(&words);
            let refused = matches!(output.code, 2 | 3) && output.stdout.is_empty();
            if !refused {
                goes_by.push(format!("{words}: {output}"));
            }
        }
    }
    assert!(goes_by.is_empty(), "these go by:\n{}", goes_by.join("\n"));
    assert!(env.data_bytes() == bytes);
}

/// What chooses among the jobs of a list, the slot of a run.
fn is_known(line: &str, word: &str) -> bool {
    let lists = ["check", "check-simp", "caj", "maj"];
    word == "tag:other" && lists.contains(&line.split(' ').next().unwrap())
        || line.starts_with("run") && word == "3"
}

#[test]
fn time_over_is_told_from_a_failure() {
    let env = lab();
    let late = env.tpu("wait 3 alice --timeout 0s").exits(7);
    drop(late.says(&["the time is over", "hint:"]));
    let late = env.tpu("wait 3 alice --timeout 0s --json").exits(7);
    assert!(late.stderr.contains(r#""code":"time-over""#), "{late}");
    drop(env.tpu("wait 2 alice --timeout 0s").exits(1));
    drop(env.tpu("wait 1 alice --timeout 0s").exits(0));
    drop(env.tpu("wait 3 alice --for error --timeout 0s").exits(7).says(&["no job has failed"]));
}

#[test]
fn blocks_have_their_numbers_and_none_is_empty() {
    let env = lab();
    for letters in ["-v", "-t", "-d", "-s", "-vt"] {
        let text = env.tpu(&format!("check alice {letters}")).exits(0).stdout;
        let blocks: Vec<&str> = text.split("----------------------------------------\n").collect();
        let (last, blocks) = blocks.split_last().unwrap();
        assert_eq!((*last, blocks.len()), ("", 3), "{text}");
        for (window, block) in (1..).zip(blocks) {
            assert!(block.starts_with(&format!("Window {window}")), "{letters}: {text}");
            assert!(block.lines().count() > 1, "{letters}: {text}");
        }
    }
}

/// The column in which each line has `words`; the same in all.
#[track_caller]
fn one_column(lines: &[&str], words: &[&str]) {
    let at = |(line, word): (&&str, &&str)| {
        let found = line.find(*word).unwrap_or_else(|| panic!("no {word} in {line}"));
        line[..found].width()
    };
    let columns: Vec<usize> = lines.iter().zip(words).map(at).collect();
    assert!(columns.windows(2).all(|two| two[0] == two[1]), "{columns:?}\n{}", lines.join("\n"));
}

#[test]
fn columns_stand_in_line_however_long_or_wide_what_they_hold() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let mut failed = env.record("bob", 12_345, "error");
    failed["error"] = json!("killed-by-signal");
    data["users"]["alice"]["job_data"] = json!([env.record("alice", 1, "finished")]);
    data["users"]["bob"]["job_data"] = json!([failed]);
    env.write_data(&data);
    let _printed = env.tmux().run(&["new-session", "-d", "-s", "bob", "exec sleep 1000"]);
    let _printed = env.tmux().run(&["new-session", "-d", "-s", "alice", "exec sleep 1000"]);
    let plan = env.tpu("daemon plan").exits(0).stdout;
    let lines: Vec<&str> = plan.lines().collect();
    one_column(&lines, &["finished", "error: killed-by-signal"]);
    one_column(&lines, &["it is finished", "pass"]);

    // The journal: a name that is long, and one that is wide.
    drop(env.tpu("add-user somebody-with-a-long-name --tmux-name long").exits(0));
    drop(env.tpu("add-tag 1 日本語 alice").exits(0));
    let history = env.tpu("history").exits(0).stdout;
    let lines: Vec<&str> = history.lines().filter(|line| line.contains('(')).collect();
    assert!(lines.len() >= 2, "{history}");
    let kind = |line: &&str| {
        let mut cells = line.split("  ").filter(|cell| !cell.is_empty());
        format!("  {}", cells.nth(2).unwrap().trim())
    };
    let kinds: Vec<String> = lines.iter().map(kind).collect();
    one_column(&lines, &kinds.iter().map(String::as_str).collect::<Vec<_>>());

    let tldr = env.tpu("tldr").exits(0).stdout;
    for line in tldr.lines().filter(|line| line.starts_with("  tpu ")) {
        let (typed, what) = line.split_at(41);
        assert!(typed.ends_with(' ') && !what.starts_with(' '), "{line}");
    }
}

#[test]
fn no_member_of_a_document_stands_there_twice() {
    let env = TestEnv::new();
    crate::common::tmux::write_file(&env.path("text.log"), "KeyError: 'lr'\n");
    let output = env.tpu("classify text.log --json").exits(0);
    assert_eq!(output.stdout.matches(r#""schema""#).count(), 1, "{output}");
}

#[test]
fn no_pricing_is_shown_where_nobody_has_said_one() {
    let env = TestEnv::new();
    drop(env.tpu("register lab-a --zone europe-west4-a --type v2-8").exits(0));
    drop(env.tpu("register lab-b --zone europe-west4-a --type v2-8 --preemptible").exits(0));
    for line in ["check-status", "targets"] {
        let text = env.tpu(line).exits(0).stdout;
        assert!(!text.contains("on-demand"), "{line}: {text}");
        let b = text.lines().find(|line| line.starts_with("lab-b")).unwrap();
        assert!(b.contains("preemptible") || line == "check-status", "{text}");
        drop(env.tpu(&format!("{line} --json")).exits(0));
    }
    assert!(!env.tpu("describe lab-a").exits(0).stdout.contains("on-demand"));
    let one = env.tpu("describe lab-a --json").exits(0).json();
    assert_eq!(one["target"]["pricing"], json!(null));
    assert_eq!(env.data()["targets"]["lab-b"]["pricing"], "preemptible");
    for line in ["apply lab-c --preemptible --dry-run", "find v2 --preemptible"] {
        let output = env.tpu(line);
        assert!(output.code != 2, "{output}");
    }
}

#[test]
fn ended_remote_jobs_are_archived_where_no_cloud_is_set() {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "sim");
    let line = ["run", "v2-1", "alice", "rule=pass", "-q", "--", "bash", "-c", "exec sleep 1000"];
    drop(env.tpu_words(&line).exits(0));
    env.wait_status(1, "running");
    let workers = env.state_of("alice", 1).join("workers");
    wait_until("the command on its worker", || workers.exists());
    drop(env.tpu("sim preempt v2-1").exits(0));
    drop(env.wait_exit(1));
    env.set("TPU_CLOUD", "none");
    let cleaned = env.tpu("clean alice").exits(0);
    drop(cleaned.says(&["Archived 1 job, closed 1 window.", "it may still run there"]));
    assert_eq!(env.jobs("alice"), [json!(null); 0]);
}

#[test]
fn each_hint_stands_under_its_error() {
    let env = TestEnv::new();
    let said = env.tpu("run local alice dir=9 foo=1 -- true").stderr;
    let kinds: Vec<&str> = said.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(kinds, ["error:", "hint:", "error:", "hint:"], "{said}");
    // One piece of advice for several stands once.
    let said = lab().tpu("kill 1,1 alice").stderr;
    assert_eq!(said.matches("hint:").count(), 1, "{said}");
}

#[test]
fn a_share_is_rounded_down_and_is_whole_only_at_the_end() {
    let env = TestEnv::new();
    for (step, share) in [(50, "16 %"), (299, "99 %"), (300, "100 %")] {
        let window = env.start(&format!("echo step {step}/300 loss=0.5; exec sleep 1000"), &NONE);
        wait_until("its share", || {
            let shown = env.tpu(&format!("check {window} alice")).exits(0).stdout;
            let part = shown.split(" · ").find(|part| part.ends_with(" %")).map(str::to_owned);
            assert!(part.as_deref().is_none_or(|part| part == share), "{shown}");
            part.is_some()
        });
    }
}

#[test]
fn a_command_of_several_words_says_which_there_are() {
    let mut env = TestEnv::new();
    let rows = [
        ("daemon", "which? run, start, stop, restart, status, plan"),
        ("board", "which? export, import"),
        ("sim", "which? list, "),
        ("data", "which? get, set, merge"),
    ];
    for (word, which) in rows {
        drop(env.tpu(word).exits(2).says(&[which, &format!("tpu help {word}")]));
    }
    // And without any variable of ours.
    for name in ["TPU_DATA", "TPU_TMUX_SOCKET", "TPU_SSH_DIR"] {
        env.unset(name);
    }
    for (word, which) in rows {
        drop(env.tpu(word).exits(2).says(&[which, &format!("tpu help {word}")]));
    }
}
