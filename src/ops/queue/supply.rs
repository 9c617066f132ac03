//! Makes targets for those who wait in the queue for nothing else and were submitted so (`--apply`).
//!
//! What is to be made is written down before anything is asked of a control plane ([`look`]); MONITOR then carries out
//! each by itself ([`carry_out`]), as long as it takes, and whoever comes after a crash goes on with the same request.
//! Where there is no capacity it is asked again, with back-off; where nobody waits any more what was asked for is taken
//! back, as long as it is not there. What has been made is a free target like any other.

use crate::model::data::Data;
use crate::model::entry::QueueEntry;
use crate::model::facts::TargetState;
use crate::model::ids::TargetName;
use crate::model::making::Making;
use crate::model::target::Machines;
use crate::ops::fleet::ProviderFacts;
use crate::ops::provision::{self, Unmade};
use crate::ops::{Ctx, Error, Kind, board, named, watch};
use crate::plan::backoff;
use crate::plan::board::{Row, Standing};
use crate::plan::budget::Budget;
use crate::plan::queue::{self as plan, EntryStanding, WaitReason};
use crate::plan::supply::{Wanting, supply};
use crate::provider::{RequestId, Trouble, Verb};

use super::field::{Avoided, Field, Wish};
use super::{limits, pass, presence, stand, wishes};

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
        let what = format!("--apply: {} are machines, which nobody makes", wish.what());
        return Err(Error::refused(what).hint(hint));
    }
    Ok(())
}

/// Writes down what is to be made for those who wait here, and what no longer. The targets with which something is to be
/// done now.
pub fn look(ctx: &Ctx) -> Result<Vec<TargetName>, Error> {
    let data = ctx.data()?;
    let queues = data.queues();
    let here = watch::place(ctx);
    let is_mine = |making: &&Making| making.place == here;
    let asks = |entry: &QueueEntry| entry.applies && entry.place == here;
    if !queues.entries.iter().any(asks) && !queues.makings.iter().any(|one| is_mine(&one)) {
        return Ok(Vec::new());
    }
    let (wanting, there) = wanting(ctx, &data, &here)?;
    ctx.transact(|tx| {
        let mine = |making: &&Making| making.place == here;
        let makings: Vec<Making> = tx.data.queues().makings.iter().filter(mine).cloned().collect();
        let supply = supply(&wanting, &makings, there);
        if supply.new.is_empty() && supply.passed_on.is_empty() {
            return Ok(());
        }
        let now = tx.now;
        let known = &mut tx.data.queues_mut().makings;
        for (target, job) in supply.passed_on {
            for making in known.iter_mut().filter(|making| making.target == target) {
                making.job = job.clone();
            }
        }
        for (job, target) in supply.new {
            // Somebody at another place may make it.
            if known.iter().all(|making| making.target != target) {
                known.push(Making {
                    target,
                    job,
                    place: here.clone(),
                    token: ctx.random.hex(16),
                    since: now,
                    is_asked: false,
                    tries: 0,
                    again: None,
                });
            }
        }
        Ok(())
    })?;
    let (data, now) = (ctx.data()?, ctx.clock.now());
    let is_due = |making: &&Making| {
        let rests = making.again.as_ref().is_some_and(|(again, _)| *again > now);
        is_mine(making) && (!rests || !is_wanted(&data, making))
    };
    Ok(data.queues().makings.iter().filter(is_due).map(|making| making.target.clone()).collect())
}

/// Somebody says that things have changed: what was asked for in vain is asked for again at once.
pub fn rouse(data: &mut Data) {
    if data.queues().makings.iter().all(|making| making.again.is_none()) {
        return;
    }
    for making in &mut data.queues_mut().makings {
        making.again = None;
    }
}

/// Who waits here for a target alone and may have one made, and how many targets are there or come, but for those in the
/// making.
fn wanting(ctx: &Ctx, data: &Data, here: &str) -> Result<(Vec<Wanting>, usize), Error> {
    let queues = data.queues();
    let avoided = Avoided::new();
    let present = presence::count_all(ctx, &queues.entries);
    let mut field = Field::of(ctx, data, wishes(data, &present), None, &avoided)?;
    let rows = field.clone();
    let standings = stand(ctx, data, &present, &mut field);
    let coming_back = limits::coming_back(ctx, data);
    let now = ctx.clock.now();
    // People may have written that one is gone: its control plane alone knows.
    let is_absent =
        |state| matches!(state, TargetState::Gone | TargetState::Preempted | TargetState::Stopped);
    let may_be_made = |entry: &QueueEntry, row: &Row| {
        row.jobs.is_empty()
            && is_absent(row.fact.state)
            && !coming_back.contains_key(&row.target)
            && board::may_take(data, &row.target, &entry.user, now).is_ok()
    };
    let (at_work, of_users) = (limits::at_work(data, &[]), limits::of_users(ctx, data));
    let one = |standing: &EntryStanding<_>| {
        let entry = queues.entries.get(standing.entry)?;
        let is_so = entry.applies
            && entry.place == here
            && matches!(standing.waits, Some(WaitReason::NoPlace { .. }));
        let queue = queues.queue(&entry.queue).filter(|_| is_so)?;
        let waiting = entry.waiting().saturating_sub(standing.starts.len());
        let meant: Vec<&Row> = rows.meant_by(entry);
        let of = |standing: Standing| {
            let meant = meant.iter().filter(move |row| row.standing == standing);
            meant.map(|row| (*row).clone())
        };
        Some(Wanting {
            job: entry.id(),
            jobs: plan::room(queues, entry, &queue, (&at_work, &of_users), waiting),
            absent: of(Standing::Gone)
                .filter(|row| may_be_made(entry, row))
                .map(|row| row.target)
                .collect(),
            coming: of(Standing::Creating).map(|row| row.target).collect(),
            most: ctx.settings(data.user(&entry.user)).ok()?.max_targets,
        })
    };
    let wanting: Vec<Wanting> = standings.iter().filter_map(one).collect();
    let is_making = |row: &Row| queues.makings.iter().any(|making| making.target == row.target);
    let there = rows.whole().filter(|row| row.fact.state != TargetState::NotWatched);
    let there = there.filter(|row| {
        !matches!(row.standing, Standing::Gone | Standing::Unknown) && !is_making(row)
    });
    Ok((wanting, there.count()))
}

