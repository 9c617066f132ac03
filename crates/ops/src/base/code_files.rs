//! Which files of a directory are its code, and what lies beside them.
//!
//! Of a command in a git work tree that is what git tracks, and what it neither tracks nor ignores; else what `.gitignore`
//! leaves. `.tpuignore` leaves out more.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::OverrideBuilder;
use ignore::{Walk, WalkBuilder};

use tpu_core::model::job::LaunchMode;
use tpu_core::text;
use tpu_engine::runner::tree::{self, COPIED, is_passed_over};
use tpu_system::sys::proc::{self, Spawn};

use crate::Error;

/// What is no code and is left out wherever nobody tracks it, in gitignore's notation (`!` = leave out).
const LEFT_OUT: [&str; 5] =
    ["!__pycache__/", "!*.pyc", "!.ipynb_checkpoints/", "!wandb/", "!.venv/"];
/// Neither are these, where no git says what is.
const IMAGES: [&str; 3] = ["!*.png", "!*.jpg", "!*.jpeg"];
/// Neither are these, except for a script, which may ask them what it stages.
const HISTORY: [&str; 2] = ["!.git/", "!.hg/"];
/// What is neither copied nor linked.
const NEVER: [&str; 3] = [".git", ".hg", "__pycache__"];
/// The file of a directory that names what else is left out, in gitignore's notation.
const MORE: &str = ".tpuignore";

/// A directory of code, and the directories of ours that are never part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CodeAt<'a> {
    /// The directory.
    pub(crate) from: &'a Path,
    /// Where this program keeps its own things.
    pub(crate) state: &'a Path,
    /// Where copies of code lie.
    pub(crate) copies: &'a Path,
    /// Whether git says what is code, where it can, and [`MORE`] what is none.
    pub(crate) asks_git: bool,
    /// Paths below it that are never copied.
    pub(crate) outputs: &'a [String],
}

/// What is copied of a directory, by paths relative to it: directories before what is in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeFiles {
    pub(crate) paths: BTreeSet<PathBuf>,
}

/// How much is copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measure {
    /// Files.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The largest entries of the directory, with their bytes.
    pub(crate) largest: Vec<(PathBuf, u64)>,
}

impl CodeAt<'_> {
    /// The code of the directory for a command, or for a script.
    pub(crate) fn files(&self, mode: LaunchMode) -> Result<CodeFiles, Error> {
        let of_git = if self.asks_git { of_git(self.from, Path::new("")) } else { None };
        let is_no_output =
            |path: &PathBuf| !self.outputs.iter().any(|output| path.starts_with(output));
        let Some(known) = of_git else {
            let mut walked = self.walked(mode)?;
            walked.paths.retain(is_no_output);
            return Ok(walked);
        };
        let more = more_ignored(self.from);
        let is_code = |path: &PathBuf| {
            !self.is_ours(&self.from.join(path))
                && is_no_output(path)
                && !more.matched_path_or_any_parents(path, false).is_ignore()
        };
        let mut paths = BTreeSet::new();
        for path in known.into_iter().filter(is_code) {
            let dirs = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
            paths.extend(dirs.map(Path::to_owned));
            paths.insert(path);
        }
        Ok(CodeFiles { paths })
    }

    fn is_ours(&self, path: &Path) -> bool {
        path.starts_with(self.state) || path.starts_with(self.copies)
    }

    fn walked(&self, mode: LaunchMode) -> Result<CodeFiles, Error> {
        let mut rules = OverrideBuilder::new(self.from);
        let history = HISTORY.iter().filter(|_| mode == LaunchMode::Native);
        for rule in LEFT_OUT.iter().chain(&IMAGES).chain(history) {
            rules.add(rule).expect("the patterns above are valid");
        }
        let rules = rules.build().expect("the patterns above are valid");
        let ours = [self.state.to_owned(), self.copies.to_owned()];
        let mut walk = plain_walk(self.from);
        if self.asks_git {
            walk.add_custom_ignore_filename(MORE);
        }
        walk.overrides(rules)
            .filter_entry(move |entry| !ours.iter().any(|ours| entry.path() == ours));
        below(self.from, walk.build())
    }

    /// Lets a copy of the code find what lies beside it and is no part of it, such as data and results: by links. What is
    /// there already stays.
    pub(crate) fn link_rest(&self, code: &CodeFiles, copy: &Path) -> io::Result<()> {
        self.link_rest_of(Path::new(""), code, copy)
    }

    /// Makes its outputs, where they are not there, and lets a copy find them by links.
    pub(crate) fn link_outputs(&self, copy: &Path) -> io::Result<()> {
        for output in self.outputs {
            let (there, link) = (self.from.join(output), copy.join(output));
            fs::create_dir_all(&there)?;
            if let Some(above) = link.parent() {
                fs::create_dir_all(above)?;
            }
            match std::os::unix::fs::symlink(&there, &link) {
                // It lies in another one, or is linked already.
                Err(e)
                    if e.kind() == io::ErrorKind::AlreadyExists
                        && link.canonicalize()? == there.canonicalize()? => {}
                made => made?,
            }
        }
        Ok(())
    }

    /// Whether a directory that holds no file is linked as what is ignored is, and not made anew as a part of the code.
    fn is_ignored(&self, path: &Path) -> bool {
        is_left_out(path)
            || more_ignored(self.from).matched(path, true).is_ignore()
            || !self.from.join(".git").exists()
            || ignores_all_in(&self.from.join(path))
    }

    fn link_rest_of(&self, dir: &Path, code: &CodeFiles, copy: &Path) -> io::Result<()> {
        let entries = match fs::read_dir(self.from.join(dir)) {
            // It went meanwhile, or is not ours to look into: nothing of it can be linked.
            Err(e) if dir != Path::new("") && is_passed_over(&e) => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (name, there) = (entry.file_name(), entry.path());
            let (path, is_dir) = (dir.join(&name), entry.file_type()?.is_dir());
            if code.paths.contains(&path) {
                if is_dir {
                    self.link_rest_of(&path, code, copy)?;
                }
                continue;
            }
            let is_never = NEVER.iter().any(|never| name == *never) || self.is_ours(&there);
            let holds_ours = self.state.starts_with(&there) || self.copies.starts_with(&there);
            if is_never || holds_ours {
                continue;
            }
            let to = copy.join(&path);
            let is_code = is_dir && is_hollow(&there) && !self.is_ignored(&path);
            let made = if is_code {
                fs::create_dir_all(&to)
            } else {
                std::os::unix::fs::symlink(&there, &to)
            };
            match made {
                // The directory in which it would lie went while it was copied.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
                    ) => {}
                made => made?,
            }
            if is_code {
                self.link_rest_of(&path, code, copy)?;
            }
        }
        Ok(())
    }
}

