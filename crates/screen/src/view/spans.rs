//! Lines of several styles: cutting and laying out in columns of the terminal.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use tpu_core::text;

/// Text from outside, made harmless.
pub(super) fn outside(text: &str) -> String {
    text::escape(text).replace('\t', " ")
}

/// A line cut to `columns`, with `…` where something is missing.
pub(super) fn cut(line: Line<'static>, columns: usize) -> Line<'static> {
    if line.width() <= columns {
        return line;
    }
    let mut left = columns;
    let mut kept = Line { spans: Vec::with_capacity(line.spans.len()), ..line };
    for span in line.spans {
        let width = span.width();
        // One column is kept free for the mark, unless this span ends the line exactly.
        if width < left {
            left -= width;
            kept.spans.push(span);
        } else {
            let text = text::cut(&format!("{}…", span.content), left).into_owned();
            kept.spans.push(Span::styled(text, span.style));
            break;
        }
    }
    kept
}

/// The part of a line from column `left` on.
pub(super) fn skip(line: &Line<'static>, mut left: usize) -> Line<'static> {
    let mut kept = Line { spans: Vec::with_capacity(line.spans.len()), ..line.clone() };
    for span in &line.spans {
        let width = span.width();
        if left >= width && left > 0 {
            left -= width;
            continue;
        }
        let mut text = String::new();
        for c in span.content.chars() {
            if left > 0 {
                let width = text::width(c.encode_utf8(&mut [0; 4]));
                // A wide character that is cut in half leaves a blank.
                if width > left {
                    text.push(' ');
                }
                left = left.saturating_sub(width);
            } else {
                text.push(c);
            }
        }
        kept.spans.push(Span::styled(text, span.style));
    }
    kept
}

/// Breaks words into lines of at most `columns`; a longer word is broken too.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let used = text::width(&line);
        if used > 0 && used + 1 + text::width(word) <= columns {
            line.push(' ');
        } else if used > 0 {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            // A wide character in one column sticks out rather than getting lost.
            let width = text::width(c.encode_utf8(&mut [0; 4]));
            if !line.is_empty() && text::width(&line) + width > columns {
                lines.push(std::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// Parts joined by ` · `; empty parts leave no gap.
pub(super) fn dotted(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

/// Appends a cell, cut or filled to its width, and the blanks of the gap behind it.
pub(super) fn push_cell(
    line: &mut Line<'static>,
    cell: Line<'static>,
    (width, gap): (usize, usize),
) {
    let cell = cut(cell, width);
    let missing = width.saturating_sub(cell.width()) + gap;
    line.spans.extend(cell.spans);
    line.spans.push(Span::raw(" ".repeat(missing)));
}

/// A span that owns its text.
pub(super) fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(parts: &[&str]) -> Line<'static> {
        parts.iter().map(|part| Span::raw((*part).to_owned())).collect()
    }

    #[test]
    fn lines_are_cut_by_columns() {
        let cut_to = |columns| cut(line(&["ab", "日本", "cd"]), columns).to_string();
        assert_eq!(cut_to(8), "ab日本cd");
        assert_eq!(cut_to(7), "ab日本…");
        assert_eq!(cut_to(6), "ab日…");
        assert_eq!(cut_to(5), "ab日…");
        assert_eq!(cut_to(2), "a…");
        assert_eq!(cut_to(0), "");
    }

    #[test]
    fn lines_begin_at_a_column() {
        let from = |left| skip(&line(&["ab", "日本", "cd"]), left).to_string();
        assert_eq!(from(0), "ab日本cd");
        assert_eq!(from(1), "b日本cd");
        assert_eq!(from(3), " 本cd");
        assert_eq!(from(7), "d");
        assert_eq!(from(9), "");
    }

    #[test]
    fn words_are_wrapped() {
        assert_eq!(wrap("no server is running", 9), ["no server", "is", "running"]);
        assert_eq!(wrap("abcdefgh ij", 5), ["abcde", "fgh", "ij"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
    }
}
