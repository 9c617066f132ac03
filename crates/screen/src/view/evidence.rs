//! The selected job on one line: what broke, which line says so, what happens next; of one that is well, how it is and after
//! what it comes back.
//!
//! It is about the selected job alone: that others have failed the head counts, and a key jumps there. In the log it is about
//! the job whose log it is, if that has failed. Where the line is too short, it takes two.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{cut, dotted, outside, span};
use super::{board, status, style, words};
use crate::model::Model;
use crate::tabs::Tab;
use crate::theme::Role;
use tpu_core::model::rules::Action;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// The job that the line is about.
fn subject(model: &Model) -> Option<&JobView> {
    match &model.log {
        Some(log) => model.job(&log.job).filter(|job| has_failed(job)),
        None => model.selected(),
    }
}

/// Whether it shows a failure to which nobody has reacted yet.
fn has_failed(job: &JobView) -> bool {
    job.leaf && job.failure().is_some()
}

/// What broke, the words that say so, where they stand, and what happens next.
struct Said {
    what: String,
    quote: String,
    place: String,
    rule: String,
    next: String,
}

fn say(model: &Model, job: &JobView) -> Said {
    let window = if model.everybody() { job.id.to_string() } else { job.label() };
    let name = job.name.iter().map(|name| format!(" {name}"));
    let window = outside(&std::iter::once(window).chain(name).collect::<String>());
    if !has_failed(job) {
        return well(model, job, &window);
    }
    let kind = job.failure().map(|kind| kind.to_string()).unwrap_or_default();
    let what = format!(" ▲ {window} {kind}: ");
    let quote = quoted(job).unwrap_or_else(|| "nothing says why".to_owned());
    let place = place(job).unwrap_or_default();
    let next = words::outlook(job, model.snapshot.as_ref());
    Said { what, quote, place, rule: words::rule(job), next }
}

/// Of a job that has not failed: how it is, and what will become of it.
fn well(model: &Model, job: &JobView, window: &str) -> Said {
    let status::Shown { glyph, word, .. } = status::of(job);
    let why = match (&job.shown.queued, &job.shown.pending) {
        (Some(queued), _) => queued.reason.as_deref().map(outside),
        (None, Some(pending)) => pending.reason.as_deref().map(outside),
        (None, None) => quoted(job),
    };
    let is_over = !job.shown.status.is_live() && job.shown.queued.is_none();
    let next =
        if is_over { words::outlook(job, model.snapshot.as_ref()) } else { comes_back(job, model) };
    let colon = if why.is_some() { ": " } else { "" };
    let what = format!(" {glyph} {window} {word}{colon}");
    Said { what, quote: why.unwrap_or_default(), place: String::new(), rule: String::new(), next }
}

/// After which failures a job is brought back: by itself only while the daemon runs.
fn comes_back(job: &JobView, model: &Model) -> String {
    let acts = job.rules.iter().filter(|(_, action)| *action != Action::Pass && job.monitor);
    let kinds: Vec<String> = acts.map(|(kind, _)| kind.to_string()).collect();
    match kinds.as_slice() {
        [] => "nothing brings it back by itself".to_owned(),
        kinds if words::is_daemon_off(model.snapshot.as_ref()) => {
            format!("comes back after {} once the daemon runs (tpu daemon start)", kinds.join(", "))
        }
        kinds => format!("comes back by itself after {}", kinds.join(", ")),
    }
}

/// The words that decided how a job is. Words that were read are quoted; a fact speaks for itself.
fn quoted(job: &JobView) -> Option<String> {
    let evidence = job.shown.evidence.as_ref()?;
    let line = outside(evidence.line.trim());
    Some(if evidence.line_no.is_some() { format!("\"{line}\"") } else { line })
}

/// Where the evidence stands: `line 14 from the end, worker 2`.
pub(super) fn place(job: &JobView) -> Option<String> {
    let evidence = job.shown.evidence.as_ref()?;
    let line = evidence.line_in_words();
    let worker = evidence.worker.as_deref().map(|worker| format!("worker {}", outside(worker)));
    let parts: Vec<String> = line.into_iter().chain(worker).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Everything behind the quotation, on one line.
fn behind(said: &Said) -> String {
    let place = if said.place.is_empty() { String::new() } else { format!(" ({})", said.place) };
    format!("{place} · {}", dotted([said.rule.clone(), said.next.clone()]))
}

/// Rows that the line takes; two only if `tall`. On the other tabs it is about the chosen row.
pub(super) fn height(model: &Model, width: u16, tall: bool) -> u16 {
    if model.tab != Tab::Jobs && model.log.is_none() {
        return 1;
    }
    let Some(job) = subject(model) else { return 0 };
    let said = say(model, job);
    let needed = [&said.what, &said.quote, &behind(&said)].map(|part| text::width(part));
    if needed.iter().sum::<usize>() <= usize::from(width) || !tall { 1 } else { 2 }
}

/// Draws the line. What does not fit is left out in this order: the end of the quotation down to a few
/// words, the place, the rule; what will happen stays.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    const FEW_WORDS: usize = 24;
    if model.tab != Tab::Jobs && model.log.is_none() {
        if let Some(line) = board::footnote(model).filter(|_| area.height > 0) {
            frame.render_widget(cut(line, usize::from(area.width)), Rect { height: 1, ..area });
        }
        return;
    }
    let Some(job) = subject(model).filter(|_| area.height > 0) else { return };
    let said = say(model, job);
    let width = usize::from(area.width);
    let dim = style(model, Role::Dim);
    let role = if has_failed(job) { Role::Error } else { status::of(job).role };
    let second = area.height > 1;
    let next = format!(" · {}", said.next);
    let rests = if second { vec![String::new()] } else { vec![behind(&said), next] };
    let room = |rest: &str| width.saturating_sub(text::width(&said.what) + text::width(rest));
    let wanted = text::width(&said.quote).min(FEW_WORDS);
    let rest = rests.iter().find(|rest| room(rest) >= wanted).or(rests.last());
    let rest = rest.cloned().unwrap_or_default();
    let quote = text::cut(&said.quote, room(&rest).max(12)).into_owned();
    let line = Line::from(vec![
        span(said.what.clone(), style(model, role)),
        span(quote, style(model, Role::Base)),
        span(rest, dim),
    ]);
    frame.render_widget(cut(line, width), Rect { height: 1, ..area });
    if second {
        let rest = dotted([said.rule, said.next]);
        let whole = dotted([said.place, rest.clone()]);
        let fits = text::width(&whole) + 3 <= width;
        let line = Line::from(span(format!("   {}", if fits { whole } else { rest }), dim));
        frame.render_widget(cut(line, width), Rect { y: area.y + 1, height: 1, ..area });
    }
}
