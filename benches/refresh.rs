//! P6, P7: what it costs to keep a thousand windows in view: one refresh of which a tenth has changed, and
//! the screen left alone while every window prints a line a second.
//!
//! The windows are real, on a server of their own; one generator writes to all of their terminals, as
//! shells of their own would be most of the load. CPU times are the kernel's, of our process and of the
//! tmux server.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tpu_core::model::ids::UserName;
use tpu_core::model::view::Whose;
use tpu_ops::act::outlook::look;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_system::sys::clock::{Clock as _, SystemClock};

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::{Lab, TPU, ctx, data, record, timed, tmux, words};

/// Rounds of a refresh.
const ROUNDS: usize = 20;
/// How long tmux may take to read what was written to its terminals.
const SETTLE: Duration = Duration::from_millis(400);
/// The barest list that tells which panes have changed.
pub(crate) const LIST: &str = "list-panes -a -F '#{pane_id} #{window_activity} #{history_size} #{cursor_y} #{window_index}'\n";
/// How long the screen is left alone.
const IDLE: Duration = Duration::from_secs(30);
/// The socket of the terminal that the screen runs in: its server is not the one that is watched.
const STAGE: &str = "tpu-bench-stage";

/// A refresh by the number of windows; the idle screen with the most of them.
pub(crate) fn refresh(table: &mut Table, plan: &Plan) -> io::Result<()> {
    for windows in [10, 100, 1_000] {
        if windows > plan.windows {
            continue;
        }
        let lab = Lab::new()?;
        let panes = Panes::open(&lab, windows)?;
        a_tenth(table, &lab, &panes)?;
        if windows == plan.windows || windows == 1_000 {
            let watched = idle(table, &lab, &panes);
            drop(lab.run("tmux", &words("-L tpu-bench-stage kill-server")));
            watched?;
        }
    }
    Ok(())
}

/// The windows of alice's jobs, with their terminals.
pub(crate) struct Panes {
    /// Pane id and terminal, in the order of the windows.
    pub(crate) all: Vec<(String, String)>,
    server: u32,
}

impl Panes {
    /// Opens so many windows, and writes the records of their jobs.
    pub(crate) fn open(lab: &Lab, count: usize) -> io::Result<Self> {
        let records: Vec<_> = (1..=count)
            .map(|n| {
                let mut job = record(lab.dir(), n, &format!("lab-{n}"), "running");
                job["extra_msgs"] = json!({});
                job
            })
            .collect();
        lab.write(&data(lab.dir(), &records))?;
        lab.run(
            "tmux",
            &[
                "-L",
                "tpu-bench",
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-s",
                "alice",
                "-x",
                "200",
                "-y",
                "50",
                "sleep 99999",
            ],
        )?;
        let script = (1..=count).fold(String::new(), |mut script, n| {
            script += &format!("new-window -d -t alice:{n} 'exec sleep 99999'\n");
            script
        });
        tmux(lab, &script)?;
        let listed = tmux(
            lab,
            "list-panes -s -t alice -F '#{window_index} #{pane_id} #{pane_tty} #{pid}'\n",
        )?;
        let text = listed.1.text();
        let mut server = 0;
        let mut all = Vec::with_capacity(count);
        for line in text.lines() {
            let mut words = line.split(' ').map(str::to_owned);
            if let (Some(index), Some(pane), Some(tty), Some(pid)) =
                (words.next(), words.next(), words.next(), words.next())
            {
                server = pid.parse().unwrap_or(0);
                if index != "0" {
                    all.push((pane, tty));
                }
            }
        }
        Ok(Self { all, server })
    }

    /// Lets each of these windows print a line.
    pub(crate) fn print(&self, which: impl Fn(usize) -> bool, step: usize) -> io::Result<()> {
        for (n, (_, tty)) in self.all.iter().enumerate().filter(|(n, _)| which(*n)) {
            let mut tty = OpenOptions::new().write(true).open(tty)?;
            writeln!(
                tty,
                "step {step}/99999 loss 0.{:03} window {n} lr 0.001 1.5 it/s\r",
                step % 997
            )?;
        }
        Ok(())
    }
}

