//! The disk on which the code, the logs and the checkpoints of attempts lie: this machine's, or one that is
//! seen through the login node of an engine.

use std::ffi::OsString;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use tpu_core::model::time::Timestamp;
use tpu_system::sys::{files, shared};

use super::tree::{self, COPIED, InTree};

/// The doors to such a disk. That it could not be asked is an error, and never says that something is missing.
pub trait Files: Send + Sync {
    /// Whether there is a directory of this name.
    fn is_dir(&self, path: &Path) -> io::Result<bool>;

    /// What lies in a directory.
    fn list(&self, dir: &Path) -> io::Result<Listing>;

    /// Whether the disk is there on which a path would lie, so that what is not found there is not there at all. Who
    /// cannot tell by the disk itself tells by the directory that would hold it.
    fn has_disk(&self, path: &Path) -> bool {
        path.parent().is_some_and(|parent| self.is_dir(parent).unwrap_or_default())
    }

    /// What a file holds from this byte on, so many bytes at most. `None` where nothing has its name.
    fn read(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>>;

    /// As [`Files::read`], of what a job keeps for us. A link in its place, which leads anywhere, is an error. On a volume
    /// it leads nowhere else.
    fn read_own(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        self.read(path, from, most)
    }

    /// Whether a file, or one of those below a directory, was written at this instant or later; `None` where the disk does not
    /// say.
    fn is_written_since(&self, _path: &Path, _since: Timestamp) -> io::Result<Option<bool>> {
        Ok(None)
    }

    /// Makes a directory and those above it.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes directories and those above them, with as few questions as it takes.
    fn make_dirs(&self, dirs: &[PathBuf]) -> io::Result<()> {
        dirs.iter().try_for_each(|dir| self.make_dir(dir))
    }

    /// The files below a directory; `None` where nothing has its name, or where nobody can list them.
    fn tree(&self, _dir: &Path) -> io::Result<Option<Vec<InTree>>> {
        Ok(None)
    }

    /// Copies `what` lies below `from` on this machine: paths relative to it, directories before what is in them.
    /// Under the name `to` there is afterwards all of it or, where that failed, nothing; and in it [`COPIED`], which lists it.
    /// `copied` hears the bytes of each file, where that is known before all is there.
    fn put(
        &self,
        from: &Path,
        what: &[PathBuf],
        to: &Path,
        copied: &mut dyn FnMut(u64),
    ) -> io::Result<()>;

    /// Whether this machine sees the same files under the same paths.
    fn is_seen_from_here(&self) -> bool {
        false
    }
}

/// What lies in a directory.
#[derive(Debug)]
pub enum Listing {
    /// Nothing has its name.
    NotThere,
    /// What has its name is no directory.
    NoDirectory,
    /// It is there.
    Entries {
        /// What lies in it, in any order.
        entries: Vec<Entry>,
        /// Why there may be more.
        unread: Option<io::Error>,
    },
}

/// Something in a directory.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// What is in it; `None` if it was removed meanwhile.
    pub content: io::Result<Option<Content>>,
}

/// What is in a file or a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is empty.
    Nothing,
    /// It is a file with bytes in it.
    File,
    /// It is a directory with something in it.
    Directory,
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThisDisk;

impl Files for ThisDisk {
    fn is_seen_from_here(&self) -> bool {
        true
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Ok(meta) => Ok(meta.is_dir()),
            Err(e) if is_gone(path, &e) || e.kind() == io::ErrorKind::NotADirectory => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Listing> {
        match fs::metadata(dir) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Ok(Listing::NoDirectory),
            Err(e) if is_gone(dir, &e) => return Ok(Listing::NotThere),
            Err(e) => return Err(e),
        }
        let (mut entries, mut unread) = (Vec::new(), None);
        for entry in fs::read_dir(dir)? {
            match entry {
                Ok(entry) => {
                    let content = content(&entry.path());
                    entries.push(Entry { name: entry.file_name(), content });
                }
                Err(e) => unread = Some(e),
            }
        }
        Ok(Listing::Entries { entries, unread })
    }

    fn read(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        match files::open(path) {
            Err(e) if is_gone(path, &e) => Ok(None),
            opened => part(opened?, from, most).map(Some),
        }
    }

    fn read_own(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        match files::open_own(path, fs::OpenOptions::new().read(true)) {
            Err(e) if is_gone(path, &e) => Ok(None),
            opened => part(opened?, from, most).map(Some),
        }
    }

    fn is_written_since(&self, path: &Path, since: Timestamp) -> io::Result<Option<bool>> {
        is_written_since(path, since).map(Some)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        shared::make_dirs(dir)
    }

    fn tree(&self, dir: &Path) -> io::Result<Option<Vec<InTree>>> {
        match tree::of_this_disk(dir) {
            Err(e) if is_gone(dir, &e) => Ok(None),
            all => all.map(Some),
        }
    }

    fn put(
        &self,
        from: &Path,
        what: &[PathBuf],
        to: &Path,
        copied: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        let partial = partial(to);
        shared::make_dirs(&partial)?;
        let what = || what.iter().filter(|path| *path != Path::new(COPIED));
        for path in what() {
            let (source, copy) = (from.join(path), partial.join(path));
            let bytes = put_one(&source, &copy, path)
                .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", source.display())))?;
            copied(bytes);
        }
        tree::write_list(&partial, what())?;
        fs::rename(partial, to)
    }
}

/// What a file holds from this byte on, so many bytes at most.
pub(super) fn part(mut file: fs::File, from: u64, most: u64) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where a copy lies that is not whole yet.
pub fn partial(copy: &Path) -> PathBuf {
    let mut partial = copy.as_os_str().to_owned();
    partial.push(".partial");
    PathBuf::from(partial)
}

