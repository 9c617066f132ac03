//! Text as terminals see it: escape sequences out, widths in columns, cuts that respect both.
//!
//! Pure, and used by every layer above.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

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
}
