//! Whether a silence is longer than this program's usual pauses.

use std::time::Duration;

/// No silence shorter than this is a stall: compilations and evaluations are quiet for minutes.
pub const LEAST: Duration = Duration::from_secs(600);

/// Whether `silence` is more than `factor` of the `usual` interval between outputs, and at least
/// [`LEAST`]. With no usual interval known, only a silence of `factor` times [`LEAST`] counts.
pub fn is_stalled(silence: Duration, usual: Option<Duration>, factor: u32) -> bool {
    let limit = usual.unwrap_or(LEAST).saturating_mul(factor);
    silence >= limit.max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_long_and_unusual() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        assert!(!is_stalled(minutes(9), Some(Duration::from_secs(1)), 5), "too short for anything");
        assert!(is_stalled(minutes(10), Some(Duration::from_secs(1)), 5));
        assert!(!is_stalled(minutes(40), Some(minutes(10)), 5), "it is a slow program");
        assert!(is_stalled(minutes(50), Some(minutes(10)), 5));
        assert!(!is_stalled(minutes(40), None, 5));
    }
}
