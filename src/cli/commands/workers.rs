//! Commands that reach into the machines of a target: a shell, a command, recipes, files, an end of what
//! was left.

use std::collections::BTreeMap;

use crate::cli::Outcome;
use crate::cli::app::{App, UNDONE, Undone};
use crate::cli::args::{Copy, KillRemote, OfRecipe, Ssh, Workers};
use crate::cli::commands::checkpoints;
use crate::cli::console;
use crate::cli::print::Output;
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::target::Target;
use tpu_core::text::counted;
use tpu_core::text::escape;
use tpu_ops::act::provision::{self, Insistence};
use tpu_ops::act::recipes::{self, Request, StepEnd};
use tpu_ops::act::target_spec::Wish;
use tpu_ops::act::worker_shell::{self, Ended, Far, Purge, Spoken, Stranger, Which};
use tpu_ops::act::{attach, selection};
use tpu_ops::base::called;
use tpu_ops::base::ctx::job_of;
use tpu_ops::base::named::resolve_target;
use tpu_ops::front::dry_run;
use tpu_ops::observe::fleet;
use tpu_ops::waiting::whose::Purpose;
use tpu_ops::{Error, Kind};
use tpu_system::sys::proc::{self, Spawn};
use tpu_wire::workers::{
    CopiedDocument, EndedPart, PlannedStepPart, RecipeDocument, RecipePlanDocument, SpokenPart,
    SshDocument, StepPart, SweptDocument,
};

/// One of them.
pub(in crate::cli) fn run(app: &App, command: &Workers) -> Outcome {
    match command {
        Workers::Solve(of) => solve(app, of),
        Workers::MountDisk(of) => follow(app, of, "mount-disk"),
        Workers::SetWandb(of) => follow(app, of, "set-wandb"),
        Workers::CheckEnv(of) => follow(app, of, "check-env"),
        Workers::Test(of) => follow(app, of, "test"),
        Workers::Ssh(of) => ssh(app, of),
        Workers::KillRemote(of) => kill(app, of),
        Workers::Cp(of) => copy(app, of),
    }
}

/// A target that is not this machine.
fn target(app: &App, typed: &str) -> Result<Target, Error> {
    let target = resolve_target(&*app.ctx()?.data()?, typed)?;
    if target.is_here() {
        return Err(Error::refused("`local` is this machine: there is nothing to reach")
            .hint("run a command here: tpu run local -- COMMAND"));
    }
    Ok(target)
}

/// `ssh`.
fn ssh(app: &App, of: &Ssh) -> Outcome {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let target = match job(app, &data, &of.target)? {
        Some(job) if job.engine.is_some() => return node(app, of, &job.id()),
        Some(job) => target(app, job.tpu.as_str())?,
        None => target(app, &of.target)?,
    };
    let which = Which::parse(of.worker.as_deref().unwrap_or("0"))?;
    if let (None, Which::All) = (&of.command, which) {
        return Err(Error::usage("nobody can type on all workers at once")
            .hint(format!("tpu ssh {} all --command COMMAND", of.target)));
    }
    if app.global.dry_run {
        let count = worker_shell::count(ctx, &target.name, which)?;
        let workers = counted(count, "worker");
        return Ok(Output::would(&format!("reach {workers} of {}", target.name)));
    }
    let Some(command) = &of.command else {
        let worker = match which {
            Which::One(worker) => worker,
            Which::All => 0,
        };
        return log_in(&worker_shell::terminal(ctx, &target.name, worker, None)?);
    };
    let several = worker_shell::count(ctx, &target.name, which)? > 1;
    let mut kept: BTreeMap<u32, (String, String)> = BTreeMap::new();
    let mut printer = Printer { several, is_open: true };
    let ends = worker_shell::ask(ctx, &target.name, which, command, &mut |worker, said| {
        if app.global.json {
            let (out, err) = kept.entry(worker).or_default();
            match said {
                Spoken::Out(line) => out.push_str(&String::from_utf8_lossy(&line)),
                Spoken::Err(line) => err.push_str(&String::from_utf8_lossy(&line)),
            }
        } else {
            printer.print(worker, &said);
        }
    })?;
    let spoken = |end| {
        let ended = EndedPart::from(end);
        let (stdout, stderr) = kept.remove(&ended.worker).unwrap_or_default();
        SpokenPart { ended, stdout, stderr }
    };
    let workers = ends.iter().map(spoken).collect();
    let document = SshDocument { target: &target.name, workers };
    let output = Output::new("", &document).notes(complaints(&ends, several));
    Ok(output.code(code(&ends)))
}

