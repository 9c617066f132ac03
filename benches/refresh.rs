//! What it costs to keep a thousand windows in view: one refresh of which a tenth has changed, and the
//! screen left alone while every window prints a line a second.
//!
//! `cargo bench --bench refresh` (`-- 100` for so many windows; a thousand without). The windows are real,
//! on a server of their own; one generator writes to all of their terminals, as shells of their own would
//! be most of the load. CPU times are the kernel's, of our process and of the tmux server.

mod common;

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tpu::model::ids::UserName;
use tpu::ops::open::{Opening, open};
use tpu::ops::snapshot::{Memory, look};
use tpu::sys::clock::{Clock as _, SystemClock};
use tpu::sys::env::Env;
use tpu::sys::proc::Output;

use common::{Lab, TPU, data, median, record, timed, words};

/// Rounds of a refresh.
const ROUNDS: usize = 20;
/// How long tmux may take to read what was written to its terminals.
const SETTLE: Duration = Duration::from_millis(400);
/// How long the screen is left alone.
const IDLE: Duration = Duration::from_secs(30);
/// The socket of the terminal that the screen runs in: its server is not the one that is watched.
const STAGE: &str = "tpu-bench-stage";

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    let windows = std::env::args().skip(1).filter_map(|word| word.parse::<usize>().ok()).max();
    let windows = windows.unwrap_or(1_000);
    let lab = Lab::new()?;
    let panes = Panes::open(&lab, windows)?;
    writeln!(out, "{windows} live windows\n")?;
    refresh(&mut out, &lab, &panes)?;
    idle(&mut out, &lab, &panes)?;
    drop(lab.run("tmux", &words("-L tpu-bench-stage kill-server")));
    Ok(())
}

/// The windows of alice's jobs, with their terminals.
struct Panes {
    /// Pane id and terminal, in the order of the windows.
    all: Vec<(String, String)>,
    server: u32,
}

