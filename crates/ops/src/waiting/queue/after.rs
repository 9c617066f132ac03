//! What an entry waits for to end before it begins.

use std::collections::HashSet;

use crate::base::called::leaves_called;
use crate::base::ctx::user_of;
use crate::base::queue_entries::awaited::{AwaitedEnds, End, Met, how_it_ended, index_in, met};
use crate::base::queue_entries::tasks::settle_in;
use crate::{Ctx, Error};
use tpu_core::model::archived::Archived;
use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::{After, AfterWhich, QueueEntry};
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::lineage::Links;
use tpu_core::model::member::{Array, Member};
use tpu_core::model::time::Timestamp;
use tpu_system::store::Tx;

/// What was cleaned away so many seconds before a group was submitted is none of it, whatever a clock said.
const LONG_AGO_S: i64 = 24 * 3600;

/// What one word of `after=` waits for: a number, a member `12_3`, another user's `bob/7`, a name or a tag. A name means
/// the jobs of that name that are live, wait or come back, else the newest; a group of that name is waited for as a whole.
pub fn called(
    data: &Data,
    user: &UserName,
    which: AfterWhich,
    word: &str,
) -> Result<Vec<After>, Error> {
    let (owner, called) = match word.rsplit_once('/') {
        Some((owner, called)) => (UserName::from(owner), called),
        None => (user.clone(), word),
    };
    if let Some(member) = Member::parse(called) {
        let job = JobId::new(owner, member.group);
        return Ok(vec![After { which, job, member: Some(member.index), met: None }]);
    }
    if let Ok(number) = called.parse() {
        let job = JobId::new(owner, JobNumber(number));
        return Ok(vec![After { which, job, member: None, met: None }]);
    }
    let mut ids = named(data, user_of(data, &owner)?, called.trim_start_matches("name:"));
    if !called.starts_with("name:") {
        let tagged = tagged(data, user_of(data, &owner)?, called.trim_start_matches("tag:"));
        ids.extend(tagged.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>());
    }
    if ids.is_empty() {
        return Err(Error::not_found(format!(
            "no job of {owner} has the number, name or tag '{called}'"
        ))
        .hint("as in after=12, after=12_3, after=NAME, after=TAG; `tpu check` lists the jobs"));
    }
    Ok(ids.into_iter().map(|job| After { which, job, member: None, met: None }).collect())
}

/// The jobs of a name for which somebody can wait, each once: groups by their own numbers.
fn named(data: &Data, user: &User, name: &str) -> Vec<JobId> {
    let links = Links::of(user);
    let number_of = |job: &Job| job.member().map_or(job.windows_id, |of| of.group);
    let leaves = leaves_called(user, &links, name);
    let mut numbers: Vec<JobNumber> =
        leaves.iter().filter_map(|leaf| user.job(*leaf)).map(number_of).collect();
    let entries = data.queues().entries.iter().filter(|entry| entry.user == user.name);
    for entry in entries.filter(|entry| entry.spec.name.as_deref() == Some(name)) {
        // What waits to continue from an attempt is that job, which is among them.
        let is_known = entry.succeeds.is_some_and(|of| links.lineage(of.job).is_some());
        let group = entry.spec.member.map(|member| member.group);
        numbers.extend((!is_known).then(|| group.unwrap_or(entry.number)));
    }
    let mut seen = HashSet::new();
    numbers.retain(|number| seen.insert(*number));
    let newest = numbers.last().copied();
    let ends = AwaitedEnds::of_file(data);
    let id = |number: JobNumber| JobId::new(user.name.clone(), number);
    let is_open = |number: &JobNumber| {
        let after = After { which: AfterWhich::Any, job: id(*number), member: None, met: None };
        ends.of(&after).iter().any(|(_, end)| matches!(end, End::Open(..)))
    };
    numbers.retain(is_open);
    if numbers.is_empty() {
        numbers.extend(newest);
    }
    numbers.into_iter().map(id).collect()
}

/// The jobs with a tag.
fn tagged(data: &Data, user: &User, tag: &str) -> Vec<JobId> {
    let has_it = |tags: Option<&str>| tags.is_some_and(|tags| tags.split(',').any(|t| t == tag));
    let records = user.jobs().iter().filter(|job| job.child.is_none());
    let records = records.filter(|job| has_it(job.job_tags.as_deref()));
    let entries = data.queues().entries.iter().filter(|entry| entry.user == user.name);
    let entries = entries.filter(|entry| has_it(entry.spec.tag.as_deref()));
    let waiting: Vec<JobId> = entries.map(QueueEntry::id).collect();
    // A group of which some wait stands for all its members, also for those that have begun.
    let is_of_waiting = |job: &&Job| {
        job.member().is_some_and(|of| waiting.iter().any(|group| group.window == of.group))
    };
    let begun = records.filter(|job| !is_of_waiting(job)).map(Job::id);
    begun.chain(waiting.iter().cloned()).collect()
}