/// The job that is meant by a word that is no target.
fn job<'a>(app: &App, data: &'a Data, typed: &str) -> Result<Option<&'a Job>, Error> {
    let is_job = selection::is_job(data, typed) || called::is_name(data, typed);
    if data.resolve_target(typed).is_some() || !is_job {
        return Ok(None);
    }
    let id = app.requester()?.one_job(&[typed.to_owned()], Purpose::Look)?;
    job_of(data, &id).map(Some)
}

/// A shell on a node of a job that an engine has.
fn node(app: &App, of: &Ssh, id: &JobId) -> Outcome {
    if of.command.is_some() {
        let what = format!("{id} is at an engine: a command is typed there");
        return Err(Error::usage(what).hint(format!("tpu ssh {}", of.target)));
    }
    let argv = attach::shell(app.ctx()?, id, of.worker.as_deref())?;
    if app.global.dry_run {
        return Ok(Output::would(&argv.join(" ")));
    }
    let (program, args) = argv.split_first().ok_or_else(|| Error::failed("no way leads there"))?;
    log_in(&Spawn::new(program).args(args))
}

fn log_in(spawn: &Spawn) -> Outcome {
    let status =
        proc::run_in_foreground(spawn).map_err(|e| Error::failed(format!("cannot log in: {e}")))?;
    let code = u8::try_from(status.shell_code()).unwrap_or(1);
    Ok(Output::default().code(code))
}

/// Prints lines as they come; with several workers each says whose it is. A file or a pipe gets them byte for
/// byte, a terminal only what it shows.
struct Printer {
    several: bool,
    is_open: bool,
}

impl Printer {
    fn print(&mut self, worker: u32, said: &Spoken) {
        let mut line =
            if self.several { format!("[worker {worker}] ").into_bytes() } else { Vec::new() };
        let (Spoken::Out(bytes) | Spoken::Err(bytes)) = said;
        line.extend_from_slice(bytes);
        if self.several && bytes.last() != Some(&b'\n') {
            line.push(b'\n');
        }
        let written = match said {
            // Whoever closed it does not want to know; the commands go on.
            Spoken::Out(_) if !self.is_open => Ok(()),
            Spoken::Out(_) => console::out(&line),
            Spoken::Err(_) => console::err(&line),
        };
        if matches!(said, Spoken::Out(_)) && written.is_err() {
            self.is_open = false;
        }
    }
}

/// A worker that was lost counts more than a code: nobody knows how it ended there.
fn code(ends: &[Ended]) -> u8 {
    if ends.iter().any(|end| end.code.is_err()) {
        return Kind::Unreachable.exit_code();
    }
    let codes = ends.iter().filter_map(|end| end.code.as_ref().ok());
    codes.map(|code| u8::try_from(*code).unwrap_or(1)).max().unwrap_or(0)
}

fn complaints(ends: &[Ended], several: bool) -> Vec<String> {
    let complaint = |end: &Ended| match &end.code {
        Ok(0) => None,
        Ok(code) if several => Some(format!("worker {} ended with {code}", end.worker)),
        Ok(_) => None,
        Err(why) => Some(format!("worker {} is lost: {}", end.worker, escape(why))),
    };
    ends.iter().filter_map(complaint).collect()
}

