//! Puts jobs into the queue.

use crate::act::launch::check::{self, MeantKey, Ready};
use crate::act::launch::{RunRequest, shares_copy};
use crate::act::{clone, notices, stage};
use crate::base::account::{name_at_work, submitter};
use crate::base::code_dir;
use crate::base::confined;
use crate::base::ctx::user_of;
use crate::base::environment::WantedEnvironment;
use crate::base::queue_entries::follow;
use crate::base::{environment, lease, named, names, records, secrets, watch};
use crate::observe::doors;
use crate::{Ctx, Error, Kind};
use tpu_core::model::data::Data;
use tpu_core::model::entry::{
    After, AfterWhich, Environment as KeptEnvironment, Keeper, Passed, Priority, QueueEntry,
    QueueHold,
};
use tpu_core::model::execution::{Copying, Execution};
use tpu_core::model::ids::{JobId, QueueName, UserName};
use tpu_core::model::job::LaunchMode;
use tpu_core::model::order::TargetOrder;
use tpu_core::model::repository::Repository;
use tpu_core::model::spec::{JobSpec, Staged, TargetRequest};
use tpu_core::model::sweep::Sweep;
use tpu_system::store::Tx;

use super::once::{Entered, Once};
use super::tasks::{self, TaskOf};
use super::wish::{Wish, of_words};
use super::{after, buckets, edit, loans, now, order, supply};

/// How a job waits.
#[derive(Clone, Debug)]
pub struct Submission {
    /// In which queue.
    pub queue: QueueName,
    /// How urgent it is.
    pub priority: Priority,
    /// Whether it is not to begin before somebody says so.
    pub is_held: bool,
    /// Why it is held, if that is said.
    pub held_for: Option<String>,
    /// Whether its target may be one that nobody knows yet: it waits until somebody does.
    pub is_target_later: bool,
    /// What has to end before.
    pub after: Vec<After>,
    /// What is submitted together with it and has to end before: which of those above it, counted from 0.
    pub after_of: Vec<(AfterWhich, usize)>,
    /// Whether this process waits for it.
    pub is_kept: bool,
    /// What differs between the members of a group.
    pub sweep: Option<Sweep>,
    /// Whether its code is read when it begins, and not copied now.
    pub stages_late: bool,
    /// Whether a target is made for it where none is free.
    pub applies: bool,
    /// The target that is made for it, where it names none.
    pub order: Option<TargetOrder>,
    /// Where its code is, if it is in no directory of its user.
    pub repository: Option<Repository>,
    /// Of which file it is a task.
    pub task: Option<TaskOf>,
}

impl Default for Submission {
    fn default() -> Self {
        Self {
            queue: QueueName::usual(),
            priority: Priority::default(),
            is_held: false,
            held_for: None,
            is_target_later: false,
            after: Vec::new(),
            after_of: Vec::new(),
            is_kept: false,
            sweep: None,
            stages_late: false,
            applies: false,
            order: None,
            repository: None,
            task: None,
        }
    }
}

/// Puts a job into a queue, or the members of a group, and lets nothing begin. Its number is its own from now on; what
/// would keep it from beginning anywhere is refused at once.
pub fn enter(ctx: &Ctx, request: &RunRequest, how: &Submission) -> Result<JobId, Error> {
    let all = [(request.clone(), how.clone())];
    match enter_once(ctx, &all, None, &|_, _, error| error)? {
        Entered::New(mut ids) => ids.pop(),
        Entered::Before(_) | Entered::Other => None,
    }
    .ok_or_else(|| Error::failed("nothing was submitted"))
}

/// Tells a problem of one of several jobs with the place of what it is about.
pub type Placed<'a> = dyn Fn(usize, MeantKey, Error) -> Error + 'a;

