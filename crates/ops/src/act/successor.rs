//! Where a successor begins: at the newest checkpoint of its lineage or at the start, and in which copy of
//! the code. What is planned and what is done ask here, so that nothing is announced that cannot be done.

use std::path::Path;

use regex::Regex;

use tpu_core::model::arguments::{self, ArgumentStyle};
use tpu_core::model::data::{Data, User};
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Checkpoint, Job, Status, Succession};
use tpu_core::model::lineage;
use tpu_core::model::objects::ObjectAt;
use tpu_core::model::rules::Action;
use tpu_core::model::spec::Staged;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::choice::may_go_elsewhere;
use tpu_core::plan::resume_from::{CheckpointAt, ResumeFrom};
use tpu_engine::kinds::KindOfTarget;
use tpu_engine::runner::code_removal::is_without_code;
use tpu_engine::runner::files::{Files, Listing};

use super::checkpoints::work_dir::{self, Place, PlaceKind};
use super::checkpoints::{find, shelf};
use super::hosts::disk;
use super::target_spec::{self, Wish};
use crate::base::ctx::{job_of, user_of};
use crate::base::reservations::may_take;
use crate::base::{environment, secrets};
use crate::observe::checkpoint::{self, Checkpoints};
use crate::observe::fleet::ProviderFacts;
use crate::observe::lineage_attempts::{Attempts, attempts};
use crate::observe::printed::Printed;
use crate::observe::runners;
use crate::{Ctx, Error};

/// Seconds for which nothing of a lineage begins on a node again that it was lost with.
const AVOID_S: i64 = 3_600;

/// Where the code of a successor comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// The copy that an attempt of its lineage ran from.
    Staged(String),
    /// The copy that was made when it was submitted.
    Submitted(Staged),
    /// The directory in which the job's code is written, as it is now.
    AsItIs(String),
}

/// Where a successor of `job` would begin, and with which code. Fails where none can be made. Machines with disks of
/// their own are asked where there is nothing here.
pub fn of(
    ctx: &Ctx,
    user: &User,
    job: &Job,
    how: Succession,
) -> Result<(Option<ResumeFrom>, Code), Error> {
    with(ctx, user, job, how, Asked::Machines)
}

/// Who is asked for checkpoints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The disks that are seen from here: a look waits for nobody.
    Disks,
    /// And the machines on which attempts have run.
    Machines,
}

fn with(
    ctx: &Ctx,
    user: &User,
    job: &Job,
    how: Succession,
    asked: Asked,
) -> Result<(Option<ResumeFrom>, Code), Error> {
    let attempts = attempts(ctx, user, job);
    let on_machine = job.workplace().map(|there| Code::AsItIs(there.to_owned()));
    if how == Succession::Rerun {
        let code = on_machine.map_or_else(|| as_it_is(job, &attempts.known), Ok)?;
        return Ok((None, code));
    }
    let start = source(ctx, user, job, (&attempts, asked))?;
    let code = if let Some(on_machine) = on_machine {
        on_machine
    } else if start.is_from_nothing() {
        match &job.stage_dir {
            Some(staged) if has_code(ctx, job, staged)? => Code::Staged(staged.clone()),
            Some(_) | None => match job.staged() {
                Some(staged) if has_code(ctx, job, &staged.copy)? => {
                    Code::Submitted(staged.clone())
                }
                Some(_) | None => as_it_is(job, &attempts.known)?,
            },
        }
    } else {
        Code::Staged(staged(ctx, job, &attempts.known)?)
    };
    Ok((Some(start), code))
}

/// The nodes on which a successor is not to begin, and until when.
pub(super) fn avoided(
    job: &Job,
    lost_with: Vec<String>,
    now: Timestamp,
) -> Vec<(String, Timestamp)> {
    let known = job.recovery.iter().flat_map(|recovery| recovery.avoid.clone());
    let open = known.filter(|(node, until)| *until > now && !lost_with.contains(node));
    let mut avoided: Vec<_> = open.collect();
    avoided.extend(lost_with.into_iter().map(|node| (node, now.plus_seconds(AVOID_S))));
    avoided
}

