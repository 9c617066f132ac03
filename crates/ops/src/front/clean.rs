//! `clean` and its parts: closes windows and archives records. A record is never dropped without being
//! archived, and nothing is removed while tmux cannot say whether its window lives. What a person has opened
//! is left alone: only panes that carry the mark of such a job are closed ([`orphans`] has the rest).

mod code;
mod ends;
mod some;
mod words;

use std::collections::BTreeSet;

use tpu_core::model::audit;
use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::{JobId, JobNumber, UserName};
use tpu_core::model::job::{CLEANING, Event, Intent, Job, Status};
use tpu_core::model::lineage::{self, Lineage};
use tpu_core::model::view::Whose;
use tpu_engine::runner::window::place::{self, Window};
use tpu_engine::runner::window::{silence, unwritten};
use tpu_engine::runner::{StopOrder, StopPart, Unreached, window};

pub use self::code::{WithResults, with_results};
pub use self::some::{clean_some, dry_run_clean_some};

use self::ends::{
    Unwritten, goes_on, is_dead_end, is_known_to_its_engine, looked_at, unwritten, why_kept,
};
use super::old_code::CodeGone;
use crate::act::{kill, orphan_windows, outlook, reconcile, record_facts};
use crate::base::ctx::{job_of, user_of};
use crate::base::environment;
use crate::base::{lease, records};
use crate::observe::fleet::AskedOnce;
use crate::observe::orphans::{self, Closing, Left, Unmarked, Which};
use crate::observe::{doors, runners, snapshot, worker_processes};
use crate::waiting::queue::after;
use crate::{Ctx, Error, Kind};

/// Which ends of lineages are cleared away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// `clear-finished`.
    Finished,
    /// `clear-error`: failed or killed.
    Failed,
    /// `clear-all`, `clean`.
    All,
}

impl Ends {
    fn includes(self, status: &Status) -> bool {
        match status {
            Status::Finished => self != Self::Failed,
            Status::Error(_) | Status::Killed(_) => self != Self::Finished,
            Status::Unset
            | Status::Starting
            | Status::Running
            | Status::Resumed(_)
            | Status::Rerunned(_) => false,
        }
    }
}

/// How much is cleared away.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Which ends.
    pub ends: Ends,
    /// Also the ancestors of live leaves (`-re`).
    pub ancestors_too: bool,
    /// Also what a rule is about to bring back.
    pub force: bool,
}

impl Extent {
    /// Lineages that ended so, and nothing else.
    pub fn of(ends: Ends) -> Self {
        Self { ends, ancestors_too: false, force: false }
    }
}

/// A lineage that has ended and is kept all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its leaf.
    pub job: JobId,
    /// Why.
    pub reason: String,
}

/// What is to be cleared away.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The windows whose records go.
    pub windows: Vec<JobNumber>,
    /// Lineages that stay although they have ended.
    pub kept: Vec<Kept>,
}

/// What was, or would be, cleared away.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Archived records.
    pub archived: Vec<JobId>,
    /// Closed windows, and panes of windows.
    pub closed: Vec<Closing>,
    /// Lineages that stay although they have ended.
    pub kept: Vec<Kept>,
    /// Windows that are left open.
    pub left: Vec<Left>,
    /// Code that was removed from the copies of jobs that were archived long ago.
    pub code: CodeGone,
    /// Copies that were, or would be, removed with what their jobs wrote.
    pub whole: CodeGone,
}

impl Cleaned {
    fn add(&mut self, other: Self) {
        self.archived.extend(other.archived);
        self.closed.extend(other.closed);
        self.keep(other.kept);
        self.left.extend(other.left);
    }

    fn keep(&mut self, kept: Vec<Kept>) {
        for kept in kept {
            if !self.kept.contains(&kept) {
                self.kept.push(kept);
            }
        }
    }
}