/// Puts several jobs of one user into queues, all of them or none; those of one directory share the copy of their code.
/// That a request with a key was answered is written down with its jobs, so that it is answered once. What is only tried
/// out is refused for the same reasons, but that its secrets are not kept yet, and no code is copied.
pub(crate) fn enter_once(
    ctx: &Ctx,
    all: &[(RunRequest, Submission)],
    once: Option<&Once>,
    placed: &Placed<'_>,
) -> Result<Entered, Error> {
    let marked = marked(ctx, all)?;
    let all = marked.as_deref().unwrap_or(all);
    let (mut ready, mut orders) = (Vec::new(), Vec::new());
    for (index, (request, how)) in all.iter().enumerate() {
        let at = |what: MeantKey| move |error: Error| placed(index, what, error);
        // What is wrong with the first member is wrong with each.
        let first = how.sweep.as_ref().map(|sweep| {
            let mut first = request.clone();
            first.spec.configs.extend(sweep.given(0));
            first
        });
        let whole = (first.as_ref().unwrap_or(request), how.repository.as_ref());
        let may = check::may_wait(ctx, whole, &|what, error| placed(index, what, error))?;
        match secrets::are_kept(ctx, &request.spec.execution, &request.environment.given) {
            Err(error) if ctx.store.is_dry_run() => ctx.warn([error.message]),
            kept => kept.map_err(at(MeantKey::Secrets))?,
        }
        let order = how.order.as_ref().map(|order| {
            confined::may_order(&request.spec.execution.only_on, order)?;
            order::ready(ctx, &request.user, order)
        });
        let order = order.transpose();
        orders.push(match order {
            // Whoever tries it out need not have a cloud to ask.
            Err(error)
                if ctx.store.is_dry_run()
                    && !error.is_forbidden
                    && matches!(error.kind, Kind::Refused | Kind::Unreachable) =>
            {
                ctx.warn([error.message]);
                None
            }
            order => order.map_err(at(MeantKey::Target))?,
        });
        if let Some(order) = how.order.as_ref().filter(|_| !ctx.store.is_dry_run()) {
            let settings = ctx.settings(ctx.data()?.user(&request.user))?;
            let roots = [settings.stage_root, settings.log_root];
            let roots: Vec<String> = roots.into_iter().flatten().collect();
            ctx.warn(buckets::elsewhere(ctx, &request.spec, (order, &roots)));
        }
        stays_on_its_queue(ctx, request, &how.queue).map_err(at(MeantKey::Queue))?;
        if !how.is_target_later && how.order.is_none() {
            can_begin(ctx, (request, how), may.mode).map_err(at(MeantKey::Target))?;
        }
        if how.applies && how.order.is_none() {
            let may_be_made = supply::can_be_made(&*ctx.data()?, &Wish::of_request(request));
            may_be_made.map_err(at(MeantKey::Target))?;
        }
        ready.push(may);
    }
    for (request, _) in all {
        notices::begin_for(ctx, &request.spec)?;
    }
    let mut copies = Vec::new();
    let entered = staged(ctx, all, &ready, &mut copies).and_then(|staged| {
        let place = watch::place(ctx);
        let enter = |tx: &mut Tx<'_>| {
            if let Some(before) = once.and_then(|once| once.known(&tx.data, tx.now)) {
                return Ok(before);
            }
            let mut ids: Vec<JobId> = Vec::new();
            let mut environments: Vec<(&WantedEnvironment, KeptEnvironment)> = Vec::new();
            let each = all.iter().zip(&ready).zip(&staged).zip(&orders);
            for (index, ((((request, how), ready), staged), order)) in each.enumerate() {
                let at = |what: MeantKey| move |error: Error| placed(index, what, error);
                let above = how.after_of.iter().filter_map(|(which, index)| {
                    let job = ids.get(*index)?.clone();
                    Some(After { which: *which, job, member: None, met: None })
                });
                edit::takes(&tx.data, &how.queue).map_err(at(MeantKey::Queue))?;
                if let Some(name) = &request.spec.name {
                    let is_free = names::refuse_waiting(&tx.data, &request.user, name);
                    is_free.map_err(at(MeantKey::Name))?;
                }
                let new = entry(ctx, tx, (request, how), (ready, staged.clone()))?;
                let mut entry = QueueEntry {
                    after: how.after.iter().cloned().chain(above).collect(),
                    env: laid_by(ctx, &request.environment, (&mut environments, &new))?,
                    place: place.clone(),
                    ..new
                };
                if let Some(order) = order {
                    let queue = tx.data.queues().queue(&entry.queue);
                    if let Some(on) = queue.as_ref().and_then(|queue| queue.on.first()) {
                        let what = format!("jobs of queue {} begin on {on}", entry.queue);
                        return Err(at(MeantKey::Queue)(
                            Error::refused(what)
                                .hint("take another queue for a TPU that is made for its job"),
                        ));
                    }
                    let entered = order::enter(&mut tx.data, order);
                    entry.spec.target = entered.map_err(at(MeantKey::Target))?;
                    if order.goes_with_its_job() {
                        loans::promise(tx, &entry.id(), &entry.spec.target, &place);
                    }
                    entry.applies = true;
                }
                let id = push(ctx, tx, entry).map_err(at(MeantKey::After))?;
                if let Some(task) = &how.task
                    && let Some(before) = tasks::note(tx, task, &id)?
                {
                    follow(tx, &before, &id);
                }
                ids.push(id);
            }
            if let Some(once) = once {
                once.note(tx, &ids)?;
            }
            Ok(Entered::New(ids))
        };
        ctx.transact(enter)
    });
    if !matches!(entered, Ok(Entered::New(_))) {
        for staged in &copies {
            stage::discard(ctx, staged);
        }
    }
    entered
}

