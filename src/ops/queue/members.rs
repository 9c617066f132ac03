//! Takes members of a group out of the queue, while others of it wait on.

use crate::model::ids::JobId;
use crate::model::member::Array;
use crate::ops::called::WaitingCalled;
use crate::ops::{Ctx, Error};

use super::{edit, gone, unbegun};

/// Takes out what is called: whole entries, or members of them. Nothing of that begins. One that has begun meanwhile is
/// an error.
pub fn take_out(ctx: &Ctx, called: &[WaitingCalled]) -> Result<(), Error> {
    let whole: Vec<JobId> =
        called.iter().filter(|it| it.members.is_none()).map(|it| it.id.clone()).collect();
    if !whole.is_empty() {
        edit::dequeue(ctx, &whole)?;
    }
    for WaitingCalled { id, members } in called {
        let Some(members) = members.as_ref().filter(|_| !whole.contains(id)) else { continue };
        ctx.transact(|tx| {
            for index in members {
                let queues = tx.data.queues_mut();
                let entry = queues.entry_mut(id).ok_or_else(gone)?;
                let array = entry.spec.array.as_ref();
                let array =
                    array.filter(|array| array.indexes().contains(index)).ok_or_else(gone)?;
                let (rest, mut taken) = (array.without(*index), entry.clone());
                taken.spec.array = Array::of([*index]);
                match rest {
                    Some(rest) => entry.spec.array = Some(rest),
                    None => drop(queues.take(id)),
                }
                unbegun::archive(tx, &taken);
            }
            Ok(())
        })?;
    }
    Ok(())
}