/// Why an action on `job` would come to nothing, or where its successor would begin: everything that a
/// record, a directory or a setting decides, before anything is done or made.
pub(crate) fn could_begin(
    ctx: &Ctx,
    (data, fleet): (&Data, &ProviderFacts),
    user: &User,
    job: &Job,
    action: Action,
) -> Result<Option<ResumeFrom>, Error> {
    let name = &job.tpu;
    let target = data.resolve_target(name.as_str()).ok_or_else(|| unknown_target(job))?;
    let is_elsewhere = job.status.error().is_some_and(|kind| may_go_elsewhere(&target, kind));
    if !target.capacity.is_unlimited() && !is_elsewhere {
        // What is kept for somebody comes free again.
        may_take(data, name, &user.name, ctx.clock.now()).map_err(Error::passing)?;
    }
    if matches!(action, Action::Reapply | Action::Restart | Action::Wait) {
        target_spec::spec(data, name, &Wish::default(), &fleet.fact(data, name))?;
    }
    let how = if action == Action::Rerun { Succession::Rerun } else { Succession::Resume };
    with(ctx, user, job, how, Asked::Disks).map(|(start, _)| start)
}

/// The target of an attempt is in no register any more.
pub(crate) fn unknown_target(job: &Job) -> Error {
    Error::not_found(format!("the target {} of {} is not known any more", job.tpu, job.id()))
        .hint("name another one: tpu=TARGET (`tpu -lta` lists them)")
}

/// The youngest attempt with a complete checkpoint, or with a directory that may hold one.
fn source(
    ctx: &Ctx,
    user: &User,
    job: &Job,
    (attempts, asked): (&Attempts, Asked),
) -> Result<ResumeFrom, Error> {
    let named = ctx.settings(Some(user))?.checkpoint_dir;
    let look = Look {
        ctx,
        data: &*ctx.data()?,
        pattern: checkpoint_pattern(ctx, user)?,
        asked,
        lineage: &attempts.known,
    };
    let mut looked = Vec::new();
    let mut silent = None;
    // What never began has no say in what its lineage has reached.
    for attempt in attempts.known.iter().filter(|attempt| !attempt.never_began()) {
        let places = work_dir::places(attempt, named.as_deref());
        if places.iter().all(|place| place.kind == PlaceKind::WorkDir) {
            silent = silent.or_else(|| silence(ctx, attempt));
        }
        for place in places {
            if let Some(start) = look.at(job, attempt, &place)? {
                return Ok(start);
            }
            if place.kind != PlaceKind::WorkDir {
                looked.push(place.dir);
            }
        }
    }
    let lost =
        attempts.lost.map(|window| format!("the record of job {window}, before it, is gone"));
    match silent.or(lost) {
        None => Ok(ResumeFrom::Nothing(looked)),
        Some(why) => {
            Err(Error::refused(format!("whether {} has a checkpoint is unknown: {why}", job.id()))
                .hint(rerun(job)))
        }
    }
}

/// Looks for checkpoints of a lineage.
struct Look<'a> {
    ctx: &'a Ctx,
    data: &'a Data,
    pattern: Option<Regex>,
    asked: Asked,
    lineage: &'a [Job],
}

