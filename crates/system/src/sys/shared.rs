//! Directories that several accounts share: their group may write there, and they hand it down (the setgid bit), so that
//! what one account makes is also the others'.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;

use super::accounts;

/// The bit of a directory by which what is made in it is of its group.
pub const SETGID: u32 = 0o2000;

/// Mode of a shared directory: all of its group may read, write and enter, and nobody else.
pub const SHARED: u32 = 0o2770;

/// What the group may do with a file that is shared.
pub const GROUP_READS_AND_WRITES: u32 = 0o060;

/// Whether a directory of this mode is shared with its group.
pub fn is_shared(mode: u32) -> bool {
    let asked = SETGID | 0o020;
    mode & asked == asked
}

/// Makes a directory and those above it. What is new below a shared directory is shared as well.
pub fn make_dirs(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) {
        make_dirs(above)?;
    }
    match fs::create_dir(dir) {
        Ok(()) => {
            hand_down(dir);
            Ok(())
        }
        // Somebody else was faster.
        Err(_) if dir.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives what was just made in a shared directory to its group, whatever the umask. Where that fails it stays its owner's,
/// and `doctor` says so.
pub fn hand_down(made: &Path) {
    let above = made.parent().and_then(|above| fs::metadata(above).ok());
    if !above.is_some_and(|above| is_shared(above.permissions().mode())) {
        return;
    }
    // Whoever shares the directory may have put a link in its place.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(made) = rustix::fs::open(made, flags, Mode::empty()).map(fs::File::from) else { return };
    let Ok(about) = made.metadata() else { return };
    let more = match about.file_type() {
        kind if kind.is_dir() => SHARED,
        kind if kind.is_file() => GROUP_READS_AND_WRITES,
        _ => return,
    };
    let mode = about.permissions().mode() & 0o7777;
    drop(made.set_permissions(Permissions::from_mode(mode | more)));
}

/// A place in which this account may not write.
#[derive(Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// The directory that forbids it, which exists.
    pub place: PathBuf,
    /// Why, and whose it is, as in `permission denied; it belongs to alice:lab, mode 0755`.
    pub why: String,
}

/// Whether this account may make files in a directory, or make the directory: then the next one above that exists counts.
/// Where only a disk is missing, which may come back, nothing is said.
pub fn may_write_below(dir: &Path) -> Result<(), Unwritable> {
    let Some(place) = dir.ancestors().find(|place| place.is_dir()) else { return Ok(()) };
    // Where nothing but the root of all exists, a disk is missing.
    if place.parent().is_none_or(|above| above.as_os_str().is_empty()) {
        return Ok(());
    }
    may(place, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|why| Unwritable { place: place.to_owned(), why })
}

/// Why this account may not read and write a file, or use a directory, that exists.
pub fn may_use(path: &Path) -> Result<(), String> {
    let also = if path.is_dir() { Access::EXEC_OK } else { Access::empty() };
    may(path, Access::READ_OK | Access::WRITE_OK | also)
}

fn may(path: &Path, access: Access) -> Result<(), String> {
    let refused = match rustix::fs::access(path, access) {
        Err(errno @ (Errno::ACCESS | Errno::PERM)) => errno,
        Err(errno @ Errno::ROFS) => return Err(because(errno)),
        Ok(()) | Err(_) => return Ok(()),
    };
    let Ok(meta) = fs::metadata(path) else { return Err(because(refused)) };
    let (owner, group) = (accounts::name(meta.uid()), accounts::group(meta.gid()));
    let mode = meta.mode() & 0o7777;
    Err(format!("{}; it belongs to {owner}:{group}, mode {mode:04o}", because(refused)))
}

/// The system's words, without its number.
fn because(errno: Errno) -> String {
    io::Error::from(errno).kind().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn what_is_made_below_a_shared_directory_is_shared() {
        let dir = tempfile::tempdir().unwrap();
        let (shared, own) = (dir.path().join("shared"), dir.path().join("own"));
        for (path, mode) in [(&shared, SHARED), (&own, 0o700)] {
            fs::create_dir(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
        make_dirs(&shared.join("logs/alice/1")).unwrap();
        make_dirs(&shared.join("logs/alice/1")).unwrap();
        for below in ["logs", "logs/alice", "logs/alice/1"] {
            assert_eq!(mode(&shared.join(below)) & SHARED, SHARED, "{below}");
        }
        let log = shared.join("logs/alice/1/output.log");
        drop(fs::File::create(&log).unwrap());
        fs::set_permissions(&log, Permissions::from_mode(0o600)).unwrap();
        hand_down(&log);
        assert_eq!(mode(&log), 0o660);
        make_dirs(&own.join("logs")).unwrap();
        assert_eq!(mode(&own.join("logs")) & SETGID, 0, "nobody has said that it is shared");
        drop(fs::File::create(own.join("file")).unwrap());
        assert!(make_dirs(&own.join("file/below")).is_err());
        assert!(make_dirs(&own.join("file")).is_err());
        assert_eq!(may_write_below(&own.join("logs/bob/1")), Ok(()));
        assert_eq!(may_write_below(Path::new("/no disk/logs/bob")), Ok(()), "it may come back");
    }
}
