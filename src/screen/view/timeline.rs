//! Lineages over time: attempts as bars, failures as marks, and how much of the time was productive.
//!
//! ```text
//! ┌ Lineages ────────────────────────────────────┐
//! │ 7  imagenet   ████◆ ███▲████████●   94 %     │
//! │               08:00      12:00     14:02     │
//! └──────────────────────────────────────────────┘
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::spans::{cut, outside, span};
use super::{lower_border, panel, style, tabs, words};
use crate::model::facts::ErrorKind;
use crate::model::ids::JobId;
use crate::model::job::Status;
use crate::model::time::Timestamp;
use crate::model::view::JobView;
use crate::screen::model::Model;
use crate::screen::theme::Role;
use crate::text;

/// One attempt on the line.
struct Attempt<'a> {
    job: &'a JobView,
    begin: Timestamp,
    end: Timestamp,
}

/// The attempts of a job's lineage whose begin is known, oldest first.
fn attempts<'a>(model: &'a Model, job: &JobView) -> Vec<Attempt<'a>> {
    let ids = job.lineage.iter().map(|window| JobId::new(job.id.user.clone(), *window));
    let jobs: Vec<&JobView> = ids.filter_map(|id| model.job(&id)).collect();
    let mut found: Vec<Attempt<'a>> = Vec::with_capacity(jobs.len());
    for job in jobs {
        let Some(begin) = job.started_at else { continue };
        let lasted = i64::try_from(job.age_s.unwrap_or(0)).unwrap_or(0);
        let end = if job.shown.status.is_live() { model.now } else { begin.plus_seconds(lasted) };
        // An attempt whose end was never noted ended at the latest when the next one began.
        if let Some(before) = found.last_mut() {
            before.end = before.end.min(begin).max(before.begin);
        }
        found.push(Attempt { job, begin, end: end.max(begin) });
    }
    found
}

/// The share of the time since the first attempt began in which the run got on: attempts at work, without the
/// steps that had to be done again. `None` when nothing has begun, and until the logs of several attempts have
/// been read: what was done again is not known before.
pub(super) fn goodput(model: &Model, job: &JobView) -> Option<f64> {
    let attempts = attempts(model, job);
    let (first, last) = (attempts.first()?, attempts.last()?);
    let wall = last.end.seconds_since(first.begin);
    let trace = model.traces.of(job);
    if attempts.len() > 1 && trace.is_none_or(|trace| trace.read.is_none()) {
        return None;
    }
    let mut productive = 0.0;
    for attempt in &attempts {
        let redone = trace.map_or(0.0, |trace| trace.curve.redone(attempt.job.id.window));
        #[expect(clippy::cast_precision_loss, reason = "seconds of a run fit a float")]
        let lasted = attempt.end.seconds_since(attempt.begin) as f64;
        productive += lasted * (1.0 - redone);
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds of a run fit a float")]
    let wall = wall as f64;
    (wall > 0.0).then(|| (productive / wall).clamp(0.0, 1.0))
}

/// The glyph at the end of an attempt.
fn mark(job: &JobView) -> (&'static str, Role) {
    let of = |kind: ErrorKind| match kind {
        ErrorKind::Preempted | ErrorKind::NoCapacity => ("◆", Role::Warning),
        _ => ("▲", Role::Error),
    };
    match &job.shown.status {
        Status::Error(kind) | Status::Resumed(Some(kind)) | Status::Rerunned(Some(kind)) => {
            of(*kind)
        }
        Status::Resumed(None) | Status::Rerunned(None) => ("↻", Role::Superseded),
        Status::Finished => ("✓", Role::Finished),
        Status::Killed(_) => ("○", Role::Killed),
        Status::Running | Status::Starting | Status::Unset => ("●", Role::Running),
    }
}

/// The lineage of a job between two instants, `width` columns wide.
fn line_between(
    model: &Model,
    job: &JobView,
    (from, to): (Timestamp, Timestamp),
    width: usize,
) -> Line<'static> {
    let span_s = to.seconds_since(from).max(1);
    let column = |at: Timestamp| {
        let share = u128::from(at.seconds_since(from)) * (width.saturating_sub(1)) as u128;
        usize::try_from(share / u128::from(span_s)).unwrap_or(0).min(width.saturating_sub(1))
    };
    let blank = (" ", Role::Dim);
    let mut cells = vec![blank; width];
    let attempts = attempts(model, job);
    if let (Some(first), Some(last)) = (attempts.first(), attempts.last()) {
        let whole = cells.iter_mut().take(column(last.end) + 1).skip(column(first.begin));
        whole.for_each(|cell| *cell = ("·", Role::Dim));
    }
    for attempt in &attempts {
        let bar = cells.iter_mut().take(column(attempt.end) + 1).skip(column(attempt.begin));
        bar.for_each(|cell| *cell = ("█", Role::BarDone));
    }
    // Marks last, so that no later attempt covers them.
    for attempt in &attempts {
        if let Some(cell) = cells.get_mut(column(attempt.end)) {
            *cell = mark(attempt.job);
        }
    }
    cells.into_iter().map(|(glyph, role)| Span::styled(glyph, style(model, role))).collect()
}