/// `tpu clean`: everything that has ended, then ended windows without record, then records without window.
pub fn clean(ctx: &Ctx, user: &UserName, extent: Extent) -> Result<Cleaned, Error> {
    let mut cleaned = clear(ctx, user, extent)?;
    if matches!(ctx.tmux.look(), TmuxFact::Up { .. }) {
        let orphans = orphan_windows::close(ctx, user, Which::Ended, &Unmarked::default())?;
        cleaned.closed.extend(orphans.closed);
        cleaned.left.extend(at_work(orphans.left));
        cleaned.add(archive_windowless(ctx, user, extent.force)?);
    }
    cleaned.remove_old_code(ctx);
    Ok(cleaned)
}

/// Windows that only look like rubbish: a job without a record is at work in them. What a person has opened
/// needs no word from a command that leaves it alone anyway.
fn at_work(left: Vec<Left>) -> impl Iterator<Item = Left> {
    left.into_iter().filter(|left| left.job.is_some())
}

/// What [`clean`] would do now.
pub fn dry_run_clean(ctx: &Ctx, user: &UserName, extent: Extent) -> Result<Cleaned, Error> {
    let mut would = dry_run_clear(ctx, user, extent)?;
    if matches!(ctx.tmux.look(), TmuxFact::Up { .. }) {
        let Chosen { windows, kept } = windowless(ctx, user, extent.force)?;
        let ids = windows.into_iter().map(|window| JobId::new(user.clone(), window));
        let more: Vec<JobId> = ids.filter(|id| !would.archived.contains(id)).collect();
        would.archived.extend(more);
        would.keep(kept);
        let orphans = orphans::dry_run(ctx, user, Which::Ended)?;
        would.closed.extend(orphans.closed);
        would.left.extend(at_work(orphans.left));
    }
    Ok(would)
}

/// Archives the lineages whose leaf has ended so.
pub fn clear(ctx: &Ctx, user: &UserName, extent: Extent) -> Result<Cleaned, Error> {
    reconcile::reconcile(ctx)?;
    clear_chosen(ctx, user, choose(ctx, user, extent)?)
}

fn clear_chosen(ctx: &Ctx, user: &UserName, chosen: Chosen) -> Result<Cleaned, Error> {
    let mut cleaned = archive(ctx, user, &chosen.windows, Named::No)?;
    cleaned.keep(chosen.kept);
    Ok(cleaned)
}

/// What [`clear`] would do now.
pub fn dry_run_clear(ctx: &Ctx, user: &UserName, extent: Extent) -> Result<Cleaned, Error> {
    would_clear(ctx, user, choose(ctx, user, extent)?)
}

fn would_clear(ctx: &Ctx, user: &UserName, chosen: Chosen) -> Result<Cleaned, Error> {
    let Chosen { windows, kept } = chosen;
    let data = ctx.data()?;
    let tmux = ctx.tmux.look();
    let Found { jobs, open, left } = find(ctx, user_of(&data, user)?, &windows, &tmux, Named::No)?;
    let closed = open.iter().map(|(job, pane)| closing(job, pane, &tmux)).collect();
    let archived = jobs.iter().map(Job::id).collect();
    Ok(Cleaned { archived, closed, kept, left, ..Cleaned::default() })
}

/// Archives the lineages of a user that say that an attempt goes on with them, where none does: their windows
/// and processes are looked after as in [`clear`].
pub(crate) fn archive_dead_ends(ctx: &Ctx, user: &UserName) -> Result<Cleaned, Error> {
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    let ends = audit::dead_ends(&data);
    let lineages = ends.iter().filter(|id| id.user == *user).filter_map(|id| {
        let lineage = Lineage::of(owner, id.window)?;
        let is_in_hand = owner.job(id.window).is_none_or(|job| job.intent.is_some());
        (lineage.leaf() == Some(id.window) && !is_in_hand).then_some(lineage.windows)
    });
    archive(ctx, user, &lineages.flatten().collect::<Vec<_>>(), Named::No)
}

