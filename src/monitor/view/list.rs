//! The list of jobs.
//!
//! ```text
//! ┌ Jobs 3 of 12 · /status:error · 1 error hidden ────┐
//! │  w   dir        tpu        status      progress   │
//! │▸ 7+2 imagenet   v2-32-p2   ● running   ███░  31 % │
//! └──────────────────────────────────────── 1–3 of 9 ─┘
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::columns::{self, Cell, Column};
use super::spans::{cut, span};
use super::{panel, spans, style};
use crate::monitor::model::Model;
use crate::monitor::rows::Row;
use crate::monitor::theme::Role;
use crate::text;

/// Draws the list into its area.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let inner = panel(frame, model, area, title(model));
    let height = usize::from(inner.height.saturating_sub(1));
    let columns = columns::fit(model, usize::from(inner.width).saturating_sub(2));
    let [head, body] = ratatui::layout::Layout::vertical([
        ratatui::layout::Constraint::Length(1),
        ratatui::layout::Constraint::Fill(1),
    ])
    .areas(inner);
    frame.render_widget(heads(model, &columns), head);
    if model.list.rows.is_empty() {
        let text =
            format!("No job matches '{}'. Esc takes the filter away.", model.list.filter.text());
        let lines = spans::wrap(&text, usize::from(body.width.saturating_sub(4)));
        for (y, line) in (body.y..body.bottom()).skip(1).zip(lines) {
            frame.render_widget(Line::raw(format!("  {line}")), Rect { y, height: 1, ..body });
        }
        return;
    }
    let shown = model.list.rows.iter().enumerate().skip(model.list.top).take(height);
    let selected = model.selected_row();
    for (y, (at, row)) in (body.y..body.bottom()).zip(shown) {
        let Some(job) = model.jobs().get(row.job) else { continue };
        let line_area = Rect { y, height: 1, ..body };
        let is_selected = selected == Some(at);
        let mut line = lead(model, row, is_selected);
        let own_tags = columns.iter().any(|(column, _)| column.id == "tags");
        for (column, width) in &columns {
            let cell = (column.cell)(&Cell { model, row, job, width: *width, own_tags });
            push_cell(&mut line, cell, *width);
        }
        if is_selected {
            // One style for the whole row: coloured words might vanish on the coloured bar.
            let style = style(model, Role::Selected);
            line.spans.iter_mut().for_each(|span| span.style = style);
            frame.buffer_mut().set_style(line_area, style);
        }
        frame.render_widget(line, line_area);
    }
    let total = model.list.rows.len();
    if total > height && area.height > 0 {
        let first = model.list.top + 1;
        let last = (model.list.top + height).min(total);
        let text = format!(" {first}–{last} of {total} ");
        let width = u16::try_from(text::width(&text)).unwrap_or(0);
        let x = area.right().saturating_sub(width + 2);
        let at = Rect { x, y: area.bottom() - 1, width, height: 1 };
        frame.render_widget(Line::from(span(text, style(model, Role::Dim))), at);
    }
}

/// What the list is of, and what a filter hides.
fn title(model: &Model) -> Line<'static> {
    let title = style(model, Role::Title);
    let leaves = model.jobs().iter().filter(|job| job.leaf).count();
    let mut line = Line::from(span(" Jobs ", title));
    if !model.list.marked.is_empty() {
        let marked = format!("· {} marked ", model.list.marked.len());
        line.push_span(span(marked, style(model, Role::Marked)));
    }
    let filter = &model.list.filter;
    if filter.is_empty() {
        return line;
    }
    let shown = model.list.rows.len();
    let hidden = model.jobs().iter().filter(|job| job.leaf && job.failure().is_some());
    let hidden = hidden.filter(|job| !filter.matches(job)).count();
    line.push_span(span(format!("{shown} of {leaves} · /{} ", filter.text()), title));
    if hidden > 0 {
        let errors = if hidden == 1 { "error" } else { "errors" };
        line.push_span(span(format!("· ▲ {hidden} {errors} hidden "), style(model, Role::Error)));
    }
    line
}

fn heads(model: &Model, columns: &[(&'static Column, usize)]) -> Line<'static> {
    let mut line = Line::raw("  ");
    for (column, width) in columns {
        push_cell(&mut line, Line::from(span(column.head, style(model, Role::Dim))), *width);
    }
    line
}

/// Selection and mark.
fn lead(model: &Model, row: &Row, selected: bool) -> Line<'static> {
    let mark = if model.list.marked.contains(&row.id) { "✚" } else { " " };
    let point = if selected { "▸" } else { " " };
    Line::from(vec![Span::raw(point), span(mark, style(model, Role::Marked))])
}

/// Appends a cell, cut or filled to its width, and the blank behind it.
fn push_cell(line: &mut Line<'static>, cell: Line<'static>, width: usize) {
    let cell = cut(cell, width);
    let missing = width.saturating_sub(cell.width()) + 1;
    line.spans.extend(cell.spans);
    line.spans.push(Span::raw(" ".repeat(missing)));
}
