//! The log view: all that a job has printed.
//!
//! ```text
//! ┌ log · 7 · imagenet · v2-32-p2 ─────────────── 3/17 'loss' · line 120 of 980 ┐
//! │ …                                                                           │
//! └──────────────────────────────────────────── 12 new lines below (G follows) ─┘
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::layout::Layout;
use super::spans::{cut, dotted, outside, skip, span, wrap};
use super::{panel, style, words};
use crate::log_filter::LogSearch;
use crate::model::{Log, Model};
use crate::pane::{PaneText, folded};
use crate::theme::Role;
use tpu_core::text;
use tpu_core::text::counted;

/// Draws the log into its area.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let Some(log) = &model.log else { return };
    let title = match model.job(&log.job) {
        Some(job) => dotted([
            "log".to_owned(),
            job.label(),
            words::known(job),
            words::dir(job),
            outside(&job.target_label),
        ]),
        None => format!("log · {} (no longer there)", log.job.window),
    };
    let inner = panel(frame, model, area, Line::from(format!(" {title} ")));
    let room = usize::from(area.width.saturating_sub(2));
    corner(
        frame,
        Rect { height: 1, ..area },
        position(model, log, room.saturating_sub(text::width(&title) + 3)),
    );
    let foot = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
    corner(frame, foot, following(model, log));
    let Some(output) = &log.text else {
        nothing(frame, model, log, inner);
        return;
    };
    let hit = style(model, Role::Hit);
    if log.shown.is_empty() && !output.is_empty() {
        let text = " No line is shown: & takes the filter away, W the worker.";
        frame.render_widget(Line::from(text), Rect { height: 1, ..inner });
    }
    let mut y = inner.y;
    for at in log.top..log.shown.len() {
        let Some(line) = log.shown.get(at).and_then(|at| output.lines.get(*at)) else { break };
        let line = if log.hits.binary_search(&at).is_ok() {
            highlighted(line, &log.search, hit)
        } else {
            line.clone()
        };
        let width = usize::from(inner.width);
        let rows =
            if log.wrap { folded(&line, width) } else { vec![cut(skip(&line, log.left), width)] };
        for (nth, line) in rows.into_iter().enumerate() {
            if y >= inner.bottom() {
                return;
            }
            let row = Rect { y, height: 1, ..inner };
            frame.render_widget(line, row);
            if log.hit == Some(at) && nth == 0 {
                let point = Rect { x: area.x, width: 1, ..row };
                frame.render_widget(span("▸", style(model, Role::Key)), point);
            }
            y += 1;
        }
    }
}

/// A line at the right end of a border.
fn corner(frame: &mut Frame<'_>, border: Rect, line: Line<'static>) {
    let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
    if width > 0 && width + 4 <= border.width {
        let x = border.right() - width - 2;
        frame.render_widget(line, Rect { x, width, ..border });
    }
}

/// Which hit, and which lines of how many.
fn position(model: &Model, log: &Log, room: usize) -> Line<'static> {
    let found = match (log.search.is_empty(), log.hits.len()) {
        (true, _) => String::new(),
        (false, 0) => format!("{} is nowhere", log.search.in_words()),
        (false, count) => {
            let nth = log.hit.and_then(|hit| log.hits.iter().position(|line| *line == hit));
            let nth = nth.map(|nth| format!("{} of ", nth + 1)).unwrap_or_default();
            format!("{} {nth}{count}", log.search.in_words())
        }
    };
    let (lines, all) = (log.shown.len(), log.text.as_ref().map_or(0, PaneText::len));
    let last = (log.top + Layout::of(model).log_rows()).min(lines);
    let column = if log.left > 0 { format!("column {}", log.left + 1) } else { String::new() };
    let where_ = match lines {
        0 => String::new(),
        _ if lines < all => {
            format!("{}–{last} of {lines} of {}", log.top + 1, counted(all, "line"))
        }
        _ => format!("{}–{last} of {}", log.top + 1, counted(lines, "line")),
    };
    let filter = match log.filter.text() {
        _ if log.filter.is_empty() => String::new(),
        text => format!("&{text}"),
    };
    let worker = log.worker.as_ref().map(|worker| format!("worker {worker}")).unwrap_or_default();
    let wrap = if log.wrap { "wrapped".to_owned() } else { String::new() };
    let role =
        if !log.search.is_empty() && log.hits.is_empty() { Role::Warning } else { Role::Dim };
    let what = dotted([worker, filter, found]);
    let whole = dotted([what.clone(), wrap, column, where_]);
    let text = if text::width(&whole) + 2 <= room { whole } else { what };
    if text.is_empty() || text::width(&text) + 2 > room {
        return Line::default();
    }
    Line::from(span(format!(" {} ", outside(&text)), style(model, role)))
}

/// Whether it follows; if not, how much has come since.
fn following(model: &Model, log: &Log) -> Line<'static> {
    let problem = log.problem.as_ref().map(|problem| outside(&problem.message));
    if let Some(problem) = problem.filter(|_| log.text.is_some()) {
        return Line::from(span(format!(" ▲ {problem} "), style(model, Role::Warning)));
    }
    if log.text.is_none() {
        return Line::default();
    }
    let (text, role) = match (log.follow, log.unseen) {
        (true, _) => (" ▼ follow ".to_owned(), Role::Running),
        (false, 0) => (" not following (G follows) ".to_owned(), Role::Dim),
        (false, 1) => (" ▼ 1 new line below (G follows) ".to_owned(), Role::Warning),
        (false, n) => (format!(" ▼ {n} new lines below (G follows) "), Role::Warning),
    };
    Line::from(span(text, style(model, role)))
}

/// What to say when there is no output.
fn nothing(frame: &mut Frame<'_>, model: &Model, log: &Log, area: Rect) {
    let width = usize::from(area.width.saturating_sub(2));
    let mut lines = Vec::new();
    if let Some(problem) = &log.problem {
        lines.extend(wrap(&outside(&problem.message), width));
        lines.extend(problem.hint.iter().flat_map(|hint| wrap(&outside(hint), width)));
    } else if log.waiting {
        lines.push("Reading …".to_owned());
    } else {
        lines.push("Nothing of its output is left to be read.".to_owned());
        if let Some(dir) = model.job(&log.job).and_then(|job| job.log_dir.as_deref()) {
            lines.extend(wrap(&format!("It logged to {}", outside(dir)), width));
        }
    }
    if let Some(job) = model.job(&log.job).filter(|job| !job.tail.is_empty()) {
        lines.push(String::new());
        lines.push("The last that was seen:".to_owned());
        lines.extend(job.tail.lines().map(|line| text::cut(&outside(line), width).into_owned()));
    }
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(
            Line::from(line),
            Rect { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 },
        );
    }
}

/// The line with each place marked that holds what is searched for.
fn highlighted(line: &Line<'static>, search: &LogSearch, mark: Style) -> Line<'static> {
    let plain: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
    let places = search.places(&plain);
    let is_marked = |at: usize| places.iter().any(|place| place.contains(&at));
    let marked: Vec<bool> = plain.char_indices().map(|(at, _)| is_marked(at)).collect();
    let mut marks = marked.into_iter();
    let mut spans: Vec<Span<'static>> = Vec::new();
    for part in &line.spans {
        for c in part.content.chars() {
            let style =
                if marks.next() == Some(true) { part.style.patch(mark) } else { part.style };
            match spans.last_mut().filter(|last| last.style == style) {
                Some(last) => last.content.to_mut().push(c),
                None => spans.push(Span::styled(c.to_string(), style)),
            }
        }
    }
    Line { spans, ..line.clone() }
}
