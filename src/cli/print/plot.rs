//! Plots in a terminal: bars, columns for the hours of a day, a calendar. Of blocks, or of what any terminal has.

use crate::model::calendar::Day;
use crate::text;

/// What plots are drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) struct Glyphs {
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
    pub(in crate::cli) const BLOCKS: Self = Self {
        across: &['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'],
        up: &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        shades: &['·', '░', '▒', '▓', '█'],
        rule: '─',
    };

    /// Those of any terminal.
    pub(in crate::cli) const ASCII: Self =
        Self { across: &['#'], up: &['#'], shades: &['.', '-', '=', '*', '#'], rule: '-' };
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
    parts.clamp(1, whole)
}

/// One bar for each row, on one scale: a label, the bar, what it stands for.
pub(in crate::cli) fn bars(
    rows: &[(String, f64, String)],
    columns: usize,
    glyphs: Glyphs,
) -> String {
    let widest = |of: &dyn Fn(&(String, f64, String)) -> usize| rows.iter().map(of).max();
    let label = widest(&|row| text::width(&row.0)).unwrap_or(0).min(30);
    let told = widest(&|row| text::width(&row.2)).unwrap_or(0);
    let room = columns.saturating_sub(label + told + 4).clamp(10, 60);
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let steps = glyphs.across.len();
    let mut out = String::new();
    for (name, value, told) in rows {
        let parts = parts(*value, most, room * steps);
        let full = glyphs.across.last().copied().unwrap_or('#');
        let mut bar: String = std::iter::repeat_n(full, parts / steps).collect();
        bar.extend((parts % steps).checked_sub(1).and_then(|part| glyphs.across.get(part)));
        let line = format!("  {} {} {told}", text::fit(name, label), text::fit(&bar, room));
        out += &format!("{}\n", line.trim_end());
    }
    out
}

/// How many rows the columns of a day are high.
const HIGH: usize = 4;

/// A column for each hour of the day, with the most beside it.
pub(in crate::cli) fn hours(values: &[f64; 24], unit: &str, glyphs: Glyphs) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let steps = glyphs.up.len();
    let columns = values.map(|value| parts(value, most, HIGH * steps));
    let scale = format!("{most:.2}{unit}");
    let blank = " ".repeat(text::width(&scale));
    let mut out = String::new();
    for row in (0..HIGH).rev() {
        let cell = |parts: usize| match parts.saturating_sub(row * steps) {
            0 => ' ',
            left => glyphs.up.get(left.min(steps) - 1).copied().unwrap_or('#'),
        };
        let line: String =
            columns.iter().flat_map(|parts| [' ', cell(*parts), cell(*parts)]).collect();
        let beside = if row == HIGH - 1 { &scale } else { &blank };
        out += &format!("{}\n", format!("  {beside}{line}").trim_end());
    }
    let rule: String = std::iter::repeat_n(glyphs.rule, 24 * 3).collect();
    let named: Vec<String> = (0..24).map(|hour| format!(" {hour:02}")).collect();
    let named = named.concat();
    out + &format!("  {blank}{rule}\n  {blank}{named}\n")
}

/// Days as a calendar: a row for each weekday, a column for each week, the newest at the right.
pub(in crate::cli) fn calendar(days: &[(Day, f64)], columns: usize, glyphs: Glyphs) -> String {
    let (Some((first, _)), Some((last, _))) = (days.first(), days.last()) else {
        return String::new();
    };
    let most = days.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let monday = |day: Day| day.plus(-i64::try_from(day.weekday()).unwrap_or(0));
    let room = i64::try_from(columns.saturating_sub(6) / 2).unwrap_or(26).clamp(4, 53);
    let all = monday(*last).since(monday(*first)) / 7 + 1;
    let weeks = all.min(room);
    let begin = monday(*last).plus(-7 * (weeks - 1));
    let value = |day: Day| {
        let at = days.binary_search_by_key(&day, |(day, _)| *day).ok()?;
        days.get(at).map(|(_, value)| *value)
    };
    let mut out = String::new();
    let mut head = String::new();
    for week in 0..weeks {
        let day = begin.plus(7 * week).to_string();
        let is_new = week == 0 || day.get(8..).is_some_and(|of_month| of_month <= "07");
        let width = usize::try_from(week * 2).unwrap_or(0);
        if is_new && text::width(&head) <= width {
            head = text::fit(&head, width) + day.get(5..).unwrap_or_default() + " ";
        }
    }
    out += &format!("      {}\n", head.trim_end());
    for (weekday, name) in ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].iter().enumerate() {
        let mut line = format!("  {name} ");
        for week in 0..weeks {
            let day = begin.plus(7 * week + i64::try_from(weekday).unwrap_or(0));
            let shade = match value(day) {
                _ if day > *last || day < *first => ' ',
                Some(value) => shade(value, most, glyphs),
                None => shade(0.0, most, glyphs),
            };
            line.extend([shade, ' ']);
        }
        out += &format!("{}\n", line.trim_end());
    }
    out
}

fn shade(value: f64, most: f64, glyphs: Glyphs) -> char {
    let at = parts(value, most, glyphs.shades.len() - 1);
    glyphs.shades.get(at).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::{Timestamp, Zone};

    fn row(name: &str, value: f64) -> (String, f64, String) {
        (name.to_owned(), value, format!("{value}"))
    }

    #[test]
    fn bars_are_on_one_scale_and_what_is_there_is_seen() {
        let rows = [row("a", 100.0), row("bb", 50.0), row("c", 0.001), row("d", 0.0)];
        assert_eq!(
            bars(&rows, 30, Glyphs::ASCII),
            "  a  ################### 100\n  bb ##########          50\n  c  #                   0.001\n  \
             d                      0\n"
        );
        let blocks = bars(&rows, 30, Glyphs::BLOCKS);
        assert!(blocks.contains("bb █████████▌ "), "{blocks}");
        assert!(blocks.contains("c  ▏ "), "{blocks}");
    }

    #[test]
    fn columns_stand_above_their_hours() {
        let mut values = [0.0; 24];
        values[3] = 2.0;
        values[23] = 1.0;
        let plot = hours(&values, "/h", Glyphs::ASCII);
        let lines: Vec<&str> = plot.lines().collect();
        assert_eq!(lines[0], "  2.00/h          ##");
        assert_eq!(lines[3].len(), "  2.00/h".len() + 24 * 3);
        assert_eq!(lines[2].trim_end(), lines[3]);
        assert!(lines[5].ends_with("22 23"), "{plot}");
    }

    #[test]
    fn a_calendar_has_a_column_for_each_week() {
        let utc = Zone::named("UTC", jiff::tz::TimeZone::UTC).unwrap();
        let day = |text: &str| Day::of(Timestamp::parse_rfc3339(text).unwrap(), &utc);
        let days = [
            (day("2026-10-30T00:00:00Z"), 4.0),
            (day("2026-11-02T00:00:00Z"), 1.0),
            (day("2026-11-10T00:00:00Z"), 2.0),
        ];
        assert_eq!(
            calendar(&days, 80, Glyphs::ASCII),
            "      10-26\n  Mon   - .\n  Tue   . =\n  Wed   .\n  Thu   .\n  Fri # .\n  Sat . .\n  Sun . .\n"
        );
        assert_eq!(calendar(&[], 80, Glyphs::ASCII), "");
    }
}
