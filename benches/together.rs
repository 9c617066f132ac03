//! Growth with the number of commands that run at the same time: they share a lock and two processors, and
//! none may wait for longer than its turn.

use std::io;

use crate::Plan;
use crate::common::table::{Row, Sample, Table};
use crate::common::{Lab, finished, timed};

const ROUNDS: usize = 20;
const COUNTS: [u32; 3] = [1, 8, 64];
const JOBS: usize = 100;

/// One, eight and sixty-four commands that read, then as many that write, in turn.
pub(crate) fn together(table: &mut Table, _: &Plan) -> io::Result<()> {
    let lab = Lab::new()?;
    lab.write(&finished(&lab, JOBS))?;
    for (name, line) in [("`ls`", "ls"), ("`add-tag`", "add-tag")] {
        let (lab, mut round) = (&lab, 0);
        let mut run = |count| {
            round += 1;
            let (done, took) = timed(|| at_once(lab, line, (count, round)));
            done.map(|()| took)
        };
        let mut times = COUNTS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for (count, times) in COUNTS.iter().zip(&mut times) {
                times.push(run(*count)?);
            }
        }
        for (count, times) in COUNTS.into_iter().zip(times.map(Sample::from)) {
            table.push(&Row::time(format!("{count} × {name} at once, {JOBS} jobs"), &times))?;
            table.point(&format!("{name} at once"), "commands", count, times.median());
        }
    }
    Ok(())
}

/// Runs so many of a command at once, until the last has ended.
fn at_once(lab: &Lab, line: &str, (count, round): (u32, usize)) -> io::Result<()> {
    std::thread::scope(|scope| {
        let commands: Vec<_> = (1..=count)
            .map(|n| {
                let line = match line {
                    "add-tag" => format!("add-tag {n} t{round}"),
                    other => other.to_owned(),
                };
                scope.spawn(move || lab.tpu(&line))
            })
            .collect();
        for command in commands {
            command.join().map_err(|_| io::Error::other("a command's thread died"))??;
        }
        Ok(())
    })
}
