//! What an entry waits for to end before it begins.

use crate::model::data::{Data, User};
use crate::model::entry::{After, AfterWhich, QueueEntry};
use crate::model::ids::JobNumber;
use crate::model::job::Status;
use crate::model::lineage;
use crate::ops::{Ctx, Error};

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

/// Refuses to wait for what is not known.
pub fn may_be(data: &Data, after: &After) -> Result<(), Error> {
    match ends(data, after).as_slice() {
        [(who, End::Gone)] => Err(Error::not_found(format!("there is no job {who}"))
            .hint("`tpu check` and `tpu queue` list what there is")),
        _ => Ok(()),
    }
}

/// Takes what has ended as it was wanted out of what entries wait for: nobody knows it any more once its record is
/// archived.
pub fn forget_met(ctx: &Ctx) -> Result<(), Error> {
    let is_met = |data: &Data, after: &After| {
        ends(data, after).iter().all(|(_, end)| {
            matches!(
                (after.which, end),
                (AfterWhich::Any, End::Ended { .. })
                    | (AfterWhich::Ok, End::Ended { well: true })
                    | (AfterWhich::Not, End::Ended { well: false })
            )
        })
    };
    let data = ctx.data()?;
    let waits = |data: &Data| -> Vec<After> {
        let all = data.queues().entries.iter().flat_map(|entry| entry.after.iter());
        all.filter(|after| is_met(data, after)).cloned().collect()
    };
    if waits(&data).is_empty() {
        return Ok(());
    }
    ctx.transact(|tx| {
        let met = waits(&tx.data);
        for entry in &mut tx.data.queues_mut().entries {
            entry.after.retain(|after| !met.contains(after));
        }
        Ok(())
    })
}

/// What an entry waits for.
pub fn of(data: &Data, entry: &QueueEntry) -> Dependence {
    let mut waits = Vec::new();
    for after in &entry.after {
        for (who, end) in ends(data, after) {
            match (after.which, end) {
                (_, End::Open(how)) => waits.push(format!("{who} ({how})")),
                (AfterWhich::Any, _)
                | (AfterWhich::Ok, End::Ended { well: true })
                | (AfterWhich::Not, End::Ended { well: false }) => {}
                (AfterWhich::Not, End::Ended { well: true }) => {
                    return Dependence::Never(format!(
                        "it was to begin if {who} failed, which ended well"
                    ));
                }
                (AfterWhich::Ok, End::Ended { well: false }) => {
                    return Dependence::Never(format!("{who} did not end well"));
                }
                (_, End::Gone) => {
                    return Dependence::Never(format!("{who} is not known any more"));
                }
            }
        }
    }
    if waits.is_empty() {
        return Dependence::Free;
    }
    Dependence::Waits(format!("after {}", waits.join(", ")))
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
            all.push((format!("{}/{leaf}", user.name), end_of(user, leaf)));
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