/// What [`clear`] would archive now, by the shown status of the leaves.
pub fn choose(ctx: &Ctx, user: &UserName, extent: Extent) -> Result<Chosen, Error> {
    let look =
        outlook::look(ctx, &mut snapshot::LookMemory::default(), &Whose::of([user.clone()]))?;
    let data = ctx.data()?;
    let user = user_of(&data, user)?;
    let mut chosen = Chosen::default();
    for lineage in lineage::lineages(user) {
        let Some(leaf) = lineage.leaf() else { continue };
        let Some(view) = look.jobs.iter().find(|view| view.id.window == leaf) else { continue };
        let over = view.shown.unknown.is_none()
            && (extent.ends.includes(&view.shown.status) || is_dead_end(user, leaf));
        if over {
            match why_kept(ctx, &data, view, extent.force) {
                Some(kept) => chosen.kept.push(kept),
                None => chosen.windows.extend(&lineage.windows),
            }
        } else if extent.ancestors_too && view.shown.status.is_live() {
            chosen.windows.extend(lineage.windows.iter().filter(|window| **window != leaf));
        }
    }
    Ok(chosen)
}

/// Whether a person has named the very window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Yes,
    No,
}

/// The records of windows, and where those are.
struct Found<'a> {
    jobs: Vec<Job>,
    /// The panes that go with them.
    open: Vec<(&'a Job, &'a PaneFact)>,
    /// Windows without our mark, which stay.
    left: Vec<Left>,
}

/// Finds the panes of these records. Nothing half done: if one window cannot be judged, none is closed and no
/// record goes.
fn find<'a>(
    ctx: &Ctx,
    owner: &'a User,
    windows: &[JobNumber],
    tmux: &'a TmuxFact,
    named: Named,
) -> Result<Found<'a>, Error> {
    let mut found = Found { jobs: Vec::new(), open: Vec::new(), left: Vec::new() };
    for window in windows {
        let Some(job) = owner.job(*window) else { continue };
        if job.engine.is_some() {
            is_known_to_its_engine(ctx, owner, job, tmux)?;
            found.jobs.push(job.clone());
            continue;
        }
        let window = place::find(job, &owner.tmux_name, tmux, &*ctx.procs);
        let claims_none = !job.status.is_live() && place::claims_none(job, &window, tmux);
        match window {
            _ if claims_none => {}
            Window::Here(pane) if pane.launch.is_some() => found.open.push((job, pane)),
            // A window of the original: that it has this number is no proof that it is the job's.
            Window::Here(pane) if named == Named::No => {
                found.left.extend(orphans::left_of(pane, tmux, &ctx.tmux.occupants()?));
            }
            Window::Here(pane) => {
                window::alone(job, pane, tmux)?;
                found.open.push((job, pane));
            }
            Window::Gone | Window::Lost(_) => {}
            Window::Elsewhere(reason) | Window::Unknown(reason) => {
                let id = job.id();
                return Err(Error::unreachable(format!("{id}: {reason}; no record was archived"))
                    .hint("try again when tmux answers; a window elsewhere is cleaned there"));
            }
        }
        found.jobs.push(job.clone());
    }
    Ok(found)
}

/// The closing of a job's pane: with it the window goes, unless somebody else has a pane in it.
fn closing(job: &Job, pane: &PaneFact, tmux: &TmuxFact) -> Closing {
    let whole = place::beside(pane, tmux).next().is_none();
    let (session, window) = (pane.session.clone(), pane.window_index);
    Closing { session, window, job: Some(job.id()), whole }
}

/// Closes the windows of these records, then archives them. That it is about to is recorded first: what
/// cannot be written down is not begun.
fn archive(
    ctx: &Ctx,
    user: &UserName,
    windows: &[JobNumber],
    named: Named,
) -> Result<Cleaned, Error> {
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    // Before tmux is asked about windows: a control plane may take its time.
    let seen = looked_at(ctx, owner, windows);
    let tmux = ctx.tmux.look();
    let Found { jobs: mut gone, open, left } = find(ctx, owner, windows, &tmux, named)?;
    let mut cleaned = Cleaned { left, ..Cleaned::default() };
    let ends = unwritten(ctx, &gone, &seen);
    if !open.is_empty() {
        gone = intend(ctx, &gone)?;
    }
    // One whose processes cannot be ended keeps its record; the others do not wait for it.
    let (mut ended, mut stuck, mut why) = (Vec::new(), Vec::new(), None);
    for job in gone {
        let pane = open.iter().find(|(seen, _)| is_same(seen, &job)).map(|(_, pane)| *pane);
        match end(ctx, &job, pane, &tmux) {
            Ok(()) => {
                if let Some(launch) = &job.launch {
                    silence::forget(&ctx.effects, &launch.token);
                    unwritten::ends(&ctx.effects, &launch.token);
                }
                cleaned.closed.extend(pane.map(|pane| closing(&job, pane, &tmux)));
                ended.push(job);
            }
            Err(error) => {
                stuck.push(job);
                why.get_or_insert(error);
            }
        }
    }
    let removed = remove(ctx, user, &ended, &ends);
    if removed.is_err() {
        stuck.extend(ended);
    }
    if !stuck.is_empty() {
        // It runs out by itself; the error at hand says more than this one could.
        drop(withdraw(ctx, &stuck));
    }
    cleaned.archived = removed?;
    match why {
        None => Ok(cleaned),
        Some(error) if cleaned.archived.is_empty() => Err(error),
        Some(error) => {
            let message = format!("{} {}", cleaned.summary(), error.message);
            Err(Error { message, ..error })
        }
    }
}

