//! Everything that must hold before a job is started. All problems are reported together.

use std::ffi::OsString;
use std::path::Path;

use crate::act::hosts::probe;
use crate::act::lately::Lately;
use crate::act::stage;
use crate::base::account::submitter;
use crate::base::code_dir::{self, whole_path};
use crate::base::confined;
use crate::base::ctx::user_of;
use crate::base::error::did_you_mean;
use crate::base::launch_paths::roots_at;
use crate::base::named::resolve_target;
use crate::base::reservations::may_take;
use crate::base::{environment, names, secrets};
use crate::observe::fleet::AskedOnce;
use crate::observe::{doors, runners};
use crate::{Ctx, Error};
use tpu_core::model::arguments::ArgumentStyle;
use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::{TargetState, TargetStep};
use tpu_core::model::job::{Job, LaunchMode};
use tpu_core::model::repository::Repository;
use tpu_core::model::rules::{NAMED, Rules};
use tpu_core::model::settings::Settings;
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::target::{Machines, Target};
use tpu_core::text::is_a_slip;
use tpu_engine::runner::RunError;

use super::code::{directory, is_small_enough};
use super::plan::{LaunchPlan, Machine, Provided};
use super::room::{self, Applicant};
use super::{RunRequest, command};

/// Checks a request and completes it to a plan. `provided` says whether the target must be usable already,
/// or is made so between the check and the launch.
pub fn check(ctx: &Ctx, request: &RunRequest, provided: Provided) -> Result<LaunchPlan, Error> {
    check_lately(ctx, request, (provided, false), &Lately::default())
}

