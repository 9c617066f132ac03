//! The environment of a run: what every runner tells it, and what is kept of it, beside its record, for its
//! successors.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::variables::{self, Variable, of_ours};
use tpu_system::effects::Effects;
use tpu_system::store::atomic;

use super::{Attempt, RunError};

/// Variables, by their names.
pub type Variables = Vec<(OsString, OsString)>;

/// The file beside the record that holds the environment of a launch, each `NAME=VALUE` ending in NUL.
const FILE: &str = "env";

/// What every run is told of itself, whatever runs it.
pub fn of_job(job: &Job) -> Variables {
    let mut vars = Variables::new();
    set(&mut vars, "TPU_JOB", job.id().to_string());
    set(&mut vars, "TPU_TARGET", job.tpu.as_str());
    if let Some(member) = job.member() {
        set(&mut vars, "TPU_GROUP", member.group.to_string());
        set(&mut vars, "TPU_MEMBER", member.index.to_string());
    }
    if job.is_native() {
        for (name, dir) in [("TPU_LOG_DIR", &job.log_dir), ("TPU_STAGE_DIR", &job.stage_dir)] {
            if let Some(dir) = dir {
                set(&mut vars, name, dir);
            }
        }
    }
    vars
}

/// What an attempt sees where an engine runs it: the environment that was kept for it, and who it is. `is_here` says
/// whether the programs of this machine are there as well.
pub fn of_attempt(attempt: &Attempt<'_>, is_here: bool) -> Variables {
    let stays = |name: &OsStr| name.to_str().is_none_or(variables::stays_here);
    let mut vars = attempt.env.clone();
    vars.retain(|(name, _)| is_here && name != "TPU_TMUX_SOCKET" || !stays(name));
    // What is said of the job itself is meant where it runs.
    for (name, value) in attempt.job.variables() {
        set(&mut vars, name, value);
    }
    for (name, value) in of_job(attempt.job) {
        set(&mut vars, &name.to_string_lossy(), value);
    }
    // What it prints goes into a file: Python would hold it back.
    if !vars.iter().any(|(name, _)| name == "PYTHONUNBUFFERED") {
        set(&mut vars, "PYTHONUNBUFFERED", "1");
    }
    vars
}

/// Sets a variable, in place of one of its name.
pub fn set(vars: &mut Variables, name: &str, value: impl Into<OsString>) {
    let value = value.into();
    match vars.iter_mut().find(|(known, _)| known == name) {
        Some(pair) => pair.1 = value,
        None => vars.push((name.into(), value)),
    }
}

/// The directory beside the record of a launch, with nothing of an earlier job of that number in it.
pub fn fresh_directory(effects: &Effects, id: &JobId) -> Result<PathBuf, RunError> {
    let dir = effects.store.paths().job(id);
    match effects.store.disk().remove_tree(&dir) {
        Err(e) => Err(RunError::state(
            format!("cannot clear {}: {e}", dir.display()),
            "this account must be able to write there; move the directory away and try again",
        )),
        Ok(()) => Ok(effects.store.job_dir(id)?),
    }
}

/// Keeps the environment of a launch in that directory, for its owner's eyes alone.
pub fn keep(effects: &Effects, dir: &Path, vars: &Variables) -> Result<(), RunError> {
    Ok(atomic::write_file(&**effects.store.disk(), &dir.join(FILE), &pairs(vars), 0o600)?)
}

/// Each as `NAME=VALUE`, ending in NUL.
pub fn pairs(vars: &Variables) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in vars {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// The environment that a launch was given. `None` if it is not there.
pub fn kept(effects: &Effects, id: &JobId) -> Option<Variables> {
    let path = effects.store.paths().job(id).join(FILE);
    let bytes = effects.store.disk().read(&path).ok()?.bytes;
    let pair = |pair: &[u8]| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = pair.split_at_checked(at)?;
        Some((OsString::from_vec(name.to_vec()), OsStr::from_bytes(value.get(1..)?).to_owned()))
    };
    Some(bytes.split(|byte| *byte == 0).filter_map(pair).collect())
}

/// The environment that a launch was given, for its successors: without what is made anew for each. `None` if it
/// is not there.
pub fn for_successors(effects: &Effects, id: &JobId) -> Option<Variables> {
    let mut vars = kept(effects, id)?;
    let is_anew = |variable: &Variable| !variable.is_kept;
    vars.retain(|(name, _)| !name.to_str().and_then(of_ours).is_some_and(is_anew));
    Some(vars)
}
