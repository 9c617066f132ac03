//! The board: who uses which target, who keeps one, what people noted. Local: it is what data.json, the
//! windows and the control plane's last word say, and needs no spreadsheet.
//!
//! [`look`] makes the rows; [`release`], [`reserve`] and the notes change what people wrote; `sheet` takes
//! the board to a spreadsheet and back; `rooms` asks engines how much room there is.

pub mod rooms;
pub mod sheet;

use std::collections::HashMap;

use tpu_core::model::board::{Entry, Reservation};
use tpu_core::model::data::Data;
use tpu_core::model::facts::TargetState;
use tpu_core::model::ids::{JobId, TargetName, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::prices::Prices;
use tpu_core::model::target::Target;
use tpu_core::model::time::{self, Timestamp};
use tpu_core::plan::board::{self as plan, BoardFacts, Row};

use super::hosts::{self, Host};
use crate::base::ctx::{job_mut, user_of};
use crate::base::named::resolve_target;
use crate::base::reservations::may_take;
use crate::base::watch;
use crate::observe::fleet::ProviderFacts;
use crate::observe::snapshot;
use crate::{Ctx, Error};

/// Nobody keeps a target longer than this at a time.
const LONGEST_S: u64 = 7 * 24 * 3600;

/// All targets at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    /// When it was looked at.
    pub at: Timestamp,
    /// Every target; those that are shared first.
    pub targets: Vec<Row>,
    /// Zones that said nothing, and why.
    pub silent: Vec<(String, String)>,
    /// What the settings say that targets cost.
    pub prices: Prices,
    /// Of the targets those that are somebody's own machines: what they have for jobs, and who has it.
    pub hosts: Vec<Host>,
}

impl Board {
    /// The targets that somebody can have for himself and that something can be started on.
    pub fn to_be_had(&self) -> impl Iterator<Item = &Row> {
        self.targets.iter().filter(|row| row.is_known && !row.is_shared)
    }

    /// Targets that can be used, and all that a control plane watches.
    pub fn ready(&self) -> (usize, usize) {
        let count = |is: fn(TargetState) -> bool| {
            self.targets.iter().filter(|row| is(row.fact.state)).count()
        };
        (count(|state| state == TargetState::Ready), count(|s| s != TargetState::NotWatched))
    }
}

/// Every target that anybody knows, as it stands now. Asks the control plane, if there is one, so it may
/// take its time; without one nothing leaves this machine. A zone that says nothing is named with its
/// reason, and of its targets nothing is known then.
pub fn look(ctx: &Ctx) -> Result<Board, Error> {
    let data = ctx.data()?;
    let users = snapshot::users_of_targets(ctx, &data, |_| true);
    let present = users.into_iter().map(|(target, users)| (target, users.present()));
    let live: HashMap<_, _> = present.filter(|(_, jobs)| !jobs.is_empty()).collect();
    let fleet = ProviderFacts::ask(ctx);
    let targets: HashMap<_, _> = plan::known(&data, live.keys())
        .into_iter()
        .map(|name| (name.clone(), fleet.fact(&data, &name)))
        .collect();
    let others = fleet.strangers(&data, &targets);
    let now = ctx.clock.now();
    Ok(Board {
        at: now,
        targets: plan::rows(BoardFacts {
            data: &data,
            live: &live,
            targets: &targets,
            others: &others,
            now,
        }),
        silent: fleet.silent(),
        prices: ctx.settings(None)?.prices.clone(),
        hosts: hosts::places(&data, |name| live.get(name).cloned().unwrap_or_default()),
    })
}

/// One target that can be on the board.
fn target(data: &Data, typed: &str) -> Result<Target, Error> {
    let target = resolve_target(data, typed)?;
    if target.capacity.is_unlimited() {
        return Err(Error::refused(format!("{} takes any number of jobs", target.name))
            .hint("there is nothing to keep or to free; just: tpu run local -- COMMAND"));
    }
    Ok(target)
}

