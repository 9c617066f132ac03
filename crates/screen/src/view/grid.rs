//! A table of rows with columns that give way when room is short: what the tabs beside the jobs are made of.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{outside, push_cell, span, wrap};
use super::{list, lower_border, panel, select, style, tabs};
use crate::model::{BoardRow, Model};
use crate::tabs::Tab;
use crate::theme::Role;
use tpu_core::model::time;

/// Blanks between two columns.
const GAP: usize = 2;
/// A column that may be so wide holds sentences.
const SENTENCE: usize = 60;
/// One that is kept so little gives way before anything else is cut.
const LESSER: u8 = 100;

/// One column.
pub(super) struct GridColumn<T> {
    /// Its head.
    pub(super) head: &'static str,
    /// Fewer columns of the terminal than this make it useless.
    pub(super) least: usize,
    /// More than this is wasted on it.
    pub(super) most: usize,
    /// The smaller, the sooner it gives way when room is short.
    pub(super) keep: u8,
    /// Its content for one row.
    pub(super) cell: fn(&Model, &T) -> Line<'static>,
}

/// The rows of a table and what they are of.
pub(super) struct Grid<'a, T: 'static> {
    /// Columns from left to right.
    pub(super) columns: &'static [GridColumn<T>],
    /// All rows that the filter lets through.
    pub(super) rows: &'a [BoardRow],
    /// The value of a row.
    pub(super) value: &'a dyn Fn(&BoardRow) -> Option<&'a T>,
    /// What to say when there are no rows.
    pub(super) nothing: String,
    /// How many rows there would be without the filter.
    pub(super) total: usize,
    /// Whether the tabs stand in its upper border.
    pub(super) titled: bool,
    /// What its rows are about, where that can be chosen: at the beginning of the lower border.
    pub(super) subject: Line<'static>,
    /// Bars behind the first column.
    pub(super) bars: Option<Bars<'a, T>>,
}

impl<'a, T> Grid<'a, T> {
    /// A table without bars and without a word about its rows, none of which a filter hides.
    pub(super) fn plain(
        columns: &'static [GridColumn<T>],
        rows: &'a [BoardRow],
        value: &'a dyn Fn(&BoardRow) -> Option<&'a T>,
    ) -> Self {
        Self {
            columns,
            rows,
            value,
            nothing: String::new(),
            total: rows.len(),
            titled: false,
            subject: Line::default(),
            bars: None,
        }
    }
}

/// Bars, one for each row, as long as the other columns leave room for.
pub(super) struct Bars<'a, T> {
    /// The head of the first column, where rows do not always stand for the same.
    pub(super) of: &'static str,
    /// The head of the bars.
    pub(super) head: &'static str,
    /// The bar of a row in so many cells; empty for a row that has none.
    pub(super) bar: &'a dyn Fn(&T, usize) -> Line<'static>,
}

/// Fewer cells are no bar.
const LEAST_BAR: usize = 8;
/// More cells say no more.
const LONGEST_BAR: usize = 60;

/// Draws the table with its frame.
pub(super) fn render<T>(frame: &mut Frame<'_>, model: &Model, area: Rect, grid: &Grid<'_, T>) {
    let title = if grid.titled { tabs::title(model) } else { Line::default() };
    let inner = panel(frame, model, area, title);
    foot(frame, model, area, grid);
    let body = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
    let choosing = model.boards.choosing(model.tab);
    let height = usize::from(body.height);
    let shown: Vec<&BoardRow> = grid.rows.iter().skip(choosing.top).take(height).collect();
    if shown.is_empty() {
        let lines = wrap(&grid.nothing, usize::from(body.width.saturating_sub(4)));
        for (y, line) in (body.y..body.bottom()).skip(1).zip(lines) {
            let at = Rect { x: body.x + 2, y, width: body.width.saturating_sub(2), height: 1 };
            frame.render_widget(Line::raw(line), at);
        }
        return;
    }
    let cells: Vec<Vec<Line<'static>>> = shown
        .iter()
        .map(|row| match (grid.value)(row) {
            Some(value) => grid.columns.iter().map(|column| (column.cell)(model, value)).collect(),
            None => Vec::new(),
        })
        .collect();
    let room = usize::from(inner.width).saturating_sub(2);
    let bar = grid.bars.as_ref().map_or(0, |_| LEAST_BAR + GAP);
    let widths = fit(grid.columns, &cells, room.saturating_sub(bar));
    let taken: usize = widths.iter().flatten().map(|width| width + GAP).sum();
    let bar_cells = room.saturating_sub(taken).min(LONGEST_BAR);
    let mut heads = Line::raw("  ");
    for (at, (column, width)) in grid.columns.iter().zip(&widths).enumerate() {
        let bars = grid.bars.as_ref().filter(|_| at == 0);
        if let Some(width) = width {
            let head = bars.map_or(column.head, |bars| bars.of);
            push_cell(&mut heads, Line::from(span(head, style(model, Role::Dim))), (*width, GAP));
        }
        if let Some(bars) = bars {
            push_cell(
                &mut heads,
                Line::from(span(bars.head, style(model, Role::Dim))),
                (bar_cells, GAP),
            );
        }
    }
    frame.render_widget(heads, Rect { height: 1, ..inner });
    for ((y, row), cells) in (body.y..body.bottom()).zip(&shown).zip(cells) {
        let is_selected = choosing.selected.as_ref() == Some(&row.key);
        let mut line = Line::raw(if is_selected { "▸ " } else { "  " });
        for (at, (cell, width)) in cells.into_iter().zip(&widths).enumerate() {
            if let Some(width) = width {
                push_cell(&mut line, cell, (*width, GAP));
            }
            if let Some(bars) = grid.bars.as_ref().filter(|_| at == 0) {
                let value = (grid.value)(row);
                let bar = value.map(|value| (bars.bar)(value, bar_cells)).unwrap_or_default();
                push_cell(&mut line, bar, (bar_cells, GAP));
            }
        }
        let at = Rect { y, height: 1, ..body };
        if is_selected {
            select(frame, model, &mut line, at);
        }
        frame.render_widget(line, at);
    }
    list::position(frame, model, area, (choosing.top, height, grid.rows.len()));
}

