//! data.json and the files beside it: one lock, whole replacement, backups, journal, archive.
//!
//! **The store never knows what a job means.** It hands out whole documents and applies functions to
//! them. Readers take no lock and always see a whole version; every change is a function that runs
//! inside a transaction on what was just read, so nobody writes back something old.
//!
//! Start with [`Store`]; [`disk`] lists every moment at which something can go wrong.

#![warn(clippy::indexing_slicing, clippy::string_slice, clippy::wildcard_enum_match_arm)]

mod archive;
pub mod atomic;
mod backup;
pub mod cache;
pub mod disk;
mod error;
mod flag;
mod journal;
mod line;
pub mod lock;
pub mod original;
mod paths;
mod txn;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use archive::{Archived, AttemptId};
pub use backup::KEPT as BACKUPS_KEPT;
pub use disk::{Disk, OsDisk};
pub use error::{Holder, StoreError};
pub use journal::Event;
pub use lock::Who;
pub use paths::Paths;
pub use txn::{Committed, Tx};

use crate::sys::clock::Clock;
use crate::sys::shared;
use disk::{Contents, Lock, Stat};
use error::At as _;
use tpu_core::model::data::{Data, FORMAT, ReadError, Unread};
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::outbox::Bookmark;
use tpu_core::model::time::Timestamp;

/// Mode of a new data file: the lab's group shares it, and nobody else sees the key in it.
const DATA_MODE: u32 = 0o660;
/// Mode of a lock that one account alone ever takes: nobody else can hold it and so keep that account waiting.
const OWN_LOCK: u32 = 0o600;
/// Mode of shared directories: what is made below them is of their group, whoever makes it.
const SHARED_DIR: u32 = shared::SHARED;
/// Mode of one job's directory: the environment of its launch lies there.
const JOB_DIR: u32 = 0o750;
/// How often a reader tries again when a network file system loses the file under it.
const STALE_RETRIES: usize = 5;

/// The door to one data file.
pub struct Store {
    paths: Paths,
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    who: Who,
    /// The account that the journal names, by its number.
    account: Option<u32>,
    cache: Mutex<Option<Cached>>,
    /// Changes are tried out and not made.
    dry_run: bool,
    /// What the changes that were tried out so far would have made of the document.
    tried: Mutex<Option<Arc<Data>>>,
    /// In which the threads of this process change the document.
    line: Option<line::Line>,
}

/// The last version that was read.
struct Cached {
    stat: Stat,
    data: Arc<Data>,
    /// While the file is held open, no other file can have its inode.
    _pin: Box<dyn std::any::Any + Send + Sync>,
}

/// From this many bytes on, a document is checked beside reading it: that saves more than a thread costs.
const LARGE: usize = 256 << 10;

/// Checks and reads a document, side by side if it is large.
fn checked_beside_reading(bytes: Vec<u8>) -> Result<Data, ReadError> {
    let unread = Unread::new(bytes)?;
    if unread.size() < LARGE {
        unread.check()?;
        return unread.read();
    }
    std::thread::scope(|scope| {
        let check = std::thread::Builder::new().spawn_scoped(scope, || unread.check());
        let data = unread.read();
        // Where no thread can be had, or it came to nothing, the check is made here.
        let checked = check.ok().and_then(|check| check.join().ok());
        checked.unwrap_or_else(|| unread.check())?;
        data
    })
}

impl Store {
    /// Opens the door. Nothing is read yet; the file need not be there.
    pub fn open(paths: Paths, disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, who: Who) -> Self {
        // A link stays a link: what it points to is replaced.
        let paths = disk.resolve(paths.data()).map_or(paths, Paths::new);
        let (cache, tried) = (Mutex::new(None), Mutex::new(None));
        let line = disk.line();
        Self { paths, disk, clock, who, account: None, cache, dry_run: false, tried, line }
    }

    /// The same with a journal that names the account which acts.
    #[must_use]
    pub fn signed_by(self, account: u32) -> Self {
        Self { account: Some(account), ..self }
    }

    /// A door to the same file, through which changes are only tried out: each is applied to what the ones before
    /// would have left, as is whatever is read afterwards, and nothing is written.
    #[must_use]
    pub fn dry_run(&self) -> Self {
        let (disk, clock) = (Arc::clone(&self.disk), Arc::clone(&self.clock));
        let door = Self::open(self.paths.clone(), disk, clock, self.who.clone());
        Self { dry_run: true, account: self.account, ..door }
    }

