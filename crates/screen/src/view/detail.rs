//! One job in detail, and below it the end of its pane.
//!
//! ```text
//! ┌ 7 · v2-32-p2 · baseline ───────────────────────┐
//! │ ● running · epoch 31/100 · 4.2 it/s · ETA 3h   │  what it does
//! │ ██████░░░░░░░░░ 31 %   loss 0.412 · lr 1e-3    │
//! │ stage 2 · resumed from 5, 6 · rule pre         │  what it is
//! │ ── output ──────────────────────────────────── │
//! │ step 12000 loss 0.412                          │  what it says
//! └────────────────────────────────────────────────┘
//! ```

use std::collections::HashSet;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::layout::Layout;
use super::spans::{cut, dotted, outside, push_cell, span, wrap};
use super::{
    columns, curve, evidence, machines, members, metrics, narrowed, panel, stack, status, style,
    timeline, words,
};
use crate::chart::Looked;
use crate::keys::{Command, Context};
use crate::model::{Model, board_jobs};
use crate::pane::PaneText;
use crate::rows;
use crate::tabs::Tab;
use crate::theme::Role;
use tpu_core::model::ids::JobId;
use tpu_core::model::time;
use tpu_core::model::view::JobView;
use tpu_core::text;

/// From this width on, a chart stands beside the facts.
const BESIDE: usize = 100;
/// Columns between them.
const GAP: usize = 2;
/// So many more rows have arguments that do not fit into one.
const ARGS: usize = 3;
/// Rows of output that stay.
const OUTPUT: usize = 5;

/// Draws the selected job into its area.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let Some(job) = model.selected() else {
        let inner = panel(frame, model, area, Line::from(" Detail "));
        frame.render_widget(Line::from(" No job is selected."), inner);
        return;
    };
    if !model.selected_members().is_empty() {
        return members::group(frame, model, area);
    }
    one(frame, model, job, area);
}

/// Draws what the chosen row of a tab beside the jobs is about: the job, or those at work on the target and those that wait
/// for it.
pub(super) fn about(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let row = model.boards.chosen(model.tab);
    let ids: HashSet<JobId> = row.iter().flat_map(|row| board_jobs(model, row)).collect();
    let targets = model.boards.targets.seen.as_ref().filter(|_| model.tab == Tab::Targets);
    let target = row.and_then(|row| targets?.targets.get(row.at));
    let wait = |job: &JobView| job.is_queued() || job.shown.pending.is_some();
    let is_for =
        |job: &JobView| target.is_some_and(|target| target.is_known && job.target == target.target);
    // At work first, then what waits.
    let all = || model.jobs().iter();
    let mut jobs: Vec<&JobView> = all().filter(|job| ids.contains(&job.id)).collect();
    jobs.extend(all().filter(|job| wait(job) && is_for(job) && !ids.contains(&job.id)));
    // What a plan is about may be older than the newest look.
    let plans = model.boards.plan.seen.as_ref().filter(|_| model.tab == Tab::Plan);
    let planned = row.filter(|_| jobs.is_empty()).and_then(|row| plans?.jobs.get(row.at));
    jobs.extend(planned.map(|entry| &entry.view));
    let label = target.map(|target| outside(&target.label)).unwrap_or_default();
    match jobs.as_slice() {
        [] => {
            let inner = panel(frame, model, area, Line::from(format!(" {label} ")));
            let nobody = match target {
                Some(_) => "None of the jobs that are shown is at work there or waits for it.",
                None => "It is not among the jobs that are shown.",
            };
            stack(frame, narrowed(inner), vec![Line::from(span(nobody, style(model, Role::Dim)))]);
        }
        [job] => one(frame, model, job, area),
        several => {
            let count: usize = several.iter().map(|job| job.jobs()).sum();
            let title = dotted([label, text::counted(count, "job")]);
            members::render(frame, model, several, &title, area);
        }
    }
}

