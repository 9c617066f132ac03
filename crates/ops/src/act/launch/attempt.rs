//! Carries a plan out: claim a record, write what the launcher needs, open the window, confirm.
//!
//! A crash at any point is settled by `reconcile` or by the launcher's own first callback: a record never has
//! two windows, and a job never starts without a live record.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde_json::json;

use crate::act::lately::Lately;
use crate::act::setup::SetUp;
use crate::act::stage;
use crate::base::code_dir::whole_path;
use crate::base::launch_paths::{directory_name, stage_dir};
use crate::base::lease::{self, Held};
use crate::base::{confined, names, queue_entries, records, secrets};
use crate::observe::runners;
use crate::{Ctx, Error};
use tpu_core::model::capacity::{Accelerators, Share, list};
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken};
use tpu_core::model::job::{Event, Handle, Intent, Job, Launch, LaunchMode, StartTime, Status};
use tpu_core::model::member::Array;
use tpu_core::model::spec::JobSpec;
use tpu_core::model::target::Machines;
use tpu_core::model::time::Timestamp;
use tpu_core::model::variables::{self, Secrets};
use tpu_core::model::waited::Waited;
use tpu_core::plan::budget;
use tpu_engine::runner::command::run_as_wanted;
use tpu_engine::runner::environment::{self, Shell, Variables};
use tpu_engine::runner::files::Files;
use tpu_engine::runner::{Attempt, Preparation, Runner};
use tpu_system::store::Tx;

use super::check::parse_rules;
use super::plan::{LaunchPlan, Machine, Parent, quoted};
use super::room;
use super::settle::{self, Came, Outcome};
use super::{turn, unsubmitted};

pub use super::settle::Launched;

/// Starts the attempt. One that succeeds another is started under the `lease` of their lineage, which
/// the new attempt takes over and gives back once its window is open.
pub fn start(ctx: &Ctx, plan: &LaunchPlan, lease: Option<&Held>) -> Result<Launched, Error> {
    start_lately(ctx, plan, lease, &Lately::default())
}

/// The same with what was asked a moment ago.
pub(crate) fn start_lately(
    ctx: &Ctx,
    plan: &LaunchPlan,
    lease: Option<&Held>,
    lately: &Lately,
) -> Result<Launched, Error> {
    let secrets = secrets_of(ctx, plan)?;
    let runner = runners::of_target(ctx, &*ctx.data()?, &plan.target)?;
    let token = LaunchToken::new(ctx.random.hex(16));
    let ground = lately.ground(ctx, &*runner, &plan.session, &token)?;
    plan.turn.as_ref().map_or(Ok(()), |turn| turn.stays_in_server(&ground.handle))?;
    make_place_for_logs(&*ctx.data()?, plan, &*runner.files());
    fail::fail_point!("launch-planned");
    let owner = lease::me(&ctx.env);
    let job = ctx.transact(|tx| {
        let now = ctx.clock.now();
        let (handle, taken) = (&ground.handle, ground.taken.as_slice());
        claim(tx, plan, &Claim { owner: &owner, token: &token, handle, taken, now, lease })
    })?;
    fail::fail_point!("launch-claimed");
    warn_of_devices(ctx, plan, &job);
    ctx.warn(stage::shares_outputs(ctx, &job).ok().flatten());
    let env = env_of(plan, &job);
    unsubmitted::while_at(ctx, &[&job], || prepare(ctx, (plan, &env), &[&job], &*runner))
        .map_err(|error| settle::give_up(ctx, plan, &job, &error))?;
    if unsubmitted::still_stand(ctx, &[&job])? == [false] {
        return Err(unsubmitted::fallen(&job));
    }
    let laid = set_up(ctx, plan, &job)
        .and_then(|set_up| Laid::of(ctx, set_up.as_ref(), &*runner))
        .map_err(|error| settle::give_up(ctx, plan, &job, &error))?;
    let attempt = attempt(ctx, plan, &job)?;
    let secrets = without_devices(&secrets, &job);
    let attempt = Attempt { secrets, preparation: laid.preparation(), ..attempt };
    let outcome = Outcome::of(&job, runner.submit(&attempt));
    let came = Came { plan, job: &job, outcome };
    settle::settle(ctx, &*runner, vec![came]).pop().expect("one in, one out")
}

