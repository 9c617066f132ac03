//! What a pane shows, as styled lines: colours kept, every other escape sequence dropped.

use ansi_to_tui::IntoText as _;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use tpu_core::text;

/// Text of a pane, oldest line first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaneText {
    /// The lines with their colours. They hold no control characters.
    pub lines: Vec<Line<'static>>,
}

impl PaneText {
    /// Reads what tmux captured. Bytes that are no UTF-8 become replacement characters, and the blank
    /// lines below the last output go.
    pub fn from_capture(bytes: &[u8]) -> Self {
        let coloured = only_colours(&String::from_utf8_lossy(bytes));
        let lines = match coloured.as_str().into_text() {
            Ok(text) => text.lines,
            // The parser gave up: show the text without colours rather than nothing.
            Err(_) => return Self::from_plain(coloured.lines()),
        };
        let mut pane = Self { lines };
        for span in pane.lines.iter_mut().flat_map(|line| &mut line.spans) {
            span.style = on_any_background(span.style);
        }
        while pane
            .lines
            .last()
            .is_some_and(|line| line.spans.iter().all(|s| s.content.trim().is_empty()))
        {
            pane.lines.pop();
        }
        pane
    }

    /// Lines that are already plain text.
    pub fn from_plain<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let clean = |line: &str| Line::from(Span::raw(only_text(line)));
        Self { lines: lines.into_iter().map(clean).collect() }
    }

    /// One line without its colours.
    pub fn plain(&self, line: usize) -> String {
        let spans = self.lines.get(line).map(|line| line.spans.as_slice()).unwrap_or_default();
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    /// The newest rows of a panel `width` columns wide, oldest first: long lines go on in the next row.
    pub(crate) fn newest_rows(&self, width: usize, rows: usize) -> Vec<Line<'static>> {
        let mut newest: Vec<Line<'static>> = Vec::new();
        for line in self.lines.iter().rev() {
            if newest.len() >= rows {
                break;
            }
            newest.extend(folded(line, width.max(1)).into_iter().rev());
        }
        newest.truncate(rows);
        newest.reverse();
        newest
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Where the lines of `older` went: how many lines further down a line of `older` stands here
    /// (negative when the history dropped lines at its top). `None` if nothing is recognised.
    ///
    /// The newest lines are often drawn over (progress bars), so a few of them may differ.
    pub(crate) fn shift_from(&self, older: &Self) -> Option<isize> {
        const RUN: usize = 6;
        const DRAWN_OVER: usize = 12;
        for skip in 0..DRAWN_OVER.min(older.len()) {
            let end = older.len() - skip;
            let start = end.saturating_sub(RUN);
            let run = older.lines.get(start..end)?;
            let found = self.lines.windows(run.len().max(1)).rposition(|window| window == run);
            if let Some(at) = found {
                return Some(at.cast_signed() - start.cast_signed());
            }
        }
        None
    }
}

/// A line in pieces of at most `width` columns, each with its colours.
pub fn folded(line: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    let mut rows = vec![Line::default()];
    let mut used = 0;
    for span in &line.spans {
        let mut piece = String::new();
        for c in span.content.chars() {
            let columns = text::width(c.encode_utf8(&mut [0; 4]));
            if used + columns > width && used > 0 {
                push(&mut rows, &mut piece, span.style);
                rows.push(Line::default());
                used = 0;
            }
            piece.push(c);
            used += columns;
        }
        push(&mut rows, &mut piece, span.style);
    }
    rows
}

/// Adds a piece to the last row.
fn push(rows: &mut [Line<'static>], piece: &mut String, style: Style) {
    if let Some(row) = rows.last_mut()
        && !piece.is_empty()
    {
        row.spans.push(Span::styled(std::mem::take(piece), style));
    }
}

/// The terminal's default colours mean "as everything around it", which is the theme's.
fn on_any_background(style: Style) -> Style {
    let own = |color: Option<Color>| color.filter(|color| *color != Color::Reset);
    Style {
        fg: own(style.fg),
        bg: own(style.bg),
        underline_color: own(style.underline_color),
        sub_modifier: Modifier::empty(),
        ..style
    }
}

/// Text with line breaks and colours and nothing else that a terminal acts on. Sub-parameters of colours
/// become parameters, which is what is understood here.
fn only_colours(text: &str) -> String {
    let text = text::harmless(text).replace('\t', "    ");
    let mut pieces = text.split('\u{1b}');
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (attributes, plain) = piece.split_once('m').unwrap_or((piece, ""));
        kept.push('\u{1b}');
        kept.push_str(&attributes.replace(':', ";"));
        kept.push('m');
        kept.push_str(plain);
    }
    kept
}

/// Keeps only what takes room on a line.
fn only_text(line: &str) -> String {
    let expanded = line.replace('\t', "    ");
    expanded.chars().filter(|c| !text::is_unsafe(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_stay_and_everything_else_goes() {
        let raw = b"\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b]52;c;aGk=\x1b\\y\x1b[2J\x1b[5;5Hz\x1b(B\x0f\r\nnext\x08\n\n";
        let pane = PaneText::from_capture(raw);
        assert_eq!(pane.len(), 2);
        assert_eq!(pane.plain(0), "red xyz");
        assert_eq!(pane.plain(1), "next");
        let styles: Vec<Style> = pane.lines[0].spans.iter().map(|span| span.style).collect();
        assert_eq!(styles[0].fg, Some(Color::Red));
        let plain = styles[1..].iter().all(|style| *style == Style::new());
        assert!(plain, "what follows looks like its surroundings: {styles:?}");
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        let pane = PaneText::from_capture(b"a\xff\xfeb\x1b[");
        assert_eq!(pane.plain(0), "a\u{fffd}\u{fffd}b");
        assert_eq!(PaneText::from_plain(["a\u{1b}[31m\tb"]).plain(0), "a[31m    b");
    }

    fn numbered(range: std::ops::Range<u32>) -> PaneText {
        let lines: Vec<String> = range.map(|n| format!("line {n}")).collect();
        PaneText::from_plain(lines.iter().map(String::as_str))
    }

    #[test]
    fn old_lines_are_found_again() {
        assert_eq!(numbered(0..60).shift_from(&numbered(0..50)), Some(0));
        assert_eq!(numbered(20..70).shift_from(&numbered(0..50)), Some(-20));
        assert_eq!(numbered(100..150).shift_from(&numbered(0..50)), None);
        let mut bar = numbered(0..50);
        bar.lines.push(Line::from("progress 10 %"));
        assert_eq!(numbered(0..60).shift_from(&bar), Some(0));
    }
}