/// P6: a look at all of them of which a tenth has printed, beside the least that tmux can be asked.
fn a_tenth(table: &mut Table, lab: &Lab, panes: &Panes) -> io::Result<()> {
    let clock = SystemClock::new();
    let ctx = ctx(lab);
    let mut memory = LookMemory::default();
    let mut monitors = LookMemory::default();
    let alice = UserName::from("alice");
    let looked = |memory: &mut LookMemory| -> io::Result<Duration> {
        let (seen, took) = timed(|| look(&ctx, memory, &Whose::of([alice.clone()])));
        seen.map(|_| took).map_err(|e| io::Error::other(e.message))
    };
    looked(&mut memory)?;
    looked(&mut monitors)?;
    let mut times = [const { Vec::new() }; 4];
    for round in 0..ROUNDS {
        panes.print(|n| n % 10 == round % 10, round)?;
        clock.sleep(SETTLE);
        let changed = panes.all.iter().enumerate().filter(|(n, _)| n % 10 == round % 10);
        let script = changed.fold(LIST.to_owned(), |mut script, (_, (pane, _))| {
            script += &format!("capture-pane -p -J -S -200 -t {pane}\n");
            script
        });
        // Whoever is first finds cold caches: each is in its turn.
        for turn in 0..3 {
            let whose = (round + turn) % 3;
            times[whose].push(match whose {
                0 => looked(&mut memory)?,
                1 => tmux(lab, &script)?.0,
                _ => looked(&mut monitors)?,
            });
        }
        times[3].push(looked(&mut memory)?);
    }
    let [ours, floor, theirs, quiet] = times.map(Sample::from);
    let (least, count) = (floor.median(), panes.all.len());
    let size = u32::try_from(count).unwrap_or(u32::MAX);
    for (who, times) in [("the screen", &ours), ("the daemon", &theirs)] {
        let figure = format!("P6 a look of {who} at {count} windows, a tenth changed");
        let row = Row::time(figure, times).floor(Amount::Time(least));
        let most = Amount::Time(least * 3 / 2);
        table.push(&row.bound(most, "≤ 1.5 × (list + captures of the changed)"))?;
        table.point(&format!("a look of {who}, a tenth changed"), "windows", size, times.median());
    }
    let figure = format!("P6 a look of the screen at {count} windows, nothing changed");
    table.push(&Row::time(figure, &quiet).floor(Amount::Time(least)))?;
    table.point("a look of the screen, nothing changed", "windows", size, quiet.median());
    Ok(())
}

/// P7: the screen left alone, every window printing a line a second.
fn idle(table: &mut Table, lab: &Lab, panes: &Panes) -> io::Result<()> {
    let clock = SystemClock::new();
    let ended = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let printing = Arc::clone(&ended);
        let generator = scope.spawn(move || {
            let clock = SystemClock::new();
            let mut step = 0;
            while !printing.load(Ordering::Relaxed) {
                let (printed, took) = timed(|| panes.print(|_| true, step));
                printed?;
                step += 1;
                clock.sleep(Duration::from_secs(1).saturating_sub(took));
            }
            Ok::<_, io::Error>(())
        });
        let measured = watched(table, lab, panes, &clock);
        ended.store(true, Ordering::Relaxed);
        generator.join().map_err(|_| io::Error::other("the generator panicked"))??;
        measured
    })
}

