//! A call that got no answer is made again, a few times, at growing and jittered distances.

use std::time::Duration;

use super::ProviderError;
use tpu_system::sys::clock::Clock;
use tpu_system::sys::random::Random;

/// How often a call is made before its failure counts.
pub const TRIES: u32 = 5;

/// The wait before the second try; it doubles before each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Makes a call until it is answered, at most [`TRIES`] times. Only failures that are worth it are
/// repeated; the call must be one that may be repeated, as all of [`super::Provider`]'s are.
pub fn persistently<T>(
    clock: &dyn Clock,
    random: &dyn Random,
    call: impl FnMut() -> Result<T, ProviderError>,
) -> Result<T, ProviderError> {
    at_most(TRIES, clock, random, call)
}

/// The same with another number of tries.
pub fn at_most<T>(
    tries: u32,
    clock: &dyn Clock,
    random: &dyn Random,
    mut call: impl FnMut() -> Result<T, ProviderError>,
) -> Result<T, ProviderError> {
    let mut wait = FIRST_WAIT;
    for _ in 1..tries {
        match call() {
            Err(error) if error.trouble.is_worth_repeating() => {}
            answer => return answer,
        }
        // Half of it is chance, so that many who failed together do not come back together.
        let half = wait / 2;
        let jitter = random.below(u64::try_from(half.as_millis()).unwrap_or(u64::MAX));
        clock.sleep(half + Duration::from_millis(jitter));
        wait *= 2;
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Trouble;
    use tpu_core::model::time::Timestamp;
    use tpu_system::sys::clock::ManualClock;
    use tpu_system::sys::random::SeededRandom;

    fn attempt(trouble: Trouble, failures: u32) -> (Result<u32, ProviderError>, u32, Duration) {
        let clock = ManualClock::new(Timestamp::from_second(0));
        let mut calls = 0;
        let answer = persistently(&clock, &SeededRandom::new(1), || {
            calls += 1;
            if calls > failures {
                return Ok(calls);
            }
            Err(ProviderError::new(trouble, "list", "no"))
        });
        (answer, calls, clock.monotonic())
    }

    #[test]
    fn silence_is_asked_five_times_and_no_more() {
        let (answer, calls, waited) = attempt(Trouble::Transient, 4);
        assert_eq!((answer, calls), (Ok(5), 5));
        assert!(waited >= Duration::from_millis(7_500), "{waited:?}");
        assert!(waited < Duration::from_secs(15), "{waited:?}");
        let (answer, calls, _) = attempt(Trouble::Transient, 99);
        assert_eq!((answer.unwrap_err().trouble, calls), (Trouble::Transient, TRIES));
    }

    #[test]
    fn every_other_failure_counts_at_once() {
        for trouble in Trouble::ALL.into_iter().filter(|t| *t != Trouble::Transient) {
            let (answer, calls, waited) = attempt(trouble, 99);
            assert_eq!((answer.unwrap_err().trouble, calls), (trouble, 1));
            assert_eq!(waited, Duration::ZERO);
        }
    }
}
