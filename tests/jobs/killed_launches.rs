//! SIGKILL of `tpu run` and `tpu resume` at each step of a launch: the next command settles it. Never two
//! windows for a record, never a window without a record, and the job never runs twice.

use rustix::process::{Pid, kill_process};
use std::path::Path;

use serde_json::Value;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::random::{OsRandom, Random as _};

use crate::common::env::TestEnv;
use crate::common::wait::{wait_for, wait_until};

/// Appends a line for each time that it runs; one file for each launch.
const COUNT: &str = "echo ran >>\"$TPU_STAGE_DIR/../../../ran-$TPU_LAUNCH\"; mkdir -p \
    \"$TPU_LOG_DIR/checkpoint_1\"; echo w >\"$TPU_LOG_DIR/checkpoint_1/w\"; exit ${CODE:-0}";

/// Steps of a launch at which the program can be stopped, and what is then there.
const STEPS: [(&str, Step); 4] = [
    ("launch-claimed", Step::Recorded),
    ("launch-written", Step::Written),
    ("launch-opened", Step::Opened),
    ("launch-confirmed", Step::Opened),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The record is there.
    Recorded,
    /// So are the files of the launcher.
    Written,
    /// So is the window, and with it the job.
    Opened,
}

struct Lab {
    env: TestEnv,
}

impl Lab {
    fn new() -> Self {
        let mut env = TestEnv::new();
        env.set("TPU_USER", "alice");
        env.code("alice", "count.sh", COUNT);
        // The job counts below the directory of the test, wherever it was staged.
        let line = env.path("settings.json");
        let roots = serde_json::json!({
            "stage_root": env.path("a/stage"), "log_root": env.path("a/log"),
        });
        crate::common::tmux::write_file(&line, &roots.to_string());
        env.set("TPU_SETTINGS", line);
        Self { env }
    }

    /// A job that ends with `code`; its window once it has ended.
    fn ended(&self, code: u8) -> u64 {
        let script = format!("CODE={code}; . ./count.sh");
        let window = self.env.start_for("alice", &script, &[""; 0]);
        let clue = format!("the end of {window}");
        wait_until(&clue, || {
            self.env.job("alice", window)["extra_msgs"]["launch"]["ended"].is_string()
        });
        window
    }

    /// How often the job of a record ran.
    fn runs(&self, job: &Value) -> usize {
        let token = job["extra_msgs"]["launch"]["token"].as_str().unwrap();
        let counted = std::fs::read_to_string(self.env.path(&format!("a/ran-{token}")));
        counted.map_or(0, |text| text.lines().count())
    }

    /// Windows and the launches they belong to, without home windows.
    fn launches(&self) -> Vec<String> {
        let listed = self.env.tmux().try_run(&[
            "list-panes",
            "-a",
            "-f",
            "#{!=:#{window_index},0}",
            "-F",
            "#{@tpu_launch}",
        ]);
        listed.text().lines().map(str::to_owned).collect()
    }

