//! Windows of a user's session that no record claims. Their panes that carry our mark are ours to close;
//! what carries none was opened by a person, or by the original, and is a person's to judge.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::{JobId, LaunchToken, UserName};
use tpu_core::model::job::Job;
use tpu_core::model::view::Orphan;
use tpu_engine::runner::window::{beside, place};
use tpu_system::tmux::Occupant;

use crate::base::ctx::user_of;
use crate::{Ctx, Error};

/// Which panes of such windows are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those with our mark in which all that we started has ended.
    Ended,
    /// Every pane with our mark.
    Marked,
    /// Also those without, except where somebody looks on.
    All,
}

/// A window that is or would be closed, or the pane of a job in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Session.
    pub session: String,
    /// Window index.
    pub window: u32,
    /// The job that its mark names.
    pub job: Option<JobId>,
    /// Whether the window goes; else it stays with what somebody else has in it.
    pub whole: bool,
}

impl Closing {
    /// In words: `window 7 of alice (alice/7)`.
    pub fn in_words(&self) -> String {
        let Self { session, window, job, whole } = self;
        let job = job.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
        let part = if *whole { "" } else { "our pane alone of " };
        format!("{part}window {window} of {session}{job}")
    }
}

/// A window that is left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Session.
    pub session: String,
    /// Window index.
    pub window: u32,
    /// What runs in its panes.
    pub programs: Vec<String>,
    /// The job that its mark names, if it has one: it is at work although it has no record.
    pub job: Option<JobId>,
    /// Whether somebody looks at it now.
    pub watched: bool,
}

impl Left {
    /// In words: `window 7 of alice (vim)`.
    pub fn in_words(&self) -> String {
        let Self { session, window, programs, job, watched } = self;
        let mut parts: Vec<String> = Vec::new();
        parts.extend(job.as_ref().map(|id| format!("{id} is at work in it, without a record")));
        parts.extend((!programs.is_empty()).then(|| programs.join(", ")));
        parts.extend(watched.then(|| "somebody looks at it".to_owned()));
        let parts = tpu_core::text::escape(&parts.join("; ")).into_owned();
        format!("window {window} of {session} ({parts})")
    }
}

/// What was, or would be, closed and left.
#[derive(Debug, Default)]
pub struct Closed {
    /// Closed.
    pub closed: Vec<Closing>,
    /// Left open.
    pub left: Vec<Left>,
    /// Of those that would be closed: what a person must have agreed to.
    pub unmarked: Unmarked,
}

/// Panes without our mark that [`Which::All`] would close, as a person is asked about them.
#[derive(Debug, Default)]
pub struct Unmarked {
    /// Their windows.
    pub windows: Vec<Left>,
    /// Their ids, which mean something to this server alone.
    panes: BTreeSet<String>,
    server_pid: u32,
}

impl Unmarked {
    pub(crate) fn has(&self, pane: &PaneFact, server_pid: u32) -> bool {
        self.server_pid == server_pid && self.panes.contains(&pane.pane_id)
    }
}

/// A window that no record claims.
pub(crate) struct Lone {
    /// In the order of the window.
    pub(crate) panes: Vec<PaneFact>,
    /// Whether a job of a record, or of another data file, is in it too: then what carries no mark may be
    /// somebody's who works beside that.
    is_shared: bool,
}

impl Lone {
    pub(crate) fn marked(&self) -> impl Iterator<Item = &PaneFact> {
        self.panes.iter().filter(|pane| pane.launch.is_some())
    }

    fn unmarked(&self) -> impl Iterator<Item = &PaneFact> {
        self.panes.iter().filter(|pane| pane.launch.is_none())
    }

    /// The panes that may be closed.
    pub(crate) fn chosen(&self, which: Which) -> Vec<&PaneFact> {
        match which {
            Which::Ended => self.marked().filter(|pane| has_ended(pane)).collect(),
            Which::Marked => self.marked().collect(),
            Which::All if self.is_shared => self.marked().collect(),
            Which::All => self.panes.iter().collect(),
        }
    }

    pub(crate) fn closing(&self, panes: &[&PaneFact]) -> Option<Closing> {
        let first = panes.first()?;
        Some(Closing {
            session: first.session.clone(),
            window: first.window_index,
            job: panes.iter().find_map(|pane| pane.job.clone()),
            whole: !self.is_shared && panes.len() == self.panes.len(),
        })
    }
}

