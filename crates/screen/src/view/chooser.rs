//! The choice of columns: all of them, those that are shown marked.

use std::collections::BTreeSet;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::columns::{self, TABLE};
use super::layout::Layout;
use super::spans::{cut, span};
use super::{dialog, one_background, select, style};
use crate::model::{ColumnChoice, Model};
use crate::theme::Role;
use tpu_core::text;

/// The names of the columns that are on the screen, or would be if the list were.
pub fn on_screen(model: &Model) -> BTreeSet<&'static str> {
    let area = Layout::of(model).list;
    let width = area.map_or(usize::from(model.size.0), |area| usize::from(area.width));
    columns::fit(model, width.saturating_sub(4)).into_iter().map(|(column, _)| column.id).collect()
}

/// The names of those that somebody has chosen, also where there is no room for them; else of those on the screen.
pub fn marked(model: &Model) -> BTreeSet<&'static str> {
    model.setup.columns.chosen.clone().unwrap_or_else(|| on_screen(model))
}

/// Draws the choice over everything else.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, choice: &ColumnChoice) {
    let heads = TABLE.iter().map(|column| text::width(column.head)).max().unwrap_or(0);
    let widest = TABLE.iter().map(|column| heads + text::width(column.what)).max().unwrap_or(0);
    let width = u16::try_from(widest + 22).unwrap_or(u16::MAX);
    let width = width.min(frame.area().width.saturating_sub(4));
    let height = u16::try_from(TABLE.len() + 2).unwrap_or(u16::MAX);
    let title = match model.setup.columns.chosen {
        Some(_) => " Columns of the list ",
        None => " Columns of the list, by its width ",
    };
    let inner = dialog(frame, model, (width, height), Line::from(title));
    let (marked, shown) = (marked(model), on_screen(model));
    let rows = usize::from(inner.height).max(1);
    let top = (choice.at + 1).saturating_sub(rows);
    for (y, (at, column)) in (inner.y..inner.bottom()).zip(TABLE.iter().enumerate().skip(top)) {
        let is_here = at == choice.at;
        let point = if is_here { "▸" } else { " " };
        let mark = if marked.contains(column.id) { "[x]" } else { "[ ]" };
        let has_no_room = marked.contains(column.id) && !shown.contains(column.id);
        let note = if has_no_room { " · no room" } else { "" };
        let head = text::fit(column.head, heads);
        let mut line = Line::from(vec![
            span(format!(" {point} {mark} {head}  "), style(model, Role::Key)),
            span(column.what.to_owned(), style(model, Role::Base)),
            span(note.to_owned(), style(model, Role::Warning)),
        ]);
        let area = Rect { y, height: 1, ..inner };
        if is_here {
            select(frame, model, &mut line, area);
        }
        frame.render_widget(cut(line, usize::from(inner.width)), area);
    }
    one_background(frame, model, inner);
}
