//! The jobs that are here, as Cloudmesh lists them.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::commands::waiting::wants;
use crate::cli::print::{Output, block, table::columns};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::QueueName;
use tpu_core::model::job::Status;
use tpu_core::model::view::{JobView, Snapshot};
use tpu_core::text::{counted, escape};
use tpu_jobfile::cloudmesh::{ImportedJob, ImportedState};
use tpu_ops::act::outlook;
use tpu_ops::base::error::did_you_mean;
use tpu_ops::front::cloudmesh::ready::{self, READY, UNDEFINED};
use tpu_ops::observe::snapshot;
use tpu_ops::waiting::queue::edit;
use tpu_ops::{Ctx, Error};
use tpu_wire::cloudmesh::{CmsInFilePart, CmsJobsDocument, CmsWaitingPart};
use tpu_wire::jobs::JobPart;

use super::file::jobset_of;

/// `tpu cms job list [--name=TEXT] [--status=STATUS]`.
pub(super) fn list(
    app: &App,
    name: Option<&str>,
    status: Option<&str>,
    queue: Option<&str>,
) -> Outcome {
    let status = status.map(known_status).transpose()?;
    let queue = queue.map(QueueName::new);
    if let Some(queue) = &queue {
        edit::find(&*app.ctx()?.data()?, queue)?;
    }
    listed(app, (name, status.as_ref(), queue.as_ref()), false)
}

/// `tpu cms job status`.
pub(super) fn by_status(app: &App) -> Outcome {
    listed(app, (None, None, None), true)
}

/// What a job is called: its name, else its window.
fn name_of(job: &JobView) -> String {
    job.name.clone().unwrap_or_else(|| job.label())
}

/// What waits is called by its name, else by its number.
fn name_of_entry(entry: &QueueEntry) -> String {
    entry.spec.name.clone().unwrap_or_else(|| entry.number.to_string())
}

/// How what waits is called in the words of Cloudmesh, where it has one for it.
fn word_of(entry: &QueueEntry) -> &'static str {
    match entry.held.as_ref().map(|held| held.why.as_deref()) {
        None => "queued",
        Some(Some(READY)) => "ready",
        Some(Some(UNDEFINED)) => "undefined",
        Some(_) => "held",
    }
}

/// Lists the jobs with this in their names, of this status and in this queue, where one is said.
fn listed(
    app: &App,
    (name, status, queue): (Option<&str>, Option<&Chosen>, Option<&QueueName>),
    is_by_status: bool,
) -> Outcome {
    let ctx = app.ctx()?;
    let (whose, _) = app.requester()?.users_and_jobs_of_list(&[])?;
    let mut look = outlook::look(ctx, &mut snapshot::LookMemory::default(), &whose)?;
    let data = ctx.data()?;
    let is_called = |called: &str| name.is_none_or(|text| called.contains(text));
    let file = in_file(app, ctx, &data, &look)?;
    let is_in_queue = |job: &JobView| {
        queue.is_none_or(|queue| {
            let spec = data.job(&job.id).and_then(|job| job.spec.as_ref());
            spec.and_then(|spec| spec.queue.as_ref()) == Some(queue)
        })
    };
    look.jobs.retain(|job| {
        is_called(&name_of(job)) && status.is_none_or(|of| of.holds(job)) && is_in_queue(job)
    });
    let entries = data.queues().entries.iter().filter(|entry| whose.includes(&entry.user));
    let entries = entries.filter(|entry| {
        is_called(&name_of_entry(entry))
            && status.is_none_or(|of| of.holds_waiting(word_of(entry)))
            && queue.is_none_or(|queue| entry.queue == *queue)
    });
    let entries: Vec<&QueueEntry> = entries.collect();
    let file: Vec<&ImportedJob> = file
        .iter()
        // What stands in the file alone is in no queue.
        .filter(|_| queue.is_none())
        .filter(|job| is_called(&job.name) && status.is_none_or(|of| of.holds_in_file(job.state)))
        .collect();
    let of_jobs = look.jobs.iter().map(|job| (job.shown.word(), row(job)));
    let of_entries = entries.iter().map(|entry| (word_of(entry), row_of_entry(entry)));
    let of_file = file.iter().map(|job| (IN_FILE, row_of_file(job)));
    let mut rows: Vec<(&str, [String; 5])> = of_jobs.chain(of_entries).chain(of_file).collect();
    if is_by_status {
        rows.sort_by_key(|(word, _)| *word);
        look.jobs.sort_by_key(|job| job.shown.word());
    }
    let text = table(&rows);
    let waiting: Vec<(&QueueEntry, String)> =
        entries.iter().map(|entry| (*entry, wants(&entry.spec.target))).collect();
    let document = CmsJobsDocument {
        jobs: look.jobs.iter().map(JobPart::from).collect(),
        waiting: waiting
            .iter()
            .map(|(entry, target)| CmsWaitingPart {
                user: &entry.user,
                window: entry.number,
                name: entry.spec.name.as_deref(),
                status: word_of(entry),
                target: target.clone(),
            })
            .collect(),
        in_file: file
            .iter()
            .map(|job| CmsInFilePart { name: &job.name, becomes: job.state.as_str() })
            .collect(),
    };
    let mut notes = Vec::new();
    if let Some(first) = file.first() {
        notes.push(format!(
            "{} in the jobset and not here, as {}: tpu import cloudmesh takes them over",
            counted(file.len(), "job"),
            escape(&first.name)
        ));
    }
    Ok(Output::new(text, &document).notes(notes))
}

