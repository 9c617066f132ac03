//! The table of figures: whole commands on real tmux servers and real disks, each beside the barest program
//! that does the same, in pairs, medians.
//!
//! `cargo bench --bench table` (`-- 1000` for a thousand windows too). Names of figures and their targets are
//! those of the performance specification; what a single frame or a megabyte of text costs is measured by
//! the other two benches. A peer that is not installed is a row that says so.

mod common;

use std::fs::File;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tpu::model::ids::{JobId, UserName, WindowId};
use tpu::store::{OsDisk, Paths, Store, StoreError, Who};
use tpu::sys::clock::{Clock as _, SystemClock};
use tpu::sys::proc::{self, Output, Spawn};

use common::{Lab, TPU, data, median, percentile, record, timed, words};

/// Pairs of a figure.
const ROUNDS: usize = 20;

/// One line of the table.
struct Row {
    figure: String,
    ours: Duration,
    floor: Duration,
    /// What ours may be.
    bound: Duration,
    /// The bound in words.
    target: String,
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let asked = std::env::args().skip(1).filter_map(|word| word.parse::<usize>().ok()).max();
    machine(&mut out)?;
    writeln!(out, "| figure | ours | floor | ratio | target | met |\n|---|---|---|---|---|---|")?;
    let mut rows = Vec::new();
    for jobs in [10, 1_000] {
        rows.extend(start_up(jobs)?);
    }
    for jobs in [10, 1_000, 10_000] {
        rows.push(transaction(jobs)?);
    }
    rows.extend(lock_hold()?);
    rows.push(records_only()?);
    for windows in [10, 100, 1_000] {
        if windows < 1_000 || asked >= Some(windows) {
            rows.extend(windows_of(windows)?);
        }
    }
    rows.extend(reaction()?);
    for Row { figure, ours, floor, bound, target } in rows {
        let ratio = ours.as_secs_f64() / floor.as_secs_f64().max(1e-9);
        let met = if ours <= bound { "yes" } else { "**no**" };
        writeln!(out, "| {figure} | {ours:.1?} | {floor:.1?} | {ratio:.2} | {target} | {met} |")?;
    }
    let size = std::fs::metadata(TPU)?.len();
    writeln!(
        out,
        "| P16 this build of the program | {:.1} MB | | | ≤ 12 MB, stripped | {} |",
        to_mb(size),
        if to_mb(size) <= 12.0 { "yes" } else { "**no**" }
    )
}

#[expect(clippy::cast_precision_loss, reason = "some megabytes")]
fn to_mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// What it runs on.
fn machine(out: &mut impl io::Write) -> io::Result<()> {
    let said = |program: &str, line: &str| {
        let output = proc::run(&Spawn::new(program).args(words(line)));
        output.map(|output| output.text().trim().to_owned()).unwrap_or_default()
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    writeln!(
        out,
        "{cpus} CPUs, {}, {}, {}; load {}\n",
        said("uname", "-sr"),
        said("tmux", "-V"),
        said(TPU, "--version"),
        said("cut", "-d. -f1-2 /proc/loadavg"),
    )?;
    let has_pueue = proc::run(&Spawn::new("pueue").args(words("--version"))).is_ok();
    if !has_pueue {
        writeln!(out, "pueue is not installed: its figures are those of the specification.\n")?;
    }
    Ok(())
}

/// Times two things in turn, so that a slow moment of the machine strikes both.
fn pairs(
    rounds: usize,
    mut ours: impl FnMut() -> io::Result<Duration>,
    mut floor: impl FnMut() -> io::Result<Duration>,
) -> io::Result<(Duration, Duration)> {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        a.push(ours()?);
        b.push(floor()?);
    }
    Ok((median(&a), median(&b)))
}

fn finished(lab: &Lab, jobs: usize) -> serde_json::Value {
    let records: Vec<_> =
        (1..=jobs).map(|n| record(lab.dir(), n, &format!("lab-{n}"), "finished")).collect();
    data(lab.dir(), &records)
}

