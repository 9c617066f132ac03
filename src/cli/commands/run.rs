//! `tpu run`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::cli::app::App;
use crate::cli::args::{FileOptions, JobOptions, Run};
use crate::cli::console;
use crate::cli::dashes;
use crate::cli::print::Output;
use tpu_core::model::capacity::Ask;
use tpu_core::model::data::Data;
use tpu_core::model::execution::Copying;
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::job::LaunchMode;
use tpu_core::model::variables;
use tpu_core::plan::types::parse_type;
use tpu_ops::act::launch::RunRequest;
use tpu_ops::act::launch::plan::LaunchPlan;
use tpu_ops::act::launch::{attempt, code};
use tpu_ops::act::selection;
use tpu_ops::base::environment::OfShell;
use tpu_ops::base::{named, names};
use tpu_ops::waiting::begin::{self, StartOutcome, When};
use tpu_ops::waiting::request::{self, Begins, Beside};
use tpu_ops::{Ctx, Error};
use tpu_wire::launches::{
    LaunchPlanDocument, LaunchPlanPart, LaunchedDocument, LaunchedGroupDocument, WaitPlanDocument,
    WaitPlanPart,
};
use tpu_wire::words::Word;

use super::notify;
use super::person::PersonThere;

/// What `run` did.
#[derive(Debug)]
pub(in crate::cli) struct Ran {
    /// The new job; none after a dry run.
    pub(in crate::cli) job: Option<JobId>,
    /// What is printed.
    pub(in crate::cli) output: Output,
}

/// A plan in words.
pub(super) struct PlanInWords {
    /// The words that would be run.
    pub(super) argv: Vec<String>,
    /// What an engine would be given.
    pub(super) script: Option<String>,
    /// All of it for people.
    pub(super) text: String,
    /// Why the engine would not take it, if that is known.
    pub(super) refused: Option<Error>,
}

/// The exit code and the notes of a plan: what is refused is shown all the same, since by it one sees what to change.
pub(super) fn verdict(refused: Option<Error>) -> (u8, Vec<String>) {
    let code = refused.as_ref().map_or(0, |refused| refused.kind.exit_code());
    let hint = refused.as_ref().map(|refused| refused.advice().to_owned());
    (code, refused.map(|refused| refused.message).into_iter().chain(hint).collect())
}

/// Says what would be started.
pub(super) fn in_words(ctx: &Ctx, plan: &LaunchPlan) -> Result<PlanInWords, Error> {
    let argv = plan.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (script, refused) = attempt::preview(ctx, plan)?.unzip();
    let shown = script.iter().map(|script| format!("\n{script}"));
    let text = std::iter::once(plan.to_text()).chain(shown).collect();
    Ok(PlanInWords { argv, script, text, refused: refused.flatten() })
}

/// Starts the job that the words ask for, of which none is a job file.
pub(in crate::cli) fn run(app: &App, args: &Run) -> Result<Ran, Error> {
    refuse_other_files(app, &args.words)?;
    refuse_of_files(&args.of_file)?;
    let request = request(app, args, &*app.ctx()?.data()?, Begins::Now)?;
    start(app, args, &request)
}

/// Refuses a value for a file where there is none.
pub(super) fn refuse_of_files(said: &FileOptions) -> Result<(), Error> {
    let set = said.set.first().map(|set| format!("--set {set}"));
    match set.or_else(|| said.setup.as_ref().map(|how| format!("--setup {how}"))) {
        None => Ok(()),
        Some(what) => Err(Error::usage(format!("{what}: there is no file that it could be about"))
            .hint("name one: tpu submit job.yaml --set key=value")),
    }
}

/// Refuses a command without `--` before it, and a word that names a file of another kind: job files end in .yaml.
pub(super) fn refuse_other_files(app: &App, words: &[String]) -> Result<(), Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let is_unknown = |word: &&String| {
        let is_known = data.resolve_target(word).is_some()
            || data.user(&UserName::from(word.as_str())).is_some()
            || parse_type(word).is_some()
            || named::is_of_several(&data, word);
        !is_known && !word.contains('=') && word.parse::<u32>().is_err()
    };
    let is_file = |word: &str| ctx.env.cwd.join(word).is_file();
    let unknown: Vec<&String> = words.iter().filter(is_unknown).collect();
    let has_dashes = app.typed.iter().any(|word| word == "--");
    let begins = |word: &&&String| dashes::is_program(&ctx.env, word) || is_file(word);
    let Some(first) = unknown.iter().find(begins) else { return Ok(()) };
    let is_program = !is_file(first) || unknown.len() > 1 || dashes::is_script(first);
    let message = if is_file(first) {
        format!("{first} is a file, and job files end in .yaml or .yml")
    } else if has_dashes {
        return Ok(());
    } else {
        format!("'{first}' is neither a user nor a target")
    };
    let advice = || dashes::advice(&app.typed, first);
    let hint = if Path::new(first.as_str()).extension().is_some_and(|end| end == "sh") {
        let convert = format!("tpu convert sbatch {first} > job.yaml");
        format!("{}; a batch script of Slurm becomes a job file: {convert}", advice())
    } else if is_program && !has_dashes {
        advice()
    } else {
        format!("give it that name: mv {first} {first}.yaml; `tpu help submit` shows a job file")
    };
    Err(Error::usage(message).hint(hint))
}

