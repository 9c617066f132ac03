//! Native mode's copy of the code: what runs stays as it was, whatever happens to the directory.

use std::io;
use std::path::{Path, PathBuf};

use tpu_core::model::data::User;
use tpu_core::model::ids::{JobNumber, LaunchToken};
use tpu_core::model::job::{Job, LaunchMode};
use tpu_core::model::spec::Staged;
use tpu_core::model::target::Machines;
use tpu_engine::runner::files::{Files, ThisDisk};

use crate::base::code_files::{CodeAt, CodeFiles, Measure};
use crate::base::launch_paths::{directory_name, roots, stage_dir};
use crate::base::named::resolve_target;
use crate::observe::log_files;
use crate::{Ctx, Error};

/// Copies code as it is when a job is submitted. Under the name of a copy lies all of it or nothing; what was broken off is
/// found by `doctor`.
pub fn keep(
    ctx: &Ctx,
    user: &User,
    (dir, below): (&str, Option<&str>),
    (mode, is_typed): (LaunchMode, bool),
) -> Result<Staged, Error> {
    let (now, token) = (ctx.clock.now(), ctx.random.hex(16));
    // It waits under a number that is not known yet, and others may run from it as well.
    let name = directory_name(JobNumber(0), &LaunchToken::new(token), now);
    let copy = stage_dir(&roots(ctx, user)?, &user.name, &name);
    let (from, to) = (Path::new(dir), Path::new(&copy));
    let code = code_with(&at(&ctx.store.paths().state(), (from, is_typed), to), below, mode)?;
    if mode == LaunchMode::Script && !code.paths.contains(Path::new("staging.sh")) {
        let what = format!("staging.sh in {dir} is left out of copies of the code");
        return Err(Error::refused(what).hint(
            "take it out of .gitignore; `tpu submit --stage-late` reads the code when it begins",
        ));
    }
    ThisDisk.put(from, &listed(code), to).map_err(|e| disk("copy the code to", &copy, &e))?;
    Ok(Staged { from: dir.to_owned(), copy })
}

/// How much of a directory would be copied for a command that is typed in it, or `below` it.
pub(crate) fn measure(
    ctx: &Ctx,
    user: &User,
    (dir, below): (&Path, Option<&str>),
) -> Result<Measure, Error> {
    let copies = PathBuf::from(roots(ctx, user)?.stage);
    let state = ctx.store.paths().state();
    let at = CodeAt { from: dir, state: &state, copies: &copies, is_typed: true };
    Ok(code_with(&at, below, LaunchMode::Native)?.measure(dir))
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
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::not_found(format!("the copy of its code is gone: {copy}"))
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

/// Copies the code of a job, unless a resume or the queue brought its own copy; and lets it find what lies beside the code.
fn lay(ctx: &Ctx, files: &dyn Files, job: &Job, stage: &str) -> Result<(), Error> {
    let to = Path::new(stage);
    let is_there = || files.is_dir(to).map_err(|e| disk("see the stage directory", stage, &e));
    let staged = job.staged();
    let is_its_own = staged.is_some_and(|staged| staged.copy == stage);
    if job.father.is_some() && is_there()? {
        return Ok(());
    }
    let is_typed = job.spec.as_ref().is_some_and(|spec| spec.links_ignored);
    let state = ctx.store.paths().state();
    let below = job.spec.as_ref().and_then(|spec| spec.below.as_deref());
    let origin = Path::new(staged.map_or(&job.job_dir, |staged| &staged.from));
    let origin = at(&state, (origin, is_typed), to);
    let code_there = || code_with(&origin, below, LaunchMode::Native);
    let mut known = None;
    if !(is_its_own && is_there()?) {
        let (from, code) = match staged {
            Some(staged) => {
                let copy = Path::new(&staged.copy);
                (copy, CodeFiles::whole(copy)?.without_links_to(origin.from, copy))
            }
            None => (origin.from, known.insert(code_there()?).clone()),
        };
        let put = files.put(from, &listed(code), to);
        put.map_err(|e| disk("copy the code to", stage, &e))?;
    }
    if is_typed && !staged.is_some_and(Staged::is_clone) && shares_disk(ctx, files, job)? {
        // It begins without them where the directory is gone by now.
        let linked = known.map_or_else(code_there, Ok).and_then(|code| {
            let linked = origin.link_rest(&code, to);
            linked.map_err(|e| disk("link what lies beside the code into", stage, &e))
        });
        ctx.warn(linked.err().map(|error| error.message));
    }
    Ok(())
}

/// Whether a job runs on this machine, or by an engine whose machines have the disk of this one. All others get the copy
/// from here.
fn shares_disk(ctx: &Ctx, files: &dyn Files, job: &Job) -> Result<bool, Error> {
    let data = ctx.data()?;
    let Ok(target) = resolve_target(&data, job.tpu.as_str()) else { return Ok(false) };
    let has_engine = target.machines == Machines::Engine;
    Ok(target.is_here() || has_engine && files.is_seen_from_here())
}

fn at<'a>(state: &'a Path, (from, is_typed): (&'a Path, bool), to: &'a Path) -> CodeAt<'a> {
    CodeAt { from, state, copies: to.parent().unwrap_or(to), is_typed }
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
        .hint("check the space and the rights there, then: tpu rerun")
}
