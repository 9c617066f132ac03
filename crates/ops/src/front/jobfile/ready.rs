//! A job of a file as a request, and how it waits: as the words of `tpu submit` would have said it.

use std::path::{Path, PathBuf};

use crate::act::launch::RunRequest;
use crate::act::launch::check::MeantKey;
use crate::act::selection;
use crate::base::code_dir::{self, resolved, whole_path};
use crate::base::names;
use crate::waiting::queue::after;
use crate::waiting::queue::submit::Submission;
use crate::waiting::request::{self, Begins, Beside, Whose};
use crate::{Ctx, Error};
use tpu_core::model::data::{Data, User};
use tpu_core::model::entry::After;
use tpu_core::model::execution::Copying;
use tpu_core::model::ids::{QueueName, UserName};
use tpu_core::model::pattern;
use tpu_core::model::repository::Repository;
use tpu_core::model::setup::SetUpHow;
use tpu_core::model::spec::{CodeDir, TargetRequest};
use tpu_core::model::target::LOCAL;
use tpu_jobfile::own::{self, Before, Given, OwnCode, OwnJob, Place};
use tpu_jobfile::yaml::Yaml;
use tpu_jobfile::{BadFile, jobman};

/// What is said beside a file.
#[derive(Clone, Debug, Default)]
pub struct BesideFile {
    /// Whether its jobs go on where a check would refuse.
    pub force: bool,
    /// Whether they are held.
    pub is_held: bool,
    /// Whether their code is read when they begin.
    pub stages_late: bool,
    /// Whether targets are made for them where none is free.
    pub applies: bool,
    /// Whether they begin at once or not at all.
    pub is_now: bool,
    /// What of a set-up is done.
    pub setup: Option<SetUpHow>,
    /// The directory of their code, where the file names none.
    pub code: Option<PathBuf>,
    /// That directory as it was typed, if it was: a file that names another one is refused.
    pub typed_code: Option<PathBuf>,
}

/// The jobs of a file. Those of JobMan are read too, and what of them is not as it was is said.
pub fn jobs(
    ctx: &Ctx,
    mut documents: Vec<Yaml>,
    (file, given): (&str, &Given<'_>),
) -> Result<Vec<OwnJob>, Error> {
    let bad = |bad: BadFile| Error::usage(format!("{file}{}", bad.in_words())).hint(bad.hint);
    for document in &mut documents {
        if jobman::is_config(document) {
            let converted = jobman::convert(document).map_err(bad)?;
            let said = converted.notes.iter().map(|note| {
                let ((line, column), field) = (note.place, &note.field);
                format!("{file}:{line}:{column}: {field}: {}", note.what)
            });
            ctx.warn(said);
            *document = converted.document;
        }
    }
    own::read_documents(&documents, given).map_err(bad)
}

/// Of a job that says nothing to do, what its file lacks: whoever writes one means no script of the lab's.
fn of_a_file(job: &OwnJob, what: MeantKey, error: Error) -> Error {
    let is_silent = job.command.is_none() && job.execution.workplace.is_none();
    if what != MeantKey::Command || !is_silent {
        return error;
    }
    let hint = "say what runs: command: python3 train.py; or what is set up: setup: […]; without both a job runs the \
                staging.sh of its directory";
    error.hint(hint)
}

/// Where that is said of a job which a problem is about.
fn place_of(job: &OwnJob, what: MeantKey) -> Place {
    let keys: &[&str] = match what {
        MeantKey::Target => return job.target.place,
        MeantKey::Code => &["code", "dir"],
        MeantKey::Command => &["command", "script", "code"],
        MeantKey::Configs => &["configs"],
        MeantKey::Rules => &["rules"],
        MeantKey::Name => &["name"],
        MeantKey::Secrets => &["secrets", "setup"],
        MeantKey::Queue => &["queue"],
        MeantKey::After => &["after", "after_any", "after_not", "after_each"],
    };
    job.places.of(keys).unwrap_or(job.place)
}

/// A file whose jobs are made ready.
pub struct JobFile<'a> {
    /// Where its jobs would be.
    pub ctx: &'a Ctx,
    /// The file of users, targets and jobs.
    pub data: &'a Data,
    /// Whose jobs they are.
    pub user: &'a UserName,
    /// What is said beside it.
    pub beside: &'a BesideFile,
    /// As somebody calls it.
    pub shown: &'a str,
    /// The directory in which it lies.
    pub dir: &'a Path,
    /// Whether it came with a request: nothing lies beside it that its author could mean.
    pub is_sent: bool,
}

