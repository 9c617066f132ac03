//! The removal of code from a copy of it: what lies there as it was copied is removed, what a job created or changed stays.
//!
//! The list of a copy says how far that is. It begins with [`MARK`] before the first file is removed, so nobody starts
//! what is left of the code. Once nothing of the code is left, the mark is all of the list. A removal that was killed at any
//! moment continues the next time.
//!
//! No link is followed: each directory is opened in the one above it, and removed by its name there.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use tpu_system::sys::beneath::OpenDir;

use super::files::{Files as _, ThisDisk};
use super::tree::{self, COMPILED, COPIED, InTree};

/// Begins the list of a copy whose code is being removed, and is all of it once the code is gone. Read as part of a list
/// it is a file without a name.
pub const MARK: &[u8] = b"- 0 0 \0\0";

/// A copy of code in the directory of its user, below a root.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeCopy {
    /// The root; it may be a link.
    pub root: PathBuf,
    /// The directory of its user.
    pub user: String,
    /// Its name there.
    pub name: String,
}

impl CodeCopy {
    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.root.join(&self.user).join(&self.name)
    }
}

/// How much of its code a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeLeft {
    /// All of it.
    All,
    /// It is being removed.
    Some,
    /// Nothing.
    Nothing,
    /// Nobody knows: it has no list.
    Unknown,
}

/// How much of its code a copy on this disk has: nobody removes code from another one.
pub fn code_left(copy: &Path) -> CodeLeft {
    let most = u64::try_from(MARK.len() + 1).unwrap_or(u64::MAX);
    match ThisDisk.read(&copy.join(COPIED), 0, most) {
        Ok(Some(list)) if list == MARK => CodeLeft::Nothing,
        Ok(Some(list)) if list.starts_with(MARK) => CodeLeft::Some,
        Ok(Some(_)) => CodeLeft::All,
        Ok(None) | Err(_) => CodeLeft::Unknown,
    }
}

/// Whether the code of a copy is being removed, or is gone: nothing may start there any more.
pub fn is_without_code(copy: &Path) -> bool {
    matches!(code_left(copy), CodeLeft::Some | CodeLeft::Nothing)
}

/// How the code of a copy is removed.
#[derive(Clone, Copy)]
pub struct Removal<'a> {
    /// The directories of which it may be a copy.
    pub origins: &'a HashSet<PathBuf>,
    /// Differs between removals at the same time.
    pub token: &'a str,
    /// Whether a job uses the copy. It is asked after the copy is marked: a job that was not written down by then sees the
    /// mark before it starts.
    pub is_used: &'a dyn Fn() -> bool,
    /// How many files are removed at most.
    pub most: u64,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files and links.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whether nothing of the code is left.
    pub is_complete: bool,
}

/// Removes the code of a copy. Without a list of what was copied nothing is removed.
pub fn remove(copy: &CodeCopy, how: &Removal<'_>) -> io::Result<Removed> {
    remove_seen(copy, how, &mut |_| {})
}

/// `before_dir` is called with each directory before it is opened.
fn remove_seen(
    copy: &CodeCopy,
    how: &Removal<'_>,
    before_dir: &mut dyn FnMut(&Path),
) -> io::Result<Removed> {
    let (list, name) = (OsStr::new(COPIED), OsStr::new(&copy.name));
    let copies = OpenDir::open(&copy.root)?.dir(OsStr::new(&copy.user))?;
    let dir = copies.dir(name)?;
    let known = match dir.read(list) {
        Ok(known) => known,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            // A removal was killed between its last two steps. One that holds anything stays.
            drop(copies.remove_dir(name));
            return Ok(Removed { is_complete: true, ..Removed::default() });
        }
        Err(e) => return Err(e),
    };
    if known == MARK {
        return Ok(Removed { is_complete: true, ..Removed::default() });
    }
    let new = format!("{COPIED}.{}", how.token);
    let is_first = !known.starts_with(MARK);
    let copied = tree::read(&known)?;
    if is_first {
        dir.replace(list, &[MARK, &known].concat(), OsStr::new(&new))?;
    }
    if (how.is_used)() {
        if is_first {
            dir.replace(list, &known, OsStr::new(&new))?;
        }
        return Ok(Removed::default());
    }
    let copied: HashMap<PathBuf, InTree> =
        copied.into_iter().map(|one| (one.path.clone(), one)).collect();
    let dirs = copied.keys().flat_map(|path| path.ancestors().skip(1)).collect();
    let removed = Removed { is_complete: true, ..Removed::default() };
    let mut walk = Walk { copied: &copied, dirs, how, removed, failure: None, before_dir };
    walk.empty(&dir, Path::new(""))?;
    let Walk { removed, failure, .. } = walk;
    if let Some(failure) = failure {
        return Err(failure);
    }
    if !removed.is_complete {
        return Ok(removed);
    }
    let left = dir.names()?;
    // What a removal left that was killed while it replaced the list.
    for name in left.iter().filter(|name| tree::is_list(name) && *name != list) {
        drop(dir.remove(name));
    }
    if left.iter().all(|name| tree::is_list(name)) {
        dir.remove(list)?;
        drop(copies.remove_dir(name));
    } else {
        dir.replace(list, MARK, OsStr::new(&new))?;
    }
    Ok(removed)
}

