//! `view`: the model, drawn. One file per panel; each is `render(frame, model, area)`.
//!
//! Pure: reads the model, writes the frame, remembers nothing. Where things stand is [`layout::Layout`];
//! a new column of the list is one entry in [`columns::TABLE`].

mod ascii;
mod banner;
mod bar;
mod board;
mod caption;
mod choice;
pub mod chooser;
pub mod columns;
mod confirm;
mod curve;
pub mod detail;
mod diff;
mod empty;
mod evidence;
mod form;
mod grid;
mod header;
pub mod help;
pub mod hit;
pub mod layout;
mod list;
mod log;
mod lost_colours;
mod machines;
mod members;
mod metrics;
mod needs;
pub mod offered;
pub(crate) mod page;
mod spans;
pub(super) mod status;
mod tabs;
mod timeline;
mod toast;
mod usage;
mod words;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Clear};

use super::model::{Model, Overlay};
use super::theme::Role;
use layout::Layout;
use tpu_core::text;

/// Below this nothing sensible fits; the screen says so instead.
const SMALLEST: (u16, u16) = (30, 6);

/// Draws the whole screen.
pub fn view(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    let base = model.setup.theme.style(Role::Base);
    frame.buffer_mut().set_style(area, base);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        frame.render_widget(Line::from("tpu: make this larger"), area);
    } else {
        // The frame knows best how large it is; a resize may still be on its way to the model.
        if (area.width, area.height) == model.size {
            panels(model, frame);
        } else {
            panels(&Model { size: (area.width, area.height), ..model.clone() }, frame);
        }
    }
    harmless(frame.buffer_mut());
    if model.setup.theme.is_monochrome() {
        lost_colours::drop(frame.buffer_mut());
    }
    if model.setup.ascii {
        ascii::replace(frame.buffer_mut());
    }
}

/// Whatever a panel has let through: nothing that a terminal would act on leaves the frame.
fn harmless(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        // Most cells hold one printable character of ASCII.
        let is_plain = matches!(cell.symbol().as_bytes(), [b' '..=b'~']);
        if !is_plain && cell.symbol().contains(text::is_unsafe) {
            cell.set_symbol("\u{fffd}");
        }
    }
}

fn panels(model: &Model, frame: &mut Frame<'_>) {
    let layout = Layout::of(model);
    header::render(frame, model, layout.header);
    banner::render(frame, model, layout.banner);
    if let Some(area) = layout.list {
        if model.jobs().is_empty() {
            empty::render(frame, model, area);
        } else {
            list::render(frame, model, area);
        }
    }
    if let Some(area) = layout.detail {
        detail::render(frame, model, area);
    }
    if let Some(area) = layout.log {
        log::render(frame, model, area);
    }
    if let Some(area) = layout.timelines {
        timeline::render(frame, model, area);
    }
    if let Some(area) = layout.board {
        board::render(frame, model, area, layout.timelines.is_none());
    }
    if let Some(area) = layout.about {
        detail::about(frame, model, area);
    }
    if let Some(plots) = &layout.usage {
        usage::render(frame, model, plots);
    }
    evidence::render(frame, model, layout.evidence);
    caption::render(frame, model, layout.caption);
    bar::render(frame, model, layout.bar);
    match &model.overlay {
        Some(Overlay::Confirm(question)) => confirm::render(frame, model, question),
        Some(Overlay::Page(page)) => page::render(frame, model, page),
        Some(Overlay::Choice(choice)) => choice::render(frame, model, choice),
        Some(Overlay::Columns(choice)) => chooser::render(frame, model, choice),
        Some(Overlay::Form(form)) => form::render(frame, model, form),
        // These stand in the bottom line.
        Some(
            Overlay::Filter(..)
            | Overlay::BoardFilter(..)
            | Overlay::Search(_)
            | Overlay::LogFilter(_)
            | Overlay::Tag(..)
            | Overlay::CommandLine(_),
        )
        | None => {}
    }
    // Above a dialog: what it cannot mean is said so.
    toast::render(frame, model, layout.body);
    if let Some(help) = &model.help {
        help::render(frame, model, help);
    }
}

