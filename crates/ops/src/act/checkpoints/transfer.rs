//! Carries one part over and checks that it arrived: a download into a file, an upload, or a copy within the store. Each goes
//! on where it was, however often it is cut off; while something arrives it is not given up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Ctx, Error};
use tpu_core::model::objects::{ObjectAt, ObjectFact};
use tpu_engine::provider::storage::{RewriteState, UploadState};
use tpu_engine::provider::{ProviderError, Trouble, retry};
use tpu_system::sys::files;

use super::find::CheckpointPart;
use super::shelf::{self, Shelf};
use super::state::{PartUnderWay, StateFile};

/// Bytes of one request.
const CHUNK: u64 = 8 << 20;
/// The first wait after a failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Told how many bytes have arrived since the last time. An error of it ends the copy.
pub(super) type Arrived<'a> = dyn FnMut(u64) -> Result<(), Error> + 'a;

/// Where a part comes from.
pub(super) enum PartSource {
    /// A file of this machine.
    File(PathBuf),
    /// An object.
    Object(ObjectFact),
}

impl PartSource {
    /// By what another version of the same name is known.
    pub(super) fn version(&self) -> io::Result<String> {
        match self {
            Self::Object(fact) => Ok(fact.generation.to_string()),
            Self::File(path) => {
                let meta = fs::metadata(path)?;
                let at = meta.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                Ok(format!("{}-{}", meta.len(), at.as_nanos()))
            }
        }
    }
}

/// How long a thing that fails is tried again: as long as bytes arrive, and a few times where none do.
struct Patience<'a> {
    ctx: &'a Ctx,
    failures: u32,
    arrived: u64,
}

impl<'a> Patience<'a> {
    fn new(ctx: &'a Ctx) -> Self {
        Self { ctx, failures: 0, arrived: 0 }
    }

    /// Whether to go on after a failure, with so many bytes there. Waits where none came since the last one.
    fn after(&mut self, error: ProviderError, there: u64) -> Result<(), Error> {
        if !error.trouble.is_worth_repeating() {
            return Err(error.into());
        }
        if there > self.arrived {
            (self.failures, self.arrived) = (0, there);
            return Ok(());
        }
        self.failures += 1;
        if self.failures >= retry::TRIES {
            let error = Error::from(error);
            let hint =
                "type the same command again: it continues from there; a half copy is never used";
            return Err(error.hint(hint));
        }
        let wait = FIRST_WAIT * 2_u32.pow(self.failures - 1);
        let half = wait / 2;
        let jitter = self.ctx.random.below(u64::try_from(half.as_millis()).unwrap_or(u64::MAX));
        self.ctx.clock.sleep(half + Duration::from_millis(jitter));
        Ok(())
    }
}

/// A failure of this machine's disk.
pub(super) fn disk(path: &Path, what: &str, error: &io::Error) -> Error {
    Error::state(format!("cannot {what} {}: {error}", path.display()))
        .hint("make room or repair it; then type the same command again: it continues from there")
}

/// The checksum of a file.
pub(super) fn sum(path: &Path) -> Result<u32, Error> {
    files::crc32c(path).map_err(|e| disk(path, "read", &e))
}

fn differs(what: &str) -> Error {
    Error::failed(format!("{what} did not arrive as it was: its checksum is another one"))
        .hint("what had arrived is thrown away; the same command carries it over again")
}

