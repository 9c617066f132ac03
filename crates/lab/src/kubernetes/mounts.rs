//! Volumes where a container expects them: a mount namespace with a root of its own, in which everything of this
//! machine is where it was, and the volumes as well. Nothing is made in the directories of the machine: one that has
//! to have something new in it is an empty one, with all its own entries mounted into it.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use tpu_system::sys::proc::Spawn;

/// One volume in a container.
#[derive(Debug)]
pub(super) struct Mount {
    /// On this machine.
    pub(super) source: PathBuf,
    /// In the container.
    pub(super) at: PathBuf,
    pub(super) is_read_only: bool,
}

/// The program in a root with these volumes. Only root can do that.
pub(super) fn within(
    mounts: &[Mount],
    root: &Path,
    directory: &Path,
    words: &[String],
) -> Result<Spawn, String> {
    let first = mounts.first().map_or_else(PathBuf::new, |mount| mount.at.clone());
    if !rustix::process::geteuid().is_root() {
        return Err(format!(
            "containers are plain processes here, and only root can mount a volume at {} for one of them: run the \
             emulator as root, or leave the volume out",
            first.display()
        ));
    }
    let script = script(mounts, root)?;
    std::fs::create_dir_all(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let spawn = Spawn::new("unshare")
        .args(["--mount", "--propagation", "private", "--", "sh", "-euc"])
        .arg(script)
        .arg("sh")
        .arg(root.as_os_str())
        .arg(directory.as_os_str())
        .args(words);
    Ok(spawn.cwd("/"))
}

/// A path within the root of the container.
fn quoted(path: &Path) -> Result<String, String> {
    let text = path.to_str().ok_or_else(|| format!("{} is no text", path.display()))?;
    shlex::try_quote(text).map(std::borrow::Cow::into_owned).map_err(|error| error.to_string())
}

/// What the shell does before it becomes the program: `$1` is the new root, `$2` the directory to begin in.
fn script(mounts: &[Mount], root: &Path) -> Result<String, String> {
    let mut open: BTreeSet<PathBuf> = BTreeSet::from([PathBuf::from("/")]);
    for mount in mounts {
        let is_plain = mount.at.is_absolute()
            && mount.at != Path::new("/")
            && mount
                .at
                .components()
                .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !is_plain {
            return Err(format!("a volume cannot be mounted at {}", mount.at.display()));
        }
        // The nearest directory that is there gets something new in it.
        if let Some(above) = mount.at.ancestors().skip(1).find(|above| above.is_dir())
            && !mount.at.exists()
        {
            open.extend(above.ancestors().map(Path::to_owned));
        }
    }
    let mut lines = vec!["mount -t tmpfs -o mode=755 tmpfs \"$1\"".to_owned()];
    for directory in &open {
        let entries =
            std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        for entry in entries.flatten() {
            let path = entry.path();
            // Its own root would be in itself.
            if path == root {
                continue;
            }
            let (name, Ok(kind)) = (quoted(&path)?, entry.file_type()) else { continue };
            lines.push(if kind.is_symlink() {
                format!("ln -s \"$(readlink {name})\" \"$1\"{name}")
            } else if kind.is_dir() && open.contains(&path) {
                format!("mkdir \"$1\"{name}")
            } else if kind.is_dir() {
                format!("mkdir \"$1\"{name}; mount --rbind {name} \"$1\"{name}")
            } else {
                format!("touch \"$1\"{name}; mount --bind {name} \"$1\"{name}")
            });
        }
    }
    let mut sorted: Vec<&Mount> = mounts.iter().collect();
    sorted.sort_unstable_by(|one, other| one.at.cmp(&other.at));
    for mount in sorted {
        let (source, at) = (quoted(&mount.source)?, quoted(&mount.at)?);
        if mount.source.is_dir() {
            lines.push(format!("mkdir -p \"$1\"{at}"));
        } else {
            let above = quoted(mount.at.parent().unwrap_or(Path::new("/")))?;
            lines.push(format!("mkdir -p \"$1\"{above}; touch \"$1\"{at}"));
        }
        lines.push(format!("mount --bind {source} \"$1\"{at}"));
        if mount.is_read_only {
            lines.push(format!("mount -o remount,bind,ro \"$1\"{at}"));
        }
    }
    let last = "root=$1; directory=$2; shift 2; exec chroot \"$root\" sh -c 'cd \"$1\" && shift && exec \"$@\"' sh \
                \"$directory\" \"$@\"";
    lines.push(last.to_owned());
    Ok(lines.join("\n"))
}
