//! All figures of the performance specification in one table, each beside the barest program that does the
//! same and, where one is there, beside a peer. `./x bench` runs it, and says what to add for a part of it.
//!
//! Whole commands run on real tmux servers and real disks, in pairs in turn, and medians count. Nothing is
//! installed from here: a peer that is missing is a line that says so. One program for all figures, as each
//! would otherwise link everything again; a group of figures is a module and a line of [`GROUPS`]. `guard` is
//! the one part that counts instructions, for CI.

mod api;
mod board;
mod classify;
mod common;
mod ends;
mod guard;
mod hosts;
mod insight;
mod kubernetes;
mod launches;
mod peers;
mod queue;
mod reaction;
mod refresh;
mod screen;
mod slurm;
mod start;
mod store;
mod together;
mod turn;
mod workers;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use tpu_system::sys::proc::{self, Spawn};

use common::table::{Amount, Row, Table};
use common::{TPU, words};

/// What was asked for.
#[derive(Debug, Default)]
struct Plan {
    /// Names of groups; all of them if none.
    names: Vec<String>,
    /// The most windows that are opened.
    windows: usize,
    /// A checkout of the original.
    original: Option<PathBuf>,
}

/// Measures some figures.
type Group = fn(&mut Table, &Plan) -> io::Result<()>;

/// The groups by name, in the order of the specification.
const GROUPS: [(&str, Group); 21] = [
    ("start", start::start),
    ("store", store::store),
    ("launches", launches::launches),
    ("refresh", refresh::refresh),
    ("screen", screen::screen),
    ("reaction", reaction::reaction),
    ("fleet", fleet),
    ("classify", classify::classify),
    ("turn", turn::turn),
    ("slurm", slurm::slurm),
    ("kubernetes", kubernetes::kubernetes),
    ("workers", workers::workers),
    ("hosts", hosts::hosts),
    ("insight", insight::insight),
    ("api", api::api),
    ("queue", queue::queue),
    ("ends", ends::ends),
    ("size", size),
    ("together", together::together),
    ("board", board::board),
    ("original", peers::original),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut out = io::stdout();
    // cargo says `--bench` to every bench.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word.starts_with("--guard")) {
        return guard::main(&words);
    }
    let plan = match Plan::parse(words.into_iter()) {
        Ok(plan) => plan,
        Err(why) => {
            let names: Vec<_> = GROUPS.iter().map(|(name, _)| *name).collect();
            let why = format!("{why}; groups of figures: {}", names.join(" "));
            return Err(io::Error::other(why));
        }
    };
    machine(&mut out)?;
    let mut table = Table::default();
    let mut failed = Vec::new();
    for (name, group) in GROUPS {
        if !plan.names.is_empty() && !plan.names.iter().any(|asked| asked == name) {
            continue;
        }
        // What one group runs into is no reason to lose what the others say.
        if let Err(error) = group(&mut table, &plan) {
            let why = error.to_string().replace(['\n', '|'], " ");
            table.push(&Row::said(format!("{name}: could not be measured"), why))?;
            failed.push(name);
        }
    }
    table.finish()?;
    if failed.is_empty() {
        return Ok(());
    }
    Err(io::Error::other(format!("could not be measured: {}", failed.join(", "))))
}

impl Plan {
    /// Reads `[NAME…] [--windows N] [--original DIR]`.
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut plan = Self { windows: 1_000, ..Self::default() };
        let mut words = words;
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("what does {word} stand for?"));
            match word.as_str() {
                "--windows" => {
                    plan.windows = value()?.parse().map_err(|_| "--windows N".to_owned())?;
                }
                "--original" => plan.original = Some(PathBuf::from(value()?)),
                name if GROUPS.iter().any(|(known, _)| *known == name) => plan.names.push(word),
                _ => return Err(format!("unknown: {word}")),
            }
        }
        Ok(plan)
    }
}

/// What it runs on, and what is measured.
fn machine(out: &mut impl io::Write) -> io::Result<()> {
    let said = |program: &str, line: &str| {
        let output = proc::run(&Spawn::new(program).args(words(line)));
        output.map(|output| output.text().trim().to_owned()).unwrap_or_default()
    };
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = said("sed", "-n s/^model.name.*:.//p;T /proc/cpuinfo");
    writeln!(
        out,
        "{cpus} CPUs ({}), {}, {}, {} at {}, {}; load {}\n",
        cpu.lines().next().unwrap_or("of unknown make"),
        said("uname", "-sr"),
        said("tmux", "-V"),
        said(TPU, "-V"),
        said("git", "rev-parse --short HEAD"),
        said("date", "-u +%Y-%m-%dT%H:%MZ"),
        said("cut", "-d. -f1-2 /proc/loadavg"),
    )
}

/// P11 and P12 are hours of a simulated world: they are tests, not programs to be timed.
fn fleet(table: &mut Table, _: &Plan) -> io::Result<()> {
    table.push(&Row::said(
        "P11 recovery, P12 goodput",
        "played in a simulated world: `./x test -E 'test(an_hour_of_a_fleet)'`, `./x sim`",
    ))
}

/// P16: the program itself.
fn size(table: &mut Table, _: &Plan) -> io::Result<()> {
    let bytes = u32::try_from(std::fs::metadata(TPU)?.len()).unwrap_or(u32::MAX);
    let row = Row::of("P16 this build of the program", Amount::Megabytes(f64::from(bytes) / 1e6));
    table.push(&row.bound(Amount::Megabytes(22.0), "≤ 22 MB, stripped"))
}
