//! `clean` and its parts: closes windows and archives records. A record is never dropped without being
//! archived, and nothing is removed while tmux cannot say whether its window lives.

use std::collections::BTreeSet;

use crate::model::audit;
use crate::model::data::{Data, User};
use crate::model::facts::{PaneFact, TmuxFact};
use crate::model::ids::{JobId, UserName, WindowId};
use crate::model::job::{CLEANING, Intent, Job, Status};
use crate::model::lineage::{self, Lineage};
use crate::model::view::Whose;
use crate::plan::place::{self, Window};

use super::ctx::{job_of, user_of};
use super::launch::heal;
use super::processes::Unreached;
use super::{Ctx, Error, kill, lease, processes, records, snapshot, workers};

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
            Status::Error(_) | Status::Killed => self != Self::Finished,
            Status::Unset
            | Status::Starting
            | Status::Running
            | Status::Resumed(_)
            | Status::Rerunned(_) => false,
        }
    }
}

/// What was cleared away.
#[derive(Debug, Default)]
pub struct Cleaned {
    /// Archived records.
    pub archived: Vec<JobId>,
    /// Closed windows.
    pub closed: usize,
}

impl Cleaned {
    /// In words.
    pub fn summary(&self) -> String {
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        format!(
            "Archived {} job{}, closed {} window{}.",
            self.archived.len(),
            plural(self.archived.len()),
            self.closed,
            plural(self.closed)
        )
    }

    fn add(&mut self, other: Self) {
        self.archived.extend(other.archived);
        self.closed += other.closed;
    }
}

/// `tpu clean`: everything that has ended, then windows without record, then records without window.
pub fn clean(ctx: &Ctx, user: &UserName, ancestors_too: bool) -> Result<Cleaned, Error> {
    let mut cleaned = clear(ctx, user, Ends::All, ancestors_too)?;
    if matches!(ctx.tmux.look(), TmuxFact::Up { .. }) {
        cleaned.add(close_orphans(ctx, user)?);
        cleaned.add(archive_windowless(ctx, user)?);
    }
    Ok(cleaned)
}

/// Archives the lineages whose leaf has ended in one of `ends`; with `ancestors_too` also the ancestors
/// of live leaves.
pub fn clear(
    ctx: &Ctx,
    user: &UserName,
    ends: Ends,
    ancestors_too: bool,
) -> Result<Cleaned, Error> {
    heal::heal(ctx)?;
    let chosen = choose(ctx, user, ends, ancestors_too)?;
    archive(ctx, user, &chosen)
}

/// Archives the lineages of a user that say that an attempt goes on with them, where none does: their windows
/// and processes are looked after as in [`clear`].
pub fn archive_dead_ends(ctx: &Ctx, user: &UserName) -> Result<Cleaned, Error> {
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    let ends = audit::dead_ends(&data);
    let lineages = ends.iter().filter(|id| id.user == *user).filter_map(|id| {
        let lineage = Lineage::of(owner, id.window)?;
        let is_in_hand = owner.job(id.window).is_none_or(|job| job.intent.is_some());
        (lineage.leaf() == Some(id.window) && !is_in_hand).then_some(lineage.windows)
    });
    archive(ctx, user, &lineages.flatten().collect::<Vec<_>>())
}

/// The windows that [`clear`] would archive now, by the shown status of the leaves.
pub fn choose(
    ctx: &Ctx,
    user: &UserName,
    ends: Ends,
    ancestors_too: bool,
) -> Result<Vec<WindowId>, Error> {
    let look = snapshot::look(ctx, &mut snapshot::Memory::default(), &Whose::of([user.clone()]))?;
    let data = ctx.data()?;
    let user = user_of(&data, user)?;
    let mut chosen = Vec::new();
    for lineage in lineage::lineages(user) {
        let Some(leaf) = lineage.leaf() else { continue };
        let Some(view) = look.jobs.iter().find(|view| view.id.window == leaf) else { continue };
        // A job that is being killed is cleared when that is complete.
        let over = view.shown.unknown.is_none()
            && view.intent.is_none()
            && (ends.includes(&view.shown.status) || is_dead_end(user, leaf));
        if over {
            chosen.extend(&lineage.windows);
        } else if ancestors_too {
            chosen.extend(lineage.windows.iter().filter(|window| **window != leaf));
        }
    }
    Ok(chosen)
}

