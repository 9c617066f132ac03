//! The objects of the simulated buckets: real files beside the fleet's file, so that a person can look at them.
//!
//! An object is a file below `BUCKET/`, in directories as its name has slashes, with what is known of it beside it.
//! Uploads and copies that are not whole yet lie in directories of their own and have no name in the bucket.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use tpu_core::model::time::Timestamp;
use tpu_system::sys::files;

/// What the names of files with bytes end in: no escaped name holds it.
const BYTES: &str = "%o";
/// The same of what is known of them.
const KNOWN: &str = "%m";

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) size: u64,
    pub(crate) crc32c: u32,
    pub(crate) generation: u64,
    pub(crate) updated: Timestamp,
}

/// An upload that is not whole yet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Uploading {
    pub(crate) bucket: String,
    pub(crate) name: String,
    /// What its sum is to be, where that was said.
    pub(crate) crc32c: Option<u32>,
}

/// How far a copy from bucket to bucket is.
pub(crate) enum Rewritten {
    Going(u64),
    Done(Kept),
}

/// The files.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    root: PathBuf,
}

/// Held while an upload or a copy grows: what somebody asked for who is gone by now does not mix with what is asked for next.
static GROWING: Mutex<()> = Mutex::new(());

/// Newer versions have higher numbers, also within one instant.
static NEWEST: AtomicU64 = AtomicU64::new(0);

fn generation(now: Timestamp) -> u64 {
    let at = u64::try_from(now.as_second()).unwrap_or_default().saturating_mul(1_000_000);
    let next = |newest: u64| Some(at.max(newest + 1));
    let before = NEWEST.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
    at.max(before.unwrap_or_default() + 1)
}

impl Objects {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn file(&self, bucket: &str, name: &str, ending: &str) -> PathBuf {
        let mut path = self.root.join(escaped(bucket));
        let mut parts = name.split('/').peekable();
        while let Some(part) = parts.next() {
            let plain = escaped(part);
            path.push(if parts.peek().is_some() { plain } else { plain + ending });
        }
        path
    }

    /// One object, if it is there.
    pub(crate) fn known(&self, bucket: &str, name: &str) -> io::Result<Option<Kept>> {
        match fs::read(self.file(bucket, name, KNOWN)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(e) if is_missing(&e) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Its bytes.
    pub(crate) fn open(&self, bucket: &str, name: &str) -> io::Result<File> {
        File::open(self.file(bucket, name, BYTES))
    }

    /// The names of all in a bucket that begin so, in their order.
    pub(crate) fn names(&self, bucket: &str, prefix: &str) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        let mut open = vec![(self.root.join(escaped(bucket)), String::new())];
        while let Some((dir, above)) = open.pop() {
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(e) if is_missing(&e) => continue,
                Err(e) => return Err(e),
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type()?.is_dir() {
                    open.push((entry.path(), format!("{above}{}/", plain(&name))));
                } else if let Some(name) = name.strip_suffix(KNOWN) {
                    found.push(format!("{above}{}", plain(name)));
                }
            }
        }
        found.retain(|name| name.starts_with(prefix));
        found.sort_unstable();
        Ok(found)
    }

    /// Takes one away; whether it was there.
    pub(crate) fn remove(&self, bucket: &str, name: &str) -> io::Result<bool> {
        let was_there = match fs::remove_file(self.file(bucket, name, KNOWN)) {
            Ok(()) => true,
            Err(e) if is_missing(&e) => false,
            Err(e) => return Err(e),
        };
        match fs::remove_file(self.file(bucket, name, BYTES)) {
            Err(e) if !is_missing(&e) => Err(e),
            _ => Ok(was_there),
        }
    }

    /// Lets nothing else grow meanwhile.
    pub(crate) fn alone() -> MutexGuard<'static, ()> {
        GROWING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn upload(&self, id: &str, ending: &str) -> PathBuf {
        self.root.join(".uploads").join(escaped(id) + ending)
    }

    /// Begins an upload; returns its id.
    pub(crate) fn begin(&self, of: &Uploading, now: Timestamp) -> io::Result<String> {
        let id = format!("{}", generation(now));
        let path = self.upload(&id, KNOWN);
        make_parent(&path)?;
        File::create(&path)?.write_all(&serde_json::to_vec(of)?)?;
        File::create(self.upload(&id, BYTES))?;
        Ok(id)
    }