/// The window of these panes as one that keeps them; `None` without any.
pub(crate) fn left(panes: &[&PaneFact], occupants: &BTreeMap<String, Occupant>) -> Option<Left> {
    let first = panes.first()?;
    let of = |pane: &&PaneFact| occupants.get(&pane.pane_id);
    Some(Left {
        session: first.session.clone(),
        window: first.window_index,
        programs: panes.iter().filter_map(of).map(|o| o.program.clone()).collect(),
        job: panes.iter().find_map(|pane| pane.launch.as_ref().and(pane.job.clone())),
        watched: panes.iter().filter_map(of).any(|occupant| occupant.watchers > 0),
    })
}

/// Whether all that we started in a pane has ended.
pub fn has_ended(pane: &PaneFact) -> bool {
    pane.launch.is_some() && (pane.dead || pane.exit.is_some())
}

/// What records claim, gathered once for all panes of a look.
pub(crate) struct Claims<'a> {
    launches: HashSet<&'a LaunchToken>,
    /// Jobs without a launch of ours, by their index: of the original.
    places: HashMap<u32, Vec<(&'a str, &'a Job)>>,
}

impl<'a> Claims<'a> {
    pub(crate) fn of(data: &'a Data) -> Self {
        let mut claims = Self { launches: HashSet::new(), places: HashMap::new() };
        for user in data.users() {
            for job in user.jobs() {
                if let Some(launch) = &job.launch {
                    claims.launches.insert(&launch.token);
                } else {
                    let place = claims.places.entry(job.windows_id.0).or_default();
                    place.push((&user.tmux_name, job));
                }
            }
        }
        claims
    }

    /// Whether any record claims a pane.
    pub(crate) fn has(&self, pane: &PaneFact) -> bool {
        if let Some(token) = &pane.launch {
            return self.launches.contains(token);
        }
        let Some(jobs) = self.places.get(&pane.window_index) else { return false };
        jobs.iter().any(|(session, job)| place::is_window_of(job, session, pane))
    }
}

/// The windows of a user's session that no record claims, except the home window 0. A window that is linked
/// into several sessions, or shown in grouped ones, is one window.
pub(crate) fn lone(ctx: &Ctx, claims: &Claims<'_>, user: &User, panes: &[PaneFact]) -> Vec<Lone> {
    let of_session = || panes.iter().filter(|pane| pane.session == user.tmux_name);
    let mut windows: BTreeMap<u32, Lone> = BTreeMap::new();
    for pane in of_session() {
        if pane.window_index > 0 && !claims.has(pane) && beside::is_of_this_file(ctx, pane) {
            let lone = Lone { panes: Vec::new(), is_shared: false };
            windows.entry(pane.window_index).or_insert(lone).panes.push(pane.clone());
        }
    }
    if windows.is_empty() {
        return Vec::new();
    }
    for pane in of_session() {
        if let Some(window) = windows.get_mut(&pane.window_index) {
            window.is_shared |= !window.panes.iter().any(|own| own.pane_id == pane.pane_id);
        }
    }
    windows.into_values().collect()
}

/// The windows that no record claims, of these users, as a look lists them.
pub(super) fn listed<'a>(
    ctx: &Ctx,
    data: &Data,
    users: impl Iterator<Item = &'a User>,
    panes: &[PaneFact],
) -> Vec<Orphan> {
    let claims = Claims::of(data);
    let windows = users.flat_map(|user| lone(ctx, &claims, user, panes));
    let told = windows.filter_map(|window| {
        let first = kept(&window, &[]).first().copied()?;
        Some(Orphan { session: first.session.clone(), window: first.window_index })
    });
    told.collect()
}

/// The window of a pane without our mark, as one that is left open.
pub(crate) fn left_of(
    pane: &PaneFact,
    tmux: &TmuxFact,
    occupants: &BTreeMap<String, Occupant>,
) -> Option<Left> {
    let panes: Vec<&PaneFact> = std::iter::once(pane).chain(place::beside(pane, tmux)).collect();
    left(&panes, occupants)
}

