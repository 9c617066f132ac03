//! What a job asks for, of the words that say it: typed behind `run` and `submit`, or written in a job file.

mod target;

use std::ffi::OsString;
use std::path::PathBuf;

use tpu_core::model::arguments::ArgumentStyle;
use tpu_core::model::capacity::Ask;
use tpu_core::model::data::Data;
use tpu_core::model::execution::Execution;
use tpu_core::model::ids::UserName;
use tpu_core::model::member::Array;
use tpu_core::model::notify::Receiver;
use tpu_core::model::options::KindOptions;
use tpu_core::model::spec::{AnyOf, JobSpec, TargetRequest};

use crate::act::launch::RunRequest;
use crate::act::selection::Sorted;
use crate::base::code_dir;
use crate::{Ctx, Error};

/// When a job is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    /// At once, or after a wait at the terminal.
    Now,
    /// When its turn in the queue comes.
    InTurn,
}

/// What is said beside the words: options of a command line, keys of a file.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Whether it goes on where a check would refuse.
    pub force: bool,
    /// Whether any target will do.
    pub is_any: bool,
    /// Whether it waits for its target.
    pub waits: bool,
    /// Reclaimable targets only, or on-demand ones only.
    pub reclaimable: Option<bool>,
    /// Zones, regions or continents of a type.
    pub zones: Vec<String>,
    /// How one of several machines is chosen.
    pub policy: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The members of the group that it is to be.
    pub array: Option<String>,
    /// Its command.
    pub command: Option<Vec<OsString>>,
    /// The directory of its code, where no slot is named.
    pub code: Option<PathBuf>,
    /// Options of one kind of target.
    pub options: KindOptions,
    /// Who is told of it.
    pub notify: Option<Vec<Receiver>>,
    /// Whether the program is told how often it was resumed.
    pub log_stage: bool,
    /// How its program takes the configs.
    pub arguments: Option<ArgumentStyle>,
    /// Whether the notes are no tag.
    pub notes_are_no_tag: bool,
}

/// Says whose the job is, by the user whom the words name, if they name one.
pub type Whose<'a> = dyn Fn(Option<UserName>) -> Result<UserName, Error> + 'a;

/// What a job asks for. Words that mean nothing here are refused.
pub fn of_words(
    ctx: &Ctx,
    data: &Data,
    (mut sorted, whose): (Sorted, &Whose<'_>),
    (said, begins): (&Beside, Begins),
) -> Result<RunRequest, Error> {
    sorted.no_selector()?;
    target::name_usual_target(ctx, said, &mut sorted)?;
    let types = target::types(said, &mut sorted, data, begins);
    let policy = said.policy.as_deref().map(target::policy).transpose()?;
    let among = target::among(said, &mut sorted, data)?;
    let target = match (types, among) {
        (_, Some(among)) => TargetRequest::Any(AnyOf {
            among,
            policy,
            reclaimable: said.reclaimable,
            ..AnyOf::default()
        }),
        (Some(types), None) if sorted.rest.is_empty() => {
            let zones = said.zones.clone();
            TargetRequest::Any(AnyOf {
                types,
                reclaimable: said.reclaimable,
                zones,
                ..AnyOf::default()
            })
        }
        (Some(_) | None, None) => TargetRequest::Named(target::target(&mut sorted, data)?),
    };
    let user = whose(sorted.user.take())?;
    if let Some(zone) = said.zones.first().filter(|_| !target::is_of_type(&target)) {
        return Err(Error::usage(format!("--zone {zone}: what is named is where it is"))
            .hint("it is about types: tpu submit v6e-16 --zone us-east5-b"));
    }
    if let TargetRequest::Named(target) = &target
        && begins == Begins::Now
        && (said.is_any || said.waits || said.reclaimable.is_some())
    {
        return Err(Error::usage(format!("{target} is one target: there is nothing to choose"))
            .hint("name a type to choose among: tpu run v2-32 --auto"));
    }
    let array = match &said.array {
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
    let notes = sorted.take("ssn");
    let ask = ask(&mut sorted)?;
    let tag = sorted.take("tag").or_else(|| notes.clone().filter(|_| !said.notes_are_no_tag));
    let rules = sorted.take("rule");
    let options = ctx.kinds.kept(said.options.clone(), Some(&ctx.env.cwd))?;
    // A script stages its code as it says itself.
    let is_command = said.command.is_some();
    let settings = is_command.then(|| ctx.settings(data.user(&user))).transpose()?;
    let (outputs, checkpoint_dir) =
        settings.map(|settings| (settings.outputs, settings.checkpoint_dir)).unwrap_or_default();
    let mut spec = JobSpec {
        name: said.name.clone(),
        array,
        dir: Some(dir.unwrap_or(1)),
        configs: sorted.pairs,
        command: said.command.clone(),
        tag,
        notes,
        rules,
        monitor,
        log_stage: said.log_stage,
        arguments: said.arguments,
        ask,
        options,
        execution: Execution {
            notify: said.notify.clone(),
            outputs,
            checkpoint_dir,
            ..Execution::default()
        },
        ..JobSpec::on(target)
    };
    // What copies nothing keeps its slot.
    let is_copied = ctx.kinds.all().all(|kind| kind.copies_code(&spec.options));
    if let Some(code) = said.code.as_ref().filter(|_| dir.is_none() && is_copied) {
        code_dir::stand_in(ctx, &mut spec, code)?;
    }
    Ok(RunRequest { force: said.force, ..RunRequest::new(user, spec) })
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

/// `dir=N` or a bare N, if either is given.
fn directory(sorted: &mut Sorted) -> Result<Option<u32>, Error> {
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
        [] => Ok(None),
        [one] => Ok(Some(*one)),
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
