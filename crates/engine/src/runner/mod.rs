//! The contract of what runs attempts: it starts one once per launch token, says how it is, hands out what it
//! prints, and stops exactly it. Knows no kind of target.
//!
//! [`window`] is the runner of everything that runs from this machine, in tmux windows; an engine that queues
//! and places jobs itself is another one. What identifies a run to its runner is its [`Handle`], which lies in
//! the record of its attempt: so a [`RunRef`] is that record, and any process may ask about it.

pub mod code_removal;
pub mod command;
pub mod environment;
mod error;
pub mod files;
pub mod printed;
pub mod submissions;
pub mod tree;
pub mod window;

use std::ffi::OsString;
use std::path::PathBuf;

use bytes::Bytes;

use tpu_core::model::checkpoint_signal::CheckpointSignal;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{RunFact, RunState};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::{Handle, Job};
use tpu_core::model::variables::Secrets;
use tpu_system::sys::procs::Process;

use files::Files;

pub use environment::Environment;
pub use error::{RunError, Said};

/// Starts attempts, and says how they are. Nothing here waits for a run: following is a loop above it.
pub trait Runner: Send + Sync {
    /// Makes ready what runs of this user need, and says where the next one would be. What it says is written
    /// down before anything is submitted, so that whoever comes later knows where to look.
    fn ground(&self, session: &str, token: &LaunchToken) -> Result<Ground, RunError>;