/// Draws one job.
fn one(frame: &mut Frame<'_>, model: &Model, job: &JobView, area: Rect) {
    let tags = job.tags.as_deref().map(|tags| format!("#{}", outside(tags))).unwrap_or_default();
    let window = if model.everybody() { job.called() } else { job.label() };
    let title = dotted([
        outside(&window),
        words::known(job),
        words::dir(job),
        outside(&job.target_label),
        tags,
    ]);
    let inner = narrowed(panel(frame, model, area, Line::from(format!(" {title} "))));
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    if let Some(looked) = metrics::look(model, job) {
        let lines = with_chart(model, job, &looked, (width, height));
        return stack(frame, inner, lines);
    }
    // Facts take at most half of a small panel: the output is what people look for there. In full width they
    // are what somebody asked for.
    let most = (height / 2).max(4).max(if model.wide { height.saturating_sub(5) } else { 0 });
    let mut facts = facts(model, job, width, true);
    let hidden = facts.len().saturating_sub(most);
    facts.truncate(most);
    let output_rows = height.saturating_sub(facts.len() + 1);
    let mut lines = facts;
    lines.push(divider(model, job, width, hidden));
    lines.extend(output(model, job).newest_rows(width, output_rows));
    stack(frame, inner, lines);
}

/// Whether there is a chart on the screen.
pub(crate) fn shows_chart(model: &Model) -> bool {
    let (Some(area), Some(job)) = (Layout::of(model).detail, model.selected()) else {
        return false;
    };
    // Frame and margin.
    let size =
        (usize::from(area.width.saturating_sub(4)), usize::from(area.height.saturating_sub(2)));
    metrics::look(model, job).is_some()
        && (is_beside(size)
            || rows_below(model, facts(model, job, size.0, false).len(), size.1) > 0)
}

/// Whether a chart stands beside the facts.
fn is_beside((width, height): (usize, usize)) -> bool {
    width >= BESIDE && height > metrics::LEAST + OUTPUT
}

/// The rows of a chart below so many rows of facts. Where there is no room for the output too, there are some only once
/// somebody has asked for it.
fn rows_below(model: &Model, facts: usize, height: usize) -> usize {
    let free = height.saturating_sub(facts + 1);
    match free.saturating_sub(OUTPUT) {
        enough if enough >= metrics::LEAST => enough.min(metrics::MOST),
        _ if model.chart.asked => free.clamp(metrics::LEAST, metrics::MOST),
        _ => 0,
    }
}

/// The full width with a chart: beside the facts where there is room, else below them.
fn with_chart(
    model: &Model,
    job: &JobView,
    looked: &Looked<'_>,
    (width, height): (usize, usize),
) -> Vec<Line<'static>> {
    let place = if is_beside((width, height)) { beside } else { below };
    let (mut lines, hidden) = place(model, job, looked, (width, height));
    lines.push(divider(model, job, width, hidden));
    let rows = height.saturating_sub(lines.len());
    lines.extend(output(model, job).newest_rows(width, rows));
    lines
}

/// Facts and chart side by side, and how many facts have no room.
fn beside(
    model: &Model,
    job: &JobView,
    looked: &Looked<'_>,
    (width, height): (usize, usize),
) -> (Vec<Line<'static>>, usize) {
    let of_facts = width / 2 - GAP;
    let mut left = facts(model, job, of_facts, false);
    let most = height.saturating_sub(OUTPUT + 1);
    // A tall screen has more for the curve than there are facts.
    let rows = left.len().max(height * 2 / 5).clamp(metrics::LEAST + 2, metrics::MOST).min(most);
    let hidden = left.len().saturating_sub(most);
    left.truncate(most);
    left.resize(left.len().max(rows), Line::default());
    let right = metrics::lines(model, job, looked, (width - of_facts - GAP, rows));
    let mut right = right.into_iter();
    let both = |facts: Line<'static>| {
        let mut line = Line::default();
        push_cell(&mut line, facts, (of_facts, GAP));
        line.spans.extend(right.next().unwrap_or_default().spans);
        line
    };
    (left.into_iter().map(both).collect(), hidden)
}