/// Makes the directory in which a user's logs lie, where the one above is there: before there is a record of the first
/// job, which may die before it makes its own. From then on a log directory that is not found there was never made,
/// and no disk is missing. Where somebody has begun there already, a disk is missing. What speaks against it is for the
/// launcher to say.
fn make_place_for_logs(data: &Data, plan: &LaunchPlan, files: &dyn Files) {
    let root = Path::new(&plan.roots.log);
    let own = root.join(plan.user.as_str());
    let is_ours = plan.mode == LaunchMode::Native && plan.target.machines != Machines::Engine;
    // Whatever has begun in a window has made it.
    let made_it = |job: &Job| {
        job.is_native()
            && job.engine.is_none()
            && job.launch.as_ref().is_some_and(|launch| launch.confirmed)
            && job.log_dir.as_ref().is_some_and(|log| Path::new(log).starts_with(&own))
    };
    let is_used = || data.user(&plan.user).is_some_and(|user| user.jobs().iter().any(made_it));
    if is_ours && !is_used() && files.is_dir(root).unwrap_or_default() {
        drop(files.make_dir(&own));
    }
}

/// Lays ready what engines are to find, for one attempt or the members of a group: the code, and beside the records
/// the environment for successors. In a window the launcher sees to both, but for the copy that several have together.
pub(super) fn prepare(
    ctx: &Ctx,
    (plan, env): (&LaunchPlan, &Variables),
    jobs: &[&Job],
    runner: &dyn Runner,
) -> Result<(), Error> {
    if plan.target.machines != Machines::Engine {
        let shares = plan.spec.array.is_some() && super::shares_copy(&plan.spec);
        let first = jobs.first().filter(|_| shares);
        return first.map_or(Ok(()), |first| stage::share(ctx, &*runner.files(), first));
    }
    stage::prepare(ctx, &*runner.files(), jobs)?;
    for job in jobs {
        let dir = environment::fresh_directory(ctx, &job.id())?;
        environment::keep(&**ctx.store.disk(), &dir, (env, &plan.env))?;
    }
    Ok(())
}

/// What an engine would be given of a plan, and why it would not take it, if it is known that it would not; `None` for
/// a window, of which the plan says it all. The number is the next one as far as is known now, and `TOKEN` stands for
/// the mark that each launch makes anew.
pub fn preview(ctx: &Ctx, plan: &LaunchPlan) -> Result<Option<(String, Option<Error>)>, Error> {
    if plan.target.machines != Machines::Engine {
        return Ok(None);
    }
    let data = ctx.data()?;
    let window = crate::base::ctx::user_of(&data, &plan.user)?.clone().next_window(None);
    let id = JobId::new(plan.user.clone(), window);
    let job = record(plan, &id, (&LaunchToken::from("TOKEN"), ctx.clock.now()));
    let attempt = attempt(ctx, plan, &job)?;
    let runner = runners::of_target(ctx, &data, &plan.target)?;
    let text = runner.preview(&attempt)?;
    Ok(Some(match runner.try_out(&attempt) {
        Ok(None) => (text, None),
        Ok(Some(said)) => (format!("# {said}\n{text}"), None),
        Err(refused) => (text, Some(refused.into())),
    }))
}

/// What is set up before a command, where what runs it sees to that itself.
pub(super) fn set_up(ctx: &Ctx, plan: &LaunchPlan, job: &Job) -> Result<Option<SetUp>, Error> {
    if plan.target.machines != Machines::Engine || plan.spec.execution.setup.is_empty() {
        return Ok(None);
    }
    SetUp::of(ctx, &*ctx.data()?, job)
}

/// What is laid ready of a set-up on this machine, for as long as it is needed here.
#[derive(Default)]
pub(super) struct Laid(Option<(tempfile::TempDir, Preparation)>);

