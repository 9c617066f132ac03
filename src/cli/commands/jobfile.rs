//! A job as a file: `tpu submit FILE.yaml`, `tpu run FILE.yaml`.

use std::path::{Path, PathBuf};

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Convert, ForeignJobFile, FormatName, Run, Submit, kind_words};
use crate::cli::legacy;
use crate::cli::print::Output;
use crate::jobfile::converted::Converted;
use crate::jobfile::own::{self, Before, Given, OwnCode, OwnJob, Place};
use crate::jobfile::yaml::Yaml;
use crate::jobfile::{BadFile, cloudmesh, jobman, sbatch, yaml};
use crate::model::data::Data;
use crate::model::entry::After;
use crate::model::ids::{QueueName, UserName};
use crate::model::pattern;
use crate::model::repository::Repository;
use crate::model::setup::SetUpHow;
use crate::model::spec::TargetRequest;
use crate::model::target::LOCAL;
use crate::ops::ctx::user_of;
use crate::ops::jobfile::{self, is_file};
use crate::ops::launch::check::MeantKey;
use crate::ops::launch::{RunRequest, plan};
use crate::ops::queue::order;
use crate::ops::queue::submit::{self, Submission};
use crate::ops::{Error, clone, names, selection, stage};
use crate::text::{counted, escape};
use crate::wire::jobfile::{ConvertedDocument, FormatSchemaDocument};

use super::choose::Begins;
use super::run::{self, Ran, request_of};
use super::submit::{after, jobs_of, submitted};
use super::waiting::wants;

/// `run`: of a file, if one of the words is one, and else of the words.
pub(in crate::cli) fn run_any(app: &App, args: &Run) -> Result<Ran, Error> {
    if let Some(file) = args.words.iter().find(|word| is_file(word)) {
        return run_file(app, args, file);
    }
    run::refuse_other_files(app, &args.words)?;
    run::run(app, args)
}

/// Starts the job of a file at once.
fn run_file(app: &App, args: &Run, file: &str) -> Result<Ran, Error> {
    stands_alone(&Beside::of_run(args))?;
    let ctx = app.ctx()?;
    let path = ctx.env.cwd.join(file);
    let jobs = read(app, documents(app, &path, file)?, (file, &args.set))?;
    let [job] = jobs.as_slice() else {
        let what = format!("{file} has {}, and run starts one", counted(jobs.len(), "job"));
        return Err(Error::usage(what).hint(format!("all of them: tpu submit {file}")));
    };
    let data = ctx.data()?;
    let (force, setup) = (args.force, args.setup.clone());
    let how = Submit { setup, force, ..Submit::default() };
    let of_file = JobFile { app, args: &how, shown: file, path: &path, data: &data };
    let later = |what: &str| {
        Error::usage(format!("{what}, and run starts it at once"))
            .hint(format!("let it wait: tpu submit {file}"))
    };
    if !job.waits.is_default() {
        return Err(of_file.at(job.place, later("it says how it waits in the queue")));
    }
    if job.order.is_some() {
        return Err(of_file.at(job.place, later("a target is made for it, which takes its time")));
    }
    if job.sweep.is_some() {
        return Err(of_file.at(job.place, later("members of its array differ")));
    }
    let mut request = of_file.request(job, (args.wait, Begins::Now))?;
    if let Some(repository) = of_file.repository(job) {
        if app.global.dry_run {
            let would = format!("clone {repository}, and start the job from that copy");
            let output = Output::would(&would).with_details(&plan::of_file(&request.spec));
            return Ok(Ran { job: None, output });
        }
        let user = user_of(&data, &request.user)?;
        let cloned = clone::cloned(ctx, user, &repository)?;
        request.spec.staged = Some(cloned.clone());
        return run::start(app, args, request)
            .inspect_err(|_| stage::discard_unless_used(ctx, &cloned));
    }
    run::start(app, args, request)
}

