//! What is kept here of a submission: its manifest, a note that is written before the server is asked and says what has
//! come of it, and the last that was seen of its run. Whoever comes later knows by it whether a Job can be on its way.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::effects::Effects;
use crate::model::time::Timestamp;
use crate::runner::RunError;
use crate::store::atomic;

use super::request::CREATING;

/// The directory of submissions, in that of the state.
const SUBMISSIONS: &str = "kubernetes";
const NOTE: &str = "note";
const MANIFEST: &str = "manifest.json";
const LAST_SEEN: &str = "last-seen";

/// Submissions that no record names any more are kept so long.
const KEPT_S: u64 = 24 * 3600;

/// A request that nobody waits for any more is done, or given up by the server, so long after it was sent: its own limit
/// and the way there.
const ON_ITS_WAY: Duration = Duration::from_secs(CREATING.as_secs() + 5);

/// A submission that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubmissionNote {
    /// When.
    at: i64,
    /// By which process: its number, its start, and the boot of its machine.
    by: (u32, u64, String),
    /// When its request was given up without an answer.
    over: Option<i64>,
    /// The identity of the Job, once the server has said it.
    pub(super) uid: Option<String>,
}

impl SubmissionNote {
    /// Of a submission that this process begins now.
    pub(super) fn begun(effects: &Effects) -> Self {
        let env = &effects.env;
        let by = (env.pid, env.started(), env.boot_id.clone());
        Self { at: effects.clock.now().as_second(), by, over: None, uid: None }
    }

    /// Notes that the request itself begins now: what had to be made before it may have taken its time.
    pub(super) fn renew(&mut self, now: Timestamp) {
        self.at = now.as_second();
    }

    /// Notes that the request was given up without an answer.
    pub(super) fn give_up(&mut self, now: Timestamp) {
        self.over = Some(now.as_second());
    }

    /// From when on a Job that is not there then will not come.
    pub(super) fn settled_at(&self) -> Timestamp {
        Timestamp::from_second(self.over.unwrap_or(self.at)).plus(ON_ITS_WAY).plus_seconds(1)
    }

    /// Whether another process of this machine is at it.
    pub(super) fn is_at_work(&self, effects: &Effects) -> bool {
        let (pid, started, boot) = &self.by;
        self.over.is_none()
            && self.uid.is_none()
            && *boot == effects.env.boot_id
            && *pid != effects.env.pid
            && effects.procs.is_alive(*pid, *started)
    }
}

/// The directory of a launch, by its token.
pub(super) fn directory(effects: &Effects, token: &str) -> PathBuf {
    root(effects).join(token)
}

fn root(effects: &Effects) -> PathBuf {
    effects.store.paths().state().join(SUBMISSIONS)
}

/// Makes the directory of a launch.
pub(super) fn make(effects: &Effects, token: &str) -> Result<PathBuf, RunError> {
    effects.store.state_dir()?;
    let (disk, root, dir) = (effects.store.disk(), root(effects), directory(effects, token));
    // Whoever shares the data file submits as well; the names are nobody's to guess.
    disk.make_dir(&root, 0o1777).map_err(|e| uncreated(&root, &e))?;
    disk.make_dir(&dir, 0o755).map_err(|e| uncreated(&dir, &e))?;
    Ok(dir)
}

fn uncreated(dir: &Path, error: &io::Error) -> RunError {
    RunError::state(
        format!("cannot create {}: {error}", dir.display()),
        "check the space and the rights there, then run it again",
    )
}

fn write_json<T: Serialize>(
    effects: &Effects,
    token: &str,
    (file, mode): (&str, u32),
    value: &T,
) -> Result<(), RunError> {
    let text = serde_json::to_vec_pretty(value).map_err(|e| {
        RunError::state(format!("{file} of {token} cannot be written: {e}"), "report this")
    })?;
    let path = make(effects, token)?.join(file);
    Ok(atomic::write_file(&**effects.store.disk(), &path, &text, mode)?)
}

