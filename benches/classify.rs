//! P13: how fast the classifier reads: megabytes of healthy training text, and walls of tracebacks.
//!
//! The floor is what a handful of expressions alone cost on the same text at the same moment, line by line,
//! so the ratio to it says more than the figure.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use tpu_core::classify::{Classifier, Input};

use crate::Plan;
use crate::common::table::{Amount, Row, Sample, Table};
use crate::common::text::{failures, healthy, six_expressions};
use crate::common::{in_turn, pairs, timed};

const ROUNDS: usize = 20;
/// Lengths of a line without an end, in thousands of bytes.
const SIZES: [u32; 3] = [10, 100, 1_000];
const MEGABYTES: usize = 8 << 20;
/// What a look at one pane reads: at most the last 2 000 lines.
const PANE: usize = 150 << 10;

/// Logs pane by pane and line by line, then one line without an end, then what the first use costs.
pub(crate) fn classify(table: &mut Table, _: &Plan) -> io::Result<()> {
    let healthy = healthy(MEGABYTES).into_bytes();
    let failures = failures(MEGABYTES)?;
    let lines = |text: &[u8]| {
        black_box(Classifier::builtin().classify_lines(black_box(text)));
    };
    let panes = |text: &[u8]| text.chunks(PANE).for_each(pane);
    // A look reads panes; each line by itself is what `tpu classify` shows to people.
    for (name, text, work, least) in [
        ("healthy text, pane by pane", &healthy, &panes as &dyn Fn(&[u8]), Some(200.0)),
        ("tracebacks, pane by pane", &failures, &panes, Some(40.0)),
        ("healthy text, each line by itself", &healthy, &lines, None),
        ("tracebacks, each line by itself", &failures, &lines, None),
    ] {
        let (ours, floor) =
            pairs(ROUNDS, || Ok(timed(|| work(text)).1), || Ok(timed(|| six_expressions(text)).1))?;
        let row = Row::of(format!("P13 {name}"), speed(text.len(), ours.median()));
        let row = row.floor(speed(text.len(), floor.median()));
        table.push(&match least {
            Some(least) => row.bound(Amount::Speed(least), format!("≥ {least:.0} MB/s")),
            None => row,
        })?;
    }
    let lines = SIZES.map(|kilobytes| b"step 1 loss ".repeat(kilobytes as usize * 1_000 / 12));
    let mut reads: Vec<_> = lines.iter().map(|line| || Ok(timed(|| pane(line)).1)).collect();
    let mut things: Vec<&mut dyn FnMut() -> io::Result<Duration>> = Vec::new();
    things.extend(reads.iter_mut().map(|read| read as &mut dyn FnMut() -> _));
    for (kilobytes, times) in SIZES.into_iter().zip(in_turn(ROUNDS, &mut things)?) {
        table.point("the classifier on a line without an end", "kB", kilobytes, times.median());
    }
    let loads = (0..ROUNDS).map(|_| timed(|| Classifier::with_overlay("", "none.toml").0).1);
    let loads = Sample::from(loads.collect::<Vec<_>>());
    let row = Row::time("P13 the classifier is ready", &loads);
    table.push(&row.bound(Amount::Time(Duration::from_millis(1)), "≤ 1 ms"))
}

fn pane(text: &[u8]) {
    black_box(Classifier::builtin().classify(&Input { text: black_box(text), ..Input::default() }));
}

fn speed(bytes: usize, took: Duration) -> Amount {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    Amount::Speed(f64::from(bytes) / 1e6 / took.as_secs_f64().max(1e-9))
}
