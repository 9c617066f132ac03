//! Chooses the best free target of a type, and waits for one in turn with others.
//!
//! Everybody computes the same thing from the same file: who came first gets the first choice, then the
//! next. A place counts while somebody stands there who says so from time to time; nobody waits behind a
//! process that is dead, stopped, or on a host that has gone.
//!
//! What ends a waiting process decides what becomes of its place. Ctrl-C, the end of its terminal and a signal
//! to end give it up. Killed, it does not count any more and is cleared away. Ended by a restart of the machine it is kept, with what was to be
//! started: the MONITOR of its host, account and tmux server waits on there ([`carry_on`]); until that one
//! runs the place is passed over, and keeps its rank. A shutdown ends processes one by one before the
//! machine goes down, and nobody can tell that from a kill: so a place is not cleared away before it has
//! been silent for [`SILENT_S`], and who is killed so shortly before a restart is waited on for as well.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::time::Duration;

use crate::model::capacity::Ask;
use crate::model::data::Data;
use crate::model::ids::{JobId, JobNumber, TargetName, UserName};
use crate::model::line::{Ticket, WaitingRun};
use crate::model::spec::{AnyOf, TargetRequest};
use crate::model::target::Target;
use crate::model::time;
use crate::ops::ctx::user_of;
use crate::ops::hosts::choose as hosts;
use crate::ops::launch::attempt::Launched;
use crate::ops::launch::{self, RunRequest, check};
use crate::ops::named::still_known;
use crate::ops::{Ctx, Error, Kind, lease, watch};
use crate::plan::board::{self as plan, Pick, Row, Wanted};
use crate::plan::choice::{Assignment, Candidate, Ranking, Unfit};
use crate::plan::slots::Short;
use crate::plan::types::TypeExpr;

/// Whoever waits says so once in so many seconds.
const RENEW_S: u64 = 60;
/// Who has said nothing for longer does not count.
const SILENT_S: u64 = 180;
/// A place where nobody has been for so long is given up, whatever became of its host.
const FORGOTTEN_S: u64 = 7 * 24 * 3600;
/// Between the first two looks of one who waits; later looks are rarer.
const FIRST_REST: Duration = Duration::from_millis(300);

/// Who wishes for a target, and for which.
#[derive(Clone, Debug)]
pub struct Wish {
    /// For whom.
    pub user: UserName,
    /// Among which targets one is chosen.
    pub any_of: AnyOf,
    /// What the job asks of it.
    pub ask: Ask,
}

impl Wish {
    /// What a request wishes for, where it names no target.
    pub fn of(request: &RunRequest) -> Option<Self> {
        match &request.spec.target {
            TargetRequest::Named(_) => None,
            TargetRequest::Any(any_of) => {
                let ask = request.spec.ask.clone();
                Some(Self { user: request.user.clone(), any_of: any_of.clone(), ask })
            }
        }
    }

    /// What is wished for, in words.
    pub fn what(&self) -> String {
        self.any_of.in_words()
    }

    /// The machines that are wished for, as far as they are still known.
    fn machines(&self, data: &Data) -> Result<Vec<Target>, Error> {
        let machines = still_known(data, &self.any_of.among)?;
        hosts::refuse_engine(&machines).map(|()| machines)
    }

    fn of_ticket(ticket: &Ticket) -> Self {
        let ask = ticket.wish.as_ref().map(|wish| wish.spec.ask.clone()).unwrap_or_default();
        Self { user: ticket.user.clone(), any_of: ticket.any_of.clone(), ask }
    }
}

/// Whether a word names types, and at least one known target is of them. What looks like a type and fits
/// nothing is more likely a name with a slip in it.
pub fn is_type(data: &Data, word: &str) -> bool {
    let Some(expr) = TypeExpr::parse(word) else { return false };
    let names = data.registry().names();
    names.iter().any(|name| {
        let registered = data.target(name).and_then(|target| target.accelerator);
        let accelerator = registered.or_else(|| crate::plan::types::guess(name.as_str()));
        expr.includes(accelerator.as_deref())
    })
}