/// The documents of a file.
pub(super) fn documents(app: &App, path: &Path, file: &str) -> Result<Vec<Yaml>, Error> {
    let text = jobfile::text(app.ctx()?, path, file)?;
    let bad = |bad: BadFile| Error::usage(format!("{file}{}", bad.in_words())).hint(bad.hint);
    yaml::read_all(&text).map_err(bad)
}

/// The jobs of a file.
fn read(
    app: &App,
    mut documents: Vec<Yaml>,
    (file, typed): (&str, &[String]),
) -> Result<Vec<OwnJob>, Error> {
    let set = set(typed)?;
    let kinds = kind_words();
    let bad = |bad: BadFile| Error::usage(format!("{file}{}", bad.in_words())).hint(bad.hint);
    for document in &mut documents {
        if jobman::is_config(document) {
            let converted = jobman::convert(document).map_err(bad)?;
            let said = converted.notes.iter().map(|note| {
                let ((line, column), field) = (note.place, &note.field);
                format!("{file}:{line}:{column}: {field}: {}", note.what)
            });
            app.ctx()?.warn(said);
            *document = converted.document;
        }
    }
    own::read_documents(&documents, &Given { set: &set, kinds: &kinds }).map_err(bad)
}

/// Submits the jobs of a file, all of them or none.
pub(super) fn submit(
    app: &App,
    args: &Submit,
    (file, path): (&str, &Path),
    documents: Vec<Yaml>,
) -> Outcome {
    let ctx = app.ctx()?;
    let jobs = read(app, documents, (file, &args.set))?;
    let data = ctx.data()?;
    let file = JobFile { app, args, shown: file, path, data: &data };
    let all: Vec<(RunRequest, Submission)> =
        jobs.iter().map(|job| file.ready(job)).collect::<Result<_, _>>()?;
    let ids = submit::enter_each_placed(ctx, &all, &|index, what, error| match jobs.get(index) {
        Some(job) => file.at(place_of(job, what), of_a_file(job, what, error)),
        None => error,
    })?;
    if app.global.dry_run {
        return file.would(&all);
    }
    submitted(app, &ids, &all)
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

impl JobFile<'_> {
    /// What would be submitted.
    pub(super) fn would(&self, all: &[(RunRequest, Submission)]) -> Outcome {
        let ctx = self.app.ctx()?;
        let lines = all.iter().map(|(request, _)| {
            let name = request.spec.name.iter().map(|name| format!(" as {name}"));
            let name: String = name.collect();
            let jobs = counted(jobs_of(request), "job");
            format!("queue {jobs}{name} for {}", wants(&request.spec.target))
        });
        let mut each = Vec::new();
        for (request, how) in all {
            let code = how.repository.iter().map(|from| format!("{:<10} {from}\n", "clones"));
            let mut text = code.collect::<String>();
            let user = &request.user;
            let preferred = how.order.as_ref().map(|order| order::preferred(ctx, user, order));
            if let Some((order, why)) = preferred.transpose()?.flatten() {
                text += &format!("{:<10} {}\n{:<10} {why}\n", "makes", order.in_words(), "order");
            }
            each.push(text + &plan::of_file(&request.spec));
        }
        let would = lines.collect::<Vec<_>>().join("; ");
        Ok(Output::would(&would).with_details(&each.join("\n")))
    }
}

