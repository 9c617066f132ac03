//! `resume` and `rerun`: a new attempt that succeeds an old one, once.

use std::collections::BTreeMap;
use std::path::Path;

use tpu_core::model::data::Data;
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::{JobId, TargetName};
use tpu_core::model::job::{Job, LaunchMode, Succession};
use tpu_core::model::lineage::Lineage;
use tpu_core::model::setup::SetUpHow;
use tpu_core::model::spec::{JobSpec, TargetRequest};
use tpu_core::model::target::{Machines, Target};
use tpu_core::plan::budget;
use tpu_core::plan::choice::Assignment;
use tpu_core::plan::resume_from::{self, ResumeFrom};
use tpu_engine::runner::{StopOrder, StopPart, Unreached};

use super::checkpoints::across;
use super::hosts::elsewhere::{self, Search};
use super::hosts::{disk, probe};
use super::lately::Lately;
use super::launch::attempt::{self, Launched};
use super::launch::check;
use super::launch::plan::{LaunchPlan, Parent, Provided, Reaction, Turn};
use super::launch::room::{self, Applicant};
use super::provision::Tell;
use super::successor::{self, Code};
use super::{missed, outlook, provision, reconcile};
use crate::base::ctx::{job_mut, job_of, user_of};
use crate::base::environment::{self, WhichEnvironment};
use crate::base::lease::{self, Held};
use crate::base::named::resolve_target;
use crate::base::{confined, launch_paths, records, secrets};
use crate::observe::fleet::AskedOnce;
use crate::observe::printed::reached;
use crate::observe::snapshot::{LookMemory, unrecorded_failure};
use crate::observe::{lineage_attempts, runners, tracked_run};
use crate::{Ctx, Error, Kind};

/// `tpu resume` or `tpu rerun`, resolved.
#[derive(Clone, Debug)]
pub struct AgainRequest {
    /// The attempt to succeed.
    pub job: JobId,
    /// From its checkpoint, or from scratch.
    pub how: Succession,
    /// Another target, alias or full name.
    pub target: Option<String>,
    /// Another target that was chosen for it, where none is named.
    pub on: Option<Assignment>,
    /// Go on where a check would refuse.
    pub force: bool,
    /// Also where it has not failed, but finished or was killed.
    pub however_ended: bool,
    /// Start from scratch where there is nothing to resume from; a person is asked before.
    pub from_nothing: bool,
    /// What of its set-up is done; without a word what is not so, whatever was said to the attempt before.
    pub setup: SetUpHow,
    /// The place in the queue in which the successor has waited: then it does not matter how the attempt has ended.
    pub turn: Option<Turn>,
    /// With which environment.
    pub environment: WhichEnvironment,
}

/// What came of it.
#[derive(Debug)]
pub struct Again {
    /// The new attempt.
    pub launched: Launched,
    /// The step of the checkpoint from which it goes on, where that is known.
    pub from_step: Option<u64>,
    /// What a person should know (a log directory that cannot be read, …).
    pub warnings: Vec<String>,
}

/// Starts the successor of a job.
pub fn again(ctx: &Ctx, request: &AgainRequest) -> Result<Again, Error> {
    reconcile::reconcile(ctx)?;
    let typed = request;
    let request = &meant(ctx, typed)?;
    missed::settle(ctx, &request.job, request.force)?;
    let (plan, mut warnings) = plan_with(ctx, request, Provided::Already)?;
    fail::fail_point!("resume-planned");
    let lease = lease::take(ctx, &request.job, |_| Ok(()))?;
    let launched = under_lease(ctx, request, &plan, &lease)?;
    if request.job != typed.job {
        let (parent, child) = (&typed.job, &request.job);
        warnings.push(format!("{child}, which was to continue {parent}, never began"));
    }
    Ok(Again { launched, from_step: plan.from.as_ref().and_then(|from| from.step), warnings })
}

/// The same request about the attempt that is meant: where the one that was named has a child that never
/// began, the same command typed again goes on from that child.
fn meant(ctx: &Ctx, request: &AgainRequest) -> Result<AgainRequest, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &request.job.user)?;
    let lineage = Lineage::of(user, request.job.window).map(|l| l.windows).unwrap_or_default();
    let below = lineage.iter().skip_while(|window| **window != request.job.window).skip(1);
    let below: Vec<&Job> = below.filter_map(|window| user.job(*window)).collect();
    let window = match below.last() {
        Some(leaf) if below.iter().all(|job| job.never_began()) => leaf.windows_id,
        Some(_) | None => request.job.window,
    };
    Ok(AgainRequest { job: JobId { window, ..request.job.clone() }, ..request.clone() })
}

