//! The file operations that the store uses, and no others. Each call is one moment at which a machine
//! can stop or a disk can refuse; tests have a disk that does so on demand.

use std::any::Any;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use crate::sys::{files, shared};

use super::line::Line;

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Device and inode.
    pub file: (u64, u64),
    /// Bytes.
    pub size: u64,
    /// Last change of the contents: seconds and nanoseconds since the epoch.
    pub modified: (i64, i64),
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Stat {
    /// Whether both describe the same version of the same file.
    pub(crate) fn same_version(&self, other: &Self) -> bool {
        (self.file, self.size, self.modified) == (other.file, other.size, other.modified)
    }
}

/// A file's contents with what was known of it at that moment.
pub struct Contents {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Of the very file that was read.
    pub stat: Stat,
    /// Keeps the inode from being given to another file, so that [`Stat::same_version`] stays true.
    pub pin: Box<dyn Any + Send + Sync>,
}

/// The file operations of the store.
pub trait Disk: Send + Sync {
    /// Reads a whole file.
    fn read(&self, path: &Path) -> io::Result<Contents>;

    /// Reads up to `len` bytes from `offset`; fewer at the end of the file.
    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Looks at a file or directory.
    fn stat(&self, path: &Path) -> io::Result<Stat>;

    /// The path without symbolic links, so that a replaced file does not replace a link.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;

    /// Creates a file that is not there yet, with these contents and mode, and brings it to the disk.
    fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()>;

    /// Gives a file to an owner and a group.
    fn set_owner(&self, path: &Path, uid: u32, gid: u32) -> io::Result<()>;

    /// Sets the permission bits.
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()>;

