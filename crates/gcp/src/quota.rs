//! What the quotas of Cloud TPU are about, and how much of each is in use: pure, for the API and the simulator alike.
//!
//! A quota has an ID such as `TPUV4sPreemptiblePodPerProjectPerZoneForTPUAPI`. It counts what the number in the name of
//! a type counts (`v4-32`: 32): cores up to v4 and in v5p, chips in v5e and v6e. On-demand, preemptible (which spot
//! shares) and reserved nodes have quotas of their own; so have single devices and pods of v2 and v3, and v5e of up to
//! eight chips for serving. (<https://cloud.google.com/tpu/docs/quota>)

use std::collections::{BTreeMap, BTreeSet};

use tpu_core::model::quota::QuotaRow;

/// Stands for every place.
const GLOBAL: &str = "global";

/// What is granted in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The ID of the quota.
    pub id: String,
    /// A zone, a region or `global`.
    pub location: String,
    /// How much; `None` for as much as anybody wants.
    pub limit: Option<u64>,
}

/// How a node is paid for, as far as quotas tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaidFrom {
    /// At the full price, as long as one likes.
    OnDemand,
    /// Cheaper, and taken away at any moment.
    Preemptible,
    /// From a reservation.
    Reserved,
}

/// A node that is there, in whatever state: one that was taken away holds its quota until it is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InUse {
    /// Its zone.
    pub zone: String,
    /// The type of its machines.
    pub accelerator: String,
    /// How it is paid for.
    pub paid_from: PaidFrom,
}

/// What a quota is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    family: String,
    /// Several devices of a family that also has single ones.
    is_pod: bool,
    is_serving: bool,
    paid_from: PaidFrom,
}

/// Families that have quotas for single devices beside those for pods.
const WITH_DEVICES: [&str; 2] = ["v2", "v3"];
/// The family that has quotas for serving.
const WITH_SERVING: &str = "v5litepod";
/// A device of the one, and the most for the other.
const SINGLE: u64 = 8;

impl Subject {
    /// Reads the ID of a quota; `None` for one that is not about accelerators, or about what is not known here.
    fn parse(id: &str) -> Option<Self> {
        let (about, _) = id.strip_prefix("TPU")?.split_once("PerProject")?;
        let rest = about.strip_prefix('V')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (generation, rest) = rest.split_at_checked(digits)?;
        if generation.is_empty() {
            return None;
        }
        // A letter is one of the family unless a word begins with it: `V5P` and `V5PPreemptible`, but `V2Pod`.
        let mut letters = rest.chars();
        let (letter, next) = (letters.next(), letters.next());
        let is_alone = next.is_none_or(|next| next.is_ascii_uppercase());
        let (letter, mut words) = match letter {
            Some(letter) if letter == 's' || letter.is_ascii_uppercase() && is_alone => {
                (letter.to_ascii_lowercase().to_string(), rest.get(1..)?)
            }
            _ => (String::new(), rest),
        };
        let letter = letter.trim_end_matches('s');
        let mut subject = Self {
            family: format!("v{generation}{letter}"),
            is_pod: false,
            is_serving: false,
            paid_from: PaidFrom::OnDemand,
        };
        while !words.is_empty() {
            words = if let Some(rest) = words.strip_prefix("Preemptible") {
                subject.paid_from = PaidFrom::Preemptible;
                rest
            } else if let Some(rest) = words.strip_prefix("Reserved") {
                subject.paid_from = PaidFrom::Reserved;
                rest
            } else if let Some(rest) = words.strip_prefix("Litepod") {
                subject.family = format!("v{generation}litepod");
                rest
            } else if let Some(rest) = words.strip_prefix("Pod") {
                subject.is_pod = WITH_DEVICES.contains(&subject.family.as_str());
                rest
            } else if let Some(rest) = words.strip_prefix("Serving") {
                subject.is_serving = true;
                rest
            } else {
                return None;
            };
        }
        Some(subject)
    }

    /// What a node counts against, and how much. `has_serving`: there is a quota for serving where it is.
    fn of(node: &InUse, has_serving: bool) -> Option<(Self, u64)> {
        let (family, size) = node.accelerator.rsplit_once('-')?;
        let size: u64 = size.parse().ok()?;
        let subject = Self {
            family: family.to_owned(),
            is_pod: WITH_DEVICES.contains(&family) && size > SINGLE,
            is_serving: has_serving && family == WITH_SERVING && size <= SINGLE,
            paid_from: node.paid_from,
        };
        Some((subject, size))
    }

