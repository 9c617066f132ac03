//! What an engine keeps here of each submission: a directory of its own, in that of its kind. What lies in it is written
//! before the engine is asked, so that whoever comes later knows whether a run can be on its way.

use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use tpu_core::model::time::Timestamp;
use tpu_system::effects::Effects;
use tpu_system::store::atomic;

use super::RunError;

/// Submissions that no record names any more are kept so long.
const KEPT_S: u64 = 24 * 3600;

/// Who begins a submission: the number of a process, its start, and the boot of its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitter(u32, u64, String);

impl Submitter {
    /// This process.
    pub fn this(effects: &Effects) -> Self {
        let env = &effects.env;
        Self(env.pid, env.started(), env.boot_id.clone())
    }

    /// Whether it is another process of this machine, and alive.
    pub fn is_another_at_work(&self, effects: &Effects) -> bool {
        let Self(pid, started, boot) = self;
        *boot == effects.env.boot_id
            && *pid != effects.env.pid
            && effects.procs.is_alive(*pid, *started)
    }
}

/// The submissions to engines of one kind, each by its name.
#[derive(Clone, Copy)]
pub struct Submissions<'a> {
    effects: &'a Effects,
    kind: &'static str,
}

impl<'a> Submissions<'a> {
    /// Those to engines of a kind, by its word.
    pub fn of(effects: &'a Effects, kind: &'static str) -> Self {
        Self { effects, kind }
    }

    /// The directory of all.
    pub fn root(&self) -> PathBuf {
        self.effects.store.paths().state().join(self.kind)
    }

    /// The directory of one.
    pub fn directory(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Makes the directory of all.
    pub fn make_root(&self) -> Result<(), RunError> {
        self.effects.store.state_dir()?;
        // Whoever shares the data file submits as well; the names are nobody's to guess.
        self.make_dir(&self.root(), 0o1777)
    }

    /// Makes the directory of one.
    fn make(&self, name: &str) -> Result<PathBuf, RunError> {
        self.make_root()?;
        let dir = self.directory(name);
        self.make_dir(&dir, 0o755).map(|()| dir)
    }

    fn make_dir(&self, dir: &Path, mode: u32) -> Result<(), RunError> {
        self.effects.store.disk().make_dir(dir, mode).map(drop).map_err(|error| {
            RunError::state(
                format!("cannot create {}: {error}", dir.display()),
                "check free space and permissions there, then run it again",
            )
        })
    }

    /// Keeps a file of one, for everybody to read.
    pub fn write<T: Serialize>(&self, name: &str, file: &str, value: &T) -> Result<(), RunError> {
        let text = serde_json::to_vec(value).map_err(|e| {
            RunError::state(format!("the {file} of {name} cannot be written: {e}"), "report this")
        })?;
        self.put(name, file, &text, 0o644)
    }

    /// A file of one; `None` where there is none.
    pub fn read<T: DeserializeOwned>(&self, name: &str, file: &str) -> io::Result<Option<T>> {
        match self.effects.store.disk().read(&self.directory(name).join(file)) {
            Ok(contents) => serde_json::from_slice(&contents.bytes)
                .map(Some)
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Keeps what is submitted, for its owner alone: there may be variables in it that nobody else should see.
    pub fn keep_text(&self, name: &str, file: &str, text: &str) -> Result<(), RunError> {
        self.put(name, file, text.as_bytes(), 0o600)
    }

    /// What was submitted; `None` where it is not here, or not for everybody.
    pub fn text(&self, name: &str, file: &str) -> Option<String> {
        let contents = self.effects.store.disk().read(&self.directory(name).join(file)).ok()?;
        Some(String::from_utf8_lossy(&contents.bytes).into_owned())
    }

    fn put(&self, name: &str, file: &str, bytes: &[u8], mode: u32) -> Result<(), RunError> {
        let path = self.make(name)?.join(file);
        Ok(atomic::write_file(&**self.effects.store.disk(), &path, bytes, mode)?)
    }

    /// Takes one back that has come to nothing.
    pub fn remove(&self, name: &str) {
        // What stays says that it may have begun: the next look finds out that it has not.
        drop(self.effects.store.disk().remove_tree(&self.directory(name)));
    }

    /// Removes old ones of which no record is left. `begun_at` says when one was begun, where that was written.
    pub fn sweep(
        &self,
        begun_at: impl Fn(&str) -> Option<Timestamp>,
        is_named: impl Fn(&str) -> bool,
    ) {
        let Ok(names) = self.effects.store.disk().list(&self.root()) else { return };
        let now = self.effects.clock.now();
        let is_old = |name: &str| begun_at(name).is_some_and(|at| now.seconds_since(at) > KEPT_S);
        for name in names.iter().filter(|name| is_old(name) && !is_named(name)) {
            self.remove(name);
        }
    }
}
