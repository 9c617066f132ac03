//! What is wrong at large, above the jobs: the data cannot be read, tmux is gone.
//!
//! What was seen before stays on the screen, and the banner says that it is old and what to do.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{outside, span, wrap};
use super::style;
use crate::message::Problem;
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::view::TmuxHealth;
use tpu_core::text;

/// What the banner is about, if there is one. Without any jobs the middle of the screen says it.
pub(super) fn problem(model: &Model) -> Option<Problem> {
    if let Some(problem) = &model.problem {
        return Some(problem.clone());
    }
    let snapshot = model.snapshot.as_ref()?;
    if !snapshot.misses_tmux() {
        return None;
    }
    match &snapshot.tmux {
        TmuxHealth::Up => None,
        TmuxHealth::Down => Some(Problem::new(
            "No tmux server is running: what became of jobs in it cannot be told from here.",
            "tpu run, resume and rerun start one.",
        )),
        TmuxHealth::Unknown(reason) => Some(Problem::new(
            format!("tmux does not answer ({}).", reason.trim_end_matches('.')),
            "What is shown about windows is old; it is asked again every second.",
        )),
    }
}

/// Rows that the banner takes.
pub(super) fn height(model: &Model, width: u16) -> u16 {
    u16::try_from(lines(model, width).len()).unwrap_or(0)
}

fn lines(model: &Model, width: u16) -> Vec<String> {
    // Less than a screenful of small terminals, whatever the message.
    const MOST: usize = 3;
    match problem(model) {
        Some(problem) if !model.jobs().is_empty() => {
            let hint = problem.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
            let room = usize::from(width.saturating_sub(4));
            let words = outside(&format!("{}{hint}", problem.message));
            let mut lines = wrap(&words, room);
            if lines.len() > MOST {
                lines.truncate(MOST);
                let last = lines.pop().unwrap_or_default();
                lines.push(text::cut(&format!("{last} …"), room).into_owned());
            }
            lines
        }
        Some(_) | None => Vec::new(),
    }
}

/// Draws the banner.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let bad = style(model, Role::Error);
    for (at, (y, line)) in (area.y..area.bottom()).zip(lines(model, area.width)).enumerate() {
        let lead = if at == 0 { " ▲ " } else { "   " };
        let line = Line::from(vec![span(lead, bad), span(line, bad)]);
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}