/// Into a file of this machine. What arrives has another name until it is whole and right.
pub(super) fn to_file(
    (ctx, shelf): (&Ctx, Option<&Shelf>),
    source: &PartSource,
    part: &CheckpointPart,
    to: &Path,
    arrived: &mut Arrived<'_>,
) -> Result<(), Error> {
    let version = source.version().map_err(|e| disk(to, "look at the source of", &e))?;
    let mut partial = to.as_os_str().to_owned();
    partial.push(format!(".{version}.part"));
    let partial = PathBuf::from(partial);
    if let Some(dir) = to.parent() {
        fs::create_dir_all(dir).map_err(|e| disk(dir, "make", &e))?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    let mut file = files::open_own(&partial, &options).map_err(|e| disk(&partial, "write", &e))?;
    let mut there = file.metadata().map_err(|e| disk(&partial, "look at", &e))?.len();
    if there > part.size {
        file.set_len(0).map_err(|e| disk(&partial, "write", &e))?;
        there = 0;
    }
    arrived(there)?;
    let mut patience = Patience::new(ctx);
    while there < part.size {
        let (bytes, cut) = match source {
            PartSource::File(path) => {
                (piece(path, there, CHUNK).map_err(|e| disk(path, "read", &e))?, None)
            }
            PartSource::Object(fact) => {
                let door = shelf.ok_or_else(|| shelf::none_for(&fact.at))?.door()?;
                match door.read_object(fact, there, CHUNK) {
                    Ok(part) => (part.bytes, part.cut),
                    Err(error) => (Vec::new(), Some(error)),
                }
            }
        };
        if bytes.is_empty() && cut.is_none() {
            return Err(Error::failed(format!("{} has become shorter meanwhile", part.path))
                .hint("something writes there still: copy it when it is whole"));
        }
        file.write_all(&bytes).map_err(|e| disk(&partial, "write", &e))?;
        there += bytes.len() as u64;
        arrived(bytes.len() as u64)?;
        if let Some(error) = cut {
            patience.after(error, there)?;
        }
    }
    file.sync_all().map_err(|e| disk(&partial, "write", &e))?;
    drop(file);
    let expected = match source {
        PartSource::Object(fact) => fact.crc32c,
        PartSource::File(path) => Some(sum(path)?),
    };
    let same = source.version().is_ok_and(|now| now == version);
    if !same || expected.is_some_and(|expected| sum(&partial).map_or(true, |is| is != expected)) {
        drop(fs::remove_file(&partial));
        return Err(differs(&to.display().to_string()));
    }
    fs::rename(&partial, to).map_err(|e| disk(to, "write", &e))
}

/// Some bytes of a file.
fn piece(path: &Path, from: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut file: File = files::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file of this machine into a bucket. An object appears when it is whole, and only with the bytes that were announced.
pub(super) fn upload(
    (ctx, shelf): (&Ctx, &Shelf),
    (state, path): (&mut StateFile<'_>, &Path),
    part: &CheckpointPart,
    to: &ObjectAt,
    arrived: &mut Arrived<'_>,
) -> Result<(), Error> {
    let source = PartSource::File(path.to_owned());
    let version = source.version().map_err(|e| disk(path, "read", &e))?;
    let crc32c = sum(path)?;
    let known = shelf.object(ctx, to)?;
    if known.is_some_and(|fact| fact.size == part.size && fact.crc32c == Some(crc32c)) {
        return arrived(part.size);
    }
    let door = shelf.door()?;
    let mut patience = Patience::new(ctx);
    let mut session = state.part(&part.path, &version).map(|part| part.handle);
    let mut told = 0;
    // Nobody but the store knows what of it has arrived.
    let mut there = None;
    loop {
        let at = if let Some(at) = &session {
            at.clone()
        } else {
            let begun = shelf.ask(ctx, |door| door.begin_upload(to, crc32c))?;
            let (version, handle) = (version.clone(), begun.clone());
            state.keep(&part.path, Some(PartUnderWay { version, handle, written: 0 }))?;
            (there, session) = (Some(0), Some(begun.clone()));
            begun
        };
        let answer = match there {
            None => door.upload_state(&at, part.size),
            Some(from) => {
                let bytes = piece(path, from, CHUNK).map_err(|e| disk(path, "read", &e))?;
                if bytes.is_empty() && part.size > 0 {
                    return Err(Error::failed(format!("{} has become shorter", path.display()))
                        .hint("something writes there still: copy it when it is whole"));
                }
                door.upload((&at, part.size), from, &bytes)
            }
        };
        let reached = match answer {
            Ok(UploadState::Done(fact)) => {
                state.keep(&part.path, None)?;
                if fact.crc32c.is_some_and(|is| is != crc32c) || fact.size != part.size {
                    drop(shelf.ask(ctx, |door| door.delete_object(to, Some(fact.generation))));
                    return Err(differs(&to.to_string()));
                }
                return arrived(part.size.saturating_sub(told));
            }
            Ok(UploadState::Took(reached)) => reached,
            // Nobody remembers it: it begins again.
            Err(error)
                if error.trouble == Trouble::NotFound && patience.failures < retry::TRIES =>
            {
                patience.failures += 1;
                (session, there) = (None, None);
                continue;
            }
            Err(error) => {
                let message = error.message.contains("CRC32C");
                if error.trouble == Trouble::User && message {
                    state.keep(&part.path, None)?;
                    return Err(differs(&to.to_string()));
                }
                patience.after(error, told)?;
                there = None;
                continue;
            }
        };
        if reached > told {
            arrived(reached - told)?;
            told = reached;
        }
        there = Some(reached);
    }
}

/// From bucket to bucket, without a byte that comes through here.
pub(super) fn rewrite(
    (ctx, shelf): (&Ctx, &Shelf),
    state: &mut StateFile<'_>,
    (part, fact): (&CheckpointPart, &ObjectFact),
    to: &ObjectAt,
    arrived: &mut Arrived<'_>,
) -> Result<(), Error> {
    let version = fact.generation.to_string();
    let known = shelf.object(ctx, to)?;
    if known.is_some_and(|there| there.size == fact.size && there.crc32c == fact.crc32c) {
        return arrived(part.size);
    }
    let door = shelf.door()?;
    let mut patience = Patience::new(ctx);
    let known = state.part(&part.path, &version);
    let mut token = known.as_ref().map(|known| known.handle.clone());
    let mut told = known.map_or(0, |known| known.written);
    arrived(told)?;
    loop {
        match door.rewrite(fact, to, token.as_deref()) {
            Ok(RewriteState::Going { written, token: next }) => {
                let handle = next.clone();
                let kept = PartUnderWay { version: version.clone(), handle, written };
                state.keep(&part.path, Some(kept))?;
                token = Some(next);
                arrived(written.saturating_sub(told))?;
                told = told.max(written);
            }
            Ok(RewriteState::Done(copy)) => {
                state.keep(&part.path, None)?;
                if copy.size != fact.size || copy.crc32c != fact.crc32c {
                    drop(shelf.ask(ctx, |door| door.delete_object(to, Some(copy.generation))));
                    return Err(differs(&to.to_string()));
                }
                return arrived(fact.size.saturating_sub(told));
            }
            // The token is too old: from the beginning.
            Err(error)
                if token.is_some()
                    && matches!(error.trouble, Trouble::User | Trouble::NotFound)
                    && patience.failures == 0 =>
            {
                patience.failures += 1;
                state.keep(&part.path, None)?;
                token = None;
            }
            Err(error) => patience.after(error, told)?,
        }
    }
}
