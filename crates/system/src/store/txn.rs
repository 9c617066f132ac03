//! Changing the data: lock, read, apply, archive, write, journal.

use std::io;
use std::sync::Arc;

use serde_json::Value;

use super::archive::Line;
use super::atomic::{self, Keep};
use super::disk::{Contents, Lock};
use super::error::{At as _, StoreError};
use super::journal::{self, Event};
use super::{DATA_MODE, SHARED_DIR, Store, backup, lock, original};
use crate::sys::accounts;
use tpu_core::model::data::Data;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::time::Timestamp;

/// A change in progress. What is done here happens as a whole or not at all.
pub struct Tx<'a> {
    /// The document as it was just read, to be changed.
    pub data: Data,
    /// The instant of the change.
    pub now: Timestamp,
    actor: &'a str,
    events: Vec<Event>,
    archived: Vec<Job>,
}

impl Tx<'_> {
    /// Adds a line about a job to the journal; written once the change is.
    pub fn event(&mut self, job: &JobId, kind: &str, text: impl Into<String>, data: Value) {
        self.push_event(Event {
            at: self.now,
            actor: self.actor.to_owned(),
            account: None,
            user: Some(job.user.clone()),
            job: Some(job.window),
            kind: kind.to_owned(),
            text: text.into(),
            data,
        });
    }

    /// Adds a line about something that is no job's: what of a user, or of everybody, was edited.
    pub fn edited(&mut self, user: Option<&UserName>, text: impl Into<String>) {
        self.push_event(Event {
            at: self.now,
            actor: self.actor.to_owned(),
            account: None,
            user: user.cloned(),
            job: None,
            kind: "edit".to_owned(),
            text: text.into(),
            data: Value::Null,
        });
    }

    /// Adds a line to the journal; written once the change is.
    pub(crate) fn push_event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Moves a record from the document to the archive. `false` if there is no such record.
    pub fn archive(&mut self, id: &JobId) -> bool {
        let job = self.data.user_mut(&id.user).and_then(|user| user.remove_job(id.window));
        match job {
            Some(job) => {
                self.archive_removed(job);
                true
            }
            None => false,
        }
    }

    /// Archives a record that was taken out of the document.
    pub fn archive_removed(&mut self, job: Job) {
        self.archived.push(job);
    }
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the warnings are for the person"]
pub struct Committed<T> {
    /// What the function returned.
    pub value: T,
    /// Whether the data file has another version now.
    pub changed: bool,
    /// What could not be kept or noted. The change itself stands.
    pub warnings: Vec<String>,
}

/// What came of writing a change.
#[derive(Default)]
struct Written {
    changed: bool,
    warnings: Vec<String>,
}

