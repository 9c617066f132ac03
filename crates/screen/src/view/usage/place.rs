//! Where the table of usage and its plots stand, by how much room there is and how much the table needs.

use ratatui::layout::{Constraint, Layout, Rect};

use super::{of_row, seen};
use crate::model::Model;
use crate::tabs::Tab;

/// From this height on, table and plots stand below each other however many rows there are.
const ROOMY: u16 = 20;
/// Rows of a plot in which a calendar has its place.
const CALENDAR: u16 = 10;
/// Fewer rows are no plot.
const LEAST: u16 = 6;
/// From this width on, two plots stand side by side.
const TWO: u16 = 70;
/// From this width on, three do.
const THREE: u16 = 140;
/// Rows from which on two plots stand below each other.
const DOUBLE: u16 = 2 * CALENDAR + 2;
/// Columns in which the hours of a day have one cell each.
const SLIM_HOURS: u16 = 37;
/// Columns in which they have two.
const WIDE_HOURS: u16 = 61;

/// The areas of the tab of usage, each with its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plots {
    /// The table.
    pub table: Option<Rect>,
    /// The figures of the chosen row, and its failures by kind.
    pub row: Option<Rect>,
    /// The hours of a day.
    pub hours: Option<Rect>,
    /// The days.
    pub days: Option<Rect>,
    /// How many ways there are to fill the room; more than one where not everything fits at once.
    pub ways: usize,
}

impl Plots {
    /// The uppermost plot where there is no table.
    pub fn first(&self) -> Option<Rect> {
        self.row.or(self.hours).or(self.days)
    }

    /// One of the three, counted round.
    fn slot(&mut self, nth: usize) -> &mut Option<Rect> {
        match nth % 3 {
            0 => &mut self.row,
            1 => &mut self.hours,
            _ => &mut self.days,
        }
    }
}

/// The areas for a model.
pub(in crate::view) fn place(model: &Model, body: Rect) -> Plots {
    let turned = model.boards.usage.turned;
    let whole = Plots { table: Some(body), ways: 1, ..Plots::default() };
    if seen(model).is_none() {
        return whole;
    }
    let rows = model.boards.choosing(Tab::Usage).rows.len().max(2);
    let needed = u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(3);
    if body.height < 2 * LEAST {
        let mut plots = Plots { ways: 4, ..Plots::default() };
        match turned % 4 {
            0 => plots.table = Some(body),
            nth => *plots.slot(nth - 1) = Some(body),
        }
        return plots;
    }
    let below = if body.height < ROOMY { LEAST } else { CALENDAR };
    let most = (body.height / 2).min(body.height - below);
    let split = [Constraint::Length(needed.min(most)), Constraint::Fill(1)];
    let [upper, lower] = Layout::vertical(split).areas(body);
    let fit = usize::from(lower.height / CALENDAR).clamp(1, 3);
    let turns = match body.width {
        ..TWO if fit < 3 => 3,
        TWO..THREE if lower.height < DOUBLE => 2,
        _ => 1,
    };
    // Where the table shows no more than a few of its rows, it takes its turn with all the room.
    let ways = turns + usize::from(needed > most + 2 && body.height < ROOMY);
    let turn = turned % ways;
    if turn == turns {
        return Plots { ways, ..whole };
    }
    let mut plots = Plots { table: Some(upper), ways, ..Plots::default() };
    if body.width < TWO {
        let areas = Layout::vertical(vec![Constraint::Fill(1); fit]).split(lower);
        for (at, area) in areas.iter().enumerate() {
            *plots.slot(turn + at) = Some(*area);
        }
    } else if lower.height >= DOUBLE {
        let [left, right] = beside(lower, left_width(body.width));
        let lines = of_row::height(model, right).saturating_add(2);
        let row = lines.clamp(LEAST, right.height - CALENDAR - 1);
        let split = [Constraint::Length(row), Constraint::Fill(1)];
        let [above, below] = Layout::vertical(split).areas(right);
        (plots.hours, plots.row, plots.days) = (Some(left), Some(above), Some(below));
    } else if body.width >= THREE {
        let [left, right] = beside(lower, WIDE_HOURS);
        let [middle, right] = beside(right, right.width / 2);
        (plots.hours, plots.days, plots.row) = (Some(left), Some(middle), Some(right));
    } else {
        let [left, right] = beside(lower, left_width(body.width));
        // The hours and the days take turns.
        *plots.slot(1 + turn) = Some(left);
        plots.row = Some(right);
    }
    plots
}

fn left_width(width: u16) -> u16 {
    match width {
        THREE.. => width / 2,
        110.. => WIDE_HOURS,
        _ => SLIM_HOURS,
    }
}

fn beside(area: Rect, left: u16) -> [Rect; 2] {
    Layout::horizontal([Constraint::Length(left), Constraint::Fill(1)]).areas(area)
}
