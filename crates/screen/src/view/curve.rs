//! Curves as pictures: a sparkline of one row, and curves with axes in braille dots.

use ratatui::text::{Line, Span};

use super::spans::span;
use super::{style, words};
use crate::model::Model;
use crate::theme::Role;
use tpu_core::model::curve::Point;

const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A share from 0 to 1 of a small whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "clamped"
)]
fn scaled(share: f64, most: usize) -> usize {
    (share.clamp(0.0, 1.0) * most as f64).round() as usize
}

/// The mean value of each of `width` equal parts of the steps; `None` where there is no point.
fn columns(points: &[Point], (from, to): (f64, f64), width: usize) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0_u32); width];
    for point in points {
        let at = column_of(point.step, (from, to), width);
        if let Some((sum, count)) = sums.get_mut(at) {
            *sum += point.value;
            *count += 1;
        }
    }
    sums.into_iter().map(|(sum, count)| (count > 0).then(|| sum / f64::from(count))).collect()
}

/// The loss from the first step to the newest one, in one row; `None` for fewer than two points.
pub(super) fn sparkline(points: &[Point], width: usize) -> Option<String> {
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < 2 || width < 4 {
        return None;
    }
    // Not wider than there are points: a gap would look like a fall.
    let width = width.min(points.len());
    let values = columns(points, (first.step, last.step), width);
    let known = values.iter().flatten().copied();
    let low = known.clone().fold(f64::INFINITY, f64::min);
    let high = known.fold(f64::NEG_INFINITY, f64::max);
    let mut newest = first.value;
    let cells = values.into_iter().map(|value| {
        newest = value.unwrap_or(newest);
        let share = if high > low { (newest - low) / (high - low) } else { 0.0 };
        LEVELS.get(scaled(share, LEVELS.len() - 1)).copied().unwrap_or(" ")
    });
    Some(cells.collect())
}

/// Curves with axes: one, or two over each other.
pub(super) struct Axes<'a> {
    /// The curves; dots of the first give way to those of the second where both are.
    pub(super) curves: [&'a [Point]; 2],
    /// The first and the last step that are shown; those of all points if it does not matter.
    pub(super) steps: Option<(f64, f64)>,
    /// The step to point at.
    pub(super) cursor: Option<f64>,
    /// What stands above the curves, over the steps that it is about; later ones cover earlier ones.
    pub(super) bars: Vec<Bar>,
}

/// Something that took so many steps, with a mark at its end.
pub(super) struct Bar {
    /// From which step to which.
    pub(super) steps: (f64, f64),
    /// The mark.
    pub(super) mark: (&'static str, Role),
}

impl Axes<'_> {
    /// The picture in so many columns and rows.
    pub(super) fn lines(
        &self,
        model: &Model,
        (width, height): (usize, usize),
    ) -> Vec<Line<'static>> {
        let all = || self.curves.iter().flat_map(|curve| curve.iter());
        if all().count() < 2 || width < 16 || height < 3 {
            return vec![Line::from("No loss has been printed that could be drawn.")];
        }
        let fold = |value: fn(&Point) -> f64| {
            let low = all().map(value).fold(f64::INFINITY, f64::min);
            (low, all().map(value).fold(f64::NEG_INFINITY, f64::max))
        };
        let steps = self.steps.unwrap_or_else(|| fold(|point| point.step));
        let values = fold(|point| point.value);
        let rows = height.saturating_sub(1 + usize::from(!self.bars.is_empty()));
        // A middle label where it stands apart from the others.
        let middle = (rows >= 7 && values.1 > values.0).then_some(rows / 2);
        let label = |row: usize| match row {
            0 => words::number(values.1),
            _ if row + 1 == rows => words::number(values.0),
            _ if Some(row) == middle => words::number(f64::midpoint(values.0, values.1)),
            _ => String::new(),
        };
        let margin = (0..rows).map(|row| label(row).len()).max().unwrap_or(0) + 1;
        let columns = width.saturating_sub(margin + 1);
        let grids = self.curves.map(|curve| Braille::new(columns, rows).with(curve, steps, values));
        let pointed = self.cursor.map(|at| column_of(at, steps, columns));
        let mut lines = Vec::with_capacity(height);
        if !self.bars.is_empty() {
            let mut line = Line::from(" ".repeat(margin + 1));
            line.spans.extend(self.above(model, steps, columns));
            lines.push(line);
        }
        for row in 0..rows {
            let mut line =
                Line::from(span(format!("{:>margin$}", label(row)), style(model, Role::Dim)));
            line.push_span(span("│", style(model, Role::Border)));
            for column in 0..columns {
                let is_pointed = pointed == Some(column);
                let [first, second] = grids.each_ref().map(|grid| grid.cell(row, column));
                let role = match (first > 0, second > 0) {
                    _ if is_pointed => Role::Title,
                    (_, true) => Role::Marked,
                    (true, false) => Role::Starting,
                    (false, false) => Role::Base,
                };
                let glyph = match first | second {
                    0 if is_pointed => '│',
                    0 => ' ',
                    dots => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' '),
                };
                line.push_span(Span::styled(glyph.to_string(), style(model, role)));
            }
            lines.push(line);
        }
        lines.push(Line::from(span(
            format!("{}{}", " ".repeat(margin + 1), scale(steps, columns)),
            style(model, Role::Dim),
        )));
        lines
    }

    /// The bars in so many columns.
    fn above(&self, model: &Model, (from, to): (f64, f64), columns: usize) -> Vec<Span<'static>> {
        let mut cells = vec![(" ", Role::Base); columns];
        let column = |step: f64| column_of(step, (from, to), columns);
        let seen = || self.bars.iter().filter(|bar| bar.steps.1 >= from && bar.steps.0 <= to);
        for bar in seen() {
            let (begin, end) = (column(bar.steps.0), column(bar.steps.1));
            let covered = cells.iter_mut().take(end + 1).skip(begin);
            covered.for_each(|cell| *cell = ("█", Role::BarDone));
        }
        // Marks last, so that no later attempt covers them.
        for bar in seen().filter(|bar| bar.steps.1 <= to) {
            if let Some(cell) = cells.get_mut(column(bar.steps.1)) {
                *cell = bar.mark;
            }
        }
        cells.into_iter().map(|(glyph, role)| Span::styled(glyph, style(model, role))).collect()
    }
}