impl Look<'_> {
    /// What a successor of `job` begins from by what lies in a directory of an attempt; `None` where that is nothing.
    fn at(&self, job: &Job, attempt: &Job, place: &Place) -> Result<Option<ResumeFrom>, Error> {
        let (ctx, dir) = (self.ctx, &place.dir);
        let runner = runners::of(ctx, attempt);
        let files = runner.files();
        let is_work_dir = place.kind == PlaceKind::WorkDir;
        let unknown = |why: String| {
            Ok(Some(if is_work_dir {
                ResumeFrom::InWorkDir(dir.clone(), why)
            } else {
                ResumeFrom::Perhaps(dir.clone(), why)
            }))
        };
        let on_its_machine = || unknown(format!("{} has it on a disk of its own", attempt.tpu));
        let is_shown = work_dir::is_on_shown_disk(self.data, attempt);
        match place.kind {
            PlaceKind::Named if !is_shown && !dir.contains("://") => return on_its_machine(),
            // Nothing is copied for it, or its disk is asked by many questions.
            PlaceKind::WorkDir
                if !is_shown && attempt.workplace().is_some() || !files.is_seen_from_here() =>
            {
                return Ok(None);
            }
            PlaceKind::Log | PlaceKind::Named | PlaceKind::WorkDir => {}
        }
        match self.found(&*files, attempt, place) {
            Checkpoints::Newest(step, name) => {
                let lineage = (self.data, self.lineage);
                let other = match place.kind {
                    PlaceKind::Log => None,
                    PlaceKind::Named | PlaceKind::WorkDir => {
                        work_dir::shared_with(ctx, lineage, attempt, place)
                    }
                };
                match other {
                    Some(other) => unknown(format!(
                        "{other} keeps checkpoints in {dir} as well: name another one for each job (checkpoint_dir)"
                    )),
                    None => Ok(Some(ResumeFrom::Found(CheckpointAt {
                        dir: dir.clone(),
                        name,
                        step,
                        is_in_work_dir: is_work_dir,
                    }))),
                }
            }
            Checkpoints::HalfCopied(name) => Err(half_copied(dir, &name)),
            Checkpoints::Silent(why) => Err(silent_disk(job, &why)),
            Checkpoints::Unknown(why) => unknown(why),
            Checkpoints::NotHere
                if place.kind == PlaceKind::Log && !would_be_here(ctx, &*files, attempt, dir) =>
            {
                unknown(format!("{dir} cannot be seen from here"))
            }
            Checkpoints::NotHere | Checkpoints::None => {
                let is_asked = self.asked == Asked::Machines && place.kind != PlaceKind::Named;
                if is_asked && has_own(ctx, attempt, place)? {
                    return on_its_machine();
                }
                Ok(None)
            }
        }
    }

    fn found(&self, files: &dyn Files, attempt: &Job, place: &Place) -> Checkpoints {
        let since = match place.kind {
            PlaceKind::Log => None,
            PlaceKind::Named | PlaceKind::WorkDir => work_dir::since(attempt),
        };
        let pattern = self.pattern.as_ref();
        // A look waits for no bucket.
        let at = ObjectAt::parse(&place.dir).filter(|_| self.asked == Asked::Machines);
        match at.and_then(|at| Some((at, shelf::open(self.ctx).ok()?))) {
            Some((at, shelf)) => find::in_bucket_since(self.ctx, &shelf, (&at, since), pattern),
            None => checkpoint::find_since(files, &place.dir, pattern, since),
        }
    }
}

/// Nobody begins by a question that was not answered: a program that is sent where nothing is does not come back.
fn silent_disk(job: &Job, why: &str) -> Error {
    Error::unreachable(format!("whether {} has a checkpoint cannot be seen now: {why}", job.id()))
        .hint("nothing was changed; try again when its disk answers")
}

/// Nobody begins where a copy is not whole: the program would take it for the newest.
fn half_copied(log: &str, name: &str) -> Error {
    Error::refused(format!("{log}/{name} is a copy that is not whole"))
        .hint("complete it by the same copy again (tpu checkpoints copy …), or delete it")
}

/// Whether an attempt may have a checkpoint on a disk that only its machine sees.
fn has_own(ctx: &Ctx, attempt: &Job, place: &Place) -> Result<bool, Error> {
    let data = ctx.data()?;
    let own = match place.kind {
        PlaceKind::WorkDir => disk::holds_own(ctx, &data, attempt, &place.dir),
        PlaceKind::Log | PlaceKind::Named => disk::has_own(ctx, &data, attempt, &place.dir),
    };
    own.map_err(|error| {
        let what = format!("whether {} has a checkpoint is unknown: ", attempt.id());
        Error { message: what + &error.message, ..error }.hint(rerun(attempt))
    })
}

/// Why an attempt without a log directory may have a checkpoint all the same: it has come somewhere.
fn silence(ctx: &Ctx, attempt: &Job) -> Option<String> {
    // The numbers of one whose end is not written yet are on its window alone.
    let shown = || attempt.status.is_live().then(|| Printed::by_now(ctx, attempt).numbers());
    let numbers =
        attempt.reached.as_deref().cloned().or_else(shown).filter(|numbers| !numbers.is_empty());
    let progressed = attempt.recovery.as_ref().is_some_and(|recovery| recovery.progressed);
    // A setting, a loss or a share that is printed before the first step is nothing that would be lost.
    let (step, epoch) = numbers.as_ref().map_or((None, None), |numbers| {
        (numbers.step.filter(|step| *step > 0), numbers.epoch.filter(|epoch| *epoch > 0.0))
    });
    let far = match (step, epoch) {
        (Some(step), _) => format!("to step {step}"),
        (None, Some(epoch)) => format!("to epoch {epoch}"),
        (None, None) if progressed => "forward".to_owned(),
        (None, None) => return None,
    };
    Some(format!("{} came {far}, and its script never said where it logs", attempt.id()))
}

