//! Ends that nobody has written down yet: what goes to the archive is what was so, and not what was last noted; and why
//! what has ended stays.

use crate::act::{outlook, record_facts};
use crate::observe::printed::reached;
use crate::observe::{runners, snapshot};
use crate::{Ctx, Error};
use tpu_core::model::data::{Data, User};
use tpu_core::model::facts::{ErrorKind, Progress, RunState, TmuxFact};
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::{Job, StoredVerdict};
use tpu_core::model::view::{JobView, Whose};
use tpu_engine::runner::RunRef;
use tpu_system::sys::accounts;

use super::Kept;

/// An end that the facts show and the record does not hold: it goes into the archive with it.
pub(super) struct Unwritten {
    pub(super) id: JobId,
    pub(super) kind: ErrorKind,
    pub(super) verdict: StoredVerdict,
    pub(super) reached: Progress,
}

/// How those of these records are that look live: nobody may have written down their end.
pub(super) fn looked_at(ctx: &Ctx, user: &User, windows: &[JobNumber]) -> Vec<JobView> {
    let is_meant = |job: &Job| windows.contains(&job.windows_id) && job.status.is_live();
    if !user.jobs().iter().any(is_meant) {
        return Vec::new();
    }
    let whose = Whose::of([user.name.clone()]);
    let seen = outlook::look(ctx, &mut snapshot::LookMemory::default(), &whose);
    seen.map(|snapshot| snapshot.jobs).unwrap_or_default()
}

/// The failures of these records that nobody has written down, as long as their windows can be looked at. What somebody
/// has stopped is written down at once.
pub(super) fn unwritten(ctx: &Ctx, jobs: &[Job], seen: &[JobView]) -> Vec<Unwritten> {
    let live = jobs.iter().filter(|job| job.status.is_live());
    for job in live.clone() {
        if let Some(view) = seen.iter().find(|view| view.id == job.id()) {
            // Somebody else has written or archived it since.
            drop(record_facts::record_cancelled(ctx, job, view));
        }
    }
    let end = |job: &Job| {
        let view = seen.iter().find(|view| view.id == job.id())?;
        let (kind, verdict) = snapshot::unrecorded_failure(view)?;
        Some(Unwritten { id: job.id(), kind, verdict, reached: reached(ctx, job, view) })
    };
    live.filter_map(end).collect()
}

/// Refuses while the engine of a job says nothing about it: then nobody knows whether it is over.
pub(super) fn is_known_to_its_engine(
    ctx: &Ctx,
    owner: &User,
    job: &Job,
    tmux: &TmuxFact,
) -> Result<(), Error> {
    let run = RunRef { job, session: &owner.tmux_name };
    let seen = runners::observe(ctx, &[run], tmux);
    match seen.first().map(|seen| &seen.run) {
        Some(run) if !matches!(run.state, RunState::Elsewhere | RunState::Unknown) => Ok(()),
        unknown => {
            let why = unknown.map_or("nobody knows its engine", |run| run.why());
            let what = format!("{}: {why}; no record was archived", job.id());
            Err(Error::unreachable(what).hint("try again when its engine answers"))
        }
    }
}

/// A leaf that says it has a child which is not there any more.
pub(super) fn is_dead_end(user: &User, leaf: JobNumber) -> bool {
    user.job(leaf).is_some_and(|job| job.status.is_superseded())
}

/// Why a lineage whose leaf has ended is not cleared away now: something is being done with it, or is going to
/// be done by a rule, whether or not the daemon runs at the moment.
pub(super) fn why_kept(ctx: &Ctx, data: &Data, view: &JobView, force: bool) -> Option<Kept> {
    if let Some(reason) = begun_by_another(ctx, data, view) {
        return Some(Kept { job: view.id.clone(), reason });
    }
    if let Some(entry) = data.queues().successor_of(&view.id) {
        let reason = format!("{} waits to continue from it", entry.id());
        return Some(Kept { job: view.id.clone(), reason });
    }
    let reason = match (&view.intent, &view.next) {
        (Some(intent), _) => format!("{intent} is under way"),
        (None, Some(next)) if view.may_come_back() && !force => {
            let planned = view.planned().map(|next| format!("{} is planned", next.action));
            let what = planned.unwrap_or_else(|| "it may come back".to_owned());
            format!("{what} ({}); --force archives it too", next.reason)
        }
        (None, _) => return None,
    };
    Some(Kept { job: view.id.clone(), reason })
}

/// Why the record of a job stays that has no window and may be at work all the same.
pub(super) fn goes_on(view: &JobView) -> Option<Kept> {
    let unknown = view.shown.unknown.as_deref().filter(|_| view.shown.status.is_live());
    let reason = unknown.or_else(|| view.shown.without_window())?.to_owned();
    Some(Kept { job: view.id.clone(), reason })
}

/// Why a lineage stays of which an attempt failed to start by another account, or on another machine: nothing of it can be
/// seen from here. It holds nothing, so nothing else waits for it.
fn begun_by_another(ctx: &Ctx, data: &Data, view: &JobView) -> Option<String> {
    let id = |window: &JobNumber| JobId { window: *window, ..view.id.clone() };
    let mut attempts = view.lineage.iter().filter_map(|window| data.job(&id(window)));
    let (job, place) = attempts.find_map(|job| {
        let place = job.place.as_ref().filter(|_| job.never_began())?;
        let is_here = place.host == ctx.env.hostname && place.uid == ctx.env.uid;
        (!is_here).then_some((job, place))
    })?;
    let (account, host) = (accounts::name(place.uid), &place.host);
    let (id, user) = (job.id(), &job.user);
    Some(format!(
        "{id} never began, and is {account}'s on {host}: tpu clean {user} there clears it away"
    ))
}