/// Closes the window of a record that is being cleared away, and ends what is left of its job.
fn end(ctx: &Ctx, job: &Job, pane: Option<&PaneFact>, tmux: &TmuxFact) -> Result<(), Error> {
    match pane {
        Some(_) => close(ctx, job, tmux),
        None => stop_unended(ctx, std::slice::from_ref(job)),
    }
}

/// Whether two readings of a record are of the same attempt, with the same successor.
fn is_same(a: &Job, b: &Job) -> bool {
    let token = |job: &Job| job.launch.as_ref().map(|launch| launch.token.clone());
    (a.windows_id, a.child, token(a)) == (b.windows_id, b.child, token(b))
}

/// Marks these records as being cleared away. Skips a record that somebody else acts on or that has changed;
/// returns the marked ones.
fn intend(ctx: &Ctx, jobs: &[Job]) -> Result<Vec<Job>, Error> {
    ctx.transact(|tx| {
        let intent = Intent { action: CLEANING.to_owned(), at: tx.now, by: lease::me(&ctx.env) };
        let mut begun = Vec::new();
        for seen in jobs {
            if let Some(job) = tx.data.job_mut(&seen.id())
                && job.intent.is_none()
                && is_same(job, seen)
            {
                job.intent = Some(intent.clone());
                begun.push(seen.clone());
            }
        }
        Ok(begun)
    })
}

/// Takes back what [`intend`] wrote.
fn withdraw(ctx: &Ctx, jobs: &[Job]) -> Result<(), Error> {
    let me = lease::me(&ctx.env);
    ctx.transact(|tx| {
        for seen in jobs {
            if let Some(job) = tx.data.job_mut(&seen.id())
                && job.intent.as_ref().is_some_and(|i| i.action == CLEANING && i.by == me)
            {
                job.intent = None;
            }
        }
        Ok(())
    })
}

/// Stops what is left of an ended job, then closes its window.
fn close(ctx: &Ctx, job: &Job, tmux: &TmuxFact) -> Result<(), Error> {
    let (data, unreached) = (ctx.data()?, unreached(ctx, job)?);
    let (runner, run) = (runners::at(ctx, job, tmux), runners::run(&data, job)?);
    runner.stop(run, StopOrder { part: StopPart::Program, unreached })?;
    fail::fail_point!("clean-stopped");
    runner.stop(run, StopOrder { part: StopPart::Whole, unreached })?;
    Ok(())
}

/// Where no way to the workers of a job is known at all, its end is believed: nobody will ever be able to look,
/// and the journal says that nobody has. Workers that only do not answer now are another matter.
fn unreached(ctx: &Ctx, job: &Job) -> Result<Unreached, Error> {
    let has_ended = job.launch.as_ref().is_some_and(|launch| launch.exit.is_some());
    let data = ctx.data()?;
    let is_lost = has_ended
        && doors::to(ctx, &AskedOnce::new(ctx, &data, &job.tpu))
            .is_err_and(|error| error.kind == Kind::Refused);
    Ok(if is_lost { Unreached::GoPast } else { Unreached::Refuse })
}

