//! `tpu run`.

use std::path::Path;

use crate::cli::app::App;
use crate::cli::args::Run;
use crate::cli::console;
use crate::cli::legacy;
use crate::cli::print::Output;
use crate::model::capacity::Ask;
use crate::model::data::Data;
use crate::model::execution::Execution;
use crate::model::ids::{JobId, UserName};
use crate::model::member::{Array, Member};
use crate::model::spec::{AnyOf, JobSpec, TargetRequest};
use crate::ops::error::did_you_mean;
use crate::ops::fleet;
use crate::ops::launch::attempt::{self, Launched};
use crate::ops::launch::group::LaunchedGroup;
use crate::ops::launch::plan::LaunchPlan;
use crate::ops::launch::{self, RunRequest};
use crate::ops::queue::field::Wish;
use crate::ops::selection::{self, Sorted};
use crate::ops::{Ctx, Error};
use crate::ops::{named, names};
use crate::plan::types::parse_type;
use crate::text::counted;
use crate::wire::launches::{
    LaunchPlanDocument, LaunchPlanPart, LaunchedDocument, LaunchedGroupDocument, WaitPlanDocument,
    WaitPlanPart,
};
use crate::wire::words::Word;

use super::choose::{self, Begins, Chosen};
use super::notify;

/// What `run` did.
#[derive(Debug)]
pub(in crate::cli) struct Ran {
    /// The new job; none after a dry run.
    pub(in crate::cli) job: Option<JobId>,
    /// What is printed.
    pub(in crate::cli) output: Output,
}

/// A plan: the words that would be run, what an engine would be given, and all of it for people.
pub(super) fn in_words(
    ctx: &Ctx,
    plan: &LaunchPlan,
) -> Result<(Vec<String>, Option<String>, String), Error> {
    let words = plan.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let script = attempt::preview(ctx, plan)?;
    let shown = script.iter().map(|script| format!("\n{script}"));
    let text = std::iter::once(plan.to_text()).chain(shown).collect();
    Ok((words, script, text))
}

/// Starts a job.
pub(in crate::cli) fn run(app: &App, args: &Run) -> Result<Ran, Error> {
    refuse_of_files(&args.set, args.setup.as_deref())?;
    let request = request(app, args, &*app.ctx()?.data()?, Begins::Now)?;
    start(app, args, request)
}

/// Refuses a value for a file where there is none.
pub(super) fn refuse_of_files(set: &[String], setup: Option<&str>) -> Result<(), Error> {
    let set = set.first().map(|set| format!("--set {set}"));
    match set.or_else(|| setup.map(|how| format!("--setup {how}"))) {
        None => Ok(()),
        Some(what) => Err(Error::usage(format!("{what}: there is no file that it could be about"))
            .hint("name one: tpu submit job.yaml --set key=value")),
    }
}

/// Refuses a word that names a file of another kind, and nothing else: whoever types it means a file of jobs.
pub(super) fn refuse_other_files(app: &App, words: &[String]) -> Result<(), Error> {
    let ctx = app.ctx()?;
    let data = ctx.data()?;
    let is_other = |word: &&String| {
        let is_known = data.resolve_target(word).is_some()
            || data.user(&UserName::from(word.as_str())).is_some()
            || parse_type(word).is_some()
            || named::is_of_several(&data, word);
        let is_plain = !word.contains('=') && word.parse::<u32>().is_err();
        is_plain && !is_known && ctx.env.cwd.join(word).is_file()
    };
    let Some(word) = words.iter().find(is_other) else { return Ok(()) };
    let hint = if Path::new(word).extension().is_some_and(|end| end == "sh") {
        format!(
            "a batch script of Slurm becomes one: tpu convert sbatch {word} > job.yaml; a command stands behind --: -- bash {word}"
        )
    } else {
        format!("give it that name: mv {word} {word}.yaml; `tpu help submit` shows a job file")
    };
    Err(Error::usage(format!("{word} is a file, and job files end in .yaml or .yml")).hint(hint))
}

