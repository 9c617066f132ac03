//! The line at the top: whose jobs, how many are how, whether the daemon runs, how old this is.
//!
//! The counts are over all jobs, whatever the filter hides. When room is short the least important part
//! goes first; failures go last.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::spans::{outside, span};
use super::{status, style};
use crate::keys::{Command, Context};
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::time;
use tpu_core::model::view::MonitorHealth;
use tpu_ops::act::board::Board;

/// A piece of the line.
struct Part {
    /// The larger, the longer it stays.
    keep: u8,
    /// Whether it stands at the right end.
    right: bool,
    text: String,
    /// What it shrinks to before anything is left out.
    short: Option<String>,
    role: Role,
}

/// Frames of the spinner; ASCII, so that it looks the same everywhere.
const SPINNER: [&str; 4] = ["|", "/", "-", "\\"];

/// Draws the line.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let base = style(model, Role::Header);
    frame.buffer_mut().set_style(area, base);
    let mut parts = parts(model);
    let width = |parts: &[Part]| -> usize {
        parts.iter().map(|part| tpu_core::text::width(&part.text) + 2).sum()
    };
    while width(&parts) > usize::from(area.width) + 1 && parts.len() > 1 {
        if let Some(part) = parts.iter_mut().find(|part| part.short.is_some()) {
            part.text = part.short.take().unwrap_or_default();
        } else if let Some(weakest) = parts.iter().map(|part| part.keep).min() {
            parts.retain(|part| part.keep != weakest);
        }
    }
    let line = |right: bool| {
        let mut line = Line::raw(if right { "" } else { " " });
        for part in parts.iter().filter(|part| part.right == right) {
            line.push_span(span(part.text.clone(), base.patch(style(model, part.role))));
            line.push_span(Span::raw(if right { " " } else { "  " }));
        }
        line
    };
    frame.render_widget(line(false), area);
    let right = line(true);
    let needed = u16::try_from(right.width()).unwrap_or(u16::MAX).min(area.width);
    let at = Rect { x: area.right() - needed, width: needed, ..area };
    frame.render_widget(right, at);
}

fn parts(model: &Model) -> Vec<Part> {
    let left = |keep, text, role| Part { keep, right: false, text, short: None, role };
    let right = |keep, text, role| Part { keep, right: true, text, short: None, role };
    let mut parts = vec![left(4, "tpu".to_owned(), Role::Title)];
    parts.push(left(14, outside(&model.scope.whose.to_string()), Role::Title));
    if let Some(snapshot) = &model.snapshot {
        let counts = status::tally(&snapshot.jobs);
        parts.push(left(5, tpu_core::text::counted(counts.iter().sum(), "job"), Role::Header));
        let counted = || status::COUNTED.into_iter().zip(counts);
        // The last of them stays longest.
        let with_key = counted()
            .filter(|((_, word, _), count)| *count > 0 && status::is_broken(word))
            .map(|((_, word, _), _)| word)
            .next_back();
        for ((glyph, word, role), count) in counted() {
            let keep = match word {
                "error" => 16,
                word if status::is_broken(word) => 15,
                "running" => 12,
                "unknown" => 11,
                "starting" => 8,
                "queued" => 7,
                "finished" => 3,
                _ => 2,
            };
            let text = format!("{glyph} {count} {word}");
            if count > 0 && with_key == Some(word) {
                // The bottom line is about the selected job: this is how one gets to those that broke.
                let key = model.setup.key(Context::List, Command::Broken);
                let part = left(keep, format!("{text} ({key})"), role);
                parts.push(Part { short: Some(text), ..part });
            } else if count > 0 {
                parts.push(left(keep, text, role));
            }
        }
    }
    if let Some((_, act)) = model.running.last() {
        let turn = SPINNER.get(model.spinner % SPINNER.len()).copied().unwrap_or_default();
        let more = match model.running.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        parts.push(right(10, format!("{turn} {}{more} ", act.progressive()), Role::Warning));
    }
    let late = model.setup.refresh_s.saturating_mul(2).saturating_add(2);
    if let Some(age) = model.look_age_s().filter(|age| *age > late) {
        parts.push(right(13, format!("as of {} ago ", time::age(age)), Role::Warning));
    }
    if let Some((ready, watched)) = model.boards.targets.seen.as_ref().map(Board::ready)
        && watched > 0
    {
        let role = if ready == 0 { Role::Warning } else { Role::Header };
        parts.push(right(6, format!("fleet {ready}/{watched} ready "), role));
    }
    match model.snapshot.as_ref().map(|snapshot| &snapshot.monitor) {
        Some(MonitorHealth::NotRunning) => {
            parts.push(right(9, "daemon ○ off ".to_owned(), Role::Warning));
        }
        Some(MonitorHealth::Running { turn_age_s }) => {
            let age = turn_age_s.saturating_add(model.look_age_s().unwrap_or(0));
            let part = right(9, format!("daemon ● {} ago ", time::age(age)), Role::Running);
            parts.push(Part { short: Some("daemon ●".to_owned()), ..part });
        }
        Some(MonitorHealth::Watching { .. }) => {
            let part = right(9, "daemon ○ only watches ".to_owned(), Role::Warning);
            parts.push(Part { short: Some("daemon ○".to_owned()), ..part });
        }
        None => {}
    }
    if !model.mouse {
        parts.push(right(7, "mouse free ".to_owned(), Role::Warning));
    }
    parts.push(right(1, model.setup.zone.clock(model.now), Role::Header));
    parts
}
