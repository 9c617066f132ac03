//! Doing something beside what is being done. A simulation decides itself who goes on when.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How many cores this process may use; 1 where the system does not say it.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The door to threads.
pub trait Threads: Send + Sync {
    /// Begins `work`, and does not wait for it. Whoever wants to know its end has `work` tell it.
    fn spawn(&self, work: Box<dyn FnOnce() + Send>);

    /// Does `work`, and meanwhile calls `again` each time that so long has passed.
    fn while_at(&self, every: Duration, again: &(dyn Fn() + Sync), work: &mut dyn FnMut()) {
        let (over, is_over) = channel::<()>();
        std::thread::scope(|threads| {
            threads.spawn(move || {
                while is_over.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    again();
                }
            });
            work();
            drop(over);
        });
    }

    /// Waits for what such work says: `hear` waits so long for it, and returns whether it has heard something.
    fn wait(&self, limit: Duration, hear: &mut dyn FnMut(Duration) -> bool) -> bool {
        hear(limit)
    }
}

/// The next of what such work says, waited for so long at most.
pub fn next_of<T>(
    threads: &dyn Threads,
    said: &Receiver<T>,
    limit: Duration,
) -> Result<T, RecvTimeoutError> {
    let mut heard = Err(RecvTimeoutError::Timeout);
    threads.wait(limit, &mut |time| {
        heard = said.recv_timeout(time);
        !matches!(heard, Err(RecvTimeoutError::Timeout))
    });
    heard
}

/// The machine's own threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsThreads;

impl Threads for OsThreads {
    fn spawn(&self, work: Box<dyn FnOnce() + Send>) {
        drop(std::thread::spawn(work));
    }
}
