//! The daemon: how it is and what it plans.

use schemars::JsonSchema;
use serde::Serialize;

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::rules::Action;
use tpu_core::model::view::{MonitorHealth, Shown};
use tpu_ops::waiting::ack::Acked;
use tpu_ops::waiting::preview::{Entry, Plan};

use super::jobs::{EvidencePart, MonitorPart, NextPart, ProgressPart};
use super::words::{TimePart, Word};

/// The daemon has been started.
#[derive(Serialize, JsonSchema)]
pub struct MonitorStartedDocument<'a> {
    /// It runs.
    #[schemars(extend("const" = true))]
    pub running: bool,
    /// Its process.
    pub pid: u32,
    /// Its tmux session.
    pub session: &'a str,
}

/// The daemon has been ended.
#[derive(Serialize, JsonSchema)]
pub struct MonitorStoppedDocument {
    /// It does not run.
    #[schemars(extend("const" = false))]
    pub running: bool,
    /// The process that it was.
    pub pid: u32,
}

/// Whether the daemon runs; where it does not, nothing else is said.
#[derive(Serialize, JsonSchema)]
pub struct MonitorStatusDocument {
    /// Whether it does.
    pub running: bool,
    /// Its process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u32")]
    pub pid: Option<u32>,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TimePart")]
    pub since: Option<TimePart>,
    /// Seconds since its last turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub turn_age_s: Option<u64>,
    /// Why it only watches; absent where it acts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub watches: Option<String>,
}

/// What the daemon does next with every job.
#[derive(Serialize, JsonSchema)]
pub struct PlanDocument<'a> {
    /// When it was planned.
    pub generated_at: TimePart,
    /// Whether there is a daemon to do it.
    pub monitor: MonitorPart,
    /// Every job, in the order of the data file.
    pub jobs: Vec<PlannedJobPart<'a>>,
}

impl<'a> From<&'a Plan> for PlanDocument<'a> {
    fn from(plan: &'a Plan) -> Self {
        Self {
            generated_at: TimePart(plan.at),
            monitor: whether(&plan.monitor),
            jobs: plan.jobs.iter().map(PlannedJobPart::from).collect(),
        }
    }
}

/// Whether the daemon runs, and no more.
fn whether(health: &MonitorHealth) -> MonitorPart {
    MonitorPart { turn_age_s: None, ..MonitorPart::from(health) }
}

/// What is planned for one job.
#[derive(Serialize, JsonSchema)]
pub struct PlannedJobPart<'a> {
    /// Whose job it is.
    pub user: &'a UserName,
    /// Number of the job and of its tmux window.
    pub window: JobNumber,
    /// The status after all facts were heard.
    pub status: Word<&'a Shown>,
    /// The kind of failure; null if it has not failed.
    pub error: Option<Word<ErrorKind>>,
    /// Why it has its status.
    pub evidence: Option<EvidencePart<'a>>,
    /// What its rules say of such a failure.
    pub rule: Option<Word<Action>>,
    /// What will happen by itself; null if nothing is wrong.
    pub next: Option<NextPart<'a>>,
    /// Why nothing is to be done, where nothing is wrong.
    pub reason: &'a str,
    /// How far it is, or was when it ended; null if nothing is known of that.
    pub progress: Option<ProgressPart>,
}

impl<'a> From<&'a Entry> for PlannedJobPart<'a> {
    fn from(Entry { view, next, reason, .. }: &'a Entry) -> Self {
        Self {
            user: &view.id.user,
            window: view.id.window,
            status: Word(&view.shown),
            error: view.failure().map(Word),
            evidence: view.shown.evidence.as_ref().map(EvidencePart::from),
            rule: view.rule_action().map(Word),
            next: next.as_ref().map(NextPart::from),
            reason,
            progress: ProgressPart::known(&view.shown.progress),
        }
    }
}

/// The daemon was asked to look at once, and what waited was woken.
#[derive(Serialize, JsonSchema)]
pub struct AckDocument {
    /// Whether there is one.
    pub monitor: MonitorPart,
    /// Jobs that waited to be brought back, or for a login: each as `USER/NUMBER`.
    pub jobs: Vec<String>,
    /// Targets that were to be asked for later.
    pub targets: Vec<String>,
}

impl From<&Acked> for AckDocument {
    fn from(acked: &Acked) -> Self {
        Self {
            monitor: whether(&acked.monitor),
            jobs: acked.jobs.iter().map(ToString::to_string).collect(),
            targets: acked.targets.iter().map(ToString::to_string).collect(),
        }
    }
}
