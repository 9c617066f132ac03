//! A question before something is destroyed, with exactly what that is.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{cut, dotted, outside, span, wrap};
use super::{dialog, status, style, words};
use crate::model::ids::JobId;
use crate::model::time;
use crate::monitor::message::Act;
use crate::monitor::model::{Confirm, Model};
use crate::monitor::theme::Role;

/// Draws the question over everything else.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, question: &Confirm) {
    let screen = frame.area();
    let width = screen.width.saturating_sub(4).min(84);
    let inside = usize::from(width.saturating_sub(4));
    let (title, effect, yes) = words_for(question);
    let effect = wrap(&effect, inside);
    let note = question.note.as_ref().map(|note| wrap(note, inside)).unwrap_or_default();
    // Frame, blanks and buttons; the jobs get what is left of the screen.
    let around = 5 + effect.len() + note.len();
    let room = usize::from(screen.height).saturating_sub(around + 2).max(1);
    let shown = question.jobs.len().min(room);
    let height = u16::try_from(around + shown).unwrap_or(u16::MAX);
    let top = question.top.min(question.jobs.len() - shown);
    let below = question.jobs.len().saturating_sub(top + shown);
    let more = if below > 0 { format!("· {below} more below (j) ") } else { String::new() };
    let inner = dialog(frame, model, (width, height), Line::from(format!(" {title} {more}")));
    let mut y = inner.y;
    let mut put = |frame: &mut Frame<'_>, line: Line<'static>| {
        if y < inner.bottom() {
            let area = Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(2), height: 1 };
            frame.render_widget(cut(line, usize::from(area.width)), area);
            y += 1;
        }
    };
    for id in question.jobs.iter().skip(top).take(shown) {
        put(frame, job_line(model, id));
    }
    put(frame, Line::default());
    for line in note.into_iter().chain(effect) {
        put(frame, Line::from(span(line, style(model, Role::Dim))));
    }
    put(frame, Line::default());
    let button = |on| style(model, if on { Role::ButtonOn } else { Role::Button });
    let mark =
        |on: bool, text: &str| if on { format!("▸ {text} ") } else { format!("  {text} ") };
    put(
        frame,
        Line::from(vec![
            span(mark(question.yes, &format!("{yes} (y)")), button(question.yes)),
            span("  ", style(model, Role::Base)),
            span(mark(!question.yes, "No (n)"), button(!question.yes)),
        ]),
    );
}

/// Title, what will happen, and the word on the button.
fn words_for(question: &Confirm) -> (String, String, &'static str) {
    let count = question.jobs.len();
    let jobs = if count == 1 { "job" } else { "jobs" };
    match &question.act {
        Act::Kill(_) => (
            format!("Stop {count} {jobs}?"),
            "Their processes are stopped, their windows are closed, and no rule brings them back. \
             Checkpoints and logs stay."
                .to_owned(),
            "Stop",
        ),
        Act::Clean(user) => (
            format!("Clean {count} {jobs} of {}?", outside(user.as_str())),
            "Their windows are closed and their records go to the archive. Checkpoints and logs stay."
                .to_owned(),
            "Clean",
        ),
        Act::Resume(_) | Act::Rerun(_) | Act::Tag(..) => {
            (format!("Go on with {count} {jobs}?"), String::new(), "Yes")
        }
    }
}

fn job_line(model: &Model, id: &JobId) -> Line<'static> {
    let window = if model.everybody() { id.to_string() } else { id.window.to_string() };
    let window = format!("{:<5}", outside(&window));
    let Some(job) = model.job(id) else {
        return Line::from(format!("{window} is gone by now"));
    };
    let shown = status::of(job);
    let rest = dotted([
        words::dir(job),
        outside(&job.target_label),
        job.tags.as_deref().map(|tags| format!("#{}", outside(tags))).unwrap_or_default(),
        job.age_s.map(time::age).unwrap_or_default(),
    ]);
    Line::from(vec![
        span(window, style(model, Role::Title)),
        span(
            crate::text::fit(&format!("{} {}", shown.glyph, shown.word), 18),
            style(model, shown.role),
        ),
        span(format!("  {rest}"), style(model, Role::Base)),
    ])
}
