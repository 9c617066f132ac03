//! Waits for a place at a terminal, in turn with everybody else in the queue.
//!
//! What ends a waiting process decides what becomes of its entry. Ctrl-C, the end of its terminal and a signal to end
//! give it up. Killed, it does not count any more and is cleared away. Ended by a restart of the machine it is kept:
//! the daemon of its host, account and tmux server starts it when its turn comes; until that one runs it is passed
//! over, and keeps its rank. A shutdown ends processes one by one before the machine goes down, and nobody can tell
//! that from a kill: so an entry is not cleared away before it has been silent for a while, and who is killed so
//! shortly before a restart is waited on for as well (`presence`).

use std::time::Duration;

use crate::act::launch::RunRequest;
use crate::act::launch::attempt::Launched;
use crate::act::stage;
use crate::base::environment;
use crate::base::queue_entries::gone;
use crate::{Ctx, Error, Kind};
use tpu_core::model::data::Data;
use tpu_core::model::ids::JobId;
use tpu_core::plan::board::Pick;
use tpu_core::plan::queue::order;

use super::pass::{self, Mine};
use super::submit::{self, Submission};
use super::wish::Wish;
use super::{now, presence};

/// Whoever waits says so once in so many seconds.
const RENEW_S: u64 = 60;
/// Between the first two looks of one who waits; later looks are rarer.
const FIRST_REST: Duration = Duration::from_millis(300);
/// Between two looks of one who waits, at most.
const LONGEST_REST: Duration = Duration::from_secs(3);

/// Gives a place up.
fn leave(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    let left = ctx.transact(|tx| Ok(tx.data.queues_mut().take(id)))?;
    if let Some(staged) = left.and_then(|entry| entry.spec.staged) {
        stage::discard(ctx, &staged);
    }
    environment::clear_laid_by(ctx);
    Ok(())
}

/// Says that somebody is still there.
fn renew(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    ctx.transact(|tx| {
        let now = tx.now;
        let keeper = tx.data.queues_mut().entry_mut(id).and_then(|entry| entry.keeper.as_mut());
        if let Some(keeper) = keeper {
            keeper.seen = now;
        }
        Ok(())
    })
}

/// How many have their turn before this one.
fn before(ctx: &Ctx, id: &JobId) -> Result<usize, Error> {
    let data = ctx.data()?;
    let entries = &data.queues().entries;
    let in_turn = order(entries).into_iter().filter_map(|at| entries.get(at));
    let before = in_turn.take_while(|entry| entry.id() != *id);
    Ok(before.filter(|entry| presence::counts(ctx, entry)).count())
}

/// Who is there while jobs begin. What is not said otherwise here is what a program does that has nobody to ask.
pub trait Attendant {
    /// Whether a target that cannot be used as it is is made usable first.
    fn makes_usable(&self, target: &str) -> Result<bool, Error> {
        let _ = target;
        Ok(false)
    }

    /// Sees how far a target is that is made usable; `None` once that is over.
    fn sees_step(&self, step: Option<&str>) {
        let _ = step;
    }

    /// Hears for what one waits in line, and how many are before.
    fn is_in_line(&self, line: String) {
        drop(line);
    }

    /// Why to wait no more, once there is a reason.
    fn stops(&self) -> Option<Stop> {
        None
    }

    /// The longest rest between two looks of one who waits.
    fn rest(&self) -> Duration {
        LONGEST_REST
    }
}

/// Nobody is there.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Attendant for Nobody {}

/// Why somebody waits no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// He was told to: his place is given up.
    Told,
    /// The machine goes down: his place is kept for when it is up again.
    GoesDown,
}

/// Waits in the queue until there is a target, and starts there. Who is told to stop, or meets trouble that
/// waiting does not mend, gives the place up.
pub fn wait(
    ctx: &Ctx,
    request: &RunRequest,
    attendant: &dyn Attendant,
) -> Result<(Launched, Pick), Error> {
    let (longest, wish) = (attendant.rest(), Wish::of_request(request));
    let submission = Submission { is_kept: true, ..Submission::default() };
    let id = submit::enter(ctx, request, &submission)?;
    let (mut rest, mut told) = (FIRST_REST, None);
    let error = loop {
        match attendant.stops() {
            Some(Stop::Told) => {
                break Error::new(
                    Kind::Interrupted,
                    "nobody waits any more, and nothing was started",
                )
                .hint("wait anew: the same command; its place in the queue is given up");
            }
            Some(Stop::GoesDown) => {
                return Err(Error::new(Kind::Interrupted, "this machine goes down")
                    .hint("the daemon waits on at this place in the queue when it is up again"));
            }
            None => {}
        }
        match turn(ctx, &id) {
            Ok(Ok(taken)) => return Ok(taken),
            Ok(Err(before)) => {
                if told.replace(before) != Some(before) {
                    attendant.is_in_line(in_line(ctx, &wish, before));
                }
            }
            Err(error) if is_passing(ctx, &id, &error) => {}
            Err(error) => break error,
        }
        let until = ctx.clock.monotonic() + rest;
        while attendant.stops().is_none() && ctx.clock.monotonic() < until {
            ctx.clock.sleep((longest / 10).min(until.saturating_sub(ctx.clock.monotonic())));
        }
        rest = (rest * 3 / 2).min(longest);
    };
    leave(ctx, &id)?;
    Err(error)
}

/// For what somebody waits in line, and how many are before.
pub(crate) fn in_line(ctx: &Ctx, wish: &Wish, before: usize) -> String {
    format!("waiting for {} · {before} before you{}", wish.what(), now::holders(ctx, wish))
}

/// One look at a place: what was started, else how many are before.
pub fn turn(ctx: &Ctx, id: &JobId) -> Result<Result<(Launched, Pick), usize>, Error> {
    let data = ctx.data()?;
    let own = data.queues().entry(id);
    if own.is_some_and(|own| presence::silence(ctx, own) >= RENEW_S) {
        renew(ctx, id)?;
    }
    let own = own.ok_or_else(gone)?;
    Wish::of_entry(&data, own, data.queues().queue(&own.queue).as_ref()).is_known(&data)?;
    // Without a daemon whoever waits starts also what comes before; what goes wrong there is no matter of his.
    ctx.warn(pass::told(pass::now_and_then(ctx)).1);
    match pass::pass(ctx, Mine::Own(id), 1)?.started.into_iter().next() {
        Some((_, launched, pick)) => Ok(Ok((launched, pick))),
        None => Ok(Err(before(ctx, id)?)),
    }
}

/// Whether it is trouble that may pass while one waits. What goes wrong once the place is handed in is
/// told by the record that it was handed in for.
fn is_passing(ctx: &Ctx, id: &JobId, error: &Error) -> bool {
    let stands = |data: &Data| data.queues().entry(id).is_some();
    matches!(error.kind, Kind::Unreachable | Kind::State)
        && ctx.data().map_or(true, |data| stands(&data))
}
