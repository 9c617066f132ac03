//! How long to wait between two reactions of one lineage.
//!
//! The first reaction to a failure is immediate; each further one in a row without progress waits twice as
//! long as the one before, up to a limit.

use crate::model::job::Job;
use crate::model::time::Timestamp;

/// Share of a delay that the jitter adds at most, as one part of so many.
const JITTER_PART: u32 = 10;

/// How long delays are, in seconds and without jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The first one; each further one is twice as long.
    pub base_s: u32,
    /// The longest one.
    pub limit_s: u32,
}

/// After a preemption, and while there is no capacity.
pub const CAPACITY: Pace = Pace { base_s: 60, limit_s: 300 };

/// After what may last.
pub const LASTING: Pace = Pace { base_s: 10, limit_s: 600 };

/// Once the quick reactions to failures of infrastructure are used up.
pub const PATIENT: Pace = Pace { base_s: 1_800, limit_s: 14_400 };

/// What the next reaction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// How long delays are.
    pub pace: Pace,
    /// How many delays there are in this row, this one included; none for the first reaction.
    pub row: u32,
    /// Since when this one runs; `None` if nothing is waited for.
    pub since: Option<Timestamp>,
}

/// Seconds between the last reaction and the next one, after `row` reactions in a row.
///
/// `jitter` in 0..=1 lengthens the delay by up to a tenth, so that lineages that failed together do not
/// come back together; values outside count as the nearest bound.
pub fn delay_s(Pace { base_s, limit_s }: Pace, row: u32, jitter: f64) -> f64 {
    let Some(doublings) = row.checked_sub(1) else { return 0.0 };
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    let delay = f64::from(base_s.saturating_mul(factor).min(limit_s));
    let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
    delay + delay * jitter / f64::from(JITTER_PART)
}

/// The instant before which the next reaction does not begin.
///
/// A last reaction in the future is a clock that was set back since: nobody knows how long ago it was, and
/// waiting for the clock to catch up could take years.
pub fn not_before(pause: Pause, now: Timestamp, jitter: f64) -> Timestamp {
    let Some(since) = pause.since.filter(|since| *since <= now) else { return now };
    #[expect(clippy::cast_possible_truncation, reason = "at most a tenth over 32 bits")]
    let delay = delay_s(pause.pace, pause.row, jitter).ceil() as i64;
    since.plus_seconds(delay)
}

/// The jitter of the next reaction to `job`: the same for everybody who asks about it, so that what is
/// announced is what happens, and different for different attempts.
pub fn jitter_of(job: &Job) -> f64 {
    let row = job
        .recovery
        .as_ref()
        .map_or(0, |r| r.infra.saturating_add(r.capacity).saturating_add(r.retried));
    match &job.launch {
        Some(launch) => jitter(launch.token.as_str(), row),
        None => jitter(&job.id().to_string(), row),
    }
}

/// The same for whatever has a name of its own.
pub fn jitter(seed: &str, row: u32) -> f64 {
    // FNV-1a; its low bits are good enough to spread a few dozen lineages over some seconds.
    let seed = seed
        .bytes()
        .chain(row.to_le_bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    f64::from(seed % 1_000) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_their_limit_and_the_first_is_none() {
        let row = |pace| -> Vec<f64> { (0..9).map(|row| delay_s(pace, row, 0.0)).collect() };
        assert_eq!(row(CAPACITY), [0.0, 60.0, 120.0, 240.0, 300.0, 300.0, 300.0, 300.0, 300.0]);
        assert_eq!(row(LASTING), [0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 600.0, 600.0]);
        let minutes: Vec<f64> = row(PATIENT).into_iter().map(|delay| delay / 60.0).collect();
        assert_eq!(minutes, [0.0, 30.0, 60.0, 120.0, 240.0, 240.0, 240.0, 240.0, 240.0]);
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up() {
        let now = Timestamp::from_second(1_000);
        let since = |since| Pause { pace: LASTING, row: 1, since: Some(since) };
        let at = not_before(since(Timestamp::from_second(9_000)), now, 0.0);
        assert_eq!(at, now);
        let at = not_before(since(now), now, 0.0);
        assert_eq!(at, Timestamp::from_second(1_010));
    }

    #[test]
    fn launches_differ_in_their_jitter_and_one_keeps_it() {
        assert_eq!(jitter("a1", 3).to_bits(), jitter("a1", 3).to_bits());
        let all: std::collections::BTreeSet<u64> =
            (0..20).map(|n| jitter(&format!("launch-{n}"), 1).to_bits()).collect();
        assert!(all.len() > 15, "{all:?}");
    }
}
