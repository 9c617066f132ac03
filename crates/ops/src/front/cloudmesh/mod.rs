//! For those who come from Cloudmesh: their hosts, clusters and policies are taken over, their jobset is remembered, and
//! a new one is written. Their files are read and never changed.

use std::path::{Path, PathBuf};

use crate::{Ctx, Error};
use tpu_jobfile::cloudmesh::{self, CloudmeshFile, ImportedJob};
use tpu_jobfile::{BadFile, yaml};

pub mod again;
pub mod changes;
pub mod cluster;
pub mod import;
pub mod jobset;
pub mod list;
pub mod queues;
pub mod ready;
pub mod template;
pub mod translate;

/// The place of a file as it was typed: `~/` is the home directory, for shells leave it as it is between quotes.
pub fn place(ctx: &Ctx, typed: &str) -> Result<PathBuf, Error> {
    if typed.is_empty() || typed.chars().any(char::is_control) {
        return Err(Error::usage(format!("'{typed}' is no file"))
            .hint("as in: tpu cms job set ~/.cloudmesh/job/spec.yaml"));
    }
    match (typed.strip_prefix("~/"), ctx.env.non_empty("HOME")) {
        (Some(below), Some(home)) => Ok(Path::new(home).join(below)),
        _ => Ok(ctx.env.cwd.join(typed)),
    }
}

/// Reads a file of Cloudmesh.
pub fn read(ctx: &Ctx, path: &Path) -> Result<CloudmeshFile, Error> {
    read_by(ctx, path, cloudmesh::read)
}

/// Reads the jobs of a file that may have nothing else.
pub fn read_jobs(ctx: &Ctx, path: &Path) -> Result<Vec<ImportedJob>, Error> {
    read_by(ctx, path, cloudmesh::read_jobs)
}

fn read_by<T>(
    ctx: &Ctx,
    path: &Path,
    read: impl FnOnce(&str, &str) -> Result<T, BadFile>,
) -> Result<T, Error> {
    let shown = path.display();
    // A file that never ends is not read to its end.
    let bytes = ctx.store.disk().read_at(path, 0, yaml::LARGEST + 1).map_err(|e| {
        let what = format!("cannot read {shown}: {e}");
        let error = if e.kind() == std::io::ErrorKind::NotFound {
            Error::not_found(what)
        } else {
            Error::state(what)
        };
        error.hint("name a jobset, a NAME-queue.yaml or a NAME-cluster.yaml")
    })?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let before = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        Error::usage(format!("{shown}:{line}: it is no text in UTF-8"))
            .hint("save it as UTF-8; a file is read whole or not at all")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    read(&name, text)
        .map_err(|bad| Error::usage(format!("{shown}{}", bad.in_words())).hint(bad.hint))
}
