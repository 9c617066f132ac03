//! What lies beside the launcher script: words and environment, each ending in NUL, so that every byte
//! a word can hold arrives as it was. No shell text is put together anywhere.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::runner::environment::{Variables, fresh_directory, keep, of_job, pairs, set};
use crate::runner::{Attempt, RunError};
use tpu_core::model::execution::Execution;
use tpu_core::model::ids::JobId;
use tpu_core::model::job::{Job, Launch, LaunchMode};
use tpu_system::effects::Effects;
use tpu_system::store::atomic;

use super::beside;

/// The file in a job's directory that runs in its window.
pub const SCRIPT: &str = "launcher.sh";

/// The launcher, compiled in; each job gets its own copy, so that an upgrade changes no running job.
const LAUNCHER: &str = include_str!("../../../../../assets/launcher.sh");

/// Lies beside a launcher where limits are set on the time of its job.
pub const LIMITED: &str = "limited";

/// The variables that the launcher takes away when it reads them.
const SECRETS: &str = "secrets";

/// Writes the files of a launch and returns the path of its launcher script.
pub fn prepare(
    effects: &Effects,
    attempt: &Attempt<'_>,
    launch: &Launch,
) -> Result<String, RunError> {
    let (job, id) = (attempt.job, &attempt.job.id());
    let dir = fresh_directory(effects, id)?;
    // What attends to workers needs a directory of this machine, which is made before it begins.
    let here = attempt.workers_by.as_ref().and(job.workplace()).and(job.log_dir.as_deref());
    let workplace = here.map_or_else(|| workplace(job, launch), str::to_owned);
    let log = job.log_dir.as_ref().map(|dir| format!("{dir}/output.log")).unwrap_or_default();
    let link = dir.join("bin").join("tpu");
    link_program(effects, &link)?;

    let environment = environment(effects, attempt, launch, &link);
    let name = id.to_string();
    let mut spec: Vec<&OsStr> = vec![
        launch.token.as_str().as_ref(),
        name.as_ref(),
        launch.mode.as_str().as_ref(),
        workplace.as_ref(),
        log.as_ref(),
        link.as_os_str(),
    ];
    spec.push(if attempt.secrets.0.is_empty() { "" } else { SECRETS }.as_ref());
    // The process that attends to workers does not get the variables of the shell.
    if let Some(shell) = attempt.asked.shell.as_ref().filter(|_| attempt.workers_by.is_none()) {
        spec.push(shell.word().as_ref());
    }
    write(effects, &dir.join("spec"), &nul_ended(spec))?;
    let words = nul_ended(attempt.words.iter().map(OsString::as_os_str));
    let sets_up = job.execution().is_some_and(|execution| !execution.setup.is_empty());
    let step = match attempt.workers_by {
        // The window's own command is the one that attends to the workers.
        Some(_) => Some("workers"),
        None => sets_up.then_some("set-up"),
    };
    if let Some(step) = step {
        let token = launch.token.as_str();
        let attend = [link.as_os_str(), "launcher".as_ref(), step.as_ref(), token.as_ref()];
        write(effects, &dir.join("argv"), &nul_ended(attend))?;
        write(effects, &dir.join(beside::WORK), &words)?;
    } else {
        write(effects, &dir.join("argv"), &words)?;
    }
    if job.execution().is_some_and(Execution::is_limited) {
        write(effects, &dir.join(LIMITED), b"")?;
    }
    keep(&**effects.store.disk(), &dir, (&environment, &attempt.asked))?;
    if !attempt.secrets.0.is_empty() {
        write(effects, &dir.join(SECRETS), &pairs(&attempt.secrets.0))?;
    }
    let launcher = dir.join(SCRIPT);
    write(effects, &launcher, LAUNCHER.as_bytes())?;
    launcher.into_os_string().into_string().map_err(|path| {
        let path = Path::new(&path).display();
        RunError::state(
            format!("the state directory's path is no UTF-8: {path}"),
            "keep data.json in a directory with a plain name (--data FILE)",
        )
    })
}

/// The directory in which the command runs.
pub(super) fn workplace(job: &Job, launch: &Launch) -> String {
    match (launch.mode, &job.stage_dir) {
        (LaunchMode::Native, Some(stage)) => job.within(stage),
        _ => job.staged().map_or(&job.job_dir, |staged| &staged.copy).clone(),
    }
}

/// Takes away the secrets that lie ready for a launcher which nobody will start, or which has not come to them.
pub(super) fn discard_secrets(effects: &Effects, job: &Job) {
    if job.execution().is_none_or(|execution| execution.secrets.is_empty()) {
        return;
    }
    let id = job.id();
    let is_ours = |launch: &Launch| beside::is_of_launch(effects, &id, launch.token.as_str());
    if job.launch.as_ref().is_some_and(is_ours) {
        drop(effects.store.disk().remove(&effects.store.paths().job(&id).join(SECRETS)));
    }
}

