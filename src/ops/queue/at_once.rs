//! Jobs that begin at once or not at all.

use crate::model::ids::JobId;
use crate::ops::{Ctx, Error, records, stage};

use super::once::Once;
use super::pass::{AT_ONCE, Mine, Passage, pass};
use super::standing_of;

/// Starts what has entered a queue. If nothing of it can begin at once it waits no more, its request may be sent again,
/// and why it could not begin is the error. The members of a group that cannot begin yet wait on.
pub fn start(ctx: &Ctx, id: &JobId, once: Option<&Once>) -> Result<Passage, Error> {
    let passage = pass(ctx, Mine::Own(id), AT_ONCE)?;
    if !passage.started.is_empty() || ctx.data()?.queues().entry(id).is_none() {
        return Ok(passage);
    }
    let standing = standing_of(ctx, &*ctx.data()?, id)?;
    let why = standing.map_or_else(|| "its turn has not come".to_owned(), |(_, why)| why);
    let left = ctx.transact(|tx| {
        let left = tx.data.queues_mut().take(id);
        if left.is_some() {
            records::note(tx, id, "withdrawn", "it could not begin at once");
            if let Some(once) = once {
                once.forget(tx);
            }
        }
        Ok(left)
    })?;
    let Some(left) = left else {
        // Somebody else has begun it in between.
        return Ok(passage);
    };
    if let Some(staged) = left.spec.staged {
        stage::discard(ctx, &staged);
    }
    Err(Error::refused(format!("it cannot begin at once: {why}"))
        .passing()
        .hint("let it wait for its turn: start=queue"))
}
