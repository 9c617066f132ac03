//! A job in a window has a terminal, as if it had been typed there; and its log, which is kept beside it,
//! loses nothing and reads well, whatever is killed.

use std::path::{Path, PathBuf};

use rustix::process::Signal as RawSignal;
use tpu_system::sys::procs::Process;

use crate::common::env::{TestEnv, lives};
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

const NONE: [&str; 0] = [];

fn log_path(env: &TestEnv, window: u64) -> PathBuf {
    Path::new(env.job("alice", window)["log_dir"].as_str().unwrap()).join("output.log")
}

fn log(env: &TestEnv, window: u64) -> String {
    std::fs::read_to_string(log_path(env, window)).unwrap_or_default()
}

/// What relays for a job.
fn relay(env: &TestEnv, window: u64) -> Option<Process> {
    let spool = env.state_of("alice", window).join("spool").display().to_string();
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let words = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let is_ours = |pid: &u32| {
        let words = words(pid);
        let words: Vec<&[u8]> = words.split(|b| *b == 0).collect();
        words.get(2) == Some(&&b"relay"[..]) && words.get(5) == Some(&spool.as_bytes())
    };
    pids.filter(is_ours).find_map(Process::read)
}

fn kill(process: &Process) {
    signal(process, RawSignal::KILL);
}

fn signal(process: &Process, signal: RawSignal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_job_finds_a_terminal_on_all_three() {
    let env = TestEnv::new();
    let window = env.start(
        "for fd in 0 1 2; do [ -t $fd ] && echo \"$fd tty\" || echo \"$fd pipe\"; done; \
         stty size; cat /dev/null >/dev/tty && echo has /dev/tty",
        &NONE,
    );
    env.wait_status(window, "finished");
    let pane = env.pane_id("alice", window).unwrap();
    let size = env.tmux().run(&["display", "-p", "-t", &pane, "#{pane_height} #{pane_width}"]);
    assert_eq!(log(&env, window), format!("0 tty\n1 tty\n2 tty\n{size}\nhas /dev/tty\n"));
    assert!(!env.state_of("alice", window).join("spool").exists(), "all of it is in the log");
}

#[test]
fn bars_draw_in_the_window_and_read_well_in_the_log() {
    let env = TestEnv::new();
    // In the manner of tqdm, and of rich: two lines that are drawn anew, the cursor going up in between.
    let script = r"
        [ -t 1 ] || { echo no terminal; exit 1; }
        for i in {1..200}; do printf '\r\e[32m%3d%%\e[0m step %d/200 loss=0.%03d' $((i / 2)) $i $i; done
        printf '\n'
        printf 'train 0\nvalid 0'
        for i in {1..200}; do printf '\r\e[2K\e[1A\e[2Ktrain %d\nvalid %d' $i $i; done
        printf '\nthe end\n' >&2
    ";
    let window = env.start(script, &NONE);
    env.wait_status(window, "finished");
    let log = log(&env, window);
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.first(), Some(&"  0% step 1/200 loss=0.001"), "{log}");
    assert!(lines.contains(&"100% step 200/200 loss=0.200"), "{log}");
    assert!(lines.ends_with(&["train 200", "valid 200", "the end"]), "{log}");
    assert!(lines.len() < 60, "{log}");
    assert!(!log.contains(['\u{1b}', '\r']), "{log}");
    let shown = env.pane("alice", window);
    assert!(shown.contains("train 200\nvalid 200\nthe end\n"), "{shown}");
    assert_eq!(shown.matches("train ").count(), 1, "{shown}");
    // Where loss and step of a run are read.
    let logs = env.tpu(&format!("logs {window} alice")).exits(0);
    logs.says(&["100% step 200/200 loss=0.200", "the end"]);
}

#[test]
fn what_is_written_at_full_speed_is_in_the_log_exactly_once() {
    let env = TestEnv::new();
    let window = env.start("seq 1000000 1199999; printf 'last words'", &NONE);
    env.wait_status(window, "finished");
    let log = log(&env, window);
    let mut lines = log.lines();
    for number in 1_000_000..1_200_000 {
        assert_eq!(lines.next(), Some(&*number.to_string()));
    }
    assert_eq!(lines.collect::<Vec<_>>(), ["last words"]);
}

