//! The guard against growing slow: instructions of the five hottest paths, beside those of plain work on the
//! same bytes. `./x guard` runs it, CI too; `./x guard --accept` notes what it has counted as right.
//!
//! Times of a shared machine say nothing about a tenth more or less; instructions that valgrind counts are
//! the same in every run. Their numbers belong to one compiler and one C library, so none is noted: what is
//! noted in `guard.txt` is how many times as many a path needs as its floor, which the same compiler has made
//! of the same bytes. It is counted in the profile that the tests have built, which costs no build of its
//! own: work that is done twice is done twice in every profile.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write as _};
use std::sync::Arc;

use serde_json::{Value, json};
use tpu_core::classify::{Classifier, Input};
use tpu_core::model::data::Data;
use tpu_core::model::facts::Place;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::time::Timestamp;
use tpu_ops::act::outlook::survey;
use tpu_ops::observe::snapshot::LookMemory;
use tpu_system::sys::clock::ManualClock;
use tpu_system::sys::proc;
use tpu_system::tmux::Tmux as _;

use crate::common::fake_tmux::FakeTmux;
use crate::common::text::{healthy, six_expressions};
use crate::common::{Lab, TPU, ctx, data, finished, record, words};
use crate::screen::{Bench, Plain};

/// What was counted when it was last accepted.
const NOTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/guard.txt");

/// So much more than noted is red. Runs differ by less than a hundredth (the order of hash tables), other
/// compilers by some hundredths; a fifth more work is to be seen.
const TOLERANCE: f64 = 0.10;

const JOBS: usize = 1_000;
/// What a look at one pane reads.
const PANE: usize = 150 << 10;
const NOW: i64 = 1_795_161_731;

/// A path, and what it is beside.
struct Hot {
    name: &'static str,
    path: &'static str,
    floor: &'static str,
    ours: fn(&Lab) -> io::Result<()>,
    least: fn(&Lab) -> io::Result<()>,
}

/// The paths that every command, every look of the screen and of the daemon, and every key goes through.
const PATHS: [Hot; 5] = [
    Hot {
        name: "data",
        path: "read data.json, change a job, write it",
        floor: "the same by serde_json",
        ours: change,
        least: rewrite,
    },
    Hot {
        name: "classify",
        path: "classify what a pane shows",
        floor: "six expressions on each line",
        ours: pane,
        least: expressions,
    },
    Hot {
        name: "look",
        path: "look at 1 000 jobs and decide about each",
        floor: "read them by serde_json",
        ours: look,
        least: read,
    },
    Hot {
        name: "frame",
        path: "a key and its frame, 1 000 jobs",
        floor: "a frame of plain text",
        ours: frame,
        least: plain_frame,
    },
    Hot {
        name: "ls",
        path: "`ls`, the whole command",
        floor: "read 1 000 jobs by serde_json",
        ours: start,
        least: read,
    },
];

/// `--guard [--accept]` counts and compares; `--guard-part NAME ours|least` is what is counted.
pub(crate) fn main(words: &[String]) -> io::Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--guard"] => compare(&mut io::stdout(), false),
        ["--guard", "--accept"] => compare(&mut io::stdout(), true),
        ["--guard-part", name, part] => {
            let hot = PATHS.iter().find(|hot| hot.name == *name);
            let hot = hot.ok_or_else(|| io::Error::other(format!("no path '{name}'")))?;
            let lab = Lab::new()?;
            if *part == "ours" { (hot.ours)(&lab) } else { (hot.least)(&lab) }
        }
        _ => Err(io::Error::other("--guard [--accept]")),
    }
}

/// Counts every path and its floor, and says which has grown.
fn compare(out: &mut impl io::Write, accepts: bool) -> io::Result<()> {
    let noted = noted()?;
    let mut now = String::new();
    let mut grown = Vec::new();
    writeln!(out, "| path | instructions | floor | instructions | ratio | noted | change | |")?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for hot in &PATHS {
        let (ours, least) = (count(hot, "ours")?, count(hot, "least")?);
        let ratio = ours / least;
        now += &format!("{} {ratio:.5}\n", hot.name);
        let known = noted.get(hot.name).copied();
        let change = known.map_or(0.0, |known| ratio / known - 1.0);
        let verdict = match known {
            None => "not noted",
            Some(_) if change > TOLERANCE => "**slower**",
            Some(_) if change < -TOLERANCE => "quicker: ./x guard --accept",
            Some(_) => "as noted",
        };
        if !accepts && (known.is_none() || change > TOLERANCE) {
            grown.push(hot.name);
        }
        writeln!(
            out,
            "| {} | {:.2} M | {} | {:.2} M | {ratio:.4} | {:.4} | {:+.1} % | {verdict} |",
            hot.path,
            ours / 1e6,
            hot.floor,
            least / 1e6,
            known.unwrap_or(0.0),
            change * 100.0,
        )?;
    }
    if accepts {
        return File::create(NOTED)?.write_all(now.as_bytes());
    }
    if grown.is_empty() {
        return Ok(());
    }
    let said = "needs more instructions than noted; if that is right: ./x guard --accept";
    Err(io::Error::other(format!("{}: {said}", grown.join(", "))))
}

