//! Jobs as they stand: `check`, `explain`, `wait`; and what changes one of them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{ErrorKind, Evidence, Origin, Phase, Progress, Source};
use tpu_core::model::ids::{JobId, JobNumber, QueueName, TargetName, UserName};
use tpu_core::model::job::{Status, Stretch};
use tpu_core::model::rules::{Action, NAMED, Rules};
use tpu_core::model::view::{JobView, MonitorHealth, Next, Orphan, Pending, Shown, Snapshot};
use tpu_ops::act::hosts::figures::Figures;
use tpu_ops::front::show::Whole;

use super::document::{documents, part};
use super::events::EventPart;
use super::figures::JobFiguresPart;
use super::hosts::SharePart;
use super::words::{TimePart, Word};

documents! {
    /// All jobs of a user, or of everybody.
    pub struct SnapshotDocument<'a> from snapshot: &'a Snapshot {
        /// When the look was made.
        generated_at: TimePart = part(&snapshot.at),
        /// In the order of the data file.
        jobs: Vec<JobPart<'a>>,
        /// Windows of these users that no record claims.
        orphans: Vec<OrphanPart<'a>>,
        /// Whether the daemon runs.
        monitor: MonitorPart<'a>,
        /// What the processes of these jobs have of their machines, as far as that is known.
        figures: Vec<JobFiguresPart<'a>> = Vec::new(),
    }

    /// A piece of what a job has printed.
    pub struct LogsPieceDocument<'a> {
        /// Where it begins, in bytes.
        offset: u64,
        /// Where the next one begins.
        next_offset: u64,
        /// What it says; bytes that are no text are replaced.
        text: &'a str,
        /// The worker that printed it; null for all of them.
        worker: Option<u32>,
    }

    /// A page of jobs.
    pub struct JobsPageDocument<'a> {
        /// When the look was made.
        generated_at: TimePart,
        /// In the order of the data file.
        jobs: Vec<JobPart<'a>>,
        /// What asks for the next page, as `cursor`; null where this is the last.
        next: Option<&'a str>,
        /// Whether the daemon runs.
        monitor: MonitorPart<'a>,
    }

    /// One job and why it is as it is.
    pub struct ExplainDocument<'a> {
        /// The job.
        job: JobPart<'a>,
        /// Why it is on its target and on no other; null where it was named.
        chosen: Option<&'a str>,
        /// Who submitted it, where that was not the user whose job it is: another user, or the bearer of a token.
        submitted_by: Option<&'a str>,
        /// What its processes have of their machine; null where that is not known.
        figures: Option<JobFiguresPart<'a>>,
    }

    /// The jobs that were waited for.
    pub struct WaitDocument<'a> {
        /// As they stand at the end of the wait.
        jobs: Vec<JobPart<'a>>,
    }

    /// One job as it stands now.
    pub struct JobPart<'a> from view: &'a JobView {
        /// Whose job it is.
        user: &'a UserName = &view.id.user,
        /// Number of the job and of its tmux window.
        window: JobNumber = view.id.window,
        /// Windows of all attempts, the first first.
        lineage: &'a [JobNumber],
        /// Whether it is the youngest attempt.
        leaf: bool,
        /// Its working directory.
        dir: DirPart<'a>,
        /// Full name of what it computes on.
        target: &'a TargetName,
        /// The kind of that target.
        kind: &'a str = view.kind.as_str(),
        /// Which attempt of its lineage it is, from 0 on.
        attempt: usize = view.attempt(),
        /// The machines that it runs on, or ran on last, as far as its engine names them.
        nodes: &'a [String],
        /// How many GPUs it has, or asks for; null where nobody has said that.
        gpus: Option<u32>,
        /// Why nobody knows how its target is now, and what was last heard of it.
        target_unknown: Option<&'a str>,
        /// What it was given of its target; null where nothing was counted.
        share: Option<SharePart<'a>>,
        /// Zone of the target.
        zone: Option<&'a str>,
        /// The name by which it and its successors are called; null if it has none.
        name: Option<&'a str>,
        /// What it runs, in a few words; null for a script.
        title: Option<&'a str>,
        /// Number of the group of which it is a member; null if it is of none.
        group: Option<JobNumber> = group(view),
        /// Which member of the group it is; null if it is of none.
        member: Option<u32> = view.member.map(|member| member.index),
        /// The members of the group that wait, where this is all of them; null for every other.
        members: Option<&'a [u32]> =
            view.shown.queued.as_ref().and_then(|queued| queued.members.as_deref()),
        /// The queue in which it waits for its turn and has no attempt yet; null for every other. The number of a member
        /// that waits is that of its group.
        queue: Option<&'a QueueName> = view.shown.queued.as_ref().map(|queued| &queued.queue),
        /// Its place in its queue, from 1; null where it waits in none.
        position: Option<usize> = view.shown.queued.as_ref().map(|queued| queued.position),
        /// How urgent it is, from 0 to 100; null where it waits in no queue.
        priority: Option<u8> = view.shown.queued.as_ref().map(|queued| queued.priority.number()),
        /// Whether somebody holds it; null where it waits in no queue.
        held: Option<bool> = view.shown.queued.as_ref().map(|queued| queued.held),
        /// Why it waits, in a queue or at its engine, as far as that is known without asking machines; null if it does not wait.
        reason: Option<String> = view.shown.why_it_waits(),
        /// When what waits is expected to start; null where nobody foresees it, or nobody was asked.
        expected_start: Option<TimePart> = view.shown.expected_start().map(TimePart),
        /// The word of its engine for how it is; null where it has none.
        raw: Option<&'a str>,
        /// Its tags, as they were typed.
        tags: Option<&'a str>,
        /// The arguments with which it was started, as one would type them in a shell.
        arguments: &'a str = &view.configs,
        /// The status after all facts were heard.
        status: Word<&'a Shown> = Word(&view.shown),
        /// The kind of failure; null if it has not failed.
        error: Option<Word<ErrorKind>> = view.shown.status.error().map(Word),
        /// Who has to act on it: what is the program's own fails again, where nothing is changed; null if it has not failed.
        error_origin: Option<Word<Origin>> =
            view.shown.status.error().map(|kind| Word(kind.origin())),
        /// Why nothing certain can be said now; the status is then the stored one.
        unknown: Option<&'a str> = part(&view.shown.unknown),
        /// Why it has not been started yet, where an engine has it; null for every other.
        pending: Option<PendingPart<'a>> = part(&view.shown.pending),
        /// What it is doing.
        phase: Option<Word<Phase>> = part(&view.shown.phase),
        /// How far it is, or was when it ended; null if nothing is known of that.
        progress: Option<ProgressPart> = ProgressPart::known(&view.shown.progress),
        /// Resumes before it.
        stage: u32,
        /// How often its engine has begun it anew by itself.
        restarts: u32,
        /// What is done when it fails.
        rule: RulesPart<'a> = RulesPart(Cow::Borrowed(&view.rules)),
        /// Whether the daemon may act on it.
        monitor: bool,
        /// Why it has its status.
        evidence: Option<EvidencePart<'a>> = part(&view.shown.evidence),
        /// What will happen by itself; null if nothing is wrong.
        next: Option<NextPart<'a>>,
        /// Whether its rules would bring it back, and a person has to do something before that.
        needs_person: bool,
        /// An action on it that is not complete.
        intent: Option<&'a str>,
        /// When it began.
        started_at: Option<TimePart>,
        /// When it ended; null while it has not, and where nobody has written that down.
        ended_at: Option<TimePart>,
        /// When it was at work, where its engine may let it wait first: none while it has only waited. Null where it is so from
        /// its beginning on.
        worked: Option<Vec<StretchPart>> =
            view.worked.as_ref().map(|all| all.iter().map(StretchPart::from).collect()),
        /// Where it logs.
        log_dir: Option<&'a str>,
        /// Where its staged code lies.
        stage_dir: Option<&'a str>,
        /// The exit code of its command, if that has ended.
        exit_code: Option<i32> = view.exit.map(Exit::code),
        /// Whether its window exists; null if nobody knows.
        window_alive: Option<bool>,
    }

    /// A time in which a job was at work.
    pub struct StretchPart from stretch: &'a Stretch {
        /// When it began.
        from: TimePart = part(&stretch.from),
        /// When it was over; null while it is not, or while only the end of the job tells.
        until: Option<TimePart>,
    }

    /// A wait that an engine has ordered.
    pub struct PendingPart<'a> from pending: &'a Pending {
        /// Why it waits; null if the engine does not say.
        reason: Option<&'a str>,
        /// When it is expected to start.
        expected_start: Option<TimePart>,
        /// The engine's own word.
        raw: &'a str,
    }

    /// A working directory.
    pub struct DirPart<'a> from (id, path): &'a (Option<u32>, String) {
        /// Its slot; null if it is in none.
        id: Option<u32> = *id,
        /// Its path.
        path: &'a str = path,
    }

    /// What is known of how far a job is; null for what was not printed.
    pub struct ProgressPart from progress: &'a Progress {
        /// Epoch, possibly fractional.
        epoch: Option<f64>,
        /// Epochs in all.
        epochs: Option<f64>,
        /// Optimiser steps done.
        step: Option<u64>,
        /// Steps in all.
        total: Option<u64>,
        /// Share done, 0 to 100.
        percent: Option<f64>,
        /// Training loss.
        loss: Option<f64>,
        /// Learning rate.
        lr: Option<f64>,
        /// Steps per second.
        steps_per_s: Option<f64>,
        /// Seconds to the end, as the program printed them.
        eta_s: Option<f64>,
    }

    /// Why a job has its status.
    pub struct EvidencePart<'a> from evidence: &'a Evidence {
        /// Where it was seen.
        source: Word<Source>,
        /// The pattern or rule that decided.
        rule: &'a str,
        /// The very line, or the fact in words.
        line: &'a str,
        /// Its number, counted from the end: the last line is 1.
        line_no: Option<usize>,
        /// The worker that printed it.
        worker: Option<&'a str>,
        /// Seconds since it was seen.
        age_s: Option<u64>,
    }

    /// What will happen by itself.
    pub struct NextPart<'a> from next: &'a Next {
        /// The action.
        action: &'a str,
        /// Seconds until then; null if nobody knows.
        in_s: Option<u64>,
        /// How often it may still happen.
        budget_left: Option<u32>,
        /// Why, or why not.
        reason: &'a str,
    }

    /// Whether the daemon runs.
    pub struct MonitorPart<'a> from health: &'a MonitorHealth {
        /// Whether it does.
        running: bool = *health != MonitorHealth::NotRunning,
        /// Seconds since its last turn; absent where it does not run, or where that was not looked at.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "u64")]
        turn_age_s: Option<u64> = health.turn_age_s(),
        /// Why it only watches; absent where it acts or does not run.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        watches: Option<&'a str> = health.watches(),
    }

    /// A window that no record claims.
    pub struct OrphanPart<'a> from orphan: &'a Orphan {
        /// tmux session.
        session: &'a str,
        /// Its index there.
        window: u32,
    }

    /// Which job.
    pub struct JobIdPart<'a> from id: &'a JobId {
        /// Whose job it is.
        user: &'a UserName,
        /// Number of the job and of its tmux window.
        window: JobNumber,
    }

    /// The job that was meant.
    pub struct JobIdDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
    }

    /// A job that was tagged.
    pub struct TagDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// The tag.
        tag: &'a str,
    }

    /// Jobs that were tagged.
    pub struct TagsDocument<'a> {
        /// Which ones.
        jobs: Vec<JobIdPart<'a>>,
        /// The tag.
        tag: &'a str,
    }

    /// A job that has other rules now.
    pub struct RuleDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// The rules as they were typed.
        rule: &'a str,
    }

    /// The tables of rules by their names.
    pub struct RulesDocument<'a> {
        /// What each does.
        rules: super::words::Members<RulesPart<'a>>,
    }

    /// Where the staged code of a job lies.
    pub struct StageDirDocument<'a> {
        /// Its path.
        stage_dir: &'a str,
    }

    /// What started a job.
    pub struct JobScriptDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// Its script, or what its engine was given.
        script: &'a str,
    }

    /// What runs a job says of it.
    pub struct ToldDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// Its own words.
        raw: &'a str,
    }

    /// Everything that there is to say of a job.
    pub struct ShowDocument<'a> from whole: &'a Whole {
        /// How it is.
        job: JobPart<'a> = part(&whole.view),
        /// What has happened to it last, the oldest first.
        events: Vec<EventPart<'a>>,
        /// What started it; null where that is not kept.
        script: Option<&'a str>,
        /// What runs it says of it, in its own words; null where it says nothing.
        raw: Option<&'a str> = whole.told.as_deref().ok(),
    }

    /// What a job has printed.
    pub struct LogsDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// Its lines, the oldest first.
        lines: Vec<&'a str>,
    }

    /// A job whose script says that it has ended well.
    pub struct FinishedDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// How it is now.
        status: Word<Status>,
    }

    /// A job whose script says that it has failed.
    pub struct FailedDocument<'a> {
        /// Which one.
        job: JobIdPart<'a>,
        /// How it is now.
        status: Word<Status>,
        /// The kind of failure.
        error: Word<ErrorKind>,
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

impl ProgressPart {
    /// The progress, if anything of it is known.
    pub fn known(progress: &Progress) -> Option<Self> {
        (!progress.is_empty()).then(|| Self::from(progress))
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

impl RulesDocument<'_> {
    /// Those that have names.
    pub fn named() -> Self {
        let of = |name: &str| Some((name.to_owned(), RulesPart(Cow::Owned(Rules::named(name)?))));
        Self { rules: NAMED.into_iter().filter_map(of).collect() }
    }
}

/// The group of a job: of a member its own; of what waits, where that is a whole group, the number of that.
fn group(view: &JobView) -> Option<JobNumber> {
    let waits = view.shown.queued.as_ref().and_then(|queued| queued.members.as_ref());
    view.member.map(|member| member.group).or_else(|| waits.map(|_| view.id.window))
}
