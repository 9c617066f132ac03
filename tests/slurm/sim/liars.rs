//! How a cluster may say what is not so: its lists are cached, empty or old, or its controller is set back to an older state,
//! and what it has forgotten works on for a while.

use std::time::Duration;

use super::{SimCluster, SimJob, World};

/// How its lists, or its memory, are wrong. One of them belongs to a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liar {
    /// `squeue` says what it has said before, as where somebody caches it.
    Cached,
    /// `squeue` lists nothing, and ends well.
    Empty,
    /// `squeue` says what it said before somebody cached it the last time.
    Stale,
    /// `squeue` hangs, and nothing else does.
    Hanging,
    /// The controller is set back to an older state: it has forgotten the newest jobs, which work on for a while.
    Restored,
}

impl Liar {
    pub(crate) const ALL: [Self; 5] =
        [Self::Cached, Self::Empty, Self::Stale, Self::Hanging, Self::Restored];
}

/// A job that works on without the controller's knowledge, until a time.
#[derive(Clone, Debug)]
pub(super) struct Orphan {
    pub(super) job: SimJob,
    pub(super) until: Duration,
}

impl SimCluster {
    /// `squeue` begins to lie, or ends to.
    pub(crate) fn set_lie(&self, lie: Option<Liar>) {
        let mut world = self.world();
        if lie != Some(Liar::Stale) {
            let World { cached, jobs, .. } = &mut *world;
            cached.clone_from(jobs);
        }
        world.lie = lie;
    }

    /// The controller is set back to what it was before so many of its newest jobs were submitted. Those that run do so
    /// for a while.
    pub(crate) fn restore(&self, newest: usize, orphans_live: Duration) {
        let (now, until) = (self.clock.now(), self.clock.monotonic() + orphans_live);
        let mut world = self.world();
        world.note_fates();
        world.booted = now;
        let mut bases: Vec<u32> = world.jobs.iter().map(|job| job.base).collect();
        bases.sort_unstable();
        bases.dedup();
        let Some(first) = bases.iter().rev().nth(newest.saturating_sub(1)).copied() else { return };
        let (kept, forgotten) =
            std::mem::take(&mut world.jobs).into_iter().partition(|job: &SimJob| job.base < first);
        world.jobs = kept;
        world.next_id = first;
        let running = forgotten.into_iter().filter(|job| job.state == "RUNNING");
        world.orphans.extend(running.map(|job| Orphan { job, until }));
    }

    /// Orphans that were ended since this was last asked.
    pub(crate) fn ended_orphans(&self) -> Vec<SimJob> {
        std::mem::take(&mut self.world().ended_orphans)
    }

    /// What the controller does not know ends by itself.
    pub(crate) fn end_orphan(&self, name: &str) -> bool {
        let mut world = self.world();
        let before = world.orphans.len();
        world.orphans.retain(|orphan| orphan.job.name != name);
        world.orphans.len() < before
    }

    /// The same, and those that work on without its knowledge.
    pub(crate) fn jobs_and_orphans(&self) -> Vec<SimJob> {
        let world = self.world();
        let orphans = world.orphans.iter().map(|orphan| orphan.job.clone());
        world.jobs.iter().cloned().chain(orphans).collect()
    }
}

impl World {
    /// The jobs that `squeue` tells of.
    pub(super) fn told(&self) -> &[SimJob] {
        match self.lie {
            Some(Liar::Empty) => &[],
            Some(Liar::Cached | Liar::Stale) => &self.cached,
            Some(Liar::Hanging | Liar::Restored) | None => &self.jobs,
        }
    }
}