impl Laid {
    pub(super) fn of(
        ctx: &Ctx,
        set_up: Option<&SetUp>,
        runner: &dyn Runner,
    ) -> Result<Self, Error> {
        let Some(set_up) = set_up.filter(|set_up| set_up.preparation().is_some()) else {
            return Ok(Self::default());
        };
        let state = ctx.store.state_dir()?;
        let dir = tempfile::tempdir_in(&state).map_err(|e| {
            Error::state(format!("cannot make a directory in {}: {e}", state.display()))
        })?;
        let laid = set_up.lay_for(ctx, dir.path(), &*runner.files())?;
        Ok(Self(laid.map(|preparation| (dir, preparation))))
    }

    pub(super) fn preparation(&self) -> Option<Preparation> {
        self.0.as_ref().map(|(_, preparation)| preparation.clone())
    }
}

/// The secrets of what is started.
pub(super) fn secrets_of(ctx: &Ctx, plan: &LaunchPlan) -> Result<Secrets, Error> {
    secrets::found(ctx, &plan.spec.execution, (plan.turn.is_some(), &plan.env.given))
}

/// The environment of an attempt, wherever it runs. What its shell exported beside that is for a window here, which sees to
/// it; another machine has what is forwarded of it.
pub(super) fn env_of(plan: &LaunchPlan, job: &Job) -> Variables {
    let mut env = plan.env.kept.clone();
    if let Some(shell) = plan.env.shell.as_ref().filter(|_| !plan.target.is_here()) {
        // What looks like a secret is handed on as one, by `--env`; so are those that it names.
        let is_plain =
            |name: &&String| !variables::looks_secret(name) && plan.env.given.get(name).is_none();
        for name in plan.forwarded.iter().filter(is_plain) {
            if let Some(value) = shell.exported.get(name) {
                environment::set(&mut env, name, value);
            }
        }
    }
    for (name, value) in &plan.spec.execution.variables {
        environment::set(&mut env, name, value);
    }
    go_on_with_run(plan, &mut env);
    with_devices(env, job, plan.env.shell.as_ref())
}

/// Lets it go on with the run to which the attempt before it has logged, unless somebody says with which it does.
fn go_on_with_run(plan: &LaunchPlan, env: &mut Variables) {
    let exported = plan.env.shell.as_ref().filter(|_| plan.target.is_here());
    let is_said = |name: &str| {
        env.iter().any(|(known, _)| known == name)
            || plan.env.given.get(name).is_some()
            || exported.is_some_and(|shell| shell.exported.get(name).is_some())
    };
    let Some(run) = &plan.tracked_run else { return };
    if !variables::TRACKED_RUN.into_iter().any(is_said) {
        let [id, how] = variables::TRACKED_RUN;
        environment::set(env, id, run);
        environment::set(env, how, "allow");
    }
}

/// What is submitted of a plan.
pub(super) fn attempt<'a>(
    ctx: &Ctx,
    plan: &'a LaunchPlan,
    job: &'a Job,
) -> Result<Attempt<'a>, Error> {
    let submitted = plan.spec.staged.as_ref().map(|staged| &staged.copy);
    let set_up = set_up(ctx, plan, job)?;
    let words = run_as_wanted(&plan.spec.execution, plan.words());
    let words =
        set_up.as_ref().map_or_else(|| words.clone(), |set_up| set_up.within(words.clone()));
    Ok(Attempt {
        job,
        session: &plan.session,
        name: window_name(plan, job),
        cwd: match &plan.spec.execution.workplace {
            Some(there) if plan.target.is_here() => whole_path(ctx, there),
            // A window of this machine attends to those on which it runs.
            Some(_) => "/".into(),
            // A resume's own copy is there for certain; the directory it was made from may be gone.
            None => plan.stage_dir.as_ref().or(submitted).unwrap_or(&plan.dir).into(),
        },
        words,
        env: env_of(plan, job),
        asked: plan.env.clone(),
        secrets: Secrets::default(),
        preparation: set_up.as_ref().and_then(SetUp::preparation),
        workers_by: plan.is_remote().then(|| ctx.places().usual().name.as_str().to_owned()),
        avoid: plan.avoid.iter().map(|(node, _)| node.clone()).collect(),
        at_once: plan.spec.array.as_ref().and_then(Array::at_once),
    })
}

