//! What the workers of a job set up before its command, together: it begins on all of them or on none.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Error;
use crate::act::setup::{Hearing, SetUp, SetUpLine, said_in};
use tpu_core::model::facts::ErrorKind;
use tpu_core::model::ids::LaunchToken;
use tpu_engine::runner::window::beside;
use tpu_system::remote::{Ask, End, Remote, Reply, Worker};

use super::Control;
use super::carry::{Cargo, Carrier};

/// Between two tries to let a worker begin that does not answer.
const AGAIN: Duration = Duration::from_secs(2);

/// Brings workers what they need for it. Whether all have it.
pub(super) fn carry(
    carrier: &Carrier<'_>,
    setup: &SetUp,
    (workers, machine): (&[Worker], &str),
    out: &mut dyn Write,
) -> Result<bool, Error> {
    let ctx = carrier.control.ctx;
    let state = ctx.store.state_dir()?;
    // It may hold keys: it is there until the last worker has them, and its owner's alone.
    let dir = tempfile::tempdir_in(&state).map_err(|e| {
        Error::state(format!("cannot make a directory in {}: {e}", state.display()))
    })?;
    setup.lay(ctx, dir.path(), machine, workers.len() < 2)?;
    let cargo = Cargo {
        what: "the set-up".to_owned(),
        from: dir.path().to_owned(),
        place: setup.place(),
        hint: "there has to be room in /tmp",
        listed_at: None,
    };
    carrier.carry(workers, &cargo, out)
}

/// Takes away what lies ready on workers where nothing begins.
pub(super) fn discard(door: &dyn Remote, setup: &SetUp, workers: &[Worker]) {
    let command = format!("rm -rf -- {0} {0}.partial-*", setup.place());
    let ask = Ask { command, is_ours: true, ..Ask::default() };
    // Who does not answer has nothing that we could reach.
    door.ask(workers, &ask).for_each(drop);
}

/// Writes down that it has failed before anything began, as it does where a step fails.
pub(super) fn failed(control: &Control<'_>, token: &LaunchToken, error: &Error) {
    let (ctx, why) = (control.ctx, error.message.as_str());
    if let Err(error) = beside::record_cause(ctx, &control.job.id(), token, (ErrorKind::Setup, why))
    {
        ctx.warn([error.to_string()]);
    }
}

/// Workers that are setting up.
pub(super) struct SettingUp<'a> {
    control: &'a Control<'a>,
    token: &'a LaunchToken,
    /// Where the set-up lies on each, as a shell there reads it.
    place: String,
    hearing: Mutex<Hearing>,
    /// Ends all of them; whether somebody has.
    stop: &'a AtomicBool,
    stopping: &'a AtomicBool,
    has_given_up: AtomicBool,
    /// Whom nobody has let begin yet, once all are ready; and when the last try was.
    waiting: Mutex<(BTreeSet<u32>, Option<Duration>)>,
}

impl<'a> SettingUp<'a> {
    pub(super) fn new(
        control: &'a Control<'a>,
        setup: &SetUp,
        (workers, token): (&[Worker], &'a LaunchToken),
        (stop, stopping): (&'a AtomicBool, &'a AtomicBool),
    ) -> Self {
        let indexes: Vec<u32> = workers.iter().map(|worker| worker.index).collect();
        let (id, logs) = (control.job.id().to_string(), control.job.log_dir.as_deref());
        let hearing = Mutex::new(Hearing::new(setup, &id, logs, &indexes));
        let (place, waiting) = (setup.place(), Mutex::default());
        Self {
            control,
            token,
            place,
            hearing,
            stop,
            stopping,
            has_given_up: AtomicBool::new(false),
            waiting,
        }
    }

    fn hearing(&self) -> MutexGuard<'_, Hearing> {
        self.hearing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, (BTreeSet<u32>, Option<Duration>)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has failed, and nobody has ended it.
    pub(super) fn has_failed(&self) -> bool {
        self.has_given_up.load(Ordering::Relaxed)
    }

    /// Takes a line of a worker; what the window is to show of it. `keep` is given what its command says.
    pub(super) fn hear(
        &self,
        worker: u32,
        line: Vec<u8>,
        keep: impl FnOnce(&[u8]),
    ) -> Option<Vec<u8>> {
        let heard = self.hearing().hear(worker, line, self.control.ctx.clock.monotonic());
        match heard {
            SetUpLine::Command(line) => {
                keep(&line);
                Some(line)
            }
            SetUpLine::SetUp(shown) => {
                if let Some(said) = shown.as_deref().and_then(said_in) {
                    let id = self.control.job.id();
                    beside::record_progress(self.control.ctx, &id, self.token, &said);
                }
                shown
            }
            SetUpLine::AllReady(line) => {
                let (ctx, id) = (self.control.ctx, self.control.job.id());
                if let Err(error) = beside::record_begin(ctx, &id, self.token) {
                    ctx.warn([error.to_string()]);
                }
                let wanted = |worker: &u32| {
                    self.control.job.execution().is_none_or(|execution| execution.is_on(*worker))
                };
                let all = self.hearing().workers();
                if all.len() > 1 {
                    self.waiting().0 = all.into_iter().filter(wanted).collect();
                }
                Some(line)
            }
            SetUpLine::Failed(why, line) => {
                // Whoever ends it makes its steps fail.
                if !self.stopping.load(Ordering::Relaxed) {
                    self.give_up(&why);
                }
                Some(line)
            }
        }
    }

    /// A worker has ended, or nobody knows whether it has; what the window is to show of it.
    pub(super) fn ended(&self, worker: u32, code: Option<i32>) -> Option<Vec<u8>> {
        let how = match code {
            Some(code) => format!("ended with {code}"),
            None => "the connection to it was lost".to_owned(),
        };
        let (why, line) = self.hearing().ended(worker, &how)?;
        self.give_up(&why);
        Some(line)
    }

    /// Lets those begin that are ready, when all are.
    pub(super) fn let_begin(&self, door: &dyn Remote, workers: &[Worker]) {
        let now = self.control.ctx.clock.monotonic();
        let wanted: Vec<Worker> = {
            let (waiting, tried) = &mut *self.waiting();
            if waiting.is_empty() || tried.is_some_and(|tried| now < tried + AGAIN) {
                return;
            }
            *tried = Some(now);
            workers.iter().filter(|worker| waiting.contains(&worker.index)).cloned().collect()
        };
        // Where that is gone it has begun.
        let command = format!("! test -d {0} || : >{0}/go", self.place);
        let ask = Ask { command, is_ours: true, ..Ask::default() };
        for (worker, reply) in door.ask(&wanted, &ask) {
            if reply == Reply::End(End::Exit(0)) {
                self.waiting().0.remove(&worker);
            }
        }
    }

    /// Writes down why nothing begins, and ends what is at work on the others.
    fn give_up(&self, why: &str) {
        let control = self.control;
        let id = control.job.id();
        if let Err(error) =
            beside::record_cause(control.ctx, &id, self.token, (ErrorKind::Setup, why))
        {
            control.ctx.warn([error.to_string()]);
        }
        self.has_given_up.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }
}
