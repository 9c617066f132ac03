//! Small things that several use cases do with a record: find it by its launch, note an event.

use serde_json::Value;

use tpu_core::model::data::Data;
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_core::model::job::{Event, Job, Status, StoredVerdict};
use tpu_core::plan::decide;
use tpu_system::store::Tx;

use super::ctx::job_mut;
use crate::{Ctx, Error};

/// Adds a line about a job to the journal.
pub fn note(tx: &mut Tx<'_>, id: &JobId, kind: &str, text: impl Into<String>) {
    tx.event(id, kind, text, Value::Null);
}

/// Writes down that a reaction failed for want of a login, if that is it: nothing is tried again until a person says so.
/// Whether it did.
pub(crate) fn needs_login(tx: &mut Tx<'_>, id: &JobId, error: &Error) -> Result<bool, Error> {
    let Some(login) = error.login() else { return Ok(false) };
    let job = job_mut(&mut tx.data, id)?;
    job.intent = None;
    note(tx, id, "needs-login", decide::needs_login(&login));
    job_mut(&mut tx.data, id)?.counts_mut().login = Some(login);
    Ok(true)
}

/// Writes down that a job has failed and by what that shows, and says so in the journal unless that is known already.
pub fn failed(
    tx: &mut Tx<'_>,
    id: &JobId,
    kind: ErrorKind,
    verdict: &StoredVerdict,
) -> Result<(), Error> {
    let job = job_mut(&mut tx.data, id)?;
    let is_known = job.status == Status::Error(kind) && job.verdict.as_ref() == Some(verdict);
    job.apply(&Event::Failed(kind))?;
    job.verdict = Some(verdict.clone());
    if !is_known {
        note(tx, id, "error", format!("{kind}: {}", verdict.line));
    }
    Ok(())
}

/// The job that carries a launch token.
pub fn launched(ctx: &Ctx, token: &LaunchToken) -> Result<JobId, Error> {
    let data = ctx.data()?;
    let found =
        data.jobs().find(|job| job.launch.as_ref().is_some_and(|launch| launch.token == *token));
    found.map(Job::id).ok_or_else(|| {
        Error::not_found("no record belongs to this launch any more")
            .hint("the job was cleaned away; close this window")
    })
}

/// The record of a launch. Refused when the window number belongs to another launch by now.
pub fn of_launch<'a>(
    data: &'a mut Data,
    id: &JobId,
    token: &LaunchToken,
) -> Result<&'a mut Job, Error> {
    let job = job_mut(data, id)?;
    if job.launch.as_ref().is_none_or(|launch| launch.token != *token) {
        return Err(Error::refused(format!("{id} belongs to another launch"))
            .hint("`tpu check` shows the jobs there are"));
    }
    Ok(job)
}

/// Marks a launch that came to nothing.
pub(crate) fn fail_launch(job: &mut Job, reason: &str) -> Result<(), Error> {
    job.apply(&Event::Failed(ErrorKind::Launch))?;
    job.verdict = Some(StoredVerdict {
        kind: ErrorKind::Launch,
        rule: "launch".to_owned(),
        line: reason.lines().next().unwrap_or_default().to_owned(),
        ignored: false,
    });
    Ok(())
}

/// Whether a failure is stored and nobody has seen the end of the program: it may be at work still. What never began is
/// not, wherever its window was to be.
pub(crate) fn may_be_at_work(job: &Job) -> bool {
    let is_unseen = job.launch.as_ref().is_some_and(|launch| launch.exit.is_none() && !launch.over);
    is_unseen && matches!(job.status, Status::Error(_)) && !job.never_began()
}

/// Whether a decision about `seen` is one about the record as it is now.
pub fn still_holds(job: &Job, seen: &Job) -> Result<(), Error> {
    let basis = |job: &Job| {
        (
            job.status.clone(),
            job.child,
            job.intent.clone(),
            (job.monitor, job.rules.clone()),
            job.launch.clone(),
            job.recovery.clone(),
        )
    };
    if basis(job) == basis(seen) {
        return Ok(());
    }
    Err(Error::refused(format!("{} has changed since it was looked at", job.id()))
        .hint("it is looked at again"))
}
