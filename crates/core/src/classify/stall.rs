//! Whether a silence is longer than this program's usual pauses.

use std::time::Duration;

use crate::model::facts::{Class, Evidence, Phase, Source, Verdict};
use crate::model::time;

/// No silence shorter than this is a stall: compilations and evaluations are quiet for minutes.
pub const LEAST: Duration = Duration::from_secs(600);

/// Whether `silence` is more than `factor` of the `usual` interval between outputs, and at least
/// [`LEAST`]. With no usual interval known, only a silence of `factor` times [`LEAST`] counts.
pub(crate) fn is_stalled(silence: Duration, usual: Option<Duration>, factor: u32) -> bool {
    let limit = usual.unwrap_or(LEAST).saturating_mul(factor);
    silence >= limit.max(LEAST)
}

/// How many of its usual pauses a program may be silent.
const FACTOR: u32 = 5;

/// Notes on the verdict about a running job that it has printed nothing for too long, with how long.
pub fn mark(verdict: &mut Verdict, silence: Duration, usual: Option<Duration>) {
    let alive = verdict.class == Class::Running && verdict.phase != Some(Phase::Diverged);
    if alive && is_stalled(silence, usual, FACTOR) {
        let age = silence.as_secs();
        let said = format!("no new output for {}", time::age(age));
        verdict.phase = Some(Phase::Stalled);
        verdict.evidence = Some(Evidence::fact(Source::Exit, "silence", said));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::{Classifier, Input};

    #[test]
    fn a_stall_is_a_phase_with_its_age() {
        let read = |text: &str, minutes: u64| {
            let input = Input { text: text.as_bytes(), ..Input::default() };
            let mut verdict = Classifier::builtin().classify(&input);
            mark(&mut verdict, Duration::from_secs(60 * minutes), Some(Duration::from_secs(30)));
            (verdict.phase, verdict.evidence.map(|evidence| evidence.line).unwrap_or_default())
        };
        assert_eq!(read("step 3 loss 0.5", 9).0, Some(Phase::Running));
        let stalled = (Some(Phase::Stalled), "no new output for 1h 02m".to_owned());
        assert_eq!(read("step 3 loss 0.5", 62), stalled);
        assert_eq!(read("step 3 loss nan", 62).0, Some(Phase::Diverged));
        assert_eq!(read("Killed", 62).0, None, "what has failed does not stall");
    }

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
