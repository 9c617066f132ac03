//! What a job has printed: its log file if it has one, else its window.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use crate::model::ids::JobId;
use crate::model::job::{Job, Launch};
use crate::model::time::Timestamp;
use crate::sys::files;

use super::ctx::job_of;
use super::{Ctx, Error, panes};

/// Bytes at the end of a log file that decide why a job ended.
const TAIL_BYTES: u64 = 256 * 1024;

/// A character takes no more bytes.
const MOST_BYTES: u64 = 4;

/// Lines of a window that decide why a job ended.
const LINES: u32 = 2_000;

/// Where the output of a job can be read.
#[derive(Debug)]
pub enum Output {
    /// A file that grows.
    File(PathBuf),
    /// The window's text as it is now.
    Text(Vec<u8>),
}

/// Finds the output of a job.
pub fn output(ctx: &Ctx, id: &JobId) -> Result<Output, Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    if let Some(path) = log_file(job).filter(|path| path.is_file()) {
        return Ok(Output::File(path));
    }
    pane_text(ctx, job, 0).map(Output::Text).ok_or_else(|| {
        let log = job.log_dir.as_deref().unwrap_or("none was reported");
        Error::not_found(format!("{id} has neither a log file nor a window that can be read"))
            .hint(format!("its log directory: {log}"))
    })
}

/// What the job has printed into its window, if its window can be read; `reach` characters of it at least.
pub fn pane_text(ctx: &Ctx, job: &Job, reach: u32) -> Option<Vec<u8>> {
    panes::read(ctx, &job.id(), Some(LINES.max(reach)), false).ok()?
}

/// `<log_dir>/output.log`.
pub fn log_file(job: &Job) -> Option<PathBuf> {
    job.log_dir.as_ref().map(|dir| Path::new(dir).join("output.log"))
}

/// The end of a job's log file, if it has one and this launch has written to it; `reach` characters of it at
/// least.
pub fn tail_of_output(job: &Job, reach: u32) -> Option<Vec<u8>> {
    let path = log_file(job)?;
    let meta = path.metadata().ok().filter(fs::Metadata::is_file)?;
    // A script may log where the attempt before it did.
    let written = jiff::Timestamp::try_from(meta.modified().ok()?).ok()?;
    let is_older = |launch: &Launch| Timestamp::from_jiff(written) < launch.at;
    if job.launch.as_ref().is_some_and(is_older) {
        return None;
    }
    read_tail(&path, TAIL_BYTES.max(u64::from(reach) * MOST_BYTES)).ok()
}

/// The last `limit` bytes of a file.
pub fn read_tail(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = files::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