/// The chart below the facts, and how many of them have no room.
fn below(
    model: &Model,
    job: &JobView,
    looked: &Looked<'_>,
    (width, height): (usize, usize),
) -> (Vec<Line<'static>>, usize) {
    let mut lines = facts(model, job, width, false);
    let rows = rows_below(model, lines.len(), height);
    if rows == 0 {
        lines = facts(model, job, width, true);
    }
    let most = height.saturating_sub(rows + 1);
    let hidden = lines.len().saturating_sub(most);
    lines.truncate(most);
    if rows > 0 {
        lines.extend(metrics::lines(model, job, looked, (width, rows)));
    }
    (lines, hidden)
}

/// The pane with its colours once it has been read, else the plain lines that came with the look.
fn output(model: &Model, job: &JobView) -> PaneText {
    match (&model.live.text, model.live.job == Some(job.id.clone())) {
        (Some(text), true) => text.clone(),
        _ => PaneText::from_plain(job.tail.lines()),
    }
}

/// The line between facts and output, which says whether the output is live, and how many lines of facts
/// have no room above it.
fn divider(model: &Model, job: &JobView, width: usize, hidden: usize) -> Line<'static> {
    let seen = model.live.text.is_some() || !job.tail.is_empty();
    let word = match (job.window_alive, seen) {
        _ if job.is_queued() => "it has not begun",
        (Some(false), true) => "last output, it runs no more",
        (Some(false), false) => "it runs no more",
        (None, _) => "last output, it cannot be seen from here",
        (Some(true), true) => "output",
        (Some(true), false) => "no output yet",
    };
    let line = Line::from(vec![
        span("── ", style(model, Role::Border)),
        span(word, style(model, Role::Dim)),
        span(" ", style(model, Role::Border)),
    ]);
    let more = match (hidden, model.wide) {
        (0, _) => String::new(),
        (n, true) => format!(" {n} more have no room "),
        (n, false) => {
            format!(" {} shows {n} more ", model.setup.key(Context::List, Command::Details))
        }
    };
    let rest = width.saturating_sub(line.width());
    let more = if text::width(&more) + 2 <= rest { more } else { String::new() };
    let bar = rest.saturating_sub(text::width(&more));
    let mut line = cut(line, width);
    line.push_span(span("─".repeat(bar), style(model, Role::Border)));
    line.push_span(span(more, style(model, Role::Dim)));
    line
}

