//! Replacing a file whole: readers see the old version or the new one, also after a power failure.

use std::path::{Path, PathBuf};

use super::disk::{Disk, Stat};
use super::error::{At as _, StoreError};
use crate::sys::random::{OsRandom, Random as _};
use crate::sys::shared;

/// Owner, group and mode that a file is to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep {
    pub(super) mode: u32,
    pub(super) owner: Option<(u32, u32)>,
}

impl Keep {
    /// Those of an existing file.
    pub(super) fn of(stat: &Stat) -> Self {
        Self { mode: stat.mode, owner: Some((stat.uid, stat.gid)) }
    }
}

/// Writes the temporary file that is to replace `path`, on the disk and with the right owner. Warns where the owner cannot
/// be kept.
pub(super) fn stage(
    disk: &dyn Disk,
    (temporary, path): (&Path, &Path),
    bytes: &[u8],
    keep: Keep,
) -> Result<Vec<String>, StoreError> {
    let mut warnings = Vec::new();
    let mut staged = || {
        disk.create(temporary, bytes, keep.mode).at("write", path)?;
        if let Some((uid, gid)) = keep.owner {
            let now = disk.stat(temporary).at("look at", path)?;
            if (now.uid, now.gid) != (uid, gid) {
                let kept = disk
                    .set_owner(temporary, uid, gid)
                    // A person can give a file to the group without giving it to the owner.
                    .or_else(|_| disk.set_owner(temporary, now.uid, gid));
                if let Ok(now) = disk.stat(temporary)
                    && (kept.is_err() || now.uid != uid)
                    && !is_of_group(disk, temporary, (&now, gid, keep.mode))
                {
                    let changed = if now.gid == gid { "owner" } else { "owner and group" };
                    warnings.push(format!(
                        "the {changed} of the data file changed from {uid}:{gid} to {}:{}",
                        now.uid, now.gid
                    ));
                }
                // Changing the owner may have taken special bits away.
                disk.set_mode(temporary, keep.mode).at("set the mode of", path)?;
            }
        }
        Ok(())
    };
    if let Err(error) = staged() {
        // What cannot be removed now is removed by the next writer.
        drop(disk.remove(temporary));
        return Err(error);
    }
    Ok(warnings)
}

/// Whether it does not matter who owns a file: in a directory that accounts share, its group may do all with it.
fn is_of_group(disk: &dyn Disk, path: &Path, (now, gid, mode): (&Stat, u32, u32)) -> bool {
    let is_shared = |dir: &Stat| shared::is_shared(dir.mode) && dir.gid == gid;
    let dir = path.parent().and_then(|dir| disk.stat(dir).ok());
    let may = mode & shared::GROUP_READS_AND_WRITES == shared::GROUP_READS_AND_WRITES;
    now.gid == gid && may && dir.is_some_and(|dir| is_shared(&dir))
}

/// Puts a staged file in the place of another one. Once that is done there is no way back: if the
/// directory cannot be brought to the disk, that is a warning.
pub(super) fn replace(
    disk: &dyn Disk,
    temporary: &Path,
    path: &Path,
    dir: &Path,
) -> Result<Option<String>, StoreError> {
    if let Err(error) = disk.rename(temporary, path).at("replace", path) {
        drop(disk.remove(temporary));
        return Err(error);
    }
    let synced = disk.sync_dir(dir).at("bring to the disk", dir);
    Ok(synced.err().map(|error| format!("the change might not survive a power failure: {error}")))
}

/// Removes temporary files that a crashed writer left behind. Only the holder of the lock may.
pub(super) fn sweep(disk: &dyn Disk, dir: &Path, prefix: &str) {
    for name in disk.list(dir).unwrap_or_default() {
        if name.starts_with(prefix) {
            // It costs space and nothing else: not worth failing for.
            drop(disk.remove(&dir.join(name)));
        }
    }
}

/// Replaces the contents of a file that is ours alone (a launcher, `sim.json`), or creates it.
pub fn write_file(disk: &dyn Disk, path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
    let (temporary, dir) = fresh(path);
    stage(disk, (&temporary, path), bytes, Keep { mode, owner: None })?;
    replace(disk, &temporary, path, &dir).map(drop)
}

/// The same for what says nothing any more once the machine has started anew: the disk is not waited for.
pub fn write_passing(
    disk: &dyn Disk,
    path: &Path,
    bytes: &[u8],
    mode: u32,
) -> Result<(), StoreError> {
    let (temporary, _) = fresh(path);
    let written = disk
        .append(&temporary, bytes, mode, false)
        .at("write", path)
        .and_then(|()| disk.rename(&temporary, path).at("replace", path));
    if written.is_err() {
        drop(disk.remove(&temporary));
    }
    written
}

/// A temporary file beside a file that no other writer names so, neither another thread nor a process of another machine, and
/// their directory.
pub(super) fn fresh(path: &Path) -> (PathBuf, PathBuf) {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let dir = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    let unique = format!("{}-{}", std::process::id(), OsRandom.hex(8));
    (dir.join(format!(".{name}.tmp-{unique}")), dir)
}

#[cfg(test)]
mod tests {
    use super::super::disk::OsDisk;
    use super::*;

    #[test]
    fn who_writes_in_between_takes_no_temporary_file_of_another_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("note.json");
        let (first, of_first) = fresh(&path);
        let keep = Keep { mode: 0o600, owner: None };
        assert!(stage(&OsDisk, (&first, &path), b"first", keep).unwrap().is_empty());
        write_file(&OsDisk, &path, b"second", 0o600).unwrap();
        write_passing(&OsDisk, &path, b"third", 0o600).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(replace(&OsDisk, &first, &path, &of_first).unwrap(), None);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert_eq!(OsDisk.list(dir.path()).unwrap(), ["note.json"], "nothing is left");
    }

    #[test]
    fn a_temporary_file_of_the_data_file_is_known_by_its_name() {
        let data = Path::new("/lab/data.json");
        let (temporary, dir) = fresh(data);
        let name = temporary.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with(&super::super::Paths::new(data.into()).temporary_prefix()));
        assert_eq!(dir, Path::new("/lab"));
    }
}