/// The environment with the GPUs of the job, where they are given out; those of its parent are not its own.
fn with_devices(mut env: Variables, job: &Job, shell: Option<&Shell>) -> Variables {
    let given = gpus_of(job);
    // Who asks for none sees none, unless their shell says otherwise.
    let is_said = |share: &Share| {
        let own =
            shell.and_then(|shell| shell.exported.get(variables::of_devices(share.accelerators)));
        own.is_some_and(|own| !own.is_empty())
    };
    let given = given.filter(|(share, gpus)| !gpus.is_empty() || !is_said(share));
    let (order, by_driver) = variables::DEVICE_ORDER;
    // A person may say which chips of a TPU VM are meant, where nobody gives them out.
    let is_meant = |whose: Accelerators| whose == Accelerators::Tpu && given.is_none();
    let set_by_us: Vec<&str> = Accelerators::ALL
        .into_iter()
        .filter(|whose| !is_meant(*whose))
        .map(variables::of_devices)
        .chain([order])
        .collect();
    env.retain(|(name, _)| set_by_us.iter().all(|set| name != set));
    if let Some((share, gpus)) = given {
        env.push((variables::of_devices(share.accelerators).into(), list(gpus).into()));
        if share.accelerators == Accelerators::Nvidia {
            env.push((order.into(), by_driver.into()));
        }
    }
    env
}

/// The secrets without what names GPUs, where the job was given some.
pub(super) fn without_devices(secrets: &Secrets, job: &Job) -> Secrets {
    let has_own = gpus_of(job).is_some_and(|(_, gpus)| !gpus.is_empty());
    let is_meant = |(name, _): &&(OsString, OsString)| !has_own || !names_devices(name);
    Secrets(secrets.0.iter().filter(is_meant).cloned().collect())
}

fn names_devices(name: &OsStr) -> bool {
    let order = variables::DEVICE_ORDER.0;
    let mut all = Accelerators::ALL.into_iter().map(variables::of_devices).chain([order]);
    all.any(|known| name == known)
}

/// The GPUs that a job was given, where they are given out.
fn gpus_of(job: &Job) -> Option<(&Share, &[u32])> {
    job.share.as_ref().and_then(|share| Some((share, share.gpus.as_deref()?)))
}

/// Says that the GPUs which a job was given count, and not those that its shell or `--env` names.
pub(super) fn warn_of_devices(ctx: &Ctx, plan: &LaunchPlan, job: &Job) {
    let Some((share, gpus)) = gpus_of(job).filter(|(_, gpus)| !gpus.is_empty()) else { return };
    let (name, gpus) = (variables::of_devices(share.accelerators), list(gpus));
    let exported = plan.env.shell.as_ref().filter(|_| plan.target.is_here());
    let own = plan.env.given.get(name).or(exported.and_then(|shell| shell.exported.get(name)));
    if own.is_some_and(|own| *own != *gpus) {
        ctx.warn([format!("{name} of the shell does not count: {} has GPU {gpus}", job.id())]);
    }
}

/// What a claim needs beside the plan.
pub(super) struct Claim<'a> {
    /// Who claims, as an owner of leases.
    pub(super) owner: &'a str,
    pub(super) token: &'a LaunchToken,
    pub(super) handle: &'a Handle,
    /// The numbers that none of ours has and that are taken where it runs.
    pub(super) taken: &'a [u32],
    pub(super) now: Timestamp,
    pub(super) lease: Option<&'a Held>,
}

/// The first transaction: everything that could have changed since the check is checked again, then the
/// record is appended and its parent marked.
fn claim(tx: &mut Tx<'_>, plan: &LaunchPlan, claim: &Claim<'_>) -> Result<Job, Error> {
    let plan = still_right(tx, plan, claim.now)?;
    append(tx, &plan, claim)
}

