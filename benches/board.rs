//! How long `tpu find` takes beside `tpu ls`, as whole processes, on the board of sixty targets.
//!
//! `cargo bench --bench board`. The bound of issue 8: no more than 15 ms above `ls`. `find` asks tmux once
//! where a record looks live; `ls` asks nobody.

mod common;

use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use common::{Lab, data, median, record};

const TARGETS: usize = 60;
const LIVE: usize = 20;
const ROUNDS: usize = 40;
const BOUND: Duration = Duration::from_millis(15);

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let lab = Lab::new()?;
    for live in [0, LIVE] {
        lab.write(&full_board(lab.dir(), live))?;
        let (mut ls, mut find) = (Vec::new(), Vec::new());
        // One after the other, so that a slow moment of the machine strikes both.
        for _ in 0..ROUNDS {
            ls.push(lab.tpu("ls alice")?);
            find.push(lab.tpu("find v*")?);
        }
        let (ls, find) = (median(&ls), median(&find));
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

/// A data file with a full board; the first targets have records that look live.
fn full_board(dir: &Path, live: usize) -> Value {
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
    let jobs: Vec<Value> = (0..live).map(|n| record(dir, n + 1, &name(n), "running")).collect();
    let mut data = data(dir, &jobs);
    data["tpu_aliases"] = aliases.collect::<serde_json::Map<_, _>>().into();
    data["all_tpus"] = json!({ "europe-west4-a": names });
    data["board"] = board.collect::<serde_json::Map<_, _>>().into();
    data
}
