//! Slurm's words for why a job waits or has ended, in plain words, with what to change where waiting is in vain.

/// A reason in plain words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlainReason {
    /// What it means.
    pub(super) text: &'static str,
    /// What to do about it, where nothing comes of waiting.
    pub(super) advice: Option<&'static str>,
}

const fn waits(text: &'static str) -> PlainReason {
    PlainReason { text, advice: None }
}

const fn stuck(text: &'static str, advice: &'static str) -> PlainReason {
    PlainReason { text, advice: Some(advice) }
}

const ASK_FOR_LESS: &str = "ask for less, or take another partition";
const ASK_ADMIN: &str = "ask whoever runs the cluster";
const LESS_TIME: &str = "ask for less time (--time)";
const RELEASE: &str = "scontrol release lets it go";

/// The table. Where Slurm has a word for each of many limits, the beginning of the word says which sort it is.
const REASONS: &[(&str, PlainReason)] = &[
    ("None", waits("it was just submitted")),
    ("Resources", waits("waits for resources")),
    ("Priority", waits("waits behind jobs of higher priority")),
    ("Dependency", waits("waits for another job")),
    (
        "DependencyNeverSatisfied",
        stuck("what it waits for can no longer come", "kill it and run it without the dependency"),
    ),
    ("JobArrayTaskLimit", waits("as many members of its group run as may run at once")),
    (
        "BeginTime",
        waits(
            "Slurm starts it at a set time, as it does with what it has put back into the queue: `tpu unhold` cuts that",
        ),
    ),
    ("Cleaning", waits("what it ran before is being cleaned up")),
    ("Prolog", waits("its nodes are being made ready")),
    ("NodeDown", stuck("a node that it needs is down", "take another node or partition")),
    (
        "ReqNodeNotAvail",
        stuck(
            "a node that it needs is down, reserved or kept out of use",
            "take another node or partition, or wait until the reservation is over",
        ),
    ),
    ("Reservation", waits("waits for its reservation to begin")),
    (
        "ReservationDeleted",
        stuck(
            "the reservation that it asks for is not there any more",
            "run it without the reservation",
        ),
    ),
    ("PartitionConfig", stuck("the partition cannot have what it asks for", ASK_FOR_LESS)),
    ("PartitionDown", waits("the partition starts no jobs at the moment")),
    ("PartitionInactive", waits("the partition takes no jobs at the moment")),
    (
        "PartitionNodeLimit",
        stuck("it asks for more or fewer nodes than the partition gives", ASK_FOR_LESS),
    ),
    ("PartitionTimeLimit", stuck("it asks for more time than the partition gives", LESS_TIME)),
    (
        "BadConstraints",
        stuck(
            "no node can ever be as it asks for",
            "change --constraint, or take another partition",
        ),
    ),
    ("BadFeatures", stuck("no node has the features that it asks for", "change --constraint")),
    (
        "Constraints",
        stuck("no node is as it asks for", "change --constraint, or take another partition"),
    ),
    (
        "AccountNotAllowed",
        stuck("its account may not use this partition", "name another --account"),
    ),
    ("AccountingPolicy", stuck("an accounting policy forbids it", ASK_ADMIN)),
    ("InvalidAccount", stuck("its account is not valid", "name another --account")),
    ("InvalidQOS", stuck("its quality of service is not valid", "name another --qos")),
    (
        "QOSNotAllowed",
        stuck("its quality of service may not use this partition", "name another --qos"),
    ),
    ("QOSJobLimit", waits("as many jobs of its quality of service run as may run")),
    ("QOSResourceLimit", waits("its quality of service has all that it may have")),
    ("QOSTimeLimit", waits("its quality of service has used up its time")),
    ("QOSUsageThreshold", waits("the quality of service has been used too much")),
    ("AssociationJobLimit", waits("as many jobs of its account run as may run")),
    ("AssociationResourceLimit", waits("its account has all that it may have")),
    ("AssociationTimeLimit", waits("its account has used up its time")),
    ("JobHeldUser", stuck("it is held by its owner", RELEASE)),
    ("JobHeldAdmin", stuck("it is held by whoever runs the cluster", ASK_ADMIN)),
    (
        "JobHoldMaxRequeue",
        stuck("it was put back too often, and is held", "kill it and look at why it ended"),
    ),
    ("JobLaunchFailure", stuck("Slurm could not start it on its node", ASK_ADMIN)),
    ("launch_failed_requeued_held", stuck("Slurm could not start it, and holds it", RELEASE)),
    ("BurstBufferResources", waits("waits for room in the burst buffer")),
    ("BurstBufferStageIn", waits("its data is being brought to the burst buffer")),
    ("BurstBufferOperation", stuck("the burst buffer has failed", ASK_ADMIN)),
    ("Licenses", waits("waits for a licence")),
    ("FedJobLock", waits("the clusters of the federation agree on who takes it")),
    ("FrontEndDown", waits("no front end of the cluster is up")),
    ("DeadLine", stuck("it can no longer end before its deadline", "run it with a later deadline")),
    ("SystemFailure", stuck("the system has failed", ASK_ADMIN)),
    ("MaxMemPerLimit", stuck("it asks for more memory than a job may have", ASK_FOR_LESS)),
    ("MaxRequeue", stuck("it was put back too often", "look at why it ended")),
    ("Delayed", waits("Slurm has put it off")),
    ("ResvAdminHold", stuck("its reservation is held by whoever runs the cluster", ASK_ADMIN)),
    ("NonZeroExitCode", waits("its command ended with a code other than 0")),
    ("InactiveLimit", waits("it did nothing for longer than the cluster allows")),
];

