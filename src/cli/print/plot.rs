//! Plots in a terminal, with names and numbers beside them: bars, columns for the hours of a day, a calendar.

use tpu_core::model::calendar::Day;
use tpu_core::model::plot;
pub(in crate::cli) use tpu_core::model::plot::Glyphs;
use tpu_core::text;

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
    let mut out = String::new();
    for (name, value, told) in rows {
        let bar = plot::bar((*value, most), room, glyphs);
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
    let scale = format!("{most:.2}{unit}");
    let blank = " ".repeat(text::width(&scale));
    let mut out = String::new();
    for (at, row) in plot::columns(values, HIGH, glyphs).into_iter().enumerate() {
        let line: String = row.into_iter().flat_map(|cell| [' ', cell, cell]).collect();
        let beside = if at == 0 { &scale } else { &blank };
        out += &format!("{}\n", format!("  {beside}{line}").trim_end());
    }
    let rule = glyphs.rule(24 * 3);
    let named: Vec<String> = (0..24).map(|hour| format!(" {hour:02}")).collect();
    let named = named.concat();
    out + &format!("  {blank}{rule}\n  {blank}{named}\n")
}

/// Days as a calendar: a row for each weekday, a column for each week, the newest at the right.
pub(in crate::cli) fn calendar(days: &[(Day, f64)], columns: usize, glyphs: Glyphs) -> String {
    let room = (columns.saturating_sub(6) / 2).clamp(4, 53);
    let Some(grid) = plot::calendar(days, room, glyphs) else { return String::new() };
    let mut out = format!("      {}\n", grid.months);
    for (name, cells) in grid.weekdays {
        out += &format!("{}\n", format!("  {name} {cells}").trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::time::{Timestamp, Zone};

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
