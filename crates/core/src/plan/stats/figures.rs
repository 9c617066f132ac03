//! What is counted of some attempts: sums, from which all else follows.

use std::collections::BTreeMap;

use crate::model::facts::{ErrorKind, percent};
use crate::model::time;

/// The sums of one row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Attempts that worked in the period.
    pub attempts: u32,
    /// How long they did, in seconds.
    pub seconds: u64,
    /// What that cost, as far as there are prices.
    pub cost_known: f64,
    /// Seconds of which nobody has said what they cost.
    pub unpriced_s: u64,
    /// Of the lineages that ended, or are at work: how long they got on, and since their beginning, in seconds. Only
    /// those of which both are known.
    pub got_on: GotOn,
    /// Waiting in the queue.
    pub queue: Waits,
    /// Waiting for targets that came in the end.
    pub capacity: Waits,
    /// How often a target did not come.
    pub in_vain: u32,
    /// Attempts from which their target was taken.
    pub preemptions: u32,
    /// Attempts that failed, by kind.
    pub failures: BTreeMap<&'static str, u32>,
    /// The lines by which they did, with how often each came; those that differ in numbers alone are one.
    pub lines: Vec<RepeatedLine>,
    /// Failures after which a lineage began again, and how long that took.
    pub recoveries: Waits,
    /// Lineages that ended well.
    pub finished: u32,
    /// Lineages that failed for good, so far.
    pub failed: u32,
    /// Lineages that a person stopped.
    pub killed: u32,
}

/// A line by which attempts failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedLine {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The line, as it stood the first time.
    pub line: String,
    /// How often.
    pub times: u32,
}

/// Seconds, and how many they are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// In all.
    pub total_s: u64,
    /// How many.
    pub count: u32,
}

impl Waits {
    /// One more.
    pub fn add(&mut self, seconds: u64) {
        self.total_s = self.total_s.saturating_add(seconds);
        self.count += 1;
    }

    /// Seconds for each; `None` where there was none.
    pub fn mean_s(self) -> Option<u64> {
        self.total_s.checked_div(u64::from(self.count))
    }

    /// The same in words; a dash where there was none.
    pub fn mean_in_words(self) -> String {
        self.mean_s().map_or_else(|| "-".to_owned(), time::age)
    }
}

/// How much of the time of some lineages was worth something.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GotOn {
    /// In how many seconds they got on: without those in which nothing ran, and without work that was done again.
    pub useful_s: f64,
    /// Seconds since each began.
    pub wall_s: f64,
    /// How many lineages.
    pub lineages: u32,
}

impl GotOn {
    /// The share; `None` where nothing is known.
    pub fn share(self) -> Option<f64> {
        (self.wall_s > 0.0).then(|| (self.useful_s / self.wall_s).clamp(0.0, 1.0))
    }
}

/// Seconds as hours.
pub fn hours(seconds: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "the hours of a lab fit a float")]
    let seconds = seconds as f64;
    seconds / 3_600.0
}

impl Figures {
    /// How long attempts worked, in hours.
    pub fn hours(&self) -> f64 {
        hours(self.seconds)
    }

    /// What all of it cost; `None` as soon as nobody has said so of a part.
    pub fn cost(&self) -> Option<f64> {
        (self.unpriced_s == 0).then_some(self.cost_known)
    }

    /// How long jobs waited in the queue; `None` where it is known of none.
    pub fn waited_s(&self) -> Option<u64> {
        (self.queue.count > 0).then_some(self.queue.total_s)
    }

    /// Preemptions in an hour of work; `None` where nothing worked.
    pub fn preemptions_per_hour(&self) -> Option<f64> {
        (self.seconds > 0).then(|| f64::from(self.preemptions) / self.hours())
    }

    /// Of the lineages that ended by themselves, the share that ended well.
    pub fn finished_share(&self) -> Option<f64> {
        let ended = self.finished + self.failed;
        (ended > 0).then(|| f64::from(self.finished) / f64::from(ended))
    }

    /// How often it failed otherwise than by a preemption.
    pub fn other_failures(&self) -> u32 {
        let failures: u32 = self.failures.values().sum();
        failures.saturating_sub(self.preemptions)
    }

    /// What it cost, with a question mark for what nobody has put a price on.
    pub fn cost_in_words(&self) -> String {
        match (self.cost(), self.cost_known > 0.0) {
            (Some(cost), _) => format!("{cost:.2}"),
            (None, true) => format!("{:.2} + ?", self.cost_known),
            (None, false) => "?".to_owned(),
        }
    }

    /// How much of the time was worth something; a question mark where nobody can tell.
    pub fn goodput_in_words(&self) -> String {
        self.got_on.share().map_or_else(|| "?".to_owned(), percent)
    }

    /// How long each waited in the queue; a question mark where that is known of none.
    pub fn waited_in_words(&self) -> String {
        self.waited_s().map_or_else(|| "?".to_owned(), |_| self.queue.mean_in_words())
    }

    /// Preemptions in an hour of work; a dash where nothing worked.
    pub fn rate_in_words(&self) -> String {
        self.preemptions_per_hour().map_or_else(|| "-".to_owned(), |rate| format!("{rate:.3}"))
    }

    /// Adds the time of an attempt.
    pub(super) fn worked(&mut self, seconds: u64, per_hour: Option<f64>) {
        self.seconds = self.seconds.saturating_add(seconds);
        match per_hour {
            Some(price) => self.cost_known += price * hours(seconds),
            None => self.unpriced_s = self.unpriced_s.saturating_add(seconds),
        }
    }

    /// Adds a failure.
    pub(super) fn failed_by(&mut self, kind: ErrorKind) {
        *self.failures.entry(kind.as_str()).or_default() += 1;
        self.preemptions += u32::from(kind == ErrorKind::Preempted);
    }
}