impl CodeFiles {
    /// All that lies below a directory, whatever it is.
    pub(crate) fn whole(from: &Path) -> Result<Self, Error> {
        below(from, WalkBuilder::new(from).standard_filters(false).build())
    }

    /// What was copied when a job was submitted. Others may have run from that copy, and have written in it, since.
    pub(crate) fn submitted(copy: &Path) -> Result<Self, Error> {
        let mut all = Self::whole(copy)?;
        let list = fs::read(copy.join(COPIED)).ok().and_then(|list| tree::read(&list).ok());
        if let Some(list) = list {
            let listed: BTreeSet<PathBuf> = list.into_iter().map(|one| one.path).collect();
            let holds = |dir: &PathBuf| {
                let next = listed.range(dir.clone()..).next();
                next.is_some_and(|path| path.starts_with(dir)) || is_hollow(&copy.join(dir))
            };
            all.paths.retain(|path| listed.contains(path) || holds(path));
        }
        Ok(all)
    }

    /// The same of a copy without the links that it has to what lies beside the code of which it is one.
    pub(crate) fn without_links_to(mut self, origin: &Path, copy: &Path) -> Self {
        self.paths.retain(|path| {
            fs::read_link(copy.join(path)).map_or(true, |to| to != origin.join(path))
        });
        self
    }

    /// Counts it. What went meanwhile counts for nothing.
    pub(crate) fn measure(&self, from: &Path) -> Measure {
        let mut all = Measure::default();
        let mut by_entry: Vec<(PathBuf, u64)> = Vec::new();
        for path in &self.paths {
            let Ok(meta) = fs::symlink_metadata(from.join(path)) else { continue };
            if meta.is_dir() {
                continue;
            }
            all.files += 1;
            all.bytes += meta.len();
            let entry = path.components().next().map(|first| PathBuf::from(first.as_os_str()));
            match (by_entry.last_mut(), entry) {
                (Some((last, bytes)), Some(entry)) if *last == entry => *bytes += meta.len(),
                (_, Some(entry)) => by_entry.push((entry, meta.len())),
                (_, None) => {}
            }
        }
        by_entry.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        by_entry.truncate(3);
        all.largest = by_entry;
        all
    }
}