/// Where a person's request would begin; `None` for a rerun.
pub fn start_of(ctx: &Ctx, request: &AgainRequest) -> Result<Option<ResumeFrom>, Error> {
    reconcile::reconcile(ctx)?;
    let request = meant(ctx, request)?;
    let data = ctx.data()?;
    let user = user_of(&data, &request.job.user)?;
    let job = job_of(&data, &request.job)?;
    successor::of(ctx, user, job, request.how).map(|(start, _)| start)
}

/// Makes the target of a request usable, if nothing else speaks against the new attempt. Tells each step. To be followed
/// by [`again`].
pub fn provide_target(ctx: &Ctx, request: &AgainRequest, tell: Tell<'_>) -> Result<(), Error> {
    let (plan, _) = plan_with(ctx, &meant(ctx, request)?, Provided::Later)?;
    provision::make_usable(ctx, &plan.target.name, tell)
}

/// What a rule asks for: the same target or, where that was lost with the job, another one; nothing that a check refuses, and from scratch where there is
/// nothing to resume from.
pub fn by_rules(job: &JobId, how: Succession) -> AgainRequest {
    AgainRequest {
        job: job.clone(),
        how,
        target: None,
        on: None,
        force: false,
        however_ended: false,
        from_nothing: true,
        setup: SetUpHow::Auto,
        turn: None,
        environment: WhichEnvironment::Kept,
    }
}

/// Starts the successor that a rule asks for. What it answers is counted in the transaction that claims
/// the child, or, where no child could be made, in the one that gives the lease back.
pub fn by_rule(ctx: &Ctx, request: &AgainRequest, reaction: &Reaction) -> Result<Again, Error> {
    let lease = lease::take(ctx, &request.job, |job| records::still_holds(job, &reaction.seen))?;
    by_rule_under(ctx, request, reaction, &lease)
        .map_err(|error| not_made(ctx, &lease, reaction, error))
}

/// The same under a lease that the caller has.
pub(crate) fn by_rule_under(
    ctx: &Ctx,
    request: &AgainRequest,
    reaction: &Reaction,
    lease: &Held,
) -> Result<Again, Error> {
    let search = elsewhere(ctx, request, reaction.event)?;
    let placed = AgainRequest { on: search.found.clone(), ..request.clone() };
    let (mut plan, warnings) = plan_with(ctx, &placed, Provided::Already)
        .map_err(|error| if search.found.is_none() { search.with_why(error) } else { error })?;
    if let Some(parent) = plan.parent.as_mut() {
        parent.reaction = Some(reaction.clone());
    }
    let launched = under_lease(ctx, request, &plan, lease)?;
    Ok(Again { launched, from_step: plan.from.as_ref().and_then(|from| from.step), warnings })
}

/// Another machine for a job that was lost with its own, if there is one.
fn elsewhere(ctx: &Ctx, request: &AgainRequest, event: ErrorKind) -> Result<Search, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &request.job.user)?;
    let job = job_of(&data, &request.job)?;
    // Disks are asked only where that could matter: others wait for what comes back.
    if !elsewhere::may_be(&data, job, event) {
        return Ok(Search::default());
    }
    let (start, _) = successor::of(ctx, user, job, request.how)?;
    let source = start.as_ref().and_then(ResumeFrom::directory);
    elsewhere::look(ctx, &data, (user, job), event, source)
}

/// Stops what is left of the lineage, and starts the successor.
fn under_lease(
    ctx: &Ctx,
    request: &AgainRequest,
    plan: &LaunchPlan,
    lease: &Held,
) -> Result<Launched, Error> {
    fail::fail_point!("resume-leased");
    let done = keep_failure(ctx, plan).and_then(|()| stop_leftovers(ctx, request)).and_then(|()| {
        fail::fail_point!("resume-stopped");
        lease::renew(ctx, lease)?;
        if let Some(haul) = &plan.haul {
            across::carry(ctx, haul, lease)?;
            lease::renew(ctx, lease)?;
        }
        let plan = looked_at_again(ctx, plan, &request.job)?;
        attempt::start(ctx, &plan, Some(lease))
    });
    if done.is_err() {
        // It runs out by itself; the error at hand says more than this one could.
        drop(lease::release(ctx, lease));
    }
    done
}

