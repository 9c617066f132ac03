//! An open directory, and what lies in it. No name in it is ever followed as a link, so a directory that is swapped for
//! a link meanwhile leads nowhere.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{self as at, AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

/// An open directory.
#[derive(Debug)]
pub struct OpenDir(OwnedFd);

/// A directory is opened to be listed.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl OpenDir {
    /// Opens a directory by its path, also through links.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(at::open(path, DIRECTORY, Mode::empty())?))
    }

    /// Opens a directory in this one. A link is refused.
    pub fn dir(&self, name: &OsStr) -> io::Result<Self> {
        match at::openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(dir) => Ok(Self(dir)),
            // Which of the two a link is depends on the system.
            Err(Errno::LOOP) => Err(Errno::NOTDIR.into()),
            Err(e) => Err(e.into()),
        }
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        Ok(names)
    }

    /// Describes what has a name in it; of a link, the link itself.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(at::openat(&self.0, name, flags, Mode::empty())?).metadata()
    }

    /// Where a link in it leads.
    pub fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let to = at::readlinkat(&self.0, name, Vec::new())?.into_bytes();
        Ok(PathBuf::from(OsString::from_vec(to)))
    }

    /// Reads a plain file in it.
    pub fn read(&self, name: &OsStr) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut file = File::from(at::openat(&self.0, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no plain file"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Replaces a file in it as a whole. Meanwhile its new contents have the name `new`, which nothing may have before.
    pub fn replace(&self, name: &OsStr, bytes: &[u8], new: &OsStr) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(at::openat(&self.0, new, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let replaced = written.and_then(|()| Ok(at::renameat(&self.0, new, &self.0, name)?));
        // A full disk is not filled with what could not be written.
        replaced.inspect_err(|_| drop(self.remove(new)))
    }

    /// Gives a file or a directory in it to a group, which may do with it what the bits `more` say, if `owner` owns it. A
    /// link is refused, and a file that has another name, perhaps elsewhere.
    pub fn share(&self, name: &OsStr, owner: u32, (group, more): (u32, u32)) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(at::openat(&self.0, name, flags, Mode::empty())?);
        let about = file.metadata()?;
        let is_one = about.is_dir() || about.is_file() && about.nlink() == 1;
        if !is_one || about.uid() != owner {
            return Err(io::Error::other("it is another file by now, or has several names"));
        }
        fchown(&file, None, Some(group))?;
        let mode = about.mode() & 0o7777;
        file.set_permissions(Permissions::from_mode(mode | more))
    }

    /// Removes a file or a link in it.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(at::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty directory in it.
    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        Ok(at::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn no_name_is_followed_as_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("there");
        fs::create_dir(&there).unwrap();
        File::create(there.join("kept")).unwrap().write_all(b"kept").unwrap();
        std::os::unix::fs::symlink(&there, dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink(there.join("kept"), dir.path().join("file")).unwrap();
        let open = OpenDir::open(dir.path()).unwrap();
        assert!(open.dir(OsStr::new("link")).is_err() && open.dir(OsStr::new("there")).is_ok());
        assert!(open.read(OsStr::new("file")).is_err());
        assert!(open.metadata(OsStr::new("link")).unwrap().is_symlink());
        assert_eq!(open.link(OsStr::new("link")).unwrap(), there);
        assert!(open.remove_dir(OsStr::new("link")).is_err());
        open.replace(OsStr::new("file"), b"other", OsStr::new("new")).unwrap();
        assert_eq!(open.read(OsStr::new("file")).unwrap(), b"other");
        open.remove(OsStr::new("link")).unwrap();
        assert_eq!(fs::read(there.join("kept")).unwrap(), b"kept");
        let mut names = open.names().unwrap();
        names.sort_unstable();
        assert_eq!(names, ["file", "there"]);
    }
}