/// The sorts of limit by how their words begin and end: `AssocMaxJobsLimit`, `QOSMaxGRESPerUser`, …
const LIMITS: &[(&str, &str, PlainReason)] = &[
    (
        "AssocMax",
        "MinutesPerJobLimit",
        stuck("it asks for more than one job of its account may use up", ASK_FOR_LESS),
    ),
    (
        "AssocMax",
        "PerJobLimit",
        stuck("it asks for more than one job of its account may have", ASK_FOR_LESS),
    ),
    ("AssocMaxWall", "", stuck("it asks for more time than its account may have", LESS_TIME)),
    ("AssocMaxJobs", "", waits("as many jobs of its account run as may run")),
    ("Assoc", "", waits("its account has all that it may have")),
    (
        "QOSMaxWall",
        "",
        stuck("it asks for more time than its quality of service may have", LESS_TIME),
    ),
    (
        "QOSMax",
        "PerJob",
        stuck("it asks for more than one job of its quality of service may have", ASK_FOR_LESS),
    ),
    (
        "QOSMin",
        "",
        stuck(
            "it asks for less than its quality of service wants",
            "ask for more, or name another --qos",
        ),
    ),
    ("QOSMaxJobs", "", waits("as many jobs of its quality of service run as may run")),
    ("QOS", "", waits("its quality of service has all that it may have")),
];

/// What a word means; `None` where it is not known.
pub(super) fn plain(word: &str) -> Option<PlainReason> {
    // Some say more behind the word: `ReqNodeNotAvail, UnavailableNodes:n1`.
    let bare = word.split([',', ' ', '(']).next().unwrap_or_default();
    let known = REASONS.iter().find(|(known, _)| *known == bare).map(|(_, plain)| *plain);
    known.or_else(|| {
        let fits = |(begin, end, _): &&(&str, &str, PlainReason)| {
            bare.starts_with(begin) && bare.ends_with(end) && bare.len() >= begin.len() + end.len()
        };
        LIMITS.iter().find(fits).map(|(_, _, plain)| *plain)
    })
}

/// A word in plain words, with the word itself and what to do.
pub(super) fn sentence(word: &str) -> String {
    match plain(word) {
        Some(PlainReason { text, advice: None }) => format!("{text} ({word})"),
        Some(PlainReason { text, advice: Some(advice) }) => format!("{text} ({word}): {advice}"),
        None => format!("Slurm says {word}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_told_with_what_to_change() {
        assert_eq!(sentence("Resources"), "waits for resources (Resources)");
        let config = sentence("PartitionConfig");
        assert!(config.contains("cannot have what it asks for") && config.ends_with(ASK_FOR_LESS));
        let named = sentence("ReqNodeNotAvail, UnavailableNodes:n[1-2]");
        assert!(named.contains("UnavailableNodes:n[1-2]") && named.contains("down, reserved"));
        assert_eq!(sentence("SomethingNew"), "Slurm says SomethingNew");
    }

    #[test]
    fn limits_are_known_by_their_sort() {
        let advice = |word: &str| plain(word).unwrap().advice;
        assert_eq!(advice("AssocMaxJobsLimit"), None);
        assert_eq!(advice("AssocGrpGRES"), None);
        assert_eq!(advice("AssocMaxCpuPerJobLimit"), Some(ASK_FOR_LESS));
        assert_eq!(advice("AssocMaxWallDurationPerJobLimit"), Some(ASK_FOR_LESS));
        assert_eq!(advice("QOSMaxWallDurationPerJobLimit"), Some(LESS_TIME));
        assert_eq!(advice("QOSMaxJobsPerUserLimit"), None);
        assert_eq!(advice("QOSMaxMemoryPerJob"), Some(ASK_FOR_LESS));
        assert_eq!(advice("QOSMaxGRESPerUser"), None);
    }

    #[test]
    fn no_word_is_there_twice() {
        for (i, (word, _)) in REASONS.iter().enumerate() {
            assert!(REASONS.iter().skip(i + 1).all(|(other, _)| other != word), "{word}");
        }
    }
}
