//! The door to one Slurm cluster: its client programs, run one at a time, and the disk that its nodes see.
//!
//! Everything that this kind of target knows of a cluster it has from here, so a test that hands in [`Clients`] of
//! its own plays a whole cluster. The programs are those of this machine or of a login node.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tpu_core::model::time::Timestamp;
use tpu_engine::runner::files::{Files, Listing, ThisDisk};
use tpu_engine::runner::tree::InTree;
use tpu_system::effects::Effects;
use tpu_system::sys::files::NoFile;

use super::cluster::Cluster;

/// One call of one of Slurm's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCall {
    /// `squeue`, `sbatch`, …
    pub program: &'static str,
    /// Its arguments, each of which arrives as it stands.
    pub args: Vec<String>,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// How long it may take; then it is killed.
    pub limit: Duration,
    /// Whether it must not outlive this process: what it does counts only while somebody waits for it.
    pub dies_with_us: bool,
}

impl ProgramCall {
    /// A question, which may take so long.
    pub fn new(program: &'static str, limit: Duration) -> Self {
        Self { program, args: Vec::new(), stdin: Vec::new(), limit, dies_with_us: false }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args<A: Into<String>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
}

/// What a program left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramAnswer {
    /// Its exit code; a signal is 128 and its number.
    pub code: i32,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error, without blanks around it.
    pub stderr: String,
}

/// Why a program gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Silence {
    /// It did not end in time, and is gone now. What it asked for may have been heard.
    #[error("{program} did not answer within {:.1} s", after.as_secs_f64())]
    Late {
        /// The program.
        program: &'static str,
        /// How long it was waited for.
        after: Duration,
    },
    /// It was never started, for certain.
    #[error("{0}")]
    NotStarted(String),
    /// The way to it broke. It may have been started, and may still be at work for as long as it was given.
    #[error("{0}")]
    Broken(String),
}

/// One cluster.
pub trait Client: Send + Sync {
    /// Runs a program to its end.
    fn run(&self, call: &ProgramCall) -> Result<ProgramAnswer, Silence>;

    /// The disk that its jobs see.
    fn disk(&self) -> Box<dyn ClusterDisk + '_>;

    /// The command that runs such words at a terminal of this machine.
    fn at_terminal(&self, words: &[String]) -> Vec<String>;

    /// Whether its jobs find what this machine has: its programs are run here, and not on a login node.
    fn is_here(&self) -> bool;
}

/// What opens clusters.
pub trait Clients: Send + Sync {
    /// The door to a cluster. Nothing is asked yet.
    fn open<'a>(&self, cluster: &Cluster, effects: &'a Effects) -> Box<dyn Client + 'a>;
}

/// The disk on which the logs of a cluster lie.
pub trait ClusterDisk: Files {
    /// How files are, in their order; `None` for one that is not there.
    fn marks(&self, paths: &[PathBuf]) -> io::Result<Vec<Option<FileMark>>>;

    /// The ends of files that jobs keep for us, so many bytes of each at most, in their order; `None` for one that is not
    /// there or no file.
    fn ends(&self, wanted: &[(PathBuf, u64)]) -> io::Result<Vec<Option<FileEnd>>> {
        let paths: Vec<PathBuf> = wanted.iter().map(|(path, _)| path.clone()).collect();
        let ends = wanted.iter().zip(self.marks(&paths)?).map(|((path, most), mark)| {
            let Some(mark) = mark else { return Ok(None) };
            let from = mark.length.saturating_sub(*most);
            match self.read_own(path, from, u64::MAX) {
                Err(e) if NoFile::is_behind(&e) => Ok(None),
                read => Ok(read?.map(|bytes| FileEnd { bytes, from })),
            }
        });
        ends.collect()
    }
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The place of the first of them.
    pub from: u64,
}

/// How far a file has grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMark {
    /// Its length.
    pub length: u64,
    /// When it was last written.
    pub written: Timestamp,
}

/// The disk of this machine, where the nodes share it.
#[derive(Clone, Copy, Debug, Default)]
pub struct HereDisk;

impl Files for HereDisk {
    fn is_seen_from_here(&self) -> bool {
        true
    }

    fn is_dir(&self, path: &Path) -> io::Result<bool> {
        ThisDisk.is_dir(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Listing> {
        ThisDisk.list(dir)
    }

    fn read(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        ThisDisk.read(path, from, most)
    }

    fn read_own(&self, path: &Path, from: u64, most: u64) -> io::Result<Option<Vec<u8>>> {
        ThisDisk.read_own(path, from, most)
    }

    fn is_written_since(&self, path: &Path, since: Timestamp) -> io::Result<Option<bool>> {
        ThisDisk.is_written_since(path, since)
    }

    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        ThisDisk.make_dir(dir)
    }

    fn tree(&self, dir: &Path) -> io::Result<Option<Vec<InTree>>> {
        ThisDisk.tree(dir)
    }

    fn put(
        &self,
        from: &Path,
        what: &[PathBuf],
        to: &Path,
        copied: &mut dyn FnMut(u64),
    ) -> io::Result<()> {
        ThisDisk.put(from, what, to, copied)
    }
}

impl ClusterDisk for HereDisk {
    fn marks(&self, paths: &[PathBuf]) -> io::Result<Vec<Option<FileMark>>> {
        // What cannot be looked at is not read either: nothing is concluded from it.
        let mark = |path: &PathBuf| {
            let meta = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
            let since = meta.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(FileMark { length: meta.len(), written: Timestamp::from_second(0).plus(since) })
        };
        Ok(paths.iter().map(mark).collect())
    }
}
