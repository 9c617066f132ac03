//! Takes what is called out of the queue: whole entries, or members of groups while others of those wait on.

use crate::base::called::WaitingCalled;
use crate::base::queue_entries::gone;
use crate::{Ctx, Error};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::member::Array;

use super::{edit, unbegun};

/// Takes out what is called, all of it or nothing. Nothing of that begins. What has begun meanwhile is an error.
pub fn take_out(ctx: &Ctx, called: &[WaitingCalled]) -> Result<(), Error> {
    if called.is_empty() {
        return Ok(());
    }
    let mut whole: Vec<JobId> = Vec::new();
    for WaitingCalled { id, members } in called {
        if members.is_none() && !whole.contains(id) {
            whole.push(id.clone());
        }
    }
    let mut some: Vec<(&JobId, Vec<u32>)> = Vec::new();
    for WaitingCalled { id, members } in called {
        let Some(members) = members.as_ref().filter(|_| !whole.contains(id)) else { continue };
        match some.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => known.extend(members),
            None => some.push((id, members.clone())),
        }
    }
    ctx.transact(|tx| {
        edit::take_out(tx, &whole)?;
        for (id, members) in &some {
            let queues = tx.data.queues_mut();
            let entry = queues.entry_mut(id).ok_or_else(gone)?;
            let array = entry.spec.array.take().ok_or_else(gone)?;
            let all = array.indexes();
            if !members.iter().all(|index| all.contains(index)) {
                return Err(gone());
            }
            let rest = all.iter().copied().filter(|index| !members.contains(index)).collect();
            let mut taken = entry.clone();
            taken.spec.array = Array::of(members.iter().copied());
            match array.only(rest) {
                Some(rest) => entry.spec.array = Some(rest),
                None => drop(queues.take(id)),
            }
            unbegun::archive(tx, &taken);
        }
        Ok(())
    })
}

/// What is at work by now of the members that were called.
pub fn at_work(ctx: &Ctx, called: &[WaitingCalled]) -> Result<Vec<JobId>, Error> {
    let data = ctx.data()?;
    let is_meant = |job: &&Job| {
        let of = job.member().filter(|_| job.status.is_live());
        of.is_some_and(|member| {
            let group = JobId::new(job.user.clone(), member.group);
            called.iter().any(|called| {
                let indexes = called.members.as_ref();
                called.id == group && indexes.is_none_or(|indexes| indexes.contains(&member.index))
            })
        })
    };
    Ok(data.jobs().filter(is_meant).map(Job::id).collect())
}