/// What the wish may have now, the best first: what is left when everybody who came before has chosen.
/// `ticket` is the wish's own place in the line; without one it stands at the end.
pub fn picks(ctx: &Ctx, wish: &Wish, ticket: Option<&str>) -> Result<Vec<Pick>, Error> {
    ranking(ctx, wish, ticket).map(|ranking| ranking.picks)
}

/// The same with why each other machine is not taken.
fn ranking(ctx: &Ctx, wish: &Wish, ticket: Option<&str>) -> Result<Ranking, Error> {
    let data = ctx.data()?;
    user_of(&data, &wish.user)?;
    let waiting = data.waiting().iter().take_while(|other| Some(other.id.as_str()) != ticket);
    // What somebody waits for may have been forgotten since: he hears of it, and nobody else.
    let before: Vec<Wish> = waiting
        .filter(|other| counts(ctx, other))
        .map(Wish::of_ticket)
        .filter(|wish| wish.machines(&data).is_ok())
        .collect();
    let all: Vec<&Wish> = before.iter().chain([wish]).collect();
    let mut field = Field::of(ctx, &data, &all)?;
    for earlier in &before {
        // Nobody stands behind the trouble of another.
        let picks = field.ranking(earlier).map(|ranking| ranking.picks).unwrap_or_default();
        if let Some(first) = picks.first() {
            field.take(earlier, &first.target);
        }
    }
    field.ranking(wish)
}

/// What can be had while those who wait choose one after the other.
struct Field<'a> {
    ctx: &'a Ctx,
    data: &'a Data,
    /// Whole targets, for those who wish for a type.
    rows: Vec<Row>,
    /// Machines with room for several, for those who wish for one of some.
    hosts: Vec<Candidate>,
}

impl<'a> Field<'a> {
    /// What is to be had by the facts; only what somebody of these wishes for is looked at.
    fn of(ctx: &'a Ctx, data: &'a Data, wishes: &[&Wish]) -> Result<Self, Error> {
        let is_of_hosts = |wish: &&&Wish| !wish.any_of.among.is_empty();
        let rows = if wishes.iter().all(|wish| is_of_hosts(&wish)) {
            Vec::new()
        } else {
            super::look(ctx)?.targets
        };
        let mut machines: Vec<Target> = Vec::new();
        for wish in wishes.iter().filter(is_of_hosts) {
            let new = wish.machines(data)?.into_iter();
            let new: Vec<Target> = new.filter(|one| !machines.contains(one)).collect();
            machines.extend(new);
        }
        let hosts = hosts::candidates(ctx, data, &machines);
        Ok(Self { ctx, data, rows, hosts })
    }

    fn ranking(&self, wish: &Wish) -> Result<Ranking, Error> {
        if wish.any_of.among.is_empty() {
            let picks = choose(self.data, &self.rows, wish)?;
            return Ok(Ranking { picks, unfit: Vec::new() });
        }
        let wanted = hosts::HostRequest {
            user: &wish.user,
            among: &wish.machines(self.data)?,
            policy: wish.any_of.policy,
            ask: &wish.ask,
        };
        hosts::rank(self.ctx, self.data, &self.hosts, &wanted)
    }

    /// One who came earlier has chosen.
    fn take(&mut self, wish: &Wish, target: &TargetName) {
        self.rows.retain(|row| row.target != *target);
        if let Some(host) = self.hosts.iter_mut().find(|host| host.target == *target) {
            // Nobody has a number yet who only waits.
            host.take(JobId::new(wish.user.clone(), JobNumber(0)), &wish.ask);
        }
    }
}

