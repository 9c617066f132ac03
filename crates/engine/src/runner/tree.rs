//! The files below a directory, as they lie there and as they were when they were copied: what differs was written since.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file of a copy of code that lists what was copied, as [`FIND`] prints it.
pub const COPIED: &str = ".tpu-copied";

/// Where Python keeps what it makes of modules.
pub(super) const COMPILED: &str = "__pycache__";

/// Directories that are in no list: programs write there by the way.
const BY_THE_WAY: [&str; 2] = [COMPILED, ".git"];

/// Lists the files below the working directory, for a shell with GNU find: see [`read`].
pub const FIND: &str = r"find . \( -name __pycache__ -o -name .git \) -prune -o ! -type d -printf '%y %s %T@ %P\0%l\0'";

/// Something below a directory that is no directory itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InTree {
    /// Where it is, relative to the directory.
    pub path: PathBuf,
    /// Bytes of it.
    pub bytes: u64,
    /// When it was last written: seconds since 1970, and nanoseconds, which are 0 where nobody says them.
    pub written: (i64, u32),
    /// Where it leads, if it is a link.
    pub leads_to: Option<PathBuf>,
}

impl InTree {
    fn of(dir: &Path, path: PathBuf) -> io::Result<Self> {
        let whole = dir.join(&path);
        let meta = fs::symlink_metadata(&whole)?;
        let leads_to = meta.is_symlink().then(|| fs::read_link(&whole)).transpose()?;
        Ok(Self::described(path, &meta, leads_to))
    }

    /// One that was looked at already.
    pub(super) fn described(path: PathBuf, meta: &Metadata, leads_to: Option<PathBuf>) -> Self {
        let nanos = u32::try_from(meta.mtime_nsec()).unwrap_or_default();
        Self { path, bytes: meta.len(), written: (meta.mtime(), nanos), leads_to }
    }

    /// Whether it is as it was. A packed copy keeps whole seconds alone.
    pub(super) fn is(&self, before: &Self) -> bool {
        let ((now, now_ns), (then, then_ns)) = (self.written, before.written);
        let at_once = now == then && (now_ns == then_ns || now_ns == 0 || then_ns == 0);
        match (&self.leads_to, &before.leads_to) {
            (None, None) => at_once && self.bytes == before.bytes,
            (now, then) => now == then,
        }
    }
}

/// What of `now` is not as it was before.
pub fn written_since(now: Vec<InTree>, before: &[InTree]) -> Vec<InTree> {
    let before: HashMap<&Path, &InTree> =
        before.iter().map(|one| (one.path.as_path(), one)).collect();
    let is_new = |one: &InTree| before.get(one.path.as_path()).is_none_or(|then| !one.is(then));
    now.into_iter().filter(|one| !is_list(one.path.as_os_str()) && is_new(one)).collect()
}

/// Whether a name in a copy is that of its list, or of one that is about to replace it.
pub(super) fn is_list(name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(COPIED.as_bytes());
    let is_token = |rest: &[u8]| {
        rest.strip_prefix(b".").is_some_and(|token| token.iter().all(u8::is_ascii_hexdigit))
    };
    rest.is_some_and(|rest| rest.is_empty() || is_token(rest))
}

/// The files below a directory of this machine. No link is followed; what goes meanwhile is not in it.
pub fn of_this_disk(dir: &Path) -> io::Result<Vec<InTree>> {
    let (mut all, mut dirs) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(below) = dirs.pop() {
        let entries = match fs::read_dir(dir.join(&below)) {
            Err(e) if !below.as_os_str().is_empty() && is_passed_over(&e) => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = below.join(entry.file_name());
            match entry.file_type() {
                _ if BY_THE_WAY.iter().any(|name| entry.file_name() == *name) => {}
                Ok(kind) if kind.is_dir() => dirs.push(path),
                Ok(_) => match InTree::of(dir, path) {
                    Err(e) if is_passed_over(&e) => {}
                    found => all.push(found?),
                },
                Err(e) if is_passed_over(&e) => {}
                Err(e) => return Err(e),
            }
        }
    }
    all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

/// Whether what was looked at went meanwhile, or is not ours to look into: who lists a directory passes it over.
pub fn is_passed_over(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Writes [`COPIED`] into a directory: all that is in it now was copied.
pub fn keep_list(dir: &Path) -> io::Result<()> {
    let all = of_this_disk(dir)?;
    write_list(dir, all.iter().map(|one| &one.path))
}

pub(super) fn write_list<'a>(
    dir: &Path,
    paths: impl Iterator<Item = &'a PathBuf>,
) -> io::Result<()> {
    let list = dir.join(COPIED);
    // A link of this name may be part of the code: what is behind it is not ours.
    match fs::remove_file(&list) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::File::create_new(&list)?.write_all(&list_of(dir, paths))
}

/// Lists some files of a directory as [`FIND`] would.
fn list_of<'a>(dir: &Path, paths: impl Iterator<Item = &'a PathBuf>) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        // What went meanwhile is no part of it.
        let Ok(found) = InTree::of(dir, path.clone()) else { continue };
        if found.leads_to.is_none() && dir.join(path).is_dir() {
            continue;
        }
        let (kind, (seconds, nanos)) =
            (if found.leads_to.is_some() { 'l' } else { 'f' }, found.written);
        list.extend(format!("{kind} {} {seconds}.{nanos:09} ", found.bytes).into_bytes());
        list.extend(path.as_os_str().as_bytes());
        list.push(0);
        list.extend(found.leads_to.unwrap_or_default().into_os_string().into_vec());
        list.push(0);
    }
    list
}

