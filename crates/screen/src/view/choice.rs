//! One of several answers, each with what it means.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{cut, outside, span};
use super::{dialog, one_background, select, style};
use crate::model::{Choice, Model};
use crate::theme::Role;
use tpu_core::text;

/// Draws the question over everything else.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, choice: &Choice) {
    let names = choice.options.iter().map(|(name, _)| text::width(name)).max().unwrap_or(0);
    let widest =
        choice.options.iter().map(|(_, note)| names + text::width(note)).max().unwrap_or(0);
    let width = u16::try_from(widest.max(text::width(&choice.title)) + 9).unwrap_or(u16::MAX);
    let width = width.min(frame.area().width.saturating_sub(4));
    let height = u16::try_from(choice.options.len() + 2).unwrap_or(u16::MAX);
    let inner =
        dialog(frame, model, (width, height), Line::from(format!(" {} ", outside(&choice.title))));
    let rows = usize::from(inner.height).max(1);
    let top = (choice.at + 1).saturating_sub(rows);
    let options = choice.options.iter().enumerate().skip(top);
    for (y, (at, (name, note))) in (inner.y..inner.bottom()).zip(options) {
        let marked = at == choice.at;
        let point = if marked { "▸" } else { " " };
        let mut line = Line::from(vec![
            span(format!(" {point} {}  ", text::fit(name, names)), style(model, Role::Key)),
            span(outside(note), style(model, Role::Base)),
        ]);
        let area = Rect { y, height: 1, ..inner };
        if marked {
            select(frame, model, &mut line, area);
        }
        frame.render_widget(cut(line, usize::from(inner.width)), area);
    }
    one_background(frame, model, inner);
}
