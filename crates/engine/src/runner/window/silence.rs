//! Machines that do not answer whoever attends to a job's command there. What attends to it writes that down while it
//! lasts, so that a look knows it without asking a machine: one file for each, in one directory that is empty while
//! all is well.

use std::collections::BTreeMap;

use tpu_core::model::facts::{RunFact, RunState};
use tpu_core::model::ids::LaunchToken;
use tpu_core::model::job::Job;
use tpu_core::model::time::{self, Timestamp};
use tpu_system::effects::Effects;
use tpu_system::store::atomic;

/// Readable for everybody who looks at the job.
const MODE: u32 = 0o664;
/// The same for their directory, in which each account writes its own.
const DIR_MODE: u32 = 0o775;

/// A worker that does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Silence {
    worker: u32,
    since: Timestamp,
    reason: String,
}

/// The machines that do not answer, by the launch whose command is there.
pub(crate) struct Silences(BTreeMap<String, Silence>);

impl Silences {
    /// Those that are written down now.
    pub(crate) fn read(effects: &Effects) -> Self {
        let (disk, dir) = (effects.store.disk(), effects.store.paths().silences());
        // Without the directory nobody has ever been silent.
        let names = disk.list(&dir).unwrap_or_default();
        let one = |name: String| {
            let (token, worker) = name.rsplit_once('.')?;
            let bytes = disk.read(&dir.join(&name)).ok()?.bytes;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let (since, reason) = text.trim_end().split_once(' ')?;
            let silence = Silence {
                worker: worker.parse().ok()?,
                since: Timestamp::parse_rfc3339(since)?,
                reason: reason.to_owned(),
            };
            Some((token.to_owned(), silence))
        };
        Self(names.into_iter().filter_map(one).collect())
    }

    /// What is known of a run whose window is here, while one of its machines does not answer: nothing.
    pub(crate) fn over(&self, job: &Job, fact: RunFact, now: Timestamp) -> RunFact {
        let token = job.launch.as_ref().map(|launch| launch.token.as_str());
        let silence = token.and_then(|token| self.0.get(token));
        match silence {
            Some(silence) if fact.state == RunState::Running && fact.exit.is_none() => {
                let age = time::age(now.seconds_since(silence.since));
                let Silence { worker, reason, .. } = silence;
                let text = format!("worker {worker} has not answered for {age}: {reason}");
                RunFact {
                    state: RunState::Unknown,
                    reason: Some(text.into()),
                    raw: "worker-silent".into(),
                    ..fact
                }
            }
            Some(_) | None => fact,
        }
    }
}

/// Writes down that a worker does not answer from now on.
pub fn begins(effects: &Effects, token: &LaunchToken, worker: u32, reason: &str) {
    let (disk, dir) = (effects.store.disk(), effects.store.paths().silences());
    let words = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = format!("{} {words}\n", effects.clock.now().to_rfc3339());
    let path = dir.join(format!("{}.{worker}", token.as_str()));
    // Whoever cannot write it down says it in the window all the same.
    if disk.make_dir(&dir, DIR_MODE).is_ok() {
        drop(atomic::write_passing(&**disk, &path, text.as_bytes(), MODE));
    }
}

/// Takes that away: the worker answers, or nobody attends to it any more.
pub fn ends(effects: &Effects, token: &LaunchToken, worker: u32) {
    let name = format!("{}.{worker}", token.as_str());
    let path = effects.store.paths().silences().join(name);
    // It is not there where the worker was never silent.
    drop(effects.store.disk().remove(&path));
}

/// Takes away whatever is written of the machines of a launch: its record goes.
pub fn forget(effects: &Effects, token: &LaunchToken) {
    let (disk, dir) = (effects.store.disk(), effects.store.paths().silences());
    let names = disk.list(&dir).unwrap_or_default().into_iter();
    for name in names.filter(|name| name.split('.').next() == Some(token.as_str())) {
        drop(disk.remove(&dir.join(name)));
    }
}
