//! Output as it comes: a job's log until the job has ended, each piece as soon as it is there. Whoever does not read is cut
//! off, and asks again from where it was.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::mpsc;

use tpu_ops::Ctx;
use tpu_ops::front::tokens;
use tpu_ops::observe::logs;
use tpu_wire::jobs::LogsPieceDocument;

use super::asked::Asked;
use super::failure::Failure;
use super::flow::{Bit, CutOff, Flow, SLOWEST_READER, WAITING};
use super::piece::{Piece, Wanted, can_be_followed, piece, waits};
use super::served::Served;
use super::takes::Room;

/// How often a log is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// The same where an engine has it, whose disk may be far away, and where nothing has begun yet.
const LOOK_ENGINE: Duration = Duration::from_secs(2);
/// After a piece of so many bytes the next one is there already.
const FULL: u64 = 1 << 19;
/// So often it is looked whether a token is still worth something, and said that all is well.
const STILL_HERE: Duration = Duration::from_secs(15);

/// What is to be followed, and how it is told.
pub(super) struct Follow {
    /// What.
    pub(super) of: Wanted,
    /// As server-sent events; as plain text without.
    pub(super) as_events: bool,
}

/// What was found at one look.
struct Found {
    piece: Piece,
    /// Nothing more is to come.
    is_over: bool,
    /// Until the next look.
    rest: Duration,
}

/// Begins to tell.
pub(super) fn begin(asked: &Asked<'_>, follow: Follow) -> Result<Flow, Failure> {
    let room = Arc::clone(&asked.served.followers).try_acquire_owned();
    let room = room.map_err(|_| Failure::too_many_follow())?;
    // What there is already is answered at once, or refused.
    let ctx = Arc::new(asked.served.ctx_of(asked.who, false));
    let first = look(&ctx, &follow.of)?;
    let (pieces, flow) = mpsc::channel(WAITING);
    let kind = if follow.as_events { "text/event-stream" } else { "text/plain; charset=utf-8" };
    let (served, token) = (Arc::clone(asked.served), asked.who.token.clone());
    drop(tokio::spawn(async move {
        tell(&served, (ctx, follow), (token, first), &pieces).await;
        drop(room);
    }));
    Ok(Flow { kind, pieces: flow })
}

fn look(ctx: &Ctx, of: &Wanted) -> Result<Found, Failure> {
    // What has waited may have begun otherwise than it could be followed.
    can_be_followed(ctx, &of.job)?;
    // Asked before it is read: what is printed in between is read.
    let is_over = logs::is_over(ctx, &of.job)?;
    let is_far = waits(ctx, &of.job)? || logs::has_engine(ctx, &of.job)?;
    let rest = if is_far { LOOK_ENGINE } else { LOOK };
    Ok(Found { piece: piece(ctx, of, is_over)?, is_over, rest })
}

/// Tells what comes, until nothing more is to come or nobody reads.
async fn tell(
    served: &Arc<Served>,
    (ctx, Follow { mut of, as_events }): (Arc<Ctx>, Follow),
    (token, mut found): (Option<String>, Found),
    pieces: &mpsc::Sender<Bit>,
) {
    let mut silent = Duration::ZERO;
    loop {
        let Found { piece: Piece { text, next }, is_over, rest } = found;
        let come = next.saturating_sub(of.offset);
        let said = said(&text, (&of, next), as_events);
        of.offset = next;
        if !said.is_empty() {
            silent = Duration::ZERO;
            if !is_taken(pieces, said).await {
                return;
            }
        }
        if is_over && come == 0 {
            if as_events {
                is_taken(pieces, "event: end\ndata: {}\n\n".to_owned()).await;
            }
            return;
        }
        // Of a long log the next piece is there already.
        if come < FULL {
            tokio::time::sleep(rest).await;
            silent += rest;
        }
        if silent >= STILL_HERE {
            silent = Duration::ZERO;
            let here = format!(": still here\nid: {next}\n\n");
            if as_events && !is_taken(pieces, here).await {
                return;
            }
        }
        if pieces.is_closed() {
            return;
        }
        let (look_ctx, look_of, hash) = (Arc::clone(&ctx), of.clone(), token.clone());
        let looked = served.beside(Room::Usual, move || {
            if hash.is_some_and(|hash| !tokens::worth(&look_ctx)(&hash)) {
                return Err(Failure::unauthorized("this token opens nothing any more"));
            }
            look(&look_ctx, &look_of)
        });
        found = match looked.await.and_then(|looked| looked) {
            Ok(found) => found,
            // It is looked at later.
            Err(failure) if failure.is_passing() => {
                let piece = Piece { text: String::new(), next };
                Found { piece, is_over: false, rest: LOOK_ENGINE }
            }
            Err(failure) => {
                if as_events {
                    let problem = failure.answer("").body().to_owned();
                    is_taken(pieces, format!("event: problem\ndata: {problem}\n\n")).await;
                } else {
                    // Whoever has half of it is not to take that for the whole.
                    drop(pieces.send(Err(CutOff)).await);
                }
                return;
            }
        };
    }
}

/// Whether a piece was taken in time.
async fn is_taken(pieces: &mpsc::Sender<Bit>, text: String) -> bool {
    let sent = tokio::time::timeout(SLOWEST_READER, pieces.send(Ok(Bytes::from(text)))).await;
    matches!(sent, Ok(Ok(())))
}

/// A piece as it is told.
fn said(text: &str, (of, next): (&Wanted, u64), as_events: bool) -> String {
    if text.is_empty() || !as_events {
        return text.to_owned();
    }
    let document =
        LogsPieceDocument { offset: of.offset, next_offset: next, text, worker: of.worker };
    format!("id: {next}\ndata: {}\n\n", tpu_wire::text(&document))
}