/// The same with what was asked a moment ago. `is_queued`: the queue starts it.
pub(super) fn check_lately(
    ctx: &Ctx,
    request: &RunRequest,
    (provided, is_queued): (Provided, bool),
    lately: &Lately,
) -> Result<LaunchPlan, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &request.user)?;
    let settings = ctx.settings(Some(user))?;
    let mut problems = Vec::new();

    let spec = &request.spec;
    // What has waited keeps to its own limit, whoever it is that lets it begin.
    let only_on =
        if is_queued { &spec.execution.only_on } else { confined::limit(ctx, &spec.execution) };

    let dir = note(&mut problems, directory(user, spec));
    let target = note(&mut problems, resolve_target(&data, request.target()));
    let rules = note(&mut problems, rules((ctx, &data), spec, target.as_ref()));
    let command = spec.command.clone().or_else(|| {
        settings.command.as_ref().map(|words| words.iter().map(OsString::from).collect())
    });
    let mode = if command.is_some() { LaunchMode::Native } else { LaunchMode::Script };
    let style = style(spec, mode, &settings);
    let args = note(&mut problems, arguments(user, (spec, style)));
    if let Some(staged) = &spec.staged {
        note(&mut problems, stage::is_kept(staged));
    } else if let Some(dir) = &dir {
        note(&mut problems, command::runnable((dir, spec), mode, request.force));
        note(&mut problems, is_small_enough(ctx, (user, &settings), request, dir));
    }
    if let Some(name) = &spec.name {
        note(&mut problems, names::refuse_for_job(&data, user, name));
        note(&mut problems, names::refuse_in_use(user, name, (None, spec.member)));
    }
    if let Some(target) = &target {
        note(&mut problems, confined::may_run_on(only_on, target));
        note(&mut problems, has_workplace(ctx, target, spec));
        note(&mut problems, stays_here(ctx, spec, std::slice::from_ref(target)));
        note(&mut problems, understood(ctx, target, spec));
        note(&mut problems, takes_several((ctx, &data), target, spec));
        note(&mut problems, carried_out((ctx, &data), target, (spec, mode)));
        note(&mut problems, hands_on_secrets((ctx, &data), target, spec));
    }
    note(&mut problems, secrets::are_there(ctx, &spec.execution, &request.environment.given));
    if let Some(args) = &args {
        note(&mut problems, passable(args, mode, request.force));
    }
    let machine = match (&target, provided) {
        (Some(target), Provided::Already) => note(
            &mut problems,
            usable(ctx, target, &AskedOnce::new(ctx, &data, &target.name), mode, request.force),
        )
        .flatten(),
        (None, _) | (_, Provided::Later | Provided::LaterByRule) => None,
    };
    let asked = target.as_ref().filter(|_| provided == Provided::Already);
    let asked = asked.and_then(|target| {
        let known = request.on.as_ref().and_then(|chosen| chosen.busy.clone());
        let busy = known.map_or_else(|| probe::before_start(ctx, &data, target), Ok);
        if request.force { busy.ok() } else { note(&mut problems, busy) }
    });
    let busy = asked.unwrap_or_default();
    let occupants = target
        .as_ref()
        .and_then(|target| {
            let applicant = Applicant { target, ask: &spec.ask, busy: &busy, but: None, is_queued };
            let room = room::check(ctx, &data, &applicant, (provided, request.force), lately);
            note(&mut problems, room)
        })
        .unwrap_or_default();
    if let Some(target) =
        target.as_ref().filter(|target| !target.capacity.is_unlimited() && !request.force)
    {
        note(&mut problems, may_take(&data, &target.name, &user.name, ctx.clock.now()));
    }

    let (Some(dir), Some(target), Some(args), Some(rules)) = (dir, target, args, rules) else {
        return Err(Error::all(problems).expect("whatever is missing has left a problem"));
    };
    if let Some(error) = Error::all(problems) {
        return Err(error);
    }
    let roots = roots_at(ctx, &data, user, &target)?;
    let mut spec =
        JobSpec { chosen: request.on.as_ref().map(|chosen| chosen.reason.clone()), ..spec.clone() };
    if mode == LaunchMode::Native && target.is_here() && code_dir::is_home(ctx, &spec) {
        spec.execution.workplace = Some(dir.clone());
    }
    spec.arguments = spec.arguments.or((mode == LaunchMode::Native).then_some(style));
    spec.execution.only_on.clone_from(only_on);
    if !is_queued {
        spec.execution.submitted_by = submitter(ctx, &data, &user.name);
    }
    if mode == LaunchMode::Native && target.machines != Machines::Engine {
        let copies = spec.execution.workplace.is_none() && spec.staged.is_none();
        roots.may_be_used(&user.name, copies)?;
    }
    Ok(LaunchPlan {
        user: user.name.clone(),
        session: user.tmux_name.clone(),
        target,
        spec,
        dir,
        rules,
        mode,
        command,
        args,
        lineage_args: Vec::new(),
        stage: 0,
        parent: None,
        stage_dir: None,
        roots,
        force: request.force,
        occupants,
        busy,
        machine,
        most: settings.max_parallel,
        forwarded: settings.forward_env,
        turn: None,
        entry: None,
        from: None,
        attempt: 0,
        avoid: Vec::new(),
        tracked_run: None,
        haul: None,
        env: environment::asked(ctx, &request.environment),
    })
}

/// What is known of a job that may wait, before there is a place for it.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The directory of its code; empty where that comes from a repository.
    pub dir: String,
    /// Script or native.
    pub mode: LaunchMode,
    /// The command of its user, where it brings none.
    pub command: Option<Vec<String>>,
    /// How its program takes the configs.
    pub arguments: ArgumentStyle,
}

impl Ready {
    /// That command, word by word: it stays as it was when the job was submitted.
    pub fn words(&self) -> Option<Vec<OsString>> {
        self.command.as_ref().map(|words| words.iter().map(OsString::from).collect())
    }
}

/// What of a job a problem is about, for whoever knows where that is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeantKey {
    /// Its target.
    Target,
    /// Where its code is.
    Code,
    /// Its command.
    Command,
    /// What its program is given as configs.
    Configs,
    /// Its rules.
    Rules,
    /// Its name.
    Name,
    /// Its secrets.
    Secrets,
    /// The queue in which it waits.
    Queue,
    /// What has to end before.
    After,
}

