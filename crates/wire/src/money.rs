//! What there may be and what it cost: quotas, bills.

use tpu_core::model::billing::Charge;
use tpu_core::model::quota::QuotaRow;
use tpu_ops::front::billing::{Bill, ChargeSum};
use tpu_ops::front::quota::{NotLearned, ProviderQuotas, Quotas};

use super::document::{documents, part};
use super::words::TimePart;

documents! {
    /// Quotas, by place and type.
    pub struct QuotaDocument<'a> from quotas: &'a Quotas {
        /// Zones in their order, then types.
        rows: Vec<QuotaRowPart<'a>> = quotas.of.iter().flat_map(rows).collect(),
        /// Who was asked, and when.
        providers: Vec<AskedProviderPart<'a>> = part(&quotas.of),
        /// How many rows are left out that say nothing is granted and nothing in use.
        idle: usize,
    }

    /// One thing in one place.
    pub struct QuotaRowPart<'a> from (row, provider): (&'a QuotaRow, &'a str) {
        /// A zone; a region or `global` where all zones of it share a limit.
        zone: &'a str,
        /// A family of accelerators and how they are paid for (`v4-preemptible`), counted as the names of types count; or a
        /// resource (`in-use-addresses`).
        #[serde(rename = "type")]
        kind: &'a str,
        /// How much is in use; `null` where nobody can tell.
        used: Option<u64>,
        /// How much there may be; `null` where there is no limit, or nobody says one.
        limit: Option<u64>,
        /// How much more there may be; `null` where that is not known.
        free: Option<u64> = row.free(),
        /// Who says so: `google, project lab`.
        provider: &'a str = provider,
    }

    /// Who was asked.
    pub struct AskedProviderPart<'a> from quotas: &'a ProviderQuotas {
        /// As `google, project lab`.
        provider: &'a str,
        /// When it answered.
        at: TimePart,
        /// What it did not say.
        unknown: Vec<NotLearnedPart<'a>>,
    }

    /// Something that could not be learned.
    pub struct NotLearnedPart<'a> from not: &'a NotLearned {
        /// What was tried, and what came of it.
        message: &'a str,
        /// What to do about it.
        hint: &'a str,
    }

    /// What a month has cost.
    pub struct BillingDocument<'a> from bill: &'a Bill {
        /// As `2026-10`.
        month: String = bill.asked.month.to_string(),
        /// The table that says so.
        table: &'a str = bill.asked.table.as_str(),
        /// What a category is: `service`, `sku` or `project`.
        by: &'a str = bill.asked.by.as_str(),
        /// When the table was read.
        at: TimePart = part(&bill.charges.at),
        /// By day, then by category. Days begin at midnight in California, as on the invoice.
        rows: Vec<ChargePart<'a>> = part(&bill.charges.answer),
        /// All of it, in each currency.
        totals: Vec<TotalPart<'a>> = bill.totals().into_iter().map(TotalPart::from).collect(),
    }

    /// What one day has cost in one category.
    pub struct ChargePart<'a> from charge: &'a Charge {
        /// As `2026-10-31`.
        day: &'a str,
        /// The service, SKU or project.
        category: &'a str,
        /// As `EUR`.
        currency: &'a str,
        /// Before credits.
        cost: f64 = rounded(charge.cost),
        /// Discounts, free tiers and promotions: 0 or less.
        credits: f64 = rounded(charge.credits),
        /// What is left to pay.
        net: f64 = rounded(charge.net()),
    }

    /// What a month has cost in one currency.
    pub struct TotalPart<'a> from (currency, sum): (&'a str, ChargeSum) {
        /// As `EUR`.
        currency: &'a str = currency,
        /// Before credits.
        cost: f64 = rounded(sum.cost),
        /// 0 or less.
        credits: f64 = rounded(sum.credits),
        /// What is left to pay.
        net: f64 = rounded(sum.net()),
    }
}

/// Bills have nine digits behind the point; what adding them up has made beyond that is no money.
pub fn rounded(amount: f64) -> f64 {
    let rounded = (amount * 1e9).round() / 1e9;
    // No bill says -0.
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// The quotas of a provider.
fn rows(of: &ProviderQuotas) -> impl Iterator<Item = QuotaRowPart<'_>> {
    of.rows.iter().map(|row| QuotaRowPart::from((row, of.provider.as_str())))
}