/// Stops what outlived the windows of jobs whose end nobody saw: without their records nobody would know
/// whose processes these are.
fn stop_unended(ctx: &Ctx, jobs: &[Job]) -> Result<(), Error> {
    let unended = |job: &&Job| {
        // That its window has gone is an end that was noted, and not one of its processes.
        let open = job.launch.as_ref().is_some_and(|launch| launch.exit.is_none());
        let is_killed = matches!(job.status, Status::Killed(_));
        // A record without a launch of ours has no workers: what is beside it is an earlier one's.
        let has_workers = job.launch.is_some() && !worker_processes::of_job(ctx, job).is_empty();
        open && !is_killed || has_workers
    };
    for job in jobs.iter().filter(unended) {
        let unreached = unreached(ctx, job)?;
        runners::stop(ctx, &*ctx.data()?, job, StopOrder { part: StopPart::Program, unreached })?;
    }
    Ok(())
}

/// Moves records from data.json to the archive, with the ends that they do not hold yet, in one transaction. One that has
/// got a successor meanwhile stays; that its end was written down, as we have just stopped it, is no reason to.
fn remove(
    ctx: &Ctx,
    user: &UserName,
    jobs: &[Job],
    ends: &[Unwritten],
) -> Result<Vec<JobId>, Error> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let archived = ctx.transact(|tx| {
        let mut leaving = Vec::new();
        for seen in jobs {
            let job = tx.data.user_mut(user).and_then(|owner| owner.job_mut(seen.windows_id));
            let Some(job) = job.filter(|now| is_same(now, seen)) else { continue };
            let id = seen.id();
            if let Some(end) = ends.iter().find(|end| end.id == id && job.status.is_live()) {
                job.apply(&Event::Failed(end.kind))?;
                job.verdict = Some(end.verdict.clone());
                job.keep_reached(&end.reached);
            }
            leaving.push((id, job.status.to_string()));
        }
        after::forget_in(tx, &leaving.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>());
        leaving.retain(|(id, _)| tx.archive(id));
        for (id, status) in &leaving {
            records::note(tx, id, "archived", status.clone());
        }
        Ok(leaving.into_iter().map(|(id, _)| id).collect::<Vec<JobId>>())
    })?;
    environment::discard(ctx, &archived);
    Ok(archived)
}

/// `-czj`: archives records that claim a window which is gone for certain. Ancestors of attempts that
/// stay are kept with them.
pub fn archive_windowless(ctx: &Ctx, user: &UserName, force: bool) -> Result<Cleaned, Error> {
    reconcile::reconcile(ctx)?;
    let Chosen { windows, kept } = windowless(ctx, user, force)?;
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    let jobs: Vec<Job> = windows.iter().filter_map(|window| owner.job(*window)).cloned().collect();
    let ends = unwritten(ctx, &jobs, &looked_at(ctx, owner, &windows));
    stop_unended(ctx, &jobs)?;
    Ok(Cleaned { archived: remove(ctx, user, &jobs, &ends)?, kept, ..Cleaned::default() })
}

/// What [`archive_windowless`] would archive now.
pub fn windowless(ctx: &Ctx, user: &UserName, force: bool) -> Result<Chosen, Error> {
    let (mut memory, whose) = (snapshot::LookMemory::default(), Whose::of([user.clone()]));
    let look = outlook::look(ctx, &mut memory, &whose)?;
    // The records before the windows: of one that begins in between there is neither.
    let (data, now) = (ctx.data()?, ctx.clock.now());
    fail::fail_point!("windowless-read");
    let tmux = ctx.tmux.look();
    let owner = user_of(&data, user)?;
    let window_of = |job: &Job| place::find(job, &owner.tmux_name, &tmux, &*ctx.procs);
    let is_silent = |job: &Job| matches!(window_of(job), Window::Unknown(_));
    if !matches!(tmux, TmuxFact::Up { .. }) && owner.jobs().iter().all(is_silent) {
        return Err(orphans::unreachable(&tmux));
    }
    let windowless = |window: &JobNumber| {
        owner.job(*window).is_some_and(|job| {
            let opening = job.launch.as_ref().is_some_and(|launch| {
                !launch.confirmed
                    && now.seconds_since(launch.at) < tpu_core::model::launch::LAUNCH_LIMIT_S
            });
            let window = window_of(job);
            let is_gone = matches!(window, Window::Gone | Window::Lost(_));
            !opening && (is_gone || place::claims_none(job, &window, &tmux))
        })
    };
    let (mut goes, mut kept) = (BTreeSet::<JobNumber>::new(), Vec::new());
    for Lineage { windows } in lineage::lineages(owner) {
        let Some(leaf) = windows.last().copied().filter(&windowless) else { continue };
        let view = look.jobs.iter().find(|view| view.id.window == leaf);
        match view.and_then(|view| goes_on(view).or_else(|| why_kept(ctx, &data, view, force))) {
            Some(why) => kept.push(why),
            None => goes.extend(windows.iter().filter(|window| windowless(window))),
        }
    }
    Ok(Chosen { windows: goes.into_iter().collect(), kept })
}