/// `convert`: the job file of another tool as one of ours, with what is not as it was above it.
pub(in crate::cli) fn convert(app: &App, args: &Convert) -> Outcome {
    let ctx = app.ctx()?;
    let text = jobfile::text(ctx, &ctx.env.cwd.join(&args.file), &args.file)?;
    let one = |converted: Converted| (vec![converted.document], converted.notes);
    let read = match args.from {
        ForeignJobFile::Jobman => jobman::read(&text).map(one),
        ForeignJobFile::Sbatch => sbatch::read(&text).map(one),
        ForeignJobFile::Cloudmesh => {
            let name = Path::new(&args.file).file_name().unwrap_or_default().to_string_lossy();
            cloudmesh::read(&name, &text).map(|file| cloudmesh::converted(&file))
        }
    };
    let (documents, notes) = read
        .map_err(|bad| Error::usage(format!("{}{}", args.file, bad.in_words())).hint(bad.hint))?;
    if documents.is_empty() {
        return Err(Error::refused(format!("{} has no job that is still to run", args.file))
            .hint("its hosts are taken over by: tpu import cloudmesh FILE"));
    }
    let file = yaml::written(&documents);
    let mut shown = String::new();
    for note in &notes {
        let (line, _) = note.place;
        shown += &format!("# {} (line {line}): {}\n", escape(&note.field), escape(&note.what));
    }
    Ok(Output::new(shown + &file, &ConvertedDocument::new(&file, &notes)))
}

/// `schema`: a format, for editors.
pub(in crate::cli) fn schema(of: FormatName) -> Output {
    let format = match of {
        FormatName::Jobfile => own::schema(&kind_words()),
    };
    let text = serde_json::to_string_pretty(&format).unwrap_or_default() + "\n";
    Output::new(text, &FormatSchemaDocument { format })
}

/// Refuses what stands beside a file that is submitted.
pub(super) fn submits_alone(args: &Submit) -> Result<(), Error> {
    stands_alone(&Beside::of_submit(args))
}

/// What stands beside a file on a command line.
struct Beside<'a> {
    words: &'a [String],
    flags: Vec<(bool, &'static str)>,
}

impl<'a> Beside<'a> {
    fn of_run(args: &'a Run) -> Self {
        let Run {
            words,
            no_tag,
            norm,
            pre,
            zone,
            policy,
            log_stage,
            name,
            array,
            of_kind,
            command,
            ..
        } = args;
        let flags = vec![
            (*no_tag, "--no-tag"),
            (*norm, "--norm"),
            (*pre, "--pre"),
            (!zone.is_empty(), "--zone"),
            (args.auto, "--auto"),
            (args.ask_notes, "-ssn"),
            (policy.is_some(), "--policy"),
            (*log_stage, "--log-stage"),
            (name.is_some(), "--name"),
            (array.is_some(), "--array"),
            (!args.notify.is_empty(), "--notify"),
            (!of_kind.said.is_empty(), "an option of a kind of target"),
            (!command.is_empty(), "a command"),
        ];
        Self { words, flags }
    }

    fn of_submit(args: &'a Submit) -> Self {
        let flags = vec![
            (args.no_tag, "--no-tag"),
            (args.norm, "--norm"),
            (args.pre, "--pre"),
            (!args.zone.is_empty(), "--zone"),
            (args.policy.is_some(), "--policy"),
            (args.log_stage, "--log-stage"),
            (args.name.is_some(), "--name"),
            (args.array.is_some(), "--array"),
            (!args.notify.is_empty(), "--notify"),
            (args.sweep, "--sweep"),
            (args.zip, "--zip"),
            (args.at_once.is_some(), "--at-once"),
            (!args.of_kind.said.is_empty(), "an option of a kind of target"),
            (!args.command.is_empty(), "a command"),
        ];
        Self { words: &args.words, flags }
    }
}

/// What a file says is said there: beside it stand only words that say how it is read, and whether it waits.
fn stands_alone(beside: &Beside<'_>) -> Result<(), Error> {
    let words = beside.words.iter().find(|word| !is_file(word));
    let flag = beside.flags.iter().find(|(is_said, _)| *is_said).map(|(_, flag)| *flag);
    if let Some(what) = words.map(String::as_str).or(flag) {
        return Err(Error::usage(format!("{what} beside a file")).hint(
            "say it in the file; what changes from time to time is {{key}} there, and --set key=value",
        ));
    }
    match beside.words.get(1) {
        Some(second) => Err(Error::usage(format!("{second}: one file at a time"))
            .hint("several jobs of one file are parted by ---")),
        None => Ok(()),
    }
}

