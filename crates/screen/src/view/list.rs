//! The list of jobs.
//!
//! ```text
//! ┌[1 Jobs] 2 Targets  3 Queue  4 Events  5 Plan ─────┐
//! │  w   dir        tpu        status      progress   │
//! │▸ 7+2 imagenet   v2-32-p2   ● running   ███░  31 % │
//! └ 3 of 12 · /status:error · 1 error hidden ─ 1–3 of 9 ─┘
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::columns::{self, Cell, Column};
use super::spans::{cut, outside, push_cell, span};
use super::{lower_border, panel, select, spans, status, style, tabs};
use crate::model::Model;
use crate::rows::{Group, Row};
use crate::theme::Role;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// Draws the list into its area.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let inner = panel(frame, model, area, tabs::title(model));
    lower_border(frame, area, foot(model));
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
        if let Some(name) = &row.head {
            let mut line = group_head(model, (at, name), usize::from(body.width));
            if is_selected {
                select(frame, model, &mut line, line_area);
            }
            frame.render_widget(line, line_area);
            continue;
        }
        let mut line = lead(model, row, is_selected);
        let own_tags = columns.iter().any(|(column, _)| column.id == "tags");
        for (column, width) in &columns {
            let cell = (column.cell)(&Cell { model, row, job, width: *width, own_tags });
            push_cell(&mut line, cell, (*width, 1));
        }
        if is_selected {
            select(frame, model, &mut line, line_area);
        }
        frame.render_widget(line, line_area);
    }
    position(frame, model, area, (model.list.top, height, model.list.rows.len()));
}

/// Cells of the bar of states at the head of a group.
const STATES: usize = 12;

/// Names of groups are as wide as this together, where there is room.
const NAMES: usize = 24;

/// The head of the rows of a group: its name, and how its jobs are.
fn group_head(model: &Model, (at, name): (usize, &str), width: usize) -> Line<'static> {
    let rows = model.list.rows.get(at..).unwrap_or_default();
    let (head, below) = rows.split_at(rows.len().min(1));
    let own = head.iter().chain(below.iter().take_while(|row| !row.is_head()));
    let tally = status::tally(own.flat_map(|row| jobs_of(model, row)));
    let group = if name.is_empty() { "(none)".to_owned() } else { outside(name) };
    let words = status::in_words(&tally);
    // Where there is room, bars stand below one another.
    let called = text::width(&group);
    let room = width.saturating_sub(text::width(&words) + STATES + 8).max(called.min(NAMES));
    let name = text::fit(&group, called.max(NAMES).min(room));
    let is_folded = head.iter().any(Row::is_group);
    let point = if model.selected_row() == Some(at) { "▸" } else { " " };
    let sign = if is_folded { "+" } else { "-" };
    let mut line = Line::from(span(format!("{point}{sign} {name}  "), style(model, Role::Title)));
    line.extend(status::bar(model, &tally, STATES));
    line.push_span(span(format!("  {words}"), style(model, Role::Dim)));
    cut(line, width)
}

/// The jobs that a row stands for; none where another row does.
fn jobs_of<'a>(model: &'a Model, row: &'a Row) -> impl Iterator<Item = &'a JobView> {
    let is_open = row.is_group() && !row.is_head() && model.list.unfolded.contains(&row.id);
    let alone = (row.can_be_chosen() && !row.is_group() && !row.attempt).then_some(&row.job);
    // Of those that wait an open group has no rows.
    let is_counted = move |job: &&JobView| !is_open || job.is_queued();
    let members = row.members.iter().filter_map(|at| model.jobs().get(*at)).filter(is_counted);
    members.chain(alone.and_then(|at| model.jobs().get(*at)))
}

/// Which rows of how many, in the lower border.
pub(super) fn position(
    frame: &mut Frame<'_>,
    model: &Model,
    area: Rect,
    (top, height, total): (usize, usize, usize),
) {
    if total <= height || area.height == 0 {
        return;
    }
    let text = format!(" {}–{} of {total} ", top + 1, (top + height).min(total));
    let width = u16::try_from(text::width(&text)).unwrap_or(0);
    let x = area.right().saturating_sub(width + 2);
    let at = Rect { x, y: area.bottom() - 1, width, height: 1 };
    frame.render_widget(Line::from(span(text, style(model, Role::Dim))), at);
}

/// Marks, filter, order and groups, for the lower border.
fn foot(model: &Model) -> Line<'static> {
    let title = style(model, Role::Title);
    let mut line = Line::default();
    if !model.list.marked.is_empty() {
        let marked = format!(" {} marked ", model.list.marked.len());
        line.push_span(span(marked, style(model, Role::Marked)));
    }
    let arrangement = &model.list.arrangement;
    if let Some((sort, reverse)) = &arrangement.sort {
        let head = columns::TABLE.iter().find(|column| column.id == sort.id);
        let head = head.map_or(sort.id, |column| column.head);
        let way = if *reverse { "↓" } else { "↑" };
        line.push_span(span(format!(" by {head} {way} "), style(model, Role::Dim)));
    }
    if arrangement.group != Group::None {
        let group = format!(" grouped by {} ", arrangement.group.as_str());
        line.push_span(span(group, style(model, Role::Dim)));
    }
    let filter = &model.list.filter;
    if filter.is_empty() {
        return line;
    }
    let leaves = model.jobs().iter().filter(|job| job.leaf).count();
    let is_open =
        |row: &Row| row.is_group() && !row.is_head() && model.list.unfolded.contains(&row.id);
    let rows = model.list.rows.iter().filter(|row| row.can_be_chosen() && !is_open(row));
    let shown: usize = rows.map(|row| row.members.len().max(1)).sum();
    let hidden = model.jobs().iter().filter(|job| job.leaf && job.failure().is_some());
    let hidden = hidden.filter(|job| !filter.matches(job)).count();
    line.push_span(span(format!(" {shown} of {leaves} · /{} ", outside(filter.text())), title));
    if hidden > 0 {
        let errors = text::counted(hidden, "error");
        line.push_span(span(format!("· ▲ {errors} hidden "), style(model, Role::Error)));
    }
    line
}

fn heads(model: &Model, columns: &[(&'static Column, usize)]) -> Line<'static> {
    let mut line = Line::raw("  ");
    let sort = model.list.arrangement.sort;
    for (column, width) in columns {
        let (head, role) = match sort.filter(|(sort, _)| sort.id == column.id) {
            // The mark stays when the head is cut.
            Some((_, reverse)) => {
                let way = if reverse { "↓" } else { "↑" };
                let room = width.saturating_sub(1);
                (format!("{}{way}", text::cut(column.head, room)), Role::Title)
            }
            None => (column.head.to_owned(), Role::Dim),
        };
        push_cell(&mut line, Line::from(span(head, style(model, role))), (*width, 1));
    }
    line
}

/// Selection and mark.
fn lead(model: &Model, row: &Row, selected: bool) -> Line<'static> {
    let is_marked =
        |at: &usize| model.jobs().get(*at).is_some_and(|job| model.list.marked.contains(&job.id));
    let all = row.is_group() && row.members.iter().all(is_marked);
    let mark = if all || model.list.marked.contains(&row.id) { "✚" } else { " " };
    let point = if selected { "▸" } else { " " };
    Line::from(vec![Span::raw(point), span(mark, style(model, Role::Marked))])
}
