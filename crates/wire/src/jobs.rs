//! Jobs as they stand: `check`, `explain`, `wait`; and what changes one of them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, Evidence, Origin, Phase, Progress, Source};
use tpu_core::model::ids::{JobId, JobNumber, QueueName, TargetName, UserName};
use tpu_core::model::job::Status;
use tpu_core::model::rules::{Action, NAMED, Rules};
use tpu_core::model::view::{JobView, MonitorHealth, Next, Orphan, Pending, Shown, Snapshot};
use tpu_ops::act::hosts::figures::Figures;
use tpu_ops::front::show::Whole;

use super::events::EventPart;
use super::figures::JobFiguresPart;
use super::hosts::SharePart;
use super::words::{TimePart, Word};

/// All jobs of a user, or of everybody.
#[derive(Serialize, JsonSchema)]
pub struct SnapshotDocument<'a> {
    /// When the look was made.
    pub generated_at: TimePart,
    /// In the order of the data file.
    pub jobs: Vec<JobPart<'a>>,
    /// Windows of these users that no record claims.
    pub orphans: Vec<OrphanPart<'a>>,
    /// Whether the daemon runs.
    pub monitor: MonitorPart,
    /// What the processes of these jobs have of their machines, as far as that is known.
    pub figures: Vec<JobFiguresPart<'a>>,
}

impl<'a> From<&'a Snapshot> for SnapshotDocument<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self {
            generated_at: TimePart(snapshot.at),
            jobs: snapshot.jobs.iter().map(JobPart::from).collect(),
            orphans: snapshot.orphans.iter().map(OrphanPart::from).collect(),
            monitor: MonitorPart::from(&snapshot.monitor),
            figures: Vec::new(),
        }
    }
}

impl<'a> SnapshotDocument<'a> {
    /// The same with figures.
    #[must_use]
    pub fn with(self, figures: &'a Figures, look: &'a Snapshot) -> Self {
        let jobs = look.jobs.iter().map(|job| (&job.id, &job.target));
        Self { figures: JobFiguresPart::of(figures, jobs, look.at), ..self }
    }
}

/// A piece of what a job has printed.
#[derive(Serialize, JsonSchema)]
pub struct LogsPieceDocument<'a> {
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Where the next one begins.
    pub next_offset: u64,
    /// What it says; bytes that are no text are replaced.
    pub text: &'a str,
    /// The worker that printed it; null for all of them.
    pub worker: Option<u32>,
}

/// A page of jobs.
#[derive(Serialize, JsonSchema)]
pub struct JobsPageDocument<'a> {
    /// When the look was made.
    pub generated_at: TimePart,
    /// In the order of the data file.
    pub jobs: Vec<JobPart<'a>>,
    /// What asks for the next page, as `cursor`; null where this is the last.
    pub next: Option<&'a str>,
    /// Whether the daemon runs.
    pub monitor: MonitorPart,
}

/// One job and why it is as it is.
#[derive(Serialize, JsonSchema)]
pub struct ExplainDocument<'a> {
    /// The job.
    pub job: JobPart<'a>,
    /// Why it is on its target and on no other; null where it was named.
    pub chosen: Option<&'a str>,
    /// What its processes have of their machine; null where that is not known.
    pub figures: Option<JobFiguresPart<'a>>,
}

/// The jobs that were waited for.
#[derive(Serialize, JsonSchema)]
pub struct WaitDocument<'a> {
    /// As they stand at the end of the wait.
    pub jobs: Vec<JobPart<'a>>,
}

