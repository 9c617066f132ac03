//! Which targets are made for those who wait in the queue: the one decision about it.
//!
//! Who may have one made comes in the order of the queue. Each is made one target for each of its jobs that find no
//! place, of those that are known and not there; what is on its way already counts. No more are made than may be there.

use std::collections::HashSet;

use crate::model::ids::{JobId, TargetName};
use crate::model::making::Making;

/// Somebody who waits for nothing but a target, and may have one made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanting {
    /// Who.
    pub job: JobId,
    /// How many of its jobs could begin if there was a target for each.
    pub jobs: usize,
    /// Every target that would do, however it is: one in the making may be on its way out first, or say nothing.
    pub meant: Vec<TargetName>,
    /// Those of them that are not there, the best first.
    pub absent: Vec<TargetName>,
    /// Those of them that are on their way, whoever asked for them.
    pub coming: Vec<TargetName>,
    /// So many targets may be there at most.
    pub most: Option<u32>,
}

/// What is to become of targets in the making, and which are made anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Those that are to be made from now on, and for whom.
    pub new: Vec<(JobId, TargetName)>,
    /// Those that are made for somebody else from now on: the target, and for whom.
    pub passed_on: Vec<(TargetName, JobId)>,
    /// Those that were not to be had, and that nobody lacks any more: they are not asked for again.
    pub dropped: Vec<TargetName>,
}

/// Decides about those in the making `here`; what others make counts as well. `there` counts the targets that are there
/// or come, but for those in the making.
pub fn supply(wanting: &[Wanting], makings: &[Making], here: &str, there: usize) -> Supply {
    let mut supply = Supply::default();
    let mut taken: HashSet<&TargetName> = makings.iter().map(|making| &making.target).collect();
    let mine = makings.iter().filter(|making| making.place == here);
    // Nobody lacks any more for whom these were made; somebody else may take them over.
    let is_wanted = |making: &&Making| {
        wanting.iter().any(|one| one.job == making.job && one.would_take(making))
    };
    let (wanted, mut orphans): (Vec<&Making>, Vec<&Making>) = mine.partition(is_wanted);
    let mut count = there + makings.len();
    for one in wanting {
        let own: Vec<&Making> =
            wanted.iter().copied().filter(|making| making.job == one.job).collect();
        orphans.extend(own.iter().skip(one.jobs).copied());
        let mut open = one.jobs.saturating_sub(own.len());
        while open > 0
            && let Some(at) = orphans.iter().position(|making| one.would_take(making))
        {
            let making = orphans.remove(at);
            supply.passed_on.push((making.target.clone(), one.job.clone()));
            open -= 1;
        }
        for coming in &one.coming {
            if open > 0 && taken.insert(coming) {
                open -= 1;
            }
        }
        let most = one.most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        for absent in &one.absent {
            if open > 0 && count < most && taken.insert(absent) {
                supply.new.push((one.job.clone(), absent.clone()));
                count += 1;
                open -= 1;
            }
        }
    }
    // What may be on its way is brought to an end, whichever.
    let idle = orphans.into_iter().filter(|making| making.again.is_some());
    supply.dropped = idle.map(|making| making.target.clone()).collect();
    supply
}

impl Wanting {
    /// Whether what is being made would do.
    fn would_take(&self, making: &Making) -> bool {
        self.meant.contains(&making.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Timestamp;

    fn job(number: u32) -> JobId {
        JobId::parse(&format!("alice/{number}")).unwrap()
    }

    fn targets(names: &str) -> Vec<TargetName> {
        names.split_whitespace().map(TargetName::from).collect()
    }

    fn wanting(number: u32, jobs: usize, absent: &str) -> Wanting {
        let absent = targets(absent);
        let (meant, coming) = (absent.clone(), Vec::new());
        Wanting { job: job(number), jobs, meant, absent, coming, most: None }
    }

    fn making(target: &str, number: u32) -> Making {
        Making {
            target: TargetName::from(target),
            job: job(number),
            place: String::new(),
            token: "t".to_owned(),
            first: Timestamp::from_second(0),
            since: Timestamp::from_second(0),
            tries: 0,
            again: None,
            needs_login: false,
        }
    }

    fn new(supply: &Supply) -> Vec<String> {
        supply.new.iter().map(|(job, target)| format!("{job} {target}")).collect()
    }

    #[test]
    fn each_job_that_finds_no_place_has_one_made_in_the_order_of_the_queue() {
        let all = [wanting(1, 2, "a b c"), wanting(2, 5, "b c d"), wanting(3, 1, "a")];
        assert_eq!(
            new(&supply(&all, &[], "", 0)),
            ["alice/1 a", "alice/1 b", "alice/2 c", "alice/2 d"]
        );
    }

    #[test]
    fn what_is_made_already_or_comes_anyway_counts() {
        let mut first = wanting(1, 3, "a b c d");
        first.coming = targets("e");
        let made = [making("a", 1)];
        assert_eq!(new(&supply(&[first], &made, "", 0)), ["alice/1 b"]);
    }

    #[test]
    fn no_more_are_made_than_may_be_there() {
        let mut first = wanting(1, 9, "a b c d");
        first.most = Some(4);
        let made = [making("z", 1)];
        first.meant.push(TargetName::from("z"));
        assert_eq!(new(&supply(&[first], &made, "", 1)), ["alice/1 a", "alice/1 b"]);
    }

    #[test]
    fn what_was_made_for_somebody_who_is_gone_goes_to_the_next() {
        let made = [making("a", 7), making("b", 7)];
        let of = supply(&[wanting(1, 1, "a b")], &made, "", 0);
        assert_eq!(of.passed_on, [(TargetName::from("a"), job(1))]);
        assert!(of.new.is_empty(), "{of:?}");
    }

    #[test]
    fn what_is_deleted_before_it_is_made_anew_counts_as_well() {
        let mut first = wanting(1, 1, "b");
        first.meant = targets("a b");
        assert_eq!(supply(&[first], &[making("a", 1)], "", 0), Supply::default());
    }

    #[test]
    fn what_nobody_lacks_is_not_asked_for_again_and_what_others_make_is_left_to_them() {
        let again = Some((Timestamp::from_second(9), "no capacity".to_owned()));
        let idle = Making { again, ..making("a", 7) };
        let other = Making { place: "there".to_owned(), ..making("b", 7) };
        let of = supply(&[wanting(1, 1, "b c")], &[idle, making("d", 7), other], "", 0);
        assert_eq!((new(&of), of.dropped), (vec!["alice/1 c".to_owned()], targets("a")));
    }

    #[test]
    fn one_target_is_never_made_twice() {
        let made = [making("a", 1)];
        let all = [wanting(1, 3, "a"), wanting(2, 3, "a")];
        assert_eq!(supply(&all, &made, "", 0), Supply::default());
    }
}
