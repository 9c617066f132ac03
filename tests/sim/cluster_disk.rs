//! The disk that the nodes of a simulated cluster share: directories and files in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tpu_core::model::time::Timestamp;
use tpu_engine::runner::files::{Content, Entry, Files, Listing};
use tpu_slurm::client::{ClusterDisk, FileMark};
use tpu_system::sys::clock::Clock as _;

use super::lies;
use super::world::TrueTime;

/// The disk. Cheap to share.
#[derive(Clone)]
pub(crate) struct MemoryDisk {
    time: TrueTime,
    contents: Arc<Mutex<Contents>>,
}

#[derive(Default)]
struct Contents {
    dirs: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, (Vec<u8>, Timestamp)>,
}

impl MemoryDisk {
    /// An empty one.
    pub(crate) fn new(time: TrueTime) -> Self {
        Self { time, contents: Arc::default() }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to the end of a file.
    pub(crate) fn append(&self, path: &Path, text: &str) {
        let now = self.time.now();
        let mut contents = self.contents();
        let (bytes, written) = contents.files.entry(path.to_owned()).or_insert((Vec::new(), now));
        bytes.extend_from_slice(text.as_bytes());
        *written = now;
    }

    /// Puts a file there, in the place of another one.
    pub(crate) fn write(&self, path: &Path, text: &str) {
        let now = self.time.now();
        self.contents().files.insert(path.to_owned(), (text.as_bytes().to_vec(), now));
    }

    /// Whether there is a directory with something in it.
    pub(crate) fn has_checkpoint(&self, dir: &Path) -> bool {
        let is_one = |path: &PathBuf| {
            path.parent() == Some(dir)
                && path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("checkpoint_"))
        };
        self.contents().dirs.iter().any(is_one)
    }
}

/// A checkpoint of a step, in a log directory.
pub(crate) fn keep_checkpoint(disk: &MemoryDisk, dir: &Path, step: f64) {
    let checkpoint = dir.join(format!("checkpoint_{step:.0}"));
    let _made = disk.make_dir(&checkpoint);
    disk.write(&checkpoint.join("weights"), "w");
}

impl Files for MemoryDisk {
    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        Ok(self.contents().dirs.contains(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Listing> {
        let contents = self.contents();
        if contents.files.contains_key(dir) {
            return Ok(Listing::NoDirectory);
        }
        if !contents.dirs.contains(dir) {
            return Ok(Listing::NotThere);
        }
        let name = |path: &Path| path.file_name().map_or_else(OsString::new, OsString::from);
        let here = |path: &&PathBuf| path.parent() == Some(dir);
        let is_full = |path: &PathBuf| {
            let mut all = contents.files.keys().chain(&contents.dirs);
            all.any(|other| other.parent() == Some(path))
        };
        let dirs = contents.dirs.iter().filter(here).map(|path| {
            let content = if is_full(path) { Content::Directory } else { Content::Nothing };
            Entry { name: name(path), content: Ok(Some(content)) }
        });
        let files =
            contents.files.iter().filter(|(path, _)| here(path)).map(|(path, (bytes, _))| {
                let content = if bytes.is_empty() { Content::Nothing } else { Content::File };
                Entry { name: name(path), content: Ok(Some(content)) }
            });
        Ok(Listing::Entries { entries: dirs.chain(files).collect(), unread: None })
    }

    fn read(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        let contents = self.contents();
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let part = |(bytes, _): &(Vec<u8>, Timestamp)| {
            bytes.iter().copied().skip(number(from)).take(number(most)).collect()
        };
        Ok(contents.files.get(path).map(part))
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        let all = dir.ancestors().map(Path::to_owned);
        self.contents().dirs.extend(all);
        Ok(())
    }

    fn put(&self, _: &Path, what: &[PathBuf], to: &Path, _: &mut dyn FnMut(u64)) -> io::Result<()> {
        self.make_dir(to)?;
        for path in what {
            self.write(&to.join(path), "code");
        }
        Ok(())
    }
}

impl ClusterDisk for MemoryDisk {
    fn marks(&self, paths: &[PathBuf]) -> io::Result<Vec<Option<FileMark>>> {
        let contents = self.contents();
        let mark = |path: &PathBuf| {
            let (bytes, written) = contents.files.get(path)?;
            Some(FileMark { length: bytes.len() as u64, written: *written })
        };
        Ok(lies::told_of_marks(paths.iter().map(mark).collect()))
    }
}
