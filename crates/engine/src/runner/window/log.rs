//! The output of a job as it is kept: `<log_dir>/output.log`, which grows and is seldom replaced. Where the job has put a
//! link in its place nothing is read: what it leads to is another's.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::runner::files::part;
use crate::runner::{Chunk, RunError};
use tpu_core::model::job::{Job, Launch};
use tpu_core::model::time::Timestamp;
use tpu_system::sys::files;

/// Opens `<log_dir>/output.log`, if there is a file or a link of this name.
fn open(job: &Job) -> Option<io::Result<File>> {
    let path = job.log_dir.as_ref().map(|dir| Path::new(dir).join("output.log"))?;
    let kind = path.symlink_metadata().ok()?.file_type();
    let is_read = kind.is_file() || kind.is_symlink();
    is_read.then(|| files::open_own(&path, OpenOptions::new().read(true)))
}

/// What it holds from a byte on, so many bytes at most; `None` if there is no such file.
pub(super) fn from(job: &Job, from: u64, most: u64) -> Result<Option<Chunk>, RunError> {
    let Some(opened) = open(job) else { return Ok(None) };
    let bytes = opened.and_then(|file| part(file, from, most)).map_err(|e| {
        let dir = job.log_dir.as_deref().unwrap_or_default();
        RunError::state(
            format!("cannot read {dir}/output.log: {e}"),
            "`tpu check` shows where the job writes; is its disk there?",
        )
    })?;
    let next = from + bytes.len() as u64;
    Ok(Some(Chunk { bytes: bytes.into(), next }))
}

/// So many bytes at its end, if this launch has written to it. What cannot be read says nothing.
pub(super) fn end(job: &Job, most: u64) -> Option<Chunk> {
    let file = open(job)?.ok()?;
    let meta = file.metadata().ok()?;
    // A script may log where the attempt before it did.
    let written = jiff::Timestamp::try_from(meta.modified().ok()?).ok()?;
    let is_older = |launch: &Launch| Timestamp::from_jiff(written) < launch.at;
    if job.launch.as_ref().is_some_and(is_older) {
        return None;
    }
    let bytes = part(file, meta.len().saturating_sub(most), most).ok()?;
    Some(Chunk { bytes: bytes.into(), next: meta.len() })
}
