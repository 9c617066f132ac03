//! P21: statistics of a hundred thousand archived attempts, beside a plain read of the same bytes as JSON.

use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use tpu_system::store::Paths;

use crate::Plan;
use crate::common::table::{Amount, Row, Table};
use crate::common::{Lab, data, pairs, record, timed};

const ATTEMPTS: usize = 100_000;
const ROUNDS: usize = 5;

/// Statistics by zone, and the list of what failed.
pub(crate) fn insight(table: &mut Table, _: &Plan) -> io::Result<()> {
    let lab = Lab::new()?;
    let mut whole = data(lab.dir(), &[]);
    whole["all_tpus"] = json!({ "europe-west4-a": (0..200).map(target).collect::<Vec<_>>() });
    lab.write(&whole)?;
    let bytes = fill(&lab)?;
    let archive = Paths::new(lab.data_path()).archive();
    // The floor: every line as a tree of values, and nothing made of it.
    let floor = || {
        let (read, took) = timed(|| -> io::Result<usize> {
            let text = std::fs::read(&archive)?;
            let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            Ok(lines.filter(|line| serde_json::from_slice::<Value>(line).is_ok()).count())
        });
        if read? == ATTEMPTS { Ok(took) } else { Err(io::Error::other("not all of it was read")) }
    };
    for (name, line) in [
        ("`stats --by zone`", "stats --by zone --json"),
        ("`archive list`", "archive list status:oom -n 10 --json"),
    ] {
        let (ours, floor) = pairs(ROUNDS, || lab.tpu(line), floor)?;
        #[expect(clippy::cast_precision_loss, reason = "megabytes")]
        let size = bytes as f64 / 1e6;
        let name =
            format!("P21 {name}, 100 000 archived attempts ({size:.0} MB; floor: read as JSON)");
        let row = Row::time(name, &ours).floor(Amount::Time(floor.median()));
        table.push(&row.bound(Amount::Time(Duration::from_secs(1)), "≤ 1 s"))?;
    }
    Ok(())
}

fn target(n: usize) -> String {
    format!("lab-tpuvm-v2-8-{n}")
}

/// Writes the archive; its size in bytes.
fn fill(lab: &Lab) -> io::Result<u64> {
    let paths = Paths::new(lab.data_path());
    std::fs::create_dir_all(paths.state())?;
    let mut out = io::BufWriter::new(std::fs::File::create(paths.archive())?);
    for n in 0..ATTEMPTS {
        let status = if n % 3 == 0 { "resumed" } else { "finished" };
        let mut job = record(lab.dir(), n + 1, &target(n % 200), status);
        let begin = 1_700_000_000 + i64::try_from(n).unwrap_or(0) * 300;
        let at = |second: i64| tpu_core::model::time::Timestamp::from_second(second).to_rfc3339();
        job["extra_msgs"]["launch"] = json!({
            "token": format!("{n:032x}"), "mode": "script", "at": at(begin), "confirmed": true,
            "exit": 0, "ended": at(begin + 18_000),
        });
        if n % 3 == 0 {
            job["error"] = json!(if n % 2 == 0 { "preempted" } else { "OOM" });
            let line = format!("step {n}: the machine is gone");
            job["extra_msgs"]["verdict"] =
                json!({ "kind": job["error"], "rule": "r", "line": line });
            job["extra_msgs"]["child"] = json!(n + 2);
        } else if n % 3 == 1 {
            job["extra_msgs"]["father"] = json!(n);
        }
        let user = job["user"].clone();
        let line = json!({ "at": at(begin + 20_000), "actor": "clean", "user": user, "job": job });
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(std::fs::metadata(paths.archive())?.len())
}
