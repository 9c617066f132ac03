//! What there may be and what it cost: quotas, bills.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::billing::Charge;
use tpu_core::model::quota::QuotaRow;
use tpu_ops::front::billing::{Bill, ChargeSum};
use tpu_ops::front::quota::{NotLearned, ProviderQuotas, Quotas};

use super::words::TimePart;

/// Quotas, by place and type.
#[derive(Serialize, JsonSchema)]
pub struct QuotaDocument<'a> {
    /// Zones in their order, then types.
    pub rows: Vec<QuotaRowPart<'a>>,
    /// Who was asked, and when.
    pub providers: Vec<AskedProviderPart<'a>>,
    /// How many rows are left out that say nothing is granted and nothing in use.
    pub idle: usize,
}

/// One thing in one place.
#[derive(Serialize, JsonSchema)]
pub struct QuotaRowPart<'a> {
    /// A zone; a region or `global` where all zones of it share a limit.
    pub zone: &'a str,
    /// A family of accelerators and how they are paid for (`v4-preemptible`), counted as the names of types count; or a
    /// resource (`in-use-addresses`).
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// How much is in use; `null` where nobody can tell.
    pub used: Option<u64>,
    /// How much there may be; `null` where there is no limit, or nobody says one.
    pub limit: Option<u64>,
    /// How much more there may be; `null` where that is not known.
    pub free: Option<u64>,
    /// Who says so: `google, project lab`.
    pub provider: &'a str,
}

/// Who was asked.
#[derive(Serialize, JsonSchema)]
pub struct AskedProviderPart<'a> {
    /// As `google, project lab`.
    pub provider: &'a str,
    /// When it answered.
    pub at: TimePart,
    /// What it did not say.
    pub unknown: Vec<NotLearnedPart<'a>>,
}

/// Something that could not be learned.
#[derive(Serialize, JsonSchema)]
pub struct NotLearnedPart<'a> {
    /// What was tried, and what came of it.
    pub message: &'a str,
    /// What to do about it.
    pub hint: &'a str,
}

impl<'a> From<&'a Quotas> for QuotaDocument<'a> {
    fn from(quotas: &'a Quotas) -> Self {
        Self {
            rows: quotas
                .of
                .iter()
                .flat_map(|of| of.rows.iter().map(|row| QuotaRowPart::new(row, &of.provider)))
                .collect(),
            providers: quotas.of.iter().map(AskedProviderPart::from).collect(),
            idle: quotas.idle,
        }
    }
}

impl<'a> QuotaRowPart<'a> {
    fn new(row: &'a QuotaRow, provider: &'a str) -> Self {
        let QuotaRow { zone, kind, used, limit } = row;
        Self { zone, kind, used: *used, limit: *limit, free: row.free(), provider }
    }
}

impl<'a> From<&'a ProviderQuotas> for AskedProviderPart<'a> {
    fn from(of: &'a ProviderQuotas) -> Self {
        let part = |not: &'a NotLearned| NotLearnedPart { message: &not.message, hint: &not.hint };
        Self {
            provider: &of.provider,
            at: TimePart(of.at),
            unknown: of.unknown.iter().map(part).collect(),
        }
    }
}

/// What a month has cost.
#[derive(Serialize, JsonSchema)]
pub struct BillingDocument<'a> {
    /// As `2026-10`.
    pub month: String,
    /// The table that says so.
    pub table: &'a str,
    /// What a category is: `service`, `sku` or `project`.
    pub by: &'a str,
    /// When the table was read.
    pub at: TimePart,
    /// By day, then by category. Days begin at midnight in California, as on the invoice.
    pub rows: Vec<ChargePart<'a>>,
    /// All of it, in each currency.
    pub totals: Vec<TotalPart<'a>>,
}

/// What one day has cost in one category.
#[derive(Serialize, JsonSchema)]
pub struct ChargePart<'a> {
    /// As `2026-10-31`.
    pub day: &'a str,
    /// The service, SKU or project.
    pub category: &'a str,
    /// As `EUR`.
    pub currency: &'a str,
    /// Before credits.
    pub cost: f64,
    /// Discounts, free tiers and promotions: 0 or less.
    pub credits: f64,
    /// What is left to pay.
    pub net: f64,
}

/// What a month has cost in one currency.
#[derive(Serialize, JsonSchema)]
pub struct TotalPart<'a> {
    /// As `EUR`.
    pub currency: &'a str,
    /// Before credits.
    pub cost: f64,
    /// 0 or less.
    pub credits: f64,
    /// What is left to pay.
    pub net: f64,
}

/// Bills have nine digits behind the point; what adding them up has made beyond that is no money.
pub fn rounded(amount: f64) -> f64 {
    let rounded = (amount * 1e9).round() / 1e9;
    // No bill says -0.
    if rounded == 0.0 { 0.0 } else { rounded }
}

impl<'a> From<&'a Charge> for ChargePart<'a> {
    fn from(charge: &'a Charge) -> Self {
        let Charge { day, category, currency, cost, credits } = charge;
        let (cost, credits, net) = (rounded(*cost), rounded(*credits), rounded(charge.net()));
        Self { day, category, currency, cost, credits, net }
    }
}

impl<'a> From<&'a Bill> for BillingDocument<'a> {
    fn from(bill: &'a Bill) -> Self {
        let total = |(currency, sum): (&'a str, ChargeSum)| TotalPart {
            currency,
            cost: rounded(sum.cost),
            credits: rounded(sum.credits),
            net: rounded(sum.net()),
        };
        Self {
            month: bill.asked.month.to_string(),
            table: bill.asked.table.as_str(),
            by: bill.asked.by.as_str(),
            at: TimePart(bill.charges.at),
            rows: bill.charges.answer.iter().map(ChargePart::from).collect(),
            totals: bill.totals().into_iter().map(total).collect(),
        }
    }
}
