//! The one lock of a data file. It dies with its holder, and says who that is to whoever waits.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::disk::{Disk, Lock, Locked};
use super::error::{At as _, Holder, StoreError};
use super::line::Line;
use crate::sys::clock::Clock;
use tpu_core::model::time::Timestamp;

/// Nobody waits longer for the lock.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const WAIT: Duration = Duration::from_millis(1);
/// The pause once `SOON` has passed: a hundred that ask every millisecond would leave no processor for the one that
/// works. After half the patience it is `WAIT` again, so that newcomers do not overtake for ever.
pub(super) const LONGER_WAIT: Duration = Duration::from_millis(8);
const SOON: Duration = Duration::from_millis(16);
/// After a lock that others wait for. Who comes back at once would otherwise always be first.
const COURTESY: Duration = Duration::from_millis(2);

/// Who this process is, for those who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// Process id.
    pub pid: u32,
    /// Host.
    pub host: String,
    /// The command as typed, without values that nobody else should see.
    pub command: String,
}

/// What the lock file holds.
#[derive(Serialize, Deserialize)]
struct Note {
    pid: u32,
    host: String,
    command: String,
    since: Timestamp,
}

/// Runs `work` under a lock, waiting for it if need be.
pub fn with<T>(
    disk: &dyn Disk,
    clock: &dyn Clock,
    who: &Who,
    lock: Lock<'_>,
    work: impl FnOnce() -> T,
) -> Result<T, StoreError> {
    let (mut work, mut result) = (Some(work), None);
    wait(disk, clock, who, lock, &mut || result = work.take().map(|work| work()))?;
    Ok(result.expect("whoever has had the lock has done the work under it"))
}

/// The same, behind the other threads of this process.
pub(super) fn in_turn<T>(
    disk: &dyn Disk,
    clock: &dyn Clock,
    who: &Who,
    (line, lock): (Option<&Line>, Lock<'_>),
    work: impl FnOnce() -> T,
) -> Result<T, StoreError> {
    let turn = line.map(|line| line.turn(PATIENCE).ok_or_else(|| locked(disk, clock, lock)));
    let _turn = turn.transpose()?;
    with(disk, clock, who, lock, work)
}

/// Runs `work` under the lock, if nobody else holds it, or no longer while it `is_worth_waiting`. Once `SOON` has passed it
/// is tried after each `pause`.
pub(super) fn attempt<T>(
    disk: &dyn Disk,
    clock: &dyn Clock,
    who: &Who,
    (lock, is_worth_waiting, pause): (Lock<'_>, &dyn Fn() -> bool, Duration),
    work: impl FnOnce() -> T,
) -> Result<Option<T>, StoreError> {
    let (mut work, mut result) = (Some(work), None);
    let mut once = || result = work.take().map(|work| work());
    let began = clock.monotonic();
    while !try_once(disk, clock, who, lock, &mut once)? && is_worth_waiting() {
        let waited = clock.monotonic().saturating_sub(began);
        clock.sleep(if waited > SOON { pause } else { WAIT });
    }
    Ok(result)
}

/// [`with`], whatever the work is: compiled once, and not for each of the many that write.
fn wait(
    disk: &dyn Disk,
    clock: &dyn Clock,
    who: &Who,
    lock: Lock<'_>,
    work: &mut dyn FnMut(),
) -> Result<(), StoreError> {
    let began = clock.monotonic();
    while !try_once(disk, clock, who, lock, work)? {
        let waited = clock.monotonic().saturating_sub(began);
        if waited >= PATIENCE {
            return Err(locked(disk, clock, lock));
        }
        let is_between = waited > SOON && waited < PATIENCE / 2;
        clock.sleep(if is_between { LONGER_WAIT } else { WAIT });
    }
    Ok(())
}

/// That somebody has held a lock for longer than anybody waits.
fn locked(disk: &dyn Disk, clock: &dyn Clock, lock: Lock<'_>) -> StoreError {
    let holder = holder(disk, lock.path, clock.now());
    StoreError::Locked { path: lock.path.to_owned(), holder }
}

/// Whether nobody else held the lock, so that the work was done.
fn try_once(
    disk: &dyn Disk,
    clock: &dyn Clock,
    who: &Who,
    lock: Lock<'_>,
    work: &mut dyn FnMut(),
) -> Result<bool, StoreError> {
    let note = Note {
        pid: who.pid,
        host: who.host.clone(),
        command: who.command.clone(),
        since: clock.now(),
    };
    let note = serde_json::to_vec(&note).unwrap_or_default();
    let locked = disk.with_lock(lock, &note, work).at("lock", lock.path)?;
    if locked == (Locked::Done { awaited: true }) {
        clock.sleep(COURTESY);
    }
    Ok(locked != Locked::Busy)
}

/// Who the lock file says its holder is.
pub(super) fn holder(disk: &dyn Disk, path: &Path, now: Timestamp) -> Holder {
    // Behind the note there may be NUL bytes and the mark of somebody who waits.
    let read = || {
        let contents = disk.read(path).ok()?;
        let text = contents.bytes.split(|byte| *byte == 0).next()?;
        serde_json::from_slice::<Note>(text).ok()
    };
    let note = read();
    note.map_or_else(Holder::default, |note| Holder {
        pid: note.pid,
        host: note.host,
        command: note.command,
        age_s: Some(now.seconds_since(note.since)),
    })
}
