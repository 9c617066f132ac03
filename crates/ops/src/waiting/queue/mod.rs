//! The queue: what is to be started waits here until there is a place for it.
//!
//! [`submit`] puts jobs in, [`edit`] changes what waits, [`pass`] starts those whose turn it is (`alone` lets one process at
//! a time do so, `starts` starts the jobs of one entry), [`keep`] waits at a
//! terminal, [`now`] starts what does not wait. Who comes next is decided by `plan::queue` alone; [`field`] says what
//! is to be had, [`limits`] who holds which place, [`wish`] what
//! is wished for, [`after`] what has to end first, [`presence`] whether somebody is
//! there who would start it, [`expected`] when it is to begin, [`shown`] how it looks in lists, [`supply`] which targets are made for it, `unbegun` what is kept of
//! what never began. Whoever starts something takes it out of the queue in the transaction that claims its attempt
//! ([`crate::act::launch`]): so it is started once, however many processes look at the queue at the same time.

pub mod after;
mod alone;
pub mod at_once;
mod buckets;
pub mod edit;
pub mod expected;
pub mod field;
pub mod keep;
pub mod limits;
pub mod loans;
pub mod members;
pub mod now;
pub mod once;
pub mod order;
pub mod pass;
pub mod places;
pub mod presence;
pub mod requeue;
pub mod shown;
mod starts;
pub mod submit;
pub mod supply;
pub mod tasks;
mod unbegun;
pub mod wanted;
pub mod wish;

use std::collections::HashMap;
use std::rc::Rc;

use crate::base::queue_entries::RENUMBERED;
use crate::base::queue_entries::awaited::{AwaitedEnds, Dependence};
use crate::base::queue_entries::occupancy;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, QueueName};
use tpu_core::model::queue::Queue;
use tpu_core::model::time;
use tpu_core::plan::board::Pick;
use tpu_core::plan::expected::ExpectedStart;
use tpu_core::plan::queue::{self as plan, EntryStanding, Readiness};

use crate::base::watch;
use crate::observe::{journal, stats};
use crate::{Ctx, Error};
use field::{Avoided, Field};
use presence::Absences;
use wish::Wish;

/// How each entry stands, in the order of their turns.
pub fn standings(
    ctx: &Ctx,
    data: &Data,
    avoided: &Avoided,
) -> Result<Vec<EntryStanding<Vec<Pick>>>, Error> {
    let present = presence::count_all(ctx, &data.queues().entries);
    let mut field = Field::of(ctx, data, wishes(data, &present), None, avoided)?;
    Ok(stand(ctx, data, &present, &mut field))
}

/// How something that waits stands when machines have been asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingOutlook {
    /// Why it does not begin, where something keeps it.
    pub why: Option<String>,
    /// When it is expected to, as far as that is worth the time.
    pub expected: Option<ExpectedStart>,
}

/// How each entry stands.
pub fn outlooks(ctx: &Ctx) -> Result<HashMap<JobId, WaitingOutlook>, Error> {
    let mut why = why_each_waits(ctx)?;
    let data = ctx.data()?;
    let mut expected = expected::expected(ctx, &data, &|_| true, expected::OF_LIST)?;
    let each = data.queues().entries.iter().map(|entry| {
        let id = entry.id();
        let (why, expected) = (why.remove(&id), expected.remove(&id));
        (id, WaitingOutlook { why, expected })
    });
    Ok(each.collect())
}

/// Why each entry does not begin, where something keeps it.
pub fn why_each_waits(ctx: &Ctx) -> Result<HashMap<JobId, String>, Error> {
    let data = ctx.data()?;
    if data.queues().entries.is_empty() {
        return Ok(HashMap::new());
    }
    let standings = standings(ctx, &data, &Avoided::new())?.into_iter();
    let why = standings.filter_map(|standing| {
        let entry = data.queues().entries.get(standing.entry)?;
        Some((entry.id(), standing.waits?.to_string()))
    });
    Ok(why.collect())
}