/// The GPUs that an attempt was given of a target.
fn own_gpus(job: &Job, target: &TargetName) -> Vec<u32> {
    let share = job.share.as_ref().filter(|_| job.tpu == *target);
    share.and_then(|share| share.gpus.clone()).unwrap_or_default()
}

/// The same plan with the GPUs on which somebody is still at work and the checkpoint that is the newest, now that what was left of the
/// lineage is stopped.
fn looked_at_again(ctx: &Ctx, plan: &LaunchPlan, parent: &JobId) -> Result<LaunchPlan, Error> {
    let data = ctx.data()?;
    let mut again = plan.clone();
    if !own_gpus(job_of(&data, parent)?, &plan.target.name).is_empty() {
        let busy = probe::before_start(ctx, &data, &plan.target);
        again.busy = if plan.force { busy.unwrap_or_default() } else { busy? };
    }
    // What was left of it may have saved, or removed what it had saved, until it was stopped.
    if plan.from.is_some() && plan.haul.is_none() {
        (again.from, again.lineage_args) = successor::by_now(ctx, parent, plan.attempt)?;
    }
    Ok(again)
}

/// Writes down why an attempt is succeeded, before an engine is told to stop what is left of it: from then on the
/// engine says no more than that somebody has stopped it.
fn keep_failure(ctx: &Ctx, plan: &LaunchPlan) -> Result<(), Error> {
    let Some(Parent { window, seen, failed: Some((kind, verdict)), .. }) = &plan.parent else {
        return Ok(());
    };
    ctx.transact(|tx| {
        let id = JobId::new(plan.user.clone(), *window);
        let job = job_of(&tx.data, &id)?;
        if job.engine.is_some() && job.status == *seen {
            records::failed(tx, &id, *kind, verdict)?;
        }
        Ok(())
    })
}

/// Refuses where the successor that a rule asks for could not be started even if its target were usable.
pub(crate) fn could_begin(ctx: &Ctx, request: &AgainRequest) -> Result<(), Error> {
    plan_with(ctx, request, Provided::LaterByRule).map(drop)
}

/// Counts a reaction that came to nothing, so that it is repeated later and not for ever.
pub(crate) fn not_made(ctx: &Ctx, lease: &Held, reaction: &Reaction, error: Error) -> Error {
    let counted = ctx.transact(|tx| {
        let now = tx.now;
        let job = job_mut(&mut tx.data, &lease.job)?;
        // What cannot be asked now, or has been overtaken, is no attempt.
        let is_tried = matches!(error.kind, Kind::Refused | Kind::NotFound | Kind::Failed);
        let stands = records::still_holds(job, &reaction.seen).is_ok();
        lease.check(job)?;
        lease::free(job);
        if stands && records::needs_login(tx, &lease.job, &error)? {
            return Ok(());
        }
        let job = job_mut(&mut tx.data, &lease.job)?;
        if is_tried && stands {
            // What did not succeed is not begun any more: the rules decide again.
            job.intent = None;
            // Somebody else has its place: it is waited for, and costs nothing.
            if !error.passes {
                job.keep_counts(budget::in_vain(job, &reaction.progress, reaction.event, now));
            }
            let why = error.message.lines().next().unwrap_or_default();
            records::note(tx, &lease.job, "not-resumed", why.to_owned());
        }
        Ok(())
    });
    drop(counted); // The first error says more.
    error
}

/// Checks a request and completes it to a plan; also what a person should know.
pub fn plan(ctx: &Ctx, request: &AgainRequest) -> Result<(LaunchPlan, Vec<String>), Error> {
    plan_with(ctx, &meant(ctx, request)?, Provided::Already)
}

