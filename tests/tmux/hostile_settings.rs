//! tmux as people really have it: options that move, close and rename windows, names that look like
//! numbers, servers that die. Each command touches the right window or none, and says what it cannot know.

use std::collections::BTreeSet;

use serde_json::json;

use crate::common::env::{TestEnv, lives, wait_gone};
use crate::common::output::CommandOutput;
use crate::common::tmux::PrivateTmux;
use crate::common::wait::wait_until;

/// Every option that has ever cost somebody a window.
const HOSTILE: &str = "
set -g renumber-windows on
set -g base-index 1
set -g pane-base-index 1
set -g destroy-unattached on
set -g exit-unattached on
set -g history-limit 0
set -g default-shell /bin/sh
set -g default-command 'exec /bin/false'
set -g automatic-rename on
set -g allow-rename on
set -g remain-on-exit off
";

/// Says whose it is, writes its pid, and is busy until it is stopped.
const BUSY: &str = "echo this is $0 $1; echo $$ >\"$1.new\"; mv \"$1.new\" \"$1\"; exec sleep 1000";

/// Users `b` and `bird`, of whom one's name begins with the other's.
fn two_birds() -> TestEnv {
    let env = TestEnv::with_tmux_conf(HOSTILE);
    let mut data = env.two_users();
    let users = data["users"].as_object_mut().unwrap();
    for (old, new) in [("alice", "b"), ("bob", "bird")] {
        let mut user = users.remove(old).unwrap();
        user["name"] = json!(new);
        user["tmux_name"] = json!(new);
        users.insert(new.to_owned(), user);
    }
    data["user_list"] = json!(["b", "bird"]);
    data["id_user_dict"] = json!({ "0": "b", "1": "bird" });
    data["user_id_dict"] = json!({ "b": 0, "bird": 1 });
    env.write_data(&data);
    env
}

/// A busy job whose pid is in the file `name`; its window.
fn busy(env: &TestEnv, user: &str, name: &str) -> u64 {
    let path = env.path(name);
    let window = env.start_for(user, BUSY, &[path.as_os_str()]);
    let _pid = env.wait_file(name);
    window
}

/// A job that has ended with this code; its window stays open.
fn ended(env: &TestEnv, user: &str, code: u8) -> u64 {
    let window = env.start_for(user, "echo this is $0; exit $1", &[code.to_string()]);
    let clue = format!("the end of {user}/{window}");
    wait_until(&clue, || env.job(user, window)["extra_msgs"]["launch"]["ended"].is_string());
    window
}

/// Every window of the server, `session:index`.
fn windows(tmux: &PrivateTmux) -> BTreeSet<String> {
    let listed = tmux.try_run(&["list-windows", "-a", "-F", "#{session_name}:#{window_index}"]);
    listed.text().lines().map(str::to_owned).collect()
}

/// What a command did to the windows: `-b:1` went, `+b:4` came.
fn effect(env: &TestEnv, line: &str, code: i32) -> (CommandOutput, Vec<String>) {
    let old = windows(env.tmux());
    let output = env.tpu(line).exits(code);
    let new = windows(env.tmux());
    let removed = old.difference(&new).map(|window| format!("-{window}"));
    let added = new.difference(&old).map(|window| format!("+{window}"));
    let all = removed.chain(added).collect();
    (output, all)
}

/// A person's own window in a session.
fn own_window(tmux: &PrivateTmux, session: &str, index: u32, name: &str) {
    let target = format!("={session}:{index}");
    let _printed =
        tmux.run(&["new-window", "-d", "-n", name, "-t", &target, "--", "/bin/sleep", "1000"]);
}

