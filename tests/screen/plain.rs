//! `tpu monitor --plain`: what has changed, one line each, for those who see no screen. The words are tested on looks, the
//! whole with real jobs and a real pipe.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use jiff::tz::TimeZone;
use serde_json::json;
use tpu_core::model::facts::{ErrorKind, Phase};
use tpu_core::model::job::Status;
use tpu_core::model::time::{Timestamp, Zone};
use tpu_core::model::view::{JobView, MonitorHealth, Snapshot};
use tpu_screen::message::Problem;
use tpu_screen::plain::PlainTeller;
use tpu_system::sys::procs::{Process, Signal, signal};

use crate::common::boards;
use crate::common::env::{TPU, TestEnv};
use crate::common::samples::{self, NOW};
use crate::common::terminal::Terminal;
use crate::common::tmux::write_file;
use crate::common::wait::{wait_for, wait_until};

fn teller(ascii: bool) -> PlainTeller {
    let whose = samples::snapshot().whose;
    PlainTeller::new(whose, Zone::local(TimeZone::UTC), ascii)
}

fn hears(teller: &mut PlainTeller, look: Snapshot) -> String {
    teller.looked(Ok(Box::new(look)), Timestamp::from_second(NOW))
}

fn look(jobs: Vec<JobView>) -> Snapshot {
    Snapshot { jobs, ..samples::snapshot() }
}

#[test]
fn it_begins_with_everything_and_goes_on_with_what_changes() {
    let mut told = String::new();
    let mut teller = teller(false);
    let mut now = samples::snapshot();
    now.jobs.extend([samples::held(20, 1), samples::waiting_group(30, 2, &[0, 1, 2])]);
    told += &hears(&mut teller, now.clone());
    told += &hears(&mut teller, now.clone());
    // Numbers that go on and work of another kind are no news.
    for job in &mut now.jobs {
        job.shown.progress.loss = Some(0.3);
        job.age_s = job.age_s.map(|age| age + 5);
        if job.shown.phase == Some(Phase::Compiling) {
            job.shown.phase = Some(Phase::Running);
        }
    }
    told += &hears(&mut teller, now.clone());
    told += "-- one after the other\n";
    let change = |now: &mut Snapshot, window: u32, change: &dyn Fn(&mut JobView)| {
        now.jobs.iter_mut().filter(|job| job.id.window.0 == window).for_each(change);
    };
    let steps: [&dyn Fn(&mut Snapshot); 11] = [
        &|now| change(now, 7, &|job| job.shown.progress.step = Some(15_500)),
        &|now| {
            change(now, 7, &|job| {
                let failed = samples::oom(7);
                (job.shown, job.next, job.age_s) = (failed.shown, failed.next, failed.age_s);
            });
        },
        &|now| {
            change(now, 7, &|job| job.shown.status = Status::Resumed(Some(ErrorKind::Oom)));
            let mut child = samples::job(14);
            child.lineage = [5, 6, 7, 14].map(tpu_core::model::ids::JobNumber).to_vec();
            change(now, 7, &|job| {
                job.lineage = [5, 6, 7, 14].map(tpu_core::model::ids::JobNumber).to_vec();
            });
            now.jobs.push(child);
        },
        &|now| change(now, 20, &|job| *job = samples::waiting(20, 1)),
        &|now| change(now, 20, &|job| *job = samples::job(20)),
        &|now| {
            change(now, 20, &|job| *job = samples::ended(20, Status::Finished));
            change(now, 10, &|job| job.intent = Some("killing".to_owned()));
        },
        &|now| now.monitor = MonitorHealth::NotRunning,
        &|now| now.jobs.retain(|job| job.id.window.0 != 3),
        &|now| now.monitor = MonitorHealth::Running { turn_age_s: 1 },
        &|now| {
            let why = "the original's monitor runs: MONITOR.py (process 7 of bob)".to_owned();
            now.monitor = MonitorHealth::Watching { turn_age_s: 1, why };
        },
        &|now| now.monitor = MonitorHealth::Running { turn_age_s: 1 },
    ];
    for step in steps {
        step(&mut now);
        told += &hears(&mut teller, now.clone());
    }
    told += &teller.looked(
        Err(Problem::new("data.json: not JSON at line 3", "tpu doctor looks for what is wrong")),
        Timestamp::from_second(NOW),
    );
    told += &hears(&mut teller, now);
    insta::assert_snapshot!(told);
}