/// Reads `--set KEY=VALUE`.
fn set(typed: &[String]) -> Result<Vec<(String, String)>, Error> {
    let mut all: Vec<(String, String)> = Vec::new();
    for word in typed {
        let bad =
            |what: &str| Error::usage(format!("--set {word}: {what}")).hint("as in --set lr=1e-3");
        let (key, value) = word.split_once('=').ok_or_else(|| bad("no KEY=VALUE"))?;
        if value.contains("{{") {
            return Err(bad("a value is filled in as it is, and {{ has no meaning in it"));
        }
        if all.iter().any(|(known, _)| known == key) {
            return Err(bad("it is said twice"));
        }
        all.push((key.to_owned(), value.to_owned()));
    }
    Ok(all)
}

/// What of a set-up is done, as `--setup` says it.
pub(super) fn setup_how(typed: &str) -> Result<SetUpHow, Error> {
    SetUpHow::parse(typed).ok_or_else(|| {
        Error::usage(format!("--setup {typed}: unknown")).hint("auto, force or skip")
    })
}

/// A file whose jobs are made ready.
pub(super) struct JobFile<'a> {
    /// For whom, and where.
    pub(super) app: &'a App,
    /// What was typed beside it.
    pub(super) args: &'a Submit,
    /// As somebody typed it.
    pub(super) shown: &'a str,
    /// Where it is.
    pub(super) path: &'a Path,
    /// The file of users, targets and jobs.
    pub(super) data: &'a Data,
}