/// One job as it stands now.
#[derive(Serialize, JsonSchema)]
pub struct JobPart<'a> {
    /// Whose job it is.
    pub user: &'a UserName,
    /// Number of the job and of its tmux window.
    pub window: JobNumber,
    /// Windows of all attempts, the first first.
    pub lineage: &'a [JobNumber],
    /// Whether it is the youngest attempt.
    pub leaf: bool,
    /// Its working directory.
    pub dir: DirPart<'a>,
    /// Full name of what it computes on.
    pub target: &'a TargetName,
    /// Why nobody knows how its target is now, and what was last heard of it.
    pub target_unknown: Option<&'a str>,
    /// What it was given of its target; null where nothing was counted.
    pub share: Option<SharePart<'a>>,
    /// Zone of the target.
    pub zone: Option<&'a str>,
    /// The name by which it and its successors are called; null if it has none.
    pub name: Option<&'a str>,
    /// Number of the group of which it is a member; null if it is of none.
    pub group: Option<JobNumber>,
    /// Which member of the group it is; null if it is of none.
    pub member: Option<u32>,
    /// The members of the group that wait, where this is all of them; null for every other.
    pub members: Option<&'a [u32]>,
    /// The queue in which it waits for its turn and has no attempt yet; null for every other. The number of a member
    /// that waits is that of its group.
    pub queue: Option<&'a QueueName>,
    /// Its place in its queue, from 1; null where it waits in none.
    pub position: Option<usize>,
    /// How urgent it is, from 0 to 100; null where it waits in no queue.
    pub priority: Option<u8>,
    /// Whether somebody holds it; null where it waits in no queue.
    pub held: Option<bool>,
    /// Why it does not begin, as far as that is known without asking machines; null if only its turn has not come.
    pub reason: Option<&'a str>,
    /// Its tags, as they were typed.
    pub tags: Option<&'a str>,
    /// The arguments with which it was started, as one would type them in a shell.
    pub arguments: &'a str,
    /// The status after all facts were heard.
    pub status: Word<&'a Shown>,
    /// The kind of failure; null if it has not failed.
    pub error: Option<Word<ErrorKind>>,
    /// Who has to act on it: what is the program's own fails again, where nothing is changed; null if it has not failed.
    pub error_origin: Option<Word<Origin>>,
    /// Why nothing certain can be said now; the status is then the stored one.
    pub unknown: Option<&'a str>,
    /// Why it has not been started yet, where an engine has it; null for every other.
    pub pending: Option<PendingPart<'a>>,
    /// What it is doing.
    pub phase: Option<Word<Phase>>,
    /// How far it is, or was when it ended; null if nothing is known of that.
    pub progress: Option<ProgressPart>,
    /// Resumes before it.
    pub stage: u32,
    /// How often its engine has begun it anew by itself.
    pub restarts: u32,
    /// What is done when it fails.
    pub rule: RulesPart<'a>,
    /// Whether the daemon may act on it.
    pub monitor: bool,
    /// Why it has its status.
    pub evidence: Option<EvidencePart<'a>>,
    /// What will happen by itself; null if nothing is wrong.
    pub next: Option<NextPart<'a>>,
    /// An action on it that is not complete.
    pub intent: Option<&'a str>,
    /// When it began.
    pub started_at: Option<TimePart>,
    /// When it ended; null while it has not, and where nobody has written that down.
    pub ended_at: Option<TimePart>,
    /// Where it logs.
    pub log_dir: Option<&'a str>,
    /// Where its staged code lies.
    pub stage_dir: Option<&'a str>,
    /// The exit code of its command, if that has ended.
    pub exit_code: Option<i32>,
    /// Whether its window exists; null if nobody knows.
    pub window_alive: Option<bool>,
}

impl<'a> From<&'a JobView> for JobPart<'a> {
    fn from(view: &'a JobView) -> Self {
        let JobView { shown, .. } = view;
        let queued = shown.queued.as_ref();
        let whole = queued.and_then(|queued| queued.members.as_ref().map(|_| view.id.window));
        Self {
            user: &view.id.user,
            window: view.id.window,
            lineage: &view.lineage,
            leaf: view.leaf,
            dir: DirPart { id: view.dir.0, path: &view.dir.1 },
            target: &view.target,
            target_unknown: view.target_unknown.as_deref(),
            share: view.share.as_ref().map(SharePart::from),
            zone: view.zone.as_deref(),
            name: view.name.as_deref(),
            group: view.member.map(|member| member.group).or(whole),
            member: view.member.map(|member| member.index),
            members: queued.and_then(|queued| queued.members.as_deref()),
            queue: queued.map(|queued| &queued.queue),
            position: queued.map(|queued| queued.position),
            priority: queued.map(|queued| queued.priority.number()),
            held: queued.map(|queued| queued.held),
            reason: queued.and_then(|queued| queued.reason.as_deref()),
            tags: view.tags.as_deref(),
            arguments: &view.configs,
            status: Word(shown),
            error: shown.status.error().map(Word),
            error_origin: shown.status.error().map(|kind| Word(kind.origin())),
            unknown: shown.unknown.as_deref(),
            pending: shown.pending.as_ref().map(PendingPart::from),
            phase: shown.phase.map(Word),
            progress: ProgressPart::known(&shown.progress),
            stage: view.stage,
            restarts: view.restarts,
            rule: RulesPart(Cow::Borrowed(&view.rules)),
            monitor: view.monitor,
            evidence: shown.evidence.as_ref().map(EvidencePart::from),
            next: view.next.as_ref().map(NextPart::from),
            intent: view.intent.as_deref(),
            started_at: view.started_at.map(TimePart),
            ended_at: view.ended_at.map(TimePart),
            log_dir: view.log_dir.as_deref(),
            stage_dir: view.stage_dir.as_deref(),
            exit_code: view.exit.map(Exit::code),
            window_alive: view.window_alive,
        }
    }
}

