//! Writes a jobset to begin with, in Cloudmesh's own format, and never over another file.

use std::io::ErrorKind;
use std::path::Path;

use crate::base::disk::make_dirs;
use crate::base::named::values_for;
use crate::{Ctx, Error};
use tpu_core::text::is_unsafe;
use tpu_jobfile::cloudmesh::template::{self, Template, TemplateJob};
use tpu_jobfile::cloudmesh::{self, ImportedJob};
use tpu_system::store::atomic;

/// Mode of the file: it is its owner's to share.
const MODE: u32 = 0o644;

/// The values of an option for so many jobs: one is each job's, as many as jobs are one for each. Values are written as
/// names are, so that `out[0-1]` and `a,b` are two. None where nothing was said.
pub fn for_each(
    names: &[String],
    option: &str,
    said: Option<&str>,
) -> Result<Vec<Option<String>>, Error> {
    let Some(said) = said.filter(|said| !said.trim().is_empty()) else {
        return Ok(vec![None; names.len()]);
    };
    refuse_unsafe(said)?;
    Ok(values_for(names.len(), option, said)?.into_iter().map(Some).collect())
}

/// Jobs that options describe, as if they stood in a file: what is checked of those is checked of these.
pub fn as_read(jobs: Vec<TemplateJob>) -> Result<Vec<ImportedJob>, Error> {
    let text = template::text(&Template { jobs, ..Template::default() });
    let read = cloudmesh::read("spec.yaml", &text);
    read.map(|file| file.jobs).map_err(|bad| Error::usage(bad.what).hint(bad.hint))
}

/// Refuses what would not stand on one line of a file, or what no terminal should see.
pub fn refuse_unsafe(said: &str) -> Result<(), Error> {
    match said.chars().find(|c| is_unsafe(*c)) {
        None => Ok(()),
        Some(c) => Err(Error::usage(format!("'{said}': {} stands in it", c.escape_unicode()))
            .hint("take that character out")),
    }
}

/// Writes the file. One that is there is replaced only by `force`.
pub fn write(ctx: &Ctx, path: &Path, template: &Template, force: bool) -> Result<(), Error> {
    let shown = path.display();
    if !force && super::jobset::is_there(ctx, path) {
        return Err(there_already(path));
    }
    if ctx.store.is_dry_run() {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        make_dirs(ctx, dir)?;
    }
    let (disk, text) = (&**ctx.store.disk(), template::text(template));
    if force {
        return Ok(atomic::write_file(disk, path, text.as_bytes(), MODE)?);
    }
    // Whoever has made one meanwhile keeps it.
    disk.create(path, text.as_bytes(), MODE).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => there_already(path),
        _ => Error::state(format!("cannot write {shown}: {e}"))
            .hint("name a file in a directory of your own"),
    })
}

fn there_already(path: &Path) -> Error {
    Error::refused(format!("{} is there already", path.display()))
        .hint("name another file, or use --force to overwrite it")
}
