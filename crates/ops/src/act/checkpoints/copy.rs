//! Copies a checkpoint from one place to another, as a whole or not at all.
//!
//! Into a directory it goes under a name that is given to what is being written, `NAME.partial`, and gets its own when all
//! of it is there. In a bucket nothing can be renamed at once: there a mark ([`MARKER`]) lies beside it from before the first
//! object until after the last, what its framework takes for "it is whole" goes last, and no resume begins where the mark is.
//!
//! Several files that are one checkpoint together are copied together: none of them tells of the others, so that a mark of
//! their step ([`mark_beside`]) lies beside them until the last has its name.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::{Ctx, Error};
use tpu_core::model::checkpoint::{COMMITTED, MARKER, comes_last, mark_beside, wants_commit};
use tpu_core::model::objects::{ObjectAt, ObjectFact, StoragePlace};
use tpu_engine::provider::storage::UploadState;
use tpu_system::sys::files;

use super::find::{CheckpointEntry, CheckpointPart, FoundCheckpoint};
use super::shelf::{self, Shelf};
use super::state::{self, StateFile};
use super::transfer::{self, PartSource, disk};

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// Bytes that are there, also from an earlier try.
    pub there: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Told how far a copy is; an error of it ends the copy, which goes on another time.
pub type CopyWatch<'a> = dyn FnMut(CopyProgress) -> Result<(), Error> + 'a;

/// What came of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedCheckpoint {
    /// Where it is now.
    pub to: StoragePlace,
    /// Its bytes.
    pub bytes: u64,
    /// Its files or objects.
    pub parts: usize,
    /// It was there already, as a whole.
    pub was_there: bool,
}

/// What is copied, and where the copy is to be.
#[derive(Clone, Debug)]
pub struct CopyOrder {
    /// The checkpoint.
    pub from: FoundCheckpoint,
    /// The place below which the copy is to be, under the same path.
    pub to: StoragePlace,
}

impl CopyOrder {
    /// The place of the copy itself: its first file or directory.
    pub fn place(&self) -> StoragePlace {
        self.to.join(self.from.below())
    }

    /// The mark beside the copy, if it has several files or directories.
    fn mark(&self) -> Option<StoragePlace> {
        let within = self.from.below().rsplit_once('/').map_or("", |(within, _)| within);
        let is_joined = self.from.entries.len() > 1;
        is_joined.then(|| self.to.join(within).join(&mark_beside(self.from.step)))
    }
}

/// Copies one checkpoint. Only a whole one is copied.
pub fn copy(
    (ctx, shelf): (&Ctx, Option<&Shelf>),
    order: &CopyOrder,
    watch: &mut CopyWatch<'_>,
) -> Result<CopiedCheckpoint, Error> {
    let CopyOrder { from, to } = order;
    if let Some(why) = from.state.why() {
        return Err(Error::refused(format!("{} is not whole: {why}", from.place()))
            .hint("only a whole checkpoint is copied; `tpu checkpoints` lists them"));
    }
    let onto_itself = from.entries.iter().find(|entry| entry.place == to.join(&entry.below));
    if let Some(entry) = onto_itself {
        return Err(Error::usage(format!("{} cannot be copied onto itself", entry.place))
            .hint("name another place, or a zone of another region"));
    }
    let total = from.bytes();
    let mut there = 0;
    let mut arrived = |more: u64| {
        there = total.min(there + more);
        fail::fail_point!("copy-arrived");
        watch(CopyProgress { there, total })
    };
    // What tells that all is there goes last.
    let copies = from.entries.iter().rev();
    let copies: Vec<Copying<'_>> = copies.map(|from| Copying { ctx, shelf, from }).collect();
    let place = order.place();
    let was_there = state::alone(ctx, &place, || match to {
        StoragePlace::Directory(_) => all_to_disk(order, &copies, &mut arrived),
        StoragePlace::Bucket(_) => all_to_bucket(order, &copies, &mut arrived),
    })?;
    let parts = from.parts().count();
    Ok(CopiedCheckpoint { to: place, bytes: total, parts, was_there })
}

