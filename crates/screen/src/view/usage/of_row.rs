//! The figures of the chosen row in words, and its failures by kind and by line.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::spans::{outside, push_cell, span};
use super::super::{stack, style};
use super::{bar, chosen, head};
use crate::model::Model;
use crate::theme::Role;
use tpu_core::plan::stats::StatsRow;
use tpu_core::plan::stats::figures::Figures;
use tpu_core::text;
use tpu_core::text::counted;

/// Columns of the words before the figures.
const LABEL: usize = 10;
/// From this width on, figures and failures stand side by side where there is no room below each other.
const BESIDE: u16 = 56;
/// Columns of the figures then.
const FIGURES: u16 = 40;
/// The longest bar of a kind of failure.
const LONGEST_BAR: usize = 40;

/// Rows that all of it takes.
pub(super) fn height(model: &Model, area: Rect) -> u16 {
    let Some(row) = chosen(model) else { return 0 };
    let failures = failures(model, &row.figures, usize::from(area.width.saturating_sub(2)));
    let lines = figures(model, &row.figures).len() + 1 + failures.len();
    u16::try_from(lines).unwrap_or(u16::MAX)
}

/// Draws all of it; side by side where it does not fit below each other.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect, row: &StatsRow) {
    let told = figures(model, &row.figures);
    let kinds = failures(model, &row.figures, usize::from(area.width));
    let is_low = told.len() + 1 + kinds.len() > usize::from(area.height);
    if is_low && area.width >= BESIDE {
        let left = Rect { width: FIGURES.min(area.width * 3 / 5), ..area };
        let right = Rect { x: left.right(), width: area.width - left.width, ..area };
        stack(frame, left, told);
        stack(frame, right, failures(model, &row.figures, usize::from(right.width)));
    } else {
        stack(frame, area, told.into_iter().chain([Line::default()]).chain(kinds));
    }
}

/// Goodput, waits, preemptions and ends; short enough for the narrowest panel.
fn figures(model: &Model, of: &Figures) -> Vec<Line<'static>> {
    let line = |label: &str, words: String| {
        let label = span(format!(" {label:<LABEL$} "), style(model, Role::Dim));
        Line::from(vec![label, Span::raw(words)])
    };
    let good = match of.got_on.share() {
        Some(_) => {
            let runs = counted(of.got_on.lineages as usize, "run");
            format!("{} over {runs}", of.goodput_in_words())
        }
        None => "nobody can tell".to_owned(),
    };
    let waited = match of.queue.count {
        0 => "nobody can tell".to_owned(),
        count => format!("{} each, {}", of.waited_in_words(), how_often(count)),
    };
    let capacity = match (of.capacity.count, of.in_vain) {
        (0, 0) => "none was made for it".to_owned(),
        (0, vain) => format!("none came, {vain} in vain"),
        (came, 0) => format!("{} each, {}", of.capacity.mean_in_words(), how_often(came)),
        (came, vain) => {
            format!("{} each, {came} of {} came", of.capacity.mean_in_words(), came + vain)
        }
    };
    let preempted = match of.preemptions {
        0 => "never".to_owned(),
        count => format!("{}, {}/h", how_often(count), of.rate_in_words()),
    };
    let back = match of.recoveries.count {
        0 => "nothing began again".to_owned(),
        count => format!("{} each, {}", of.recoveries.mean_in_words(), how_often(count)),
    };
    let well =
        of.finished_share().map(|share| format!(" ({})", tpu_core::model::facts::percent(share)));
    let ended = format!(
        "{} well, {} failed, {} stopped{}",
        of.finished,
        of.failed,
        of.killed,
        well.unwrap_or_default()
    );
    vec![
        line("goodput", good),
        line("waited", waited),
        line("to target", capacity),
        line("preempted", preempted),
        line("back after", back),
        line("ended", ended),
    ]
}

fn how_often(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        several => format!("{several} times"),
    }
}

/// Failures by kind as bars, and the lines by which most of them came.
fn failures(model: &Model, of: &Figures, width: usize) -> Vec<Line<'static>> {
    let mut kinds: Vec<(&str, u32)> = of.failures.iter().map(|(kind, n)| (*kind, *n)).collect();
    kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(*count), *kind));
    let Some((_, most)) = kinds.first().copied() else {
        return vec![head(model, "nothing failed".to_owned())];
    };
    let label = kinds.iter().map(|(kind, _)| text::width(kind)).max().unwrap_or(0);
    let told = most.to_string().len();
    let cells = width.saturating_sub(label + told + 4).clamp(1, LONGEST_BAR);
    let mut lines = vec![head(model, "failures by kind".to_owned())];
    for (kind, count) in kinds {
        let mut line = Line::raw(" ");
        push_cell(&mut line, Line::raw(kind), (label, 1));
        push_cell(&mut line, bar(model, (f64::from(count), f64::from(most)), cells), (cells, 1));
        line.push_span(Span::raw(format!("{count:>told$}")));
        lines.push(line);
    }
    for of in &of.lines {
        let said = format!(" {}× {}: {}", of.times, of.kind, outside(of.line.trim()));
        lines.push(Line::from(span(said, style(model, Role::Dim))));
    }
    lines
}