/// Reads a list of files: all of it, or nothing.
pub fn read(list: &[u8]) -> io::Result<Vec<InTree>> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "the list of its files is cut off");
    let Some(whole) = list.strip_suffix(b"\0") else {
        return if list.is_empty() { Ok(Vec::new()) } else { Err(broken()) };
    };
    let words: Vec<&[u8]> = whole.split(|byte| *byte == 0).collect();
    let mut all = Vec::new();
    for pair in words.chunks(2) {
        let [said, to] = pair else { return Err(broken()) };
        all.push(one(said, to).ok_or_else(broken)?);
    }
    all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(all)
}

/// `f 12 1764489600.123456789 sub/a.csv`.
fn one(said: &[u8], to: &[u8]) -> Option<InTree> {
    let mut parts = said.splitn(4, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(parts.next()?).ok();
    let (kind, bytes, written) = (text()?, text()?, text()?);
    let path = Path::new(OsStr::from_bytes(parts.next()?)).to_owned();
    let (seconds, part) = written.split_once('.').unwrap_or((written, ""));
    let part: String = part.chars().chain("000000000".chars()).take(9).collect();
    let leads_to = (kind == "l").then(|| PathBuf::from(OsStr::from_bytes(to)));
    let written = (seconds.parse().ok()?, part.parse().ok()?);
    Some(InTree { path, bytes: bytes.parse().ok()?, written, leads_to })
}

#[cfg(test)]
mod tests {
    use tpu_system::sys::proc::{self, Spawn};

    use super::*;

    #[test]
    fn our_list_and_that_of_find_are_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let below = |path: &str| dir.path().join(path);
        for path in ["sub/deep", "sub/__pycache__"] {
            fs::create_dir_all(below(path)).unwrap();
        }
        for path in ["a", "sub/deep/two\nlines", "sub/__pycache__/x.pyc"] {
            drop(fs::File::create(below(path)).unwrap());
        }
        std::os::unix::fs::symlink("../a", below("sub/link")).unwrap();
        let ours = of_this_disk(dir.path()).unwrap();
        let paths: Vec<PathBuf> = ours.iter().map(|one| one.path.clone()).collect();
        assert_eq!(paths, ["a", "sub/deep/two\nlines", "sub/link"].map(PathBuf::from));
        assert_eq!(read(&list_of(dir.path(), paths.iter())).unwrap(), ours);
        let find = Spawn::new("sh").args(["-c", FIND]).cwd(dir.path());
        let find = proc::run(&find).unwrap();
        assert_eq!(read(&find.stdout).unwrap(), ours);
        assert!(read(&find.stdout[1..find.stdout.len() - 3]).is_err(), "cut off");
    }

    #[test]
    fn a_link_in_the_place_of_the_list_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (copy, other) = (dir.path().join("copy"), dir.path().join("other"));
        fs::create_dir(&copy).unwrap();
        fs::File::create(&other).unwrap().write_all(b"kept").unwrap();
        std::os::unix::fs::symlink(&other, copy.join(COPIED)).unwrap();
        keep_list(&copy).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"kept");
        assert!(!copy.join(COPIED).is_symlink());
    }

    #[test]
    fn what_was_made_or_changed_is_written_since() {
        let file = |path: &str, bytes, written| InTree {
            path: path.into(),
            bytes,
            written,
            leads_to: None,
        };
        let before = [file("same", 1, (5, 7)), file("longer", 1, (5, 7)), file("later", 1, (5, 7))];
        let mut packed = file("packed", 1, (5, 7));
        let known: Vec<InTree> = before.iter().cloned().chain([packed.clone()]).collect();
        packed.written.1 = 0;
        let now = vec![
            file("same", 1, (5, 7)),
            file("longer", 2, (5, 7)),
            file("later", 1, (5, 8)),
            packed,
            file("new", 0, (5, 7)),
            file(COPIED, 0, (9, 9)),
        ];
        let since: Vec<PathBuf> =
            written_since(now, &known).into_iter().map(|one| one.path).collect();
        assert_eq!(since, ["longer", "later", "new"].map(PathBuf::from));
    }
}
