//! The bottom line: the keys that work here, or what is being typed.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use tui_input::Input;

use super::spans::{cut, outside, span};
use super::{columns, offered, style};
use crate::keys::{Command, Context};
use crate::model::{CommandLine, Model, Overlay};
use crate::tabs::Tab;
use crate::theme::Role;
use crate::typed::{self, Names};
use tpu_core::plan::filter::{self, Filter};
use tpu_core::text;

/// Draws the bottom line.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    if let Some(help) = &model.help {
        if help.typing {
            let hint = "words that a line of the help holds";
            prompt(frame, model, area, "search: ", &help.search, hint);
        } else {
            frame.render_widget(keys(model, area).0, area);
        }
        return;
    }
    match &model.overlay {
        Some(Overlay::BoardFilter(input, _)) if model.tab != Tab::Targets => {
            prompt(
                frame,
                model,
                area,
                "filter: ",
                input,
                "text that a row holds; !text that it does not",
            );
        }
        Some(Overlay::Filter(input, _) | Overlay::BoardFilter(input, _)) => {
            let problem = Filter::parse(input.value()).problem().map(str::to_owned);
            let hint = problem.as_deref().unwrap_or(filter::HINT);
            prompt(frame, model, area, "filter: ", input, hint);
        }
        Some(Overlay::Search(input)) => {
            prompt(
                frame,
                model,
                area,
                "search: ",
                input,
                "a regular expression; capitals count if there are any",
            );
        }
        Some(Overlay::Tag(job, input)) => {
            let label = format!("tag of {}: ", job.window);
            prompt(frame, model, area, &label, input, "empty takes it away");
        }
        Some(Overlay::LogFilter(input)) => {
            prompt(
                frame,
                model,
                area,
                "only lines with: ",
                input,
                "a regular expression; ! before it: without",
            );
        }
        Some(Overlay::CommandLine(line)) => {
            let hint = about(model, line);
            prompt(frame, model, area, ":", &line.input, &hint);
        }
        Some(
            Overlay::Confirm(_)
            | Overlay::Page(_)
            | Overlay::Choice(_)
            | Overlay::Columns(_)
            | Overlay::Form(_),
        )
        | None => frame.render_widget(keys(model, area).0, area),
    }
}

/// What may come next in the command that is typed, else what it does.
fn about(model: &Model, line: &CommandLine) -> String {
    const MOST: usize = 12;
    let text = line.completing.as_ref().map_or(line.input.value(), |(base, _)| base);
    let known = &model.setup.commands.known;
    let names = Names { columns: columns::names(), ..Names::default() };
    let (before, found) = typed::complete(text, known, &names);
    if before.is_empty() && !found.is_empty() {
        return found.into_iter().take(MOST).collect::<Vec<_>>().join("  ");
    }
    let first = text.split_whitespace().next().unwrap_or_default();
    let own =
        typed::OWN.iter().find(|(name, _)| *name == first).map(|(_, about)| (*about).to_owned());
    let about = own
        .or_else(|| known.iter().find(|(name, _)| name == first).map(|(_, about)| about.clone()));
    about.unwrap_or_else(|| "Tab completes; help lists every command".to_owned())
}

/// The keys with a word each, and where each one ends. `help` and `quit` or `back` keep their place at the
/// end; what does not fit before them is left to the help.
fn keys(model: &Model, area: Rect) -> (Line<'static>, Vec<(usize, Command)>) {
    let context = model.context();
    let entry = |keys: &[crate::keys::Key], word: &str, command: Command| {
        let key = keys.first().map(|key| key.label(model.setup.ascii)).unwrap_or_default();
        let spans =
            [span(format!(" {key}"), style(model, Role::Key)), Span::raw(format!(" {word} "))];
        (spans, command)
    };
    let (mut first, mut last): (Vec<([Span<'static>; 2], Command)>, Vec<_>) =
        (Vec::new(), Vec::new());
    for (binding, keys) in model.setup.keys.lines(context) {
        if binding.bar.is_empty() || !offered::is_offered(model, binding.needs) {
            continue;
        }
        let ending = matches!(binding.command, Command::Help | Command::Quit)
            || (binding.command == Command::Back && context != Context::Detail);
        let part = if ending { &mut last } else { &mut first };
        part.push(entry(keys, binding.bar, binding.command));
    }
    let width = |spans: &[Span<'_>; 2]| spans.iter().map(Span::width).sum::<usize>();
    let mut room = usize::from(area.width).saturating_sub(last.iter().map(|(s, _)| width(s)).sum());
    first.retain(|(spans, _)| {
        let fits = width(spans) <= room;
        room = if fits { room - width(spans) } else { 0 };
        fits
    });
    let mut ends = Vec::new();
    let mut line = Line::default();
    for (spans, command) in first.into_iter().chain(last) {
        line.spans.extend(spans);
        ends.push((line.width(), command));
    }
    (cut(line, usize::from(area.width)), ends)
}

/// The key that stands at a column of the bottom line.
pub(super) fn key_at(model: &Model, area: Rect, x: u16) -> Option<Command> {
    if model.context() != model.context_below() {
        return None;
    }
    let column = usize::from(x.saturating_sub(area.x));
    keys(model, area).1.into_iter().find(|(end, _)| column < *end).map(|(_, command)| command)
}

/// A label, the text with the cursor in it, and a hint where there is room.
fn prompt(
    frame: &mut Frame<'_>,
    model: &Model,
    area: Rect,
    label: &str,
    input: &Input,
    hint: &str,
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
    let key = model.setup.key(model.context(), Command::Accept);
    let hint = format!("   {key} take it  Esc leave it   {hint}");
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
