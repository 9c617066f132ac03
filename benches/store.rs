//! P2, P3, P5: what a change costs from start to disk, how long the lock is held, and what a look costs
//! where there are only records.

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_system::store::{OsDisk, Paths, Store, StoreError, Who};
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::Plan;
use crate::common::table::{Amount, Peer, Row, Sample, Table};
use crate::common::{Lab, finished, in_turn, median, megabytes, percentile, timed};
use crate::peers::Pueue;

const ROUNDS: usize = 20;

/// Something to be timed.
type Thing<'a> = Box<dyn FnMut() -> io::Result<Duration> + 'a>;

/// The numbers of records; the last makes ten megabytes.
const SIZES: [u32; 6] = [10, 100, 1_000, 5_000, 10_000, 14_500];

/// A change and a look by the number of records, beside pueue with a thousand tasks; all of them in turn.
/// Then eight who write at once.
pub(crate) fn store(table: &mut Table, _: &Plan) -> io::Result<()> {
    let mut labs = Vec::new();
    for jobs in SIZES {
        let lab = Lab::new()?;
        let bytes = lab.write(&finished(&lab, jobs as usize))?;
        labs.push((lab, jobs, bytes));
    }
    let pueue = Pueue::start(1_000);
    changes(table, &labs, &pueue)?;
    looks(table, &labs, &pueue)?;
    drop(pueue);
    lock_hold(table)
}

