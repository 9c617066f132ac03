//! A question before something is destroyed, with exactly what that is.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;

use super::page::folded;
use super::spans::{cut, dotted, outside, span, wrap};
use super::{dialog, one_background, status, style, words};
use crate::message::{Act, command_line};
use crate::model::{Body, Confirm, Model};
use crate::theme::Role;
use tpu_core::model::ids::JobId;
use tpu_core::model::time;
use tpu_core::model::view::JobView;

/// Where the question stands and what it says.
struct Place {
    size: (u16, u16),
    title: String,
    /// Whose they are, where that is somebody else.
    others: Vec<String>,
    /// What is left alone, and what will happen.
    words: Vec<String>,
    yes: &'static str,
    shown: usize,
}

fn place(model: &Model, question: &Confirm) -> Place {
    let (columns, rows) = model.size;
    let width = columns.saturating_sub(4).min(84);
    let inside = usize::from(width.saturating_sub(4));
    let (title, effect, yes) = words_for(question);
    let plan = match &question.plan {
        Some(Body::Awaited(_)) => vec!["asking what it would do …".to_owned()],
        Some(Body::Text(text)) => text.lines().flat_map(|line| folded(line, inside)).collect(),
        Some(Body::Diff(_)) | None => Vec::new(),
    };
    let note = question.note.iter().flat_map(|note| note.lines());
    let note = note.flat_map(|line| wrap(&outside(line), inside));
    let effect = wrap(&effect, inside).into_iter().filter(|line| !line.is_empty());
    let others = question.others.iter().flat_map(|others| wrap(&outside(others), inside));
    let others: Vec<String> = others.collect();
    // Frame, blanks and buttons; the jobs get what is left of the screen. What is lost for ever is said
    // whole, so the plan is the one to be cut.
    let room = usize::from(rows).saturating_sub(8 + others.len()).max(1);
    let warning = cut_off(note.chain(effect).collect(), room);
    let mut words = cut_off(plan, room.saturating_sub(warning.len()));
    words.extend(warning);
    let around = 4 + others.len() + words.len() + usize::from(!question.jobs.is_empty());
    let room = usize::from(rows).saturating_sub(around + 2).max(1);
    let shown = question.jobs.len().min(room);
    let height = u16::try_from(around + shown).unwrap_or(u16::MAX).min(rows);
    Place { size: (width, height), title, others, words, yes, shown }
}

/// As many lines as there is room for; where some are missing, the last says how many.
fn cut_off(mut lines: Vec<String>, room: usize) -> Vec<String> {
    if lines.len() > room && room > 0 {
        let missing = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(format!("… and {} more", tpu_core::text::counted(missing, "line")));
    }
    lines.truncate(room);
    lines
}

fn yes_text(place: &Place) -> String {
    format!("{} (y)", place.yes)
}

/// The button at a place of the screen: to confirm, or not.
pub(super) fn button_at(model: &Model, question: &Confirm, at: Position) -> Option<bool> {
    let place = place(model, question);
    let (width, height) = place.size;
    let left = (model.size.0 - width.min(model.size.0)) / 2 + 2;
    let row = (model.size.1 - height.min(model.size.1)) / 2 + height.saturating_sub(2);
    let column = at.x.checked_sub(left).filter(|_| at.y == row)?;
    // As they are drawn: mark, text, blank; two blanks between the two.
    let yes = u16::try_from(tpu_core::text::width(&yes_text(&place)) + 3).unwrap_or(0);
    match column {
        column if column < yes => Some(true),
        column if (yes + 2..yes + 2 + 9).contains(&column) => Some(false),
        _ => None,
    }
}

/// Draws the question over everything else.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, question: &Confirm) {
    let place = place(model, question);
    let (size, shown, yes) = (place.size, place.shown, yes_text(&place));
    let Place { title, others, words, .. } = place;
    let top = question.top.min(question.jobs.len() - shown);
    let below = question.jobs.len().saturating_sub(top + shown);
    let inner = dialog(frame, model, size, Line::from(format!(" {title} ")));
    let mut y = inner.y;
    let mut put = |frame: &mut Frame<'_>, line: Line<'static>| {
        if y < inner.bottom() {
            let area = Rect { x: inner.x + 1, y, width: inner.width.saturating_sub(2), height: 1 };
            frame.render_widget(cut(line, usize::from(area.width)), area);
            y += 1;
        }
    };
    let name = |id: &JobId| {
        let label = || model.job(id).map_or_else(|| id.window.to_string(), JobView::label);
        outside(&if model.everybody() { id.to_string() } else { label() })
    };
    let widest = question.jobs.iter().map(|id| tpu_core::text::width(&name(id))).max().unwrap_or(0);
    for id in question.jobs.iter().skip(top).take(shown) {
        put(frame, job_line(model, id, &tpu_core::text::fit(&name(id), widest.max(3))));
    }
    if shown > 0 {
        let more = if below > 0 { format!("… {below} more below (j)") } else { String::new() };
        put(frame, Line::from(span(more, style(model, Role::Dim))));
    }
    for line in others {
        put(frame, Line::from(span(line, style(model, Role::Warning))));
    }
    for line in words {
        put(frame, Line::from(span(line, style(model, Role::Dim))));
    }
    put(frame, Line::default());
    let button = |on| style(model, if on { Role::ButtonOn } else { Role::Button });
    let mark =
        |on: bool, text: &str| if on { format!("▸ {text} ") } else { format!("  {text} ") };
    put(
        frame,
        Line::from(vec![
            span(mark(question.yes, &yes), button(question.yes)),
            span("  ", style(model, Role::Base)),
            span(mark(!question.yes, "No (n)"), button(!question.yes)),
        ]),
    );
    one_background(frame, model, inner);
}

