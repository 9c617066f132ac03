//! The columns of the table of usage. Numbers stand at the right, so that they can be compared at a glance.

use ratatui::text::Line;

use super::super::grid::GridColumn;
use super::super::spans::span;
use super::super::style;
use super::name;
use crate::model::{Model, UsageSeen};
use crate::theme::Role;
use tpu_core::plan::stats::StatsRow;
use tpu_core::plan::stats::figures::Figures;

/// A number at the right of so many columns.
fn number(text: &str, width: usize) -> Line<'static> {
    Line::raw(format!("{text:>width$}"))
}

/// How often something bad happened: loud only if it did.
fn times(model: &Model, (count, role): (u32, Role), width: usize) -> Line<'static> {
    let role = if count > 0 { role } else { Role::Dim };
    Line::from(span(format!("{count:>width$}"), style(model, role)))
}

/// A column of numbers.
const fn column(
    head: &'static str,
    (least, keep): (usize, u8),
    cell: fn(&Model, &StatsRow) -> Line<'static>,
) -> GridColumn<StatsRow> {
    GridColumn { head, least, most: 20, keep, cell }
}

/// Money, the same digits below each other whether or not a part has no price; nothing where nothing has one.
fn cost(model: &Model, row: &StatsRow) -> Line<'static> {
    let of = &row.figures;
    if !model.boards.usage.asked.seen.as_ref().is_some_and(UsageSeen::has_cost) {
        return Line::default();
    }
    Line::raw(match (of.cost(), of.cost_known > 0.0) {
        (Some(cost), _) => format!("{cost:>9.2}"),
        (None, true) => format!("{:>9.2}+?", of.cost_known),
        (None, false) => format!("{:>9}", "?"),
    })
}

/// Waiting for targets, with those that did not come.
fn capacity(figures: &Figures) -> String {
    let vain = match figures.in_vain {
        0 => String::new(),
        times => format!(" -{times}"),
    };
    format!("{}{vain}", figures.capacity.mean_in_words())
}

/// All of them.
pub(super) const USAGE: &[GridColumn<StatsRow>] = &[
    GridColumn {
        head: "",
        // Of names that somebody has made up by numbers the end tells them apart.
        least: 20,
        most: 36,
        keep: u8::MAX,
        cell: |_, row| Line::raw(name(row)),
    },
    column("  hours", (7, 230), |_, row| number(&format!("{:.1}", row.figures.hours()), 7)),
    column("     cost", (11, 220), cost),
    column("goodput", (7, 210), |_, row| number(&row.figures.goodput_in_words(), 7)),
    column("preempted", (9, 200), |model, row| {
        times(model, (row.figures.preemptions, Role::Warning), 9)
    }),
    column("per hour", (8, 140), |_, row| number(&row.figures.rate_in_words(), 8)),
    column("failures", (8, 190), |model, row| {
        times(model, (row.figures.other_failures(), Role::Error), 8)
    }),
    column(" waited", (7, 180), |_, row| number(&row.figures.waited_in_words(), 7)),
    column("to target", (9, 130), |_, row| number(&capacity(&row.figures), 9)),
    column("back after", (10, 120), |_, row| number(&row.figures.recoveries.mean_in_words(), 10)),
    column("finished", (8, 170), |_, row| number(&row.figures.finished.to_string(), 8)),
    column("failed", (6, 160), |_, row| number(&row.figures.failed.to_string(), 6)),
];
