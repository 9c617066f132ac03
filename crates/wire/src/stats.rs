//! Statistics of what ran.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::plan::stats::StatsRow;
use tpu_core::plan::stats::figures::{Figures, RepeatedLine, hours};
use tpu_ops::observe::stats::StatsReport;

use super::words::{Members, TimePart};

/// What ran, counted.
#[derive(Serialize, JsonSchema)]
pub struct StatsDocument<'a> {
    /// What a row stands for: `user`, `target`, `type`, `zone`, `tag`, `week`, `kind`.
    pub by: &'a str,
    /// From when on was counted; `null`: from the first attempt on.
    pub since: Option<TimePart>,
    /// Up to when.
    pub until: TimePart,
    /// How far the journal reaches back: how long jobs waited before then nobody knows.
    pub journal_since: Option<TimePart>,
    /// How many attempts are in no row because nobody knows when they ended.
    pub endless: u32,
    /// Weeks in their order; of all else that with most hours first.
    pub rows: Vec<StatsRowPart<'a>>,
    /// All rows together.
    pub total: StatsRowPart<'a>,
    /// By hour of day, from 0 to 23, as the clock of who asks has it.
    pub by_hour: Vec<HourPart>,
    /// By day, those on which something ran.
    pub by_day: Vec<DayPart>,
}

/// The figures of one row.
#[derive(Serialize, JsonSchema)]
pub struct StatsRowPart<'a> {
    /// The user, target, type, zone, tag, week or kind.
    pub key: &'a str,
    /// Attempts that worked.
    pub attempts: u32,
    /// How long they did.
    pub hours: f64,
    /// What that cost by the prices of the settings; `null` where these leave a part out.
    pub cost: Option<f64>,
    /// What it cost as far as there are prices.
    pub cost_known: f64,
    /// Hours for which there is no price.
    pub unpriced_hours: f64,
    /// The share of the time from the beginning of lineages to their end in which they got on, without what was done
    /// again; `null` where nobody can tell, or none is over.
    pub goodput: Option<f64>,
    /// Of how many lineages that is known.
    pub goodput_lineages: u32,
    /// How long jobs waited in the queue, in seconds in all; `null` where nobody knows.
    pub waited_s: Option<u64>,
    /// How many jobs that is known of; who did not queue waited 0 s.
    pub waits: u32,
    /// How long targets were waited for that came, in seconds in all.
    pub capacity_s: u64,
    /// How many came.
    pub capacity_came: u32,
    /// How often one did not.
    pub capacity_in_vain: u32,
    /// Attempts from which their target was taken.
    pub preemptions: u32,
    /// The same in an hour of work.
    pub preemptions_per_hour: Option<f64>,
    /// Attempts that failed, by kind.
    pub failures: Members<u32>,
    /// The lines by which most of them did.
    pub lines: Vec<FailureLinePart<'a>>,
    /// Failures after which a lineage began again.
    pub recoveries: u32,
    /// How long that took, in seconds in all.
    pub recovery_s: u64,
    /// Lineages that ended well.
    pub finished: u32,
    /// Lineages that failed, and were not brought back so far.
    pub failed: u32,
    /// Lineages that a person stopped.
    pub killed: u32,
    /// The share of those that ended well among those that ended by themselves.
    pub finished_share: Option<f64>,
}

/// A line by which attempts failed.
#[derive(Serialize, JsonSchema)]
pub struct FailureLinePart<'a> {
    /// The kind of failure.
    pub kind: &'a str,
    /// The line, as it stood once; others may differ from it in numbers.
    pub line: &'a str,
    /// How often.
    pub times: u32,
}

/// An hour of the day.
#[derive(Serialize, JsonSchema)]
pub struct HourPart {
    /// From 0 to 23.
    pub hour: usize,
    /// Hours of work in it.
    pub hours: f64,
    /// Preemptions in it.
    pub preemptions: u32,
    /// The same in an hour of work.
    pub preemptions_per_hour: Option<f64>,
}

/// A day.
#[derive(Serialize, JsonSchema)]
pub struct DayPart {
    /// As `2026-11-20`.
    pub day: String,
    /// Hours of work on it.
    pub hours: f64,
    /// Preemptions on it.
    pub preemptions: u32,
}

/// The key of all rows together.
pub const TOTAL: &str = "total";

impl<'a> From<&'a StatsReport> for StatsDocument<'a> {
    fn from(report: &'a StatsReport) -> Self {
        let stats = &report.stats;
        let hour = |(hour, seen): (usize, &tpu_core::plan::stats::Seen)| HourPart {
            hour,
            hours: hours(seen.seconds),
            preemptions: seen.preemptions,
            preemptions_per_hour: seen.preemptions_per_hour(),
        };
        Self {
            by: report.by.as_str(),
            since: report.period.since.map(TimePart),
            until: TimePart(report.period.until),
            journal_since: report.journal_since.map(TimePart),
            endless: report.endless,
            rows: stats.rows.iter().map(StatsRowPart::from).collect(),
            total: StatsRowPart::new(TOTAL, &stats.total),
            by_hour: stats.hours.iter().enumerate().map(hour).collect(),
            by_day: stats
                .days
                .iter()
                .map(|(day, seen)| DayPart {
                    day: day.to_string(),
                    hours: hours(seen.seconds),
                    preemptions: seen.preemptions,
                })
                .collect(),
        }
    }
}

impl<'a> From<&'a StatsRow> for StatsRowPart<'a> {
    fn from(row: &'a StatsRow) -> Self {
        Self::new(&row.key, &row.figures)
    }
}

impl<'a> StatsRowPart<'a> {
    fn new(key: &'a str, figures: &'a Figures) -> Self {
        let failures = figures.failures.iter();
        Self {
            key,
            attempts: figures.attempts,
            hours: figures.hours(),
            cost: figures.cost(),
            cost_known: figures.cost_known,
            unpriced_hours: hours(figures.unpriced_s),
            goodput: figures.got_on.share(),
            goodput_lineages: figures.got_on.lineages,
            waited_s: figures.waited_s(),
            waits: figures.queue.count,
            capacity_s: figures.capacity.total_s,
            capacity_came: figures.capacity.count,
            capacity_in_vain: figures.in_vain,
            preemptions: figures.preemptions,
            preemptions_per_hour: figures.preemptions_per_hour(),
            failures: failures.map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            lines: figures.lines.iter().map(FailureLinePart::from).collect(),
            recoveries: figures.recoveries.count,
            recovery_s: figures.recoveries.total_s,
            finished: figures.finished,
            failed: figures.failed,
            killed: figures.killed,
            finished_share: figures.finished_share(),
        }
    }
}

impl<'a> From<&'a RepeatedLine> for FailureLinePart<'a> {
    fn from(line: &'a RepeatedLine) -> Self {
        Self { kind: line.kind.as_str(), line: &line.line, times: line.times }
    }
}