#[test]
fn hostile_names_stay_on_their_line() {
    let hostile =
        "\u{1b}[31mred\u{1b}[0m\n14:02:11 alice/9 is gone\r\u{7}\u{202e}\u{9b}2J\tx".repeat(9);
    let mut job = samples::oom(7);
    job.dir.1 = format!("/home/alice/{hostile}");
    (job.tags, job.name) = (Some(hostile.clone()), Some(hostile.clone()));
    job.target_label.clone_from(&hostile);
    job.intent = None;
    job.next.as_mut().unwrap().reason.clone_from(&hostile);
    job.shown.evidence.as_mut().unwrap().line.clone_from(&hostile);
    let mut waiting = samples::waiting(8, 1);
    waiting.shown.queued.as_mut().unwrap().reason = Some(hostile.clone());
    let mut lost = samples::job(9);
    (lost.target_unknown, lost.shown.unknown) = (Some(hostile.clone()), Some(hostile.clone()));
    lost.intent = Some(hostile.clone());
    for ascii in [false, true] {
        let mut teller = teller(ascii);
        let first = hears(&mut teller, look(vec![job.clone(), waiting.clone(), lost.clone()]));
        // One at large, one of the target that nobody knows of, one for each job.
        assert_eq!(first.lines().count(), 5, "{first}");
        let later = hears(&mut teller, look(vec![samples::job(7)]));
        // The target is known again, one job is in another state, and two are gone.
        assert_eq!(later.lines().count(), 4, "{later}");
        let failed = Problem::new(hostile.clone(), hostile.clone());
        let broken = teller.looked(Err(failed), Timestamp::from_second(NOW));
        assert_eq!(broken.lines().count(), 1, "{broken}");
        for line in [first, later, broken].iter().flat_map(|text| text.lines()) {
            assert!(line.starts_with("14:02:11 "), "{line}");
            assert!(
                !line.contains(|c: char| c.is_control() || tpu_core::text::is_unsafe(c)),
                "{line:?}"
            );
            assert!(line.chars().count() < 2_000, "{line}");
            assert!(!ascii || line.is_ascii(), "{line}");
        }
    }
}

/// One who hears what the program prints.
struct Listener {
    child: Child,
    heard: Arc<Mutex<String>>,
}

impl Listener {
    fn new(env: &TestEnv, line: &str) -> Self {
        let mut child = start(env, line);
        let mut pipe = child.stdout.take().unwrap();
        let heard = Arc::new(Mutex::new(String::new()));
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            let mut some = [0; 1024];
            while let Ok(count @ 1..) = pipe.read(&mut some) {
                *hears.lock().unwrap() += &String::from_utf8_lossy(&some[..count]);
            }
        });
        Self { child, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }

    #[track_caller]
    fn hears(&self, text: &str) {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until(text, || self.heard().contains(text));
        }));
        assert!(caught.is_ok(), "waited in vain for {text:?}:\n{}", self.heard());
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    drop(child.kill());
    drop(child.wait());
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test reads the pipe of this very process, or does not"
)]
fn start(env: &TestEnv, line: &str) -> Child {
    Command::new(TPU)
        .args(line.split(' '))
        .env_clear()
        .envs(env.variables())
        .current_dir(env.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of a process, with a deadline; its exit code and what it complained of.
#[track_caller]
fn ended(child: &mut Child) -> (i32, String) {
    let status = wait_for("the end of the program", || child.try_wait().unwrap());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (status.code().unwrap_or(-1), said)
}

fn send(child: &Child, what: Signal) {
    assert!(signal(&Process::read(child.id()).unwrap(), what).unwrap());
}

/// A job that fails when a file says so; the second time it ends well when another one does.
const STORY: &str = "n=${TPU_CHECKPOINT_STEP:-0}; mark=stop; code=3; [ -e \"$TPU_DATA.again\" ] && mark=end && code=0; \
    until [ -e \"$TPU_DATA.$mark\" ]; do n=$((n+1)); echo \"step $n/1000000 loss 0.5\"; \
    mkdir -p \"$TPU_LOG_DIR/checkpoints\"; echo $n >\"$TPU_LOG_DIR/checkpoints/step_$n\"; \
    read -r -t 0.1 <> <(:); done; [ $code = 0 ] || echo 'RuntimeError: the story goes badly'; exit $code";

#[test]
fn a_job_is_followed_by_ear_from_its_start_to_its_end() {
    let env = TestEnv::new();
    env.tpu("set-settings monitor_upd_time 1 alice").exits(0);
    let mut listener = Listener::new(&env, "monitor alice --plain");
    listener.hears("alice: no jobs; the daemon does not run\n");
    assert_eq!(env.start("exec sleep 1000", &[] as &[&str]), 1);
    listener.hears("alice/1 (code-alice, local) is new: ");
    assert_eq!(env.start(STORY, &[] as &[&str]), 2);
    listener.hears("alice/2 (code-alice, local) is new: ");
    env.wait_status(2, "running");
    wait_until("a checkpoint", || {
        let dir =
            env.job("alice", 2)["log_dir"].as_str().map(|dir| format!("{dir}/checkpoints/step_2"));
        dir.is_some_and(|dir| std::path::Path::new(&dir).exists())
    });
    env.touch("data.json.stop");
    listener.hears("alice/2 (code-alice, local): running → error: ");
    listener.hears("; nothing will happen by itself\n");
    env.touch("data.json.again");
    env.tpu("resume w=2 alice").exits(0);
    listener.hears("alice/2 (code-alice, local): error: ");
    listener.hears("alice/3 goes on for it");
    listener.hears("alice/3 (code-alice, local) goes on for alice/2, which came to step ");
    env.touch("data.json.end");
    listener.hears("alice/3 (code-alice, local): running → finished");

    let whole = String::from_utf8(env.data_bytes()).unwrap();
    let (half, _) = whole.split_at(whole.len() / 2);
    write_file(&env.data_path(), half);
    listener.hears("the jobs cannot be read: ");
    write_file(&env.data_path(), &whole);
    listener.hears("the jobs can be read again\n");
    let daemon = env.start_tpu("daemon run", &[]);
    listener.hears("the daemon runs now\n");
    daemon.signal(Signal::Terminate);
    assert_eq!(daemon.wait(), 0);
    listener.hears("the daemon has stopped\n");
    env.tpu("clean alice -y").exits(0);
    listener.hears("alice/3 (code-alice, local) is gone; it was finished\n");

    send(&listener.child, Signal::Terminate);
    assert_eq!(ended(&mut listener.child), (143, String::new()));
    let heard = listener.heard();
    let about = |text: &str| heard.lines().filter(|line| line.contains(text)).count();
    for once in [
        "alice/2 (code-alice, local) is new",
        "→ error",
        "→ resumed",
        "→ finished",
        "goes on for alice/2",
    ] {
        assert_eq!(about(once), 1, "{once}:\n{heard}");
    }
    for line in heard.lines() {
        assert!(line.as_bytes()[2] == b':' && line.as_bytes()[5] == b':', "{line:?}");
        assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    }
    assert!(heard.ends_with('\n'), "{heard}");
}

#[test]
fn it_ends_quietly_when_nobody_reads_any_more() {
    let env = TestEnv::new();
    let mut child = start(&env, "monitor --all-users --plain");
    let mut pipe = child.stdout.take().unwrap();
    let mut some = [0; 256];
    let count = pipe.read(&mut some).unwrap();
    let said = String::from_utf8_lossy(&some[..count]).into_owned();
    assert!(said.contains(" all users: no jobs; the daemon does not run\n"), "{said}");
    // Nothing changes, so that there is nothing to print: it is noticed all the same.
    drop(pipe);
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ended(&mut child)));
    end(&mut child);
    assert_eq!(ended.unwrap(), (0, String::new()));
}

