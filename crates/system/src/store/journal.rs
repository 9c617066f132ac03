//! The journal: one line per event, appended with a single write, read from its end.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::disk::Disk;
use super::error::{At as _, StoreError};
use super::paths::{OLDER_PARTS, Paths};
use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::outbox::Bookmark;
use tpu_core::model::time::Timestamp;
use tpu_core::text::fnv1a;

/// A journal of this size (bytes) is put aside and a new one begun.
const ROTATE_AT: u64 = 16 << 20;
/// Reading goes back by blocks of this size (bytes).
const BLOCK: u64 = 64 << 10;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// Who did it: a user's command, the daemon, a callback.
    pub actor: String,
    /// The account that did it, by its name on this machine; journals of earlier versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
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

/// Bytes at the beginning of a part by which it is known.
const HEAD: usize = 256;
/// So much is read on at once (bytes).
const PIECE: usize = 1 << 20;

/// The place behind all that stands in the journal now.
pub(super) fn end(disk: &dyn Disk, paths: &Paths) -> Result<Bookmark, StoreError> {
    let path = paths.events();
    loop {
        let stat = match disk.stat(&path) {
            Ok(stat) => stat,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Bookmark::default()),
            Err(e) => return Err(e).at("look at", &path),
        };
        let head = head(disk, &path, stat.size)?;
        // Unless it was put aside between the two.
        if let (Some(head), Ok(now)) = (head, disk.stat(&path))
            && now.file == stat.file
        {
            return Ok(Bookmark { offset: stat.size, mark: mark(&head) });
        }
    }
}

/// The beginning of a part of which so much was read; `None` if it is not there, or shorter.
fn head(disk: &dyn Disk, path: &Path, offset: u64) -> Result<Option<Vec<u8>>, StoreError> {
    let len = usize::try_from(offset).unwrap_or(HEAD).min(HEAD);
    match disk.read_at(path, 0, len) {
        Ok(head) => Ok(Some(head).filter(|head| head.len() == len)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).at("read", path),
    }
}

/// The mark of the beginning of a part.
fn mark(head: &[u8]) -> u64 {
    if head.is_empty() { 0 } else { fnv1a(head.iter().copied()) }
}

/// What was appended behind a place, the oldest first, and the place behind that: as much as a piece holds; whoever
/// wants all asks until the place stays. With each event comes the place behind it. A line that is half written is left
/// for later; one that cannot be read is passed over. Behind a place that is nowhere any more comes all that there is.
pub(super) fn since(
    disk: &dyn Disk,
    paths: &Paths,
    place: Bookmark,
) -> Result<(Vec<PlacedEvent>, Bookmark), StoreError> {
    let parts: Vec<PathBuf> = std::iter::once(paths.events())
        .chain((1..=OLDER_PARTS).map(|n| paths.older_events(n)))
        .collect();
    // The newest part that goes on from there; from the oldest on, if the beginning of one is meant or none does.
    let mut at = None;
    for (n, path) in parts.iter().enumerate().filter(|_| place.offset > 0) {
        if let Some(read) = behind(disk, path, place)? {
            at = Some((n, read));
            break;
        }
    }
    if at.is_none() {
        for (n, path) in parts.iter().enumerate().rev() {
            if let Some(read) = behind(disk, path, Bookmark::default())? {
                at = Some((n, read));
                break;
            }
        }
    }
    let Some((n, (bytes, from))) = at else { return Ok((Vec::new(), place)) };
    if bytes.contains(&b'\n') || bytes.len() >= PIECE {
        return Ok(lines(&bytes, &from));
    }
    // A part that others follow grows no more: what goes on, goes on at the beginning of the next.
    let Some(next) = n.checked_sub(1).and_then(|n| parts.get(n)) else {
        return Ok((Vec::new(), place));
    };
    let Some((bytes, from)) = behind(disk, next, Bookmark::default())? else {
        return Ok((Vec::new(), place));
    };
    // Unless the parts were renamed between the two.
    let is_still = match parts.get(n) {
        Some(path) => behind(disk, path, place)?.is_some(),
        None => false,
    };
    if is_still && bytes.contains(&b'\n') {
        Ok(lines(&bytes, &from))
    } else {
        Ok((Vec::new(), place))
    }
}

/// Where bytes were read: how far, and how the part begins.
struct From {
    offset: u64,
    head: Vec<u8>,
}

/// An event, and the place behind it.
pub(super) type PlacedEvent = (Event, Bookmark);

/// The whole lines of a piece, each with the place behind it, and the place behind all.
fn lines(bytes: &[u8], from: &From) -> (Vec<PlacedEvent>, Bookmark) {
    // No line is as long as a piece: one that is, is passed over.
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    let whole = bytes.get(..end).unwrap_or_default();
    let head: Vec<u8> = from.head.iter().chain(whole).take(HEAD).copied().collect();
    let place = |read: usize| {
        let known = usize::try_from(from.offset).unwrap_or(HEAD).saturating_add(read).min(HEAD);
        let mark = mark(head.get(..known).unwrap_or(&head));
        Bookmark { offset: from.offset + read as u64, mark }
    };
    let mut read = 0;
    let mut events = Vec::new();
    for line in whole.split_inclusive(|byte| *byte == b'\n') {
        read += line.len();
        if let Ok(event) = serde_json::from_slice(line) {
            events.push((event, place(read)));
        }
    }
    (events, place(whole.len()))
}

/// A piece of a part behind a place, if the part is there and the place is one of it.
fn behind(
    disk: &dyn Disk,
    path: &Path,
    place: Bookmark,
) -> Result<Option<(Vec<u8>, From)>, StoreError> {
    let Some(before) = head(disk, path, place.offset)? else { return Ok(None) };
    if mark(&before) != place.mark {
        return Ok(None);
    }
    let piece = match disk.read_at(path, place.offset, PIECE) {
        Ok(piece) => piece,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e).at("read", path),
    };
    // Nobody has put another part in its place between the two.
    let after = head(disk, path, place.offset)?;
    let from = From { offset: place.offset, head: before };
    Ok((after.as_ref() == Some(&from.head)).then_some((piece, from)))
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
            if let Some(at) = memchr::memrchr(b'\n', before) {
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
            match self.next_line()? {
                Ok(line) => {
                    if let Some(value) = read(&line) {
                        return Some(Ok(value));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// The next line backwards as it stands there. Nothing comes after an error.
    pub(super) fn next_line(&mut self) -> Option<Result<Vec<u8>, StoreError>> {
        let line = self.line();
        if line.is_err() {
            self.files.clear();
            self.open = None;
            self.tail.clear();
        }
        line.transpose()
    }
}
