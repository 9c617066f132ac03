//! What is kept here of a submission: the batch script, and a note that is written before `sbatch` is run and says
//! what has come of it. Whoever comes later knows by it whether a job can be on its way to Slurm.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::effects::Effects;
use crate::model::time::Timestamp;
use crate::runner::RunError;
use crate::store::atomic;

use super::config::ControllerConfig;

/// The directory of submissions, in that of the state.
const SUBMISSIONS: &str = "slurm";
const NOTE: &str = "note";
const SCRIPT: &str = "script";

/// `sbatch` never lives longer: it is killed then, by us or by what guards it.
pub(super) const SUBMITTING: Duration = Duration::from_secs(30);

/// Submissions that no record names any more are kept so long.
const KEPT_S: u64 = 24 * 3600;

/// A submission that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubmissionNote {
    /// When.
    at: i64,
    /// By which process: its number, its start, and the boot of its machine.
    by: (u32, u64, String),
    /// When the controller had been started, in its own words.
    pub(super) controller: String,
    /// For how long `sbatch` may be at work.
    lasts_s: u64,
    /// For how long a message of it may be on its way.
    message_s: u64,
    /// For how long a job that is over is remembered.
    memory_s: u64,
    /// When our `sbatch` was gone without having said what came of it.
    over: Option<i64>,
    /// The number of the job, once Slurm has said it.
    pub(super) id: Option<u64>,
}

impl SubmissionNote {
    /// Of a submission that this process begins now.
    pub(super) fn begun(effects: &Effects, config: &ControllerConfig, is_here: bool) -> Self {
        // Elsewhere it begins when the way there is open, and nobody here can end it.
        let lasts = if is_here { SUBMITTING } else { SUBMITTING * 2 };
        let env = &effects.env;
        Self {
            at: effects.clock.now().as_second(),
            by: (env.pid, env.started(), env.boot_id.clone()),
            controller: config.boot.clone(),
            lasts_s: lasts.as_secs(),
            message_s: config.message_timeout.as_secs(),
            memory_s: config.min_job_age.as_secs(),
            over: None,
            id: None,
        }
    }

    /// Notes that our `sbatch` is gone, without an answer.
    pub(super) fn give_up(&mut self, now: Timestamp) {
        self.over = Some(now.as_second());
    }

    /// From when on a job of which Slurm knows nothing then is not there, and will not come.
    pub(super) fn settled_at(&self) -> Timestamp {
        let gone = Timestamp::from_second(self.over.unwrap_or(self.at));
        let rest = if self.over.is_some() { 0 } else { self.lasts_s };
        // Both ends of the way count in whole seconds.
        gone.plus(Duration::from_secs(rest + self.message_s + 1))
    }

    /// Until when Slurm can have forgotten nothing of it.
    pub(super) fn remembered_until(&self) -> Timestamp {
        Timestamp::from_second(self.at).plus(Duration::from_secs(self.memory_s))
    }

    /// Whether another process is at it.
    pub(super) fn is_at_work(&self, effects: &Effects) -> bool {
        let (pid, started, boot) = &self.by;
        self.over.is_none()
            && self.id.is_none()
            && *boot == effects.env.boot_id
            && *pid != effects.env.pid
            && effects.procs.is_alive(*pid, *started)
    }
}

/// The directory of submissions.
pub(super) fn root(effects: &Effects) -> PathBuf {
    effects.store.paths().state().join(SUBMISSIONS)
}

fn directory(effects: &Effects, name: &str) -> PathBuf {
    root(effects).join(name)
}

/// Makes the directory of submissions.
pub(super) fn make_root(effects: &Effects) -> Result<(), RunError> {
    effects.store.state_dir()?;
    // Whoever shares the data file submits as well; the names are nobody's to guess.
    let (disk, root) = (effects.store.disk(), root(effects));
    disk.make_dir(&root, 0o1777).map(drop).map_err(|e| uncreated(&root, &e))
}

/// Makes the directory of a submission.
fn make(effects: &Effects, name: &str) -> Result<PathBuf, RunError> {
    make_root(effects)?;
    let dir = directory(effects, name);
    effects.store.disk().make_dir(&dir, 0o755).map_err(|e| uncreated(&dir, &e))?;
    Ok(dir)
}

fn uncreated(dir: &Path, error: &io::Error) -> RunError {
    RunError::state(
        format!("cannot create {}: {error}", dir.display()),
        "check the space and the rights there, then run it again",
    )
}

/// Writes the note of a submission.
pub(super) fn write(effects: &Effects, name: &str, note: &SubmissionNote) -> Result<(), RunError> {
    let text = serde_json::to_vec(note).map_err(|e| {
        RunError::state(format!("the note of {name} cannot be written: {e}"), "report this")
    })?;
    let path = make(effects, name)?.join(NOTE);
    Ok(atomic::write_file(&**effects.store.disk(), &path, &text, 0o644)?)
}

/// The note of a submission; `None` where none was begun.
pub(super) fn read(effects: &Effects, name: &str) -> io::Result<Option<SubmissionNote>> {
    let path = directory(effects, name).join(NOTE);
    match effects.store.disk().read(&path) {
        Ok(contents) => serde_json::from_slice(&contents.bytes)
            .map(Some)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Keeps a batch script.
pub(super) fn keep_script(effects: &Effects, name: &str, script: &str) -> Result<(), RunError> {
    let path = make(effects, name)?.join(SCRIPT);
    Ok(atomic::write_file(&**effects.store.disk(), &path, script.as_bytes(), 0o600)?)
}

/// The batch script of a submission.
pub(super) fn script(effects: &Effects, name: &str) -> Option<String> {
    let contents = effects.store.disk().read(&directory(effects, name).join(SCRIPT)).ok()?;
    Some(String::from_utf8_lossy(&contents.bytes).into_owned())
}

/// Takes a submission back that has come to nothing.
pub(super) fn remove(effects: &Effects, name: &str) {
    // What stays says that it may have begun: the next look finds out that it has not.
    drop(effects.store.disk().remove_tree(&directory(effects, name)));
}

/// Removes old submissions of which no record is left.
pub(super) fn sweep(effects: &Effects) {
    let (Ok(names), Ok(data)) = (effects.store.disk().list(&root(effects)), effects.data()) else {
        return;
    };
    let now = effects.clock.now();
    let is_old = |name: &String| {
        let note = read(effects, name).ok().flatten();
        note.is_some_and(|note| now.seconds_since(Timestamp::from_second(note.at)) > KEPT_S)
    };
    let is_named = |name: &String| {
        data.jobs().any(|job| super::job_id::JobRef::of(job).names().any(|known| known == name))
    };
    for name in names.iter().filter(|name| is_old(name) && !is_named(name)) {
        remove(effects, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_is_waited_for() {
        let begun = SubmissionNote {
            at: 1_000,
            by: (1, 1, "boot".to_owned()),
            controller: "then".to_owned(),
            lasts_s: 30,
            message_s: 10,
            memory_s: 300,
            over: None,
            id: None,
        };
        assert_eq!(begun.settled_at().as_second(), 1_000 + 30 + 10 + 1, "nobody saw sbatch end");
        let mut over = begun.clone();
        over.give_up(Timestamp::from_second(1_002));
        assert_eq!(over.settled_at().as_second(), 1_002 + 10 + 1);
        let text = serde_json::to_vec(&over).unwrap();
        assert_eq!(serde_json::from_slice::<SubmissionNote>(&text).unwrap(), over);
    }
}