/// Copies a directory without what is in it, a link so that it points to what it pointed to, or a file. Anything else is no
/// code. `path` is where it lies below what is copied. The bytes that were copied.
fn put_one(source: &Path, copy: &Path, path: &Path) -> io::Result<u64> {
    let kind = match fs::symlink_metadata(source) {
        Ok(meta) => meta.file_type(),
        // Removed meanwhile: whoever writes there is at work.
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(0);
        }
        Err(e) => return Err(e),
    };
    if kind.is_dir() {
        fs::create_dir_all(copy).map(|()| 0)
    } else if kind.is_symlink() {
        let mut to = fs::read_link(source)?;
        let dir = path.parent().unwrap_or(Path::new(""));
        if leads_out(&dir.join(&to)) {
            to = source.parent().unwrap_or(source).join(to);
        }
        std::os::unix::fs::symlink(to, copy).map(|()| 0)
    } else if kind.is_file() {
        if is_same(source, copy)? {
            return Err(io::Error::other("a link stands in the place of a directory above it"));
        }
        let bytes = fs::copy(source, copy)?;
        // What is built by the times of files is not built anew. A disk that keeps none is a disk all the same.
        let written = fs::metadata(source).and_then(|source| source.modified());
        drop(written.and_then(|written| fs::File::open(copy)?.set_modified(written)));
        Ok(bytes)
    } else {
        Ok(0)
    }
}

/// Whether the place of a copy is the file itself, behind a link: to write there would empty it.
fn is_same(source: &Path, copy: &Path) -> io::Result<bool> {
    match fs::metadata(copy) {
        Ok(there) => {
            let own = fs::metadata(source)?;
            Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether a relative path leaves the directory in which it begins.
fn leads_out(path: &Path) -> bool {
    let mut depth = 0_u32;
    path.components().any(|part| match part {
        Component::ParentDir => {
            depth = depth.wrapping_sub(1);
            depth == u32::MAX
        }
        Component::Normal(_) => {
            depth += 1;
            false
        }
        Component::CurDir | Component::RootDir | Component::Prefix(_) => false,
    })
}

fn content(path: &Path) -> io::Result<Option<Content>> {
    let read = || {
        let meta = fs::metadata(path)?;
        if !meta.is_dir() {
            return Ok(if meta.len() > 0 { Content::File } else { Content::Nothing });
        }
        let first = fs::read_dir(path)?.next().transpose()?;
        Ok(if first.is_some() { Content::Directory } else { Content::Nothing })
    };
    match read() {
        Ok(content) => Ok(Some(content)),
        Err(e) if is_gone(path, &e) => Ok(None),
        Err(e) => Err(e),
    }
}

fn is_written_since(path: &Path, since: Timestamp) -> io::Result<bool> {
    let meta = fs::metadata(path)?;
    if !meta.is_dir() {
        let at = jiff::Timestamp::try_from(meta.modified()?).map_err(io::Error::other)?;
        return Ok(Timestamp::from_jiff(at) >= since);
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // A link below it leads anywhere.
        if !entry.file_type()?.is_symlink() && is_written_since(&entry.path(), since)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether nothing has this name. A link to something that is not there, as on a disk that is not mounted, is
/// something.
fn is_gone(path: &Path, error: &io::Error) -> bool {
    let is_missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    is_missing(error) && fs::symlink_metadata(path).is_err_and(|e| is_missing(&e))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_read_from_any_byte_on_and_one_that_is_missing_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        assert_eq!(ThisDisk.read(&path, 0, 9).unwrap(), None);
        fs::File::create(&path).unwrap().write_all(b"a line").unwrap();
        let read = |from, most| ThisDisk.read(&path, from, most).unwrap().unwrap();
        assert_eq!([read(0, 9), read(2, 2), read(99, 9)], [&b"a line"[..], b"li", b""]);
        assert!(ThisDisk.read(dir.path(), 0, 9).is_err(), "a directory is no file");
    }

    #[test]
    fn a_copy_is_whole_or_not_there_and_what_vanished_meanwhile_is_none_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::File::create(from.join("sub/train")).unwrap().write_all(b"code").unwrap();
        let what = ["sub", "sub/gone", "sub/train"].map(PathBuf::from);
        let mut bytes = 0;
        ThisDisk.put(&from, &what, &to, &mut |of_one| bytes += of_one).unwrap();
        assert_eq!(bytes, 4);
        assert!(to.join("sub/train").is_file() && !to.join("sub/gone").exists());
        // Where a part of it cannot be written there is nothing under the name.
        let (other, odd) = (dir.path().join("other"), ["sub/train", "sub"].map(PathBuf::from));
        assert!(ThisDisk.put(&from, &odd, &other, &mut |_| {}).is_err());
        assert!(!other.exists());
    }

    #[test]
    fn no_file_is_written_over_itself_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (from, behind) = (dir.path().join("from"), dir.path().join("behind"));
        fs::create_dir_all(behind.join("sub")).unwrap();
        fs::create_dir_all(&from).unwrap();
        let own = behind.join("sub/own");
        fs::File::create(&own).unwrap().write_all(b"kept").unwrap();
        // It was a directory when the list was made.
        std::os::unix::fs::symlink(&behind, from.join("data")).unwrap();
        let what = ["data", "data/sub", "data/sub/own"].map(PathBuf::from);
        assert!(ThisDisk.put(&from, &what, &dir.path().join("copy"), &mut |_| {}).is_err());
        assert_eq!(fs::read(&own).unwrap(), b"kept");
    }
}
