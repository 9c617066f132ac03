//! Lineages over time: attempts as bars, failures as marks, and how much of the time was productive.
//!
//! ```text
//! ┌ Lineages ────────────────────────────────────┐
//! │ 7  imagenet   ████◆ ███▲████████●   94 %     │
//! │               08:00      12:00     14:02     │
//! └──────────────────────────────────────────────┘
//! ```

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::spans::{cut, outside, span};
use super::{lower_border, panel, style, tabs, words};
use crate::model::Model;
use crate::rows::Row;
use crate::tabs::Tab;
use crate::theme::Role;
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// The shortest time that is shown, in seconds.
const LEAST_S: i64 = 60;

/// One attempt on the line.
struct Attempt<'a> {
    job: &'a JobView,
    begin: Timestamp,
    end: Timestamp,
    /// When it was at work; the rest it has waited.
    worked: Vec<(Timestamp, Timestamp)>,
}

impl Attempt<'_> {
    fn worked_s(&self) -> u64 {
        self.worked.iter().map(|(from, to)| to.seconds_since(*from)).sum()
    }
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
        found.push(Attempt { job, begin, end: end.max(begin), worked: Vec::new() });
    }
    for attempt in &mut found {
        attempt.worked = at_work(attempt);
    }
    found
}

/// When an attempt was at work: from its beginning to its end, unless its engine has let it wait.
fn at_work(attempt: &Attempt<'_>) -> Vec<(Timestamp, Timestamp)> {
    let Attempt { job, begin, end, .. } = attempt;
    let Some(worked) = &job.worked else { return vec![(*begin, *end)] };
    let inside = worked.iter().map(|of| (of.from.max(*begin), of.until.unwrap_or(*end).min(*end)));
    inside.filter(|(from, to)| from <= to).collect()
}

/// The share of the time since the first attempt was at work in which the run got on: attempts at work, without the
/// steps that had to be done again. `None` when nothing has been at work, and until the logs of several attempts have
/// been read: what was done again is not known before.
pub(super) fn goodput(model: &Model, job: &JobView) -> Option<f64> {
    let attempts = attempts(model, job);
    let first = attempts.iter().find_map(|attempt| attempt.worked.first())?.0;
    let wall = attempts.last()?.end.seconds_since(first);
    let trace = model.traces.of(job);
    if attempts.len() > 1 && trace.is_none_or(|trace| trace.read.is_none()) {
        return None;
    }
    let mut productive = 0.0;
    for attempt in &attempts {
        let redone = trace.map_or(0.0, |trace| trace.curves.loss.redone(attempt.job.id.window));
        #[expect(clippy::cast_precision_loss, reason = "seconds of a run fit a float")]
        let lasted = attempt.worked_s() as f64;
        productive += lasted * (1.0 - redone);
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds of a run fit a float")]
    let wall = wall as f64;
    (wall > 0.0).then(|| (productive / wall).clamp(0.0, 1.0))
}

/// The glyph at the end of an attempt.
pub(super) fn mark(job: &JobView) -> (&'static str, Role) {
    let of = |kind: ErrorKind| match kind {
        ErrorKind::Preempted | ErrorKind::NoCapacity => ("◆", Role::Warning),
        _ => ("▲", Role::Error),
    };
    match &job.shown.status {
        _ if job.shown.pending.is_some() => ("·", Role::Dim),
        Status::Error(kind) | Status::Resumed(Some(kind)) | Status::Rerunned(Some(kind)) => {
            of(*kind)
        }
        Status::Resumed(None) | Status::Rerunned(None) => ("↻", Role::Superseded),
        Status::Finished => ("✓", Role::Finished),
        Status::Killed(_) => ("○", Role::Killed),
        Status::Running | Status::Starting | Status::Unset => ("●", Role::Running),
    }
}

/// The lineage of a job between two instants, `width` columns wide; where nothing else stands, the cursor does.
fn line_between(
    model: &Model,
    job: &JobView,
    (from, to): (Timestamp, Timestamp),
    (width, cursor): (usize, Option<Timestamp>),
) -> Line<'static> {
    let span_s = to.seconds_since(from).max(1);
    let column = |at: Timestamp| {
        let share = u128::from(at.seconds_since(from)) * (width.saturating_sub(1)) as u128;
        usize::try_from(share / u128::from(span_s)).unwrap_or(0).min(width.saturating_sub(1))
    };
    let blank = (" ", Role::Dim);
    let mut cells = vec![blank; width];
    let attempts = attempts(model, job);
    let is_seen = |begin: Timestamp, end: Timestamp| end >= from && begin <= to;
    if let (Some(first), Some(last)) = (attempts.first(), attempts.last())
        && is_seen(first.begin, last.end)
    {
        let whole = cells.iter_mut().take(column(last.end) + 1).skip(column(first.begin));
        whole.for_each(|cell| *cell = ("·", Role::Dim));
    }
    for attempt in attempts.iter().filter(|attempt| is_seen(attempt.begin, attempt.end)) {
        for (begin, end) in attempt.worked.iter().filter(|(begin, end)| is_seen(*begin, *end)) {
            let bar = cells.iter_mut().take(column(*end) + 1).skip(column(*begin));
            bar.for_each(|cell| *cell = ("█", Role::BarDone));
        }
    }
    // Marks last, so that no later attempt covers them.
    for attempt in attempts.iter().filter(|attempt| is_seen(attempt.end, attempt.end)) {
        if let Some(cell) = cells.get_mut(column(attempt.end)) {
            *cell = mark(attempt.job);
        }
    }
    if let Some(cell) =
        cursor.filter(|at| is_seen(*at, *at)).and_then(|at| cells.get_mut(column(at)))
        && [" ", "·"].contains(&cell.0)
    {
        *cell = ("│", Role::Title);
    }
    cells.into_iter().map(|(glyph, role)| Span::styled(glyph, style(model, role))).collect()
}

