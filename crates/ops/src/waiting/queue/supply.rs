//! Makes targets for those who wait in the queue for nothing else and were submitted so (`--apply`).
//!
//! What is to be made is written down before anything is asked of a control plane ([`look`]); the daemon then carries
//! out each by itself ([`carry_out`]), as long as it takes, and whoever comes after a crash goes on with the same
//! request. Where there is no capacity it is asked again, with back-off; where nobody waits any more what was asked for
//! is taken back, as long as it is not there. What has been made is a free target like any other.

use crate::act::provision::{self, Unmade};
use crate::act::{outlook, record_facts, target_spec};
use crate::base::queue_entries::awaited::AwaitedEnds;
use crate::base::queue_entries::occupancy;
use crate::base::{named, watch};
use crate::observe::fleet::ProviderFacts;
use crate::observe::snapshot::{self, LookMemory};
use crate::observe::waits::{self, AskedFor};
use crate::{Ctx, Error};
use tpu_core::model::board::Written;
use tpu_core::model::data::Data;
use tpu_core::model::entry::QueueEntry;
use tpu_core::model::facts::{QueuedState, TargetFact, TargetState};
use tpu_core::model::ids::TargetName;
use tpu_core::model::making::Making;
use tpu_core::model::spec::TargetRequest;
use tpu_core::model::target::Machines;
use tpu_core::model::time::Timestamp;
use tpu_core::plan::board::{Row, Standing};
use tpu_core::plan::queue::{self as plan, WaitReason};
use tpu_core::plan::supply::{Supply, Wanting, supply};
use tpu_core::plan::{answer, backoff, decide};
use tpu_engine::provider::{RequestId, Trouble, Verb};

use tpu_system::store::Tx;

use super::field::{Avoided, Field};
use super::wish::Wish;
use super::{limits, loans, presence, stand, starts, wishes};

/// Refuses to promise a target that nobody could make.
pub(super) fn can_be_made(data: &Data, wish: &Wish) -> Result<(), Error> {
    let hint = "leave --apply away; it waits until there is room";
    if let Some(name) = wish.name() {
        let target = named::resolve_target(data, name)?;
        if target.machines != Machines::Provided || !target.is_exclusive() {
            let what = format!("--apply: {name} is nothing that could be made");
            return Err(Error::refused(what).hint(hint));
        }
        return Ok(());
    }
    if wish.is_of_machines() {
        let what = format!("--apply: {} are machines, which tpu cannot create", wish.what());
        return Err(Error::refused(what).hint(hint));
    }
    Ok(())
}

/// Writes down what is to be made for those who wait here, and what no longer. The targets with which something is to
/// be done now.
pub fn look(ctx: &Ctx) -> Result<Vec<TargetName>, Error> {
    let data = ctx.data()?;
    let queues = data.queues();
    let here = watch::place(ctx);
    let asks = |entry: &QueueEntry| entry.applies && entry.place == here;
    if !queues.entries.iter().any(asks) && queues.makings.is_empty() {
        return Ok(Vec::new());
    }
    let (wanting, there) = wanting(ctx, &data, &here)?;
    ctx.transact(|tx| {
        adopt_left(ctx, tx, &here);
        let supply = supply(&wanting, &tx.data.queues().makings, &here, there);
        if supply == Supply::default() {
            return Ok(());
        }
        let now = tx.now;
        let known = &mut tx.data.queues_mut().makings;
        known.retain(|making| !supply.dropped.contains(&making.target));
        for (target, job) in supply.passed_on {
            for making in known.iter_mut().filter(|making| making.target == target) {
                making.job = job.clone();
            }
        }
        known.extend(supply.new.into_iter().map(|(job, target)| Making {
            target,
            job,
            place: here.clone(),
            token: ctx.random.hex(16),
            first: now,
            since: now,
            tries: 0,
            again: None,
            needs_login: false,
        }));
        Ok(())
    })?;
    let (data, now) = (ctx.data()?, ctx.clock.now());
    let is_due = |making: &&Making| {
        making.place == here && (!making.rests(now) || !is_wanted(&data, making))
    };
    Ok(data.queues().makings.iter().filter(is_due).map(|making| making.target.clone()).collect())
}

/// Takes over what nobody waits for any more and was begun where nobody is left to end it.
fn adopt_left(ctx: &Ctx, tx: &mut Tx<'_>, here: &str) {
    let is_left = |making: &Making| {
        making.place != here
            && tx.data.queues().entry(&making.job).is_none()
            && !watch::is_attended(ctx, &making.place)
    };
    let left: Vec<String> = tx
        .data
        .queues()
        .makings
        .iter()
        .filter(|one| is_left(one))
        .map(|one| one.token.clone())
        .collect();
    if left.is_empty() {
        return;
    }
    for making in &mut tx.data.queues_mut().makings {
        if left.contains(&making.token) {
            here.clone_into(&mut making.place);
        }
    }
}

