//! Plots made of characters: bars, columns, a calendar. Of blocks, or of what any terminal has.
//!
//! Only the drawing is here; whoever shows a plot adds names and numbers as there is room for them.

use super::calendar::Day;

/// What plots are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glyphs {
    /// From almost nothing to a whole cell, for bars.
    across: &'static [char],
    /// The same for columns.
    up: &'static [char],
    /// From something to most, for a calendar; the first stands for nothing.
    shades: &'static [char],
    /// Below columns.
    rule: char,
}

impl Glyphs {
    /// Those of a terminal that has all characters.
    pub const BLOCKS: Self = Self {
        across: &['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'],
        up: &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        shades: &['·', '░', '▒', '▓', '█'],
        rule: '─',
    };

    /// Those of any terminal.
    pub const ASCII: Self =
        Self { across: &['#'], up: &['#'], shades: &['.', '-', '=', '*', '#'], rule: '-' };

    /// The line on which so many cells of columns stand.
    pub fn rule(self, cells: usize) -> String {
        std::iter::repeat_n(self.rule, cells).collect()
    }

    /// What stands in a calendar for nothing, and for most.
    pub fn ends_of_shades(self) -> (char, char) {
        let or_blank = |shade: Option<&char>| shade.copied().unwrap_or(' ');
        (or_blank(self.shades.first()), or_blank(self.shades.last()))
    }
}

/// So many parts of `whole`, of which `most` are the most.
fn parts(value: f64, most: f64, whole: usize) -> usize {
    if !(value > 0.0 && most > 0.0) {
        return 0;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some hundred cells of a terminal"
    )]
    let parts = (value / most * whole as f64).round() as usize;
    // What is there is seen.
    parts.clamp(1, whole.max(1))
}

/// A bar that takes all of `cells` where `value` is the most.
pub fn bar((value, most): (f64, f64), cells: usize, glyphs: Glyphs) -> String {
    let steps = glyphs.across.len();
    let parts = parts(value, most, cells * steps);
    let full = glyphs.across.last().copied().unwrap_or('#');
    let mut bar: String = std::iter::repeat_n(full, parts / steps).collect();
    bar.extend((parts % steps).checked_sub(1).and_then(|part| glyphs.across.get(part)));
    bar
}

/// A column for each value on one scale, `high` cells high: the rows of cells, the uppermost first.
pub fn columns(values: &[f64], high: usize, glyphs: Glyphs) -> Vec<Vec<char>> {
    let most = values.iter().copied().fold(0.0, f64::max);
    let steps = glyphs.up.len();
    let parts: Vec<usize> = values.iter().map(|value| parts(*value, most, high * steps)).collect();
    let cell = |row: usize, parts: usize| match parts.saturating_sub(row * steps) {
        0 => ' ',
        left => glyphs.up.get(left.min(steps) - 1).copied().unwrap_or('#'),
    };
    let row = |row: usize| parts.iter().map(|parts| cell(row, *parts)).collect();
    (0..high).rev().map(row).collect()
}

/// Days as a calendar: a row for each weekday, a column for each week, the newest at the right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeekGrid {
    /// Month and day of the Mondays with which the weeks begin, for those that are the first of their month.
    pub months: String,
    /// The weekdays, each with two cells for each week.
    pub weekdays: Vec<(&'static str, String)>,
}

/// The calendar of days in their order; no more than the newest `most_weeks`. `None` without a day.
pub fn calendar(days: &[(Day, f64)], most_weeks: usize, glyphs: Glyphs) -> Option<WeekGrid> {
    let ((first, _), (last, _)) = (days.first()?, days.last()?);
    let most = days.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let monday = |day: Day| day.plus(-i64::try_from(day.weekday()).unwrap_or(0));
    let weeks = monday(*last).since(monday(*first)) / 7 + 1;
    let weeks = weeks.min(i64::try_from(most_weeks).unwrap_or(i64::MAX)).max(1);
    let begin = monday(*last).plus(-7 * (weeks - 1));
    let value = |day: Day| {
        let at = days.binary_search_by_key(&day, |(day, _)| *day).ok()?;
        days.get(at).map(|(_, value)| *value)
    };
    let mut months = String::new();
    for week in 0..weeks {
        let day = begin.plus(7 * week).to_string();
        let is_new = week == 0 || day.get(8..).is_some_and(|of_month| of_month <= "07");
        let width = usize::try_from(week * 2).unwrap_or(0);
        // Months and days are of one byte for each column.
        if is_new && months.len() <= width {
            months = format!("{months:width$}{} ", day.get(5..).unwrap_or_default());
        }
    }
    let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    let weekdays = (0..).zip(names).map(|(weekday, name)| {
        let shade = |week: i64| match begin.plus(7 * week + weekday) {
            day if day > *last || day < *first => ' ',
            day => shade(value(day).unwrap_or(0.0), most, glyphs),
        };
        (name, (0..weeks).flat_map(|week| [shade(week), ' ']).collect())
    });
    Some(WeekGrid { months: months.trim_end().to_owned(), weekdays: weekdays.collect() })
}

fn shade(value: f64, most: f64, glyphs: Glyphs) -> char {
    let at = parts(value, most, glyphs.shades.len() - 1);
    glyphs.shades.get(at).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_what_is_there_is_seen() {
        let of = |value: f64| bar((value, 8.0), 4, Glyphs::BLOCKS);
        assert_eq!([8.0, 3.0, 0.001, 0.0].map(of), ["████", "█▌", "▏", ""]);
        assert_eq!(bar((f64::NAN, 8.0), 4, Glyphs::BLOCKS), "");
        assert_eq!(bar((1.0, 0.0), 4, Glyphs::ASCII), "");
        assert_eq!(bar((5.0, 5.0), 0, Glyphs::ASCII), "#", "also where there is hardly room");
    }

    #[test]
    fn columns_stand_on_one_ground() {
        let rows = columns(&[0.0, 1.0, 2.0, 4.0], 2, Glyphs::BLOCKS);
        let rows: Vec<String> = rows.into_iter().map(String::from_iter).collect();
        assert_eq!(rows, ["   █", " ▄██"]);
        assert_eq!(columns(&[1.0], 0, Glyphs::ASCII), Vec::<Vec<char>>::new());
    }

    #[test]
    fn a_calendar_is_cut_at_the_oldest_weeks() {
        let zone = crate::model::time::Zone::local(jiff::tz::TimeZone::UTC);
        let first = Day::of(crate::model::time::Timestamp::from_second(1_730_721_600), &zone);
        let days: Vec<(Day, f64)> = (0..28).map(|day| (first.plus(day), 1.0)).collect();
        let grid = calendar(&days, 2, Glyphs::ASCII).unwrap();
        assert_eq!(grid.months, "11-18");
        assert_eq!(grid.weekdays.last(), Some(&("Sun", "# # ".to_owned())));
        assert_eq!(calendar(&[], 2, Glyphs::ASCII), None);
    }
}