/// What could have changed since the check is checked again; the plan with what persons say of the job by now.
pub(super) fn still_right(
    tx: &mut Tx<'_>,
    plan: &LaunchPlan,
    now: Timestamp,
) -> Result<LaunchPlan, Error> {
    confined::may_run_on(&plan.spec.execution.only_on, &plan.target)?;
    room::may_take(&tx.data, plan, now)?;
    name_still_free(&tx.data, plan)?;
    let said = as_said_now(&tx.data, plan)?;
    if let Some(turn) = &plan.turn {
        // In one step with the record: whoever waits gets one job, whatever dies in between.
        turn::hand_in(tx, turn, plan)?;
    } else {
        turn::may_begin(&tx.data, plan)?;
    }
    Ok(said)
}

/// A plan was made of what was read before, and tag and rules can be set until the job begins: they are taken from
/// where it waits, or from what it goes on from, in the step in which it does.
fn as_said_now(data: &Data, plan: &LaunchPlan) -> Result<LaunchPlan, Error> {
    let mut plan = plan.clone();
    let entry = plan.turn.as_ref().and_then(|turn| data.queues().entry(&turn.entry));
    plan.entry = entry.cloned();
    let parent = plan.parent.as_ref().map(|parent| JobId::new(plan.user.clone(), parent.window));
    if let Some(parent) = parent.and_then(|id| data.job(&id)) {
        plan.spec.tag.clone_from(&parent.job_tags);
        plan.rules = parent.rules.clone();
        return Ok(plan);
    }
    if let Some(entry) = entry {
        plan.spec.tag.clone_from(&entry.spec.tag);
        if let Some(typed) =
            entry.spec.rules.as_deref().filter(|_| entry.spec.rules != plan.spec.rules)
        {
            plan.rules = parse_rules(typed)?.retrying(plan.spec.execution.retry.as_ref());
        }
    }
    Ok(plan)
}

/// The next number of the user whose job it is to be.
pub(super) fn next_number(
    tx: &mut Tx<'_>,
    plan: &LaunchPlan,
    taken: &[u32],
) -> Result<JobNumber, Error> {
    if let Some(waited) = own_number(&tx.data, plan, taken) {
        return Ok(waited);
    }
    let number = tx.data.next_number(&plan.user, taken.iter().copied().max());
    number.ok_or_else(|| {
        Error::not_found(format!("user '{}' was removed meanwhile", plan.user))
            .hint("`tpu list-users` lists the users there are")
    })
}

/// The number under which it has waited, unless a window of somebody's own stands there by now.
fn own_number(data: &Data, plan: &LaunchPlan, taken: &[u32]) -> Option<JobNumber> {
    let turn = plan.turn.as_ref().filter(|turn| turn.member.is_none())?;
    let number = turn.entry.window;
    let is_free = data.job(&turn.entry).is_none() && !taken.contains(&number.0);
    is_free.then_some(number)
}

/// Appends the record and marks its parent.
pub(super) fn append(tx: &mut Tx<'_>, plan: &LaunchPlan, claim: &Claim<'_>) -> Result<Job, Error> {
    let window = next_number(tx, plan, claim.taken)?;
    let id = JobId::new(plan.user.clone(), window);
    if let Some(turn) = plan.turn.as_ref().filter(|turn| turn.member.is_none() && turn.entry != id)
    {
        queue_entries::renumber(tx, &turn.entry, &id);
    }
    let mut job = record(plan, &id, (claim.token, claim.now));
    job.share = room::claim(&tx.data, plan)?;
    job.keep_handle(claim.handle.clone());
    job.waited = may_go_back(plan, claim.owner).map(Box::new);
    if let Some(parent) = &plan.parent {
        succeed(tx, parent, claim, &mut job)?;
    }
    if !plan.avoid.is_empty() || job.recovery.is_some() {
        job.counts_mut().avoid.clone_from(&plan.avoid);
    }
    let user = tx.data.user_mut(&plan.user).expect("found above, in the same transaction");
    user.push_job(job.clone());
    let how = plan.parent.as_ref().map_or("run", |parent| parent.how.verb());
    let is_from_nothing = plan.parent.as_ref().is_some_and(|parent| parent.from_nothing);
    let from = if is_from_nothing { ", resumed from nothing" } else { "" };
    // Its target may be forgotten, or be another one of that name, when somebody asks what it has cost.
    let target = &plan.target;
    let on = json!({
        "target": target.name, "type": target.accelerator, "zone": target.zone,
        "pricing": target.pricing.as_str(), "kind": target.kind.as_str(),
    });
    tx.event(&id, how, format!("on {}{from}", target.name), on);
    Ok(job)
}