/// Copies what is not there yet; whether all was. The names come when all bytes are there.
fn all_to_disk(
    order: &CopyOrder,
    copies: &[Copying<'_>],
    arrived: &mut transfer::Arrived<'_>,
) -> Result<bool, Error> {
    let mut open = Vec::new();
    for copy in copies {
        let StoragePlace::Directory(to) = order.to.join(&copy.from.below) else { continue };
        if copy.stands_on_disk(&to)? {
            arrived(copy.bytes())?;
        } else {
            open.push((copy, to));
        }
    }
    let mark = match order.mark() {
        Some(StoragePlace::Directory(mark)) => Some(mark),
        Some(StoragePlace::Bucket(_)) | None => None,
    };
    for (copy, to) in &open {
        copy.fill(&partial(to), arrived)?;
    }
    if let Some(mark) = mark.as_ref().filter(|_| !open.is_empty()) {
        let mut options = fs::OpenOptions::new();
        options.create(true).append(true);
        let file = files::open_own(mark, &options).and_then(|mut file| file.write_all(b"copied"));
        file.map_err(|e| disk(mark, "write", &e))?;
    }
    for (_, to) in &open {
        fs::rename(partial(to), to).map_err(|e| disk(to, "write", &e))?;
    }
    if let Some(mark) = &mark {
        match fs::remove_file(mark) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(disk(mark, "remove", &e)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(open.is_empty())
}

/// The same into a bucket, where each object appears by itself.
fn all_to_bucket(
    order: &CopyOrder,
    copies: &[Copying<'_>],
    arrived: &mut transfer::Arrived<'_>,
) -> Result<bool, Error> {
    let mut open = Vec::new();
    for copy in copies {
        let to = order.to.join(&copy.from.below);
        let StoragePlace::Bucket(at) = &to else { continue };
        match copy.stands_in_bucket(at)? {
            InBucket::Whole => arrived(copy.bytes())?,
            InBucket::Not { is_marked } => open.push((copy, to, is_marked)),
        }
    }
    let Some(first) = copies.first() else { return Ok(true) };
    let mark = match order.mark() {
        Some(StoragePlace::Bucket(mark)) => Some((mark, first.shelf_for(&order.to)?)),
        Some(StoragePlace::Directory(_)) | None => None,
    };
    if let Some((mark, shelf)) = mark.as_ref().filter(|_| !open.is_empty()) {
        put(first.ctx, shelf, mark, first.said().as_bytes())?;
    }
    for (copy, to, is_marked) in &open {
        copy.to_bucket(to, *is_marked, arrived)?;
    }
    if let Some((mark, shelf)) = mark
        && shelf.object(first.ctx, &mark)?.is_some()
    {
        shelf.ask(first.ctx, |door| door.delete_object(&mark, None))?;
    }
    Ok(open.is_empty())
}

/// The name that something has on a disk while it is written.
fn partial(to: &Path) -> PathBuf {
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    PathBuf::from(partial)
}

/// What is in a bucket under the name of a copy.
enum InBucket {
    /// This very copy.
    Whole,
    /// Nothing, or a part of it beside its mark.
    Not { is_marked: bool },
}

/// One file or directory of a checkpoint that is copied.
struct Copying<'a> {
    ctx: &'a Ctx,
    shelf: Option<&'a Shelf>,
    from: &'a CheckpointEntry,
}

fn another(to: &dyn std::fmt::Display) -> Error {
    Error::refused(format!("another checkpoint is at {to} already"))
        .hint("nothing was changed; name another place, or move that one away")
}

impl Copying<'_> {
    /// Where a part comes from.
    fn source(&self, part: &CheckpointPart) -> PartSource {
        match (&part.object, &self.from.place) {
            (Some(object), _) => PartSource::Object(object.clone()),
            (None, StoragePlace::Directory(dir)) if part.path.is_empty() => {
                PartSource::File(dir.clone())
            }
            (None, StoragePlace::Directory(dir)) => PartSource::File(dir.join(&part.path)),
            (None, StoragePlace::Bucket(_)) => PartSource::File(PathBuf::new()),
        }
    }

    fn bytes(&self) -> u64 {
        self.from.parts.iter().map(|part| part.size).sum()
    }

    /// What a mark says.
    fn said(&self) -> String {
        serde_json::json!({ "from": self.from.place.to_string() }).to_string()
    }

    fn shelf_for(&self, to: &StoragePlace) -> Result<&'_ Shelf, Error> {
        self.shelf.ok_or_else(|| match to {
            StoragePlace::Bucket(at) => shelf::none_for(at),
            StoragePlace::Directory(_) => Error::refused(format!("{to} is no bucket")),
        })
    }

    /// Whether it is there as a whole.
    fn stands_on_disk(&self, to: &Path) -> Result<bool, Error> {
        match fs::symlink_metadata(to) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(disk(to, "look at", &e)),
            Ok(_) if self.is_on_disk(to)? => Ok(true),
            Ok(_) => Err(another(&to.display())),
        }
    }

    /// Carries all of it over, under the name of what is being written.
    fn fill(&self, partial: &Path, arrived: &mut transfer::Arrived<'_>) -> Result<(), Error> {
        for part in &self.from.parts {
            let at = if part.path.is_empty() { partial.to_owned() } else { inside(partial, part)? };
            let source = self.source(part);
            let is_there = fs::metadata(&at).is_ok_and(|meta| meta.len() == part.size)
                && expected(&source, &at)?;
            if is_there {
                arrived(part.size)?;
            } else {
                transfer::to_file((self.ctx, self.shelf), &source, part, &at, arrived)?;
            }
        }
        Ok(())
    }

    /// Whether what has the name is this very checkpoint.
    fn is_on_disk(&self, to: &Path) -> Result<bool, Error> {
        for part in &self.from.parts {
            let at = if part.path.is_empty() { to.to_owned() } else { inside(to, part)? };
            let is_same =
                fs::metadata(&at).is_ok_and(|meta| meta.is_file() && meta.len() == part.size);
            if !is_same || !expected(&self.source(part), &at)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is there already; an error where that is something else.
    fn stands_in_bucket(&self, at: &ObjectAt) -> Result<InBucket, Error> {
        let shelf = self.shelf.ok_or_else(|| shelf::none_for(at))?;
        let known = shelf.all(self.ctx, &at.bucket, &at.name)?;
        let known =
            known.into_iter().filter(|one| one.at == *at || one.at.name.starts_with(&at.prefix()));
        let known: HashMap<String, ObjectFact> =
            known.map(|one| (one.at.name.clone(), one)).collect();
        let is_marked = known.contains_key(&at.join(MARKER).name);
        if is_marked || known.is_empty() {
            return Ok(InBucket::Not { is_marked });
        }
        // What was completed before is there, or something else is.
        if self.is_in_bucket(at, &known)? { Ok(InBucket::Whole) } else { Err(another(at)) }
    }

    fn to_bucket(
        &self,
        to: &StoragePlace,
        is_marked: bool,
        arrived: &mut transfer::Arrived<'_>,
    ) -> Result<(), Error> {
        let StoragePlace::Bucket(at) = to else { return Ok(()) };
        let (ctx, shelf) = (self.ctx, self.shelf_for(to)?);
        let (mark, is_single) = (at.join(MARKER), self.from.is_single());
        if !is_single && !is_marked {
            put(ctx, shelf, &mark, self.said().as_bytes())?;
        }
        let mut state = StateFile::open(ctx, &self.from.place, to);
        let mut parts: Vec<&CheckpointPart> = self.from.parts.iter().collect();
        parts.sort_by_key(|part| (comes_last(&part.path), part.path == COMMITTED));
        for part in parts {
            let target = at.join(&part.path);
            if let Some(fact) = &part.object {
                transfer::rewrite((ctx, shelf), &mut state, (part, fact), &target, arrived)?;
            } else if let PartSource::File(path) = self.source(part) {
                transfer::upload((ctx, shelf), (&mut state, &path), part, &target, arrived)?;
            }
        }
        let is_disk = matches!(self.from.place, StoragePlace::Directory(_));
        if is_disk && wants_commit(self.paths()) {
            // Orbax on a disk needs none, and in a bucket looks for it.
            let text = format!("Checkpoint commit was successful to {at}");
            put(ctx, shelf, &at.join(COMMITTED), text.as_bytes())?;
        }
        if !is_single {
            self.all_arrived(shelf, at)?;
            shelf.ask(ctx, |door| door.delete_object(&mark, None))?;
        }
        state.forget();
        Ok(())
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        self.from.parts.iter().map(|part| part.path.as_str())
    }

    /// A last look before the mark goes.
    fn all_arrived(&self, shelf: &Shelf, at: &ObjectAt) -> Result<(), Error> {
        let known = shelf.all(self.ctx, &at.bucket, &at.prefix())?;
        let sizes: HashMap<&str, u64> =
            known.iter().map(|one| (one.at.name.as_str(), one.size)).collect();
        for part in &self.from.parts {
            let name = at.join(&part.path).name;
            if sizes.get(name.as_str()) != Some(&part.size) {
                return Err(Error::failed(format!("{name} was taken away while it was copied"))
                    .hint("type the same command again: it continues from there"));
            }
        }
        Ok(())
    }

    fn is_in_bucket(
        &self,
        at: &ObjectAt,
        known: &HashMap<String, ObjectFact>,
    ) -> Result<bool, Error> {
        for part in &self.from.parts {
            let Some(fact) = known.get(&at.join(&part.path).name) else { return Ok(false) };
            let crc32c = match self.source(part) {
                PartSource::Object(source) => source.crc32c,
                PartSource::File(_) if fact.size != part.size => return Ok(false),
                PartSource::File(path) => Some(transfer::sum(&path)?),
            };
            if fact.size != part.size || fact.crc32c != crc32c {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a file here has the bytes of a source.
fn expected(source: &PartSource, at: &Path) -> Result<bool, Error> {
    let crc32c = match source {
        PartSource::Object(fact) => fact.crc32c,
        PartSource::File(path) => Some(transfer::sum(path)?),
    };
    crc32c.map_or(Ok(true), |crc32c| Ok(transfer::sum(at)? == crc32c))
}

/// The path of a part below a directory. A name from a bucket may be anything; one that leads out of it is refused.
fn inside(dir: &Path, part: &CheckpointPart) -> Result<PathBuf, Error> {
    let is_plain =
        |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('\0');
    if part.path.split('/').all(is_plain) {
        return Ok(dir.join(&part.path));
    }
    Err(Error::refused(format!("'{}' cannot be the name of a file", part.path.escape_debug()))
        .hint("copy it to a bucket"))
}

/// A small object as a whole.
pub(super) fn put(ctx: &Ctx, shelf: &Shelf, at: &ObjectAt, bytes: &[u8]) -> Result<(), Error> {
    let session = shelf.ask(ctx, |door| door.begin_upload(at, crc32c::crc32c(bytes)))?;
    let total = bytes.len() as u64;
    let done = shelf.ask(ctx, |door| door.upload((&session, total), 0, bytes))?;
    match done {
        UploadState::Done(_) => Ok(()),
        UploadState::Took(_) => Err(Error::unreachable(format!("{at} did not arrive"))
            .hint("nothing was changed; try again")),
    }
}