/// The same jobs, all of one user, with who submits them and to which targets that limits them; `None` where there is nothing
/// to say.
fn marked(
    ctx: &Ctx,
    all: &[(RunRequest, Submission)],
) -> Result<Option<Vec<(RunRequest, Submission)>>, Error> {
    let Some((first, _)) = all.first() else { return Ok(None) };
    let by = submitter(ctx, &*ctx.data()?, &first.user);
    if ctx.only_on.is_none() && by.is_none() {
        return Ok(None);
    }
    let mut all = all.to_vec();
    for (request, _) in &mut all {
        let execution = &mut request.spec.execution;
        execution.submitted_by.clone_from(&by);
        execution.only_on = confined::limit(ctx, execution).clone();
    }
    Ok(Some(all))
}

/// Where the environment lies with which a job is asked for: once for all that are asked for alike.
fn laid_by<'a>(
    ctx: &Ctx,
    wanted: &'a WantedEnvironment,
    (known, first): (&mut Vec<(&'a WantedEnvironment, KeptEnvironment)>, &QueueEntry),
) -> Result<KeptEnvironment, Error> {
    if let Some((_, env)) = known.iter().find(|(known, _)| *known == wanted) {
        return Ok(env.clone());
    }
    let env = environment::lay_by(ctx, first, &environment::asked(ctx, wanted))?;
    known.push((wanted, env.clone()));
    Ok(env)
}

/// Of what a copy is made.
#[derive(Clone, Copy, PartialEq)]
enum Code<'a> {
    Repository(&'a Repository),
    Dir(&'a str, Option<&'a str>, (LaunchMode, Copying, &'a [String])),
}

/// The copy of the code of each job: one for all jobs that have the same code, and one for each group. Every copy that was
/// made is in `copies`.
fn staged(
    ctx: &Ctx,
    all: &[(RunRequest, Submission)],
    ready: &[Ready],
    copies: &mut Vec<Staged>,
) -> Result<Vec<Option<Staged>>, Error> {
    let mut known: Vec<((&UserName, Code<'_>), Staged)> = Vec::new();
    let mut each = Vec::new();
    for ((request, how), ready) in all.iter().zip(ready) {
        if ctx.store.is_dry_run() {
            each.push(None);
            continue;
        }
        // It was cloned as it was to begin at once: whoever did that takes it away again.
        if let Some(own) = request.spec.staged.as_ref().filter(|staged| staged.is_clone()) {
            each.push(Some(own.clone()));
            continue;
        }
        let code = match &how.repository {
            Some(repository) => Code::Repository(repository),
            None if how.stages_late || stays_where_it_is(ctx, &request.spec) => {
                each.push(None);
                continue;
            }
            None => {
                let Execution { copying, outputs, .. } = &request.spec.execution;
                let how = (ready.mode, *copying, outputs.as_slice());
                Code::Dir(&ready.dir, below(&request.spec), how)
            }
        };
        let whose = (&request.user, code);
        // The members of a group write in their copy: nobody else begins from that.
        let is_own = shares_copy(&request.spec);
        let found = known.iter().find(|(known, _)| *known == whose && !is_own);
        if let Some((_, copy)) = found {
            each.push(Some(copy.clone()));
            continue;
        }
        let data = ctx.data()?;
        let user = user_of(&data, &request.user)?;
        let copy = match code {
            Code::Repository(repository) => clone::cloned(ctx, user, repository)?,
            Code::Dir(dir, below, (mode, ..)) => {
                stage::keep(ctx, user, (dir, below), (mode, &request.spec.execution))?
            }
        };
        copies.push(copy.clone());
        if !is_own {
            known.push((whose, copy.clone()));
        }
        each.push(Some(copy));
    }
    Ok(each)
}

/// Where below the top of its code it begins.
fn below(spec: &JobSpec) -> Option<&str> {
    spec.code.as_ref()?.below.as_deref()
}

/// Whether nothing of its code is copied.
fn stays_where_it_is(ctx: &Ctx, spec: &JobSpec) -> bool {
    spec.execution.workplace.is_some() || code_dir::is_home(ctx, spec)
}

/// The place in a queue that a job is to have, all but what it has in common with others.
fn entry(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    (request, how): (&RunRequest, &Submission),
    (ready, staged): (&Ready, Option<Staged>),
) -> Result<QueueEntry, Error> {
    user_of(&tx.data, &request.user)?;
    let number = tx.data.next_number(&request.user, None);
    let number = number.expect("the user was found above, in the same transaction");
    let hold = |data: &Data| QueueHold {
        by: name_at_work(ctx, data),
        since: tx.now,
        why: how.held_for.clone(),
        needs_login: false,
    };
    let owner = how.is_kept.then(|| lease::me(&ctx.env));
    let mut execution = request.spec.execution.clone();
    if ready.mode == LaunchMode::Native && code_dir::is_home(ctx, &request.spec) {
        // Whoever begins it may have another home.
        execution.workplace = Some(ready.dir.clone());
    }
    Ok(QueueEntry {
        user: request.user.clone(),
        number,
        queue: how.queue.clone(),
        spec: JobSpec {
            queue: Some(how.queue.clone()),
            command: request.spec.command.clone().or_else(|| ready.words()),
            arguments: request
                .spec
                .arguments
                .or((ready.mode == LaunchMode::Native).then_some(ready.arguments)),
            staged,
            execution,
            ..request.spec.clone()
        },
        sweep: how.sweep.clone(),
        force: request.force,
        env: KeptEnvironment::default(),
        since: tx.now,
        priority: how.priority,
        rank: 0,
        held: how.is_held.then(|| hold(&tx.data)),
        after: Vec::new(),
        passed: Passed::default(),
        place: String::new(),
        keeper: owner.map(|owner| Keeper { owner, seen: tx.now }),
        succeeds: None,
        applies: how.applies,
        shunned: Vec::new(),
    })
}

/// Puts it at the end of its queue.
fn push(ctx: &Ctx, tx: &mut Tx<'_>, entry: QueueEntry) -> Result<JobId, Error> {
    for after in &entry.after {
        after::may_be(&tx.data, after, entry.spec.array.as_ref())?;
        after::refuse_in_vain(ctx, &tx.data, after)?;
    }
    let (id, queue) = (entry.id(), entry.queue.clone());
    tx.data.queues_mut().entries.push(entry);
    records::note(tx, &id, "queued", format!("in {queue}"));
    Ok(id)
}

/// Refuses what begins in a home directory, where the queue begins its jobs on other machines.
fn stays_on_its_queue(ctx: &Ctx, request: &RunRequest, queue: &QueueName) -> Result<(), Error> {
    let data = ctx.data()?;
    let Some(queue) = data.queues().queue(queue).filter(|queue| !queue.on.is_empty()) else {
        return Ok(());
    };
    // Names may be of targets that nobody knows yet, and types of machines.
    let targets = named::named(&data, &queue.on).unwrap_or_default();
    check::stays_here(ctx, &request.spec, &targets)
}

/// Refuses what could begin nowhere that is known.
fn can_begin(
    ctx: &Ctx,
    (request, how): (&RunRequest, &Submission),
    mode: LaunchMode,
) -> Result<(), Error> {
    is_within(ctx, request, &how.queue)?;
    if let TargetRequest::Named(name) = &request.spec.target {
        let data = ctx.data()?;
        let target = named::resolve_target(&data, name)?;
        let queue = data.queues().queue(&how.queue);
        // A script brings its own way, and a queue may name other targets.
        if mode == LaunchMode::Native && queue.is_none_or(|queue| queue.on.is_empty()) {
            doors::must_lead_to(ctx, &data, &target)?;
        }
    }
    Wish::of(request).map_or(Ok(()), |wish| now::possible(ctx, &wish))
}

/// Refuses what is limited to some targets, and names or waits for others only.
fn is_within(ctx: &Ctx, request: &RunRequest, queue: &QueueName) -> Result<(), Error> {
    let data = ctx.data()?;
    let queue = data.queues().queue(queue).filter(|queue| !queue.on.is_empty());
    let wish = Wish::of_request(request);
    let target = queue.map_or_else(|| wish.target.clone(), |queue| of_words(&data, &queue.on));
    Wish { target, ..wish }.is_within(&data)
}