/// `solve`: the target first, then its machines.
fn solve(app: &App, of: &OfRecipe) -> Outcome {
    let target = target(app, &of.target)?;
    let ctx = app.ctx()?;
    // A file with mistakes is an error before anything happens.
    recipes::read(ctx)?;
    if let Some(obstacle) = fleet::obstacle(ctx, &of.target)? {
        if app.global.dry_run {
            let remake = dry_run::remake(ctx, &target.name, &Wish::default(), false)?;
            return dry_run_of(app, &request(target, "solve", of.force), &remake.to_text());
        }
        if app.asks() && !provision::loses_nothing(ctx, &target.name)? {
            dry_run::remake(ctx, &target.name, &Wish::default(), false)?;
            app.agree(&format!("{obstacle}. Make it usable?"), UNDONE)?;
        }
        app.tell(&format!("{obstacle}: making it usable"));
        let wish = Wish::default();
        let mut tell = |line: &str| app.tell(line);
        let how = (false, Insistence::ONCE);
        provision::insist(ctx, &target.name, &wish, how, &mut tell)?;
    }
    follow(app, of, "solve")
}

/// A command that follows the recipe of its name.
fn follow(app: &App, of: &OfRecipe, name: &str) -> Outcome {
    let request = request(target(app, &of.target)?, name, of.force);
    if app.global.dry_run {
        return dry_run_of(app, &request, &dry_run::line("target", request.target.name.as_str()));
    }
    Ok(told(&request, &follow_recipe(app, &request)?))
}

/// What is asked for of a recipe.
pub(super) fn request(target: Target, name: &str, force: bool) -> Request {
    Request { recipe: name.to_owned(), target, force }
}

/// What following a recipe would do, behind what comes before it.
pub(super) fn dry_run_of(app: &App, request: &Request, before: &str) -> Outcome {
    let ctx = app.ctx()?;
    let steps = dry_run::recipe(ctx, request)?;
    let text = before.to_owned() + &dry_run::steps_to_text(request, &steps);
    let document = RecipePlanDocument {
        dry_run: true,
        target: &request.target.name,
        recipe: &request.recipe,
        plan: steps.iter().map(|(step, would)| PlannedStepPart { step, would }).collect(),
    };
    Ok(Output::new(text, &document))
}

/// Follows a recipe on every worker, and tells of each step as it ends.
pub(super) fn follow_recipe(app: &App, request: &Request) -> Result<Vec<recipes::Outcome>, Error> {
    let mut tell = |outcome: &recipes::Outcome| {
        let head = format!("[worker {}] {}", outcome.worker, outcome.step);
        match &outcome.result {
            StepEnd::Done => app.tell(&format!("{head}: well")),
            StepEnd::SetUp => app.tell(&format!("{head}: set up")),
            StepEnd::Failed(why) => app.tell(&format!("{head}: failed: {why}")),
            StepEnd::Lost(why) => app.tell(&format!("{head}: lost: {why}")),
        }
    };
    recipes::run(app.ctx()?, request, &mut tell)
}

/// What came of a recipe.
pub(super) fn told(request: &Request, outcomes: &[recipes::Outcome]) -> Output {
    let count = |wanted: fn(&StepEnd) -> bool| {
        outcomes.iter().filter(|outcome| wanted(&outcome.result)).count()
    };
    let failed = count(|end| matches!(end, StepEnd::Failed(_)));
    let lost = count(|end| matches!(end, StepEnd::Lost(_)));
    let text = recipes::in_words(request, outcomes);
    let document = RecipeDocument {
        target: &request.target.name,
        recipe: &request.recipe,
        steps: outcomes.iter().map(StepPart::from).collect(),
    };
    let bad = outcomes
        .iter()
        .filter(|outcome| !outcome.is_well())
        .map(|outcome| format!("worker {}: {}", outcome.worker, outcome.log.display()));
    let code = match (failed, lost) {
        (0, 0) => 0,
        (0, _) => Kind::Unreachable.exit_code(),
        _ => Kind::Failed.exit_code(),
    };
    Output::new(text, &document).notes(bad.collect()).code(code)
}

