//! `submit` of what somebody names: words, a file of jobs, or JobMan's `tasks.yaml`, of which what is new is queued and what
//! has been submitted before is not queued twice.

use std::collections::HashSet;
use std::path::Path;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Submit, kind_words};
use crate::cli::print::Output;
use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::{After, AfterWhich};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::job::{Job, Status};
use tpu_core::model::task::SubmittedTask;
use tpu_core::text::counted;
use tpu_jobfile::converted::ConversionNote;
use tpu_jobfile::jobman::{self, JobmanTask, Tasks};
use tpu_jobfile::own::{self, Before, Given, OwnJob};
use tpu_jobfile::yaml::{self, Yaml, YamlValue};
use tpu_ops::act::launch::RunRequest;
use tpu_ops::base::code_dir::resolved;
use tpu_ops::base::ctx::user_of;
use tpu_ops::base::names;
use tpu_ops::front::jobfile;
use tpu_ops::front::jobfile::ready::JobFile;
use tpu_ops::waiting::begin::QueueRequest;
use tpu_ops::waiting::queue::submit::Submission;
use tpu_ops::waiting::queue::tasks::{self, TaskOf};
use tpu_ops::{Ctx, Error};

use super::first;
use super::jobfile::{beside_file, directory, submits_alone, would};
use super::submit::queue;

/// A file of tasks that was read.
pub(super) struct TaskFile<'a> {
    /// As somebody typed it.
    pub(super) shown: &'a str,
    /// Its whole path: by this its tasks are known.
    pub(super) file: String,
    /// Its tasks.
    pub(super) tasks: Tasks,
}

impl<'a> TaskFile<'a> {
    /// Reads a document as tasks.
    pub(super) fn of(shown: &'a str, path: &Path, document: &Yaml) -> Result<Self, Error> {
        let tasks = jobman::tasks(document)
            .map_err(|bad| Error::usage(format!("{shown}{}", bad.in_words())).hint(bad.hint))?;
        let file = resolved(path).to_string_lossy().into_owned();
        Ok(Self { shown, file, tasks })
    }

    /// The same of a file on the disk.
    pub(super) fn read(app: &App, shown: &'a str) -> Result<Self, Error> {
        let ctx = app.ctx()?;
        let path = ctx.env.cwd.join(shown);
        let text = jobfile::text(ctx, &path, shown)?;
        let bad = |bad: tpu_jobfile::BadFile| {
            Error::usage(format!("{shown}{}", bad.in_words())).hint(bad.hint)
        };
        let document = yaml::read(&text).map_err(bad)?;
        if !jobman::is_tasks(&document) {
            return Err(Error::usage(format!("{shown} is no file of tasks"))
                .hint("as in accelerators: {v4-8: {tasks: [{id: train, run: python train.py}]}}"));
        }
        Self::of(shown, &path, &document)
    }

    /// What its task of this id has become.
    pub(super) fn submitted<'d>(&self, data: &'d Data, id: &str) -> Option<&'d SubmittedTask> {
        data.queues().task(&self.file, id)
    }

    /// What was submitted of it.
    pub(super) fn all_submitted<'d>(
        &self,
        data: &'d Data,
    ) -> impl Iterator<Item = &'d SubmittedTask> {
        data.queues().tasks.iter().filter(|task| task.file == self.file)
    }

    /// What was submitted of it and stands in it no more.
    pub(super) fn gone<'d>(&self, data: &'d Data) -> Vec<&'d SubmittedTask> {
        let stands = |id: &str| self.tasks.tasks.iter().any(|task| task.id == id);
        self.all_submitted(data).filter(|task| !stands(&task.id)).collect()
    }
}