fn plan_with(
    ctx: &Ctx,
    request: &AgainRequest,
    provided: Provided,
) -> Result<(LaunchPlan, Vec<String>), Error> {
    let (data, id, mut memory) = (ctx.data()?, &request.job, LookMemory::default());
    let user = user_of(&data, &id.user)?;
    let job = job_of(&data, id)?;
    let (parent, lost_with) = succeedable(ctx, job, request, &mut memory)?;
    let target = target(&data, job, request)?;
    check::stays_here_again(ctx, &data, (job, &target))?;
    let machine = match provided {
        Provided::Already => {
            // What was just said of it need not be asked again; whoever was late is waited for.
            let asked = AskedOnce::after(ctx, &data, &target.name, memory.said());
            check::usable(ctx, &target, &asked, mode(job), request.force)?
        }
        Provided::Later | Provided::LaterByRule => None,
    };
    let env = environment::of_successor(ctx, job, (request.environment, mode(job)))?;
    if let Some(execution) = job.execution() {
        secrets::are_there(ctx, execution, &env.given)?;
    }
    let args = successor::stored_args(job);
    let mut spec = job.spec_with(args.clone());
    if let Some(turn) = &request.turn {
        spec.queue = Some(turn.queue.clone());
    }
    spec.execution.setup_how = request.setup;
    let (is_queued, is_named) = (request.turn.is_some(), request.target.is_some());
    let only_on = confined::limit_again(ctx, &spec.execution, (is_queued, is_named));
    spec.execution.only_on = only_on.clone();
    confined::may_run_on(&spec.execution.only_on, &target)?;
    let spec = match (&request.target, &request.on) {
        (None, None) => spec,
        (None, Some(on)) => JobSpec { chosen: Some(on.reason.clone()), ..spec },
        (Some(other), _) => JobSpec { target: TargetRequest::Named(other.clone()), ..spec },
    };
    let known = request.on.as_ref().and_then(|on| on.busy.clone());
    let busy = match provided {
        Provided::Already if let Some(known) = known => known,
        Provided::Already if request.force => {
            probe::before_start(ctx, &data, &target).unwrap_or_default()
        }
        Provided::Already => probe::before_start(ctx, &data, &target)?,
        Provided::Later | Provided::LaterByRule => BTreeMap::new(),
    };
    // What is at work on its own ones is most likely left of it: that is stopped, and they are looked at again.
    let own = own_gpus(job, &target.name);
    let busy = busy.into_iter().filter(|(gpu, _)| !own.contains(gpu)).collect();
    let (ask, is_queued) = (&spec.ask, request.turn.is_some());
    let applicant = Applicant { target: &target, ask, busy: &busy, but: Some(id), is_queued };
    let force = request.force;
    let occupants = room::check(ctx, &data, &applicant, (provided, force), &Lately::default())?;
    let (start, code) = successor::of(ctx, user, job, request.how)?;
    if let Some(ResumeFrom::Nothing(looked)) = &start
        && !(request.from_nothing || request.force)
    {
        return Err(Error::refused(format!(
            "{id} has nothing to resume from: {}",
            resume_from::nowhere(looked)
        ))
        .hint(format!(
            "start it again from scratch: tpu resume w={} {} --yes",
            id.window, id.user
        )));
    }
    if let Some(source) = start.as_ref().and_then(ResumeFrom::directory)
        && !request.force
    {
        sees(ctx, &data, (&target, job), source)?;
    }
    let mode = mode(job);
    let (dir, stage_dir, staged) = match (code, mode) {
        (Code::AsItIs(dir), _) => (dir, None, None),
        (Code::Submitted(staged), _) => (staged.from.clone(), None, Some(staged)),
        (Code::Staged(stage), LaunchMode::Script) => (stage.clone(), Some(stage), None),
        (Code::Staged(stage), LaunchMode::Native) => (job.job_dir.clone(), Some(stage), None),
    };
    let (start, haul, remark) = match start {
        Some(start) => {
            let (start, haul, remark) = across::plan(ctx, user, &target, start)?;
            (Some(start), haul, remark)
        }
        None => (None, None, None),
    };
    let is_from_nothing = start.as_ref().is_some_and(ResumeFrom::is_from_nothing);
    let goes_on = mode == LaunchMode::Native && start.is_some() && !is_from_nothing;
    let roots = launch_paths::roots_at(ctx, &data, user, &target)?;
    if mode == LaunchMode::Native && target.machines != Machines::Engine {
        roots.may_be_used(&user.name, false)?;
    }
    let settings = ctx.settings(Some(user))?;
    let attempt = lineage_attempts::before_successor(user, job);
    let lineage_args = start
        .as_ref()
        .map(|start| successor::resume_args(ctx, user, (job, attempt), start))
        .transpose()?;
    let lineage_args = lineage_args.unwrap_or_default();
    let plan = LaunchPlan {
        user: user.name.clone(),
        session: user.tmux_name.clone(),
        target,
        spec: JobSpec { staged, ..spec },
        dir,
        rules: job.rules.clone(),
        mode,
        command: job.command.clone(),
        args,
        lineage_args,
        stage: match request.how {
            Succession::Resume => job.stage + 1,
            Succession::Rerun => 0,
        },
        parent: Some(Parent { from_nothing: is_from_nothing, ..parent }),
        stage_dir,
        roots,
        force: request.force,
        occupants,
        busy,
        machine,
        most: settings.max_parallel,
        forwarded: settings.forward_env,
        turn: request.turn.clone(),
        entry: None,
        from: start.as_ref().and_then(ResumeFrom::told),
        attempt,
        avoid: successor::avoided(job, lost_with, ctx.clock.now()),
        tracked_run: if goes_on { tracked_run::to_go_on(ctx, job) } else { None },
        haul,
        env,
    };
    let said = plan.haul.as_ref().map(|haul| haul.said.clone());
    let remarks = [start.and_then(|start| start.remark()), remark, said];
    Ok((plan, remarks.into_iter().flatten().collect()))
}