/// Refuses what could begin nowhere as it is, before it waits for a place, and tells each problem with the place of what it
/// is about. What depends on the target is seen when there is one. Code of a `repository` is cloned when all else is right.
pub(crate) fn may_wait(
    ctx: &Ctx,
    (request, repository): (&RunRequest, Option<&Repository>),
    placed: &dyn Fn(MeantKey, Error) -> Error,
) -> Result<Ready, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &request.user)?;
    let settings = ctx.settings(Some(user))?;
    let (mut problems, spec) = (Vec::new(), &request.spec);
    let is_native = spec.command.is_some() || settings.command.is_some();
    let mode = if is_native { LaunchMode::Native } else { LaunchMode::Script };
    let at = |what: MeantKey| move |error: Error| placed(what, error);
    let dir = match repository {
        Some(_) => Some(String::new()),
        None => note(&mut problems, directory(user, spec).map_err(at(MeantKey::Code))),
    };
    if let Some(dir) = dir.as_deref().filter(|_| repository.is_none()) {
        let runnable = command::runnable((dir, spec), mode, request.force);
        note(&mut problems, runnable.map_err(at(MeantKey::Command)));
        let is_small = is_small_enough(ctx, (user, &settings), request, dir);
        note(&mut problems, is_small.map_err(at(MeantKey::Code)));
    }
    let among = match &spec.target {
        TargetRequest::Named(named) => std::slice::from_ref(named),
        TargetRequest::Any(any_of) => any_of.among.as_slice(),
    };
    let targets: Option<Vec<Target>> =
        among.iter().map(|named| resolve_target(&data, named).ok()).collect();
    let stays = stays_here(ctx, spec, &targets.unwrap_or_default());
    note(&mut problems, stays.map_err(at(MeantKey::Code)));
    let style = style(spec, mode, &settings);
    let args = arguments(user, (spec, style)).map_err(at(MeantKey::Configs));
    if let Some(args) = note(&mut problems, args) {
        note(&mut problems, passable(&args, mode, request.force).map_err(at(MeantKey::Configs)));
    }
    if let Some(rules) = &spec.rules {
        note(&mut problems, parse_rules(rules).map_err(at(MeantKey::Rules)));
    }
    if let Some(name) = &spec.name {
        let is_free = names::refuse_for_job(&data, user, name)
            .and_then(|()| names::refuse_in_use(user, name, (None, spec.member)));
        note(&mut problems, is_free.map_err(at(MeantKey::Name)));
    }
    match (Error::all(problems), dir) {
        (None, Some(dir)) => Ok(Ready { dir, mode, command: settings.command, arguments: style }),
        (error, _) => Err(error.expect("what is missing has left a problem")),
    }
}

/// Keeps a result, or remembers what is wrong with it.
fn note<T>(problems: &mut Vec<Error>, result: Result<T, Error>) -> Option<T> {
    result.map_err(|problem| problems.push(problem)).ok()
}

/// How a program takes the configs: scripts are written for the original.
fn style(spec: &JobSpec, mode: LaunchMode, settings: &Settings) -> ArgumentStyle {
    match mode {
        LaunchMode::Script => spec.arguments.unwrap_or_default(),
        LaunchMode::Native => spec.arguments.unwrap_or(settings.arguments),
    }
}

/// The arguments of the program: `key=value` pairs under their full names, then words as they stand.
pub(crate) fn arguments(
    user: &User,
    (spec, style): (&JobSpec, ArgumentStyle),
) -> Result<Vec<String>, Error> {
    let mut args = Vec::new();
    let mut problems = Vec::new();
    for (key, value) in &spec.configs {
        let full = match user.alias_in(style, key) {
            Some(full) => full,
            None if key.starts_with("config.") || key == "config" => key,
            None if style == ArgumentStyle::Hydra => key,
            None if style == ArgumentStyle::Flags => match nearly_special(key) {
                None => key,
                Some(special) => {
                    problems.push(
                        Error::usage(format!("'{key}={value}': did you mean {special}={value}?"))
                            .hint(format!("if your program takes it: -- COMMAND --{key}={value}")),
                    );
                    continue;
                }
            },
            None => {
                let known =
                    user.config_aliases.iter().map(|(alias, _)| alias.as_str()).chain(SPECIAL_KEYS);
                let hint = did_you_mean(key, known).unwrap_or_else(|| {
                    format!(
                        "a short name for a config: tpu -a {key} config.SECTION.NAME {}",
                        user.name
                    )
                });
                problems.push(
                    Error::usage(format!(
                        "'{key}={value}': '{key}' is no alias of {} and does not begin with 'config.'",
                        user.name
                    ))
                    .hint(hint),
                );
                continue;
            }
        };
        args.push(style.argument(full, value));
    }
    args.extend(spec.words.iter().cloned());
    Error::all(problems).map_or(Ok(args), Err)
}

