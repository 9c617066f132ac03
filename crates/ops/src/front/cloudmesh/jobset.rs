//! The jobset that somebody works with: remembered by its place, for each user, and never written to.

use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::{Ctx, Error};
use tpu_core::model::data::Data;
use tpu_core::model::ids::UserName;
use tpu_core::text::escape;
use tpu_jobfile::cloudmesh::{CloudmeshFile, CloudmeshKind};
use tpu_system::store::atomic;

use super::translate::known;

/// Where Cloudmesh keeps one if nobody says otherwise.
pub const USUAL: &str = "~/.cloudmesh/job/spec.yaml";

/// Mode of the note.
const MODE: u32 = 0o600;

/// The jobset of a user: the one that was set, else the one in Cloudmesh's usual place, if there is one.
pub fn current(ctx: &Ctx, user: Option<&UserName>) -> Result<Option<PathBuf>, Error> {
    let note = ctx.store.paths().jobset(user.map(UserName::as_str));
    match ctx.store.disk().read(&note) {
        Ok(contents) => {
            let path = PathBuf::from(std::ffi::OsString::from_vec(contents.bytes));
            Ok(Some(path).filter(|path| !path.as_os_str().is_empty()))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let usual = super::place(ctx, USUAL)?;
            Ok(is_there(ctx, &usual).then_some(usual))
        }
        Err(e) => Err(Error::state(format!("cannot read {}: {e}", note.display()))
            .hint("set it again: tpu cms set jobset=FILE")),
    }
}

/// Remembers the jobset of a user. One that is there must be one; whether it is there.
pub fn remember(ctx: &Ctx, user: Option<&UserName>, path: &Path) -> Result<bool, Error> {
    let is_there = is_there(ctx, path);
    if is_there {
        let file = super::read(ctx, path)?;
        if file.kind != CloudmeshKind::Jobset {
            let what = format!("{} is {}, and no jobset", path.display(), file.kind.in_words());
            return Err(Error::usage(what)
                .hint(format!("import it: tpu import cloudmesh {}", path.display())));
        }
    }
    if !ctx.store.is_dry_run() {
        ctx.store.state_dir()?;
        let note = ctx.store.paths().jobset(user.map(UserName::as_str));
        atomic::write_file(&**ctx.store.disk(), &note, path.as_os_str().as_bytes(), MODE)?;
    }
    Ok(is_there)
}

/// Whether something is in a place.
pub(super) fn is_there(ctx: &Ctx, path: &Path) -> bool {
    ctx.store.disk().stat(path).is_ok()
}

/// The jobset of a user, if there is one that can be read.
pub fn readable(ctx: &Ctx, user: Option<&UserName>) -> Result<Option<CloudmeshFile>, Error> {
    let Some(path) = current(ctx, user)? else { return Ok(None) };
    match super::read(ctx, &path) {
        Ok(file) => Ok(Some(file)),
        Err(error) => {
            ctx.warn([unread(&error)]);
            Ok(None)
        }
    }
}

/// The hosts of a jobset that are hosts here, among which its scheduler chooses.
pub(crate) fn hosts_of(data: &Data, file: Option<&CloudmeshFile>) -> Vec<String> {
    let all = file.iter().flat_map(|file| &file.hosts);
    let here =
        all.filter_map(|host| known(data, &host.name).or_else(|| known(data, &host.address)));
    here.map(|target| target.name.as_str().to_owned()).collect()
}

/// What is said beside what is known here, where the jobset cannot be read.
pub fn unread(error: &Error) -> String {
    escape(&format!("of the jobset nothing can be said: {}", error.message)).into_owned()
}
