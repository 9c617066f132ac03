//! One namespace as it is asked on behalf of one request.

use std::sync::Arc;

use tpu_core::model::job::{EngineRun, Handle, Job};
use tpu_core::model::target::TargetKind;
use tpu_core::model::time::Timestamp;
use tpu_engine::runner::RunError;
use tpu_system::effects::Effects;

use super::api::ApiServer;
use super::cluster::NamespaceAt;
use super::names::JobRef;
use super::request::{Namespace, Trouble};

/// A namespace.
pub(super) struct Site<'a> {
    /// Its server.
    pub(super) server: Arc<dyn ApiServer>,
    /// Which it is.
    pub(super) cluster: NamespaceAt,
    /// The rest of the world.
    pub(super) effects: &'a Effects,
}

impl Site<'_> {
    /// Questions to it.
    pub(super) fn namespace(&self) -> Namespace<'_> {
        Namespace::new(&*self.server, &self.cluster.namespace)
    }

    /// When it was that the server said something: by its own clock, which may be another than that of this machine, with
    /// what it has stamped; else now.
    pub(super) fn then(&self, said_at: Option<Timestamp>) -> Timestamp {
        said_at.unwrap_or_else(|| self.effects.clock.now())
    }

    /// The error for what a question came to.
    pub(super) fn error(&self, trouble: &Trouble) -> RunError {
        trouble.error(&self.cluster)
    }

    /// The error for what cannot be said for certain.
    pub(super) fn silent(&self, why: &str) -> RunError {
        self.error(&Trouble::Silent(why.to_owned()))
    }

    /// The handle of a run.
    pub(super) fn handle(&self, job: &Job, known: &JobRef) -> Handle {
        let token = job.launch.as_ref().map(|launch| launch.token.clone());
        let run = EngineRun {
            kind: TargetKind::new(super::WORD),
            cluster: self.cluster.to_string(),
            id: Some(known.kept()),
            name: Some(known.name.clone()),
        };
        Handle::Engine { run, token: token.unwrap_or_else(|| "".into()) }
    }
}
