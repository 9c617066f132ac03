//! Copies a checkpoint from one place to another, as a whole or not at all.
//!
//! Into a directory it goes under a name that is given to what is being written, `NAME.partial`, and gets its own when all
//! of it is there. In a bucket nothing can be renamed at once: there a mark ([`MARKER`]) lies beside it from before the first
//! object until after the last, what its framework takes for "it is whole" goes last, and no resume begins where the mark is.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::checkpoint::{COMMITTED, MARKER, comes_last, wants_commit};
use crate::model::objects::{ObjectAt, ObjectFact, StoragePlace};
use crate::ops::{Ctx, Error};
use crate::provider::storage::UploadState;

use super::find::{CheckpointPart, FoundCheckpoint};
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
    /// The place of the copy itself.
    pub to: StoragePlace,
}

/// Copies one checkpoint. Only a whole one is copied.
pub fn copy(
    (ctx, shelf): (&Ctx, Option<&Shelf>),
    order: &CopyOrder,
    watch: &mut CopyWatch<'_>,
) -> Result<CopiedCheckpoint, Error> {
    let CopyOrder { from, to } = order;
    if let Some(why) = from.state.why() {
        return Err(Error::refused(format!("{} is not whole: {why}", from.place))
            .hint("only a whole checkpoint is copied; `tpu checkpoints` lists them"));
    }
    if from.place == *to {
        return Err(Error::usage(format!("{to} cannot be copied onto itself"))
            .hint("name another place, or a zone of another region"));
    }
    let total = from.bytes();
    let mut there = 0;
    let mut arrived = |more: u64| {
        there = total.min(there + more);
        watch(CopyProgress { there, total })
    };
    let copy = Copying { ctx, shelf, from };
    let was_there = state::alone(ctx, to, || match to {
        StoragePlace::Directory(dir) => copy.to_disk(dir, &mut arrived),
        StoragePlace::Bucket(at) => copy.to_bucket(at, to, &mut arrived),
    })?;
    let parts = from.parts.len();
    Ok(CopiedCheckpoint { to: to.clone(), bytes: total, parts, was_there })
}

struct Copying<'a> {
    ctx: &'a Ctx,
    shelf: Option<&'a Shelf>,
    from: &'a FoundCheckpoint,
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

    fn to_disk(&self, to: &Path, arrived: &mut transfer::Arrived<'_>) -> Result<bool, Error> {
        match fs::symlink_metadata(to) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(disk(to, "look at", &e)),
            Ok(_) if self.is_on_disk(to)? => return Ok(true),
            Ok(_) => return Err(another(&to.display())),
        }
        let mut partial = to.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        for part in &self.from.parts {
            let at = if part.path.is_empty() { partial.clone() } else { inside(&partial, part)? };
            let source = self.source(part);
            let is_there = fs::metadata(&at).is_ok_and(|meta| meta.len() == part.size)
                && expected(&source, &at)?;
            if is_there {
                arrived(part.size)?;
            } else {
                transfer::to_file((self.ctx, self.shelf), &source, part, &at, arrived)?;
            }
        }
        fs::rename(&partial, to).map_err(|e| disk(to, "write", &e))?;
        Ok(false)
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

    fn to_bucket(
        &self,
        at: &ObjectAt,
        to: &StoragePlace,
        arrived: &mut transfer::Arrived<'_>,
    ) -> Result<bool, Error> {
        let shelf = self.shelf.ok_or_else(|| shelf::none_for(at))?;
        let ctx = self.ctx;
        let is_single = matches!(self.from.parts.as_slice(), [one] if one.path.is_empty());
        let known = shelf.all(ctx, &at.bucket, &at.name)?;
        let known =
            known.into_iter().filter(|one| one.at == *at || one.at.name.starts_with(&at.prefix()));
        let known: HashMap<String, ObjectFact> =
            known.map(|one| (one.at.name.clone(), one)).collect();
        let mark = at.join(MARKER);
        let is_marked = known.contains_key(&mark.name);
        if !is_marked && !known.is_empty() {
            // What was completed before is there, or something else is.
            return if self.is_in_bucket(at, &known)? { Ok(true) } else { Err(another(at)) };
        }
        if !is_single && !is_marked {
            let said = serde_json::json!({ "from": self.from.place.to_string() }).to_string();
            put(ctx, shelf, &mark, said.as_bytes())?;
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
        Ok(false)
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
                    .hint("the same command goes on where it was"));
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
