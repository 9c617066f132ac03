//! What lies beside a launcher: what it was given, and what it writes down.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use crate::runner::RunError;
use tpu_core::model::exit::Exit;
use tpu_core::model::facts::{COPYING, ErrorKind, PaneFact, RunFact, RunState, SETTING_UP};
use tpu_core::model::ids::{JobId, LaunchToken};
use tpu_core::model::job::{Job, Status};
use tpu_core::model::launch::LAUNCH_LIMIT_S;
use tpu_core::model::time::Timestamp;
use tpu_system::effects::Effects;
use tpu_system::remote::Worker;
use tpu_system::store::atomic;

/// The file that holds the command of the workers, each word ending in NUL.
pub(crate) const WORK: &str = "work";

/// The file that holds the workers on which the command may live, each its number and its address, ending in NUL; gone
/// once it is known to have ended on all of them.
const WORKERS: &str = "workers";

/// Between the number and the address of a worker.
const NUMBERED: char = ' ';

/// A file beside the launcher of a job; `None` if it is not there.
pub fn file(effects: &Effects, id: &JobId, name: &str) -> Option<Vec<u8>> {
    let path = effects.store.paths().job(id).join(name);
    effects.store.disk().read(&path).ok().map(|contents| contents.bytes)
}

/// Writes a file beside the launcher of a job.
fn write(effects: &Effects, id: &JobId, name: &str, bytes: &[u8]) -> Result<(), RunError> {
    let path = effects.store.paths().job(id).join(name);
    Ok(atomic::write_file(&**effects.store.disk(), &path, bytes, 0o600)?)
}

/// Removes one. What cannot be removed is only looked at once more.
fn remove(effects: &Effects, id: &JobId, name: &str) {
    drop(effects.store.disk().remove(&effects.store.paths().job(id).join(name)));
}

