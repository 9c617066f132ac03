//! The code of a job where no slot names it: the directory that somebody stands in.

use std::path::{Path, PathBuf};

use tpu_core::model::spec::{CodeDir, JobSpec};

use crate::{Ctx, Error};

/// Lets a job have the code of a directory: all of the git work tree around it.
pub fn stand_in(ctx: &Ctx, spec: &mut JobSpec, dir: &Path) -> Result<(), Error> {
    // A current directory that was deleted has no path.
    let there = dir.canonicalize().ok().filter(|there| dir.is_absolute() && there.is_dir());
    let Some(there) = there else {
        let what = format!("the directory of its code is not there: {}", dir.display());
        return Err(
            Error::not_found(what).hint("change to a directory that exists, or name one: -C PATH")
        );
    };
    if there.to_str().is_none() {
        let what = format!("the name of the directory is no UTF-8: {}", there.display());
        return Err(Error::usage(what).hint("rename it"));
    }
    spec.dir = None;
    spec.code = Some(match spec.command {
        Some(_) => code_of(&there, &home(ctx)),
        // A script lies where it is run.
        None => CodeDir { top: text(&there), below: None },
    });
    Ok(())
}

/// Whether the code of a job is a home directory, or has one in it. That is never copied: it holds keys, and everything
/// else. The command runs there as it lies.
pub(crate) fn is_home(ctx: &Ctx, spec: &JobSpec) -> bool {
    spec.code.as_ref().is_some_and(|code| holds_home(ctx, Path::new(&code.top)))
}

/// Whether a directory is the home directory, or holds it.
pub(crate) fn holds_home(ctx: &Ctx, dir: &Path) -> bool {
    holds(&resolved(dir), &home(ctx))
}

/// The same of a directory as it was typed: by its path from here, or below `~/`.
pub fn stand_in_typed(ctx: &Ctx, spec: &mut JobSpec) -> Result<(), Error> {
    let Some(typed) = spec.code.as_ref().filter(|_| spec.staged.is_none()) else { return Ok(()) };
    let dir = ctx.env.cwd.join(whole_path(ctx, &typed.begins_in()));
    stand_in(ctx, spec, &dir)
}

/// The code of whoever stands in a directory.
fn code_of(dir: &Path, home: &Path) -> CodeDir {
    let is_top = |above: &&Path| above.join(".git").exists() && !holds(above, home);
    let top = dir.ancestors().find(is_top).unwrap_or(dir);
    let below = dir.strip_prefix(top).ok().filter(|below| !below.as_os_str().is_empty());
    CodeDir { top: text(top), below: below.map(text) }
}

fn home(ctx: &Ctx) -> PathBuf {
    resolved(&ctx.env.home)
}

fn holds(dir: &Path, home: &Path) -> bool {
    home.starts_with(dir)
}

/// A path of this machine, `~/` being our home.
pub(crate) fn whole_path(ctx: &Ctx, path: &str) -> PathBuf {
    let below = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    match (below, ctx.env.non_empty("HOME")) {
        (Some(below), Some(home)) => Path::new(home).join(below),
        _ => path.into(),
    }
}

/// A path without links; as it is where it leads nowhere.
pub fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A directory as a person writes it: below their home with `~`.
pub fn shown(ctx: &Ctx, dir: &str) -> String {
    match Path::new(dir).strip_prefix(home(ctx)) {
        Ok(below) if below.as_os_str().is_empty() => "~".to_owned(),
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => dir.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_that_of_a_work_tree_which_holds_no_home() {
        let root = tempfile::tempdir().unwrap();
        let root = resolved(root.path());
        for path in
            ["home/exp/.git", "home/exp/sub", "home/plain/deep", "dots/.git", "dots/home/exp"]
        {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        let of = |dir: &str, home: &str| {
            let code = code_of(&root.join(dir), &root.join(home));
            let top = Path::new(&code.top).strip_prefix(&root).unwrap().display().to_string();
            (top, code.below)
        };
        let below = |below: &str| Some(below.to_owned());
        assert_eq!(of("home/exp", "home"), ("home/exp".into(), None));
        assert_eq!(of("home/exp/sub", "home"), ("home/exp".into(), below("sub")));
        assert_eq!(of("home/plain/deep", "home"), ("home/plain/deep".into(), None));
        assert_eq!(of("dots/home/exp", "dots"), ("dots/home/exp".into(), None), "a home under git");
        assert_eq!(of("dots/home/exp", "dots/home"), ("dots/home/exp".into(), None), "or above it");
        assert!(holds(&root, &root.join("home")) && holds(Path::new("/"), &root));
        assert!(!holds(&root.join("home/exp"), &root.join("home")));
    }
}
