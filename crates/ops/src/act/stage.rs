//! Native mode's copy of the code: what runs stays as it was, whatever happens to the directory.
//!
//! `.gitignore` is respected; version control, caches, `wandb` and images stay behind.

use std::io;
use std::path::{Path, PathBuf};

use ignore::overrides::OverrideBuilder;
use ignore::{Walk, WalkBuilder};

use tpu_core::model::data::User;
use tpu_core::model::ids::{JobNumber, LaunchToken};
use tpu_core::model::job::{Job, LaunchMode};
use tpu_core::model::spec::Staged;
use tpu_engine::runner::files::{Files, ThisDisk};

use crate::base::launch_paths::{directory_name, roots, stage_dir};
use crate::observe::log_files;
use crate::{Ctx, Error};

/// What is never copied, in gitignore's notation (`!` = leave out).
const LEFT_OUT: [&str; 8] = [
    "!__pycache__/",
    "!*.pyc",
    "!.ipynb_checkpoints/",
    "!wandb/",
    "!*.png",
    "!*.jpg",
    "!*.jpeg",
    "!.venv/",
];
/// Neither are these, except for a script, which may ask them what it stages.
const HISTORY: [&str; 2] = ["!.git/", "!.hg/"];

/// Copies code as it is when a job is submitted. Under the name of a copy lies all of it or nothing; what was broken off is
/// found by `doctor`.
pub fn keep(
    ctx: &Ctx,
    user: &User,
    (dir, below): (&str, Option<&str>),
    mode: LaunchMode,
) -> Result<Staged, Error> {
    let (now, token) = (ctx.clock.now(), ctx.random.hex(16));
    // It waits under a number that is not known yet, and others may run from it as well.
    let name = directory_name(JobNumber(0), &LaunchToken::new(token), now);
    let copy = stage_dir(&roots(ctx, user)?, &user.name, &name);
    let (from, to) = (Path::new(dir), Path::new(&copy));
    let code = code_with(from, below, (&ctx.store.paths().state(), to), mode)?;
    if mode == LaunchMode::Script && !code.iter().any(|path| path == Path::new("staging.sh")) {
        let what = format!("staging.sh in {dir} is left out of copies of the code");
        return Err(Error::refused(what).hint(
            "take it out of .gitignore; `tpu submit --stage-late` reads the code when it begins",
        ));
    }
    ThisDisk.put(from, &code, to).map_err(|e| disk("copy the code to", &copy, &e))?;
    Ok(Staged { from: dir.to_owned(), copy })
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

/// Copies the code of a job, unless a resume or the queue brought its own copy.
fn lay(ctx: &Ctx, files: &dyn Files, job: &Job, stage: &str) -> Result<(), Error> {
    let to = Path::new(stage);
    let is_there = || files.is_dir(to).map_err(|e| disk("see the stage directory", stage, &e));
    let is_brought =
        job.father.is_some() || job.staged().is_some_and(|staged| staged.copy == stage);
    if is_brought && is_there()? {
        return Ok(());
    }
    let from = Path::new(job.staged().map_or(&job.job_dir, |staged| &staged.copy));
    let code = match job.staged() {
        Some(staged) if staged.is_clone() => whole(from)?,
        _ => {
            let below = job.spec.as_ref().and_then(|spec| spec.below.as_deref());
            let ours = (&*ctx.store.paths().state(), to);
            code_with(from, below, ours, LaunchMode::Native)?
        }
    };
    files.put(from, &code, to).map_err(|e| disk("copy the code to", stage, &e))
}

/// The code below a directory, and what is in the one below it in which somebody stood, also where that is ignored.
fn code_with(
    from: &Path,
    stood_in: Option<&str>,
    ours: (&Path, &Path),
    mode: LaunchMode,
) -> Result<Vec<PathBuf>, Error> {
    let mut all = code(from, ours, mode)?;
    let Some(stood_in) = stood_in.map(Path::new).filter(|dir| all.iter().all(|path| path != dir))
    else {
        return Ok(all);
    };
    let mut dirs: Vec<&Path> =
        stood_in.ancestors().take_while(|dir| !dir.as_os_str().is_empty()).collect();
    dirs.reverse();
    for dir in dirs {
        if all.iter().all(|path| path != dir) {
            all.push(dir.to_owned());
        }
    }
    let inside = code(&from.join(stood_in), ours, mode)?;
    all.extend(inside.iter().map(|path| stood_in.join(path)));
    Ok(all)
}

/// The code below a directory: relative paths, directories before what is in them. `state` is our own directory
/// and, like the place of this user's copies, never part of the code.
fn code(
    from: &Path,
    (state, copy): (&Path, &Path),
    mode: LaunchMode,
) -> Result<Vec<PathBuf>, Error> {
    let mut rules = OverrideBuilder::new(from);
    let history = HISTORY.iter().filter(|_| mode == LaunchMode::Native);
    for rule in LEFT_OUT.iter().chain(history) {
        rules.add(rule).expect("the patterns above are valid");
    }
    let rules = rules.build().expect("the patterns above are valid");
    let ours = [state.to_owned(), copy.parent().unwrap_or(copy).to_owned()];
    let walk = WalkBuilder::new(from)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .overrides(rules)
        .filter_entry(move |entry| !ours.iter().any(|ours| entry.path() == ours))
        .build();
    below(from, walk)
}

/// All that lies below a directory, whatever it is.
fn whole(from: &Path) -> Result<Vec<PathBuf>, Error> {
    below(from, WalkBuilder::new(from).standard_filters(false).build())
}

fn below(from: &Path, walk: Walk) -> Result<Vec<PathBuf>, Error> {
    let mut code = Vec::new();
    for entry in walk {
        let entry = entry.map_err(|e| {
            Error::failed(format!("cannot copy the code: {e}"))
                .hint("check the rights in the directory of the code, then: tpu rerun")
        })?;
        let relative = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
        if !relative.as_os_str().is_empty() {
            code.push(relative.to_owned());
        }
    }
    Ok(code)
}

fn disk(what: &str, path: &str, error: &io::Error) -> Error {
    Error::state(format!("cannot {what} {path}: {error}"))
        .hint("check the space and the rights there, then: tpu rerun")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_our_own_state_are_no_code() {
        let dir = tempfile::tempdir().unwrap();
        let below = |path: &str| dir.path().join(path);
        for path in ["state/jobs", "stages/alice/6", "stages/alice/7.partial", "own/deep"] {
            std::fs::create_dir_all(below(path)).unwrap();
        }
        let ours = (&*below("state"), &*below("stages/alice/8"));
        let found = code(dir.path(), ours, LaunchMode::Native).unwrap();
        let mut found: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
        found.sort_unstable();
        assert_eq!(found, ["own", "own/deep", "stages"]);
    }
}
