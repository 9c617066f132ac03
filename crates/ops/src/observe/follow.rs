//! Follows what a job prints, also where its log is emptied or replaced in place.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::io::Errno;

use tpu_core::model::ids::JobId;
use tpu_system::sys::files;

use super::logs;
use crate::base::ctx::job_of;
use crate::{Ctx, Error};

/// So many bytes tell whether a log is still the one that was read.
const REMEMBERED: usize = 256;

/// Reads what a job prints, piece by piece.
#[derive(Debug)]
pub struct LogFollower {
    job: JobId,
    log: Log,
}

impl LogFollower {
    /// Begins behind the first `next` bytes of the log, which are known.
    pub fn new(job: JobId, next: u64) -> Self {
        Self { job, log: Log { next, ..Log::default() } }
    }

    /// What the job has printed since the last call. A log that was emptied or replaced is read from its start,
    /// after what was left of the old one. Of a job whose record is gone, what is left of its log is read. Fails
    /// where the log cannot be read; a disk that does not answer has just nothing new.
    pub fn read_on(&mut self, ctx: &Ctx) -> Result<Vec<u8>, Error> {
        let data = ctx.data()?;
        let job = job_of(&data, &self.job).ok();
        if job.is_some_and(|job| job.engine.is_some()) {
            let (new, next) = logs::after(ctx, &self.job, self.log.next)?;
            self.log.next = next;
            return Ok(new);
        }
        let path = job.and_then(logs::log_file);
        self.log.read_on(path.as_deref()).map_err(|e| {
            let path = path.unwrap_or_default();
            Error::state(format!("cannot read {}: {e}", path.display()))
                .hint("`tpu check` shows where the job writes; is its disk there?")
        })
    }
}

/// A log file as far as it was read.
#[derive(Debug, Default)]
struct Log {
    /// The file that was read last, open: what is left of it can be read after another has taken its name.
    file: Option<File>,
    /// Device and inode of that file.
    id: Option<(u64, u64)>,
    /// Byte of that file at which the next piece begins.
    next: u64,
    /// The last bytes before it: a file that was emptied and has grown past it since has others there.
    last: Vec<u8>,
    /// Whether the last piece ended within a line.
    is_line_open: bool,
}

impl Log {
    /// What is new in the file at `path`, if there is any.
    fn read_on(&mut self, path: Option<&Path>) -> io::Result<Vec<u8>> {
        let mut new = Vec::new();
        let opened = path.map_or(Ok(None), open).or_else(is_passing)?;
        let Some(opened) = opened else {
            // It was moved away, or its disk does not answer.
            self.read_rest(&mut new)?;
            return Ok(new);
        };
        let Some(meta) = opened.metadata().map(Some).or_else(is_passing)? else { return Ok(new) };
        let id = (meta.dev(), meta.ino());
        if self.id.is_some_and(|known| known != id) {
            self.read_rest(&mut new)?;
            self.begin_anew(&mut new);
        } else if meta.len() < self.next || !self.goes_on_in(&opened)? {
            self.begin_anew(&mut new);
        }
        (self.file, self.id) = (Some(opened), Some(id));
        self.read_rest(&mut new)?;
        Ok(new)
    }

    /// Whether what was read last still stands in the file. What was read before the first look is taken as it stands there.
    fn goes_on_in(&mut self, file: &File) -> io::Result<bool> {
        let is_first = self.id.is_none();
        let length = if is_first {
            usize::try_from(self.next).unwrap_or(REMEMBERED).min(REMEMBERED)
        } else {
            self.last.len()
        };
        let mut there = vec![0; length];
        match file.read_exact_at(&mut there, self.next.saturating_sub(length as u64)) {
            Ok(()) if is_first => {
                self.last = there;
                Ok(true)
            }
            Ok(()) => Ok(there == self.last),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => is_passing(error).map(|_: Option<()>| true),
        }
    }

    /// Reads to the end of the open file. What an error keeps from being read is read at the next call.
    fn read_rest(&mut self, new: &mut Vec<u8>) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let before = new.len();
        let read = file.seek(SeekFrom::Start(self.next)).and_then(|_| file.read_to_end(new));
        // What was read before an error is there.
        let all = new.get(before..).unwrap_or_default();
        self.next += all.len() as u64;
        self.last.extend_from_slice(all);
        drop(self.last.drain(..self.last.len().saturating_sub(REMEMBERED)));
        self.is_line_open = all.last().map_or(self.is_line_open, |last| *last != b'\n');
        read.map(|_| ()).or_else(|error| is_passing(error).map(|_: Option<()>| ()))
    }

    /// Goes to the start of a log; a line that the old one left open is ended.
    fn begin_anew(&mut self, new: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_line_open) {
            new.push(b'\n');
        }
        self.next = 0;
        self.last.clear();
    }
}