/// A leaf that says it has a child which is not there any more.
fn is_dead_end(user: &User, leaf: WindowId) -> bool {
    user.job(leaf).is_some_and(|job| job.status.is_superseded())
}

/// Closes the windows of these records, then archives them. That it is about to is recorded first: what
/// cannot be written down is not begun.
fn archive(ctx: &Ctx, user: &UserName, windows: &[WindowId]) -> Result<Cleaned, Error> {
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    let tmux = ctx.tmux.look();
    let mut cleaned = Cleaned::default();
    let mut gone = Vec::new();
    let mut open = Vec::new();
    for window in windows {
        let Some(job) = owner.job(*window) else { continue };
        match place::find(job, &owner.tmux_name, &tmux) {
            Window::Here(pane) => open.push((job, pane)),
            Window::Gone | Window::Lost(_) => {}
            // Nothing half done: if one window cannot be judged, none is closed and no record goes.
            Window::Elsewhere(reason) | Window::Unknown(reason) => {
                let id = job.id();
                return Err(Error::unreachable(format!("{id}: {reason}; no record was archived"))
                    .hint("try again when tmux answers; a window elsewhere is cleaned there"));
            }
        }
        gone.push(job.clone());
    }
    if !open.is_empty() {
        gone = intend(ctx, &gone)?;
    }
    // One whose processes cannot be ended keeps its record; the others do not wait for it.
    let (mut ended, mut stuck, mut why) = (Vec::new(), Vec::new(), None);
    for job in gone {
        let pane = open.iter().find(|(seen, _)| is_same(seen, &job)).map(|(_, pane)| *pane);
        match end(ctx, &job, pane, &tmux) {
            Ok(()) => {
                cleaned.closed += usize::from(pane.is_some());
                ended.push(job);
            }
            Err(error) => {
                stuck.push(job);
                why.get_or_insert(error);
            }
        }
    }
    let removed = remove(ctx, user, &ended);
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
    if let Some(pane) = pane {
        close(ctx, job, pane, tmux)?;
    }
    stop_unended(ctx, std::slice::from_ref(job))
}

/// Whether two readings of a record are of the same attempt, with the same successor.
fn is_same(a: &Job, b: &Job) -> bool {
    let token = |job: &Job| job.launch.as_ref().map(|launch| launch.token.clone());
    (a.windows_id, a.child, token(a)) == (b.windows_id, b.child, token(b))
}

/// Writes down that these records are being cleared away, except those that somebody else acts on or that
/// have changed meanwhile; those that are.
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
fn close(ctx: &Ctx, job: &Job, pane: &PaneFact, tmux: &TmuxFact) -> Result<(), Error> {
    processes::stop(ctx, job, Some(pane), Unreached::Refuse)?;
    fail::fail_point!("clean-stopped");
    let TmuxFact::Up { place, .. } = tmux else { return Ok(()) };
    kill::close(ctx, job, pane, place.server_pid)
}

/// Stops what outlived the windows of jobs whose end nobody saw: without their records nobody would know
/// whose processes these are.
fn stop_unended(ctx: &Ctx, jobs: &[Job]) -> Result<(), Error> {
    let unended = |job: &&Job| {
        // That its window has gone is an end that was noted, and not one of its processes.
        let open = job.launch.as_ref().is_some_and(|launch| launch.exit.is_none());
        open && job.status != Status::Killed || !workers::of_job(ctx, job).is_empty()
    };
    for job in jobs.iter().filter(unended) {
        processes::stop(ctx, job, None, Unreached::Refuse)?;
    }
    Ok(())
}