/// What is left for a wish when everybody who waits has chosen.
fn left_over<T>(
    ctx: &Ctx,
    data: &Data,
    wish: &Wish,
    avoided: &Avoided,
    ask: impl FnOnce(&Field<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let present = presence::count_all(ctx, &data.queues().entries);
    let mut field = Field::of(ctx, data, wishes(data, &present), Some(wish), avoided)?;
    drop(stand(ctx, data, &present, &mut field));
    ask(&field)
}

/// `present` says of each entry whether somebody is there for it.
fn stand(
    ctx: &Ctx,
    data: &Data,
    present: &[bool],
    field: &mut Field<'_>,
) -> Vec<EntryStanding<Vec<Pick>>> {
    let limits = occupancy::of_users(ctx, data);
    let queues = data.queues();
    let ends = AwaitedEnds::of_file(data);
    let absences = Absences::default();
    let readiness = |at: usize| {
        let Some(entry) = queues.entries.get(at) else { return Readiness::default() };
        let after = match ends.dependence(entry) {
            Dependence::Free => None,
            Dependence::Waits(why) | Dependence::Never(why) => Some(why),
        };
        let each = ends.each(entry).map(|each| (each.ready, each.waits));
        let is_present = present.get(at).copied().unwrap_or_default();
        let absent = (!is_present).then(|| absences.of(ctx, entry));
        Readiness { after, members: each, absent }
    };
    let at_work = occupancy::at_work(data, &limits::over(ctx, data));
    plan::stand(queues, (at_work, &limits), &readiness, field, ctx.clock.now())
}

/// What each entry that counts wishes for.
fn wishes(data: &Data, present: &[bool]) -> HashMap<JobId, Rc<Wish>> {
    let queues = data.queues();
    let known: HashMap<QueueName, Queue> =
        queues.all().into_iter().map(|queue| (queue.name.clone(), queue)).collect();
    let counted = queues.entries.iter().zip(present).filter(|(_, is_present)| **is_present);
    let wish = |(entry, _): (&QueueEntry, &bool)| {
        (entry.id(), Rc::new(Wish::of_entry(data, entry, known.get(&entry.queue))))
    };
    counted.map(wish).collect()
}

/// How an entry stands in its queue.
pub(crate) fn standing_of(
    ctx: &Ctx,
    data: &Data,
    id: &JobId,
) -> Result<Option<EntryStanding<Vec<Pick>>>, Error> {
    let at = data.queues().entries.iter().position(|entry| entry.id() == *id);
    let mut standings = standings(ctx, data, &Avoided::new())?;
    places::tell(ctx, data, &mut standings, &|entry| entry.id() == *id);
    Ok(standings.into_iter().find(|standing| Some(standing.entry) == at))
}

/// Why an entry has not begun, for people.
pub fn why<P>(ctx: &Ctx, standing: &EntryStanding<P>) -> String {
    match &standing.waits {
        Some(reason) => reason.to_string(),
        None => begins(watch::acting(ctx).map(|note| ctx.clock.now().seconds_since(note.turned))),
    }
}

/// That nothing keeps an entry from beginning; `looked` is how many seconds ago the daemon looked, if one acts.
fn begins(looked: Option<u64>) -> String {
    /// A look that is no older needs no word.
    const RECENT_S: u64 = 10;
    match looked {
        None => "nothing is in its way".to_owned(),
        Some(ago) if ago < RECENT_S => "it starts at the next look".to_owned(),
        Some(ago) => {
            format!("it begins at the daemon's next look; its last was {} ago", time::age(ago))
        }
    }
}

/// The job that an entry has become under another number, if it has.
pub fn renumbered(ctx: &Ctx, id: &JobId) -> Result<Option<JobId>, Error> {
    let newest = journal::newest(ctx, Some(&id.user), Some(id.window), 1)?;
    Ok(newest.iter().find(|event| event.kind == RENUMBERED).and_then(stats::becomes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_look_is_said_with_its_age() {
        assert_eq!(begins(None), "nothing is in its way");
        assert_eq!(begins(Some(9)), "it starts at the next look");
        assert_eq!(begins(Some(40)), "it begins at the daemon's next look; its last was 40s ago");
    }
}
