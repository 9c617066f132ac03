//! How often a lineage may be brought back: the meaning of the counts in [`Recovery`].
//!
//! A reaction is counted when it begins, whether it succeeds or not: [`spent`] on the attempt that failed,
//! [`inherited`] on the child that takes over. Only progress beyond everything before begins a new row.

use std::fmt;

use crate::model::facts::{ErrorKind, Origin, Progress};
use crate::model::job::{Job, Mark, Recovery, Status};
use crate::model::retry::Retry;
use crate::model::rules::Action;
use crate::model::time::Timestamp;

/// A child that ends within so many seconds of its start died at once.
pub(crate) const QUICK_S: u64 = 60;

/// So many children in a row that died at once stop their lineage.
pub(crate) const QUICK_LIMIT: u32 = 3;

/// So many failures of a program in a row with the same exit code and line are not retried any more: it is retried
/// twice.
pub(crate) const ALIKE_LIMIT: u32 = 3;

/// What a reaction is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Preemptions and missing capacity, in the whole life of a lineage.
    Capacity,
    /// Other failures, in a row without progress.
    Infrastructure,
    /// Failures of the program: the same input fails again.
    Program,
    /// Failures after which the file of a job wants it retried, until a person has it go on.
    Retry {
        /// How often.
        max: u32,
        /// Seconds before the first one, if that is said.
        backoff_s: Option<u32>,
        /// Whether it is of the program's, which does not go on for ever in the same way.
        is_programs: bool,
    },
}

impl Budget {
    /// The budget of a failure of a job: its file's, if that wants it retried, else that of its kind.
    pub fn of(job: &Job, kind: ErrorKind) -> Self {
        let retry = job.execution().and_then(|execution| execution.retry.as_ref());
        match retry.filter(|retry| retry.on.contains(&kind)) {
            Some(Retry { max, backoff_s, .. }) => {
                Self::Retry { max: *max, backoff_s: *backoff_s, is_programs: fails_of_itself(kind) }
            }
            None => Self::of_kind(kind),
        }
    }

    /// The budget of failures of a kind. Failures whose origin is a person or nobody knows are passed by the named
    /// rules; who asks for an action on them gets it as often as for infrastructure. So does who asks for one
    /// on a limit: what ran out of its time goes on from its checkpoint, as long as it gets further.
    fn of_kind(kind: ErrorKind) -> Self {
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
            Self::Retry { max, .. } => max,
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
            Self::Retry { max: 1, .. } => f.write_str("1 retry"),
            Self::Retry { max, .. } => write!(f, "{max} retries"),
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
    /// When this attempt ended, if that is known.
    ended: Option<Timestamp>,
}

impl RetryCounts {
    /// The standing of the lineage that ends in `job`, which shows `progress` and failed for `kind`.
    pub fn of(job: &Job, progress: &Progress, kind: ErrorKind) -> Self {
        let mut counts = job.counts();
        let quick = quick(job, kind, counts.quick);
        let reached = Mark { epoch: progress.epoch, step: progress.step };
        let further = reached > counts.best;
        if further || counts.progressed {
            counts.infra = 0;
            counts.capacity_row = 0;
            counts.progressed = false;
            counts.failed_with = None;
        }
        if further {
            counts.best = reached;
        }
        let failure = failure(job);
        counts.alike = match &counts.failed_with {
            Some(before) if *before == failure => counts.alike.saturating_add(1),
            _ => 1,
        };
        counts.failed_with = Some(failure);
        let ended = job.launch.as_ref().and_then(|launch| launch.ended);
        Self { counts, quick, ended }
    }

    /// Reactions that are still allowed: by the budget, and once children have begun to die at once, by the
    /// crash-loop rule if they go on so. A preemption is none of its deaths.
    pub fn left(&self, budget: Budget) -> u32 {
        let used = match budget {
            Budget::Capacity => self.counts.capacity,
            Budget::Infrastructure => self.counts.infra,
            Budget::Program => 0,
            Budget::Retry { .. } => self.counts.retried,
        };
        let left = budget.limit().saturating_sub(used);
        match (budget, self.quick) {
            (Budget::Retry { is_programs: true, .. }, _) => {
                left.min(ALIKE_LIMIT.saturating_sub(self.counts.alike))
            }
            (Budget::Capacity | Budget::Retry { .. }, _) | (_, 0) => left,
            (Budget::Infrastructure | Budget::Program, quick) => {
                left.min(QUICK_LIMIT.saturating_sub(quick))
            }
        }
    }