/// Opens a log, if there is one. What a link leads to is another's.
fn open(path: &Path) -> io::Result<Option<File>> {
    let kind = path.symlink_metadata()?.file_type();
    let is_read = kind.is_file() || kind.is_symlink();
    is_read.then(|| files::open_own(path, OpenOptions::new().read(true))).transpose()
}

/// Lets an error pass as nothing that may be over at the next look: there is no file at the moment, or a disk far away
/// has not answered.
fn is_passing<T>(error: io::Error) -> io::Result<Option<T>> {
    let passing = [Errno::NOENT, Errno::STALE, Errno::IO, Errno::TIMEDOUT, Errno::INTR];
    let code = error.raw_os_error();
    if passing.iter().any(|known| code == Some(known.raw_os_error())) {
        return Ok(None);
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn write(path: &Path, text: &str, options: &mut OpenOptions) {
        let mut file = options.write(true).create(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn append(path: &Path, text: &str) {
        write(path, text, OpenOptions::new().append(true));
    }

    fn replace_contents(path: &Path, text: &str) {
        write(path, text, OpenOptions::new().truncate(true));
    }

    fn read(log: &mut Log, path: &Path) -> String {
        String::from_utf8(log.read_on(Some(path)).unwrap()).unwrap()
    }

    #[test]
    fn a_log_that_is_emptied_is_read_from_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let mut log = Log::default();
        assert_eq!(read(&mut log, &path), "");
        append(&path, "one\ntwo\n");
        assert_eq!(read(&mut log, &path), "one\ntwo\n");
        assert_eq!(read(&mut log, &path), "");
        replace_contents(&path, "three\n");
        assert_eq!(read(&mut log, &path), "three\n");
        append(&path, "half");
        assert_eq!(read(&mut log, &path), "half");
        replace_contents(&path, "new\n");
        assert_eq!(read(&mut log, &path), "\nnew\n", "the half line is ended");
        replace_contents(&path, "");
        assert_eq!(read(&mut log, &path), "");
        append(&path, "last\n");
        assert_eq!(read(&mut log, &path), "last\n");
        for later in ["this is longer\n".to_owned(), "and longer still\n".repeat(1000)] {
            replace_contents(&path, &later);
            assert_eq!(read(&mut log, &path), later, "it has grown past what was read");
        }
        // One that begins behind what somebody else has read knows it as well.
        let mut log = Log { next: 4, ..Log::default() };
        replace_contents(&path, "one\ntwo\n");
        assert_eq!(read(&mut log, &path), "two\n");
        replace_contents(&path, "another one\n");
        assert_eq!(read(&mut log, &path), "another one\n");
    }

    #[test]
    fn of_a_log_that_is_replaced_the_rest_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let [path, old, fresh] =
            ["output.log", "output.log.1", "fresh"].map(|name| dir.path().join(name));
        let mut log = Log::default();
        append(&path, "one\n");
        assert_eq!(read(&mut log, &path), "one\n");
        append(&path, "two\nhal");
        append(&fresh, "a longer log than the one before\n");
        std::fs::rename(&fresh, &path).unwrap();
        assert_eq!(read(&mut log, &path), "two\nhal\na longer log than the one before\n");
        // Between the two names there is none.
        append(&path, "three\n");
        std::fs::rename(&path, &old).unwrap();
        assert_eq!(read(&mut log, &path), "three\n");
        append(&old, "four\n");
        append(&path, "five\n");
        assert_eq!(read(&mut log, &path), "four\nfive\n");
        assert_eq!(log.read_on(None).unwrap(), b"");
    }

    #[test]
    fn a_disk_that_does_not_answer_has_emptied_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let mut log = Log::default();
        append(&path, "one\n");
        assert_eq!(read(&mut log, &path), "one\n");
        for fault in [Errno::STALE, Errno::IO, Errno::TIMEDOUT, Errno::NOENT] {
            let error = io::Error::from_raw_os_error(fault.raw_os_error());
            assert_eq!(is_passing::<()>(error).unwrap(), None);
        }
        is_passing::<()>(io::Error::from_raw_os_error(Errno::ACCESS.raw_os_error())).unwrap_err();
        // A link in its place shows nothing of what it leads to.
        let [link, other] = ["link", "other"].map(|name| dir.path().join(name));
        append(&other, "another's\n");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        log.read_on(Some(&link)).unwrap_err();
    }
}