/// `submit`: of a file, if one of the words is one, and else of the words.
pub(in crate::cli) fn submit_any(app: &App, args: &Submit) -> Outcome {
    first::begin_to_run(app, &args.words, &args.of_command.command)?;
    let Some(file) = args.words.iter().find(|word| jobfile::is_file(word)) else {
        return super::submit::submit(app, args);
    };
    submits_alone(args)?;
    let path = app.ctx()?.env.cwd.join(file);
    let documents = jobfile::documents(app.ctx()?, &path, file)?;
    match documents.as_slice() {
        [only] if jobman::is_tasks(only) => {
            if let Some(set) = args.of_file.set.first() {
                let what = format!("--set {set}: nothing is filled in in a file of tasks");
                return Err(Error::usage(what).hint("leave it away"));
            }
            submit_tasks(app, args, &TaskFile::of(file, &path, only)?, &[])
        }
        _ => super::jobfile::submit(app, args, (file, &path), documents),
    }
}

/// Submits what is new in a file of tasks, and `anew` what was submitted and is to begin again.
pub(super) fn submit_tasks(
    app: &App,
    args: &Submit,
    file: &TaskFile<'_>,
    anew: &[String],
) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let kinds = kind_words();
    let given = Given { set: &[], kinds: &kinds };
    let documents = std::slice::from_ref(&file.tasks.document);
    let jobs = own::read_documents(documents, &given)
        .map_err(|bad| Error::usage(format!("{}{}", file.shown, bad.in_words())).hint(bad.hint))?;
    let mut notes = file.notes();
    let user = user_of(&data, &app.user(&data, None)?)?;
    let path = Path::new(&file.file);
    let beside = beside_file(app, args)?;
    let of_file = JobFile {
        ctx,
        data: &data,
        user: &user.name,
        beside: &beside,
        shown: file.shown,
        dir: directory(path),
        is_sent: false,
    };
    let mut all: Vec<(RunRequest, Submission)> = Vec::new();
    // Which of those that are submitted now is which task.
    let mut places: Vec<Option<usize>> = Vec::new();
    let mut fresh: HashSet<&String> = HashSet::new();
    for (job, task) in jobs.iter().zip(&file.tasks.tasks) {
        let known = file.submitted(&data, &task.id);
        let because = match known.filter(|_| !fresh.is_empty()) {
            Some(known) => file.vain(ctx, &data, (known, job), &fresh)?,
            None => None,
        };
        let is_anew = anew.contains(&task.id) || because.is_some();
        if is_anew {
            fresh.insert(&task.id);
        }
        notes.extend(because.map(|before| {
            format!(
                "task {} begins anew, too: it had ended because {before} had not ended well",
                task.id
            )
        }));
        if let Some(known) = known.filter(|_| !is_anew) {
            notes.extend(changed(file.shown, known, task));
            places.push(None);
            continue;
        }
        if let Some(known) = known.filter(|known| tasks::is_open(&data, &known.job)) {
            return Err(tasks::still_open(known));
        }
        let job = named(&data, user, job, &mut notes);
        let (request, mut how) =
            of_file.ready(&OwnJob { waits: job.waits.clone().alone(), ..job.clone() })?;
        for (_, before) in &job.waits.after {
            let Before::OfFile(index) = before else { continue };
            match places.get(*index).copied().flatten() {
                Some(place) => how.after_of.push((AfterWhich::Ok, place)),
                None => how.after.extend(file.before(app, &data, *index)?),
            }
        }
        let (said, id) = (task.said.clone(), task.id.clone());
        how.task = Some(TaskOf { file: file.file.clone(), id, said, is_anew });
        places.push(Some(all.len()));
        all.push((request, how));
    }
    notes.extend(file.gone(&data).into_iter().map(|gone| {
        let SubmittedTask { id, job, .. } = gone;
        format!("task {id} ({job}) is no longer in {}; it continues unchanged", file.shown)
    }));
    let known = places.len() - all.len();
    if all.is_empty() {
        let tasks = counted(known, "task");
        let text = format!("Nothing is new in {}: {tasks} submitted before.", file.shown);
        let document = tpu_wire::queue::SubmittedDocument { jobs: Vec::new(), started: Vec::new() };
        return Ok(Output::new(text, &document).notes(notes));
    }
    Ok(queue(app, &QueueRequest::of(&all), || would(ctx, &all))?.notes(notes))
}

