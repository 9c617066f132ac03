//! What stands in the cells of a row.

use ratatui::text::{Line, Span};

use super::Cell;
use crate::model::Model;
use crate::theme::Role;
use crate::view::spans::{outside, span};
use crate::view::{status, style, words};
use tpu_core::model::facts::Progress;
use tpu_core::model::groups;
use tpu_core::model::job::Status;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// Whether it may be known how fast a job is.
pub(super) fn is_timed(job: &JobView) -> bool {
    let Progress { step, steps_per_s, eta_s, .. } = &job.shown.progress;
    job.shown.status.is_live() && (step.is_some() || steps_per_s.is_some() || eta_s.is_some())
}

/// A moment as people name it: the time of a moment of today, else the day.
pub(super) fn short(cell: &Cell<'_>, at: Option<Timestamp>) -> Option<String> {
    at.map(|at| cell.model.setup.zone.short(at, cell.model.now))
}

/// Steps per second of a job at work.
pub(super) fn speed(model: &Model, job: &JobView) -> Option<f64> {
    let told = job.shown.progress.steps_per_s;
    let known = told.or_else(|| model.traces.of(job)?.speed());
    known.filter(|_| job.shown.status.is_live())
}

/// How many seconds a job at work still needs.
pub(super) fn left_s(model: &Model, job: &JobView) -> Option<u64> {
    let told = job.shown.progress.eta_s;
    let known = told.or_else(|| model.traces.of(job)?.eta_s(job));
    known.filter(|_| job.shown.status.is_live()).and_then(words::whole_seconds)
}

/// What the jobs of a row have cost, as far as anybody says that.
pub(super) fn cost(cell: &Cell<'_>) -> String {
    let known: Vec<f64> = members(cell).filter_map(|job| job.cost).collect();
    match known.iter().sum::<f64>() {
        _ if known.is_empty() => String::new(),
        cost if cost < 1_000.0 => format!("{cost:.2}"),
        cost => format!("{cost:.0}"),
    }
}

pub(super) fn gpus(job: &JobView) -> Option<u32> {
    let given = job.share.as_ref()?.gpus.as_ref()?;
    u32::try_from(given.len()).ok()
}

/// What is said of one job; the row of a group says nothing of it.
pub(super) fn alone(cell: &Cell<'_>, said: Option<String>) -> String {
    said.filter(|_| !cell.row.is_group()).unwrap_or_default()
}

/// The same for a number.
pub(super) fn right(cell: &Cell<'_>, said: Option<String>) -> String {
    format!("{:>width$}", alone(cell, said), width = cell.width.min(6))
}

pub(super) fn plain(words: String) -> Line<'static> {
    Line::from(Span::raw(words))
}