/// The lineage of one job over its own time.
pub(super) fn line(model: &Model, job: &JobView, width: usize) -> Option<Line<'static>> {
    let attempts = attempts(model, job);
    let (first, last) = (attempts.first()?, attempts.last()?);
    Some(line_between(model, job, (first.begin, last.end), (width, None)))
}

/// How many lineages there are to draw.
pub(super) fn count(model: &Model) -> usize {
    lineages(model).len()
}

/// The leaves of the lineages that have begun, as the list has them: in its order, as far as its filter lets them
/// through.
fn lineages(model: &Model) -> Vec<&JobView> {
    let jobs = model.jobs();
    // Only an attempt whose leaf has no row of its own needs to be looked for.
    let places: LazyCell<HashMap<&JobId, usize>, _> =
        LazyCell::new(|| jobs.iter().enumerate().map(|(at, job)| (&job.id, at)).collect());
    let leaf_of = |row: &Row| {
        let job = jobs.get(row.job).filter(|_| row.attempt)?;
        let leaf = JobId::new(job.id.user.clone(), *job.lineage.last()?);
        places.get(&leaf).copied()
    };
    let mut known = HashSet::new();
    let rows = model.list.rows.iter().filter(|row| row.can_be_chosen());
    let shown = rows.flat_map(|row| match row.members.as_slice() {
        [] => vec![leaf_of(row).unwrap_or(row.job)],
        members => members.to_vec(),
    });
    let shown = shown.filter(|at| known.insert(*at)).filter_map(|at| jobs.get(at));
    shown.filter(|job| job.started_at.is_some()).collect()
}

/// When the first attempt of any of these lineages began.
fn first_begin(model: &Model, leaves: &[&JobView]) -> Option<Timestamp> {
    let ids: HashSet<(&UserName, JobNumber)> = leaves
        .iter()
        .flat_map(|job| job.lineage.iter().map(|window| (&job.id.user, *window)))
        .collect();
    let known = model.jobs().iter().filter(|job| ids.contains(&(&job.id.user, job.id.window)));
    known.filter_map(|job| job.started_at).min()
}

/// The event that is chosen: its instant, and the lineage of the job that it is about.
fn cursor(model: &Model) -> Option<(Timestamp, Option<JobId>)> {
    let row = model.boards.chosen(Tab::Events)?;
    let event = model.boards.events.seen.as_ref()?.get(row.at)?;
    let job = event.user.clone().zip(event.job).map(|(user, window)| JobId::new(user, window));
    Some((event.at, job))
}

/// The time that is shown: all of it, or a part around the cursor, half as long with each step closer.
fn shown_time(
    model: &Model,
    (from, to): (Timestamp, Timestamp),
    at: Option<Timestamp>,
) -> (Timestamp, Timestamp) {
    let whole = i64::try_from(to.seconds_since(from)).unwrap_or(i64::MAX);
    let shown = (whole >> model.boards.zoom.min(62)).max(LEAST_S.min(whole));
    let middle = at.unwrap_or(to).clamp(from, to);
    let begin = middle.plus_seconds(-(shown / 2)).max(from);
    let end = begin.plus_seconds(shown).min(to);
    (end.plus_seconds(-shown).max(from), end)
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
    let all = lineages(model);
    let cursor = cursor(model);
    let is_chosen = |job: &JobView| {
        let id = cursor.as_ref().and_then(|(_, id)| id.as_ref());
        id.is_some_and(|id| id.user == job.id.user && job.lineage.contains(&id.window))
    };
    // The run of the chosen event is in sight.
    let chosen = all.iter().position(|job| is_chosen(job)).unwrap_or(0);
    let top = (chosen + 1).saturating_sub(rows);
    let Some(from) = first_begin(model, &all) else { return };
    let at = cursor.as_ref().map(|(at, _)| *at);
    let (from, to) = shown_time(model, (from, model.now), at);
    let leaves: Vec<&JobView> = all.iter().copied().skip(top).take(rows).collect();
    let label = |job: &JobView| {
        let id = if model.everybody() { job.id.to_string() } else { job.label() };
        let known = words::known(job);
        format!("{} {}", outside(&id), if known.is_empty() { words::dir(job) } else { known })
    };
    let widest = leaves.iter().map(|job| text::width(&label(job))).max().unwrap_or(0).min(24);
    let width = usize::from(inner.width).saturating_sub(widest + 10);
    for (y, job) in (inner.y..inner.bottom()).zip(&leaves) {
        let role = if is_chosen(job) { Role::Title } else { Role::Base };
        let point = if is_chosen(job) { "▸" } else { " " };
        let name = format!("{point}{} ", text::fit(&label(job), widest));
        let mut line = Line::from(span(name, style(model, role)));
        line.spans.extend(line_between(model, job, (from, to), (width, at)).spans);
        let share = goodput(model, job).map(words::percent).unwrap_or_default();
        line.push_span(span(format!(" {share:>6}"), style(model, Role::Dim)));
        frame.render_widget(cut(line, usize::from(inner.width)), Rect { y, height: 1, ..inner });
    }
    let (left, right) = (clock(model, from, to), clock(model, to, to));
    let gap = width.saturating_sub(text::width(&left) + text::width(&right));
    let more = match all.len() - leaves.len() {
        0 => String::new(),
        _ => format!("{}–{}/{}", top + 1, top + leaves.len(), all.len()),
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