/// The width of each column; `None` for one that gave way. What the rows on the screen can use goes first to the columns
/// that are kept longest, to those that hold sentences last.
fn fit<T>(
    columns: &[GridColumn<T>],
    cells: &[Vec<Line<'static>>],
    room: usize,
) -> Vec<Option<usize>> {
    let natural: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let widest =
                cells.iter().filter_map(|row| row.get(at)).map(Line::width).max().unwrap_or(0);
            widest.max(column.head.len()).clamp(column.least, column.most)
        })
        .collect();
    let empty =
        |at: usize| cells.iter().all(|row| row.get(at).is_none_or(|cell| cell.width() == 0));
    let mut widths: Vec<Option<usize>> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| (!empty(at) || column.keep == u8::MAX).then_some(column.least))
        .collect();
    let used =
        |widths: &[Option<usize>]| widths.iter().flatten().map(|width| width + 2).sum::<usize>();
    // What those lack that are kept longer, of a sentence no more than what is easily read.
    let lacks = |widths: &[Option<usize>]| -> usize {
        let each = columns.iter().zip(widths).zip(&natural);
        let kept = each.filter(|((column, _), _)| column.keep > LESSER);
        kept.filter_map(|((_, width), natural)| Some((*natural).min(SENTENCE) - (*width)?)).sum()
    };
    while widths.iter().flatten().count() > 1 {
        let there = columns
            .iter()
            .enumerate()
            .filter(|(at, _)| widths.get(*at).is_some_and(Option::is_some));
        let Some((weakest, column)) = there.min_by_key(|(_, column)| column.keep) else { break };
        let lacks = if column.keep <= LESSER { lacks(&widths) } else { 0 };
        if used(&widths) + lacks <= room + 2 {
            break;
        }
        if let Some(width) = widths.get_mut(weakest) {
            *width = None;
        }
    }
    let mut left = (room + 2).saturating_sub(used(&widths));
    // Names and numbers first, those first that are kept longest; then sentences, and at last what gives way to them.
    let mut shares: Vec<_> = widths.iter_mut().zip(natural).zip(columns).collect();
    shares.sort_by_key(|(_, column)| {
        (column.keep <= LESSER, column.most >= SENTENCE, Reverse(column.keep))
    });
    for ((width, natural), _) in shares {
        if let Some(width) = width {
            let more = natural.saturating_sub(*width).min(left);
            *width += more;
            left -= more;
        }
    }
    widths
}

/// After so many seconds somebody who waits is told for how long already.
const LONG_S: u64 = 3;

/// What to say when there is no row: that it is being read, that it cannot be, that a filter hides all, or
/// that there is nothing.
pub(super) fn nothing(model: &Model, otherwise: &str) -> String {
    let (age, problem) = model.boards.state(model.tab, model.now);
    let filter = &model.boards.choosing(model.tab).filter;
    match (age, problem) {
        (None, Some(problem)) => {
            let hint = problem.hint.as_ref().map(|hint| format!(" → {}", outside(hint)));
            format!("▲ {}{}", outside(&problem.message), hint.unwrap_or_default())
        }
        (None, None) => match model.boards.waiting_s(model.tab, model.now) {
            Some(waiting) if waiting >= LONG_S => format!("Reading … for {}", time::age(waiting)),
            _ => "Reading …".to_owned(),
        },
        _ if !filter.is_empty() => {
            format!("Nothing matches '{}'. Esc takes the filter away.", outside(filter))
        }
        _ => otherwise.to_owned(),
    }
}

/// What the filter hides and how old this is, in the lower border.
fn foot<T>(frame: &mut Frame<'_>, model: &Model, area: Rect, grid: &Grid<'_, T>) {
    let mut line = grid.subject.clone();
    let filter = &model.boards.choosing(model.tab).filter;
    if !filter.is_empty() {
        let text = format!(" {} of {} · /{} ", grid.rows.len(), grid.total, outside(filter));
        line.push_span(span(text, style(model, Role::Title)));
    }
    let (age, problem) = model.boards.state(model.tab, model.now);
    let late = model.setup.refresh_s.saturating_mul(2).max(20) + 2;
    if let Some(problem) = problem {
        let text = format!(" ▲ {} ", outside(&problem.message));
        line.push_span(span(text, style(model, Role::Error)));
    }
    if let Some((zones, why)) = model.boards.silent().filter(|_| model.tab == Tab::Targets) {
        let text = format!(" ▲ {}: {} ", outside(&zones), outside(why));
        line.push_span(span(text, style(model, Role::Error)));
    }
    if let Some(age) = age.filter(|age| *age > late || problem.is_some()) {
        let text = format!(" as of {} ago ", time::age(age));
        line.push_span(span(text, style(model, Role::Warning)));
    }
    lower_border(frame, area, line);
}