    /// Starts an attempt. Called again with the same launch token it gives the same handle, and never starts it
    /// a second time. A question that failed leaves open whether it was started.
    fn submit(&self, attempt: &Attempt<'_>) -> Result<Submitted, RunError>;

    /// Starts the attempts of one group together, and says of each, by its place among them, what came of it as
    /// soon as that is known. Each is started once, as by [`Runner::submit`].
    fn submit_all(
        &self,
        attempts: &[Attempt<'_>],
        said: &mut dyn FnMut(usize, Result<Submitted, RunError>),
    ) {
        for (place, attempt) in attempts.iter().enumerate() {
            said(place, self.submit(attempt));
        }
    }

    /// Whether it keeps to [`Attempt::at_once`].
    fn limits_groups(&self) -> bool {
        false
    }

    /// Whether it gives a command its [`Attempt::secrets`].
    fn hands_on_secrets(&self) -> bool {
        false
    }

    /// Whether it sees to what a key of the [`Execution`](tpu_core::model::execution::Execution) of a command says: `setup`
    /// before it, on which of its `workers` it runs, and the limits on its time, `timeout` and `idle_timeout`. What is
    /// run in windows has programs of ours for that.
    fn carries_out(&self, _key: &str) -> bool {
        false
    }

    /// Whether it is set up to take its place away from a run for the sake of others: then what is started there
    /// comes back by rule, where nobody says otherwise.
    fn takes_away(&self) -> Result<bool, RunError> {
        Ok(false)
    }

    /// How runs are, with as few questions as it takes for all of them; the result keeps their order. A question
    /// that failed makes those unknown about whom it was asked, and no others. A look goes on without an answer that
    /// takes longer than three seconds: a question should give up by itself before.
    fn observe(&self, runs: &[RunRef<'_>]) -> Vec<Observed>;

    /// The same for whoever stops runs then, and waits eight seconds for an answer: what has ended is not to be taken for
    /// what was stopped.
    fn observe_patiently(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        self.observe(runs)
    }

    /// How the command of a run has ended, as far as a supervisor of ours has written it down beside the record.
    /// Nobody is asked.
    fn recorded_exit(&self, _run: RunRef<'_>) -> Option<Exit> {
        None
    }

    /// What runs have printed, with as few questions as it takes; the result keeps their order. `None`: there is
    /// nothing that can be read.
    fn output(&self, wanted: &[OutputWanted<'_>]) -> Result<Vec<Option<Chunk>>, RunError>;

    /// Processes of a run that can be seen from here, whatever else is known of it.
    fn processes(&self, _run: RunRef<'_>) -> Result<Vec<Process>, RunError> {
        Ok(Vec::new())
    }

    /// Why a run could not be stopped from here, before anything is done. Whether something shows it that would
    /// be closed. An engine is not asked: a wish to end a run is written down before that, and carried out once
    /// it answers.
    fn may_stop(&self, run: RunRef<'_>, unreached: Unreached) -> Result<bool, RunError>;

    /// Stops exactly this run, and nothing else. What has ended already is stopped as well as any.
    fn stop(&self, run: RunRef<'_>, stop: StopOrder) -> Result<StopOutcome, RunError>;

    /// Tells the program of a run to save a checkpoint. Whether there is one that was told.
    fn save(&self, run: RunRef<'_>, _signal: CheckpointSignal) -> Result<bool, RunError> {
        let what = format!("nobody can tell {} to save a checkpoint", run.job.id());
        Err(RunError::refused(what, "it can be stopped without: --now"))
    }

    /// Stops some runs, exactly these, each as by [`Runner::stop`], with as few questions as it takes for all of
    /// them; the result keeps their order. One that cannot be stopped keeps none of the others from it.
    fn stop_all(&self, runs: &[RunRef<'_>], stop: StopOrder) -> Vec<Result<StopOutcome, RunError>> {
        runs.iter().map(|run| self.stop(*run, stop)).collect()
    }

    /// Sees to it that runs which never reached what runs them begin nothing should they reach it later: whoever was
    /// to submit one may have stood still. Whether each of them is given up by that, in their order; one that has
    /// been found meanwhile is not, and stands.
    fn give_up(&self, runs: &[RunRef<'_>]) -> Vec<Result<bool, RunError>> {
        // What opens windows asks for itself whether its launch stands before anything begins there.
        runs.iter().map(|_| Ok(true)).collect()
    }

    /// What runs that are over have left with what runs them: each by its place among them, with its name there. Asked with as
    /// few questions as it takes; [`Runner::stop_all`] removes it.
    fn left_behind(&self, _runs: &[RunRef<'_>]) -> Result<Vec<(usize, String)>, RunError> {
        Ok(Vec::new())
    }

    /// The disk that its runs see: where their code is staged, and their logs and checkpoints lie.
    fn files(&self) -> Box<dyn Files + '_>;

    /// Whether its runs work in the copy of their code that lies on that disk. Elsewhere only what they log outlives them.
    fn works_in_copy(&self) -> bool {
        true
    }

    /// What would start an attempt, as text: a script, a manifest. Nothing is started and nobody is asked.
    fn preview(&self, attempt: &Attempt<'_>) -> Result<String, RunError>;

    /// Asks whether an attempt would be taken, where that can be asked and nothing begins by it: what is said of it, or why it
    /// would be refused.
    fn try_out(&self, _attempt: &Attempt<'_>) -> Result<Option<String>, RunError> {
        Ok(None)
    }

    /// What started a run, as [`Runner::preview`] was then. `None` where that is not kept.
    fn script(&self, run: RunRef<'_>) -> Result<Option<String>, RunError>;

    /// What runs it says of a run, in its own words, now.
    fn describe(&self, run: RunRef<'_>) -> Result<String, RunError>;

    /// Cuts a wait that what runs it has ordered: from now on the run begins as soon as there is room.
    fn unhold(&self, run: RunRef<'_>) -> Result<(), RunError> {
        let id = run.job.id();
        let what = format!("what runs {id} cannot hold a job back for a time");
        Err(RunError::refused(
            what,
            format!("`tpu explain {} {}` says how it is", id.window, id.user),
        ))
    }

    /// The command that opens a shell where a run is at work: on one of its nodes, by its name, or on the first.
    fn shell(&self, run: RunRef<'_>, _node: Option<&str>) -> Result<Vec<String>, RunError> {
        let what = format!("nobody can log in where {} is at work", run.job.id());
        let hint = format!("`tpu attach {} {}` shows it", run.job.windows_id, run.job.user);
        Err(RunError::refused(what, hint))
    }

    /// The command that shows a run to a person who wants to look or type; to be run with the terminal.
    fn attach(&self, run: RunRef<'_>) -> Result<Vec<String>, RunError>;
}

/// One run to be asked about: the record of its attempt, with the handle in it, and its user's session.
#[derive(Clone, Copy, Debug)]
pub struct RunRef<'a> {
    /// The record.
    pub job: &'a Job,
    /// The session of its user.
    pub session: &'a str,
}

/// Where the next run would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ground {
    /// Its handle, as far as it is known before it is submitted.
    pub handle: Handle,
    /// The numbers that are taken there, of which a new job can have none.
    pub taken: Vec<u32>,
}

/// What is to be started: the record as it was claimed, and what it does not keep.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// The record.
    pub job: &'a Job,
    /// The session of its user.
    pub session: &'a str,
    /// What people see of it where it runs; only decoration.
    pub name: String,
    /// A directory that is there for certain.
    pub cwd: PathBuf,
    /// The words of the command, or the arguments of the script.
    pub words: Vec<OsString>,
    /// The environment that it is given, without what is of this very launch.
    pub env: Vec<(OsString, OsString)>,
    /// What its successors get of the environment of whoever asked for it.
    pub asked: Environment,
    /// Variables that are given to the command, and written nowhere that outlives its beginning.
    pub secrets: Secrets,
    /// What is set up before it, for a runner that [sees to that](Runner::carries_out).
    pub preparation: Option<Preparation>,
    /// The control plane by which its workers are found, where those are not this machine.
    pub workers_by: Option<String>,
    /// Nodes on which it is not to begin; what runs it may have no nodes.
    pub avoid: Vec<String>,
    /// How many of the group that is started with it may run at once, where not all may.
    pub at_once: Option<u32>,
}

/// What is set up before a command, laid ready on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preparation {
    /// The directory with `setup.sh`, which goes through it, `node.sh`, which hears that, and all that they need.
    pub dir: PathBuf,
    /// Whether there are things of this machine among that, such as keys.
    pub is_confidential: bool,
    /// Seconds that it takes at most.
    pub most_s: u64,
}

/// A run that was started, now or before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// What identifies it.
    pub handle: Handle,
    /// Its pane, `%12`, where a window shows it.
    pub pane: Option<String>,
}

/// What one look says about one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// How it is.
    pub run: RunFact,
    /// Its pane, `%12`, where a window shows it.
    pub pane: Option<String>,
    /// A mark that changes when its output does; `None` where there is no output to read.
    pub printed: Option<OutputMark>,
}

impl Observed {
    /// What is known of a run of which its runner has said nothing.
    pub fn unknown() -> Self {
        let run = RunFact::new(RunState::Unknown, "unknown");
        let reason = Some("what runs it says nothing of it".into());
        Self { run: RunFact { reason, ..run }, pane: None, printed: None }
    }
}

/// What a run had printed at a look, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputMark {
    /// Changes when the run has printed since.
    pub mark: u64,
    /// Lines of it above what is shown.
    pub above: u64,
}

/// Chunk that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct OutputWanted<'a> {
    /// Of which run.
    pub run: RunRef<'a>,
    /// What a look has just said of it; without, it is looked for.
    pub seen: Option<&'a Observed>,
    /// Which part.
    pub want: Want,
}

/// Which part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// As it is shown, with so many lines above that, or with all of them.
    Shown {
        /// Lines above what is shown.
        above: Option<u32>,
        /// Whether colours are kept.
        colours: bool,
    },
    /// What is kept of it, from this byte on.
    Kept {
        /// The first byte.
        from: u64,
        /// So many bytes at most.
        most: u64,
    },
    /// So many bytes at the end of what is kept, if this launch has written any.
    KeptEnd {
        /// So many at most.
        bytes: u64,
    },
}

/// A piece of output, since the launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes.
    pub bytes: Bytes,
    /// Where what comes next begins; nothing is missing between two pieces.
    pub next: u64,
}

/// How a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopOrder {
    /// What of it.
    pub part: StopPart,
    /// What is done where workers of it cannot be reached.
    pub unreached: Unreached,
}

/// What of a run is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPart {
    /// What attends to it on this machine.
    Here,
    /// All that it is at work with. What shows its output stays.
    Program,
    /// Also what shows its output.
    Whole,
}

/// What is done where workers of a job cannot be reached, or where its record claims no window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// It is an error.
    Refuse,
    /// They are looked for no more, by a person's word: nobody else can know that they never will answer
    /// again. The journal says which they were.
    GoPast,
}

/// What was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopOutcome {
    /// Processes that got a signal.
    pub processes: usize,
    /// Whether a window was closed.
    pub window: bool,
}
