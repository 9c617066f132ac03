//! Instants and how they are read and shown. Stored times are UTC, RFC 3339.

use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// An instant. A newtype so that the clock library shows only here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The instant `seconds` after the epoch; the nearest representable one if that is out of range.
    pub fn from_second(seconds: i64) -> Self {
        let limit = if seconds < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_second(seconds).unwrap_or(limit))
    }

    /// Wraps an instant of the clock library.
    pub fn from_jiff(instant: jiff::Timestamp) -> Self {
        Self(instant)
    }

    /// Seconds since the epoch.
    pub fn as_second(self) -> i64 {
        self.0.as_second()
    }

    /// Reads RFC 3339 text. A time of the original, `20250420_011026`, is known by its looks: the error that the library
    /// makes of it costs more than all else in its record.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let is_original = text.as_bytes().get(8) == Some(&b'_');
        if is_original { None } else { text.parse().ok().map(Self) }
    }

    /// RFC 3339 in UTC with whole seconds, as stored.
    pub fn to_rfc3339(self) -> String {
        jiff::Timestamp::from_second(self.0.as_second())
            .map_or_else(|_| self.0.to_string(), |instant| instant.to_string())
    }

    /// Reads a time of the original in the given zone: `20250420_011026`, and in its log `2025-04-20 01:10:26`.
    pub fn parse_original(text: &str, zone: &TimeZone) -> Option<Self> {
        let read = |format: &str| jiff::civil::DateTime::strptime(format, text).ok();
        let civil = read("%Y%m%d_%H%M%S").or_else(|| read("%Y-%m-%d %H:%M:%S"))?;
        Some(Self(civil.to_zoned(zone.clone()).ok()?.timestamp()))
    }

    /// Seconds from `earlier` to this instant, 0 if it lies in the future.
    pub fn seconds_since(self, earlier: Self) -> u64 {
        u64::try_from(self.as_second().saturating_sub(earlier.as_second())).unwrap_or(0)
    }

    /// The instant `seconds` later.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self::from_second(self.as_second().saturating_add(seconds))
    }

    /// The instant `duration` later, to the nanosecond.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.checked_add(duration).unwrap_or(jiff::Timestamp::MAX))
    }

    /// `2026-11-20 14:02:11` in a zone, for people.
    pub fn display_in(self, zone: &TimeZone) -> String {
        self.0.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
    }

    /// `14:02:11` in a zone, for people.
    pub(crate) fn clock_in(self, zone: &TimeZone) -> String {
        self.0.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
    }

    /// `20261120_140211` in UTC, for the names of directories.
    pub fn compact(self) -> String {
        self.0.strftime("%Y%m%d_%H%M%S").to_string()
    }
}

/// The setting `time_zone` where nobody has set another: the machine's own.
pub const LOCAL: &str = "local";

/// The zone in which one person reads times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    shown: TimeZone,
    /// The machine's own, by which every other clock in the terminal goes.
    machine: TimeZone,
}

impl Zone {
    /// The machine's own zone.
    pub fn local(machine: TimeZone) -> Self {
        Self { shown: machine.clone(), machine }
    }

    /// What the setting `time_zone` names on a machine in this zone; `None` if it is no zone.
    pub fn named(setting: &str, machine: TimeZone) -> Option<Self> {
        if setting == LOCAL {
            return Some(Self::local(machine));
        }
        zone_of(setting).map(|shown| Self { shown, machine })
    }

    /// Whether the setting `time_zone` may have this value. The short words are known before any zone is read: each read of
    /// the data file asks.
    pub fn is_known(setting: &str) -> bool {
        setting == LOCAL || short_name(setting).is_some() || zone_of(setting).is_some()
    }

    /// Reads so long ago (`30d`), a day, or an instant; `None` if the word is none of them.
    pub fn moment(&self, word: &str, now: Timestamp) -> Option<Timestamp> {
        let ago = parse_age(word).and_then(|ago| i64::try_from(ago).ok());
        ago.map(|ago| now.plus_seconds(-ago)).or_else(|| self.instant(word))
    }

