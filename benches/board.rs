//! How long `tpu find` takes beside `tpu ls`, as whole processes, on the board of sixty targets.
//!
//! No more than 15 ms above `ls`: `find` asks tmux once where a record looks live; `ls` asks nobody.

use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Plan;
use crate::common::table::{Amount, Row, Table};
use crate::common::{Lab, data, pairs, record};

const TARGETS: usize = 60;
const LIVE: usize = 20;
const ROUNDS: usize = 40;
const ABOVE: Duration = Duration::from_millis(15);

/// With and without records that look live.
pub(crate) fn board(table: &mut Table, _: &Plan) -> io::Result<()> {
    let lab = Lab::new()?;
    for live in [0, LIVE] {
        lab.write(&full_board(lab.dir(), live))?;
        let (find, ls) = pairs(ROUNDS, || lab.tpu("find v*"), || lab.tpu("ls alice"))?;
        let name = format!("`find v*`, {TARGETS} targets, {live} live records (floor: `ls`)");
        let row = Row::time(name, &find).floor(Amount::Time(ls.median()));
        table.push(&row.bound(Amount::Time(ls.median() + ABOVE), format!("≤ ls + {ABOVE:?}")))?;
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
