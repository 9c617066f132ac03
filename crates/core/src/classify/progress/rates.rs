//! Reads how fast steps are made: `steps/s: 2.0`, `steps/s 2.0`, `2.0 it/s`, `500 ms/step`.

use regex::bytes::{Captures, Match};

use super::context::Owner;
use super::patterns as p;
use super::patterns::{all, last};
use crate::classify::numerals::{number, rate};

/// Words before a number that say of it no more than its unit does: `speed 2.0 it/s`.
const SPEEDS: [&str; 12] = [
    "fps",
    "ips",
    "speed",
    "rate",
    "throughput",
    "pace",
    "perf",
    "performance",
    "at",
    "avg",
    "average",
    "mean",
];

/// Steps per second that a line shows. A number belongs rather to the name before it than to the unit behind it:
/// of `acc 0.031 steps/s 2.00` the speed is 2.
pub(super) fn read(body: &[u8]) -> Option<f64> {
    let ours = |caps: &Captures<'_>| {
        let word = caps.name("w").or_else(|| caps.name("ups"));
        word.is_some_and(|word| !Owner::of(body, word).is_held_out())
    };
    let named = || all(&p::RATE, body).filter(ours).last().and_then(|caps| number(&caps, "v"));
    let beside = || {
        let is_its = |caps: &Captures<'_>| {
            ours(caps) && caps.name("w").is_some_and(|word| is_name(body, word))
        };
        let caps = all(&p::RATE_BESIDE, body).filter(is_its).last()?;
        number(&caps, "v").filter(|speed| *speed > 0.0)
    };
    let table = || last(&p::FPS, body).and_then(|caps| number(&caps, "v"));
    // `17ms/step 3`: what follows is another's.
    let alone = |caps: &Captures<'_>| {
        let Some(word) = caps.get(0) else { return false };
        let before = body.get(..word.start()).unwrap_or_default().trim_ascii_end();
        caps.name("sep").is_some()
            || before.last().is_none_or(|b| !b.is_ascii_digit() && *b != b'/')
            || is_name(body, word)
    };
    let pace = || {
        let caps = all(&p::PACE, body).filter(alone).last()?;
        let per = caps.name("per").or_else(|| caps.name("unit")).map(|m| m.as_bytes());
        rate(number(&caps, "v"), per)
    };
    let behind = || {
        let caps = last(&p::RATE_AFTER, body)?;
        rate(number(&caps, "v"), caps.name("per").map(|m| m.as_bytes()))
    };
    named().or_else(beside).or_else(table).or_else(pace).or_else(behind)
}

/// Whether the word for a speed is the name of the number behind it, and not the unit of the one before it: there is
/// none, or that one has a name of its own.
fn is_name(body: &[u8], word: Match<'_>) -> bool {
    let before = body.get(..word.start()).unwrap_or_default();
    if before.last().is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/' | b'-')) {
        return false;
    }
    let before = before.trim_ascii_end();
    let is_number = |b: &u8| b.is_ascii_digit() || *b == b'.';
    let head = without(before, is_number);
    if head.len() == before.len() {
        return true;
    }
    let head = without(head, |b| matches!(b, b' ' | b'=' | b':' | b'"' | b'\''));
    let name = head.get(without(head, u8::is_ascii_alphabetic).len()..).unwrap_or_default();
    let is_speed = SPEEDS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    !name.is_empty() && !is_speed
}

/// The bytes before those at the end that are a part of it.
fn without(bytes: &[u8], is_part: impl Fn(&u8) -> bool) -> &[u8] {
    let length = bytes.iter().rev().take_while(|b| is_part(b)).count();
    bytes.get(..bytes.len() - length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_belongs_rather_to_the_name_before_it() {
        for line in [
            "acc 0.031 steps/s 2.00",
            "lr 0.001 it/s 2.00",
            "grad_norm 0.030 steps/sec 2.00",
            "| step 10/500 | loss 1.2 | steps/s 2.00 |",
            "lr=0.001 it/s 2.00 eta 0:07:20",
            "step 5 steps/s 2.00",
            "loss 0.5 2.00 it/s",
            "speed 2.00 it/s 3",
            "loss 0.5, 2.00 it/s 3",
            "lr 0.001 ms/step 500",
            "steps/s: 2.00",
            "acc 0.031 steps/s=2.00",
        ] {
            assert_eq!(read(line.as_bytes()), Some(2.0), "{line}");
        }
        for line in ["17ms/step 3 of them", "Mbit/s 30", "it/s 0:07:20"] {
            assert!(read(line.as_bytes()) != Some(3.0), "{line}");
            assert!(read(line.as_bytes()) != Some(30.0), "{line}");
            assert!(read(line.as_bytes()) != Some(0.0), "{line}");
        }
    }
}
