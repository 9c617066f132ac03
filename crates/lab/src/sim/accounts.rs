//! What the simulated project may have and has to pay: limits, charges, and what is odd about asking for them.
//!
//! What is in use comes from the fleet. Limits that nobody has set are drawn from the seed, and so is a month of
//! charges that somebody asks for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::faults::{self, Called, Delivery};
use super::fleet::{Fleet, Vm};
use super::{Call, SimCloud};
use tpu_core::model::billing::{BillingQuery, BillingTable, Charge, ChargeBy, Month};
use tpu_core::model::quota::QuotaRow;
use tpu_core::model::target::Pricing;
use tpu_engine::provider::{ProviderError, QuotaReport, Trouble};
use tpu_gcp::quota::{self, Granted, InUse, PaidFrom, region};
use tpu_system::sys::random::{Random as _, SeededRandom};

/// Families, as the IDs of their quotas have them: before the word of how they are paid for, and behind it.
const QUOTAS: [(&str, &str); 6] =
    [("V2s", ""), ("V3s", ""), ("V4s", "Pod"), ("V5s", "Litepod"), ("V5P", ""), ("V6E", "")];
/// What a seed may grant.
const GRANTS: [u64; 5] = [0, 32, 128, 512, 1_536];
/// The resources of Compute Engine that a simulated project has, each with what is granted of it.
const RESOURCES: [(&str, u64); 3] =
    [("IN_USE_ADDRESSES", 575), ("INSTANCES", 720), ("DISKS_TOTAL_GB", 40_960)];
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
type LimitsByPlace = BTreeMap<String, (i64, u64)>;

/// What was changed so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SimAccounts {
    /// By quota; the seed's where nobody has set any.
    limits: Option<BTreeMap<String, LimitsByPlace>>,
    bills: Vec<BillLine>,
    pub(crate) most_on_a_page: Option<usize>,
    pub(crate) slow_looks: u32,
    pub(crate) too_fast: u32,
}

impl SimAccounts {
    pub(super) fn is_unchanged(&self) -> bool {
        *self == Self::default()
    }
}

impl Fleet {
    /// Does what a change says.
    pub(super) fn change_accounts(&mut self, change: &AccountChange) -> Result<(), ProviderError> {
        let wrong = |what: String| ProviderError::new(Trouble::User, "simulate an account", what);
        let table = |name: &str| {
            let parsed = BillingTable::parse(name);
            parsed.map(drop).ok_or_else(|| wrong(format!("'{name}' is no PROJECT.DATASET.TABLE")))
        };
        match change {
            AccountChange::Limit { quota, location, limit, used } => {
                let of = self.accounts.limits.get_or_insert_default();
                of.entry(quota.clone()).or_default().insert(location.clone(), (*limit, *used));
            }
            AccountChange::NoLimits => self.accounts.limits = Some(BTreeMap::new()),
            AccountChange::Bill(line) => {
                table(&line.table)?;
                if Month::of_day(&line.day).is_none_or(|of| !of.days().contains(&line.day)) {
                    return Err(wrong(format!("'{}' is no day such as 2026-10-31", line.day)));
                }
                if !line.cost.is_finite() || !line.credits.is_finite() {
                    return Err(wrong("a bill has finite figures".to_owned()));
                }
                self.accounts.bills.push(line.clone());
            }
            AccountChange::BillMonth { table: name, month } => {
                table(name)?;
                let of = Month::parse(month);
                let of =
                    of.ok_or_else(|| wrong(format!("'{month}' is no month such as 2026-10")))?;
                self.bill_month(name, of);
            }
            AccountChange::Pages { most } => self.accounts.most_on_a_page = Some((*most).max(1)),
            AccountChange::SlowQuery { looks } => self.accounts.slow_looks = *looks,
            AccountChange::TooFast { times } => self.accounts.too_fast = *times,
        }
        Ok(())
    }