fn choose(data: &Data, rows: &[Row], wish: &Wish) -> Result<Vec<Pick>, Error> {
    let types: Option<Vec<TypeExpr>> =
        wish.any_of.types.iter().map(|word| TypeExpr::parse(word)).collect();
    let types = types.ok_or_else(|| {
        Error::usage(format!("not all of these are types: {}", wish.any_of.types.join(", ")))
            .hint("v2, v234, v3+, v*, v2-32, v5e")
    })?;
    // The zone where the newest attempt on a target of a zone has its checkpoints.
    let newest = data.user(&wish.user).into_iter().flat_map(|user| user.jobs().iter().rev());
    let zone = newest
        .filter_map(|job| data.target(&job.tpu))
        .filter(|target| !target.is_here())
        .find_map(|target| target.zone);
    let wanted = Wanted {
        types: &types,
        reclaimable: wish.any_of.reclaimable,
        user: &wish.user,
        zone: zone.as_deref(),
    };
    Ok(plan::choose(rows, &wanted))
}

/// Says why nothing can be had.
pub fn nothing(ctx: &Ctx, wish: &Wish) -> Error {
    let what = wish.what();
    if !wish.any_of.among.is_empty() {
        return Error::refused(format!("none of {what} has room{}", holders(ctx, wish)))
            .hint("wait until one has: the same with --wait; `tpu hosts` says who has what");
    }
    let waiting = waiting(ctx);
    let line = if waiting > 0 { format!("; {waiting} waiting in line") } else { String::new() };
    let types = wish.any_of.types.join(" ");
    Error::refused(format!("no target of {what} is free{}{line}", holders(ctx, wish))).hint(
        format!(
            "who has which: tpu find {types}; wait in line: tpu run {} --wait",
            if types.is_empty() { "--auto" } else { &types }
        ),
    )
}

/// How many wait in line.
pub fn waiting(ctx: &Ctx) -> usize {
    ctx.data().map_or(0, |data| data.waiting().iter().filter(|ticket| counts(ctx, ticket)).count())
}

/// Who has the first of what is wished for: `: v2-32-p1 alice, v2-32-p2 bob`.
pub fn holders(ctx: &Ctx, wish: &Wish) -> String {
    const SHOWN: usize = 4;
    if !wish.any_of.among.is_empty() {
        let data = ctx.data();
        let of = |data: &Data| Field::of(ctx, data, &[wish])?.ranking(wish);
        let ranking = data.and_then(|data| of(&data));
        return ranking.map(|ranking| told(&ranking.unfit)).unwrap_or_default();
    }
    let types: Vec<TypeExpr> =
        wish.any_of.types.iter().filter_map(|w| TypeExpr::parse(w)).collect();
    let Ok(board) = super::look(ctx) else { return String::new() };
    let told: Vec<String> = board
        .to_be_had()
        .filter(|row| plan::is_of(row, &types, wish.any_of.reclaimable))
        .filter(|row| row.standing != plan::Standing::Free)
        .map(|row| match (row.jobs.first(), &row.user) {
            (Some(job), _) => format!("{} {job}", row.label),
            (None, Some(user)) => format!("{} {} by {user}", row.label, row.standing.as_str()),
            (None, None) => format!("{} {}", row.label, row.standing.as_str()),
        })
        .collect();
    let more = told.len().saturating_sub(SHOWN);
    let shown = told.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
    match (shown.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(": {shown}"),
        (false, more) => format!(": {shown} and {more} more"),
    }
}

/// Whether somebody waits at a place.
fn counts(ctx: &Ctx, ticket: &Ticket) -> bool {
    let is_there = lease::is_alive(ctx, &ticket.owner) != Some(false);
    let is_kept = lease::has_rebooted(ctx, &ticket.owner);
    silence(ctx, ticket) < SILENT_S && (is_there || is_kept)
}

/// Whether a process of this boot waited there and is dead: nobody waits there any more.
pub fn is_ghost(ctx: &Ctx, ticket: &Ticket) -> bool {
    lease::is_alive(ctx, &ticket.owner) == Some(false) && !is_kept(ctx, ticket)
}

/// Whether a restart has ended the process that waited, and it is known what it wanted.
fn is_kept(ctx: &Ctx, ticket: &Ticket) -> bool {
    ticket.wish.is_some() && lease::has_rebooted(ctx, &ticket.owner)
}