/// Moves records from data.json to the archive, in one transaction. A record that has got a successor
/// meanwhile stays; that its end was written down, because we have just stopped it, is no reason to.
fn remove(ctx: &Ctx, user: &UserName, jobs: &[Job]) -> Result<Vec<JobId>, Error> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    ctx.transact(|tx| {
        let mut archived = Vec::new();
        for seen in jobs {
            let Some(owner) = tx.data.user_mut(user) else { continue };
            if !owner.job(seen.windows_id).is_some_and(|now| is_same(now, seen)) {
                continue;
            }
            let id = seen.id();
            if tx.archive(&id) {
                records::note(tx, &id, "archived", seen.status.to_string());
                archived.push(id);
            }
        }
        Ok(archived)
    })
}

/// `-czw`: closes the windows of a user's session that no record claims. Never window 0.
pub fn close_orphans(ctx: &Ctx, user: &UserName) -> Result<Cleaned, Error> {
    close_orphans_if(ctx, user, |_| true)
}

/// The same for those in which all that we started has ended.
pub fn close_ended_orphans(ctx: &Ctx, user: &UserName) -> Result<Cleaned, Error> {
    close_orphans_if(ctx, user, has_ended)
}

fn close_orphans_if(
    ctx: &Ctx,
    user: &UserName,
    is_meant: impl Fn(&[&PaneFact]) -> bool,
) -> Result<Cleaned, Error> {
    heal::heal(ctx)?;
    let look = snapshot::look(ctx, &mut snapshot::Memory::default(), &Whose::of([user.clone()]))?;
    let tmux = ctx.tmux.look();
    let TmuxFact::Up { place, panes } = &tmux else { return Err(unreachable(&tmux)) };
    let mut cleaned = Cleaned::default();
    for orphan in &look.orphans {
        // Read again: a launch may have claimed it between.
        let data = ctx.data()?;
        let panes = panes_of(panes, &orphan.window_id);
        if panes.is_empty() || !is_meant(&panes) || panes.iter().any(|pane| claimed(&data, pane)) {
            continue;
        }
        for pane in panes {
            ctx.tmux.close_window(pane, place.server_pid)?;
        }
        cleaned.closed += 1;
    }
    Ok(cleaned)
}

/// The panes of a window.
pub(super) fn panes_of<'a>(panes: &'a [PaneFact], window_id: &str) -> Vec<&'a PaneFact> {
    panes.iter().filter(|pane| pane.window_id == window_id).collect()
}

/// Whether a window is ours and all that was started in it has ended.
pub(super) fn has_ended(panes: &[&PaneFact]) -> bool {
    let ended = |pane: &&PaneFact| pane.launch.is_some() && (pane.dead || pane.exit.is_some());
    !panes.is_empty() && panes.iter().all(ended)
}

/// Whether any record claims a pane.
fn claimed(data: &Data, pane: &PaneFact) -> bool {
    data.users()
        .iter()
        .any(|user| user.jobs().iter().any(|job| place::is_window_of(job, &user.tmux_name, pane)))
}