/// The entry that goes back into the queue if nobody opens the window of the job. An engine may have taken what was sent
/// to it; and where somebody waits for an entry, it is over with him.
fn may_go_back(plan: &LaunchPlan, owner: &str) -> Option<Waited> {
    let entry = plan.entry.as_ref()?;
    if plan.target.machines == Machines::Engine || entry.keeper.is_some() {
        return None;
    }
    let member = plan.turn.as_ref().and_then(|turn| turn.member);
    let only = |array: &Array| member.and_then(|index| array.only(vec![index]));
    let array = entry.spec.array.as_ref().and_then(only);
    let entry = QueueEntry { spec: JobSpec { array, ..entry.spec.clone() }, ..entry.clone() };
    Some(Waited { by: owner.to_owned(), entry: entry.to_kept(), parent: None })
}

/// Nothing and nobody has come to be called as the job is to be called. What the daemon brings back keeps its name,
/// whatever has taken it meanwhile.
fn name_still_free(data: &Data, plan: &LaunchPlan) -> Result<(), Error> {
    let (Some(name), Some(user)) = (&plan.spec.name, data.user(&plan.user)) else { return Ok(()) };
    match &plan.parent {
        None => {
            names::refuse_for_job(data, user, name)?;
            names::refuse_in_use(user, name, (None, plan.spec.member))
        }
        Some(parent) if parent.reaction.is_none() && !plan.force => {
            names::refuse_in_use(user, name, (Some(parent.window), None))
        }
        Some(_) => Ok(()),
    }
}

/// Marks the parent, if it is still as it was when the plan was made: one child for each. What the
/// lineage remembers, and the right to act on it, go on with the child.
fn succeed(
    tx: &mut Tx<'_>,
    parent: &Parent,
    claim: &Claim<'_>,
    child: &mut Job,
) -> Result<(), Error> {
    let id = JobId::new(child.user.clone(), parent.window);
    if let Some(waits) = tx.data.queues().successor_of(&id) {
        let (waits, number) = (waits.id(), waits.number);
        return Err(Error::refused(format!("{waits} waits to continue from {id}")).hint(format!(
            "let that begin: tpu unhold {number}, or take it out: tpu dequeue {number}"
        )));
    }
    let job = crate::base::ctx::job_mut(&mut tx.data, &id)?;
    may_be_succeeded(job, parent, claim.lease)?;
    if let Some(waited) = &mut child.waited {
        waited.parent = Some(job.to_value());
    }
    if let Some((kind, verdict)) = &parent.failed {
        records::failed(tx, &id, *kind, verdict)?;
    }
    let job = crate::base::ctx::job_mut(&mut tx.data, &id)?;
    job.keep_reached(&parent.reached);
    if let Some(launch) = job.launch.as_mut().filter(|launch| launch.confirmed) {
        // Its processes have been stopped: whatever its window still says, it is over.
        launch.worked.clone_from(&parent.worked);
        launch.ended.get_or_insert(claim.now);
    }
    if let Some(reaction) = &parent.reaction {
        // What was begun before, and not completed, has been counted then.
        let is_counted = job.intent.is_some();
        if !is_counted {
            job.keep_counts(budget::spent(job, &reaction.progress, reaction.event, claim.now));
        }
        child.keep_counts(budget::inherited(job, reaction.event));
        child.intent = claim.lease.map(|lease| Intent {
            action: parent.how.verb().to_owned(),
            at: claim.now,
            by: lease.owner.clone(),
        });
    }
    supersede(job, parent)?;
    job.child = Some(child.windows_id);
    job.intent = None;
    child.lease = job.lease.take();
    queue_entries::follow(tx, &id, &child.id());
    Ok(())
}

