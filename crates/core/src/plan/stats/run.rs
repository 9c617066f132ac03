//! What statistics are made of: attempts as they were, waits for targets, and the part of time that is looked at.

use std::borrow::Cow;
use std::sync::Arc;

use crate::model::facts::{ErrorKind, Progress};
use crate::model::ids::{JobId, JobNumber, TargetName};
use crate::model::job::{Job, Launch, Status, Stretch, Succession};
use crate::model::target::Pricing;
use crate::model::time::Timestamp;
use crate::model::view::Whose;

/// One attempt.
#[derive(Clone, Debug)]
pub struct PastRun {
    /// Which.
    pub id: JobId,
    /// The attempt that it goes on from.
    pub father: Option<JobNumber>,
    /// Its tag.
    pub tag: Option<String>,
    /// Where it ran.
    pub on: Arc<RanOn>,
    /// When it was claimed.
    pub began: Timestamp,
    /// When it ended; `None` while it is at work, or waits at its engine.
    pub ended: Option<Timestamp>,
    /// When it was at work, where its engine may have let it wait; `None` where it was from its claim on.
    pub worked: Option<Vec<Stretch>>,
    /// What became of it.
    pub outcome: RunOutcome,
    /// The line that decided its failure.
    pub line: Option<String>,
    /// How far it had come at its end, in steps or epochs.
    pub reached: Option<f64>,
    /// Whether it began from scratch.
    pub is_from_nothing: bool,
    /// How long it waited in the queue, in seconds; `None` where the journal does not reach back so far.
    pub waited_s: Option<u64>,
    /// What an hour of it costs; `None` where nobody has said that.
    pub per_hour: Option<f64>,
}

/// The target of an attempt, as it was when that began; as it is known today where nobody has written that down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RanOn {
    /// Its full name.
    pub target: TargetName,
    /// Accelerator type, if anybody says it.
    pub accelerator: Option<String>,
    /// Zone, if anybody says it.
    pub zone: Option<String>,
    /// The word of its kind, if it is still known.
    pub kind: Option<String>,
    /// How it is paid for, if it is still known.
    pub pricing: Option<Pricing>,
}

impl RanOn {
    /// A target of which nothing but the name is known.
    pub fn unknown(target: TargetName) -> Self {
        Self { target, accelerator: None, zone: None, kind: None, pricing: None }
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunOutcome {
    /// It is at work.
    AtWork,
    /// It ended well.
    Finished,
    /// It failed.
    Failed(ErrorKind),
    /// A person stopped it, or went on from it.
    Stopped,
}

impl RunOutcome {
    /// What a status says. Who was stopped after a failure has failed.
    pub fn of(status: &Status) -> Self {
        match (status, status.error()) {
            (Status::Unset | Status::Starting | Status::Running, _) => Self::AtWork,
            (Status::Finished, _) => Self::Finished,
            (_, Some(kind)) => Self::Failed(kind),
            (_, None) => Self::Stopped,
        }
    }
}

impl PastRun {
    /// Whether a failure took its target away.
    pub fn is_preempted(&self) -> bool {
        self.outcome == RunOutcome::Failed(ErrorKind::Preempted)
    }

    /// The times in which it was at work, where what has not ended is so until `until`.
    pub(crate) fn stretches(&self, until: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let end = self.ended.unwrap_or(until);
        match &self.worked {
            Some(all) => all.iter().map(|of| (of.from, of.until.unwrap_or(end))).collect(),
            None => vec![(self.began, end)],
        }
    }

    /// For how many seconds it was at work.
    pub(crate) fn worked_s(&self, until: Timestamp) -> u64 {
        self.stretches(until).iter().map(|(from, to)| to.seconds_since(*from)).sum()
    }

    /// When it was at work first; `None` of one that has only waited.
    pub(crate) fn at_work_since(&self) -> Option<Timestamp> {
        match &self.worked {
            Some(all) => all.first().map(|first| first.from),
            None => Some(self.began),
        }
    }

    /// How long it waited, in the queue and then at its engine before it was at work first; `None` where nobody knows.
    pub(crate) fn whole_wait_s(&self) -> Option<u64> {
        let at_engine = self.at_work_since()?.seconds_since(self.began);
        match self.waited_s {
            Some(in_queue) => Some(in_queue + at_engine),
            None => self.worked.as_ref().map(|_| at_engine),
        }
    }

    /// What a record says; what it does not is as if nothing were known.
    pub fn of(job: &Job, began: Timestamp) -> Self {
        Self {
            id: job.id(),
            father: job.father,
            tag: job.job_tags.clone().filter(|tag| !tag.is_empty()),
            on: Arc::new(RanOn::unknown(job.tpu.clone())),
            began,
            ended: job.launch.as_ref().and_then(|launch| launch.ended),
            worked: job.launch.as_ref().and_then(Launch::stretches),
            outcome: RunOutcome::of(&job.status),
            line: job
                .verdict
                .as_ref()
                .filter(|verdict| !verdict.ignored && !verdict.line.is_empty())
                .map(|verdict| verdict.line.clone()),
            reached: job.reached.as_deref().and_then(position),
            is_from_nothing: job.father.is_none(),
            waited_s: None,
            per_hour: None,
        }
    }
}

/// The words of the journal for the beginning of an attempt.
pub const BEGINS: [&str; 3] = ["run", "resume", "rerun"];

/// The word of the journal for one that goes on from scratch.
pub fn begins_anew(kind: &str) -> bool {
    kind == Succession::Rerun.verb()
}

/// One number for how far a run has come. The epoch leads, since many programs count steps anew in each.
fn position(progress: &Progress) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "no run has more steps than a float counts")]
    let step = progress.step.map(|step| step as f64);
    progress.epoch.or(step).filter(|at| at.is_finite() && *at > 0.0)
}

/// A wait for a target that was made for a job.
#[derive(Clone, Debug)]
pub struct CapacityWait {
    /// When it was over.
    pub at: Timestamp,
    /// For which job.
    pub job: JobId,
    /// What was waited for.
    pub accelerator: String,
    /// And where.
    pub zone: String,
    /// How it would be paid for.
    pub pricing: Option<Pricing>,
    /// How long.
    pub waited_s: u64,
    /// Whether it came.
    pub came: bool,
}

/// What is looked at.
#[derive(Clone, Debug)]
pub struct Period {
    /// From this instant on; from the first attempt without.
    pub since: Option<Timestamp>,
    /// Up to this one; what is at work has worked so far.
    pub until: Timestamp,
}

impl Period {
    /// Whether an instant lies in it.
    pub fn holds(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since) && at <= self.until
    }

    /// The part of a stretch of time that lies in it.
    pub(crate) fn clip(&self, from: Timestamp, to: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let from = self.since.map_or(from, |since| from.max(since));
        let to = to.min(self.until);
        (from < to).then_some((from, to))
    }
}

/// All that there is to count.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Every attempt, once.
    pub runs: Vec<PastRun>,
    /// Waits for targets.
    pub capacity: Vec<CapacityWait>,
}

impl Past {
    /// What belongs to these users.
    pub fn of(&self, whose: &Whose) -> Cow<'_, Self> {
        if whose.is_everybody() {
            return Cow::Borrowed(self);
        }
        let runs = self.runs.iter().filter(|run| whose.includes(&run.id.user)).cloned();
        let capacity = self.capacity.iter().filter(|wait| whose.includes(&wait.job.user)).cloned();
        Cow::Owned(Self { runs: runs.collect(), capacity: capacity.collect() })
    }
}
