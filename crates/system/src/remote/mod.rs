//! The workers of a target: starting a command on each, hearing what it says, stopping it.
//!
//! **A launch token starts once.** A connection may break while the command lives on; whoever comes back
//! with the token hears the rest, and nobody can start it a second time. A worker that cannot be reached
//! is unknown: neither free nor idle. This module never knows a job. Start with [`Remote`].

mod command;
mod each;
mod error;
mod far;
pub mod gcloud;
mod lines;
pub mod local;
pub mod ssh;
mod streams;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

pub use command::for_any_shell;
pub use error::RemoteError;

use crate::sys::proc::{Feed, Spawn};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::variables::Secrets;

/// What runs on the worker; the same for every kind of worker.
const WRAPPER: &str = include_str!("../../../../assets/worker.sh");

/// One worker of a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worker {
    /// Its index in the target, from 0.
    pub index: u32,
    /// Where it is, as the control plane says (`TargetFact::endpoints`); empty if it does not say.
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
    /// The same for what no disk may hold.
    pub secrets: Secrets,
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
pub enum Output {
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
    /// Process ids of those that live, in order; that of whoever still has to write down how it ended.
    pub processes: Vec<u32>,
}

/// A shell command that lives as long as the connection, for what a person or a recipe asks of a worker.
/// It is sent once; whoever wants an answer after a broken connection asks again.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Ask {
    /// The command, for bash. `$TPU_WORKER` is set. It is seen by whoever lists the processes of either
    /// machine: no place for a secret.
    pub command: String,
    /// What it reads on its standard input; nothing at all by default. The place for a secret.
    pub input: Option<Feed>,
    /// Whether it is a script of our own, which ends its shell by nothing but `exit` and never becomes another program.
    /// It gets by with one shell of its own, which reads no file of the account again.
    pub is_ours: bool,
}

impl fmt::Debug for Ask {
    /// Without the input, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask").field("command", &self.command).finish_non_exhaustive()
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A line of its standard output, with the character that ended it.
    Out(Vec<u8>),
    /// A line of its standard error.
    Err(Vec<u8>),
    /// How it ended. The last word of a worker.
    End(End),
}

/// A file that is to be on a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Where; `~/` is the account's home there.
    pub path: OsString,
    /// Its rights.
    pub mode: u32,
    /// What it holds.
    pub bytes: Vec<u8>,
}

/// A process on a worker that no command of ours has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its id.
    pub pid: u32,
    /// When it was started, in ticks since the machine was: a later process of that number has another one.
    pub start: u64,
    /// Whose it is.
    pub user: String,
    /// Its age in seconds.
    pub age_s: u64,
    /// Its command line.
    pub command: String,
}

/// An answer for each worker that was asked.
pub(crate) type PerWorker<T> = Vec<(u32, Result<T, RemoteError>)>;

/// What the workers say, in the order in which it is heard; ends after the [`Output::End`] of each.
pub type Stream = Box<dyn Iterator<Item = (u32, Output)> + Send>;

/// What the workers reply, in the order in which it is heard; ends after the [`Reply::End`] of each.
pub(crate) type Replies = Box<dyn Iterator<Item = (u32, Reply)> + Send>;

/// The door to workers of one kind. A worker that fails never keeps another one from anything.
pub trait Remote: Send + Sync {
    /// Starts a command on some workers, each at most once for a token.
    fn start(&self, workers: &[Worker], work: &Work, token: &LaunchToken) -> PerWorker<Started>;

    /// Hears what a command says from the beginning, or on some workers from where an earlier listener
    /// stopped (`from`: worker -> [`Output::Line`]'s `end`). Listening changes nothing for the command.
    fn follow(&self, workers: &[Worker], token: &LaunchToken, from: &BTreeMap<u32, u64>) -> Stream;

    /// Stops exactly the processes of a token: SIGINT, after 3 s SIGTERM, after 10 s SIGKILL. Returns
    /// when they are gone. Where nothing was started, nothing of that token starts any more.
    fn stop(&self, workers: &[Worker], token: &LaunchToken) -> PerWorker<Stopped>;

    /// Whether workers can be reached, and which commands of ours are on them.
    fn probe(&self, workers: &[Worker]) -> PerWorker<Vec<Running>>;

    /// Has each worker run a shell command that lives as long as the connection.
    fn ask(&self, workers: &[Worker], ask: &Ask) -> Replies;

    /// Puts a file onto each worker, whole or not at all.
    fn put(&self, workers: &[Worker], upload: &Upload) -> PerWorker<()>;

    /// Processes that hold one of the devices (shell patterns) or are Python, and are none of ours.
    fn others(&self, workers: &[Worker], devices: &[String]) -> PerWorker<Vec<Other>>;

    /// Ends exactly these, as [`Remote::stop`] does; how many there were.
    fn end(&self, worker: &Worker, others: &[Other]) -> Result<usize, RemoteError>;

    /// The program for a person who wants a shell there, or a command that they can type into; `None`
    /// where there is none.
    fn terminal(&self, worker: &Worker, command: Option<&str>) -> Option<Spawn>;
}

/// A token that can be the name of a directory.
fn checked(token: &LaunchToken) -> Result<&str, RemoteError> {
    let text = token.as_str();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.is_empty() || !text.chars().all(plain) {
        return Err(RemoteError::Request { what: format!("'{text}' is no launch token") });
    }
    Ok(text)
}

/// `NAME=VALUE`.
fn joined(name: &OsStr, value: &OsStr) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

/// Words, each ending in NUL, which none may hold.
fn nul_ended(words: impl Iterator<Item = Vec<u8>>) -> Result<Vec<u8>, RemoteError> {
    let mut bytes = Vec::new();
    for word in words {
        if word.contains(&0) {
            let what = "no argument and no variable can hold a NUL byte".to_owned();
            return Err(RemoteError::Request { what });
        }
        bytes.extend(word);
        bytes.push(0);
    }
    Ok(bytes)
}
