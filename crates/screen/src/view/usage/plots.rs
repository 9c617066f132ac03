//! Plots of all that was counted: the hours of a day as columns, the days as a calendar.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::spans::{push_cell, span};
use super::super::{stack, style};
use super::{glyphs, head};
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::calendar::Day;
use tpu_core::model::plot;
use tpu_core::plan::stats::Stats;
use tpu_core::plan::stats::figures::hours as as_hours;

/// The most cells for one hour.
const WIDEST: usize = 4;
/// Fewer rows are not enough for columns with their names.
const LEAST_COLUMNS: usize = 5;
/// Rows of a calendar: the months, and a row for each weekday.
const CALENDAR: usize = 8;

/// A row of columns.
struct Series {
    name: String,
    values: Vec<f64>,
    unit: &'static str,
    role: Role,
}

/// Preemptions in an hour of work, and hours of work, by hour of day: both where there is room.
pub(super) fn hours(frame: &mut Frame<'_>, model: &Model, area: Rect, stats: &Stats) {
    let work = stats.hours.map(|seen| as_hours(seen.seconds)).to_vec();
    let mut all = vec![Series {
        name: "hours of work".to_owned(),
        values: work,
        unit: "h",
        role: Role::BarDone,
    }];
    if stats.total.preemptions > 0 {
        let rates = stats.hours.map(|seen| seen.preemptions_per_hour().unwrap_or_default());
        let name = "preemptions in an hour of work".to_owned();
        let (values, unit, role) = (rates.to_vec(), "/h", Role::Warning);
        all.insert(0, Series { name, values, unit, role });
    } else if let Some(work) = all.first_mut() {
        work.name += "; nothing was preempted";
    }
    let height = usize::from(area.height);
    let fit = if height >= 12 { all.len() } else { 1 };
    let each = (height + 1) / fit;
    let mut lines = Vec::new();
    for (at, series) in all.iter().take(fit).enumerate() {
        // The first has what does not divide evenly; an empty line parts it from the second.
        let rows = if at == 0 { height - (fit - 1) * each } else { each - 1 };
        if at > 0 {
            lines.push(Line::default());
        }
        lines.extend(by_hour(model, series, (usize::from(area.width), rows)));
    }
    stack(frame, area, lines);
}

/// The hours of a day in so many columns and rows.
fn by_hour(model: &Model, of: &Series, (width, height): (usize, usize)) -> Vec<Line<'static>> {
    let most = of.values.iter().copied().fold(0.0, f64::max);
    let scale = scale(most, of.unit);
    let room = width.saturating_sub(scale.len() + 3);
    let cells = (room / of.values.len().max(1)).clamp(1, WIDEST);
    // The last of several cells parts one hour from the next.
    let (solid, gap) = if cells > 1 { (cells - 1, 1) } else { (1, 0) };
    let every = match cells {
        1 => 6,
        2 => 3,
        3 => 2,
        _ => 1,
    };
    let mut named = String::new();
    for hour in (0..of.values.len()).step_by(every) {
        named += &format!("{hour:<width$}", width = every * cells);
    }
    let plot = Plot { of, scale, solid, gap, named };
    plot.lines(model, height)
}

/// Columns with a scale at their left and names below.
struct Plot<'a> {
    of: &'a Series,
    /// What the highest column stands for.
    scale: String,
    /// Cells of one column.
    solid: usize,
    /// Blanks behind it.
    gap: usize,
    /// What stands below.
    named: String,
}

impl Plot<'_> {
    fn lines(&self, model: &Model, height: usize) -> Vec<Line<'static>> {
        let dim = style(model, Role::Dim);
        let left = self.scale.len();
        let mut lines = vec![head(model, self.of.name.clone())];
        // Name, ground and what stands below it take a row each.
        let high = height.saturating_sub(3).max(1);
        for (at, row) in plot::columns(&self.of.values, high, glyphs(model)).iter().enumerate() {
            let scale = if at == 0 { self.scale.as_str() } else { "" };
            let cells = row.iter().flat_map(|cell| {
                std::iter::repeat_n(*cell, self.solid).chain(std::iter::repeat_n(' ', self.gap))
            });
            lines.push(Line::from(vec![
                span(format!(" {scale:>left$} "), dim),
                span(cells.collect::<String>(), style(model, self.of.role)),
            ]));
        }
        let whole = self.of.values.len() * (self.solid + self.gap);
        let ground = glyphs(model).rule(whole.saturating_sub(self.gap));
        lines.push(Line::from(span(format!(" {:>left$} {ground}", "0"), dim)));
        lines.push(Line::from(span(format!(" {:>left$} {}", "", self.named), dim)));
        lines
    }
}

