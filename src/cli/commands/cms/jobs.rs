//! The jobs that are here, as Cloudmesh lists them.

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::print::{Output, block, table::columns};
use crate::jobfile::cloudmesh::ImportedState;
use crate::model::job::Status;
use crate::model::view::{JobView, Snapshot};
use crate::ops::cloudmesh::{self, jobset};
use crate::ops::error::did_you_mean;
use crate::ops::queue::shown::{self, WaitingMembers};
use crate::ops::{Ctx, Error, snapshot};
use crate::text::{counted, escape};
use crate::wire::jobs::SnapshotDocument;

/// `tpu cms job list [--name=TEXT] [--status=STATUS]`.
pub(super) fn list(app: &App, name: Option<&str>, status: Option<&str>) -> Outcome {
    let status = status.map(known_status).transpose()?;
    listed(app, |jobs| {
        let called = |job: &JobView| name.is_none_or(|text| name_of(job).contains(text));
        jobs.retain(|job| called(job) && status.as_ref().is_none_or(|of| of.holds(job)));
    })
}

/// `tpu cms job status`.
pub(super) fn by_status(app: &App) -> Outcome {
    listed(app, |jobs| jobs.sort_by_key(|job| job.shown.word()))
}

/// What a job is called: its name, else its window.
fn name_of(job: &JobView) -> String {
    job.name.clone().unwrap_or_else(|| job.label())
}

fn listed(app: &App, choose: impl FnOnce(&mut Vec<JobView>)) -> Outcome {
    let ctx = app.ctx()?;
    let (whose, _) = app.requester()?.users_and_jobs_of_list(&[])?;
    let mut memory = snapshot::LookMemory::default();
    let mut look = shown::look(ctx, &mut memory, &whose, WaitingMembers::Folded)?;
    look.orphans.clear();
    choose(&mut look.jobs);
    let waiting = waiting(app, ctx)?;
    let text = || table(&look);
    let output = Output::either(&app.global, text, || SnapshotDocument::from(&look));
    Ok(output.notes(waiting))
}

fn table(look: &Snapshot) -> String {
    if look.jobs.is_empty() {
        return "No such jobs.\n".to_owned();
    }
    let row = |(number, job): (usize, &JobView)| {
        vec![
            (number + 1).to_string(),
            escape(&name_of(job)).into_owned(),
            block::status(job),
            escape(&job.target_label).into_owned(),
            escape(&job.configs).into_owned(),
            escape(job.id.user.as_str()).into_owned(),
        ]
    };
    let rows: Vec<Vec<String>> = look.jobs.iter().enumerate().map(row).collect();
    columns(&["NUMBER", "JOBNAME", "JOBSTATUS", "REMOTEIP", "ARGUMENTS", "USER"], &rows)
}

/// What to say of the jobs of the jobset, which are in its file and nowhere else.
fn waiting(app: &App, ctx: &Ctx) -> Result<Vec<String>, Error> {
    let user = app.known_user(&*ctx.data()?);
    let Some(path) = jobset::current(ctx, user.as_ref())? else { return Ok(Vec::new()) };
    if ctx.store.disk().stat(&path).is_err() {
        return Ok(Vec::new());
    }
    let jobs = match cloudmesh::read(ctx, &path) {
        Ok(file) => file.jobs.len(),
        Err(error) => return Ok(vec![unread(&error)]),
    };
    if jobs == 0 {
        return Ok(Vec::new());
    }
    let (shown, are) = (path.display(), if jobs == 1 { "is" } else { "are" });
    let note = format!(
        "{} of {shown} {are} not imported, as this version has no queue: tpu import cloudmesh {shown} --dry-run",
        counted(jobs, "job"),
    );
    Ok(vec![escape(&note).into_owned()])
}

/// What is said beside what is known here, where the jobset cannot be read.
pub(super) fn unread(error: &Error) -> String {
    escape(&format!("of the jobset nothing can be said: {}", error.message)).into_owned()
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
    let ours: Vec<&str> = crate::model::view::Shown::words().collect();
    if ours.contains(&word) {
        return Ok(Chosen::Ours(word.to_owned()));
    }
    let theirs = ImportedState::OF_CLOUDMESH.iter().map(|(known, _)| *known);
    let hint = did_you_mean(word, theirs.chain(ours.iter().copied()));
    Err(Error::usage(format!("'{word}' is no status")).hint(hint.unwrap_or_else(|| {
        "as in: tpu cms job list --status=done, or --status=finished".to_owned()
    })))
}

impl Chosen {
    /// Whether a job is in that status.
    fn holds(&self, job: &JobView) -> bool {
        let state = match self {
            Self::Ours(word) => return job.shown.word() == word,
            Self::Theirs(state) => state,
        };
        match (state, &job.shown.status) {
            (ImportedState::Held, _) => job.is_queued(),
            // It waits in a file, which nothing here does.
            (ImportedState::HeldWithoutTarget, _) => false,
            (_, _) if job.is_queued() => false,
            (ImportedState::Finished, status) => *status == Status::Finished,
            (ImportedState::Killed, status) => matches!(status, Status::Killed(_)),
            (ImportedState::LookedFor, status) => status.is_live(),
            (state, Status::Error(kind)) => {
                let word = state.as_str().strip_prefix("error: ").unwrap_or_default();
                kind.as_str() == word || *state == ImportedState::Failed
            }
            (_, _) => false,
        }
    }
}
