//! Waiting for a condition. A test never sleeps for a time that somebody guessed.

use std::time::Duration;

use tpu_system::sys::clock::{Clock as _, SystemClock};

/// Asks until `condition` holds; fails the test, saying what was waited for, after a minute.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// Asks until there is an answer; fails the test after a minute.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, answer: impl FnMut() -> Option<T>) -> T {
    wait_at_most(Duration::from_secs(60), what, answer)
}

/// Asks until there is an answer, after 2 ms, then after twice as long, up to 100 ms; a question that starts a program
/// rests eight times as long as it took, up to half a second: tests share the processors with what they wait for. Fails
/// the test when it has taken too long.
#[track_caller]
pub(crate) fn wait_at_most<T>(
    limit: Duration,
    what: &str,
    mut answer: impl FnMut() -> Option<T>,
) -> T {
    let clock = SystemClock::new();
    let mut pause = Duration::from_millis(2);
    loop {
        let asked = clock.monotonic();
        if let Some(answer) = answer() {
            return answer;
        }
        let now = clock.monotonic();
        assert!(now < limit, "waited in vain: {what}");
        let spared = (8 * now.saturating_sub(asked)).min(Duration::from_millis(500));
        clock.sleep(pause.max(spared));
        pause = (2 * pause).min(Duration::from_millis(100));
    }
}
