//! Several jobs in one panel, a line for each: the members of a group, or those on a target. Of a group it is told in what its
//! members differ, and which of them has come to the lowest loss.

use std::collections::HashMap;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::spans::{dotted, outside, span, wrap};
use super::{narrowed, panel, stack, status, style, words};
use crate::keys::{Command, Context};
use crate::model::Model;
use crate::tabs::Tab;
use crate::theme::Role;
use tpu_core::model::groups;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// Draws the members of the selected group, the one first that somebody wants to see first.
pub(super) fn group(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let mut members = model.selected_members();
    members.sort_by_key(|job| groups::urgency(job));
    let (Some(worst), Some(id)) = (members.first(), &model.list.selected) else { return };
    let number = if model.everybody() { id.to_string() } else { id.window.to_string() };
    let jobs: usize = members.iter().map(|job| job.jobs()).sum();
    let many = format!("{jobs} members");
    let name = worst.name.clone().unwrap_or_default();
    let title = match model.selected_head() {
        Some(head) => dotted([outside(head), text::counted(jobs, "job")]),
        None => dotted([number, name, words::dir(worst), outside(&worst.target_label), many]),
    };
    render(frame, model, &members, &title, area);
}

/// Draws how several jobs are, one on each line.
pub(super) fn render(
    frame: &mut Frame<'_>,
    model: &Model,
    members: &[&JobView],
    title: &str,
    area: Rect,
) {
    let inner = narrowed(panel(frame, model, area, Line::from(format!(" {title} "))));
    let base = style(model, Role::Base);
    let lowest = lowest(members);
    let best = lowest.and_then(|at| members.get(at));
    let legend = best.map(|job| format!("{LOWEST} lowest loss: {}", outside(&job.label())));
    let legend = legend.unwrap_or_default();
    let counts = dotted([groups::counts(members.iter().copied()), legend]);
    let counts = wrap(&counts, usize::from(inner.width)).into_iter();
    let mut lines: Vec<Line<'static>> = counts.map(|line| Line::from(span(line, base))).collect();
    lines.push(Line::default());
    // Counts and an empty line above them; if not all fit, a line that says so below them.
    let room = usize::from(inner.height);
    let fit = room.saturating_sub(lines.len());
    let count = if members.len() > fit { fit.saturating_sub(1) } else { members.len() };
    let shown = members.get(..count).unwrap_or_default();
    lines.extend(rows(model, shown, &differing(members), lowest, usize::from(inner.width)));
    if let Some(hidden) = members.get(count..).filter(|hidden| !hidden.is_empty()) {
        let (key, does) = match model.tab {
            Tab::Jobs => (model.setup.key(Context::List, Command::Unfold), "unfolds them"),
            _ => (model.setup.key(Context::Targets, Command::Details), "goes to them"),
        };
        let more = format!("… and {} more ({key} {does})", hidden.len());
        lines.push(Line::from(span(more, style(model, Role::Dim))));
    }
    stack(frame, inner, lines);
}

/// Stands behind the lowest loss.
const LOWEST: &str = "◂";
/// What a loss takes with its name and its mark.
const LOSS: usize = 13;

/// Name, status, in what they differ, loss, and how far each is. Where that has no room, the status is its sign alone.
fn rows(
    model: &Model,
    members: &[&JobView],
    differ: &[String],
    lowest: Option<usize>,
    room: usize,
) -> Vec<Line<'static>> {
    let label = |job: &JobView| match job.jobs() {
        1 if model.tab == Tab::Jobs => job.label(),
        1 => outside(&job.called()),
        several => format!("×{several}"),
    };
    let mut cells: Vec<[String; 3]> = members
        .iter()
        .zip(differ)
        .map(|(job, differ)| {
            let shown = status::of(job);
            [label(job), format!("{} {}", shown.glyph, shown.word), outside(differ)]
        })
        .collect();
    let mut widths = widest(&cells);
    if lowest.is_some() && widths.iter().map(|width| width + 2).sum::<usize>() + LOSS > room {
        for ([_, word, _], job) in cells.iter_mut().zip(members) {
            status::of(job).glyph.clone_into(word);
        }
        widths = widest(&cells);
    }
    let base = style(model, Role::Base);
    let line = |(at, (job, cells)): (usize, (&&JobView, &[String; 3]))| {
        let styles = [base, style(model, status::of(job).role), base];
        let mut line = Line::default();
        for ((cell, width), style) in
            cells.iter().zip(widths).zip(styles).filter(|((_, w), _)| *w > 0)
        {
            line.push_span(span(format!("{}  ", text::fit(cell, width)), style));
        }
        let said = match &job.shown.queued {
            Some(queued) => words::waits(model, job, queued),
            None => words::progress_with(job, model.traces.of(job)),
        };
        let loss = loss(job).map(|loss| format!("loss {}", words::number(loss)));
        let has_loss = loss.is_some();
        line.push_span(span(loss.unwrap_or_default(), base));
        if lowest == Some(at) {
            line.push_span(span(format!(" {LOWEST}"), style(model, Role::Key)));
        }
        let part = if has_loss && !said.is_empty() { " · " } else { "" };
        line.push_span(span(format!("{part}{said}"), base));
        line
    };
    members.iter().zip(&cells).enumerate().map(line).collect()
}

fn widest(cells: &[[String; 3]]) -> [usize; 3] {
    let of = |at: usize| cells.iter().filter_map(move |cells| cells.get(at));
    [0, 1, 2].map(|at| of(at).map(|cell| text::width(cell)).max().unwrap_or_default())
}

fn loss(job: &JobView) -> Option<f64> {
    job.shown.progress.loss.filter(|loss| loss.is_finite())
}

/// Which of the members of one group has the lowest loss, where at least two have one.
fn lowest(members: &[&JobView]) -> Option<usize> {
    if !are_one_group(members) || members.iter().filter(|job| loss(job).is_some()).count() < 2 {
        return None;
    }
    let known = members.iter().enumerate().filter_map(|(at, job)| Some((at, loss(job)?)));
    known.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(at, _)| at)
}

fn are_one_group(members: &[&JobView]) -> bool {
    let of = |job: &&JobView| groups::of(job);
    members.len() > 1
        && members.windows(2).all(|two| two.first().and_then(of) == two.last().and_then(of))
        && members.first().and_then(of).is_some()
}

/// The arguments of each that are not those of all, by the last parts of their names: `learning_rate=0.01`.
fn differing(members: &[&JobView]) -> Vec<String> {
    if !are_one_group(members) {
        return vec![String::new(); members.len()];
    }
    let each: Vec<Vec<String>> =
        members.iter().map(|job| shlex::split(&job.configs).unwrap_or_default()).collect();
    let mut times: HashMap<&str, usize> = HashMap::new();
    for word in each.iter().flatten() {
        *times.entry(word).or_default() += 1;
    }
    let is_own = |word: &&String| times.get(word.as_str()).is_some_and(|times| *times < each.len());
    let short = |word: &String| match word.split_once('=') {
        Some((key, value)) => {
            let key = key.trim_start_matches('-').rsplit('.').next().unwrap_or_default();
            format!("{key}={value}")
        }
        None => word.clone(),
    };
    each.iter()
        .map(|words| words.iter().filter(is_own).map(short).collect::<Vec<_>>().join(" "))
        .collect()
}