    /// What must hold at every moment.
    #[track_caller]
    fn holds(&self) {
        // The windows first: a launch writes its record before its window.
        let windows = self.launches();
        let jobs = self.env.jobs("alice");
        let token = |job: &Value| job["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned();
        for window in &windows {
            let owners = jobs.iter().filter(|job| token(job) == *window).count();
            assert_eq!(owners, 1, "window of launch '{window}' and records:\n{jobs:#?}");
        }
        for job in &jobs {
            let own = windows.iter().filter(|window| **window == token(job)).count();
            assert!(own <= 1, "two windows for {job:#}");
            assert!(self.runs(job) <= 1, "it ran {} times: {job:#}", self.runs(job));
        }
        let mut ids: Vec<_> = jobs.iter().map(|job| job["windows_id"].as_u64()).collect();
        ids.dedup();
        assert_eq!(ids.len(), jobs.len(), "an id twice: {ids:?}");
    }

    /// Makes unconfirmed launches a minute older, as if that had passed.
    fn a_minute_later(&self) {
        self.env.a_minute_later("alice");
    }

    /// A writing command that is about something else.
    fn next_command(&self) {
        drop(self.env.tpu("clear-finished bob").exits(0));
    }

    /// Runs `line` until it stands still at `point`, and ends it there by SIGKILL. Returns the record.
    fn killed_at(&self, line: &str, point: &str, step: Step, window: u64) -> Value {
        let points = format!("{point}=pause");
        let running = self.env.start_tpu(line, &[("FAILPOINTS", &points)]);
        let clue = format!("{line} at {point}");
        let job = wait_for(&clue, || {
            let jobs = self.env.jobs("alice");
            let job = jobs.into_iter().find(|job| job["windows_id"] == window)?;
            let written = self.env.state_of("alice", window).join("launcher.sh").is_file();
            let token = job["extra_msgs"]["launch"]["token"].as_str()?;
            let opened = self.launches().iter().any(|launch| launch == token);
            let there = match step {
                Step::Recorded => true,
                Step::Written => written,
                Step::Opened => opened && job["extra_msgs"]["launch"]["confirmed"] == true,
            };
            there.then_some(job)
        });
        running.kill();
        self.holds();
        job
    }

    /// After a kill at `step`: what the next commands make of it.
    fn heals(&self, window: u64, step: Step, ending: &str) {
        if step == Step::Opened {
            // The window has the job: it is adopted, and goes its way.
            self.a_minute_later();
            self.next_command();
            let job = wait_for("the end of an adopted job", || {
                let job = self.env.job("alice", window);
                (job["status"] == ending).then_some(job)
            });
            assert_eq!(self.runs(&job), 1);
            assert_eq!(job["extra_msgs"]["launch"]["confirmed"], true);
        } else {
            // Nobody may say yet that it failed: the program that claimed it could still be at work.
            self.next_command();
            assert_eq!(self.env.job("alice", window)["status"], "starting");
            let seen = self.env.tpu("check alice --json").exits(0).json();
            let jobs = seen["jobs"].as_array().unwrap();
            assert!(jobs.iter().any(|job| job["window"] == window && job["status"] == "starting"));
            self.a_minute_later();
            // It is shown at once, and written down by the next command that writes.
            drop(self.env.tpu(&format!("explain {window}")).exits(0).says(&["error: launch"]));
            assert_eq!(self.env.job("alice", window)["status"], "starting");
            self.next_command();
            let job = self.env.job("alice", window);
            assert_eq!((&job["status"], &job["error"]), (&"error".into(), &"launch".into()));
            assert_eq!(self.runs(&job), 0);
            assert!(!self.env.has_window("alice", window));
        }
        self.holds();
    }
}

#[test]
fn a_run_that_is_killed_at_any_step_is_settled_by_the_next_command() {
    let lab = Lab::new();
    let line = "run local alice -q -- bash count.sh";
    let mut window = 1;
    for (point, step) in STEPS {
        let _claimed = lab.killed_at(line, point, step, window);
        lab.heals(window, step, "finished");
        if step != Step::Opened {
            // What was given up can be run again, once.
            drop(lab.env.tpu(&format!("rerun w={window}")).exits(0));
            window += 1;
            let job = lab.env.wait_status(window, "finished");
            assert_eq!(lab.runs(&job), 1);
        }
        window += 1;
    }
}

/// What dies with its first job before that has a directory is told from a disk that is missing by the directory of
/// its user; and no disk is missing where its root is there.
#[test]
fn the_directory_of_a_user_is_there_before_the_first_record() {
    let lab = Lab::new();
    let line = "run local alice -q -- bash count.sh";
    let (root, own) = (lab.env.path("a/log"), lab.env.path("a/log/alice"));
    let _claimed = lab.killed_at(line, "launch-claimed", Step::Recorded, 1);
    assert!(!root.exists(), "a root that is not there may be on a disk that is missing");
    std::fs::create_dir_all(&root).unwrap();
    let claimed = lab.killed_at(line, "launch-claimed", Step::Recorded, 2);
    assert!(
        own.is_dir() && !Path::new(claimed["log_dir"].as_str().unwrap()).exists(),
        "{claimed:#}"
    );
}

#[test]
fn a_resume_that_is_killed_at_any_step_leaves_one_child() {
    let lab = Lab::new();
    for (point, step) in STEPS {
        let parent = lab.ended(3);
        let child = parent + 1;
        let line = format!("resume w={parent} alice");
        let _claimed = lab.killed_at(&line, point, step, child);
        // The parent has its child, whatever has become of it: there is no second one.
        let record = lab.env.job("alice", parent);
        assert_eq!(
            (&record["status"], &record["extra_msgs"]["child"]),
            (&"resumed".into(), &child.into())
        );
        if step == Step::Opened {
            drop(lab.env.tpu(&line).exits(4).says(&["continues as alice/"]));
            lab.heals(child, step, "error");
            assert_eq!(lab.runs(&lab.env.job("alice", parent)), 1);
        } else {
            // Whoever was opening its window is dead: the same command goes on, from the parent's checkpoint.
            drop(lab.env.tpu(&line).exits(0).says(&["never began"]));
            let never = lab.env.job("alice", child);
            assert_eq!((&never["status"], &never["error"]), (&"resumed".into(), &"launch".into()));
            assert_eq!(lab.runs(&lab.env.job("alice", parent)), 1);
            let job = lab.env.wait_status(child + 1, "error");
            assert_eq!(lab.runs(&job), 1);
            assert_eq!(job["stage_dir"], record["stage_dir"]);
            lab.holds();
        }
    }
}

#[test]
fn a_launch_that_was_given_up_does_not_run_when_its_tpu_wakes() {
    let lab = Lab::new();
    let points = "launch-written=sleep(2000)";
    let mut running = lab.env.start_at_points("run local alice -q -- bash count.sh", points);
    let _written = lab.env.wait_file("tpu-state/jobs/alice/1/launcher.sh");
    let sleeper = Pid::from_child(&running);
    kill_process(sleeper, rustix::process::Signal::STOP).unwrap();
    assert!(lab.launches().is_empty(), "stopped before it could open a window");
    lab.a_minute_later();
    lab.next_command();
    assert_eq!(lab.env.job("alice", 1)["error"], "launch");
    kill_process(sleeper, rustix::process::Signal::CONT).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(4), "it finds that it was given up");
    let job = lab.env.job("alice", 1);
    assert_eq!((&job["status"], &job["error"]), (&"error".into(), &"launch".into()));
    assert!(lab.launches().is_empty(), "and closes the window again");
    assert_eq!(lab.runs(&job), 0);
}

#[test]
fn ten_kills_at_random_moments_lose_and_repeat_nothing() {
    let lab = Lab::new();
    let line = "run local alice -q -- bash count.sh";
    let clock = SystemClock::new();
    drop(lab.env.tpu(line).exits(0));
    let whole = clock.monotonic();
    for _ in 0..10 {
        let random = u32::from_str_radix(&OsRandom.hex(4), 16).unwrap() % 1_200;
        let moment = whole * random / 1_000;
        let started = lab.env.start_tpu(line, &[]);
        clock.sleep(moment);
        started.kill();
        lab.holds();
    }
    // A tmux that was on its way may still open its window; each launch comes to one of two ends.
    wait_until("every launch to be settled", || {
        lab.a_minute_later();
        lab.next_command();
        let is_open =
            |job: &Value| ["starting", "running"].contains(&job["status"].as_str().unwrap());
        !lab.env.jobs("alice").iter().any(is_open)
    });
    lab.holds();
    for job in lab.env.jobs("alice") {
        let expected = usize::from(job["status"] == "finished");
        assert!(expected == 1 || job["error"] == "launch", "{job:#}");
        assert_eq!(lab.runs(&job), expected, "{job:#}");
    }
}
