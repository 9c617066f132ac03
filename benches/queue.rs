//! P18: ten thousand jobs that wait, for two hundred targets, with limits and dependencies.
//!
//! What the daemon does with them in a turn, and what it decides, is timed in this process; the rest are whole
//! commands.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use tpu_ops::waiting::queue::field::Avoided;
use tpu_ops::waiting::queue::{pass, standings};

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::{Lab, ctx, data, pairs, record, timed};
use crate::store::rewrite;

const WAITING: usize = 10_000;
const TARGETS: usize = 200;
const STARTS: usize = 100;
const ROUNDS: usize = 20;

/// The figures of the queue.
pub(crate) fn queue(table: &mut Table, _: &Plan) -> io::Result<()> {
    let lab = Lab::new()?;
    lab.write(&waiting(&lab, 0))?;
    let here = ctx(&lab);
    let dispatched = sample(|| {
        let (done, took) = timed(|| pass::dispatch(&here, &|_| false));
        done.map(|_| took).map_err(|error| io::Error::other(error.message))
    })?;
    let row = Row::time("P18 the queue's part of a turn, 10 000 wait and none begins", &dispatched);
    table.push(&row.bound(Amount::Time(Duration::from_millis(30)), "≤ 30 ms"))?;
    let shown = sample(|| lab.tpu("queue"))?;
    let row = Row::time("P18 `tpu queue`, 10 000 wait", &shown);
    table.push(&row.bound(Amount::Time(Duration::from_millis(150)), "≤ 150 ms"))?;
    let explained = sample(|| lab.tpu("explain 10009"))?;
    table.push(&Row::time("P18 `tpu explain` of the last of 10 000", &explained))?;
    let mut n = 0;
    let mut change = || {
        n += 1;
        lab.tpu(&format!("add-tag 1 t{n} alice"))
    };
    let least = || {
        let start = lab.run("true", &[""; 0])?.0;
        let (done, took) = timed(|| rewrite(&lab));
        done.map(|()| start + took)
    };
    let (changed, least) = pairs(ROUNDS, &mut change, least)?;
    let least = least.median();
    let row = Row::time("P18 `add-tag` beside 10 000 that wait", &changed);
    let row = row.floor(Amount::Time(least));
    table.push(&row.bound(Amount::Time(least * 3 / 2), "≤ 1.5 × (start + durable write)"))?;

    let lab = Lab::new()?;
    // One of them is taken.
    lab.write(&waiting(&lab, STARTS + 1))?;
    let here = ctx(&lab);
    let decided = sample(|| {
        let data = here.data().map_err(|error| io::Error::other(error.message))?;
        let (stands, took) = timed(|| standings(&here, &data, &Avoided::new()));
        let stands = stands.map_err(|error| io::Error::other(error.message))?;
        let starts: usize = stands.iter().map(|one| one.starts.len()).sum();
        (starts == STARTS)
            .then_some(took)
            .ok_or_else(|| io::Error::other(format!("{starts} would begin")))
    })?;
    let row = Row::time("P18 deciding 100 starts among 10 000 that wait", &decided);
    table.push(&row.bound(Amount::Time(Duration::from_millis(100)), "≤ 100 ms"))?;

    let lab = Lab::new()?;
    lab.write(&data(lab.dir(), &[]))?;
    let array = lab.tpu("submit v6e-16 --array 0-999 -- true")?;
    let row = Row::of("P18 `tpu submit`, an array of 1 000", Amount::Time(array));
    table.push(&row.bound(Amount::Time(Duration::from_secs(1)), "≤ 1 s"))?;
    // Whoever submits starts what can begin, where no daemon does.
    let begun = sample(|| lab.tpu("submit local -- true"))?;
    let row = Row::of("P18 submitted and begun, p95", Amount::Time(begun.at(95)));
    table.push(&row.bound(Amount::Time(Duration::from_secs(1)), "≤ 1 s"))
}

fn sample(mut once: impl FnMut() -> io::Result<Duration>) -> io::Result<Sample> {
    // The first reads what the others find in the cache of the disk.
    once()?;
    let times: io::Result<Vec<Duration>> = (0..ROUNDS).map(|_| once()).collect();
    Ok(Sample::from(times?))
}

/// A data file in which all targets but some are kept by somebody else, a queue has as many at work as it may, and some
/// wait for a job that runs.
fn waiting(lab: &Lab, free: usize) -> Value {
    let name = |number: usize| format!("lab-v2-32-{number}");
    let mut job = record(lab.dir(), 1, &name(0), "running");
    job["extra_msgs"]["spec"] = json!({ "queue": "night" });
    let mut all = data(lab.dir(), &[job]);
    all["all_tpus"] = json!({ "zone-0": (0..TARGETS).map(name).collect::<Vec<_>>() });
    let place = tpu_ops::base::watch::place(&ctx(lab));
    let entry = |number: usize| {
        let mut entry = json!({
            "user": "alice", "number": number + 10, "since": "2026-11-20T14:02:11Z", "place": place,
            "dir": 1,
        });
        match number % 5 {
            0 => entry["types"] = json!(["v6e-16"]),
            1 | 2 => {
                entry["queue"] = json!("night");
                entry["target"] = json!(name(number % TARGETS));
            }
            3 => {
                entry["target"] = json!(name(number % TARGETS));
                entry["after"] = json!(["ok:alice/1"]);
            }
            _ => entry["target"] = json!(name(1 + number / 5 % (TARGETS - 1))),
        }
        entry
    };
    all["queue"] = json!({
        "queues": [{ "name": "night", "max_parallel": 1 }],
        "environments": [["PATH=/bin"]],
        "entries": (0..WAITING).map(entry).collect::<Vec<_>>(),
    });
    let kept = (0..TARGETS - free)
        .map(|number| (name(TARGETS - 1 - number), json!({ "status": "running", "user": "bob" })));
    all["board"] = kept.collect::<serde_json::Map<_, _>>().into();
    all
}