/// Whether a log directory would be seen if it were there: it is on this disk by our own doing or its script's,
/// and the disk is there. That is proven by the directory of its user alone: the one above may be the place
/// where a disk is not mounted.
fn would_be_here(ctx: &Ctx, files: &dyn Files, job: &Job, log: &str) -> bool {
    let target = ctx.data().ok().and_then(|data| data.target(&job.tpu));
    let kind = target.as_ref().and_then(|target| ctx.kinds.of(target).ok());
    let is_ours = job.is_native() || kind.is_some_and(KindOfTarget::is_disk_ours);
    // What an engine runs has no place: its files are those that it sees, wherever they lie.
    let is_of_this_host = match &job.place {
        Some(place) => place.host == ctx.env.hostname,
        None => job.engine.is_some(),
    };
    let path = Path::new(log);
    let is_beside_the_data = path.starts_with(ctx.store.paths().state());
    let is_unused_or_in_use = |path: &Path| is_unused_or_in_use(files, path);
    let has_disk = files.has_disk(path)
        || is_beside_the_data && path.ancestors().nth(2).is_some_and(is_unused_or_in_use);
    is_of_this_host && is_ours && has_disk
}

/// Whether a directory was never made, or holds something: then no disk is missing there.
fn is_unused_or_in_use(files: &dyn Files, dir: &Path) -> bool {
    match files.list(dir) {
        Ok(Listing::Entries { entries, .. }) => !entries.is_empty(),
        Ok(Listing::NotThere) => true,
        Ok(Listing::NoDirectory) | Err(_) => false,
    }
}

/// Whether a directory is there, by the disk that an attempt sees.
fn is_dir(ctx: &Ctx, attempt: &Job, dir: &str) -> Result<bool, Error> {
    runners::of(ctx, attempt).files().is_dir(Path::new(dir)).map_err(|e| {
        Error::unreachable(format!("whether {dir} is there cannot be seen: {e}"))
            .hint("nothing was changed; try again when its disk is there")
    })
}

/// Whether a copy of code is there, and no part of its code was removed.
fn has_code(ctx: &Ctx, attempt: &Job, dir: &str) -> Result<bool, Error> {
    Ok(is_dir(ctx, attempt, dir)? && !is_without_code(Path::new(dir)))
}

/// The copy of the code that the lineage ran from last.
fn staged(ctx: &Ctx, job: &Job, attempts: &[Job]) -> Result<String, Error> {
    // What never began may name a copy that was never made.
    let mut began = None;
    for attempt in attempts {
        let is_made = || attempt.stage_dir.as_ref().map(|dir| is_dir(ctx, attempt, dir));
        if !attempt.never_began() || is_made().transpose()?.unwrap_or_default() {
            began = Some(attempt);
            break;
        }
    }
    let staged = began.and_then(|attempt| Some((attempt, attempt.stage_dir.as_ref()?)));
    let Some((attempt, dir)) = staged else {
        return Err(Error::refused(format!("{} never reported a stage directory", job.id()))
            .hint(rerun(job)));
    };
    if is_without_code(Path::new(dir)) {
        let what = format!("the code of {} was removed from its copy: {dir}", job.id());
        return Err(Error::not_found(what).hint(rerun(job)));
    }
    if !is_dir(ctx, attempt, dir)? {
        // Whoever asks within the first moments of an attempt finds its directories half made.
        if matches!(job.status, Status::Unset | Status::Starting) {
            return Err(Error::refused(format!("{} has no copy of its code yet: {dir}", job.id()))
                .hint("nothing was changed; try again when its program has begun"));
        }
        return Err(Error::not_found(format!(
            "the stage directory of {} is gone: {dir}",
            job.id()
        ))
        .hint(rerun(job)));
    }
    Ok(dir.clone())
}

/// The directory of the job, which must be there.
fn as_it_is(job: &Job, attempts: &[Job]) -> Result<Code, Error> {
    let dir = lineage::directory(job, attempts.iter().skip(1));
    if Path::new(dir).is_dir() {
        return Ok(Code::AsItIs(dir.to_owned()));
    }
    Err(Error::not_found(format!("the directory of {} is gone: {dir}", job.id()))
        .hint("bring it back, or start the code from where it is now: tpu run"))
}

/// No id is longer.
const SMALL: u64 = 4 << 10;

