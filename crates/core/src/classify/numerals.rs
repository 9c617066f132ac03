//! From the words that an expression has caught to values: counts with separators and units, speeds, times.

use regex::bytes::Captures;

fn text_of<'h>(caps: &Captures<'h>, name: &str) -> Option<&'h str> {
    std::str::from_utf8(caps.name(name)?.as_bytes()).ok()
}

/// The number in the group of that name.
pub(super) fn number(caps: &Captures<'_>, name: &str) -> Option<f64> {
    text_of(caps, name)?.parse().ok()
}

/// The whole number in the group of that name.
pub(super) fn whole(caps: &Captures<'_>, name: &str) -> Option<u64> {
    integer(caps.name(name)?.as_bytes())
}

/// `12,000` and `12_000` are twelve thousand; a trailing comma ends a clause.
pub(super) fn integer(digits: &[u8]) -> Option<u64> {
    let digits: Vec<u8> = digits.iter().copied().filter(u8::is_ascii_digit).collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

/// `12,000`, `12_000` and `1.2e4` are twelve thousand. `None` if it is no whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded by the check before it, and whole"
)]
pub(super) fn count(text: &[u8]) -> Option<u64> {
    if text.iter().all(|b| b.is_ascii_digit() || matches!(b, b',' | b'_')) {
        return integer(text);
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    ((0.0..1e18).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

/// `1.5k` of a tqdm bar with `unit_scale`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bounded by the check before it, and rounding is wanted"
)]
pub(super) fn scaled(caps: &Captures<'_>, name: &str) -> Option<u64> {
    let text = text_of(caps, name)?;
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (text.get(..text.len() - 1)?, 1e3),
        b'm' | b'M' => (text.get(..text.len() - 1)?, 1e6),
        b'g' | b'G' => (text.get(..text.len() - 1)?, 1e9),
        _ => (text, 1.0),
    };
    let value = digits.parse::<f64>().ok()? * unit;
    (0.0..1e18).contains(&value).then(|| value.round() as u64)
}

/// Steps per second, from `5.0 it/s`, `2.5 s/it`, `812 ms/iter`; `ms` alone is the time of one.
pub(super) fn rate(value: Option<f64>, unit: Option<&[u8]>) -> Option<f64> {
    let value = value.filter(|v| *v > 0.0)?;
    let unit = unit?.to_ascii_lowercase();
    let time = unit.split(|b| *b == b'/').next().unwrap_or_default();
    Some(match time {
        b"ms" => 1e3 / value,
        b"us" => 1e6 / value,
        b"s" | b"sec" => 1.0 / value,
        _ => value,
    })
}

/// Seconds in `1:02:03`, `02:03`, `1 day, 2:03:04`, `1h 2m 3s`, `5s`.
pub(super) fn clock(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.contains(':') {
        let (days, clock) = match text.split_once("day") {
            Some((days, clock)) => {
                (days.trim().parse().ok()?, clock.trim_start_matches(['s', ',', ' ']))
            }
            None => (0.0, text),
        };
        let seconds = clock
            .split(':')
            .try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))?;
        return Some(days * 86_400.0 + seconds);
    }
    let mut sum = 0.0;
    let mut digits = String::new();
    let mut any = false;
    let mut in_word = false;
    for c in text.chars() {
        if c.is_ascii_digit() || c == '.' {
            digits.push(c);
            in_word = false;
            continue;
        }
        if !c.is_ascii_alphabetic() || in_word {
            continue;
        }
        in_word = true;
        let unit = match c {
            'd' | 'D' => 86_400.0,
            'h' | 'H' => 3_600.0,
            'm' | 'M' => 60.0,
            _ => 1.0,
        };
        sum += std::mem::take(&mut digits).parse::<f64>().ok()? * unit;
        any = true;
    }
    any.then_some(sum)
}
