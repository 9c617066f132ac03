//! What the tab of usage shows: what it is to count, and what came of it.

use super::Asked;
use crate::message::{Reach, UsageQuestion};
use tpu_core::model::view::Whose;
use tpu_core::plan::stats::figures::Figures;
use tpu_core::plan::stats::{By, StatsRow};
use tpu_ops::observe::stats::StatsReport;

/// What came of counting, with the question that it answers.
#[derive(Clone, Debug)]
pub struct UsageSeen {
    /// The question.
    pub question: UsageQuestion,
    /// The figures.
    pub report: StatsReport,
    /// The rows of the table: that of all together, where there are several, then one for each key.
    pub rows: Vec<StatsRow>,
}

/// The key of the row of all together; no user, target, type, zone, tag, week or kind is called so.
pub const ALL_TOGETHER: &str = "";

impl UsageSeen {
    /// The answer to a question.
    pub fn new(question: UsageQuestion, mut report: StatsReport) -> Self {
        let mut rows = std::mem::take(&mut report.stats.rows);
        if rows.len() > 1 {
            let figures = report.stats.total.clone();
            rows.insert(0, StatsRow { key: ALL_TOGETHER.to_owned(), figures });
        }
        Self { question, report, rows }
    }

    /// Whether a price is known of anything that was counted.
    pub(crate) fn has_cost(&self) -> bool {
        self.report.stats.total.cost_known > 0.0
    }
}

/// What bars stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Hours of work.
    Hours,
    /// What they cost.
    Cost,
}

impl Measure {
    /// The words above the bars.
    pub fn word(self) -> &'static str {
        match self {
            Self::Hours => "by hours",
            Self::Cost => "by cost",
        }
    }

    /// How much of it there is.
    pub fn of(self, figures: &Figures) -> f64 {
        match self {
            Self::Hours => figures.hours(),
            Self::Cost => figures.cost_known,
        }
    }
}

/// The tab of usage.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// What was counted.
    pub asked: Asked<UsageSeen>,
    /// What was asked last, whatever came of it.
    pub last: Option<UsageQuestion>,
    /// What rows are to stand for; nobody has chosen yet without.
    pub by: Option<By>,
    /// How far back.
    pub reach: Reach,
    /// What bars are to stand for; nobody has chosen yet without.
    pub measure: Option<Measure>,
    /// How often the plots have been turned over to the next one.
    pub turned: usize,
}

impl Usage {
    /// What rows are to stand for. Of one person's work the targets say most, of everybody's whose it was.
    pub fn by(&self, whose: &Whose) -> By {
        self.by.unwrap_or(if whose.only().is_some() { By::Target } else { By::User })
    }

    /// What bars stand for: money, where it is known of everything what it costs, until somebody wants it otherwise.
    pub fn measure(&self) -> Measure {
        let Some(seen) = self.asked.seen.as_ref().filter(|seen| seen.has_cost()) else {
            return Measure::Hours;
        };
        let whole = seen.report.stats.total.cost().is_some();
        self.measure.unwrap_or(if whole { Measure::Cost } else { Measure::Hours })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rows_stand_for_follows_whose_they_are_until_somebody_chooses() {
        let mut usage = Usage::default();
        let alice = Whose::of([tpu_core::model::ids::UserName::from("alice")]);
        assert_eq!((usage.by(&alice), usage.by(&Whose::default())), (By::Target, By::User));
        usage.by = Some(By::Week);
        assert_eq!((usage.by(&alice), usage.by(&Whose::default())), (By::Week, By::Week));
    }
}
