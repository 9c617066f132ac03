//! What a job has printed: what is kept of it, else what is shown of it.

use std::path::{Path, PathBuf};

use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_engine::runner::Want;
use tpu_engine::runner::window::relay;

use super::{runners, snapshot};
use crate::base::ctx::job_of;
use crate::{Ctx, Error};

/// Bytes at the end of a log file that decide why a job ended.
const TAIL_BYTES: u64 = 256 * 1024;

/// Where the relay of a job holds what is not in its log yet.
const SPOOL: &str = "spool";

/// A character takes no more bytes.
const MOST_BYTES: u64 = 4;

/// Lines of a window that decide why a job ended.
const LINES: u32 = 2_000;

/// The output of a job.
#[derive(Debug)]
pub struct Output {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Where what is printed next begins, for [`after`]; `None` where it is only shown, and not kept.
    pub next: Option<u64>,
}

/// A piece of the output of a job from a byte on, so many bytes at most; nothing if it is not kept, or not any more.
pub fn piece(ctx: &Ctx, id: &JobId, from: u64, most: u64) -> Result<Option<(Vec<u8>, u64)>, Error> {
    let data = ctx.data()?;
    let kept = runners::output(ctx, &data, job_of(&data, id)?, Want::Kept { from, most })?;
    Ok(kept.map(|kept| (kept.bytes.into(), kept.next)))
}

/// Reads all output of a job.
pub fn output(ctx: &Ctx, id: &JobId) -> Result<Output, Error> {
    if let Some((bytes, next)) = piece(ctx, id, 0, u64::MAX)? {
        return Ok(Output { bytes, next: Some(next) });
    }
    window(ctx, id)
}

/// What the window of a job shows, where its output is not kept.
pub fn window(ctx: &Ctx, id: &JobId) -> Result<Output, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    let shown = pane_text(ctx, job, 0).map(|bytes| Output { bytes, next: None });
    shown.ok_or_else(|| {
        let log = job.log_dir.as_deref().unwrap_or("none was reported");
        Error::not_found(format!("{id} has neither a log file nor a window that can be read"))
            .hint(format!("its log directory: {log}"))
    })
}

/// What a job has printed behind the byte at which its last piece ended, and where the next one begins. A job
/// that is not there any more prints nothing.
pub fn after(ctx: &Ctx, id: &JobId, next: u64) -> Result<(Vec<u8>, u64), Error> {
    let data = ctx.data()?;
    let Ok(job) = job_of(&data, id) else { return Ok((Vec::new(), next)) };
    let more = runners::output(ctx, &data, job, Want::Kept { from: next, most: u64::MAX })?;
    Ok(more.map_or_else(|| (Vec::new(), next), |more| (more.bytes.into(), more.next)))
}

/// The line that a job at work here has begun and not ended, such as a question that waits for an answer. What is kept has
/// whole lines alone.
pub fn open_line(ctx: &Ctx, id: &JobId) -> Option<Vec<u8>> {
    let data = ctx.data().ok()?;
    data.job(id).filter(|job| job.status.is_live() && job.engine.is_none())?;
    relay::open_line(&ctx.store.paths().job(id).join(SPOOL))
}

/// A line of one worker, without the words that say so. With several workers each line says whose it is; what does not is
/// the first worker's.
pub fn of_worker(line: &[u8], worker: u32) -> Option<&[u8]> {
    match line.strip_prefix(format!("[worker {worker}] ").as_bytes()) {
        Some(line) => Some(line),
        None if worker == 0 && !line.starts_with(b"[worker ") => Some(line),
        None => None,
    }
}

/// Whether nothing more is to come of a job: its record says so, or the engine that has it. An engine that does not
/// answer says nothing.
pub fn is_over(ctx: &Ctx, id: &JobId) -> Result<bool, Error> {
    let data = ctx.data()?;
    let Ok(job) = job_of(&data, id) else { return Ok(data.queues().entry(id).is_none()) };
    Ok(!job.status.is_live() || job.engine.is_some() && snapshot::is_over(ctx, &data, job))
}

/// Whether an engine has a job: who follows its output does not ask it all the time.
pub fn has_engine(ctx: &Ctx, id: &JobId) -> Result<bool, Error> {
    Ok(job_of(&*ctx.data()?, id).is_ok_and(|job| job.engine.is_some()))
}

/// Whether what a job prints is kept from its first byte on, also where it has printed nothing yet.
pub fn is_kept(ctx: &Ctx, id: &JobId) -> Result<bool, Error> {
    let data = ctx.data()?;
    Ok(job_of(&data, id).is_ok_and(|job| job.is_native() && job.log_dir.is_some()))
}

/// What the job has printed into its window, if its window can be read; `reach` characters of it at least.
pub(crate) fn pane_text(ctx: &Ctx, job: &Job, reach: u32) -> Option<Vec<u8>> {
    let data = ctx.data().ok()?;
    Some(runners::output(ctx, &data, job, shown(reach)).ok()??.bytes.into())
}

/// What is shown of a job, `reach` characters of it at least.
pub fn shown(reach: u32) -> Want {
    Want::Shown { above: Some(LINES.max(reach)), colours: false }
}

/// `<log_dir>/output.log`.
pub(crate) fn log_file(job: &Job) -> Option<PathBuf> {
    job.log_dir.as_ref().map(|dir| Path::new(dir).join("output.log"))
}

/// The end of what is kept of a job's output, if this launch has written any; `reach` characters of it at least.
pub(crate) fn tail_of_output(ctx: &Ctx, job: &Job, reach: u32) -> Option<Vec<u8>> {
    let data = ctx.data().ok()?;
    Some(runners::output(ctx, &data, job, kept_end(reach)).ok()??.bytes.into())
}

/// The end of what is kept of a job's output, `reach` characters of it at least.
pub(crate) fn kept_end(reach: u32) -> Want {
    Want::KeptEnd { bytes: TAIL_BYTES.max(u64::from(reach) * MOST_BYTES) }
}

/// So many bytes of it at most.
pub fn last_bytes(ctx: &Ctx, job: &Job, bytes: u64) -> Option<Vec<u8>> {
    let data = ctx.data().ok()?;
    Some(runners::output(ctx, &data, job, Want::KeptEnd { bytes }).ok()??.bytes.into())
}