/// Keys of `submit` that are no configs.
pub const KEYS_OF_SUBMIT: [&str; 6] =
    ["queue", "priority", "after", "after_any", "after_not", "after_each"];

/// The key of ours that somebody meant who has mistyped it by one letter. Of the shortest a program has its own that are as
/// near: `dim` is not `dir`.
fn nearly_special(key: &str) -> Option<&'static str> {
    let is_near = |ours: &&str| ours.len() > 3 && is_a_slip(key, ours);
    SPECIAL_KEYS.into_iter().chain(KEYS_OF_SUBMIT).find(is_near)
}

/// Keys of `run` that are no configs.
pub const SPECIAL_KEYS: [&str; 9] =
    ["dir", "tag", "rule", "monitor", "ssn", "gpus", "gpu", "cpus", "mem"];

/// The rules asked for, else the target's own; and what its file wants retried.
fn rules(known: (&Ctx, &Data), spec: &JobSpec, target: Option<&Target>) -> Result<Rules, Error> {
    let rules = match (spec.rules.as_deref(), target) {
        (Some(typed), _) => parse_rules(typed),
        (None, Some(target)) => parse_rules(target.default_rules(takes_away(known, target)?)),
        (None, None) => parse_rules("pass"),
    };
    Ok(rules?.retrying(spec.execution.retry.as_ref()))
}

/// Whether the engine of a target takes the place of jobs away, by its own word.
fn takes_away((ctx, data): (&Ctx, &Data), target: &Target) -> Result<bool, Error> {
    if target.machines != Machines::Engine {
        return Ok(false);
    }
    match runners::of_target(ctx, data, target)?.takes_away() {
        // Nothing begins by what is only tried out.
        Err(RunError::Unreachable(why)) if ctx.store.is_dry_run() => {
            ctx.warn([format!("whether its jobs are preempted is unknown: {why}")]);
            Ok(false)
        }
        other => Ok(other?),
    }
}

/// Reads `rule=`.
pub fn parse_rules(typed: &str) -> Result<Rules, Error> {
    Rules::parse(typed).map_err(|part| {
        let hint = did_you_mean(typed, NAMED).unwrap_or_else(|| {
            format!("one of {}, or EVENT:ACTION,… (`tpu check-rules` shows them)", NAMED.join(", "))
        });
        Error::usage(format!("rule '{typed}': {part} is not known")).hint(hint)
    })
}

/// What is asked of a job beside its command must mean something to its target's kind.
fn understood(ctx: &Ctx, target: &Target, spec: &JobSpec) -> Result<(), Error> {
    let Ok(kind) = ctx.kinds.of(target) else { return Ok(()) };
    let known = kind.job_options();
    match spec.options.names().find(|name| known.iter().all(|option| option.name != *name)) {
        None => Ok(()),
        Some(strange) => {
            let has: Vec<String> = known.iter().map(|own| format!("--{}", own.name)).collect();
            let hint = if has.is_empty() { "leave it out".to_owned() } else { has.join(", ") };
            let what = format!(
                "--{strange} says nothing to {}, which is {}",
                target.name,
                kind.in_words()
            );
            Err(Error::usage(what).hint(hint))
        }
    }
}