/// What closing them would do now.
pub fn dry_run(ctx: &Ctx, user: &UserName, which: Which) -> Result<Closed, Error> {
    let tmux = ctx.tmux.look();
    let TmuxFact::Up { place, panes } = &tmux else { return Err(unreachable(&tmux)) };
    let data = ctx.data()?;
    let occupants = ctx.tmux.occupants()?;
    let mut would = Closed::default();
    would.unmarked.server_pid = place.server_pid;
    for window in lone(ctx, &Claims::of(&data), user_of(&data, user)?, panes) {
        let is_watched = |pane: &&PaneFact| {
            pane.launch.is_none()
                && occupants.get(&pane.pane_id).is_some_and(|occupant| occupant.watchers > 0)
        };
        let mut chosen = window.chosen(which);
        chosen.retain(|pane| !is_watched(pane));
        let unmarked: Vec<&PaneFact> =
            chosen.iter().copied().filter(|pane| pane.launch.is_none()).collect();
        would.unmarked.windows.extend(left(&unmarked, &occupants));
        would.unmarked.panes.extend(unmarked.iter().map(|pane| pane.pane_id.clone()));
        would.closed.extend(window.closing(&chosen));
        would.left.extend(left(&kept(&window, &chosen), &occupants));
    }
    Ok(would)
}

/// The panes of a window that are not among those.
pub(crate) fn kept<'a>(window: &'a Lone, closed: &[&PaneFact]) -> Vec<&'a PaneFact> {
    // Beside a job of a record a person may well have a shell: that needs no word.
    let is_told = |pane: &&PaneFact| pane.launch.is_some() || !window.is_shared;
    let is_closed = |pane: &PaneFact| closed.iter().any(|other| other.pane_id == pane.pane_id);
    window.panes.iter().filter(is_told).filter(|pane| !is_closed(pane)).collect()
}

/// What closing one would close; refused where that would be refused.
pub(crate) fn dry_run_one(ctx: &Ctx, id: &JobId) -> Result<Option<Closing>, Error> {
    let tmux = ctx.tmux.look();
    let TmuxFact::Up { panes, .. } = &tmux else { return Err(unreachable(&tmux)) };
    Ok(one(ctx, id, panes)?.map(|(_, closing)| closing))
}

/// The window of that number that no record claims, with what of it would be closed.
pub(crate) fn one(
    ctx: &Ctx,
    id: &JobId,
    panes: &[PaneFact],
) -> Result<Option<(Lone, Closing)>, Error> {
    let data = ctx.data()?;
    let user = user_of(&data, &id.user)?;
    let is_it = |pane: &&PaneFact| {
        pane.session == user.tmux_name && pane.window_index == id.window.0 && id.window.0 > 0
    };
    let mut there = panes.iter().filter(is_it).peekable();
    if there.peek().is_none() {
        return Ok(None);
    }
    if there.any(|pane| !beside::is_of_this_file(ctx, pane)) {
        return Err(Error::refused(format!("the window of {id} is a job's of another data file"))
            .hint("name that file: --data FILE"));
    }
    let windows = lone(ctx, &Claims::of(&data), user, panes);
    let is_it = |window: &Lone| window.panes.iter().any(|pane| pane.window_index == id.window.0);
    let Some(window) = windows.into_iter().find(is_it) else { return Ok(None) };
    let marked: Vec<&PaneFact> = window.marked().collect();
    if let Some(closing) = window.closing(&marked) {
        return Ok(Some((window, closing)));
    }
    let unmarked: Vec<&PaneFact> = window.unmarked().collect();
    let occupants = ctx.tmux.occupants()?;
    let what = left(&unmarked, &occupants).map(|left| left.in_words()).unwrap_or_default();
    // The window of that pane, which a number may miss: tmux takes that for the start of a name, too.
    let of = unmarked.first().map(|pane| pane.pane_id.clone()).unwrap_or_default();
    Err(Error::refused(format!("{what} is no job's: a person or the original has opened it"))
        .hint(format!("look at it; `tmux kill-window -t {of}` closes it")))
}

/// tmux gives no answer: nothing is removed.
pub(crate) fn unreachable(tmux: &TmuxFact) -> Error {
    let reason = match tmux {
        TmuxFact::Unknown { reason } => format!("tmux cannot be asked: {reason}"),
        TmuxFact::Down { place } => format!("no tmux server answers on {}", place.socket),
        TmuxFact::Up { .. } => "tmux changed meanwhile".to_owned(),
    };
    Error::unreachable(format!("{reason}; nothing was changed"))
        .hint("whether the windows live is unknown; try again when tmux answers")
}
