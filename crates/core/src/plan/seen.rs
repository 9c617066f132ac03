//! What was seen of a type in a zone: how long targets of it were waited for, and how often they were taken away. It stands
//! in the reasons for which one is chosen before another, with how much was seen.

use std::cmp::Ordering;

use super::stats::figures::hours;
use super::stats::run::{CapacityWait, PastRun};
use crate::model::time::{self, Timestamp};

/// What was seen of waiting for targets of a type in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenWaits {
    /// Seconds in all, also of those who waited in vain.
    pub total_s: u64,
    /// How many targets there were at last.
    pub came: u32,
    /// How often it was in vain.
    pub vain: u32,
}

impl SeenWaits {
    /// Seconds for each that came; `None` where nothing was seen.
    pub fn for_each(self) -> Option<u64> {
        match (self.came, self.vain) {
            (0, 0) => None,
            (0, _) => Some(u64::MAX),
            (came, _) => Some(self.total_s / u64::from(came)),
        }
    }

    /// One more.
    pub fn add(&mut self, wait: &CapacityWait) {
        self.total_s = self.total_s.saturating_add(wait.waited_s);
        if wait.came {
            self.came += 1;
        } else {
            self.vain += 1;
        }
    }
}

/// What was seen of attempts there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenRuns {
    /// How many.
    pub runs: u32,
    /// How long they worked, in seconds.
    pub worked_s: u64,
    /// From how many of them their target was taken.
    pub preemptions: u32,
    /// When the first of them began.
    pub since: Option<Timestamp>,
}

impl SeenRuns {
    /// One more; what is at work has worked up to `now`.
    pub fn add(&mut self, run: &PastRun, now: Timestamp) {
        self.runs += 1;
        self.worked_s = self.worked_s.saturating_add(run.worked_s(now));
        self.preemptions += u32::from(run.is_preempted());
        self.since = Some(self.since.map_or(run.began, |since| since.min(run.began)));
    }

    /// Preemptions in an hour of work; `None` where nothing has worked.
    pub fn per_hour(self) -> Option<f64> {
        (self.worked_s > 0).then(|| f64::from(self.preemptions) / hours(self.worked_s))
    }
}

/// What was seen of a type in a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenOf {
    /// Of waiting for it.
    pub waits: SeenWaits,
    /// Of running there.
    pub runs: SeenRuns,
}

impl SeenOf {
    /// How it stood with preemptions: `preempted 0.12 times an hour in 12 runs since 2026-10-01`.
    pub fn preempted(&self) -> Option<String> {
        let SeenRuns { runs, since, .. } = self.runs;
        let (rate, since) = (self.runs.per_hour()?, since?);
        let day = since.to_rfc3339();
        let day = day.get(..10).unwrap_or_default();
        Some(format!("preempted {rate:.2} times an hour, seen in {runs} runs since {day}"))
    }

    /// How it stood with waiting: `4m of waiting for each of 3 targets`.
    pub fn waited(&self) -> Option<String> {
        match (self.waits.came, self.waits.vain) {
            (0, 0) => None,
            (0, vain) => {
                Some(format!("not to be had {vain} times, in {}", time::age(self.waits.total_s)))
            }
            (came, _) => {
                let each = self.waits.for_each().unwrap_or_default();
                Some(format!("{} of waiting for each of {came} targets", time::age(each)))
            }
        }
    }

    /// Both, for a reason; `None` where nothing was seen.
    pub fn in_words(&self) -> Option<String> {
        let said: Vec<String> = self.preempted().into_iter().chain(self.waited()).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    /// Which of two is steadier: what is taken away less often. What nobody has seen comes behind what somebody has: an
    /// order in which it were as good as each of two that differ would be none.
    pub fn steadier(&self, other: &Self) -> Ordering {
        let rate = |of: &Self| of.runs.per_hour().unwrap_or(f64::INFINITY);
        rate(self).total_cmp(&rate(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_seen_comes_last_and_the_order_is_one() {
        let seen = |worked_s, preemptions| {
            let runs = SeenRuns { runs: 1, worked_s, preemptions, since: None };
            SeenOf { runs, ..SeenOf::default() }
        };
        let all = [seen(3600, 0), seen(3600, 1), seen(3600, 5), SeenOf::default()];
        for (at, a) in all.iter().enumerate() {
            for (below, b) in all.iter().enumerate() {
                assert_eq!(a.steadier(b), at.cmp(&below), "{at} and {below}");
            }
        }
    }
}