/// A wait that an engine has ordered.
#[derive(Serialize, JsonSchema)]
pub struct PendingPart<'a> {
    /// Why it waits; null if the engine does not say.
    pub reason: Option<&'a str>,
    /// When it is expected to start.
    pub expected_start: Option<TimePart>,
    /// The engine's own word.
    pub raw: &'a str,
}

impl<'a> From<&'a Pending> for PendingPart<'a> {
    fn from(Pending { reason, expected_start, raw }: &'a Pending) -> Self {
        Self { reason: reason.as_deref(), expected_start: expected_start.map(TimePart), raw }
    }
}

/// A working directory.
#[derive(Serialize, JsonSchema)]
pub struct DirPart<'a> {
    /// Its slot; null if it is in none.
    pub id: Option<u32>,
    /// Its path.
    pub path: &'a str,
}

/// What is known of how far a job is; null for what was not printed.
#[derive(Serialize, JsonSchema)]
pub struct ProgressPart {
    /// Epoch, possibly fractional.
    pub epoch: Option<f64>,
    /// Epochs in all.
    pub epochs: Option<f64>,
    /// Optimiser steps done.
    pub step: Option<u64>,
    /// Steps in all.
    pub total: Option<u64>,
    /// Share done, 0 to 100.
    pub percent: Option<f64>,
    /// Training loss.
    pub loss: Option<f64>,
    /// Learning rate.
    pub lr: Option<f64>,
    /// Steps per second.
    pub steps_per_s: Option<f64>,
    /// Seconds to the end, as the program printed them.
    pub eta_s: Option<f64>,
}

impl From<&Progress> for ProgressPart {
    fn from(progress: &Progress) -> Self {
        let Progress { epoch, epochs, step, total, percent, loss, lr, steps_per_s, eta_s } =
            *progress;
        Self { epoch, epochs, step, total, percent, loss, lr, steps_per_s, eta_s }
    }
}

impl ProgressPart {
    /// The progress, if anything of it is known.
    pub fn known(progress: &Progress) -> Option<Self> {
        (!progress.is_empty()).then(|| Self::from(progress))
    }
}

/// Why a job has its status.
#[derive(Serialize, JsonSchema)]
pub struct EvidencePart<'a> {
    /// Where it was seen.
    pub source: Word<Source>,
    /// The pattern or rule that decided.
    pub rule: &'a str,
    /// The very line, or the fact in words.
    pub line: &'a str,
    /// Its number, counted from the end: the last line is 1.
    pub line_no: Option<usize>,
    /// The worker that printed it.
    pub worker: Option<&'a str>,
    /// Seconds since it was seen.
    pub age_s: Option<u64>,
}

impl<'a> From<&'a Evidence> for EvidencePart<'a> {
    fn from(evidence: &'a Evidence) -> Self {
        Self {
            source: Word(evidence.source),
            rule: &evidence.rule,
            line: &evidence.line,
            line_no: evidence.line_no,
            worker: evidence.worker.as_deref(),
            age_s: evidence.age_s,
        }
    }
}

/// What will happen by itself.
#[derive(Serialize, JsonSchema)]
pub struct NextPart<'a> {
    /// The action.
    pub action: &'a str,
    /// Seconds until then; null if nobody knows.
    pub in_s: Option<u64>,
    /// How often it may still happen.
    pub budget_left: Option<u32>,
    /// Why, or why not.
    pub reason: &'a str,
}

impl<'a> From<&'a Next> for NextPart<'a> {
    fn from(next: &'a Next) -> Self {
        let Next { action, in_s, budget_left, reason, .. } = next;
        Self { action, in_s: *in_s, budget_left: *budget_left, reason }
    }
}

/// What is done when a job fails, by the kind of failure.
pub struct RulesPart<'a>(pub Cow<'a, Rules>);

impl Serialize for RulesPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut kinds = serializer.serialize_map(Some(ErrorKind::ALL.len()))?;
        for kind in ErrorKind::ALL {
            kinds.serialize_entry(kind.as_str(), &Word(self.0.action(kind)))?;
        }
        kinds.end()
    }
}

impl JsonSchema for RulesPart<'_> {
    fn schema_name() -> Cow<'static, str> {
        "RulesPart".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kinds = ErrorKind::ALL.map(ErrorKind::as_str);
        let action = generator.subschema_for::<Word<Action>>();
        let properties: serde_json::Map<String, serde_json::Value> =
            kinds.iter().map(|kind| ((*kind).to_owned(), action.clone().to_value())).collect();
        json_schema!({
            "type": "object", "description": "What is done when a job fails so",
            "properties": properties, "required": kinds,
        })
    }
}