/// Starts what was asked for, or says what would be started.
pub(super) fn start(app: &App, args: &Run, request: &RunRequest) -> Result<Ran, Error> {
    let when = if args.wait { When::Wait } else { When::Now };
    let person = PersonThere::new(app, args, request)?;
    let outcome = begin::start(app.ctx()?, request, when, &person)?;
    let text = outcome.in_words();
    let output = match &outcome {
        StartOutcome::Job(launched, _) => Output::new(text, &LaunchedDocument::from(launched)),
        StartOutcome::Group(launched) => {
            let is_whole = launched.failed.is_empty() && launched.unsure.is_empty();
            Output::new(text, &LaunchedGroupDocument::from(launched)).code(u8::from(!is_whole))
        }
        StartOutcome::Would(plan, _) => planned(app, plan)?,
        StartOutcome::WouldWait(what) => {
            let plan = WaitPlanPart { user: &request.user, waits_for: what };
            Output::new(text, &WaitPlanDocument { plan })
        }
    };
    Ok(Ran { job: outcome.job().cloned(), output: output.notes(outcome.remarks()) })
}

/// What would be started.
fn planned(app: &App, plan: &LaunchPlan) -> Result<Output, Error> {
    let PlanInWords { argv, script, text, refused } = in_words(app.ctx()?, plan)?;
    let document = LaunchPlanDocument {
        plan: LaunchPlanPart {
            user: &plan.user,
            target: &plan.target.name,
            zone: plan.target.zone.as_deref(),
            dir: &plan.dir,
            mode: Word(plan.mode),
            argv,
            script,
            refused: refused.as_ref().map(|refused| refused.message.clone()),
            members: plan.spec.array.as_ref().map(|array| array.indexes().to_vec()),
        },
    };
    let (code, why) = verdict(refused);
    Ok(Output::new(text, &document).notes(why).code(code))
}

/// What was typed.
pub(super) fn request(
    app: &App,
    args: &Run,
    data: &Data,
    begins: Begins,
) -> Result<RunRequest, Error> {
    let ctx = app.ctx()?;
    let mut sorted = selection::sort(&args.words, data)?;
    if args.ask_notes && !sorted.pairs.iter().any(|(key, _)| key == "ssn") {
        if !app.may_ask() {
            return Err(Error::usage("-ssn asks for notes, and there is nobody to ask")
                .hint("give them: ssn=NOTES"));
        }
        sorted.pairs.push(("ssn".to_owned(), console::ask("Notes: ")?));
    }
    let whose = |named| {
        let user = app.user(data, named)?;
        warn_of_aliases(ctx, (data, &user), &args.words, &Ask::KEYS);
        Ok(user)
    };
    let mut request = request::of_words(ctx, data, (sorted, &whose), (&said(app, args)?, begins))?;
    request.environment.shell = match args.of_command.command.is_empty() {
        _ if args.of_job.clean_env => OfShell::Programs,
        true => OfShell::of_mode(LaunchMode::Script),
        false => OfShell::of_mode(LaunchMode::Native),
    };
    give(app, &mut request, &args.of_job)?;
    if request.spec.command.is_some() {
        request.spec.execution.copying = Copying::KnownWithLinks;
    }
    if args.of_job.in_place {
        let code = request.spec.code.as_ref().ok_or_else(|| {
            Error::usage("--in-place runs a command where it is typed, and dir= names a slot")
                .hint("leave dir= away, or name the directory: -C PATH")
        })?;
        request.spec.execution.workplace = Some(code.begins_in());
    }
    request.copies_all = app.global.yes;
    if app.may_ask() {
        request.copies_all = match code::too_much(ctx, &request)? {
            None => true,
            Some(much) => app.confirm(&format!("{much}. Copy all of it?"))?,
        };
    }
    if let Some(name) = &args.of_job.name {
        names::refuse_as_job(name)?;
    }
    Ok(request)
}