/// A frame with a title, and the area inside it.
fn panel(frame: &mut Frame<'_>, model: &Model, area: Rect, title: Line<'static>) -> Rect {
    let theme = &model.setup.theme;
    let block = Block::new()
        .borders(Borders::ALL)
        .border_style(theme.style(Role::Border))
        .title_style(theme.style(Role::Title))
        .title(spans::cut(title, usize::from(area.width.saturating_sub(4))));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// Draws lines one below the other, as many as there is room for, each cut to the width.
fn stack(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'static>>) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        let line = spans::cut(line, usize::from(area.width));
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

/// An area without a column at its left and at its right.
fn narrowed(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
}

/// A line at the left end of the lower border.
fn lower_border(frame: &mut Frame<'_>, area: Rect, line: Line<'static>) {
    let line = spans::cut(line, usize::from(area.width.saturating_sub(4)));
    let width = u16::try_from(line.width()).unwrap_or(0);
    if width > 0 && area.height > 0 {
        let at = Rect { x: area.x + 1, y: area.bottom() - 1, width, height: 1 };
        frame.render_widget(line, at);
    }
}

/// Gives a selected row one style: coloured words might vanish on the coloured bar.
fn select(frame: &mut Frame<'_>, model: &Model, line: &mut Line<'static>, area: Rect) {
    let style = style(model, Role::Selected);
    line.spans.iter_mut().for_each(|span| span.style = style);
    frame.buffer_mut().set_style(area, style);
}

/// A box in the middle of the screen, at most as large as `most` says, with lines of which the one at `top` comes
/// first. The title says how many more are below.
fn scrolled(
    frame: &mut Frame<'_>,
    model: &Model,
    (width, most): (u16, u16),
    lines: Vec<Line<'static>>,
    top: usize,
    title: &str,
) {
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(most);
    let rows = usize::from(height.saturating_sub(2));
    let top = top.min(lines.len().saturating_sub(rows));
    let below = lines.len().saturating_sub(top + rows);
    let title = match below {
        0 => format!(" {title} "),
        more => format!(" {title} · {more} more below "),
    };
    let inner = dialog(frame, model, (width, height), Line::from(title));
    stack(frame, narrowed(inner), lines.into_iter().skip(top));
    one_background(frame, model, inner);
}

/// An emptied box in the middle of the screen, at most as large as the screen.
fn dialog(
    frame: &mut Frame<'_>,
    model: &Model,
    (width, height): (u16, u16),
    title: Line<'static>,
) -> Rect {
    let screen = frame.area();
    // What is left of the frames below, one column at each side, would look like a frame drawn twice.
    let width = if width + 2 >= screen.width { screen.width } else { width };
    let height = height.min(screen.height);
    let area = Rect::new((screen.width - width) / 2, (screen.height - height) / 2, width, height);
    frame.render_widget(Clear, area);
    let style = style(model, Role::Base).patch(style(model, Role::Dialog));
    frame.buffer_mut().set_style(area, style);
    let inner = panel(frame, model, area, title);
    frame.buffer_mut().set_style(area, Style { fg: None, ..style });
    inner
}

/// Gives what was written inside a dialog the dialog's background: styles of the screen bring the screen's.
fn one_background(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let (below, own) = (style(model, Role::Base).bg, style(model, Role::Dialog).bg);
    let (Some(below), Some(own)) = (below, own) else { return };
    for position in area.intersection(frame.area()).positions() {
        if let Some(cell) = frame.buffer_mut().cell_mut(position)
            && cell.bg == below
        {
            cell.bg = own;
        }
    }
}

fn style(model: &Model, role: Role) -> Style {
    model.setup.theme.style(role)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_panel_lets_through_no_control_character_leaves_the_frame() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        for (cell, symbol) in
            buffer.content.iter_mut().zip(["a", "\u{1b}", "\u{9b}", "\u{202e}", "é", "実"])
        {
            cell.set_symbol(symbol);
        }
        harmless(&mut buffer);
        let left: Vec<&str> = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        assert_eq!(left, ["a", "\u{fffd}", "\u{fffd}", "\u{fffd}", "é", "実"]);
    }
}