impl JobFile<'_> {
    /// A job as the words of `submit` would have made it.
    pub fn ready(&self, job: &OwnJob) -> Result<(RunRequest, Submission), Error> {
        let ready = self.request(job, (true, Begins::InTurn)).and_then(|request| {
            let how = self.waits(job)?;
            Ok((request, how))
        });
        ready.map_err(|error| self.at(job.place, error))
    }

    /// Jobs as the words of `submit` would have made them.
    pub fn all_ready(&self, jobs: &[OwnJob]) -> Result<Vec<(RunRequest, Submission)>, Error> {
        jobs.iter().map(|job| self.ready(job)).collect()
    }

    /// Tells a problem of one of some jobs with the place at which the file says what it is about.
    pub fn placed(&self, jobs: &[OwnJob]) -> impl Fn(usize, MeantKey, Error) -> Error {
        |index, what, error| match jobs.get(index) {
            Some(job) => self.at(place_of(job, what), of_a_file(job, what, error)),
            None => error,
        }
    }

    /// What a job asks for; whether it waits for a place, and where.
    pub fn request(
        &self,
        job: &OwnJob,
        (waits, begins): (bool, Begins),
    ) -> Result<RunRequest, Error> {
        let said = Beside {
            force: self.beside.force,
            waits,
            reclaimable: job.target.reclaimable,
            zones: job.target.zones.clone(),
            policy: job.policy.map(|policy| policy.as_str().to_owned()),
            name: job.name.clone(),
            array: job.array.as_ref().map(ToString::to_string),
            command: job.command.clone().filter(|command| !command.is_empty()),
            arguments: job.arguments,
            ..Beside::default()
        };
        if let Some(name) = job.name.as_deref().filter(|name| pattern::is_pattern(name)) {
            let error = Error::usage(format!("'{name}' is a pattern, and names one job here"));
            let error = error.hint("write a job for each, parted by ---");
            return Err(self.at(place_of(job, MeantKey::Name), error));
        }
        if let Some(name) = &job.name {
            names::refuse_as_job(name)
                .map_err(|error| self.at(place_of(job, MeantKey::Name), error))?;
        }
        let mut sorted = selection::sort(&[], self.data)?;
        sorted.rest.clone_from(&job.target.words);
        if job.order.is_some() {
            // It has no name before it enters the queue; what the words say of another target is not kept.
            sorted.rest.push(LOCAL.to_owned());
        }
        sorted.pairs = job.pairs();
        sorted.numbers.extend(job.dir);
        let whose = |_| Ok(self.user.clone());
        let words = (sorted, &whose as &Whose<'_>);
        let mut request = request::of_words(self.ctx, self.data, words, (&said, begins))
            .map_err(|error| self.at(job.target.place, error))?;
        let is_in_slot = self.repository(job).is_none() && job.execution.workplace.is_none();
        request.spec.dir = request.spec.dir.filter(|_| is_in_slot);
        let beside = Some(self.dir).filter(|_| !self.is_sent);
        request.spec.options = (self.ctx.kinds)
            .kept(job.target.options.clone(), beside)
            .map_err(|refusal| self.at(job.target.place, refusal.into()))?;
        let usual = std::mem::replace(&mut request.spec.execution, job.execution.clone());
        if request.spec.command.is_some() && job.execution.copying == Copying::Unignored {
            request.spec.execution.copying = Copying::Known;
        }
        if request.spec.execution.outputs.is_empty() {
            request.spec.execution.outputs = usual.outputs;
        }
        if request.spec.execution.checkpoint_dir.is_none() {
            request.spec.execution.checkpoint_dir = usual.checkpoint_dir;
        }
        if let Some(output) = &job.execution.output {
            request.spec.execution.output = Some(self.beside(output, job));
        }
        if let Some(how) = self.beside.setup {
            request.spec.execution.setup_how = how;
        }
        self.refuse_two_places(job)?;
        if let Some(code) = self.code_dir(job).filter(|_| is_in_slot) {
            code_dir::stand_in(self.ctx, &mut request.spec, &code)?;
        }
        if job.is_in_place {
            request.spec.execution.workplace = request.spec.code.as_ref().map(CodeDir::begins_in);
        }
        if let Some(order) = &job.order {
            request.spec.target = TargetRequest::Named(order.in_words());
        }
        self.is_of_kind(job)?;
        Ok(request)
    }

    /// The directory of the code of a job, if it is in none by its number. A file without a command runs the script of
    /// a slot, as the words of `submit` do.
    fn code_dir(&self, job: &OwnJob) -> Option<PathBuf> {
        match &job.code {
            Some(OwnCode::Here(_)) => Some(self.dir.to_owned()),
            Some(OwnCode::Dir(dir)) => Some(whole_path(self.ctx, dir)),
            Some(OwnCode::Repository(_)) => None,
            None => {
                let is_meant = job.command.is_some() || self.beside.typed_code.is_some();
                self.beside.code.clone().filter(|_| job.dir.is_none() && is_meant)
            }
        }
    }

    /// Refuses a directory that is typed beside a file which names another place.
    fn refuse_two_places(&self, job: &OwnJob) -> Result<(), Error> {
        let Some(typed) = &self.beside.typed_code else { return Ok(()) };
        let key = match &job.code {
            Some(OwnCode::Here(_) | OwnCode::Repository(_)) => "code:",
            Some(OwnCode::Dir(_)) => "dir:",
            None if job.dir.is_some() || job.execution.workplace.is_some() => "dir:",
            None => return Ok(()),
        };
        let what = format!("-C {} and {key} both say where the code is", typed.display());
        let error = Error::usage(what).hint("leave one of them away");
        Err(self.at(place_of(job, MeantKey::Code), error))
    }

    /// Where the code of a job is, if it is in a repository.
    pub fn repository(&self, job: &OwnJob) -> Option<Repository> {
        match &job.code {
            Some(OwnCode::Repository(repository)) => Some(repository.clone().from(self.dir)),
            Some(OwnCode::Here(_) | OwnCode::Dir(_)) | None => None,
        }
    }

    /// A file for what a command prints: one that is said from where the file lies is there, and not in the copy of the code,
    /// where a machine has that directory. `/./` parts the two, for those that have not.
    fn beside(&self, output: &str, job: &OwnJob) -> String {
        let is_whole = output.starts_with('/') || output.starts_with("~/");
        if is_whole || job.execution.workplace.is_some() {
            return output.to_owned();
        }
        let dir = resolved(self.dir);
        format!("{}/./{}", dir.display(), output.trim_start_matches("./"))
    }

    fn is_of_kind(&self, job: &OwnJob) -> Result<(), Error> {
        let Some(kind) = &job.target.kind else { return Ok(()) };
        for word in &job.target.words {
            let Some(target) = self.data.resolve_target(word) else {
                return Err(Error::not_found(format!("'{word}' is no target"))
                    .hint("`tpu -lta` lists them"));
            };
            if target.kind.as_str() != kind {
                let what = format!("{word} is of the kind {}, not {kind}", target.kind.as_str());
                return Err(Error::usage(what).hint("name it by its kind, or by its name alone"));
            }
        }
        Ok(())
    }

    fn waits(&self, job: &OwnJob) -> Result<Submission, Error> {
        let mut how = Submission {
            is_held: job.waits.is_held || self.beside.is_held,
            stages_late: self.beside.stages_late,
            applies: self.beside.applies,
            is_kept: self.beside.is_now,
            sweep: job.sweep.clone(),
            order: job.order.clone().map(|order| order.from(self.dir)),
            repository: self.repository(job),
            ..Submission::default()
        };
        if let Some(queue) = &job.waits.queue {
            how.queue = QueueName::new(queue.clone());
        }
        how.priority = job.waits.priority.unwrap_or(how.priority);
        for (which, before) in &job.waits.after {
            match before {
                Before::OfFile(index) => how.after_of.push((*which, *index)),
                Before::Other(place, word) => {
                    let known: Vec<After> = after::called(self.data, self.user, *which, word)
                        .map_err(|error| self.at(*place, error))?;
                    how.after.extend(known);
                }
            }
        }
        Ok(how)
    }

    /// The same with the place to which it belongs; one that has a place keeps it.
    pub fn at(&self, (line, column): Place, error: Error) -> Error {
        if error.message.starts_with(self.shown) {
            return error;
        }
        Error { message: format!("{}:{line}:{column}: {}", self.shown, error.message), ..error }
    }
}

/// The slot of a user that is this directory.
pub(crate) fn slot_of(user: &User, dir: &Path) -> Option<u32> {
    let mut slots = user.working_dir.iter();
    slots.find(|(_, path)| resolved(Path::new(path)) == dir).map(|(slot, _)| *slot)
}
