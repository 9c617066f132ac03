//! The help: exactly the keys that work where it was opened, from the same table as everything else.

use ratatui::Frame;
use ratatui::text::Line;

use super::spans::span;
use super::{needs, scrolled, style};
use crate::plan::filter;
use crate::screen::keys::{Context, Key};
use crate::screen::model::Model;
use crate::screen::theme::Role;
use crate::text;

/// The lines of the help.
pub fn lines(model: &Model) -> Vec<Line<'static>> {
    let key_style = style(model, Role::Key);
    let mut lines = Vec::new();
    let context = model.context_below();
    let label = |keys: &[Key]| {
        keys.iter().map(|key| key.label(model.setup.ascii)).collect::<Vec<_>>().join(" ")
    };
    let entries: Vec<_> = model
        .setup
        .keys
        .lines(context)
        .filter(|(binding, _)| needs::are_met(model, binding.needs))
        .map(|(binding, keys)| (label(keys), binding.help))
        .collect();
    let width = entries.iter().map(|(keys, _)| text::width(keys)).max().unwrap_or(0);
    for (keys, help) in entries {
        let gap = " ".repeat(width.saturating_sub(text::width(&keys)) + 2);
        lines.push(Line::from(vec![
            span(keys, key_style),
            span(gap, style(model, Role::Base)),
            span(help, style(model, Role::Base)),
        ]));
    }
    if matches!(context, Context::List | Context::Detail | Context::Targets) {
        lines.push(Line::default());
        lines.push(Line::from(span("A filter is made of", style(model, Role::Title))));
        lines.push(Line::from(filter::HINT));
    }
    if matches!(context, Context::List | Context::Detail) {
        lines.push(Line::default());
        lines.push(Line::from(span("The mouse", style(model, Role::Title))));
        lines.push(Line::from(
            "click a job, again to open it; click heads, tabs, keys; drag the border",
        ));
    }
    lines
}

/// Lines that are seen at once.
pub fn rows(model: &Model) -> usize {
    // Its own frame, and a line above and below.
    usize::from(model.size.1.saturating_sub(4))
}

/// Draws the help over everything else, from line `top` on.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, top: usize) {
    let lines = lines(model);
    let screen = frame.area();
    let widest = lines.iter().map(Line::width).max().unwrap_or(0);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(screen.width);
    let size = (width, screen.height.saturating_sub(2));
    let title = format!("Keys {}", context_title(model.context_below()));
    scrolled(frame, model, size, (lines, top), &title);
}

fn context_title(context: Context) -> &'static str {
    match context {
        Context::Detail => "in the detail",
        Context::Log => "in the log",
        Context::Targets => "in the targets",
        Context::Queue => "in the queue",
        Context::Events => "in the events",
        Context::Plan => "in the plan",
        Context::Usage => "in the usage",
        _ => "in the list",
    }
}
