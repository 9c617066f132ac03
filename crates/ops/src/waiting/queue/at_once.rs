//! Jobs that begin at once or not at all. Until it is known which, an entry is kept by the process that asks, as that of
//! somebody who waits at a terminal: nobody else begins it, and it goes with that process.

use crate::act::stage;
use crate::base::environment;
use crate::base::records;
use crate::{Ctx, Error};
use tpu_core::model::ids::JobId;

use super::once;
use super::pass::Passage;
use super::{standing_of, why};

/// So often what could not begin is taken out of the queue; each time that may wait for whoever writes just then.
const TRIES: usize = 12;

/// What has begun of what entered a queue to begin at once, after the pass for it. If nothing has, for whatever reason, it
/// waits no more, its request may be sent again, and why it could not begin is the error.
pub fn begun(ctx: &Ctx, id: &JobId, passed: Result<Passage, Error>) -> Result<Passage, Error> {
    let begun = passed.and_then(|passage| begun_or_why(ctx, id, passage));
    if begun.is_err() {
        // A server lives on: what it left there would be kept by it, and its request be answered with "later", for days.
        let mut tries = 1;
        while let Err(error) = withdraw(ctx, id) {
            if tries == TRIES {
                return Err(error);
            }
            tries += 1;
        }
    }
    begun
}

/// What has begun; that nothing has is the error, with the reason.
fn begun_or_why(ctx: &Ctx, id: &JobId, passage: Passage) -> Result<Passage, Error> {
    if !passage.started.is_empty() {
        return Ok(passage);
    }
    let standing = standing_of(ctx, &*ctx.data()?, id)?;
    let why = standing.map(|standing| why(ctx, &standing));
    let why = why.unwrap_or_else(|| "its turn has not come".to_owned());
    Err(Error::refused(format!("it cannot begin at once: {why}"))
        .passing()
        .hint("let it wait for its turn"))
}

/// Takes it out again, and forgets that its request was answered. What has been claimed meanwhile has a record, which says
/// what became of it.
fn withdraw(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    let left = ctx.transact(|tx| {
        let left = tx.data.queues_mut().take(id);
        if left.is_some() {
            records::note(tx, id, "withdrawn", "it could not begin at once");
            once::forget(tx, id);
        }
        Ok(left)
    })?;
    if let Some(staged) = left.and_then(|entry| entry.spec.staged) {
        stage::discard_unless_used(ctx, &staged);
    }
    environment::clear_laid_by(ctx);
    Ok(())
}
