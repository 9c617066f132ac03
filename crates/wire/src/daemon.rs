//! The daemon: how it is and what it plans.

use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobNumber, UserName};
use tpu_core::model::rules::Action;
use tpu_core::model::view::{MonitorHealth, Shown};
use tpu_ops::waiting::ack::Acked;
use tpu_ops::waiting::preview::{Entry, Plan};

use super::document::{documents, part};
use super::jobs::{EvidencePart, MonitorPart, NextPart, ProgressPart};
use super::words::{TimePart, Word};

documents! {
    /// The daemon has been started.
    pub struct MonitorStartedDocument<'a> {
        /// It runs.
        #[schemars(extend("const" = true))]
        running: bool,
        /// Its process.
        pid: u32,
        /// Its tmux session, where it was started in one.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        session: Option<&'a str>,
        /// Whether it ran before.
        ran_before: bool,
    }

    /// The daemon has been ended.
    pub struct MonitorStoppedDocument {
        /// It does not run.
        #[schemars(extend("const" = false))]
        running: bool,
        /// The process that it was.
        pid: u32,
    }

    /// Whether the daemon runs; where it does not, nothing else is said.
    pub struct MonitorStatusDocument<'a> {
        /// Whether it does.
        running: bool,
        /// Its process.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "u32")]
        pid: Option<u32>,
        /// When it began.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "TimePart")]
        since: Option<TimePart>,
        /// Seconds since its last turn.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "u64")]
        turn_age_s: Option<u64>,
        /// Why it only watches; absent where it acts.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        watches: Option<String>,
        /// How it runs: `foreground`, `tmux`, `detached` or `systemd`.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        hosting: Option<&'static str>,
        /// Whether it ends by itself after an hour without anything to do.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "bool")]
        ends_idle: Option<bool>,
        /// The version of its program; absent where that is 0.2 or earlier.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        version: Option<&'a str>,
    }

    /// What has the daemon begin with this machine, or no more.
    pub struct DaemonUnitDocument<'a> {
        /// Whether it is to begin with this machine.
        installed: bool,
        /// What it is: `systemd` or `crontab`.
        how: &'a str,
        /// The file of the unit; of a crontab nobody says where it lies.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        file: Option<String>,
        /// What is written there.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        text: Option<&'a str>,
    }

    /// What the daemon does next with every job.
    pub struct PlanDocument<'a> from plan: &'a Plan {
        /// When it was planned.
        generated_at: TimePart = part(&plan.at),
        /// Whether there is a daemon to do it.
        monitor: MonitorPart<'a> = whether(&plan.monitor),
        /// Every job, in the order of the data file.
        jobs: Vec<PlannedJobPart<'a>>,
    }

    /// What is planned for one job.
    pub struct PlannedJobPart<'a> from entry: &'a Entry {
        /// Whose job it is.
        user: &'a UserName = &entry.view.id.user,
        /// Number of the job and of its tmux window.
        window: JobNumber = entry.view.id.window,
        /// The status after all facts were heard.
        status: Word<&'a Shown> = Word(&entry.view.shown),
        /// The kind of failure; null if it has not failed.
        error: Option<Word<ErrorKind>> = entry.view.failure().map(Word),
        /// Why it has its status.
        evidence: Option<EvidencePart<'a>> = part(&entry.view.shown.evidence),
        /// What its rules say of such a failure.
        rule: Option<Word<Action>> = entry.view.rule_action().map(Word),
        /// What will happen by itself; null if nothing is wrong.
        next: Option<NextPart<'a>>,
        /// Why nothing is to be done, where nothing is wrong.
        reason: &'a str,
        /// How far it is, or was when it ended; null if nothing is known of that.
        progress: Option<ProgressPart> = ProgressPart::known(&entry.view.shown.progress),
    }

    /// The daemon was asked to look at once, and what waited was woken.
    pub struct AckDocument<'a> from acked: &'a Acked {
        /// Whether there is one.
        monitor: MonitorPart<'a> = whether(&acked.monitor),
        /// Jobs that waited to be brought back, or for a login: each as `USER/NUMBER`.
        jobs: Vec<String> = acked.jobs.iter().map(ToString::to_string).collect(),
        /// Targets that were to be asked for later.
        targets: Vec<String> = acked.targets.iter().map(ToString::to_string).collect(),
    }
}

/// Whether the daemon runs, and no more.
fn whether(health: &MonitorHealth) -> MonitorPart<'_> {
    MonitorPart { turn_age_s: None, ..MonitorPart::from(health) }
}
