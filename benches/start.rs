//! P1: what commands cost that need neither tmux nor network, beside a program that does nothing and, where it is there,
//! beside pueue.

use std::io;
use std::time::Duration;

use tpu_system::sys::proc;

use crate::Plan;
use crate::common::table::{Amount, Peer, Row, Sample, Table};
use crate::common::{Lab, TPU, finished, in_turn, megabytes, timed, words};
use crate::peers;

const ROUNDS: usize = 40;

/// The numbers of records; the last makes ten megabytes.
const SIZES: [u32; 5] = [10, 100, 1_000, 5_000, 14_500];

/// What is asked, and of which shell a Tab comes.
const ASKED: [(&str, Option<&str>); 6] = [
    ("--version", None),
    ("--help", None),
    ("ls", None),
    ("kill w=", Some("bash")),
    ("kill w=", Some("zsh")),
    ("kill w=", Some("fish")),
];

/// Help, a list and a Tab, by the number of records: all sizes in turn, so that their curve is one of the
/// program and not of the machine.
pub(crate) fn start(table: &mut Table, _: &Plan) -> io::Result<()> {
    let mut labs = Vec::new();
    for jobs in SIZES {
        let lab = Lab::new()?;
        let bytes = lab.write(&finished(&lab, jobs as usize))?;
        labs.push((lab, jobs, bytes));
    }
    let pueue = peers::installed("pueue");
    let pueue = pueue.as_ref().and_then(|program| program.to_str());
    for (line, shell) in ASKED {
        let mut commands: Vec<_> =
            labs.iter().map(|(lab, ..)| || command(lab, line, shell)).collect();
        let mut least = || Ok(labs[0].0.run("true", &[""; 0])?.0);
        let of_program = line.starts_with('-');
        let mut peer = || match pueue {
            Some(pueue) if of_program => Ok(labs[0].0.run(pueue, &[line])?.0),
            _ => Ok(Duration::ZERO),
        };
        let mut things: Vec<&mut dyn FnMut() -> io::Result<Duration>> = vec![&mut least, &mut peer];
        things.extend(commands.iter_mut().map(|command| command as &mut dyn FnMut() -> _));
        let times = in_turn(ROUNDS, &mut things)?;
        let [floor, peer, ours @ ..] = times.as_slice() else { continue };
        let name = match shell {
            None => format!("`{line}`"),
            Some(shell) => format!("Tab behind `{line}` in {shell}"),
        };
        for (at, ((_, jobs, bytes), ours)) in labs.iter().zip(ours).enumerate() {
            let row = one((&name, *jobs), ours, floor.median());
            table.push(&match pueue {
                Some(_) if of_program && at == 0 => {
                    let peer = Amount::Time(peer.median());
                    row.peer(Peer::Measured(format!("pueue {line}"), peer))
                        .bound_by_peer(1.0, "≤ pueue")
                }
                _ => row,
            })?;
            if *jobs <= 5_000 {
                table.point(&name, "jobs", *jobs, ours.median());
            }
            if *jobs >= 1_000 {
                table.point(&name, "MB of data.json", megabytes(*bytes), ours.median());
            }
        }
    }
    Ok(())
}

/// Runs one command; or asks what a shell asks for a Tab.
fn command(lab: &Lab, line: &str, shell: Option<&str>) -> io::Result<Duration> {
    let Some(shell) = shell else { return lab.tpu(line) };
    let spawn = lab.spawn(TPU, &words(&format!("-- tpu {line}")));
    let spawn = spawn.env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "2");
    let (output, took) = timed(|| proc::run(&spawn));
    output.map(|_| took).map_err(io::Error::other)
}

/// The line of one command at one size.
fn one((name, jobs): (&str, u32), ours: &Sample, floor: Duration) -> Row {
    let row = Row::time(format!("P1 {name}, {jobs} jobs"), ours).floor(Amount::Time(floor));
    match jobs {
        10 | 1_000 => {
            let above = Duration::from_millis(if jobs == 10 { 2 } else { 5 });
            row.bound(Amount::Time(floor + above), format!("≤ floor + {above:?}"))
        }
        _ => row,
    }
}
