//! P10: how soon an end is written down and an `ack` is heard, while the daemon runs.

use std::fs::File;
use std::io;
use std::time::Duration;

use serde_json::Value;
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::{Lab, TPU, data};

const ROUNDS: usize = 20;

/// Lets commands end and calls, one after the other.
pub(crate) fn reaction(table: &mut Table, _: &Plan) -> io::Result<()> {
    let lab = Lab::new()?;
    lab.write(&data(lab.dir(), &[]))?;
    lab.tpu("daemon start")?;
    let (mut ends, mut acks) = (Vec::new(), Vec::new());
    for n in 0..ROUNDS {
        let go = lab.dir().join(format!("go-{n}"));
        let script = format!("until [ -e {} ]; do sleep 0.01; done", go.display());
        lab.run(TPU, &["run", "local", "alice", "-q", "--", "sh", "-c", &script])?;
        drop(File::create(go)?);
        ends.push(until(&lab, |seen| {
            seen["users"]["alice"]["job_data"][n]["status"] == "finished"
        })?);
        lab.tpu("ack")?;
        acks.push(until(&lab, |seen| seen["ack_MONITOR"] == false)?);
    }
    lab.tpu("daemon stop")?;
    table.push(&row("P10 a command ends -> recorded, p95", ends, Duration::from_secs(1)))?;
    table.push(&row("P10 `ack` -> turn, p95", acks, Duration::from_millis(300)))
}

/// How long it takes until the data file says so.
fn until(lab: &Lab, what: impl Fn(&Value) -> bool) -> io::Result<Duration> {
    let clock = SystemClock::new();
    let begin = clock.monotonic();
    loop {
        let seen: Value = serde_json::from_slice(&std::fs::read(lab.data_path())?)?;
        let waited = clock.monotonic().saturating_sub(begin);
        if what(&seen) {
            return Ok(waited);
        }
        if waited > Duration::from_secs(20) {
            return Err(io::Error::other("the daemon does not react"));
        }
        clock.sleep(Duration::from_millis(1));
    }
}

fn row(figure: &str, times: Vec<Duration>, limit: Duration) -> Row {
    let times = Sample::from(times);
    let row = Row::of(figure, Amount::Time(times.at(95))).floor(Amount::Time(times.median()));
    row.bound(Amount::Time(limit), format!("≤ {limit:?} (floor: the median)"))
}