impl Store {
    /// Applies `change` to what is in the file now and writes the result, as one step. An error of
    /// `change` leaves everything as it was.
    ///
    /// `change` runs under the lock: it must not wait for anything.
    pub fn transact<T, E: From<StoreError>>(
        &self,
        actor: &str,
        change: impl FnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<Committed<T>, E> {
        let (mut change, mut value) = (Some(change), None);
        let written = self.transact_with(actor, &mut |tx| {
            value = change.take().map(|change| change(tx));
            matches!(value, Some(Ok(_)))
        })?;
        let value = value.expect("the change comes before it is written")?;
        Ok(Committed { value, changed: written.changed, warnings: written.warnings })
    }

    /// [`Self::transact`], whatever the change is: compiled once, and not for each of the many commands. `change` says
    /// whether what it has done is to be written.
    fn transact_with(
        &self,
        actor: &str,
        change: &mut dyn FnMut(&mut Tx<'_>) -> bool,
    ) -> Result<Written, StoreError> {
        if self.dry_run {
            return self.transact_dry(actor, change);
        }
        self.locked(|| {
            let contents = self.contents()?;
            let cached = self
                .cache()
                .as_ref()
                .filter(|cached| is_current(cached, &contents))
                .map(|cached| Data::clone(&cached.data));
            let data = match cached {
                Some(data) => data,
                None => self.parse(&contents.bytes)?,
            };
            self.may_change(data.format())?;
            let mut tx =
                Tx { data, now: self.clock.now(), actor, events: Vec::new(), archived: Vec::new() };
            fail::fail_point!("txn-read");
            if !change(&mut tx) {
                return Ok(Written::default());
            }
            let (changed, warnings) = self.commit(&tx, &contents)?;
            Ok(Written { changed, warnings })
        })?
    }

    /// Applies `change` to what the changes before would have left, and writes nothing.
    fn transact_dry(
        &self,
        actor: &str,
        change: &mut dyn FnMut(&mut Tx<'_>) -> bool,
    ) -> Result<Written, StoreError> {
        let data = match self.read() {
            Ok(data) => Data::clone(&data),
            Err(StoreError::Missing { .. }) => Data::empty(),
            Err(error) => return Err(error),
        };
        self.may_change(data.format())?;
        let before = data.to_bytes();
        let mut tx =
            Tx { data, now: self.clock.now(), actor, events: Vec::new(), archived: Vec::new() };
        if !change(&mut tx) {
            return Ok(Written::default());
        }
        let changed = tx.data.to_bytes() != before;
        if changed {
            *self.tried() = Some(Arc::new(tx.data));
        }
        Ok(Written { changed, warnings: Vec::new() })
    }

    /// Writes the first version of a data file, in a directory that is made if need be. It is an error
    /// if there is a file.
    pub fn create(&self, data: &Data) -> Result<(), StoreError> {
        if self.dry_run {
            return match self.disk.stat(self.paths.data()) {
                Ok(_) => Err(StoreError::Exists { path: self.paths.data().to_owned() }),
                Err(_) => Ok(()),
            };
        }
        self.make_ancestors(self.paths.dir())?;
        self.locked(|| {
            let path = self.paths.data();
            match self.disk.stat(path) {
                Ok(_) => return Err(StoreError::Exists { path: path.to_owned() }),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e).at("look at", path),
            }
            self.write(&data.to_bytes(), Keep { mode: DATA_MODE, owner: None }, None).map(drop)
        })?
    }

    /// Replaces the data file, whatever is in it, by a backup that can be read. What was there is kept
    /// as a backup too.
    pub fn restore(&self, backup: &std::path::Path) -> Result<Vec<String>, StoreError> {
        self.locked(|| self.put_back(backup, self.disk.read(self.paths.data())))?
    }

    /// The same for a file that is no JSON. `None` if it is by the time that the lock is taken: somebody may
    /// have been writing it.
    pub fn restore_unreadable(
        &self,
        backup: &std::path::Path,
    ) -> Result<Option<Vec<String>>, StoreError> {
        self.locked(|| {
            let now = self.disk.read(self.paths.data()).at("read", self.paths.data())?;
            if serde_json::from_slice::<serde::de::IgnoredAny>(&now.bytes).is_ok() {
                return Ok(None);
            }
            self.put_back(backup, Ok(now)).map(Some)
        })?
    }

    /// Writes a backup over what is there now.
    fn put_back(
        &self,
        backup: &std::path::Path,
        now: io::Result<Contents>,
    ) -> Result<Vec<String>, StoreError> {
        if let Ok(now) = &now {
            self.may_change(Data::format_of(&now.bytes))?;
        }
        let good = self.disk.read(backup).at("read", backup)?;
        if let Err(reason) = Data::parse(&good.bytes) {
            let path = backup.to_owned();
            return Err(StoreError::Unreadable { path, reason, backup: None });
        }
        match now {
            Ok(old) => self.write(&good.bytes, Keep::of(&old.stat), Some(&old)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.write(&good.bytes, Keep::of(&good.stat), None)
            }
            Err(e) => Err(e).at("read", self.paths.data()),
        }
    }

    /// Adds lines to the journal without touching the data.
    pub fn note(&self, events: &[Event]) -> Result<(), StoreError> {
        if self.dry_run {
            return Ok(());
        }
        self.locked(|| self.journal(events))?
    }

    /// Runs `work` as the only writer.
    fn locked<T>(&self, work: impl FnOnce() -> T) -> Result<T, StoreError> {
        let path = self.paths.lock();
        let mode = self.disk.stat(self.paths.data()).map_or(DATA_MODE, |stat| stat.mode);
        // Whoever may write the data file must be able to lock it.
        let mode = (mode & 0o666) | 0o600;
        let (disk, clock) = (&*self.disk, &*self.clock);
        let lock = Lock { path: &path, mode, guarded: Some(self.paths.data()) };
        let (mut work, mut result) = (Some(work), None);
        lock::in_turn(disk, clock, &self.who, (self.line.as_ref(), lock), || {
            let once = &mut || result = work.take().map(|work| work());
            original::beside(disk, clock, &self.paths.original_lock(), once)
        })
        .map_err(|error| self.or_missing(error))??;
        Ok(result.expect("whoever is beside the original has done the work there"))
    }

    /// Says that there is no data file where even its directory is missing, and so nothing can be locked.
    fn or_missing(&self, error: StoreError) -> StoreError {
        let is_not_found = matches!(&error, StoreError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
        if is_not_found && self.disk.stat(self.paths.dir()).is_err() {
            return StoreError::Missing { path: self.paths.data().to_owned() };
        }
        error
    }

    /// Makes a change last. Before the rename nothing has happened; after it only the journal is left,
    /// and a failure there is a warning.
    fn commit(&self, tx: &Tx<'_>, old: &Contents) -> Result<(bool, Vec<String>), StoreError> {
        if !tx.archived.is_empty() {
            self.append_archive(tx)?;
        }
        let bytes = tx.data.to_bytes();
        let changed = bytes != old.bytes;
        let mut warnings = Vec::new();
        if changed {
            self.check(&bytes)?;
            warnings = self.write(&bytes, Keep::of(&old.stat), Some(old))?;
        }
        if let Err(error) = self.journal(&tx.events) {
            warnings.push(format!("the change is made, but not in the journal: {error}"));
        }
        Ok((changed, warnings))
    }

    fn append_archive(&self, tx: &Tx<'_>) -> Result<(), StoreError> {
        self.state_dir()?;
        let lines: Vec<Line> = tx
            .archived
            .iter()
            .map(|job| Line {
                at: tx.now,
                actor: tx.actor.to_owned(),
                user: job.user.clone(),
                job: job.to_value(),
            })
            .collect();
        journal::append(&*self.disk, &self.paths.archive(), DATA_MODE, true, &lines)
    }

    /// Replaces the data file. `old`, if there is one, becomes a backup.
    fn write(
        &self,
        bytes: &[u8],
        keep: Keep,
        old: Option<&Contents>,
    ) -> Result<Vec<String>, StoreError> {
        atomic::sweep(&*self.disk, self.paths.dir(), &self.paths.temporary_prefix());
        let (temporary, _) = atomic::fresh(self.paths.data());
        // What may fail for want of space or rights comes first, the rename last.
        let mut warnings =
            atomic::stage(&*self.disk, (&temporary, self.paths.data()), bytes, keep)?;
        if let Some(old) = old
            && let Err(error) = self.keep_backup(old)
        {
            drop(self.disk.remove(&temporary));
            return Err(error);
        }
        let unsure = atomic::replace(&*self.disk, &temporary, self.paths.data(), self.paths.dir())?;
        warnings.extend(unsure);
        Ok(warnings)
    }

    fn keep_backup(&self, old: &Contents) -> Result<(), StoreError> {
        self.make_dir(&self.paths.backups(), SHARED_DIR, Some(old.stat.gid))?;
        backup::keep(&*self.disk, &self.paths, old)
    }

    /// Whatever a bug might make of the document: what is no JSON is not written.
    fn check(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(bytes);
        whole.map(drop).map_err(io::Error::from).at("write", self.paths.data())
    }

    fn journal(&self, events: &[Event]) -> Result<(), StoreError> {
        if events.is_empty() {
            return Ok(());
        }
        self.state_dir()?;
        journal::rotate(&*self.disk, &self.paths)?;
        let account = self.account.map(accounts::name);
        let signed = |event: &Event| Event {
            account: event.account.clone().or_else(|| account.clone()),
            ..event.clone()
        };
        let events: Vec<Event> = events.iter().map(signed).collect();
        journal::append(&*self.disk, &self.paths.events(), DATA_MODE, false, &events)
    }
}

/// Whether what was read last is what is in the file.
fn is_current(cached: &super::Cached, contents: &Contents) -> bool {
    cached.data.is_version(&contents.bytes)
}
