//! The workers of a target: starting a command on each, hearing what it says, stopping it.
//!
//! **A launch token starts once.** A connection may break while the command lives on; whoever comes back
//! with the token hears the rest, and nobody can start it a second time. A worker that cannot be reached
//! is unknown: neither free nor idle. This module never knows a job. Start with [`Remote`].

mod error;
pub mod local;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

pub use error::RemoteError;

use crate::model::ids::LaunchToken;

/// One worker of a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worker {
    /// Its index in the target, from 0.
    pub index: u32,
    /// Where it is, as the control plane says (`TargetFact::endpoints`).
    pub address: String,
}

impl Worker {
    /// The workers of a target at these addresses, in order.
    pub fn all(addresses: &[String]) -> Vec<Self> {
        let indexed = (0..).zip(addresses);
        indexed.map(|(index, address)| Self { index, address: address.clone() }).collect()
    }
}

/// What is to run. Every word and value arrives byte for byte; none may hold a NUL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// The command, word by word.
    pub argv: Vec<OsString>,
    /// Variables beside those of the worker. `TPU_LAUNCH` and `TPU_WORKER` are always set.
    pub env: Vec<(OsString, OsString)>,
    /// The directory to work in.
    pub dir: Option<PathBuf>,
}

/// Whether a start was the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// The command runs now.
    New,
    /// This token was started before; nothing was done.
    Already,
}

/// What came from a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A line with the character that ended it: a line feed, or a carriage return where a program writes
    /// over its line. The last one of a command may have none.
    Line {
        /// The bytes.
        bytes: Vec<u8>,
        /// How many bytes the command had said with it: from there, [`Remote::follow`] goes on.
        end: u64,
    },
    /// The command is over on this worker, or there is no more to be known. The last word of a worker.
    End(End),
}

/// How it ended on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit code; a signal is 128 and its number.
    Exit(i32),
    /// Nobody knows: the worker or the way to it is gone. The command may still run if the worker does.
    Lost(String),
}

/// What came of stopping a command on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was not running.
    NotRunning,
    /// It ended after this many processes had been sent a signal.
    Ended(usize),
}

/// A command on a worker, as found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its token.
    pub token: LaunchToken,
    /// Its exit code, if it has ended.
    pub exit: Option<i32>,
    /// Process ids of those that live, in order.
    pub processes: Vec<u32>,
}

/// An answer for each worker that was asked.
pub type PerWorker<T> = Vec<(u32, Result<T, RemoteError>)>;

/// What the workers say, in the order in which it is heard; ends after the [`Said::End`] of each.
pub type Stream = Box<dyn Iterator<Item = (u32, Said)> + Send>;

/// The door to workers of one kind. A worker that fails never keeps another one from anything.
pub trait Remote: Send + Sync {
    /// Starts a command on some workers, each at most once for a token.
    fn start(&self, workers: &[Worker], work: &Work, token: &LaunchToken) -> PerWorker<Started>;

    /// Hears what a command says from the beginning, or on some workers from where an earlier listener
    /// stopped (`from`: worker -> [`Said::Line`]'s `end`). Listening changes nothing for the command.
    fn follow(&self, workers: &[Worker], token: &LaunchToken, from: &BTreeMap<u32, u64>) -> Stream;

    /// Stops exactly the processes of a token: SIGINT, after 3 s SIGTERM, after 10 s SIGKILL. Returns
    /// when they are gone.
    fn stop(&self, workers: &[Worker], token: &LaunchToken) -> PerWorker<Stopped>;

    /// Whether workers can be reached, and which commands of ours are on them.
    fn probe(&self, workers: &[Worker]) -> PerWorker<Vec<Running>>;

    /// Starts a command, or finds it started, and hears everything it says. A worker on which it cannot
    /// be started ends as [`End::Lost`] with the reason.
    fn run(&self, workers: &[Worker], work: &Work, token: &LaunchToken) -> Stream {
        let started = self.start(workers, work, token);
        let failed: Vec<(u32, Said)> = started
            .into_iter()
            .filter_map(|(worker, result)| {
                let error = result.err()?;
                Some((worker, Said::End(End::Lost(error.to_string()))))
            })
            .collect();
        let begun: Vec<Worker> = workers
            .iter()
            .filter(|worker| !failed.iter().any(|(index, _)| *index == worker.index))
            .cloned()
            .collect();
        let rest = self.follow(&begun, token, &BTreeMap::new());
        Box::new(failed.into_iter().chain(rest))
    }
}
