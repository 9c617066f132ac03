//! Statistics of what ran.

use tpu_core::model::calendar::Day;
use tpu_core::plan::stats::figures::{Figures, RepeatedLine, hours};
use tpu_core::plan::stats::{Seen, StatsRow};
use tpu_ops::observe::stats::StatsReport;

use super::document::{documents, part};
use super::words::{Members, TimePart};

/// The key of all rows together.
pub const TOTAL: &str = "total";

documents! {
    /// What ran, counted.
    pub struct StatsDocument<'a> from report: &'a StatsReport {
        /// What a row stands for: `user`, `target`, `type`, `zone`, `tag`, `week`, `kind`.
        by: &'a str = report.by.as_str(),
        /// From when on was counted; `null`: from the first attempt on.
        since: Option<TimePart> = part(&report.period.since),
        /// Up to when.
        until: TimePart = part(&report.period.until),
        /// How far the journal reaches back: how long jobs waited before then nobody knows.
        journal_since: Option<TimePart>,
        /// How many attempts are in no row because nobody knows when they ended.
        endless: u32,
        /// Weeks in their order; of all else that with most hours first.
        rows: Vec<StatsRowPart<'a>> = report.stats.rows.iter().map(row).collect(),
        /// All rows together.
        total: StatsRowPart<'a> = StatsRowPart::from((&report.stats.total, TOTAL)),
        /// By hour of day, from 0 to 23, as the clock of who asks has it.
        by_hour: Vec<HourPart> =
            report.stats.hours.iter().enumerate().map(HourPart::from).collect(),
        /// By day, those on which something ran.
        by_day: Vec<DayPart> = report.stats.days.iter().map(DayPart::from).collect(),
    }

    /// The figures of one row.
    pub struct StatsRowPart<'a> from (figures, key): (&'a Figures, &'a str) {
        /// The user, target, type, zone, tag, week or kind.
        key: &'a str = key,
        /// Attempts that worked.
        attempts: u32,
        /// How long they did.
        hours: f64 = figures.hours(),
        /// What that cost by the prices of the settings; `null` where these leave a part out.
        cost: Option<f64> = figures.cost(),
        /// What it cost as far as there are prices.
        cost_known: f64,
        /// Hours for which there is no price.
        unpriced_hours: f64 = hours(figures.unpriced_s),
        /// The share of the time from the beginning of lineages to their end in which they got on, without what was done
        /// again; `null` where nobody can tell, or none is over.
        goodput: Option<f64> = figures.got_on.share(),
        /// Of how many lineages that is known.
        goodput_lineages: u32 = figures.got_on.lineages,
        /// How long jobs waited in the queue, in seconds in all; `null` where nobody knows.
        waited_s: Option<u64> = figures.waited_s(),
        /// How many jobs that is known of; who did not queue waited 0 s.
        waits: u32 = figures.queue.count,
        /// How long targets were waited for that came, in seconds in all.
        capacity_s: u64 = figures.capacity.total_s,
        /// How many came.
        capacity_came: u32 = figures.capacity.count,
        /// How often one did not.
        capacity_in_vain: u32 = figures.in_vain,
        /// Attempts from which their target was taken.
        preemptions: u32,
        /// The same in an hour of work.
        preemptions_per_hour: Option<f64> = figures.preemptions_per_hour(),
        /// Attempts that failed, by kind.
        failures: Members<u32> =
            figures.failures.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
        /// The lines by which most of them did.
        lines: Vec<FailureLinePart<'a>>,
        /// Failures after which a lineage began again.
        recoveries: u32 = figures.recoveries.count,
        /// How long that took, in seconds in all.
        recovery_s: u64 = figures.recoveries.total_s,
        /// Lineages that ended well.
        finished: u32,
        /// Lineages that failed, and were not brought back so far.
        failed: u32,
        /// Lineages that a person stopped.
        killed: u32,
        /// The share of those that ended well among those that ended by themselves.
        finished_share: Option<f64> = figures.finished_share(),
    }

    /// A line by which attempts failed.
    pub struct FailureLinePart<'a> from line: &'a RepeatedLine {
        /// The kind of failure.
        kind: &'a str = line.kind.as_str(),
        /// The line, as it stood once; others may differ from it in numbers.
        line: &'a str,
        /// How often.
        times: u32,
    }

    /// An hour of the day.
    pub struct HourPart from (hour, seen): (usize, &'a Seen) {
        /// From 0 to 23.
        hour: usize = hour,
        /// Hours of work in it.
        hours: f64 = hours(seen.seconds),
        /// Preemptions in it.
        preemptions: u32 = seen.preemptions,
        /// The same in an hour of work.
        preemptions_per_hour: Option<f64> = seen.preemptions_per_hour(),
    }

    /// A day.
    pub struct DayPart from (day, seen): (&'a Day, &'a Seen) {
        /// As `2026-11-20`.
        day: String = day.to_string(),
        /// Hours of work on it.
        hours: f64 = hours(seen.seconds),
        /// Preemptions on it.
        preemptions: u32 = seen.preemptions,
    }
}

/// The figures of a row.
fn row(row: &StatsRow) -> StatsRowPart<'_> {
    StatsRowPart::from((&row.figures, row.key.as_str()))
}
