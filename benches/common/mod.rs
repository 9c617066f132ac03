//! A place for the built program: a data file, a tmux server of its own, and the time that commands take.

#[expect(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's, which fails as tests do"
)]
#[path = "../../tests/slurm/cluster.rs"]
pub(crate) mod cluster;
#[expect(dead_code, reason = "what only tests do with it")]
#[path = "../../tests/common/fakes/tmux.rs"]
pub(crate) mod fake_tmux;
pub(crate) mod sshd;
pub(crate) mod table;
pub(crate) mod text;
#[expect(dead_code, clippy::unwrap_used, reason = "what a cluster needs of it")]
#[path = "../../tests/common/tmux.rs"]
pub(crate) mod tmux;
#[path = "../../tests/common/wait.rs"]
pub(crate) mod wait;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tpu_ops::Ctx;
use tpu_ops::front::open::{Opening, open};
use tpu_system::store::{OsDisk, atomic};
use tpu_system::sys::clock::{Clock as _, SystemClock};
use tpu_system::sys::env::Env;
use tpu_system::sys::proc::{self, Output, Spawn};

use table::Sample;

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
            .env("TPU_DAEMON_AUTOSTART", "false")
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

/// Bytes in whole millions, at least one.
pub(crate) fn megabytes(bytes: usize) -> u32 {
    u32::try_from((bytes + 500_000) / 1_000_000).unwrap_or(u32::MAX).max(1)
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

/// Times some things in turn, so that a slow moment of the machine strikes all of them.
pub(crate) fn in_turn(
    rounds: usize,
    things: &mut [&mut dyn FnMut() -> io::Result<Duration>],
) -> io::Result<Vec<Sample>> {
    let mut times = vec![Vec::new(); things.len()];
    for _ in 0..rounds {
        for (thing, times) in things.iter_mut().zip(&mut times) {
            times.push(thing()?);
        }
    }
    Ok(times.into_iter().map(Sample::from).collect())
}

/// The same for two.
pub(crate) fn pairs(
    rounds: usize,
    mut ours: impl FnMut() -> io::Result<Duration>,
    mut floor: impl FnMut() -> io::Result<Duration>,
) -> io::Result<(Sample, Sample)> {
    let mut samples = in_turn(rounds, &mut [&mut ours, &mut floor])?.into_iter();
    let (Some(ours), Some(floor)) = (samples.next(), samples.next()) else {
        return Err(io::Error::other("two things give two samples"));
    };
    Ok((ours, floor))
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

/// How long tmux takes for commands on its standard input, and what it says.
pub(crate) fn tmux(lab: &Lab, script: &str) -> io::Result<(Duration, Output)> {
    lab.fed("tmux", &["-L", "tpu-bench", "source-file", "-"], script)
}

/// The effects of a `tpu` that works at this place, in this process.
pub(crate) fn ctx(lab: &Lab) -> Ctx {
    let mut env = Env::read();
    env.vars.insert("TMUX_TMPDIR".into(), lab.dir().as_os_str().to_owned());
    env.vars.insert("HOME".into(), lab.dir().as_os_str().to_owned());
    open(Opening {
        data: lab.data_path(),
        tmux_socket: Some("tpu-bench".to_owned()),
        env,
        actor: "bench".to_owned(),
        tpu: TPU.into(),
        layers: Vec::new(),
        patterns: None,
        secrets: None,
        kinds: tpu::built_in::kinds(),
    })
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

/// A data file of alice, with so many jobs that have finished, each on a target of its own.
pub(crate) fn finished(lab: &Lab, jobs: usize) -> Value {
    let records: Vec<_> =
        (1..=jobs).map(|n| record(lab.dir(), n, &format!("lab-{n}"), "finished")).collect();
    data(lab.dir(), &records)
}