impl Measure {
    /// How much it is, with its largest entries, in words.
    pub(crate) fn in_words(&self) -> String {
        let largest = self.largest.iter().map(|(entry, bytes)| {
            format!("{} {}", text::escape(&entry.to_string_lossy()), text::bytes(*bytes))
        });
        let largest: Vec<String> = largest.collect();
        let files = text::counted(usize::try_from(self.files).unwrap_or(usize::MAX), "file");
        format!("{} in {files} (the largest: {})", text::bytes(self.bytes), largest.join(", "))
    }
}

/// What git tracks in a work tree and what it does not ignore, also in work trees within it; `None` where there is none at
/// this place, or git cannot be asked.
fn of_git(top: &Path, below: &Path) -> Option<Vec<PathBuf>> {
    let dir = top.join(below);
    if !dir.join(".git").exists() {
        return None;
    }
    let ask = git(&dir).args(["-c", "core.fsmonitor=false", "ls-files", "-t", "-z"]);
    let ask = ask.args(["--cached", "--others", "--exclude-standard"]);
    let answer = proc::run(&ask).ok().filter(|answer| answer.status.success())?.stdout;
    let mut all = Vec::new();
    let mut real: HashMap<PathBuf, bool> = HashMap::new();
    for line in answer.split(|byte| *byte == 0) {
        let Some((tag, path)) = line.split_first_chunk::<2>() else { continue };
        let path = below.join(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
        let there = top.join(&path);
        let dir = path.parent().unwrap_or(Path::new(""));
        if !*real.entry(dir.to_owned()).or_insert_with(|| is_real(top, dir)) {
            // A link stands where git knew a directory: what is behind it is no code of this place.
            continue;
        }
        if there.is_dir() && !there.is_symlink() {
            // A work tree of its own, or what git takes for one.
            all.extend(of_git(top, &path).unwrap_or_else(|| in_it(top, &path)));
        } else if *tag != *b"? " || !is_left_out(&path) {
            all.push(path);
        }
    }
    Some(all)
}

/// Whether git ignores whatever would be made in a directory.
fn ignores_all_in(dir: &Path) -> bool {
    let asked = proc::run(&git(dir).args(["check-ignore", "-q", "--", "any-file"]));
    asked.is_ok_and(|answer| answer.status.success())
}

/// git in a directory, whatever work tree this process was started for.
fn git(dir: &Path) -> Spawn {
    let mut git = Spawn::new("git").cwd(dir);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        git = git.env_remove(name);
    }
    git
}

/// Whether each part of a path below a directory is a directory itself, and no link.
fn is_real(top: &Path, dir: &Path) -> bool {
    let parts = dir.ancestors().take_while(|part| !part.as_os_str().is_empty());
    let mut parts = parts.map(|part| fs::symlink_metadata(top.join(part)));
    parts.all(|meta| meta.is_ok_and(|meta| meta.is_dir()))
}

/// The files in a directory of a work tree of which git says nothing.
fn in_it(top: &Path, dir: &Path) -> Vec<PathBuf> {
    let mut walk = plain_walk(&top.join(dir));
    walk.filter_entry(|entry| NEVER.iter().all(|never| entry.file_name() != *never));
    let files =
        walk.build().flatten().filter(|entry| entry.file_type().is_some_and(|it| !it.is_dir()));
    files.filter_map(|entry| Some(entry.path().strip_prefix(top).ok()?.to_owned())).collect()
}

/// Whether a path that nobody tracks is among what is [left out](LEFT_OUT).
fn is_left_out(path: &Path) -> bool {
    let named = |part: &OsStr| {
        ["__pycache__", ".ipynb_checkpoints", "wandb", ".venv"].iter().any(|name| part == *name)
    };
    path.iter().any(named) || path.extension().is_some_and(|end| end == "pyc")
}

