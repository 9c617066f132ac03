//! P22: many jobs end at once while a thousand wait, on a machine without a daemon. Everything that their launchers cost,
//! and what starts the next ones, runs below the tmux server, and is counted.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tpu_core::model::job::Status;
use tpu_ops::base::watch;
use tpu_system::store::{OsDisk, atomic};
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::Plan;
use crate::common::table::{Amount, Row, Table};
use crate::common::wait::wait_at_most;
use crate::common::{Lab, ctx, data, median, tmux};

const WAITING: u32 = 1_000;
const COUNTS: [u32; 2] = [25, 100];
const ROUNDS: usize = 3;
/// Launches that are timed beside each burst.
const LAUNCHES: usize = 5;

/// Nobody waits longer for anything here.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a burst of ends has cost.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// Until the last end was in the data file.
    recorded: Duration,
    /// Until as many others ran.
    followed: Duration,
    /// Time of processors, from the first end on.
    cpu: Duration,
    /// One launch by a command, among as many windows.
    launch: Duration,
}

/// Twenty-five, then a hundred, some times in turn.
pub(crate) fn ends(table: &mut Table, _: &Plan) -> io::Result<()> {
    let mut bursts: BTreeMap<u32, Vec<Burst>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for count in COUNTS {
            bursts.entry(count).or_default().push(burst(count)?);
        }
    }
    for (count, all) in &bursts {
        let middle = |of: fn(&Burst) -> Duration| median(&all.iter().map(of).collect::<Vec<_>>());
        let (cpu, launches) = (middle(|of| of.cpu), middle(|of| of.launch) * *count);
        let row = |what: &str, took: Duration| {
            Row::of(format!("P22 {count} ends while {WAITING} wait: {what}"), Amount::Time(took))
        };
        let recorded = row("all are recorded", middle(|of| of.recorded));
        let used = row("processors, with the next starts", cpu);
        let followed = row("as many others run", middle(|of| of.followed));
        let followed = followed.floor(Amount::Time(launches));
        let followed = followed.bound(Amount::Time(launches), "≤ as many launches (P9)");
        let (recorded, used) = if *count == 100 {
            let seconds = |seconds: f64| Amount::Time(Duration::from_secs_f64(seconds));
            let said = "≤ 3 s on a fast machine, ≤ 7.5 s on a slow one";
            (recorded.bound(seconds(5.0), "≤ 5 s"), used.bound(seconds(7.5), said))
        } else {
            (recorded, used)
        };
        for row in [&recorded, &used, &followed] {
            table.push(row)?;
        }
        table.point("P22 processors for ends while others wait", "ends", *count, cpu);
    }
    Ok(())
}

/// Lets so many jobs end at once while others wait for their places.
fn burst(count: u32) -> io::Result<Burst> {
    let lab = Lab::new()?;
    let go = lab.dir().join("go");
    std::fs::create_dir(lab.dir().join("code"))?;
    lab.write(&waiting(&lab, count, &go))?;
    lab.tpu("queue run --once")?;
    let here = ctx(&lab);
    let are_all = |status: &Status| {
        let all = here.data().map(|data| data.jobs().filter(|job| job.status == *status).count());
        all.is_ok_and(|all| all == count as usize).then_some(())
    };
    wait_at_most(PATIENCE, "all run", || are_all(&Status::Running));
    let (clock, before) = (SystemClock::new(), cpu(&lab)?);
    let began = clock.monotonic();
    atomic::write_file(&OsDisk, &go, b"", 0o600).map_err(io::Error::other)?;
    wait_at_most(PATIENCE, "all ends are recorded", || are_all(&Status::Finished));
    let recorded = clock.monotonic().saturating_sub(began);
    wait_at_most(PATIENCE, "as many others run", || are_all(&Status::Running));
    let followed = clock.monotonic().saturating_sub(began);
    let cpu = cpu(&lab)?.saturating_sub(before);
    let launch = || lab.tpu("run local alice -q --force -- sleep 9999");
    let launches: io::Result<Vec<_>> = (0..LAUNCHES).map(|_| launch()).collect();
    Ok(Burst { recorded, followed, cpu, launch: median(&launches?) })
}

/// A data file in which so many jobs begin at once and run until a file is there, and others wait behind them.
fn waiting(lab: &Lab, count: u32, go: &Path) -> Value {
    let place = watch::place(&ctx(lab));
    let waits = format!("until [ -e {} ]; do sleep 0.5; done", go.display());
    let entry = |number: u32| {
        let command = if number < count { &*waits } else { "sleep 9999" };
        json!({
            "user": "alice", "number": number + 1, "since": "2026-11-20T14:02:11Z", "place": place,
            "dir": 1, "target": "local", "command": ["sh", "-c", command],
        })
    };
    let mut all = data(&lab.dir().join("code"), &[]);
    // A number is given out once.
    all["users"]["alice"]["windows_offset"] = json!(count + WAITING + 1);
    all["targets"] = json!({ "local": { "capacity": { "jobs": count } } });
    all["queue"] = json!({
        "environments": [["PATH=/usr/bin:/bin"]],
        "entries": (0..count + WAITING).map(entry).collect::<Vec<_>>(),
    });
    all
}

/// Time of processors of everything below the tmux server of a place, and of what was there.
fn cpu(lab: &Lab) -> io::Result<Duration> {
    let server = tmux(lab, "display-message -p '#{pid}'\n")?.1.text().trim().to_owned();
    let all: BTreeMap<String, Stat> = std::fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| Stat::read(&entry.path()))
        .collect();
    let own = all
        .values()
        .filter(|stat| stat.is_below(&server, &all))
        .map(|stat| stat.own + stat.children);
    let ended = all.get(&server).map(|stat| stat.children).unwrap_or_default();
    Ok(Duration::from_millis((own.sum::<u64>() + ended) * 10))
}

/// What the system says of a process, in hundredths of a second.
struct Stat {
    parent: String,
    own: u64,
    /// Of its children that have ended.
    children: u64,
}

impl Stat {
    fn is_below<'a>(&'a self, server: &str, all: &'a BTreeMap<String, Self>) -> bool {
        let mut stat = self;
        while stat.parent != server {
            let Some(parent) = all.get(&stat.parent) else { return false };
            stat = parent;
        }
        true
    }

    fn read(process: &Path) -> Option<(String, Self)> {
        let text = std::fs::read_to_string(process.join("stat")).ok()?;
        let (_, after) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = after.split(' ').collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let (own, children) = (ticks(11)? + ticks(12)?, ticks(13)? + ticks(14)?);
        let parent = (*fields.get(1)?).to_owned();
        Some((process.file_name()?.to_str()?.to_owned(), Self { parent, own, children }))
    }
}
