//! Whether Slurm takes the place of the jobs of a partition for others, by its configuration (slurm.conf(5), `PreemptType`
//! and `PreemptMode`; scontrol(1) shows of a partition that has no mode of its own the one of the cluster).

use std::collections::BTreeMap;
use std::time::Duration;

use super::ask::{self, TimeLeft};
use super::client::ProgramCall;
use super::controller::Controller;

/// What matters of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Partition {
    mode: String,
    tier: u64,
}

/// Whether jobs of a partition, or of one of several, are its victims.
pub(super) fn are_victims(
    controller: &Controller<'_>,
    partitions: &str,
    limit: Duration,
) -> Result<bool, String> {
    let budget = TimeLeft::new(&*controller.effects.clock, limit);
    let how = controller.config(budget.left())?.preemption;
    if how == "preempt/none" {
        return Ok(false);
    }
    let call = ProgramCall::new("scontrol", budget.left()).args([
        "--all",
        "--oneliner",
        "show",
        "partition",
    ]);
    let all = read(&ask::ask(&*controller.client, &call)?);
    Ok(partitions.split(',').any(|name| is_victim(&how, &all, name)))
}

fn is_victim(how: &str, all: &BTreeMap<String, Partition>, name: &str) -> bool {
    let Some(partition) = all.get(name) else { return false };
    // GANG alone lets jobs take turns.
    let is_taken = partition.mode.split(',').any(|mode| !matches!(mode, "OFF" | "GANG" | ""));
    // Where something else than the partition says whose rank is higher, it may be anybody's.
    let has_higher =
        how != "preempt/partition_prio" || all.values().any(|other| other.tier > partition.tier);
    is_taken && has_higher
}

/// Reads a line of `NAME=VALUE` words for each partition.
fn read(text: &str) -> BTreeMap<String, Partition> {
    let partition = |line: &str| {
        let value = |name: &str| {
            let words = line.split_whitespace().filter_map(|word| word.split_once('='));
            words.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
        };
        let tier = value("PriorityTier").and_then(|tier| tier.parse().ok()).unwrap_or(0);
        let mode = value("PreemptMode").unwrap_or_default();
        Some((value("PartitionName")?, Partition { mode, tier }))
    };
    text.lines().filter_map(partition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As 22.05.8 has written it, but for what is left out.
    const SEEN: &str =
        "PartitionName=low AllowGroups=ALL PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=same AllowGroups=ALL PriorityTier=10 PreemptMode=CANCEL State=UP
PartitionName=high AllowGroups=ALL PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=turns AllowGroups=ALL PriorityTier=1 PreemptMode=GANG State=UP
";

    #[test]
    fn who_is_of_lower_rank_makes_place() {
        let all = read(SEEN);
        let victims = |how: &str| -> Vec<&str> {
            all.keys().map(String::as_str).filter(|name| is_victim(how, &all, name)).collect()
        };
        assert_eq!(victims("preempt/partition_prio"), ["low"]);
        assert_eq!(victims("preempt/qos"), ["low", "same"]);
        assert!(!is_victim("preempt/qos", &all, "none"));
    }
}
