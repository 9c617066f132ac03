//! Launches that are claimed and not submitted yet: whoever holds them says from time to time that he is still at
//! it, and asks once more, before he submits them, whether they still stand.

use std::time::Duration;

use crate::base::records;
use crate::{Ctx, Error};
use tpu_core::model::job::{Job, Launch};
use tpu_system::store::Tx;

/// Launches that have not been handed over yet are said to be about to be so often: much sooner than one is taken
/// for a launch that nobody goes on with.
pub(super) const SAY_AGAIN: Duration = Duration::from_secs(5);

/// Says that somebody is still at these launches: one of which nothing is heard is given up by whoever looks next.
pub(super) fn say_again<'a>(ctx: &Ctx, jobs: impl Iterator<Item = &'a Job>) {
    let jobs: Vec<&Job> = jobs.collect();
    let said = ctx.transact(|tx| {
        let now = ctx.clock.now();
        for job in jobs {
            if let Some(launch) = open(tx, job) {
                launch.at = now;
            }
        }
        Ok(())
    });
    // A launch that was given up for want of it is told as such when it is settled.
    drop(said);
}

/// The launch in the record, as long as it is unconfirmed and of this very token.
fn open<'t>(tx: &'t mut Tx<'_>, job: &Job) -> Option<&'t mut Launch> {
    let token = &job.launch.as_ref()?.token;
    let job = records::of_launch(&mut tx.data, &job.id(), token).ok()?;
    let stands = job.status.is_live() && !job.is_being_killed();
    job.launch.as_mut().filter(|launch| stands && !launch.confirmed)
}

/// Lays ready what engines are to find, and the copy of a group, which may take its time, and meanwhile says of all these
/// launches that somebody is at them. For one window nothing is laid ready here.
pub(super) fn while_at<T>(ctx: &Ctx, jobs: &[&Job], work: impl FnOnce() -> T) -> T {
    if is_one_window(jobs) {
        return work();
    }
    let (mut work, mut done) = (Some(work), None);
    ctx.threads.while_at(SAY_AGAIN, &|| say_again(ctx, jobs.iter().copied()), &mut || {
        done = work.take().map(|work| work());
    });
    done.expect("the work is done once")
}

fn is_one_window(jobs: &[&Job]) -> bool {
    matches!(jobs, [job] if job.engine.is_none() && job.member().is_none())
}

/// Which of these launches still stand, now that they are about to be submitted. What runs windows asks for itself
/// before anything begins there; an engine does not.
pub(super) fn still_stand(ctx: &Ctx, jobs: &[&Job]) -> Result<Vec<bool>, Error> {
    if is_one_window(jobs) {
        return Ok(vec![true; jobs.len()]);
    }
    ctx.transact(|tx| {
        let now = ctx.clock.now();
        let stands = |job: &&Job| open(tx, job).map(|launch| launch.at = now).is_some();
        Ok(jobs.iter().map(stands).collect())
    })
}

/// Why one that does not stand is not submitted.
pub(super) fn fallen(job: &Job) -> Error {
    let id = job.id();
    Error::refused(format!("{id} was killed or given up before it was submitted"))
        .hint(format!("nothing was started; `tpu check {}` shows its record", id.user))
}
