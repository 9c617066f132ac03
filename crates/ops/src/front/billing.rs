//! What a month has cost, by the export of the bills that a setting names.

use std::collections::BTreeMap;

use tpu_core::model::billing::{BillingQuery, BillingTable, Charge, ChargeBy, Month};
use tpu_core::model::data::User;
use tpu_engine::provider::{ProviderError, Trouble};

use crate::base::answer_cache::{self, Aged};
use crate::{Ctx, Error};

/// An answer younger than this, in seconds, is shown again: exports come a few times a day.
const YOUNG_S: u64 = 3_600;

/// What somebody wants to know.
#[derive(Clone, Debug)]
pub struct BillingRequest {
    /// Which month; the one that is not over yet if nothing is said.
    pub month: Option<Month>,
    /// What charges are put together by.
    pub by: ChargeBy,
    /// Asks, however young the last answer is.
    pub fresh: bool,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Bill {
    /// What was asked.
    pub asked: BillingQuery,
    /// By day and category.
    pub charges: Aged<Vec<Charge>>,
}

/// What some charges come to, in one currency.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChargeSum {
    /// Before credits.
    pub cost: f64,
    /// 0 or less.
    pub credits: f64,
}

impl ChargeSum {
    /// Adds a charge.
    pub fn add(&mut self, charge: &Charge) {
        self.cost += charge.cost;
        self.credits += charge.credits;
    }

    /// What is left to pay.
    pub fn net(&self) -> f64 {
        self.cost + self.credits
    }
}

impl Bill {
    /// Charges put together by something of theirs and by currency, in the order of that.
    pub fn sums<'a>(&'a self, by: fn(&'a Charge) -> &'a str) -> Vec<(&'a str, &'a str, ChargeSum)> {
        let mut sums: BTreeMap<(&str, &str), ChargeSum> = BTreeMap::new();
        for charge in &self.charges.answer {
            let (key, currency) = (by(charge), charge.currency.as_str());
            sums.entry((key, currency)).or_default().add(charge);
        }
        sums.into_iter().map(|((key, currency), sum)| (key, currency, sum)).collect()
    }

    /// The whole of it, in each currency.
    pub fn totals(&self) -> Vec<(&str, ChargeSum)> {
        self.sums(|_| "").into_iter().map(|(_, currency, sum)| (currency, sum)).collect()
    }
}

/// Reads what a month has cost, by the settings of a user, or of nobody in particular.
pub fn read(ctx: &Ctx, user: Option<&User>, request: &BillingRequest) -> Result<Bill, Error> {
    let table = table(ctx, user)?;
    let data = ctx.data()?;
    let mut places = ctx.places().all(&data);
    places.retain(|at| !at.name.is_none());
    if places.is_empty() {
        let what = "no control plane is set up";
        return Err(ProviderError::new(Trouble::NoProvider, "read the bills", what).into());
    }
    let now = Month::of(ctx.clock.now());
    let month = request.month.or(now).ok_or_else(|| {
        Error::usage("nobody knows which month it is").hint("say it: tpu billing --month 2026-10")
    })?;
    if now.is_some_and(|now| month > now) {
        return Err(Error::usage(format!("{month} has not begun yet"))
            .hint("name one that has: tpu billing --month 2026-10"));
    }
    let asked = BillingQuery { table, month, by: request.by };
    // The export is one table, and not every provider writes bills or may read it: the first that can says what is in it.
    let mut trouble: Option<ProviderError> = None;
    for at in &places {
        let question = format!("bill of {month} in {} by {}, {at}", asked.table, asked.by.as_str());
        if let Some(charges) =
            answer_cache::last(ctx, &question, YOUNG_S).filter(|_| !request.fresh)
        {
            return Ok(Bill { asked, charges });
        }
        match ctx.provider(at).charges(&asked) {
            Ok(charges) => {
                let charges = answer_cache::keep(ctx, &question, charges);
                return Ok(Bill { asked, charges });
            }
            Err(error) if trouble.is_none() => trouble = Some(error),
            // That somebody writes no bills says less than what went wrong elsewhere.
            Err(error) => {
                trouble = trouble.filter(|known| known.trouble != Trouble::User).or(Some(error));
            }
        }
    }
    let nothing = || ProviderError::new(Trouble::NoProvider, "read the bills", "nobody has them");
    Err(trouble.unwrap_or_else(nothing).into())
}

fn table(ctx: &Ctx, user: Option<&User>) -> Result<BillingTable, Error> {
    ctx.settings(user)?.billing_table.ok_or_else(|| {
        Error::refused("nobody has said where the bills are").hint(
            "let Cloud Billing export to BigQuery (in the console: Billing, Billing export, standard usage cost), \
             then: tpu set-settings billing_table PROJECT.DATASET.gcp_billing_export_v1_ACCOUNT",
        )
    })
}
