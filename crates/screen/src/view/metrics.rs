//! What a run measures, as a chart over its steps.
//!
//! ```text
//! ── loss · lr · acc ─────────── ] next       which of them
//!      ████████████▲█████████◆███████●       the attempts, each over the steps that it has done
//! 3.2 │⢇
//!     │ ⠑⢄
//! 0.3 │   ⠉⠒⠤⠤⠤⣀⣀⣀⣀⣀
//!      step 0          6000         12000
//! 0.325 at step 11900 · lowest 0.325
//! ```

use std::collections::{HashMap, HashSet};

use ratatui::text::Line;

use super::curve::{Axes, Bar};
use super::spans::{cut, dotted, outside, span};
use super::{style, timeline, words};
use crate::chart::Looked;
use crate::keys::{Command, Context};
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::ids::JobNumber;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// Rows beside those of the axes: the head, and what the cursor is at.
const AROUND: usize = 2;
/// Fewer rows than this show no curve.
pub(super) const LEAST: usize = 7;
/// More rows than this show no more of one.
pub(super) const MOST: usize = 16;

/// Whether a job has measured anything that can be drawn.
pub(super) fn are_there(model: &Model, job: &JobView) -> bool {
    let measured = || model.traces.of(job).is_some_and(|trace| !trace.curves.metrics().is_empty());
    model.selected_members().is_empty() && measured()
}

/// What the selected job's chart shows, where the detail has the full width.
pub(super) fn look<'a>(model: &'a Model, job: &JobView) -> Option<Looked<'a>> {
    let curves = &model.traces.of(job).filter(|_| model.wide)?.curves;
    model.chart.look(curves)
}

/// The chart in so many columns and rows.
pub(super) fn lines(
    model: &Model,
    job: &JobView,
    looked: &Looked<'_>,
    (width, height): (usize, usize),
) -> Vec<Line<'static>> {
    let shown = looked.shown();
    let axes = Axes {
        curves: [&shown, &[]],
        steps: Some(looked.steps),
        cursor: looked.cursor.map(|point| point.step),
        bars: bars(model, job, looked),
    };
    let mut lines = vec![head(model, looked, width)];
    lines.extend(axes.lines(model, (width, height.saturating_sub(AROUND))));
    lines.push(cut(Line::from(span(foot(looked), style(model, Role::Base))), width));
    lines
}

/// The names of all metrics; as many as fit, from the one that is shown on.
fn head(model: &Model, looked: &Looked<'_>, width: usize) -> Line<'static> {
    let border = style(model, Role::Border);
    let key = |command| model.setup.key(Context::Detail, command);
    let keys = format!(" {} next ", key(Command::NextMetric));
    let keys = if looked.names.len() > 1 { keys } else { String::new() };
    let room = width.saturating_sub(text::width(&keys) + 4);
    let names = |from: usize| -> Line<'static> {
        let mut line = Line::from(span("── ", border));
        for (at, name) in looked.names.iter().enumerate().skip(from) {
            let role = if at == looked.at { Role::Title } else { Role::Dim };
            let parted = if at > from { " · " } else { "" };
            line.push_span(span(parted, border));
            line.push_span(span(outside(name), style(model, role)));
        }
        line
    };
    let whole = names(0);
    let line = if whole.width() <= room { whole } else { names(looked.at) };
    let mut line = cut(line, room);
    let rest = width.saturating_sub(line.width() + text::width(&keys) + 1);
    line.push_span(span(format!(" {}", "─".repeat(rest)), border));
    line.push_span(span(keys, style(model, Role::Dim)));
    line
}

/// The attempts, each from its first step to its last; none if there was but one.
fn bars(model: &Model, job: &JobView, looked: &Looked<'_>) -> Vec<Bar> {
    if looked.curve.parts.len() < 2 {
        return Vec::new();
    }
    let windows: HashSet<JobNumber> = looked.curve.parts.iter().map(|part| part.window).collect();
    let is_attempt =
        |one: &&JobView| windows.contains(&one.id.window) && one.id.user == job.id.user;
    let attempts = model.jobs().iter().filter(is_attempt);
    let attempts: HashMap<JobNumber, &JobView> = attempts.map(|one| (one.id.window, one)).collect();
    let parts = looked.curve.parts.iter().filter_map(|part| {
        let (first, last) = (part.points.first()?, part.points.last()?);
        let attempt = attempts.get(&part.window);
        let mark = attempt.map_or(("·", Role::Dim), |attempt| timeline::mark(attempt));
        Some(Bar { steps: (first.step, last.step), mark })
    });
    parts.collect()
}

/// What stands at the cursor, else at the end, and between which bounds all of it is.
fn foot(looked: &Looked<'_>) -> String {
    let at = looked.cursor.or(looked.points.last().copied());
    let value =
        at.map(|at| format!("{} at step {}", words::number(at.value), words::number(at.step)));
    let shown = looked.shown();
    let bound = |word: &str, low: bool| {
        let order = |a: &f64, b: &f64| if low { a.total_cmp(b) } else { b.total_cmp(a) };
        let most = shown.iter().min_by(|a, b| order(&a.value, &b.value))?;
        Some(format!("{word} {} at {}", words::number(most.value), words::number(most.step)))
    };
    dotted([value, bound("lowest", true), bound("highest", false)].into_iter().flatten())
}