/// The least that a durable change of a file costs.
pub(crate) fn rewrite(lab: &Lab) -> io::Result<()> {
    let path = lab.data_path();
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let temporary = lab.dir().join("floor.tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec_pretty(&value)?)?;
    file.sync_all()?;
    std::fs::rename(&temporary, lab.dir().join("floor.json"))?;
    File::open(lab.dir())?.sync_all()
}

/// Times one command of pueue, if it is there, and `things` in turn: how the peer is shown, and the samples.
fn beside(
    pueue: &Result<Pueue, String>,
    line: &str,
    things: Vec<Thing<'_>>,
) -> io::Result<(Peer, Vec<Sample>)> {
    let mut things = things;
    match pueue {
        Err(why) => {
            let mut all: Vec<&mut dyn FnMut() -> _> = Vec::new();
            all.extend(things.iter_mut().map(|thing| &mut **thing as &mut dyn FnMut() -> _));
            Ok((Peer::Missing(why.clone()), in_turn(ROUNDS, &mut all)?))
        }
        Ok(pueue) => {
            let mut peer = || pueue.run(line);
            let mut all: Vec<&mut dyn FnMut() -> _> = vec![&mut peer];
            all.extend(things.iter_mut().map(|thing| &mut **thing as &mut dyn FnMut() -> _));
            let mut samples = in_turn(ROUNDS, &mut all)?;
            let took = Amount::Time(samples.remove(0).median());
            Ok((Peer::Measured(format!("`{line}` of {}", pueue.version), took), samples))
        }
    }
}

/// P2: one change, end to end.
fn changes(
    table: &mut Table,
    labs: &[(Lab, u32, usize)],
    pueue: &Result<Pueue, String>,
) -> io::Result<()> {
    let mut things: Vec<Thing<'_>> = Vec::new();
    for (lab, ..) in labs {
        let mut n = 0;
        things.push(Box::new(move || {
            n += 1;
            lab.tpu(&format!("add-tag 1 t{n}"))
        }));
        things.push(Box::new(|| {
            let start = lab.run("true", &[""; 0])?.0;
            let (done, took) = timed(|| rewrite(lab));
            done.map(|()| start + took)
        }));
    }
    let (peer, times) = beside(pueue, "add --stashed true", things)?;
    for ((_, jobs, bytes), times) in labs.iter().zip(times.chunks(2)) {
        let [ours, floor] = times else { continue };
        let least = floor.median();
        let row = Row::time(format!("P2 `add-tag`, {jobs} jobs"), ours).floor(Amount::Time(least));
        let said = "≤ 1.5 × (start + parse + serialise + durable write)";
        let mut row = row.bound(Amount::Time(least * 3 / 2), said);
        if *jobs == 1_000 {
            row = row.peer(peer.clone()).bound_by_peer(1.0, "≤ pueue");
        }
        table.push(&row)?;
        if *jobs <= 5_000 {
            table.point("`add-tag`", "jobs", *jobs, ours.median());
        }
        if *jobs >= 1_000 {
            table.point("`add-tag`", "MB of data.json", megabytes(*bytes), ours.median());
        }
    }
    Ok(())
}

/// P5: records, and nothing on tmux.
fn looks(
    table: &mut Table,
    labs: &[(Lab, u32, usize)],
    pueue: &Result<Pueue, String>,
) -> io::Result<()> {
    let labs = labs.iter().filter(|(_, jobs, _)| *jobs <= 5_000);
    let mut things: Vec<Thing<'_>> = Vec::new();
    for (lab, ..) in labs.clone() {
        things.push(Box::new(|| lab.tpu("check --json")));
        things.push(Box::new(|| lab.tpu("--version")));
    }
    let (peer, times) = beside(pueue, "status --json", things)?;
    for ((_, jobs, _), times) in labs.zip(times.chunks(2)) {
        let [ours, floor] = times else { continue };
        let name = format!("P5 `check --json`, {jobs} records (floor: start)");
        let mut row = Row::time(name, ours).floor(Amount::Time(floor.median()));
        if *jobs == 1_000 {
            row = row.peer(peer.clone()).bound_by_peer(0.5, "≤ 0.5 × pueue");
        }
        table.push(&row)?;
        table.point("`check --json` of records", "jobs", *jobs, ours.median());
    }
    Ok(())
}

/// P3: how long the lock is held, and what eight writers need for two hundred changes each.
fn lock_hold(table: &mut Table) -> io::Result<()> {
    const WRITERS: usize = 8;
    const CHANGES: usize = 200;
    let lab = Lab::new()?;
    lab.write(&finished(&lab, 1_000))?;
    let open = || {
        let who = Who { pid: 1, host: "here".to_owned(), command: "bench".to_owned() };
        let clock = Arc::new(SystemClock::new());
        Store::open(Paths::new(lab.data_path()), Arc::new(OsDisk), clock, who)
    };
    let change = |store: &Store, text: String| {
        // From the moment at which it is read under the lock until it is free again.
        let clock = SystemClock::new();
        let mut held_since = Duration::ZERO;
        let changed = store.transact("bench", |tx| -> Result<(), StoreError> {
            held_since = clock.monotonic();
            let first = JobId::new(UserName::from("alice"), JobNumber(1));
            if let Some(job) = tx.data.job_mut(&first) {
                job.job_tags = Some(text);
            }
            Ok(())
        });
        changed.map(|_| clock.monotonic().saturating_sub(held_since)).map_err(io::Error::other)
    };
    let serial = {
        let store = open();
        let times = (0..ROUNDS).map(|n| {
            let (done, took) = timed(|| change(&store, format!("serial {n}")));
            done.map(|_| took)
        });
        median(&times.collect::<io::Result<Vec<_>>>()?)
    };
    let (held, took) = timed(|| {
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let (open, change) = (&open, &change);
                    scope.spawn(move || {
                        let store = open();
                        let all = (0..CHANGES).map(|n| change(&store, format!("{writer}/{n}")));
                        all.collect::<io::Result<Vec<_>>>()
                    })
                })
                .collect();
            let mut held = Vec::new();
            for writer in writers {
                held.extend(writer.join().map_err(|_| io::Error::other("a writer died"))??);
            }
            Ok::<_, io::Error>(held)
        })
    });
    let count = u32::try_from(WRITERS * CHANGES).unwrap_or(u32::MAX);
    let one_by_one = serial * count;
    let held = Amount::Time(percentile(&held?, 99));
    let row = Row::of("P3 p99 of the lock held, 1 000 jobs, 8 writers", held);
    let limit = Amount::Time(Duration::from_millis(20));
    table
        .push(&row.floor(Amount::Time(serial)).bound(limit, "≤ 20 ms (floor: one change alone)"))?;
    let row = Row::of("P3 8 × 200 changes", Amount::Time(took)).floor(Amount::Time(one_by_one));
    table.push(&row.bound(Amount::Time(one_by_one * 3 / 2), "≤ 1.5 × one after the other"))
}
