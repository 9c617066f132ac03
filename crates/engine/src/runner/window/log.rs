//! The output of a job as it is kept: `<log_dir>/output.log`, which grows and is seldom replaced.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::runner::{Chunk, RunError};
use tpu_core::model::job::{Job, Launch};
use tpu_core::model::time::Timestamp;
use tpu_system::sys::files;

/// `<log_dir>/output.log`, if it is there.
fn path(job: &Job) -> Option<PathBuf> {
    let path = job.log_dir.as_ref().map(|dir| Path::new(dir).join("output.log"))?;
    path.is_file().then_some(path)
}

/// What it holds from a byte on, so many bytes at most; `None` if there is no such file.
pub(super) fn from(job: &Job, from: u64, most: u64) -> Result<Option<Chunk>, RunError> {
    let Some(path) = path(job) else { return Ok(None) };
    let read = || -> io::Result<Vec<u8>> {
        let mut file = files::open(&path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|e| {
        RunError::state(
            format!("cannot read {}: {e}", path.display()),
            "`tpu check` shows where the job writes; is its disk there?",
        )
    })?;
    let next = from + bytes.len() as u64;
    Ok(Some(Chunk { bytes: bytes.into(), next }))
}

/// So many bytes at its end, if this launch has written to it. What cannot be read says nothing.
pub(super) fn end(job: &Job, bytes: u64) -> Option<Chunk> {
    let path = path(job)?;
    let meta = path.metadata().ok()?;
    // A script may log where the attempt before it did.
    let written = jiff::Timestamp::try_from(meta.modified().ok()?).ok()?;
    let is_older = |launch: &Launch| Timestamp::from_jiff(written) < launch.at;
    if job.launch.as_ref().is_some_and(is_older) {
        return None;
    }
    let bytes = tail(&path, bytes).ok()?;
    Some(Chunk { bytes: bytes.into(), next: meta.len() })
}

/// The last `limit` bytes of a file.
fn tail(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = files::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
