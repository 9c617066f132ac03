//! Evidence and intention on one line: what broke, which line says so, what happens next.
//!
//! It is about the selected job if that one failed, else about the newest failed one, also when the filter
//! hides it. Where the line is too short, it takes two.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{cut, dotted, outside, span};
use super::{style, words};
use crate::model::view::JobView;
use crate::monitor::model::Model;
use crate::monitor::theme::Role;
use crate::text;

/// The job that the line is about.
fn subject(model: &Model) -> Option<&JobView> {
    let selected = model.selected().filter(|job| job.leaf && job.failure().is_some());
    selected.or_else(|| model.newest_failure())
}

/// What broke, the words that say so, where they stand, and what happens next.
struct Said {
    what: String,
    quote: String,
    place: String,
    next: String,
}

fn say(model: &Model, job: &JobView) -> Said {
    let window = if model.everybody() { job.id.to_string() } else { job.id.window.to_string() };
    let kind = job.failure().map(|kind| kind.to_string()).unwrap_or_default();
    let what = format!(" ▲ {} {kind}", outside(&window));
    let (quote, place) = match &job.shown.evidence {
        Some(evidence) => {
            let line = outside(evidence.line.trim());
            // Words that were read are quoted; a fact speaks for itself.
            let quote = if evidence.line_no.is_some() { format!("\"{line}\"") } else { line };
            (quote, place(job).map(|place| format!(" ({place})")).unwrap_or_default())
        }
        None => ("nothing says why".to_owned(), String::new()),
    };
    let next = dotted([words::rule(job), words::outlook(job, model.snapshot.as_ref())]);
    Said { what, quote, place, next }
}

/// Where the evidence stands: `line 14 from the end, worker 2`.
pub(super) fn place(job: &JobView) -> Option<String> {
    let evidence = job.shown.evidence.as_ref()?;
    let line = match evidence.line_no {
        Some(1) => Some("last line".to_owned()),
        Some(n) => Some(format!("line {n} from the end")),
        None => None,
    };
    let worker = evidence.worker.as_deref().map(|worker| format!("worker {}", outside(worker)));
    let parts: Vec<String> = line.into_iter().chain(worker).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Rows that the line takes; two only if `tall`.
pub(super) fn height(model: &Model, width: u16, tall: bool) -> u16 {
    let Some(job) = subject(model) else { return 0 };
    let said = say(model, job);
    let all = [&said.what, ": ", &said.quote, &said.place, " · ", &said.next];
    let needed: usize = all.iter().map(|part| text::width(part)).sum();
    if needed <= usize::from(width) || !tall { 1 } else { 2 }
}

/// Draws the line.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let Some(job) = subject(model).filter(|_| area.height > 0) else { return };
    let said = say(model, job);
    let width = usize::from(area.width);
    let error = style(model, Role::Error);
    let dim = style(model, Role::Dim);
    let what = format!("{}: ", said.what);
    let next = if area.height > 1 { String::new() } else { format!(" · {}", said.next) };
    // The quotation gives way first: the detail shows it whole.
    let fixed = text::width(&what) + text::width(&said.place) + text::width(&next);
    let room = width.saturating_sub(fixed).max(12);
    let line = Line::from(vec![
        span(what, error),
        span(text::cut(&said.quote, room).into_owned(), style(model, Role::Base)),
        span(said.place, dim),
        span(next, dim),
    ]);
    frame.render_widget(cut(line, width), Rect { height: 1, ..area });
    if area.height > 1 {
        let line = Line::from(span(format!("   {}", said.next), dim));
        frame.render_widget(cut(line, width), Rect { y: area.y + 1, height: 1, ..area });
    }
}