    /// Whether changes are only tried out.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Where things are.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The disk below, for files that belong to others (launchers, `sim.json`).
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// The present version, without a lock. Parsed again only if the file is another one.
    pub fn read(&self) -> Result<Arc<Data>, StoreError> {
        if self.dry_run
            && let Some(tried) = self.tried().as_ref()
        {
            return Ok(Arc::clone(tried));
        }
        let path = self.paths.data();
        if let Ok(stat) = self.disk.stat(path)
            && let Some(cached) = self.cache().as_ref()
            && cached.stat.same_version(&stat)
        {
            return Ok(Arc::clone(&cached.data));
        }
        let Contents { bytes, stat, pin } = self.contents()?;
        let data = Arc::new(self.parsed(checked_beside_reading(bytes))?);
        *self.cache() = Some(Cached { stat, data: Arc::clone(&data), _pin: pin });
        Ok(data)
    }

    fn contents(&self) -> Result<Contents, StoreError> {
        let path = self.paths.data();
        let mut tries = 0;
        loop {
            match self.disk.read(path) {
                Ok(contents) => return Ok(contents),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    return Err(StoreError::Missing { path: path.to_owned() });
                }
                // The file was replaced on another host while we held the old one: open the new one.
                Err(e)
                    if e.kind() == io::ErrorKind::StaleNetworkFileHandle
                        && tries < STALE_RETRIES =>
                {
                    tries += 1;
                }
                Err(e) => return Err(e).at("read", path),
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Result<Data, StoreError> {
        self.parsed(checked_beside_reading(bytes.to_vec()))
    }

    fn parsed(&self, read: Result<Data, ReadError>) -> Result<Data, StoreError> {
        read.map_err(|reason| {
            self.newer_than_us().err().unwrap_or_else(|| StoreError::Unreadable {
                path: self.paths.data().to_owned(),
                reason,
                backup: backup::newest_good(&*self.disk, &self.paths),
            })
        })
    }

    /// Refuses where what is in the file was written by a later program, whether or not the rest can be read.
    fn newer_than_us(&self) -> Result<(), StoreError> {
        let format = self.disk.read(self.paths.data()).map(|now| Data::format_of(&now.bytes));
        self.may_change(format.unwrap_or_default())
    }

    /// Refuses to change a file of this format if a later program wrote it.
    fn may_change(&self, format: u32) -> Result<(), StoreError> {
        if format <= FORMAT {
            return Ok(());
        }
        Err(StoreError::Newer { path: self.paths.data().to_owned(), format })
    }

    /// Refuses where a later program wrote the file.
    pub fn may_write(&self) -> Result<(), StoreError> {
        self.may_change(self.read()?.format())
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, Option<Cached>> {
        // Whoever panicked while holding it left either the old or the new value.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tried(&self) -> std::sync::MutexGuard<'_, Option<Arc<Data>>> {
        // Whoever panicked while holding it left either the old or the new value.
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Backups of the data file, the newest first.
    pub fn backups(&self) -> Vec<PathBuf> {
        backup::list(&*self.disk, &self.paths).into_iter().map(|(_, path)| path).collect()
    }

    /// The newest backup that can be read.
    pub fn newest_good_backup(&self) -> Option<PathBuf> {
        backup::newest_good(&*self.disk, &self.paths)
    }

    /// Events, the newest first. Only as much of the journal is read as is asked for.
    pub fn events(&self) -> impl Iterator<Item = Result<Event, StoreError>> + '_ {
        let mut lines = journal::newest_events(&*self.disk, &self.paths);
        std::iter::from_fn(move || lines.value())
    }

    /// The same of some kinds alone; of all others no more is read than their kind.
    pub fn events_of<'a>(
        &'a self,
        kinds: &'a [&'a str],
    ) -> impl Iterator<Item = Result<Event, StoreError>> + 'a {
        let mut lines = journal::newest_events(&*self.disk, &self.paths);
        std::iter::from_fn(move || {
            lines.first(|line| {
                let head: journal::Head<'_> = serde_json::from_slice(line).ok()?;
                kinds.contains(&&*head.kind).then(|| serde_json::from_slice(line).ok())?
            })
        })
    }

    /// When the oldest event happened that the journal still holds.
    pub fn journal_begins(&self) -> Result<Option<Timestamp>, StoreError> {
        journal::oldest(&*self.disk, &self.paths)
    }

