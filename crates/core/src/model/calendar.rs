//! Hours, days and weeks as a person's clock has them, and a stretch of time cut at the full hours.

use std::fmt;

use super::time::{Timestamp, Zone};

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;

/// A day, as `2026-11-20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i64);

impl Day {
    /// The day of an instant.
    pub fn of(at: Timestamp, zone: &Zone) -> Self {
        Self(local(at, zone).div_euclid(DAY_S))
    }

    /// The day so many days later.
    #[must_use]
    pub fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// 0 on a Monday, 6 on a Sunday.
    pub fn weekday(self) -> usize {
        // The first day of all was a Thursday.
        usize::try_from((self.0 + 3).rem_euclid(7)).unwrap_or(0)
    }

    /// Days from `earlier` to this one.
    pub fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// The week in which it lies.
    pub fn week(self) -> Week {
        Week(self.0 - i64::try_from(self.weekday()).unwrap_or(0))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match date(self.0) {
            Some(date) => write!(f, "{date}"),
            None => f.write_str("?"),
        }
    }
}

/// A week from Monday to Sunday, as `2026-W47`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Week(i64);

impl fmt::Display for Week {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match date(self.0).map(jiff::civil::Date::iso_week_date) {
            Some(week) => write!(f, "{}-W{:02}", week.year(), week.week()),
            None => f.write_str("?"),
        }
    }
}

/// Part of one hour of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The day.
    pub day: Day,
    /// The hour, from 0 to 23.
    pub hour: usize,
    /// How much of it, in seconds.
    pub seconds: u64,
}

/// The hour of the day of an instant, from 0 to 23.
pub fn hour_of(at: Timestamp, zone: &Zone) -> usize {
    usize::try_from(local(at, zone).rem_euclid(DAY_S) / HOUR_S).unwrap_or(0)
}

/// Cuts a stretch of time at the full hours of a clock.
pub(crate) fn slices(
    from: Timestamp,
    to: Timestamp,
    zone: &Zone,
) -> impl Iterator<Item = Slice> + '_ {
    let mut at = from;
    std::iter::from_fn(move || {
        if at >= to {
            return None;
        }
        let local = local(at, zone);
        let full = at.plus_seconds(HOUR_S - local.rem_euclid(HOUR_S));
        // Behind the last instant that there is nothing is cut any more.
        let end = if full > at { full.min(to) } else { to };
        let seconds = end.seconds_since(at);
        at = end;
        let hour = usize::try_from(local.rem_euclid(DAY_S) / HOUR_S).unwrap_or(0);
        Some(Slice { day: Day(local.div_euclid(DAY_S)), hour, seconds })
    })
}

/// Seconds since the epoch, as the clock of a zone counts them.
fn local(at: Timestamp, zone: &Zone) -> i64 {
    at.as_second().saturating_add(zone.offset_s(at))
}

fn date(day: i64) -> Option<jiff::civil::Date> {
    let span = jiff::Span::new().try_days(day).ok()?;
    jiff::civil::date(1970, 1, 1).checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> Zone {
        Zone::named(name, jiff::tz::TimeZone::UTC).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn a_stretch_of_time_is_cut_at_the_full_hours_and_nothing_is_lost() {
        let utc = zone("UTC");
        let (from, to) = (at("2026-11-19T22:30:00Z"), at("2026-11-20T01:15:00Z"));
        let cut: Vec<(String, usize, u64)> =
            slices(from, to, &utc).map(|s| (s.day.to_string(), s.hour, s.seconds)).collect();
        let of = |day: &str, hour, seconds| (day.to_owned(), hour, seconds);
        assert_eq!(
            cut,
            [
                of("2026-11-19", 22, 1_800),
                of("2026-11-19", 23, 3_600),
                of("2026-11-20", 0, 3_600),
                of("2026-11-20", 1, 900),
            ]
        );
        assert_eq!(slices(to, from, &utc).count(), 0);
    }

    #[test]
    fn the_clock_of_a_person_says_which_day_and_hour_it_is() {
        let night = at("2026-11-19T22:30:00Z");
        assert_eq!(hour_of(night, &zone("Asia/Shanghai")), 6);
        assert_eq!(Day::of(night, &zone("Asia/Shanghai")).to_string(), "2026-11-20");
        // Half an hour off: its hours begin elsewhere.
        let first = slices(night, night.plus_seconds(7_200), &zone("Asia/Kolkata")).next();
        assert_eq!(first.map(|slice| (slice.hour, slice.seconds)), Some((4, 3_600)));
    }

    #[test]
    fn an_hour_that_a_clock_repeats_or_leaves_out_lasts_as_long_as_it_does() {
        let berlin = zone("Europe/Berlin");
        let night = (at("2026-10-24T22:00:00Z"), at("2026-10-25T23:00:00Z"));
        assert_eq!(slices(night.0, night.1, &berlin).map(|s| s.seconds).sum::<u64>(), 25 * 3_600);
        assert_eq!(slices(night.0, night.1, &berlin).filter(|s| s.hour == 2).count(), 2);
    }

    #[test]
    fn weeks_begin_on_mondays_and_the_first_of_a_year_may_be_last_years() {
        let utc = zone("UTC");
        let day = |text: &str| Day::of(at(text), &utc);
        assert_eq!(day("2026-11-20T12:00:00Z").week().to_string(), "2026-W47");
        assert_eq!(day("2027-01-01T12:00:00Z").week().to_string(), "2026-W53");
        assert_eq!(day("2026-11-16T00:00:00Z").weekday(), 0);
        assert_eq!(day("2026-11-22T23:59:59Z").weekday(), 6);
    }
}