impl Panes {
    /// Opens so many windows, and writes the records of their jobs.
    fn open(lab: &Lab, count: usize) -> io::Result<Self> {
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
    fn print(&self, which: impl Fn(usize) -> bool, step: usize) -> io::Result<()> {
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

/// How long tmux takes for commands on its standard input, and what it says.
fn tmux(lab: &Lab, script: &str) -> io::Result<(Duration, Output)> {
    lab.fed("tmux", &["-L", "tpu-bench", "source-file", "-"], script)
}

/// P6: a look at all of them of which a tenth has printed, beside the least that tmux can be asked.
fn refresh(out: &mut impl io::Write, lab: &Lab, panes: &Panes) -> io::Result<()> {
    let clock = SystemClock::new();
    let mut env = Env::read();
    env.vars.insert("TMUX_TMPDIR".into(), lab.dir().as_os_str().to_owned());
    env.vars.insert("HOME".into(), lab.dir().as_os_str().to_owned());
    let ctx = open(Opening {
        data: lab.data_path(),
        tmux_socket: Some("tpu-bench".to_owned()),
        env,
        actor: "bench".to_owned(),
        tpu: TPU.into(),
        layers: Vec::new(),
        patterns: None,
    });
    let mut memory = Memory::of_a_screen();
    let mut monitors = Memory::default();
    let alice = UserName::from("alice");
    let looked = |memory: &mut Memory| {
        let (seen, took) = timed(|| look(&ctx, memory, Some(&alice)));
        seen.map(|_| took).map_err(|error| io::Error::other(error.message))
    };
    let (first, cold) = timed(|| look(&ctx, &mut memory, Some(&alice)));
    let first = first.map_err(|e| io::Error::other(e.message))?;
    looked(&mut monitors)?;
    let (mut ours, mut theirs, mut floor, mut quiet) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let list = "list-panes -a -F '#{pane_id} #{window_activity} #{history_size} #{cursor_y} #{window_index}'\n";
    for round in 0..ROUNDS {
        panes.print(|n| n % 10 == round % 10, round)?;
        clock.sleep(SETTLE);
        let changed = panes.all.iter().enumerate().filter(|(n, _)| n % 10 == round % 10);
        let script = changed.fold(list.to_owned(), |mut script, (_, (pane, _))| {
            script += &format!("capture-pane -p -J -S -200 -t {pane}\n");
            script
        });
        // Whoever is first finds cold caches: each is in its turn.
        for turn in 0..3 {
            match (round + turn) % 3 {
                0 => ours.push(looked(&mut memory)?),
                1 => floor.push(tmux(lab, &script)?.0),
                _ => theirs.push(looked(&mut monitors)?),
            }
        }
        quiet.push(looked(&mut memory)?);
    }
    let (ours, theirs) = (median(&ours), median(&theirs));
    let (floor, quiet) = (median(&floor), median(&quiet));
    let ratio = |took: Duration| took.as_secs_f64() / floor.as_secs_f64();
    writeln!(out, "the first look: {cold:.1?}, {} jobs seen", first.jobs.len())?;
    writeln!(out, "`check --json` of them: {:.1?}", lab.tpu("check --json")?)?;
    writeln!(
        out,
        "P6 a look, a tenth has changed: {ours:.1?}; the least that tmux can be asked: {floor:.1?}; ratio {:.2} (target ≤ 1.3)",
        ratio(ours)
    )?;
    writeln!(out, "   the same as MONITOR looks: {theirs:.1?}; ratio {:.2}", ratio(theirs))?;
    writeln!(out, "   a look, nothing has changed: {quiet:.1?}\n")
}

/// P7: the screen left alone, every window printing a line a second.
fn idle(out: &mut impl io::Write, lab: &Lab, panes: &Panes) -> io::Result<()> {
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
        let measured = watched(out, lab, panes, &clock);
        ended.store(true, Ordering::Relaxed);
        generator.join().map_err(|_| io::Error::other("the generator panicked"))??;
        measured
    })
}

/// The server without and with somebody who watches.
fn watched(
    out: &mut impl io::Write,
    lab: &Lab,
    panes: &Panes,
    clock: &SystemClock,
) -> io::Result<()> {
    let share = |pid: u32, over: Duration| -> io::Result<f64> {
        let before = cpu(pid)?;
        clock.sleep(over);
        Ok((cpu(pid)?.saturating_sub(before)).as_secs_f64() / over.as_secs_f64() * 100.0)
    };
    clock.sleep(Duration::from_secs(3));
    let alone = share(panes.server, IDLE)?;
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
    let pid: u32 = pid.map_err(io::Error::other)?;
    clock.sleep(Duration::from_secs(6));
    let before = (cpu(pid)?, cpu(panes.server)?);
    clock.sleep(IDLE);
    let after = (cpu(pid)?, cpu(panes.server)?);
    let per_cent = |from: Duration, to: Duration| {
        to.saturating_sub(from).as_secs_f64() / IDLE.as_secs_f64() * 100.0
    };
    let (ours, server) = (per_cent(before.0, after.0), per_cent(before.1, after.1));
    let shown = lab.run("tmux", &["-L", STAGE, "capture-pane", "-p", "-t", "stage"])?.1.text();
    let top = shown.lines().next().unwrap_or_default().trim().to_owned();
    writeln!(out, "the screen says: {top}")?;
    writeln!(out, "P7 our CPU over {IDLE:?}: {ours:.2} % of a core (target ≤ 1 %)")?;
    writeln!(
        out,
        "   tmux's CPU: {alone:.1} % of a core without us, {server:.1} % with us (target ≤ 10 % more)"
    )?;
    writeln!(out, "   resident: {:.1} MB (target ≤ 40 MB)", resident(pid)?)
}

/// Time on a processor so far (proc(5): fields 14 and 15 of stat, in ticks of 10 ms).
fn cpu(pid: u32) -> io::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = fields.split(' ').skip(11).take(2).filter_map(|n| n.parse::<u64>().ok());
    Ok(Duration::from_millis(ticks.sum::<u64>() * 10))
}

/// Resident memory in megabytes (proc(5): `VmRSS` of status, in kB).
fn resident(pid: u32) -> io::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    let kb: f64 = line.trim().trim_end_matches(" kB").trim().parse().map_err(io::Error::other)?;
    Ok(kb / 1_000.0)
}
