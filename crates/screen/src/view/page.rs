//! Something to read over everything else: what a command said, or two runs beside each other.

use ratatui::Frame;
use ratatui::text::Line;

use super::spans::{outside, span, wrap};
use super::{diff, scrolled, style};
use crate::model::{Body, Model, Page};
use crate::theme::Role;

/// Widest text that is comfortable to read.
const WIDEST: u16 = 110;

/// The box of a page and the columns inside.
fn size(model: &Model, page: &Page) -> (u16, u16) {
    let (columns, rows) = model.size;
    let widest = match &page.body {
        Body::Diff(_) => columns,
        Body::Awaited(_) | Body::Text(_) => columns.saturating_sub(4).min(WIDEST),
    };
    (widest, rows.saturating_sub(2))
}

/// The lines of a page.
fn lines(model: &Model, page: &Page) -> Vec<Line<'static>> {
    let (columns, rows) = size(model, page);
    let width = usize::from(columns.saturating_sub(4));
    match &page.body {
        Body::Awaited(_) => vec![Line::from(span("Reading …", style(model, Role::Dim)))],
        Body::Text(text) => {
            text.lines().flat_map(|line| folded(line, width)).map(Line::from).collect()
        }
        Body::Diff(pair) => {
            diff::lines(model, (&pair.0, &pair.1), (width, usize::from(rows.saturating_sub(2))))
        }
    }
}

/// A line of text in rows; what stood in columns goes on below its own column.
pub(super) fn folded(line: &str, width: usize) -> Vec<String> {
    let line = outside(line);
    if tpu_core::text::width(&line) <= width {
        return vec![line];
    }
    let (head, rest) =
        line.split_at(second_column(&line).filter(|at| *at <= width / 2).unwrap_or(0));
    let lead = rest.len() - rest.trim_start().len();
    let indent = tpu_core::text::width(head) + lead.min(width / 2);
    let rows = wrap(rest.trim_start(), width.saturating_sub(indent).max(1));
    let row = |(n, row): (usize, String)| match n {
        0 => format!("{head}{}{row}", " ".repeat(indent - tpu_core::text::width(head))),
        _ => format!("{}{row}", " ".repeat(indent)),
    };
    rows.into_iter().enumerate().map(row).collect()
}

/// Where the second column of `name       value` begins: behind the first gap.
fn second_column(line: &str) -> Option<usize> {
    let name = line.find("  ").filter(|at| *at > 0)?;
    let gap = line.get(name..)?;
    Some(name + gap.len() - gap.trim_start().len())
}

/// A page as text: what was said as it was said, anything else as it is drawn. `None` while it is awaited.
pub(crate) fn as_text(model: &Model, page: &Page) -> Option<String> {
    match &page.body {
        Body::Awaited(_) => None,
        Body::Text(text) => Some(text.lines().map(outside).collect::<Vec<_>>().join("\n")),
        Body::Diff(_) => {
            let lines: Vec<String> = lines(model, page).iter().map(Line::to_string).collect();
            Some(lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n"))
        }
    }
}

/// The last line that may stand at the top, and the lines that are seen at once.
pub(crate) fn extent(model: &Model, page: &Page) -> (usize, usize) {
    let rows = usize::from(size(model, page).1.saturating_sub(2)).max(1);
    (lines(model, page).len().saturating_sub(rows), rows.saturating_sub(1).max(1))
}

/// Draws the page over everything else.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, page: &Page) {
    let lines = lines(model, page);
    scrolled(frame, model, size(model, page), lines, page.top, &outside(&page.title));
}
