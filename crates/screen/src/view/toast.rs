//! Results of actions, for a while, above the lines at the bottom.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Clear;

use super::spans::{outside, span, wrap};
use super::{narrowed, stack, style};
use crate::model::{Model, Tells, Toast};
use crate::theme::Role;
use tpu_core::text;

/// Draws the toasts at the lower right of `body`, the newest lowest.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, body: Rect) {
    let mut bottom = body.bottom();
    for toast in model.toasts.iter().rev() {
        let lines = lines(toast, usize::from(body.width.saturating_sub(8)).min(70));
        let widest = lines.iter().map(|line| text::width(line)).max().unwrap_or(0);
        let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(body.width);
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        if bottom < body.y + height {
            break;
        }
        bottom -= height;
        let area = Rect { x: body.right() - width, y: bottom, width, height };
        let role = match toast.tells {
            Tells::Failure => Role::ToastBad,
            Tells::Result | Tells::Note => Role::ToastGood,
        };
        let role = style(model, Role::Base).patch(style(model, role));
        frame.render_widget(Clear, area);
        frame.buffer_mut().set_style(area, role);
        let block = ratatui::widgets::Block::bordered().border_style(role);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        let lines = lines.into_iter().map(|line| Line::from(span(line, role)));
        stack(frame, narrowed(inner), lines);
    }
}

fn lines(toast: &Toast, width: usize) -> Vec<String> {
    let glyph = match toast.tells {
        Tells::Failure => "▲",
        Tells::Result => "✓",
        Tells::Note => "·",
    };
    let mut lines = wrap(&format!("{glyph} {}", outside(&toast.text)), width);
    if let Some(hint) = &toast.hint {
        lines.extend(wrap(&format!("→ {}", outside(hint)), width));
    }
    lines
}
