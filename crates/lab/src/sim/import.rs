//! The fleet that a data file implies: every target that it names, with what is unknown guessed from the
//! name, once.

use std::sync::LazyLock;

use regex::Regex;

use super::calls;
use super::fleet::SimTarget;
use tpu_core::model::ids::TargetName;
use tpu_core::model::registry::Registry;
use tpu_core::model::target::{Machines, Pricing};
use tpu_gcp::SIM;

/// The zone of targets of which nobody knows a zone.
const NOWHERE: &str = "sim-a";
/// The type of targets whose name does not tell one.
const USUAL: &str = "v2-8";

static TYPE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"v\d+[a-z]*-\d+").expect("the pattern is fixed"));

/// Every target of a data file whose machines come and go, except those that are another provider's.
pub fn fleet(registry: &Registry) -> Vec<SimTarget> {
    let is_ours = |name: &TargetName| {
        let told = registry.registration(name).and_then(|known| known.provider.as_ref());
        told.is_none_or(|provider| *provider == SIM)
    };
    let names = registry.names().into_iter().filter(is_ours);
    let targets = names
        .filter_map(|name| registry.target(&name))
        .filter(|target| target.machines == Machines::Provided);
    let targets = targets.map(|target| {
        let guess = guess(&target.name);
        SimTarget {
            zone: target.zone.unwrap_or(guess.zone),
            accelerator: target.accelerator.unwrap_or(guess.accelerator),
            pricing: target.pricing,
            name: target.name.of_provider(),
        }
    });
    // What nobody could make is not there.
    targets.filter(|one| calls::may_make(&one.accelerator, &one.zone).is_ok()).collect()
}

/// What a name alone lets one guess.
pub(super) fn guess(name: &TargetName) -> SimTarget {
    let accelerator = TYPE.find(name.as_str()).map_or(USUAL, |found| found.as_str());
    SimTarget {
        name: name.clone(),
        zone: NOWHERE.to_owned(),
        accelerator: accelerator.to_owned(),
        pricing: Pricing::OnDemand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tpu_core::model::data::Data;

    const DATA: &str = r#"{"users": {}, "id_list": [],
        "tpu_aliases": {"a": "lab-v4-8-a", "b": "lab-v2-32-pre", "c": "unlisted", "d": "..."},
        "all_tpus": {"zone-1": ["lab-v4-8-a", "lab-v2-32-pre", "..."], "zone-2": ["big-v5litepod-16"],
                     "preemptible": ["lab-v2-32-pre"], "spot": ["big-v5litepod-16"]},
        "targets": {"told-v2-8": {"kind": "tpu", "zone": "zone-3", "type": "v3-32"},
                    "odd": {"kind": "tpu", "zone": "zone-3", "type": "v99-8"},
                    "far": {"kind": "tpu", "zone": "mars", "type": "v2-8"}}}"#;

    #[test]
    fn the_fleet_is_every_name_of_the_file_once() {
        let data = Data::parse(DATA.as_bytes()).unwrap();
        let mut fleet: Vec<String> = fleet(data.registry())
            .iter()
            .map(|t| format!("{} {} {} {}", t.name, t.zone, t.accelerator, t.pricing.as_str()))
            .collect();
        fleet.sort_unstable();
        assert_eq!(
            fleet,
            [
                "big-v5litepod-16 zone-2 v5litepod-16 spot",
                "lab-v2-32-pre zone-1 v2-32 preemptible",
                "lab-v4-8-a zone-1 v4-8 on-demand",
                "told-v2-8 zone-3 v3-32 on-demand",
                "unlisted sim-a v2-8 on-demand",
            ]
        );
    }
}
