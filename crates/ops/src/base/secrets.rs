//! The secrets of jobs: a file names them, the launch gives them to the command as variables, and their values stand in
//! no record, log, argument or answer.
//!
//! ```text
//! --env NAME=VALUE ──────┐
//! $NAME of whoever asks ─┤
//!                        ├─ [found]: a launch ─ 0600 beside the launcher, which takes it away as the command begins
//! `tpu secrets set NAME` ┘                    ─ stdin of the connection to a worker
//! ```
//! The store is one for each account: a directory of its owner's alone, with a file for each. What begins later, or
//! by itself, has nobody's environment, and gets them from there.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use tpu_core::model::execution::Execution;
use tpu_core::model::variables::Secrets;
use tpu_system::store::atomic;

use super::disk::make_dirs;
use super::watch;
use crate::{Ctx, Error};

/// Bytes that a secret may have: what one argument or variable of a program may hold on Linux (`execve(2)`,
/// `MAX_ARG_STRLEN`), without its name.
const LARGEST: usize = 128 * 1024 - 256;

/// What is wrong with a name, if something is.
pub fn checked(name: &str) -> Result<(), Error> {
    tpu_core::model::variables::as_secret(name)
        .map_err(|(what, hint)| Error::usage(format!("{name}: {what}")).hint(hint))
}

/// The directory in which they lie.
fn directory(ctx: &Ctx) -> Result<&Path, Error> {
    ctx.secrets.as_deref().ok_or_else(|| {
        Error::state("there is no home directory to keep secrets in")
            .hint("set HOME, or XDG_CONFIG_HOME")
    })
}

/// Keeps a secret. Whether there was one of that name.
pub fn set(ctx: &Ctx, name: &str, value: &[u8]) -> Result<bool, Error> {
    checked(name)?;
    if value.is_empty() {
        return Err(Error::usage(format!("{name}: nothing came in"))
            .hint(format!("as in: tpu secrets set {name} < FILE")));
    }
    if value.contains(&0) || value.len() > LARGEST {
        let what = format!("{name}: no variable can hold it");
        return Err(Error::usage(what).hint(format!(
            "no byte 0, and {LARGEST} bytes at most: keep it in a file of your own"
        )));
    }
    let (disk, dir) = (ctx.store.disk(), directory(ctx)?);
    let cannot = |e: std::io::Error| {
        Error::state(format!("cannot keep it in {}: {e}", dir.display()))
            .hint("this account must be able to write there")
    };
    let path = dir.join(name);
    let was_there = disk.stat(&path).is_ok();
    if ctx.store.is_dry_run() {
        return Ok(was_there);
    }
    make_dirs(ctx, dir)?;
    disk.set_mode(dir, 0o700).map_err(cannot)?;
    atomic::write_file(&**disk, &path, value, 0o600)?;
    Ok(was_there)
}

/// The names of those that are kept, in order.
pub fn names(ctx: &Ctx) -> Result<Vec<String>, Error> {
    let dir = directory(ctx)?;
    match ctx.store.disk().list(dir) {
        Ok(mut names) => {
            names.retain(|name| checked(name).is_ok());
            names.sort_unstable();
            Ok(names)
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(Error::state(format!("cannot list {}: {e}", dir.display()))
            .hint("this account must be able to read it")),
    }
}

/// Forgets a secret.
pub fn remove(ctx: &Ctx, name: &str) -> Result<(), Error> {
    checked(name)?;
    let path = directory(ctx)?.join(name);
    if ctx.store.disk().stat(&path).is_err() {
        return Err(
            Error::not_found(format!("no secret {name} is kept")).hint("`tpu secrets` lists them")
        );
    }
    if ctx.store.is_dry_run() {
        return Ok(());
    }
    ctx.store.disk().remove(&path).map_err(|e| {
        Error::state(format!("cannot remove {}: {e}", path.display())).hint("remove it by hand")
    })
}

/// The value of one that is kept.
pub(crate) fn kept(ctx: &Ctx, name: &str) -> Result<Option<OsString>, Error> {
    let path = directory(ctx)?.join(name);
    let contents = match ctx.store.disk().read(&path) {
        Ok(contents) => contents,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            let what = format!("cannot read {}: {e}", path.display());
            // A disk may be there again in a moment; rights are for somebody to set right.
            let error = match e.kind() {
                ErrorKind::PermissionDenied => Error::refused(what),
                _ => Error::unreachable(what),
            };
            return Err(error.hint(format!("set it anew: tpu secrets set {name}")));
        }
    };
    if contents.stat.mode & 0o077 != 0 {
        return Err(Error::refused(format!("{} may be read by others", path.display()))
            .hint(format!("if nobody has: chmod 600 {}", path.display())));
    }
    Ok(Some(OsString::from_vec(contents.bytes)))
}

/// The values of all secrets of a job that begins: those that were `given` with it, else from the environment of the person
/// who asks for it, else from the store. What has waited for its turn, and what the daemon begins, goes by the store alone,
/// whoever may be there to begin it.
pub fn found(
    ctx: &Ctx,
    execution: &Execution,
    (has_waited, given): (bool, &Secrets),
) -> Result<Secrets, Error> {
    let is_asked_for = !has_waited && ctx.actor != watch::ACTOR;
    let mut all = Vec::new();
    for name in &execution.secrets {
        let own = ctx.env.var_os(name).filter(|value| is_asked_for && !value.is_empty());
        let value = match given.get(name).or(own) {
            Some(own) => Some(own.to_owned()),
            None => kept(ctx, name)?,
        };
        let value = value.ok_or_else(|| missing(&[name.as_str()]))?;
        all.push((OsString::from(name), value));
    }
    Ok(Secrets(all))
}

/// Whether a job that begins now will have its secrets. What is in the caller's environment alone is told: whatever
/// brings the job back does not have it.
pub fn are_there(ctx: &Ctx, execution: &Execution, given: &Secrets) -> Result<(), Error> {
    match found(ctx, execution, (false, given)) {
        Err(error) if ctx.store.is_dry_run() => ctx.warn([error.message]),
        Err(error) => return Err(error),
        Ok(found) => drop(found),
    }
    for name in execution.secrets.iter().filter(|name| given.get(name).is_none()) {
        if kept(ctx, name)?.is_none() && ctx.env.var_os(name).is_some() {
            ctx.warn([format!(
                "{name} is in this environment alone: what brings the job back by itself needs `tpu secrets set {name}`"
            )]);
        }
    }
    Ok(())
}

/// Whether the store has the secrets of a job that begins later, beside those that were `given` with it.
pub fn are_kept(ctx: &Ctx, execution: &Execution, given: &Secrets) -> Result<(), Error> {
    let mut absent = Vec::new();
    for name in execution.secrets.iter().filter(|name| given.get(name).is_none()) {
        if kept(ctx, name)?.is_none() {
            absent.push(name.as_str());
        }
    }
    if absent.is_empty() { Ok(()) } else { Err(missing(&absent)) }
}

fn missing(names: &[&str]) -> Error {
    let first = names.first().copied().unwrap_or_default();
    Error::not_found(format!("no secret {} is kept", names.join(", ")))
        .hint(format!("keep it, for whatever begins later: tpu secrets set {first}"))
}

/// A value as it was piped in: without the line feed that programs end their output with.
pub fn piped(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}