/// Whether what lies there is of this launch: the directory may still be that of an earlier job of the number.
pub(crate) fn is_of_launch(effects: &Effects, id: &JobId, token: &str) -> bool {
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

/// Whether the window of a job attends to its workers, on which the command runs.
pub fn attends_workers(effects: &Effects, id: &JobId) -> bool {
    let step = words_in(effects, id, "argv").into_iter().nth(2);
    step.is_some_and(|step| step == "workers") && !words_in(effects, id, WORK).is_empty()
}

/// The file that says that somebody has closed the window of a launch: its token.
const CLOSED: &str = "closed";

/// Writes down that somebody has closed the window of a launch.
pub fn record_closed(effects: &Effects, id: &JobId, token: &LaunchToken) -> Result<(), RunError> {
    write(effects, id, CLOSED, format!("{token}\n").as_bytes())
}

/// Takes that word back: another window is open, or the job went on without one.
pub fn forget_closed(effects: &Effects, id: &JobId) {
    remove(effects, id, CLOSED);
}

/// The file that says that a later window is open, and that its workers have not been heard there yet.
const REOPENED: &str = "reopened";

/// Writes down that a later window is opened. Whether nothing was heard in the last one that was.
pub(super) fn record_reopened(effects: &Effects, id: &JobId) -> Result<bool, RunError> {
    let was_unheard = file(effects, id, REOPENED).is_some();
    write(effects, id, REOPENED, b"")?;
    Ok(was_unheard)
}

/// Writes down that the workers are heard in it.
pub fn record_heard(effects: &Effects, id: &JobId) {
    remove(effects, id, REOPENED);
}

/// Whether somebody has closed the window of a job, as its launcher wrote down.
pub(super) fn is_closed(effects: &Effects, job: &Job) -> bool {
    let Some(launch) = &job.launch else { return false };
    file(effects, &job.id(), CLOSED)
        .is_some_and(|token| token.trim_ascii_end() == launch.token.as_str().as_bytes())
}

/// The file that says why we ended a job, or never began it: the token, the kind, and the reason.
const CAUSE: &str = "cause";

/// Writes down why a job has ended, before it does: no exit code would say it.
pub fn record_cause(
    effects: &Effects,
    id: &JobId,
    token: &LaunchToken,
    (kind, why): (ErrorKind, &str),
) -> Result<(), RunError> {
    write(effects, id, CAUSE, format!("{token}\n{}\n{why}\n", kind.as_str()).as_bytes())
}

/// The file that says since when a command is at work that something was set up for: the token and the instant.
const BEGUN: &str = "begun";

/// Writes down that all is set up, and the command begins.
pub fn record_begin(effects: &Effects, id: &JobId, token: &LaunchToken) -> Result<(), RunError> {
    remove(effects, id, PROGRESS);
    // Where a window was opened again this is heard once more.
    let known = file(effects, id, BEGUN).unwrap_or_default();
    if known.starts_with(format!("{token} ").as_bytes()) {
        return Ok(());
    }
    let text = format!("{token} {}\n", effects.clock.now().to_rfc3339());
    write(effects, id, BEGUN, text.as_bytes())
}

/// The file that says how far the set-up of a job is: the token and the words.
const PROGRESS: &str = "set-up";

/// Writes down how far the set-up of a job is; what cannot be written is only not known.
pub fn record_progress(effects: &Effects, id: &JobId, token: &LaunchToken, said: &str) {
    drop(write(effects, id, PROGRESS, format!("{token} {said}\n").as_bytes()));
}

/// The same look at a run at work, with how far its set-up is, as long as its command has not begun.
pub fn with_progress(effects: &Effects, job: &Job, run: RunFact) -> RunFact {
    let sets_up = job.execution().is_some_and(|execution| !execution.setup.is_empty());
    let Some(launch) = job.launch.as_ref().filter(|_| sets_up) else { return run };
    if run.state != RunState::Running || run.exit.is_some() {
        return run;
    }
    match said_of(effects, job, PROGRESS, launch.token.as_str()) {
        Some(said) => RunFact { raw: SETTING_UP.into(), reason: Some(said.into()), ..run },
        None => run,
    }
}

/// The file that says how far the copy of the code of a job is: the token and the words.
const COPY: &str = "copying";

/// Writes down how far the copy of the code of a job is, until that is [forgotten](forget_copying). What cannot be written
/// is only not known.
pub fn record_copying(effects: &Effects, job: &Job, said: &str) {
    let Some(launch) = &job.launch else { return };
    drop(effects.store.job_dir(&job.id()));
    drop(write(effects, &job.id(), COPY, format!("{} {said}\n", launch.token).as_bytes()));
}

/// The copy is made, or nobody makes it any more.
pub fn forget_copying(effects: &Effects, job: &Job) {
    remove(effects, &job.id(), COPY);
}

/// The same look at a run that is about to begin, with how far the copy of its code is, while that is made.
pub fn with_copying(effects: &Effects, job: &Job, run: RunFact) -> RunFact {
    let Some(launch) = &job.launch else { return run };
    let is_young = effects.clock.now().seconds_since(launch.at) < LAUNCH_LIMIT_S;
    // An engine has nothing of it before it is submitted. What whoever died has left says nothing any more.
    let may_be = match run.state {
        RunState::Running | RunState::Starting => run.exit.is_none(),
        RunState::Gone => run.cause == Some(ErrorKind::Launch) && is_young,
        _ => false,
    };
    if !may_be || !matches!(job.status, Status::Starting | Status::Unset) {
        return run;
    }
    match said_of(effects, job, COPY, launch.token.as_str()) {
        Some(said) => RunFact { raw: COPYING.into(), reason: Some(said.into()), ..run },
        None => run,
    }
}

/// What a file beside a launcher says of this launch: behind its token.
fn said_of(effects: &Effects, job: &Job, name: &str, token: &str) -> Option<String> {
    let said = String::from_utf8(file(effects, &job.id(), name)?).ok()?;
    let (of, said) = said.trim_end().split_once(' ')?;
    (of == token).then(|| said.to_owned())
}

/// Since when the command of a job is at work: from its launch on, or, where a program of ours attends to it, from when
/// that has let it begin; `None` before.
pub fn begun_at(effects: &Effects, job: &Job) -> Option<Timestamp> {
    let launch = job.launch.as_ref()?;
    file(effects, &job.id(), "spec")?;
    if file(effects, &job.id(), WORK).is_none() {
        return Some(launch.at);
    }
    let said = String::from_utf8(file(effects, &job.id(), BEGUN)?).ok()?;
    let (token, at) = said.trim().split_once(' ')?;
    if token == launch.token.as_str() { Timestamp::parse_rfc3339(at) } else { None }
}

/// How the name of the file begins that lies beside a launcher for as long as a worker of it cannot be heard.
const UNHEARD: &str = "unheard-";

/// Writes down whether a worker can be heard now: its silence says nothing of its command. What cannot be written is only
/// not known.
pub fn record_hearing(effects: &Effects, id: &JobId, worker: u32, is_heard: bool) {
    let name = format!("{UNHEARD}{worker}");
    if is_heard {
        remove(effects, id, &name);
    } else {
        drop(write(effects, id, &name, b""));
    }
}

/// Whether all workers of a job can be heard, as far as whoever attends to them has written.
pub fn are_heard(effects: &Effects, job: &Job) -> bool {
    let dir = effects.store.paths().job(&job.id());
    let is_silent = |worker: &Worker| dir.join(format!("{UNHEARD}{}", worker.index)).exists();
    !workers(effects, job).iter().any(is_silent)
}

/// The reason that was written down for an end that does not come.
pub fn forget_cause(effects: &Effects, id: &JobId) {
    remove(effects, id, CAUSE);
}

/// The same look at a run, with the reason that was [written down](record_cause) for its end.
pub fn with_cause(effects: &Effects, job: &Job, run: RunFact) -> RunFact {
    let Some(token) = job.launch.as_ref().map(|launch| launch.token.as_str()) else { return run };
    let said = if run.exit.is_some() { file(effects, &job.id(), CAUSE) } else { None };
    let Some(said) = said.and_then(|bytes| String::from_utf8(bytes).ok()) else { return run };
    let mut lines = said.splitn(3, '\n');
    let kind = match (lines.next(), lines.next().and_then(ErrorKind::parse)) {
        (Some(of), Some(kind)) if of == token => kind,
        _ => return run,
    };
    let why = lines.next().unwrap_or_default().trim_end().to_owned();
    RunFact { cause: Some(kind), reason: Some(why.into()), raw: kind.as_str().into(), ..run }
}

/// Process group and start time of its leader, as the launcher wrote them.
pub fn recorded_group(effects: &Effects, job: &Job) -> Option<(u32, u64)> {
    let bytes = file(effects, &job.id(), "pid")?;
    let text = String::from_utf8(bytes).ok()?;
    let (group, start) = text.trim().split_once(' ')?;
    Some((group.parse().ok()?, start.parse().ok()?))
}

/// The file that says that a launch was stopped: its token, as the directory may soon be that of a later job.
const STOPPED: &str = "stopped";

/// Keeps the launcher of a job from beginning the command, if it has not come to it: from its own look for this it can
/// be found by [`recorded_group`]. A disk that takes nothing more keeps nobody from stopping what runs.
pub(crate) fn record_stopped(effects: &Effects, job: &Job) {
    let id = job.id();
    let Some(launch) = &job.launch else { return };
    if is_of_launch(effects, &id, launch.token.as_str()) {
        drop(write(effects, &id, STOPPED, format!("{}\n", launch.token).as_bytes()));
    }
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
    let worker = |(place, word): (u32, &[u8])| {
        let word = String::from_utf8_lossy(word);
        // Before a job could name its workers each stood at its own place.
        let numbered = word.split_once(NUMBERED);
        match numbered.and_then(|(index, address)| Some((index.parse().ok()?, address))) {
            Some((index, address)) => Worker { index, address: address.to_owned() },
            None => Worker { index: place, address: word.into_owned() },
        }
    };
    (0..).zip(words(&bytes)).map(worker).collect()
}

/// Writes down where the command of a job may live, before it does.
pub fn record_workers(effects: &Effects, id: &JobId, workers: &[Worker]) -> Result<(), RunError> {
    let mut bytes = Vec::new();
    for worker in workers {
        bytes.extend_from_slice(format!("{}{NUMBERED}{}", worker.index, worker.address).as_bytes());
        bytes.push(0);
    }
    write(effects, id, WORKERS, &bytes)
}

/// Nothing is left on the workers.
pub fn forget_workers(effects: &Effects, id: &JobId) {
    remove(effects, id, WORKERS);
}

fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = bytes.strip_suffix(b"\0");
    whole.into_iter().flat_map(|bytes| bytes.split(|byte| *byte == 0))
}

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}
