//! The screen on canned jobs: no tmux, no data file. For working on looks and keys.
//!
//! `cargo run --example screen -- [--theme NAME] [--ascii] [--no-color] [--columns wdtsv] [--all]`

#[path = "../tests/cases/monitor/samples.rs"]
mod samples;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::tpu;
use jiff::tz::TimeZone;
use tpu::model::ids::{JobId, UserName};
use tpu::model::job::Status;
use tpu::model::time::Timestamp;
use tpu::model::view::Snapshot;
use tpu::monitor::message::{Problem, Scope};
use tpu::monitor::model::Columns;
use tpu::monitor::{Backend, Options};

/// Jobs in memory. A file named in `--broken` makes looks fail while it exists, one named in `--panic` makes
/// the screen's own thread panic.
struct Canned {
    origin: Instant,
    jobs: Mutex<Snapshot>,
    steps: AtomicU64,
    broken: Option<std::path::PathBuf>,
    panic: Option<std::path::PathBuf>,
}

impl Canned {
    fn check(&self) -> Result<(), Problem> {
        match &self.broken {
            Some(path) if path.exists() => Err(Problem::new(
                "/data/tpu/data.json cannot be read: line 812, column 3: expected ',' or '}'.",
                "The newest good version: tpu doctor --restore",
            )),
            _ => Ok(()),
        }
    }

    fn change(&self, job: &JobId, status: &Status) {
        let mut snapshot = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        for view in snapshot.jobs.iter_mut().filter(|view| view.id == *job) {
            view.shown.status = status.clone();
            view.shown.evidence = None;
        }
    }

    /// Takes about as long as the real thing.
    fn work(seconds: u64) {
        let (_sender, nothing) = channel::<()>();
        nothing.recv_timeout(Duration::from_secs(seconds)).ok();
    }
}

impl Backend for Canned {
    fn now(&self) -> Timestamp {
        assert!(!self.panic.as_ref().is_some_and(|path| path.exists()), "a panic was asked for");
        let passed = i64::try_from(self.origin.elapsed().as_secs()).unwrap_or(0);
        Timestamp::from_second(samples::NOW + passed)
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    fn pulse(&self, _: &Scope) -> Result<u64, Problem> {
        self.check().map(|()| 0)
    }

    fn snapshot(&self, scope: &Scope) -> Result<Snapshot, Problem> {
        self.check()?;
        let mut snapshot = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        snapshot.at = self.now();
        snapshot.user.clone_from(&scope.user);
        Ok(snapshot)
    }

    fn pane(&self, job: &JobId, lines: Option<u32>, _: bool) -> Result<Option<Vec<u8>>, Problem> {
        let steps = 400 + self.steps.fetch_add(1, Ordering::Relaxed);
        let first = lines.map_or(0, |lines| steps.saturating_sub(u64::from(lines)));
        let line = |step: u64| {
            let loss = 30.0 / (f64::from(u32::try_from(step).unwrap_or(u32::MAX)) + 10.0);
            format!(
                "\u{1b}[36m[worker 0]\u{1b}[0m {job} step {step} loss \u{1b}[1;32m{loss:.3}\u{1b}[0m 検証 ✅\n"
            )
        };
        Ok(Some((first..steps).map(line).collect::<String>().into_bytes()))
    }

    fn resume(&self, job: &JobId) -> Result<String, Problem> {
        Self::work(2);
        Err(Problem::new(
            format!("job {job} is running and cannot be resumed"),
            "stop it first with x, or follow it with l",
        ))
    }

    fn rerun(&self, job: &JobId) -> Result<String, Problem> {
        // An error inside, to see what becomes of it.
        assert!(job.window.0 != 12, "job 12 cannot be started again here");
        Ok(format!("Started {} again.", job.window))
    }

    fn kill(&self, jobs: &[JobId]) -> Result<String, Problem> {
        Self::work(3);
        for job in jobs {
            self.change(job, &Status::Killed);
        }
        Ok(format!("Stopped {} jobs.", jobs.len()))
    }

    fn clean(&self, _: &UserName) -> Result<String, Problem> {
        let mut snapshot = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let before = snapshot.jobs.len();
        snapshot.jobs.retain(|job| job.shown.status.is_live() || !job.leaf);
        Ok(format!("Archived {} jobs.", before - snapshot.jobs.len()))
    }

    fn tag(&self, job: &JobId, tag: &str) -> Result<String, Problem> {
        let mut snapshot = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        for view in snapshot.jobs.iter_mut().filter(|view| view.id == *job) {
            view.tags = Some(tag.to_owned());
        }
        Ok(format!("Tagged {} '{tag}'.", job.window))
    }

    fn attach_argv(&self, _: &JobId) -> Result<Vec<String>, Problem> {
        Ok(["sh", "-c", "echo here is the window; echo press Enter; read -r _"]
            .map(str::to_owned)
            .to_vec())
    }

    #[expect(clippy::disallowed_methods, reason = "an example may run its one command itself")]
    fn foreground(&self, argv: &[String]) -> Result<(), Problem> {
        let Some((program, rest)) = argv.split_first() else { return Ok(()) };
        let status = std::process::Command::new(program).args(rest).status();
        status.map(drop).map_err(|error| Problem::new(error.to_string(), "is there a shell?"))
    }
}

#[expect(clippy::disallowed_methods, reason = "an example has its own clock")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let value = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag)?;
        arguments.get(at + 1).cloned()
    };
    let canned = Canned {
        origin: Instant::now(),
        jobs: Mutex::new(samples::snapshot()),
        steps: AtomicU64::new(0),
        broken: value("--broken").map(Into::into),
        panic: value("--panic").map(Into::into),
    };
    let options = Options {
        user: (!has("--all")).then(|| UserName::from("alice")),
        columns: value("--columns").and_then(|c| Columns::from_flags(&c)).unwrap_or_default(),
        theme: value("--theme"),
        ascii: has("--ascii"),
        no_color: has("--no-color"),
        refresh: Duration::from_secs(5),
        zone: TimeZone::UTC,
        keys: Vec::new(),
        select: None,
    };
    let backend: Arc<dyn Backend> = Arc::new(canned);
    tpu::monitor::run(&backend, options)?;
    Ok(())
}
