//! How often a lineage may be brought back: the meaning of the counts in [`Recovery`].
//!
//! A reaction is counted when it begins, whether it succeeds or not: [`spent`] on the attempt that failed,
//! [`inherited`] on the child that takes over. Only progress beyond everything before begins a new row.

use std::fmt;

use super::backoff::{self, Pace, Pause};
use crate::model::facts::{ErrorKind, Origin, Progress};
use crate::model::job::{Job, Launch, Mark, Recovery, Status};
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
    /// The budget of a failure of a job: its file's, if that wants it retried, else that of its kind. What was lost with its
    /// machine is retried as well, and is none of the failures that the file counts.
    pub fn of(job: &Job, kind: ErrorKind) -> Self {
        let retry = job.execution().and_then(|execution| execution.retry.as_ref());
        match retry.filter(|retry| kind.is_among(&retry.on) && kind != ErrorKind::Lost) {
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
            | ErrorKind::Network
            | ErrorKind::Locked
            | ErrorKind::SshLost
            | ErrorKind::Oom
            | ErrorKind::PythonError
            | ErrorKind::CommandNotFound
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

impl Budget {
    /// How long reactions wait that are counted under it.
    pub fn pace(self) -> Pace {
        match self {
            Self::Capacity => backoff::CAPACITY,
            Self::Infrastructure | Self::Program => backoff::LASTING,
            Self::Retry { backoff_s, .. } => {
                let Pace { base_s, limit_s } = backoff::LASTING;
                let base_s = backoff_s.unwrap_or(base_s);
                Pace { base_s, limit_s: limit_s.max(base_s) }
            }
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

/// What may still be done about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryStanding {
    /// So many reactions are left, each soon after its failure.
    Quick(u32),
    /// The quick ones are used up, and what failed is infrastructure: it is tried again after longer pauses.
    Patient,
    /// Nothing.
    Over(Spent),
}

/// What is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Its children die as soon as they are started.
    CrashLoop,
    /// Its program fails in the same way each time.
    Alike,
    /// Its budget.
    Budget,
    /// The time for which it is tried again after that.
    Patience,
}

/// How a lineage stands, seen from its leaf.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryCounts {
    /// The failure.
    kind: ErrorKind,
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
            counts.patient_since = None;
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
        Self { kind, counts, quick, ended }
    }

    /// What may still be done, where infrastructure is waited for so long (`patience_s`) once the quick reactions are used
    /// up. A job file's own limit and failures of a program are not waited out.
    pub fn standing(&self, budget: Budget, patience_s: u64, now: Timestamp) -> RetryStanding {
        let spent = if self.is_crash_loop(budget) {
            Spent::CrashLoop
        } else if self.fails_alike(budget) {
            Spent::Alike
        } else {
            match self.left(budget) {
                0 => Spent::Budget,
                left => return RetryStanding::Quick(left),
            }
        };
        if patience_s == 0 || !self.is_waited_out(budget) {
            return RetryStanding::Over(spent);
        }
        let until = self
            .counts
            .patient_since
            .map(|since| since.plus_seconds(i64::try_from(patience_s).unwrap_or(i64::MAX)));
        let next =
            backoff::not_before(self.pause(budget, RetryStanding::Patient), now, 0.0).max(now);
        if until.is_some_and(|until| next > until) {
            return RetryStanding::Over(Spent::Patience);
        }
        RetryStanding::Patient
    }

    /// Whether such a failure is worth further tries after its budget: what failed is none of the program.
    fn is_waited_out(&self, budget: Budget) -> bool {
        budget == Budget::Infrastructure && self.kind.origin() == Origin::Infrastructure
    }

    /// Since when the quick reactions are used up, if that is noted.
    pub fn patient_since(&self) -> Option<Timestamp> {
        self.counts.patient_since
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

    /// What the next reaction waits for. Where a pause was asked for the first reaction has one too, from the end of the
    /// attempt on; and so has the first one after the quick ones.
    pub fn pause(&self, budget: Budget, standing: RetryStanding) -> Pause {
        let last = self.counts.last_action_at;
        let pace = budget.pace();
        let pause = match (standing, budget) {
            (RetryStanding::Patient, _) => {
                let tries = self.counts.infra.saturating_sub(budget.limit());
                // Until it is noted nobody knows since when.
                let since = self.counts.patient_since.or(self.ended).max(last);
                Pause { pace: backoff::PATIENT, row: tries.saturating_add(1), since }
            }
            (_, Budget::Capacity) => Pause { pace, row: self.counts.capacity_row, since: last },
            (_, Budget::Infrastructure) => Pause { pace, row: self.counts.infra, since: last },
            (_, Budget::Program) => Pause { pace, row: 0, since: last },
            (_, Budget::Retry { backoff_s: None, .. }) => {
                Pause { pace, row: self.counts.retried, since: last }
            }
            (_, Budget::Retry { backoff_s: Some(_), .. }) => {
                // What came to nothing is not tried again at once, however long ago the attempt ended.
                let row = self.counts.retried.saturating_add(1);
                Pause { pace, row, since: self.ended.max(last) }
            }
        };
        if self.counts.roused { Pause { since: None, ..pause } } else { pause }
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
    (counts.roused, counts.login) = (false, None);
    counts
}

/// The counts of `job` once its quick reactions to `kind` are used up, however many there were: from now on it is tried
/// less often.
pub fn patient(job: &Job, progress: &Progress, kind: ErrorKind, now: Timestamp) -> Recovery {
    let counts = RetryCounts::of(job, progress, kind).counts;
    let infra = counts.infra.max(Budget::Infrastructure.limit());
    not_failed_itself(job, progress, Recovery { infra, patient_since: Some(now), ..counts })
}

/// Whether a job that has failed waits for a pause, or for a login; what it waits for is then over by a person's word
/// ([`rouse`]).
pub fn is_asleep(job: &Job, now: Timestamp) -> bool {
    let counts = job.counts();
    if counts.login.is_some() {
        return job.child.is_none() && !job.status.is_final();
    }
    let Status::Error(kind) = job.status else { return false };
    let retries = RetryCounts::of(job, &job.reached.clone().unwrap_or_default(), kind);
    let budget = Budget::of(job, kind);
    let standing = match retries.left(budget) {
        0 => RetryStanding::Patient,
        left => RetryStanding::Quick(left),
    };
    let pause = retries.pause(budget, standing);
    let is_noted = standing != RetryStanding::Patient || counts.patient_since.is_some();
    comes_back(job) && is_noted && backoff::not_before(pause, now, backoff::jitter_of(job)) > now
}

/// Lets a job wait for no pause and no login any more: the next reaction begins at once. What is counted stays.
pub fn rouse(job: &mut Job) {
    let counts = job.counts_mut();
    (counts.roused, counts.login) = (true, None);
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
    let (judged, waits_since, stopped, killed, blocked) = (None, None, None, false, false);
    let (roused, login, unwatched) = (false, None, false);
    Recovery {
        quick,
        restarts,
        progressed,
        roused,
        login,
        judged,
        waits_since,
        stopped,
        killed,
        unwatched,
        blocked,
        ..counts
    }
}

/// Children in a row that died at once, `job` included. A preemption says nothing about the program, nor
/// does an attempt whose program never began: they neither count nor end the row.
fn quick(job: &Job, kind: ErrorKind, before: u32) -> u32 {
    if matches!(kind, ErrorKind::Preempted | ErrorKind::NoCapacity | ErrorKind::Launch) {
        return before;
    }
    let lasted_s = job.launch.as_ref().and_then(Launch::ran_s);
    let is_child = job.father.is_some();
    match lasted_s {
        // How long it lived is unknown, or it has only waited, so this says nothing either.
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
        let (counts, budget) = (RetryCounts::of(job, &progress, kind), Budget::of(job, kind));
        // For how long it is tried again is none of what a record tells: once that is over it says that it is stopped.
        let is_left = counts.left(budget) > 0 || counts.is_waited_out(budget);
        job.rules.action(kind) != Action::Pass && is_left
    };
    let is_stopped = job.recovery.as_ref().is_some_and(|recovery| recovery.is_over());
    job.monitor && !is_stopped && job.child.is_none() && (job.is_being_brought_back() || is_due())
}

#[cfg(test)]
mod tests;