/// The server without and with somebody who watches.
fn watched(table: &mut Table, lab: &Lab, panes: &Panes, clock: &SystemClock) -> io::Result<()> {
    let share = |pid: u32, over: Duration| -> io::Result<f64> {
        let before = cpu(pid)?;
        clock.sleep(over);
        Ok((cpu(pid)?.saturating_sub(before)).as_secs_f64() / over.as_secs_f64() * 100.0)
    };
    clock.sleep(Duration::from_secs(3));
    let alone = share(panes.server, IDLE)?;
    let pid = open_screen(lab)?;
    clock.sleep(Duration::from_secs(6));
    let before = (cpu(pid)?, cpu(panes.server)?);
    clock.sleep(IDLE);
    let after = (cpu(pid)?, cpu(panes.server)?);
    let (ours, server) = (per_cent(before.0, after.0), per_cent(before.1, after.1));
    let count = panes.all.len();
    let row = Row::of(format!("P7 CPU of the idle screen, {count} windows"), Amount::Share(ours));
    table.push(&row.bound(Amount::Share(2.0), "≤ 2 % of a core"))?;
    let row = Row::of("P7 tmux's CPU with it", Amount::Share(server)).floor(Amount::Share(alone));
    table.push(&row.bound(Amount::Share(alone + 10.0), "≤ 10 % of a core above without us"))?;
    let row = Row::of("P7 resident memory of the screen", Amount::Megabytes(resident(pid)?));
    table.push(&row.bound(Amount::Megabytes(40.0), "≤ 40 MB"))
}

/// Opens the screen in a terminal of its own; its process id.
fn open_screen(lab: &Lab) -> io::Result<u32> {
    let screen = format!("exec {TPU} monitor alice");
    lab.run(
        "tmux",
        &[
            "-L",
            STAGE,
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "stage",
            "-x",
            "200",
            "-y",
            "50",
            &screen,
        ],
    )?;
    let pid =
        lab.run("tmux", &["-L", STAGE, "list-panes", "-F", "#{pane_pid}"])?.1.text().trim().parse();
    pid.map_err(io::Error::other)
}

/// P7 where nothing is watched but an engine's jobs: the screen left alone, and the programs that it asks.
pub(crate) fn left_alone(table: &mut Table, lab: &Lab, what: &str) -> io::Result<()> {
    let measured = alone(table, lab, what);
    drop(lab.run("tmux", &["-L", STAGE, "kill-server"]));
    measured
}

fn alone(table: &mut Table, lab: &Lab, what: &str) -> io::Result<()> {
    let clock = SystemClock::new();
    let pid = open_screen(lab)?;
    clock.sleep(Duration::from_secs(6));
    let before = (cpu(pid)?, cpu_of_children(pid)?);
    clock.sleep(IDLE);
    let after = (cpu(pid)?, cpu_of_children(pid)?);
    let (ours, theirs) = (per_cent(before.0, after.0), per_cent(before.1, after.1));
    let row = Row::of(format!("P7 CPU of the idle screen, {what}"), Amount::Share(ours));
    table.push(&row.bound(Amount::Share(2.0), "≤ 2 % of a core"))?;
    let row =
        Row::of(format!("P7 CPU of the programs that it asks, {what}"), Amount::Share(theirs));
    table.push(&row)?;
    let figure = format!("P7 resident memory of the screen, {what}");
    let row = Row::of(figure, Amount::Megabytes(resident(pid)?));
    table.push(&row.bound(Amount::Megabytes(40.0), "≤ 40 MB"))
}

fn per_cent(from: Duration, to: Duration) -> f64 {
    to.saturating_sub(from).as_secs_f64() / IDLE.as_secs_f64() * 100.0
}

/// Time on a processor so far (proc(5): fields 14 and 15 of stat, in ticks of 10 ms).
fn cpu(pid: u32) -> io::Result<Duration> {
    ticks(pid, 11)
}

/// The same of those that it has begun and that have ended (fields 16 and 17).
fn cpu_of_children(pid: u32) -> io::Result<Duration> {
    ticks(pid, 13)
}

fn ticks(pid: u32, first: usize) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = fields.split(' ').skip(first).take(2).filter_map(|n| n.parse::<u64>().ok());
    Ok(Duration::from_millis(ticks.sum::<u64>() * 10))
}

/// Resident memory in megabytes (proc(5): `VmRSS` of status, in kB).
pub(crate) fn resident(pid: u32) -> io::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kb: f64 = line.trim().trim_end_matches(" kB").trim().parse().map_err(io::Error::other)?;
    Ok(kb / 1_000.0)
}
