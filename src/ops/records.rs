//! Small things that several use cases do with a record: find it by its launch, note an event, read the
//! exit code that its launcher left.

use serde_json::Value;

use crate::model::data::Data;
use crate::model::exit::Exit;
use crate::model::facts::{ErrorKind, PaneFact};
use crate::model::ids::{JobId, LaunchToken};
use crate::model::job::{Event, Job, StoredVerdict};
use crate::store::Tx;

use super::ctx::job_mut;
use super::{Ctx, Error};

/// Adds a line about a job to the journal.
pub fn note(tx: &mut Tx<'_>, id: &JobId, kind: &str, text: impl Into<String>) {
    tx.event(id, kind, text, Value::Null);
}

/// A file that the launcher keeps beside itself; `None` if it is not there.
pub fn launcher_file(ctx: &Ctx, id: &JobId, name: &str) -> Option<Vec<u8>> {
    let path = ctx.store.paths().job(id).join(name);
    ctx.store.disk().read(&path).ok().map(|contents| contents.bytes)
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
pub fn fail_launch(job: &mut Job, reason: &str) -> Result<(), Error> {
    job.apply(&Event::Failed(ErrorKind::Launch))?;
    job.verdict = Some(StoredVerdict {
        kind: ErrorKind::Launch,
        rule: "launch".to_owned(),
        line: reason.lines().next().unwrap_or_default().to_owned(),
        ignored: false,
    });
    Ok(())
}

/// Whether a pane that no record claims is of no launch, or of one of this data file. Several data files
/// may have windows on one server, and each closes only its own: those whose launcher lies in its state
/// directory.
pub fn is_of_this_file(ctx: &Ctx, pane: &PaneFact) -> bool {
    match (&pane.launch, &pane.job) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(token), Some(id)) => launcher_file(ctx, id, "spec").is_some_and(|spec| {
            spec.split(|byte| *byte == 0).next() == Some(token.as_str().as_bytes())
        }),
    }
}

/// How the command of a job has ended, by its record or by what its launcher left.
pub fn exit_of(ctx: &Ctx, job: &Job) -> Option<Exit> {
    let code = job.launch.as_ref()?.exit.or_else(|| recorded_exit(ctx, job))?;
    Some(job.exit(code))
}

/// The exit code that the launcher wrote beside itself, with the token of its launch: the directory may
/// still be that of an earlier job of this number.
pub fn recorded_exit(ctx: &Ctx, job: &Job) -> Option<i32> {
    let launch = job.launch.as_ref()?;
    let bytes = launcher_file(ctx, &job.id(), "exit")?;
    let (code, token) = std::str::from_utf8(&bytes).ok()?.trim().split_once(' ')?;
    (token == launch.token.as_str()).then(|| code.parse().ok())?
}