/// Whether somebody waits for what is being made.
fn is_wanted(data: &Data, making: &Making) -> bool {
    let entry = data.queues().entry(&making.job);
    entry.is_some_and(|entry| entry.applies && entry.held.is_none())
}

/// Makes a target, or takes back what nobody waits for any more. What came of it, on one line.
pub fn carry_out(ctx: &Ctx, target: &TargetName) -> Result<String, Error> {
    let data = ctx.data()?;
    let Some(making) = making_of(&data, target).cloned() else {
        return Ok(format!("{target}: nobody makes it any more"));
    };
    if !is_wanted(&data, &making) {
        return take_back(ctx, &making);
    }
    let made = provision::alone(ctx, target, || Ok(make(ctx, &making)))?;
    match made {
        Ok(()) => {
            forget(ctx, &making)?;
            let text = format!("{target} was made for {}", making.job);
            watch::note(ctx, &ctx.actor, "queue", &text)?;
            Ok(text)
        }
        Err(_) if !is_wanted(&*ctx.data()?, &making) => take_back(ctx, &making),
        Err(unmade) => in_vain(ctx, &making, unmade),
    }
}

fn making_of<'d>(data: &'d Data, target: &TargetName) -> Option<&'d Making> {
    data.queues().makings.iter().find(|making| making.target == *target)
}

/// Asks for it, and waits until it is there.
fn make(ctx: &Ctx, making: &Making) -> Result<(), Unmade> {
    let name = &making.target;
    provision::unused(ctx, name, None)?;
    let data = ctx.data()?;
    let seen = ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
    let spec = provision::spec(&data, name, &provision::Wish::default(), &seen)?;
    provision::remember(ctx, &spec)?;
    let is_ours = matches!(seen.state, TargetState::Gone | TargetState::Preempted);
    if is_ours && !making.is_asked {
        change(ctx, making, |making| making.is_asked = true)?;
    }
    fail::fail_point!("supply-written");
    let request = RequestId(format!("{}-{}", making.token, making.tries));
    let mut go_on = || {
        let data = ctx.data()?;
        let now = making_of(&data, name).filter(|now| now.token == making.token);
        match now {
            Some(now) if is_wanted(&data, now) => Ok(()),
            _ => Err(Error::refused(format!("nobody waits for {name} any more"))
                .hint("nothing more is asked for")),
        }
    };
    provision::make_once(ctx, &spec, &request, &mut go_on).map(drop)
}

/// What could not be made is asked for again later; what can never be holds who waits for it, with the reason.
fn in_vain(ctx: &Ctx, making: &Making, Unmade { trouble, error }: Unmade) -> Result<String, Error> {
    let why = error.message.lines().next().unwrap_or_default().to_owned();
    // What is not known of it, or is asked wrongly, no time mends.
    let is_final = error.kind == Kind::Usage
        || matches!(
            trouble,
            Some(Trouble::Quota | Trouble::Permission | Trouble::User | Trouble::AlreadyExists)
        );
    let (target, job) = (&making.target, &making.job);
    if is_final {
        let data = ctx.data()?;
        if let Some(entry) = data.queues().entry(job) {
            pass::hold(ctx, entry, &error)?;
        }
        forget(ctx, making)?;
        return Ok(format!("{job} is held: {target} could not be made: {why}"));
    }
    let tries = making.tries.saturating_add(1);
    let jitter = backoff::jitter(&making.token, tries);
    let rest_s = backoff::delay_s(Budget::Capacity, tries, jitter);
    let again = ctx.clock.now().plus(std::time::Duration::from_secs_f64(rest_s));
    let is_new = making.again.as_ref().is_none_or(|(_, before)| *before != why);
    change(ctx, making, |making| {
        making.tries = tries;
        making.again = Some((again, why.clone()));
    })?;
    let text = format!("{target} could not be made for {job}: {why}; asked again in {rest_s:.0} s");
    if is_new {
        watch::note(ctx, &ctx.actor, "queue", &text)?;
    }
    Ok(text)
}

/// Takes back what was asked for and is not there yet. What is there stays: somebody may want it.
fn take_back(ctx: &Ctx, making: &Making) -> Result<String, Error> {
    let name = &making.target;
    let what = provision::alone(ctx, name, || {
        let data = ctx.data()?;
        // It may have been asked for since.
        let making = making_of(&data, name).unwrap_or(making);
        let fact = ProviderFacts::ask_of(ctx, &data, name).fact(&data, name);
        match fact.state {
            TargetState::Unknown => Err(provision::unknown(name, &fact.raw_state)),
            TargetState::Pending if making.is_asked => {
                provision::turn(ctx, name, fact.zone.as_deref(), Verb::Delete, &mut || Ok(()))?;
                Ok("is taken back")
            }
            TargetState::Ready if making.is_asked => Ok("is there now, and stays"),
            _ => Ok("is left as it is"),
        }
    })?;
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