#[test]
fn each_command_touches_its_own_window_and_no_other() {
    let env = two_birds();
    for user in ["b", "bird"] {
        assert_eq!(busy(&env, user, &format!("pid-{user}-1")), 1);
        assert_eq!(ended(&env, user, 0), 2);
        assert_eq!(ended(&env, user, 3), 3);
        assert_eq!(busy(&env, user, &format!("pid-{user}-4")), 4);
    }
    // Windows of people, named like the windows of jobs.
    for (session, index, name) in
        [("b", 20, "1"), ("b", 21, "3run"), ("b", 22, "9"), ("bird", 20, "1"), ("bird", 21, "=b:1")]
    {
        own_window(env.tmux(), session, index, name);
    }
    let b4 = env.wait_pid("pid-b-4");
    let bird1 = env.wait_pid("pid-bird-1");
    let quiet = |line: &str, code: i32| {
        let bytes = env.data_bytes();
        let (output, effect) = effect(&env, line, code);
        assert!(effect.is_empty(), "{line}: {effect:?}");
        assert!(env.data_bytes() == bytes, "{line} wrote data.json");
        output
    };

    // Looking: nothing moves, and each sees its own.
    drop(quiet("check b", 0).says(&["Window 1\n", "Status: running", "Window 20 (b, NOT FOUND"]));
    drop(quiet("check --all-users --json", 0));
    drop(quiet("check-simp bird", 0));
    drop(quiet("logs 1 b", 0).says(&["this is job [DIR]/pid-b-1"]));
    drop(quiet("logs 1 bird", 0).says(&["this is job [DIR]/pid-bird-1"]));
    drop(quiet("explain 3 bird", 0).says(&["bird/3", "exit code: 3"]));

    // Windows 9 and 20 are no jobs, whatever they are called.
    drop(quiet("kill w=9 b -y", 3));
    drop(quiet("kill w=20 b -y", 3));
    drop(quiet("kill-window w=9 b -y", 3));
    drop(quiet("kill-window w=0 b -y", 3));
    drop(quiet("resume w=20 b", 3));

    let acts = |line: &str, expected: &[&str]| {
        let (output, effect) = effect(&env, line, 0);
        assert_eq!(effect, expected, "{}", output.report());
    };
    acts("kill w=1 b -y", &["-b:1"]);
    assert_eq!(env.job("b", 1)["status"], "killed");
    assert_eq!(env.job("bird", 1)["status"], "running");
    assert!(lives(&bird1));
    // Above every window that there is, whoever made it.
    acts("rerun w=3 bird", &["+bird:22"]);
    assert_eq!(env.job("b", 3)["status"], "error");
    acts("kill-window w=2 bird -y", &["-bird:2"]);
    let (refused, changed) = effect(&env, "kill-window w=21 bird -y", 4);
    assert_eq!(changed, [""; 0], "{}", refused.says(&["window 21 of bird (sleep)"]));
    // The window of b/4 is closed by hand: its record goes, and nobody else's.
    let _closed = env.tmux().run(&["kill-window", "-t", &env.pane_id("b", 4).unwrap()]);
    wait_gone(&b4);
    wait_until("it has ended", || env.tpu("check b").to_string().contains("window closed"));
    acts("-czj b", &[]);
    assert_eq!(records(&env, "b"), [2, 3], "1 was killed: its window is gone too");
    acts("-czw b", &[]);
    acts("-czw b --force -y", &["-b:20", "-b:21", "-b:22"]);
    wait_until("the end of bird/22", || env.job("bird", 22)["status"] == "error");
    acts("clean b", &["-b:2", "-b:3"]);
    assert_eq!(records(&env, "b"), [0_u64; 0]);
    // 1 and 4 are alive; the lineage 3 -> 22 is over; 20 and 21 are a person's.
    acts("clean bird", &["-bird:22", "-bird:3"]);
    assert_eq!(records(&env, "bird"), [1, 4]);
    assert!(lives(&bird1));
    let left = windows(env.tmux());
    let expected = ["b:0", "bird:0", "bird:1", "bird:20", "bird:21", "bird:4"].map(str::to_owned);
    assert_eq!(left, BTreeSet::from(expected), "the home windows are always there");
}

fn records(env: &TestEnv, user: &str) -> Vec<u64> {
    env.jobs(user).iter().map(|job| job["windows_id"].as_u64().unwrap()).collect()
}

#[test]
fn windows_keep_their_history_and_their_shell_under_hostile_options() {
    let env = two_birds();
    let window = ended(&env, "b", 3);
    let id = env.pane_id("b", window).unwrap();
    let limit = env.tmux().run(&["display-message", "-p", "-t", &id, "#{history_limit}"]);
    assert!(limit.parse::<u32>().unwrap() >= 10_000, "{limit}");
    // The window stays although `default-command` would end at once.
    assert!(env.has_window("b", window));
    let option = |name: &str| env.tmux().run(&["show-options", "-A", "-v", "-t", "=b:", name]);
    assert_eq!(option("renumber-windows"), "off");
    assert_eq!(option("destroy-unattached"), "off");
}

#[test]
fn a_window_closed_by_hand_ends_its_job() {
    let env = two_birds();
    let window = busy(&env, "b", "pid");
    let process = env.wait_pid("pid");
    let _closed = env.tmux().run(&["kill-window", "-t", &env.pane_id("b", window).unwrap()]);
    wait_gone(&process);
    let bytes = env.data_bytes();
    wait_until("it has ended", || env.tpu("check b").to_string().contains("window closed"));
    let seen = env.tpu("check b --json").exits(0).json();
    let job = &seen["jobs"][0];
    assert_eq!((&job["status"], &job["error"]), (&json!("killed"), &json!(null)), "{job:#}");
    assert_eq!(job["window_alive"], false);
    assert!(env.data_bytes() == bytes, "looking wrote");
    // A window that a person opens at the same index is not the job's.
    own_window(env.tmux(), "b", 1, "1");
    let (_, changed) = effect(&env, "kill w=1 b -y", 0);
    assert_eq!(changed, [""; 0]);
    assert_eq!(env.job("b", 1)["status"], "killed");
}

