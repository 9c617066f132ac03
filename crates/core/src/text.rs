//! Text as terminals see it: escape sequences out, widths in columns, cuts that respect both.
//!
//! Pure, and used by every layer above.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

pub mod columns;
pub mod fields;
pub mod sheet;
pub mod transcript;

/// Bytes for people: `999 B`, `20.0 MB`, `1.5 TB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let (mut tenths, mut unit) = (count / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        (tenths, unit) = (tenths / 1_000, unit + 1);
    }
    let unit = UNITS.get(unit).copied().unwrap_or_default();
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// A number of things: `1 job`, `2 jobs`, `2 processes`, `2 directories`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {}", several(count, what))
}

/// Words of which one is to be taken: `a, b or c`.
pub fn either(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [word] => (*word).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// `did you mean 'x'?` for the nearest of `known`, if one is near.
pub fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let slipped = |name: &str| is_a_slip(typed, name);
    known
        .into_iter()
        .map(|name| (if slipped(name) { 1.0 } else { strsim::jaro_winkler(typed, name) }, name))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| format!("did you mean '{name}'?"))
}

/// Whether a word is typed with one slip of the finger, and long enough to have one.
pub fn is_a_slip(typed: &str, name: &str) -> bool {
    typed.len() > 2 && strsim::osa_distance(typed, name) == 1
}

/// The word for so many things, without their number.
fn several(count: usize, what: &str) -> String {
    let is_vowel = |c: char| "aeiou".contains(c);
    if count == 1 {
        return what.to_owned();
    }
    match what.strip_suffix('y').filter(|stem| !stem.ends_with(is_vowel)) {
        Some(stem) => format!("{stem}ies"),
        None if what.ends_with('s') => format!("{what}es"),
        None => format!("{what}s"),
    }
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

/// Whether a terminal does something else with a character than to show it: controls (C0, DEL and C1) but
/// the tab, and what turns the order of a line around or hides in it.
pub fn is_unsafe(c: char) -> bool {
    c != '\t' && (c.is_control() || is_invisible(c))
}

/// Marks of writing direction, line and paragraph separators, annotations and tags: no column shows them.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Text from outside on one line, made harmless for a terminal: what it would act on is shown as an escape.
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_unsafe(c) {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Whole text on its way to a terminal or a pipe: lines, tabs and colours (SGR) stay, and nothing else that
/// a terminal acts on does. Of a line that was drawn over (by carriage returns) the last drawing stays. What
/// comes from a job, a worker or a file of others leaves the program through here and no other way.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if is_plain(text) || !text.chars().any(|c| c != '\n' && is_unsafe(c)) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut is_coloured = false;
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let drawn = line.rsplit('\r').find(|drawn| !drawn.is_empty()).unwrap_or_default();
        push_harmless(&mut safe, drawn, &mut is_coloured);
        safe.push_str(end);
    }
    if is_coloured {
        safe.push_str("\u{1b}[0m");
    }
    Cow::Owned(safe)
}

/// Whether there are only letters, digits and signs of ASCII in lines: most of what is printed, told at the cost of
/// reading it.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\n' | b' '..=b'~'))
}

fn push_harmless(safe: &mut String, line: &str, is_coloured: &mut bool) {
    let mut rest = line;
    while let Some(at) = rest.find(is_unsafe) {
        let (plain, tail) = rest.split_at(at);
        safe.push_str(plain);
        let mut after = tail.chars();
        let Some(c) = after.next() else { return };
        let after = after.as_str();
        rest = after;
        if c == '\u{1b}' {
            let sequence = after.get(..escape_len(after.as_bytes())).unwrap_or(after);
            if let Some(attributes) = attributes(sequence) {
                safe.push(c);
                safe.push_str(sequence);
                *is_coloured = !matches!(attributes.rsplit(';').next(), None | Some("" | "0"));
            }
            rest = after.get(sequence.len()..).unwrap_or_default();
        } else if is_invisible(c) {
            safe.extend(c.escape_default());
        }
    }
    safe.push_str(rest);
}

/// The parameters of what follows an ESC, if that sets colours and the like (SGR) and nothing else.
fn attributes(sequence: &str) -> Option<&str> {
    let attributes = sequence.strip_prefix('[')?.strip_suffix('m')?;
    let is_number = |b: u8| b.is_ascii_digit() || matches!(b, b';' | b':');
    (attributes.len() <= LONGEST_SGR && attributes.bytes().all(is_number)).then_some(attributes)
}

