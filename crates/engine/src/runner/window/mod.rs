//! The runner of everything that runs from this machine: tmux windows, with a launcher of ours in each as the
//! supervisor. What computes elsewhere is attended to by a command in the window, which knows the workers.
//!
//! A window is known by the mark of its launch ([`place`]). What the launcher is given and what it writes down
//! lies [`beside`] it. A look is one `list-panes` and the files of what may have ended, and asks no worker.

pub mod beside;
pub mod launcher;
mod left;
mod log;
pub mod panes;
pub mod place;
pub mod processes;
pub mod relay;
mod reopen;
mod script;
pub mod silence;
pub mod unwritten;

use std::borrow::Cow;

use bytes::Bytes;

use tpu_core::model::checkpoint_signal::CheckpointSignal;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{PaneFact, TmuxFact};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::{Handle, Job, Status};
use tpu_system::effects::Effects;
use tpu_system::sys::accounts;
use tpu_system::sys::procs::Process;
use tpu_system::tmux::{Capture, Look, NewWindow, TmuxError};

use super::files::{Files, ThisDisk};
use super::{
    Attempt, Chunk, Ground, Observed, OutputMark, OutputWanted, RunError, RunRef, Runner,
    StopOrder, StopOutcome, StopPart, Submitted, Unreached, Want,
};
use left::Left;
use place::{Indexed, Window};
pub use reopen::{Reopened, reopen};
use silence::Silences;
use unwritten::Unwritten;

/// Lines of history that a job's window keeps at least.
pub const HISTORY: u32 = 10_000;

/// The workers of a target that are not this machine, as the window runner needs them.
pub trait FarWorkers: Send + Sync {
    /// Stops the command of a job on the workers that it was started on ([`beside::workers`]), forgets these, and
    /// says how many processes there were.
    fn stop(&self, job: &Job, unreached: Unreached) -> Result<usize, RunError>;
}

/// What one look at many runs knows beside their windows.
struct Known<'a> {
    /// Process id of the tmux server.
    server: u32,
    silences: Silences,
    unwritten: Unwritten,
    left: Left<'a>,
}

/// Runs attempts in windows.
pub struct WindowRunner<'a> {
    effects: &'a Effects,
    workers: Box<dyn FarWorkers + 'a>,
    seen: Option<&'a TmuxFact>,
    open: Option<&'a Look<'a>>,
}

impl<'a> WindowRunner<'a> {
    /// One that asks tmux for itself.
    pub fn new(effects: &'a Effects, workers: Box<dyn FarWorkers + 'a>) -> Self {
        Self { effects, workers, seen: None, open: None }
    }

    /// One that goes by a look that was made already, for whoever needs it for something else as well.
    #[must_use]
    pub fn seeing(self, tmux: &'a TmuxFact) -> Self {
        Self { seen: Some(tmux), ..self }
    }

    /// One that also reads panes by that look.
    #[must_use]
    pub fn reading(self, look: &'a Look<'a>) -> Self {
        Self { open: Some(look), ..self.seeing(&look.fact) }
    }

    /// A number that changes when a window may have come or gone or its program ended: cheap enough to be asked
    /// several times a second.
    pub fn wakes(&self) -> u64 {
        self.effects.tmux.wake_mark()
    }

