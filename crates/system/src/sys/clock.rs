//! Time: what a clock on the wall says, how long something took, and waiting.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tpu_core::model::time::Timestamp;

/// The door to time. Passed to whoever decides by time, so that tests and simulations own it.
pub trait Clock: Send + Sync {
    /// The instant on the wall. May jump when somebody sets the machine's clock.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment of this process. Never jumps; for durations and deadlines.
    fn monotonic(&self) -> Duration;

    /// Waits. A simulated clock moves on instead.
    fn sleep(&self, duration: Duration);
}

/// The machine's own clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// What [`Clock::monotonic`] counts from.
    origin: Instant,
}

impl SystemClock {
    /// A clock that counts from this moment.
    #[expect(clippy::disallowed_methods, reason = "sys::clock is the door to the clocks")]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        instant_of(wall())
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "sys::clock is the door to waiting")]
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// What the machine's clock says.
#[expect(clippy::disallowed_methods, reason = "sys::clock is the door to the clocks")]
fn wall() -> SystemTime {
    fail::fail_point!("clock-in-year-10000", |_| UNIX_EPOCH + Duration::from_secs(253_402_300_800));
    SystemTime::now()
}

/// The instant of a wall clock, the nearest that can be written down if nobody could write it down.
fn instant_of(wall: SystemTime) -> Timestamp {
    match wall.duration_since(UNIX_EPOCH) {
        Ok(since) => Timestamp::from_second(0).plus(since),
        Err(before) => {
            let seconds = i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX);
            Timestamp::from_second(seconds.saturating_neg())
        }
    }
}

/// Whether the machine's clock shows a time that can be written down: no year beyond 9999.
pub fn is_sane() -> bool {
    jiff::Timestamp::try_from(wall()).is_ok()
}

/// A clock that stands still until somebody moves it. A sleep moves it by the time slept, at once.
#[derive(Debug)]
pub struct ManualClock {
    /// What the wall showed at the start.
    start: Timestamp,
    /// How far it has been moved.
    elapsed: Mutex<Duration>,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self { start, elapsed: Mutex::new(Duration::ZERO) }
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        let mut elapsed = self.elapsed();
        *elapsed = elapsed.saturating_add(by);
    }

    /// A duration is valid whatever happened to the thread that last held it.
    fn elapsed(&self) -> MutexGuard<'_, Duration> {
        self.elapsed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.elapsed().as_secs()).unwrap_or(i64::MAX);
        self.start.plus_seconds(seconds)
    }

    fn monotonic(&self) -> Duration {
        *self.elapsed()
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = ManualClock::new(Timestamp::from_second(1_000));
        assert_eq!(clock.now().as_second(), 1_000);
        clock.sleep(Duration::from_millis(700));
        assert_eq!(clock.now().as_second(), 1_000);
        clock.advance(Duration::from_millis(300));
        assert_eq!(clock.now().as_second(), 1_001);
        assert_eq!(clock.monotonic(), Duration::from_secs(1));
    }

    #[test]
    fn the_system_clock_runs_forwards() {
        let clock = SystemClock::new();
        let before = clock.monotonic();
        clock.sleep(Duration::from_millis(2));
        assert!(clock.monotonic() >= before + Duration::from_millis(2));
        assert!(clock.now() > Timestamp::from_second(1_700_000_000));
    }
}
