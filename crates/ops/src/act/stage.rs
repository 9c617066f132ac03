//! Native mode's copy of the code: what runs stays as it was, whatever happens to the directory.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tpu_core::model::data::User;
use tpu_core::model::execution::{Copying, Execution};
use tpu_core::model::ids::{JobId, JobNumber, LaunchToken};
use tpu_core::model::job::{Job, LaunchMode};
use tpu_core::model::spec::Staged;
use tpu_core::model::target::Machines;
use tpu_engine::runner::code_removal::is_without_code;
use tpu_engine::runner::files::{Files, ThisDisk};

use crate::base::code_dir::{self, whole_path};
use crate::base::code_files::{CodeAt, CodeFiles, Measure};
use crate::base::ctx::user_of;
use crate::base::launch_paths::{directory_name, roots, stage_dir};
use crate::base::named::resolve_target;
use crate::observe::log_files;
use crate::{Ctx, Error};

use super::copy_progress::CopyProgress;

/// Copies code as it is when a job is submitted. Under the name of a copy lies all of it or nothing; what was broken off is
/// found by `doctor`.
pub fn keep(
    ctx: &Ctx,
    user: &User,
    (dir, below): (&str, Option<&str>),
    (mode, execution): (LaunchMode, &Execution),
) -> Result<Staged, Error> {
    let (now, token) = (ctx.clock.now(), ctx.random.hex(16));
    // It waits under a number that is not known yet, and others may run from it as well.
    let name = directory_name(JobNumber(0), &LaunchToken::new(token), now);
    let copy = stage_dir(&roots(ctx, user)?, &user.name, &name);
    let (from, to) = (Path::new(dir), Path::new(&copy));
    let code = code_with(&at(&ctx.store.paths().state(), (from, execution), to), below, mode)?;
    if mode == LaunchMode::Script && !code.paths.contains(Path::new("staging.sh")) {
        let what = format!("staging.sh in {dir} is left out of copies of the code");
        return Err(Error::refused(what).hint(
            "take it out of .gitignore; `tpu submit --stage-late` reads the code when it begins",
        ));
    }
    let mut progress = CopyProgress::new(ctx, None, code.measure(from).bytes);
    let put = ThisDisk.put(from, &listed(code), to, &mut |bytes| progress.copied(bytes));
    put.map_err(|e| disk("copy the code to", &copy, &e))?;
    Ok(Staged { from: dir.to_owned(), copy })
}

/// How much of a directory would be copied for a command that is typed in it, or `below` it.
pub(crate) fn measure(
    ctx: &Ctx,
    user: &User,
    (dir, below): (&Path, Option<&str>),
    execution: &Execution,
) -> Result<Measure, Error> {
    let (state, copy) = (ctx.store.paths().state(), any_copy(ctx, user)?);
    let at = at(&state, (dir, execution), &copy);
    Ok(code_with(&at, below, LaunchMode::Native)?.measure(dir))
}

/// Where a copy for a user might lie.
fn any_copy(ctx: &Ctx, user: &User) -> Result<PathBuf, Error> {
    Ok(stage_dir(&roots(ctx, user)?, &user.name, "copy").into())
}

/// The files of its code, by path, that were changed since a job that runs without a copy first began. None of a home
/// directory, in which everything lies.
pub fn changed_in_place(ctx: &Ctx, job: &Job) -> Result<Vec<String>, Error> {
    let Some(dir) = job.workplace().map(|dir| whole_path(ctx, dir)) else { return Ok(Vec::new()) };
    let dir = dir.as_path();
    let data = ctx.data()?;
    let is_here = resolve_target(&data, job.tpu.as_str()).is_ok_and(|target| target.is_here());
    if !is_here || code_dir::holds_home(ctx, dir) {
        return Ok(Vec::new());
    }
    let mut first = job;
    while let Some(before) =
        first.father.and_then(|father| data.job(&JobId::new(job.user.clone(), father)))
    {
        first = before;
    }
    let Some(began) = first.launch.as_ref().map(|launch| launch.at.as_second()) else {
        return Ok(Vec::new());
    };
    let copy = any_copy(ctx, user_of(&data, &job.user)?)?;
    let (state, execution) =
        (ctx.store.paths().state(), job.execution().cloned().unwrap_or_default());
    let code = at(&state, (dir, &execution), &copy).files(LaunchMode::Native)?;
    let is_newer = |path: &&PathBuf| {
        let meta = std::fs::symlink_metadata(dir.join(path));
        meta.is_ok_and(|meta| !meta.is_dir() && meta.mtime() > began)
    };
    Ok(code.paths.iter().filter(is_newer).map(|path| path.to_string_lossy().into_owned()).collect())
}

