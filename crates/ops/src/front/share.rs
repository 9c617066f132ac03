//! A directory that the accounts of a group share: how it is set up (`tpu init --shared`), and what of it is not shared
//! (`tpu doctor`).

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use tpu_core::text::counted;
use tpu_system::store::disk::Stat;
use tpu_system::store::{Disk, Paths};
use tpu_system::sys::accounts;
use tpu_system::sys::beneath::OpenDir;
use tpu_system::sys::shared::{self, GROUP_READS_AND_WRITES, SHARED};

use crate::base::account;
use crate::{Ctx, Error};

/// Directories of the state in which every account makes its own.
const DIRS: [&str; 6] = ["jobs", "logs", "stage", "environments", "copies", "silences"];

/// Nobody reads more names.
const NAMED: usize = 4;

/// A file or directory that the others of the group cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unshared {
    /// Which.
    pub path: PathBuf,
    /// Who owns it: nobody else but root can share it.
    pub owner: u32,
    /// What its group is to do with it.
    more: u32,
}

/// The group with which a directory is shared; `None` where it is not.
pub fn group_of(disk: &dyn Disk, dir: &Path) -> Option<u32> {
    disk.stat(dir).ok().filter(|stat| shared::is_shared(stat.mode)).map(|stat| stat.gid)
}

/// What is to be shared with a group, and is not.
pub fn unshared(disk: &dyn Disk, paths: &Paths, group: u32) -> Vec<Unshared> {
    let is_flawed = |stat: &Stat, wanted: u32| stat.gid != group || stat.mode & wanted != wanted;
    let (files, dirs) = (files(paths), dirs(disk, paths));
    let files = files.into_iter().map(|path| (path, GROUP_READS_AND_WRITES));
    let all = dirs.into_iter().map(|path| (path, SHARED)).chain(files);
    let one = |(path, wanted): (PathBuf, u32)| {
        let stat = disk.stat(&path).ok().filter(|stat| is_flawed(stat, wanted))?;
        Some(Unshared { path, owner: stat.uid, more: wanted })
    };
    all.filter_map(one).collect()
}

/// The directories in which every account writes.
pub fn dirs(disk: &dyn Disk, paths: &Paths) -> Vec<PathBuf> {
    let state = paths.state();
    let mut dirs = vec![paths.backups(), state.clone()];
    for name in DIRS {
        let dir = state.join(name);
        let below = disk.list(&dir).unwrap_or_default();
        // Those of users: accounts may act for one another.
        let is_of_users = ["jobs", "logs", "stage"].contains(&name);
        dirs.extend(below.iter().filter(|_| is_of_users).map(|name| dir.join(name)));
        dirs.push(dir);
    }
    dirs.retain(|dir| dir.is_dir());
    dirs
}

/// The files that every account writes.
fn files(paths: &Paths) -> Vec<PathBuf> {
    paths.of_all_accounts().into_iter().filter(|path| path.is_file()).collect()
}