/// `kill-remote`.
fn kill(app: &App, of: &KillRemote) -> Outcome {
    let target = target(app, &of.target)?;
    let ctx = app.ctx()?;
    let how = Purge { force: of.force, strangers: of.all_users };
    if app.global.dry_run {
        worker_shell::may_sweep(ctx, &target.name, how)?;
        let what = format!("end what is left on {} and no job here knows", target.name);
        return Ok(Output::would(&what));
    }
    let named = if of.all_users { worker_shell::strangers(ctx, &target.name)? } else { Vec::new() };
    if !named.is_empty() {
        app.tell(table(&named).trim_end());
        let question = format!("End {} of others?", counted(named.len(), "process"));
        let hint = "-y ends them without a question";
        app.agree(&question, Undone { what: "nothing was ended", hint })?;
    }
    let swept = worker_shell::sweep(ctx, &target.name, how, &named)?;
    let ours: usize = swept.stopped.values().sum();
    let launches = counted(swept.stopped.len(), "launch");
    let mut text = format!("Ended {} of {launches}", counted(ours, "process"));
    if of.all_users {
        text += &format!(" and {} of others", swept.ended);
    }
    text += &format!(" on {}.\n", target.name);
    if !swept.strangers.is_empty() {
        text += &format!("Not ours, and not touched:\n{}", table(&swept.strangers));
    }
    let notes = swept.unknown.iter().map(|(_, why)| escape(why).into_owned()).collect();
    let code = if swept.unknown.is_empty() { 0 } else { Kind::Unreachable.exit_code() };
    let document = SweptDocument::from((&target.name, &swept));
    Ok(Output::new(text, &document).notes(notes).code(code))
}

fn table(strangers: &[Stranger]) -> String {
    let mut text = String::new();
    for Stranger { worker, process } in strangers {
        text += &format!(
            "  worker {worker}  pid {}  {}  {}  {}\n",
            process.pid,
            escape(&process.user),
            tpu_core::model::time::age(process.age_s),
            escape(&process.command)
        );
    }
    text
}

/// `cp`.
fn copy(app: &App, of: &Copy) -> Outcome {
    if let Some(step) = checkpoints::of_cp(of) {
        return checkpoints::act(app, &step);
    }
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    // A file here may have a colon in its name as well: before it stands a target, or it is a file.
    let far = |text: &str| {
        let (name, path) = text.split_once(':')?;
        Some((data.resolve_target(name)?, path.to_owned()))
    };
    let which = Which::parse(&of.worker)?;
    let (from, to) = (far(&of.from), far(&of.to));
    if let (true, (Some((target, _)), None) | (None, Some((target, _)))) =
        (app.global.dry_run, (&from, &to))
    {
        let workers = counted(worker_shell::count(ctx, &target.name, which)?, "worker");
        let what = format!("copy {} to {}, for {workers} of {}", of.from, of.to, target.name);
        return Ok(Output::would(&what));
    }
    let ends = match (from, to) {
        (None, Some((target, path))) => {
            let path = if path.is_empty() { "~/".to_owned() } else { path };
            worker_shell::send(ctx, &of.from, &Far { target: &target.name, which, path: &path })?
        }
        (Some((target, path)), None) => {
            worker_shell::fetch(ctx, &Far { target: &target.name, which, path: &path }, &of.to)?
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(Error::refused("one of both is TARGET:PATH, and the other is here").hint(
                "between zones or buckets: gcloud storage cp -r SOURCE gs://BUCKET/DESTINATION",
            ));
        }
    };
    let done = ends.iter().filter(|end| end.code == Ok(0)).count();
    let all = counted(ends.len(), "worker");
    let text = format!("Copied {} for {done} of {all}.", of.from);
    let document = CopiedDocument { workers: ends.iter().map(EndedPart::from).collect() };
    let output = Output::new(text, &document).notes(complaints(&ends, true));
    Ok(output.code(code(&ends)))
}