/// The lineage of one job over its own time.
pub(super) fn line(model: &Model, job: &JobView, width: usize) -> Option<Line<'static>> {
    let attempts = attempts(model, job);
    let (first, last) = (attempts.first()?, attempts.last()?);
    Some(line_between(model, job, (first.begin, last.end), width))
}

/// How many lineages there are to draw.
pub(super) fn count(model: &Model) -> usize {
    model.jobs().iter().filter(|job| job.leaf && job.started_at.is_some()).count()
}

/// The leaves of the lineages, those with most to tell first: with several attempts, then the newest.
fn lineages(model: &Model) -> Vec<&JobView> {
    let mut leaves: Vec<&JobView> =
        model.jobs().iter().filter(|job| job.leaf && job.started_at.is_some()).collect();
    leaves.sort_by_key(|job| {
        (std::cmp::Reverse(job.lineage.len().min(2)), std::cmp::Reverse(job.started_at))
    });
    leaves
}

/// What the marks mean, in the order in which the last ones give way when room is short.
const LEGEND: [(&str, Role, &str); 8] = [
    ("█", Role::BarDone, "at work"),
    ("·", Role::Dim, "nothing ran"),
    ("◆", Role::Warning, "target taken"),
    ("▲", Role::Error, "failed"),
    ("●", Role::Running, "running"),
    ("✓", Role::Finished, "finished"),
    ("○", Role::Killed, "killed"),
    ("↻", Role::Superseded, "gone on from"),
];

/// The legend, as much of it as there is room for.
fn legend(model: &Model, width: usize) -> Line<'static> {
    let mut line = Line::default();
    for (mark, role, word) in LEGEND {
        let word = format!(" {word} ");
        if line.width() + 2 + text::width(&word) > width {
            break;
        }
        line.push_span(span(format!(" {mark}"), style(model, role)));
        line.push_span(span(word, style(model, Role::Dim)));
    }
    line
}

/// Draws the lineages on one scale of time.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let inner = panel(frame, model, area, tabs::title(model));
    lower_border(frame, area, legend(model, usize::from(area.width.saturating_sub(4))));
    let rows = usize::from(inner.height.saturating_sub(1));
    let leaves: Vec<&JobView> = lineages(model).into_iter().take(rows).collect();
    let begins =
        leaves.iter().filter_map(|job| attempts(model, job).first().map(|first| first.begin));
    let Some(from) = begins.min() else { return };
    let to = model.now;
    let label = |job: &JobView| {
        let id = if model.everybody() { job.id.to_string() } else { job.label() };
        format!("{} {}", outside(&id), words::dir(job))
    };
    let widest = leaves.iter().map(|job| text::width(&label(job))).max().unwrap_or(0).min(24);
    let width = usize::from(inner.width).saturating_sub(widest + 10);
    for (y, job) in (inner.y..inner.bottom()).zip(&leaves) {
        let mut line = Line::from(Span::raw(format!(" {} ", text::fit(&label(job), widest))));
        line.spans.extend(line_between(model, job, (from, to), width).spans);
        let share = goodput(model, job).map(words::percent).unwrap_or_default();
        line.push_span(span(format!(" {share:>6}"), style(model, Role::Dim)));
        frame.render_widget(cut(line, usize::from(inner.width)), Rect { y, height: 1, ..inner });
    }
    let (left, right) = (clock(model, from, to), clock(model, to, to));
    let gap = width.saturating_sub(text::width(&left) + text::width(&right));
    let more = match count(model).saturating_sub(leaves.len()) {
        0 => String::new(),
        n => format!("{n} more"),
    };
    let more = text::fit(&more, widest);
    let scale = format!(" {more} {left}{}{right} goodput", " ".repeat(gap));
    let at = Rect { y: inner.bottom().saturating_sub(1), height: 1, ..inner };
    frame.render_widget(
        cut(Line::from(span(scale, style(model, Role::Dim))), usize::from(inner.width)),
        at,
    );
}

/// An instant on the scale: with its day, if that is not the last one's.
fn clock(model: &Model, at: Timestamp, last: Timestamp) -> String {
    let whole = model.setup.zone.stamp_alone(at);
    let today = model.setup.zone.stamp_alone(last);
    let (day, hour) = (whole.get(5..10).unwrap_or_default(), whole.get(11..16).unwrap_or_default());
    if whole.get(..10) == today.get(..10) { hour.to_owned() } else { format!("{day} {hour}") }
}
