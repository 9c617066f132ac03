//! The environment of a run: what every runner tells it, and what is kept of it, beside its record, for its
//! successors.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use tpu_core::model::ids::JobId;
use tpu_core::model::job::Job;
use tpu_core::model::variables::{self, Secrets, SetBy, Variable, of_ours};
use tpu_system::effects::Effects;
use tpu_system::store::atomic;
use tpu_system::store::disk::Disk;

use super::{Attempt, RunError};

/// Variables, by their names.
pub type Variables = Vec<(OsString, OsString)>;

/// The file beside the record that holds the environment of a launch, each `NAME=VALUE` ending in NUL.
const FILE: &str = "env";
/// Those that hold the rest of an [`Environment`]: what was named, what a command has of its shell, and what a script has
/// of it beside its window's.
const GIVEN: &str = "given";
const SHELL: &str = "shell";
const EXPORTED: &str = "exported";

/// What is kept of the environment of whoever asked for a job, for it and its successors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// What every job keeps: where programs are, and what `tpu` reads.
    pub kept: Variables,
    /// What was handed on by its name (`--env`): it goes wherever the job runs.
    pub given: Secrets,
    /// What the shell exported in which it was typed. It is for this machine; none where it was typed in no shell.
    pub shell: Option<Shell>,
}

/// What a shell exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shell {
    /// Its variables.
    pub exported: Secrets,
    /// Whether the job has nothing beside it; else it has what its window has as well.
    pub is_all: bool,
}

impl Shell {
    /// The word by which a launcher knows it, which is the file that holds it.
    pub fn word(&self) -> &'static str {
        if self.is_all { SHELL } else { EXPORTED }
    }
}

