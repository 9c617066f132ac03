//! How long `tpu find` takes beside `tpu ls`, as whole processes, on the board of sixty targets.
//!
//! `cargo bench --bench board`. The bound of issue 8: no more than 15 ms above `ls`. `find` asks tmux once
//! where a record looks live; `ls` asks nobody.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tpu::sys::clock::{Clock as _, SystemClock};
use tpu::sys::proc::{self, Spawn};

const TARGETS: usize = 60;
const LIVE: usize = 20;
const ROUNDS: usize = 40;
const BOUND: Duration = Duration::from_millis(15);

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let dir = tempfile::tempdir()?;
    for live in [0, LIVE] {
        let bytes = serde_json::to_vec_pretty(&data(dir.path(), live))?;
        let file = dir.path().join("data.json");
        tpu::store::atomic::write_file(&tpu::store::OsDisk, &file, &bytes, 0o660)
            .map_err(io::Error::other)?;
        let (mut ls, mut find) = (Vec::new(), Vec::new());
        // One after the other, so that a slow moment of the machine strikes both.
        for _ in 0..ROUNDS {
            ls.push(time(dir.path(), &["ls", "alice"])?);
            find.push(time(dir.path(), &["find", "v*"])?);
        }
        let (ls, find) = (median(&mut ls), median(&mut find));
        let above = find.saturating_sub(ls);
        let verdict = if above <= BOUND { "within" } else { "ABOVE" };
        writeln!(
            out,
            "{TARGETS} targets, {live} live records: ls {ls:.1?}, find {find:.1?}: {above:.1?} more \
             ({verdict} {BOUND:?})"
        )?;
    }
    Ok(())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// One run of the program, from its start to its end.
fn time(dir: &Path, words: &[&str]) -> io::Result<Duration> {
    let clock = SystemClock::new();
    let spawn = Spawn::new(env!("CARGO_BIN_EXE_tpu"))
        .args(words.iter().map(OsString::from))
        .cwd(dir)
        .timeout(Duration::from_secs(20))
        .env_clear()
        .env("HOME", dir)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("TPU_DATA", dir.join("data.json"))
        .env("TPU_TMUX_SOCKET", "tpu-bench-board")
        .env("TMUX_TMPDIR", dir);
    let begin = clock.monotonic();
    let output = proc::run(&spawn).map_err(io::Error::other)?;
    let took = clock.monotonic().saturating_sub(begin);
    if output.status.shell_code() != 0 {
        return Err(io::Error::other(output.complaint()));
    }
    Ok(took)
}

/// A data file with a full board; the first targets have records that look live.
fn data(dir: &Path, live: usize) -> Value {
    let name = |n: usize| format!("lab-v2-8-{n}");
    let names: Vec<String> = (0..TARGETS).map(name).collect();
    let aliases = (0..TARGETS).map(|n| (format!("t{n:02}"), json!(name(n))));
    let board = (0..TARGETS).map(|n| {
        let entry = match n % 3 {
            0 => json!({ "status": "reserved", "user": "bob", "notes": "sweep" }),
            1 => json!({ "status": "free" }),
            _ => json!({ "status": "running", "user": "carol", "notes": "v7" }),
        };
        (name(n), entry)
    });
    let jobs: Vec<Value> = (0..live)
        .map(|n| {
            json!({
                "user": "alice", "windows_id": n + 1, "job_dir_id": 1, "job_dir": dir,
                "tpu": name(n), "job_tags": null, "log_dir": null, "stage_dir": null,
                "extra_configs": "", "status": "running", "error": null, "stage": 0,
                "monitor": true, "rules": {}, "extra_msgs": {},
                "start_time": "20250420_011026", "customized_settings": {},
            })
        })
        .collect();
    json!({
        "users": { "alice": {
            "id": 0, "name": "alice", "tmux_name": "alice", "working_dir": { "1": dir },
            "job_data": jobs, "config_aliases": {}, "settings": {}, "windows_offset": 1, "logs": [],
        } },
        "user_list": ["alice"], "id_list": [0],
        "tpu_aliases": aliases.collect::<serde_json::Map<_, _>>(),
        "all_tpus": { "europe-west4-a": names },
        "board": board.collect::<serde_json::Map<_, _>>(),
        "monitor_config": {}, "MONITOR_logs": [], "ack_MONITOR": false,
    })
}