    /// What the next reaction waits for: how many delays there were before, and since when the next one runs. Where a
    /// pause was asked for the first reaction has one too, from the end of the attempt on.
    pub fn pause(&self, budget: Budget) -> (u32, Option<Timestamp>) {
        let last = self.counts.last_action_at;
        match budget {
            Budget::Capacity => (self.counts.capacity_row, last),
            Budget::Infrastructure => (self.counts.infra, last),
            Budget::Program => (0, last),
            Budget::Retry { backoff_s: None, .. } => (self.counts.retried, last),
            Budget::Retry { backoff_s: Some(_), .. } => {
                // What came to nothing is not tried again at once, however long ago the attempt ended.
                (self.counts.retried.saturating_add(1), self.ended.max(last))
            }
        }
    }

    /// Whether children die as soon as they are started. How often that may be where a file wants its job retried, the
    /// file says.
    pub fn is_crash_loop(&self, budget: Budget) -> bool {
        self.quick >= QUICK_LIMIT && !matches!(budget, Budget::Retry { .. })
    }

    /// Whether a program that is to be retried fails in the same way each time.
    pub(crate) fn fails_alike(&self, budget: Budget) -> bool {
        matches!(budget, Budget::Retry { is_programs: true, .. })
            && self.counts.alike >= ALIKE_LIMIT
    }
}

/// Whether a failure has an exit code and a line of the program's own. A limit says the same each time, and what could
/// not be started has none.
fn fails_of_itself(kind: ErrorKind) -> bool {
    kind.origin() != Origin::Infrastructure
        && !matches!(kind, ErrorKind::Timeout | ErrorKind::Stalled | ErrorKind::Launch)
}

/// The failure of a job, in words that two alike have in common: the exit code, and the line without its numbers, such
/// as instants, addresses, commits and steps.
fn failure(job: &Job) -> String {
    let code = job.launch.as_ref().and_then(|launch| launch.exit);
    let line = job.verdict.as_ref().map(|verdict| verdict.line.as_str()).unwrap_or_default();
    let code = code.map(|code| code.to_string()).unwrap_or_default();
    format!("{code} {}", in_common(line))
}

/// What a line by which a job failed has in common with those that differ from it in numbers alone.
pub(crate) fn in_common(line: &str) -> String {
    let words = line.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !is_number(word));
    let words: Vec<String> =
        words.map(|word| word.chars().filter(|c| !c.is_ascii_digit()).collect()).collect();
    words.join(" ")
}

/// Whether a word is a number, also one to the base of 16: with a digit in it, or as long as an address.
fn is_number(word: &str) -> bool {
    let (is_hexadecimal, digits) =
        word.strip_prefix("0x").map_or((false, word), |digits| (true, digits));
    let is_meant =
        is_hexadecimal || digits.len() >= 8 || digits.contains(|c: char| c.is_ascii_digit());
    is_meant && digits.chars().all(|c| c.is_ascii_hexdigit())
}

/// Whether the text shows that `job` came further than its lineage had come. The daemon notes it in
/// [`Recovery::progressed`], since the text may be gone when the attempt ends.
pub fn has_progressed(job: &Job, progress: &Progress) -> bool {
    let best = job.recovery.as_ref().map(|recovery| recovery.best).unwrap_or_default();
    Mark { epoch: progress.epoch, step: progress.step } > best
}

/// The counts of `job` after a reaction to `kind` that begins now, to be stored with it.
pub fn spent(job: &Job, progress: &Progress, kind: ErrorKind, now: Timestamp) -> Recovery {
    let mut counts = RetryCounts::of(job, progress, kind).counts;
    if !matches!(Budget::of(job, kind), Budget::Retry { is_programs: true, .. }) {
        counts = not_failed_itself(job, progress, counts);
    }
    match Budget::of(job, kind) {
        Budget::Capacity => {
            counts.capacity = counts.capacity.saturating_add(1);
            counts.capacity_row = counts.capacity_row.saturating_add(1);
        }
        Budget::Infrastructure => counts.infra = counts.infra.saturating_add(1),
        // Never drawn on: it allows nothing.
        Budget::Program => {}
        Budget::Retry { .. } => counts.retried = counts.retried.saturating_add(1),
    }
    counts.last_action_at = Some(now);
    counts
}

/// The counts of `job` after a reaction that came to nothing: the program has not failed once more.
pub fn in_vain(job: &Job, progress: &Progress, kind: ErrorKind, now: Timestamp) -> Recovery {
    not_failed_itself(job, progress, spent(job, progress, kind, now))
}