/// A person says that things have changed: what was asked for in vain is asked for again at once. The targets that were
/// not to be asked for yet.
pub(crate) fn rouse(data: &mut Data, now: Timestamp) -> Vec<TargetName> {
    if data.queues().makings.iter().all(|making| making.again.is_none()) {
        return Vec::new();
    }
    let mut roused = Vec::new();
    for making in &mut data.queues_mut().makings {
        if making.rests(now) {
            roused.push(making.target.clone());
        }
        (making.again, making.needs_login) = (None, false);
    }
    roused
}

/// Who waits here for a target alone and may have one made, and how many targets are there or come, but for those in
/// the making.
fn wanting(ctx: &Ctx, data: &Data, here: &str) -> Result<(Vec<Wanting>, usize), Error> {
    let queues = data.queues();
    let avoided = Avoided::new();
    let present = presence::count_all(ctx, &queues.entries);
    let mut field = Field::of(ctx, data, wishes(data, &present), None, &avoided)?;
    let rows = field.clone();
    let standings = stand(ctx, data, &present, &mut field);
    let ends = AwaitedEnds::of_file(data);
    let mut at_work = occupancy::at_work(data, &limits::over(ctx, data));
    let of_users = occupancy::of_users(ctx, data);
    let mut wanting = Vec::new();
    for standing in &standings {
        let Some(entry) = queues.entries.get(standing.entry) else { continue };
        let Some(queue) = queues.queue(&entry.queue) else { continue };
        let begin = standing.starts.len();
        plan::room(queues, entry, &queue, (&mut at_work, &of_users), begin);
        let asks = entry.applies && entry.place == here;
        if !asks || !matches!(standing.waits, Some(WaitReason::NoPlace { .. })) {
            continue;
        }
        // Of a group those members that may begin.
        let ready = ends.each(entry).map_or(entry.waiting(), |each| each.ready.len());
        let waiting = ready.saturating_sub(begin);
        let meant = rows.meant_by(entry);
        let names = |is: &dyn Fn(&Row) -> bool| -> Vec<TargetName> {
            meant.iter().filter(|row| is(row)).map(|row| row.target.clone()).collect()
        };
        let Ok(settings) = ctx.settings(data.user(&entry.user)) else { continue };
        wanting.push(Wanting {
            job: entry.id(),
            jobs: plan::room(queues, entry, &queue, (&mut at_work, &of_users), waiting),
            meant: names(&|_| true),
            absent: names(&|row| may_be_made(ctx, data, entry, row)),
            coming: names(&|row| row.standing == Standing::Creating),
            most: settings.max_targets,
        });
    }
    let is_making = |row: &Row| queues.makings.iter().any(|making| making.target == row.target);
    // Of which nobody says how it is may be there.
    let is_there = |row: &&Row| {
        !is_absent(row.fact.state) && row.fact.state != TargetState::NotWatched && !is_making(row)
    };
    Ok((wanting, rows.whole().filter(is_there).count()))
}

/// Whether its control plane says for certain that a target is not there.
fn is_absent(state: TargetState) -> bool {
    matches!(state, TargetState::Gone | TargetState::Preempted | TargetState::Stopped)
}

/// Whether a target that is not there can be made, and would be this entry's to have then.
fn may_be_made(ctx: &Ctx, data: &Data, entry: &QueueEntry, row: &Row) -> bool {
    let written = data.board().entry(&row.target);
    let kept = written.reserved(ctx.clock.now(), |user| data.user(user).is_some());
    let is_open = match kept {
        Some(kept) => kept.user == entry.user,
        None => matches!(written.status, None | Some(Written::Free)),
    };
    let wish = target_spec::Wish::default();
    is_absent(row.fact.state)
        && row.jobs.is_empty()
        && is_open
        && !limits::coming_back(ctx, data).contains_key(&row.target)
        && target_spec::spec(data, &row.target, &wish, &row.fact).is_ok()
}

/// Whether somebody waits for what is being made.
fn is_wanted(data: &Data, making: &Making) -> bool {
    let entry = data.queues().entry(&making.job);
    entry.is_some_and(|entry| entry.applies && entry.held.is_none())
}