fn more_ignored(from: &Path) -> Gitignore {
    let mut rules = GitignoreBuilder::new(from);
    // A line that is no pattern leaves nothing out.
    drop(rules.add(from.join(MORE)));
    rules.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Whether nothing but directories lies in a directory, as far as one may look.
fn is_hollow(dir: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(dir) else { return false };
    entries.all(|entry| {
        entry.is_ok_and(|entry| {
            entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_hollow(&entry.path())
        })
    })
}

/// A walk that heeds `.gitignore` of the directory itself alone.
fn plain_walk(from: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(from);
    walk.hidden(false).parents(false).git_global(false).require_git(false);
    walk
}

fn below(from: &Path, walk: Walk) -> Result<CodeFiles, Error> {
    let mut paths = BTreeSet::new();
    for entry in walk {
        let entry = entry.map_err(|e| {
            Error::failed(format!("cannot copy the code: {e}"))
                .hint("check the rights in the directory of the code, then: tpu rerun")
        })?;
        let relative = entry.path().strip_prefix(from).unwrap_or(Path::new(""));
        if !relative.as_os_str().is_empty() {
            paths.insert(relative.to_owned());
        }
    }
    Ok(CodeFiles { paths })
}

#[cfg(test)]
mod tests {
    use tpu_engine::runner::files::{Files as _, ThisDisk};

    use super::*;

    #[test]
    fn copies_and_our_own_state_are_no_code() {
        let dir = tempfile::tempdir().unwrap();
        let below = |path: &str| dir.path().join(path);
        for path in ["state/jobs", "stages/alice/6", "stages/alice/7.partial", "own/deep"] {
            fs::create_dir_all(below(path)).unwrap();
        }
        let (state, copies) = (below("state"), below("stages/alice"));
        let at = CodeAt {
            from: dir.path(),
            state: &state,
            copies: &copies,
            asks_git: true,
            outputs: &[],
        };
        let found = at.files(LaunchMode::Native).unwrap();
        let found: Vec<_> = found.paths.iter().map(|path| path.display().to_string()).collect();
        assert_eq!(found, ["own", "own/deep", "stages"]);
    }

    #[test]
    fn what_was_written_in_a_submitted_copy_is_no_part_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let (from, copy) = (dir.path().join("exp"), dir.path().join("copy"));
        fs::create_dir_all(from.join("sub")).unwrap();
        drop(fs::File::create(from.join("sub/a.py")).unwrap());
        let code = ["sub", "sub/a.py"].map(PathBuf::from);
        ThisDisk.put(&from, &code, &copy, &mut |_| {}).unwrap();
        fs::create_dir_all(copy.join("plots")).unwrap();
        for written in ["results.csv", "sub/more.csv", "plots/a.png"] {
            drop(fs::File::create(copy.join(written)).unwrap());
        }
        let found = CodeFiles::submitted(&copy).unwrap();
        assert_eq!(found.paths.into_iter().collect::<Vec<_>>(), code);
        // Nobody has listed what was copied: all of it counts.
        fs::remove_file(copy.join(COPIED)).unwrap();
        assert!(CodeFiles::submitted(&copy).unwrap().paths.contains(Path::new("results.csv")));
    }

    #[test]
    fn a_copy_finds_what_is_no_code_and_nothing_of_ours() {
        let dir = tempfile::tempdir().unwrap();
        let below = |path: &str| dir.path().join(path);
        for path in [
            "exp/data",
            "exp/sub/out",
            "exp/hollow/deep",
            "exp/results/deep",
            "exp/sub/logs",
            "exp/runs",
            "exp/deep/in/logs",
            "exp/tpu/copies",
        ] {
            fs::create_dir_all(below(path)).unwrap();
        }
        let git = Spawn::new("git").args(["init", "-q"]).cwd(below("exp"));
        assert!(proc::run(&git).unwrap().status.success());
        let mut ignores = fs::File::create(below("exp/.gitignore")).unwrap();
        io::Write::write_all(&mut ignores, b"results/\nlogs\nruns/*\n").unwrap();
        let files = ["a.py", "data/x", "sub/b.py", "sub/out/y", "sub/c.pyc", "tpu/copies/z"];
        for path in files.map(|path| format!("exp/{path}")) {
            drop(fs::File::create(below(&path)).unwrap());
        }
        let (from, state, copies) = (below("exp"), below("state"), below("exp/tpu/copies"));
        let at =
            CodeAt { from: &from, state: &state, copies: &copies, asks_git: true, outputs: &[] };
        let code = ["a.py", "sub", "sub/b.py"].map(PathBuf::from);
        let code = CodeFiles { paths: code.into_iter().collect() };
        let copy = below("copy");
        fs::create_dir_all(copy.join("sub")).unwrap();
        for _ in 0..2 {
            at.link_rest(&code, &copy).unwrap();
        }
        let link = |path: &str| fs::read_link(copy.join(path)).ok();
        assert_eq!(link("data"), Some(from.join("data")));
        assert_eq!(link("sub/out"), Some(from.join("sub/out")));
        assert!(copy.join("hollow/deep").is_dir());
        assert!(link("hollow").is_none() && link("sub/c.pyc").is_some());
        // What git ignores is no code, also while nothing is in it.
        for path in ["results", "sub/logs", "runs", "deep/in/logs"] {
            assert_eq!(link(path), Some(from.join(path)), "{path}");
        }
        assert!(!copy.join(".git").exists() && !copy.join("tpu").exists());
    }
}
