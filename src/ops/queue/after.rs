//! What an entry waits for to end before it begins.

use crate::model::data::{Data, User};
use crate::model::entry::{After, AfterWhich, QueueEntry};
use crate::model::ids::{JobId, JobNumber};
use crate::model::job::{Status, Succession};
use crate::model::lineage;
use crate::model::member::Array;
use crate::ops::{Ctx, Error};
use crate::plan::slots::first_of;

/// What the jobs that an entry waits for have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// It waits for nothing any more.
    Free,
    /// It waits for these.
    Waits(String),
    /// It can begin no more: what it waited for has ended otherwise.
    Never(String),
}

/// How a job that is waited for stands.
enum End {
    /// It has ended, well or not.
    Ended { well: bool },
    /// It has not ended.
    Open(String),
    /// Nobody knows it any more.
    Gone,
}

/// What the members of a group have come to, where each waits for the one of the same index of another group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    /// Those that wait for nothing any more.
    pub ready: Vec<u32>,
    /// What the others wait for.
    pub waits: String,
    /// Those that can begin no more, and why.
    pub never: Vec<(u32, String)>,
}

/// What one end is to somebody who waits for it.
enum Met {
    Yes,
    NotYet(String),
    Never(String),
}

/// Whether an end is the one that is waited for.
fn met(which: AfterWhich, who: &str, end: End) -> Met {
    match (which, end) {
        (_, End::Open(how)) => Met::NotYet(format!("{who} ({how})")),
        // However it ended, it has.
        (AfterWhich::Any, End::Ended { .. } | End::Gone)
        | (AfterWhich::Ok | AfterWhich::Each, End::Ended { well: true })
        | (AfterWhich::Not, End::Ended { well: false }) => Met::Yes,
        (AfterWhich::Not, End::Ended { well: true }) => {
            Met::Never(format!("it was to begin if {who} failed, which ended well"))
        }
        (_, End::Gone) => Met::Never(format!("{who} is not known any more")),
        (AfterWhich::Ok | AfterWhich::Each, End::Ended { well: false }) => {
            Met::Never(format!("{who} did not end well"))
        }
    }
}