/// The same where its program has not failed: what it failed with before stands, until it gets further.
fn not_failed_itself(job: &Job, progress: &Progress, counts: Recovery) -> Recovery {
    let before = job.counts();
    if before.progressed || has_progressed(job, progress) {
        return Recovery { failed_with: None, alike: 0, ..counts };
    }
    Recovery { failed_with: before.failed_with, alike: before.alike, ..counts }
}

/// The counts of `job` once its engine has begun it anew by itself, so many times in all: each is a reaction to a
/// preemption, whoever made it.
pub fn restarted(job: &Job, progress: &Progress, restarts: u32, now: Timestamp) -> Recovery {
    let counts = spent(job, progress, ErrorKind::Preempted, now);
    let others = restarts.saturating_sub(job.restarts()).saturating_sub(1);
    match Budget::of(job, ErrorKind::Preempted) {
        Budget::Retry { .. } => {
            Recovery { restarts, retried: counts.retried.saturating_add(others), ..counts }
        }
        Budget::Capacity | Budget::Infrastructure | Budget::Program => {
            Recovery { restarts, capacity: counts.capacity.saturating_add(others), ..counts }
        }
    }
}

/// The counts with which the child of `job` begins, once [`spent`] has been stored with `job`.
pub fn inherited(job: &Job, kind: ErrorKind) -> Recovery {
    let counts = job.counts();
    let quick = quick(job, kind, counts.quick);
    let (restarts, progressed) = (0, false);
    let (judged, waits_since, stopped, blocked) = (None, None, None, false);
    Recovery { quick, restarts, progressed, judged, waits_since, stopped, blocked, ..counts }
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

/// Whether a job that has failed is to be brought back by its rules: it keeps its place meanwhile, so that a limit
/// holds when it is back. What was begun is completed, whatever the rules say of the failure that came of it.
pub fn comes_back(job: &Job) -> bool {
    let is_blocked = job.recovery.as_ref().is_some_and(|recovery| recovery.blocked);
    !is_blocked && is_to_come_back(job)
}

/// The same, also where a person has to do something first.
pub fn is_to_come_back(job: &Job) -> bool {
    let Status::Error(kind) = job.status else { return false };
    let is_due = || {
        let progress = job.reached.clone().unwrap_or_default();
        let counts = RetryCounts::of(job, &progress, kind);
        job.rules.action(kind) != Action::Pass && counts.left(Budget::of(job, kind)) > 0
    };
    let is_stopped = job.recovery.as_ref().is_some_and(|recovery| recovery.stopped.is_some());
    job.monitor && !is_stopped && job.child.is_none() && (job.is_being_brought_back() || is_due())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::execution::Execution;
    use crate::model::ids::{JobId, JobNumber, TargetName, UserName};
    use crate::model::job::{Launch, LaunchMode, StoredVerdict};
    use crate::model::spec::StoredSpec;

    /// A child that lived for so many seconds, whose lineage has been through `recovery`.
    fn child(lasted_s: Option<i64>, recovery: Recovery) -> Job {
        let id = JobId::new(UserName::from("alice"), JobNumber(7));
        let mut job = Job::new(&id, TargetName::from("tpu-a"), "/d".to_owned());
        let at = Timestamp::from_second(1_000);
        job.father = Some(JobNumber(6));
        let ended = lasted_s.map(|seconds| at.plus_seconds(seconds));
        let claimed = Launch::claimed("t7", LaunchMode::Native, at);
        job.launch = Some(Launch { confirmed: true, ended, ..claimed });
        job.keep_counts(recovery);
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
            RetryCounts::of(&job, &Progress::default(), kind).left(Budget::of(&job, kind))
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
            job.keep_counts(counts);
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
            waits_since: Some(Timestamp::from_second(1_600)),
            stopped: Some("enough".to_owned()),
            ..Recovery::default()
        };
        let born = inherited(&child(Some(500), parent.clone()), ErrorKind::Grpc);
        let (judged, waits_since, stopped) = (None, None, None);
        let expected = Recovery { progressed: false, judged, waits_since, stopped, ..parent };
        assert_eq!(born, expected);
    }

    /// An attempt with an end, whose file wants it retried.
    fn retried(code: i32, line: &str, on: &[ErrorKind], recovery: Recovery) -> Job {
        let mut job = child(Some(5), recovery);
        let retry = Retry { max: 5, on: on.to_vec(), backoff_s: Some(60) };
        let execution = Execution { retry: Some(retry), ..Execution::default() };
        job.spec = Some(Box::new(StoredSpec { execution, ..StoredSpec::default() }));
        if let Some(launch) = job.launch.as_mut() {
            launch.exit = Some(code);
        }
        let (rule, line) = ("traceback".to_owned(), line.to_owned());
        let kind = ErrorKind::PythonError;
        job.verdict = Some(StoredVerdict { kind, rule, line, ignored: false });
        job
    }

    /// How many retries are left after each of these failures, one attempt after the other.
    fn life(kind: ErrorKind, failures: &[(i32, &str)]) -> Vec<u32> {
        let mut recovery = Recovery::default();
        let none = Progress::default();
        let mut left = Vec::new();
        for (code, line) in failures {
            let mut job = retried(*code, line, &[kind], recovery);
            left.push(RetryCounts::of(&job, &none, kind).left(Budget::of(&job, kind)));
            job.keep_counts(spent(&job, &none, kind, Timestamp::from_second(2_000)));
            recovery = inherited(&job, kind);
        }
        left
    }

    #[test]
    fn a_program_that_fails_alike_is_retried_twice_and_others_as_often_as_their_file_says() {
        let (oom, lost) = (ErrorKind::Oom, ErrorKind::Lost);
        let same = [(1, "step 12: no memory"); 4];
        assert_eq!(life(oom, &same), [2, 1, 0, 0]);
        let numbered = [(1, "step 1: full"), (1, "step 23: full"), (1, "step 345: full")];
        assert_eq!(life(oom, &numbered), [2, 1, 0]);
        let addressed = [(1, "at 0x7f3a: bad"), (1, "at 0xbeef: bad"), (1, "at deadbeef: bad")];
        assert_eq!(life(oom, &addressed), [2, 1, 0]);
        let differ = [(1, "a"), (1, "b"), (2, "b"), (2, "b"), (3, "b"), (4, "b")];
        assert_eq!(life(oom, &differ), [2, 2, 2, 1, 1, 0]);
        assert_eq!(life(lost, &[(1, "gone"); 6]), [5, 4, 3, 2, 1, 0]);
        assert_eq!(life(ErrorKind::Timeout, &[(143, "its time is over"); 6]), [5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn what_came_to_nothing_is_no_second_failure_of_the_program() {
        let (oom, none) = (ErrorKind::Oom, Progress::default());
        let mut job = retried(1, "no memory", &[oom], Recovery::default());
        for tried in 1..4 {
            job.keep_counts(in_vain(&job, &none, oom, Timestamp::from_second(2_000)));
            let standing = RetryCounts::of(&job, &none, oom);
            assert!(!standing.fails_alike(Budget::of(&job, oom)), "{tried}");
            assert_eq!(standing.left(Budget::of(&job, oom)), (5_u32 - tried).min(2));
        }
    }

    #[test]
    fn a_failure_that_is_not_named_counts_under_its_own_kind() {
        let job = retried(1, "x", &[ErrorKind::Oom], Recovery::default());
        assert_eq!(Budget::of(&job, ErrorKind::PythonError), Budget::Program);
        assert_eq!(Budget::of(&job, ErrorKind::Preempted), Budget::Capacity);
        let none = Progress::default();
        let counts = spent(&job, &none, ErrorKind::Preempted, Timestamp::from_second(2_000));
        assert_eq!((counts.retried, counts.capacity), (0, 1));
    }

    #[test]
    fn a_pause_that_is_asked_for_comes_before_the_first_retry_too() {
        let job = retried(1, "x", &[ErrorKind::Oom], Recovery::default());
        let ended = job.launch.as_ref().unwrap().ended;
        let standing = RetryCounts::of(&job, &Progress::default(), ErrorKind::Oom);
        let budget = Budget::of(&job, ErrorKind::Oom);
        assert_eq!(standing.pause(budget), (1, ended));
        let tried =
            spent(&job, &Progress::default(), ErrorKind::Oom, Timestamp::from_second(9_000));
        let tried = Job { recovery: Some(Box::new(tried)), ..job };
        let standing = RetryCounts::of(&tried, &Progress::default(), ErrorKind::Oom);
        assert_eq!(standing.pause(budget), (2, Some(Timestamp::from_second(9_000))));
        assert_eq!(crate::plan::backoff::bounds(budget), (60, 600));
    }
}
