//! What the machines on which something that waits would begin say of themselves.
//!
//! Records and facts give an entry its places; whether a job can begin there is known only when the machine has been
//! asked. One that does not answer keeps the entry waiting, and whoever looks is told so.

use crate::act::hosts::choose as hosts;
use crate::act::lately::Lately;
use crate::observe::doors;
use crate::{Ctx, Error};
use tpu_core::model::capacity::BusyGpus;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::JobId;
use tpu_core::model::target::{Machines, Target};
use tpu_core::plan::board::Pick;
use tpu_core::plan::queue::{EntryStanding, WaitReason};

use super::wish::Wish;

/// A place, with the GPUs on which somebody else is at work, if it was asked; or why a job cannot begin there.
type Answer<'a> = (&'a Pick, Result<Option<BusyGpus>, String>);

/// What the places of an entry say. Whole targets of a type are not asked: they say how they are by their control plane.
pub(super) fn answers<'a>(
    ctx: &'a Ctx,
    data: &'a Data,
    entry: &'a QueueEntry,
    picks: &'a [Pick],
    lately: &'a Lately,
) -> Box<dyn Iterator<Item = Answer<'a>> + 'a> {
    let first = picks.first().and_then(|pick| data.target(&pick.target));
    if first.is_some_and(|target| is_machine(&target)) {
        let usable = hosts::usable(ctx, picks, &entry.spec.ask, lately);
        Box::new(usable.map(|(pick, busy)| (pick, busy.map(Some))))
    } else {
        Box::new(picks.iter().map(|pick| {
            let leads = data.target(&pick.target).map(|target| leads_to(ctx, data, entry, &target));
            (pick, leads.unwrap_or(Ok(())).map(|()| None).map_err(|error| error.message))
        }))
    }
}

/// Refuses a target to whose workers there is no way as things are set up; a script brings its own.
fn leads_to(ctx: &Ctx, data: &Data, entry: &QueueEntry, target: &Target) -> Result<(), Error> {
    if entry.spec.command.is_none() { Ok(()) } else { doors::must_lead_to(ctx, data, target) }
}

/// Those of some that begin nowhere as things are set up, however long they wait, each with the reason: there is no way to
/// the target that they name, or they wait for one of those.
pub fn hopeless(
    ctx: &Ctx,
    data: &Data,
    is_meant: &dyn Fn(&QueueEntry) -> bool,
) -> Vec<(JobId, Error)> {
    let mut hopeless: Vec<(JobId, Error)> = Vec::new();
    let queues = data.queues();
    let meant: Vec<&QueueEntry> = queues.entries.iter().filter(|entry| is_meant(entry)).collect();
    for entry in &meant {
        let queue = queues.queue(&entry.queue);
        let wish = Wish::of_entry(data, entry, queue.as_ref());
        let target = wish.name().and_then(|name| data.resolve_target(name));
        let way = target.map(|target| leads_to(ctx, data, entry, &target));
        if let Some(Err(error)) = way {
            hopeless.push((entry.id(), error));
        }
    }
    loop {
        let is_known = |id: &JobId| hopeless.iter().any(|(known, _)| known == id);
        let next = meant.iter().filter(|entry| !is_known(&entry.id())).find_map(|entry| {
            let after = entry.after.iter().find(|after| is_known(&after.job))?;
            Some((entry.id(), Error::refused(format!("it waits for {}", after.of()))))
        });
        match next {
            Some(next) => hopeless.push(next),
            None => return hopeless,
        }
    }
}

fn is_machine(target: &Target) -> bool {
    !target.capacity.is_unlimited() && matches!(target.machines, Machines::Fixed | Machines::Here)
}

/// Says of those entries that would begin at the next look, and are meant, whether a machine of theirs can be used: one
/// that has none waits, with what each machine said.
pub fn tell(
    ctx: &Ctx,
    data: &Data,
    standings: &mut [EntryStanding<Vec<Pick>>],
    is_meant: &dyn Fn(&QueueEntry) -> bool,
) {
    // Entries that wish for the same machines ask them once.
    let mut said: Vec<(&QueueEntry, Vec<Pick>, Option<String>)> = Vec::new();
    for standing in standings.iter_mut().filter(|standing| standing.waits.is_none()) {
        let Some(entry) = data.queues().entries.get(standing.entry) else { continue };
        let Some(picks) = standing.starts.first().filter(|_| is_meant(entry)) else { continue };
        let is_same = |other: &(&QueueEntry, Vec<Pick>, Option<String>)| {
            other.0.spec.ask == entry.spec.ask && other.1 == *picks
        };
        let known = said.iter().find(|other| is_same(other)).map(|(_, _, why)| why.clone());
        let why = known.unwrap_or_else(|| {
            let why = trouble(ctx, data, entry, picks);
            said.push((entry, picks.clone(), why.clone()));
            why
        });
        if let Some(why) = why {
            standing.waits = Some(WaitReason::NoPlace { why, kept: None });
        }
    }
}

/// Why none of these places can be used; `None` where one can.
fn trouble(ctx: &Ctx, data: &Data, entry: &QueueEntry, picks: &[Pick]) -> Option<String> {
    let mut all = Vec::new();
    for (pick, answer) in answers(ctx, data, entry, picks, &Lately::default()) {
        match answer {
            Ok(_) => return None,
            Err(why) => all.push(format!("{}: {why}", pick.target)),
        }
    }
    (!all.is_empty()).then(|| all.join("; "))
}
