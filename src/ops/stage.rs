//! Native mode's copy of the code: what runs stays as it was, whatever happens to the directory.
//!
//! `.gitignore` is respected; version control, caches, `wandb` and images stay behind.

use std::fs;
use std::io;
use std::path::Path;

use ignore::WalkBuilder;
use ignore::overrides::OverrideBuilder;

use crate::model::job::Job;

use super::{Ctx, Error};

/// What is never copied, in gitignore's notation (`!` = leave out).
const LEFT_OUT: [&str; 10] = [
    "!.git/",
    "!.hg/",
    "!__pycache__/",
    "!*.pyc",
    "!.ipynb_checkpoints/",
    "!wandb/",
    "!*.png",
    "!*.jpg",
    "!*.jpeg",
    "!.venv/",
];

/// Makes the log directory and, unless a resume brought its own, the stage directory of a job.
pub fn prepare(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    let (Some(log), Some(stage)) = (&job.log_dir, &job.stage_dir) else {
        return Err(Error::state(format!(
            "{} has no log or stage directory in its record",
            job.id()
        ))
        .hint("start it again: tpu rerun"));
    };
    fs::create_dir_all(log).map_err(|e| disk("create the log directory", log, &e))?;
    let stage = Path::new(stage);
    if job.father.is_some() && stage.is_dir() {
        return Ok(());
    }
    // Under its name there is a whole copy or none: a resume runs whatever it finds there.
    let mut partial = stage.as_os_str().to_owned();
    partial.push(".partial");
    let partial = Path::new(&partial);
    copy_code(Path::new(&job.job_dir), partial, &ctx.store.paths().state())?;
    fs::rename(partial, stage)
        .map_err(|e| disk("name the stage directory", &stage.to_string_lossy(), &e))
}

/// Copies the code below `from` to `to`. `state` is our own directory and is never part of the code.
pub fn copy_code(from: &Path, to: &Path, state: &Path) -> Result<(), Error> {
    let failed = |what: &str, path: &Path, e: &io::Error| disk(what, &path.to_string_lossy(), e);
    let mut rules = OverrideBuilder::new(from);
    for rule in LEFT_OUT {
        rules.add(rule).expect("the patterns above are valid");
    }
    let rules = rules.build().expect("the patterns above are valid");
    let (state, target) = (state.to_owned(), to.to_owned());
    let walk = WalkBuilder::new(from)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .require_git(false)
        .overrides(rules)
        .filter_entry(move |entry| entry.path() != state && entry.path() != target)
        .build();
    fs::create_dir_all(to).map_err(|e| failed("create the stage directory", to, &e))?;
    for entry in walk {
        let entry = entry.map_err(|e| {
            Error::failed(format!("cannot copy the code: {e}"))
                .hint("check the rights in the directory of the code, then: tpu rerun")
        })?;
        let Ok(relative) = entry.path().strip_prefix(from) else { continue };
        if relative.as_os_str().is_empty() {
            continue;
        }
        let destination = to.join(relative);
        let kind = entry.file_type();
        if kind.is_some_and(|kind| kind.is_dir()) {
            fs::create_dir_all(&destination).map_err(|e| failed("create", &destination, &e))?;
        } else if kind.is_some_and(|kind| kind.is_symlink()) {
            let link = fs::read_link(entry.path()).map_err(|e| failed("read", entry.path(), &e))?;
            std::os::unix::fs::symlink(link, &destination)
                .map_err(|e| failed("create", &destination, &e))?;
        } else if kind.is_some_and(|kind| kind.is_file()) {
            fs::copy(entry.path(), &destination).map_err(|e| failed("copy", entry.path(), &e))?;
        }
    }
    Ok(())
}

fn disk(what: &str, path: &str, error: &io::Error) -> Error {
    Error::state(format!("cannot {what} {path}: {error}"))
        .hint("check the space and the rights there, then: tpu rerun")
}
