//! `…/logs` and `…/script`: what a job has printed, piece by piece, and what it runs.
//!
//! Only what belongs to a record is read, through its runner: no path comes from a request.

use axum::http::StatusCode;

use crate::ops::{Kind, ctx::job_of, logs, show};
use crate::wire::jobs::LogsPieceDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::jobs::JOB;
use super::route::{Gives, Route, shape};
use super::takes::Parameter;

/// Bytes of a piece at most.
const PIECE: usize = 1 << 20;
/// Which piece.
const LOGS: [Parameter; 3] = [
    JOB[0],
    JOB[1],
    Parameter::number(
        "offset",
        "where to begin, in bytes; X-Next-Offset of the piece before",
        (0, 1 << 40),
    ),
];

/// What is read of one job's output.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/api/v1/jobs/{user}/{number}/logs",
            "Shows what a job has printed, as text, or as JSON by Accept",
            Gives::TextOr("text/plain; charset=utf-8", shape::<LogsPieceDocument<'_>>),
            output,
        )
        .with(&LOGS),
        Route::get(
            "/api/v1/jobs/{user}/{number}/script",
            "Shows what a job runs",
            Gives::Text("text/plain; charset=utf-8"),
            script,
        )
        .with(&JOB),
    ]
}

fn output(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let offset = asked.number("offset").unwrap_or(0);
    let (text, next_offset) = piece(asked, offset)?;
    if asked.header("accept").is_some_and(|kinds| kinds.contains("application/json")) {
        let document = LogsPieceDocument { offset, next_offset, text: &text, worker: None };
        return Ok(Answer::document(&document));
    }
    Ok(Answer::text(text).header("x-next-offset", next_offset.to_string()))
}

/// A piece of the output from `offset` on, of whole characters, and where the next one begins.
fn piece(asked: &Asked<'_>, offset: u64) -> Result<(String, u64), Failure> {
    let (ctx, id) = (asked.ctx, asked.job());
    job_of(&*ctx.data()?, &id)?;
    if let Some((bytes, next)) = logs::piece(ctx, &id, offset, PIECE as u64)? {
        return Ok(whole(bytes, offset, next));
    }
    match logs::window(ctx, &id) {
        Ok(output) => {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let bytes = output.bytes.get(from..).unwrap_or_default().to_vec();
            let next = offset + bytes.len() as u64;
            Ok(whole(bytes, offset, next))
        }
        // It has not printed anything yet.
        Err(error) if error.kind == Kind::NotFound && !logs::is_over(ctx, &id)? => {
            Ok((String::new(), offset))
        }
        // It was there, and is not any more.
        Err(error) if error.kind == Kind::NotFound => {
            Err(Failure::from(error).status(StatusCode::GONE))
        }
        Err(error) => Err(error.into()),
    }
}

/// As much of it as a piece holds, up to the end of a character.
fn whole(mut bytes: Vec<u8>, offset: u64, next: u64) -> (String, u64) {
    let is_all = bytes.len() <= PIECE;
    bytes.truncate(PIECE);
    if let Err(e) = std::str::from_utf8(&bytes)
        && e.error_len().is_none()
    {
        // The last character goes on behind the piece.
        bytes.truncate(e.valid_up_to());
        let next = offset + bytes.len() as u64;
        return (String::from_utf8_lossy(&bytes).into_owned(), next);
    }
    let next = if is_all { next } else { offset + bytes.len() as u64 };
    (String::from_utf8_lossy(&bytes).into_owned(), next)
}

fn script(asked: &Asked<'_>) -> Result<Answer, Failure> {
    let (ctx, id) = (asked.ctx, asked.job());
    if job_of(&*ctx.data()?, &id)?.engine.is_some() {
        // The batch script and the manifest say the environment of whoever submitted the job.
        let what = format!("what {id} was submitted with holds values of its environment");
        let hint = format!("on the machine: tpu script {} {}", id.window, id.user);
        return Err(Failure::forbidden(what, &hint));
    }
    Ok(Answer::text(show::script(ctx, &id)?))
}
