//! The bottom line: the keys that work here, or what is being typed.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use tui_input::Input;

use super::spans::{cut, outside, span};
use super::style;
use crate::monitor::filter::{self, Filter};
use crate::monitor::keys::{Command, Context};
use crate::monitor::model::{Model, Overlay};
use crate::monitor::theme::Role;
use crate::text;

/// Draws the bottom line.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    match &model.overlay {
        Some(Overlay::Filter(input, _)) => {
            let problem = Filter::parse(input.value()).problem().map(str::to_owned);
            let hint = problem.as_deref().unwrap_or(filter::HINT);
            prompt(frame, model, area, ("filter: ", input, hint));
        }
        Some(Overlay::Search(input)) => {
            prompt(frame, model, area, ("search: ", input, "capitals count if there are any"));
        }
        Some(Overlay::Tag(job, input)) => {
            let label = format!("tag of {}: ", job.window);
            prompt(frame, model, area, (&label, input, "empty takes it away"));
        }
        Some(Overlay::Confirm(_) | Overlay::Help(_)) | None => keys(frame, model, area),
    }
}

/// The keys with a word each. `help` and `quit` or `back` keep their place at the end; what does not fit
/// before them is left to the help.
fn keys(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let context = model.context();
    let entry = |keys: &[crate::monitor::keys::Key], word: &str| {
        let key = keys.first().map(|key| key.label(model.look.ascii)).unwrap_or_default();
        [span(format!(" {key}"), style(model, Role::Key)), Span::raw(format!(" {word} "))]
    };
    let (mut first, mut last): (Vec<[Span<'static>; 2]>, Vec<_>) = (Vec::new(), Vec::new());
    for (binding, keys) in model.look.keys.lines(context) {
        if binding.bar.is_empty() || !model.meets(binding.needs) {
            continue;
        }
        let ending = matches!(binding.command, Command::Help | Command::Quit)
            || (binding.command == Command::Back && context != Context::Detail);
        let part = if ending { &mut last } else { &mut first };
        part.push(entry(keys, binding.bar));
    }
    let width = |spans: &[Span<'_>; 2]| spans.iter().map(Span::width).sum::<usize>();
    let mut room = usize::from(area.width).saturating_sub(last.iter().map(width).sum());
    first.retain(|spans| {
        let fits = width(spans) <= room;
        room = if fits { room - width(spans) } else { 0 };
        fits
    });
    let line: Line<'static> = first.into_iter().chain(last).flatten().collect();
    frame.render_widget(cut(line, usize::from(area.width)), area);
}

/// A label, the text with the cursor in it, and a hint where there is room.
fn prompt(
    frame: &mut Frame<'_>,
    model: &Model,
    area: Rect,
    (label, input, hint): (&str, &Input, &str),
) {
    let label = format!(" {label}");
    let start = text::width(&label);
    let room = usize::from(area.width).saturating_sub(start + 1);
    let scroll = input.visual_scroll(room);
    let typed = super::spans::skip(&Line::from(outside(input.value())), scroll);
    let cursor = start + input.visual_cursor().max(scroll) - scroll;
    let mut line = Line::from(span(label, style(model, Role::Key)));
    let used = start + typed.width();
    line.spans.extend(typed.spans);
    let accept = model.look.keys.lines(model.context()).find(|(b, _)| b.command == Command::Accept);
    let key = accept.and_then(|(_, keys)| keys.first()).map(|key| key.label(model.look.ascii));
    let hint = format!("   {} take it  Esc leave it   {hint}", key.unwrap_or_default());
    if used + 6 < usize::from(area.width) {
        line.push_span(span(hint, style(model, Role::Dim)));
    }
    frame.render_widget(cut(line, usize::from(area.width)), area);
    let x = area
        .x
        .saturating_add(u16::try_from(cursor).unwrap_or(0))
        .min(area.right().saturating_sub(1));
    frame.set_cursor_position(Position { x, y: area.y });
}
