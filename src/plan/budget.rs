//! How often a lineage may be brought back: the meaning of the counts in [`Recovery`].
//!
//! A reaction is counted when it begins, whether it succeeds or not: [`spent`] on the attempt that failed,
//! [`inherited`] on the child that takes over. Only progress beyond everything before begins a new row.

use std::fmt;

use crate::model::facts::{ErrorKind, Origin, Progress};
use crate::model::job::{Job, Mark, Recovery};
use crate::model::time::Timestamp;

/// A child that ends within so many seconds of its start died at once.
pub const QUICK_S: u64 = 60;

/// So many children in a row that died at once stop their lineage.
pub const QUICK_LIMIT: u32 = 3;

/// What a reaction is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Preemptions and missing capacity, in the whole life of a lineage.
    Capacity,
    /// Other failures, in a row without progress.
    Infrastructure,
    /// Failures of the program: the same input fails again.
    Program,
}

impl Budget {
    /// The budget of a failure. Failures whose origin is a person or nobody knows are passed by the named
    /// rules; who asks for an action on them gets it as often as for infrastructure. So does who asks for one
    /// on a limit: what ran out of its time goes on from its checkpoint, as long as it gets further.
    pub fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Preempted | ErrorKind::NoCapacity => Self::Capacity,
            ErrorKind::Timeout | ErrorKind::Stalled => Self::Infrastructure,
            ErrorKind::Grpc
            | ErrorKind::Locked
            | ErrorKind::SshLost
            | ErrorKind::Oom
            | ErrorKind::PythonError
            | ErrorKind::FileError
            | ErrorKind::KilledBySignal
            | ErrorKind::Launch
            | ErrorKind::Lost
            | ErrorKind::Setup
            | ErrorKind::Dependency
            | ErrorKind::Unknown => match kind.origin() {
                Origin::Program => Self::Program,
                Origin::Infrastructure | Origin::User | Origin::Unknown => Self::Infrastructure,
            },
        }
    }

    /// How many reactions it allows.
    pub fn limit(self) -> u32 {
        match self {
            Self::Capacity => 10_000,
            Self::Infrastructure => 20,
            Self::Program => 0,
        }
    }
}

impl fmt::Display for Budget {
    /// What has been used up, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capacity => write!(f, "{} preemptions and missing capacity", self.limit()),
            Self::Infrastructure => {
                let failures = crate::text::counted(self.limit() as usize, "failure");
                write!(f, "{failures} in a row without progress")
            }
            Self::Program => f.write_str("no retries for failures of the program"),
        }
    }
}

/// How a lineage stands, seen from its leaf.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryCounts {
    /// The counts, with progress taken into account.
    counts: Recovery,
    /// Children in a row that died at once, this attempt included.
    quick: u32,
}

impl RetryCounts {
    /// The standing of the lineage that ends in `job`, which shows `progress` and failed for `kind`.
    pub fn of(job: &Job, progress: &Progress, kind: ErrorKind) -> Self {
        let mut counts = job.recovery.clone().unwrap_or_default();
        let quick = quick(job, kind, counts.quick);
        let reached = Mark { epoch: progress.epoch, step: progress.step };
        let further = reached > counts.best;
        if further || counts.progressed {
            counts.infra = 0;
            counts.capacity_row = 0;
            counts.progressed = false;
        }
        if further {
            counts.best = reached;
        }
        Self { counts, quick }
    }

    /// Reactions that are still allowed: by the budget, and once children have begun to die at once, by the
    /// crash-loop rule if they go on so. A preemption is none of its deaths.
    pub fn left(&self, budget: Budget) -> u32 {
        let used = match budget {
            Budget::Capacity => self.counts.capacity,
            Budget::Infrastructure => self.counts.infra,
            Budget::Program => 0,
        };
        let left = budget.limit().saturating_sub(used);
        match (budget, self.quick) {
            (Budget::Capacity, _) | (_, 0) => left,
            (Budget::Infrastructure | Budget::Program, quick) => {
                left.min(QUICK_LIMIT.saturating_sub(quick))
            }
        }
    }

    /// Reactions in a row without progress, which the back-off grows with.
    pub fn row(&self, budget: Budget) -> u32 {
        match budget {
            Budget::Capacity => self.counts.capacity_row,
            Budget::Infrastructure => self.counts.infra,
            Budget::Program => 0,
        }
    }

    /// When the last reaction was begun.
    pub fn last_action_at(&self) -> Option<Timestamp> {
        self.counts.last_action_at
    }

    /// Whether children die as soon as they are started.
    pub fn is_crash_loop(&self) -> bool {
        self.quick >= QUICK_LIMIT
    }
}

/// Whether the text shows that `job` came further than its lineage had come. MONITOR notes it in
/// [`Recovery::progressed`], since the text may be gone when the attempt ends.
pub fn has_progressed(job: &Job, progress: &Progress) -> bool {
    let best = job.recovery.as_ref().map(|recovery| recovery.best).unwrap_or_default();
    Mark { epoch: progress.epoch, step: progress.step } > best
}

/// The counts of `job` after a reaction to `kind` that begins now, to be stored with it.
pub fn spent(job: &Job, progress: &Progress, kind: ErrorKind, now: Timestamp) -> Recovery {
    let mut counts = RetryCounts::of(job, progress, kind).counts;
    match Budget::of(kind) {
        Budget::Capacity => {
            counts.capacity = counts.capacity.saturating_add(1);
            counts.capacity_row = counts.capacity_row.saturating_add(1);
        }
        Budget::Infrastructure => counts.infra = counts.infra.saturating_add(1),
        // Never drawn on: it allows nothing.
        Budget::Program => {}
    }
    counts.last_action_at = Some(now);
    counts
}