/// Removes the copy of what never began. What cannot be removed is found by `doctor`.
pub fn discard(ctx: &Ctx, staged: &Staged) {
    drop(ctx.store.disk().remove_tree(Path::new(&staged.copy)));
}

/// The same, if nothing waits for it or has begun from it: it may be the wait for a job that was cut off.
pub fn discard_unless_used(ctx: &Ctx, staged: &Staged) {
    let Ok(data) = ctx.data() else { return };
    let is_it = |of: Option<&Staged>| of.is_some_and(|of| of.copy == staged.copy);
    let waits = data.queues().entries.iter().any(|entry| is_it(entry.spec.staged.as_ref()));
    if !waits && !data.jobs().any(|job| is_it(job.staged())) {
        discard(ctx, staged);
    }
}

/// Whether the copy that was made when a job was submitted is still there.
pub fn is_kept(staged: &Staged) -> Result<(), Error> {
    let copy = &staged.copy;
    match ThisDisk.is_dir(Path::new(copy)) {
        Ok(true) if !is_without_code(Path::new(copy)) => Ok(()),
        Ok(_) => Err(Error::not_found(format!("the copy of its code is gone: {copy}"))
            .hint("submit it again; nothing else has its code as it was")),
        Err(e) => Err(disk("see the copy of its code", copy, &e)),
    }
}

/// Makes the log directory and, unless a resume brought its own, the stage directory of a job: on the disk that
/// it will see. Under its name there is a whole copy or none: a resume runs whatever it finds there. Of several jobs
/// that share a copy it is made once.
pub fn prepare(ctx: &Ctx, files: &dyn Files, jobs: &[&Job]) -> Result<(), Error> {
    let mut logs = Vec::new();
    let mut stages: Vec<(&Job, &str)> = Vec::new();
    for job in jobs {
        let (log, stage) = match (&job.log_dir, &job.stage_dir) {
            (Some(log), Some(stage)) => (log, Some(stage)),
            (Some(log), None) if job.workplace().is_some() => (log, None),
            _ => {
                return Err(Error::state(format!(
                    "{} has no log or stage directory in its record",
                    job.id()
                ))
                .hint("start it again: tpu rerun"));
            }
        };
        logs.push(PathBuf::from(log));
        if let Some(stage) =
            stage.filter(|stage| stages.last().is_none_or(|(_, last)| last != stage))
        {
            stages.push((job, stage));
        }
    }
    let first = jobs.first().and_then(|job| job.log_dir.as_deref()).unwrap_or_default();
    files.make_dirs(&logs).map_err(|e| disk("create the log directory", first, &e))?;
    stages.into_iter().try_for_each(|(job, stage)| lay(ctx, files, job, stage))?;
    log_files::keep(ctx, jobs);
    Ok(())
}

/// Makes the copy of the code that the members of a group have together, of which this is the first.
pub(crate) fn share(ctx: &Ctx, files: &dyn Files, first: &Job) -> Result<(), Error> {
    first.stage_dir.as_deref().map_or(Ok(()), |copy| lay(ctx, files, first, copy))
}

/// Copies the code of a job, unless its copy is there: a resume or the queue has brought it, or it has one with others. And
/// lets it find what lies beside the code.
fn lay(ctx: &Ctx, files: &dyn Files, job: &Job, stage: &str) -> Result<(), Error> {
    let to = Path::new(stage);
    let is_there = files.is_dir(to).map_err(|e| disk("see the stage directory", stage, &e))?;
    let staged = job.staged();
    if job.father.is_some() && is_there {
        // It was planned before somebody began to remove the code.
        if is_without_code(to) {
            let what = format!("the code of {} is removed from its copy: {stage}", job.id());
            return Err(Error::not_found(what).hint("start it from scratch: tpu rerun"));
        }
        return Ok(());
    }
    if !is_there {
        let (from, code) = match staged {
            Some(staged) => {
                let copy = Path::new(&staged.copy);
                let origin = Path::new(&staged.from);
                // Of a clone the history belongs to it, which no list has.
                let code = if staged.is_clone() { CodeFiles::whole } else { CodeFiles::submitted };
                (copy, code(copy)?.without_links_to(origin, copy))
            }
            None => (Path::new(&job.job_dir), code_of(ctx, job, to)?),
        };
        let mut progress = CopyProgress::new(ctx, Some(job), code.measure(from).bytes);
        let put = files.put(from, &listed(code), to, &mut |bytes| progress.copied(bytes));
        put.map_err(|e| disk("copy the code to", stage, &e))?;
    }
    if shares_disk(ctx, files, job)? {
        link_beside(ctx, job, stage);
    }
    Ok(())
}