/// The jobs of a group run side by side: all of them, unless what runs them can keep some back.
fn takes_several((ctx, data): (&Ctx, &Data), target: &Target, spec: &JobSpec) -> Result<(), Error> {
    let Some(array) = &spec.array else { return Ok(()) };
    if target.is_exclusive() {
        let what = format!("{} takes one job at a time, and no group", target.name);
        let hint = "a group needs a target that takes several, as `local` does";
        return Err(Error::refused(what).hint(hint));
    }
    let members = array.indexes().len();
    if let Some(jobs) = target.capacity.jobs.filter(|jobs| (*jobs as usize) < members) {
        let what =
            format!("{} takes {jobs} jobs at a time, and no group of {members}", target.name);
        return Err(Error::refused(what).hint("a group starts whole: make it smaller"));
    }
    match array.at_once() {
        Some(at_once) if !runners::of_target(ctx, data, target)?.limits_groups() => {
            let what = format!("{} starts all members of a group at once", target.name);
            let hint = format!("leave out %{at_once}, or take a target whose engine queues jobs");
            Err(Error::refused(what).hint(hint))
        }
        Some(_) | None => Ok(()),
    }
}

/// How its command is carried out must be something that happens on its target.
fn carried_out(
    (ctx, data): (&Ctx, &Data),
    target: &Target,
    (spec, mode): (&JobSpec, LaunchMode),
) -> Result<(), Error> {
    let execution = &spec.execution;
    let name = &target.name;
    if mode == LaunchMode::Script && execution.is_limited() {
        return Err(Error::refused("timeout and idle_timeout are about a command")
            .hint("staging.sh starts it; write command: into the file"));
    }
    if mode == LaunchMode::Script && (execution.output.is_some() || execution.repeat.is_some()) {
        return Err(Error::refused("output and repeat are about a command")
            .hint("staging.sh starts it; write command: into the file"));
    }
    let said = [
        (!execution.setup.is_empty(), "setup"),
        (execution.workers.is_some(), "workers"),
        (execution.timeout_s.is_some(), "timeout"),
        (execution.idle_timeout_s.is_some(), "idle_timeout"),
    ];
    let mut said = said.into_iter().filter(|(is_said, _)| *is_said).map(|(_, key)| key);
    if target.machines == Machines::Engine {
        let runner = runners::of_target(ctx, data, target)?;
        return match said.find(|key| !runner.carries_out(key)) {
            None => Ok(()),
            Some(key) => Err(Error::refused(format!("{key}: is not supported yet for {name}"))
                .hint("leave it away, and do it in the command")),
        };
    }
    match said.next() {
        // Its first worker is this machine.
        Some("workers") if target.is_here() && execution.workers.as_deref() != Some(&[0]) => {
            let what = format!("workers: {name} is this machine, and has no others than worker 0");
            Err(Error::usage(what).hint("leave it away"))
        }
        Some(_) | None => Ok(()),
    }
}

/// The directory in which it runs as it lies there must be there, where that is this machine.
fn has_workplace(ctx: &Ctx, target: &Target, spec: &JobSpec) -> Result<(), Error> {
    let Some(there) = spec.execution.workplace.as_ref().filter(|_| target.is_here()) else {
        return Ok(());
    };
    if whole_path(ctx, there).is_dir() {
        return Ok(());
    }
    Err(Error::not_found(format!("dir: {there} is not there"))
        .hint("with code: none it is a directory of the machine on which it runs"))
}

/// A home directory is left to no other machine: it holds keys. Without a target nobody knows yet which it will be.
pub(crate) fn stays_here(ctx: &Ctx, spec: &JobSpec, targets: &[Target]) -> Result<(), Error> {
    let Some(code) = spec.code.as_ref().filter(|_| code_dir::is_home(ctx, spec)) else {
        return Ok(());
    };
    let elsewhere = targets.iter().find(|target| !target.is_here());
    if elsewhere.is_none() && !targets.is_empty() {
        return Ok(());
    }
    let where_to = elsewhere.map_or("another machine", |target| target.name.as_str());
    Err(holds_keys(&code.top, where_to))
}