#[test]
fn lines_wider_than_the_window_stay_whole_and_in_order() {
    let env = TestEnv::new();
    let script = "for i in {1..40}; do printf 'out %d %0500d\\n' $i 0; echo \"err $i\" >&2; done; \
                  head -c 300000 /dev/zero | tr '\\0' x; echo";
    let window = env.start(script, &NONE);
    env.wait_status(window, "finished");
    let zeros = "0".repeat(500);
    let mut wanted: Vec<String> =
        (1..=40).flat_map(|i| [format!("out {i} {zeros}"), format!("err {i}")]).collect();
    wanted.push("x".repeat(300_000));
    assert!(log(&env, window).lines().eq(wanted));
}

/// Whoever relays is killed again and again: the job does not notice, and at most what was in its hands is
/// missing, where the log says so.
#[test]
fn a_relay_that_is_killed_is_followed_by_another() {
    let env = TestEnv::new();
    // It has not ended before all are killed, however long it takes to find them.
    let script = "n=0; until [ -e \"$HOME/enough\" ]; do seq -f %07.0f $((n + 1)) $((n + 10000)); \
                  n=$((n + 10000)); done; echo $n >\"$HOME/last\"; echo over";
    let window = env.start(script, &NONE);
    let mut killed = Vec::new();
    while killed.len() < 4 {
        let before = std::fs::metadata(log_path(&env, window)).map_or(0, |log| log.len());
        let next = wait_for("a relay at work", || {
            let length = std::fs::metadata(log_path(&env, window)).map_or(0, |log| log.len());
            let ended = env.state_of("alice", window).join("exit").exists();
            assert!(!ended, "it ended before {} relays were killed", killed.len() + 1);
            (length > before + 20_000).then(|| relay(&env, window)).flatten()
        });
        kill(&next);
        killed.push(next.pid);
    }
    env.touch("enough");
    let record = env.wait_status(window, "finished");
    assert_eq!(record["extra_msgs"]["launch"]["exit"], 0);
    let log = log(&env, window);
    let gaps = log.matches("the log was interrupted here").count();
    assert_eq!(gaps, killed.len(), "each is said");
    // What is left of a line that a gap has cut is no number.
    let whole = log.lines().filter(|line| line.len() >= 7);
    let numbers: Vec<u32> = whole.filter_map(|line| line.parse().ok()).collect();
    assert!(numbers.windows(2).all(|two| two[0] < two[1]), "nothing is there twice");
    let last: usize =
        std::fs::read_to_string(env.path("last")).unwrap().trim_end().parse().unwrap();
    let missing = last - numbers.len();
    assert!(missing * 8 <= gaps * (4096 + 16), "{missing} lines are missing");
    assert!(log.ends_with("over\n"), "the last words are there");
}

#[test]
fn the_last_words_of_a_killed_job_are_kept() {
    let env = TestEnv::new();
    let window = env.start("seq 3000; printf 'CUDA error: out'; kill -9 $$", &NONE);
    let record = env.wait_status(window, "error");
    assert_eq!(record["extra_msgs"]["launch"]["exit"], 137);
    // Behind them the shell says what killed it.
    assert!(log(&env, window).contains("\n3000\nCUDA error: out"));
}

#[test]
fn what_a_job_leaves_at_its_terminal_does_not_hold_its_end() {
    let env = TestEnv::new();
    let script = "bash -c 'until [ -e \"$HOME/go\" ]; do sleep 0.4; done; echo from behind; \
                  echo $$ >\"$HOME/left\"' & echo done";
    let window = env.start(script, &NONE);
    env.wait_status(window, "finished");
    assert_eq!(log(&env, window), "done\n");
    env.touch("go");
    wait_until("what it says then is in the log", || log(&env, window) == "done\nfrom behind\n");
    wait_until("and in the window", || env.pane("alice", window).contains("from behind"));
    wait_until("nothing is left", || relay(&env, window).is_none());
    // Meanwhile the window is a shell.
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["send-keys", "-t", &pane, "echo shell-$((6*7))", "Enter"]);
    wait_until("the shell answers", || env.pane("alice", window).contains("shell-42"));
}

