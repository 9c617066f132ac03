//! One cluster as it is asked on behalf of one request: its door, and what is remembered of its answers.

use std::sync::Arc;
use std::time::Duration;

use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::ask;
use super::client::{Client, ProgramCall};
use super::cluster::Cluster;
use super::config::{self, ControllerConfig};
use super::job_id::JobRef;
use super::last_seen::{self, ClusterMemory};
use super::listing::{self, JobTable};

/// A cluster.
pub(super) struct Controller<'a> {
    /// Its programs.
    pub(super) client: Box<dyn Client + 'a>,
    /// Which it is.
    pub(super) cluster: Cluster,
    /// The rest of the world.
    pub(super) effects: &'a Effects,
    /// What it has said to this process.
    pub(super) heard: Arc<ClusterMemory>,
}

impl Controller<'_> {
    /// The account whose jobs are meant, if that is another one than ours. What it hides from us we cannot know.
    pub(super) fn other_account(&self) -> Option<u32> {
        self.cluster.uid.filter(|uid| *uid != self.effects.env.uid)
    }

    /// All of our jobs, or one of them with those of its array.
    pub(super) fn table(&self, job: Option<&JobRef>, limit: Duration) -> Result<JobTable, String> {
        let names = job.map(|job| job.names().collect::<Vec<_>>().join(","));
        let question = listing::question(self.other_account(), names.as_deref(), limit);
        let text = ask::ask(&*self.client, &question)?;
        self.heard.noting(&self.cluster, self.effects.clock.monotonic(), || {
            last_seen::note_answer(self.effects, &self.cluster);
        });
        Ok(JobTable::read(&text))
    }

    /// What the controller says of itself.
    pub(super) fn config(&self, limit: Duration) -> Result<ControllerConfig, String> {
        config::ask(&*self.client, limit)
    }

    /// Whether it lists any job of anybody.
    pub(super) fn lists_any(&self, limit: Duration) -> Result<bool, String> {
        let call = ProgramCall::new("squeue", limit).args([
            "--noheader",
            "--all",
            "--states=all",
            "--format=%A",
        ]);
        Ok(!ask::ask(&*self.client, &call)?.trim().is_empty())
    }

    /// The error for a question that it has not answered.
    pub(super) fn silent(&self, why: &str) -> RunError {
        let last = last_seen::last_answer(self.effects, &self.cluster);
        let last = last.map(|last| format!("; {last}")).unwrap_or_default();
        ask::unreachable(&self.cluster, &format!("{why}{last}"))
    }
}
