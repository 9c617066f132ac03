//! A place for the built program: a data file, a tmux server of its own, and the time that commands take.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tpu::store::{OsDisk, atomic};
use tpu::sys::clock::{Clock as _, SystemClock};
use tpu::sys::proc::{self, Output, Spawn};

/// The program that is measured.
pub(crate) const TPU: &str = env!("CARGO_BIN_EXE_tpu");

/// A directory with a data file; its tmux server ends with it.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
}

impl Lab {
    /// An empty place.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { dir: tempfile::tempdir()? })
    }

    /// Where everything is.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The data file.
    pub(crate) fn data_path(&self) -> PathBuf {
        self.dir().join("data.json")
    }

    /// Replaces the data file; its size in bytes.
    pub(crate) fn write(&self, data: &Value) -> io::Result<usize> {
        let bytes = serde_json::to_vec_pretty(data)?;
        atomic::write_file(&OsDisk, &self.data_path(), &bytes, 0o660).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    /// A program with this place as its environment.
    pub(crate) fn spawn<W: AsRef<OsStr>>(&self, program: &str, words: &[W]) -> Spawn {
        Spawn::new(program)
            .args(words.iter().map(|word| word.as_ref().to_owned()))
            .cwd(self.dir())
            .timeout(Duration::from_secs(120))
            .env_clear()
            .env("HOME", self.dir())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("SHELL", "/bin/sh")
            .env("TERM", "screen-256color")
            .env("TPU_DATA", self.data_path())
            .env("TPU_USER", "alice")
            .env("TPU_TMUX_SOCKET", "tpu-bench")
            .env("TMUX_TMPDIR", self.dir())
    }

    /// Runs a program to its good end: how long it took, from its start on, and what it said.
    pub(crate) fn run<W: AsRef<OsStr>>(
        &self,
        program: &str,
        words: &[W],
    ) -> io::Result<(Duration, Output)> {
        self.fed(program, words, "")
    }

    /// The same with something to read on its standard input.
    pub(crate) fn fed<W: AsRef<OsStr>>(
        &self,
        program: &str,
        words: &[W],
        stdin: &str,
    ) -> io::Result<(Duration, Output)> {
        let spawn = self.spawn(program, words).stdin(stdin);
        let (output, took) = timed(|| proc::run(&spawn));
        let output = output.map_err(io::Error::other)?;
        if output.status.shell_code() != 0 {
            return Err(io::Error::other(output.complaint()));
        }
        Ok((took, output))
    }

    /// How long a `tpu` takes, as a whole process.
    pub(crate) fn tpu(&self, line: &str) -> io::Result<Duration> {
        Ok(self.run(TPU, &words(line))?.0)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Without a server there is nothing to end.
        drop(proc::run(&self.spawn("tmux", &["-L", "tpu-bench", "kill-server"])));
    }
}

/// The words of a command line without quotes.
pub(crate) fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// What `work` returns, and how long it took.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let clock = SystemClock::new();
    let begin = clock.monotonic();
    let value = work();
    (value, clock.monotonic().saturating_sub(begin))
}

/// The value below which so many hundredths of them lie.
pub(crate) fn percentile(times: &[Duration], hundredths: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    let at = (sorted.len() * hundredths / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// The middle one.
pub(crate) fn median(times: &[Duration]) -> Duration {
    percentile(times, 50)
}

/// A data file of alice, with these records of hers.
pub(crate) fn data(dir: &Path, jobs: &[Value]) -> Value {
    json!({
        "users": { "alice": {
            "id": 0, "name": "alice", "tmux_name": "alice", "working_dir": { "1": dir },
            "job_data": jobs, "config_aliases": {}, "settings": {},
            "windows_offset": jobs.len() + 1, "logs": [],
        } },
        "user_list": ["alice"], "id_list": [0],
        "tpu_aliases": {}, "all_tpus": {},
        "monitor_config": {}, "MONITOR_logs": [], "ack_MONITOR": false,
    })
}

/// A record as the original writes it.
pub(crate) fn record(dir: &Path, window: usize, target: &str, status: &str) -> Value {
    json!({
        "user": "alice", "windows_id": window, "job_dir_id": 1, "job_dir": dir,
        "tpu": target, "job_tags": null, "log_dir": "/tmp/logs/of-this-job",
        "stage_dir": "/tmp/stage/of-this-job",
        "extra_configs": "--config.training.learning_rate=0.001 --config.batch_size=256",
        "status": status, "error": null, "stage": 0,
        "monitor": true, "rules": { "preempted": "reapply", "grpc": "resume" }, "extra_msgs": {},
        "start_time": "20250420_011026", "customized_settings": {},
    })
}
