//! The tab of usage: what ran, a row for each of what is counted by, and plots of it below.
//!
//! ```text
//!  narrow           medium               wide or high
//! ┌ table ─────┐   ┌ table ─────────┐   ┌ table ──────────────┐
//! ├────────────┤   ├───────┬────────┤   ├──────────┬──────────┤
//! │ one plot   │   │ hours │ the    │   │ hours of │ the row  │
//! │ at a time  │   │ /days │ row    │   │ the day  │ calendar │
//! └────────────┘   └───────┴────────┘   └──────────┴──────────┘
//! ```

mod columns;
mod of_row;
mod place;
mod plots;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::grid::{self, Bars, Grid};
use super::spans::{dotted, outside, span};
use super::{panel, style, tabs};
use crate::keys::{Command, Context};
use crate::message::{Reach, UsageQuestion};
use crate::model::{ALL_TOGETHER, BoardRow, Model, UsageSeen};
use crate::tabs::Tab;
use crate::theme::Role;
pub(super) use place::{Plots, place};
use tpu_core::model::plot::{self, Glyphs};
use tpu_core::plan::stats::StatsRow;
use tpu_core::text::counted;

/// What plots are drawn with.
fn glyphs(model: &Model) -> Glyphs {
    if model.setup.ascii { Glyphs::ASCII } else { Glyphs::BLOCKS }
}

/// What was counted, if anything was.
fn seen(model: &Model) -> Option<&UsageSeen> {
    model.boards.usage.asked.seen.as_ref().filter(|seen| !seen.rows.is_empty())
}

/// The chosen row.
fn chosen(model: &Model) -> Option<&StatsRow> {
    let row = model.boards.chosen(Tab::Usage)?;
    seen(model)?.rows.get(row.at)
}

/// How a row is called.
fn name(row: &StatsRow) -> String {
    if row.key == ALL_TOGETHER { "all".to_owned() } else { outside(&row.key) }
}

/// A bar as long as a share of so many cells.
fn bar(model: &Model, share: (f64, f64), cells: usize) -> Line<'static> {
    let bar = plot::bar(share, cells, glyphs(model));
    Line::from(span(bar, style(model, Role::BarDone)))
}

/// Draws the table.
pub(super) fn table(frame: &mut Frame<'_>, model: &Model, area: Rect) {
    let usage = &model.boards.usage;
    let rows = seen(model).map(|seen| seen.rows.as_slice()).unwrap_or_default();
    let value = |row: &BoardRow| rows.get(row.at);
    let measure = usage.measure();
    let alone = rows.iter().filter(|row| row.key != ALL_TOGETHER);
    let most = alone.map(|row| measure.of(&row.figures)).fold(0.0, f64::max);
    let bar = |row: &StatsRow, cells: usize| match row.key.as_str() {
        ALL_TOGETHER => Line::default(),
        _ => bar(model, (measure.of(&row.figures), most), cells),
    };
    let by = usage
        .asked
        .seen
        .as_ref()
        .map_or_else(|| usage.by(&model.scope.whose), |seen| seen.question.by);
    let grid = Grid {
        columns: columns::USAGE,
        rows: &model.boards.choosing(Tab::Usage).rows,
        value: &value,
        nothing: grid::nothing(model, &nothing_ran(model)),
        total: rows.len(),
        titled: true,
        subject: asked(model),
        bars: Some(Bars { of: by.as_str(), head: measure.word(), bar: &bar }),
    };
    grid::render(frame, model, area, &grid);
}

/// What is said where nothing was counted: that nothing ran, and how more is counted.
fn nothing_ran(model: &Model) -> String {
    let Some(seen) = &model.boards.usage.asked.seen else { return String::new() };
    let question = &seen.question;
    let key = |command| model.setup.key(Context::Usage, command);
    let whose = if question.whose.is_everybody() {
        String::new()
    } else {
        format!(" of {}", outside(&question.whose.to_string()))
    };
    let everybody = if question.whose.is_everybody() {
        String::new()
    } else {
        format!(" {} counts everybody's.", key(Command::AllUsers))
    };
    match question.reach.days() {
        Some(days) => {
            let further = key(Command::LongerPeriod);
            format!(
                "Nothing{whose} has run in the last {days} days. {further} counts further \
                 back.{everybody}"
            )
        }
        None => format!(
            "Nothing{whose} has run yet. As in: tpu run local -- python3 train.py.{everybody}"
        ),
    }
}

/// What is counted, for the lower border of the table.
fn asked(model: &Model) -> Line<'static> {
    let usage = &model.boards.usage;
    let whose = &model.scope.whose;
    let in_words = |by: &str, reach: Reach, whose: &str| {
        format!(" by {by} · {} · {} ", reach.as_str(), outside(whose))
    };
    let words = match &usage.asked.seen {
        Some(UsageSeen { question: UsageQuestion { whose, by, reach, .. }, .. }) => {
            in_words(by.as_str(), *reach, &whose.to_string())
        }
        None => in_words(usage.by(whose).as_str(), usage.reach, &whose.to_string()),
    };
    let mut line = Line::from(span(words, style(model, Role::Title)));
    let asked = usage.asked.seen.as_ref().map(|seen| &seen.question);
    if usage.asked.waiting.is_some() && asked.is_some() && asked != usage.last.as_ref() {
        line.push_span(span(" counting … ", style(model, Role::Dim)));
    }
    line
}

/// What the chosen row has to say beyond its columns, on one line.
pub(super) fn footnote(model: &Model) -> Option<String> {
    let (row, seen) = (chosen(model)?, seen(model)?);
    let figures = &row.figures;
    let endless = match (row.key == ALL_TOGETHER || seen.rows.len() == 1, seen.report.endless) {
        (true, several) if several > 0 => {
            let attempts = counted(several as usize, "attempt");
            format!("of {attempts} nobody knows when it ended: no row has them")
        }
        _ => String::new(),
    };
    let line = figures.lines.first();
    let line = line.map(|of| format!("{}× {}: {}", of.times, of.kind, outside(of.line.trim())));
    let attempts = counted(figures.attempts as usize, "attempt");
    let cost = seen.has_cost().then(|| format!("cost {}", figures.cost_in_words()));
    Some(dotted([
        name(row),
        format!("{:.1} h in {attempts}", figures.hours()),
        cost.unwrap_or_default(),
        endless,
        line.unwrap_or_default(),
    ]))
}

/// Draws the plots.
pub(super) fn render(frame: &mut Frame<'_>, model: &Model, plots: &Plots) {
    let Some(seen) = seen(model) else { return };
    // The uppermost panel shows the tabs in its border; then the plot says by itself what it is.
    let title = |name: String| match plots.table {
        Some(_) => Line::from(format!(" {name} ")),
        None => tabs::title(model),
    };
    if let (Some(area), Some(row)) = (plots.row, chosen(model)) {
        let inner = panel(frame, model, area, title(name(row)));
        of_row::render(frame, model, inner, row);
    }
    if let Some(area) = plots.hours {
        let inner = panel(frame, model, area, title("by hour of day".to_owned()));
        plots::hours(frame, model, inner, &seen.report.stats);
    }
    if let Some(area) = plots.days {
        let inner = panel(frame, model, area, title("by day".to_owned()));
        plots::days(frame, model, inner, &seen.report.stats);
    }
}

/// The head of a plot, beside others in one panel.
fn head(model: &Model, text: String) -> Line<'static> {
    Line::from(vec![Span::raw(" "), span(text, style(model, Role::Dim))])
}