/// What every run is told of itself, whatever runs it.
pub fn of_job(job: &Job) -> Variables {
    let mut vars = Variables::new();
    set(&mut vars, "TPU_JOB", job.id().to_string());
    set(&mut vars, "TPU_TARGET", job.tpu.as_str());
    // Empty where there is no checkpoint: what a program asks for is there.
    let launch = job.launch.as_ref();
    let from = launch.and_then(|launch| launch.from.clone());
    let (path, dir, step) =
        from.map_or((None, None, None), |from| (from.path, Some(from.dir), from.step));
    let attempt = launch.map_or(0, |launch| launch.attempt).to_string();
    set(&mut vars, "TPU_ATTEMPT", attempt);
    set(&mut vars, "TPU_CHECKPOINT", path.unwrap_or_default());
    set(&mut vars, "TPU_CHECKPOINT_DIR", dir.unwrap_or_default());
    set(&mut vars, "TPU_CHECKPOINT_STEP", step.map(|step| step.to_string()).unwrap_or_default());
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

/// What a command has that was typed in a shell: what that exported, under what its launcher has set for it (`now`, of which
/// the environment file has `of_launch`, and the secrets have `names`).
pub fn as_typed(
    now: impl IntoIterator<Item = (OsString, OsString)>,
    (of_launch, names): (&Variables, &[&str]),
    shell: &Shell,
) -> Variables {
    let stays = |name: &OsStr| {
        let is_own = |name: &str| {
            variables::is_of_window(name)
                || name == "PWD"
                || of_ours(name).is_some_and(|ours| ours.set_by == SetBy::Supervisor)
                || names.contains(&name)
        };
        of_launch.iter().any(|(known, _)| known == name) || name.to_str().is_some_and(is_own)
    };
    let mut vars: Variables =
        now.into_iter().filter(|(name, _)| !shell.is_all || stays(name)).collect();
    for (name, value) in shell.exported.0.iter().filter(|(name, _)| !stays(name)) {
        vars.retain(|(known, _)| known != name);
        vars.push((name.clone(), value.clone()));
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

/// Keeps the environment of a launch in that directory, for its owner's eyes alone: what its launcher sets, and the rest
/// of what it was asked for with.
pub fn keep(
    disk: &dyn Disk,
    dir: &Path,
    (vars, asked): (&Variables, &Environment),
) -> Result<(), RunError> {
    let write = |name: &str, vars: &Variables| {
        atomic::write_file(disk, &dir.join(name), &pairs(vars), 0o600)
    };
    if !asked.given.0.is_empty() {
        write(GIVEN, &asked.given.0)?;
    }
    if let Some(shell) = &asked.shell {
        write(shell.word(), &shell.exported.0)?;
    }
    // Last: where it is there, all of it is.
    Ok(write(FILE, vars)?)
}

/// Takes it away again: the job is over for good.
pub fn discard(disk: &dyn Disk, dir: &Path) {
    for name in [FILE, GIVEN, SHELL, EXPORTED] {
        drop(disk.remove(&dir.join(name)));
    }
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

/// What a directory holds; `None` if nothing.
pub fn read(disk: &dyn Disk, dir: &Path) -> io::Result<Option<Environment>> {
    let file = |name: &str| match disk.read(&dir.join(name)) {
        Ok(contents) => Ok(Some(from_pairs(&contents.bytes))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    };
    let Some(kept) = file(FILE)? else { return Ok(None) };
    let shell = match file(SHELL)? {
        Some(exported) => Some(Shell { exported: Secrets(exported), is_all: true }),
        None => file(EXPORTED)?.map(|all| Shell { exported: Secrets(all), is_all: false }),
    };
    Ok(Some(Environment { kept, given: Secrets(file(GIVEN)?.unwrap_or_default()), shell }))
}

/// Reads what [`pairs`] writes.
pub fn from_pairs(bytes: &[u8]) -> Variables {
    let pair = |pair: &[u8]| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = pair.split_at_checked(at)?;
        Some((OsString::from_vec(name.to_vec()), OsStr::from_bytes(value.get(1..)?).to_owned()))
    };
    bytes.split(|byte| *byte == 0).filter_map(pair).collect()
}

/// The environment that a launch was given. `None` if it is not there.
pub fn kept(effects: &Effects, id: &JobId) -> Option<Variables> {
    let path = effects.store.paths().job(id).join(FILE);
    Some(from_pairs(&effects.store.disk().read(&path).ok()?.bytes))
}

/// The environment that a launch was given, for its successors: without what is made anew for each. `None` if it
/// is not there.
pub fn for_successors(effects: &Effects, id: &JobId) -> io::Result<Option<Environment>> {
    let mut kept = read(&**effects.store.disk(), &effects.store.paths().job(id))?;
    let is_anew = |variable: &Variable| !variable.is_kept;
    if let Some(Environment { kept: vars, .. }) = &mut kept {
        vars.retain(|(name, _)| {
            !name.to_str().and_then(of_ours).is_some_and(is_anew)
                && variables::TRACKED_RUN.iter().all(|of_run| name != of_run)
        });
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(all: &[(&str, &str)]) -> Variables {
        all.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn a_command_has_its_shells_variables_and_nothing_of_the_windows_server() {
        let now = [("OLD", "1"), ("PATH", "/job:/bin"), ("TERM", "tmux"), ("TPU_LAUNCH", "t")];
        let now: Vec<_> =
            vars(&now).into_iter().chain(vars(&[("KEY", "k"), ("GPU", "0")])).collect();
        let of_launch = vars(&[("PATH", "/job:/bin"), ("GPU", "0")]);
        let exported = vars(&[("FOO", "1"), ("GPU", "7"), ("PATH", "/bin"), ("KEY", "other")]);
        let mut shell = Shell { exported: Secrets(exported), is_all: true };
        let seen = |shell: &Shell| {
            let mut seen = as_typed(now.clone(), (&of_launch, &["KEY"]), shell);
            seen.sort_unstable();
            seen
        };
        let own = [("FOO", "1"), ("GPU", "0"), ("KEY", "k"), ("PATH", "/job:/bin")];
        let all = vars(&own).into_iter().chain(vars(&[("TERM", "tmux"), ("TPU_LAUNCH", "t")]));
        assert_eq!(seen(&shell), all.collect::<Vec<_>>());
        shell.is_all = false;
        assert!(seen(&shell).contains(&("OLD".into(), "1".into())), "a script has both");
    }
}