/// Whether the daemon runs.
#[derive(Serialize, JsonSchema)]
pub struct MonitorPart {
    /// Whether it does.
    pub running: bool,
    /// Seconds since its last turn; absent where it does not run, or where that was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub turn_age_s: Option<u64>,
    /// Why it only watches; absent where it acts or does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub watches: Option<String>,
}

impl From<&MonitorHealth> for MonitorPart {
    fn from(health: &MonitorHealth) -> Self {
        let (turn_age_s, watches) = match health {
            MonitorHealth::NotRunning => (None, None),
            MonitorHealth::Running { turn_age_s } => (Some(*turn_age_s), None),
            MonitorHealth::Watching { turn_age_s, why } => (Some(*turn_age_s), Some(why.clone())),
        };
        Self { running: *health != MonitorHealth::NotRunning, turn_age_s, watches }
    }
}

/// A window that no record claims.
#[derive(Serialize, JsonSchema)]
pub struct OrphanPart<'a> {
    /// tmux session.
    pub session: &'a str,
    /// Its index there.
    pub window: u32,
}

impl<'a> From<&'a Orphan> for OrphanPart<'a> {
    fn from(orphan: &'a Orphan) -> Self {
        Self { session: &orphan.session, window: orphan.window }
    }
}

/// Which job.
#[derive(Serialize, JsonSchema)]
pub struct JobIdPart<'a> {
    /// Whose job it is.
    pub user: &'a UserName,
    /// Number of the job and of its tmux window.
    pub window: JobNumber,
}

impl<'a> From<&'a JobId> for JobIdPart<'a> {
    fn from(id: &'a JobId) -> Self {
        Self { user: &id.user, window: id.window }
    }
}

/// The job that was meant.
#[derive(Serialize, JsonSchema)]
pub struct JobIdDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
}

/// A job that was tagged.
#[derive(Serialize, JsonSchema)]
pub struct TagDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
    /// The tag.
    pub tag: &'a str,
}

/// Jobs that were tagged.
#[derive(Serialize, JsonSchema)]
pub struct TagsDocument<'a> {
    /// Which ones.
    pub jobs: Vec<JobIdPart<'a>>,
    /// The tag.
    pub tag: &'a str,
}

/// A job that has other rules now.
#[derive(Serialize, JsonSchema)]
pub struct RuleDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
    /// The rules as they were typed.
    pub rule: &'a str,
}

/// The tables of rules by their names.
#[derive(Serialize, JsonSchema)]
pub struct RulesDocument<'a> {
    /// What each does.
    pub rules: super::words::Members<RulesPart<'a>>,
}

impl RulesDocument<'_> {
    /// Those that have names.
    pub fn named() -> Self {
        let of = |name: &str| Some((name.to_owned(), RulesPart(Cow::Owned(Rules::named(name)?))));
        Self { rules: NAMED.into_iter().filter_map(of).collect() }
    }
}

/// Where the staged code of a job lies.
#[derive(Serialize, JsonSchema)]
pub struct StageDirDocument<'a> {
    /// Its path.
    pub stage_dir: &'a str,
}

/// What started a job.
#[derive(Serialize, JsonSchema)]
pub struct JobScriptDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
    /// Its script, or what its engine was given.
    pub script: &'a str,
}

/// What runs a job says of it.
#[derive(Serialize, JsonSchema)]
pub struct ToldDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
    /// Its own words.
    pub raw: &'a str,
}

/// Everything that there is to say of a job.
#[derive(Serialize, JsonSchema)]
pub struct ShowDocument<'a> {
    /// How it is.
    pub job: JobPart<'a>,
    /// What has happened to it last, the oldest first.
    pub events: Vec<EventPart<'a>>,
    /// What started it; null where that is not kept.
    pub script: Option<&'a str>,
    /// What runs it says of it, in its own words; null where it says nothing.
    pub raw: Option<&'a str>,
}

impl<'a> From<&'a Whole> for ShowDocument<'a> {
    fn from(whole: &'a Whole) -> Self {
        Self {
            job: JobPart::from(&whole.view),
            events: whole.events.iter().map(EventPart::from).collect(),
            script: whole.script.as_deref(),
            raw: whole.told.as_deref().ok(),
        }
    }
}

/// What a job has printed.
#[derive(Serialize, JsonSchema)]
pub struct LogsDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
    /// Its lines, the oldest first.
    pub lines: Vec<&'a str>,
}

/// A job whose script says that it has ended well.
#[derive(Serialize, JsonSchema)]
pub struct FinishedDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
    /// How it is now.
    pub status: Word<Status>,
}

/// A job whose script says that it has failed.
#[derive(Serialize, JsonSchema)]
pub struct FailedDocument<'a> {
    /// Which one.
    pub job: JobIdPart<'a>,
    /// How it is now.
    pub status: Word<Status>,
    /// The kind of failure.
    pub error: Word<ErrorKind>,
}
