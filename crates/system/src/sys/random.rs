//! Randomness: tokens that nobody else draws, and jitter. A seeded twin makes simulations repeatable.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// The door to random numbers.
pub trait Random: Send + Sync {
    /// Fills `bytes` with random ones.
    fn fill(&self, bytes: &mut [u8]);

    /// `bytes` random bytes in lower-case hexadecimal: twice as many characters.
    fn hex(&self, bytes: usize) -> String {
        let mut raw = vec![0; bytes];
        self.fill(&mut raw);
        raw.iter().fold(String::with_capacity(bytes * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// A number from 0 up to, and without, `limit`; 0 if `limit` is 0. Meant for jitter: for limits
    /// anywhere near 2⁶⁴ the small numbers come slightly more often.
    fn below(&self, limit: u64) -> u64 {
        let mut raw = [0; 8];
        self.fill(&mut raw);
        u64::from_le_bytes(raw).checked_rem(limit).unwrap_or(0)
    }
}

/// The operating system's generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsRandom;

impl Random for OsRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("every supported kernel hands out random bytes");
    }
}

/// The same numbers for the same seed (the `SplitMix64` sequence). Not for secrets.
#[derive(Debug)]
pub struct SeededRandom {
    /// Position in the sequence.
    state: Mutex<u64>,
}

impl SeededRandom {
    /// A generator whose whole sequence follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: Mutex::new(seed) }
    }

    fn next(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            for (byte, drawn) in chunk.iter_mut().zip(self.next().to_le_bytes()) {
                *byte = drawn;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_whole_sequence() {
        let draw = |seed| {
            let random = SeededRandom::new(seed);
            (random.hex(5), random.below(100), random.hex(16))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        // First number of the published sequence for seed 0.
        assert_eq!(SeededRandom::new(0).next(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn tokens_have_the_asked_length_and_differ() {
        let (one, two) = (OsRandom.hex(16), OsRandom.hex(16));
        assert_eq!(one.len(), 32);
        assert!(one.chars().all(|c| c.is_ascii_hexdigit()));
        assert_ne!(one, two);
        assert_eq!(OsRandom.hex(0), "");
        assert_eq!(OsRandom.below(0), 0);
        assert!(OsRandom.below(3) < 3);
    }
}