/// Whether the job may have a successor now; and the nodes that it was lost with.
fn succeedable(
    ctx: &Ctx,
    job: &Job,
    request: &AgainRequest,
    memory: &mut LookMemory,
) -> Result<(Parent, Vec<String>), Error> {
    let id = &request.job;
    let verb = request.how.verb();
    if let Some(child) = job.child {
        return Err(Error::refused(format!("{id} continues as {}/{child}", id.user))
            .hint(format!("tpu {verb} w={child} {}", id.user)));
    }
    if let Some(intent) = job.intent.as_ref().filter(|_| job.is_being_killed()) {
        return Err(Error::refused(format!(
            "{id} is {} (since {})",
            intent.action,
            intent.at.to_rfc3339()
        ))
        .hint(format!("complete that first: tpu kill w={} {}", id.window, id.user)));
    }
    let view = outlook::look_at_and_remember(ctx, id, memory)?;
    if let Some(reason) = &view.shown.unknown {
        return Err(Error::unreachable(format!("{id}: {reason}"))
            .hint("nothing was changed: it may still be running"));
    }
    if view.shown.status.is_live() {
        return Err(Error::refused(format!("{id} is {}", view.shown.status))
            .hint(format!("stop it first: tpu kill w={} {}", id.window, id.user)));
    }
    still_at_work(ctx, job)?;
    // What a person has killed is as if it had not failed, however it had ended before.
    let was_killed = job.is_killed();
    let failed = view.failure().is_some() && !was_killed;
    if !failed && !request.force && !request.however_ended && request.turn.is_none() {
        let what =
            if was_killed { "was killed".to_owned() } else { format!("is {}", view.shown.status) };
        return Err(Error::refused(format!("{id} {what}")).hint(format!(
            "to {verb} it all the same: tpu {verb} w={} {} --force",
            id.window, id.user
        )));
    }
    let is_lost = view.failure() == Some(ErrorKind::Lost);
    let lost_with = if is_lost { view.nodes.clone() } else { Vec::new() };
    let parent = Parent {
        window: id.window,
        how: request.how,
        seen: job.status.clone(),
        failed: unrecorded_failure(&view),
        reached: reached(ctx, job, &view),
        worked: view.worked.clone(),
        forced: !failed,
        from_nothing: false,
        reaction: None,
    };
    Ok((parent, lost_with))
}

/// A window of the original has no launcher that could tell its job's processes from a person's: while
/// anything runs below its shell, the job may be at work, whatever its text shows.
fn still_at_work(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    if job.launch.is_some() {
        return Ok(());
    }
    match runners::processes(ctx, &*ctx.data()?, job)?.first() {
        None => Ok(()),
        Some(process) => Err(Error::refused(format!(
            "process {} ({}) still runs in the window of {}",
            process.pid,
            process.name,
            job.id()
        ))
        .hint(format!("stop it first: tpu kill w={} {}", job.windows_id, job.user))),
    }
}