    /// An upload that is not whole yet, and how many bytes of it are there.
    pub(crate) fn uploading(&self, id: &str) -> io::Result<Option<(Uploading, u64)>> {
        let known = match fs::read(self.upload(id, KNOWN)) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(e) if is_missing(&e) => return Ok(None),
            Err(e) => return Err(e),
        };
        Ok(Some((known, fs::metadata(self.upload(id, BYTES))?.len())))
    }

    /// Adds bytes at its end.
    pub(crate) fn append(&self, id: &str, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).open(self.upload(id, BYTES))?.write_all(bytes)
    }

    /// Makes an upload the object; `None` where its bytes are not those that were announced.
    pub(crate) fn finish(
        &self,
        (id, of): (&str, &Uploading),
        now: Timestamp,
    ) -> io::Result<Option<Kept>> {
        let bytes = self.upload(id, BYTES);
        let crc32c = files::crc32c(&bytes)?;
        let is_right = of.crc32c.is_none_or(|expected| expected == crc32c);
        let kept = if is_right {
            Some(self.put(&bytes, (&of.bucket, &of.name), crc32c, now)?)
        } else {
            None
        };
        fs::remove_file(self.upload(id, KNOWN))?;
        if !is_right {
            fs::remove_file(bytes)?;
        }
        Ok(kept)
    }

    /// Gives a whole file its name in the bucket.
    fn put(
        &self,
        bytes: &Path,
        (bucket, name): (&str, &str),
        crc32c: u32,
        now: Timestamp,
    ) -> io::Result<Kept> {
        let size = fs::metadata(bytes)?.len();
        let kept = Kept { size, crc32c, generation: generation(now), updated: now };
        let path = self.file(bucket, name, BYTES);
        make_parent(&path)?;
        fs::rename(bytes, path)?;
        File::create(self.file(bucket, name, KNOWN))?.write_all(&serde_json::to_vec(&kept)?)?;
        Ok(kept)
    }

    /// Goes on with the copy of an object that has this token, by so many bytes.
    pub(crate) fn rewrite(
        &self,
        from: (&str, &str),
        to: (&str, &str),
        (token, most): (&str, u64),
        now: Timestamp,
    ) -> io::Result<Rewritten> {
        let partial = self.root.join(".rewrites").join(escaped(token));
        make_parent(&partial)?;
        let mut target = OpenOptions::new().create(true).append(true).open(&partial)?;
        let there = target.metadata()?.len();
        let mut source = self.open(from.0, from.1)?;
        let size = source.metadata()?.len();
        source.seek(SeekFrom::Start(there))?;
        io::copy(&mut source.take(most), &mut target)?;
        let there = target.metadata()?.len();
        if there < size {
            return Ok(Rewritten::Going(there));
        }
        drop(target);
        let crc32c = files::crc32c(&partial)?;
        self.put(&partial, to, crc32c, now).map(Rewritten::Done)
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// A part of a name as the name of a file. An empty one, and one of dots, is none.
fn escaped(part: &str) -> String {
    if part.is_empty() {
        return "%e".to_owned();
    }
    let dots = part.bytes().all(|byte| byte == b'.');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=+,@".contains(&byte);
    let mut out = String::new();
    for byte in part.bytes() {
        if plain(byte) || byte == b'.' && !dots {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

/// The opposite.
fn plain(file: &str) -> String {
    if file == "%e" {
        return String::new();
    }
    let mut bytes = Vec::new();
    let mut parts = file.split('%');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let byte = part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.extend(byte);
        bytes.extend(part.get(2..).unwrap_or_default().bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_a_file_and_itself_again() {
        let dir = tempfile::tempdir().unwrap();
        let objects = Objects::new(dir.path().to_owned());
        let now = Timestamp::from_second(1_000);
        let names = ["a", "a/b", "a//b", "../x", "ä 1%2/.", "a.o/c"];
        for name in names {
            let of = Uploading { bucket: "lab".to_owned(), name: name.to_owned(), crc32c: None };
            let id = objects.begin(&of, now).unwrap();
            objects.append(&id, name.as_bytes()).unwrap();
            let kept = objects.finish((&id, &of), now).unwrap().unwrap();
            assert_eq!(kept.crc32c, crc32c::crc32c(name.as_bytes()));
        }
        let mut all = names.map(str::to_owned).to_vec();
        all.sort_unstable();
        assert_eq!(objects.names("lab", "").unwrap(), all);
        assert_eq!(objects.names("lab", "a/").unwrap(), ["a//b", "a/b"]);
        assert!(objects.remove("lab", "../x").unwrap() && !objects.remove("lab", "../x").unwrap());
        assert!(!dir.path().parent().unwrap().join("x%o").exists());
    }
}