    /// What people call it: `v2-pod-preemptible`.
    fn name(&self) -> String {
        let pod = if self.is_pod { "-pod" } else { "" };
        let serving = if self.is_serving { "-serving" } else { "" };
        let paid_from = match self.paid_from {
            PaidFrom::OnDemand => "",
            PaidFrom::Preemptible => "-preemptible",
            PaidFrom::Reserved => "-reserved",
        };
        format!("{}{pod}{serving}{paid_from}", self.family)
    }
}

/// The region of a zone.
pub fn region(zone: &str) -> &str {
    zone.rsplit_once('-').map_or(zone, |(region, _)| region)
}

fn is_within(zone: &str, location: &str) -> bool {
    [zone, region(zone), GLOBAL].contains(&location)
}

/// Every quota with what is in use of it, and what is in use of which nobody says a limit. In zones that are silent,
/// and everywhere if there is no list at all, nobody knows what is in use.
pub fn rows(
    granted: &[Granted],
    nodes: Option<&[InUse]>,
    silent: &BTreeSet<String>,
) -> Vec<QuotaRow> {
    let subjects: Vec<(Option<Subject>, &Granted)> =
        granted.iter().map(|granted| (Subject::parse(&granted.id), granted)).collect();
    let has_serving = |zone: &str| {
        subjects.iter().any(|(subject, granted)| {
            subject.as_ref().is_some_and(|subject| subject.is_serving)
                && is_within(zone, &granted.location)
        })
    };
    let mut held: BTreeMap<(&str, Subject), u64> = BTreeMap::new();
    for node in nodes.unwrap_or_default() {
        let Some((subject, size)) = Subject::of(node, has_serving(&node.zone)) else { continue };
        let of = held.entry((node.zone.as_str(), subject)).or_default();
        *of = of.saturating_add(size);
    }
    let is_silent = |location: &str| silent.iter().any(|zone| is_within(zone, location));
    let mut rows: Vec<QuotaRow> = subjects
        .iter()
        .map(|(subject, granted)| {
            let used = |subject: &Subject| {
                let of = held.iter().filter(|((zone, held), _)| {
                    held == subject && is_within(zone, &granted.location)
                });
                of.fold(0_u64, |sum, (_, size)| sum.saturating_add(*size))
            };
            let is_known = nodes.is_some() && !is_silent(&granted.location);
            QuotaRow {
                zone: granted.location.clone(),
                kind: subject.as_ref().map_or_else(|| granted.id.clone(), Subject::name),
                used: subject.as_ref().filter(|_| is_known).map(used),
                limit: granted.limit,
            }
        })
        .collect();
    for ((zone, subject), used) in &held {
        let is_covered = subjects.iter().any(|(of, granted)| {
            of.as_ref() == Some(subject) && is_within(zone, &granted.location)
        });
        if !is_covered {
            let (zone, kind) = ((*zone).to_owned(), subject.name());
            rows.push(QuotaRow { zone, kind, used: Some(*used), limit: None });
        }
    }
    rows.sort_unstable_by(|one, other| (&one.zone, &one.kind).cmp(&(&other.zone, &other.kind)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_quotas_say_what_they_are_about() {
        for (id, name) in [
            ("TPUV2sPodPerProjectPerZoneForTPUAPI", Some("v2-pod")),
            ("TPUV2sPreemptiblePodPerProjectPerZoneForTPUAPI", Some("v2-pod-preemptible")),
            ("TPUV2sPerProjectPerZoneForTPUAPI", Some("v2")),
            ("TPUV3PodPerProjectPerRegionForTPUAPI", Some("v3-pod")),
            ("TPUV4sPreemptiblePodPerProjectPerRegionForTPUAPI", Some("v4-preemptible")),
            ("TPUV4sReservedPodPerProjectPerZoneForTPUAPI", Some("v4-reserved")),
            ("TPUV5sLitepodPerProjectPerZoneForTPUAPI", Some("v5litepod")),
            ("TPUV5sLitepodServingPerProjectPerZoneForTPUAPI", Some("v5litepod-serving")),
            (
                "TPUV5sPreemptibleLitepodServingPerProjectPerZoneForTPUAPI",
                Some("v5litepod-serving-preemptible"),
            ),
            ("TPUV5PPerProjectPerZoneForTPUAPI", Some("v5p")),
            ("TPUV5PPreemptiblePerProjectPerZoneForTPUAPI", Some("v5p-preemptible")),
            ("TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", Some("v6e-preemptible")),
            ("TPUV6EPerProjectPerZoneForTPUAPI", Some("v6e")),
            ("TPUV9QuantumPerProjectPerZoneForTPUAPI", None),
            ("TPUVPerProject", None),
            ("TPUV\u{e9}PerProject", None),
            ("ReadRequestsPerMinutePerProject", None),
            ("", None),
        ] {
            assert_eq!(Subject::parse(id).map(|of| of.name()).as_deref(), name, "{id}");
        }
    }

    fn granted(id: &str, location: &str, limit: u64) -> Granted {
        Granted { id: id.to_owned(), location: location.to_owned(), limit: Some(limit) }
    }

    fn node(zone: &str, accelerator: &str, paid_from: PaidFrom) -> InUse {
        InUse { zone: zone.to_owned(), accelerator: accelerator.to_owned(), paid_from }
    }

    fn told(rows: &[QuotaRow]) -> Vec<(&str, &str, Option<u64>, Option<u64>)> {
        rows.iter().map(|row| (row.zone.as_str(), row.kind.as_str(), row.used, row.limit)).collect()
    }

    #[test]
    fn a_node_counts_where_it_is_and_by_how_it_is_paid_for() {
        let all = [
            granted("TPUV4sPodPerProjectPerZoneForTPUAPI", "us-a1-b", 64),
            granted("TPUV4sPreemptiblePodPerProjectPerRegionForTPUAPI", "us-a1", 128),
            granted("TPUV2sPerProjectPerZoneForTPUAPI", "us-a1-c", 16),
            granted("TPUV5sLitepodServingPerProjectPerZoneForTPUAPI", "us-a1-c", 8),
            granted("TPUV5sLitepodPerProjectPerZoneForTPUAPI", "us-a1-c", 32),
        ];
        let nodes = [
            node("us-a1-b", "v4-32", PaidFrom::OnDemand),
            node("us-a1-b", "v4-8", PaidFrom::Preemptible),
            node("us-a1-c", "v4-16", PaidFrom::Preemptible),
            node("us-a1-c", "v2-8", PaidFrom::OnDemand),
            node("us-a1-c", "v2-32", PaidFrom::OnDemand),
            node("us-a1-c", "v5litepod-4", PaidFrom::OnDemand),
            node("us-a1-c", "v5litepod-16", PaidFrom::OnDemand),
            node("us-a1-c", "nonsense", PaidFrom::OnDemand),
        ];
        let rows = rows(&all, Some(&nodes), &BTreeSet::new());
        assert_eq!(
            told(&rows),
            [
                ("us-a1", "v4-preemptible", Some(24), Some(128)),
                ("us-a1-b", "v4", Some(32), Some(64)),
                ("us-a1-c", "v2", Some(8), Some(16)),
                ("us-a1-c", "v2-pod", Some(32), None),
                ("us-a1-c", "v5litepod", Some(16), Some(32)),
                ("us-a1-c", "v5litepod-serving", Some(4), Some(8)),
            ]
        );
    }

    #[test]
    fn where_nobody_answers_nothing_is_in_use_by_guess() {
        let all = [
            granted("TPUV6EPerProjectPerZoneForTPUAPI", "us-a1-b", 8),
            granted("TPUV6EPerProjectPerZoneForTPUAPI", "us-a1-c", 8),
            granted("TPUV6EPerProjectPerRegionForTPUAPI", "us-a1", 8),
        ];
        let silent = BTreeSet::from(["us-a1-c".to_owned()]);
        let used = |nodes| -> Vec<Option<u64>> {
            rows(&all, nodes, &silent).iter().map(|row| row.used).collect()
        };
        assert_eq!(used(Some(&[])), [None, Some(0), None], "the region, b, c");
        assert_eq!(used(None), [None, None, None]);
    }
}