fn row(job: &JobView) -> [String; 5] {
    [
        escape(&name_of(job)).into_owned(),
        block::status(job),
        escape(&job.target_label).into_owned(),
        escape(&job.configs).into_owned(),
        escape(job.id.user.as_str()).into_owned(),
    ]
}

fn row_of_entry(entry: &QueueEntry) -> [String; 5] {
    [
        escape(&name_of_entry(entry)).into_owned(),
        word_of(entry).to_owned(),
        escape(&wants(&entry.spec.target)).into_owned(),
        String::new(),
        escape(entry.user.as_str()).into_owned(),
    ]
}

/// How a job is that stands in the jobset and nowhere else.
const IN_FILE: &str = "in the file";

fn row_of_file(job: &ImportedJob) -> [String; 5] {
    [
        escape(&job.name).into_owned(),
        IN_FILE.to_owned(),
        escape(job.host.as_deref().unwrap_or("-")).into_owned(),
        String::new(),
        String::new(),
    ]
}

fn table(rows: &[(&str, [String; 5])]) -> String {
    if rows.is_empty() {
        return "No such jobs.\n".to_owned();
    }
    let numbered = rows.iter().enumerate().map(|(place, (_, row))| {
        std::iter::once((place + 1).to_string()).chain(row.iter().cloned()).collect()
    });
    let rows: Vec<Vec<String>> = numbered.collect();
    columns(&["NUMBER", "JOBNAME", "JOBSTATUS", "REMOTEIP", "ARGUMENTS", "USER"], &rows)
}

/// The jobs of the jobset that are nobody's here.
fn in_file(app: &App, ctx: &Ctx, data: &Data, look: &Snapshot) -> Result<Vec<ImportedJob>, Error> {
    let user = app.known_user(data);
    let Some(file) = jobset_of(ctx, user.as_ref())? else { return Ok(Vec::new()) };
    let mut jobs = file.jobs;
    jobs.retain(|job| {
        let waits = user.as_ref().is_some_and(|user| ready::entry(data, user, &job.name).is_some());
        !waits && !look.jobs.iter().any(|known| known.name.as_deref() == Some(&*job.name))
    });
    Ok(jobs)
}

/// A status by which jobs are chosen.
enum Chosen {
    /// In the words of Cloudmesh.
    Theirs(ImportedState),
    /// In ours.
    Ours(String),
}

fn known_status(word: &str) -> Result<Chosen, Error> {
    let theirs = ImportedState::OF_CLOUDMESH.iter().find(|(known, _)| *known == word);
    if let Some((_, state)) = theirs {
        return Ok(Chosen::Theirs(*state));
    }
    let ours: Vec<&str> = tpu_core::model::view::Shown::words().chain(WAITING).collect();
    if ours.contains(&word) {
        return Ok(Chosen::Ours(word.to_owned()));
    }
    let theirs = ImportedState::OF_CLOUDMESH.iter().map(|(known, _)| *known);
    let hint = did_you_mean(word, theirs.chain(ours.iter().copied()));
    Err(Error::usage(format!("'{word}' is no status")).hint(hint.unwrap_or_else(|| {
        "as in: tpu cms job list --status=done, or --status=finished".to_owned()
    })))
}

/// Our words for what waits.
const WAITING: [&str; 2] = ["queued", "held"];

/// Whether a job that has begun is in a state of Cloudmesh.
pub(super) fn is_in(state: ImportedState, status: &Status) -> bool {
    match (state, status) {
        // What is ready has not begun.
        (ImportedState::Held | ImportedState::HeldWithoutTarget, _) => false,
        (ImportedState::Finished, status) => *status == Status::Finished,
        (ImportedState::Killed, status) => matches!(status, Status::Killed(_)),
        (ImportedState::LookedFor, status) => status.is_live(),
        (state, Status::Error(kind)) => {
            let word = state.as_str().strip_prefix("error: ").unwrap_or_default();
            kind.as_str() == word || state == ImportedState::Failed
        }
        (_, _) => false,
    }
}

impl Chosen {
    /// Whether a job is in that status.
    fn holds(&self, job: &JobView) -> bool {
        match self {
            Self::Ours(word) => job.shown.word() == word,
            Self::Theirs(state) => is_in(*state, &job.shown.status),
        }
    }

    /// Whether something that waits is, by its word.
    fn holds_waiting(&self, is: &str) -> bool {
        match self {
            Self::Ours(word) => is == word || word == "held" && is != "queued",
            Self::Theirs(ImportedState::Held) => is == "ready",
            Self::Theirs(ImportedState::HeldWithoutTarget) => is == "undefined",
            Self::Theirs(_) => false,
        }
    }

    /// Whether a job that stands in the file alone is.
    fn holds_in_file(&self, is: ImportedState) -> bool {
        matches!(self, Self::Theirs(state) if *state == is)
    }
}