#[test]
fn signals_end_it_also_while_nobody_reads_on() {
    let env = TestEnv::new();
    let mut data = env.two_users();
    let many: Vec<_> = (1..2_000).map(|window| env.record("alice", window, "finished")).collect();
    data["users"]["alice"]["job_data"] = json!(many);
    env.write_data(&data);
    for (what, code) in [(Signal::Interrupt, 130), (Signal::HangUp, 129), (Signal::Terminate, 143)]
    {
        let mut child = start(&env, "monitor alice --plain");
        let mut pipe = child.stdout.take().unwrap();
        let mut first = [0; 1];
        // It prints more than a pipe holds, and nobody reads on.
        pipe.read_exact(&mut first).unwrap();
        send(&child, what);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ended(&mut child)));
        end(&mut child);
        assert_eq!(ended.unwrap(), (code, String::new()), "{what:?}");
    }
}

#[test]
fn a_terminal_that_cannot_draw_is_told_of_it() {
    let env = TestEnv::new();
    for piped in ["monitor alice", "monitor"] {
        let output = env.tpu(piped).exits(1);
        assert!(output.stderr.contains("tpu monitor --plain"), "{output}");
        assert!(output.stderr.contains("tpu check"), "{output}");
    }
    let output = env.tpu("monitor alice --plain --json").exits(2);
    assert!(output.stderr.contains("tpu check --json"), "{output}");
    let output = env.tpu("monitor alice --plain -wd").exits(2);
    assert!(output.stderr.contains("--plain"), "{output}");
    let terminal = Terminal::new(&env);
    terminal.command(&format!("clear; env TERM=dumb {TPU} monitor alice; echo code-$?"));
    terminal.shows("code-1");
    let screen = terminal.screen();
    assert!(screen.contains("that can draw; TERM is"), "{screen}");
    assert!(screen.contains("tpu monitor --plain"), "{screen}");
    terminal.command("clear; echo cleared");
    terminal.shows("cleared");
    terminal.hides("code-1");
    terminal.command(&format!("env TERM=dumb {TPU} monitor alice --plain; echo code-$?"));
    terminal.shows("alice: no jobs; the daemon does not run");
    terminal.press("C-c");
    terminal.shows("code-130");
}

#[test]
fn what_is_told_at_first_counts_as_the_head_of_the_screen_does() {
    let frame = boards::screen().frame((200, 50));
    let first = hears(&mut teller(false), samples::snapshot());
    let (_, said) = first.lines().next().unwrap().split_once("jobs, ").unwrap();
    let (counts, daemon) = said.split_once("; ").unwrap();
    assert!(daemon.starts_with("the daemon runs, its last turn was "), "{first}");
    for count in counts.split(", ") {
        assert!(frame.lines().next().unwrap().contains(count), "{count}: {frame}");
    }
}
