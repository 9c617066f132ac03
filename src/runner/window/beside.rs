//! What lies beside a launcher: what it was given, and what it writes down.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::effects::Effects;
use crate::model::exit::Exit;
use crate::model::facts::PaneFact;
use crate::model::ids::JobId;
use crate::model::job::Job;
use crate::remote::Worker;
use crate::runner::RunError;
use crate::store::atomic;

/// The file that holds the command of the workers, each word ending in NUL.
pub const WORK: &str = "work";

/// The file that holds the addresses of the workers on which the command may live, each ending in NUL; gone
/// once it is known to have ended on all of them.
const WORKERS: &str = "workers";

/// A file beside the launcher of a job; `None` if it is not there.
pub fn file(effects: &Effects, id: &JobId, name: &str) -> Option<Vec<u8>> {
    let path = effects.store.paths().job(id).join(name);
    effects.store.disk().read(&path).ok().map(|contents| contents.bytes)
}

/// Whether what lies there is of this launch: the directory may still be that of an earlier job of the number.
pub fn is_of_launch(effects: &Effects, id: &JobId, token: &str) -> bool {
    file(effects, id, "spec")
        .is_some_and(|spec| spec.split(|byte| *byte == 0).next() == Some(token.as_bytes()))
}

/// Whether a pane that no record claims is of no launch, or of one of this data file. Several data files
/// may have windows on one server, and each closes only its own: those whose launcher lies in its state
/// directory.
pub fn is_of_this_file(effects: &Effects, pane: &PaneFact) -> bool {
    match (&pane.launch, &pane.job) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(token), Some(id)) => is_of_launch(effects, id, token.as_str()),
    }
}

/// How the command of a job has ended, as the launcher wrote beside itself, with the token of its launch: the
/// directory may still be that of an earlier job of this number.
pub fn recorded_exit(effects: &Effects, job: &Job) -> Option<Exit> {
    let launch = job.launch.as_ref()?;
    let bytes = file(effects, &job.id(), "exit")?;
    let (code, token) = std::str::from_utf8(&bytes).ok()?.trim().split_once(' ')?;
    let code = if token == launch.token.as_str() { code.parse().ok()? } else { return None };
    Some(job.exit(code))
}

/// Process group and start time of its leader, as the launcher wrote them.
pub fn recorded_group(effects: &Effects, job: &Job) -> Option<(u32, u64)> {
    let bytes = file(effects, &job.id(), "pid")?;
    let text = String::from_utf8(bytes).ok()?;
    let (group, start) = text.trim().split_once(' ')?;
    Some((group.parse().ok()?, start.parse().ok()?))
}

/// The command of the workers of a job.
pub fn work(effects: &Effects, id: &JobId) -> Vec<OsString> {
    words_in(effects, id, WORK)
}

/// The words in a file beside the launcher; none if it is not there.
pub(super) fn words_in(effects: &Effects, id: &JobId, name: &str) -> Vec<OsString> {
    words(&file(effects, id, name).unwrap_or_default()).map(os).collect()
}

/// The workers on which the command of a job may live.
pub fn workers(effects: &Effects, job: &Job) -> Vec<Worker> {
    let bytes = file(effects, &job.id(), WORKERS).unwrap_or_default();
    let addresses: Vec<String> =
        words(&bytes).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    Worker::all(&addresses)
}

/// Writes down where the command of a job may live, before it does.
pub fn record_workers(effects: &Effects, id: &JobId, workers: &[Worker]) -> Result<(), RunError> {
    let mut bytes = Vec::new();
    for worker in workers {
        bytes.extend_from_slice(worker.address.as_bytes());
        bytes.push(0);
    }
    let path = effects.store.paths().job(id).join(WORKERS);
    Ok(atomic::write_file(&**effects.store.disk(), &path, &bytes, 0o600)?)
}

/// Nothing is left on the workers. What cannot be removed is only looked at once more.
pub fn forget_workers(effects: &Effects, id: &JobId) {
    drop(effects.store.disk().remove(&effects.store.paths().job(id).join(WORKERS)));
}

fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(b"\0");
    whole.into_iter().flat_map(|bytes| bytes.split(|byte| *byte == 0))
}

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}
