//! What can go wrong with a worker, and what a person can do.

use std::io;

use crate::sys::proc::ProcError;
use crate::sys::stop::StopError;

/// A failure on one worker. It says nothing about the others, and nothing about what runs there.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It does not answer. What runs on it is unknown.
    #[error("worker {worker} at {address} cannot be reached: {reason}")]
    Unreachable {
        /// Its index.
        worker: u32,
        /// Its address.
        address: String,
        /// Why.
        reason: String,
    },
    /// No connection to it came to be: nothing was asked of it, and nothing has begun there by this.
    #[error("worker {worker} at {address} cannot be reached: {reason}")]
    NotReached {
        /// Its index.
        worker: u32,
        /// Its address.
        address: String,
        /// Why.
        reason: String,
    },
    /// What was asked can be done on no worker.
    #[error("{what}")]
    Request {
        /// What is wrong with it.
        what: String,
    },
    /// What runs there could not be stopped.
    #[error("worker {worker}: {source}")]
    Stop {
        /// Its index.
        worker: u32,
        /// Why.
        source: StopError,
    },
    /// The worker says that what runs there could not be stopped.
    #[error("worker {worker}: {what}")]
    Unstoppable {
        /// Its index.
        worker: u32,
        /// What it says.
        what: String,
    },
    /// A file operation on the worker failed.
    #[error("cannot {op} {path} on worker {worker}: {source}")]
    Io {
        /// The worker's index.
        worker: u32,
        /// What was tried.
        op: &'static str,
        /// On which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A program that is needed to reach the worker failed.
    #[error("worker {worker}: {source}")]
    Program {
        /// The worker's index.
        worker: u32,
        /// Which one, and how.
        source: ProcError,
    },
}

impl RemoteError {
    /// The same failure of what is done before anything is asked.
    pub(super) fn before_asking(self) -> Self {
        match self {
            Self::Unreachable { worker, address, reason } => {
                Self::NotReached { worker, address, reason }
            }
            other => other,
        }
    }
}