/// P1: commands that need nothing.
fn start_up(jobs: usize) -> io::Result<Vec<Row>> {
    let lab = Lab::new()?;
    lab.write(&finished(&lab, jobs))?;
    let mut rows = Vec::new();
    let above = Duration::from_millis(if jobs <= 10 { 2 } else { 5 });
    for line in ["--help", "ls", "kill w="] {
        let completes = line.ends_with('=');
        let ours = || {
            if !completes {
                return lab.tpu(line);
            }
            // What bash asks for a Tab.
            let spawn = lab.spawn(TPU, &words(&format!("-- tpu {line}")));
            let spawn = spawn.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2");
            let (output, took) = timed(|| proc::run(&spawn));
            output.map(|_| took).map_err(io::Error::other)
        };
        let (ours, floor) = pairs(ROUNDS * 2, ours, || Ok(lab.run("true", &[""; 0])?.0))?;
        let name = if completes { format!("Tab behind `{line}`") } else { format!("`{line}`") };
        rows.push(Row {
            figure: format!("P1 {name}, {jobs} jobs"),
            ours,
            floor,
            bound: floor + above,
            target: format!("floor + {above:?}"),
        });
    }
    Ok(rows)
}

/// The least that a durable change of a file costs.
fn rewrite(lab: &Lab) -> io::Result<()> {
    let path = lab.data_path();
    let value: serde_json::Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let temporary = lab.dir().join("floor.tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec_pretty(&value)?)?;
    file.sync_all()?;
    std::fs::rename(&temporary, lab.dir().join("floor.json"))?;
    File::open(lab.dir())?.sync_all()
}

/// P2: one change, end to end.
fn transaction(jobs: usize) -> io::Result<Row> {
    let lab = Lab::new()?;
    lab.write(&finished(&lab, jobs))?;
    let mut n = 0;
    let ours = || {
        n += 1;
        lab.tpu(&format!("add-tag 1 t{n}"))
    };
    let floor = || {
        let start = lab.run("true", &[""; 0])?.0;
        let (done, took) = timed(|| rewrite(&lab));
        done.map(|()| start + took)
    };
    let (ours, floor) = pairs(ROUNDS, ours, floor)?;
    Ok(Row {
        figure: format!("P2 `add-tag`, {jobs} jobs"),
        ours,
        floor,
        bound: floor * 3 / 2,
        target: "≤ 1.5 × (start + parse + serialise + durable write)".to_owned(),
    })
}

/// P3: how long the lock is held, and what eight writers need for two hundred changes each.
fn lock_hold() -> io::Result<Vec<Row>> {
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
            let first = JobId::new(UserName::from("alice"), WindowId(1));
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
    let limit = Duration::from_millis(20);
    Ok(vec![
        Row {
            figure: "P3 p99 of the lock held, 1 000 jobs, 8 writers".to_owned(),
            ours: percentile(&held?, 99),
            floor: serial,
            bound: limit,
            target: "≤ 20 ms (floor: one change alone)".to_owned(),
        },
        Row {
            figure: "P3 8 × 200 changes".to_owned(),
            ours: took,
            floor: serial * count,
            bound: serial * count * 3 / 2,
            target: "≤ 1.5 × one after the other".to_owned(),
        },
    ])
}

/// P5: a thousand records and nothing on tmux.
fn records_only() -> io::Result<Row> {
    let lab = Lab::new()?;
    lab.write(&finished(&lab, 1_000))?;
    let (ours, floor) = pairs(ROUNDS, || lab.tpu("check --json"), || lab.tpu("--version"))?;
    Ok(Row {
        figure: "P5 `check --json`, 1 000 records (floor: start)".to_owned(),
        ours,
        floor,
        bound: Duration::from_millis(18),
        target: "≤ 0.5 × pueue's 36 ms".to_owned(),
    })
}

/// P9 and P4: launches, then a look at all of them.
fn windows_of(count: usize) -> io::Result<Vec<Row>> {
    let lab = Lab::new()?;
    lab.write(&data(lab.dir(), &[]))?;
    let prints =
        "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo \"step $i loss 0.5\"; done; sleep 9999";
    let launch = ["run", "local", "alice", "-q", "--", "sh", "-c", prints];
    let (mut launches, mut windows, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for n in 1..=count {
        launches.push(lab.run(TPU, &launch)?.0);
        if n % 5 == 0 {
            windows.push(tmux(&lab, "new-window -d -t alice: -n floor 'exit 0'\n")?.0);
            changes.push(timed(|| rewrite(&lab)).1);
        }
    }
    let start = lab.run("true", &[""; 0])?.0;
    let floor = start + median(&windows) + 2 * median(&changes);
    let list = "list-panes -a -F '#{pane_id} #{window_activity} #{history_size} #{cursor_y} #{session_name} \
                #{window_index} #{pane_dead} #{pane_pid} #{pane_current_command} #{pane_title}'\n";
    let panes = tmux(&lab, "list-panes -a -F '#{pane_id}'\n")?.1.text();
    let look = panes.lines().fold(list.to_owned(), |mut look, pane| {
        look += &format!("capture-pane -p -J -S -200 -t {pane}\n");
        look
    });
    let rounds = if count > 100 { 5 } else { ROUNDS };
    let (ours, least) = pairs(rounds, || lab.tpu("check --json"), || Ok(tmux(&lab, &look)?.0))?;
    let grace = Duration::from_millis(5);
    Ok(vec![
        Row {
            figure: format!("P9 a launch, {count} of them"),
            ours: median(&launches),
            floor,
            bound: floor + Duration::from_millis(10),
            target: "≤ start + new-window + 2 changes + 10 ms".to_owned(),
        },
        Row {
            figure: format!("P4 `check --json`, {count} live windows, cold"),
            ours,
            floor: least,
            bound: least * 13 / 10 + grace,
            target: "≤ 1.3 × (list + captures) + 5 ms".to_owned(),
        },
    ])
}

/// How long tmux takes for commands on its standard input, and what it says.
fn tmux(lab: &Lab, script: &str) -> io::Result<(Duration, Output)> {
    lab.fed("tmux", &["-L", "tpu-bench", "source-file", "-"], script)
}

/// P10: an end is written down, an `ack` is heard, while MONITOR runs.
fn reaction() -> io::Result<Vec<Row>> {
    let lab = Lab::new()?;
    lab.write(&data(lab.dir(), &[]))?;
    lab.tpu("daemon start")?;
    let clock = SystemClock::new();
    let until = |what: &dyn Fn(&serde_json::Value) -> bool| {
        let begin = clock.monotonic();
        loop {
            let seen: serde_json::Value = serde_json::from_slice(&std::fs::read(lab.data_path())?)?;
            let waited = clock.monotonic().saturating_sub(begin);
            if what(&seen) {
                return Ok(waited);
            }
            if waited > Duration::from_secs(20) {
                return Err(io::Error::other("MONITOR does not react"));
            }
            clock.sleep(Duration::from_millis(1));
        }
    };
    let (mut ends, mut acks) = (Vec::new(), Vec::new());
    for n in 0..ROUNDS {
        let script = format!("until [ -e go-{n} ]; do sleep 0.01; done");
        let go = lab.dir().join(format!("go-{n}"));
        let script = script.replace("go-", &format!("{}/go-", lab.dir().display()));
        lab.run(TPU, &["run", "local", "alice", "-q", "--", "sh", "-c", &script])?;
        drop(File::create(go)?);
        ends.push(until(&|seen| seen["users"]["alice"]["job_data"][n]["status"] == "finished")?);
        lab.tpu("ack")?;
        acks.push(until(&|seen| seen["ack_MONITOR"] == false)?);
    }
    lab.tpu("daemon stop")?;
    let row = |figure: &str, times: &[Duration], limit| Row {
        figure: figure.to_owned(),
        ours: percentile(times, 95),
        floor: median(times),
        bound: limit,
        target: format!("p95 ≤ {limit:?} (floor: the median)"),
    };
    Ok(vec![
        row("P10 a command ends -> recorded", &ends, Duration::from_secs(1)),
        row("P10 `ack` -> turn", &acks, Duration::from_millis(300)),
    ])
}
