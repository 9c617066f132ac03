//! Whether somebody is there for an entry of the queue, who waits for it or would start it: only then it has its turn.
//! One for which a process waits is cleared away when that will not come again.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::act::stage;
use crate::base::environment;
use crate::base::{lease, records, watch};
use crate::{Ctx, Error};
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::JobId;

use super::once;

/// Who has said nothing for longer does not count.
const SILENT_S: u64 = 180;
/// An entry for which nobody has been there for so long is given up, whatever became of its host.
const FORGOTTEN_S: u64 = 7 * 24 * 3600;

/// Whether an entry has its turn: one for which a process waits only while that is there, any other while somebody is
/// where it was submitted who would start it.
pub fn counts(ctx: &Ctx, entry: &QueueEntry) -> bool {
    let Some(keeper) = &entry.keeper else { return watch::is_attended(ctx, &entry.place) };
    let is_there = lease::is_alive(ctx, &keeper.owner) != Some(false);
    let is_kept = lease::has_rebooted(ctx, &keeper.owner);
    silence(ctx, entry) < SILENT_S && (is_there || is_kept)
}

/// The same of all entries, in their order: each place is asked about once.
pub fn count_all(ctx: &Ctx, entries: &[QueueEntry]) -> Vec<bool> {
    let mut attended: HashMap<&str, bool> = HashMap::new();
    let each = entries.iter().map(|entry| match &entry.keeper {
        Some(_) => counts(ctx, entry),
        None => {
            *attended.entry(&entry.place).or_insert_with(|| watch::is_attended(ctx, &entry.place))
        }
    });
    each.collect()
}

/// Who is not there for entries that nobody would start now, in words; each place is looked at once.
#[derive(Default)]
pub(super) struct Absences(RefCell<HashMap<String, String>>);

impl Absences {
    pub(super) fn of(&self, ctx: &Ctx, entry: &QueueEntry) -> String {
        if entry.keeper.is_some() {
            return "nobody is there who waits for it".to_owned();
        }
        let mut known = self.0.borrow_mut();
        let place = known.entry(entry.place.clone());
        place.or_insert_with(|| watch::absence(ctx, &entry.place)).clone()
    }
}

/// Whether a process of this boot waited there and is dead: nobody waits there any more.
pub(crate) fn is_ghost(ctx: &Ctx, entry: &QueueEntry) -> bool {
    let Some(keeper) = &entry.keeper else { return false };
    lease::is_alive(ctx, &keeper.owner) == Some(false) && !is_left(ctx, entry)
}

/// Whether a restart has ended the process that waited.
fn is_left(ctx: &Ctx, entry: &QueueEntry) -> bool {
    entry.keeper.as_ref().is_some_and(|keeper| lease::has_rebooted(ctx, &keeper.owner))
}

/// Whether an entry can be cleared away for certain.
fn is_over(ctx: &Ctx, entry: &QueueEntry) -> bool {
    let Some(keeper) = &entry.keeper else { return false };
    let silent = silence(ctx, entry);
    // A clock that was set forward makes nobody dead.
    let is_lost = lease::is_alive(ctx, &keeper.owner) != Some(true);
    silent >= FORGOTTEN_S && is_lost || silent >= SILENT_S && is_ghost(ctx, entry)
}

/// For how many seconds nobody has said that he waits for it.
pub fn silence(ctx: &Ctx, entry: &QueueEntry) -> u64 {
    let seen = entry.keeper.as_ref().map_or(entry.since, |keeper| keeper.seen);
    ctx.clock.now().seconds_since(seen)
}

/// Clears away for whom nobody waits any more. Those of this host, account and tmux server whose processes a restart has
/// ended wait on without them.
pub fn settle(ctx: &Ctx) -> Result<(), Error> {
    let here = watch::place(ctx);
    let waits_on = |entry: &QueueEntry| entry.place == here && is_left(ctx, entry);
    let data = ctx.data()?;
    let entries = &data.queues().entries;
    if entries.iter().any(|entry| is_over(ctx, entry)) {
        clear(ctx, |entry| is_over(ctx, entry))?;
    }
    if !entries.iter().any(|entry| waits_on(entry) || is_ahead(ctx, entry)) {
        return Ok(());
    }
    ctx.transact(|tx| {
        let now = tx.now;
        let entries = tx.data.queues_mut().entries.iter_mut();
        for entry in entries {
            let (is_left, is_ahead) = (waits_on(entry), is_ahead(ctx, entry));
            match &mut entry.keeper {
                keeper if is_left => *keeper = None,
                Some(keeper) if is_ahead => keeper.seen = now,
                Some(_) | None => {}
            }
        }
        Ok(())
    })
}

/// Whether the last word of one who waits was written by a clock that is far ahead of ours: it would seem to have been
/// said just now for as long. It was said before it was read, so that now is the latest that it can be of.
fn is_ahead(ctx: &Ctx, entry: &QueueEntry) -> bool {
    let now = ctx.clock.now();
    entry.keeper.as_ref().is_some_and(|keeper| keeper.seen.seconds_since(now) > SILENT_S)
}

/// Takes out what processes were to begin at once that are dead by now. Whether any of these was.
pub(crate) fn clear_left(ctx: &Ctx, ids: &[JobId]) -> Result<bool, Error> {
    let is_meant = |entry: &QueueEntry| ids.contains(&entry.id()) && is_ghost(ctx, entry);
    if !ctx.data()?.queues().entries.iter().any(is_meant) {
        return Ok(false);
    }
    Ok(clear(ctx, is_meant)? > 0)
}

/// Takes out those for whom nobody waits any more. Nothing of them has begun, so that a request which was answered with one
/// may be sent again: else it would be answered for a day with what never comes.
fn clear(ctx: &Ctx, is_over: impl Fn(&QueueEntry) -> bool) -> Result<usize, Error> {
    let left = ctx.transact(|tx| {
        let over = tx.data.queues().entries.iter().filter(|entry| is_over(entry));
        let over: Vec<JobId> = over.map(QueueEntry::id).collect();
        let mut left = Vec::new();
        for id in &over {
            left.extend(tx.data.queues_mut().take(id));
            once::forget(tx, id);
            records::note(tx, id, "withdrawn", "nobody waits for it any more");
        }
        Ok(left)
    })?;
    for staged in left.iter().filter_map(|entry| entry.spec.staged.as_ref()) {
        stage::discard_unless_used(ctx, staged);
    }
    if !left.is_empty() {
        environment::clear_laid_by(ctx);
    }
    Ok(left.len())
}

/// How many count.
pub fn waiting(ctx: &Ctx) -> usize {
    ctx.data()
        .map_or(0, |data| count_all(ctx, &data.queues().entries).iter().filter(|is| **is).count())
}