impl TaskFile<'_> {
    /// What is not as it was, in words.
    fn notes(&self) -> Vec<String> {
        let word = |note: &ConversionNote| {
            let ((line, column), field) = (note.place, &note.field);
            format!("{}:{line}:{column}: {field}: {}", self.shown, note.what)
        };
        self.tasks.notes.iter().map(word).collect()
    }

    /// Which of the tasks that begin anew is why another has ended without having begun.
    fn vain(
        &self,
        ctx: &Ctx,
        data: &Data,
        (known, job): (&SubmittedTask, &OwnJob),
        fresh: &HashSet<&String>,
    ) -> Result<Option<&String>, Error> {
        let before = job.waits.after.iter().filter_map(|(_, before)| match before {
            Before::OfFile(index) => Some(&self.tasks.tasks.get(*index)?.id),
            Before::Other(..) => None,
        });
        let Some(before) = before.into_iter().find(|id| fresh.contains(id)) else {
            return Ok(None);
        };
        let attempts = tasks::attempts(ctx, data, &known.job)?;
        let is_vain = |job: &Job| job.status == Status::Error(ErrorKind::Dependency);
        let all = !known.is_done && !attempts.is_empty() && attempts.iter().all(is_vain);
        Ok(all.then_some(before))
    }

    /// What has to end before, of a task that was submitted before: nothing, where that has ended well.
    fn before(&self, app: &App, data: &Data, index: usize) -> Result<Option<After>, Error> {
        let task = self.tasks.tasks.get(index);
        let known = task.and_then(|task| self.submitted(data, &task.id));
        let Some(known) = known else { return Ok(None) };
        let attempts = tasks::attempts(app.ctx()?, data, &known.job)?;
        if known.is_done || attempts.iter().any(|job| job.status == Status::Finished) {
            return Ok(None);
        }
        if !tasks::is_known(data, &known.job) {
            let SubmittedTask { id, job, .. } = known;
            let what = format!("task {id} has to end before, and nothing is left of it ({job})");
            let hint = format!("let it begin anew: tpu jobman queue {} --reset {id}", self.shown);
            return Err(Error::refused(what).hint(hint));
        }
        Ok(Some(After { which: AfterWhich::Ok, job: known.job.clone(), member: None, met: None }))
    }
}

/// A task that has changed since it was submitted, in words.
fn changed(shown: &str, known: &SubmittedTask, task: &JobmanTask) -> Option<String> {
    if known.said == task.said {
        return None;
    }
    let members = |text: &str| match yaml::read(text).map(|document| document.value) {
        Ok(YamlValue::Map(members)) => members,
        _ => Vec::new(),
    };
    let (before, now) = (members(&known.said), members(&task.said));
    let value = |of: &[(String, Yaml)], key: &str| {
        let found = of.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| yaml::written(std::slice::from_ref(value)))
    };
    let mut keys: Vec<&str> = before.iter().chain(&now).map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.retain(|key| value(&before, key) != value(&now, key));
    let SubmittedTask { id, job, .. } = known;
    Some(format!(
        "task {id} is not as when it became {job} ({}), which continues unchanged; to start it again: tpu jobman queue {shown} --reset {id}",
        keys.join(", ")
    ))
}

/// The same without a name where its id cannot be one.
fn named(data: &Data, user: &User, job: &OwnJob, notes: &mut Vec<String>) -> OwnJob {
    let Some(name) = &job.name else { return job.clone() };
    if names::is_free(data, user, name) {
        return job.clone();
    }
    notes.push(format!("task {name} has no name but its number: '{name}' means something else"));
    OwnJob { name: None, ..job.clone() }
}
