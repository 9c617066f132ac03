//! The lock of the original, which may work on the same file at the same time.
//!
//! It is a flag in `lock.json` beside the data file. The original flips it under the system's lock of that
//! file and then works for seconds, trusting the flag alone. So a change of ours waits while the flag is
//! set, and is made under the system's lock of `lock.json`: the original cannot set the flag meanwhile, and
//! nothing of ours is left there if we die.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::disk::Disk;
use super::error::StoreError;
pub use super::flag::{Flag, STALE_S};
use super::lock::PATIENCE;
use crate::sys::clock::Clock;
use tpu_core::model::time::Timestamp;

/// Between two looks at the flag.
const WAIT: Duration = Duration::from_millis(20);

/// The flag of a lock file with these contents, if it is set.
fn flag(disk: &dyn Disk, path: &Path, now: Timestamp, bytes: &[u8]) -> Option<Flag> {
    let document: Value = serde_json::from_slice(bytes).ok()?;
    let data = document.get("data")?;
    if data.get("status") != Some(&Value::Bool(true)) {
        return None;
    }
    let user = data.get("user").and_then(Value::as_str).map(str::to_owned);
    let modified = disk.stat(path).map_or(0, |stat| stat.modified.0);
    Some(Flag { user, age_s: now.seconds_since(Timestamp::from_second(modified)) })
}

/// The flag as it stands, if it is set. Looks only.
pub fn look(disk: &dyn Disk, path: &Path, now: Timestamp) -> Option<Flag> {
    let contents = disk.read(path).ok()?;
    flag(disk, path, now, &contents.bytes)
}

/// Runs `work` while the original does not work on the data, and so that it cannot begin meanwhile. A flag
/// that nobody can be behind any more does not count; `doctor` tells of it.
pub(super) fn beside(
    disk: &dyn Disk,
    clock: &dyn Clock,
    path: &Path,
    work: &mut dyn FnMut(),
) -> Result<(), StoreError> {
    let deadline = clock.monotonic() + PATIENCE;
    loop {
        let mut is_done = false;
        let mut held = None;
        let looked = disk.beside_others(path, &mut |bytes| {
            held = bytes.and_then(|bytes| flag(disk, path, clock.now(), bytes));
            if held.as_ref().is_none_or(|flag| !flag.is_fresh()) {
                work();
                is_done = true;
            }
        });
        if is_done {
            return Ok(());
        }
        // A lock file that cannot be read belongs to nobody who could be waited for.
        if looked.is_err() {
            work();
            return Ok(());
        }
        if clock.monotonic() >= deadline {
            return Err(StoreError::OriginalAtWork { path: path.to_owned(), flag: held });
        }
        clock.sleep(WAIT);
    }
}