#[test]
fn ten_jobs_at_once_keep_their_own_words() {
    let env = TestEnv::new();
    let windows: Vec<u64> = (0..10)
        .map(|n| env.start(&format!("seq -f '{n} %.0f' 2000; echo end of {n}"), &NONE))
        .collect();
    for (n, window) in windows.iter().enumerate() {
        env.wait_status(*window, "finished");
        let wanted = (1..=2000).map(|i| format!("{n} {i}")).chain([format!("end of {n}")]);
        assert!(log(&env, *window).lines().eq(wanted), "job {n}");
    }
}

#[test]
fn keys_answers_and_sizes_reach_the_job() {
    let env = TestEnv::new();
    let script = r#"
        trap 'stty size; : >"$HOME/resized"' WINCH
        echo $$ >"$HOME/ready"
        read -r line; echo "read $line"
        until [ -e "$HOME/resized" ]; do sleep 0.4; done
        stty raw -echo
        printf '\e[6n'
        IFS= read -r -d R -t 20 reply; stty sane
        [[ $reply == $'\e['*';'* ]] && echo the terminal answers
    "#;
    let window = env.start(script, &NONE);
    let shell = env.wait_pid("ready").pid;
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["send-keys", "-t", &pane, "typed words", "Enter"]);
    wait_until("the line is read", || log(&env, window).contains("read typed words\n"));
    let resize = |columns: u16| {
        let size = columns.to_string();
        env.tmux().run(&["resize-window", "-t", &pane, "-x", &size, "-y", "33"]);
        wait_until("its terminal has the size of the window", || {
            // One that has ended has seen it: that is in its log.
            let Ok(terminal) = std::fs::File::open(format!("/proc/{shell}/fd/0")) else {
                return true;
            };
            let size = rustix::termios::tcgetwinsize(&terminal).unwrap();
            (size.ws_col, size.ws_row) == (columns, 33)
        });
    };
    resize(101);
    // That the shell then does what it has to is its own matter: where it does not, the next size is another chance.
    wait_until("the shell has seen it", || {
        env.path("resized").exists() || {
            resize(100);
            resize(101);
            env.path("resized").exists()
        }
    });
    env.wait_status(window, "finished");
    let log = log(&env, window);
    assert!(log.contains("33 101\n") || log.contains("33 100\n"), "{log}");
    assert!(log.contains("the terminal answers\n"), "{log}");
}

#[test]
fn a_terminal_left_in_raw_mode_leaves_a_sane_shell() {
    let env = TestEnv::new();
    let window = env.start("stty raw -echo -isig; kill -9 $$", &NONE);
    env.wait_status(window, "error");
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["send-keys", "-t", &pane, "echo shell-$((6*7))", "Enter"]);
    wait_until("the shell answers", || env.pane("alice", window).contains("\nshell-42"));
    env.tmux().run(&["send-keys", "-t", &pane, "stty -a", "Enter"]);
    wait_until("it echoes, and Ctrl-C is a signal", || {
        let shown = env.pane("alice", window);
        let words: Vec<&str> = shown.split_whitespace().collect();
        ["isig", "icanon", "echo", "opost"].iter().all(|mode| words.contains(mode))
    });
}

/// A window that is closed takes the job with it, as it takes what was typed there; nobody is left behind.
#[test]
fn a_closed_window_leaves_nobody_behind() {
    let env = TestEnv::new();
    let window = env.start("echo $$ >\"$HOME/pid\"; exec sleep 1000", &NONE);
    let job = env.wait_pid("pid");
    let relay = wait_for("the relay", || relay(&env, window));
    let pane = env.pane_id("alice", window).unwrap();
    env.tmux().run(&["kill-pane", "-t", &pane]);
    wait_until("the job hears of it", || !lives(&job));
    wait_until("the relay as well", || !lives(&relay));
}

