//! A disk that takes nothing more, or not from this account: whatever command meets it leaves the state and
//! the jobs as they were and says so once, with what to do; and the next writer waits for nobody.

use std::os::unix::fs::PermissionsExt as _;

use tpu_core::model::data::Data;
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::Event;

use crate::common::env::{TPU, TestEnv, lives};
use crate::common::output::CommandOutput;
use crate::common::tmux::{write_file, write_script};
use crate::store::killed_writers::is_free;

/// Every command that changes something, as far as it does not talk to a control plane. alice/1 is
/// finished, alice/2 has failed, alice/3 runs, alice/4 too, with a
/// failure in its text; v2-1 is a target.
const COMMANDS: [&str; 43] = [
    "run local alice -q -- true",
    "run v2-1 alice -q",
    "resume 2 alice",
    "rerun 2 alice",
    "kill 3 alice -y",
    "kill-window 2 alice -y",
    "clean alice",
    "clean alice -re",
    "clear-finished alice",
    "clear-error alice",
    "clear-all alice -y",
    "add-tag 2 odd alice",
    "set-rule 2 pre alice",
    "ignore-error 4 alice",
    "set-settings time_zone us alice",
    "reset-settings alice -y",
    "reset-window-num 70 alice",
    "set-cur 5 alice",
    "set-dir /usr 6 alice",
    "del-dir 1 alice",
    "swap-dir 1 2 alice",
    "-a odd config.odd alice",
    "del-config-alias lr alice",
    "add-user zoe",
    "del-user bob -y",
    "-ta odd lab-tpuvm-v2-32-1",
    "register odd-target --zone zone-a",
    "del-registered v2-1",
    "reserve v2-1 alice --for 2h",
    "release v2-1",
    "ssn v2-1 odd",
    "asn v2-1 odd",
    "ack",
    "-smc checking_freq 60",
    "upd-log alice:3 /tmp/log /tmp/stage v2-1 now",
    "finish-job alice:3",
    "fail-job alice:3",
    "data set users.alice.settings.show_length 70",
    "data merge merge.json",
    "board import json board.json",
    "doctor --fix",
    "doctor --restore 1 -y",
    "init --adopt --from moved",
];

