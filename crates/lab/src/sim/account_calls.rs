//! The calls about what the simulated project may have and has to pay.
//!
//! What is in use comes from the fleet. Limits that nobody has set are drawn from the seed.

use std::collections::{BTreeMap, BTreeSet};

use super::faults::{self, Called, Delivery};
use super::fleet::{Fleet, Vm};
use super::{Call, SimCloud};
use tpu_core::model::billing::{BillingQuery, Charge};
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
impl Fleet {
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
}

impl SimCloud {
    /// Asks about accounts, with whatever goes wrong with the question. `about`: which table, of a query.
    pub(crate) fn accounted<T>(
        &self,
        call: Call,
        doing: &str,
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
        call: Call,
        doing: &str,
        about: Option<&str>,
        work: impl Fn(&mut Fleet) -> Result<T, ProviderError>,
    ) -> Result<T, ProviderError> {
        let (delivery, result) = self.accounted(call, doing, about, work)?;
        self.wait_for(delivery.slow_s);
        Self::judge(delivery, doing)?;
        result
    }

    /// Its quotas, in one look.
    pub(super) fn quota_report(&self) -> Result<QuotaReport, ProviderError> {
        self.heard(Call::Quota, "look at quotas", None, |fleet| {
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
        self.heard(Call::Query, &doing, Some(table), |fleet| {
            fleet.accounts.charges(table, &first, &behind, asked.by).ok_or_else(|| {
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
