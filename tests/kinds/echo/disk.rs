//! A disk that only the engine sees: a directory of which its jobs think that it is all there is.

use std::io;
use std::path::{Path, PathBuf};

use tpu_engine::runner::files::{Files, Listing, ThisDisk};

/// Its root, as it is seen from here.
pub(crate) struct Disk(pub(crate) PathBuf);

impl Disk {
    fn at(&self, path: &Path) -> PathBuf {
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }
}

impl Files for Disk {
    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        ThisDisk.is_dir(&self.at(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Listing> {
        ThisDisk.list(&self.at(dir))
    }

    fn read(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        ThisDisk.read(&self.at(path), from, most)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        ThisDisk.make_dir(&self.at(dir))
    }

    fn put(
        &self,
        from: &Path,
        what: &[PathBuf],
        to: &Path,
        copied: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        ThisDisk.put(from, what, &self.at(to), copied)
    }
}