/// Starts what was asked for, or says what would be started.
pub(super) fn start(app: &App, args: &Run, mut request: RunRequest) -> Result<Ran, Error> {
    let ctx = app.ctx()?;
    let mut notes = Vec::new();
    if let Some(wish) = &Wish::of(&request) {
        match choose::choose(app, args, wish, &mut request, &mut notes)? {
            Chosen::Launched(launched) => return Ok(ran(&launched, notes)),
            Chosen::WouldWait(what) => {
                let text = format!("Would be {what}.");
                let plan = WaitPlanPart { user: &wish.user, waits_for: &what };
                let output = Output::new(text, &WaitPlanDocument { plan }).notes(notes);
                return Ok(Ran { job: None, output });
            }
            Chosen::Would => {}
        }
    }
    if app.global.dry_run {
        let plan = launch::plan(ctx, &request)?;
        let (argv, script, text) = in_words(ctx, &plan)?;
        let document = LaunchPlanDocument {
            plan: LaunchPlanPart {
                user: &plan.user,
                target: &plan.target.name,
                zone: plan.target.zone.as_deref(),
                dir: &plan.dir,
                mode: Word(plan.mode),
                argv,
                script,
                members: plan.spec.array.as_ref().map(|array| array.indexes().to_vec()),
            },
        };
        return Ok(Ran { job: None, output: Output::new(text, &document).notes(notes) });
    }
    if make_usable(app, request.target(), args.apply)? {
        launch::provide_target(ctx, &request)?;
    }
    if request.spec.array.is_some() {
        return Ok(group_ran(&launch::launch_group(ctx, &request)?, notes));
    }
    let launched = launch::launch(ctx, &request)?;
    Ok(ran(&launched, notes))
}

/// Says which jobs of a group have started, and which have not.
fn group_ran(launched: &LaunchedGroup, mut notes: Vec<String>) -> Ran {
    /// Nobody reads more.
    const MOST: usize = 10;
    let LaunchedGroup { group, target, members, failed, unsure } = launched;
    let numbers = |(member, job): &(Member, Launched)| format!("{member} is {}", job.job.window);
    let which = match members.as_slice() {
        [only] => numbers(only),
        [first, .., last] => format!("{} to {}", numbers(first), numbers(last)),
        [] => String::new(),
    };
    let jobs = counted(members.len(), "job");
    let which = if which.is_empty() { which } else { format!(": {which}") };
    let text = format!("Started {jobs} of group {group} on {target}{which}.");
    let lists = [(failed, "were not started"), (unsure, "may have started: tpu check")];
    for (list, what) in lists {
        notes.extend(list.iter().take(MOST).map(|(member, error)| format!("{member}: {error}")));
        if list.len() > MOST {
            notes.push(format!("and {} more {what}", list.len() - MOST));
        }
    }
    let code = u8::from(!failed.is_empty() || !unsure.is_empty());
    let output = Output::new(text, &LaunchedGroupDocument::from(launched)).notes(notes).code(code);
    Ran { job: Some(group.clone()), output }
}

/// Says that a job has started.
fn ran(launched: &Launched, notes: Vec<String>) -> Ran {
    let output = Output::new(launched.in_words(), &LaunchedDocument::from(launched)).notes(notes);
    Ran { job: Some(launched.job.clone()), output }
}

/// Whether the target is to be made usable first: it is not, and somebody wants it.
pub(in crate::cli) fn make_usable(app: &App, target: &str, apply: bool) -> Result<bool, Error> {
    let is_wanted = apply || app.global.yes;
    // The launch says itself what is in the way; whoever cannot be asked need not hear it before.
    if !is_wanted && !app.may_ask() {
        return Ok(false);
    }
    let Some(obstacle) = fleet::obstacle(app.ctx()?, target)? else { return Ok(false) };
    Ok(is_wanted || app.may_ask() && app.confirm(&format!("{obstacle}. Make it usable first?"))?)
}