fn read_json<T: DeserializeOwned>(
    effects: &Effects,
    token: &str,
    file: &str,
) -> io::Result<Option<T>> {
    match effects.store.disk().read(&directory(effects, token).join(file)) {
        Ok(contents) => serde_json::from_slice(&contents.bytes)
            .map(Some)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Writes the note of a submission.
pub(super) fn write(effects: &Effects, token: &str, note: &SubmissionNote) -> Result<(), RunError> {
    write_json(effects, token, (NOTE, 0o644), note)
}

/// The note of a submission; `None` where none was begun.
pub(super) fn read(effects: &Effects, token: &str) -> io::Result<Option<SubmissionNote>> {
    read_json(effects, token, NOTE)
}

/// Keeps a manifest.
pub(super) fn keep_manifest(effects: &Effects, token: &str, text: &str) -> Result<(), RunError> {
    let path = make(effects, token)?.join(MANIFEST);
    Ok(atomic::write_file(&**effects.store.disk(), &path, text.as_bytes(), 0o600)?)
}

/// The manifest of a submission.
pub(super) fn manifest(effects: &Effects, token: &str) -> Option<String> {
    let path = directory(effects, token).join(MANIFEST);
    let contents = effects.store.disk().read(&path).ok()?;
    Some(String::from_utf8_lossy(&contents.bytes).into_owned())
}

/// How a run was when it was last seen: what is left of it once its Job is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct LastSeen {
    /// Whether it had ended.
    pub(super) is_over: bool,
    /// Its exit code.
    pub(super) code: Option<i32>,
    /// Why it ended, as a record spells it.
    pub(super) cause: Option<String>,
    /// The same in words.
    pub(super) reason: Option<String>,
    /// Kubernetes' own word.
    pub(super) raw: String,
    /// Its nodes.
    pub(super) nodes: Vec<String>,
    /// How many pods there had been before the last one.
    pub(super) restarts: u32,
}

/// Keeps how a run was seen.
pub(super) fn keep_seen(effects: &Effects, token: &str, seen: &LastSeen) -> Result<(), RunError> {
    write_json(effects, token, (LAST_SEEN, 0o644), seen)
}

/// How a run was when it was last seen.
pub(super) fn last_seen(effects: &Effects, token: &str) -> Option<LastSeen> {
    read_json(effects, token, LAST_SEEN).ok().flatten()
}

/// Takes a submission back that has come to nothing.
pub(super) fn remove(effects: &Effects, token: &str) {
    // What stays says that it may have begun: the next look finds out that it has not.
    drop(effects.store.disk().remove_tree(&directory(effects, token)));
}

/// Removes old submissions of which no record is left.
pub(super) fn sweep(effects: &Effects) {
    let (Ok(names), Ok(data)) = (effects.store.disk().list(&root(effects)), effects.data()) else {
        return;
    };
    let now = effects.clock.now();
    let is_old = |token: &String| {
        let note = read(effects, token).ok().flatten();
        note.is_some_and(|note| now.seconds_since(Timestamp::from_second(note.at)) > KEPT_S)
    };
    let is_named = |token: &String| {
        data.jobs().any(|job| job.launch.as_ref().is_some_and(|of| of.token.as_str() == token))
    };
    for token in names.iter().filter(|token| is_old(token) && !is_named(token)) {
        remove(effects, token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_is_waited_for() {
        let by = (1, 1, "boot".to_owned());
        let begun = SubmissionNote { at: 1_000, by, over: None, uid: None };
        assert_eq!(begun.settled_at().as_second(), 1_000 + 15 + 1, "nobody saw it end");
        let mut over = begun.clone();
        over.give_up(Timestamp::from_second(1_010));
        assert_eq!(over.settled_at().as_second(), 1_010 + 15 + 1);
        let text = serde_json::to_vec(&over).unwrap();
        assert_eq!(serde_json::from_slice::<SubmissionNote>(&text).unwrap(), over);
    }
}