/// Jobs, a reservation and files to read.
fn lab() -> TestEnv {
    let mut env = TestEnv::new();
    // A script, which calls back.
    let script =
        "tpu upd-log alice:3 \"$HOME\" \"$PWD\" local now; echo $$ >\"$HOME/pid\"; exec sleep 1000";
    env.code("alice", "staging.sh", script);
    let none: [&str; 0] = [];
    env.start("true", &none);
    env.start(
        "mkdir \"$TPU_LOG_DIR/checkpoint_1\"; echo w >\"$TPU_LOG_DIR/checkpoint_1/w\"; exit 1",
        &none,
    );
    drop(env.tpu("run local alice -q").exits(0));
    env.start("echo 'RuntimeError: CUDA out of memory'; exec sleep 1000", &none);
    env.wait_status(1, "finished");
    env.wait_status(2, "error");
    env.wait_status(3, "running");
    env.wait_status(4, "running");
    // A failure that somebody has written down while the program is at work.
    env.change(|data| {
        let id = JobId::new(UserName::from("alice"), JobNumber(4));
        data.job_mut(&id).unwrap().apply(&Event::Failed(ErrorKind::Oom)).unwrap();
    });
    drop(env.tpu("set-dir /etc 2 alice").exits(0));
    drop(env.tpu("reserve v2-1 alice").exits(0));
    let board = env.tpu("board export json").exits(0).stdout;
    let noted = board.replace(r#""notes": """#, r#""notes": "odd""#);
    assert_ne!(noted, board);
    write_file(&env.path("board.json"), &noted);
    write_file(&env.path("merge.json"), r#"{"conda_env_name": "odd"}"#);
    std::fs::create_dir(env.path("moved")).unwrap();
    std::fs::copy(env.data_path(), env.path("moved/data.json")).unwrap();
    env.set("TPU_CLOUD", "none");
    env
}

/// What must be the same afterwards: the state file, the archive, the windows, the processes of jobs.
fn world(env: &TestEnv) -> (Vec<u8>, Option<Vec<u8>>, Vec<u64>) {
    let archive = tpu_system::store::Paths::new(env.data_path()).archive();
    (env.data_bytes(), std::fs::read(archive).ok(), env.windows("alice"))
}

/// Runs every command through `run`, and lists what is wrong with each.
fn go_through(env: &TestEnv, codes: &[i32], run: impl Fn(&str) -> CommandOutput) -> Vec<String> {
    let before = world(env);
    let (job, process) = (env.job("alice", 3), env.wait_pid("pid"));
    let mut wrong = Vec::new();
    for command in COMMANDS {
        let output = run(command);
        let mut complain = |what: &str| wrong.push(format!("$ tpu {command}: {what}\n{output}\n"));
        let errors = output.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let hints = output.stderr.lines().filter(|line| line.starts_with("hint: ")).count();
        // What finds nothing to change needs no disk; and `doctor` is there to say that there is no room.
        let is_told = is_told_by_doctor(command, &output);
        if output.code != 0
            && !is_told
            && (!codes.contains(&output.code) || errors != 1 || hints != 1)
        {
            complain("not one error with one hint and the right exit code");
        }
        if world(env) != before {
            complain("something has changed");
        }
        if !is_free(env) {
            complain("the lock is held");
        }
    }
    assert_eq!(env.job("alice", 3), job);
    assert!(lives(&process), "the job does not run any more");
    wrong
}

/// What cannot work any more is what `doctor` is there to say: on its list, and with 1, which means nothing
/// else there. What it was told to do and could not (`--restore`) is an error as everywhere.
fn is_told_by_doctor(command: &str, output: &CommandOutput) -> bool {
    let fails = |line: &str| line.starts_with("fail ") && line.contains("cannot be written");
    let is_told = command == "doctor --fix" && output.stdout.lines().any(fails);
    assert_eq!(is_told, command.starts_with("doctor") && output.code == 1, "{command}\n{output}");
    is_told
}

#[track_caller]
fn nothing_is(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `ulimit -f`: no file may grow beyond so many bytes. The shell ignores the signal, as a program that
/// wants the error does.
fn with_room_for(env: &TestEnv, bytes: u64, command: &str) -> CommandOutput {
    let script = env.path("limited");
    write_script(&script, "trap '' XFSZ; limit=$1; shift; exec prlimit --fsize=\"$limit\" \"$@\"");
    let limit = bytes.to_string();
    let words: Vec<&str> = [limit.as_str(), TPU].into_iter().chain(command.split(' ')).collect();
    env.output(&env.spawn_program(script.to_str().unwrap(), &words))
}

#[test]
fn where_there_is_no_room_every_command_leaves_everything_as_it_was() {
    let env = lab();
    // No room at all, and room for everything but a new version of the state.
    for room in [0, env.data_bytes().len() as u64 / 2] {
        nothing_is(&go_through(&env, &[5], |command| with_room_for(&env, room, command)));
    }
    drop(env.tpu("add-tag 2 after alice").exits(0));
}

/// Mounts a file system of so many pages in a name space of its own, puts the state there, runs a command on
/// it, and brings the state out again.
const ON_A_SMALL_DISK: &str = "size=$1 from=$2 out=$3; shift 3; mkdir -p \"$out/disk\" || exit 99; \
    mount -t tmpfs -o size=\"$size\" tpu \"$out/disk\" || exit 99; \
    cp \"$from\" \"$out/disk/data.json\" || exit 99; \
    TPU_DATA=\"$out/disk/data.json\" \"$@\"; code=$?; \
    cp \"$out/disk/data.json\" \"$out/after.json\"; \
    cat \"$out/disk/tpu-state/archive.jsonl\" >\"$out/archive\" 2>/dev/null; exit $code";

#[test]
fn a_disk_that_fills_up_at_any_write_costs_nothing() {
    let mut env = TestEnv::new();
    env.set("TPU_CLOUD", "none");
    let mut data = env.data();
    data["users"]["alice"]["job_data"] =
        [1, 2].map(|window| env.record("alice", window, "finished")).into();
    env.write_data(&data);
    // Where tmux cannot be asked no record goes.
    drop(env.tmux().run(&["new-session", "-d", "-s", "alice", "sleep 1000"]));
    let (before, records) = (env.data_bytes(), env.jobs("alice"));
    let script = env.path("small-disk");
    write_script(&script, ON_A_SMALL_DISK);
    let [from, out] = [env.data_path(), env.path("")].map(|path| path.to_str().unwrap().to_owned());
    let pages = before.len() as u64 / 4_096 + 1;
    let run = |room: u64, command: &str| {
        let size = ((pages + room) * 4_096).to_string();
        let script = script.to_str().unwrap();
        let fixed = ["-rm", "--", script, &size, &from, &out, TPU];
        let words: Vec<&str> = fixed.into_iter().chain(command.split(' ')).collect();
        env.output(&env.spawn_program("unshare", &words))
    };
    if run(100, "ls alice").code != 0 {
        println!("skipped: here nobody may mount a file system in a name space of his own");
        return;
    }
    for command in ["add-tag 1 odd alice", "clean alice", "add-user zoe", "ack", "doctor --fix"] {
        let (mut refused, mut done) = (0, 0);
        for room in 0..8 {
            let output = run(room, command);
            let after = std::fs::read(env.path("after.json")).unwrap();
            let kept = Data::parse(&after).unwrap();
            let archived = std::fs::read_to_string(env.path("archive")).unwrap();
            for record in &records {
                let window = record["windows_id"].as_u64().unwrap();
                let is_there = kept.jobs().any(|job| u64::from(job.windows_id.0) == window)
                    || archived.contains(&format!("\"windows_id\":{window}"));
                assert!(is_there, "{room} pages: {window} is lost\n{output}");
            }
            let is_told = is_told_by_doctor(command, &output);
            if output.code == 0 || is_told {
                refused += u64::from(is_told);
                done += u64::from(!is_told);
            } else {
                assert_eq!(output.code, 5, "{room} pages\n{output}");
                assert_eq!(output.stderr.matches("error: ").count(), 1, "{room} pages\n{output}");
                assert!(output.stderr.contains("space"), "{room} pages\n{output}");
                assert!(after == before, "{room} pages: half done\n{output}");
                refused += 1;
            }
        }
        println!("{command}: {refused} times refused, {done} times done");
        assert!(done > 0, "{command} never had room");
        assert!(refused > 0, "{command} always had room");
    }
}

#[test]
fn where_it_may_not_write_every_command_leaves_everything_as_it_was() {
    // Modes do not bind root: somebody else tries.
    if !rustix::process::getuid().is_root() {
        println!("skipped: only root can become somebody else");
        return;
    }
    let env = lab();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(env.root(), open).unwrap();
    // Nor may they look into what is not theirs, reach its tmux, or take its environment, which is refused.
    let wrong = go_through(&env, &[3, 4, 5, 6], |command| {
        let fixed = ["--reuid=65534", "--regid=65534", "--clear-groups", "--", TPU];
        let words: Vec<&str> = fixed.into_iter().chain(command.split(' ')).collect();
        let output = env.output(&env.spawn_program("setpriv", &words));
        assert!(output.code != 4 || output.stderr.contains("belongs to root"), "{output}");
        output
    });
    nothing_is(&wrong);
    drop(env.tpu("add-tag 2 after alice").exits(0));
}