/// What a resume adds to the arguments, computed from the lineage and never stored: `--config.load_from=…` and its companions
/// for programs that take them, and what `resume_args` says. `attempt` is the number of attempts before it.
pub(super) fn resume_args(
    ctx: &Ctx,
    user: &User,
    (job, attempt): (&Job, u32),
    start: &ResumeFrom,
) -> Result<Vec<String>, Error> {
    let mut args = match job.arguments.unwrap_or_default() {
        ArgumentStyle::Config => load_args(ctx, user, job, start),
        ArgumentStyle::Flags | ArgumentStyle::Hydra => Vec::new(),
    };
    let own = job.execution().and_then(|execution| execution.resume_args.clone());
    let template = match own {
        Some(own) => Some(own),
        // The setting is about commands: scripts are given what the original gives them.
        None if job.is_native() => ctx.settings(Some(user))?.resume_args,
        None => None,
    };
    if let Some(template) = template {
        args.extend(arguments::resume_arguments(&template, start.told().as_ref(), attempt));
    }
    Ok(args)
}

/// From what a resume of `parent` begins by now, with the arguments that it adds.
pub(super) fn by_now(
    ctx: &Ctx,
    parent: &JobId,
    attempt: u32,
) -> Result<(Option<Checkpoint>, Vec<String>), Error> {
    let data = ctx.data()?;
    let (user, job) = (user_of(&data, &parent.user)?, job_of(&data, parent)?);
    let (start, _) = of(ctx, user, job, Succession::Resume)?;
    let args = start.as_ref().map(|start| resume_args(ctx, user, (job, attempt), start));
    Ok((start.as_ref().and_then(ResumeFrom::told), args.transpose()?.unwrap_or_default()))
}

/// `--config.load_from=…` and its companions. What begins from nothing has none.
fn load_args(ctx: &Ctx, user: &User, job: &Job, start: &ResumeFrom) -> Vec<String> {
    let Some(source) = start.directory() else { return Vec::new() };
    let mut args = vec![format!("--config.load_from={source}")];
    if job.log_stage {
        args.push(format!("--config.stage={}", job.stage + 1));
    }
    // On the disk of whoever wrote there.
    let wrote = user.jobs().iter().find(|job| job.log_dir.as_deref() == Some(source));
    let runner = runners::of(ctx, wrote.unwrap_or(job));
    let id = runner.files().read_own(&Path::new(source).join("wandb_run_id.txt"), 0, SMALL);
    if let Some(id) = id.ok().flatten().and_then(|id| String::from_utf8(id).ok()) {
        args.push(format!("--config.wandb_resume_id={}", id.trim()));
    }
    args
}

fn rerun(job: &Job) -> String {
    format!("start from scratch: tpu rerun w={} {}", job.windows_id, job.user)
}

/// The setting for unusual names of checkpoints.
fn checkpoint_pattern(ctx: &Ctx, user: &User) -> Result<Option<Regex>, Error> {
    let Some(text) = ctx.settings(Some(user))?.checkpoint_pattern else { return Ok(None) };
    Regex::new(&text).map(Some).map_err(|e| {
        Error::usage(format!("the setting checkpoint_pattern is no regular expression: {e}"))
            .hint("the step is its first group: ^weights-(\\d+)$")
    })
}

/// Refuses where what has not ended yet could not go on once it has: whoever stops it to begin it again would only have
/// stopped it.
pub fn could_follow(ctx: &Ctx, id: &JobId, how: Succession) -> Result<(), Error> {
    let data = ctx.data()?;
    let job = job_of(&data, id)?;
    drop(of(ctx, user_of(&data, &id.user)?, job, how)?);
    let Some(execution) = job.execution() else { return Ok(()) };
    secrets::are_there(ctx, execution, &environment::stored(ctx, id)?.unwrap_or_default().given)
}

/// The stored arguments; what does not parse as shell words is split at blanks. Arguments that
/// follow from a lineage are left out: the original stored them, and they would pile up.
pub(crate) fn stored_args(job: &Job) -> Vec<String> {
    const OF_LINEAGE: [&str; 3] =
        ["--config.load_from=", "--config.stage=", "--config.wandb_resume_id="];
    let words = shlex::split(&job.extra_configs)
        .unwrap_or_else(|| job.extra_configs.split_whitespace().map(str::to_owned).collect());
    let inherited = job.father.is_some();
    words
        .into_iter()
        .filter(|word| !(inherited && OF_LINEAGE.iter().any(|prefix| word.starts_with(prefix))))
        .collect()
}
