//! The loss of a run over its whole lineage and what is measured beside it, read from what its attempts have printed.
//!
//! A short log is read line by line, a long one at a bounded number of places, however long it is. Which places
//! follows from the length alone: they are multiples of a power of two, so that a log that grows keeps every
//! other one. Nobody can tell from a curve when it was read before, and the first loss is always in it.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use memchr::memmem;

use tpu_core::classify::{Input, metrics};
use tpu_core::model::curve::{Curves, Measured, Reading, measured};
use tpu_core::model::data::User;
use tpu_core::model::facts::Progress;
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::Job;
use tpu_core::model::lineage::Lineage;
use tpu_system::sys::files;

use super::logs;
use crate::base::ctx::{job_of, user_of};
use crate::{Ctx, Error};

/// A log of this size (bytes) is read line by line; a longer one at some places only.
const WHOLE: u64 = 16 << 10;
/// Places at which a long log is read, at most.
const PLACES: u64 = 160;
/// Bytes before a loss in which the step to which it belongs is looked for.
const BEFORE: u64 = 1_200;
/// Bytes behind a place in which a loss is looked for.
const BEHIND: u64 = 4 << 10;
/// The same for the first loss, which set-up may keep waiting.
const FIRST: u64 = 4 << 20;
/// Lines that speak of a loss and show none are no longer tried at a place when there were so many.
const TRIES: usize = 8;
/// Logs of which the points are remembered.
const REMEMBERED: usize = 512;

/// What was read of logs that have not grown since.
#[derive(Debug, Default)]
pub struct CurveMemory(HashMap<PathBuf, (u64, Vec<Measured>)>);

/// The curves of the lineage to which a job belongs: of all its attempts, whichever of them the job is.
pub fn of(ctx: &Ctx, memory: &mut CurveMemory, id: &JobId) -> Result<Curves, Error> {
    let data = ctx.data()?;
    job_of(&data, id)?;
    let user = user_of(&data, &id.user)?;
    let mut curves = Curves::default();
    for window in attempts(user, id.window) {
        let Some(job) = user.job(window) else { continue };
        // Output that cannot be read leaves a gap; the rest of the lineage still says something.
        curves.append(window, &of_attempt(ctx, memory, job).unwrap_or_default());
    }
    Ok(curves)
}

/// What one attempt measured; nothing where its output cannot be read.
pub fn of_record(ctx: &Ctx, memory: &mut CurveMemory, job: &Job) -> Vec<Measured> {
    of_attempt(ctx, memory, job).unwrap_or_default()
}

fn attempts(user: &User, window: JobNumber) -> Vec<JobNumber> {
    Lineage::of(user, window).map(|lineage| lineage.windows).unwrap_or_default()
}

/// What one attempt measured: from its log file, or from what its window still holds.
fn of_attempt(ctx: &Ctx, memory: &mut CurveMemory, job: &Job) -> io::Result<Vec<Measured>> {
    let file = logs::log_file(job)
        .and_then(|path| Some((files::open_own(&path, OpenOptions::new().read(true)).ok()?, path)));
    let Some((mut file, path)) = file else {
        let text = if job.status.is_live() { logs::pane_text(ctx, job, 0) } else { None };
        let text = text.unwrap_or_default();
        let length = text.len() as u64;
        return read(ctx, &mut Cursor::new(text), length);
    };
    let length = file.metadata()?.len();
    if let Some((known, measured)) = memory.0.get(&path)
        && *known == length
    {
        return Ok(measured.clone());
    }
    let measured = read(ctx, &mut file, length)?;
    if memory.0.len() >= REMEMBERED {
        memory.0.clear();
    }
    memory.0.insert(path, (length, measured.clone()));
    Ok(measured)
}

/// What a log of that length measured, in its order.
fn read(ctx: &Ctx, log: &mut (impl Read + Seek), length: u64) -> io::Result<Vec<Measured>> {
    let mut readings = Vec::new();
    if length <= WHOLE {
        let all = Piece::read(log, 0..length)?;
        readings.extend(all.losses().filter_map(|line| all.reading(ctx, line)));
        return Ok(measured(readings));
    }
    let stride = (length / PLACES).next_power_of_two();
    let mut at = 0;
    while at < length {
        let reach = if at == 0 { FIRST } else { BEHIND };
        let piece = Piece::read(log, at..length.min(at + reach))?;
        // Before the first loss there may be anything.
        let tries = if at == 0 { usize::MAX } else { TRIES };
        readings.extend(piece.losses().take(tries).find_map(|line| piece.reading(ctx, line)));
        at += stride;
    }
    // The last loss is in it, wherever it stands.
    let end = Piece::read(log, length - BEHIND..length)?;
    let lines: Vec<_> = end.losses().collect();
    readings.extend(lines.into_iter().rev().take(TRIES).find_map(|line| end.reading(ctx, line)));
    Ok(measured(readings))
}

/// Some bytes of a log, with what stands before them.
struct Piece {
    bytes: Vec<u8>,
    /// Where the lines begin that belong to it; what is before them is only their context.
    start: usize,
}

impl Piece {
    /// Reads `range`, and what stands before it.
    fn read(log: &mut (impl Read + Seek), range: Range<u64>) -> io::Result<Self> {
        let from = range.start.saturating_sub(BEFORE);
        log.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        log.take(range.end - from).read_to_end(&mut bytes)?;
        let start = usize::try_from(range.start - from).unwrap_or(0);
        // A line that began before belongs to the place before.
        let start =
            if range.start == 0 { 0 } else { line_end(&bytes, start).unwrap_or(bytes.len()) };
        Ok(Self { bytes, start })
    }

    /// The whole lines that may show a loss.
    fn losses(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut next = self.start;
        let lines = std::iter::from_fn(move || {
            let start = next;
            next = line_end(&self.bytes, start)?;
            Some(start..next)
        });
        lines.filter(|line| {
            let text = self.bytes.get(line.clone()).unwrap_or_default();
            [&b"oss"[..], b"OSS"].iter().any(|word| memmem::find(text, word).is_some())
        })
    }

    /// The loss that a line shows, at the step that it shows or that stands shortly before it.
    fn reading(&self, ctx: &Ctx, line: Range<usize>) -> Option<Reading> {
        let end = line.end;
        let text = self.bytes.get(line.clone())?;
        let mut all = numbers(ctx, text);
        all.loss?;
        let others = metrics::beside(text, &all);
        // Steps of so many may be those of an epoch, which stands elsewhere.
        if all.step.is_none() || all.total.is_some() && all.epoch.is_none() {
            let from = line.start.saturating_sub(usize::try_from(BEFORE).unwrap_or(0));
            let from =
                if from == 0 { 0 } else { line_end(&self.bytes, from).unwrap_or(line.start) };
            all.fill_from(&numbers(ctx, self.bytes.get(from..end)?));
        }
        Reading::of(&all, others)
    }
}

/// Where the line ends that goes on at `from`: behind its line feed, or the return that begins it anew.
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    memchr::memchr2(b'\n', b'\r', rest).map(|at| from + at + 1)
}

/// The numbers that a text shows.
fn numbers(ctx: &Ctx, text: &[u8]) -> Progress {
    ctx.classifier().classify(&Input { text, ..Input::default() }).progress
}
