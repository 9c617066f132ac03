//! Ends that nobody has written down yet: what goes to the archive is what was so, and not what was last noted.

use crate::model::data::User;
use crate::model::facts::{ErrorKind, Progress};
use crate::model::ids::{JobId, JobNumber};
use crate::model::job::{Job, StoredVerdict};
use crate::model::view::{JobView, Whose};
use crate::ops::printed::reached;
use crate::ops::{Ctx, snapshot};

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
    let seen = snapshot::look(ctx, &mut snapshot::Memory::default(), &whose);
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
