//! What the screen asks of the rest of the program, as one trait. Nothing else of the program is known here.
//!
//! Every call may take its time (a hanging ssh, a locked file): they are made on threads of their own and
//! never hold up the screen.

use std::time::Duration;

use super::message::{Act, Answer, Ask, Did, Door, Problem, Scope};
use tpu_core::model::ids::{JobId, UserName};
use tpu_core::model::time::Timestamp;
use tpu_core::model::view::Snapshot;
use tpu_ops::{Ctx, Error};

/// A command of `tpu` that was typed into the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRequest {
    /// Global flags that stand before it: which state file, which tmux server.
    pub flags: Vec<String>,
    /// Its words.
    pub words: Vec<String>,
    /// Whose jobs are on the screen: a command that names no user is about theirs.
    pub user: Option<UserName>,
}

impl CommandRequest {
    /// All words, as somebody would type them behind the program's name. Flags stand before the command, where
    /// no `--` of its own can make words of them.
    pub fn argv(&self) -> Vec<String> {
        self.flags.iter().chain(&self.words).cloned().collect()
    }
}

/// What the command line lends the screen.
#[derive(Clone, Copy, Debug)]
pub struct CliFunctions {
    /// Runs a typed command, in a process of its own; what it gives back is what that says.
    pub run: fn(&Ctx, &CommandRequest) -> Result<String, Problem>,
    /// Says why a job has the status that it has.
    pub explain: fn(&Ctx, &JobId) -> Result<String, Error>,
}

/// The door to the program behind the screen.
pub trait Backend: Send + Sync {
    /// The instant on the wall.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment; never jumps.
    fn monotonic(&self) -> Duration;

    /// A number that is cheap to get and changes when the state file or the windows of tmux do. Asked for
    /// every second between two looks, so that what breaks or changes is noticed soon, however long the
    /// interval between looks is.
    fn wake_mark(&self, scope: &Scope) -> Result<u64, Problem>;

    /// A full look at the jobs.
    fn snapshot(&self, scope: &Scope) -> Result<Snapshot, Problem>;

    /// One line for the person in front of the screen, in fewer and fewer words, the longest version first; empty where
    /// there is nothing to say. Asked for after each look.
    fn caption(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a job's pane shows: the screen and `lines` of history above it, or all of its history; with
    /// colours (SGR sequences) if asked for. `None` when its window is gone.
    fn pane(
        &self,
        job: &JobId,
        lines: Option<u32>,
        colours: bool,
    ) -> Result<Option<Vec<u8>>, Problem>;

    /// Reads something; changes nothing.
    fn ask(&self, ask: &Ask) -> Result<Answer, Problem>;

    /// Remembers a line that was typed on a user's screen, for [`Ask::Remembered`].
    fn remember(&self, user: Option<&UserName>, line: &str) -> Result<(), Problem>;

    /// Does something.
    fn act(&self, act: &Act) -> Result<Did, Problem>;

    /// The command that takes the terminal for a while.
    fn door(&self, door: &Door) -> Result<Vec<String>, Problem>;

    /// Runs a command with the terminal, which the screen has left for that time, and waits for its end.
    fn foreground(&self, argv: &[String]) -> Result<(), Problem>;

    /// Puts a text into the buffer of the tmux in which the screen runs, if it runs in one.
    fn to_tmux_buffer(&self, text: &str) -> Result<(), Problem>;
}