/// The target of the new attempt; a resume stays with the accelerator type.
fn target(data: &Data, job: &Job, request: &AgainRequest) -> Result<Target, Error> {
    let current = data.resolve_target(job.tpu.as_str());
    let chosen = request.on.as_ref().map(|on| on.target.as_str());
    let Some(named) = request.target.as_deref().or(chosen) else {
        return current.ok_or_else(|| successor::unknown_target(job));
    };
    let target = resolve_target(data, named)?;
    let types = (current.and_then(|t| t.accelerator), target.accelerator.clone());
    if let (Some(old), Some(new)) = types
        && old != new
        && request.how == Succession::Resume
        && !request.force
    {
        return Err(Error::refused(format!("{} is a {new}, the job ran on a {old}", target.name))
            .hint("a checkpoint may not fit there; use --force to resume all the same"));
    }
    Ok(target)
}

/// Refuses a target on whose disk that is not what a resume begins with. What machines of a provider see, nobody here
/// can tell.
fn sees(ctx: &Ctx, data: &Data, (target, job): (&Target, &Job), source: &str) -> Result<(), Error> {
    let has_engine = job.engine.is_some() || target.machines == Machines::Engine;
    let is_another = target.machines == Machines::Fixed && target.name != job.tpu;
    let (id, name) = (job.id(), &target.name);
    let seen = if source.contains("://") {
        return Ok(());
    } else if is_another && job.is_native() {
        disk::sees(ctx, data, target, source)?
    } else if has_engine {
        runners::of_target(ctx, data, target)?.files().is_dir(Path::new(source)).map_err(|e| {
            Error::unreachable(format!("whether {name} sees {source} is unknown: {e}"))
                .hint("nothing was changed; try again when its disk is there")
        })?
    } else {
        return Ok(());
    };
    if seen {
        return Ok(());
    }
    let what = format!("{name} does not see {source}, from which {id} would continue");
    Err(Error::refused(what).hint(format!(
        "resume it where that is; or copy it there, under the same name; or begin anew: \
         tpu rerun w={} {} tpu={name}",
        id.window, id.user
    )))
}

/// How the parent was launched; records of the original ran a script.
fn mode(job: &Job) -> LaunchMode {
    match &job.launch {
        Some(launch) => launch.mode,
        None => LaunchMode::Script,
    }
}

/// Processes on another machine can neither be seen nor stopped from here: unless their end is known, the
/// attempt may still be at work there.
fn may_be_stopped_here(ctx: &Ctx, job: &Job, force: bool) -> Result<(), Error> {
    let elsewhere = job.place.as_ref().filter(|place| place.host != ctx.env.hostname);
    let unseen = job.launch.as_ref().is_some_and(|launch| launch.exit.is_none());
    match elsewhere {
        Some(place) if unseen && !force => Err(Error::refused(format!(
            "what is left of {} may still run on {}, where it was started",
            job.id(),
            place.host
        ))
        .hint(format!("do it on {}; if that machine is gone for good: --force", place.host))),
        Some(_) | None => Ok(()),
    }
}

/// Stops what is left of the lineage on the target: processes of this attempt and of those before it that
/// outlived their end. A later attempt is none of them: another `tpu` may have started it a moment ago. Fails
/// while a worker cannot be reached, also by force: that it never will be again is a word of its own, said
/// to `kill`.
fn stop_leftovers(ctx: &Ctx, request: &AgainRequest) -> Result<(), Error> {
    let data = ctx.data()?;
    let id = &request.job;
    may_be_stopped_here(ctx, job_of(&data, id)?, request.force)?;
    let user = user_of(&data, &id.user)?;
    let lineage = Lineage::of(user, id.window).map(|l| l.windows).unwrap_or_default();
    for window in lineage.iter().rev().skip_while(|window| **window != id.window) {
        if let Some(job) = user.job(*window) {
            // Without a launch of ours nobody can tell its processes from a person's.
            if job.launch.is_some() {
                let order = StopOrder { part: StopPart::Program, unreached: Unreached::Refuse };
                runners::stop(ctx, &data, job, order)?;
            }
        }
    }
    Ok(())
}
