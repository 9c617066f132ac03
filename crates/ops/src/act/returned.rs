//! An attempt that was lost works on after all, while its successor is there: one of the two is ended, and both records say
//! so.

use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Event, Intent, KILLING};
use tpu_core::plan::returned::Returned;
use tpu_engine::runner::{StopOrder, StopPart, Unreached};

use super::kill;
use crate::base::ctx::{job_mut, job_of};
use crate::base::{lease, queue_entries, records};
use crate::observe::runners;
use crate::{Ctx, Error};

/// The kind of the events about it.
const RETURNED: &str = "returned";

/// Ends the one that has to go; what was done, in words.
pub fn settle(ctx: &Ctx, lost: &JobId, who: Returned) -> Result<String, Error> {
    match who {
        Returned::Stop => stop(ctx, lost),
        Returned::GiveWay => give_way(ctx, lost),
    }
}

/// Its successor has begun: the attempt that has returned is stopped where it runs. Its record is final and stays as it is.
fn stop(ctx: &Ctx, lost: &JobId) -> Result<String, Error> {
    let data = ctx.data()?;
    let order = StopOrder { part: StopPart::Whole, unreached: Unreached::Refuse };
    runners::stop(ctx, &data, job_of(&data, lost)?, order)?;
    let text = "it was lost, was there again, and was stopped: its successor has begun";
    ctx.transact(|tx| {
        records::note(tx, lost, RETURNED, text);
        Ok(())
    })?;
    Ok(format!("{lost}: {text}"))
}

/// Its successor has not begun: the lineage goes on with the attempt that has returned. From one transaction on the
/// successor is a job of its own that is being killed, so that whoever dies here leaves nothing undone.
fn give_way(ctx: &Ctx, lost: &JobId) -> Result<String, Error> {
    let window = job_of(&*ctx.data()?, lost)?.child;
    let Some(window) = window else { return Err(overtaken(lost)) };
    let child = JobId { window, ..lost.clone() };
    let lease = lease::take(ctx, &child, |job| {
        let is_open = job.status.is_live() && job.child.is_none() && !job.is_being_killed();
        if is_open { Ok(()) } else { Err(overtaken(lost)) }
    })?;
    let text = format!("it was lost, is there again, and goes on; {child} gives way to it");
    ctx.transact(|tx| {
        let now = tx.now;
        let successor = job_mut(&mut tx.data, &child)?;
        lease.check(successor)?;
        lease::free(successor);
        let lease = successor.lease.take();
        successor.father = None;
        let by = lease::me(&ctx.env);
        successor.intent = Some(Intent { action: KILLING.to_owned(), at: now, by });
        let job = job_mut(&mut tx.data, lost)?;
        (job.child, job.intent, job.verdict, job.lease) = (None, None, None, lease);
        job.apply(&Event::Returned)?;
        job.reached = None;
        if let Some(launch) = job.launch.as_mut() {
            (launch.ended, launch.over) = (None, false);
        }
        queue_entries::follow(tx, &child, lost);
        records::note(tx, lost, RETURNED, text.clone());
        Ok(())
    })?;
    kill::kill_one(ctx, &child, Unreached::Refuse)?;
    Ok(format!("{lost}: {text}"))
}

fn overtaken(lost: &JobId) -> Error {
    Error::refused(format!("{lost} and its successor have changed since they were looked at"))
        .hint("they are looked at again")
}
