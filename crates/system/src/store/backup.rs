//! Earlier versions of the data file, `data.json.00000042`: the last ones that differ.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{Contents, Disk};
use super::error::{At as _, StoreError};
use super::paths::Paths;
use tpu_core::model::data::Data;

/// So many are kept.
pub const KEPT: usize = 20;

/// All backups, the newest first.
pub(super) fn list(disk: &dyn Disk, paths: &Paths) -> Vec<(u64, PathBuf)> {
    let prefix = format!("{}.", paths.name());
    let mut found: Vec<_> = disk
        .list(&paths.backups())
        .unwrap_or_default()
        .into_iter()
        .filter_map(|name| {
            let number = name.strip_prefix(&prefix)?.parse().ok()?;
            Some((number, paths.backups().join(&name)))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found
}

/// Keeps the present version of the data file. It is about to be replaced, never changed in place, so a
/// second name is enough where the file system has such names.
pub(super) fn keep(disk: &dyn Disk, paths: &Paths, old: &Contents) -> Result<(), StoreError> {
    let backups = list(disk, paths);
    if let Some((_, newest)) = backups.first()
        && is_copy(disk, newest, old)
    {
        // A writer crashed, or failed, after it had kept this version.
        return Ok(());
    }
    let number = backups.first().map_or(1, |(number, _)| number.saturating_add(1));
    let path = paths.backups().join(format!("{}.{number:08}", paths.name()));
    match disk.link(paths.data(), &path) {
        Ok(()) => {}
        Err(e) if is_final(&e) => return Err(e).at("write", &path),
        // Network file systems may do it and report a failure.
        Err(_) if is_copy(disk, &path, old) => {}
        Err(_) => {
            if let Err(error) = disk.create(&path, &old.bytes, old.stat.mode).at("write", &path) {
                drop(disk.remove(&path));
                return Err(error);
            }
        }
    }
    for (_, path) in backups.into_iter().skip(KEPT - 1) {
        drop(disk.remove(&path));
    }
    Ok(())
}

/// Whether a backup holds this very version. Only the newest is asked: versions that differ are kept.
fn is_copy(disk: &dyn Disk, backup: &Path, old: &Contents) -> bool {
    disk.stat(backup).is_ok_and(|stat| {
        stat.file == old.stat.file
            || (stat.size == old.stat.size
                && disk.read(backup).is_ok_and(|contents| contents.bytes == old.bytes))
    })
}

/// Whether a copy would fail as the link did.
fn is_final(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::NotFound
    )
}

/// The newest backup that can be read.
pub(super) fn newest_good(disk: &dyn Disk, paths: &Paths) -> Option<PathBuf> {
    list(disk, paths)
        .into_iter()
        .map(|(_, path)| path)
        .find(|path| disk.read(path).is_ok_and(|contents| Data::parse(&contents.bytes).is_ok()))
}