/// Makes a target, or takes back what nobody waits for any more. What came of it, on one line.
pub fn carry_out(ctx: &Ctx, target: &TargetName) -> Result<String, Error> {
    provision::alone(ctx, target, || {
        let data = ctx.data()?;
        let Some(making) = making_of(&data, target) else {
            return Ok(format!("{target}: nobody makes it any more"));
        };
        if !is_wanted(&data, making) {
            return take_back(ctx, making);
        }
        loans::made_by(ctx, &making.job, target, &making.token)?;
        let made = make(ctx, making);
        // It may be for somebody else by now.
        let data = ctx.data()?;
        let Some(now) = making_of(&data, target).filter(|now| now.token == making.token) else {
            return Ok(format!("{target}: nobody makes it any more"));
        };
        match made {
            Ok(_) => {
                waits::note(ctx, &data, &asked(now), true);
                forget(ctx, now)?;
                let text = format!("{target} was made for {}", now.job);
                watch::note(ctx, &ctx.actor, "queue", &text)?;
                Ok(text)
            }
            Err(_) if !is_wanted(&data, now) => take_back(ctx, now),
            Err(unmade) => in_vain(ctx, &data, now, unmade),
        }
    })
}

fn asked(making: &Making) -> AskedFor<'_> {
    AskedFor { target: &making.target, job: &making.job, since: making.since }
}

fn making_of<'d>(data: &'d Data, target: &TargetName) -> Option<&'d Making> {
    data.queues().makings.iter().find(|making| making.target == *target)
}

/// Asks for it, and waits until it is there.
fn make(ctx: &Ctx, making: &Making) -> Result<TargetFact, Unmade> {
    let name = &making.target;
    let seen = ProviderFacts::ask_of(ctx, &*ctx.data()?, name).fact(&*ctx.data()?, name);
    if answer::is_taken(&seen) {
        // Once the target is there again, nobody could tell any more that it was taken from a job.
        let survey = outlook::survey(ctx, &mut LookMemory::default(), snapshot::ASKED_AT_MOST)?;
        record_facts::record_facts(ctx, &survey)?;
    }
    let data = ctx.data()?;
    provision::unused(ctx, name, None)?;
    if let Some(job) = limits::coming_back(ctx, &data).get(name).and_then(|jobs| jobs.first()) {
        let what = format!("{name} is made anew for {}, which is to come back", job.id());
        return Err(Error::refused(what).hint("it is asked for again when that has ended").into());
    }
    let spec = target_spec::spec(&data, name, &target_spec::Wish::default(), &seen)?;
    target_spec::remember(ctx, &spec)?;
    fail::fail_point!("supply-written");
    let mut go_on = || {
        let data = ctx.data()?;
        let now = making_of(&data, name).filter(|now| now.token == making.token);
        match now {
            Some(now) if is_wanted(&data, now) => Ok(()),
            _ => Err(Error::refused(format!("nobody waits for {name} any more"))
                .hint("nothing more is asked for")),
        }
    };
    provision::make_once(ctx, &spec, &RequestId(making.request()), &mut go_on)
}

/// What could not be made is asked for again later; what nobody may make holds who waits for it, with the reason,
/// unless something else is being made for him.
fn in_vain(
    ctx: &Ctx,
    data: &Data,
    making: &Making,
    Unmade { trouble, error }: Unmade,
) -> Result<String, Error> {
    let why = error.message.lines().next().unwrap_or_default().to_owned();
    let (target, job) = (&making.target, &making.job);
    if let Some(login) = error.login() {
        let now = ctx.clock.now();
        change(ctx, making, |making| {
            (making.again, making.needs_login) = (Some((now, login.clone())), true);
        })?;
        let text = format!("{target} is not made for {job}: {}", decide::needs_login(&login));
        watch::note(ctx, &ctx.actor, "queue", &text)?;
        return Ok(text);
    }
    let is_refused = matches!(trouble, Some(Trouble::Permission | Trouble::User));
    let is_answered = matches!(
        trouble,
        Some(
            Trouble::NoCapacity
                | Trouble::Quota
                | Trouble::Permission
                | Trouble::User
                | Trouble::NotFound
                | Trouble::AlreadyExists
        )
    );
    let others = if is_answered { candidates(ctx, data, making) } else { Candidates::default() };
    if is_refused && others.next.is_none() && data.queues().makings_for(job).count() < 2 {
        if let Some(entry) = data.queues().entry(job) {
            starts::hold(ctx, entry, &error)?;
        }
        forget(ctx, making)?;
        return Ok(format!("{job} is held: {target} could not be made: {why}"));
    }
    // What was not answered may have been done: it is asked for by the same mark.
    let is_answered =
        others.next.is_some() || matches!(trouble, Some(Trouble::NoCapacity | Trouble::Quota));
    let tries = making.tries + u32::from(is_answered);
    let row = tries.max(1);
    if is_answered {
        waits::note(ctx, data, &asked(making), false);
    }
    let now = ctx.clock.now();
    if let Some(other) = others.next {
        change(ctx, making, |making| {
            making.target = other.clone();
            making.since = now;
            making.tries = tries;
            (making.again, making.needs_login) = (None, false);
        })?;
        let text = format!("{target} is not to be had for {job} ({why}): {other} is asked for");
        watch::note(ctx, &ctx.actor, "queue", &text)?;
        return Ok(text);
    }
    let rest_s = backoff::delay_s(backoff::CAPACITY, row, backoff::jitter(&making.token, row));
    let again = ctx.clock.now().plus(std::time::Duration::from_secs_f64(rest_s));
    let is_new = making.again.as_ref().is_none_or(|(_, before)| *before != why);
    change(ctx, making, |making| {
        making.tries = tries;
        making.again = Some((again, why.clone()));
        if is_answered {
            making.since = again;
        }
        if let Some(first) = &others.first {
            making.target = first.clone();
        }
    })?;
    let text =
        format!("{target} could not be created for {job}: {why}; tried again in {rest_s:.0} s");
    if is_new {
        watch::note(ctx, &ctx.actor, "queue", &text)?;
    }
    Ok(text)
}

