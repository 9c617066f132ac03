//! A job as a file: `tpu submit FILE.yaml`, `tpu run FILE.yaml`.

use std::path::Path;

use crate::cli::Outcome;
use crate::cli::app::App;
use crate::cli::args::{Convert, ForeignJobFile, FormatName, Run, Submit, kind_words};
use crate::cli::print::Output;
use tpu_core::model::setup::SetUpHow;
use tpu_core::text::{counted, escape};
use tpu_jobfile::converted::Converted;
use tpu_jobfile::own::{self, Given, OwnJob};
use tpu_jobfile::yaml::Yaml;
use tpu_jobfile::{cloudmesh, jobman, sbatch, yaml};
use tpu_ops::act::launch::{RunRequest, plan};
use tpu_ops::act::{clone, stage};
use tpu_ops::base::ctx::user_of;
use tpu_ops::front::jobfile::ready::{self, BesideFile, JobFile};
use tpu_ops::front::jobfile::{self, is_file};
use tpu_ops::waiting::begin::QueueRequest;
use tpu_ops::waiting::queue::order;
use tpu_ops::waiting::queue::submit::Submission;
use tpu_ops::waiting::request::Begins;
use tpu_ops::waiting::words::wants;
use tpu_ops::{Ctx, Error};
use tpu_wire::jobfile::{ConvertedDocument, FormatSchemaDocument};

use super::run::typed_in;
use super::run::{self, Ran};
use super::submit::{jobs_of, queue};

/// Starts the job of a file at once.
pub(in crate::cli) fn run_file(app: &App, args: &Run, file: &str) -> Result<Ran, Error> {
    stands_alone(&Beside::of_run(args))?;
    let ctx = app.ctx()?;
    let path = ctx.env.cwd.join(file);
    let jobs = read(app, jobfile::documents(app.ctx()?, &path, file)?, (file, &args.of_file.set))?;
    let [job] = jobs.as_slice() else {
        let what = format!("{file} has {}, and run starts one", counted(jobs.len(), "job"));
        return Err(Error::usage(what).hint(format!("all of them: tpu submit {file}")));
    };
    let data = ctx.data()?;
    let user = app.user(&data, None)?;
    let setup = args.of_file.setup.as_deref().map(setup_how).transpose()?;
    let typed_code = args.of_job.directory.clone();
    let code = Some(typed_in(app, typed_code.as_deref())?);
    let beside = BesideFile { force: args.force, setup, code, typed_code, ..BesideFile::default() };
    let of_file = JobFile {
        ctx,
        data: &data,
        user: &user,
        beside: &beside,
        shown: file,
        dir: directory(&path),
        is_sent: false,
    };
    let later = |what: &str| {
        Error::usage(format!("{what}, and run starts it at once"))
            .hint(format!("let it wait: tpu submit {file}"))
    };
    if !job.waits.is_default() {
        return Err(of_file.at(job.place, later("it says how it waits in the queue")));
    }
    if job.order.is_some() {
        return Err(of_file.at(job.place, later("a target is created for it, which takes a while")));
    }
    if job.sweep.is_some() {
        return Err(of_file.at(job.place, later("members of its array differ")));
    }
    let mut request = of_file.request(job, (args.wait, Begins::Now))?;
    run::give(app, &mut request, &args.of_job)?;
    request.copies_all = app.global.yes;
    if let Some(repository) = of_file.repository(job) {
        if app.global.dry_run {
            let would = format!("clone {repository}, and start the job from that copy");
            let output = Output::would(&would).with_details(&plan::of_file(&request.spec));
            return Ok(Ran { job: None, output });
        }
        let user = user_of(&data, &request.user)?;
        let cloned = clone::cloned(ctx, user, &repository)?;
        request.spec.staged = Some(cloned.clone());
        return run::start(app, args, &request)
            .inspect_err(|_| stage::discard_unless_used(ctx, &cloned));
    }
    run::start(app, args, &request)
}