/// What began in a home directory of this machine has no successor on another one, for the same reason.
pub(crate) fn stays_here_again(
    ctx: &Ctx,
    data: &Data,
    (job, target): (&Job, &Target),
) -> Result<(), Error> {
    let was_here = data.target(&job.tpu).is_some_and(|was| was.is_here());
    let goes = was_here && !target.is_here();
    let home = job.workplace().filter(|dir| goes && code_dir::holds_home(ctx, Path::new(dir)));
    home.map_or(Ok(()), |home| Err(holds_keys(home, target.name.as_str())))
}

fn holds_keys(dir: &str, where_to: &str) -> Error {
    Error::refused(format!("{dir} holds keys, and is not copied to {where_to}"))
        .hint("go to the directory of your code, or name it: -C PATH")
}

/// Its secrets must get where it runs.
fn hands_on_secrets(
    (ctx, data): (&Ctx, &Data),
    target: &Target,
    spec: &JobSpec,
) -> Result<(), Error> {
    if spec.execution.secrets.is_empty()
        || runners::of_target(ctx, data, target)?.hands_on_secrets()
    {
        return Ok(());
    }
    Err(Error::refused(format!("secrets: is not supported yet for {}", target.name))
        .hint("let the program read its key from a file of yours"))
}

/// The users' scripts expand their arguments unquoted: what a shell would take apart is refused.
fn passable(configs: &[String], mode: LaunchMode, force: bool) -> Result<(), Error> {
    if mode == LaunchMode::Native || force {
        return Ok(());
    }
    let plain = |c: char| c.is_alphanumeric() || "-_.,:/=+@%^~".contains(c);
    match configs.iter().find(|arg| !arg.chars().all(plain)) {
        Some(arg) => Err(Error::refused(format!(
            "{arg:?} holds blanks or shell characters, which staging.sh would take apart"
        ))
        .hint("use --force to pass it as it is, or run a command: tpu run TARGET -- COMMAND")),
        None => Ok(()),
    }
}

/// Jobs can be started on the target, by its control plane's word; native mode also needs a way to its
/// workers. Which machine it is now, if its control plane says so.
pub fn usable(
    ctx: &Ctx,
    target: &Target,
    asked: &AskedOnce<'_>,
    mode: LaunchMode,
    force: bool,
) -> Result<Option<Machine>, Error> {
    ctx.kinds.of(target).map_err(|unknown| doors::unusable(&target.name, &unknown))?;
    if target.is_here() {
        return Ok(None);
    }
    let name = &target.name;
    let fact = asked.fact();
    if !force {
        match fact.state.step() {
            TargetStep::Launch => {}
            TargetStep::Nothing => {
                let what = format!("whether {name} can be used is unknown: {}", fact.raw_state);
                return Err(Error::unreachable(what)
                    .hint("try again when its control plane answers, or use --force"));
            }
            TargetStep::Wait
            | TargetStep::DeleteThenCreate
            | TargetStep::Start
            | TargetStep::Create => {
                return Err(Error::refused(format!(
                    "{name} cannot be used: it is {}",
                    fact.raw_state
                ))
                .hint(format!(
                    "make it usable and start there: add --apply; or: tpu apply {name}"
                )));
            }
        }
    }
    if fact.is_flagged() {
        ctx.warn([format!("{name} is {}, and not well: {}", fact.raw_state, fact.complaint())]);
    }
    match (target.machines, mode) {
        (Machines::Engine, LaunchMode::Script) => {
            let what = format!("staging.sh cannot run on {name}: tpu has no files on its machines");
            return Err(
                Error::refused(what).hint(format!("give a command: tpu run {name} -- COMMAND"))
            );
        }
        (Machines::Engine, LaunchMode::Native) | (_, LaunchMode::Script) => {}
        (_, LaunchMode::Native) => drop(doors::workers_to_start(ctx, asked)?),
    }
    let is_up = fact.state == TargetState::Ready;
    let created_at = fact.created_at.filter(|_| is_up);
    Ok(created_at.map(|created_at| Machine { created_at, seen_at: fact.observed_at }))
}
