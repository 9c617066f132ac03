//! Pieces of what a job has printed: of whole characters, or of the whole lines of one worker.

use axum::http::StatusCode;

use tpu_core::model::ids::JobId;
use tpu_ops::observe::logs;
use tpu_ops::{Ctx, Error, Kind};

use super::failure::Failure;

/// Bytes of a piece at most.
const PIECE: usize = 1 << 20;

/// What is wanted of whose output.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Whose.
    pub(super) job: JobId,
    /// From which byte on.
    pub(super) offset: u64,
    /// Of which worker alone.
    pub(super) worker: Option<u32>,
}

/// A piece of an output.
pub(super) struct Piece {
    /// What it says; bytes that are no text are replaced.
    pub(super) text: String,
    /// Where the next one begins.
    pub(super) next: u64,
}

/// A piece of the output, of whole characters, or of the whole lines of one worker. Where it was over before, what has no
/// end is whole all the same.
pub(super) fn piece(ctx: &Ctx, of: &Wanted, is_over: bool) -> Result<Piece, Failure> {
    let Wanted { job, offset, worker } = of;
    if waits(ctx, job)? {
        return Ok(Piece { text: String::new(), next: *offset });
    }
    let (mut bytes, next) = read(ctx, job, *offset)?;
    let is_all = bytes.len() <= PIECE;
    bytes.truncate(PIECE);
    let read = bytes.len();
    let kept = match worker {
        // A line that is longer than a piece is nobody's line; the last one of all has no end.
        Some(_) => match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(end) if end + 1 == read => read,
            _ if is_all && is_over => read,
            Some(end) => end + 1,
            None if is_all => 0,
            None => read,
        },
        None if is_all && is_over => read,
        None => whole_characters(&bytes),
    };
    bytes.truncate(kept);
    let next = if is_all && kept == read { next } else { offset + kept as u64 };
    let text = match worker {
        None => String::from_utf8_lossy(&bytes).into_owned(),
        Some(worker) => lines_of(&bytes, *worker),
    };
    Ok(Piece { text, next })
}

/// So many bytes are whole characters: the last one may go on behind them.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        // What is no text, is none anywhere: only what a last character lacks may still come.
        Err(_) => {
            let from = bytes.len().saturating_sub(3);
            let last = (from..bytes.len()).find(|at| {
                let tail = bytes.get(*at..).unwrap_or_default();
                let is_begun = std::str::from_utf8(tail)
                    .is_err_and(|e| e.error_len().is_none() && e.valid_up_to() == 0);
                !tail.is_empty() && is_begun
            });
            last.unwrap_or(bytes.len())
        }
        Ok(_) => bytes.len(),
    }
}

fn lines_of(bytes: &[u8], worker: u32) -> String {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| logs::of_worker(line, worker));
    lines.map(String::from_utf8_lossy).collect()
}

/// What there is from a byte on, and where the next piece begins.
fn read(ctx: &Ctx, id: &JobId, offset: u64) -> Result<(Vec<u8>, u64), Failure> {
    // One byte more says whether this is all.
    if let Some(piece) = logs::piece(ctx, id, offset, PIECE as u64 + 1)? {
        return Ok(piece);
    }
    let is_kept = logs::has_engine(ctx, id)? || logs::is_kept(ctx, id)?;
    match logs::window(ctx, id) {
        // What its window shows is not what will be kept: the bytes of the one are not those of the other.
        Ok(_) if is_kept && !logs::is_over(ctx, id)? => Ok((Vec::new(), offset)),
        Ok(output) => {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = output.bytes.get(from..).unwrap_or_default().to_vec();
            let next = offset + bytes.len() as u64;
            Ok((bytes, next))
        }
        // It has not printed anything yet.
        Err(error) if error.kind == Kind::NotFound && !logs::is_over(ctx, id)? => {
            Ok((Vec::new(), offset))
        }
        // It was there, and is not any more.
        Err(error) if error.kind == Kind::NotFound => {
            Err(Failure::from(error).status(StatusCode::GONE))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a job has not begun: it has printed nothing yet.
pub(super) fn waits(ctx: &Ctx, id: &JobId) -> Result<bool, Failure> {
    Ok(ctx.data()?.queues().entry(id).is_some())
}

/// Refuses to follow what is only shown: it has no bytes that could be counted.
pub(super) fn can_be_followed(ctx: &Ctx, id: &JobId) -> Result<(), Failure> {
    if waits(ctx, id)?
        || logs::has_engine(ctx, id)?
        || logs::is_kept(ctx, id)?
        || logs::is_over(ctx, id)?
    {
        return Ok(());
    }
    let error = Error::refused(format!("what {id} prints is shown in its window, and not kept"));
    Err(error.hint("ask again without `follow`").into())
}