/// Whether a place can be cleared away for certain.
fn is_over(ctx: &Ctx, ticket: &Ticket) -> bool {
    let silent = silence(ctx, ticket);
    // A clock that was set forward makes nobody dead.
    let is_lost = lease::is_alive(ctx, &ticket.owner) != Some(true);
    silent >= FORGOTTEN_S && is_lost || silent >= SILENT_S && is_ghost(ctx, ticket)
}

fn silence(ctx: &Ctx, ticket: &Ticket) -> u64 {
    ctx.clock.now().seconds_since(ticket.seen)
}

/// Takes a place at the end of the line for what `request` says; the target comes later.
pub fn join(ctx: &Ctx, wish: &Wish, request: &RunRequest) -> Result<String, Error> {
    let id = ctx.random.hex(8);
    let ticket = Ticket {
        id: id.clone(),
        user: wish.user.clone(),
        any_of: wish.any_of.clone(),
        owner: lease::me(&ctx.env),
        since: ctx.clock.now(),
        seen: ctx.clock.now(),
        place: watch::place(ctx),
        wish: Some(waiting_run(ctx, request)),
    };
    ctx.transact(|tx| {
        user_of(&tx.data, &wish.user)?;
        let line = tx.data.waiting_mut();
        line.retain(|ticket| !is_over(ctx, ticket));
        line.push(ticket);
        Ok(id)
    })
}

/// Gives a place up.
pub fn leave(ctx: &Ctx, id: &str) -> Result<(), Error> {
    ctx.transact(|tx| {
        tx.data.waiting_mut().retain(|ticket| ticket.id != id);
        Ok(())
    })
}

/// Gives a place up as part of the transaction that claims what was waited for. Refused when it is gone:
/// then somebody else has started what was to be started here, or was told not to.
pub fn hand_in(data: &mut Data, id: &str) -> Result<(), Error> {
    let line = data.waiting_mut();
    let before = line.len();
    line.retain(|ticket| ticket.id != id);
    if line.len() == before {
        return Err(Error::refused("its place in the line is gone: nothing was started").hint(
            "`tpu check` shows whether it was started already; wait anew: tpu run TYPE --wait",
        ));
    }
    Ok(())
}

/// Says that somebody is still there.
fn renew(ctx: &Ctx, id: &str) -> Result<(), Error> {
    ctx.transact(|tx| {
        let now = tx.now;
        tx.data.waiting_mut().iter_mut().filter(|t| t.id == id).for_each(|t| t.seen = now);
        Ok(())
    })
}

/// How many are before this place.
fn before(ctx: &Ctx, id: &str) -> Result<usize, Error> {
    let data = ctx.data()?;
    let before = data.waiting().iter().take_while(|ticket| ticket.id != id);
    Ok(before.filter(|ticket| counts(ctx, ticket)).count())
}