/// Names some of these, and says how many they are.
pub fn named(unshared: &[Unshared]) -> String {
    let names = unshared.iter().take(NAMED).map(|one| one.path.display().to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    let more = unshared.len().saturating_sub(NAMED);
    if more == 0 { names } else { format!("{names} and {more} more") }
}

/// Their owners.
pub fn owners(unshared: &[Unshared]) -> String {
    let owners: BTreeSet<String> = unshared.iter().map(|one| accounts::name(one.owner)).collect();
    owners.into_iter().collect::<Vec<_>>().join(", ")
}

/// Has the accounts of a group share a directory: makes it if need be, and shares what is there already. Says what it did.
/// A dry run only looks.
pub fn set_up(ctx: &Ctx, dir: &Path, group: Option<&str>) -> Result<Vec<String>, Error> {
    let disk = &**ctx.store.disk();
    let wanted = group.map(gid).transpose()?;
    let is_new = disk.stat(dir).is_err();
    if ctx.store.is_dry_run() {
        let what = if is_new { "made, and shared" } else { "shared" };
        return Ok(vec![format!("{} would be {what}.", dir.display())]);
    }
    if is_new {
        disk.make_dir(dir, 0o700).map_err(|error| {
            Error::state(format!("cannot create {}: {error}", dir.display()))
                .hint("name one in a directory in which this account may write")
        })?;
    }
    let group = share(ctx, dir, wanted)?;
    let name = accounts::group(group);
    if let Err(why) = shared::may_use(dir) {
        let what = format!("this account cannot write in {}: {why}", dir.display());
        return Err(Error::refused(what).hint(join(ctx, &name)));
    }
    let mut said = vec![format!("{} is shared with the accounts of group {name}.", dir.display())];
    let shared = mend(ctx);
    if shared > 0 {
        said.push(format!("Shared {} that it held.", counted(shared, "file")));
    }
    Ok(said)
}

/// Shares what lies in the directory of the state file, if that is shared, as far as this account owns it. Returns how many
/// files it shared; the rest is a warning.
pub fn mend(ctx: &Ctx) -> usize {
    let (disk, paths) = (&**ctx.store.disk(), ctx.store.paths());
    let Some(group) = group_of(disk, paths.dir()) else { return 0 };
    let all = unshared(disk, paths, group);
    let share = |one: &&Unshared| share_one(paths, one, group).is_ok();
    let (done, left): (Vec<&Unshared>, Vec<&Unshared>) = all.iter().partition(share);
    let left: Vec<Unshared> = left.into_iter().cloned().collect();
    if !left.is_empty() {
        let names = named(&left);
        ctx.warn([format!("not shared: {names}; {}", remedy(ctx, &owners(&left)))]);
    }
    done.len()
}

/// Shares one of them. What lies behind a link is not ours, whoever has put it there.
fn share_one(paths: &Paths, one: &Unshared, group: u32) -> io::Result<()> {
    let below = one.path.strip_prefix(paths.dir()).map_err(io::Error::other)?;
    let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut dir = OpenDir::open(paths.dir())?;
    for part in below.parent().into_iter().flat_map(Path::components) {
        dir = dir.dir(part.as_os_str())?;
    }
    dir.share(name, one.owner, (group, one.more))
}

/// What their owners type to share what is theirs.
pub fn remedy(ctx: &Ctx, owners: &str) -> String {
    let own = accounts::name(ctx.env.uid);
    if owners == own {
        return "tpu doctor --fix".to_owned();
    }
    let data = ctx.store.paths().data().display();
    format!("as {owners}, or as root: tpu doctor --fix --data {data}")
}

/// Gives a directory to its group, and that to all that is made in it; returns the group.
fn share(ctx: &Ctx, dir: &Path, wanted: Option<u32>) -> Result<u32, Error> {
    let disk = &**ctx.store.disk();
    let look = || {
        disk.stat(dir).map_err(|e| Error::state(format!("cannot look at {}: {e}", dir.display())))
    };
    let before = look()?;
    let group = wanted.unwrap_or(before.gid);
    if before.gid == group && before.mode & SHARED == SHARED {
        return Ok(group);
    }
    let name = accounts::group(group);
    let given = disk.set_owner(dir, before.uid, group);
    let given = given.and_then(|()| disk.set_mode(dir, before.mode | SHARED));
    // Of a group that is not its own an account cannot hand anything down, and the system does not say so.
    if given.is_err() || look()?.mode & SHARED != SHARED {
        let owner = accounts::name(before.uid);
        let what = format!("{} of {owner} cannot be shared with group {name}", dir.display());
        return Err(Error::refused(what).hint(join(ctx, &name)));
    }
    Ok(group)
}

/// How this account comes into a group.
fn join(ctx: &Ctx, group: &str) -> String {
    let account = account::account(&ctx.env);
    format!("as root: usermod -aG {group} {account}; then log in again, and try again")
}

/// The number of a group that is named so.
fn gid(name: &str) -> Result<u32, Error> {
    let number = name.parse().ok().or_else(|| accounts::group_named(name));
    number.ok_or_else(|| {
        Error::not_found(format!("this machine lists no group {name}")).hint(format!(
            "make it as root: groupadd {name}; or give its number: getent group {name}"
        ))
    })
}
