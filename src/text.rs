//! Text as terminals see it: escape sequences out, widths in columns, cuts that respect both.
//!
//! Pure, and used by every layer above.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub mod transcript;

/// A number of things: `1 job`, `2 jobs`.
pub fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Columns that `text` takes on a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The longest start of `text` that fits into `columns`, with `…` in the last column if it was cut.
pub fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut used = 0;
    let mut kept = String::new();
    for c in text.chars() {
        let w = c.width().unwrap_or(0);
        if used + w + 1 > columns {
            break;
        }
        used += w;
        kept.push(c);
    }
    if columns > 0 {
        kept.push('…');
    }
    Cow::Owned(kept)
}

/// `text` cut or filled with blanks to exactly `columns`.
pub fn fit(text: &str, columns: usize) -> String {
    let mut cut = cut(text, columns).into_owned();
    let missing = columns.saturating_sub(width(&cut));
    cut.extend(std::iter::repeat_n(' ', missing));
    cut
}

/// Text from outside, made harmless for a terminal: control characters become visible escapes.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// `bytes` without terminal escape sequences: CSI (colours, cursor), OSC (titles, links), DCS and the
/// like, and two-byte escapes. Newlines, carriage returns, backspaces and tabs stay.
///
/// A sequence that never ends takes the rest of its line at most, so that cut captures stay readable.
pub fn strip(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = bytes.iter().position(|b| *b == ESC) else {
        return Cow::Borrowed(bytes);
    };
    let (plain, mut rest) = bytes.split_at(first);
    let mut clean = Vec::with_capacity(bytes.len());
    clean.extend_from_slice(plain);
    while let Some((escape, after)) = rest.split_first() {
        debug_assert_eq!(*escape, ESC, "each turn starts at an escape");
        let after = after.get(escape_len(after)..).unwrap_or_default();
        let next = after.iter().position(|b| *b == ESC).unwrap_or(after.len());
        let (plain, tail) = after.split_at(next);
        clean.extend_from_slice(plain);
        rest = tail;
    }
    Cow::Owned(clean)
}

const ESC: u8 = 0x1b;

/// Whether a sequence goes on behind `after`, all of whose bytes but the last were needed so far.
fn goes_on(after: &[u8]) -> bool {
    match after {
        [] => true,
        [b']' | b'P' | b'X' | b'^' | b'_', .., ESC, _] => false,
        [b']' | b'P' | b'X' | b'^' | b'_', body @ ..] => !matches!(body.last(), Some(0x07 | b'\n')),
        [b'[', body @ ..] => body.last().is_none_or(|b| (0x20..0x40).contains(b)),
        [.., last] => (0x20..0x30).contains(last),
    }
}

/// How many of `after`, the bytes that follow an ESC, belong to the sequence (ECMA-48, 5.4 and 5.6).
fn escape_len(after: &[u8]) -> usize {
    match after {
        // CSI: parameters and intermediates, then one final byte.
        [b'[', body @ ..] => {
            let inner = body.iter().take_while(|b| (0x20..0x40).contains(*b)).count();
            let has_final = body.get(inner).is_some_and(|b| (0x40..0x7f).contains(b));
            1 + inner + usize::from(has_final)
        }
        // OSC, DCS, SOS, PM, APC: a string up to BEL or ST.
        [b']' | b'P' | b'X' | b'^' | b'_', body @ ..] => {
            let end = body.iter().position(|b| matches!(*b, 0x07 | ESC | b'\n'));
            match end.and_then(|at| body.get(at..)) {
                Some([0x07, ..]) => 1 + end.unwrap_or(0) + 1,
                Some([ESC, b'\\', ..]) => 1 + end.unwrap_or(0) + 2,
                // Another escape or the line's end: the string was cut.
                Some(_) => 1 + end.unwrap_or(0),
                None => 1 + body.len(),
            }
        }
        // Character sets and the like: intermediates, then one final byte.
        [0x20..0x30, ..] => {
            let inner = after.iter().take_while(|b| (0x20..0x30).contains(*b)).count();
            inner + usize::from(after.get(inner).is_some_and(|b| (0x30..0x7f).contains(b)))
        }
        [0x30..0x7f, ..] => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_count_columns_not_bytes() {
        assert_eq!(cut("baseline", 8), "baseline");
        assert_eq!(cut("baseline", 5), "base…");
        assert_eq!(cut("日本語の実験", 5), "日本…");
        assert_eq!(width(&fit("日本", 7)), 7);
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn escapes_make_terminal_codes_visible() {
        assert_eq!(escape("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(escape("plain\ttext"), "plain\ttext");
    }

    #[test]
    fn escape_sequences_leave_only_the_text() {
        let cases: [(&[u8], &[u8]); 10] = [
            (b"plain", b"plain"),
            (b"\x1b[1;34mwandb\x1b[0m: done", b"wandb: done"),
            (b"\x1b]0;title\x07after", b"after"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", b"link"),
            (b"a\x1b(Bb\x1b=c\x1b7d", b"abcd"),
            (b"\x1b[?25lx\x1b[2K\x1b[1Ay", b"xy"),
            (b"cut\x1b]0;never ends\nnext", b"cut\nnext"),
            (b"cut\x1b[", b"cut"),
            (b"cut\x1b", b"cut"),
            (b"\x1b\x1b[31mred\xff", b"red\xff"),
        ];
        for (from, to) in cases {
            assert_eq!(strip(from), to, "{}", from.escape_ascii());
        }
    }
}