/// A walk through a copy.
struct Walk<'a> {
    copied: &'a HashMap<PathBuf, InTree>,
    /// The directories above what was copied.
    dirs: HashSet<&'a Path>,
    how: &'a Removal<'a>,
    removed: Removed,
    /// Why something of the code stays.
    failure: Option<io::Error>,
    before_dir: &'a mut dyn FnMut(&Path),
}

impl Walk<'_> {
    /// Removes what is code in a directory, and directories that are empty then.
    fn empty(&mut self, dir: &OpenDir, below: &Path) -> io::Result<()> {
        for name in dir.names()? {
            if below == Path::new("") && tree::is_list(&name) {
                continue;
            }
            let path = below.join(&name);
            let meta = match dir.metadata(&name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                meta => meta?,
            };
            if meta.is_dir() {
                (self.before_dir)(&path);
                match dir.dir(&name) {
                    Ok(inner) => {
                        let before = self.removed.files;
                        self.empty(&inner, &path)?;
                        // One that holds something stays, and so does one that the job made.
                        if self.removed.files > before || self.dirs.contains(path.as_path()) {
                            drop(dir.remove_dir(&name));
                        }
                    }
                    // A job has locked it, or something else has its name by now: it is not code.
                    Err(e) if is_no_code(&e) => {}
                    Err(e) => return Err(e),
                }
            } else if self.is_code(dir, &path, &meta) {
                if self.removed.files >= self.how.most {
                    self.removed.is_complete = false;
                    return Ok(());
                }
                match dir.remove(&name) {
                    Ok(()) => {
                        self.removed.files += 1;
                        self.removed.bytes += meta.len();
                    }
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    // The others are removed all the same.
                    Err(e) => {
                        self.failure.get_or_insert(e);
                    }
                }
            }
            if !self.removed.is_complete {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether something is as it was copied, is a link to what lies beside the code, or is what Python made of a module
    /// that was copied.
    fn is_code(&self, dir: &OpenDir, path: &Path, meta: &Metadata) -> bool {
        let before = self.copied.get(path);
        if meta.is_symlink() {
            let Some(to) = path.file_name().and_then(|name| dir.link(name).ok()) else {
                return false;
            };
            let is_beside = self.how.origins.iter().any(|origin| to == origin.join(path));
            is_beside || before.is_some_and(|before| before.leads_to.as_ref() == Some(&to))
        } else if meta.is_file() {
            let now = InTree::described(path.to_owned(), meta, None);
            before.is_some_and(|before| now.is(before)) || self.is_compiled(path)
        } else {
            false
        }
    }

    /// `sub/__pycache__/module.cpython-312.pyc`, where `sub/module.py` was copied.
    fn is_compiled(&self, path: &Path) -> bool {
        let module = || {
            let name = path.file_name()?.to_str()?.strip_suffix(".pyc")?;
            let cache = path.parent().filter(|dir| dir.file_name() == Some(OsStr::new(COMPILED)));
            let (module, _) = name.split_once('.')?;
            Some(cache?.parent()?.join(format!("{module}.py")))
        };
        module().is_some_and(|module| self.copied.contains_key(&module))
    }
}

fn is_no_code(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotADirectory | NotFound | PermissionDenied)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A copy of code in which a job has worked, beside what it may never touch.
    struct Lab {
        dir: tempfile::TempDir,
        origins: HashSet<PathBuf>,
        copy: CodeCopy,
    }

    const CODE: [&str; 6] = ["a.py", "changed.py", "sub", "sub/b.py", "sub/deep", "sub/deep/c.py"];

    impl Lab {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let exp = dir.path().join("exp");
            let (root, user, name) = (dir.path().join("stage"), "alice".into(), "copy".into());
            let copy = CodeCopy { root, user, name };
            let lab = Self { dir, origins: HashSet::from([exp.clone()]), copy };
            for path in ["a.py", "changed.py", "sub/b.py", "sub/deep/c.py", "data/x"] {
                lab.file(&format!("exp/{path}"), path);
            }
            let code = CODE.map(PathBuf::from);
            ThisDisk.put(&exp, &code, &lab.copy.path(), &mut |_| {}).unwrap();
            symlink(exp.join("data"), lab.copy.path().join("data")).unwrap();
            lab
        }

        fn file(&self, below: &str, text: &str) {
            let path = self.dir.path().join(below);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
        }

        /// What a job writes.
        fn results(&self) {
            self.file("stage/alice/copy/changed.py", "changed by the job");
            self.file("stage/alice/copy/sub/results.csv", "a,b");
            self.file("stage/alice/copy/sub/__pycache__/b.cpython-312.pyc", "made of b.py");
            self.file("stage/alice/copy/sub/__pycache__/other.pyc", "made of nothing");
            symlink(self.dir.path().join("exp"), self.copy.path().join("own")).unwrap();
            fs::create_dir_all(self.copy.path().join("hollow/of/the/job")).unwrap();
        }

        fn remove(&self, most: u64, is_used: bool) -> Removed {
            let is_used = &|| is_used;
            let how = Removal { origins: &self.origins, token: "1", is_used, most };
            remove(&self.copy, &how).unwrap()
        }

        /// What is in the copy but for its list.
        fn left(&self) -> Vec<String> {
            let all = tree::of_this_disk(&self.copy.path()).unwrap();
            let mut all: Vec<String> =
                all.into_iter().map(|one| one.path.display().to_string()).collect();
            all.retain(|path| path != COPIED);
            all
        }

        fn beside(&self) -> Vec<String> {
            let all = tree::of_this_disk(&self.dir.path().join("exp")).unwrap();
            all.into_iter().map(|one| one.path.display().to_string()).collect()
        }
    }

    const BESIDE: [&str; 5] = ["a.py", "changed.py", "data/x", "sub/b.py", "sub/deep/c.py"];

    #[test]
    fn what_is_as_it_was_copied_is_removed_and_what_a_job_wrote_stays() {
        let lab = Lab::new();
        lab.results();
        let removed = lab.remove(u64::MAX, false);
        assert!(removed.is_complete);
        assert_eq!(removed.files, 5, "three files, a link, what Python made");
        assert_eq!(lab.left(), ["changed.py", "own", "sub/results.csv"]);
        assert!(!lab.copy.path().join("sub/deep").exists());
        assert!(lab.copy.path().join("sub/__pycache__/other.pyc").exists());
        assert!(lab.copy.path().join("hollow/of/the/job").is_dir(), "a job may count on it");
        assert_eq!(lab.beside(), BESIDE);
        assert_eq!(code_left(&lab.copy.path()), CodeLeft::Nothing);
        let now = tree::of_this_disk(&lab.copy.path()).unwrap();
        let known = tree::read(&fs::read(lab.copy.path().join(COPIED)).unwrap()).unwrap();
        assert_eq!(tree::written_since(now, &known).len(), 3, "all that is left is its own");
        // One that is done is not walked again: what comes later is none of the code.
        lab.file("stage/alice/copy/a.py", "a.py");
        assert_eq!(lab.remove(u64::MAX, false).files, 0);
    }

    #[test]
    fn a_copy_of_which_nothing_is_left_is_removed_itself() {
        let lab = Lab::new();
        assert!(lab.remove(u64::MAX, false).is_complete);
        assert!(!lab.copy.path().exists());
        assert_eq!(lab.beside(), BESIDE);
        // A removal that was killed between its last two steps.
        fs::create_dir(lab.copy.path()).unwrap();
        assert!(lab.remove(u64::MAX, false).is_complete);
        assert!(!lab.copy.path().exists());
    }

    #[test]
    fn without_a_list_nothing_is_removed() {
        let lab = Lab::new();
        fs::remove_file(lab.copy.path().join(COPIED)).unwrap();
        assert_eq!(lab.remove(u64::MAX, false).files, 0);
        assert_eq!(lab.left().len(), 5);
        symlink(lab.dir.path().join("exp/a.py"), lab.copy.path().join(COPIED)).unwrap();
        let how = Removal { origins: &lab.origins, token: "1", is_used: &|| false, most: 9 };
        assert!(remove(&lab.copy, &how).is_err(), "a link is no list");
        assert_eq!(lab.left().len(), 5);
    }

    /// As if it were killed after each file: the list says from the beginning that the code is no more whole.
    #[test]
    fn a_removal_that_was_cut_off_continues() {
        let lab = Lab::new();
        lab.results();
        assert_eq!(code_left(&lab.copy.path()), CodeLeft::All);
        let mut turns = 0;
        loop {
            // One that was killed while it replaced the list.
            lab.file(&format!("stage/alice/copy/{COPIED}.0"), "half");
            let removed = lab.remove(1, false);
            assert!(removed.files <= 1);
            for own in ["changed.py", "own", "sub/results.csv"] {
                assert!(lab.left().contains(&own.to_owned()), "{own}");
            }
            if removed.is_complete {
                break;
            }
            assert_eq!(code_left(&lab.copy.path()), CodeLeft::Some);
            turns += 1;
        }
        assert_eq!(turns, 4, "the fifth finds nothing more behind the last file");
        assert_eq!(lab.left(), ["changed.py", "own", "sub/results.csv"]);
        assert_eq!(lab.beside(), BESIDE);
    }

    #[test]
    fn a_copy_that_is_in_use_after_all_is_whole_again() {
        let lab = Lab::new();
        let before = fs::read(lab.copy.path().join(COPIED)).unwrap();
        assert_eq!(lab.remove(u64::MAX, true), Removed::default());
        assert_eq!(fs::read(lab.copy.path().join(COPIED)).unwrap(), before);
        assert_eq!(lab.left().len(), 5);
    }

    /// A link to a full directory, which has what is in the list, under the names that are in the list.
    #[test]
    fn no_link_is_followed() {
        let lab = Lab::new();
        fs::rename(lab.copy.path().join("sub"), lab.dir.path().join("moved")).unwrap();
        symlink(lab.dir.path().join("moved"), lab.copy.path().join("sub")).unwrap();
        assert!(lab.remove(u64::MAX, false).is_complete);
        assert!(lab.dir.path().join("moved/b.py").exists());
        assert!(lab.dir.path().join("moved/deep/c.py").exists());
        assert_eq!(lab.left(), ["sub"]);
        // Neither where the directory of a user, or a copy, is one.
        for place in ["stage/alice/copy", "stage/alice"] {
            let lab = Lab::new();
            let place = lab.dir.path().join(place);
            fs::rename(&place, lab.dir.path().join("moved")).unwrap();
            symlink(lab.dir.path().join("moved"), &place).unwrap();
            let how = Removal { origins: &lab.origins, token: "1", is_used: &|| false, most: 9 };
            assert!(remove(&lab.copy, &how).is_err(), "{place:?}");
            assert_eq!(lab.left().len(), 5, "{place:?}");
        }
    }

    /// Swapped after it was seen to be a directory, and before it is opened.
    #[test]
    fn a_directory_that_is_swapped_for_a_link_meanwhile_is_not_followed() {
        for victim in ["sub", "sub/deep"] {
            let lab = Lab::new();
            let (place, moved) = (lab.copy.path().join(victim), lab.dir.path().join("moved"));
            let mut swapped = 0;
            let mut swap = |dir: &Path| {
                if dir == Path::new(victim) {
                    fs::rename(&place, &moved).unwrap();
                    symlink(&moved, &place).unwrap();
                    swapped += 1;
                }
            };
            let how = Removal { origins: &lab.origins, token: "1", is_used: &|| false, most: 99 };
            remove_seen(&lab.copy, &how, &mut swap).unwrap();
            assert_eq!(swapped, 1);
            let inner = if victim == "sub" { "b.py" } else { "c.py" };
            assert!(moved.join(inner).exists(), "{victim}");
            assert!(place.is_symlink(), "it is nothing that was copied");
        }
    }
}
