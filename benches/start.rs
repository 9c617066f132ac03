//! P1: what commands cost that need neither tmux nor network, beside a program that does nothing.

use std::io;
use std::time::Duration;

use tpu_system::sys::proc;

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::{Lab, TPU, finished, in_turn, megabytes, timed, words};

const ROUNDS: usize = 40;

/// The numbers of records; the last makes ten megabytes.
const SIZES: [u32; 5] = [10, 100, 1_000, 5_000, 14_500];

/// Help, a list and a Tab, by the number of records: all sizes in turn, so that their curve is one of the
/// program and not of the machine.
pub(crate) fn start(table: &mut Table, _: &Plan) -> io::Result<()> {
    let mut labs = Vec::new();
    for jobs in SIZES {
        let lab = Lab::new()?;
        let bytes = lab.write(&finished(&lab, jobs as usize))?;
        labs.push((lab, jobs, bytes));
    }
    for line in ["--help", "ls", "kill w="] {
        let mut commands: Vec<_> = labs.iter().map(|(lab, ..)| || command(lab, line)).collect();
        let mut least = || Ok(labs[0].0.run("true", &[""; 0])?.0);
        let mut things: Vec<&mut dyn FnMut() -> io::Result<Duration>> = vec![&mut least];
        things.extend(commands.iter_mut().map(|command| command as &mut dyn FnMut() -> _));
        let times = in_turn(ROUNDS, &mut things)?;
        if let [floor, ours @ ..] = times.as_slice() {
            for ((_, jobs, bytes), ours) in labs.iter().zip(ours) {
                one(table, (line, *jobs, *bytes), ours, floor.median())?;
            }
        }
    }
    Ok(())
}

/// Runs one command.
fn command(lab: &Lab, line: &str) -> io::Result<Duration> {
    if !line.ends_with('=') {
        return lab.tpu(line);
    }
    // What bash asks for a Tab.
    let spawn = lab.spawn(TPU, &words(&format!("-- tpu {line}")));
    let spawn = spawn.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2");
    let (output, took) = timed(|| proc::run(&spawn));
    output.map(|_| took).map_err(io::Error::other)
}

/// The line of one command at one size.
fn one(
    table: &mut Table,
    (line, jobs, bytes): (&str, u32, usize),
    ours: &Sample,
    floor: Duration,
) -> io::Result<()> {
    let name =
        if line.ends_with('=') { format!("Tab behind `{line}`") } else { format!("`{line}`") };
    let row = Row::time(format!("P1 {name}, {jobs} jobs"), ours).floor(Amount::Time(floor));
    let row = match jobs {
        10 | 1_000 => {
            let above = Duration::from_millis(if jobs == 10 { 2 } else { 5 });
            row.bound(Amount::Time(floor + above), format!("≤ floor + {above:?}"))
        }
        _ => row,
    };
    table.push(&row)?;
    if jobs <= 5_000 {
        table.point(&name, "jobs", jobs, ours.median());
    }
    if jobs >= 1_000 {
        table.point(&name, "MB of data.json", megabytes(bytes), ours.median());
    }
    Ok(())
}