/// The parent's last word.
fn supersede(job: &mut Job, parent: &Parent) -> Result<(), Error> {
    let event = if parent.forced {
        Event::SupersededByForce(parent.how)
    } else {
        Event::Superseded(parent.how)
    };
    Ok(job.apply(&event)?)
}

/// Whether the parent still is as it was when the plan was made, has no child, and is still held.
fn may_be_succeeded(job: &Job, parent: &Parent, lease: Option<&Held>) -> Result<(), Error> {
    let id = job.id();
    if let Some(other) = job.child {
        return Err(Error::refused(format!("{id} continues as {}/{other}", id.user))
            .hint(format!("tpu check {} shows it", id.user)));
    }
    if job.is_being_killed() {
        return Err(Error::refused(format!("{id} is being killed"))
            .hint(format!("`tpu check {}` shows what came of it", id.user)));
    }
    if job.is_killed() && !parent.forced {
        return Err(
            Error::refused(format!("{id} was killed meanwhile")).hint("look again, then try again")
        );
    }
    // Its launcher may have written down, since, the very failure that the facts had shown.
    let came_true = parent.failed.is_some() && matches!(job.status, Status::Error(_));
    if job.status != parent.seen && !came_true {
        return Err(Error::refused(format!("{id} has become {} meanwhile", job.status))
            .hint("look again, then try again"));
    }
    lease.map_or(Ok(()), |lease| lease.check(job))
}

/// The new record, but for its handle.
fn record(plan: &LaunchPlan, id: &JobId, (token, now): (&LaunchToken, Timestamp)) -> Job {
    let mut job = Job::new(id, plan.target.name.clone(), plan.dir.clone());
    job.keep_spec(&plan.spec);
    job.extra_configs = quoted(&plan.args);
    job.status = Status::Starting;
    job.stage = plan.stage;
    job.rules = plan.rules.clone();
    job.start_time = StartTime::At(now);
    job.father = plan.parent.as_ref().map(|parent| parent.window);
    job.command.clone_from(&plan.command);
    job.stage_dir.clone_from(&plan.stage_dir);
    if plan.mode == LaunchMode::Native {
        let name = directory_name(id.window, token, now);
        job.log_dir = Some(format!("{}/{}/{name}", plan.roots.log, id.user));
        if job.stage_dir.is_none() && job.workplace().is_none() {
            job.stage_dir = Some(stage_dir(&plan.roots, &plan.user, &name));
        }
    }
    let machine = plan.machine.filter(|of| is_just_seen(of, now)).map(|of| of.created_at);
    let launch = Launch::claimed(token.clone(), plan.mode, now);
    let queued = plan.entry.as_ref().map(|entry| entry.since);
    // An engine may let it wait: it is at work once that was seen.
    let worked = (plan.target.machines == Machines::Engine).then(Vec::new);
    let (from, attempt) = (plan.from.clone(), plan.attempt);
    job.launch = Some(Launch { machine, queued, from, attempt, worked, ..launch });
    job
}

/// Whether a machine was looked at so shortly before its job was claimed that it cannot be another one. Else
/// the daemon sees which one it is.
fn is_just_seen(machine: &Machine, now: Timestamp) -> bool {
    now.seconds_since(machine.seen_at) <= 2 && machine.seen_at.seconds_since(now) == 0
}

/// The name that tmux shows; only decoration.
fn window_name(plan: &LaunchPlan, job: &Job) -> String {
    let tag = job.job_tags.as_deref().unwrap_or(plan.target.name.as_str());
    let name: String = tag.chars().filter(|c| c.is_alphanumeric() || "-_.".contains(*c)).collect();
    if name.is_empty() { "job".to_owned() } else { name.chars().take(24).collect() }
}
