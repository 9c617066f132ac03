//! The jobs that are here, as Cloudmesh lists them.

use crate::Error;
use crate::act::outlook;
use crate::base::error::did_you_mean;
use crate::observe::snapshot;
use crate::waiting::queue::edit;
use crate::waiting::whose::Requester;
use crate::waiting::words::wants;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::QueueName;
use tpu_core::model::job::Status;
use tpu_core::model::status_line::Tone;
use tpu_core::model::view::{JobView, Shown};
use tpu_core::text::columns::columns;
use tpu_core::text::{counted, escape};
use tpu_jobfile::cloudmesh::{ImportedJob, ImportedState};

use super::jobset;
use super::ready::{self, READY, UNDEFINED};

/// Which jobs are meant; without a word all are.
#[derive(Clone, Copy, Debug, Default)]
pub struct CmsChoice<'a> {
    /// Those of this queue.
    pub queue: Option<&'a str>,
    /// Those of these names; where they are listed, those with this in their names.
    pub name: Option<&'a str>,
    /// Those of this status, in Cloudmesh's words; where they are listed, also in ours.
    pub status: Option<&'a str>,
}

/// The jobs that are listed.
#[derive(Debug)]
pub struct CmsList {
    /// Those that have begun.
    pub jobs: Vec<JobView>,
    /// Those that wait.
    pub waiting: Vec<QueueEntry>,
    /// Those that stand in the jobset and are not here.
    pub in_file: Vec<ImportedJob>,
    is_by_status: bool,
}

/// Lists the jobs of whoever is meant.
pub fn list(by: &Requester<'_>, of: CmsChoice<'_>) -> Result<CmsList, Error> {
    let status = of.status.map(known_status).transpose()?;
    let queue = of.queue.map(QueueName::new);
    if let Some(queue) = &queue {
        edit::find(&*by.ctx.data()?, queue)?;
    }
    let (whose, _) = by.users_and_jobs_of_list(&[])?;
    let mut look = outlook::look(by.ctx, &mut snapshot::LookMemory::default(), &whose)?;
    let is_called = |called: &str| of.name.is_none_or(|text| called.contains(text));
    let data = by.ctx.data()?;
    let mut in_file = in_file(by, &data, &look.jobs)?;
    // What stands in the file alone is in no queue.
    in_file.retain(|job| {
        queue.is_none()
            && is_called(&job.name)
            && status.as_ref().is_none_or(|of| of.holds_in_file(job.state))
    });
    look.jobs.retain(|job| {
        let spec = || data.job(&job.id)?.spec.as_deref();
        is_called(&name_of(job))
            && status.as_ref().is_none_or(|of| of.holds(job))
            && queue
                .as_ref()
                .is_none_or(|queue| spec().and_then(|spec| spec.queue.as_ref()) == Some(queue))
    });
    let entries = data.queues().entries.iter().filter(|entry| {
        whose.includes(&entry.user)
            && is_called(&name_of_entry(entry))
            && status.as_ref().is_none_or(|of| of.holds_waiting(word_of(entry)))
            && queue.as_ref().is_none_or(|queue| entry.queue == *queue)
    });
    let waiting = entries.cloned().collect();
    Ok(CmsList { jobs: look.jobs, waiting, in_file, is_by_status: false })
}

impl CmsList {
    /// The same in the order of their states.
    #[must_use]
    pub fn by_status(mut self) -> Self {
        self.jobs.sort_by_key(|job| job.shown.word());
        Self { is_by_status: true, ..self }
    }

    /// Keeps the jobs of this very name, and says whether there are any.
    pub fn keep_called(&mut self, name: &str) -> bool {
        self.jobs.retain(|job| job.name.as_deref() == Some(name));
        self.waiting.retain(|entry| entry.spec.name.as_deref() == Some(name));
        self.in_file.retain(|job| job.name == name);
        !(self.jobs.is_empty() && self.waiting.is_empty() && self.in_file.is_empty())
    }

    /// A table of them; `paint` colours a part of a status.
    pub fn in_words(&self, paint: fn(Tone, &str) -> String) -> String {
        let of_jobs = self.jobs.iter().map(|job| (job.shown.word(), row(job, paint)));
        let of_entries = self.waiting.iter().map(|entry| (word_of(entry), row_of_entry(entry)));
        let of_file = self.in_file.iter().map(|job| (IN_FILE, row_of_file(job)));
        let mut rows: Vec<(&str, [String; 5])> = of_jobs.chain(of_entries).chain(of_file).collect();
        if self.is_by_status {
            rows.sort_by_key(|(word, _)| *word);
        }
        table(&rows)
    }

    /// What people should know beside it.
    pub fn notes(&self) -> Vec<String> {
        let note = |first: &ImportedJob| {
            format!(
                "{} in the jobset and not here, as {}: tpu import cloudmesh takes them over",
                counted(self.in_file.len(), "job"),
                escape(&first.name)
            )
        };
        self.in_file.first().map(note).into_iter().collect()
    }
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
pub fn word_of(entry: &QueueEntry) -> &'static str {
    match entry.held.as_ref().map(|held| held.why.as_deref()) {
        None => "queued",
        Some(Some(READY)) => "ready",
        Some(Some(UNDEFINED)) => "undefined",
        Some(_) => "held",
    }
}

fn row(job: &JobView, paint: fn(Tone, &str) -> String) -> [String; 5] {
    [
        escape(&name_of(job)).into_owned(),
        job.status_line(paint),
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
fn in_file(by: &Requester<'_>, data: &Data, known: &[JobView]) -> Result<Vec<ImportedJob>, Error> {
    let user = by.user_named(data, None).ok().flatten();
    let Some(file) = jobset::readable(by.ctx, user.as_ref())? else { return Ok(Vec::new()) };
    let mut jobs = file.jobs;
    jobs.retain(|job| {
        let waits = user.as_ref().is_some_and(|user| ready::entry(data, user, &job.name).is_some());
        !waits && !known.iter().any(|known| known.name.as_deref() == Some(&*job.name))
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
    let ours: Vec<&str> = Shown::words().chain(WAITING).collect();
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