/// What would do as well as a target that is not to be had, of those that its job names.
#[derive(Default)]
struct Candidates {
    /// The next in their order.
    next: Option<TargetName>,
    /// Behind the last, the first: it is asked for again when all have rested for a while.
    first: Option<TargetName>,
}

fn candidates(ctx: &Ctx, data: &Data, making: &Making) -> Candidates {
    let Some(entry) = data.queues().entry(&making.job) else { return Candidates::default() };
    let TargetRequest::Any(any) = &entry.spec.target else { return Candidates::default() };
    let Some(at) = any.among.iter().position(|name| name == making.target.as_str()) else {
        return Candidates::default();
    };
    let is_free = |name: &&TargetName| {
        making_of(data, name).is_none() && {
            let fact = ProviderFacts::ask_of(ctx, data, name).fact(data, name);
            is_absent(fact.state)
                && target_spec::spec(data, name, &target_spec::Wish::default(), &fact).is_ok()
        }
    };
    let all: Vec<TargetName> =
        any.among.iter().map(|name| TargetName::from(name.as_str())).collect();
    match all.iter().skip(at + 1).find(is_free).cloned() {
        Some(next) => Candidates { next: Some(next), first: None },
        None => Candidates { next: None, first: all.iter().take(at).find(is_free).cloned() },
    }
}

/// Takes back what was asked for by it and is not there yet. What is there stays: somebody may want it.
fn take_back(ctx: &Ctx, making: &Making) -> Result<String, Error> {
    let name = &making.target;
    let data = ctx.data()?;
    let fact = ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
    let is_ours = fact.request.as_deref().is_some_and(|request| making.asked_for(request));
    // A queued request that has ended holds its quota until it is taken away.
    let is_request = fact.queued.as_ref().is_some_and(|queued| queued.state == QueuedState::Ended);
    let goes = fact.state == TargetState::Pending
        || fact.state == TargetState::Preempted && fact.created_at.is_none() && is_request;
    let what = match fact.state {
        TargetState::Unknown => return Err(provision::unknown(name, &fact.raw_state)),
        _ if goes && is_ours && provision::unused(ctx, name, None).is_ok() => {
            provision::turn(ctx, name, fact.zone.as_deref(), Verb::Delete, &mut || Ok(()))?;
            "is taken back"
        }
        TargetState::Ready if is_ours => "is there now, and stays",
        _ => "is left as it is",
    };
    forget(ctx, making)?;
    let text = format!("{name} {what}: nobody waits for it any more");
    watch::note(ctx, &ctx.actor, "queue", &text)?;
    Ok(text)
}

/// Changes what is written of it, as long as it is the same.
fn change(ctx: &Ctx, making: &Making, change: impl Fn(&mut Making)) -> Result<(), Error> {
    ctx.transact(|tx| {
        let makings = &mut tx.data.queues_mut().makings;
        makings.iter_mut().filter(|one| one.token == making.token).for_each(change);
        Ok(())
    })
}

fn forget(ctx: &Ctx, making: &Making) -> Result<(), Error> {
    ctx.transact(|tx| {
        tx.data.queues_mut().makings.retain(|one| one.token != making.token);
        Ok(())
    })
}