/// A session with one window that does nothing, which stays although nobody is attached.
fn idle_session(tmux: &PrivateTmux, name: &str) {
    let new = ["new-session", "-d", "-s", name, "/bin/sleep", "1000", ";"];
    let stays = ["set-option", "destroy-unattached", "off", ";"];
    let serves = ["set-option", "-s", "exit-unattached", "off"];
    drop(tmux.run(&[&new[..], &stays, &serves].concat()));
}

#[test]
fn a_restarted_server_has_lost_the_jobs_and_its_windows_are_left_alone() {
    let env = two_birds();
    for (user, name) in [("b", "pid-b"), ("bird", "pid-bird")] {
        let _window = busy(&env, user, name);
    }
    let processes = [env.wait_pid("pid-b"), env.wait_pid("pid-bird")];
    env.tmux().kill_server();
    for process in &processes {
        wait_gone(process);
    }
    // No server: theirs has ended for certain. What else it had, nobody can list.
    let bytes = env.data_bytes();
    // Their launchers live a moment longer.
    for user in ["b", "bird"] {
        wait_until("nothing of it is left", || {
            env.tpu(&format!("check {user}")).exits(0).to_string().contains("error: lost")
        });
    }
    drop(env.tpu("check b").exits(0).says(&["error: lost", "its tmux server has ended"]));
    drop(env.tpu("-czw b").exits(6));
    assert!(env.data_bytes() == bytes, "looking wrote");

    // Another server on the same socket, with windows where the jobs were.
    for session in ["b", "bird"] {
        idle_session(env.tmux(), session);
    }
    assert_eq!(windows(env.tmux()), BTreeSet::from(["b:1".to_owned(), "bird:1".to_owned()]));
    drop(env.tpu("check b").exits(0).says(&["error: lost", "the tmux server has been restarted"]));
    let acts = |line: &str, code: i32| {
        let (output, effect) = effect(&env, line, code);
        assert!(effect.is_empty(), "{effect:?}\n{}", output.report());
    };
    acts("kill w=1 b -y", 0);
    assert_eq!(env.job("b", 1)["status"], "killed");
    acts("kill-window w=1 bird -y", 0);
    assert_eq!(records(&env, "bird"), [0_u64; 0]);
    acts("-czj b", 0);
    assert_eq!(records(&env, "b"), [0_u64; 0]);
}

#[test]
fn from_another_socket_nothing_is_known_and_nothing_is_done() {
    let env = two_birds();
    let window = busy(&env, "b", "pid");
    let process = env.wait_pid("pid");
    let over = ended(&env, "b", 3);
    let bytes = env.data_bytes();
    let here = windows(env.tmux());

    let other = PrivateTmux::new(HOSTILE);
    let from_there = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let spawn = env
            .spawn(&words)
            .env("TMUX_TMPDIR", other.dir())
            .env("TPU_TMUX_SOCKET", other.socket());
        env.output(&spawn)
    };
    for round in ["no server", "a server with the same windows"] {
        let there = windows(&other);
        drop(from_there("check b").exits(0).says(&["running", "unknown: not watched from here"]));
        for (line, code) in [
            ("kill w=1 b -y", 4),
            ("kill-window w=1 b -y", 6),
            ("resume w=1 b --force", 6),
            ("rerun w=1 b --force", 6),
            ("clean b", 6),
            ("clear-all b", 6),
            ("clear-error b", 6),
        ] {
            let output = from_there(line).exits(code);
            assert!(env.data_bytes() == bytes, "{round}: wrote data.json\n{}", output.report());
            assert_eq!(windows(&other), there, "{round}: {}", output.report());
        }
        if there.is_empty() {
            idle_session(&other, "b");
            drop(other.run(&["new-window", "-d", "-t", "=b:2", "--", "/bin/sleep", "1000"]));
        } else {
            // With a server to ask: records that live elsewhere are no windowless records.
            drop(from_there("-czj b").exits(0).says(&["Archived 0 jobs"]));
            assert!(env.data_bytes() == bytes);
        }
    }
    assert_eq!(windows(env.tmux()), here);
    assert!(lives(&process));
    assert_eq!((window, over), (1, 2));
}
