//! `…/logs` and `…/script`: what a job has printed, piece by piece or as it comes, and what it runs.
//!
//! Only what belongs to a record is read, through its runner: no path comes from a request.

use axum::http::StatusCode;

use tpu_core::model::ids::JobId;
use tpu_ops::base::ctx::job_of;
use tpu_ops::front::show;
use tpu_ops::observe::{archive, logs};
use tpu_ops::{Ctx, Error};
use tpu_wire::jobs::LogsPieceDocument;

use super::answer::Answer;
use super::asked::Asked;
use super::failure::Failure;
use super::follow::{self, Follow};
use super::jobs::JOB;
use super::piece::{Piece, Wanted, piece};
use super::route::{Either, Gives, Route, shape};
use super::takes::Parameter;

/// No log is longer, in bytes.
const FARTHEST: u64 = 1 << 40;
/// Which piece, of whom.
const LOGS: [Parameter; 5] = [
    JOB[0],
    JOB[1],
    Parameter::number(
        "offset",
        "where to begin, in bytes; X-Next-Offset of the piece before",
        (0, FARTHEST),
    ),
    Parameter::number("worker", "the lines of this worker alone, from 0", (0, u32::MAX as u64)),
    Parameter::flag(
        "follow",
        "go on until the job has ended; as server-sent events by Accept, each called by where the next begins",
    ),
];

/// What is read of one job's output.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::either(
            "/api/v1/jobs/{user}/{number}/logs",
            "Shows what a job has printed, as text, or as JSON by Accept",
            Gives::Log(shape::<LogsPieceDocument<'_>>),
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

fn output(asked: &Asked<'_>) -> Result<Either, Failure> {
    let offset = asked.number("offset").unwrap_or(0);
    let worker = asked.number("worker").and_then(|worker| u32::try_from(worker).ok());
    let (ctx, job) = (asked.ctx, asked.job());
    there(ctx, &job)?;
    let accepts = |kind| asked.header("accept").is_some_and(|kinds| kinds.contains(kind));
    if asked.flag("follow") {
        let as_events = accepts("text/event-stream");
        // Whoever was cut off says how far it had come, as with any other stream.
        let offset = match asked.header("last-event-id").filter(|_| as_events) {
            Some(id) => id.parse().ok().filter(|heard| *heard <= FARTHEST).ok_or_else(|| {
                Error::usage(format!("Last-Event-ID: {id}"))
                    .hint("take it from the `id` of an event")
            })?,
            None => offset,
        };
        let of = Wanted { job, offset, worker };
        return follow::begin(asked, Follow { of, as_events }).map(Either::Flowing);
    }
    // A last line without an end is one only once nothing more comes.
    let is_over = worker.is_some() && logs::is_over(ctx, &job)?;
    let Piece { text, next } = piece(ctx, &Wanted { job, offset, worker }, is_over)?;
    Ok(Either::Whole(if accepts("application/json") {
        let document = LogsPieceDocument { offset, next_offset: next, text: &text, worker };
        Answer::document(&document)
    } else {
        Answer::text(text).header("x-next-offset", next.to_string())
    }))
}

/// Refuses what has no output: what there never was, and what was cleaned away. What waits has none yet.
fn there(ctx: &Ctx, id: &JobId) -> Result<(), Failure> {
    let data = ctx.data()?;
    if data.queues().entry(id).is_some() {
        return Ok(());
    }
    let Err(error) = job_of(&data, id) else { return Ok(()) };
    // The archive is long: it is not read for a number that nobody has had.
    let was = data.user(&id.user).is_some_and(|user| id.window.0 < user.windows_offset);
    if !was || archive::find(ctx, id, 0).is_err() {
        return Err(error.into());
    }
    let what = format!("{id} was cleaned away: its record is in the archive");
    let hint = format!("on the machine: tpu archive logs {} {}", id.window, id.user);
    Err(Failure::from(Error::not_found(what).hint(hint)).status(StatusCode::GONE))
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