/// The counts of `job` once its engine has begun it anew by itself, so many times in all: each is a reaction to a
/// preemption, whoever made it.
pub fn restarted(job: &Job, progress: &Progress, restarts: u32, now: Timestamp) -> Recovery {
    let counts = spent(job, progress, ErrorKind::Preempted, now);
    let others = restarts.saturating_sub(job.restarts()).saturating_sub(1);
    Recovery { restarts, capacity: counts.capacity.saturating_add(others), ..counts }
}

/// The counts with which the child of `job` begins, once [`spent`] has been stored with `job`.
pub fn inherited(job: &Job, kind: ErrorKind) -> Recovery {
    let counts = job.recovery.clone().unwrap_or_default();
    let quick = quick(job, kind, counts.quick);
    Recovery { quick, restarts: 0, progressed: false, judged: None, stopped: None, ..counts }
}

/// Children in a row that died at once, `job` included. A preemption says nothing about the program, nor
/// does an attempt whose program never began: they neither count nor end the row.
fn quick(job: &Job, kind: ErrorKind, before: u32) -> u32 {
    if matches!(kind, ErrorKind::Preempted | ErrorKind::NoCapacity | ErrorKind::Launch) {
        return before;
    }
    let lasted_s = job.launch.as_ref().and_then(|launch| {
        let ended = launch.ended?;
        Some(ended.seconds_since(launch.at))
    });
    let is_child = job.father.is_some();
    match lasted_s {
        // How long it lived is unknown, so this says nothing either.
        None => before,
        Some(seconds) if is_child && seconds <= QUICK_S => before.saturating_add(1),
        Some(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ids::{JobId, JobNumber, TargetName, UserName};
    use crate::model::job::{Launch, LaunchMode};

    /// A child that lived for so many seconds, whose lineage has been through `recovery`.
    fn child(lasted_s: Option<i64>, recovery: Recovery) -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        let mut job = Job::new(&id, TargetName::from("tpu-a"), "/d".to_owned());
        let at = Timestamp::from_second(1_000);
        job.father = Some(JobNumber(6));
        let ended = lasted_s.map(|seconds| at.plus_seconds(seconds));
        let claimed = Launch::claimed("t7", LaunchMode::Native, at);
        job.launch = Some(Launch { confirmed: true, ended, ..claimed });
        job.recovery = Some(recovery);
        job
    }

    #[test]
    fn only_a_known_life_of_an_own_failure_counts_for_or_against_a_crash_loop() {
        let quick = |lasted_s, kind| {
            inherited(&child(lasted_s, Recovery { quick: 2, ..Recovery::default() }), kind).quick
        };
        assert_eq!(quick(Some(60), ErrorKind::Grpc), 3);
        assert_eq!(quick(Some(61), ErrorKind::Grpc), 0);
        assert_eq!(quick(None, ErrorKind::Lost), 2, "nobody knows when it ended");
        assert_eq!(quick(Some(5), ErrorKind::Preempted), 2, "that was not the program");
        assert_eq!(quick(Some(900), ErrorKind::Preempted), 2);
        assert_eq!(quick(Some(5), ErrorKind::Launch), 2, "its program never began");
        assert_eq!(quick(Some(900), ErrorKind::Launch), 2);
    }

    #[test]
    fn what_is_left_is_the_smaller_of_the_budget_and_the_crash_loop() {
        let left = |quick, infra, kind| {
            let recovery = Recovery { infra, quick, ..Recovery::default() };
            let job = child(Some(5), recovery);
            RetryCounts::of(&job, &Progress::default(), kind).left(Budget::of(kind))
        };
        assert_eq!(left(0, 1, ErrorKind::Grpc), 2, "the first that died at once");
        assert_eq!(left(1, 2, ErrorKind::Grpc), 1, "the next such death stops it");
        assert_eq!(left(2, 3, ErrorKind::Grpc), 0);
        assert_eq!(left(1, 20, ErrorKind::Grpc), 0, "the budget is the smaller one");
        assert_eq!(left(1, 2, ErrorKind::Preempted), 10_000);
        let long = child(Some(900), Recovery { infra: 2, quick: 2, ..Recovery::default() });
        let standing = RetryCounts::of(&long, &Progress::default(), ErrorKind::Grpc);
        assert_eq!(standing.left(Budget::Infrastructure), 18, "a long life ends the row");
    }

    #[test]
    fn progress_that_was_noted_begins_one_row_and_not_every_following_one() {
        let noted = Recovery { infra: 5, capacity_row: 4, progressed: true, ..Recovery::default() };
        let mut job = child(None, noted);
        let now = Timestamp::from_second(2_000);
        for row in 1..4 {
            let counts = spent(&job, &Progress::default(), ErrorKind::Grpc, now);
            assert_eq!((counts.infra, counts.capacity_row), (row, 0));
            assert_eq!(counts.last_action_at, Some(now));
            job.recovery = Some(counts);
        }
    }

    #[test]
    fn a_child_begins_with_the_counts_and_without_the_judgement_of_its_parent() {
        let parent = Recovery {
            capacity: 3,
            infra: 2,
            best: Mark { epoch: None, step: Some(900) },
            progressed: true,
            judged: Some(Timestamp::from_second(1_500)),
            stopped: Some("enough".to_owned()),
            ..Recovery::default()
        };
        let born = inherited(&child(Some(500), parent.clone()), ErrorKind::Grpc);
        let expected = Recovery { progressed: false, judged: None, stopped: None, ..parent };
        assert_eq!(born, expected);
    }
}