    fn look(&self) -> Cow<'_, TmuxFact> {
        match self.seen {
            Some(seen) => Cow::Borrowed(seen),
            None => Cow::Owned(self.effects.tmux.look()),
        }
    }

    fn observed(&self, job: &Job, window: &Window<'_>, known: &Known<'_>) -> Observed {
        let pane = match window {
            Window::Here(pane) => Some(*pane),
            _ => None,
        };
        let by_pane = pane.and_then(|pane| pane.exit).map(|code| job.exit(code));
        let by_record = || job.launch.as_ref()?.exit.map(|code| job.exit(code));
        let exit = by_pane
            .or_else(by_record)
            .or_else(|| if is_open(job) { beside::recorded_exit(self.effects, job) } else { None });
        let fact = window.fact(job, exit);
        let fact = if is_open(job) {
            let fact = beside::with_cause(self.effects, job, fact);
            let fact = beside::with_progress(self.effects, job, fact);
            let fact = known.unwritten.over(self.effects, job, fact);
            known.left.of(job, fact)
        } else {
            fact
        };
        Observed {
            run: known.silences.over(job, fact, self.effects.clock.now()),
            pane: pane.map(|pane| pane.pane_id.clone()),
            printed: pane.map(|pane| printed(known.server, pane)),
        }
    }

    /// The window of a job in a look.
    fn find<'t>(&self, job: &Job, session: &str, tmux: &'t TmuxFact) -> Window<'t> {
        place::find(job, session, tmux, &*self.effects.procs)
    }

    /// The pane of a run, if there is one now, and the server's pid. Refused where nobody can tell from here, unless a
    /// person goes past a record that claims no window.
    fn pane_of<'t>(
        &self,
        RunRef { job, session }: RunRef<'_>,
        tmux: &'t TmuxFact,
        unreached: Unreached,
    ) -> Result<Option<(&'t PaneFact, u32)>, RunError> {
        let window = self.find(job, session, tmux);
        if unreached == Unreached::GoPast && place::claims_none(job, &window, tmux) {
            return Ok(None);
        }
        match window {
            Window::Here(pane) => {
                alone(job, pane, tmux)?;
                Ok(Some((pane, server(tmux))))
            }
            Window::Gone | Window::Lost(_) => Ok(None),
            Window::Elsewhere(reason) => Err(RunError::refused(
                format!("{} is not watched from here: {reason}", job.id()),
                self.kill_there(job),
            )),
            Window::Unknown(reason) => Err(RunError::unreachable(
                format!("{}: {reason}", job.id()),
                "nothing was changed; try again when tmux answers",
            )),
        }
    }

    /// How a job is killed that has its window elsewhere.
    fn kill_there(&self, job: &Job) -> String {
        let here = &self.effects.env;
        let other = job.place.as_ref().filter(|at| at.host == here.hostname && at.uid != here.uid);
        other.map_or_else(
            || "kill it there".to_owned(),
            |at| {
                let (account, window, user) = (accounts::name(at.uid), job.windows_id, &job.user);
                format!("only {account} can: as {account}, tpu kill w={window} {user}")
            },
        )
    }

    /// Stops the processes of a job here and on its workers, and says how many there were.
    fn stop_program(
        &self,
        job: &Job,
        shell: Option<u32>,
        unreached: Unreached,
    ) -> Result<usize, RunError> {
        let is_known = !beside::workers(self.effects, job).is_empty();
        let mut stopped = self.workers.stop(job, unreached)?;
        stopped += processes::stop_here(self.effects, job, shell)?;
        if !is_known {
            // What attended to them may have begun since we looked.
            stopped += self.workers.stop(job, unreached)?;
        }
        Ok(stopped)
    }

    /// Closes the window of a run whose processes have been stopped. A window that has gone by itself since
    /// (its shell had nothing left to do) is closed as well as any.
    fn close(&self, job: &Job, pane: &PaneFact, server: u32) -> Result<(), RunError> {
        match self.effects.tmux.close_pane(pane, server) {
            Err(TmuxError::Changed { .. }) if self.has_gone(job, pane) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Whether the record knows the end of the command, and that it lives on no worker.
    fn has_ended(&self, job: &Job) -> bool {
        job.launch.as_ref().is_some_and(|launch| launch.exit.is_some())
            && beside::workers(self.effects, job).is_empty()
    }

    /// The process below which a job of the original runs: that of its pane. `None` if that has ended, or has gone
    /// with its window since we looked; not to be told is an error.
    fn shell(&self, job: &Job, pane: &PaneFact, server: u32) -> Result<Option<u32>, RunError> {
        match self.effects.tmux.process(pane, server) {
            Err(TmuxError::Changed { .. }) if self.has_gone(job, pane) => Ok(None),
            other => Ok(other?),
        }
    }

    /// Whether a server answers and the pane is not there, or does not carry the mark of this job any more. One
    /// without a mark that is now somewhere else has not gone.
    fn has_gone(&self, job: &Job, pane: &PaneFact) -> bool {
        let is_it = |now: &PaneFact| {
            place::is_window_of(job, &pane.session, now)
                || pane.launch.is_none() && now.pane_id == pane.pane_id
        };
        match self.effects.tmux.look() {
            TmuxFact::Up { panes, .. } => !panes.iter().any(is_it),
            TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => false,
        }
    }

    /// What an earlier call with this token has started; `None` if there was none. A launcher that has begun is
    /// never begun again, also when its window is gone by now.
    fn submitted_before(
        &self,
        RunRef { job, session }: RunRef<'_>,
        handle: &Handle,
    ) -> Result<Option<Submitted>, RunError> {
        let effects = self.effects;
        let token = job.launch.as_ref().map_or("", |launch| launch.token.as_str());
        if !beside::is_of_launch(effects, &job.id(), token) {
            return Ok(None);
        }
        let submitted = |pane| Some(Submitted { handle: handle.clone(), pane });
        let tmux = effects.tmux.look();
        match self.find(job, session, &tmux) {
            Window::Here(pane) => Ok(submitted(Some(pane.pane_id.clone()))),
            Window::Gone | Window::Lost(_) => {
                let has_begun = beside::recorded_group(effects, job).is_some()
                    || beside::recorded_exit(effects, job).is_some();
                Ok(if has_begun { submitted(None) } else { None })
            }
            Window::Elsewhere(reason) | Window::Unknown(reason) => Err(RunError::unreachable(
                format!("whether {} was started is not known: {reason}", job.id()),
                "the next command sets it right",
            )),
        }
    }
}

/// Refuses a run that an engine has: nothing that could be stopped here is it.
fn is_in_a_window(run: RunRef<'_>) -> Result<(), RunError> {
    match &run.job.engine {
        None => Ok(()),
        Some(engine) => Err(RunError::refused(
            format!("{} is run by {}, which nothing here knows", run.job.id(), engine.cluster),
            "use the tpu that started it; `tpu --version` says which this is",
        )),
    }
}

impl Runner for WindowRunner<'_> {
    fn ground(&self, session: &str, token: &LaunchToken) -> Result<Ground, RunError> {
        self.effects.tmux.ensure_session(session, HISTORY)?;
        match self.effects.tmux.look() {
            TmuxFact::Up { place, panes } => {
                let ours = panes.iter().filter(|pane| pane.session == session);
                let taken = ours.map(|pane| pane.window_index).collect();
                Ok(Ground { handle: Handle::Window { place, token: token.clone() }, taken })
            }
            TmuxFact::Down { place } => Err(RunError::unreachable(
                format!(
                    "the tmux server on {} ended while the job was being started",
                    place.socket
                ),
                "nothing was started; try again",
            )),
            TmuxFact::Unknown { reason } => Err(RunError::unreachable(
                format!("tmux cannot be asked: {reason}"),
                "nothing was started; try again",
            )),
        }
    }

    fn hands_on_secrets(&self) -> bool {
        true
    }

    fn submit(&self, attempt: &Attempt<'_>) -> Result<Submitted, RunError> {
        let job = attempt.job;
        let (Some(launch), Some(handle)) = (&job.launch, job.handle()) else {
            let what = format!("{} has no launch that could be submitted", job.id());
            return Err(RunError::failed(what, "run it anew"));
        };
        let run = RunRef { job, session: attempt.session };
        if let Some(submitted) = self.submitted_before(run, &handle)? {
            return Ok(submitted);
        }
        let launcher = launcher::prepare(self.effects, attempt, launch)
            .inspect_err(|_| launcher::discard_secrets(self.effects, job))?;
        fail::fail_point!("launch-written");
        let window = NewWindow {
            session: attempt.session.to_owned(),
            index: job.windows_id.0,
            name: attempt.name.clone(),
            cwd: attempt.cwd.clone(),
            argv: vec!["/bin/bash".to_owned(), launcher],
            job: job.id(),
            launch: launch.token.clone(),
        };
        let pane = self.effects.tmux.open_window(&window).inspect_err(|_| {
            launcher::discard_secrets(self.effects, job);
        })?;
        Ok(Submitted { handle, pane: Some(pane.pane_id) })
    }

    fn observe(&self, runs: &[RunRef<'_>]) -> Vec<Observed> {
        let tmux = self.look();
        let panes = Indexed::new(&tmux, &*self.effects.procs);
        let known = Known {
            server: server(&tmux),
            silences: Silences::read(self.effects),
            unwritten: Unwritten::read(self.effects),
            left: Left::new(self.effects),
        };
        let of =
            |run: &RunRef<'_>| self.observed(run.job, &panes.find(run.job, run.session), &known);
        runs.iter().map(of).collect()
    }

    fn recorded_exit(&self, run: RunRef<'_>) -> Option<Exit> {
        beside::recorded_exit(self.effects, run.job)
    }

    fn output(&self, wanted: &[OutputWanted<'_>]) -> Result<Vec<Option<Chunk>>, RunError> {
        let mut outputs: Vec<Option<Chunk>> = wanted.iter().map(|_| None).collect();
        let (mut captures, mut of) = (Vec::new(), Vec::new());
        let unseen = |wanted: &&OutputWanted<'_>| {
            wanted.seen.is_none() && matches!(wanted.want, Want::Shown { .. })
        };
        let tmux = wanted.iter().find(unseen).map(|_| self.look());
        for (index, OutputWanted { run, seen, want }) in wanted.iter().enumerate() {
            let (above, colours) = match want {
                Want::Shown { above, colours } => (*above, *colours),
                Want::Kept { from, most } => {
                    if let Some(output) = outputs.get_mut(index) {
                        *output = log::from(run.job, *from, *most)?;
                    }
                    continue;
                }
                Want::KeptEnd { bytes } => {
                    if let Some(output) = outputs.get_mut(index) {
                        *output = log::end(run.job, *bytes);
                    }
                    continue;
                }
            };
            let pane_id = match (seen, &tmux) {
                (Some(seen), _) => seen.pane.clone(),
                (None, Some(tmux)) => match self.find(run.job, run.session, tmux) {
                    Window::Here(pane) => Some(pane.pane_id.clone()),
                    _ => None,
                },
                (None, None) => None,
            };
            if let Some(pane_id) = pane_id {
                captures.push(Capture { pane_id, history: above, colours });
                of.push(index);
            }
        }
        if captures.is_empty() {
            return Ok(outputs);
        }
        let read = match self.open {
            Some(look) => look.capture(&captures),
            None => self.effects.tmux.capture(&captures),
        };
        for (index, text) in of.into_iter().zip(read?) {
            let (Some(text), Some(wanted), Some(output)) =
                (text, wanted.get(index), outputs.get_mut(index))
            else {
                continue;
            };
            *output = Some(Chunk { bytes: since_launch(wanted.run.job, &text), next: 0 });
        }
        Ok(outputs)
    }

    fn processes(&self, run: RunRef<'_>) -> Result<Vec<Process>, RunError> {
        if run.job.launch.is_some() {
            return processes::of_job(self.effects, run.job, None);
        }
        let tmux = self.look();
        match self.find(run.job, run.session, &tmux) {
            Window::Here(pane) => {
                let shell = self.shell(run.job, pane, server(&tmux))?;
                processes::of_job(self.effects, run.job, shell)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn save(&self, run: RunRef<'_>, signal: CheckpointSignal) -> Result<bool, RunError> {
        processes::save(self.effects, run.job, signal)
    }

    fn may_stop(&self, run: RunRef<'_>, unreached: Unreached) -> Result<bool, RunError> {
        is_in_a_window(run)?;
        Ok(self.pane_of(run, &self.look(), unreached)?.is_some())
    }

    fn stop(&self, run: RunRef<'_>, stop: StopOrder) -> Result<StopOutcome, RunError> {
        is_in_a_window(run)?;
        let job = run.job;
        let only = |processes| StopOutcome { processes, window: false };
        match stop.part {
            StopPart::Here => processes::stop_here(self.effects, job, None).map(only),
            // What carries our token is known by it, whatever tmux says.
            StopPart::Program if job.launch.is_some() => {
                self.stop_program(job, None, stop.unreached).map(only)
            }
            StopPart::Program => {
                let tmux = self.look();
                let shell = match self.pane_of(run, &tmux, stop.unreached)? {
                    Some((pane, server)) => self.shell(job, pane, server)?,
                    None => None,
                };
                self.stop_program(job, shell, stop.unreached).map(only)
            }
            StopPart::Whole => {
                let tmux = self.look();
                let Some((pane, server)) = self.pane_of(run, &tmux, stop.unreached)? else {
                    launcher::discard_secrets(self.effects, job);
                    return Ok(StopOutcome::default());
                };
                self.close(job, pane, server)?;
                launcher::discard_secrets(self.effects, job);
                // A launcher that was let through a moment ago may have begun the job since we looked.
                let processes = if self.has_ended(job) {
                    0
                } else {
                    self.stop_program(job, None, stop.unreached)?
                };
                Ok(StopOutcome { processes, window: true })
            }
        }
    }

    fn give_up(&self, runs: &[RunRef<'_>]) -> Vec<Result<bool, RunError>> {
        // What opens windows asks for itself whether its launch stands before anything begins there.
        let given_up = |run: &RunRef<'_>| {
            launcher::discard_secrets(self.effects, run.job);
            Ok(true)
        };
        runs.iter().map(given_up).collect()
    }

    fn files(&self) -> Box<dyn Files + '_> {
        Box::new(ThisDisk)
    }

    fn preview(&self, attempt: &Attempt<'_>) -> Result<String, RunError> {
        Ok(script::of_attempt(self.effects, attempt).unwrap_or_default())
    }

    fn script(&self, run: RunRef<'_>) -> Result<Option<String>, RunError> {
        Ok(script::of_run(self.effects, run.job))
    }

    fn describe(&self, run: RunRef<'_>) -> Result<String, RunError> {
        is_in_a_window(run)?;
        let tmux = self.look();
        let window = self.find(run.job, run.session, &tmux);
        let said = match window {
            Window::Here(pane) => {
                let process = match self.effects.tmux.process(pane, server(&tmux))? {
                    Some(pid) => format!("process {pid}"),
                    None => "whose program has ended".to_owned(),
                };
                let (session, index) = (&pane.session, pane.window_index);
                let above = format!("{} lines above", pane.history_size);
                format!("window {session}:{index}, pane {}, {above}, {process}", pane.pane_id)
            }
            Window::Gone => "no window of this server carries its mark".to_owned(),
            Window::Lost(reason) => reason.to_string(),
            Window::Elsewhere(reason) => reason,
            Window::Unknown(reason) => {
                return Err(RunError::unreachable(reason, "try again when tmux answers"));
            }
        };
        let of = run.job.place.as_ref();
        let at = of.map(|at| {
            format!("\ntmux server {} on {}, socket {}", at.server_pid, at.host, at.socket)
        });
        Ok(said + &at.unwrap_or_default())
    }

    fn attach(&self, RunRef { job, session }: RunRef<'_>) -> Result<Vec<String>, RunError> {
        let id = job.id();
        let output = format!("its output: tpu logs w={} {}", id.window, id.user);
        match self.find(job, session, &self.look()) {
            Window::Here(pane) => {
                let inside = self.effects.env.non_empty("TMUX");
                Ok(self.effects.tmux.attach_argv(pane, inside))
            }
            Window::Gone => {
                Err(RunError::not_found(format!("the window of {id} is closed"), output))
            }
            Window::Lost(reason) => {
                Err(RunError::not_found(format!("the window of {id} is gone: {reason}"), output))
            }
            Window::Elsewhere(reason) => Err(RunError::refused(
                format!("{id} cannot be shown here: {reason}"),
                "attach there",
            )),
            Window::Unknown(reason) => {
                Err(RunError::unreachable(format!("{id}: {reason}"), "try again when tmux answers"))
            }
        }
    }
}

/// Refuses a window of the original that somebody has split: without a mark nobody can tell which of its panes
/// is the job's.
pub fn alone(job: &Job, pane: &PaneFact, tmux: &TmuxFact) -> Result<(), RunError> {
    if pane.launch.is_some() || place::beside(pane, tmux).next().is_none() {
        return Ok(());
    }
    let id = job.id();
    let place = format!("window {} of {}", pane.window_index, pane.session);
    Err(RunError::refused(
        format!(
            "{place} has several panes and no mark of ours: which of them {id} is in is not known"
        ),
        "end it there by hand, or close what is yours, then repeat the command",
    ))
}

/// The text that belongs to this launch of the job.
fn since_launch(job: &Job, text: &Bytes) -> Bytes {
    text.slice_ref(panes::since_launch(job, text))
}

/// The pid of the server that answered.
fn server(tmux: &TmuxFact) -> u32 {
    match tmux {
        TmuxFact::Up { place, .. } => place.server_pid,
        TmuxFact::Down { .. } | TmuxFact::Unknown { .. } => 0,
    }
}

/// Changes when a pane prints, or its job ends.
fn printed(server: u32, pane: &PaneFact) -> OutputMark {
    let exit = pane.exit.map_or(u64::MAX, |code| u64::from(code.cast_unsigned()));
    let parts = [
        pane.activity,
        pane.history_size,
        u64::from(pane.cursor_y) << 32 | u64::from(pane.cursor_x),
        exit,
        u64::from(server),
    ];
    // Two marks of one pane are alike once in 2^64 by chance; a hasher costs ten times as much.
    let mut mark = 0_u64;
    for part in parts {
        mark = (mark ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    OutputMark { mark, above: pane.history_size }
}

/// Whether the end of a job's program may have been recorded by its launcher alone.
fn is_open(job: &Job) -> bool {
    let unseen = job.launch.as_ref().is_some_and(|launch| launch.exit.is_none());
    job.status.is_live() || unseen && matches!(job.status, Status::Error(_))
}