/// The jobs of a file.
fn read(
    app: &App,
    documents: Vec<Yaml>,
    (file, typed): (&str, &[String]),
) -> Result<Vec<OwnJob>, Error> {
    let (set, kinds) = (set(typed)?, kind_words());
    ready::jobs(app.ctx()?, documents, (file, &Given { set: &set, kinds: &kinds }))
}

/// Submits the jobs of a file, all of them or none.
pub(super) fn submit(
    app: &App,
    args: &Submit,
    (file, path): (&str, &Path),
    documents: Vec<Yaml>,
) -> Outcome {
    let ctx = app.ctx()?;
    let jobs = read(app, documents, (file, &args.of_file.set))?;
    let data = ctx.data()?;
    let user = app.user(&data, None)?;
    let beside = beside_file(app, args)?;
    let file = JobFile {
        ctx,
        data: &data,
        user: &user,
        beside: &beside,
        shown: file,
        dir: directory(path),
        is_sent: false,
    };
    let (mut all, placed) = (file.all_ready(&jobs)?, file.placed(&jobs));
    for (request, _) in &mut all {
        run::give(app, request, &args.of_job)?;
        request.copies_all = app.global.yes;
    }
    queue(app, &QueueRequest { placed: &placed, ..QueueRequest::of(&all) }, || would(ctx, &all))
}

/// What of the options of `submit` is said beside a file.
pub(super) fn beside_file(app: &App, args: &Submit) -> Result<BesideFile, Error> {
    Ok(BesideFile {
        force: args.force,
        is_held: args.hold,
        stages_late: args.stage_late,
        applies: args.apply,
        is_now: false,
        code: Some(typed_in(app, args.of_job.directory.as_deref())?),
        typed_code: args.of_job.directory.clone(),
        setup: args.of_file.setup.as_deref().map(setup_how).transpose()?,
    })
}

/// The directory in which a file lies.
pub(super) fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

/// What would be submitted.
pub(super) fn would(ctx: &Ctx, all: &[(RunRequest, Submission)]) -> Outcome {
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
    Ok(Output::new(shown + &file, &ConvertedDocument::from((file.as_str(), notes.as_slice()))))
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
        let Run { of_type, of_job, of_command, .. } = args;
        let flags = vec![
            (args.no_tag, "--no-tag"),
            (of_type.norm, "--norm"),
            (of_type.pre, "--pre"),
            (!of_type.zone.is_empty(), "--zone"),
            (args.auto, "--auto"),
            (args.ask_notes, "-ssn"),
            (of_job.policy.is_some(), "--policy"),
            (of_job.log_stage, "--log-stage"),
            (of_job.name.is_some(), "--name"),
            (args.array.is_some(), "--array"),
            (!of_job.notify.is_empty(), "--notify"),
            (of_job.clean_env, "--clean-env"),
            (of_job.in_place, "--in-place"),
            (!of_command.of_kind.said.is_empty(), "an option of a kind of target"),
            (!of_command.command.is_empty(), "a command"),
        ];
        Self { words: &args.words, flags }
    }

    fn of_submit(args: &'a Submit) -> Self {
        let Submit { of_type, of_job, of_command, .. } = args;
        let flags = vec![
            (args.no_tag, "--no-tag"),
            (of_type.norm, "--norm"),
            (of_type.pre, "--pre"),
            (!of_type.zone.is_empty(), "--zone"),
            (of_job.policy.is_some(), "--policy"),
            (of_job.log_stage, "--log-stage"),
            (of_job.name.is_some(), "--name"),
            (args.array.is_some(), "--array"),
            (!of_job.notify.is_empty(), "--notify"),
            (of_job.clean_env, "--clean-env"),
            (of_job.in_place, "--in-place"),
            (args.sweep, "--sweep"),
            (args.zip, "--zip"),
            (args.at_once.is_some(), "--at-once"),
            (!of_command.of_kind.said.is_empty(), "an option of a kind of target"),
            (!of_command.command.is_empty(), "a command"),
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
