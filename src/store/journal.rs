//! The journal: one line per event, appended with a single write, read from its end.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::disk::Disk;
use super::error::{At as _, StoreError};
use super::paths::Paths;
use crate::model::ids::{JobNumber, UserName};
use crate::model::time::Timestamp;

/// A journal of this size (bytes) is put aside and a new one begun.
const ROTATE_AT: u64 = 16 << 20;
/// So many older parts are kept.
const OLDER_PARTS: u32 = 3;
/// Reading goes back by blocks of this size (bytes).
const BLOCK: u64 = 64 << 10;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// Who did it: a user's command, MONITOR, a callback.
    pub actor: String,
    /// Whose affair it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserName>,
    /// Which of that user's jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobNumber>,
    /// The kind of event, for programs: `launch`, `status`, `clean`, …
    pub kind: String,
    /// What happened, for people.
    pub text: String,
    /// Details, for programs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// The kind of an event, for whoever needs few kinds of many.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    /// The kind.
    #[serde(borrow)]
    pub(super) kind: Cow<'a, str>,
}

/// When the oldest event happened that is still there: the first that can be read of the oldest part.
pub(super) fn oldest(disk: &dyn Disk, paths: &Paths) -> Result<Option<Timestamp>, StoreError> {
    #[derive(Deserialize)]
    struct At {
        at: Timestamp,
    }
    let older = (1..=OLDER_PARTS).rev().map(|n| paths.older_events(n));
    for path in older.chain(std::iter::once(paths.events())) {
        let len = usize::try_from(BLOCK).unwrap_or(usize::MAX);
        let first = match disk.read_at(&path, 0, len) {
            Ok(first) => first,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(e).at("read", &path),
        };
        let mut lines = first.split(|byte| *byte == b'\n');
        let at = lines.find_map(|line| serde_json::from_slice::<At>(line).ok());
        if let Some(At { at }) = at {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Appends values as lines. A line that a crash left half written is ended first.
pub(super) fn append<T: Serialize>(
    disk: &dyn Disk,
    path: &Path,
    mode: u32,
    durable: bool,
    lines: &[T],
) -> Result<(), StoreError> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    let mut new = false;
    match disk.stat(path) {
        Ok(stat) if stat.size > 0 => {
            let last = disk.read_at(path, stat.size - 1, 1).at("read", path)?;
            if last != b"\n" {
                bytes.push(b'\n');
            }
        }
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => new = true,
        Err(e) => return Err(e).at("look at", path),
    }
    for line in lines {
        serde_json::to_writer(&mut bytes, line).map_err(io::Error::from).at("write", path)?;
        bytes.push(b'\n');
    }
    disk.append(path, &bytes, mode, durable).at("append to", path)?;
    match path.parent() {
        // Without its name on the disk, a file on the disk is lost.
        Some(dir) if new && durable => disk.sync_dir(dir).at("bring to the disk", dir),
        _ => Ok(()),
    }
}

/// Puts a full journal aside.
pub(super) fn rotate(disk: &dyn Disk, paths: &Paths) -> Result<(), StoreError> {
    let path = paths.events();
    match disk.stat(&path) {
        Ok(stat) if stat.size >= ROTATE_AT => {}
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e).at("look at", &path),
    }
    for n in (1..OLDER_PARTS).rev() {
        match disk.rename(&paths.older_events(n), &paths.older_events(n + 1)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e).at("rename", &path),
            Ok(()) | Err(_) => {}
        }
    }
    disk.rename(&path, &paths.older_events(1)).at("rename", &path)
}

/// The lines of the journal, the newest first, read only as far as they are asked for.
pub(super) fn newest_events<'a>(disk: &'a dyn Disk, paths: &Paths) -> NewestLines<'a> {
    let older = (1..=OLDER_PARTS).map(|n| paths.older_events(n));
    NewestLines::new(disk, std::iter::once(paths.events()).chain(older).collect())
}

/// Lines of some files from the last one backwards.
pub(super) struct NewestLines<'a> {
    disk: &'a dyn Disk,
    /// Files still to read, the next one last.
    files: Vec<PathBuf>,
    /// The file being read and how much of its beginning is unread.
    open: Option<(PathBuf, u64)>,
    /// What was read and not yet given out: the beginning may be the rest of a line.
    tail: Vec<u8>,
}

impl<'a> NewestLines<'a> {
    pub(super) fn new(disk: &'a dyn Disk, mut files: Vec<PathBuf>) -> Self {
        files.reverse();
        Self { disk, files, open: None, tail: Vec::new() }
    }

    /// The next line backwards.
    fn line(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        loop {
            let end = self.tail.strip_suffix(b"\n").unwrap_or(&self.tail).len();
            let before = self.tail.get(..end).unwrap_or(&[]);
            if let Some(at) = before.iter().rposition(|byte| *byte == b'\n') {
                let line = self.tail.split_off(at + 1);
                return Ok(Some(line));
            }
            match self.open.take() {
                Some((path, unread)) if unread > 0 => {
                    let from = unread.saturating_sub(BLOCK);
                    let len = usize::try_from(unread - from).unwrap_or(0);
                    let mut block = self.disk.read_at(&path, from, len).at("read", &path)?;
                    block.append(&mut self.tail);
                    self.tail = block;
                    self.open = Some((path, from));
                }
                _ if !self.tail.is_empty() => return Ok(Some(std::mem::take(&mut self.tail))),
                _ => {
                    let Some(path) = self.files.pop() else { return Ok(None) };
                    match self.disk.stat(&path) {
                        Ok(stat) => self.open = Some((path, stat.size)),
                        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                        Err(e) => return Err(e).at("look at", &path),
                    }
                }
            }
        }
    }

    /// The next line backwards as a value. Lines that cannot be read (a crash in the middle of one) are
    /// passed over.
    pub(super) fn value<T: for<'de> Deserialize<'de>>(&mut self) -> Option<Result<T, StoreError>> {
        self.first(|line| serde_json::from_slice(line).ok())
    }

    /// The next line backwards of which `read` makes something; others are passed over.
    pub(super) fn first<T>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Option<Result<T, StoreError>> {
        loop {
            match self.line() {
                Ok(None) => return None,
                Ok(Some(line)) => {
                    if let Some(value) = read(&line) {
                        return Some(Ok(value));
                    }
                }
                Err(error) => {
                    self.files.clear();
                    self.open = None;
                    self.tail.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}
