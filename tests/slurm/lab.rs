//! A user of a real cluster: a home with a target that is one of its partitions, and programs that do what a test
//! tells them.

use std::ffi::OsStr;
use std::ops::Deref;
use std::time::Duration;

use serde_json::Value;

use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::proc::Spawn;
use tpu_system::sys::procs::Table;

use super::cluster::{Cluster, Listed, Setup, is_installed};
use crate::common::env::TestEnv;
use crate::common::tmux::{write_file, write_script};
use crate::common::wait::{wait_for, wait_until};

/// A user with a cluster. What is of the user ends first.
pub(super) struct Lab {
    pub(super) env: TestEnv,
    pub(super) cluster: Cluster,
}

impl Deref for Lab {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.env
    }
}

impl Lab {
    /// With two nodes, where those of `low` are cancelled when one of `high` wants their place. None where there is
    /// no Slurm.
    pub(super) fn new() -> Option<Self> {
        Self::with(Setup::default())
    }

    /// The same with another cluster. Its partition `low` is the target `gpu`.
    pub(super) fn with(setup: Setup) -> Option<Self> {
        let lab = Self::bare(setup)?;
        lab.register("gpu", &lab.cluster, "--partition low");
        Some(lab)
    }

    /// The same without a target.
    pub(super) fn bare(setup: Setup) -> Option<Self> {
        if !is_installed() {
            return None;
        }
        Some(Self { env: TestEnv::alice(), cluster: Cluster::with(setup) })
    }

    /// Makes a partition a target.
    #[track_caller]
    pub(super) fn register(&self, name: &str, cluster: &Cluster, words: &str) {
        let conf = cluster.conf();
        drop(self.tpu(&format!("register {name} --kind slurm --cluster {conf} {words}")).exits(0));
    }

    /// Puts a script in the place of a program, for whatever the user starts from now on.
    pub(super) fn replace(&mut self, program: &str, script: &str) {
        let bin = self.env.path("bin");
        if std::fs::create_dir(&bin).is_ok() {
            let path = self.env.variables()[OsStr::new("PATH")].to_str().unwrap().to_owned();
            self.env.set("PATH", format!("{}:{path}", bin.display()));
        }
        write_script(&bin.join(program), script);
    }

    // -- jobs

    /// Starts a program of this name on `gpu`; returns its window.
    #[track_caller]
    pub(super) fn train(&self, name: &str, options: &str) -> u64 {
        self.launched(&self.training(name, options))
    }

    /// The same, not yet running.
    pub(super) fn training(&self, name: &str, options: &str) -> Spawn {
        self.starting("gpu", options, &["bash", "-c", &self.program(), name])
    }

    /// Starts a script of bash on `gpu`; returns its window.
    #[track_caller]
    pub(super) fn run(&self, script: &str, options: &str) -> u64 {
        self.launched(&self.starting("gpu", options, &["bash", "-c", script, "job"]))
    }

    // -- what is said of them

    /// Waits until `check` shows a job so.
    #[track_caller]
    pub(super) fn wait_shown(&self, window: u64, status: &str) -> Value {
        let clock = SystemClock::new();
        loop {
            let shown = self.shown(window);
            if shown["status"] == status {
                return shown;
            }
            let is_late = clock.monotonic() > Duration::from_secs(60);
            assert!(!is_late, "alice/{window} is not {status}: {shown:#}\n{}", self.report());
            clock.sleep(Duration::from_millis(20));
        }
    }

    /// What helps to understand a failure.
    fn report(&self) -> String {
        format!("{:#?}\n{}", self.cluster.jobs(), self.env.data())
    }

    /// The launch token of a job.
    #[track_caller]
    pub(super) fn token(&self, window: u64) -> String {
        token_of(&self.env.job("alice", window))
    }

    /// What the cluster has of a job, by its token: one, or the test fails.
    #[track_caller]
    pub(super) fn listed(&self, window: u64) -> Listed {
        let mut jobs = self.cluster.jobs_of(&self.token(window));
        assert_eq!(jobs.len(), 1, "alice/{window} on the cluster: {jobs:#?}");
        jobs.remove(0)
    }

    /// Waits until the cluster runs it.
    #[track_caller]
    pub(super) fn wait_runs(&self, window: u64) -> Listed {
        let what = format!("the cluster runs alice/{window}");
        wait_for(&what, || Some(self.listed(window)).filter(|job| job.state == "RUNNING"))
    }

    /// Checkpoints that it has written.
    pub(super) fn checkpoints(&self, window: u64) -> usize {
        let dir = self.log_dir(window).join("checkpoints");
        std::fs::read_dir(dir).map_or(0, Iterator::count)
    }

    /// Waits until it has written one.
    #[track_caller]
    pub(super) fn wait_checkpoint(&self, window: u64) {
        wait_until("a checkpoint", || self.checkpoints(window) > 0);
    }

    /// Lets what was begun be a minute old: records, and the notes of submissions, of which none is under way.
    pub(super) fn a_minute_later(&self) {
        wait_until("no submission is on its way", || {
            let Ok(table) = Table::read() else { return false };
            let uid = rustix::process::getuid().as_raw();
            let all = table.with_variable("SLURM_CONF", &self.cluster.conf(), uid);
            !all.iter().any(|process| process.name == "sbatch" && !process.zombie)
        });
        let notes = std::fs::read_dir(self.env.path("tpu-state/slurm")).into_iter().flatten();
        for submission in notes.flatten() {
            let path = submission.path().join("note");
            let Ok(text) = std::fs::read_to_string(&path) else { continue };
            let mut note: Value = serde_json::from_str(&text).unwrap();
            for time in ["at", "over"] {
                if let Some(at) = note[time].as_i64() {
                    note[time] = (at - 60).into();
                }
            }
            write_file(&path, &note.to_string());
        }
        self.env.a_minute_later("alice");
    }

    /// Lets a job that is missing be missing for a minute.
    #[track_caller]
    pub(super) fn missing_for_a_minute(&self, window: u64) {
        let token = self.token(window);
        self.missing_for_longer(&|key| key == token);
    }

    /// The same of all that are missing.
    #[track_caller]
    pub(super) fn all_missing_for_a_minute(&self) {
        self.missing_for_longer(&|_| true);
    }

    #[track_caller]
    fn missing_for_longer(&self, is_meant: &dyn Fn(&str) -> bool) {
        let path = self
            .env
            .path(&format!("tpu-state/slurm/missing-{}", rustix::process::getuid().as_raw()));
        let read = || -> Option<serde_json::Map<String, Value>> {
            let missing: Value =
                serde_json::from_str(&std::fs::read_to_string(&path).ok()?).ok()?;
            let missing = missing.as_object()?;
            missing.keys().any(|key| is_meant(key)).then(|| missing.clone())
        };
        let mut missing = wait_for("somebody has missed it", read);
        for (_, job) in missing.iter_mut().filter(|(key, _)| is_meant(key)) {
            job["since"] = (job["since"].as_i64().unwrap() - 60).into();
        }
        write_file(&path, &Value::from(missing).to_string());
    }
}

/// The launch token in a record.
pub(super) fn token_of(job: &Value) -> String {
    job["extra_msgs"]["launch"]["token"].as_str().unwrap().to_owned()
}