/// Refuses to wait for what is not known, and of a group what has no members to wait for.
pub fn may_be(data: &Data, after: &After, own: Option<&Array>) -> Result<(), Error> {
    let unknown = |who: &str| {
        Error::not_found(format!("there is no job {who}"))
            .hint("`tpu check` and `tpu queue` list what there is")
    };
    let ends = AwaitedEnds::of_file(data);
    if after.which != AfterWhich::Each {
        return match ends.of(after).as_slice() {
            [(who, End::Gone)] => Err(unknown(who)),
            _ => Ok(()),
        };
    }
    let Some(own) = own.filter(|_| after.member.is_none()) else {
        return Err(Error::usage("after_each is about the members of two groups").hint(
            "as in: tpu submit local --array 0-3 after_each=12 -- …; a job alone: after=12",
        ));
    };
    for index in own.indexes() {
        let of_member = After { member: Some(*index), ..after.clone() };
        if let [(who, End::Gone)] = ends.of(&of_member).as_slice() {
            return Err(unknown(who));
        }
    }
    Ok(())
}

/// Takes what has ended as it was wanted out of what entries wait for, where there is such; what goes on is waited for by
/// its newest attempt.
pub(crate) fn forget_met(ctx: &Ctx) -> Result<(), Error> {
    let data = ctx.data()?;
    let ends = AwaitedEnds::of_file(&data);
    if data.queues().entries.iter().all(|entry| ends.still(entry) == entry.after) {
        return Ok(());
    }
    ctx.transact(|tx| {
        forget_met_in(tx);
        Ok(())
    })
}

/// The same as part of a transaction that archives records: nobody knows any more then how they ended.
pub(crate) fn forget_met_in(tx: &mut Tx<'_>) {
    settle_in(tx);
    if tx.data.queues().entries.iter().all(|entry| entry.after.is_empty()) {
        return;
    }
    let ends = AwaitedEnds::of_file(&tx.data);
    let entries = &tx.data.queues().entries;
    let all: Vec<_> = entries.iter().map(|entry| ends.still(entry)).collect();
    if entries.iter().zip(&all).all(|(entry, after)| entry.after == *after) {
        return;
    }
    for (entry, after) in tx.data.queues_mut().entries.iter_mut().zip(all) {
        entry.after = after;
    }
}

/// The same where these records leave the file. Of a group a member that did not end as it was to would be waited for by
/// nobody then, and the others alone would let begin what was to wait for all: it is waited for by its own name.
pub(crate) fn forget_in(tx: &mut Tx<'_>, leaving: &[JobId]) {
    forget_met_in(tx);
    let ends = AwaitedEnds::of_file(&tx.data);
    let entries = &tx.data.queues().entries;
    let all: Vec<_> = entries.iter().map(|entry| ends.in_vain(entry, leaving)).collect();
    if all.iter().all(Vec::is_empty) {
        return;
    }
    for (entry, in_vain) in tx.data.queues_mut().entries.iter_mut().zip(all) {
        entry.after.extend(in_vain);
    }
}

/// Refuses to wait for a group of which a member that was cleaned away did not end as it is to: nothing but the archive
/// tells of that.
pub(crate) fn refuse_in_vain(ctx: &Ctx, data: &Data, after: &After) -> Result<(), Error> {
    let is_whole =
        after.member.is_none() && matches!(after.which, AfterWhich::Ok | AfterWhich::Not);
    let Some(since) = submitted_at(data, &after.job).filter(|_| is_whole) else { return Ok(()) };
    let user = user_of(data, &after.job.user)?;
    let known: HashSet<u32> = user.jobs().iter().filter_map(|job| index_in(job, after)).collect();
    for archived in ctx.store.archived() {
        let Archived { at, job, .. } = archived?;
        if at.plus_seconds(LONG_AGO_S) < since {
            break;
        }
        let index = index_in(&job, after).filter(|index| !known.contains(index));
        // An earlier group may have had the same number.
        let is_of_it = job.launch.as_ref().is_some_and(|launch| match launch.queued {
            Some(queued) => queued >= since,
            None => launch.at >= since,
        });
        let is_last = job.user == after.job.user && job.child.is_none();
        let Some(index) = index.filter(|_| is_last && is_of_it) else { continue };
        let end = match &job.status {
            Status::Finished => End::Well,
            _ => End::Ill(how_it_ended(&job)),
        };
        let who = format!("{}_{index}", after.job);
        if let Met::Never(why) = met(after.which, &who, &end) {
            return Err(Error::refused(format!("{why}; it was cleaned away")).hint(format!(
                "name the members that are meant, as in after={}_{index}, or wait for their ends alone: after_any={}",
                after.job.window, after.job.window
            )));
        }
    }
    Ok(())
}

/// Since when a group has waited that waits still, or of which a member is known that has.
fn submitted_at(data: &Data, group: &JobId) -> Option<Timestamp> {
    let waits = data.queues().entry(group).map(|entry| entry.since);
    let members = data.user(&group.user)?.jobs().iter();
    let members = members.filter(|job| job.member().is_some_and(|of| of.group == group.window));
    let began = members.filter_map(|job| job.launch.as_ref()?.queued).min();
    waits.or(began)
}
