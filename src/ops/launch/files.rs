//! What lies beside the launcher script: words and environment, each ending in NUL, so that every byte
//! a word can hold arrives as it was. No shell text is put together anywhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::model::ids::{JobId, LaunchToken};
use crate::model::job::LaunchMode;
use crate::ops::{Ctx, Error, records, workers};
use crate::store::atomic;

use super::check::kept_environment;
use super::plan::LaunchPlan;

/// The launcher, compiled in; each job gets its own copy, so that an upgrade changes no running job.
const LAUNCHER: &str = include_str!("../../../assets/launcher.sh");

/// Writes the files of a launch and returns the path of its launcher script.
pub fn prepare(
    ctx: &Ctx,
    plan: &LaunchPlan,
    id: &JobId,
    token: &LaunchToken,
) -> Result<String, Error> {
    let dir = fresh_directory(ctx, id)?;
    let data = ctx.data()?;
    let job = crate::ops::ctx::job_of(&data, id)?;
    let workplace = match (plan.mode, &job.stage_dir) {
        (LaunchMode::Native, Some(stage)) => stage.clone(),
        _ => plan.dir.clone(),
    };
    let log = job.log_dir.as_ref().map(|dir| format!("{dir}/output.log")).unwrap_or_default();
    let link = dir.join("bin").join("tpu");
    link_program(ctx, &link)?;

    let environment = environment(ctx, plan, id, &link, job);
    let name = id.to_string();
    let spec: [&OsStr; 6] = [
        token.as_str().as_ref(),
        name.as_ref(),
        plan.mode.as_str().as_ref(),
        workplace.as_ref(),
        log.as_ref(),
        link.as_os_str(),
    ];
    write(ctx, &dir.join("spec"), &nul_ended(spec))?;
    let words = plan.words();
    let words = nul_ended(words.iter().map(OsString::as_os_str));
    if plan.is_remote() {
        // The window's own command is the one that attends to the workers.
        let attend =
            [link.as_os_str(), "launcher".as_ref(), "workers".as_ref(), token.as_str().as_ref()];
        write(ctx, &dir.join("argv"), &nul_ended(attend))?;
        write(ctx, &dir.join(workers::WORK), &words)?;
    } else {
        write(ctx, &dir.join("argv"), &words)?;
    }
    write(ctx, &dir.join("env"), &pairs(&environment))?;
    let launcher = dir.join("launcher.sh");
    write(ctx, &launcher, LAUNCHER.as_bytes())?;
    launcher.into_os_string().into_string().map_err(|path| {
        Error::state(format!(
            "the state directory's path is no UTF-8: {}",
            Path::new(&path).display()
        ))
        .hint("keep data.json in a directory with a plain name (--data FILE)")
    })
}

/// The job's own directory, with nothing of an earlier job of that number in it.
fn fresh_directory(ctx: &Ctx, id: &JobId) -> Result<PathBuf, Error> {
    let dir = ctx.store.paths().job(id);
    match ctx.store.disk().remove_tree(&dir) {
        Err(e) => Err(Error::state(format!("cannot clear {}: {e}", dir.display())).hint(
            "this account must be able to write there; move the directory away and try again",
        )),
        Ok(()) => Ok(ctx.store.job_dir(id)?),
    }
}

/// Writes a file that only its owner may read.
fn write(ctx: &Ctx, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Ok(atomic::write_file(&**ctx.store.disk(), path, bytes, 0o600)?)
}

/// Gives this program the name `tpu` in a directory of the job's own, to stand first in its PATH.
fn link_program(ctx: &Ctx, link: &Path) -> Result<(), Error> {
    let dir = link.parent().unwrap_or(link);
    let disk = ctx.store.disk();
    let made = disk.make_dir(dir, 0o755).and_then(|_| disk.symlink(&ctx.tpu, link));
    made.map_err(|e| {
        Error::state(format!("cannot create {}: {e}", link.display()))
            .hint("check the space and the rights there, then: tpu rerun")
    })
}

/// Reads the environment that a launch was given, for its successors. `None` if it is not there.
pub fn read_environment(ctx: &Ctx, id: &JobId) -> Option<Vec<(OsString, OsString)>> {
    let bytes = records::launcher_file(ctx, id, "env")?;
    let pairs = bytes.split(|byte| *byte == 0).filter(|pair| !pair.is_empty());
    Some(
        pairs
            .filter_map(|pair| {
                let at = pair.iter().position(|byte| *byte == b'=')?;
                let (name, value) = pair.split_at(at);
                Some((os(name), os(value.get(1..)?)))
            })
            .filter(|(name, _)| !is_ours(name))
            .collect(),
    )
}

/// What the job sees: the kept environment, and who it is.
fn environment(
    ctx: &Ctx,
    plan: &LaunchPlan,
    id: &JobId,
    link: &Path,
    job: &crate::model::job::Job,
) -> Vec<(OsString, OsString)> {
    let mut vars = plan.env.clone().unwrap_or_else(|| kept_environment(ctx));
    let bin = link.parent().unwrap_or(link).to_owned();
    let path = vars.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let mut search = bin.into_os_string();
    search.push(":");
    search.push(path.map_or_else(
        || OsString::from("/usr/local/bin:/usr/bin:/bin"),
        |path| without_jobs(&path, &ctx.store.paths().state().join("jobs")),
    ));
    set(&mut vars, "PATH", search);
    set(&mut vars, "TPU_JOB", id.to_string().into());
    set(&mut vars, "TPU_DATA", ctx.store.paths().data().as_os_str().to_owned());
    set(&mut vars, "TPU_BIN", link.as_os_str().to_owned());
    set(&mut vars, "TPU_TARGET", plan.target.name.as_str().into());
    if let Some(socket) = &ctx.tmux_socket {
        set(&mut vars, "TPU_TMUX_SOCKET", socket.into());
    }
    if plan.is_remote() {
        // Whoever attends to the workers finds them by the control plane of this launch.
        set(&mut vars, "TPU_CLOUD", ctx.places().usual().name.as_str().into());
    }
    if plan.mode == LaunchMode::Native {
        set(&mut vars, "TPU_WORKER", "0".into());
        // On workers, and in pipes of its own, its output goes into no terminal; Python would hold it back.
        if !vars.iter().any(|(name, _)| name == "PYTHONUNBUFFERED") {
            set(&mut vars, "PYTHONUNBUFFERED", "1".into());
        }
        if let Some(dir) = &job.log_dir {
            set(&mut vars, "TPU_LOG_DIR", dir.into());
        }
        if let Some(dir) = &job.stage_dir {
            set(&mut vars, "TPU_STAGE_DIR", dir.into());
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

/// Variables that name this very job and are made anew for each.
fn is_ours(name: &OsStr) -> bool {
    ["TPU_JOB", "TPU_DATA", "TPU_BIN", "TPU_TARGET", "TPU_LOG_DIR", "TPU_STAGE_DIR", "TPU_WORKER"]
        .iter()
        .any(|ours| name == *ours)
}

fn set(vars: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    match vars.iter_mut().find(|(known, _)| known == name) {
        Some(pair) => pair.1 = value,
        None => vars.push((name.into(), value)),
    }
}

fn nul_ended<'a>(words: impl IntoIterator<Item = &'a OsStr>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn pairs(vars: &[(OsString, OsString)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in vars {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}