/// What is known about the job, the most important first: of a failure, why and what happens next.
/// The loss is among them unless a chart shows it.
fn facts(model: &Model, job: &JobView, width: usize, with_loss: bool) -> Vec<Line<'static>> {
    let base = style(model, Role::Base);
    let dim = style(model, Role::Dim);
    let wrapped = |text: &str, style: Style| {
        wrap(text, width).into_iter().map(move |line| Line::from(span(line, style)))
    };
    let shown = status::of(job);
    let mut lines = Vec::new();
    let mut first =
        Line::from(span(format!("{} {}", shown.glyph, shown.word), style(model, shown.role)));
    // Behind the status, or in lines of its own where that is too long.
    let progress = words::progress_with(job, model.traces.of(job));
    let behind = first.width() + 3 + text::width(&progress) <= width;
    if behind && !progress.is_empty() {
        first.push_span(span(format!(" · {progress}"), base));
    }
    lines.push(first);
    if !behind {
        lines.extend(wrapped(&progress, base));
    }
    let uncertain = [
        (&job.shown.unknown, "nothing certain can be said"),
        (&job.target_unknown, "its target is unknown"),
    ];
    for (reason, what) in uncertain {
        let text = reason.as_ref().map(|reason| format!("{what}: {}", outside(reason)));
        lines.extend(text.iter().flat_map(|text| wrapped(text, style(model, Role::Unknown))));
    }
    if let Some(queued) = &job.shown.queued {
        lines.extend(wrapped(&words::waits(model, job, queued), base));
    }
    if let Some(pending) = &job.shown.pending {
        let start = pending
            .expected_start
            .map(|at| format!("starts about {}", model.setup.zone.stamp_alone(at)));
        let reason = pending.reason.as_deref().map(outside).unwrap_or_default();
        let why = dotted([reason, start.unwrap_or_default()]);
        lines.extend(wrapped(&why, base));
    }
    if let Some(line) = job.shown.made_ready().filter(|_| job.shown.copying().is_none()) {
        lines.extend(wrapped(&outside(line), base).take(2));
    }
    if job.failure().is_some() {
        lines.extend(failure(model, job, width));
    }
    if job.failure().is_some() || job.next.is_some() {
        let reason = job.next.as_ref().map(|next| outside(&next.reason)).unwrap_or_default();
        // Why nothing happens is a whole sentence; what happens wants its reason beside it.
        let acts = job.next.as_ref().is_some_and(|next| next.action != "pass");
        let outlook = if acts || reason.is_empty() {
            words::outlook(job, model.snapshot.as_ref())
        } else {
            String::new()
        };
        let next = dotted([outlook, reason]);
        lines.extend(wrapped(&next, base).take(2));
    }
    lines.extend(bar(model, job, width));
    if with_loss {
        lines.extend(losses(model, job, width));
    }
    lines.extend(machines::of_job(model, job, width));
    lines.extend(wrapped(&lineage(job), base));
    if job.lineage.len() > 1 {
        lines.extend(attempts(model, job, width));
    }
    let mut row = |label: &str, text: String| {
        if !text.is_empty() {
            let label = span(format!("{label:<8}"), dim);
            lines.push(Line::from(vec![label, Span::styled(text, base)]));
        }
    };
    row(
        "target",
        dotted([
            outside(job.target.as_str()),
            job.zone.as_deref().map(outside).unwrap_or_default(),
        ]),
    );
    let slot = job.dir.0.map(|slot| format!("{slot} ")).unwrap_or_default();
    row("dir", format!("{slot}{}", outside(&job.dir.1)));
    let mut args = wrap(&outside(&job.configs), width.saturating_sub(8).max(1)).into_iter();
    row("args", args.next().unwrap_or_default());
    args.take(ARGS).for_each(|more| row("", more));
    row("started", started(model, job));
    row("log", job.log_dir.as_deref().map(outside).unwrap_or_default());
    row("code", job.stage_dir.as_deref().map(outside).unwrap_or_default());
    let has_files = job.stage_dir.is_some() && !job.is_queued();
    let wrote = has_files.then(|| format!("tpu files {}", outside(&job.id.window.to_string())));
    row("results", wrote.unwrap_or_default());
    lines
}

/// Progress bar, loss and learning rate on one line.
fn bar(model: &Model, job: &JobView, width: usize) -> Option<Line<'static>> {
    let p = &job.shown.progress;
    let numbers = dotted([
        p.loss.map(|loss| format!("loss {}", words::number(loss))).unwrap_or_default(),
        p.lr.map(|lr| format!("lr {}", words::number(lr))).unwrap_or_default(),
    ]);
    let Some(fraction) = p.fraction() else {
        return (!numbers.is_empty()).then(|| Line::from(numbers));
    };
    let numbers = format!(" {}   {numbers}", words::percent(fraction));
    let room = width.saturating_sub(text::width(&numbers));
    let mut line = columns::bar(model, fraction, room.clamp(5, 40));
    line.push_span(Span::raw(numbers));
    Some(line)
}