/// Lets the copy of a job find what lies beside its code, where what runs it sees this disk: by links. The job begins
/// without them where the directory is gone by now.
pub(crate) fn link_beside(ctx: &Ctx, job: &Job, stage: &str) {
    if job.staged().is_some_and(Staged::is_clone) {
        return;
    }
    let to = Path::new(stage);
    let execution = job.execution().cloned().unwrap_or_default();
    let state = ctx.store.paths().state();
    let origin = at(&state, (Path::new(origin_of(job)), &execution), to);
    let unlinked = |e: io::Error| disk("link what lies beside the code into", stage, &e);
    let linked = || {
        // First: an empty directory would be made in their place.
        origin.link_outputs(to).map_err(unlinked)?;
        if execution.copying == Copying::KnownWithLinks {
            origin.link_rest(&code_of(ctx, job, to)?, to).map_err(unlinked)?;
        }
        Ok(())
    };
    ctx.warn(linked().err().map(|error: Error| error.message));
}

/// What is code in the directory of a job, for a copy of it.
fn code_of(ctx: &Ctx, job: &Job, to: &Path) -> Result<CodeFiles, Error> {
    let execution = job.execution().cloned().unwrap_or_default();
    let state = ctx.store.paths().state();
    let origin = at(&state, (Path::new(origin_of(job)), &execution), to);
    let below = job.spec.as_ref().and_then(|spec| spec.below.as_deref());
    code_with(&origin, below, LaunchMode::Native)
}

/// The directory of which a job has a copy.
fn origin_of(job: &Job) -> &str {
    job.staged().map_or(&job.job_dir, |staged| &staged.from)
}

/// Which other job is at work that writes into one of the same outputs, in words.
pub(crate) fn shares_outputs(ctx: &Ctx, job: &Job) -> Result<Option<String>, Error> {
    let outputs = |job: &Job| job.execution().map(|of| of.outputs.clone()).unwrap_or_default();
    let own = outputs(job);
    if own.is_empty() {
        return Ok(None);
    }
    let data = ctx.data()?;
    let shared = |other: &Job| {
        let is_beside = other.status.is_live()
            && other.id() != job.id()
            && other.stage_dir.is_some()
            && origin_of(other) == origin_of(job);
        outputs(other).into_iter().filter(|_| is_beside).find(|output| own.contains(output))
    };
    let found = data.jobs().find_map(|other| Some((other.id(), shared(other)?)));
    Ok(found.map(|(other, output)| {
        let dir = code_dir::shown(ctx, &format!("{}/{output}", origin_of(job)));
        format!("{other} writes into {dir} as well")
    }))
}

/// Whether a job runs on this machine, or by an engine whose machines have the disk of this one. All others get the copy
/// from here.
fn shares_disk(ctx: &Ctx, files: &dyn Files, job: &Job) -> Result<bool, Error> {
    let data = ctx.data()?;
    let Ok(target) = resolve_target(&data, job.tpu.as_str()) else { return Ok(false) };
    let has_engine = target.machines == Machines::Engine;
    Ok(target.is_here() || has_engine && files.is_seen_from_here())
}

fn at<'a>(
    state: &'a Path,
    (from, execution): (&'a Path, &'a Execution),
    to: &'a Path,
) -> CodeAt<'a> {
    let asks_git = execution.copying != Copying::Unignored;
    let copies = to.parent().unwrap_or(to);
    CodeAt { from, state, copies, asks_git, outputs: &execution.outputs }
}

fn listed(code: CodeFiles) -> Vec<PathBuf> {
    code.paths.into_iter().collect()
}

/// The code below a directory, and what is in the one below it in which somebody stood, also where that is ignored.
fn code_with(
    at: &CodeAt<'_>,
    stood_in: Option<&str>,
    mode: LaunchMode,
) -> Result<CodeFiles, Error> {
    let mut all = at.files(mode)?;
    let Some(stood_in) = stood_in.map(Path::new).filter(|dir| !all.paths.contains(*dir)) else {
        return Ok(all);
    };
    let dirs = stood_in.ancestors().take_while(|dir| !dir.as_os_str().is_empty());
    all.paths.extend(dirs.map(Path::to_owned));
    let inside = CodeAt { from: &at.from.join(stood_in), ..*at }.files(mode)?;
    all.paths.extend(inside.paths.iter().map(|path| stood_in.join(path)));
    Ok(all)
}

fn disk(what: &str, path: &str, error: &io::Error) -> Error {
    Error::state(format!("cannot {what} {path}: {error}"))
        .hint("check free space and permissions there, then: tpu rerun")
}