/// Writes a file that only its owner may read.
fn write(effects: &Effects, path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    Ok(atomic::write_file(&**effects.store.disk(), path, bytes, 0o600)?)
}

/// Gives this program the name `tpu` in a directory of the job's own, to stand first in its PATH.
fn link_program(effects: &Effects, link: &Path) -> Result<(), RunError> {
    let dir = link.parent().unwrap_or(link);
    let disk = effects.store.disk();
    let made = disk.make_dir(dir, 0o755).and_then(|_| disk.symlink(&effects.tpu, link));
    made.map_err(|e| {
        RunError::state(
            format!("cannot create {}: {e}", link.display()),
            "check free space and permissions there, then: tpu rerun",
        )
    })
}

/// The launcher of a job that goes on, as this program knows it: it may be older than this program, or that be gone.
pub(super) fn renew(effects: &Effects, dir: &Path) -> Result<(), RunError> {
    link_anew(effects, &dir.join("bin").join("tpu"))?;
    write(effects, &dir.join(SCRIPT), LAUNCHER.as_bytes())
}

/// Whether the launcher of a job that runs is another program's; `None` where it has none.
pub fn is_of_another_program(effects: &Effects, id: &JobId) -> Option<bool> {
    let script = effects.store.paths().job(id).join(SCRIPT);
    let script = effects.store.disk().read(&script).ok()?;
    Some(script.bytes != LAUNCHER.as_bytes())
}

/// Whether the program is gone that the launcher of a job calls.
pub fn calls_nobody(effects: &Effects, id: &JobId) -> bool {
    let disk = effects.store.disk();
    disk.stat(&effects.store.paths().job(id).join(SCRIPT)).is_ok()
        && disk.stat(&link_of(effects, id)).is_err_and(|e| e.kind() == ErrorKind::NotFound)
}

/// Has the launcher of a job call this program from now on, and leaves the launcher itself as it is.
pub fn relink(effects: &Effects, id: &JobId) -> Result<(), RunError> {
    link_anew(effects, &link_of(effects, id))
}

/// Has a link lead to this program. At no moment is it missing that was there before.
fn link_anew(effects: &Effects, link: &Path) -> Result<(), RunError> {
    let (disk, new) = (effects.store.disk(), link.with_extension("new"));
    drop(disk.remove(&new));
    link_program(effects, &new)?;
    disk.rename(&new, link).map_err(|e| {
        drop(disk.remove(&new));
        RunError::state(
            format!("cannot replace {}: {e}", link.display()),
            "check free space and permissions there, then type the same again",
        )
    })
}

fn link_of(effects: &Effects, id: &JobId) -> PathBuf {
    effects.store.paths().job(id).join("bin").join("tpu")
}

/// What the job sees: the kept environment, and who it is.
pub(super) fn environment(
    effects: &Effects,
    attempt: &Attempt<'_>,
    launch: &Launch,
    link: &Path,
) -> Variables {
    let Attempt { job, env, workers_by, asked, .. } = attempt;
    let mut vars = env.clone();
    let bin = link.parent().unwrap_or(link).to_owned();
    let path = vars.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let mut search = bin.into_os_string();
    search.push(":");
    search.push(path.map_or_else(
        || OsString::from("/usr/local/bin:/usr/bin:/bin"),
        |path| without_jobs(&path, &effects.store.paths().state().join("jobs")),
    ));
    set(&mut vars, "PATH", search);
    for (name, value) in of_job(job) {
        set(&mut vars, &name.to_string_lossy(), value);
    }
    set(&mut vars, "TPU_DATA", effects.store.paths().data().as_os_str());
    set(&mut vars, "TPU_BIN", link.as_os_str());
    if let Some(socket) = &effects.tmux_socket {
        set(&mut vars, "TPU_TMUX_SOCKET", socket);
    }
    if let Some(cloud) = workers_by {
        // Whoever attends to the workers finds them by the control plane of this launch.
        set(&mut vars, "TPU_CLOUD", cloud);
    }
    if launch.mode == LaunchMode::Native {
        set(&mut vars, "TPU_WORKER", "0");
        // On workers, and in pipes of its own, its output goes into no terminal; Python would hold it back.
        let of_shell = asked.shell.as_ref().filter(|_| workers_by.is_none());
        let is_said = of_shell.is_some_and(|it| it.exported.get("PYTHONUNBUFFERED").is_some());
        if !is_said && !vars.iter().any(|(name, _)| name == "PYTHONUNBUFFERED") {
            set(&mut vars, "PYTHONUNBUFFERED", "1");
        }
    }
    vars
}

/// A search path without the directories of other jobs: the parent's, or that of the job inside which
/// this one is started. With them it would grow by one for each attempt.
fn without_jobs(path: &OsStr, jobs: &Path) -> OsString {
    let kept = path.as_bytes().split(|byte| *byte == b':');
    let kept: Vec<&[u8]> = kept.filter(|dir| !Path::new(&os(dir)).starts_with(jobs)).collect();
    os(&kept.join(&b':'))
}

fn nul_ended<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}