/// Frees a target: nobody keeps it, and nothing is noted. With a `user` only if it is theirs. `false` if
/// it was free.
pub fn release(
    ctx: &Ctx,
    typed: &str,
    user: Option<&UserName>,
) -> Result<(TargetName, bool), Error> {
    let data = ctx.data()?;
    let name = target(&data, typed)?.name;
    let present = snapshot::users_of_target(ctx, &data, &name).present();
    if let Some(job) = present.first() {
        return Err(Error::refused(format!("{name} is in use by {job}")).hint(format!(
            "when it ends the target is free by itself; tpu kill w={} {}",
            job.window, job.user
        )));
    }
    ctx.transact(|tx| {
        let entry = tx.data.board().entry(&name);
        let is_user = |user: &UserName| tx.data.user(user).is_some();
        let owner = entry
            .reserved(tx.now, is_user)
            .map(|kept| kept.user.as_str().to_owned())
            .or_else(|| entry.user.clone());
        if let (Some(user), Some(owner)) = (user, &owner)
            && owner != user.as_str()
        {
            return Err(Error::refused(format!("{name} is {owner}'s, not {user}'s"))
                .hint(format!("tpu release {name} frees it whoever has it")));
        }
        let was_taken = !entry.is_empty();
        tx.data.board_mut().set(&name, Entry::default());
        Ok((name.clone(), was_taken))
    })
    .inspect(|(name, was_taken)| {
        if *was_taken {
            note(ctx, "release", name.as_str());
        }
    })
}

/// Keeps a target for a user. Refused while somebody else uses or keeps it.
pub fn reserve(
    ctx: &Ctx,
    typed: &str,
    user: &UserName,
    seconds: u64,
) -> Result<(TargetName, Timestamp), Error> {
    if seconds == 0 || seconds > LONGEST_S {
        return Err(Error::usage("a reservation lasts from 1 s to 7 days")
            .hint("as in: tpu reserve TARGET --for 2h"));
    }
    let data = ctx.data()?;
    user_of(&data, user)?;
    let name = target(&data, typed)?.name;
    let users = snapshot::users_of_target(ctx, &data, &name);
    let others = |job: &&JobId| job.user != *user;
    if let Some(job) = users.live.iter().find(others) {
        return Err(in_use(&name, job));
    }
    let kept = ctx.transact(|tx| {
        // Somebody may have started there since.
        let started = tx.data.jobs().find(|job| {
            job.tpu == name
                && job.status.is_live()
                && job.user != *user
                && !users.dead.contains(&job.id())
        });
        if let Some(job) = started {
            return Err(in_use(&name, &job.id()));
        }
        may_take(&tx.data, &name, user, tx.now)?;
        let until = tx.now.plus_seconds(i64::try_from(seconds).unwrap_or(i64::MAX));
        let mut entry = tx.data.board().entry(&name);
        entry.reservation = Some(Reservation { user: user.clone(), until });
        tx.data.board_mut().set(&name, entry);
        Ok((name.clone(), until))
    })?;
    note(ctx, "reserve", &format!("{} for {user}, {}", kept.0, time::age(seconds)));
    Ok(kept)
}

fn in_use(name: &TargetName, job: &JobId) -> Error {
    Error::refused(format!("{name} is in use by {job}")).hint(format!(
        "wait for it (tpu wait {} {}), or take another one: tpu find",
        job.window, job.user
    ))
}

/// Sets the notes of a target, or adds to them, also those that were given with what runs there. What they are afterwards.
pub fn set_notes(
    ctx: &Ctx,
    typed: &str,
    text: &str,
    add: bool,
) -> Result<(TargetName, String), Error> {
    ctx.transact(|tx| {
        let target = target(&tx.data, typed)?;
        let name = target.name.clone();
        let is_noted = |job: &&Job| {
            target.is_exclusive() && job.tpu == name && job.status.is_live() && job.notes.is_some()
        };
        let noted: Vec<JobId> = tx.data.jobs().filter(is_noted).map(Job::id).collect();
        let mut entry = tx.data.board().entry(&name);
        let old = plan::notes_of(&tx.data, &noted).unwrap_or_else(|| entry.notes.clone());
        let notes = match (add, old.as_str()) {
            (true, old) if !old.is_empty() => format!("{old} {text}"),
            _ => text.to_owned(),
        };
        entry.notes.clone_from(&notes);
        tx.data.board_mut().set(&name, entry);
        for job in &noted {
            job_mut(&mut tx.data, job)?.notes = Some(notes.clone()).filter(|of| !of.is_empty());
        }
        Ok((name, notes))
    })
}

/// A line in the journal. The change itself stands; that it is not noted is worth a warning.
fn note(ctx: &Ctx, kind: &str, text: &str) {
    if let Err(error) = watch::note(ctx, &ctx.actor, kind, text) {
        ctx.warn([format!("not in the journal: {error}")]);
    }
}
