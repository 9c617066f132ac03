//! The line in which the threads of a process stand before one of them asks for the lock file. Thirty that ask every
//! millisecond would leave no processor for the one that works, and other processes one chance in thirty.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

/// Where the threads of one process wait for each other.
#[derive(Debug, Default)]
pub struct Line(Mutex<()>);

/// That it is a thread's turn; dropped, it is the next one's.
pub(super) struct Turn<'a>(Option<MutexGuard<'a, ()>>);

impl Line {
    /// Waits for the turn. `None` if it has not come in time.
    pub(super) fn turn(&self, patience: Duration) -> Option<Turn<'_>> {
        self.0.try_lock_for(patience).map(|turn| Turn(Some(turn)))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Who has waited longest is next, and not whoever comes back at once.
        if let Some(turn) = self.0.take() {
            MutexGuard::unlock_fair(turn);
        }
    }
}