/// Title, what will happen, and the word on the button.
fn words_for(question: &Confirm) -> (String, String, &'static str) {
    let count = question.jobs.len();
    let jobs = tpu_core::text::counted(count, "job");
    match &question.act {
        Act::Kill(_) => (
            format!("Stop {jobs}?"),
            "Their processes are stopped, their windows are closed, and no rule brings them back. \
             Checkpoints and logs stay."
                .to_owned(),
            "Stop",
        ),
        Act::TakeOut { waiting, kill } if kill.is_empty() => (
            format!("Take {} out of the queue?", entries(waiting)),
            "Nothing of that begins any more. What has begun by now is left alone.".to_owned(),
            "Take out",
        ),
        Act::TakeOut { waiting, kill } => (
            format!("Stop {}, and take {} out of the queue?", tpu_core::text::counted(kill.len(), "job"), entries(waiting)),
            "What waits is taken out first. Then the windows close; the records stay.".to_owned(),
            "Stop",
        ),
        Act::Clean(user) => (
            format!("Clean {jobs} of {}?", outside(user.as_str())),
            "Their windows are closed and their records go to the archive. Checkpoints and logs stay."
                .to_owned(),
            "Clean",
        ),
        Act::Reapply { target, then_resume } => {
            let then = then_resume.iter().map(|job| format!(", then resume {job}"));
            let title = format!("Make {target} anew{}?", then.collect::<String>());
            (outside(&title), String::new(), "Reapply")
        }
        Act::Solve(target) => {
            (outside(&format!("Set {target} right?")), String::new(), "Solve")
        }
        Act::Drain(target) => {
            (outside(&format!("Drain {target}?")), String::new(), "Drain")
        }
        Act::IgnoreError(job) => {
            (outside(&format!("Withdraw the error of {job}?")), String::new(), "Ignore it")
        }
        Act::StopDaemon => ("End the daemon?".to_owned(), String::new(), "End it"),
        Act::Confirmed(words) | Act::Command(words) => {
            (outside(&command_line(words)) + "?", String::new(), "Run it")
        }
        Act::Rerun(_) => (format!("Start {jobs} again from scratch?"), String::new(), "Rerun"),
        Act::Resume(_)
        | Act::Tag(..)
        | Act::SetRule(..)
        | Act::Undrain(_)
        | Act::Hold(_)
        | Act::Release(_)
        | Act::SetPriority(..)
        | Act::MoveFirst(_)
        | Act::Submit { .. }
        | Act::StartDaemon
        | Act::Run(_) => (format!("Go on with {jobs}?"), String::new(), "Yes"),
    }
}

fn entries(jobs: &[JobId]) -> String {
    tpu_core::text::counted(jobs.len(), "entry")
}

fn job_line(model: &Model, id: &JobId, name: &str) -> Line<'static> {
    let window = format!("{name}  ");
    let Some(job) = model.job(id) else {
        return Line::from(format!("{window} is gone by now"));
    };
    let shown = status::of(job);
    let members = match job.jobs() {
        1 => String::new(),
        several => tpu_core::text::counted(several, "member"),
    };
    let rest = dotted([
        members,
        words::known(job),
        words::dir(job),
        outside(&job.target_label),
        job.tags.as_deref().map(|tags| format!("#{}", outside(tags))).unwrap_or_default(),
        job.age_s.map(time::age).unwrap_or_default(),
    ]);
    Line::from(vec![
        span(window, style(model, Role::Title)),
        span(
            tpu_core::text::fit(&format!("{} {}", shown.glyph, shown.word), 18),
            style(model, shown.role),
        ),
        span(format!("  {rest}"), style(model, Role::Base)),
    ])
}