impl JobFile<'_> {
    /// A job as the words of `submit` would have made it.
    pub(super) fn ready(&self, job: &OwnJob) -> Result<(RunRequest, Submission), Error> {
        let ready = self.request(job, (true, Begins::InTurn)).and_then(|request| {
            let how = self.waits(job, &request.user)?;
            Ok((request, how))
        });
        ready.map_err(|error| self.at(job.place, error))
    }

    /// What a job asks for; whether it waits for a place, and where.
    fn request(&self, job: &OwnJob, (wait, begins): (bool, Begins)) -> Result<RunRequest, Error> {
        let typed = Run {
            quiet: true,
            force: self.args.force,
            wait,
            norm: job.target.reclaimable == Some(false),
            pre: job.target.reclaimable == Some(true),
            zone: job.target.zones.clone(),
            policy: job.policy.map(|policy| policy.as_str().to_owned()),
            name: job.name.clone(),
            array: job.array.as_ref().map(ToString::to_string),
            command: job.command.clone().unwrap_or_default(),
            ..Run::default()
        };
        if let Some(name) = job.name.as_deref().filter(|name| pattern::is_pattern(name)) {
            let error = Error::usage(format!("'{name}' is a pattern, and names one job here"));
            let error = error.hint("write a job for each, parted by ---");
            return Err(self.at(place_of(job, MeantKey::Name), error));
        }
        if let Some(name) = &job.name {
            names::refuse_as_job(name, &legacy::command_words())
                .map_err(|error| self.at(place_of(job, MeantKey::Name), error))?;
        }
        let mut sorted = selection::sort(&[], self.data)?;
        sorted.rest.clone_from(&job.target.words);
        if job.order.is_some() {
            // It has no name before it enters the queue; what the words say of another target is not kept.
            sorted.rest.push(LOCAL.to_owned());
        }
        sorted.pairs.clone_from(&job.pairs);
        let user = self.app.user(self.data, None)?;
        let dir = match &job.code {
            Some(OwnCode::Here(place)) => {
                Some(self.slot(&user).map_err(|error| self.at(*place, error))?)
            }
            Some(OwnCode::Repository(_)) | None => job.dir,
        };
        sorted.numbers.extend(dir);
        let mut request = request_of(self.app, &typed, sorted, self.data, begins)
            .map_err(|error| self.at(job.target.place, error))?;
        let is_in_slot = self.repository(job).is_none() && job.execution.workplace.is_none();
        request.spec.dir = request.spec.dir.filter(|_| is_in_slot);
        if is_in_slot && job.code.is_none() && job.dir.is_none() {
            self.tell_of_code(&user)?;
        }
        request.spec.options = job.target.options.clone();
        request.spec.execution = job.execution.clone();
        if let Some(output) = &job.execution.output {
            request.spec.execution.output = Some(self.beside(output, job));
        }
        if let Some(typed) = &self.args.setup {
            request.spec.execution.setup_how = setup_how(typed)?;
        }
        if let Some(order) = &job.order {
            request.spec.target = TargetRequest::Named(order.in_words());
        }
        self.is_of_kind(job)?;
        Ok(request)
    }

    /// Says where the code of a job is that does not say it, if the file lies elsewhere.
    fn tell_of_code(&self, user: &UserName) -> Result<(), Error> {
        let usual = user_of(self.data, user)?.dir(1).map(PathBuf::from);
        let Some(usual) = usual else { return Ok(()) };
        let here = jobfile::whole(&self.dir());
        if !here.starts_with(jobfile::whole(&usual)) {
            let ctx = self.app.ctx()?;
            let said = format!(
                "{}: its code is {}, directory 1 of {user}; to take what lies beside the file: code: .",
                self.shown,
                usual.display()
            );
            ctx.warn([said]);
        }
        Ok(())
    }

    /// Where the code of a job is, if it is in a repository.
    fn repository(&self, job: &OwnJob) -> Option<Repository> {
        match &job.code {
            Some(OwnCode::Repository(repository)) => Some(repository.clone().from(&self.dir())),
            Some(OwnCode::Here(_)) | None => None,
        }
    }

    /// A file for what a command prints: one that is said from where the file lies is there, and not in the copy of the code,
    /// where a machine has that directory. `/./` parts the two, for those that have not.
    fn beside(&self, output: &str, job: &OwnJob) -> String {
        let is_whole = output.starts_with('/') || output.starts_with("~/");
        if is_whole || job.execution.workplace.is_some() {
            return output.to_owned();
        }
        let dir = jobfile::whole(&self.dir());
        format!("{}/./{}", dir.display(), output.trim_start_matches("./"))
    }

    /// The directory in which the file lies.
    fn dir(&self) -> PathBuf {
        self.path.parent().map(Path::to_path_buf).unwrap_or_default()
    }

    /// The slot of that directory.
    fn slot(&self, user: &UserName) -> Result<u32, Error> {
        let here = self.dir();
        let here = jobfile::whole(&here);
        let of = user_of(self.data, user)?;
        let slots = of.working_dir.iter();
        let mut slots = slots.filter(|(_, path)| jobfile::whole(&PathBuf::from(path)) == here);
        slots.next().map(|(slot, _)| *slot).ok_or_else(|| {
            Error::refused(format!("code: {} is in no slot of {user}", here.display()))
                .hint(format!("put it into one: tpu set-dir {} 2", here.display()))
        })
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

    fn waits(&self, job: &OwnJob, user: &UserName) -> Result<Submission, Error> {
        let mut how = Submission {
            is_held: job.waits.is_held || self.args.hold,
            stages_late: self.args.stage_late,
            applies: self.args.apply,
            sweep: job.sweep.clone(),
            order: job.order.clone().map(|order| order.from(&self.dir())),
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
                    let known: Vec<After> = after(self.data, user, *which, word)
                        .map_err(|error| self.at(*place, error))?;
                    how.after.extend(known);
                }
            }
        }
        Ok(how)
    }

    /// The same with the place to which it belongs; one that has a place keeps it.
    fn at(&self, (line, column): Place, error: Error) -> Error {
        if error.message.starts_with(self.shown) {
            return error;
        }
        Error { message: format!("{}:{line}:{column}: {}", self.shown, error.message), ..error }
    }
}
