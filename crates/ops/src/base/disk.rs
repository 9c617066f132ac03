//! Directories of our own on the disk of this machine.

use std::path::Path;

use crate::{Ctx, Error};

/// Makes a directory and those above it.
pub fn make_dirs(ctx: &Ctx, dir: &Path) -> Result<(), Error> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(parent) = dir.parent() {
        make_dirs(ctx, parent)?;
    }
    ctx.store.disk().make_dir(dir, 0o700).map(drop).map_err(|e| {
        Error::state(format!("cannot create {}: {e}", dir.display()))
            .hint("check the rights of the directory above it")
    })
}
