//! What a project has cost: months, charges, and the table that an export of Cloud Billing is written to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::calendar::Day;
use super::read::{self, DataError, Json, Path};
use super::time::{Timestamp, Zone};
use super::words::words;

/// The zone of the days of an invoice: they begin at midnight in California.
pub const INVOICE_ZONE: &str = "America/Los_Angeles";

/// A table of `BigQuery` by its whole name, `PROJECT.DATASET.TABLE`. It stands in the text of a query, so nothing is
/// one that could end its quotes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct BillingTable(String);

impl BillingTable {
    /// Reads a whole name, by the rules of `BigQuery` for datasets and tables and those of projects.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.rsplitn(3, '.');
        let (table, dataset, project) = (parts.next()?, parts.next()?, parts.next()?);
        let is_dataset = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_table = |c: char| is_dataset(c) || c == '-';
        // A project of a domain has that in front, as in `example.com:lab`.
        let is_project =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.:".contains(c);
        let is = |part: &str, is_part: &dyn Fn(char) -> bool| {
            !part.is_empty() && part.len() <= 1_024 && part.chars().all(is_part)
        };
        let is_whole = is(project, &is_project)
            && project.starts_with(|c: char| c.is_ascii_lowercase())
            && is(dataset, &is_dataset)
            && is(table, &is_table);
        is_whole.then(|| Self(text.to_owned()))
    }

    /// The project in which it is.
    pub fn project(&self) -> &str {
        self.0.rsplitn(3, '.').last().unwrap_or_default()
    }

    /// The whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn read(value: Json<'_>, path: &Path<'_>) -> Result<Option<Self>, DataError> {
        if value.is_null() {
            return Ok(None);
        }
        let expected = "the whole name of a table of BigQuery, PROJECT.DATASET.TABLE";
        read::one_of(value, path, Self::parse, expected).map(Some)
    }
}

impl fmt::Display for BillingTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A month, as `2026-10`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(jiff::civil::Date);

impl Month {
    /// Reads `2026-10`.
    pub fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        if year.len() != 4 || month.len() != 2 || !digits(year) || !digits(month) {
            return None;
        }
        let (year, month) = (year.parse().ok()?, month.parse().ok()?);
        jiff::civil::Date::new(year, month, 1).ok().map(Self)
    }

    /// The month of an invoice in which an instant is.
    pub fn of(at: Timestamp) -> Option<Self> {
        let zone = Zone::named(INVOICE_ZONE, jiff::tz::TimeZone::UTC)?;
        Self::of_day(&Day::of(at, &zone).to_string())
    }

    /// The month of a day, which is written as `2026-10-31`.
    pub fn of_day(day: &str) -> Option<Self> {
        Self::parse(day.get(..7)?)
    }

    /// Its first day, as `2026-10-01`.
    pub fn first_day(self) -> String {
        self.0.to_string()
    }

    /// The first day behind it.
    pub fn day_behind(self) -> String {
        let next = self.0.last_of_month().tomorrow();
        // The last month that there is ends with the last day that there is.
        next.unwrap_or_else(|_| self.0.last_of_month()).to_string()
    }

    /// Its days in their order.
    pub fn days(self) -> Vec<String> {
        let (year, month) = (self.0.year(), self.0.month());
        let day = |day| jiff::civil::Date::new(year, month, day).ok();
        (1..=self.0.days_in_month()).filter_map(day).map(|day| day.to_string()).collect()
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.0.year(), self.0.month())
    }
}

/// What charges are put together by, beside the day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChargeBy {
    /// The service: Cloud TPU, Cloud Storage.
    #[default]
    Service,
    /// What exactly was sold: a type of TPU in a region.
    Sku,
    /// The project that it was for.
    Project,
}

words! {
    /// The spelling on the command line.
    ChargeBy {
        Service: "service",
        Sku: "sku",
        Project: "project",
    }
}

impl ChargeBy {
    /// Reads the spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.as_str() == text)
    }
}

/// What is asked of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingQuery {
    /// Where it is.
    pub table: BillingTable,
    /// Which month.
    pub month: Month,
    /// What charges are put together by.
    pub by: ChargeBy,
}

/// What one day has cost in one category.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// As `2026-10-31`.
    pub day: String,
    /// The service, SKU or project.
    pub category: String,
    /// As `EUR`.
    pub currency: String,
    /// Before credits.
    pub cost: f64,
    /// Discounts, free tiers and promotions: 0 or less.
    pub credits: f64,
}

impl Charge {
    /// What is left to pay.
    pub fn net(&self) -> f64 {
        self.cost + self.credits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_name_without_quotes_is_a_table() {
        for good in [
            "lab.billing.gcp_billing_export_v1_01AB23_456789_CDEF01",
            "example.com:lab.billing.t",
            "lab-1.b.t-2",
        ] {
            assert_eq!(BillingTable::parse(good).unwrap().as_str(), good);
        }
        let of_a_domain = BillingTable::parse("example.com:lab.billing.t").unwrap();
        assert_eq!(of_a_domain.project(), "example.com:lab");
        for bad in [
            "",
            "billing.t",
            "lab.billing.",
            ".billing.t",
            "lab.bill-ing.t",
            "lab.billing.t`; DROP TABLE x",
            "lab.billing.t t",
            "Lab.billing.t",
            "lab.b\u{e9}.t",
            "`lab.billing.t`",
            "lab.billing.t\n",
        ] {
            assert_eq!(BillingTable::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_month_ends_where_the_next_one_begins() {
        let month = |text| Month::parse(text).unwrap();
        assert_eq!(month("2026-10").first_day(), "2026-10-01");
        assert_eq!(month("2026-12").day_behind(), "2027-01-01");
        assert_eq!(month("2024-02").days().len(), 29);
        assert_eq!(month("2026-02").days().last().unwrap(), "2026-02-28");
        assert_eq!(Month::of_day("2026-10-31"), Month::parse("2026-10"));
        assert!(month("9999-12").day_behind() >= month("9999-12").first_day());
        // Seven in the morning of the first day in Greenwich is still the last day of the month before.
        let morning = Timestamp::parse_rfc3339("2026-10-01T06:59:59Z").unwrap();
        assert_eq!(Month::of(morning), Month::parse("2026-09"));
        assert_eq!(Month::of(morning.plus_seconds(1)), Month::parse("2026-10"));
        for bad in ["2026", "2026-13", "2026-1", "26-10", "2026-00", "2026-10-01", "+026-10", "x"] {
            assert_eq!(Month::parse(bad), None, "{bad}");
        }
    }
}
