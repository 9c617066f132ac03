//! What somebody types in the first hour who has nothing set up: an empty home, a directory with scripts of their own.
//! The tasks are those of the list of first hours; each test says which.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::env::TestEnv;
use crate::common::output::CommandOutput;
use crate::common::tmux::write_file;

mod code;
mod copies;
mod disk;
mod earlier;
mod elsewhere;
mod environment;
mod first;
mod gpus;
mod messages;
mod progress;
mod python;
mod queue;
mod restarts;
mod results;
mod tracked;

/// An account without a state file, and its home.
struct Newcomer {
    env: TestEnv,
}

impl Newcomer {
    fn new() -> Self {
        let mut env = TestEnv::new();
        for name in ["TPU_DATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            env.unset(name);
        }
        let home = env.path("home");
        env.set("HOME", home.as_os_str());
        env.set("USER", "john.doe");
        let newcomer = Self { env };
        newcomer.file("exp/my.py", "print('this is mine')\n");
        newcomer
    }

    /// Below the home.
    fn path(&self, below: &str) -> PathBuf {
        self.env.path("home").join(below)
    }

    fn file(&self, below: &str, text: &str) {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        write_file(&path, text);
    }

    fn dir(&self, below: &str) {
        std::fs::create_dir_all(self.path(below)).unwrap();
    }

    /// Types a line in a directory of the home.
    #[must_use = "say how it should have ended: .exits(0)"]
    fn types(&self, dir: &str, line: &str) -> CommandOutput {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.env.output(&self.env.spawn(&words).cwd(self.path(dir)))
    }

    /// What a job has printed, once it has ended well.
    #[track_caller]
    fn prints(&self, job: u32) -> String {
        drop(self.types("exp", &format!("wait {job}")).exits(0));
        self.types("exp", &format!("logs {job}")).exits(0).stdout
    }

    /// What the state file says; null where there is none.
    fn data(&self) -> Value {
        let read = std::fs::read(self.path(".local/share/tpu/data.json"));
        read.map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
    }

    /// The record of a job.
    fn job(&self, window: u64) -> Value {
        let data = self.data();
        let jobs = data["users"]["john-doe"]["job_data"].as_array().unwrap();
        jobs.iter().find(|job| job["windows_id"] == window).unwrap().clone()
    }
}

/// A directory of the home as an answer names it.
fn below_home(dir: &str) -> String {
    Path::new("~").join(dir).display().to_string()
}