/// Gives a job what is said for it beside its words or its file: a copy for each of its members, and the variables that are
/// named (`--env`).
pub(super) fn give(app: &App, request: &mut RunRequest, said: &JobOptions) -> Result<(), Error> {
    request.spec.execution.copies_each |= said.copy_each;
    request.environment.typed_in = Some(app.env.cwd.clone());
    // A value that looks like a secret is written into no script, whoever names it.
    let forwarded = match request.environment.shell {
        OfShell::Programs => Vec::new(),
        OfShell::All | OfShell::Over => app.ctx()?.settings(None)?.forward_env,
    };
    let is_here = |name: &&String| variables::looks_secret(name) && app.env.var_os(name).is_some();
    for typed in forwarded.iter().filter(is_here).chain(&said.env) {
        let (name, value) = match typed.split_once('=') {
            Some((name, value)) => (name, Some(OsStr::new(value))),
            None => (typed.as_str(), app.env.var_os(typed)),
        };
        variables::as_secret(name).map_err(|(what, _)| {
            Error::usage(format!("--env {name}: {what}")).hint(
                "say it in a job file, as in env: {NAME: VALUE}; on Kubernetes: -e NAME=VALUE",
            )
        })?;
        let value = value.ok_or_else(|| {
            Error::usage(format!("--env {name}: this shell does not export it"))
                .hint(format!("export it, or give it: --env {name}=VALUE"))
        })?;
        let names = &mut request.spec.execution.secrets;
        if names.iter().all(|known| known != name) {
            names.push(name.to_owned());
        }
        let given = &mut request.environment.given.0;
        given.retain(|(known, _)| known != name);
        given.push((name.into(), value.to_owned()));
    }
    Ok(())
}

/// What stands beside the words.
fn said(app: &App, args: &Run) -> Result<Beside, Error> {
    let Run { of_type, of_job, of_command, .. } = args;
    let reclaimable = match (of_type.norm, of_type.pre) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    };
    if let Some(named) = args.of_job.directory.as_deref().filter(|_| names_slot(&args.words)) {
        let what = format!("-C {} and dir= both say where the code is", named.display());
        return Err(Error::usage(what).hint("leave one of them away"));
    }
    // Scripts, and what the settings have as a command, lie in a slot.
    let named = of_job.directory.as_deref();
    let code = named.is_some() || !of_command.command.is_empty();
    Ok(Beside {
        force: args.force,
        is_any: args.auto,
        waits: args.wait,
        reclaimable,
        zones: of_type.zone.clone(),
        policy: of_job.policy.clone(),
        name: of_job.name.clone(),
        array: args.array.clone(),
        code: code.then(|| typed_in(app, named)).transpose()?,
        command: (!of_command.command.is_empty()).then(|| of_command.command.clone()),
        options: of_command.of_kind.said.clone(),
        notify: notify::typed(&of_job.notify)?,
        log_stage: of_job.log_stage,
        arguments: None,
        notes_are_no_tag: args.no_tag,
    })
}

/// Whether a word says the slot of a directory.
fn names_slot(words: &[String]) -> bool {
    words.iter().any(|word| word.starts_with("dir=") || word.parse::<u32>().is_ok())
}

/// The directory in which a command is typed, or that it names in its place.
pub(super) fn typed_in(app: &App, named: Option<&Path>) -> Result<PathBuf, Error> {
    let cwd = &app.env.cwd;
    let Some(named) = named else { return Ok(cwd.clone()) };
    let dir = cwd.join(named);
    if !dir.is_dir() {
        return Err(Error::not_found(format!(
            "-C {}: there is no such directory",
            named.display()
        ))
        .hint("name one that is there"));
    }
    Ok(dir)
}

/// Says which of the keys that were typed a user has given another meaning, which does not count.
pub(super) fn warn_of_aliases(
    ctx: &Ctx,
    (data, user): (&Data, &UserName),
    words: &[String],
    keys: &[&str],
) {
    let Some(user) = data.user(user) else { return };
    let typed = words.iter().filter_map(|word| word.split_once('=').map(|(key, _)| key));
    let own = typed.filter(|key| keys.contains(key));
    ctx.warn(own.filter_map(|key| {
        let full = user.alias(key)?;
        Some(format!(
            "{key}= says how the job is to run, and not your alias for {full}: that is {full}=…"
        ))
    }));
}