/// Parameters of colours are never longer; some terminals keep a buffer no larger.
const LONGEST_SGR: usize = 64;

/// A JSON document in which a terminal finds nothing to act on. It says the same: all that is not plain is
/// within strings, where it may be written as an escape.
pub fn harmless_json(document: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| !c.is_ascii_whitespace() && is_unsafe(c);
    if is_plain(document) || !document.chars().any(is_unsafe) {
        return Cow::Borrowed(document);
    }
    let mut safe = String::with_capacity(document.len() + 8);
    for c in document.chars() {
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// The last `most` characters of a text, with `…` in the place of what is missing.
pub fn last(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().rev().nth(most) {
        None => Cow::Borrowed(text),
        Some(_) if most == 0 => Cow::Borrowed(""),
        Some((at, c)) => {
            let after = text.get(at + c.len_utf8()..).unwrap_or_default();
            let kept = after.char_indices().nth(1).and_then(|(second, _)| after.get(second..));
            Cow::Owned(format!("…{}", kept.unwrap_or_default()))
        }
    }
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

/// FNV-1a of 64 bits: a number for these bytes that stays the same from one build to the next. It tells things apart and
/// finds accidents, not malice.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_rounded_down_in_the_unit_that_fits() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (999_999, "999.9 kB"),
            (20_000_000, "20.0 MB"),
            (2_147_483_648, "2.1 GB"),
            (u64::MAX, "18446.7 PB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn bytes_have_the_number_that_everybody_gives_them() {
        // From the test vectors of its authors.
        for (text, number) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            assert_eq!(fnv1a(text.bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn things_are_counted() {
        let said = |count, what| counted(count, what);
        assert_eq!(said(1, "job"), "1 job");
        assert_eq!(said(0, "job"), "0 jobs");
        assert_eq!(said(2, "process"), "2 processes");
        assert_eq!(said(1, "directory"), "1 directory");
        assert_eq!(said(3, "directory"), "3 directories");
        assert_eq!(said(2, "alias"), "2 aliases");
        assert_eq!(said(2, "key"), "2 keys");
    }

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
    fn what_turns_lines_around_is_visible() {
        assert_eq!(escape("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
        assert_eq!(escape("عربي 👩\u{200d}💻"), "عربي 👩\u{200d}💻");
    }

    #[test]
    fn colours_pass_and_nothing_else_does() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[1;38:5:3mred\u{1b}[0m", "\u{1b}[1;38:5:3mred\u{1b}[0m"),
            ("\u{1b}[31mred\n", "\u{1b}[31mred\n\u{1b}[0m"),
            ("a\u{1b}]52;c;aGk=\u{7}b\u{1b}]0;t\u{1b}\\c\u{1b}P+q\u{1b}\\d", "abcd"),
            ("a\u{1b}[6n\u{1b}[?1049h\u{1b}[>4;1m\u{1b}[?4m\u{1b}[2Jb\u{1b}cd", "abd"),
            ("a\u{9d}0;t\u{9c}b\u{9b}6nc", "a0;tb6nc"),
            ("a\u{1b}\u{1b}[31mb\u{1b}[0m\u{1b}", "a\u{1b}[31mb\u{1b}[0m"),
            ("a\u{1b}\u{9b}[31\u{7}mb\u{8}\u{7f}", "a[31mb"),
            ("  5 %\r 10 %\r\nnext\r", " 10 %\nnext"),
            ("a\u{202e}b", "a\\u{202e}b"),
        ];
        for (from, to) in cases {
            assert_eq!(harmless(from), to, "{}", from.escape_debug());
            assert_eq!(harmless(to), to, "once is enough: {}", from.escape_debug());
        }
    }

    #[test]
    fn json_says_the_same_without_a_character_to_act_on() {
        let value = serde_json::json!({ "a\u{9b}": "\u{1b}]0;\u{7f}\u{202e}\u{e0041}é\n" });
        let text = format!("{value:#}\n");
        let safe = harmless_json(&text);
        assert!(!safe.chars().any(|c| c != '\n' && is_unsafe(c)), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
    }

    #[test]
    fn the_end_of_a_text_is_cut_by_characters() {
        assert_eq!(last("日本語", 3), "日本語");
        assert_eq!(last("日本語の", 3), "…語の");
        assert_eq!(last("ab", 1), "…");
        assert_eq!(last("ab", 0), "");
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