/// Refuses to wait for what is not known, and of a group what has no members to wait for.
pub fn may_be(data: &Data, after: &After, own: Option<&Array>) -> Result<(), Error> {
    let unknown = |who: &str| {
        Error::not_found(format!("there is no job {who}"))
            .hint("`tpu check` and `tpu queue` list what there is")
    };
    if after.which != AfterWhich::Each {
        return match ends(data, after).as_slice() {
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
        if let [(who, End::Gone)] = ends(data, &of_member).as_slice() {
            return Err(unknown(who));
        }
    }
    Ok(())
}

/// Takes what has ended as it was wanted out of what entries wait for: nobody knows it any more once its record is
/// archived.
pub fn forget_met(ctx: &Ctx) -> Result<(), Error> {
    let data = ctx.data()?;
    if data.queues().entries.iter().all(|entry| still(&data, entry) == entry.after) {
        return Ok(());
    }
    ctx.transact(|tx| {
        let queues = tx.data.queues();
        let all: Vec<_> = queues.entries.iter().map(|entry| still(&tx.data, entry)).collect();
        for (entry, after) in tx.data.queues_mut().entries.iter_mut().zip(all) {
            entry.after = after;
        }
        Ok(())
    })
}

/// What an entry still waits for.
fn still(data: &Data, entry: &QueueEntry) -> Vec<After> {
    let is_met = |after: &After| {
        let mut ends = ends(data, after).into_iter();
        ends.all(|(who, end)| matches!(met(after.which, &who, end), Met::Yes))
    };
    let (each, whole): (Vec<_>, Vec<_>) =
        entry.after.iter().partition(|after| after.which == AfterWhich::Each);
    let mut still: Vec<After> = whole.into_iter().filter(|after| !is_met(after)).cloned().collect();
    let own = entry.spec.array.as_ref().map(Array::indexes).unwrap_or_default();
    for after in each {
        let is_over = |index: &u32| is_met(&After { member: Some(*index), ..after.clone() });
        let known = after.met.as_ref().map(Array::indexes).unwrap_or_default();
        let (over, open): (Vec<u32>, Vec<u32>) =
            own.iter().partition(|index| known.contains(index) || is_over(index));
        if !open.is_empty() {
            still.push(After { met: Array::of(over), ..after.clone() });
        }
    }
    still
}

/// What an entry waits for as a whole.
pub fn of(data: &Data, entry: &QueueEntry) -> Dependence {
    let mut waits = Vec::new();
    if let Some(of) = entry.succeeds {
        let job = JobId::new(entry.user.clone(), of.job);
        match data.job(&job) {
            None => return Dependence::Never(format!("{job} is not known any more")),
            Some(before) if before.status.is_live() => waits.push(format!("{job} has stopped")),
            Some(before) => {
                if let Some(child) = before.child {
                    return Dependence::Never(format!("{job} goes on as {child} already"));
                }
                if before.status == Status::Finished && of.how == Succession::Resume && !of.is_told
                {
                    return Dependence::Never(format!("{job} ended well by itself"));
                }
            }
        }
    }
    for after in entry.after.iter().filter(|after| after.which != AfterWhich::Each) {
        for (who, end) in ends(data, after) {
            match met(after.which, &who, end) {
                Met::Yes => {}
                Met::NotYet(whom) => waits.push(whom),
                Met::Never(why) => return Dependence::Never(why),
            }
        }
    }
    if waits.is_empty() {
        return Dependence::Free;
    }
    Dependence::Waits(format!("after {}", first_of(&waits)))
}

/// What its members wait for one by one, if they do.
pub fn each(data: &Data, entry: &QueueEntry) -> Option<Each> {
    let conditions: Vec<&After> =
        entry.after.iter().filter(|after| after.which == AfterWhich::Each).collect();
    if conditions.is_empty() {
        return None;
    }
    let (mut ready, mut waits, mut never) = (Vec::new(), Vec::new(), Vec::new());
    for index in entry.spec.array.as_ref()?.indexes() {
        let open = conditions
            .iter()
            .filter(|after| after.met.as_ref().is_none_or(|met| !met.indexes().contains(index)));
        let stands = open.flat_map(|after| {
            let of_member = After { member: Some(*index), ..(*after).clone() };
            ends(data, &of_member).into_iter().map(|(who, end)| met(after.which, &who, end))
        });
        let mut is_ready = true;
        for stand in stands {
            match stand {
                Met::Yes => continue,
                Met::NotYet(whom) => waits.push(whom),
                Met::Never(why) => never.push((*index, why)),
            }
            is_ready = false;
        }
        if is_ready {
            ready.push(*index);
        }
    }
    never.dedup_by_key(|(index, _)| *index);
    let waits = match never.first() {
        Some((_, why)) if waits.is_empty() => why.clone(),
        _ => format!("after {}", first_of(&waits)),
    };
    Some(Each { ready, waits, never })
}

/// The jobs of one condition, each with how it stands.
fn ends(data: &Data, after: &After) -> Vec<(String, End)> {
    let Some(user) = data.user(&after.job.user) else {
        return vec![(after.of(), End::Gone)];
    };
    let member = after.member;
    let waiting = data.queues().entry(&after.job);
    let mut all: Vec<(String, End)> = Vec::new();
    if let Some(waiting) = waiting {
        let waits = match (&waiting.spec.array, member) {
            (Some(array), Some(index)) => array.indexes().contains(&index),
            (_, _) => true,
        };
        if waits {
            all.push((after.of(), End::Open("queued".to_owned())));
        }
    }
    let is_meant = |job: JobNumber| {
        user.job(job).and_then(crate::model::job::Job::member).is_some_and(|of| {
            of.group == after.job.window && member.is_none_or(|index| of.index == index)
        })
    };
    for lineage in lineage::lineages(user) {
        let Some(leaf) = lineage.leaf() else { continue };
        let is_it = lineage.windows.contains(&after.job.window) && after.member.is_none();
        if is_it || is_meant(leaf) {
            let id = JobId::new(user.name.clone(), leaf);
            let waits = data.queues().successor_of(&id);
            let end = waits.map_or_else(
                || end_of(user, leaf),
                |waits| End::Open(format!("waits to go on as {}", waits.number)),
            );
            all.push((id.to_string(), end));
        }
    }
    if all.is_empty() {
        all.push((after.of(), End::Gone));
    }
    all
}

/// How the last attempt of a lineage stands, by its record.
fn end_of(user: &User, leaf: JobNumber) -> End {
    let Some(job) = user.job(leaf) else { return End::Gone };
    match &job.status {
        Status::Finished => End::Ended { well: true },
        Status::Error(kind) if super::limits::comes_back(job) => {
            End::Open(format!("{kind}, and comes back"))
        }
        Status::Killed(_) | Status::Error(_) => End::Ended { well: false },
        Status::Unset | Status::Starting | Status::Running => {
            End::Open(job.status.word().unwrap_or("starting").to_owned())
        }
        Status::Resumed(_) | Status::Rerunned(_) => End::Open("goes on".to_owned()),
    }
}