/// The loss of the whole lineage, from its first step to the newest.
fn losses(model: &Model, job: &JobView, width: usize) -> Option<Line<'static>> {
    const WIDEST: usize = 48;
    let points = model.traces.of(job)?.curves.loss.whole();
    // Where the job says its newest one, that stands above already, and may be younger.
    let newest = points.last().filter(|_| job.shown.progress.loss.is_none());
    let behind = newest.map(|point| format!(" {}", words::number(point.value)));
    let behind = behind.unwrap_or_default();
    let room = width.saturating_sub(5 + text::width(&behind)).min(WIDEST);
    let picture = curve::sparkline(&points, room)?;
    Some(Line::from(vec![
        span("loss ", style(model, Role::Dim)),
        span(picture, style(model, Role::Running)),
        span(behind, style(model, Role::Base)),
    ]))
}

/// The attempts over time, and how much of it was productive.
fn attempts(model: &Model, job: &JobView, width: usize) -> Option<Line<'static>> {
    const WIDEST: usize = 60;
    /// What ` goodput 100 %` takes; kept free while it is not known, so that the bar does not jump.
    const GOODPUT: usize = 14;
    let behind = timeline::goodput(model, job)
        .map_or_else(|| " ".repeat(GOODPUT), |share| format!(" goodput {}", words::percent(share)));
    let room = width.saturating_sub(text::width(&behind)).min(WIDEST);
    let mut line = timeline::line(model, job, room)?;
    line.push_span(span(behind, style(model, Role::Dim)));
    Some(line)
}

/// The words that say why, whole, and where they stand.
fn failure(model: &Model, job: &JobView, width: usize) -> Vec<Line<'static>> {
    const MOST: usize = 3;
    let Some(evidence) = &job.shown.evidence else {
        return vec![Line::from("nothing says why")];
    };
    let error = style(model, Role::Error);
    let quote = outside(evidence.line.trim());
    let mut quoted = wrap(&quote, width);
    if quoted.len() > MOST {
        quoted.truncate(MOST);
        let last = quoted.pop().unwrap_or_default();
        quoted.push(text::cut(&format!("{last} …"), width).into_owned());
    }
    let mut lines: Vec<_> = quoted.into_iter().map(|line| Line::from(span(line, error))).collect();
    let place = dotted([
        evidence::place(job).unwrap_or_default(),
        format!("seen by {}", outside(&evidence.rule)),
        evidence.age_s.map(|age| format!("{} ago", time::age(age))).unwrap_or_default(),
    ]);
    lines.push(Line::from(span(place, style(model, Role::Dim))));
    lines
}

/// `stage 2 · continues 5, 6 · rule pre · the daemon leaves it alone`.
fn lineage(job: &JobView) -> String {
    let mut older: Vec<String> = rows::attempts(job).map(|window| window.to_string()).collect();
    older.reverse();
    let younger: Vec<String> = job
        .lineage
        .iter()
        .skip_while(|window| **window != job.id.window)
        .skip(1)
        .map(ToString::to_string)
        .collect();
    dotted([
        if job.stage > 0 { format!("stage {}", job.stage) } else { String::new() },
        match job.restarts {
            0 => String::new(),
            times => {
                format!("restarted {} by its engine", text::counted(times as usize, "time"))
            }
        },
        if older.is_empty() {
            String::new()
        } else {
            let from = job.from_step.map(|step| format!(" from step {step}")).unwrap_or_default();
            format!("continues {}{from}", older.join(", "))
        },
        if younger.is_empty() {
            String::new()
        } else {
            format!("continued by {}", younger.join(", "))
        },
        format!("rule {}", job.rules),
        if job.monitor { String::new() } else { "the daemon leaves it alone".to_owned() },
    ])
}

fn started(model: &Model, job: &JobView) -> String {
    dotted([
        job.started_at.map(|at| model.setup.zone.stamp_alone(at)).unwrap_or_default(),
        job.exit.map(|exit| exit.to_string()).unwrap_or_default(),
        job.pane_id.as_deref().map(|pane| format!("pane {}", outside(pane))).unwrap_or_default(),
    ])
}