    /// Gives a file a second name that is not there yet.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Renames a file over another one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Brings the names in a directory to the disk.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Appends with a single write to a file that is created with `mode` if need be. `durable` brings it
    /// to the disk.
    fn append(&self, path: &Path, bytes: &[u8], mode: u32, durable: bool) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Runs `work` with the contents of a file that another program keeps as its lock, under the system's
    /// lock of that file, and without changing it. `false`, and `work` does not run, while somebody else
    /// holds that lock. Without such a file `work` gets nothing.
    fn beside_others(&self, path: &Path, work: &mut dyn FnMut(Option<&[u8]>)) -> io::Result<bool> {
        match self.read(path) {
            Ok(contents) => work(Some(&contents.bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => work(None),
            Err(e) => return Err(e),
        }
        Ok(true)
    }

    /// Creates a directory whose parent is there; below one with the setgid bit it has that bit as well. `false` if it was
    /// there already.
    fn make_dir(&self, dir: &Path, mode: u32) -> io::Result<bool>;

    /// Removes a directory with everything in it; one that is not there is done.
    fn remove_tree(&self, dir: &Path) -> io::Result<()>;

    /// Gives a file, which need not be there, a name that is not there yet.
    fn symlink(&self, target: &Path, link: &Path) -> io::Result<()>;

    /// Runs `work` while holding a lock, with `note` at the beginning of its file, up to a NUL byte. Does
    /// nothing if somebody else holds it, but leaves word there that this process waits. The lock dies with
    /// the process.
    fn with_lock(&self, lock: Lock<'_>, note: &[u8], work: &mut dyn FnMut()) -> io::Result<Locked>;

    /// Where the threads of a process stand before they ask for a lock. None where one thread plays many processes: what it
    /// waits for would never come.
    fn line(&self) -> Option<Line> {
        None
    }
}

/// A lock, and what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock<'a> {
    /// The file that is locked.
    pub path: &'a Path,
    /// Its mode, if it is to be made.
    pub mode: u32,
    /// The file that is read and then replaced under the lock, if there is one. It is locked as well: so
    /// nobody comes in who has made a lock file anew because somebody took this one away.
    pub guarded: Option<&'a Path>,
}

/// What came of an attempt to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locked {
    /// Somebody else holds it.
    Busy,
    /// The work is done and the lock free again.
    Done {
        /// Whether others asked for it meanwhile.
        awaited: bool,
    },
}

/// Whoever waits for a lock writes a byte here: a longer file tells the holder that somebody waits.
const WAITING: u64 = 4096;

/// The machine's own file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

fn stat_of(meta: &fs::Metadata) -> Stat {
    Stat {
        file: (meta.dev(), meta.ino()),
        size: meta.size(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        mode: meta.mode() & 0o7777,
        uid: meta.uid(),
        gid: meta.gid(),
    }
}

impl Disk for OsDisk {
    fn read(&self, path: &Path) -> io::Result<Contents> {
        let mut file = files::open(path)?;
        let meta = file.metadata()?;
        let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
        file.read_to_end(&mut bytes)?;
        Ok(Contents { bytes, stat: stat_of(&meta), pin: Box::new(file) })
    }

    fn read_at(&self, path: &Path, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let file = files::open(path)?;
        let mut bytes = vec![0; len];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read_at(rest, offset + filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(stat_of(&fs::metadata(path)?))
    }

    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()
    }

    fn set_owner(&self, path: &Path, uid: u32, gid: u32) -> io::Result<()> {
        std::os::unix::fs::chown(path, Some(uid), Some(gid))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn append(&self, path: &Path, bytes: &[u8], mode: u32, durable: bool) -> io::Result<()> {
        let mut file = open_shared(path, mode, true)?;
        file.write_all(bytes)?;
        if durable { file.sync_data() } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into())).collect()
    }

    fn make_dir(&self, dir: &Path, mode: u32) -> io::Result<bool> {
        match fs::DirBuilder::new().mode(mode).create(dir) {
            // The umask may have taken away what the group needs. What the directory above hands down is kept.
            Ok(()) => {
                let handed_down = self.stat(dir)?.mode & shared::SETGID;
                self.set_mode(dir, mode | handed_down).map(|()| true)
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn remove_tree(&self, dir: &Path) -> io::Result<()> {
        match fs::remove_dir_all(dir) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn symlink(&self, target: &Path, link: &Path) -> io::Result<()> {
        std::os::unix::fs::symlink(target, link)
    }

    fn with_lock(&self, lock: Lock<'_>, note: &[u8], work: &mut dyn FnMut()) -> io::Result<Locked> {
        let mut file = fd_lock::RwLock::new(open_shared(lock.path, lock.mode, false)?);
        let Some(mut guard) = try_lock(&mut file)? else {
            // Best effort: unseen, we merely wait a little longer.
            drop(file.into_inner().write_all_at(b"\n", WAITING));
            return Ok(Locked::Busy);
        };
        // A file that was taken away between opening and locking guards nothing.
        if !is_at(&guard, lock.path)? {
            return Ok(Locked::Busy);
        }
        let mut guarded = lock.guarded.and_then(open_guarded).map(fd_lock::RwLock::new);
        let behind = match guarded.as_mut().map(fd_lock::RwLock::try_write) {
            Some(Ok(behind)) => Some(behind),
            // Its holder works under a lock file that is gone. It will replace what we have opened.
            Some(Err(e)) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Locked::Busy),
            // Nothing to guard yet, or a file system without such locks: the lock file is all there is.
            Some(Err(_)) | None => None,
        };
        if let (Some(behind), Some(path)) = (&behind, lock.guarded)
            && !is_at(behind, path)?
        {
            return Ok(Locked::Busy);
        }
        // The note is for people who wait. A full disk must not keep anybody from working.
        drop(write_note(&mut guard, note));
        work();
        let awaited = guard.metadata().is_ok_and(|meta| meta.len() > WAITING);
        Ok(Locked::Done { awaited })
    }

    fn line(&self) -> Option<Line> {
        Some(Line::default())
    }

    fn beside_others(&self, path: &Path, work: &mut dyn FnMut(Option<&[u8]>)) -> io::Result<bool> {
        let opened = files::open_with(path, OpenOptions::new().read(true).write(true));
        let file = match opened {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                work(None);
                return Ok(true);
            }
            // Who may only read it can lock it all the same, on most file systems.
            Err(_) => files::open(path)?,
        };
        let mut lock = fd_lock::RwLock::new(file);
        let Some(mut guard) = try_lock(&mut lock)? else { return Ok(false) };
        if !is_at(&guard, path)? {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        guard.read_to_end(&mut bytes)?;
        work(Some(&bytes));
        Ok(true)
    }
}

/// Locks if nobody else has.
fn try_lock(
    lock: &mut fd_lock::RwLock<File>,
) -> io::Result<Option<fd_lock::RwLockWriteGuard<'_, File>>> {
    match lock.try_write() {
        Ok(guard) => Ok(Some(guard)),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether an open file is the one that has this name now.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let opened = stat_of(&file.metadata()?).file;
    match fs::metadata(path) {
        Ok(now) => Ok(stat_of(&now).file == opened),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Opens what a lock guards. `None` if it is not there yet or cannot be opened: whoever works on it says why.
fn open_guarded(path: &Path) -> Option<File> {
    // Network file systems lock what is open for writing.
    let to_write = files::open_with(path, OpenOptions::new().read(true).write(true));
    to_write.or_else(|_| files::open(path)).ok()
}

fn write_note(file: &mut File, note: &[u8]) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(note)
}

/// Opens a file that several accounts write. A new one gets exactly `mode`, whatever the umask; in a shared directory
/// whoever of the group may read it may write it as well.
fn open_shared(path: &Path, mode: u32, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(append).write(true);
    match files::open_own(path, &options) {
        Ok(file) => {
            // One that an earlier version made for several.
            let others = 0o077;
            if mode & others == 0 && file.metadata()?.mode() & others != 0 {
                drop(file.set_permissions(fs::Permissions::from_mode(mode)));
            }
            return Ok(file);
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    match files::open_own(path, options.clone().create_new(true).mode(mode)) {
        Ok(file) => {
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            if mode & 0o040 != 0 {
                shared::hand_down(path);
            }
            Ok(file)
        }
        // Somebody else was faster.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => files::open_own(path, &options),
        Err(e) => Err(e),
    }
}
