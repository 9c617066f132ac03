//! Two runs beside each other: where they differ, and their losses over each other.

use std::collections::BTreeSet;

use ratatui::text::{Line, Span};

use super::curve::Axes;
use super::spans::{cut, dotted, outside, span};
use super::{status, style, timeline, words};
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::curve::Point;
use tpu_core::model::ids::JobId;
use tpu_core::model::time;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// Rows of the chart where there is room.
const CHART: usize = 16;

/// A fact about one of the two.
type Fact = fn(&Model, &JobView) -> String;

/// The lines of the comparison.
pub(super) fn lines(
    model: &Model,
    (first, second): (&JobId, &JobId),
    (width, height): (usize, usize),
) -> Vec<Line<'static>> {
    let (Some(a), Some(b)) = (model.job(first), model.job(second)) else {
        return vec![Line::from("One of the two is no longer there.")];
    };
    let mut lines = vec![heads(model, a, b, width)];
    let facts: [(&str, Fact); 10] = [
        ("status", |_, job| status::of(job).word),
        ("target", |_, job| job.target.as_str().to_owned()),
        ("directory", |_, job| job.dir.1.clone()),
        ("tags", |_, job| job.tags.clone().unwrap_or_default()),
        ("rule", |_, job| job.rules.to_string()),
        ("age", |_, job| job.age_s.map(time::age).unwrap_or_default()),
        ("attempts", |_, job| job.lineage.len().to_string()),
        ("progress", |_, job| words::progress(job)),
        ("loss", |_, job| job.shown.progress.loss.map(words::number).unwrap_or_default()),
        ("goodput", |model, job| {
            timeline::goodput(model, job).map(words::percent).unwrap_or_default()
        }),
    ];
    for (name, fact) in facts {
        lines.push(row(model, name, (&fact(model, a), &fact(model, b)), width));
    }
    for (name, left, right) in configs(a, b) {
        lines.push(row(model, &name, (&left, &right), width));
    }
    lines.push(Line::default());
    let curve = |job: &JobView| {
        model.traces.of(job).map(|trace| trace.curves.loss.whole()).unwrap_or_default()
    };
    let (one, other): (Vec<Point>, Vec<Point>) = (curve(a), curve(b));
    let rows = height.saturating_sub(lines.len()).clamp(6, CHART);
    let axes = Axes { curves: [&one, &other], steps: None, cursor: None, bars: Vec::new() };
    lines.extend(axes.lines(model, (width, rows)));
    lines
}

/// Width of the names and of each of the two columns.
fn columns(width: usize) -> (usize, usize) {
    let names = (width / 4).clamp(10, 30);
    (names, width.saturating_sub(names + 2) / 2)
}

fn heads(model: &Model, a: &JobView, b: &JobView, width: usize) -> Line<'static> {
    let (names, each) = columns(width);
    let head =
        |job: &JobView| dotted([outside(&job.id.to_string()), words::known(job), words::dir(job)]);
    Line::from(vec![
        Span::raw(" ".repeat(names + 1)),
        span(format!("{} ", text::fit(&head(a), each)), style(model, Role::Starting)),
        span(text::fit(&head(b), each), style(model, Role::Marked)),
    ])
}

/// One fact of both; where they differ, with a mark.
fn row(model: &Model, name: &str, (left, right): (&str, &str), width: usize) -> Line<'static> {
    let (names, each) = columns(width);
    let differ = left != right;
    let mark = if differ { "≠ " } else { "  " };
    let role = style(model, if differ { Role::Base } else { Role::Dim });
    let name = format!("{mark}{}", outside(name));
    let line = Line::from(vec![
        span(text::fit(&name, names), style(model, if differ { Role::Key } else { Role::Dim })),
        span(format!(" {} ", text::fit(&outside(left), each)), role),
        span(text::fit(&outside(right), each), role),
    ]);
    cut(line, width)
}

/// The config arguments of both, those first that differ.
fn configs(a: &JobView, b: &JobView) -> Vec<(String, String, String)> {
    let read = |job: &JobView| -> Vec<(String, String)> {
        let words = shlex::split(&job.configs)
            .unwrap_or_else(|| job.configs.split_whitespace().map(str::to_owned).collect());
        let pair = |word: &String| {
            let word = word.trim_start_matches('-');
            let (key, value) = word.split_once('=').unwrap_or((word, "set"));
            (key.to_owned(), value.to_owned())
        };
        words.iter().map(pair).collect()
    };
    let (left, right) = (read(a), read(b));
    let keys: BTreeSet<&String> = left.iter().chain(&right).map(|(key, _)| key).collect();
    let value = |all: &[(String, String)], key: &String| {
        all.iter()
            .rfind(|(known, _)| known == key)
            .map(|(_, value)| value.clone())
            .unwrap_or_default()
    };
    let mut rows: Vec<_> =
        keys.into_iter().map(|key| (key.clone(), value(&left, key), value(&right, key))).collect();
    rows.sort_by_key(|(_, left, right)| left == right);
    rows
}
