//! What the screen asks of the rest of the program, as one trait. Nothing else of the program is known here.
//!
//! Every call may take its time (a hanging ssh, a locked file): they are made on threads of their own and
//! never hold up the screen.

use std::time::Duration;

use super::message::{Problem, Scope};
use crate::model::ids::{JobId, UserName};
use crate::model::time::Timestamp;
use crate::model::view::Snapshot;

/// The door to the program behind the screen.
pub trait Backend: Send + Sync {
    /// The instant on the wall.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment; never jumps.
    fn monotonic(&self) -> Duration;

    /// A number that is cheap to get and changes when the state file or the windows of tmux do. Asked for
    /// every second between two looks, so that what breaks or changes is noticed soon, however long the
    /// interval between looks is.
    fn pulse(&self, scope: &Scope) -> Result<u64, Problem>;

    /// A full look at the jobs.
    fn snapshot(&self, scope: &Scope) -> Result<Snapshot, Problem>;

    /// What a job's pane shows: the screen and `lines` of history above it, or all of its history; with
    /// colours (SGR sequences) if asked for. `None` when its window is gone.
    fn pane(
        &self,
        job: &JobId,
        lines: Option<u32>,
        colours: bool,
    ) -> Result<Option<Vec<u8>>, Problem>;

    /// Continues a job from its checkpoint; the result in words.
    fn resume(&self, job: &JobId) -> Result<String, Problem>;

    /// Starts a job again from scratch; the result in words.
    fn rerun(&self, job: &JobId) -> Result<String, Problem>;

    /// Stops jobs; the result in words.
    fn kill(&self, jobs: &[JobId]) -> Result<String, Problem>;

    /// Archives a user's ended jobs; the result in words.
    fn clean(&self, user: &UserName) -> Result<String, Problem>;

    /// Sets a job's tag, or takes it away if it is empty; the result in words.
    fn tag(&self, job: &JobId, tag: &str) -> Result<String, Problem>;

    /// The command that shows the job's window.
    fn attach_argv(&self, job: &JobId) -> Result<Vec<String>, Problem>;

    /// Runs a command with the terminal, which the screen has left for that time, and waits for its end.
    fn foreground(&self, argv: &[String]) -> Result<(), Problem>;
}
