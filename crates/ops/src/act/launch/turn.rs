//! What a claim needs of the queue in its own transaction: an entry gives up its place there, and whoever comes past the
//! queue keeps its limits.

use std::borrow::Cow;

use crate::Error;
use crate::base::queue_entries::awaited::{AwaitedEnds, Dependence};
use crate::base::queue_entries::occupancy::{
    self, OfSuccessor, counted, has_place, is_live, is_live_or_being_brought_back,
};
use crate::base::queue_entries::{gone, tasks};
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::queue::QueueState;
use tpu_core::plan::queue::{self as plan, Cap, used_up};
use tpu_system::store::Tx;

use super::plan::{LaunchPlan, Turn};

/// Takes a job out of the queue as part of the transaction that claims it. Refused when that is not to begin any
/// more, and when a limit is reached.
pub(super) fn hand_in(tx: &mut Tx<'_>, turn: &Turn, plan: &LaunchPlan) -> Result<(), Error> {
    let at_work = occupancy::at_work(&tx.data, &turn.over);
    let queues = tx.data.queues();
    let entry = queues.entry(&turn.entry).ok_or_else(gone)?;
    if let Some(hold) = &entry.held {
        return Err(Error::refused(format!("{} is {hold}", turn.entry))
            .passing()
            .hint(format!("let it begin: tpu unhold {}", turn.entry.window)));
    }
    tasks::is_needed(&tx.data, entry)?;
    let queue = queues.queue(&entry.queue).ok_or_else(gone)?;
    if queue.state == QueueState::Paused {
        return Err(Error::refused(format!("queue {} is paused", queue.name))
            .passing()
            .hint(format!("let it begin: tpu queue resume {}", queue.name)));
    }
    let ends = AwaitedEnds::of_file(&tx.data);
    if let Dependence::Waits(why) | Dependence::Never(why) = ends.dependence(entry) {
        let what = format!("{} is to begin {why}", turn.entry);
        return Err(Error::refused(what).passing().hint("`tpu queue` says what waits for what"));
    }
    if let Some(each) = ends.each(entry)
        && turn.member.is_none_or(|member| !each.ready.contains(&member))
    {
        let what = format!("of {} some are to begin {}", turn.entry, each.waits);
        return Err(Error::refused(what).passing().hint("`tpu queue` says what waits for what"));
    }
    let limits = plan.most.map(|most| (plan.user.clone(), most)).into_iter().collect();
    // A limit that was set since is kept member by member.
    if turn.is_whole_group && (queue.max_parallel.is_some() || plan.most.is_some()) {
        let what = format!("{} may not begin as a whole any more", turn.entry);
        return Err(Error::refused(what).passing().hint("a limit was set meanwhile"));
    }
    if let Some(cap) = plan::cap(queues, entry, &queue, &at_work, &limits)
        && !turn.is_whole_group
    {
        return Err(Error::refused(cap.to_string())
            .passing()
            .hint("wait until one of those has ended, or raise the limit"));
    }
    let now = tx.now;
    let queues = tx.data.queues_mut();
    let entry = queues.entry_mut(&turn.entry).ok_or_else(gone)?;
    if turn.is_whole_group && entry.spec.array != plan.spec.array {
        return Err(gone());
    }
    let rest = match (&entry.spec.array, turn.member) {
        (Some(array), Some(index)) if !array.indexes().contains(&index) => return Err(gone()),
        (Some(array), Some(index)) => array.without(index),
        (_, _) => None,
    };
    match rest {
        Some(rest) => entry.spec.array = Some(rest),
        None => drop(queues.take(&turn.entry)),
    }
    for passed in &turn.passes {
        let Some(front) = queues.entry_mut(passed) else { continue };
        front.passed.times = front.passed.times.saturating_add(1);
        front.passed.since.get_or_insert(now);
    }
    Ok(())
}

/// Refuses what somebody starts past the limit of his own, or brings back past that of its queue, or of its group while
/// members of that wait. What its rule brings back has kept its place, if others have not got it all the same.
pub(super) fn may_begin(data: &Data, plan: &LaunchPlan) -> Result<(), Error> {
    if plan.force {
        return Ok(());
    }
    let past_limit = |cap: Cap| {
        Error::refused(cap.to_string()).hint(
            "wait for your turn: tpu submit, or run with --wait; or raise the limit, or --force",
        )
    };
    let (user, most) = (&plan.user, plan.most);
    let Some(parent) = &plan.parent else {
        let jobs = plan.spec.array.as_ref().map_or(1, |array| array.indexes().len());
        let cap = most.and_then(|_| used_up((user, most), &occupancy::at_work(data, &[]), jobs));
        return cap.map_or(Ok(()), |cap| Err(past_limit(cap)));
    };
    let before = [JobId::new(user.clone(), parent.window)];
    if let Some(reaction) = &parent.reaction {
        let seen = &reaction.seen;
        // Two for whom everything was made ready do not wait for each other.
        let counts =
            if seen.is_being_brought_back() { is_live } else { is_live_or_being_brought_back };
        return has_place(data, (seen, most), || Cow::Owned(counted(data, &before, counts)));
    }
    let of = (plan.spec.queue.as_ref(), plan.spec.member);
    let limits = OfSuccessor::of(data, (user, most), of);
    let cap =
        limits.and_then(|limits| limits.caps(data, &occupancy::at_work(data, &before)).next());
    cap.map_or(Ok(()), |cap| Err(past_limit(cap)))
}