pub(super) fn dim(cell: &Cell<'_>, words: String) -> Line<'static> {
    Line::from(span(words, style(cell.model, Role::Dim)))
}

/// The jobs that a row stands for.
pub(super) fn members<'a>(cell: &'a Cell<'_>) -> impl Iterator<Item = &'a JobView> {
    let alone = (!cell.row.is_group()).then_some(cell.job);
    let jobs = cell.model.jobs();
    cell.row.members.iter().filter_map(|at| jobs.get(*at)).chain(alone)
}

pub(super) fn window(cell: &Cell<'_>) -> Line<'static> {
    if cell.row.is_group() {
        let jobs: usize = members(cell).map(JobView::jobs).sum();
        let many = span(format!(" ×{jobs}"), style(cell.model, Role::Dim));
        return Line::from(vec![Span::raw(cell.row.id.window.to_string()), many]);
    }
    let folded = match cell.row.folded {
        0 => String::new(),
        more => format!(" +{more}"),
    };
    let window = Span::raw(cell.job.label());
    Line::from(vec![window, span(folded, style(cell.model, Role::Dim))])
}

/// The name of a job, or else what it runs; of a group the script that its members run.
pub(super) fn known(cell: &Cell<'_>) -> Line<'static> {
    let known = cell.job.known_as().unwrap_or_default();
    let script = known.split(' ').next().filter(|_| cell.row.is_group());
    plain(outside(script.unwrap_or(known)))
}

/// The least that is seen of tags behind a directory: ` #a…`.
const TAGS: usize = 4;

/// The directory with its tags; for an earlier attempt, what became of it.
pub(super) fn dir(cell: &Cell<'_>) -> Line<'static> {
    if cell.row.attempt {
        let younger = cell.job.lineage.iter().skip_while(|id| **id != cell.job.id.window).nth(1);
        let younger = younger.map(|id| format!(" → {id}")).unwrap_or_default();
        return dim(cell, format!("└ attempt{younger}"));
    }
    let mut line = plain(words::dir(cell.job));
    // Of fewer columns than this nobody could tell the tags: the name stands there whole instead.
    let fits = line.width() + TAGS <= cell.width || line.width() > cell.width;
    let tags = cell.job.tags.as_deref().filter(|tags| !cell.own_tags && !tags.is_empty() && fits);
    if let Some(tags) = tags {
        line.push_span(span(format!(" #{}", outside(tags)), style(cell.model, Role::Dim)));
    }
    line
}

pub(super) fn shown_status(cell: &Cell<'_>) -> Line<'static> {
    let status::Shown { glyph, role, .. } = status::of(cell.job);
    if cell.row.is_group() {
        let words = format!("{glyph} {}", groups::counts(members(cell)));
        if text::width(&words) > cell.width {
            return status::in_short(cell.model, &status::tally(members(cell)));
        }
        return Line::from(span(words, style(cell.model, role)));
    }
    Line::from(span(status_text(cell.job), style(cell.model, role)))
}

/// The newest loss of a job, also of one that has ended, unless another attempt tells it.
pub(super) fn loss(job: &JobView) -> Option<String> {
    let goes_on = matches!(job.shown.status, Status::Resumed(_) | Status::Rerunned(_));
    job.shown.progress.loss.filter(|_| !goes_on).map(words::number)
}

/// Glyph and word, with the epoch of a job at work.
pub(super) fn status_text(job: &JobView) -> String {
    let shown = status::of(job);
    if let Some(queued) = &job.shown.queued {
        return format!("{} {}, place {}", shown.glyph, shown.word, queued.position);
    }
    let epoch = job.shown.progress.epoch.filter(|_| shown.word == "running");
    let epoch = epoch.map(|at| format!(" ep {}", words::epoch(at))).unwrap_or_default();
    format!("{} {}{epoch}", shown.glyph, shown.word)
}

/// A bar and a share where there is room, else the share alone.
pub(super) fn progress(cell: &Cell<'_>) -> Line<'static> {
    // Of what another attempt continues, that one tells how far it is.
    let goes_on = matches!(cell.job.shown.status, Status::Resumed(_) | Status::Rerunned(_));
    let done =
        if cell.row.is_group() { mean(members(cell)) } else { done(cell.job).filter(|_| !goes_on) };
    let Some(fraction) = done else {
        return Line::default();
    };
    let percent = format!("{:>5}", words::percent(fraction));
    let mut line = match cell.width.checked_sub(6).filter(|width| *width >= 5) {
        Some(width) => bar(cell.model, fraction, width),
        None => return plain(percent),
    };
    line.push_span(Span::raw(format!(" {percent}")));
    line
}

/// How much of a job is done; of one that has finished, all.
fn done(job: &JobView) -> Option<f64> {
    match job.shown.status {
        Status::Finished => Some(1.0),
        _ => job.shown.progress.fraction(),
    }
}

/// How far the members of a group are together, if anything is known of one; of the others nothing is done.
#[expect(clippy::cast_precision_loss, reason = "a group has few members")]
fn mean<'a>(members: impl Iterator<Item = &'a JobView>) -> Option<f64> {
    let (mut sum, mut all, mut is_known) = (0.0, 0_usize, false);
    for job in members {
        let fraction = done(job);
        is_known |= fraction.is_some();
        sum += fraction.unwrap_or_default();
        all += job.jobs();
    }
    is_known.then(|| sum / all as f64)
}

/// A progress bar of `width` columns, in eighths of a column.
pub(in crate::view) fn bar(model: &Model, fraction: f64, width: usize) -> Line<'static> {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share from 0 to 1 of a small width"
    )]
    let eighths = (fraction.clamp(0.0, 1.0) * (width * 8) as f64) as usize;
    let part = PARTS.get(eighths % 8).copied().unwrap_or_default();
    let done = format!("{}{part}", "█".repeat(eighths / 8));
    let rest = width.saturating_sub(text::width(&done));
    Line::from(vec![
        span(done, style(model, Role::BarDone)),
        span("░".repeat(rest), style(model, Role::BarTodo)),
    ])
}
