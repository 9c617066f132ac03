//! What the simulated project may have and has to pay, as far as somebody has set it: limits, charges, and what is odd
//! about asking for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tpu_core::model::billing::{BillingTable, Charge, ChargeBy, Month};
use tpu_engine::provider::{ProviderError, Trouble};
use tpu_system::sys::random::{Random as _, SeededRandom};

/// What a simulated month is made of: service, what exactly, and about how much on a day.
const GOODS: [(&str, &str, u64); 5] = [
    ("Cloud TPU", "TPU v4 pod, preemptible, Americas", 400),
    ("Cloud TPU", "TPU v5e pod, EMEA", 150),
    ("Cloud Storage", "Standard storage, multi-region", 25),
    ("Compute Engine", "Network egress between regions", 12),
    ("BigQuery", "Analysis", 1),
];

/// One line of a bill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BillLine {
    /// The table in which it is, by its whole name.
    pub table: String,
    /// As `2026-10-31`.
    pub day: String,
    /// The service.
    pub service: String,
    /// What exactly was sold.
    pub sku: String,
    /// For which project.
    #[serde(default)]
    pub project: Option<String>,
    /// Before credits.
    pub cost: f64,
    /// 0 or less.
    #[serde(default)]
    pub credits: f64,
    /// As `EUR`; US dollars if nothing is said.
    #[serde(default)]
    pub currency: Option<String>,
}

/// A change of what the project may have or has to pay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AccountChange {
    /// So much is granted of a quota; the first one that is set takes the place of all that the seed grants.
    Limit {
        /// Its ID, or the name of a resource of Compute Engine.
        quota: String,
        /// In which zone or region, or `global`.
        location: String,
        /// How much; less than 0 for as much as anybody wants.
        limit: i64,
        /// How much of a resource is in use, beside what the fleet takes.
        #[serde(default)]
        used: u64,
    },
    /// Nothing is granted but what is set from now on.
    NoLimits,
    /// A line of a bill.
    Bill(BillLine),
    /// A month of a bill, drawn from the seed.
    BillMonth {
        /// The table, by its whole name.
        table: String,
        /// As `2026-10`.
        month: String,
    },
    /// There are no more than so many entries on a page, whatever was asked for.
    Pages {
        /// How many.
        most: usize,
    },
    /// So many looks at a query find it not done.
    SlowQuery {
        /// How many.
        looks: u32,
    },
    /// So many questions are refused as too many in a minute.
    TooFast {
        /// How many.
        times: u32,
    },
}

/// Limit and use of one quota, by place.
pub(super) type LimitsByPlace = BTreeMap<String, (i64, u64)>;

/// What was changed so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SimAccounts {
    /// By quota; the seed's where nobody has set any.
    pub(super) limits: Option<BTreeMap<String, LimitsByPlace>>,
    bills: Vec<BillLine>,
    pub(crate) most_on_a_page: Option<usize>,
    pub(crate) slow_looks: u32,
    pub(crate) too_fast: u32,
}

impl SimAccounts {
    pub(super) fn is_unchanged(&self) -> bool {
        *self == Self::default()
    }

    /// Does what a change says. A month that is drawn is drawn from `seed`.
    pub(super) fn change(
        &mut self,
        change: &AccountChange,
        seed: u64,
    ) -> Result<(), ProviderError> {
        let wrong = |what: String| ProviderError::new(Trouble::User, "simulate an account", what);
        let table = |name: &str| {
            let parsed = BillingTable::parse(name);
            parsed.map(drop).ok_or_else(|| wrong(format!("'{name}' is no PROJECT.DATASET.TABLE")))
        };
        match change {
            AccountChange::Limit { quota, location, limit, used } => {
                let of = self.limits.get_or_insert_default();
                of.entry(quota.clone()).or_default().insert(location.clone(), (*limit, *used));
            }
            AccountChange::NoLimits => self.limits = Some(BTreeMap::new()),
            AccountChange::Bill(line) => {
                table(&line.table)?;
                if Month::of_day(&line.day).is_none_or(|of| !of.days().contains(&line.day)) {
                    return Err(wrong(format!("'{}' is no day such as 2026-10-31", line.day)));
                }
                if !line.cost.is_finite() || !line.credits.is_finite() {
                    return Err(wrong("a bill has finite figures".to_owned()));
                }
                self.bills.push(line.clone());
            }
            AccountChange::BillMonth { table: name, month } => {
                table(name)?;
                let of = Month::parse(month);
                let of =
                    of.ok_or_else(|| wrong(format!("'{month}' is no month such as 2026-10")))?;
                self.bill_month(name, of, seed);
            }
            AccountChange::Pages { most } => self.most_on_a_page = Some((*most).max(1)),
            AccountChange::SlowQuery { looks } => self.slow_looks = *looks,
            AccountChange::TooFast { times } => self.too_fast = *times,
        }
        Ok(())
    }

    fn bill_month(&mut self, table: &str, month: Month, seed: u64) {
        let draw = SeededRandom::new(seed);
        for day in month.days() {
            for (service, sku, about) in GOODS {
                let cents = about * 50 + draw.below(about * 100 + 1);
                #[expect(clippy::cast_precision_loss, reason = "cents of a simulated day")]
                let cost = cents as f64 / 100.0;
                self.bills.push(BillLine {
                    table: table.to_owned(),
                    day: day.clone(),
                    service: service.to_owned(),
                    sku: sku.to_owned(),
                    project: Some("lab".to_owned()),
                    cost,
                    credits: if service == "Cloud TPU" { -cost / 4.0 } else { 0.0 },
                    currency: None,
                });
            }
        }
    }

    /// What a month has cost by the lines in a table; `None` where there is no such table.
    pub(crate) fn charges(
        &self,
        table: &str,
        first: &str,
        behind: &str,
        by: ChargeBy,
    ) -> Option<Vec<Charge>> {
        let mut lines = self.bills.iter().filter(|line| line.table == table).peekable();
        lines.peek()?;
        let mut sums: BTreeMap<(String, String, String), (f64, f64)> = BTreeMap::new();
        for line in lines.filter(|line| line.day.as_str() >= first && line.day.as_str() < behind) {
            let category = match by {
                ChargeBy::Service => line.service.clone(),
                ChargeBy::Sku => line.sku.clone(),
                ChargeBy::Project => line.project.clone().unwrap_or_else(|| "-".to_owned()),
            };
            let currency = line.currency.clone().unwrap_or_else(|| "USD".to_owned());
            let sum = sums.entry((line.day.clone(), category, currency)).or_default();
            sum.0 += line.cost;
            sum.1 += line.credits;
        }
        let charge = |((day, category, currency), (cost, credits))| Charge {
            day,
            category,
            currency,
            cost,
            credits,
        };
        Some(sums.into_iter().map(charge).collect())
    }
}
