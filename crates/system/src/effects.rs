//! What one request may touch of the world, and on whose behalf. Tests put fakes in; nothing else differs.
//!
//! The doors (state file, tmux, clock, …) are shared by all requests of a process; who acts, whether it is a
//! dry run, and the warnings are a request's own. Everything below `ops` sees this and no more.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::store::{Store, StoreError, Tx};
use crate::sys::clock::Clock;
use crate::sys::env::Env;
use crate::sys::procs::Processes;
use crate::sys::random::Random;
use crate::sys::threads::Threads;
use crate::tmux::Tmux;
use tpu_core::model::data::Data;

/// Every effect a use case, a runner or a provider may have. Copies are the same doors, for what is done side by
/// side.
#[derive(Clone)]
pub struct Effects {
    /// data.json, its lock, journal and archive.
    pub store: Arc<Store>,
    /// The tmux server.
    pub tmux: Arc<dyn Tmux>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Random numbers, for tokens and jitter.
    pub random: Arc<dyn Random>,
    /// The processes of this machine.
    pub procs: Arc<dyn Processes>,
    /// Threads, for what is done side by side.
    pub threads: Arc<dyn Threads>,
    /// What this process was started with.
    pub env: Env,
    /// Who acts, for the journal: the command or `the daemon`.
    pub actor: String,
    /// Path of this program, for launchers to call back.
    pub tpu: PathBuf,
    /// Name given with `--tmux-socket`, passed on to callbacks.
    pub tmux_socket: Option<String>,
    /// What a person should know, although nothing failed.
    pub warnings: Warnings,
    /// Who sees how far this process is.
    pub onlooker: Onlooker,
}

impl Effects {
    /// The same, through which changes to the state file are only tried out.
    #[must_use]
    pub fn dry_run(self) -> Self {
        Self { store: Arc::new(self.store.dry_run()), ..self }
    }

    /// Reads the state file.
    pub fn data(&self) -> Result<Arc<Data>, StoreError> {
        self.store.read()
    }

    /// Applies `change` to what the state file holds now, in one transaction; an error changes nothing.
    pub fn transact<T, E: From<StoreError>>(
        &self,
        change: impl FnOnce(&mut Tx<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let committed = self.store.transact(&self.actor, change)?;
        self.warn(committed.warnings);
        Ok(committed.value)
    }

    /// Keeps warnings until somebody shows them.
    pub fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        self.warnings.add(warnings);
    }

    /// The warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }
}

/// Who sees how far a process is with what takes long; by default nobody.
#[derive(Clone, Default)]
pub struct Onlooker(Option<Arc<Show>>);

type Show = dyn Fn(Option<&str>) + Send + Sync;

impl Onlooker {
    /// One who is shown what goes on, and by `None` that it is over.
    pub fn new(show: impl Fn(Option<&str>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(show)))
    }

    /// Shows what goes on now; `None` once it is over.
    pub fn show(&self, what: Option<&str>) {
        if let Some(show) = &self.0 {
            show(what);
        }
    }
}

/// Warnings until somebody shows them. Copies are the same warnings: whoever gives its [`Effects`] away may
/// keep one.
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Keeps some more; what is kept already is not said twice.
    pub fn add(&self, warnings: impl IntoIterator<Item = String>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if !kept.contains(&warning) {
                kept.push(warning);
            }
        }
    }

    /// Those since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