    fn bill_month(&mut self, table: &str, month: Month) {
        let draw = SeededRandom::new(self.seed);
        for day in month.days() {
            for (service, sku, about) in GOODS {
                let cents = about * 50 + draw.below(about * 100 + 1);
                #[expect(clippy::cast_precision_loss, reason = "cents of a simulated day")]
                let cost = cents as f64 / 100.0;
                self.accounts.bills.push(BillLine {
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

    /// The nodes that hold quota.
    fn in_use(&self) -> Vec<InUse> {
        let of = |vm: &Vm| InUse {
            zone: vm.zone.clone(),
            accelerator: vm.accelerator.clone(),
            paid_from: match vm.pricing {
                Pricing::OnDemand => PaidFrom::OnDemand,
                Pricing::Spot | Pricing::Preemptible => PaidFrom::Preemptible,
            },
        };
        self.targets.values().map(of).collect()
    }

    /// What Cloud TPU grants.
    pub(crate) fn granted(&self) -> Vec<Granted> {
        let of = |id: &str, location: &str, limit: Option<u64>| Granted {
            id: id.to_owned(),
            location: location.to_owned(),
            limit,
        };
        if let Some(limits) = &self.accounts.limits {
            let all = limits.iter().filter(|(id, _)| id.starts_with("TPU"));
            return all
                .flat_map(|(id, places)| {
                    places
                        .iter()
                        .map(move |(at, (limit, _))| of(id, at, u64::try_from(*limit).ok()))
                })
                .collect();
        }
        let draw = SeededRandom::new(self.seed);
        let mut all = Vec::new();
        for (family, kind) in QUOTAS {
            for paid in ["", "Preemptible"] {
                for zone in &self.zones {
                    let id = format!("TPU{family}{paid}{kind}PerProjectPerZoneForTPUAPI");
                    let pick = usize::try_from(draw.below(5)).unwrap_or(0);
                    all.push(of(&id, zone, GRANTS.get(pick).copied()));
                }
            }
        }
        all
    }

    /// What Compute Engine says of each region, and of the project as `global`: resource, limit, use.
    pub(crate) fn resources(&self) -> BTreeMap<String, Vec<(String, i64, u64)>> {
        let addresses = |place: &str| -> u64 {
            let there = self.targets.values().filter(|vm| region(&vm.zone) == place);
            there.map(|vm| u64::from(vm.workers)).sum()
        };
        let own = |name: &str, place: &str| match name {
            "IN_USE_ADDRESSES" => addresses(place),
            _ => 0,
        };
        let mut all: BTreeMap<String, Vec<(String, i64, u64)>> = BTreeMap::new();
        if let Some(limits) = &self.accounts.limits {
            for (name, places) in limits.iter().filter(|(name, _)| !name.starts_with("TPU")) {
                for (place, (limit, used)) in places {
                    let of = (name.clone(), *limit, used + own(name, place));
                    all.entry(place.clone()).or_default().push(of);
                }
            }
            return all;
        }
        let regions: BTreeSet<&str> = self.zones.iter().map(|zone| region(zone)).collect();
        for place in regions {
            let of = RESOURCES.map(|(name, limit)| {
                (name.to_owned(), i64::try_from(limit).unwrap_or(i64::MAX), own(name, place))
            });
            all.insert(place.to_owned(), of.to_vec());
        }
        all
    }

    /// What a month has cost by the lines in a table; `None` where there is no such table.
    pub(crate) fn charges(
        &self,
        table: &str,
        (first, behind): (&str, &str),
        by: ChargeBy,
    ) -> Option<Vec<Charge>> {
        let mut lines = self.accounts.bills.iter().filter(|line| line.table == table).peekable();
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

impl SimCloud {
    /// Asks about accounts, with whatever goes wrong with the question. `about`: which table, of a query.
    pub(crate) fn accounted<T>(
        &self,
        (call, doing): (Call, &str),
        about: Option<&str>,
        work: impl Fn(&mut Fleet) -> Result<T, ProviderError>,
    ) -> Result<(Delivery, Result<T, ProviderError>), ProviderError> {
        self.looked(doing, |fleet, now| {
            let delivery = fleet.faults.deliver(Called { call, target: about, zone: "" }, now);
            if let Some(trouble) = delivery.error {
                return (delivery, Err(faults::error(trouble, doing, "")));
            }
            (delivery, work(fleet))
        })
    }

    /// The same, as it arrives here.
    fn heard<T>(
        &self,
        what: (Call, &str),
        about: Option<&str>,
        work: impl Fn(&mut Fleet) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let (delivery, result) = self.accounted(what, about, work)?;
        self.wait_for(delivery.slow_s);
        Self::judge(delivery, what.1)?;
        result
    }

    /// Its quotas, in one look.
    pub(super) fn quota_report(&self) -> Result<QuotaReport, ProviderError> {
        self.heard((Call::Quota, "look at quotas"), None, |fleet| {
            let mut rows = quota::rows(&fleet.granted(), Some(&fleet.in_use()), &BTreeSet::new());
            for (place, all) in fleet.resources() {
                rows.extend(all.into_iter().map(|(name, limit, used)| QuotaRow {
                    zone: place.clone(),
                    kind: name.to_ascii_lowercase().replace('_', "-"),
                    used: Some(used),
                    limit: u64::try_from(limit).ok(),
                }));
            }
            Ok(QuotaReport { rows, unknown: Vec::new() })
        })
    }

    /// What a month has cost.
    pub(super) fn billed(&self, asked: &BillingQuery) -> Result<Vec<Charge>, ProviderError> {
        let table = asked.table.as_str();
        let doing = format!("read {table}");
        let (first, behind) = (asked.month.first_day(), asked.month.day_behind());
        self.heard((Call::Query, &doing), Some(table), |fleet| {
            fleet.charges(table, (&first, &behind), asked.by).ok_or_else(|| {
                let message = format!("NOT_FOUND: the simulated cloud has no table {table}");
                ProviderError::new(Trouble::NotFound, doing.clone(), message).remedy(format!(
                    "write one: tpu sim event account \
                     change='{{\"bill-month\": {{\"table\": \"{table}\", \"month\": \"{}\"}}}}'",
                    asked.month
                ))
            })
        })
    }
}