/// What a job says and saves when its window is closed, or the server goes with all windows, is kept.
#[test]
fn a_job_whose_window_is_closed_may_save_what_it_has() {
    for server_too in [false, true] {
        let env = TestEnv::new();
        let script = "trap 'echo saving; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; \
                      echo step 100 >\"$HOME/saved\"; echo saved; exit 3' HUP; \
                      echo $$ >\"$HOME/pid\"; echo ready; while :; do sleep 0.4; done";
        let window = env.start(script, &NONE);
        let job = env.wait_pid("pid");
        wait_until("it has said that it is ready", || log(&env, window).contains("ready"));
        let pane = env.pane_id("alice", window).unwrap();
        if server_too {
            env.tmux().run(&["kill-server"]);
        } else {
            env.tmux().run(&["kill-pane", "-t", &pane]);
        }
        wait_until("it has heard of it", || log(&env, window).contains("saving"));
        assert!(lives(&job), "it takes its time");
        write_file(&env.path("go"), "");
        wait_until("it has ended", || !lives(&job));
        // Whoever relays has its last words still in its hands.
        wait_until("it is all in the log", || log(&env, window).ends_with("saving\nsaved\n"));
        let log = log(&env, window);
        assert!(log.starts_with("ready\n"), "{log}");
        assert_eq!(std::fs::read_to_string(env.path("saved")).unwrap(), "step 100\n");
        // Its code is no end of its own.
        let how = if server_too { "error: lost" } else { "killed (window closed)" };
        wait_until(how, || env.tpu("check alice").to_string().contains(how));
    }
}

/// The relay is ours: that it was killed is no failure of the job, and nothing that is said of it is read as one.
#[test]
fn a_relay_that_is_killed_says_nothing_about_the_job() {
    let env = TestEnv::new();
    let window =
        env.start("echo ready; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; exit 7", &NONE);
    wait_until("it has said that it is ready", || log(&env, window).contains("ready"));
    let first = wait_for("the relay", || relay(&env, window));
    kill(&first);
    let next = || relay(&env, window).filter(|relay| relay.pid != first.pid && lives(relay));
    wait_for("the next relay", next);
    assert!(!env.pane("alice", window).contains("Killed"), "{}", env.pane("alice", window));
    write_file(&env.path("go"), "");
    env.wait_status(window, "error");
    let said = env.tpu("check alice --json").exits(0).json();
    assert_eq!(said["jobs"][0]["error"], "unknown", "{said}");
}

/// Without the program nothing can be shown; what has ended is recorded all the same.
#[test]
fn an_end_is_recorded_where_the_program_has_gone() {
    let env = TestEnv::new();
    let window =
        env.start("echo ready; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; exit 7", &NONE);
    wait_until("it has said that it is ready", || log(&env, window).contains("ready"));
    let state = env.state_of("alice", window);
    std::fs::rename(state.join("bin/tpu"), state.join("bin/away")).unwrap();
    kill(&wait_for("the relay", || relay(&env, window)));
    wait_until("the window says so", || env.pane("alice", window).contains("which is gone"));
    write_file(&env.path("go"), "");
    wait_until("its end is written down", || state.join("exit").exists());
    let code = std::fs::read_to_string(state.join("exit")).unwrap();
    assert!(code.starts_with("7 "), "{code}");
    let said = env.tpu("check alice --json").exits(0).json();
    assert_eq!(said["jobs"][0]["error"], "unknown", "{said}");
}

/// A relay that is held up and killed after the end of the job has a successor that hears the last words.
#[test]
fn what_was_said_last_is_heard_also_when_the_relay_dies_after_the_job() {
    let env = TestEnv::new();
    let script = "echo ready; until [ -e \"$HOME/go\" ]; do sleep 0.4; done; \
                  echo 'RuntimeError: boom'; touch \"$HOME/said\"; exit 3";
    let window = env.start(script, &NONE);
    wait_until("it has said that it is ready", || log(&env, window).contains("ready"));
    let relay = wait_for("the relay", || relay(&env, window));
    signal(&relay, RawSignal::STOP);
    write_file(&env.path("go"), "");
    wait_until("it has said its last", || env.path("said").exists());
    kill(&relay);
    env.wait_status(window, "error");
    assert!(log(&env, window).contains("RuntimeError: boom"), "{}", log(&env, window));
    let spool = env.state_of("alice", window).join("spool");
    assert!(!spool.exists(), "nothing is left to recover");
}