/// What was typed.
pub(super) fn request(
    app: &App,
    args: &Run,
    data: &Data,
    begins: Begins,
) -> Result<RunRequest, Error> {
    request_of(app, args, selection::sort(&args.words, data)?, data, begins)
}

/// Whether any target of a type will do.
fn is_of_type(target: &TargetRequest) -> bool {
    matches!(target, TargetRequest::Any(any_of) if any_of.among.is_empty())
}

/// The same of words that are sorted already, or of what a file says instead of them.
pub(super) fn request_of(
    app: &App,
    args: &Run,
    mut sorted: Sorted,
    data: &Data,
    begins: Begins,
) -> Result<RunRequest, Error> {
    sorted.no_selector()?;
    name_usual_target(app, args, &mut sorted)?;
    let types = choose::types(args, &mut sorted, data, begins);
    let policy = args.policy.as_deref().map(choose::policy).transpose()?;
    let among = choose::among(args, &mut sorted, data)?;
    let reclaimable = match (args.norm, args.pre) {
        (true, _) => Some(false),
        (_, true) => Some(true),
        _ => None,
    };
    let target = match (types, among) {
        (_, Some(among)) => {
            TargetRequest::Any(AnyOf { among, policy, reclaimable, ..AnyOf::default() })
        }
        (Some(types), None) if sorted.rest.is_empty() => {
            let zones = args.zone.clone();
            TargetRequest::Any(AnyOf { types, reclaimable, zones, ..AnyOf::default() })
        }
        (Some(_) | None, None) => TargetRequest::Named(target(&mut sorted, data)?),
    };
    let user = app.user(data, sorted.user.take())?;
    if let Some(zone) = args.zone.first().filter(|_| !is_of_type(&target)) {
        return Err(Error::usage(format!("--zone {zone}: what is named is where it is"))
            .hint("it is about types: tpu submit v6e-16 --zone us-east5-b"));
    }
    if let TargetRequest::Named(target) = &target
        && begins == Begins::Now
        && (args.auto || args.wait || args.norm || args.pre)
    {
        return Err(Error::usage(format!("{target} is one target: there is nothing to choose"))
            .hint("name a type to choose among: tpu run v2-32 --auto"));
    }
    let array = match &args.array {
        None => None,
        Some(typed) => Some(Array::parse(typed).map_err(|error| {
            Error::usage(format!("--array {typed}: {error}"))
                .hint("as in --array 0-3, 0,2,5-7 or 0-9%2")
        })?),
    };
    if let (Some(_), TargetRequest::Any(any), Begins::Now) = (&array, &target, begins) {
        let what =
            format!("a group needs one target that takes several jobs, not {}", any.in_words());
        return Err(
            Error::refused(what).hint("name it, as in: tpu run local --array 0-3 -- COMMAND")
        );
    }
    let dir = directory(&mut sorted)?;
    let monitor = match sorted.take("monitor") {
        None => true,
        Some(text) => flag(&text).ok_or_else(|| {
            Error::usage(format!("monitor={text}: not a truth value")).hint("true or false")
        })?,
    };
    let mut notes = sorted.take("ssn");
    if args.ask_notes && notes.is_none() {
        if !app.may_ask() {
            return Err(Error::usage("-ssn asks for notes, and there is nobody to ask")
                .hint("give them: ssn=NOTES"));
        }
        notes = Some(console::ask("Notes: ")?);
    }
    warn_of_aliases(app.ctx()?, (data, &user), &args.words, &Ask::KEYS);
    let ask = ask(&mut sorted)?;
    let tag = sorted.take("tag").or_else(|| notes.clone().filter(|_| !args.no_tag));
    let rules = sorted.take("rule");
    let command = (!args.command.is_empty()).then(|| args.command.clone());
    if let Some(name) = &args.name {
        names::refuse_as_job(name, &legacy::command_words())?;
    }
    let spec = JobSpec {
        name: args.name.clone(),
        array,
        dir: Some(dir),
        configs: sorted.pairs,
        command,
        tag,
        notes,
        rules,
        monitor,
        log_stage: args.log_stage,
        ask,
        options: args.of_kind.said.clone(),
        execution: Execution { notify: notify::typed(&args.notify)?, ..Execution::default() },
        ..JobSpec::on(target)
    };
    Ok(RunRequest { user, spec, on: None, force: args.force })
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

/// What is asked of the target beside a place: `gpus=2`, `gpu=0,2`, `cpus=8`, `mem=32G`.
fn ask(sorted: &mut Sorted) -> Result<Ask, Error> {
    let mut ask = Ask::default();
    for key in Ask::KEYS {
        let Some(value) = sorted.take(key) else { continue };
        if let Some(Err((expected, example))) = ask.say(key, &value) {
            return Err(Error::usage(format!("{key}={value} is not {expected}"))
                .hint(format!("as in {example}")));
        }
    }
    Ok(ask)
}

/// Where no target is named, what is said of one kind of target alone may say which is meant.
fn name_usual_target(app: &App, args: &Run, sorted: &mut Sorted) -> Result<(), Error> {
    let is_named = |(key, _): &(String, String)| matches!(key.as_str(), "tpu" | "ka");
    if !sorted.rest.is_empty() || sorted.pairs.iter().any(is_named) {
        return Ok(());
    }
    let ctx = app.ctx()?;
    let usual = ctx.kinds.all().find_map(|kind| kind.usual_target(&args.of_kind.said, ctx));
    sorted.rest.extend(usual.transpose()?.map(|name| name.to_string()));
    Ok(())
}

/// The one word that is left is the target; the original also knew `tpu=`.
fn target(sorted: &mut Sorted, data: &Data) -> Result<String, Error> {
    let named = sorted.take("tpu").or_else(|| sorted.take("ka"));
    let is_target = |word: &&String| data.resolve_target(word).is_some();
    let has_target = named.is_some() || sorted.rest.iter().any(|word| is_target(&word));
    if let Some(word) = sorted.rest.iter().find(|word| has_target && !is_target(word)) {
        let users = data.users().iter().map(|user| user.name.as_str());
        return Err(Error::not_found(format!("'{word}' is neither a user nor a target")).hint(
            did_you_mean(word, users).unwrap_or_else(|| {
                "`tpu list-users` lists the users; a command stands behind --".to_owned()
            }),
        ));
    }
    match (named, sorted.rest.as_slice()) {
        (Some(target), []) => Ok(target),
        (None, [target]) => Ok(target.clone()),
        (None, []) => Err(Error::usage("on which target?")
            .hint("as in: tpu run v2-32-p2 (`tpu -lta` lists them; `local` is this machine)")),
        (named, words) => {
            let all: Vec<&str> =
                named.iter().map(String::as_str).chain(words.iter().map(String::as_str)).collect();
            Err(Error::usage(format!("one of these too many: {}", all.join(", ")))
                .hint("one target and one user; configs are KEY=VALUE; a command stands behind --"))
        }
    }
}

/// `dir=N` or a bare N; slot 1 if neither is given.
fn directory(sorted: &mut Sorted) -> Result<u32, Error> {
    let named = match sorted.take("dir") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            Error::usage(format!("dir={text}: slots are numbers")).hint("`tpu ls` lists them")
        })?),
    };
    let windows = sorted.windows.first().map(|window| {
        Error::usage(format!("w={window} means nothing here")).hint("a directory is dir=N")
    });
    if let Some(error) = windows {
        return Err(error);
    }
    let all: Vec<u32> = named.into_iter().chain(sorted.numbers.iter().copied()).collect();
    match all.as_slice() {
        [] => Ok(1),
        [one] => Ok(*one),
        _ => Err(Error::usage("one directory at a time, please").hint("as in dir=2")),
    }
}

/// Truth values in the spellings of the original.
fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "1" => Some(true),
        "false" | "False" | "0" => Some(false),
        _ => None,
    }
}
