//! What can go wrong with the state: always with the path, and with what to do next.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::flag::{Flag, STALE_S};
use crate::sys::files::NoFile;
use tpu_core::model::data::{FORMAT, ReadError};
use tpu_core::model::version::VERSION;

/// A failure of the state file or of the files beside it. The state itself is then as it was before.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no data file.
    #[error("there is no data file {}", path.display())]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// A data file is to be created and is already there.
    #[error("the data file {} exists", path.display())]
    Exists {
        /// Where it is.
        path: PathBuf,
    },
    /// The data file cannot be understood. It is never overwritten.
    #[error("{} cannot be read as data: {reason}", path.display())]
    Unreadable {
        /// The data file.
        path: PathBuf,
        /// What and where.
        reason: ReadError,
        /// The newest backup that can be read.
        backup: Option<PathBuf>,
    },
    /// A later program wrote the data file. Nothing here changes it.
    #[error("{} is of format {format}, and this tpu ({}) writes format {}: it changes nothing there", path.display(), VERSION, FORMAT)]
    Newer {
        /// The data file.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// Somebody held the lock for longer than we wait.
    #[error("{} is locked by {holder}", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        holder: Holder,
    },
    /// The original tool held its own lock for longer than we wait.
    #[error("{} says that the original tool is at work{}", path.display(), at_work(flag.as_ref()))]
    OriginalAtWork {
        /// Its lock file.
        path: PathBuf,
        /// What stands there; nothing while it is being written.
        flag: Option<Flag>,
    },
    /// A file operation failed.
    #[error("cannot {op} {}: {}", path.display(), because(source))]
    Io {
        /// What was tried: `write`, `rename`, …
        op: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl StoreError {
    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { .. } => Some(
                "begin with 'tpu init', or name the file you have: --data FILE or TPU_DATA=FILE"
                    .to_owned(),
            ),
            Self::Exists { .. } => None,
            Self::Newer { .. } => Some(
                "use the newer tpu that wrote it: 'type -a tpu' lists those that you have"
                    .to_owned(),
            ),
            Self::Unreadable { backup: Some(backup), .. } => Some(format!(
                "the newest good backup is {}; 'tpu doctor --restore' brings it back",
                backup.display()
            )),
            Self::Unreadable { backup: None, path, .. } => {
                Some(format!("there is no good backup; repair {} by hand", path.display()))
            }
            Self::Locked { holder, .. } if holder.pid != 0 => Some(format!(
                "if that process hangs, end it on {} with 'kill {}'; the lock dies with it",
                holder.host, holder.pid
            )),
            Self::Locked { path, .. } => {
                Some(format!("'fuser {}' names the process that holds it", path.display()))
            }
            Self::OriginalAtWork { .. } => Some(format!(
                "nothing was changed; try again. If its process has died, the original's own `tpu unlock \
                 data` clears it, and after {} min it counts as left over",
                STALE_S / 60
            )),
            Self::Io { source, path, .. } if NoFile::is_behind(source) => Some(format!(
                "look who has put it there, and move it away: `ls -l {}`",
                path.display()
            )),
            Self::Io { source, path, .. } => about_io(source.kind(), path),
        }
    }
}

/// Who set the flag, and when.
fn at_work(flag: Option<&Flag>) -> String {
    let Some(Flag { user, age_s }) = flag else { return String::new() };
    let by = user.as_ref().map(|user| format!(" for {user}")).unwrap_or_default();
    format!("{by}, since {}", tpu_core::model::time::age(*age_s))
}

/// What a person can do about an error of the system.
fn about_io(kind: io::ErrorKind, path: &Path) -> Option<String> {
    use io::ErrorKind as E;
    if matches!(kind, E::StorageFull | E::QuotaExceeded | E::FileTooLarge) {
        return Some("free some space and try again; nothing was changed".to_owned());
    }
    if matches!(kind, E::ReadOnlyFilesystem | E::PermissionDenied) {
        let dir = path.parent().unwrap_or(path);
        return Some(format!(
            "this account must be able to write {} and its directory {}",
            path.display(),
            dir.display()
        ));
    }
    None
}

/// The system's words, without its number.
fn because(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text.get(..end).unwrap_or(&text).to_lowercase()
}

/// Who holds a lock, as written into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Process id; 0 if the lock does not say.
    pub pid: u32,
    /// Host of that process.
    pub host: String,
    /// Its command.
    pub command: String,
    /// Seconds for which it has held the lock, if the lock says since when.
    pub age_s: Option<u64>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pid == 0 {
            return f.write_str("a process that did not say its name");
        }
        write!(f, "process {} on {} ({})", self.pid, self.host, self.command)?;
        match self.age_s {
            Some(age) => write!(f, " for {}", tpu_core::model::time::age(age)),
            None => Ok(()),
        }
    }
}

/// Adds operation and path to an error of the system.
pub(super) trait At<T> {
    /// Says what was tried on which path.
    fn at(self, op: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, op: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { op, path: path.to_owned(), source })
    }
}