/// What the highest column stands for, short.
fn scale(most: f64, unit: &str) -> String {
    match most {
        0.0 => format!("0{unit}"),
        ..10.0 => format!("{most:.2}{unit}"),
        ..100.0 => format!("{most:.1}{unit}"),
        _ => format!("{most:.0}{unit}"),
    }
}

/// Hours of work and preemptions by day: as calendars, or as columns where those have no room.
pub(super) fn days(frame: &mut Frame<'_>, model: &Model, area: Rect, stats: &Stats) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let of = |value: &dyn Fn(Day) -> f64| -> Vec<(Day, f64)> {
        let days = stats.days.keys().copied();
        days.map(|day| (day, value(day))).collect()
    };
    let seen = |day: Day| stats.days.get(&day).copied().unwrap_or_default();
    let work = of(&|day| as_hours(seen(day).seconds));
    let taken = of(&|day| f64::from(seen(day).preemptions));
    if height < CALENDAR {
        stack(frame, area, by_day(model, &work, (width, height)));
        return;
    }
    let first = calendar(model, ("h", &work), width, Role::BarDone);
    let second = calendar(model, ("", &taken), width, Role::Warning);
    let second = if stats.total.preemptions > 0 { second } else { Vec::new() };
    let widest = first.iter().map(Line::width).max().unwrap_or(0);
    let mut lines = Vec::with_capacity(height);
    if second.is_empty() || 2 * widest + 2 <= width {
        let mut second = second.into_iter();
        for line in first {
            let mut whole = Line::default();
            push_cell(&mut whole, line, (widest, 2));
            whole.spans.extend(second.next().unwrap_or_default().spans);
            lines.push(whole);
        }
    } else {
        let fits = height > first.len() + second.len();
        lines.extend(first);
        if fits {
            lines.push(Line::default());
            lines.extend(second);
        }
    }
    // What room is left shows how it went from day to day.
    let left = height.saturating_sub(lines.len() + 1);
    if left >= LEAST_COLUMNS {
        lines.push(Line::default());
        lines.extend(by_day(model, &work, (width, left)));
    }
    stack(frame, area, lines);
}

/// A calendar, with the day that has most of it.
fn calendar(
    model: &Model,
    (unit, days): (&str, &[(Day, f64)]),
    width: usize,
    role: Role,
) -> Vec<Line<'static>> {
    let glyphs = glyphs(model);
    let Some(grid) = plot::calendar(days, width.saturating_sub(6) / 2, glyphs) else {
        return Vec::new();
    };
    let dim = style(model, Role::Dim);
    let mut lines = vec![Line::from(span(format!("     {}", grid.months), dim))];
    for (weekday, cells) in grid.weekdays {
        lines.push(Line::from(vec![
            span(format!(" {weekday} "), dim),
            span(cells, style(model, role)),
        ]));
    }
    let most = days.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((day, most)) = most.filter(|(_, most)| *most > 0.0) {
        let (_, dark) = glyphs.ends_of_shades();
        let most = match unit {
            "" => format!("{most:.0} taken away"),
            unit => format!("{most:.1} {unit}"),
        };
        let day = day.to_string();
        let day = day.get(5..).unwrap_or_default();
        lines.push(Line::from(vec![
            Span::raw(" "),
            span(dark.to_string(), style(model, role)),
            span(format!(" {most} on {day}"), dim),
        ]));
    }
    lines
}

/// The newest days as columns.
fn by_day(
    model: &Model,
    days: &[(Day, f64)],
    (width, height): (usize, usize),
) -> Vec<Line<'static>> {
    let (Some((first, _)), Some((last, _))) = (days.first(), days.last()) else {
        return Vec::new();
    };
    let most = days.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let scale = scale(most, "h");
    let room = i64::try_from(width.saturating_sub(scale.len() + 3).max(1)).unwrap_or(1);
    let shown = (last.since(*first) + 1).min(room);
    let begin = last.plus(1 - shown);
    let known = |day: Day| days.iter().find(|(of, _)| *of == day).map_or(0.0, |(_, value)| *value);
    let values: Vec<f64> = (0..shown).map(|at| known(begin.plus(at))).collect();
    let cells = usize::try_from(room / shown.max(1)).unwrap_or(1).clamp(1, WIDEST);
    let (solid, gap) = if cells > 1 { (cells - 1, 1) } else { (1, 0) };
    let short = |day: Day| day.to_string().get(5..).unwrap_or_default().to_owned();
    let (from, to) = (short(begin), short(*last));
    let whole = values.len() * cells;
    let named = if whole >= 12 {
        format!("{from}{to:>width$}", width = whole - from.len() - gap)
    } else {
        from
    };
    let name = "hours of work".to_owned();
    let of = Series { name, values, unit: "h", role: Role::BarDone };
    Plot { of: &of, scale, solid, gap, named }.lines(model, height)
}
