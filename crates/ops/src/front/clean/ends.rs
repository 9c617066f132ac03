//! Ends that nobody has written down yet: what goes to the archive is what was so, and not what was last noted.

use crate::act::outlook;
use crate::observe::printed::reached;
use crate::observe::{runners, snapshot};
use crate::{Ctx, Error};
use tpu_core::model::data::User;
use tpu_core::model::facts::{ErrorKind, Progress, RunState, TmuxFact};
use tpu_core::model::ids::{JobId, JobNumber};
use tpu_core::model::job::{Job, StoredVerdict};
use tpu_core::model::view::{JobView, Whose};
use tpu_engine::runner::RunRef;

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

/// The ends of these records that nobody has written down, as long as their windows can be looked at.
pub(super) fn unwritten(ctx: &Ctx, jobs: &[Job], seen: &[JobView]) -> Vec<Unwritten> {
    let live = jobs.iter().filter(|job| job.status.is_live());
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