/// `-czj`: archives records that claim a window which is gone for certain. Ancestors of attempts that
/// stay are kept with them.
pub fn archive_windowless(ctx: &Ctx, user: &UserName) -> Result<Cleaned, Error> {
    heal::heal(ctx)?;
    let tmux = ctx.tmux.look();
    if !matches!(tmux, TmuxFact::Up { .. }) {
        return Err(unreachable(&tmux));
    }
    let data = ctx.data()?;
    let owner = user_of(&data, user)?;
    let now = ctx.clock.now();
    let windowless = |window: &WindowId| {
        owner.job(*window).is_some_and(|job| {
            let opening = job.launch.as_ref().is_some_and(|launch| {
                !launch.confirmed
                    && now.seconds_since(launch.at) < crate::plan::diagnose::LAUNCH_LIMIT_S
            });
            !opening
                && matches!(
                    place::find(job, &owner.tmux_name, &tmux),
                    Window::Gone | Window::Lost(_)
                )
        })
    };
    let mut chosen: BTreeSet<WindowId> = BTreeSet::new();
    for Lineage { windows } in lineage::lineages(owner) {
        if windows.last().is_some_and(windowless) {
            chosen.extend(windows.iter().filter(|window| windowless(window)));
        }
    }
    let jobs: Vec<Job> = chosen.iter().filter_map(|window| owner.job(*window)).cloned().collect();
    stop_unended(ctx, &jobs)?;
    Ok(Cleaned { archived: remove(ctx, user, &jobs)?, closed: 0 })
}

/// `kill-window`: closes the window of a job, which is killed if it lives, and archives its record.
pub fn kill_window(ctx: &Ctx, id: &JobId) -> Result<Cleaned, Error> {
    heal::heal(ctx)?;
    let data = ctx.data()?;
    let Ok(job) = job_of(&data, id) else {
        return kill_orphan(ctx, &data, id);
    };
    let child = job
        .child
        .filter(|child| user_of(&data, &id.user).is_ok_and(|user| user.job(*child).is_some()));
    if let Some(child) = child {
        return Err(Error::refused(format!("{id} goes on in window {child}"))
            .hint(format!("kill that one, then: tpu clean {}", id.user)));
    }
    // With the intent of a kill: no rule must bring back what ends because its window is closed.
    // A window that cannot be judged from here stays; `archive` says why.
    let session = &user_of(&data, &id.user)?.tmux_name;
    let judged = match place::find(job, session, &ctx.tmux.look()) {
        Window::Here(_) | Window::Gone | Window::Lost(_) => true,
        Window::Elsewhere(_) | Window::Unknown(_) => false,
    };
    let killed = if judged && job.status.is_live() {
        Some(kill::kill_one(ctx, id, Unreached::Refuse)?)
    } else {
        None
    };
    let mut cleaned = archive(ctx, &id.user, &[id.window])?;
    cleaned.closed += killed.map_or(0, |killed| usize::from(killed.window));
    Ok(cleaned)
}

/// A window without a record.
fn kill_orphan(ctx: &Ctx, data: &Data, id: &JobId) -> Result<Cleaned, Error> {
    let user = user_of(data, &id.user)?;
    let tmux = ctx.tmux.look();
    let TmuxFact::Up { place, panes } = &tmux else { return Err(unreachable(&tmux)) };
    let there = panes.iter().find(|pane| {
        pane.session == user.tmux_name && pane.window_index == id.window.0 && id.window.0 != 0
    });
    let panes = there.map(|pane| panes_of(panes, &pane.window_id)).unwrap_or_default();
    if panes.is_empty() || panes.iter().any(|pane| claimed(data, pane)) {
        return job_of(data, id).map(|_| Cleaned::default());
    }
    if panes.iter().any(|pane| !records::is_of_this_file(ctx, pane)) {
        return Err(Error::refused(format!("the window of {id} is a job's of another data file"))
            .hint("name that file: --data FILE"));
    }
    for pane in panes {
        ctx.tmux.close_window(pane, place.server_pid)?;
    }
    Ok(Cleaned { archived: Vec::new(), closed: 1 })
}

/// tmux gives no answer: nothing is removed.
fn unreachable(tmux: &TmuxFact) -> Error {
    let reason = match tmux {
        TmuxFact::Unknown { reason } => format!("tmux cannot be asked: {reason}"),
        TmuxFact::Down { place } => format!("no tmux server answers on {}", place.socket),
        TmuxFact::Up { .. } => "tmux changed meanwhile".to_owned(),
    };
    Error::unreachable(format!("{reason}; nothing was changed"))
        .hint("whether the windows live is unknown; try again when tmux answers")
}