/// The scale of the steps: its ends, and the middle where there is room.
fn scale((from, to): (f64, f64), columns: usize) -> String {
    let (left, right) = (format!("step {}", words::number(from)), words::number(to));
    let middle = words::number(f64::midpoint(from, to).round());
    let gap = columns.saturating_sub(left.len() + right.len());
    let before = (columns / 2).saturating_sub(left.len() + middle.len() / 2);
    if before >= 3 && gap >= before + middle.len() + 3 && to - from >= 2.0 {
        let behind = gap - before - middle.len();
        return format!("{left}{}{middle}{}{right}", " ".repeat(before), " ".repeat(behind));
    }
    format!("{left}{}{right}", " ".repeat(gap))
}

/// The column of each step on the scale of a chart `columns` wide.
pub(super) fn column_of(step: f64, (from, to): (f64, f64), columns: usize) -> usize {
    scaled((step - from) / (to - from).max(f64::MIN_POSITIVE), columns.saturating_sub(1))
}

/// Dots, two columns and four rows to a character.
struct Braille {
    columns: usize,
    cells: Vec<u8>,
}

impl Braille {
    fn new(columns: usize, rows: usize) -> Self {
        Self { columns, cells: vec![0; columns * rows] }
    }

    /// Draws a curve, its points joined by lines.
    fn with(mut self, curve: &[Point], steps: (f64, f64), values: (f64, f64)) -> Self {
        let (wide, high) = (self.columns * 2, self.cells.len() / self.columns.max(1) * 4);
        if wide == 0 || high == 0 {
            return self;
        }
        let share = |value: f64, (low, high): (f64, f64)| {
            if high > low { (value - low) / (high - low) } else { 0.5 }
        };
        let place = |point: &Point| {
            let x = scaled(share(point.step, steps), wide - 1);
            (x, high - 1 - scaled(share(point.value, values), high - 1))
        };
        let mut last: Option<(usize, usize)> = None;
        for (x, y) in curve.iter().map(place) {
            let (from_x, from_y) = last.unwrap_or((x, y));
            let count = x.saturating_sub(from_x).max(y.abs_diff(from_y)).max(1);
            for at in 0..=count {
                let between = |from: usize, to: usize| {
                    if to >= from {
                        from + (to - from) * at / count
                    } else {
                        from - (from - to) * at / count
                    }
                };
                self.dot(between(from_x, x), between(from_y, y));
            }
            last = Some((x, y));
        }
        self
    }

    fn dot(&mut self, x: usize, y: usize) {
        // The numbering of braille dots: three rows of two, then the fourth row.
        const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        let bit = DOTS.get(y % 4).and_then(|row| row.get(x % 2)).copied().unwrap_or(0);
        if let Some(cell) = self.cells.get_mut(y / 4 * self.columns + x / 2) {
            *cell |= bit;
        }
    }

    fn cell(&self, row: usize, column: usize) -> u8 {
        self.cells.get(row * self.columns + column).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn falling(count: u32) -> Vec<Point> {
        (0..count).map(|n| Point { step: f64::from(n), value: 1.0 / f64::from(n + 1) }).collect()
    }

    #[test]
    fn a_sparkline_falls_with_the_loss() {
        let line = sparkline(&falling(64), 8).unwrap();
        assert_eq!(line.chars().count(), 8);
        assert!(line.starts_with('█') && line.ends_with('▁'), "{line}");
        assert_eq!(sparkline(&falling(1), 8), None);
        assert_eq!(sparkline(&falling(5), 40).unwrap().chars().count(), 5, "no gaps");
        let flat: Vec<Point> = (0..9).map(|n| Point { step: f64::from(n), value: 2.0 }).collect();
        assert_eq!(sparkline(&flat, 8).unwrap(), "▁▁▁▁▁▁▁▁");
    }

    #[test]
    fn braille_dots_stand_where_they_belong() {
        let mut grid = Braille::new(2, 1);
        grid.dot(0, 0);
        grid.dot(3, 3);
        assert_eq!(grid.cells, [0x01, 0x80]);
        let curve = [Point { step: 0.0, value: 0.0 }, Point { step: 1.0, value: 1.0 }];
        let line = Braille::new(2, 1).with(&curve, (0.0, 1.0), (0.0, 1.0));
        assert_eq!(line.cells, [0x60, 0x0a], "a rising line");
    }
}
