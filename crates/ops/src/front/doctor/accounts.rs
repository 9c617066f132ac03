//! Whether this account can write what it has to, and whether the others of a shared directory can.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tpu_core::model::data::User;
use tpu_system::sys::{accounts, shared};

use crate::Ctx;
use crate::base::launch_paths::roots;
use crate::front::share;

use super::{Finding, Severity, fine, warning};

/// What this account cannot write, and what it keeps from others.
pub(super) fn look(ctx: &Ctx, findings: &mut Vec<Finding>) {
    let (disk, paths) = (&**ctx.store.disk(), ctx.store.paths());
    let dir = paths.dir();
    if !dir.is_dir() {
        return;
    }
    let needed = [paths.state(), paths.backups(), paths.lock(), paths.events(), paths.archive()];
    let below = ["jobs", "environments"].map(|name| paths.state().join(name));
    let mut found: Vec<(PathBuf, String)> = needed
        .into_iter()
        .chain(below)
        .filter(|path| path.exists())
        .filter_map(|path| shared::may_use(&path).err().map(|why| (path, why)))
        .collect();
    let data = ctx.data().ok();
    let users = data.as_ref().map(|data| data.users()).unwrap_or_default();
    found.extend(users.iter().flat_map(|user| of_user(ctx, user)));
    found.sort();
    found.dedup();
    let group = share::group_of(disk, dir);
    let owner_of = |path: &Path| accounts::name(disk.stat(path).map_or(0, |stat| stat.uid));
    let unset = format!("as {}: tpu init --shared {} --group GROUP", owner_of(dir), dir.display());
    findings.extend(found.into_iter().map(|(path, why)| Finding {
        severity: Severity::Broken,
        what: format!("this account cannot write {}: {why}", path.display()),
        remedy: Some(match group {
            Some(_) => share::remedy(ctx, &owner_of(&path)),
            None => unset.clone(),
        }),
    }));
    let Some(group) = group else {
        findings.extend(several(ctx).map(|what| warning(what, unset)));
        return;
    };
    let (name, left) = (accounts::group(group), share::unshared(disk, paths, group));
    let dir = dir.display();
    if left.is_empty() {
        findings.push(fine(format!("{dir} is shared with the accounts of group {name}")));
    } else {
        findings.push(warning(
            format!("not shared with group {name}: {}", share::named(&left)),
            share::remedy(ctx, &share::owners(&left)),
        ));
    }
}

/// Where the logs and the code of a user would lie, and this account may not write.
fn of_user(ctx: &Ctx, user: &User) -> Vec<(PathBuf, String)> {
    let Ok(roots) = roots(ctx, user) else { return Vec::new() };
    let dirs = [roots.log, roots.stage].map(|root| PathBuf::from(root).join(user.name.as_str()));
    let refused = dirs.iter().filter_map(|dir| shared::may_write_below(dir).err());
    refused.map(|unwritable| (unwritable.place, unwritable.why)).collect()
}

/// Several accounts that have written here, where nobody has set that up.
fn several(ctx: &Ctx) -> Option<String> {
    let (disk, paths) = (&**ctx.store.disk(), ctx.store.paths());
    let known = share::dirs(disk, paths).into_iter().chain([paths.data().to_owned(), paths.lock()]);
    let owners = known.filter_map(|path| Some(disk.stat(&path).ok()?.uid));
    // Root looks after the files of others.
    let owners: BTreeSet<u32> = owners.filter(|uid| *uid != 0).collect();
    let names: Vec<String> = owners.into_iter().map(accounts::name).collect();
    let (dir, all) = (paths.dir().display(), names.join(", "));
    (names.len() > 1).then(|| format!("{dir} is used by several accounts and not shared: {all}"))
}