    /// Reads a day, which begins at midnight, or an instant; `None` if the word is neither.
    pub fn instant(&self, word: &str) -> Option<Timestamp> {
        let midnight = || {
            let day: jiff::civil::Date = word.parse().ok()?;
            Some(Timestamp(day.to_zoned(self.shown.clone()).ok()?.timestamp()))
        };
        let is_day = word.len() == "2026-11-20".len();
        if is_day { midnight() } else { Timestamp::parse_rfc3339(word) }
    }

    /// How far its clock is ahead of UTC at an instant, in seconds.
    pub(crate) fn offset_s(&self, at: Timestamp) -> i64 {
        i64::from(self.shown.to_offset(at.0).seconds())
    }

    /// The abbreviation that stands beside a time which the machine's own clock would give otherwise.
    pub fn label(&self, at: Timestamp) -> Option<String> {
        let is_foreign = self.shown.to_offset(at.0) != self.machine.to_offset(at.0);
        is_foreign.then(|| at.0.to_zoned(self.shown.clone()).strftime("%Z").to_string())
    }

    /// `2026-11-20 14:02:11`, with the zone's label where it could mislead.
    pub fn stamp(&self, at: Timestamp) -> String {
        self.labelled(at, at.display_in(&self.shown))
    }

    /// `2026-11-20 14:02:11`, where the zone is named beside all times.
    pub fn stamp_alone(&self, at: Timestamp) -> String {
        at.display_in(&self.shown)
    }

    /// `14:02:11`, with the zone's label where it could mislead.
    pub fn clock(&self, at: Timestamp) -> String {
        self.labelled(at, at.clock_in(&self.shown))
    }

    /// `14:02:11`, where the zone is named beside all times.
    pub fn clock_alone(&self, at: Timestamp) -> String {
        at.clock_in(&self.shown)
    }

    /// `14:02` of a moment of the same day, else `Nov 20`, or `2025-11` of another year.
    pub fn short(&self, at: Timestamp, now: Timestamp) -> String {
        let [then, now] = [at, now].map(|at| at.0.to_zoned(self.shown.clone()));
        let format = if then.date() == now.date() {
            "%H:%M"
        } else if then.year() == now.year() {
            "%b %-d"
        } else {
            "%Y-%m"
        };
        then.strftime(format).to_string()
    }

    fn labelled(&self, at: Timestamp, text: String) -> String {
        match self.label(at) {
            Some(label) => format!("{text} {label}"),
            None => text,
        }
    }
}

/// Resolves a name that the setting `time_zone` may have beside `local`: `us`, `cn`, or an IANA name.
pub fn zone_of(setting: &str) -> Option<TimeZone> {
    TimeZone::get(short_name(setting).unwrap_or(setting)).ok()
}

/// The IANA name of a zone that the original calls by a short word.
fn short_name(setting: &str) -> Option<&'static str> {
    match setting {
        "us" => Some("America/New_York"),
        "cn" => Some("Asia/Shanghai"),
        _ => None,
    }
}

/// An age for people: `12s`, `4m`, `2h 04m`, `3d 05h`.
pub fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Reads an age or a time-out as people write it, in seconds: `90s`, `20m`, `2h`, `3d`; a bare number means seconds.
pub fn parse_age(span: &str) -> Option<u64> {
    let digits = span.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    let unit = match span.strip_prefix(digits)? {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_times_read_back() {
        let instant = Timestamp::from_second(1_795_161_731);
        assert_eq!(Timestamp::parse_rfc3339(&instant.to_rfc3339()), Some(instant));
    }

    #[test]
    fn a_start_time_of_the_original_is_local_time() {
        let zone = zone_of("cn").unwrap();
        let instant = Timestamp::parse_original("20250420_011026", &zone).unwrap();
        assert_eq!(instant.to_rfc3339(), "2025-04-19T17:10:26Z");
        assert_eq!(Timestamp::parse_original("yesterday", &zone), None);
    }

    #[test]
    fn ages_are_short() {
        assert_eq!(age(59), "59s");
        assert_eq!(age(3_599), "59m");
        assert_eq!(age(7_440), "2h 04m");
        assert_eq!(age(190_800), "2d 05h");
    }
}