    /// The place behind all that stands in the journal.
    pub fn journal_end(&self) -> Result<Bookmark, StoreError> {
        journal::end(&*self.disk, &self.paths)
    }

    /// What was appended to the journal behind a place, the oldest first, and the place behind that. Whoever wants all
    /// of it asks until the place stays.
    pub fn events_since(&self, place: Bookmark) -> Result<(Vec<Event>, Bookmark), StoreError> {
        let (events, end) = self.placed_events_since(place)?;
        Ok((events.into_iter().map(|(event, _)| event).collect(), end))
    }

    /// The same, each event with the place behind it.
    pub fn placed_events_since(
        &self,
        place: Bookmark,
    ) -> Result<(Vec<(Event, Bookmark)>, Bookmark), StoreError> {
        journal::since(&*self.disk, &self.paths, place)
    }

    /// How long the archive is, in bytes; 0 where there is none. It only grows.
    pub fn archive_bytes(&self) -> u64 {
        self.disk.stat(&self.paths.archive()).map_or(0, |stat| stat.size)
    }

    /// Archived records, the newest first, each once: a crash may have appended one twice.
    pub fn archived(&self) -> impl Iterator<Item = Result<Archived, StoreError>> + '_ {
        self.archived_beside(HashSet::new(), |archived| archived)
    }

    /// What `make` makes of archived records, the newest first, of each once, without the attempts that were `seen`
    /// elsewhere. Of many it is made by several threads.
    pub fn archived_beside<T: Send + 'static>(
        &self,
        seen: HashSet<AttemptId>,
        make: impl Fn(Archived) -> T + Send + Sync + 'static,
    ) -> impl Iterator<Item = Result<T, StoreError>> + '_ {
        archive::Newest::new((&*self.disk, self.paths.archive()), seen, make)
    }

    /// Runs `work` as the only daemon of this data file and place. If there is one already, and it is not worth waiting
    /// for its end, `work` does not run and the answer is who that is.
    pub fn as_monitor<T>(
        &self,
        place: &str,
        is_worth_waiting: &dyn Fn() -> bool,
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Holder>, StoreError> {
        self.state_dir()?;
        let lock = self.paths.daemon_lock(place);
        self.alone_with((&lock, OWN_LOCK), (is_worth_waiting, lock::LONGER_WAIT), work)
    }

    /// Who runs as the daemon of this data file and place. It is to be asked by whoever starts one alone: the question
    /// takes the lock for a moment.
    pub fn monitor_holder(&self, place: &str) -> Result<Option<Holder>, StoreError> {
        Ok(self.as_monitor(place, &|| false, || ())?.err())
    }

    /// Runs `work` as the only one who starts a daemon at a place, waiting for another one who does.
    pub fn starting_monitor<T>(
        &self,
        place: &str,
        work: impl FnOnce() -> T,
    ) -> Result<T, StoreError> {
        self.state_dir()?;
        self.locking_own(&self.paths.daemon_start(place), work)
    }

    /// Runs `work` as the only process that passes over what waits at a place. If there is one already, and it is not
    /// worth waiting for its end, `work` does not run and the answer is who that is.
    pub fn passing<T>(
        &self,
        place: &str,
        is_worth_waiting: &dyn Fn() -> bool,
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Holder>, StoreError> {
        self.state_dir()?;
        let lock = self.paths.pass_lock(place);
        self.alone_with((&lock, OWN_LOCK), (is_worth_waiting, lock::LONGER_WAIT), work)
    }

    /// Runs `work` as the only one who works on a target. If somebody does already, `work` does not run and
    /// the answer is who that is.
    pub fn on_target<T>(
        &self,
        target: &TargetName,
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Holder>, StoreError> {
        self.state_dir()?;
        self.alone(&self.paths.target_lock(target), work)
    }

    /// Runs `work` as the only one who asks machines for figures. If somebody does already, `work` does not run and
    /// the answer is who that is.
    pub fn asking_for_figures<T>(
        &self,
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Holder>, StoreError> {
        self.state_dir()?;
        self.alone(&self.paths.figures_lock(), work)
    }

    /// Runs `work` as the only daemon that asks control planes. If there is one already, and it is not worth waiting for its
    /// end, `work` does not run and the answer is who that is.
    pub fn asking_providers<T>(
        &self,
        is_worth_waiting: &dyn Fn() -> bool,
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Holder>, StoreError> {
        /// A question takes seconds, and there may be as many daemons as accounts.
        const PAUSE: Duration = Duration::from_millis(50);
        self.state_dir()?;
        let lock = self.paths.heard_lock();
        self.alone_with((&lock, DATA_MODE), (is_worth_waiting, PAUSE), work)
    }

    /// Runs `work` as the only one who holds this lock, waiting for another one who does.
    pub fn locking<T>(&self, path: &Path, work: impl FnOnce() -> T) -> Result<T, StoreError> {
        self.locking_with((path, DATA_MODE), work)
    }

    /// The same of a lock that only this account takes.
    pub fn locking_own<T>(&self, path: &Path, work: impl FnOnce() -> T) -> Result<T, StoreError> {
        self.locking_with((path, OWN_LOCK), work)
    }

    fn locking_with<T>(
        &self,
        (path, mode): (&Path, u32),
        work: impl FnOnce() -> T,
    ) -> Result<T, StoreError> {
        let lock = Lock { path, mode, guarded: None };
        lock::with(&*self.disk, &*self.clock, &self.who, lock, work)
    }

    /// Runs `work` under a lock of its own, if nobody else holds it.
    fn alone<T>(
        &self,
        path: &Path,
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Holder>, StoreError> {
        self.alone_with((path, DATA_MODE), (&|| false, Duration::ZERO), work)
    }

    /// The same, or no longer while that is worth waiting for; tried after each pause.
    fn alone_with<T>(
        &self,
        (path, mode): (&Path, u32),
        (is_worth_waiting, pause): (&dyn Fn() -> bool, Duration),
        work: impl FnOnce() -> T,
    ) -> Result<Result<T, Holder>, StoreError> {
        let waits = (Lock { path, mode, guarded: None }, is_worth_waiting, pause);
        let done = lock::attempt(&*self.disk, &*self.clock, &self.who, waits, work)?;
        Ok(done.ok_or_else(|| lock::holder(&*self.disk, path, self.clock.now())))
    }

    /// Makes the directory of one job, and those above it.
    pub fn job_dir(&self, id: &JobId) -> Result<PathBuf, StoreError> {
        self.state_dir()?;
        let dir = self.paths.job(id);
        let group = self.disk.stat(self.paths.data()).ok().map(|stat| stat.gid);
        let user = dir.parent().unwrap_or(&dir).to_owned();
        self.make_dir(&self.paths.state().join("jobs"), SHARED_DIR, group)?;
        self.make_dir(&user, SHARED_DIR, group)?;
        self.make_dir(&dir, JOB_DIR, group)?;
        Ok(dir)
    }

    /// Makes sure that the directory exists in which environments are laid by for what waits.
    pub fn environments_dir(&self) -> Result<PathBuf, StoreError> {
        let group = self.disk.stat(self.paths.data()).ok().map(|stat| stat.gid);
        self.state_dir()?;
        let dir = self.paths.environments();
        self.make_dir(&dir, SHARED_DIR, group)?;
        Ok(dir)
    }

    /// Makes a directory and those above it, for their owner alone: nobody has said that they be shared.
    pub(super) fn make_ancestors(&self, dir: &Path) -> Result<(), StoreError> {
        if self.disk.stat(dir).is_ok() {
            return Ok(());
        }
        if let Some(parent) = dir.parent() {
            self.make_ancestors(parent)?;
        }
        self.disk.make_dir(dir, 0o700).at("create", dir).map(drop)
    }

    /// Makes the directory of the state.
    pub fn state_dir(&self) -> Result<PathBuf, StoreError> {
        let group = self.disk.stat(self.paths.data()).ok().map(|stat| stat.gid);
        let dir = self.paths.state();
        self.make_dir(&dir, SHARED_DIR, group)?;
        Ok(dir)
    }

    fn make_dir(&self, dir: &Path, mode: u32, group: Option<u32>) -> Result<(), StoreError> {
        let new = self.disk.make_dir(dir, mode).at("create", dir)?;
        if new && let Some(group) = group {
            let stat = self.disk.stat(dir).at("look at", dir)?;
            if stat.gid != group {
                // The group may not be ours to give; the directory then serves this account alone.
                drop(self.disk.set_owner(dir, stat.uid, group));
            }
        }
        Ok(())
    }
}
