//! What is left of a run whose window is gone: its processes on this machine, its workers, which nobody asks here, and
//! the word of its launcher that somebody has closed the window.

use std::cell::OnceCell;
use std::io;
use std::path::Path;

use tpu_core::model::facts::{
    ErrorKind, RunFact, RunState, WINDOW_CLOSED, WITHOUT_WINDOW, WORKERS_UNASKED,
};
use tpu_core::model::job::Job;
use tpu_system::effects::Effects;
use tpu_system::sys::procs::{StartedWith, Table};

use super::{beside, launcher, processes};

/// The processes of this machine, read once for all runs of a look, and only if a window is missed.
pub(super) struct Left<'a> {
    effects: &'a Effects,
    table: OnceCell<io::Result<Table>>,
    launchers: OnceCell<io::Result<Vec<StartedWith>>>,
}

impl<'a> Left<'a> {
    pub(super) fn new(effects: &'a Effects) -> Self {
        Self { effects, table: OnceCell::new(), launchers: OnceCell::new() }
    }

    /// The same look at a run, with what is left of it. A run that goes on without its window is not over.
    pub(super) fn of(&self, job: &Job, run: RunFact) -> RunFact {
        let is_missed = run.state == RunState::Gone && run.cause == Some(ErrorKind::Lost);
        let is_open = run.exit.is_none() && job.launch.is_some() && job.status.is_live();
        if !is_missed || !is_open {
            return run;
        }
        match self.process(job) {
            Err(error) => RunFact {
                state: RunState::Unknown,
                cause: None,
                reason: Some(
                    format!(
                        "its window is gone; nobody can tell whether it continues here: {error}"
                    )
                    .into(),
                ),
                ..run
            },
            Ok(Some(process)) => RunFact {
                state: RunState::Running,
                cause: None,
                reason: Some(
                    format!("its window is gone; it continues here ({process}): {}", kill(job))
                        .into(),
                ),
                raw: WITHOUT_WINDOW.into(),
                ..run
            },
            Ok(None) if !beside::workers(self.effects, job).is_empty() => RunFact {
                state: RunState::Unknown,
                cause: None,
                reason: Some(ask(job).into()),
                raw: WORKERS_UNASKED.into(),
                ..run
            },
            Ok(None) if beside::is_closed(self.effects, job) => RunFact {
                is_cancelled: true,
                reason: Some("its window was closed".into()),
                raw: WINDOW_CLOSED.into(),
                ..run
            },
            Ok(None) => run,
        }
    }

    /// A process of the job, in words. Its launcher is one: it writes down last whether its window was closed.
    fn process(&self, job: &Job) -> io::Result<Option<String>> {
        // With its machine all that it had here ended.
        if job.place.as_ref().is_some_and(|place| place.boot != self.effects.env.boot_id) {
            return Ok(None);
        }
        let again = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        let table =
            self.table.get_or_init(|| self.effects.procs.table()).as_ref().map_err(again)?;
        let own = processes::in_table(self.effects, job, table);
        if let Some(process) = own.values().next() {
            return Ok(Some(format!("process {}, {}", process.pid, process.name)));
        }
        let all = || self.effects.procs.started_with(&[launcher::SCRIPT]);
        let launchers = self.launchers.get_or_init(all).as_ref().map_err(again)?;
        let disk = self.effects.store.disk();
        let script = self.effects.store.paths().job(&job.id()).join(launcher::SCRIPT);
        let file = |path: &Path| disk.stat(path).ok().map(|stat| stat.file);
        let own = file(&script);
        // Its directory may have another name for whoever started it, and a job of another data file has the same one below.
        let is_script = |word: &String| {
            let word = Path::new(word);
            word == script || word.ends_with(launcher::SCRIPT) && own.is_some() && own == file(word)
        };
        let is_it = |process: &&StartedWith| {
            process.uid == self.effects.env.uid && process.words.iter().any(is_script)
        };
        let ours = launchers.iter().find(is_it);
        Ok(ours.map(|process| format!("process {}, its launcher", process.pid)))
    }
}

/// The command that asks its workers, and opens a window again for what goes on there.
fn ask(job: &Job) -> String {
    let (window, user) = (job.windows_id, &job.user);
    format!(
        "its window is gone; its workers are to be asked whether it continues on {}: \
         tpu attach w={window} {user}",
        job.tpu
    )
}

/// The command that ends it.
fn kill(job: &Job) -> String {
    format!("tpu kill w={} {} ends it", job.windows_id, job.user)
}