/// The ratios that were accepted, by path.
fn noted() -> io::Result<BTreeMap<String, f64>> {
    let text = match std::fs::read_to_string(NOTED) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.filter_map(|(name, ratio)| Some((name.to_owned(), ratio.parse().ok()?))).collect())
}

/// The instructions of one part: those between the begin and the end of [`counted`], or of a whole command.
fn count(hot: &Hot, part: &str) -> io::Result<f64> {
    let lab = Lab::new()?;
    let mut argv: Vec<OsString> = words("--tool=callgrind --callgrind-out-file=/dev/null");
    if hot.name == "ls" && part == "ours" {
        lab.write(&finished(&lab, 10))?;
        argv.push(TPU.into());
        argv.extend(words("ls"));
    } else {
        argv.push("--toggle-collect=*guard*counted*".into());
        argv.push(std::env::current_exe()?.into());
        argv.extend(words(&format!("--guard-part {} {part}", hot.name)));
    }
    let output = proc::run(&lab.spawn("valgrind", &argv)).map_err(io::Error::other)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.shell_code() != 0 {
        return Err(io::Error::other(output.complaint()));
    }
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let count = collected.and_then(|(_, count)| count.trim().parse::<f64>().ok());
    count.filter(|count| *count > 0.0).ok_or_else(|| io::Error::other("valgrind counted nothing"))
}

/// What valgrind counts: it knows this function by its name.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
    // Without anything after it the call would be a jump, which has no end.
    black_box(());
}

/// Does it once for what is made on first use, then once to be counted.
fn second_time(mut work: impl FnMut()) {
    work();
    counted(&mut work);
}

fn records(lab: &Lab) -> io::Result<Vec<u8>> {
    Ok(serde_json::to_vec_pretty(&finished(lab, JOBS))?)
}

fn change(lab: &Lab) -> io::Result<()> {
    let bytes = records(lab)?;
    let job = JobId::new(UserName::from("alice"), JobNumber(7));
    Data::parse(&bytes).map_err(io::Error::other)?;
    second_time(|| {
        if let Ok(mut data) = Data::parse(black_box(&bytes)) {
            if let Some(job) = data.job_mut(&job) {
                job.job_tags = Some("changed".to_owned());
            }
            black_box(data.to_bytes());
        }
    });
    Ok(())
}

fn rewrite(lab: &Lab) -> io::Result<()> {
    let bytes = records(lab)?;
    second_time(|| {
        let value = serde_json::from_slice::<Value>(black_box(&bytes));
        drop(black_box(value.and_then(|value| serde_json::to_vec_pretty(&value))));
    });
    Ok(())
}

fn read(lab: &Lab) -> io::Result<()> {
    let bytes = records(lab)?;
    second_time(|| drop(black_box(serde_json::from_slice::<Value>(black_box(&bytes)))));
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "one of PATHS")]
fn pane(_: &Lab) -> io::Result<()> {
    let text = healthy(PANE).into_bytes();
    let classifier = Classifier::builtin();
    second_time(|| {
        black_box(classifier.classify(&Input { text: black_box(&text), ..Input::default() }));
    });
    Ok(())
}

#[expect(clippy::unnecessary_wraps, reason = "one of PATHS")]
fn expressions(_: &Lab) -> io::Result<()> {
    let text = healthy(PANE).into_bytes();
    second_time(|| six_expressions(&text));
    Ok(())
}

/// A turn's look at windows that have not changed since the last one, and its decisions.
fn look(lab: &Lab) -> io::Result<()> {
    let jobs: Vec<_> =
        (1..=JOBS).map(|n| record(lab.dir(), n, &format!("lab-{n}"), "running")).collect();
    lab.write(&data(lab.dir(), &jobs))?;
    let clock = Arc::new(ManualClock::new(Timestamp::from_second(NOW)));
    let place: Place = serde_json::from_value(json!({
        "host": "here", "boot": "boot", "uid": 1000, "socket": "/tmp/fake",
        "server_pid": 0, "server_start": 0,
    }))?;
    let tmux = FakeTmux::new(place, Arc::<ManualClock>::clone(&clock));
    tmux.ensure_session("alice", 2_000).map_err(io::Error::other)?;
    for n in 1..=JOBS {
        tmux.open_by_hand("alice", u32::try_from(n).unwrap_or(u32::MAX), "job");
    }
    let mut ctx = ctx(lab);
    (ctx.effects.tmux, ctx.effects.clock) = (Arc::new(tmux), clock);
    let mut memory = LookMemory::default();
    second_time(|| drop(black_box(survey(&ctx, &mut memory, std::time::Duration::MAX))));
    Ok(())
}

fn frame(_: &Lab) -> io::Result<()> {
    let mut bench = Bench::new(u32::try_from(JOBS).unwrap_or(u32::MAX))?;
    bench.draw();
    second_time(|| {
        bench.key("j");
        bench.draw();
    });
    Ok(())
}

fn plain_frame(_: &Lab) -> io::Result<()> {
    let mut plain = Plain::new()?;
    second_time(|| plain.draw());
    Ok(())
}

/// The whole command is counted as a process of its own.
fn start(_: &Lab) -> io::Result<()> {
    Err(io::Error::other("`ls` is counted as a whole"))
}