/// `kill-window`: closes the window of a job, which is killed if it lives, and archives its record.
pub fn kill_window(ctx: &Ctx, id: &JobId) -> Result<Cleaned, Error> {
    reconcile::reconcile(ctx)?;
    record_facts::record_ends(ctx, std::slice::from_ref(id))?;
    let data = ctx.data()?;
    let Ok(job) = job_of(&data, id) else {
        let Some(closing) = orphan_windows::close_one(ctx, id)? else {
            return job_of(&data, id).map(|_| Cleaned::default());
        };
        return Ok(Cleaned { closed: vec![closing], ..Cleaned::default() });
    };
    goes_on_nowhere(&data, job)?;
    // With the intent of a kill: no rule must bring back what ends because its window is closed.
    // A window that cannot be judged from here stays; `archive` says why.
    let session = &user_of(&data, &id.user)?.tmux_name;
    let tmux = ctx.tmux.look();
    let (judged, pane) = match place::find(job, session, &tmux, &*ctx.procs) {
        // It has no window, and is stopped as any.
        _ if job.engine.is_some() => (true, None),
        Window::Here(pane) => (true, Some(closing(job, pane, &tmux))),
        Window::Gone | Window::Lost(_) => (true, None),
        Window::Elsewhere(_) | Window::Unknown(_) => (false, None),
    };
    let killed = if judged && job.status.is_live() {
        Some(kill::kill_one(ctx, id, Unreached::Refuse)?)
    } else {
        None
    };
    let mut cleaned = archive(ctx, &id.user, &[id.window], Named::Yes)?;
    if killed.is_some_and(|killed| killed.window) {
        cleaned.closed.extend(pane);
    }
    Ok(cleaned)
}

/// What [`kill_window`] would be refused for, if for anything. Nothing is closed.
pub fn dry_run_kill_window(ctx: &Ctx, id: &JobId) -> Result<(), Error> {
    reconcile::reconcile(ctx)?;
    let data = ctx.data()?;
    let Ok(job) = job_of(&data, id) else {
        return match orphans::dry_run_one(ctx, id)? {
            Some(_) => Ok(()),
            None => job_of(&data, id).map(drop),
        };
    };
    let owner = user_of(&data, &id.user)?;
    goes_on_nowhere(&data, job)?;
    find(ctx, owner, &[id.window], &ctx.tmux.look(), Named::Yes)?;
    if job.status.is_live() {
        kill::dry_run_one(ctx, id)?;
    }
    Ok(())
}

/// Refuses an attempt that has a successor.
fn goes_on_nowhere(data: &Data, job: &Job) -> Result<(), Error> {
    if let Some(entry) = data.queues().successor_of(&job.id()) {
        let (id, waits) = (job.id(), entry.number);
        return Err(Error::refused(format!("{} waits to continue from {id}", entry.id()))
            .hint(format!("take that out first: tpu dequeue {waits} {}", job.user)));
    }
    let owner = user_of(data, &job.user)?;
    match job.child.filter(|child| owner.job(*child).is_some()) {
        Some(child) => {
            Err(Error::refused(format!("{} continues as {}/{child}", job.id(), job.user))
                .hint(format!("kill that one, then: tpu clean {}", job.user)))
        }
        None => Ok(()),
    }
}
