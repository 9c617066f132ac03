//! The caption: one line above the bottom line, said by whoever has opened the screen.
//!
//! It comes in several lengths. The longest that fits is drawn, so that a narrow screen shows fewer words and not half of
//! them.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{cut, outside, span};
use super::style;
use crate::model::Model;
use crate::theme::Role;
use tpu_core::text;

/// Draws the caption.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    if area.height == 0 {
        return;
    }
    let room = usize::from(area.width.saturating_sub(2));
    let fits = model.caption.iter().find(|line| text::width(&outside(line)) <= room);
    let Some(line) = fits.or(model.caption.last()) else { return };
    let line = Line::from(span(format!(" {}", outside(line)), style(model, Role::Title)));
    frame.render_widget(cut(line, usize::from(area.width)), area);
}