/// Starts what `request` says on the best target that can be had now; one that somebody else takes first
/// is left to them, and the next is tried. `None` if none can be had. With a `ticket` at its place in the
/// line, which is given up with the start.
pub fn take(
    ctx: &Ctx,
    wish: &Wish,
    request: &RunRequest,
    ticket: Option<&str>,
) -> Result<Option<(Launched, Pick)>, Error> {
    let mut passed_over = Vec::new();
    let Ranking { picks: all, unfit } = ranking(ctx, wish, ticket)?;
    if all.is_empty() {
        never(wish, &unfit)?;
    }
    // Whole targets of a type say how they are by their control plane.
    let is_of_hosts = !wish.any_of.among.is_empty();
    let asked: Box<dyn Iterator<Item = _>> = if is_of_hosts {
        Box::new(hosts::usable(ctx, &all, &wish.ask).map(|(pick, busy)| (pick, busy.map(Some))))
    } else {
        Box::new(all.iter().map(|pick| (pick, Ok(None))))
    };
    for (pick, busy) in asked {
        let busy = match busy {
            Ok(busy) => busy,
            Err(why) => {
                passed_over.push(format!("{}: {why}", pick.target));
                continue;
            }
        };
        let Pick { target, reason } = pick.clone();
        let request = request.on(&Assignment { target, reason, busy });
        let launched = match ticket {
            None => launch::launch(ctx, &request),
            Some(ticket) => {
                let data = ctx.data()?;
                let waiting = data.waiting().iter().find(|t| t.id == ticket);
                let env = waiting.and_then(|t| t.wish.as_ref()).map(environment);
                launch::launch_in_turn(ctx, &request, (ticket, env.unwrap_or_default()))
            }
        };
        match launched {
            Ok(launched) => {
                ctx.warn(passed_over);
                return Ok(Some((launched, pick.clone())));
            }
            // Somebody was faster, also where there is room again by now.
            Err(error) if error.passes => {}
            // The same, if it is not to be had any more.
            Err(error) if error.kind == Kind::Refused => {
                let now = picks(ctx, wish, ticket)?;
                if now.iter().any(|other| other.target == pick.target) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    if passed_over.is_empty() || ticket.is_some() {
        return Ok(None);
    }
    let what = format!("none of {} can be used: {}", wish.what(), passed_over.join("; "));
    Err(Error::refused(what).hint("wait until one can be: the same with --wait"))
}

/// An error where nothing can ever be had, however long somebody waits.
fn never(wish: &Wish, unfit: &[(TargetName, Unfit)]) -> Result<(), Error> {
    let lacks = |(_, why): &(TargetName, Unfit)| matches!(why, Unfit::Short(Short::Lacks { .. }));
    if unfit.is_empty() || !unfit.iter().all(lacks) {
        return Ok(());
    }
    let what = format!("no machine of {} could ever run it{}", wish.what(), told(unfit));
    Err(Error::usage(what).hint("ask for less; `tpu hosts` says what each has"))
}

/// Why machines are not taken: `: gpu1: it has alice/7; gpu2: drained by bob`.
fn told(unfit: &[(TargetName, Unfit)]) -> String {
    const SHOWN: usize = 4;
    let each = |(name, why): &(TargetName, Unfit)| format!("{name}: {why}");
    let shown: Vec<String> = unfit.iter().take(SHOWN).map(each).collect();
    match (shown.is_empty(), unfit.len().saturating_sub(SHOWN)) {
        (true, _) => String::new(),
        (false, 0) => format!(": {}", shown.join("; ")),
        (false, more) => format!(": {}; and {more} more", shown.join("; ")),
    }
}

/// How somebody waits.
pub struct Patience<'a> {
    /// The longest rest between two looks.
    pub rest: Duration,
    /// Hears how many are before.
    pub say: &'a mut dyn FnMut(usize),
    /// Whether to wait no more.
    pub stop: &'a dyn Fn() -> Option<Stop>,
}

/// Why somebody waits no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// He was told to: his place is given up.
    Told,
    /// The machine goes down: his place is kept for when it is up again.
    GoesDown,
}

/// Waits at a place until there is a target, and starts there. Who is told to stop, or meets trouble that
/// waiting does not mend, gives the place up.
pub fn wait(
    ctx: &Ctx,
    wish: &Wish,
    request: &RunRequest,
    patience: Patience<'_>,
) -> Result<(Launched, Pick), Error> {
    let Patience { rest: longest, say, stop } = patience;
    let ticket = join(ctx, wish, request)?;
    let mut rest = FIRST_REST;
    let error = loop {
        match stop() {
            Some(Stop::Told) => {
                break Error::new(
                    Kind::Interrupted,
                    "nobody waits any more, and nothing was started",
                )
                .hint("wait anew: the same command; its place in the line is given up");
            }
            Some(Stop::GoesDown) => {
                return Err(Error::new(Kind::Interrupted, "this machine goes down")
                    .hint("MONITOR waits on at this place in the line when it is up again"));
            }
            None => {}
        }
        match turn(ctx, wish, request, &ticket) {
            Ok(Ok(taken)) => return Ok(taken),
            Ok(Err(before)) => say(before),
            Err(error) if is_passing(ctx, &ticket, &error) => {}
            Err(error) => break error,
        }
        let until = ctx.clock.monotonic() + rest;
        while stop().is_none() && ctx.clock.monotonic() < until {
            ctx.clock.sleep((longest / 10).min(until.saturating_sub(ctx.clock.monotonic())));
        }
        rest = (rest * 3 / 2).min(longest);
    };
    leave(ctx, &ticket)?;
    Err(error)
}

/// One look at a place: what was started, else how many are before.
pub fn turn(
    ctx: &Ctx,
    wish: &Wish,
    request: &RunRequest,
    ticket: &str,
) -> Result<Result<(Launched, Pick), usize>, Error> {
    let data = ctx.data()?;
    let own = data.waiting().iter().find(|own| own.id == ticket);
    if own.is_some_and(|own| silence(ctx, own) >= RENEW_S) {
        renew(ctx, ticket)?;
    }
    match take(ctx, wish, request, Some(ticket))? {
        Some(taken) => Ok(Ok(taken)),
        None => Ok(Err(before(ctx, ticket)?)),
    }
}

/// Whether it is trouble that may pass while one waits. What goes wrong once the place is handed in is
/// told by the record that it was handed in for.
fn is_passing(ctx: &Ctx, id: &str, error: &Error) -> bool {
    let stands = |data: &Data| data.waiting().iter().any(|ticket| ticket.id == id);
    matches!(error.kind, Kind::Unreachable | Kind::State)
        && ctx.data().map_or(true, |data| stands(&data))
}

/// Clears away what is over, and waits on at the places of this host, account and tmux server whose
/// processes a restart has ended: MONITOR does so in every turn. Whether anybody is waited for.
pub fn carry_on(ctx: &Ctx) -> Result<bool, Error> {
    let data = ctx.data()?;
    if data.waiting().iter().any(|ticket| is_over(ctx, ticket)) {
        ctx.transact(|tx| {
            tx.data.waiting_mut().retain(|ticket| !is_over(ctx, ticket));
            Ok(())
        })?;
    }
    let here = watch::place(ctx);
    let mut any = false;
    for ticket in data.waiting().iter().filter(|t| is_kept(ctx, t) && t.place == here) {
        let Some(waiting) = &ticket.wish else { continue };
        if is_over(ctx, ticket) {
            continue;
        }
        let request = RunRequest {
            user: ticket.user.clone(),
            spec: waiting.spec.clone(),
            on: None,
            force: waiting.force,
        };
        match turn(ctx, &Wish::of_ticket(ticket), &request, &ticket.id) {
            Ok(Ok((launched, pick))) => {
                let waited = time::age(ctx.clock.now().seconds_since(ticket.since));
                let text = format!(
                    "started {} on {} ({}), after {waited} in the line",
                    launched.job, launched.target, pick.reason
                );
                watch::note(ctx, &ctx.actor, "line", &text)?;
            }
            Ok(Err(_)) => any = true,
            Err(error) if is_passing(ctx, &ticket.id, &error) => any = true,
            Err(error) => {
                leave(ctx, &ticket.id)?;
                let text = format!("{} waits no more: {error}", ticket.user);
                watch::note(ctx, &ctx.actor, "line", &text)?;
            }
        }
    }
    Ok(any)
}

/// What is to be started, with the environment of whoever asks for it.
fn waiting_run(ctx: &Ctx, request: &RunRequest) -> WaitingRun {
    let pair = |(name, value): (OsString, OsString)| {
        OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat())
    };
    WaitingRun {
        spec: request.spec.clone(),
        force: request.force,
        env: check::kept_environment(ctx).into_iter().map(pair).collect(),
    }
}

fn environment(waiting: &WaitingRun) -> Vec<(OsString, OsString)> {
    let pair = |word: &OsString| {
        let (name, value) =
            word.as_bytes().split_at(word.as_bytes().iter().position(|b| *b == b'=')?);
        let os = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((os(name), os(value.get(1..)?)))
    };
    waiting.env.iter().filter_map(pair).collect()
}
